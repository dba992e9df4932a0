"""Methods that move elements or change the shape."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, SupportsIndex

import numpy as np

from ...dtypes import DType, bool_
from ...errors import InputError, OutOfRange, ShapeError
from ...ir.scalar import Number
from ...ops import ROWS
from ...shapes import Size, axis_of, plain, same_form, show, whole
from ..arithmetic import placed
from ..calls import apply_row
from ..nodes import indexing, shaping
from ..nodes.shaping import Axis, known_length, unpacked
from ..numpy_fallback import elements
from ..tensor import Tensor, TensorLike, apply
from .attach import alias, method

PAD_MODES: Final = {"replicate": "edge", "circular": "wrap"}
"""PyTorch's modes of padding ↦ ours."""


@method
def reshape(x: Tensor, *shape: Any) -> Tensor:
    """The same elements in row-major order under another shape, in which one dimension may be -1."""
    wanted = shaping.given_sizes(shape, "reshape")
    return apply(lambda b, x: b.reshape(x, shape=shaping.inferred_shape(x.shape, wanted)), x)


@method
def flatten(x: Tensor, start: int = 0, end: int = -1) -> Tensor:
    """The axes from start to end (inclusive) merged into one."""
    return x.reshape(*shaping.flattened(x.shape, start, end))


@method
def squeeze(x: Tensor, axis: Axis = None) -> Tensor:
    """The tensor without axes of length 1: without those given, or without all of them. Longer ones stay."""
    if axis is not None:
        axis = [
            a for a in shaping.chosen_axes(axis, x.ndim, "squeeze") if isinstance(x.shape[a], Size) or x.shape[a] == 1
        ]
    return x.reshape(*shaping.squeezed(x.shape, axis))


@method
def unsqueeze(x: Tensor, axis: int) -> Tensor:
    """The tensor with a new axis of length 1 at this position of the result."""
    at = axis_of(axis, x.ndim + 1, "unsqueeze")
    return x.reshape(*x.shape[:at], 1, *x.shape[at:])


@method
def permute(x: Tensor, *axis: Any) -> Tensor:
    """The axes in another order."""
    axes = tuple(axis_of(p, x.ndim, "permute") for p in shaping.given_sizes(axis, "permute"))
    return apply_row(ROWS["transpose"], (x,), perm=axes)


@method
def transpose(x: Tensor, axis0: Any = None, axis1: int | None = None, *more: int) -> Tensor:
    """Two axes exchanged, as in transpose(1, 2); the axes in the order of a tuple; reversed if none is given."""
    if axis0 is None:
        return x.permute(range(x.ndim)[::-1])
    if axis1 is None:
        return x.permute(axis0)
    return x.permute(axis0, axis1, *more) if more else x.swapaxes(axis0, axis1)


@method
@property
def T(x: Tensor) -> Tensor:
    """All axes in reverse order."""
    return x.transpose()


@method
@property
def mT(x: Tensor) -> Tensor:
    """Every matrix of a stack transposed: the last two axes are swapped."""
    if x.ndim < 2:
        raise ShapeError(f"mT: got {show(x.shape)}, expected at least two axes")
    return x.swapaxes(-2, -1)


@method
def broadcast_to(x: Tensor, *shape: Any) -> Tensor:
    """The tensor repeated along axes of length 1, and along new leading axes."""
    return apply_row(ROWS["expand"], (x,), shape=shaping.given_sizes(shape, "broadcast_to"))


@method
def expand(x: Tensor, *shape: Any) -> Tensor:
    """Like broadcast_to; -1 keeps a dimension."""
    return x.broadcast_to(shaping.expanded(x.shape, shaping.given_sizes(shape, "expand")))


