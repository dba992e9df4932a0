"""Rows that move elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....dtypes import float32, int32, int64
from ....errors import CompileError
from ....graph import Node
from ....shapes import Dim, axis_of, plain
from ..block import Block
from ..facts import SCATTER_REDUCTIONS, SINCE
from ..rules import Rule
from .folds import taps

BEFORE_ALL: Final = -(2**63)
"""An end of a slice that goes backwards to the first element."""


def index(w: Block, n: Node, x: str) -> str:
    """Indices in a type that ONNX takes for them."""
    return x if n.dtype in (int32, int64) else w.cast(x, n.dtype, int64)


def _slice(w: Block, n: Node, x: str) -> str:
    """What goes backwards is a slice that goes forwards, turned round: so no end is ever below zero."""
    shape = n.inputs[0].shape
    cuts: list[tuple[int, Dim, Dim, int]] = []
    turned: list[int] = []
    for axis, (at, step, size) in enumerate(zip(n.attrs["starts"], n.attrs["steps"], n.attrs["sizes"], strict=True)):
        if step < 0:
            turned.append(axis)
            at, end, step = at + (size - 1) * step, at + 1, -step
            if size == 0:
                at, end = 0, 0
        else:
            end = at + size * step if size != 0 else at
        if (plain(at), step) != (0, 1) or plain(size) != plain(shape[axis]):
            cuts.append((axis, at, end, step))
    if cuts:
        x = sliced(w, x, cuts)
    if turned:
        ends = w.vector([BEFORE_ALL] * len(turned))
        back = w.vector([-1] * len(turned))
        x = w.node("Slice", x, back, ends, w.vector(turned), back)
    return x


def sliced(w: Block, x: str, cuts: Sequence[tuple[int, Dim, Dim, int]]) -> str:
    """Slices along axes: (axis, start, end, step), which go forwards."""
    axes, starts, ends, steps = zip(*cuts, strict=True)
    return w.node("Slice", x, w.shape(starts), w.shape(ends), w.vector(axes), w.vector(steps))


def _pad(w: Block, n: Node, x: str, fill: str) -> str:
    pads = w.shape((*n.attrs["before"], *n.attrs["after"]))
    mode = n.attrs["mode"]
    return w.node("Pad", x, pads, fill, mode=mode) if mode == "constant" else w.node("Pad", x, pads, mode=mode)


def _pad_takes(w: Block, n: Node) -> bool:
    return n.attrs["mode"] != "wrap" or w.opset >= SINCE["WrapPad"]


def _wrapped(w: Block, n: Node, x: str, fill: str) -> str:
    """Elements at the places before, within and after each axis, modulo its length."""
    for axis, (d, lo, hi) in enumerate(zip(n.inputs[0].shape, n.attrs["before"], n.attrs["after"], strict=True)):
        if lo != 0 or hi != 0:
            places = w.node("Range", w.node("Neg", w.scalar(lo)), w.scalar(d + hi), w.const(1))
            x = w.node("Gather", x, w.node("Mod", places, w.scalar(d)), axis=axis)
    return x


def _concat(w: Block, n: Node, *xs: str) -> str:
    return w.node("Concat", *xs, axis=axis_of(n.attrs["axis"], len(n.shape), n.op))


def _arange(w: Block, n: Node, start: str, step: str) -> str:
    kind = n.dtype.compute
    turns = w.cast(w.node("Range", w.const(0), w.scalar(n.attrs["count"]), w.const(1)), int64, kind)
    first, by = (x.value for x in n.inputs)
    if by is None or by.dtype == object or by.dtype.names or by.item() != 1:
        turns = w.node("Mul", turns, w.cast(step, n.dtype, kind))
    if first is None or first.dtype == object or first.dtype.names or first.item() != 0:
        turns = w.node("Add", turns, w.cast(start, n.dtype, kind))
    return w.cast(turns, kind, n.dtype)


def _gather(w: Block, n: Node, x: str, at: str) -> str:
    return w.node("Gather", x, index(w, n.inputs[1], at), axis=axis_of(n.attrs["axis"], len(n.inputs[0].shape), n.op))


def _gather_elements(w: Block, n: Node, x: str, at: str) -> str:
    return w.node("GatherElements", x, index(w, n.inputs[1], at), axis=axis_of(n.attrs["axis"], len(n.shape), n.op))


def _gather_nd(w: Block, n: Node, x: str, at: str) -> str:
    return w.node("GatherND", x, w.cast(at, n.inputs[1].dtype, int64), batch_dims=n.attrs["batch"])


def _diagonal(w: Block, n: Node, x: str) -> str:
    """Both axes first, as one, of which every (columns + 1)-th element is taken."""
    (given,) = n.inputs
    rank, offset = len(given.shape), n.attrs.get("offset", 0)
    first, second = (axis_of(n.attrs.get(k, d), rank, n.op) for k, d in (("axis1", 0), ("axis2", 1)))
    others = [k for k in range(rank) if k not in (first, second)]
    columns = given.shape[second]
    rest = tuple(given.shape[k] for k in others)
    flat = w.reshape(w.node("Transpose", x, perm=(first, second, *others)), (given.shape[first] * columns, *rest))
    length: Dim = n.shape[-1]
    turns = w.node("Range", w.const(0), w.scalar(length), w.const(1))
    places = w.node("Mul", turns, w.scalar(columns + 1))
    places = w.node("Add", places, w.scalar(max(-offset, 0) * columns + max(offset, 0)))
    found = w.node("Gather", flat, places, axis=0)
    return w.node("Transpose", found, perm=(*range(1, len(others) + 1), 0)) if others else found


def _unfold(w: Block, n: Node, x: str) -> str:
    rank = len(n.inputs[0].shape)
    axis = axis_of(n.attrs["axis"], rank, n.op)
    length, step = n.attrs["length"], n.attrs.get("step", 1)
    if not (isinstance(length, int) and isinstance(step, int)):
        raise CompileError("windows of an open length have no form in ONNX: give the length and the step numbers")
    found = w.node("Gather", x, taps(w, n.shape[axis], length, step, n.attrs.get("dilation", 1)), axis=axis)
    return w.node("Transpose", found, perm=(*range(axis + 1), *range(axis + 2, rank + 1), axis + 1))


def _overlap_add(w: Block, n: Node, x: str) -> str:
    """For each place of a window its elements of all windows, at their steps along the axis, among zeros; then the sum of these."""
    (given,) = n.inputs
    rank, length = len(n.shape), n.attrs["length"]
    axis = axis_of(n.attrs["axis"], rank, n.op)
    window, step, dilation = given.shape[-1], n.attrs.get("step", 1), n.attrs.get("dilation", 1)
    if not (isinstance(window, int) and isinstance(step, int)):
        raise CompileError("windows of an open length have no form in ONNX: give the length and the step numbers")
    kind, count = n.dtype.compute, given.shape[axis]
    y, zero, total = w.cast(x, n.dtype, kind), w.const(0, kind), ""

    def padded(part: str, axes: int, before: Dim, after: Dim) -> str:
        """Zeros along the axis; of a part with `axes` axes."""
        pads = [[pad if k == axis else 0 for k in range(axes)] for pad in (before, after)]
        return w.node("Pad", part, w.shape((*pads[0], *pads[1])), zero)

    for k in range(window):
        part = w.node("Gather", y, w.const(k), axis=rank)
        if step > 1:
            before, behind = given.shape[:axis], given.shape[axis + 1 : -1]
            spread = w.node(
                "Pad",
                w.reshape(part, (*before, count, 1, *behind)),
                w.vector(_behind(rank + 1, axis + 1, step - 1)),
                zero,
            )
            part = w.reshape(spread, (*before, count * step, *behind))
        # Zeros behind the last element may lie beyond the end.
        part = sliced(w, padded(part, rank, k * dilation, length), [(axis, 0, length, 1)])
        total = w.node("Add", total, part) if total else part
    return w.cast(total, kind, n.dtype)


def _behind(rank: int, axis: int, count: int) -> list[int]:
    """The pads of an axis that gets so many elements behind its own."""
    return [count if k == rank + axis else 0 for k in range(2 * rank)]


def _update_slice(w: Block, n: Node, x: str, part: str, *starts: str) -> str:
    """What is before the part, the part, and what is after it, along one axis after the other."""
    given, new, *at = n.inputs
    cuts = [k for k, (d, p) in enumerate(zip(given.shape, new.shape, strict=True)) if plain(d) != plain(p)]
    places = {k: _start(w, at[k], starts[k], given.shape[k] - new.shape[k]) for k in cuts}

    def within(whole: str, left: Sequence[int]) -> str:
        if not left:
            return part
        axis, *rest = left
        start, one = places[axis], w.vector([axis])
        end = w.node("Add", start, w.dim(new.shape[axis]))
        middle = within(w.node("Slice", whole, start, end, one), rest)
        before = w.node("Slice", whole, w.vector([0]), start, one)
        after = w.node("Slice", whole, end, w.dim(given.shape[axis]), one)
        return w.node("Concat", before, middle, after, axis=axis)

    return within(x, cuts)


def _start(w: Block, n: Node, name: str, most: Dim) -> str:
    """A start as a vector of one element, such that the part is within the axis."""
    at = w.node("Reshape", w.cast(name, n.dtype, int64), w.vector([1]))
    return w.node("Min", w.node("Max", at, w.vector([0])), w.dim(most))


def _scatter(op: str, reduction: bool) -> Rule:
    def write(w: Block, n: Node, x: str, part: str, at: str) -> str:
        kind, of_index = n.dtype, n.inputs[2]
        places = w.cast(at, of_index.dtype, int64) if op == "ScatterND" else index(w, of_index, at)
        how = {"reduction": n.attrs["reduction"]} if reduction else {}
        along = {} if op == "ScatterND" else {"axis": axis_of(n.attrs["axis"], len(n.shape), n.op)}
        wide = kind.compute if reduction else kind
        made = w.node(op, w.cast(x, kind, wide), places, w.cast(part, kind, wide), **along, **how)
        return w.cast(made, wide, kind)

    if not reduction:
        return Rule(write)
    return Rule(write, lambda w, n: w.opset >= SCATTER_REDUCTIONS[n.attrs["reduction"]])


def _triangle(upper: int) -> Rule:
    def write(w: Block, n: Node, x: str) -> str:
        return w.typed("Trilu", n.dtype, x, w.const(n.attrs.get("diagonal", 0)), upper=upper)

    def takes(w: Block, n: Node) -> bool:
        return isinstance(n.attrs.get("diagonal", 0), int) and w.carrier("Trilu", n.dtype) is not None

    return Rule(write, takes)


RESIZE: Final = {
    "coordinates": "coordinate_transformation_mode", "cubic": "cubic_coeff_a", "exclude_outside": "exclude_outside",
    "extrapolation": "extrapolation_value", "mode": "mode", "nearest": "nearest_mode",
}  # fmt: skip
"""An attribute of the row resize ↦ that of ONNX."""


def _resize(w: Block, n: Node, x: str) -> str:
    attrs = dict(n.attrs)
    facts = {RESIZE[k]: int(v) if isinstance(v, bool) else v for k, v in attrs.items() if k in RESIZE}
    if attrs.get("antialias"):
        facts["antialias"] = 1
    roi = w.const(list(attrs["roi"]), float32) if attrs.get("roi") else ""
    if attrs.get("scales"):
        return w.node("Resize", x, roi, w.const(list(attrs["scales"]), float32), **facts)
    return w.node("Resize", x, roi, "", w.shape(attrs["sizes"]), **facts)


def _resize_takes(w: Block, n: Node) -> bool:
    """Whether engines resample so: planes of pictures, or cubes."""
    attrs, (given,) = n.attrs, n.inputs
    newer = (
        (attrs.get("antialias", False), "ResizeAntialias"),
        (attrs.get("coordinates") == "half_pixel_symmetric", "ResizeSymmetric"),
    )
    if any(used and w.opset < SINCE[since] for used, since in newer):
        return False
    if (
        len(attrs["sizes"]) != len(given.shape)
        or not given.dtype.is_float
        or attrs.get("coordinates") == "tf_half_pixel_for_nn"
    ):
        return False
    moved = [k for k, (d, e) in enumerate(zip(given.shape, attrs["sizes"], strict=True)) if plain(d) != plain(e)]
    most = {"nearest": 8, "linear": 3, "cubic": 2}[attrs.get("mode", "nearest")]
    rank = len(given.shape)
    if attrs.get("mode") == "cubic" and rank != 4:
        return False
    return len(moved) <= most and (attrs.get("mode", "nearest") == "nearest" or all(k >= rank - most for k in moved))


SAMPLES: Final = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
"""A mode of the row grid_sample ↦ its name before opset 20."""


def _grid_sample(w: Block, n: Node, x: str, grid: str) -> str:
    mode = n.attrs.get("mode", "linear")
    older = w.opset < SINCE["GridSampleLinear"]
    return w.node(
        "GridSample", x, grid, mode=SAMPLES[mode] if older else mode, padding_mode=n.attrs.get("padding", "zeros"),
        align_corners=int(n.attrs.get("align_corners", False)),
    )  # fmt: skip


def _grid_sample_takes(w: Block, n: Node) -> bool:
    spaces = len(n.shape) - 2
    least = SINCE["GridSample"] if spaces == 2 else SINCE["GridSampleLinear"]
    mode = n.attrs.get("mode", "linear")
    return (
        w.opset >= least
        and not n.attrs.get("by_element", False)
        and mode in SAMPLES
        and (spaces == 2 or mode != "cubic")
    )


def _has_numbers(w: Block, n: Node) -> bool:
    """Whether a node reads a constant, which may not hold sizes."""
    value = n.inputs[0].value
    return value is not None and value.dtype != object


def _turned(w: Block, n: Node) -> str:
    """A constant is transposed here: what reads a file's products, to quantise them for example, looks for weights beside them."""
    value = n.inputs[0].value
    assert value is not None
    return w.constants.add(value.transpose(n.attrs["perm"]), "weight")


