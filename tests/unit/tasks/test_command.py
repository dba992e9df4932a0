"""The command `task`: answers for files, as text, as JSON and drawn; and what it refuses."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_texts import folder_of, of_pairs, token_vectors
from span_models import FILES, plain_spans

import singe as sg
from singe.errors import InputError
from singe.model.model import Model
from singe.speech.transcript import Transcript
from singe.tasks.answers import Box, Findings, Line, Page, PictureMap, TaskVector
from singe.tasks.kinds import KINDS
from singe.tasks.saying.speak import SpokenSound
from singe.tasks.sound.answers import CleanSound, Notes, Voices
from singe.tools import cli, options, tasking

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


def test_a_file_that_is_not_there_is_refused_before_a_model_is_loaded(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, folder / "none.png", "--model", folder / "no model")
    assert code == 2
    assert "none.png: cannot be read: no such file" in err


def test_a_tokenizer_may_be_elsewhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sg.onnx.save(token_vectors(), folder / "net.onnx")
    beside = folder_of(folder / "words")
    code = cli.main(
        ["task", "embed", "the cat", "--model", str(folder / "net.onnx"), "--beside", str(beside), "--device", "numpy"]
    )
    assert (code, "a vector of 8 numbers" in capsys.readouterr().out) == (0, True)


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
    assert run(capsys, folder / "a.png", folder / "a.png", *given, "-o", folder / "same")[0] == 0
    assert sorted(path.name for path in (folder / "same").iterdir()) == ["1-a.png", "2-a.png"]


def test_an_error_in_a_later_file_loses_no_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.png").write_bytes(b"\x89PNG")
    files = (folder / "a.png", folder / "broken.png", folder / "b.png")
    code, out, told = run(capsys, *files, "--model", folder / "colours.singe", "-o", folder / "kept")
    assert (code, out.startswith(f"{files[0]}: "), f"{files[2]}: " in out) == (2, True, False)
    assert "broken.png" in told
    assert [path.name for path in (folder / "kept").iterdir()] == ["a.png"]


def test_the_end_of_a_name_says_the_form_of_an_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = (folder / "a.png", "--model", folder / "colours.singe")
    assert "; -o FILE.png writes it\n" in run(capsys, *given)[1]
    assert f"; written to {folder / 'new' / 'a.json'}\n" in run(capsys, *given, "-o", folder / "new" / "a.json")[1]
    assert run(capsys, *given, "-o", folder / "a.json")[0] == 0
    assert json.loads((folder / "a.json").read_text())[0]["label"] == "red"
    code, _, told = run(capsys, *given, "-o", folder / "a.wav")
    assert code == 2
    assert "a.wav: expected a name that ends with .png, .jpg, .jpeg, .webp, .json" in told
    assert not (folder / "a.wav").exists()


def test_each_answer_has_the_forms_that_fit() -> None:
    picture = np.zeros((2, 3, 4), np.uint8)
    drawn = [".png", ".jpg", ".jpeg", ".webp"]
    line = Line("so", 1.0, Box(0, 0, 2, 1), np.zeros((4, 2)))
    for answer, suffixes in (
        (Findings("detect", picture), [*drawn, ".json"]),
        (Findings("classify-text", None), [".json"]),
        (Page("ocr", picture, [line]), [*drawn, ".json", ".txt"]),
        (PictureMap("cutout", picture, "mask", picture[..., 0]), [".png", ".webp", ".json", ".npy"]),
        (PictureMap("depth", picture, "depth", picture[..., 0]), [*drawn, ".json", ".npy"]),
        (TaskVector("embed-image", picture, np.zeros(3)), [".npy", ".json"]),
        (Voices("voices", None), [*drawn, ".json"]),
        (CleanSound("denoise", None), [".wav", *drawn, ".json"]),
        (Notes("notes", None), [".mid", *drawn, ".json"]),
        (SpokenSound("speak", None), [".wav", ".json"]),
        (Transcript("so", (), "en"), [".txt", ".srt", ".vtt", ".json"]),
    ):
        assert answer.suffix == suffixes[0]
        with pytest.raises(InputError, match=f"ends with {', '.join(suffixes)}$".replace(".", r"\.")):
            answer.save("answer.exe")


def test_vectors_maps_and_lines_are_written(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    picture = np.zeros((2, 3, 4), np.uint8)
    PictureMap("depth", picture, "depth", values).save(tmp_path / "d.npy")
    TaskVector("embed", None, values[0]).save(tmp_path / "v.npy")
    Page("ocr", picture, [Line("ä", 1.0, Box(0, 0, 2, 1), np.zeros((4, 2)))] * 2).save(tmp_path / "p.txt")
    assert np.array_equal(np.load(tmp_path / "d.npy"), values)
    assert np.array_equal(np.load(tmp_path / "v.npy"), values[0])
    assert (tmp_path / "p.txt").read_text("utf-8") == "ä\nä\n"


def test_answers_of_texts_are_named_by_their_numbers(tmp_path: Path) -> None:
    args = Namespace(kind="embed", files=["so: a/b. c", "so"], out=str(tmp_path))
    assert tasking._names(args) == ["1", "2"]


def test_a_model_must_be_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["task", "segment", str(folder / "a.png")]) == 2
    assert "segment: which model? The zoo has one" in capsys.readouterr().err


def test_a_setting_that_the_kind_lacks_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, folder / "a.png", "--model", folder / "colours.singe", "--threshold", "0.5")
    assert code == 2
    assert "got threshold; expected some of top" in err


@pytest.mark.slow
def test_texts_beside_a_text_are_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    folder = folder_of(tmp_path / "files", config={"id2label": names})
    (tmp_path / "lines.txt").write_text("the dog sat\n\n日本 dogs\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n")
    lines, documents = tmp_path / "lines.txt", ["the dog sat", "日本 dogs", "cat"]
    made = {
        "rerank": sg.task("rerank", of_pairs(1), beside=folder),
        "zero-shot": sg.task("zero-shot", of_pairs(3), beside=folder),
        "search": sg.task("search", token_vectors(), beside=folder),
        "zero-shot-tag": sg.task(
            "zero-shot-tag", plain_spans(), beside=folder_of(tmp_path / "spans", tokenizer=FILES["tokenizer"])
        ),
    }
    for kind, one in made.items():
        one.save(tmp_path / f"{kind}.singe")
    made["search"].index(documents[:2]).save(tmp_path / "index.singe")

    def answer(kind: str, *words: object, model: str = "") -> tuple[int, Any, str]:
        given = ("--model", tmp_path / f"{model or kind}.singe", "--device", "numpy", "--json")
        code = cli.main(["task", kind, "the cat", *map(str, (*words, *given))])
        told = capsys.readouterr()
        return code, json.loads(told.out or "null"), told.err

    three = ("--documents", lines, "--document", "cat")
    assert answer("rerank", *three)[1] == made["rerank"]("the cat", documents=documents).to_dict()
    found = made["search"].index(documents)("the cat", top=2).to_dict()
    assert answer("search", *three, "--top", 2)[1] == found
    assert answer("search", "--document", "cat", "--top", 2, model="index")[1] == found
    assert len(answer("search", model="index")[1]) == 2
    options: dict[str, Any] = {"labels": ["the dog sat", "日本 dogs", "cat"], "hypothesis": "a {}", "several": True}
    told = answer("zero-shot", "--labels", lines, "--label", "cat", "--hypothesis", "a {}", "--several")[1]
    assert told == made["zero-shot"]("the cat", **options).to_dict()
    told = answer("zero-shot-tag", "--label", "cat", "--label", "dog", "--threshold", 0.1)[1]
    assert told == made["zero-shot-tag"]("the cat", labels=["cat", "dog"], threshold=0.1).to_dict()
    for kind, words, problem in (
        ("rerank", (), "no documents: give --documents FILE"),
        ("zero-shot", (), "no labels: give --labels FILE"),
        ("search", (), "nothing to look through: give --documents FILE"),
        ("search", ("--label", "cat"), "got labels, which it does not take"),
        ("zero-shot", ("--label", "cat", "--document", "cat"), "got documents, which it does not take"),
        ("rerank", ("--documents", tmp_path / "empty.txt"), "an empty file, expected one document a line"),
        ("rerank", ("--documents", tmp_path / "none.txt"), "none.txt"),
        ("rerank", ("--document", "cat", "--several"), "got several; expected some of documents, top"),
    ):
        code, _, err = answer(kind, *words)
        assert code == 2, (kind, words)
        assert problem in err


def test_the_help_names_every_kind() -> None:
    assert options.KINDS.split(", ") == list(KINDS)
