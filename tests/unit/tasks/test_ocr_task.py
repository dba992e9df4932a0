"""OCR: crops are straight, what is read is spelt as a plain loop spells it, lines come in reading order; a chain is made of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading import Blots, net, strokes

import singe as sg
from singe.errors import FormatError, InputError
from singe.model.model import Model
from singe.tasks import ChainTask, Line, Page
from singe.tasks.chains import CHAINS
from singe.tasks.chains.base import ChainParts
from singe.tasks.chains.crops import cropped, place_of
from singe.tasks.chains.ocr import of_chances, of_scores, reading_order, upright
from singe.tasks.spec import ChainSpec
from singe.tools import cli, options

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(3)


def sampled(picture: np.ndarray, x: float, y: float) -> np.ndarray:
    """Between the four pixels around a place, whose centres are at halves."""
    height, width = picture.shape[:2]
    x, y = min(max(x - 0.5, 0), width - 1), min(max(y - 0.5, 0), height - 1)
    left, top = int(x), int(y)
    right, low = min(left + 1, width - 1), min(top + 1, height - 1)
    above = picture[top, left] * (1 - (x - left)) + picture[top, right] * (x - left)
    below = picture[low, left] * (1 - (x - left)) + picture[low, right] * (x - left)
    return above * (1 - (y - top)) + below * (y - top)


@pytest.mark.parametrize("count", [1, 2])
def test_crops_are_straight(on: sg.Device, count: int) -> None:
    picture = RNG.integers(0, 256, (23, 31, 4)).astype(np.uint8)
    corners = np.array([[[3.0, 5.0], [20.0, 9.0], [18.5, 15.4], [1.5, 11.4]], [[-4, -2], [9, -2], [9, 4], [-4, 4.0]]])
    height, width = 4, 7
    samples = ((np.arange(count) + 0.5) / count - 0.5).astype(np.float32)
    places = np.array([place_of(c, height, width) for c in corners], np.float32)

    def crops(picture: sg.Tensor, places: sg.Tensor, samples: sg.Tensor) -> sg.Tensor:
        return cropped(picture, places, height, width, samples)

    model = Model.of(
        crops, {"picture": ("h", "w", 4), "places": ("n", 6), "samples": ("s",)}, on,
        dtypes={"picture": "uint8", "places": "float32", "samples": "float32"},
    )  # fmt: skip
    found = model(picture, places, samples)
    for n, c in enumerate(corners):
        for row in range(height):
            for column in range(width):
                at = [
                    c[0] + (c[1] - c[0]) * (column + 0.5 + u) / width + (c[3] - c[0]) * (row + 0.5 + v) / height
                    for u in samples
                    for v in samples
                ]
                wanted = np.mean([sampled(picture[..., :3].astype(float), *p) for p in at], axis=0)
                np.testing.assert_allclose(found[n, row, column], wanted, atol=0.02)


def test_what_is_read_is_spelt_as_a_plain_loop_does(on: sg.Device) -> None:
    best = np.array([[0, 3, 3, 0, 3, 2, 2, 0], [1, 1, 1, 1, 2, 1, 0, 1], [0] * 8])
    chances = RNG.random((3, 8, 5)).astype(np.float32) * 0.3
    np.put_along_axis(chances, best[..., None], RNG.uniform(0.5, 1, (3, 8, 1)).astype(np.float32), 2)
    found: Any = Model.of(of_chances, {"chances": ("lines", "steps", 5)}, on)(chances)
    for line in range(3):
        spelt: list[int] = []
        scores: list[float] = []
        for step in range(8):
            if best[line, step] and (step == 0 or best[line, step] != best[line, step - 1]):
                spelt.append(int(best[line, step]))
                scores.append(float(chances[line, step].max()))
        numbers = found["characters"][line]
        assert numbers[numbers > 0].tolist() == spelt
        np.testing.assert_allclose(found["scores"][line], np.mean(scores or [0.0]), rtol=1e-5)


def test_what_scores_spell_is_what_their_softmax_spells(on: sg.Device) -> None:
    scores = RNG.normal(size=(3, 8, 5)).astype(np.float32) * 30
    chances = np.exp(scores - scores.max(2, keepdims=True))
    chances /= chances.sum(2, keepdims=True)
    found: Any = Model.of(of_scores, {"scores": ("lines", "steps", 5)}, on)(scores)
    wanted: Any = Model.of(of_chances, {"chances": ("lines", "steps", 5)}, on)(chances)
    np.testing.assert_array_equal(found["characters"], wanted["characters"])
    np.testing.assert_allclose(found["scores"], wanted["scores"], rtol=1e-5)
    reader = Model.of(lambda x: strokes(x).softmax(-1), {"x": ("N", 3, 48, "W")}, "numpy")
    assert "softmax" not in {node.op for node in CHAINS["ocr"].parts["rec"].build(reader).nodes}


def turned(corners: np.ndarray, degrees: float) -> np.ndarray:
    a = np.radians(degrees)
    return corners @ np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])


@pytest.mark.parametrize("degrees", [0, 8, -12, 90, 180])
def test_lines_come_in_reading_order(degrees: float) -> None:
    places = [(10, 10, 300), (10, 60, 120), (200, 63, 110), (10, 110, 80), (120, 106, 80), (240, 110, 70)]
    lines = [turned(np.array([[x, y], [x + w, y], [x + w, y + 30], [x, y + 30]], float), degrees) for x, y, w in places]
    mixed = [4, 2, 0, 5, 1, 3]
    assert [mixed[k] for k in reading_order([lines[k] for k in mixed])] == list(range(6))
    assert reading_order([]) == []


def test_a_high_line_is_read_from_the_top_down() -> None:
    high = np.array([[0, 0], [10, 0], [10, 50], [0, 50.0]])
    np.testing.assert_array_equal(upright(high), high[[1, 2, 3, 0]])
    wide = high[:, ::-1][[0, 3, 2, 1]]
    np.testing.assert_array_equal(upright(wide), wide)


@pytest.mark.parametrize(("chance", "upside_down"), [(0.2, False), (0.2, True), (0.95, False), (0.95, True)])
def test_a_line_is_turned_where_it_reads_better(chance: float, upside_down: bool) -> None:
    chances = np.zeros((736, 736), np.float32)
    chances[100:120, 100:300] = 1.0
    ways: list[bool] = []

    def turned_at(given: Any) -> dict[str, np.ndarray]:
        place = given["places"][0]
        np.testing.assert_allclose(
            np.hypot(*place[2:4]), np.hypot(*place[4:6]), rtol=0.01, err_msg="letters keep their shape"
        )
        return {"turned": np.array([chance])}

    def read(given: Any) -> dict[str, np.ndarray]:
        ways.append(bool(given["places"][0, 2] < 0))
        return {"characters": np.array([[1]]), "scores": np.array([0.9 if ways[-1] == upside_down else 0.2])}

    steps = {"det": lambda _: {"chances": chances}, "cls": turned_at, "rec": read}  # pyright: ignore[reportUnknownLambdaType]
    parts = ChainParts(steps, ChainSpec("ocr", tuple(steps), ["", "a"]))  # pyright: ignore[reportArgumentType]
    found: Any = CHAINS["ocr"].begin(parts, {"threshold": 0.5})(np.zeros((736, 736, 4), np.uint8))
    assert [line.score for line in found] == [0.9]
    first = chance > 0.9
    assert ways == ([first] if first == upside_down else [first, upside_down])


def test_lines_that_are_read_at_once_are_of_much_the_same_width() -> None:
    blots = Blots(2, has_turned=False)
    CHAINS["ocr"].begin(blots.parts(), {"threshold": 0.1})(np.zeros((3000, 700, 4), np.uint8))
    read: list[list[float]] = [call[2] for call in blots.calls if call[0] == "rec"]
    assert [len(widths) for widths in read] == [5, 1]
    assert all(max(widths) <= 1.25 * max(160, min(widths)) for widths in read)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Models that find what is dark, and read colours."""
    pytest.importorskip("PIL.Image", reason="Pillow is not here")
    sg.onnx.save(net("det"), tmp_path / "det.onnx")
    sg.onnx.save(net("rec"), tmp_path / "rec.onnx", metadata={"character": "r\nb\n"})
    return tmp_path


