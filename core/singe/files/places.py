"""A file by what a caller calls it: a path, a URL, or the name of a ready model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import InputError
from ..lazy_names import LateModule
from .local import inside
from .urls import ZOO, is_url

if TYPE_CHECKING:
    from . import download as downloads
else:
    downloads = LateModule("files.download")

MANIFEST: Final = "model.json"
"""The file of a bundle that describes it."""


def local_file(path: str | Path, beside: str | None = None) -> Path:
    """The file itself, or where a URL's or a ready model's is in the cache, fetched if need be. beside: of the file with this
    relative path in the folder of the first; see `inside`."""
    if not isinstance(path, str) or not is_url(path):
        return Path(path) if beside is None else inside(Path(path).parent, beside)
    if not path.startswith(ZOO):
        return downloads.downloaded(path, beside)
    if beside is not None:
        raise InputError(f"{path}: it names the file {beside!r:.80}, which is not in the zoo")
    from . import zoo  # noqa: PLC0415 (who names no model of the zoo pays nothing for it)

    return zoo.fetch(path)


def bundle_at(path: str | Path) -> Path | None:
    """The folder of a bundle, of which the path is the folder or the manifest; None if it is neither."""
    given = Path(path)
    folder = given.parent if given.name == MANIFEST else given
    return folder if (folder / MANIFEST).is_file() else None


def is_language(path: str | Path) -> bool:
    """Whether a path is that of a language model: a GGUF file, or a folder of Hugging Face."""
    name = Path(path)
    if isinstance(path, str) and path.startswith(ZOO):
        from . import zoo  # noqa: PLC0415

        name = Path(zoo.zoo_file(path)[1].name)
    return name.suffix == ".gguf" or (name / "config.json").is_file()


async def fetched_bytes(path: str) -> bytes:
    """For a page: the bytes of a URL or a ready model, compared with their hash."""
    if not path.startswith(ZOO):
        return await downloads.fetched(path)
    from . import zoo  # noqa: PLC0415

    return await downloads.fetched(zoo.address(path))
