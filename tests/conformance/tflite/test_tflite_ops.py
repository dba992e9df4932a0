"""Each op of TensorFlow Lite beside its own interpreter, whose answers `tflite_answers.npz` holds (`make_tflite_answers.py` writes it)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from devices import NUMPY
from tflite_cases import CASES

import singe as sg
from singe.tflite.importer import import_model
from singe.tflite.model import read_model
from singe.tflite.ops import OPS

EXPECTED: Final = np.load(Path(__file__).with_name("tflite_answers.npz"))
ELSEWHERE: Final = {
    "ASSIGN_VARIABLE", "CALL_ONCE", "DENSIFY", "READ_VARIABLE", "VAR_HANDLE", "BITWISE_XOR", "RIGHT_SHIFT",
    *(name for name in OPS if name.startswith("CUSTOM:")),
}  # fmt: skip
"""Ops without a case here: test_files.py and test_mediapipe.py have those."""


@NUMPY
@pytest.mark.parametrize("name", CASES)
def test_an_op_computes_what_the_interpreter_does(name: str, device_name: str) -> None:
    case = CASES[name]
    model = sg.load(case.data, device_name)
    made = model(*case.inputs)
    for k, y in enumerate(made.values() if isinstance(made, dict) else [made]):
        wanted = EXPECTED[f"{name}/{k}"]
        assert (y.shape, y.dtype) == (wanted.shape, wanted.dtype)
        if wanted.dtype in (np.int8, np.uint8):  # of two integers that are equally near either may be given
            assert np.abs(y.astype(int) - wanted.astype(int)).max() <= case.slack
            assert (y != wanted).mean() <= 0.25
        else:
            np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(
    "name", [name for name in CASES if name.startswith(("CONV_2D", "DEPTHWISE", "FULLY")) and "int8" in name]
)
def test_products_of_quantised_integers_are_exact(name: str) -> None:
    case = CASES[name]
    np.testing.assert_array_equal(sg.load(case.data, "numpy")(*case.inputs), EXPECTED[f"{name}/0"])


def test_every_op_has_a_case() -> None:
    tested = {o.op for case in CASES.values() for o in read_model(case.data).graphs[0].ops}
    assert tested | ELSEWHERE >= set(OPS)
    assert not tested & ELSEWHERE
    assert {f"{name}/0" for name in CASES} <= set(EXPECTED.files)


def test_the_layout_stays_channels_last() -> None:
    graph = import_model(read_model(CASES["CONV_2D same"].data))
    assert [n.op for n in graph.nodes if n.op in ("transpose", "conv_last")] == ["transpose", "conv_last"], (
        "the weights alone are turned"
    )


def test_the_guide_lists_the_ops() -> None:
    text = (Path(__file__).parents[3] / "docs" / "guides" / "tflite.md").read_text("utf-8").partition("## Ops")[2]
    listed = set(re.findall(r"`(\w+)`", text.partition("Weights may be")[0]))
    assert listed == {name.removeprefix("CUSTOM:") for name in OPS}
