"""Folds over axes, windows and running folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ....dtypes import DType, widened
from ....graph import Node
from ....ir.kernel import IDENTITY
from ....shapes import Dim, axes_of, axis_of
from ..block import Block, lacking
from ..facts import AXES_ARE_INPUT, SINCE
from ..records import GraphRecord, NodeRecord, ValueRecord, is_closed
from ..rules import Rule, kind_taken

REDUCTIONS: Final = {
    "reduce_sum": "ReduceSum",
    "reduce_prod": "ReduceProd",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
}
OF_WORD: Final = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def reduced(w: Block, op: str, x: str, axes: Sequence[int], keep: bool = True) -> str:
    """A fold over axes; over none, x itself."""
    if not axes:
        return x
    if w.opset >= AXES_ARE_INPUT[op]:
        return w.node(op, x, w.vector(axes), keepdims=int(keep))
    return w.node(op, x, axes=tuple(axes), keepdims=int(keep))


def _wide(w: Block, op: str, kind: DType) -> DType:
    """Sums and products are made in the compute type, as everywhere; extremes in any that the op takes."""
    first = kind.compute if op in ("ReduceSum", "ReduceProd") else kind
    carrier = w.carrier(op, first)
    if carrier is None:
        raise lacking(op, kind, w.opset)
    return carrier


def _reduce(op: str) -> Rule:
    def write(w: Block, n: Node, x: str) -> str:
        (given,) = n.inputs
        axes = axes_of(n.attrs["axes"], len(given.shape), n.op)
        wide = _wide(w, op, given.dtype)
        return w.cast(reduced(w, op, w.cast(x, given.dtype, wide), axes), wide, n.dtype)

    return Rule(write)


def _mean(w: Block, n: Node, x: str) -> str:
    axes = axes_of(n.attrs["axes"], len(n.shape), n.op)
    kind = n.dtype.compute
    return w.cast(reduced(w, "ReduceMean", w.cast(x, n.dtype, kind), axes), kind, n.dtype)


def _along(op: str) -> Rule:
    """A composite along one axis."""

    def write(w: Block, n: Node, x: str) -> str:
        return w.typed(op, n.dtype, x, axis=axis_of(n.attrs.get("axis", -1), len(n.shape), n.op))

    return Rule(write, kind_taken(op))


def _arg(op: str) -> Rule:
    def write(w: Block, n: Node, x: str) -> str:
        axis = axis_of(n.attrs["axis"], len(n.shape), n.op)
        kind = n.inputs[0].dtype
        last = int(n.attrs.get("last", False))
        return w.compared(op, kind, x, axis=axis, keepdims=1, select_last_index=last)

    return Rule(write)


# --- windows ---------------------------------------------------------------------------------------------------------


def windowed(n: Node) -> list[int]:
    """The axes along which a window slides."""
    attrs = n.attrs
    facts = zip(*(attrs[k] for k in ("window", "strides", "dilations", "before", "after")), strict=True)
    return [axis for axis, (size, stride, _, lo, hi) in enumerate(facts) if (size, stride, lo, hi) != (1, 1, 0, 0)]


def _is_plain(n: Node) -> bool:
    """Whether windows slide along the axes after the first two, as ONNX has it."""
    return len(n.inputs[0].shape) >= 3 and all(axis >= 2 for axis in windowed(n))


def _facts(n: Node, axes: Sequence[int]) -> dict[str, Any]:
    attrs = n.attrs
    made: dict[str, Any] = {
        "kernel_shape": tuple(attrs["window"][k] for k in axes),
        "strides": tuple(attrs["strides"][k] for k in axes),
    }
    made["pads"] = (*(attrs["before"][k] for k in axes), *(attrs["after"][k] for k in axes))
    dilations = tuple(attrs["dilations"][k] for k in axes)
    return {**made, "dilations": dilations} if any(d != 1 for d in dilations) else made


def _pads_fit(n: Node) -> bool:
    """Whether the padding is of numbers that engines take: each less than the window."""
    attrs = n.attrs
    return all(
        isinstance(pad, int) and pad < max(size, 1)
        for side in ("before", "after")
        for pad, size in zip(attrs[side], attrs["window"], strict=True)
    )


def _pool_kind(w: Block, op: str, n: Node) -> DType | None:
    kind = n.inputs[0].dtype
    return w.carrier(op, kind.compute if op == "AveragePool" else kind) if kind.is_float else None


def _pooled(w: Block, n: Node, x: str, pool: Callable[[str, dict[str, Any]], str]) -> str:
    """A pool of x, whose windowed axes become the last ones if they are others."""
    (given,) = n.inputs[:1]
    axes, rank = windowed(n), len(given.shape)
    if _is_plain(n):
        return pool(x, _facts(n, range(2, rank)))
    if not axes:
        axes = [rank - 1]
    others = [k for k in range(rank) if k not in axes]
    perm = [*others, *axes]
    turned = w.node("Transpose", x, perm=tuple(perm)) if perm != sorted(perm) else x
    ahead: Dim = 1
    for k in others:
        ahead = ahead * given.shape[k]
    flat = w.reshape(turned, (ahead, 1, *(given.shape[k] for k in axes)))
    made = pool(flat, _facts(n, axes))
    made = w.reshape(made, tuple(n.shape[k] for k in perm))
    return (
        w.node("Transpose", made, perm=tuple(sorted(range(rank), key=perm.__getitem__)))
        if perm != sorted(perm)
        else made
    )


def _max_pool(w: Block, n: Node, x: str) -> str:
    wide = _pool_kind(w, "MaxPool", n)
    assert wide is not None
    given = w.cast(x, n.dtype, wide)
    return w.cast(_pooled(w, n, given, lambda y, facts: w.node("MaxPool", y, **facts)), wide, n.dtype)


def _max_pool_index(w: Block, n: Node, x: str) -> str:
    (given,) = n.inputs
    order = int(n.attrs.get("column_major", False))
    facts = _facts(n, range(2, len(given.shape)))
    return w.several("MaxPool", 2, x, storage_order=order, **facts)[1]


def _average(w: Block, n: Node, x: str) -> str:
    """The mean over windows, where padding counts."""
    kind = n.inputs[0].dtype
    wide = _pool_kind(w, "AveragePool", n)
    assert wide is not None
    given = w.cast(x, kind, wide)
    return _pooled(w, n, given, lambda y, facts: w.node("AveragePool", y, count_include_pad=1, **facts))


def _elements(n: Node) -> int:
    count = 1
    for size in n.attrs["window"]:
        count *= size
    return count


def _pool_sum(w: Block, n: Node, x: str) -> str:
    wide = _pool_kind(w, "AveragePool", n)
    assert wide is not None
    return w.cast(w.node("Mul", _average(w, n, x), w.const(float(_elements(n)), wide)), wide, n.dtype)


def _average_pool(w: Block, n: Node, x: str) -> str:
    """A sum over windows, divided by the number of their elements."""
    pool = n.inputs[0]
    wide = _pool_kind(w, "AveragePool", pool)
    assert wide is not None
    return w.cast(_average(w, pool, x), wide, n.dtype)


def _is_average(w: Block, n: Node) -> bool:
    pool, count = n.inputs
    if pool.op != "pool_sum" or not _pool_sum_takes(w, pool):
        return False
    known = count.value is not None and count.shape == () and count.dtype.is_float
    return known and float(widened(count.value)) == _elements(pool)  # pyright: ignore[reportArgumentType]


def _pool_sum_takes(w: Block, n: Node) -> bool:
    if any(d != 1 for d in n.attrs["dilations"]) and w.opset < SINCE["DilatedAveragePool"]:
        return False
    return _pads_fit(n) and _pool_kind(w, "AveragePool", n) is not None and len(windowed(n)) <= 3


def _max_pool_takes(w: Block, n: Node) -> bool:
    return _pads_fit(n) and _pool_kind(w, "MaxPool", n) is not None and len(windowed(n)) <= 3


def taps(w: Block, count: Dim, length: int, stride: int, dilation: int) -> str:
    """The places [count, length] that windows read along an axis."""
    starts = w.node("Mul", w.node("Range", w.const(0), w.scalar(count), w.const(1)), w.const(stride))
    within = w.vector([k * dilation for k in range(length)])
    return w.node("Add", w.node("Reshape", starts, w.vector([-1, 1])), within)


def _unfolded(word: str) -> Rule:
    """A fold over windows as one over axes that hold their elements, one axis of windows after the other."""

    def write(w: Block, n: Node, x: str) -> str:
        (given,) = n.inputs
        op = {"max": "ReduceMax", "add": "ReduceSum"}[word]
        wide = _wide(w, op, given.dtype)
        attrs, y = n.attrs, w.cast(x, given.dtype, wide)
        if any(p != 0 for side in ("before", "after") for p in attrs[side]):
            fill = w.const(IDENTITY[word](wide), wide)
            y = w.node("Pad", y, w.shape((*attrs["before"], *attrs["after"])), fill, mode="constant")
        for axis in windowed(n):
            size = attrs["window"][axis]
            places = taps(w, n.shape[axis], size, attrs["strides"][axis], attrs["dilations"][axis])
            y = reduced(w, op, w.node("Gather", y, places, axis=axis), [axis + 1], keep=False)
        return w.cast(y, wide, n.dtype)

    return Rule(write)


# --- running folds ---------------------------------------------------------------------------------------------------


def _cumulative(op: str) -> Rule:
    def write(w: Block, n: Node, x: str) -> str:
        axis, kind = axis_of(n.attrs["axis"], len(n.shape), n.op), n.dtype
        wide = w.carrier(op, kind.compute)
        assert wide is not None
        made = w.node(op, w.cast(x, kind, wide), w.const(axis), reverse=int(n.attrs.get("reverse", False)))
        return w.cast(made, wide, kind)

    return Rule(write, lambda w, n: w.carrier(op, n.dtype.compute) is not None)


def _scanned(word: str) -> Rule:
    """A running fold as a Scan whose state is the fold so far."""

    def write(w: Block, n: Node, x: str) -> str:
        if 0 in n.shape:  # onnxruntime cannot scan nothing
            return x
        kind, wide = n.dtype, n.dtype.compute
        axis = axis_of(n.attrs["axis"], len(n.shape), n.op)
        shape = tuple(d for k, d in enumerate(n.shape) if k != axis)
        first = w.const(IDENTITY[word](wide), wide)
        if shape:
            first = w.node("Expand", first, w.shape(shape))
        names = [w.constants.fresh(f"scan.{part}") for part in ("before", "element", "after", "kept")]
        told = shape if is_closed(shape) else tuple(d if isinstance(d, int) else None for d in shape)
        values = [ValueRecord(name, wide, told) for name in names]
        steps = [NodeRecord(OF_WORD[word], names[:2], names[2:3]), NodeRecord("Identity", names[2:3], names[3:])]
        body = GraphRecord(w.constants.fresh("scan_body"), values[:2], values[2:], steps)
        backwards = int(n.attrs.get("reverse", False))
        made = w.several("Scan", 2, first, w.cast(x, kind, wide), body=body, num_scan_inputs=1, scan_input_axes=(axis,),
            scan_output_axes=(axis,), scan_input_directions=(backwards,), scan_output_directions=(backwards,),
        )  # fmt: skip
        return w.cast(made[1], wide, kind)

    return Rule(write)


RULES: Final[Mapping[str, Sequence[Rule]]] = {
    **{name: (_reduce(op),) for name, op in REDUCTIONS.items()},
    "argmax": (_arg("ArgMax"),),
    "argmin": (_arg("ArgMin"),),
    "div": (Rule(_average_pool, _is_average, lambda n: n.inputs[0].inputs),),
    "hardmax": (_along("Hardmax"),),
    "log_softmax": (_along("LogSoftmax"),),
    "max_pool": (Rule(_max_pool, _max_pool_takes), _unfolded("max")),
    "max_pool_index": (
        Rule(_max_pool_index, lambda w, n: _is_plain(n) and _pads_fit(n) and w.takes("MaxPool", n.inputs[0].dtype)),
    ),
    "pool_sum": (Rule(_pool_sum, _pool_sum_takes), _unfolded("add")),
    "reduce_mean": (Rule(_mean, lambda w, n: n.dtype.is_float),),
    "running_max": (_scanned("max"),),
    "running_prod": (_cumulative("CumProd"), _scanned("mul")),
    "running_sum": (_cumulative("CumSum"),),
    "softmax": (_along("Softmax"),),
}
