"""Components of React, Vue and Svelte that ask a task: the guide shows them, Vite builds them, and a picture is answered for."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import ROOT
from packages import npm, npm_package
from sites import Console, served

import singe as sg
from singe.model.model import Model

PROJECTS: Final = ROOT / "tests" / "frameworks"
GUIDE: Final = ROOT / "docs" / "guides" / "frameworks.md"
FRAMEWORKS: Final = ("react", "vue", "svelte")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not here")


def test_the_guide_shows_the_components() -> None:
    shown = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    assert {name.partition("/")[0] for name, _ in shown} == set(FRAMEWORKS)
    for name, text in shown:
        assert text == (PROJECTS / name).read_text(), name


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm_package(tmp_path_factory.mktemp("package"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_component_answers_for_a_picture(browser: Any, package: Path, tmp_path: Path, name: str) -> None:
    project = tmp_path / name
    shutil.copytree(PROJECTS / name, project)
    colours = Model.of(lambda x: x.mean((2, 3)) * 9, {"images": (1, 3, 8, 8)})
    sg.export(sg.task("classify", colours, labels=["red", "green", "blue"]), project / "public" / "classify")
    npm("install", str(package), cwd=project)
    npm("run", "build", cwd=project)
    picture = np.zeros((20, 30, 3), np.uint8)
    picture[..., 2] = 250
    Image.fromarray(picture).save(tmp_path / "blue.png")
    context = browser.new_context()
    page = context.new_page()
    console = Console(page)
    with served(project / "dist") as address:
        page.goto(address)
        field = page.get_by_label("A picture")
        field.and_(page.locator(":enabled")).wait_for()
        field.set_input_files(str(tmp_path / "blue.png"))
        page.get_by_role("status").filter(has_text="blue: ").wait_for()
        assert re.fullmatch(r"blue: (9\d|100)%", page.get_by_role("status").inner_text())
    context.close()
    assert console.complaints == []
