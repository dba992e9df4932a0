"""ONNX's own node cases are read, written, and read again: the file is valid, and Singe computes the same of it.

A case that cannot be written is listed in REFUSED with its reason, and must be refused with that.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from onnx_devices import check
from test_onnx_nodes import cases

import singe as sg
from singe.errors import CompileError
from singe.model.model import Model
from singe.onnx.adapters.elementwise.random import is_random
from singe.onnx.model import OnnxModel
from singe.onnx.saving.facts import LATEST
from singe.onnx.source import OnnxSource

onnx = pytest.importorskip("onnx")
PARTS: Final = 12
NO_TENSORS: Final = "it takes or gives lists, dicts or None"
NEEDY: Final = "values of its inputs decide how many axes there are"
REFUSED: Final = {
    "a run computes the scales or sizes": (
        r"resize_(up|down)sample_scales_cubic\w*", r"resize_tf_crop_and_resize\w*", r"resize_downsample_(scales|sizes)_\w+_antialias",
        r"resize_(up|down)sample_sizes_nearest_not_(larger|smaller)", r"resize_(up|down)sample_scales_linear_half_pixel_symmetric",
    ),
    "ONNX's generators draw others?": (r"training_dropout\w*", r"bernoulli\w*"),
    "it gives lists, dicts or None": ("if_seq", "split_to_sequence_nokeepdims"),
    "windows of an open length": (r"stft(_with_window)?",),
}  # fmt: skip
"""The reason ↦ patterns of the names of the cases that are refused for it."""
OF_EMPTY: Final = ("test_reshape_allowzero_reordered",)
"""Cases that reshape an array of no elements to a shape that the run computes: before opset 14 a length of 0 means another thing."""
WRITTEN: Final = 1807
"""How many cases are written. With an op more it is more; less only where the onnx package has fewer cases."""


def wanted_reason(name: str) -> str | None:
    return next(
        (why for why, patterns in REFUSED.items() if any(re.fullmatch(f"test_{p}", name) for p in patterns)), None
    )


def source(model: OnnxModel, inputs: list[Any]) -> Model | str:
    """The case as a Model; or why it is none of which a Graph can be made before a run."""
    made = Model(OnnxSource(model), "numpy")
    if made.source.objects:
        return NO_TENSORS
    if made.needed:
        shapes = {v.name: np.shape(x) for v, x in zip(model.graph.inputs, inputs, strict=True)}
        made = Model(OnnxSource(model, shapes), "numpy")
    return NEEDY if made.needed else made


def values(model: Model, inputs: list[Any]) -> list[Any]:
    found = model(*inputs)
    return [found[name] for name in model.source.output_names] if isinstance(found, dict) else [found]


def outcome(name: str, path: Path, opset: int) -> str:
    """Why a case is not written; empty if it is, and gives the same."""
    _, read, data_sets = cases()[name]
    model = source(read, data_sets[0][0])
    if isinstance(model, str):
        return model
    try:
        sg.onnx.save(model, path, opset)
    except CompileError as e:
        return str(e)
    onnx.checker.check_model(str(path), full_check=True)
    again = sg.load(path, "numpy")
    for inputs, _ in data_sets:
        wanted = values(model, inputs)
        if not is_random(read):
            check(values(again, inputs), wanted, 1e-5, 1e-6)
    return ""


@pytest.mark.parametrize("part", range(PARTS))
def test_a_case_is_read_written_and_read_again(part: int, tmp_path: Path) -> None:
    wrong: dict[str, str] = {}
    for name in sorted(cases())[part::PARTS]:
        try:
            why, wanted = outcome(name, tmp_path / "case.onnx", LATEST), wanted_reason(name)
        except Exception as e:
            wrong[name] = f"{type(e).__name__}: {e}"
            continue
        if why not in (NO_TENSORS, NEEDY) and (re.search(wanted, why) is None if wanted else why):
            wrong[name] = why or f"written, although REFUSED says {wanted}"
    assert not wrong


def test_no_case_is_left_out_unseen() -> None:
    """How many are neither refused nor of what is no tensor."""
    found = 0
    for name, (_, read, data_sets) in cases().items():
        found += wanted_reason(name) is None and not isinstance(source(read, data_sets[0][0]), str)
    assert found == WRITTEN


@pytest.mark.parametrize("opset", [13, 17, 21, 22])
def test_cases_are_written_in_older_opsets(opset: int, tmp_path: Path) -> None:
    """What is refused names the opset that has it, but for what none has."""
    wrong: dict[str, str] = {}
    for name in sorted(cases())[opset % 5 :: 5]:
        if opset == 13 and name in OF_EMPTY:
            continue
        why = outcome(name, tmp_path / "case.onnx", opset)
        if why and why not in (NO_TENSORS, NEEDY) and "give opset=" not in why and wanted_reason(name) is None:
            wrong[name] = why
    assert not wrong
