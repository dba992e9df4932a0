"""Bundles and the site, made once for all browser tests, and the browser that the tests need."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browsers import Kept, chromium
from bundles import GRAPHS, MODELS, ROOT, model_graph, write_bundle
from sites import built_site, folder_of_run, served

from singe.files.assets import DIST
from singe.tools.export.page import scripts


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that gives the folder of a bundle by name:
    of a graph of our own, or of a model in the shared folder."""
    root = tmp_path_factory.mktemp("bundles")

    def made(name: str) -> Path:
        if name not in GRAPHS and not (MODELS / f"{name}.onnx").exists():
            pytest.skip(f"no model {name} in {MODELS}")
        folder = root / name
        if not folder.exists():
            write_bundle(GRAPHS[name]() if name in GRAPHS else model_graph(name), folder, name)
        return folder

    return made


@pytest.fixture(scope="session")
def built_scripts(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The scripts of a bundle from a release, which esbuild made small."""
    folder = tmp_path_factory.mktemp("released")
    command = [sys.executable, str(ROOT / ".ci" / "javascript.py"), "--build", str(folder / DIST)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if "was not built" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripts, "static_folder", lambda: folder)
        return scripts.bundle_scripts.__wrapped__()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. All workers of a run share it, so tests must not change it."""
    return built_site(folder_of_run(tmp_path_factory))


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The address at which the site is served, isolated."""
    with served(site) as found:
        yield found


@pytest.fixture(scope="session")
def kept_chromium() -> Iterator[Kept]:
    """Chromium with WebGPU in software, which each worker starts once: a start costs over a second of processor time."""
    with chromium() as found:
        kept = Kept(found)
        yield kept
        kept.end()


@pytest.fixture(scope="module")
def browser(kept_chromium: Kept) -> Iterator[Any]:
    """Chromium with WebGPU in software, without pages of other modules."""
    with kept_chromium.turn() as found:
        yield found
