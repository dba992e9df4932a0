"""ONNX's own node cases, on every device: all whose ops Singe has and whose tensors are of its element types.

A case that cannot pass is listed in EXCEPTIONS with its reason, and must fail: when it passes, it leaves the list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pytest
from onnx_cases import every_case
from onnx_devices import DEVICES, array_of, check, need, tensors

from singe.dtypes import DTYPES
from singe.errors import SingeError
from singe.model.model import Model
from singe.onnx.adapters.elementwise.random import RANDOM
from singe.onnx.backend import prepare
from singe.onnx.importer import unsupported_ops
from singe.onnx.model import OnnxModel, read_model
from singe.onnx.source import OnnxSource

ROUNDED: Final = "the reference rounds every intermediate to 16 bits, and a rounding step is more than the case allows"
UNROUNDED: Final = {
    ("WEBGPU", "test_attention_4d_causal_fp16"),
    ("WASM", "test_attention_4d_causal_fp16"),
    *((d, "test_attention_4d_causal_fp16") for d in DEVICES if d.startswith("CUDA")),
}
"""Cases that pass on a device although the reference rounds: one kernel computes the attention, in float32 throughout."""
ROUNDED_IN_KERNEL: Final = {
    (device, "test_attention_4d_fp16"): "PyTorch's kernel rounds the weights of an attention to float16"
    for device in DEVICES
    if device.startswith("TORCH:CUDA")
}
NOT_ZERO: Final = "what should be 0 is 1.9e-7 in the reference, more than the case allows"
EXCEPTIONS: Final[dict[tuple[str, str], str]] = {
    (device, f"test_{case}"): why
    for device in DEVICES
    for why, cases in {
        NOT_ZERO: ("dft_inverse", "dft_inverse_opset19"),
        ROUNDED: tuple(
            f"attention_{case}{expanded}"
            for case in (
                "3d_causal_bf16", "4d_attn_mask_causal_bf16", "4d_causal_bf16", "4d_causal_fp16", "4d_causal_padded_kv_bf16",
                "4d_padded_kv_bf16",
            )
            for expanded in ("", "_expanded")
        ),
    }.items()
    for case in cases
    if (device, f"test_{case}") not in UNROUNDED
} | ROUNDED_IN_KERNEL  # fmt: skip
"""(device, case) ↦ why it cannot pass."""
PASSING = {
    device: 1870 + sum(own == device for own, _ in UNROUNDED) - sum(own == device for own, _ in ROUNDED_IN_KERNEL)
    for device in DEVICES
}
"""How many cases pass on each device. With an op more it is more; less only where the onnx package has fewer cases."""


@lru_cache(maxsize=1)
def cases() -> dict[str, tuple[Any, OnnxModel, list[Any]]]:
    """The cases whose ops and types Singe has, by name."""
    found = {}
    for case in every_case():
        data_sets = [tuple([array_of(a) for a in part] for part in data_set) for data_set in case.data_sets]
        if not all(
            isinstance(a, (np.ndarray, np.generic)) and (a.dtype.names or a.dtype == object or a.dtype.name in DTYPES)
            for a in tensors(data_sets)
        ):
            continue
        model = read_model(case.model.SerializeToString(), name=case.name)
        if not unsupported_ops(model):
            found[case.name] = case, model, data_sets
    return found


def check_case(case: Any, got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    """Check the outputs of a case. Of random numbers only the types and shapes are compared."""
    if any(n.op_type in RANDOM for n in case.model.graph.node):
        assert [(y.dtype, y.shape) for y in got] == [(y.dtype, y.shape) for y in wanted]
    else:
        check(got, wanted, case.rtol, case.atol)


def parameters() -> list[Any]:
    def marks(device: str, name: str) -> list[pytest.MarkDecorator]:
        reason = EXCEPTIONS.get((device, name))
        return [pytest.mark.xfail(reason=reason, strict=True, raises=(SingeError, AssertionError))] if reason else []

    return [
        pytest.param(device, name, id=f"{device}-{name}", marks=marks(device, name))
        for device in DEVICES
        for name in cases()
    ]


@pytest.mark.parametrize(("device", "name"), parameters())
def test_node(device: str, name: str) -> None:
    need(device)
    case, model, data_sets = cases()[name]
    rep = prepare(model, device)
    for inputs, outputs in data_sets:
        check_case(case, rep.run(inputs), outputs)


OPEN: Final = re.compile(
    r"their number must be known|must be a number|the weights' shape is|(scatter_nd_reduce|gather_nd): .* must name"
    r"|\(DFT\): input 2 must be known|\(RNN\): loop: axis 1 of carried value"
    r"|the number of features is|\((Loop|SequenceInsert|SplitToSequence)\): .*must be|one branch, a sequence of 1 in the other"
)
"""Where all lengths above 1 are open: why some must be numbers. They are numbers of axes, lengths of weights or lists."""
NEEDY: Final = 255
"""How many cases need such a number."""


@pytest.mark.slow
def test_open_dimensions_need_no_numbers() -> None:
    """Every case, with each length above 1 open under a separate name: one Program, which finds dependent sizes in the run."""
    needy, wrong = [], {}
    for name, (case, model, data_sets) in cases().items():
        try:
            opened = _opened(model, data_sets[0][0])
            for inputs, outputs in data_sets:
                given = dict(zip((v.name for v in model.graph.inputs), inputs, strict=True))
                own, _ = opened.bound((given,), {})
                if own.needed:
                    raise own.needed.error()
                found = opened(given)
                found = found if isinstance(found, dict) else {opened.source.output_names[0]: found}
                check_case(case, [found[k] for k in opened.source.output_names], outputs)
        except (SingeError, AssertionError) as e:
            (needy.append(name) if OPEN.search(str(e)) else wrong.setdefault(name, str(e)))
    assert wrong.keys() <= {name for _, name in EXCEPTIONS}, wrong
    assert len(needy) <= NEEDY


def _opened(model: OnnxModel, arrays: list[Any]) -> Model:
    """The model with names for the lengths of its inputs."""
    inputs = tuple(
        v
        if v.type is None or v.type.kind != "tensor"
        else replace(
            v, type=replace(v.type, shape=tuple(1 if d == 1 else f"{v.name}.{i}" for i, d in enumerate(np.shape(a))))
        )
        for v, a in zip(model.graph.inputs, arrays, strict=True)
    )
    return Model(OnnxSource(replace(model, graph=replace(model.graph, inputs=inputs))), "numpy")


def test_exceptions_are_cases() -> None:
    assert {name for _, name in EXCEPTIONS} <= cases().keys()


def test_no_case_is_left_out_unseen() -> None:
    """If the reader or the list of ops loses entries, the number of passing cases must not shrink unnoticed."""
    assert {d: len(cases()) - sum(device == d for device, _ in EXCEPTIONS) for d in DEVICES} == PASSING