def page() -> np.ndarray:
    """A red bar, and a blue one below."""
    picture = np.full((736, 800, 3), 255, np.uint8)
    picture[100:150, 100:500] = (150, 0, 0)
    picture[300:350, 200:700] = (0, 0, 150)
    return picture


def test_a_task_of_several_models_is_made_of_a_folder(folder: Path) -> None:
    read = sg.task("ocr", folder, device="numpy")
    assert isinstance(read, ChainTask)
    assert repr(read) == "<task ocr: det, rec on numpy>"
    found = read(page(), threshold=0.0)
    assert isinstance(found, Page)
    assert [line.text for line in found] == ["r", "b"]
    assert found.text == "r\nb"
    box = found[0].box
    grown = 1.6 * 400 * 50 / (2 * 450)
    np.testing.assert_allclose(
        [box.xmin, box.ymin, box.xmax, box.ymax], [100 - grown, 100 - grown, 500 + grown, 150 + grown], atol=3
    )
    data = json.loads(json.dumps(found.to_dict()))
    assert data[1].keys() == {"text", "score", "box", "corners"}
    assert len(data[1]["corners"]) == 4
    assert found.plot().size == (800, 736)
    assert len(read([page(), page()])) == 2
    assert read(np.full((40, 50, 3), 255, np.uint8)).text == ""
    with pytest.raises(InputError, match="got top; expected some of threshold"):
        read(page(), top=1)
    read.close()
    with pytest.raises(InputError, match="ocr: the task is closed"):
        read(page())


