"""`python tests/release/release.py [-o DIR]` builds what a release consists of, checks it, and prints a table. It uploads
nothing.

`ARTEFACTS` says what there is, `CHECKS` what holds for it. Everything is built twice, with SOURCE_DATE_EPOCH (the time of
the commit, unless it is set) and with different hashes of strings: the bytes must be the same. Then each file is installed
in a clean environment and runs. DIR, which is `dist` by default, gets the files, `SHA256SUMS`, and `provenance.json` with
the commit, the versions of the tools and the hashes. The tools are pinned by `PINS`, and kept in tests/.cache.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / "tests" / ".cache" / "release"
PINS: Final = {"build": "1.3.0", "hatchling": "1.33.0", "twine": "7.0.0"}
"""Packages that build and check Python's archives ↦ their versions."""
MOST_SCRIPT_BYTES: Final = 20_500
"""Of the script of every page, gzip."""
PUBLINT: Final = "0.3.25"
DOCS: Final = ("markdown-it-py", "pygments")
"""Packages that make the documentation, of the environment that runs this script."""
BIN: Final = "Scripts" if os.name == "nt" else "bin"
UNREACHABLE: Final = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|NewConnectionError|ConnectTimeout"
    r"|No matching distribution found"
)
STRAY: Final = re.compile(
    r"(^|/)(\.(?!gitignore$|npmrc$|ci/|github/)[^/]+|__pycache__|node_modules|env\.sh|[^/]+\.pyc)(/|$)"
)
PYTHON_SMOKE: Final = """
import numpy as np, singe as sg
model = sg.Model.of(lambda x: x.exp() + 1, {"x": ("N", 3)})
np.testing.assert_allclose(model(np.zeros((2, 3), np.float32)), 2)
sg.export(model, "model")
"""
NODE_SMOKE: Final = """
import { load } from "singe";
const model = await load("./model/");
const [{ data }] = Object.values(await model.run({ x: new Float32Array([0, 0, 0]) }));
if ([...data].join() !== "2,2,2") throw new Error(`the model answers ${data}`);
"""


class ReleaseError(Exception):
    """What is wrong with a file of the release, or with a tool."""


class UnreachableError(ReleaseError):
    """A package index cannot be reached."""


