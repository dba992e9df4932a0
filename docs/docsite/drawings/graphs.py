"""Drawings of expressions and graphs."""

from __future__ import annotations

import singe as sg
from singe import nn
from singe.compiler.target import find_target
from singe.dtypes import float32
from singe.graph import Graph, Node, postorder
from singe.ir import scalar
from singe.ir.kernel import Routine
from singe.ops import ROWS, Elementwise
from singe.shapes import product, show

from .networks import digits_model, groups_of
from .svg import GLYPH, Item, Sheet, net


def word() -> str:
    """The body of the row hard_swish, in scalar words."""
    row = ROWS["hard_swish"]
    assert isinstance(row, Elementwise)
    words = scalar.postorder([row.body(scalar.var("x", float32))])
    items = {
        e: Item(
            e.value[0] if e.word == "var" else e.word,
            ", ".join(f"{a.value:g}" for a in e.args if a.word == "const"),
            kind=1 if e.word == "var" else 0,
            reads=[a for a in e.args if a.word != "const"],
        )
        for e in words
        if e.word != "const"
    }
    return net(items, "The words of hard_swish: x goes through div, add, max, min, and is multiplied by the result")


def traced() -> str:
    """The Graph of a layer with a residual connection."""
    layer, norm = nn.Linear(16, 16, rng=0), nn.LayerNorm(16)
    graph = sg.Model.of(lambda x: {"y": x + layer(norm(x)).gelu()}, {"x": ("N", 16)}, "numpy").graph()
    return net(_items(graph), "A Graph: nodes from the input on the left to the output on the right")


def gradient() -> str:
    """The Graph of a loss and of the gradient of a weight."""
    layer = nn.Linear(2, 3, bias=False, rng=0)

    def step(x: sg.Tensor) -> dict[str, sg.Tensor]:
        def loss(model: nn.Linear) -> sg.Tensor:
            return model(x).tanh().sum()

        value, gradients = sg.value_and_grad(loss)(layer)
        return {"loss": value, "gradient": gradients["weight"]}

    graph = sg.Model.of(step, {"x": (8, 2)}, "numpy").graph()
    forward = {id(n) for n in postorder(graph.outputs[:1])}
    return net(_items(graph, forward), "A Graph with gradients: the nodes of the loss, then those of the gradient")


def _items(graph: Graph, forward: set[int] | None = None) -> dict[Node, Item]:
    """The nodes that are no constants. forward: the ids of those that are not coloured as gradients."""
    return {
        n: Item(
            n.name or n.op,
            f"{n.dtype} {show(n.shape)}",
            kind=1 if n.is_input else 3 if forward is not None and id(n) not in forward else 0,
            reads=[x for x in dict.fromkeys(n.inputs) if not x.is_const],
        )
        for n in graph.nodes
        if not n.is_const
    }


def fused() -> str:
    """The Kernels of the digits' network: the ops of each, its loops, and the constants that it reads."""
    sheet = Sheet()
    heads = ((0, "kernel"), (300, "loops: of the grid, then inner"), (520, "result"), (680, "constants"))
    for x, text in heads:
        sheet.text(x, 14, text, quiet=True)
    for at, group in enumerate(groups_of(digits_model().graph(), find_target("wasm"))):
        y = 26 + 40 * at
        kernel = group.kernel.kernel if isinstance(group.kernel, Routine) else group.kernel
        widths = [GLYPH * len(op) + 16 for op in group.ops]
        sheet.box(0, y, sum(widths) + 6 * len(widths) + 6, 34, "outline", corner=6)
        for k, op in enumerate(group.ops):
            x = 6 + sum(widths[:k]) + 6 * k
            sheet.box(x, y + 5, widths[k], 24, k)
            sheet.text(x + 8, y + 21, op)
        inner = f" · {show(kernel.inner)}" if kernel.inner else ""
        size = sum(4 * int(product(n.shape)) for n in group.inputs if n.is_const and n.shape)
        sheet.text(300, y + 21, f"{show(kernel.grid)}{inner}")
        sheet.text(520, y + 21, show(group.outputs[-1].shape))
        sheet.text(680, y + 21, f"{size / 1000:.1f} kB" if size else "–")
    return sheet.html("The seven kernels of the digits' network, and the ops in each")
