"""Products, convolutions, normalisations and recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ....dtypes import int32
from ....graph import Node
from ....ops import ROWS, Composite
from ....ops.products.recurrent import OPTIONAL
from ....shapes import Dim, Shape, axis_of, plain, product
from ..block import Block
from ..records import Attribute, is_closed
from ..rules import Rule, are_exact, kind_taken
from .folds import taps


def _standard(row: Composite) -> Rule:
    """A composite that is an op of ONNX, with attributes of the same names."""
    op = row.onnx
    assert op is not None

    def write(w: Block, n: Node, *xs: str) -> str:
        kind = n.inputs[0].dtype
        carrier = w.carrier(op, kind)
        assert carrier is not None
        given = [w.cast(x, v.dtype, carrier) if v.dtype.is_float else x for x, v in zip(xs, n.inputs, strict=True)]
        facts = {k: int(v) if isinstance(v, bool) else v for k, v in n.attrs.items()}
        return w.cast(w.node(op, *given, **facts), carrier, n.dtype)

    return Rule(write, kind_taken(op))


def _product(w: Block, n: Node, *xs: str) -> str:
    """Integers of a few bits in int32, as everywhere."""
    kind = n.dtype if n.dtype.is_float else n.dtype.compute
    carrier = w.carrier("MatMul", kind)
    assert carrier is not None
    return w.cast(w.node("MatMul", *(w.cast(x, n.dtype, carrier) for x in xs)), carrier, n.dtype)


def _product_takes(w: Block, n: Node) -> bool:
    kind = n.dtype if n.dtype.is_float else n.dtype.compute
    return w.carrier("MatMul", kind) is not None


def _gemm(w: Block, n: Node, *xs: str) -> str:
    attrs = n.attrs
    facts: dict[str, Attribute] = {"alpha": float(attrs.get("alpha", 1.0)), "beta": float(attrs.get("beta", 1.0))}
    facts |= {"transA": int(attrs.get("trans_a", False)), "transB": int(attrs.get("trans_b", False))}
    plain_facts = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
    return w.typed("Gemm", n.dtype, *xs, **{k: v for k, v in facts.items() if v != plain_facts[k]})


def _gemm_takes(w: Block, n: Node) -> bool:
    """Whether all are matrices of floats, and c broadcasts to the product."""
    x, y, *rest = n.inputs
    fits = all(
        len(c.shape) <= 2 and all(_serves(d, e) for d, e in zip(reversed(c.shape), reversed(n.shape), strict=False))
        for c in rest
    )
    return (
        len(x.shape) == len(y.shape) == 2
        and fits
        and n.dtype.is_float
        and w.carrier("Gemm", n.dtype) is not None
        and are_exact(n, n.dtype)
    )


def _serves(d: Dim, e: Dim) -> bool:
    return d == 1 or plain(d) == plain(e)


# --- convolutions ----------------------------------------------------------------------------------------------------


def conv_facts(n: Node, window: Sequence[Dim]) -> dict[str, Attribute]:
    attrs = n.attrs
    facts: dict[str, Attribute] = {"kernel_shape": _numbers(window), "strides": _numbers(attrs["strides"])}
    if any(d != 1 for d in attrs["dilations"]):
        facts["dilations"] = _numbers(attrs["dilations"])
    if attrs.get("group", 1) != 1:
        facts["group"] = attrs["group"]
    return facts


def _numbers(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


def conv_pads(n: Node) -> tuple[int, ...]:
    return _numbers((*n.attrs["before"], *n.attrs["after"]))


def padded_by_numbers(n: Node) -> bool:
    """Whether the padding and the window are numbers, and none is cut off."""
    pads = (*n.attrs["before"], *n.attrs["after"])
    return all(isinstance(p, int) and p >= 0 for p in pads) and is_closed(n.inputs[1].shape)


def _conv(w: Block, n: Node, *xs: str) -> str:
    return w.typed("Conv", n.dtype, *xs, **conv_facts(n, n.inputs[1].shape[2:]), pads=conv_pads(n))


def _conv_takes(w: Block, n: Node) -> bool:
    return n.dtype.is_float and padded_by_numbers(n) and w.carrier("Conv", n.dtype) is not None


def _conv_last(w: Block, n: Node, x: str, weights: str) -> str:
    """A convolution whose channels come last, between two transposes; constant weights are transposed here."""
    spaces = len(n.shape) - 2
    turned = (spaces + 1, spaces, *range(spaces))
    value = n.inputs[1].value
    kernel = weights
    if value is not None:
        kernel = w.constants.add(np.ascontiguousarray(value.transpose(turned)), "weight")
    else:
        kernel = w.node("Transpose", weights, perm=turned)
    first = w.node("Transpose", x, perm=(0, spaces + 1, *range(1, spaces + 1)))
    facts = conv_facts(n, n.inputs[1].shape[:-2])
    made = w.typed("Conv", n.dtype, first, kernel, **facts, pads=conv_pads(n))
    return w.node("Transpose", made, perm=(0, *range(2, spaces + 2), 1))


def _by_windows(w: Block, n: Node, x: str, weights: str) -> str:
    """A convolution of integers, or with a padding that a run computes, as a product with all windows."""
    kind = n.dtype if n.dtype.is_float else n.dtype.compute
    given, (*window, channels, outputs) = n.inputs[0], n.inputs[1].shape
    spaces, attrs = len(window), n.attrs
    y = w.cast(x, n.dtype, kind)
    if any(p != 0 for p in (*attrs["before"], *attrs["after"])):
        pads = w.shape((0, *attrs["before"], 0, 0, *attrs["after"], 0))
        y = w.node("Pad", y, pads, w.const(0, kind))
    for i, size in enumerate(window):
        assert isinstance(size, int)
        y = w.node(
            "Gather", y, taps(w, n.shape[1 + i], size, attrs["strides"][i], attrs["dilations"][i]), axis=1 + 2 * i
        )
    perm = (0, *range(1, 2 * spaces + 1, 2), *range(2, 2 * spaces + 1, 2), 2 * spaces + 1)
    depth = math.prod(_numbers((*window, channels)))
    rows = w.reshape(w.node("Transpose", y, perm=perm), (product(n.shape[:-1]), depth))
    matrix = w.cast(w.reshape(weights, (depth, outputs)), given.dtype, kind)
    return w.cast(w.reshape(w.node("MatMul", rows, matrix), n.shape), kind, n.dtype)


def _by_windows_takes(w: Block, n: Node) -> bool:
    kind = n.dtype if n.dtype.is_float else n.dtype.compute
    return n.attrs["group"] == 1 and is_closed(n.inputs[1].shape) and w.takes("MatMul", kind)


def _transposed_pads(n: Node) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The pads and the output padding of a transposed convolution; None if they are no numbers."""
    x, weights = n.inputs[:2]
    attrs = n.attrs
    after, extra = [], []
    facts = zip(
        x.shape[2:],
        weights.shape[2:],
        attrs["strides"],
        attrs["dilations"],
        attrs["before"],
        attrs["sizes"],
        strict=True,
    )
    for d, k, s, r, lo, size in facts:
        rest = (d - 1) * s + r * (k - 1) + 1 - lo - size
        if not isinstance(rest, int) or not isinstance(lo, int) or lo < 0 or -rest >= max(s, r):
            return None
        after.append(max(rest, 0))
        extra.append(max(-rest, 0))
    return (*_numbers(attrs["before"]), *after), tuple(extra)