@method
def pad(x: Tensor, width: int | Sequence[Any], mode: str = "constant", value: Number = 0) -> Tensor:
    """The tensor with elements added before and after its axes. width: one number for all axes, (before, after) for each
    axis, or PyTorch's flat sequence of numbers, which begins with the last axis; negative ones remove elements. mode:
    "constant" (of `value`), "reflect", "edge" (or "replicate") or "wrap" (or "circular")."""
    before, after = shaping.pad_widths(width, x.ndim)
    if any(isinstance(n, int) and n < 0 for n in (*before, *after)):
        x, before, after = _cropped(x, before, after)
    return apply_row(ROWS["pad"], (x, value), before=before, after=after, mode=PAD_MODES.get(mode, mode))


def _cropped(x: Tensor, before: Sequence[Any], after: Sequence[Any]) -> tuple[Tensor, list[Any], list[Any]]:
    """The tensor without the elements that negative widths remove, and the widths without those."""
    key = tuple(
        slice(-lo if isinstance(lo, int) and lo < 0 else None, hi if isinstance(hi, int) and hi < 0 else None)
        for lo, hi in zip(before, after, strict=True)
    )
    short = any(isinstance(d, int) and d + lo + hi < 0 for d, lo, hi in zip(x.shape, before, after, strict=True))
    if short:
        raise ShapeError(
            f"pad: {show(x.shape)} with ({show(tuple(before))}, {show(tuple(after))}) would have a negative size"
            "; expected that not more is taken away than is there"
        )
    left, right = ([0 if isinstance(n, int) and n < 0 else n for n in side] for side in (before, after))
    return x[key], left, right


# parts


@method
def chunk(x: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Up to `chunks` pieces of equal size along an axis; the last may be smaller."""
    axis = axis_of(axis, x.ndim, "chunk")
    instead = f"; use tensor_split({chunks}, {axis}), or split with the lengths"
    d = known_length(x.shape, axis, "chunk", f", so that the number of pieces is open{instead}")
    chunks = whole(chunks, "chunk", "the number of pieces")
    if chunks < 1:
        raise ShapeError(f"chunk: got {chunks} chunks, expected at least 1")
    return x.split(max(1, -(-d // chunks)), axis) if d else (x,) * chunks


@method
def unbind(x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without it."""
    at = axis_of(axis, x.ndim, "unbind")
    instead = "; use methods that work along the axis"
    d = known_length(x.shape, at, "unbind", f", so that Python cannot take one slice after another{instead}")
    return tuple(x.select(at, i) for i in range(d))


@method
def select(x: Tensor, axis: int, index: int) -> Tensor:
    """The slice at an index along an axis, without the axis."""
    return x[(slice(None),) * axis_of(axis, x.ndim, "select") + (index,)]


@method
def narrow(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """The elements from `start` to `start + length` along an axis. A negative number as start counts from the end."""
    at = axis_of(axis, x.ndim, "narrow")
    start, length = whole(start, "narrow", "the start"), whole(length, "narrow", "the length")
    count = x.shape[at]
    begin: Any = start + count if isinstance(start, int) and start < 0 else start
    if all(isinstance(n, int) for n in (count, begin, length)) and not 0 <= begin <= begin + length <= count:
        raise OutOfRange(
            f"narrow: got {length} elements from {start}, of the {count} along the axis {axis}; expected a part of them"
        )
    return x[(slice(None),) * at + (slice(begin, begin + length),)]


@method
def unfold(x: Tensor, axis: int, size: int, step: int = 1) -> Tensor:
    """All windows of `size` elements along an axis, `step` apart; their elements are a new last axis."""
    return apply_row(ROWS["unfold"], (x,), axis=axis, length=size, step=step)


# order of axes and elements


@method
def movedim(x: Tensor, source: Axis, destination: Axis) -> Tensor:
    """Axes moved to other positions; the others keep their order."""
    moved, to = ([a] if isinstance(a, SupportsIndex) else list(a or ()) for a in (source, destination))
    if len(moved) != len(to):
        raise ShapeError(f"movedim: {len(moved)} axes to {len(to)} positions; expected as many of both")
    of = {axis_of(t, x.ndim, "movedim"): axis_of(m, x.ndim, "movedim") for m, t in zip(moved, to, strict=True)}
    if len(of) != len(moved) or len({*of.values()}) != len(moved):
        raise ShapeError(f"movedim: from {source} to {destination}: an axis is named twice; name each once")
    rest = iter(i for i in range(x.ndim) if i not in of.values())
    return x.permute([of[i] if i in of else next(rest) for i in range(x.ndim)])


alias("moveaxis", movedim)


@method
def swapaxes(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """The tensor with two axes exchanged."""
    order = list(range(x.ndim))
    i, j = (axis_of(a, x.ndim, "swapaxes") for a in (axis0, axis1))
    order[i], order[j] = j, i
    return x.permute(order)


alias("swapdims", swapaxes)


@method
def t(x: Tensor) -> Tensor:
    """A matrix transposed; a vector as it is."""
    if x.ndim > 2:
        raise ShapeError(f"t: got {show(x.shape)}, expected at most two axes; use transpose")
    return x.transpose()


@method
def flip(x: Tensor, *axis: Any) -> Tensor:
    """The elements in reverse order along axes (all, if none is given)."""
    axes = shaping.chosen_axes(None if axis in ((), (None,)) else unpacked(axis), x.ndim, "flip")
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))] if axes else x


