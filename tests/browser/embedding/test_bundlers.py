"""The npm package in the projects of tests/bundlers: each bundler keeps the scripts of workers and threads.

Vite and esbuild are small and run with the other tests; `make nightly` runs all. A project is copied and installed from
npm's registry, with the package that is made of this checkout; it is built, and served with the headers of isolation.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import ROOT, weighty_graph
from packages import npm, npm_package
from pages import SEVERAL, several_cores
from sites import Console, served, until

from singe.model.model import Model
from singe.tools.export.bundle import export

PROJECTS: Final = ROOT / "tests" / "bundlers"
GUIDE: Final = ROOT / "docs" / "guides" / "bundlers.md"
COUNT: Final = 600
"""A batch that is large enough for threads to share its runs."""


@dataclass(frozen=True)
class Project:
    site: str
    """The folder that the build writes, which is what a host serves."""
    static: str = ""
    """The folder of static files that the build copies to it; without one, the bundle is put there after the build."""


TABLE: Final = {
    "esbuild": Project("public"),
    "next": Project("out", "public"),
    "parcel": Project("dist"),
    "rollup": Project("public"),
    "sveltekit": Project("build", "static"),
    "vite": Project("dist", "public"),
    "webpack": Project("public"),
}
SMALL: Final = ("esbuild", "vite")


@pytest.fixture(scope="module")
def weighty(bundle: Callable[[str], Path]) -> Path:
    return bundle("weighty")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm_package(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    x = (np.arange(COUNT * 5 * 7 * 6) * 7919 % 1000 / 1000 - 0.5).astype(np.float32)
    return np.asarray(Model(weighty_graph(), "numpy")(x.reshape(COUNT, 5, 7, 6))).ravel()


@pytest.fixture(scope="module")
def built(weighty: Path, package: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that builds a project, by its name; it gives the folder to serve."""

    @cache
    def built(name: str) -> Path:
        project, folder = TABLE[name], tmp_path_factory.mktemp(name)
        shutil.copytree(PROJECTS / name, folder, dirs_exist_ok=True)
        shutil.copy(PROJECTS / "app.js", folder)
        if project.static:
            shutil.copytree(weighty, folder / project.static / "model")
        npm("install", str(package), cwd=folder)
        npm("run", "build", cwd=folder, env={"NEXT_TELEMETRY_DISABLED": "1", "NO_COLOR": "1"})
        if not project.static:
            shutil.copytree(weighty, folder / project.site / "model")
        return folder / project.site

    return built


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def answers(page: Any) -> list[dict[str, Any]]:
    until(page, "Boolean(globalThis.answers)")
    return page.evaluate("(count) => answers('/model/', count)", COUNT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SMALL else pytest.mark.nightly) for name in TABLE]
)
def test_a_project(page: Any, built: Callable[[str], Path], expected: np.ndarray, name: str) -> None:
    site = built(name)
    console = Console(page)
    with served(site) as address:
        page.goto(address)
        found = answers(page)
    assert [(way["worker"], way["threads"]) for way in found] == [
        (False, 1),
        (True, 1),
        (False, SEVERAL),
        (True, SEVERAL),
    ]
    for way in found:
        np.testing.assert_allclose(way["y"], expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert console.complaints == []


def test_the_guide_shows_the_projects() -> None:
    shown = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    shown = [(name, text) for name, text in shown if not name.startswith("extension/")]
    assert {name.partition("/")[0] for name, _ in shown} == {"esbuild", "parcel", "rollup", "vite"}
    for name, text in shown:
        assert text == (PROJECTS / name).read_text(), name


@pytest.mark.slow
@several_cores
@pytest.mark.parametrize("missing", ["404", "with text/html"])
def test_scripts_that_were_left_behind(page: Any, built: Callable[[str], Path], tmp_path: Path, missing: str) -> None:
    """Where a server has not the scripts of workers, or answers with a page of its own, the console says what to do."""
    shutil.copytree(built("esbuild"), tmp_path / "site")
    for name in ("worker", "thread"):
        (tmp_path / "site" / f"singe-{name}.js").unlink()
    console = Console(page)
    if missing != "404":
        page.route(
            re.compile("singe-(worker|thread)"), lambda route: route.fulfill(content_type="text/html", body="<p>")
        )
    with served(tmp_path / "site") as address:
        page.goto(address)
        found = answers(page)
        console.wait_for("singe: ", 2)  # a reason is asked of the server before it is told
        page.wait_for_timeout(200)  # nor does a third one come
    assert [(way["worker"], way["threads"]) for way in found] == [(False, 1)] * 4
    ours = sorted(text for text in console.complaints if text.startswith("singe: "))
    assert len(ours) == 2, "once for each script"
    for text, name, instead in zip(ours, ("thread", "worker"), ("on one thread", "in the page"), strict=True):
        assert f"singe-{name}.js: the server answers {missing}" in text
        assert "build singe/worker and singe/thread too" in text
        assert text.endswith(f"The model runs {instead}.")


@pytest.mark.slow
def test_one_file_in_a_service_worker(
    page: Any, built: Callable[[str], Path], expected: np.ndarray, tmp_path: Path
) -> None:
    """There nothing can be imported later, so esbuild's one file has the rare scripts too: those of float16, here."""
    site = tmp_path / "site"
    shutil.copytree(built("esbuild"), site)
    export(Model(weighty_graph(), "numpy"), site / "model", dtype="float16", force=True)
    with served(site) as address:
        page.goto(address)
        with page.context.expect_event("serviceworker") as found:
            page.evaluate("navigator.serviceWorker.register('app.js', { type: 'module' })")
        (answer,) = found.value.evaluate("(count) => answers('/model/', count, [{}])", COUNT)
    np.testing.assert_allclose(answer["y"], expected, rtol=0, atol=1e-2 * np.abs(expected).max())