def _conv_transpose(w: Block, n: Node, *xs: str) -> str:
    found = _transposed_pads(n)
    assert found is not None
    pads, extra = found
    facts = conv_facts(n, n.inputs[1].shape[2:])
    return w.typed(
        "ConvTranspose", n.dtype, *xs, **facts, pads=pads, **({"output_padding": extra} if any(extra) else {})
    )


def _conv_transpose_takes(w: Block, n: Node) -> bool:
    closed = is_closed(n.inputs[1].shape)
    return closed and w.carrier("ConvTranspose", n.dtype) is not None and _transposed_pads(n) is not None


# --- normalisations --------------------------------------------------------------------------------------------------


def _batch_norm(w: Block, n: Node, *xs: str) -> str:
    wide = w.carrier("BatchNormalization", n.dtype)
    assert wide is not None
    given = [w.cast(x, v.dtype, wide) for x, v in zip(xs, n.inputs, strict=True)]
    return w.cast(w.node("BatchNormalization", *given, epsilon=float(n.attrs.get("epsilon", 1e-5))), wide, n.dtype)


def _batch_norm_takes(w: Block, n: Node) -> bool:
    return w.carrier("BatchNormalization", n.dtype) is not None and are_exact(n, n.dtype)


def _ending(n: Node) -> Shape:
    """The shape of the axes that are normalised."""
    return n.shape[axis_of(n.attrs.get("axis", -1), len(n.shape), n.op) :]


def _normalised(op: str) -> Rule:
    """In the compute type, as the row; a scale that is missing is one."""

    def write(w: Block, n: Node, *xs: str) -> str:
        kind = n.dtype.compute
        data, *rest = (w.cast(x, v.dtype, kind) for x, v in zip(xs, n.inputs, strict=True))
        if not rest:
            rest = [w.const(np.ones(_numbers(_ending(n))), kind)]
        axis = axis_of(n.attrs.get("axis", -1), len(n.shape), n.op)
        return w.cast(w.node(op, data, *rest, axis=axis, epsilon=float(n.attrs.get("epsilon", 1e-5))), kind, n.dtype)

    def takes(w: Block, n: Node) -> bool:
        shape = _ending(n)
        _, *rest = n.inputs
        known = is_closed(shape) and math.prod(_numbers(shape)) > 0
        return known and all(p.shape == shape for p in rest) and w.takes(op, n.dtype.compute) and are_exact(n, n.dtype)

    return Rule(write, takes)


