"""What a model's own file says of its task: names of classes, a size, a licence; what it does not say is not taken in silence."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import singe as sg
from singe.errors import InputError
from singe.model.model import Model
from singe.tasks.spec import MAX_LABELS
from singe.tasks.stated import stated_by

pytestmark = pytest.mark.slow


def classes(x: sg.Tensor) -> sg.Tensor:
    return x.mean((2, 3)) * 9.0


def written(folder: Path, metadata: dict[str, str], sides: tuple[int | str, int | str] = (8, 8)) -> Path:
    path = folder / "net.onnx"
    sg.onnx.save(Model.of(classes, {"images": (1, 3, *sides)}, "numpy"), path, metadata=metadata)
    return path


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("names", "{0: 'red', 1: \"driver's\", 2: 'it\\'s'}"),
        ("names", '["red", "driver\'s", "it\'s"]'),
        ("names", '{"0": "red", "1": "driver\'s", "2": "it\'s"}'),
        ("character", "red\ndriver's\nit's"),
    ],
)
def test_the_names_in_a_file_are_labels(tmp_path: Path, key: str, text: str) -> None:
    made = sg.task("classify", written(tmp_path, {key: text, "license": "MIT (see there)"}), std=255)
    assert list(made.info.labels) == ["red", "driver's", "it's"]
    assert made.info.licence == "MIT"
    assert list(sg.task("classify", tmp_path / "net.onnx", labels=["a", "b", "c"], std=255).info.labels) == [
        "a",
        "b",
        "c",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "{0: 'a', 2: 'b'}",
        "{0: __import__('os')}",
        "{",
        "[[[",
        "{0: 'a'",
        "[1, 2]",
        "{0: 'a'} or 1",
        "(",
        "[" * 5000,
        pytest.param(json.dumps(["a"] * (MAX_LABELS + 1)), id="too many"),
    ],
)
def test_names_of_another_form_are_none(tmp_path: Path, text: str) -> None:
    assert stated_by(written(tmp_path, {"names": text})).labels == ()


def test_an_open_size_is_that_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, {"imgsz": "[32, 64]"}, ("h", "w"))
    assert sg.task("classify", path, std=255).info.preparation.size == (32, 64)
    assert sg.task("classify", path, std=255, size=16).info.preparation.size == (16, 16)
    assert sg.task("classify", written(tmp_path, {"imgsz": "[32, 64]"}), std=255).info.preparation.size == (8, 8)


def test_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 labels, given or named by the file, do not fit the outputs"):
        sg.task("classify", written(tmp_path, {"names": "{0: 'a', 1: 'b'}"}))


def test_colours_that_are_supposed_are_said_to_be(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "singe"):
        sg.task("classify", written(tmp_path, {}), mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375))
        sg.task("classify", tmp_path / "net.onnx", std=255)
        assert not caplog.messages
        sg.task("classify", tmp_path / "net.onnx")
    assert "classify: net is given colours from 0 to 1" in caplog.messages[0]


def test_maps_that_may_be_no_classes_are_said_to_be_taken_for_such(caplog: pytest.LogCaptureFixture) -> None:
    """A softmax says that they are, and so do labels; sigmoids and plain numbers, as those of CRAFT, do not."""

    def maps(last: Callable[[sg.Tensor], sg.Tensor]) -> Model:
        return Model.of(lambda x: last(x[:, :2]), {"images": (1, 3, 16, 16)}, "numpy")

    with caplog.at_level(logging.WARNING, "singe"):
        sg.task("segment", maps(lambda x: x), labels=["left", "right"], std=255)
        sg.task("segment", maps(lambda x: x.softmax(1)), std=255)
        assert not caplog.messages
        sg.task("segment", maps(lambda x: x * 2.0), std=255)
        sg.task("segment", maps(lambda x: x.sigmoid()), std=255)
    assert len(caplog.messages) == 2
    assert all("names no classes" in message for message in caplog.messages)


def test_rows_of_other_proportions_are_no_map() -> None:
    rows = Model.of(
        lambda x: x.sum() * 0.0 + sg.tensor(np.zeros((1, 22, 84), np.float32)), {"images": (1, 3, 64, 64)}, "numpy"
    )
    for kind in ("cutout", "depth", "segment"):
        with pytest.raises(
            InputError, match=rf"{kind}: the outputs .* are none of those that it decodes; detect would take them"
        ):
            sg.task(kind, rows)


def test_a_row_among_several_outputs_is_scores_where_something_says_so() -> None:
    """The points of a face beside its score are no classes; a row of a softmax is, after boxes too, and what labels or a name fit."""

    def rows(last: Callable[[sg.Tensor], sg.Tensor], name: str = "second") -> Model:
        def whole(x: sg.Tensor) -> dict[str, sg.Tensor]:
            row = x.reshape(-1).unsqueeze(0)
            return {"first": row[:, :10], name: last(row[:, :2] * sg.tensor(np.array([0.0, 1.0], np.float32)))}

        return Model.of(whole, {"images": (1, 3, 16, 16)}, "numpy")

    picture = np.full((16, 16, 3), 255, np.uint8)
    plain = rows(lambda x: x * 2.0)
    with pytest.raises(
        InputError, match=r"the outputs first \(1, 10\), second \(1, 2\) are none .* labels, a softmax, a name"
    ):
        sg.task("classify", plain, std=255)
    with pytest.raises(InputError, match=r"detect: .* are none of those that are known"):
        sg.task("detect", plain)
    chance = 1 / (1 + np.exp(-2.0))
    for task in (
        sg.task("classify", plain, labels=["left", "right"], std=255),
        sg.task("classify", rows(lambda x: (x * 2.0).softmax(1)), std=255),
        sg.task("classify", rows(lambda x: x * 2.0, "logits"), std=255),
    ):
        found = task(picture)
        assert (len(found), found[0].index) == (2, 1)
        assert found[0].score == pytest.approx(chance)
    assert len(sg.task("classify", plain, head="scores", std=255)(picture, top=20)) == 10
