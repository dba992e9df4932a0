"""Representative kernels for GPUs, whose texts are golden files in each language, and graphs that need every template."""

from __future__ import annotations

from typing import Final

from networks.graphs import pooled_conv

from singe.compiler.fuse import fuse
from singe.dtypes import DType, bfloat16, bool_, float16, float32, int8, int32, int64, uint8, uint32, uint64
from singe.graph import Builder, Graph, Node
from singe.ir import affine
from singe.ir import scalar as S
from singe.ir.affine import flatten
from singe.ir.kernel import Kernel, Port, Reduce, Routine, Store, loop_vars
from singe.ir.scalar import Expr, load, select
from singe.shapes import Dim, size

MAX_PORTS: Final = 8
"""Buffers of a kernel on each GPU."""


def _relu() -> Kernel:
    (i,) = loop_vars("g", (1000,))
    return Kernel(
        (Port(float32), Port(float32, True)), (1000,), (), (Store(1, i, S.maximum(load(0, i, float32), 0.0)),), "relu"
    )


def half() -> Kernel:
    (i,) = loop_vars("g", (size("N") * 10,))
    return Kernel(
        (Port(float16), Port(float16, True)), (size("N") * 10,), (), (Store(1, i, load(0, i, float16) + 1.0),), "half"
    )


def softmax(kind: DType = float32) -> Kernel:
    (i,), (r,) = loop_vars("g", (size("N"),)), loop_vars("r", (1000,))
    at = flatten([i, r], (size("N"), 1000))
    x = load(0, at, kind)
    top = Reduce("a0", "max", x)
    powers = S.exp(x - top.accumulator)
    total = Reduce("a1", "add", powers)
    stages = (top, total, Store(1, at, powers / total.accumulator, inner=True))
    return Kernel((Port(kind), Port(kind, True)), (size("N"),), (1000,), stages, "softmax")


def matmul_bias_relu(rows: Dim, kind: DType = float32) -> Routine:
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
    _, (group,) = fuse(pooled_conv((1, 14, 14, 24), 48), MAX_PORTS, lambda group: True)
    assert isinstance(group.kernel, Routine)
    return group.kernel


def _of(y: Node) -> Routine:
    """The Routine that fusion makes of one node."""
    inputs = tuple(x for x in y.inputs if not x.is_const)
    _, (group,) = fuse(Graph(inputs, (y,), ("y",)), MAX_PORTS, lambda group: True)
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


KERNELS: dict[str, Kernel | Routine] = {
    "relu": _relu(),
    "softmax": softmax(),
    "matmul_bias_relu": matmul_bias_relu(size("N")),
    "vector_matrix_bias_relu": matmul_bias_relu(1),
    "conv": _conv(24, 48, 1),
    "conv_pooled": _conv_pooled(),
    "depthwise": _conv(32, 32, 32),
    "vector_blocks": _vector_blocks(),
    "integers": _integers(),
}


# --- graphs -----------------------------------------------------------------------------------------------------------

TYPES: Final = (bool_, int8, uint8, int32, uint32, int64, uint64, float16, bfloat16, float32)


def casts() -> list[Graph]:
    """All types to all others: what of the library they need."""
    found = []
    for kind in TYPES:
        b = Builder()
        x = b.input("x", (size("N"), 4), kind)
        ys = [b.cast(x, to=other) for other in TYPES if other is not kind]
        found += [Graph((x,), (y,), ("y",)) for y in ys]
    return found


def graph_of(op: str, *inputs: tuple[tuple[Dim, ...], DType], **attrs: object) -> Graph:
    b = Builder()
    given = [b.input(f"x{k}", *what) for k, what in enumerate(inputs)]
    y: Node = getattr(b, op)(*given, **attrs)
    return Graph(tuple(given), (y,), ("y",))


def templates() -> list[Graph]:
    """A graph for each template."""
    n = size("N")
    return [
        graph_of("matmul", ((n, 30), float16), ((30, 44), float16)),
        graph_of("matmul", ((5, n), int64), ((n, 8), int64)),
        graph_of("softmax", ((n, 1000), bfloat16), axis=-1),
        graph_of("attention", *[((1, 2, n, 20), float16)] * 3, causal=True),
        graph_of("attention", *[((1, 2, 1, 33), float32)] * 3),
        graph_of("scatter_elements_reduce", ((n, 7), float32), ((3, 7), float32), ((3, 7), int64), axis=0, reduction="add"),
        graph_of("scatter_nd_reduce", ((4, n), int32), ((3, n), int32), ((3, 1), uint32), reduction="max"),
    ]  # fmt: skip