# --- recurrent layers ------------------------------------------------------------------------------------------------

ACTIVATIONS: Final = {
    "affine": ("Affine", 2), "elu": ("Elu", 1), "hardsigmoid": ("HardSigmoid", 2), "leakyrelu": ("LeakyRelu", 1), "relu": ("Relu", 0),
    "scaledtanh": ("ScaledTanh", 2), "sigmoid": ("Sigmoid", 0), "softplus": ("Softplus", 0), "softsign": ("Softsign", 0),
    "tanh": ("Tanh", 0), "thresholdedrelu": ("ThresholdedRelu", 1),
}  # fmt: skip
"""An activation ↦ ONNX's name of it, and how many parameters it has."""
USUAL: Final = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}
"""The activations that need not be written."""


def _recurrent(op: str) -> Rule:
    def write(w: Block, n: Node, x: str, weights: str, r: str, *rest: str) -> tuple[str, ...]:
        attrs, kind = n.attrs, n.inputs[0].dtype
        wide = w.carrier(op, kind)
        assert wide is not None
        named = dict(zip(attrs["given"], zip(rest, n.inputs[3:], strict=True), strict=True))
        optional: list[str] = []
        for name in OPTIONAL[: 5 if op == "LSTM" else 3]:
            if name in named:
                value, node = named[name]
                optional.append(w.cast(value, node.dtype, int32 if name == "lengths" else wide))
            else:
                optional.append("")
        activations = [ACTIVATIONS[name] for name, _, _ in attrs["activations"]]
        facts: dict[str, Attribute] = {"direction": attrs.get("direction", "forward")}
        hidden = n.inputs[2].shape[2]
        assert isinstance(hidden, int)
        facts["hidden_size"] = hidden
        if tuple(name for name, _, _ in attrs["activations"]) != USUAL[n.op] * (len(activations) // len(USUAL[n.op])):
            facts["activations"] = tuple(name for name, _ in activations)
        for k, name in enumerate(("activation_alpha", "activation_beta"), 1):
            values = tuple(
                float(own[k]) for own, (_, count) in zip(attrs["activations"], activations, strict=True) if count >= k
            )
            if values:
                facts[name] = values
        facts |= {name: float(attrs[name]) for name in ("clip",) if attrs.get(name)}
        facts |= {name: 1 for name in ("input_forget", "linear_before_reset") if attrs.get(name)}
        given = (w.cast(v, kind, wide) for v in (x, weights, r))
        made = w.several(op, len(n.results), *given, *optional, **facts)
        return tuple(w.cast(y, wide, kind) for y in made)

    def takes(w: Block, n: Node) -> bool:
        known = isinstance(n.inputs[2].shape[2], int)
        plain = "projection" not in n.attrs["given"] and not n.attrs.get("quantised")
        return known and plain and w.carrier(op, n.inputs[0].dtype) is not None

    return Rule(write, takes)


def _einsum(w: Block, n: Node, *xs: str) -> str:
    kind = n.dtype.compute
    made = w.node("Einsum", *(w.cast(x, n.dtype, kind) for x in xs), equation=n.attrs["equation"])
    return w.cast(made, kind, n.dtype)


def _einsum_takes(w: Block, n: Node) -> bool:
    """Whether all ellipses stand for as many axes, as ONNX wants it."""
    terms = "".join(n.attrs["equation"].split()).partition("->")[0].split(",")
    dots = {len(x.shape) - len(term) + 3 for term, x in zip(terms, n.inputs, strict=True) if "..." in term}
    return len(dots) <= 1 and w.takes("Einsum", n.dtype.compute)


RULES: Final[Mapping[str, Sequence[Rule]]] = {
    **{
        name: (_standard(row),)
        for name, row in ROWS.items()
        if isinstance(row, Composite) and row.onnx and "." not in row.onnx and name != "matmul"
    },
    "batch_norm": (Rule(_batch_norm, _batch_norm_takes),),
    "conv": (Rule(_conv, _conv_takes),),
    "conv_last": (Rule(_conv_last, _conv_takes), Rule(_by_windows, _by_windows_takes)),
    "conv_transpose": (Rule(_conv_transpose, _conv_transpose_takes),),
    "dot": (Rule(_product, _product_takes),),
    "einsum": (Rule(_einsum, _einsum_takes),),
    "gemm": (Rule(_gemm, _gemm_takes),),
    "gru": (_recurrent("GRU"),),
    "layer_norm": (_normalised("LayerNormalization"),),
    "lstm": (_recurrent("LSTM"),),
    "matmul": (Rule(_product, _product_takes),),
    "rms_norm": (_normalised("RMSNormalization"),),
    "rnn": (_recurrent("RNN"),),
}
