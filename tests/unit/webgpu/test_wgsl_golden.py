"""The WGSL of representative kernels, as text: a change shows as a diff. SINGE_UPDATE_GOLDEN=1 updates it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from networks.graphs import pooled_conv

from singe.compiler.fuse import fuse
from singe.dtypes import DType, float16, float32, int8, int32
from singe.graph import Builder, Graph, Node
from singe.ir import affine
from singe.ir import scalar as S
from singe.ir.affine import flatten
from singe.ir.kernel import Kernel, Port, Reduce, Routine, Store, loop_vars
from singe.ir.scalar import Expr, load, select
from singe.shapes import Dim, size
from singe_webgpu.code.dialect import WGSL
from singe_webgpu.target import WgslTarget

GOLDEN = Path(__file__).parents[2] / "golden"


def _relu() -> Kernel:
    (i,) = loop_vars("g", (1000,))
    return Kernel(
        (Port(float32), Port(float32, True)), (1000,), (), (Store(1, i, S.maximum(load(0, i, float32), 0.0)),), "relu"
    )


def _half() -> Kernel:
    (i,) = loop_vars("g", (size("N") * 10,))
    return Kernel(
        (Port(float16), Port(float16, True)), (size("N") * 10,), (), (Store(1, i, load(0, i, float16) + 1.0),), "half"
    )


def _softmax(kind: DType = float32) -> Kernel:
    (i,), (r,) = loop_vars("g", (size("N"),)), loop_vars("r", (1000,))
    at = flatten([i, r], (size("N"), 1000))
    x = load(0, at, kind)
    top = Reduce("a0", "max", x)
    powers = S.exp(x - top.accumulator)
    total = Reduce("a1", "add", powers)
    stages = (top, total, Store(1, at, powers / total.accumulator, inner=True))
    return Kernel((Port(kind), Port(kind, True)), (size("N"),), (1000,), stages, "softmax")


def _matmul_bias_relu(rows: Dim, kind: DType = float32) -> Routine:
    (m, n), (k,) = loop_vars("g", (rows, 320)), loop_vars("r", (128,))
    a, b = load(0, flatten([m, k], (rows, 128)), kind), load(1, flatten([k, n], (128, 320)), kind)
    total = Reduce("a0", "add", a * b)
    store = Store(3, flatten([m, n], (rows, 320)), S.maximum(total.accumulator + load(2, n, kind), 0.0))
    ports = (*[Port(kind)] * 3, Port(kind, True))
    return Routine("matmul", Kernel(ports, (rows, 320), (128,), (total, store), "matmul"))


def _conv(channels: int, outputs: int, group: int) -> Routine:
    """A 3×3 convolution over 14×14, padded by one."""
    per_group = channels // group
    n, y, x, o = loop_vars("g", (1, 14, 14, outputs))
    ky, kx, c = loop_vars("r", (3, 3, per_group))
    py, px = y + ky - 1, x + kx - 1

    def inside(p: Expr) -> Expr:
        return (p >= 0) & (p < 14)

    channel = c if group == 1 else affine.index_div(o, outputs // group) * per_group + c
    at = flatten([n, S.clip(py, 0, 13), S.clip(px, 0, 13), channel], (1, 14, 14, channels))
    read = select(inside(py) & inside(px), load(0, at, float32), 0.0)
    total = Reduce("a0", "add", read * load(1, flatten([ky, kx, c, o], (3, 3, per_group, outputs)), float32))
    store = Store(2, flatten([n, y, x, o], (1, 14, 14, outputs)), S.clip(total.accumulator, 0.0, 6.0))
    kernel = Kernel(
        (Port(float32), Port(float32), Port(float32, True)),
        (1, 14, 14, outputs),
        (3, 3, per_group),
        (total, store),
        "conv",
    )
    facts = {"x": 0, "w": 1, "strides": (1, 1), "dilations": (1, 1), "pads": (1, 1), "group": group}
    return Routine("conv", kernel, {**facts, "x_shape": (1, 14, 14, channels), "w_shape": (3, 3, per_group, outputs)})


def _conv_pooled() -> Routine:
    """The maximum over 2×2 windows of relu(conv 3×3), in the form that fusion makes."""
    _, (group,) = fuse(pooled_conv((1, 14, 14, 24), 48), WGSL.max_ports, lambda group: True)
    assert isinstance(group.kernel, Routine)
    return group.kernel


def _of(y: Node) -> Routine:
    """The Routine that fusion makes of one node."""
    inputs = tuple(x for x in y.inputs if not x.is_const)
    _, (group,) = fuse(Graph(inputs, (y,), ("y",)), WGSL.max_ports, lambda group: True)
    assert isinstance(group.kernel, Routine)
    return group.kernel


def _vector_blocks() -> Routine:
    """One row by weights of 4 bits in blocks of 32."""
    b = Builder()
    shapes = {"x": ((1, 2048), float32), "w": ((256, 512), int32), "scale": ((64, 512), float32)}
    given = [b.input(name, *what) for name, what in shapes.items()]
    return _of(b.dot_blocks(*given, b.const(8.0), bits=4, block=32))


def _integers() -> Routine:
    """Whole numbers by constant bytes."""
    b = Builder()
    return _of(b.dot_integers(b.input("x", (512, 256), float32), b.input("w", (256, 512), int8)))


CASES: dict[str, Kernel | Routine] = {
    "relu": _relu(),
    "softmax": _softmax(),
    "matmul_bias_relu": _matmul_bias_relu(size("N")),
    "vector_matrix_bias_relu": _matmul_bias_relu(1),
    "conv": _conv(24, 48, 1),
    "conv_pooled": _conv_pooled(),
    "depthwise": _conv(32, 32, 32),
    "vector_blocks": _vector_blocks(),
    "integers": _integers(),
}


@pytest.mark.parametrize("name", CASES)
def test_text_is_golden(name: str) -> None:
    constants = [k for k, port in enumerate(CASES[name].ports) if port.dtype is int8]
    first = WgslTarget().print(CASES[name], constants)
    assert first is not None
    for number, printed in enumerate((first, *first.others)):
        for code, variant in zip(printed.code, printed.variants, strict=True):
            _compare("_".join((name, *[f"other{number}"] * (number > 0), *variant.requires)), code)


def test_attention_with_split_keys_is_golden() -> None:
    shape = (1, 3, 197, 64)
    first = WgslTarget().print_opaque("attention", {}, [(shape, float32)] * 3, [(shape, float32)])
    assert first is not None
    for name, printed in zip(("attention", "attention_joined"), (first, *first.others), strict=True):
        _compare(name, printed.code[-1])


def test_reductions_have_a_variant_for_subgroups() -> None:
    printed = WgslTarget().print(CASES["softmax"], ())
    assert [v.requires for v in printed.variants] == [("subgroups",), ()]


def test_variants_are_ordered_by_what_they_gain() -> None:
    printed = WgslTarget().print(_softmax(float16), ())
    assert [v.requires for v in printed.variants] == [
        ("shader-f16", "subgroups"),
        ("shader-f16",),
        ("subgroups",),
        (),
    ]
    for variant, code in zip(printed.variants, printed.code, strict=True):
        assert re.findall(r"^enable (\w+);", code, re.MULTILINE) == [
            w.removeprefix("shader-") for w in variant.requires
        ]


def test_halves_written_singly_come_in_two_texts() -> None:
    printed = WgslTarget().print(_half(), ())
    assert [v.requires for v in printed.variants] == [("shader-f16",), ()]
    assert WgslTarget().element_size(float16) == 2
    for name, code in zip(("half", "half_plain"), printed.code, strict=True):
        _compare(name, code)
    assert "enable" not in printed.code[1]


def test_products_of_halves_come_on_subgroup_matrices_too() -> None:
    printed = WgslTarget().print(_matmul_bias_relu(size("N"), kind=float16), ())
    assert [v.requires for v in printed.variants] == [
        ("shader-f16", "subgroups", "subgroup-matrix-f16-f32-16x16x16"),
        (),
    ]
    for name, code in zip(("matmul_matrices", "matmul_halves"), printed.code, strict=True):
        _compare(name, code)


def test_equal_text_is_linked_once() -> None:
    target = WgslTarget()
    modules, variants = target.link([target.print(k, ()) for k in (_relu(), _softmax(), _relu())])
    assert list(modules) == ["w0", "w1", "w2"]
    assert [[v.entry for v in row] for row in variants] == [["w0"], ["w1", "w2"], ["w0"]]


def _compare(name: str, code: str) -> None:
    path = GOLDEN / f"{name}.wgsl"
    if os.environ.get("SINGE_UPDATE_GOLDEN"):
        path.write_text(code)
    assert code == path.read_text()