@method
def roll(x: Tensor, shifts: int | Sequence[int], axis: Axis = None) -> Tensor:
    """Elements moved along axes; those that leave at one end come back at the other. Without axes, in the flat tensor."""
    if axis is None:
        if not isinstance(shifts, (SupportsIndex, Size)):
            raise InputError(
                f"roll: got the shifts {shifts} without axes; name an axis for each with dims=, or give one shift"
            )
        return x.flatten().roll(shifts, 0).reshape(x.shape)
    axes = [axis] if isinstance(axis, SupportsIndex) else list(axis)
    by = [shifts] * len(axes) if isinstance(shifts, (SupportsIndex, Size)) else list(shifts)
    by = [s if isinstance(s, Size) else operator.index(s) for s in by]
    if len(by) != len(axes):
        raise InputError(f"roll: {len(by)} shifts for {len(axes)} axes; give one for each")
    for a, s in zip(axes, by, strict=True):
        at = axis_of(a, x.ndim, "roll")
        s, d = plain(s), plain(x.shape[at])
        s = s % d if isinstance(d, int) and isinstance(s, int) and d else s
        if isinstance(s, Size) or (isinstance(d, Size) and abs(s) > 1):
            x = apply(lambda b, n: indexing.rolled(b, n, s, at), x)  # noqa: B023
        elif s and d != 0:
            whole = (slice(None),) * at
            parts = x[(*whole, slice(-s, None))], x[(*whole, slice(None, -s))]
            x = apply(lambda b, *n: b.concat(*n, axis=at), *parts)  # noqa: B023 (called at once)
    return x


@method
def repeat(x: Tensor, *repeats: Any) -> Tensor:
    """The tensor repeated as a whole along each axis; more numbers than axes add leading axes."""
    by = shaping.given_sizes(repeats, "repeat")
    if len(by) < x.ndim:
        raise ShapeError(f"repeat: {len(by)} numbers for {x.ndim} axes; use tile, or give one for each")
    return x.tile(by)


@method
def tile(x: Tensor, *axis: Any) -> Tensor:
    """The tensor repeated as a whole along its last axes."""
    by = shaping.given_sizes(axis, "tile")
    by = (1,) * (x.ndim - len(by)) + tuple(by)
    old = (1,) * (len(by) - x.ndim) + x.shape
    pairs = [d for n, o in zip(by, old, strict=True) for d in (n, o)]
    ones = x.reshape([d for o in old for d in (1, o)])
    return ones.broadcast_to(pairs).reshape([n * o for n, o in zip(by, old, strict=True)])


