"""The rows that move elements: each output element is an input element, found by its coordinates. Only arange, which
numbers places, computes values.

Attributes are complete: perm names every axis, slices give start, step and size for every axis. Shapes may hold Sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...dtypes import NUMBERS, DType, int32, int64
from ...errors import ShapeError
from ...ir import affine, scalar
from ...ir.affine import flatten, unflatten
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const, select, size
from ...shapes import Dim, Shape, Size, at_most_one, axis_of, broadcast, ceildiv, dim_max, product, require, same, show
from ..kinds import Read, Shaped, View, register, sum_to

PAD_MODES: Final = ("constant", "reflect", "edge", "wrap")


def _numbers(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(d) for d in shape)


# --- reshape, transpose, expand --------------------------------------------------------------------------------------


def _reshape_shape(x: Shaped, shape: Shape) -> Shape:
    if not same(product(x.shape), product(shape), "reshape"):
        raise ShapeError(
            f"reshape: {show(x.shape)} has {product(x.shape)} elements, {show(shape)} has {product(shape)}"
        )
    return shape


def _reshape_forward(coords: Sequence[Expr], x: Shaped, shape: Shape) -> Sequence[Expr]:
    return unflatten(flatten(coords, x.shape), shape)


def _transpose_shape(x: Shaped, perm: Sequence[int]) -> Shape:
    if sorted(perm) != list(range(len(x.shape))):
        raise ShapeError(
            f"transpose: perm {tuple(perm)} does not name each of the {len(x.shape)} axes of {show(x.shape)} once"
        )
    return tuple(x.shape[p] for p in perm)


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes this one."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def _expand_shape(x: Shaped, shape: Shape) -> Shape:
    if broadcast([x.shape, shape], "expand") != tuple(shape):
        raise ShapeError(f"expand: {show(x.shape)} does not broadcast to {show(shape)}")
    return shape


def project(coords: Sequence[Expr], shape: Shape) -> list[Expr]:
    """Coordinates of a broadcast result as coordinates of an input: the last ones, 0 along axes that are `at_most_one`."""
    mine = list(coords)[len(coords) - len(shape) :]
    return [const(0, int32) if at_most_one(d) else c for c, d in zip(mine, shape, strict=True)]


# --- slice, pad, concat ----------------------------------------------------------------------------------------------


def _slice_shape(x: Shaped, starts: Sequence[Dim], steps: Sequence[int], sizes: Shape) -> Shape:
    if not len(starts) == len(steps) == len(sizes) == len(x.shape):
        raise ShapeError(f"slice: starts, steps and sizes must each name all {len(x.shape)} axes of {show(x.shape)}")
    for axis, (d, at, step, count) in enumerate(zip(x.shape, starts, steps, sizes, strict=True)):
        if not (isinstance(d, int) and isinstance(at, int) and isinstance(count, int)):
            _require_inside(d, at, step, count, f"slice: axis {axis} of {show(x.shape)} from {at} on, {count} elements")
        elif count and not (0 <= at < d and 0 <= at + (count - 1) * step < d):
            raise ShapeError(
                f"slice: axis {axis} of {show(x.shape)} has no elements {at}, {at} + {step}, … ({count} of them)"
            )
    return tuple(sizes)


def _require_inside(d: Dim, at: Dim, step: int, count: Dim, what: str) -> None:
    """Let a run check that a slice is within an axis, where its start or its length is computed."""
    require(count, f"{what}: expected a length of 0 or more")
    if not isinstance(at, Size) or not (isinstance(count, int) and count):
        return
    for place in (at, at + (count - 1) * step):
        require(place, f"{what}: expected a start within the axis")
        require(d - 1 - place, f"{what}: expected an end within the axis")


def _slice_value(
    coords: Sequence[Expr], read: Read, x: Shaped, starts: Sequence[Dim], steps: Sequence[int], sizes: Shape
) -> Expr:
    return read(0, [c * step + size(at) for c, at, step in zip(coords, starts, steps, strict=True)])


def _slice_evaluate(
    xp: ArrayAdapter, x: Array, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]
) -> Array:
    cuts = []
    for at, step, count in zip(starts, steps, sizes, strict=True):
        stop = at + step * (count - 1) + (1 if step > 0 else -1)
        cuts.append(slice(at, None if stop < 0 else stop, step) if count else slice(0, 0))
    return x[tuple(cuts)] if cuts else x


def _slice_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, starts: Any, steps: Any, sizes: Any) -> list[Any]:
    (x,) = inputs
    starts = tuple(0 if n == 0 else at for at, n in zip(starts, sizes, strict=True))
    flip = [s < 0 for s in steps]
    if any(flip):  # a slice with a negative step is a flipped slice with a positive step
        g = b.slice(
            g,
            starts=tuple(d - 1 if f else 0 for d, f in zip(y.shape, flip, strict=True)),
            steps=tuple(-1 if f else 1 for f in flip),
            sizes=y.shape,
        )
        starts = tuple(at + (n - 1) * s if f else at for at, n, s, f in zip(starts, sizes, steps, flip, strict=True))
    strides = [abs(s) for s in steps]
    if any(s > 1 for s in strides):  # put zeros between the elements: pad a new axis behind each axis
        zero = b.const(0, g.dtype)
        g = b.reshape(g, shape=tuple(d for n in y.shape for d in (n, 1)))
        g = b.pad(
            g, zero, before=(0,) * len(g.shape), after=tuple(e for s in strides for e in (0, s - 1)), mode="constant"
        )
        g = b.reshape(g, shape=tuple(n * s for n, s in zip(y.shape, strides, strict=True)))
        spread = tuple(0 if n == 0 else (n - 1) * s + 1 for n, s in zip(y.shape, strides, strict=True))
        g = b.slice(g, starts=(0,) * len(strides), steps=(1,) * len(strides), sizes=spread)
    after = tuple(d - at - n for d, at, n in zip(x.shape, starts, g.shape, strict=True))
    return [b.pad(g, b.const(0, g.dtype), before=tuple(starts), after=after, mode="constant")]


def _pad_shape(x: Shaped, fill: Shaped, before: Shape, after: Shape, mode: str) -> Shape:
    if mode not in PAD_MODES:
        raise ShapeError(f"pad: mode {mode!r}, expected one of {', '.join(PAD_MODES)}")
    if fill.shape != ():
        raise ShapeError(f"pad: the fill value must be a scalar, got shape {show(fill.shape)}")
    if not len(before) == len(after) == len(x.shape):
        raise ShapeError(f"pad: before and after must name all {len(x.shape)} axes of {show(x.shape)}")
    for axis, (d, lo, hi) in enumerate(zip(x.shape, before, after, strict=True)):
        if any(isinstance(v, int) and v < 0 for v in (lo, hi)):
            raise ShapeError(f"pad: axis {axis} has a negative pad ({lo}, {hi}); use slice to crop")
        if mode == "reflect":
            text = f"pad: axis {axis} of {show(x.shape)} is too short to reflect ({lo}, {hi}), expected at most {d} − 1"
            for v in (lo, hi):
                require(dim_max(d - 1, 0) - v, text)
        if mode != "constant" and (lo != 0 or hi != 0):
            require(d - 1, f"pad: axis {axis} of {show(x.shape)} is empty: nothing to {mode}")
    return tuple(d + lo + hi for d, lo, hi in zip(x.shape, before, after, strict=True))


def _pad_value(
    coords: Sequence[Expr], read: Read, x: Shaped, fill: Shaped, before: Shape, after: Shape, mode: str
) -> Expr:
    inside: list[Expr] = []
    source: list[Expr] = []
    for c, d, lo, hi in zip(coords, x.shape, before, after, strict=True):
        if lo == 0 and hi == 0:
            source.append(c)
            continue
        c = c - size(lo)
        last = size(d - 1)
        if mode == "constant":
            inside += [c >= 0] * (lo != 0) + [c < size(d)] * (hi != 0)
        elif mode == "reflect":
            c = select(c < 0, -c, select(c > last, last * 2 - c, c))
        elif mode == "wrap":
            turns = ceildiv(lo, d) if isinstance(lo, int) and isinstance(d, int) else lo
            c = scalar.rem(c + size(turns * d), size(d))
        source.append(affine.clamp(c, d))
    if not inside:
        return read(0, source)
    condition = inside[0]
    for part in inside[1:]:
        condition = condition & part
    if any(d == 0 for d in x.shape):  # the input is empty: there is no element to read
        return read(1, ())
    return select(condition, read(0, source), read(1, ()))


def _pad_evaluate(
    xp: ArrayAdapter, x: Array, fill: Array, before: Sequence[int], after: Sequence[int], mode: str
) -> Array:
    lengths = list(zip(before, x.shape, after, strict=True))
    if mode == "constant":
        room = xp.full([lo + d + hi for lo, d, hi in lengths], fill, xp.dtype(x))
        return xp.put(room, [slice(lo, lo + d) for lo, d, _ in lengths], x, over=True)
    for axis, (lo, d, hi) in enumerate(lengths):
        if lo or hi:
            ends = [[_source(i, d, mode) for i in places] for places in (range(-lo, 0), range(d, d + hi))]
            head, tail = (xp.take(x, xp.asarray(end, int64), axis=axis) for end in ends)
            x = xp.concat((head, x, tail), axis=axis)
    return x


def _source(place: int, d: int, mode: str) -> int:
    """The element of an axis of length d that is repeated at a place before, within or after it."""
    if mode == "wrap":
        return place % d
    if mode == "reflect":
        place = abs(place) if place < d else 2 * (d - 1) - place
    return min(max(place, 0), d - 1)


def _pad_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, before: Any, after: Any, mode: str) -> list[Any]:
    x, _fill = inputs
    if mode == "constant":
        dx = b.slice(g, starts=tuple(before), steps=(1,) * len(x.shape), sizes=x.shape)
        return [dx, b.sub(sum_to(b, g, ()), sum_to(b, dx, ()))]
    for axis, (d, lo, hi) in enumerate(zip(x.shape, before, after, strict=True)):  # each axis is a gather
        if lo == 0 and hi == 0:
            continue
        source = b.pad(numbered(b, d), b.const(0, int32), before=(lo,), after=(hi,), mode=mode)
        one = b.expand(b.const(0, g.dtype), shape=(*g.shape[:axis], d, *g.shape[axis + 1 :]))
        g = b.vjp(b.gather(one, source, axis=axis), one, g)
    return [g, None]


def _concat_shape(*xs: Shaped, axis: int) -> Shape:
    axis = axis_of(axis, len(xs[0].shape), "concat")
    first = xs[0].shape
    for x in xs[1:]:
        if len(x.shape) != len(first) or any(
            not same(a, b, "concat") for i, (a, b) in enumerate(zip(first, x.shape, strict=True)) if i != axis
        ):
            raise ShapeError(f"concat: the shapes {', '.join(show(n.shape) for n in xs)} differ outside axis {axis}")
    total: Dim = 0
    for x in xs:
        total = total + x.shape[axis]
    return tuple(total if i == axis else d for i, d in enumerate(first))


def _concat_value(coords: Sequence[Expr], read: Read, *xs: Shaped, axis: int) -> Expr:
    axis = axis_of(axis, len(coords), "concat")
    end: Dim = 0
    parts: list[tuple[Dim, Expr]] = []
    for k, x in enumerate(xs):
        d = x.shape[axis]
        if d != 0:
            at = affine.clamp(coords[axis] - size(end), d)
            parts.append((end + d, read(k, [at if i == axis else c for i, c in enumerate(coords)])))
        end = end + d
    if not parts:  # the result is empty: its kernel computes no element, but a target must be able to print it
        return const(0, xs[0].dtype.compute)
    value = parts[-1][1]
    for limit, part in reversed(parts[:-1]):
        value = select(coords[axis] < size(limit), part, value)
    return value


def _concat_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int) -> list[Any]:
    axis = axis_of(axis, len(y.shape), "concat")
    out: list[Any] = []
    at: Dim = 0
    for x in inputs:
        starts = tuple(at if i == axis else 0 for i in range(len(y.shape)))
        out.append(b.slice(g, starts=starts, steps=(1,) * len(starts), sizes=x.shape))
        at = at + x.shape[axis]
    return out


# --- arange ----------------------------------------------------------------------------------------------------------


def _arange_shape(start: Shaped, step: Shaped, count: Dim) -> Shape:
    if start.shape != () or step.shape != ():
        raise ShapeError(
            f"arange: start and step must be scalars, got shapes {show(start.shape)} and {show(step.shape)}"
        )
    return (count,)


def _arange_value(coords: Sequence[Expr], read: Read, start: Shaped, step: Shaped, count: Dim) -> Expr:
    first = read(0, ())
    return scalar.wrap(first + scalar.cast(coords[0], first.dtype) * read(1, ()), start.dtype)


def _arange_evaluate(xp: ArrayAdapter, start: Array, step: Array, count: int) -> Array:
    kind = xp.dtype(start)
    turns = xp.cast(xp.arange(count, int32), kind.compute)
    return xp.cast(xp.cast(start, kind.compute) + turns * xp.cast(step, kind.compute), kind)


def _arange_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, count: Dim) -> list[Any]:
    turns = b.cast(numbered(b, count), to=g.dtype)
    return [sum_to(b, g, ()), sum_to(b, b.mul(g, turns), ())]


def numbered(b: Any, count: Dim, kind: DType = int32) -> Any:
    """0, 1, … count − 1."""
    return b.arange(b.const(0, kind), b.const(1, kind), count=count)


def numbered_along(b: Any, shape: Shape, axis: int, kind: DType = int32) -> Any:
    """0, 1, … along an axis of a shape; of length 1 along the others."""
    return b.reshape(numbered(b, shape[axis], kind), shape=tuple(d if i == axis else 1 for i, d in enumerate(shape)))


def nearest_index(b: Any, index: Any, d: Dim) -> Any:
    """int32 indices, each of them beyond an axis of length d replaced by the nearest within it."""
    return b.clip(index, b.const(0, int32), b.const(d - 1, int32))


def amount(b: Any, d: Dim, kind: DType) -> Any:
    """A dimension as a scalar."""
    return b.const(d, kind) if isinstance(d, int) else b.cast(b.const(d, int64), to=kind)


register(
    View(name="reshape", doc="the same elements in row-major order under another shape",
         shape=_reshape_shape, value=lambda c, read, x, shape: read(0, unflatten(flatten(c, shape), x.shape)),
         evaluate=lambda xp, x, shape: xp.reshape(x, _numbers(shape)), forward=_reshape_forward, shares=True,
         vjp=lambda b, g, inputs, y, shape: [b.reshape(g, shape=inputs[0].shape)]),
    View(name="transpose", doc="axes in another order: axis i of the result is axis perm[i]",
         shape=_transpose_shape, value=lambda c, read, x, perm: read(0, [c[p] for p in inverse(perm)]),
         evaluate=lambda xp, x, perm: xp.permute_dims(x, perm), forward=lambda c, x, perm: [c[p] for p in perm],
         vjp=lambda b, g, inputs, y, perm: [b.transpose(g, perm=inverse(perm))]),
    View(name="expand", doc="repeated along axes of length 1, and along new leading axes",
         shape=_expand_shape, value=lambda c, read, x, shape: read(0, project(c, x.shape)),
         evaluate=lambda xp, x, shape: xp.broadcast_to(x, _numbers(shape)),
         vjp=lambda b, g, inputs, y, shape: [sum_to(b, g, inputs[0].shape)]),
    View(name="slice", public=False, doc="elements start, start + step, … along every axis; steps may be negative",
         shape=_slice_shape, value=_slice_value,
         evaluate=_slice_evaluate, vjp=_slice_vjp),
    View(name="pad", doc="elements added before and after every axis: a constant, reflected, repeated at the edge, or wrapped round",
         shape=_pad_shape, value=_pad_value, evaluate=_pad_evaluate, vjp=_pad_vjp,
         work=lambda *inputs, **attrs: 3),
    View(name="concat", public=False, doc="inputs one after another along an axis",
         shape=_concat_shape, value=_concat_value, evaluate=lambda xp, *xs, axis: xp.concat(xs, axis=axis),
         vjp=_concat_vjp, work=lambda *xs, axis: 2 * len(xs)),
    View(name="arange", public=False, doc="count numbers: start, start + step, start + 2 · step, …", dtypes=NUMBERS,
         shape=_arange_shape, value=_arange_value, evaluate=_arange_evaluate, vjp=_arange_vjp),
)  # fmt: skip