def run(command: list[str], cwd: Path, **env: str) -> str:
    """The output of a command, which must succeed; it does not see this checkout's packages."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")} | env
    command = [shutil.which(command[0]) or command[0], *command[1:]]
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        text = (done.stdout + done.stderr).strip()
        kind = UnreachableError if UNREACHABLE.search(text) else ReleaseError
        raise kind(f"{Path(command[0]).name} {' '.join(command[1:4])} failed:\n{text[-2000:]}")
    return done.stdout


def npm(*arguments: str, cwd: Path) -> str:
    return run(["npm", *arguments, "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error"], cwd)


@dataclass
class Bench:
    """Where a release is made: a folder for work, tools, and the time that the files carry."""

    work: Path
    epoch: str
    python: Path = field(init=False)
    publint: Path = field(init=False)

    def __post_init__(self) -> None:
        wanted = [f"{name}=={version}" for name, version in PINS.items()]
        named = hashlib.sha256(f"{wanted} {sys.version}".encode()).hexdigest()[:12]
        folder = CACHE / named
        self.python = folder / BIN / "python"
        if not (folder / "done").exists():
            venv.create(folder, with_pip=True, clear=True)
            run([str(self.python), "-m", "pip", "install", "-q", *wanted], folder)
            (folder / "done").touch()
        folder = CACHE / f"publint-{PUBLINT}"
        self.publint = folder / "node_modules" / "publint" / "src" / "cli.js"
        if not self.publint.exists():
            folder.mkdir(parents=True, exist_ok=True)
            npm("install", "--prefix", str(folder), "--ignore-scripts", f"publint@{PUBLINT}", cwd=folder)

    def folder(self, name: str) -> Path:
        folder = self.work / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


# --- what is built ----------------------------------------------------------------------------------------------------


@contextmanager
def built_scripts() -> Iterator[None]:
    """Within the block, static/dist has the scripts of bundles: the archives take them from there."""
    folder = ROOT / "static" / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        run([sys.executable, ".ci/javascript.py", "--build", str(folder)], ROOT, PYTHONPATH=str(ROOT / "core"))
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def python_archives(bench: Bench, out: Path, **env: str) -> None:
    """The source archive, and the wheel made of it."""
    run([str(bench.python), "-m", "build", "--no-isolation", "-o", str(out), str(ROOT)], ROOT, **env)


def npm_archive(bench: Bench, out: Path, **env: str) -> None:
    with tempfile.TemporaryDirectory(dir=bench.work) as folder:
        code = [sys.executable, "-m", "singe.tools.export.package", folder]
        run(code, ROOT, PYTHONPATH=str(ROOT / "core"), **env)
        npm("pack", folder, "--pack-destination", str(out), cwd=out)


def docs_archive(bench: Bench, out: Path, **env: str) -> None:
    paths = os.pathsep.join(str(ROOT / name) for name in ("docs", "core", "gpu", "webgpu", "wasm"))
    with tempfile.TemporaryDirectory(dir=bench.work) as folder:
        run([sys.executable, "-m", "docsite", "-o", f"{folder}/docs"], ROOT, PYTHONPATH=paths, **env)
        shutil.copy(ROOT / "LICENSE", f"{folder}/docs")
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w") as archive:
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file():
                    entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
                    entry.size, entry.mtime = path.stat().st_size, int(bench.epoch)
                    with path.open("rb") as data:
                        archive.addfile(entry, data)
    (out / "singe-docs.tar.gz").write_bytes(gzip.compress(raw.getvalue(), mtime=int(bench.epoch)))


@dataclass(frozen=True)
class Artefact:
    folder: str
    """Of the release; files of one folder are built together."""
    pattern: str
    most: int
    """Bytes that it may have."""


ARTEFACTS: Final = {
    "source": Artefact("python", "singe-*.tar.gz", 4_000_000),
    "wheel": Artefact("python", "singe-*.whl", 2_000_000),
    "npm": Artefact("npm", "singe-*.tgz", 400_000),
    "docs": Artefact("docs", "singe-docs.tar.gz", 5_000_000),
}
BUILDERS: Final[Mapping[str, Callable[..., None]]] = {
    "python": python_archives,
    "npm": npm_archive,
    "docs": docs_archive,
}


def build(bench: Bench, out: Path, seed: str) -> dict[str, Path]:
    """The file of each artefact."""
    with built_scripts():
        for name, builder in BUILDERS.items():
            (out / name).mkdir(parents=True)
            builder(bench, out / name, SOURCE_DATE_EPOCH=bench.epoch, PYTHONHASHSEED=seed)
    found: dict[str, Path] = {}
    for name, artefact in ARTEFACTS.items():
        files = list((out / artefact.folder).glob(artefact.pattern))
        if len(files) != 1:
            raise ReleaseError(f"{name}: built {len(files)} files {artefact.pattern}, expected 1")
        found[name] = files[0]
    return found


# --- what is checked --------------------------------------------------------------------------------------------------


def contents(file: Path) -> dict[str, bytes]:
    """The files in an archive."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    found: dict[str, bytes] = {}
    with tarfile.open(file) as archive:
        for entry in archive:
            data = archive.extractfile(entry)
            if data is not None:
                found[entry.name] = data.read()
    return found


def size(bench: Bench, name: str, file: Path) -> str:
    count, most = file.stat().st_size, ARTEFACTS[name].most
    if count > most:
        raise ReleaseError(f"{file.name} has {count:,} bytes, expected at most {most:,}: see what came in")
    return f"{count / 1000:,.0f} kB"


def licence(bench: Bench, name: str, file: Path) -> str:
    text = (ROOT / "LICENSE").read_bytes()
    if not any(path.endswith("LICENSE") and data == text for path, data in contents(file).items()):
        raise ReleaseError(f"{file.name} lacks the licence: expected the project's file LICENSE in it")
    return "there"


def no_strays(bench: Bench, name: str, file: Path) -> str:
    files = contents(file)
    if stray := sorted(path for path in files if STRAY.search(path)):
        raise ReleaseError(f"{file.name} has {stray[0]} and {len(stray) - 1} more that belong to a working copy only")
    return f"{len(files)} files"


def page_scripts_are_built(bench: Bench, name: str, file: Path) -> str:
    """The script of every page is the one that esbuild made small."""
    found = [data for path, data in contents(file).items() if path.endswith("/dist/singe.js")]
    if len(found) != 1:
        raise ReleaseError(
            f"{file.name} has {len(found)} files dist/singe.js, expected 1: see artifacts in pyproject.toml"
        )
    count = len(gzip.compress(found[0], 9))
    if count > MOST_SCRIPT_BYTES:
        raise ReleaseError(
            f"{file.name}: dist/singe.js has {count:,} bytes gzip, expected at most {MOST_SCRIPT_BYTES:,}"
        )
    return f"{count / 1000:.1f} kB gzip"


def complete(bench: Bench, name: str, file: Path) -> str:
    """All that is tracked is in the source archive: whoever has it can change, test and release Singe."""
    there = {path.partition("/")[2] for path in contents(file)}
    tracked = git("ls-files", "-z").rstrip("\0").split("\0")
    if missing := sorted(set(tracked) - there):
        raise ReleaseError(
            f"{file.name} lacks {missing[0]} and {len(missing) - 1} more; name their folder in pyproject.toml"
        )
    return "all"


