"""Packages over onnxruntime-web, from npm, bundled unmodified by esbuild: over their own runtime and over Singe."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bundles import ROOT, STATIC
from packages import npm

from singe.tools.export.package import write_package

ESBUILD: Final = json.loads((STATIC / "package.json").read_text("utf-8"))["devDependencies"]["esbuild"]
RUNTIMES: Final = ("own", "singe")
"""The pages that `write_pages` writes: over onnxruntime-web, and over Singe in its place."""


def installed(name: str, *packages: str) -> Path:
    """A folder with these packages and esbuild, kept for the next run; without them the test is skipped."""
    place = ROOT / "tests" / ".cache" / name
    if not (place / "done").exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}')
        npm("install", *packages, f"esbuild@{ESBUILD}", cwd=place)
        (place / "done").touch()
    return place / "node_modules"


def write_pages(folder: Path, modules: Path, app: str, options: Sequence[str] = ()) -> None:
    """A page for each runtime, with the script `app`."""
    (folder / "node_modules").symlink_to(modules)
    (folder / "app.js").write_text(app)
    write_package(folder / "npm")
    runtime = folder / "npm" / "singe-ort.js"
    aliases = [f"--alias:{name}={runtime}" for name in ("onnxruntime-web", "onnxruntime-web/wasm")]
    for name, own in zip(RUNTIMES, ([], aliases), strict=True):
        command = [
            "node_modules/.bin/esbuild",
            "app.js",
            "--bundle",
            "--format=esm",
            f"--outfile={name}.js",
            *own,
            *options,
        ]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
        (folder / f"{name}.html").write_text(
            f'<!doctype html><title>{name}</title><script type="module" src="{name}.js"></script>'
        )