def test_the_characters_are_those_of_the_file_beside_it_where_the_model_names_none(folder: Path) -> None:
    sg.onnx.save(net("rec"), folder / "rec.onnx")
    with pytest.raises(FormatError, match=r"put them into characters\.txt"):
        sg.task("ocr", folder, device="numpy")
    (folder / "characters.txt").write_text("R\nB\n", encoding="utf-8")
    assert sg.task("ocr", folder, device="numpy")(page(), threshold=0.0).text == "R\nB"
    for whole in ("blank\nR\nB\n", "R\nB\n \n", "blank\nR\nB\n \n"):  # with nothing, with a space, or with both
        (folder / "characters.txt").write_text(whole, encoding="utf-8")
        assert sg.task("ocr", folder, device="numpy")(page(), threshold=0.0).text == "R\nB"
    (folder / "characters.txt").write_text("R\n", encoding="utf-8")
    with pytest.raises(FormatError, match="tells 4 characters apart, and 1 are named"):
        sg.task("ocr", folder, device="numpy")
    (folder / "characters.txt").write_bytes(b"\xff\xfe\n")
    with pytest.raises(FormatError, match="expected UTF-8 text"):
        sg.task("ocr", folder, device="numpy")


def test_what_a_task_of_several_models_does_not_take_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="this task of several models takes a device alone"):
        sg.task("ocr", folder, labels=["a"])  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(InputError, match="ocr: nowhere: no such folder, expected one with several models, or zoo:NAME"):
        sg.task("ocr", "nowhere")
    with pytest.raises(
        InputError, match=r"det\.onnx is one file, .* det\.onnx, cls\.onnx if wanted, rec\.onnx; give the folder"
    ):
        sg.task("ocr", folder / "det.onnx")
    with pytest.raises(InputError, match="got a Model, expected zoo:NAME, or a folder"):
        sg.task("ocr", net("det"))  # pyright: ignore[reportCallIssue, reportArgumentType]
    (folder / "rec.onnx").unlink()
    with pytest.raises(InputError, match=r"has no rec\.onnx; expected zoo:NAME, or a folder with det\.onnx"):
        sg.task("ocr", folder)
    with pytest.raises(InputError, match=r"has no det\.onnx and no rec\.onnx"):
        sg.task("ocr", "zoo:blazeface")


def test_the_command_prints_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not here")
    image.fromarray(page()).save(folder / "page.png")
    words = ["task", "ocr", str(folder / "page.png"), "--model", str(folder), "--threshold", "0", "--device", "numpy"]
    assert cli.main([*words, "-o", str(folder / "drawn.png")]) == 0
    assert "page.png: <ocr: 2 lines>\n  r (" in capsys.readouterr().out
    assert (folder / "drawn.png").is_file()
    assert cli.main([*words, "--json"]) == 0
    assert [line["text"] for line in json.loads(capsys.readouterr().out)] == ["r", "b"]


def test_the_help_names_every_chain() -> None:
    assert options.CHAINS.split(", ") == list(CHAINS)


def test_a_line_is_escaped_where_it_is_shown() -> None:
    line = Line("a\x1b[0m", 0.5, sg.tasks.Box(0, 0, 1, 1), np.zeros((4, 2)))
    assert "\x1b" not in str(line)