@method
def repeat_interleave(
    x: Tensor, repeats: int | Sequence[int] | Tensor | None = None, axis: int | None = None
) -> Tensor:
    """Every element, or every slice along an axis, repeated by itself. repeats: a number, or one for each. Without it, the
    place of each element of a vector, repeated that many times."""
    if repeats is None:
        return x.new_tensor(np.arange(len(x))).repeat_interleave(x)
    if axis is None:
        return x.flatten().repeat_interleave(repeats, 0)
    at = axis_of(axis, x.ndim, "repeat_interleave")
    if isinstance(repeats, (int, Size)):
        d = x.shape[at]
        wide = x.unsqueeze(at + 1).broadcast_to(*x.shape[: at + 1], repeats, *x.shape[at + 1 :])
        return wide.reshape(*x.shape[:at], d * repeats, *x.shape[at + 1 :])
    counts = elements(repeats, "repeat_interleave") if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.dtype.kind not in "iu":
        raise InputError(
            f"repeat_interleave: got the repeats {repeats!r:.80}, expected an integer, or one for each element"
        )
    return x.take(np.repeat(np.arange(len(x) if at == 0 else operator.index(x.shape[at])), counts), at)  # pyright: ignore


# matrices


@method
def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and below a diagonal of each matrix; zeros elsewhere."""
    return apply_row(ROWS["tril"], (x,), diagonal=whole(diagonal, "tril", "the diagonal"))


@method
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and above a diagonal of each matrix; zeros elsewhere."""
    return apply_row(ROWS["triu"], (x,), diagonal=whole(diagonal, "triu", "the diagonal"))