RULES: Final[Mapping[str, Sequence[Rule]]] = {
    "arange": (Rule(_arange),),
    "concat": (Rule(_concat),),
    "diagonal": (Rule(_diagonal),),
    "expand": (Rule(lambda w, n, x: w.node("Expand", x, w.shape(n.shape))),),
    "gather": (Rule(_gather),),
    "gather_elements": (Rule(_gather_elements),),
    "gather_nd": (Rule(_gather_nd),),
    "grid_sample": (Rule(_grid_sample, _grid_sample_takes),),
    "overlap_add": (Rule(_overlap_add),),
    "pad": (Rule(_pad, _pad_takes), Rule(_wrapped, lambda w, n: n.attrs["mode"] == "wrap")),
    "recomputed": (Rule(lambda w, n, x, after: x),),
    "reshape": (Rule(lambda w, n, x: w.reshape(x, n.shape)),),
    "resize": (Rule(_resize, _resize_takes),),
    "scatter_elements": (_scatter("ScatterElements", False),),
    "scatter_elements_reduce": (_scatter("ScatterElements", True),),
    "scatter_nd": (_scatter("ScatterND", False),),
    "scatter_nd_reduce": (_scatter("ScatterND", True),),
    "slice": (Rule(_slice),),
    "transpose": (
        Rule(_turned, _has_numbers, lambda n: ()),
        Rule(lambda w, n, x: w.node("Transpose", x, perm=tuple(n.attrs["perm"]))),
    ),
    "tril": (_triangle(0),),
    "triu": (_triangle(1),),
    "unfold": (Rule(_unfold),),
    "update_slice": (Rule(_update_slice),),
}
