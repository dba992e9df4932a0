"""The file of a session's model, or its bytes. Its interface is kept; the model is decoded once it is asked for."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import InputError
from ...files import inside, mapped, reason, sha256_of, write
from ...files.kept import digest_as_kept, keeps
from ...lazy_names import LateModule
from ..errors import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile
from ..errors import NotImplemented as Lacking
from ..options import SessionOptions
from ..settings.warned import warn_once
from .interface import Interface, keep_interface, recall_interface

if TYPE_CHECKING:
    from ...onnx.model import OnnxModel
    from . import reading
else:
    reading = LateModule("ort.model.reading")

_FOLDER: Final = "session.model_external_initializers_file_folder_path"
"""The setting that says where the files of external data are of a model that is given as bytes."""
WRITTEN: Final = (
    "the file has the model as it was given; `singe compile MODEL -o FILE` writes what Singe makes of a model"
)
NOT_WRITTEN: Final = "no file is written, of a model that other options change, or in onnxruntime's own format (.ort)"
_ORT_FORMAT: Final = b"ORTM"
"""What the files of onnxruntime's own format have from their fourth byte on."""


class ModelFile:
    """See the module's docstring. `digest`: the hash of its bytes; None if nothing is kept. `interface`: what it says of itself. `sizes`: those
    that the options give numbers."""

    def __init__(self, path: str | None, given: bytes, options: SessionOptions) -> None:
        """path: None for a model that is given as bytes."""
        self._path: Final = None if path is None else Path(path)
        self._name: Final = "<bytes>" if path is None else str(Path(path))
        self._data: Final = memoryview(given) if self._path is None else _contents(self._path, self._name)
        self._status: Final = None if self._path is None else self._path.stat()
        if bytes(self._data[4:8]) == _ORT_FORMAT:
            raise Lacking(
                f"{self._name}: it is of onnxruntime's own format (.ort), which is for one version of it; give the ONNX file that it was made of"
            )
        if not len(self._data):
            raise InvalidArgument(f"{self._name}: no graph was found: it is empty, expected an ONNX model")
        place = options._entries.get(_FOLDER)
        self._folder: Final = self._path.parent if self._path is not None else None if place is None else Path(place)
        self._beside: Final = dict(options._files)
        self._weights: Final = {name: value.numpy() for name, value in options._initializers.items()}
        self._is_whole: Final = not (self._weights or self._beside or _FOLDER in options._entries)
        self.sizes: Final = dict(options._sizes)
        self.digest: Final = self._digest() if self._is_whole and keeps() else None
        kept = None if self.digest is None else recall_interface(self.digest, self.sizes)
        self._must_compare: Final = kept is not None
        self.interface: Final[Interface] = kept or reading.interface_of(self.model, self._data, self._name)
        if self.digest is not None and kept is None:
            keep_interface(self.interface, self.digest, self.sizes, self._name)

    def _digest(self) -> str:
        return sha256_of(self._data) if self._path is None else digest_as_kept(self._path)

    @cached_property
    def model(self) -> OnnxModel:
        """The model, with the sizes and weights of the options."""
        if self._must_compare:
            self._compare()
        found = reading.decoded(self._data, self._name, self._folder, self._beside)
        return reading.with_weights(reading.with_sizes(found, self.sizes), self._weights)

    @property
    def whole(self) -> Path | memoryview | None:
        """The file, if its bytes and those of the files beside it are all that decides the model. Without such files it is its bytes: the file
        may be removed once it is loaded."""
        if not self._is_whole:
            return None
        return self._path if self._path is not None and self.interface.files else self._data

    def write(self, path: Path) -> None:
        """Write the model to another file as it was given, with the files beside it: what Singe changes it changes when it compiles."""
        if not self._is_whole or self.sizes or path.suffix == ".ort":
            warn_once(f"optimized_model_filepath: {NOT_WRITTEN}")
            return
        warn_once(f"optimized_model_filepath: {WRITTEN}")
        try:
            for name in self.interface.files:
                assert self._path is not None  # a model of bytes has no files beside it that it can name
                to = inside(path.parent, name)
                to.parent.mkdir(parents=True, exist_ok=True)
                if to != inside(self._path.parent, name):
                    write(to, [mapped(inside(self._path.parent, name))])
            if self._path is None or not path.exists() or not path.samefile(self._path):
                write(path, [self._data])
        except OSError as e:
            raise InvalidArgument(f"optimized_model_filepath: {path} cannot be written: {reason(e)}") from e

    def _compare(self) -> None:
        """Refuse bytes that are not those any more of which the interface is kept."""
        if self._is_cut() or sha256_of(self._data) != self.digest:
            raise InputError(f"{self._name}: the file has changed since it was loaded; load it again")

    def _is_cut(self) -> bool:
        """Whether the file that is mapped lost bytes: to read them would end the process."""
        if self._path is None or self._status is None:
            return False
        try:
            now = self._path.stat()
        except OSError:  # its name is gone, its bytes are not
            return False
        return os.path.samestat(now, self._status) and now.st_size < len(self._data)


def _contents(path: Path, name: str) -> memoryview:
    if not path.exists():
        raise NoSuchFile(f"Load model from {name} failed: the file doesn't exist; give the path of an ONNX file")
    if path.is_dir():
        raise InvalidProtobuf(f"Load model from {name} failed: it is a folder, expected an ONNX file")
    try:
        return mapped(path)
    except (OSError, ValueError) as e:
        raise Fail(f"Load model from {name} failed: it cannot be read: {reason(e)}") from e