@method
def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements with equal coordinates along two axes (axis2 − axis1 = offset), along a new last axis."""
    offset = whole(offset, "diagonal", "the offset")
    return apply_row(ROWS["diagonal"], (x,), offset=offset, axis1=axis1, axis2=axis2)


@method
def diag_embed(x: Tensor, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """Matrices, of these axes of the result, with the vectors along the last axis on a diagonal; zeros elsewhere."""
    n = x.shape[-1] + abs(offset)
    wide = x.pad([(0, 0)] * (x.ndim - 1) + [(max(offset, 0), max(-offset, 0))])
    made = wide.unsqueeze(-2).broadcast_to(*x.shape[:-1], n, n).tril(offset).triu(offset)
    return made if (axis1, axis2) == (-2, -1) else made.movedim((-2, -1), (axis1, axis2))


@method
def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if x.ndim == 2:
        return x.diagonal(diagonal)
    if x.ndim != 1:
        raise ShapeError(f"diag: got {show(x.shape)}, expected a vector or a matrix")
    return x.diag_embed(diagonal)


@method
def fliplr(x: Tensor) -> Tensor:
    """The columns (axis 1) in reverse order."""
    return x.flip(1)


@method
def flipud(x: Tensor) -> Tensor:
    """The rows (axis 0) in reverse order."""
    return x.flip(0)


@method
def rot90(x: Tensor, k: int = 1, axis: Sequence[int] = (0, 1)) -> Tensor:
    """The plane of two axes turned k times by 90 degrees, from the first towards the second."""
    first, second = axis
    turned = (x, x.transpose(first, second).flip(first), x.flip(first, second), x.flip(first).transpose(first, second))
    return turned[k % 4]


@method
def unflatten(x: Tensor, axis: int, sizes: Sequence[Any]) -> Tensor:
    """An axis divided into several; one of the sizes may be -1."""
    at = axis_of(axis, x.ndim, "unflatten")
    return x.reshape(*x.shape[:at], *shaping.inferred_shape((x.shape[at],), tuple(sizes)), *x.shape[at + 1 :])


@method
def diff(
    x, n: int = 1, axis: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:  # fmt: skip
    """The differences between neighbours along an axis, taken n times; of bools, whether they differ."""
    at = axis_of(axis, x.ndim, "diff")
    parts = [part.cast(x.dtype) for part in (prepend, x, append) if part is not None]
    y = apply(lambda b, *nodes: b.concat(*nodes, axis=at), *parts) if len(parts) > 1 else x
    whole = (slice(None),) * at
    for _ in range(n):
        high, low = y[(*whole, slice(1, None))], y[(*whole, slice(None, -1))]
        y = high ^ low if y.dtype is bool_ else high - low
    return y


@method
def cross(x: Tensor, other: TensorLike, axis: int | None = None) -> Tensor:
    """The cross products of vectors of three elements along an axis: by default the first of this length."""
    given = placed(x, other)
    axis = _first_of_three(*given) if axis is None else axis
    if not all(same_form(y.shape[axis_of(axis, y.ndim, "cross")], 3) for y in given):
        raise ShapeError(f"cross: axis {axis} of {' and '.join(show(y.shape) for y in given)}, expected three elements")
    a, b = (y.movedim(axis, -1) for y in given)
    return (a.roll(-1, -1) * b.roll(1, -1) - a.roll(1, -1) * b.roll(-1, -1)).movedim(-1, axis)


def _first_of_three(x: Tensor, y: Tensor) -> int:
    """The first axis of three elements that both tensors have, counted from the last one."""
    shapes = f"{show(x.shape)} and {show(y.shape)}"
    for axis in range(-min(x.ndim, y.ndim), 0):
        lengths = {plain(x.shape[axis]), plain(y.shape[axis])}
        if lengths == {3}:
            return axis
        if not all(isinstance(d, int) for d in lengths):
            raise ShapeError(
                f"cross: whether an axis of {shapes} before the last has three elements is open; pass dim="
            )
    raise ShapeError(
        f"cross: no axis of {shapes} has three elements; expected vectors of three: give their axis with dim="
    )


# PyTorch's other names


@method
def view(x: Tensor, *shape: Any) -> Tensor:
    """`reshape`."""
    if len(shape) == 1 and isinstance(shape[0], (str, DType, type)):
        raise InputError(
            f"view: got {shape[0]!s:.80}, expected a shape; x.bit_cast(to=dtype) reads the bits as another dtype"
        )
    return x.reshape(*shape)


@method
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements under the shape of another tensor."""
    return x.reshape(other.shape)


alias("reshape_as", view_as)


@method
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """The tensor repeated to the shape of another."""
    return x.broadcast_to(other.shape)


@method
def ravel(x: Tensor) -> Tensor:
    """The elements as a vector."""
    return x.reshape(-1)


@method
def tensor_split(x: Tensor, sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """So many pieces along an axis, of sizes that differ by one at most; or pieces that begin at given places."""
    at = axis_of(axis, x.ndim, "tensor_split")
    d = x.shape[at]
    if not isinstance(sections, Iterable):
        sections = operator.index(whole(sections, "tensor_split", "the number of pieces"))
        if sections < 1:
            raise ShapeError(f"tensor_split: got {sections} pieces, expected at least 1")
        return x.split([(d + i) // sections for i in range(sections)][::-1], at)
    d = known_length(x.shape, at, "tensor_split", "; use slices")
    ends = [0, *(min(max(p + d if p < 0 else p, 0), d) for p in sections), d]
    return tuple(x.narrow(at, a, max(0, b - a)) for a, b in pairwise(ends))


@method
def kron(x: Tensor, other: Tensor) -> Tensor:
    """Kronecker's product: each element of x times the whole other tensor."""
    rank = max(x.ndim, other.ndim)
    own, theirs = ((1,) * (rank - y.ndim) + tuple(y.shape) for y in (x, other))
    left = x.reshape([d for n in own for d in (n, 1)])
    right = other.reshape([d for n in theirs for d in (1, n)])
    return (left * right).reshape([a * b for a, b in zip(own, theirs, strict=True)])
