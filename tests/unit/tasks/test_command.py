"""The command `task`: answers for files, as text, as JSON and drawn; and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import singe as sg
from singe.model.model import Model
from singe.tasks.kinds import KINDS
from singe.tools import cli, options

Image = pytest.importorskip("PIL.Image", reason="Pillow is not here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A record that says which colour a picture has most of, and two pictures."""
    colours = Model.of(lambda x: x.mean((2, 3)) * 9.0, {"images": (1, 3, 8, 8)}, "numpy")
    sg.task("classify", colours, labels=["red", "green", "blue"]).save(tmp_path / "colours.singe")
    sg.save(colours, tmp_path / "plain.singe")
    for name, colour in (("a", (250, 0, 0)), ("b", (0, 0, 250))):
        Image.new("RGB", (30, 20), colour).save(tmp_path / f"{name}.png")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.main(["task", "classify", *map(str, words), "--device", "numpy"])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_answers_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, folder / "a.png", folder / "b.png", "--model", folder / "colours.singe", "--top", 1)
    assert code == 0
    assert "a.png: <classify: 1 found>\n  red 100.0%\n" in out
    assert "b.png: <classify: 1 found>\n  blue 100.0%\n" in out
    assert "2 in " in out


def test_a_model_that_is_no_task_yet_becomes_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "names.txt").write_text("R\nG\nB\n")
    code, out, _ = run(
        capsys,
        folder / "a.png",
        "--model",
        folder / "plain.singe",
        "--labels",
        folder / "names.txt",
        "--order",
        "bgr",
        "--json",
    )
    assert code == 0
    assert json.loads(out)[0]["label"] == "B"


def test_answers_are_drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--model", folder / "colours.singe")
    assert run(capsys, folder / "a.png", *given, "-o", folder / "one.png")[0] == 0
    assert run(capsys, folder / "a.png", folder / "b.png", *given, "-o", folder / "drawn")[0] == 0
    assert sorted(path.name for path in (folder / "drawn").iterdir()) == ["a.png", "b.png"]
    assert (folder / "one.png").is_file()


def test_a_model_must_be_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["task", "segment", str(folder / "a.png")]) == 2
    assert "segment: which model? The zoo has one" in capsys.readouterr().err


def test_a_setting_that_the_kind_lacks_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, folder / "a.png", "--model", folder / "colours.singe", "--threshold", "0.5")
    assert code == 2
    assert "got threshold; expected some of top" in err


def test_the_help_names_every_kind() -> None:
    assert options.KINDS.split(", ") == list(KINDS)