def twine(bench: Bench, name: str, file: Path) -> str:
    run([str(bench.python), "-m", "twine", "check", "--strict", str(file)], bench.work)
    return "passes"


def publint(bench: Bench, name: str, file: Path) -> str:
    run(["node", str(bench.publint), str(file), "--strict"], bench.work, NO_COLOR="1")
    return "passes"


def python_runs(bench: Bench, name: str, file: Path) -> str:
    """In an environment of its own: a model runs and is exported, and the command line answers."""
    folder = bench.folder(f"installed-{name}")
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / BIN
    run([str(programs / "python"), "-m", "pip", "install", "-q", str(file)], folder)
    run([str(programs / "python"), "-c", PYTHON_SMOKE], folder)
    run([str(programs / "singe"), "inspect", "--help"], folder)
    return "runs"


def node_runs(bench: Bench, name: str, file: Path) -> str:
    """In an empty project: the bundle that the wheel exported runs in node."""
    folder = bench.folder(f"installed-{name}")
    (folder / "package.json").write_text('{ "private": true, "type": "module" }')
    npm("install", "--offline", str(file), cwd=folder)
    shutil.copytree(bench.folder("installed-wheel") / "model", folder / "model")
    (folder / "smoke.js").write_text(NODE_SMOKE)
    run(["node", "smoke.js"], folder)
    return "runs"


def docs_open(bench: Bench, name: str, file: Path) -> str:
    files = contents(file)
    if b"<html" not in files.get("docs/index.html", b""):
        raise ReleaseError(f"{file.name} has no page docs/index.html")
    return f"{sum(path.endswith('.html') for path in files)} pages"


Check = Callable[[Bench, str, Path], str]
CHECKS: Final[Mapping[str, tuple[tuple[str, ...], Check]]] = {
    "size": (tuple(ARTEFACTS), size),
    "licence": (tuple(ARTEFACTS), licence),
    "contents": (tuple(ARTEFACTS), no_strays),
    "singe.js": (("source", "wheel", "npm"), page_scripts_are_built),
    "tracked files": (("source",), complete),
    "twine": (("source", "wheel"), twine),
    "publint": (("npm",), publint),
    "in Python": (("source", "wheel"), python_runs),
    "in node": (("npm",), node_runs),
    "as a site": (("docs",), docs_open),
}
"""A column of the table ↦ the artefacts that it is about, and the check, which returns what the table says."""


# --- the release ------------------------------------------------------------------------------------------------------


def git(*arguments: str) -> str:
    return run(["git", *arguments], ROOT).strip()


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def provenance(bench: Bench, files: Mapping[str, Path]) -> dict[str, object]:
    tools = {"python": platform.python_version(), **PINS, "publint": PUBLINT}
    tools |= {name: importlib.metadata.version(name) for name in DOCS}
    tools |= {name: run([name, "--version"], ROOT).strip().removeprefix("v") for name in ("node", "npm")}
    return {
        "commit": git("rev-parse", "HEAD"),
        "clean": not git("status", "--porcelain"),
        "source_date_epoch": int(bench.epoch),
        "tools": tools,
        "sha256": {file.name: sha256(file) for file in files.values()},
    }


def release(out: Path) -> str:
    """Make a release in a folder, of which nothing else remains; returns the table."""
    with tempfile.TemporaryDirectory(prefix="singe-release-") as work:
        bench = Bench(Path(work), os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
        first, second = (build(bench, Path(work) / f"build-{seed}", seed) for seed in ("1", "2"))
        for name, file in first.items():
            if sha256(file) != sha256(second[name]):
                raise ReleaseError(f"{file.name}: two builds differ; its bytes must depend on nothing but the sources")
        found = {
            name: {column: check(bench, name, file) for column, (which, check) in CHECKS.items() if name in which}
            for name, file in first.items()
        }
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(Path(work) / "build-1", out)
        (out / "provenance.json").write_text(json.dumps(provenance(bench, first), indent=2) + "\n")
    files = {name: out / ARTEFACTS[name].folder / file.name for name, file in first.items()}
    sums = [f"{sha256(file)}  {file.relative_to(out).as_posix()}\n" for file in files.values()]
    (out / "SHA256SUMS").write_text("".join(sums))
    rows = [["", *CHECKS], *([name, *(cells.get(column, "") for column in CHECKS)] for name, cells in found.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, "", *(line.rstrip() for line in sums)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build and check the files of a release. Nothing is uploaded.")
    parser.add_argument("-o", "--out", metavar="DIR", type=Path, default=ROOT / "dist", help="default: dist")
    started = time.monotonic()
    try:
        print(release(parser.parse_args().out))
    except ReleaseError as e:
        sys.exit(f"error: {e}")
    print(f"\n{time.monotonic() - started:.0f} s; nothing was uploaded")
