"""NUMPY_ARRAYS, the adapter of NumPy: what it does faster than the functions that `ArrayAdapter` derives from the standard, and what
NumPy names otherwise or says of Singe's own element types."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...dtypes import DTYPES, DType, dtype, int64, widened
from ...late_dataclass import dataclass
from ...shapes import axes_of
from .. import scalar
from ..kernel import IDENTITY
from .adapter import ArrayAdapter, ElementwiseRow, Places
from .words import NUMPY, convert

MIN_FOLDED_LINE: Final = 2048
"""Elements of a line that NumPy folds into another: its loop over a short line costs more than the elements."""


class NumpyAdapter(ArrayAdapter):
    """overwrites: whether `put` writes into the array that it is given, as an update does whose input is not needed again."""

    complete = True
    reuses = True
    scope = partial(np.errstate, all="ignore")

    def __init__(self, native: dict[str, Callable[..., Any]], overwrites: bool = False) -> None:
        super().__init__(np, native)
        self.overwrites = overwrites
        self.in_place = self if overwrites else NumpyAdapter(native, overwrites=True)
        self._calls: dict[tuple[ElementwiseRow, tuple[np.dtype[Any], ...]], _Calls] = {}

    # --- what NumPy has under other names, or for Singe's own element types ------------------------------------------

    concat = staticmethod(np.concatenate)

    def _words(self) -> dict[str, Callable[..., Any]]:
        return dict(NUMPY)

    def _types(self) -> dict[Any, DType]:
        return {kind.numpy: kind for kind in DTYPES.values()}

    def _of(self, kind: DType) -> np.dtype[Any]:
        return kind.numpy

    def dtype(self, x: np.ndarray) -> DType:
        return dtype(x.dtype)

    def cast(self, x: np.ndarray, to: DType) -> np.ndarray:
        return convert(x, to.numpy)

    def wide(self, x: np.ndarray) -> np.ndarray:
        kind = dtype(x.dtype)
        return convert(x, kind.compute.numpy) if kind.is_float else x

    def asarray(self, values: Any, kind: DType | None = None) -> np.ndarray:
        return np.asarray(values, None if kind is None else kind.numpy)

    def arange(self, count: int, kind: DType = int64) -> np.ndarray:
        return np.arange(count, dtype=kind.numpy)

    def full(self, shape: Sequence[int], value: Any, kind: DType) -> np.ndarray:
        return np.full(shape, value, kind.numpy)

    def copy(self, x: np.ndarray) -> np.ndarray:
        return x.copy()

    def host(self, x: np.ndarray) -> np.ndarray:
        return x

    def apart(self, x: np.ndarray, taken: Sequence[np.ndarray]) -> np.ndarray:
        own = x.base is None and x.flags.carray
        for other in taken:
            own = own and x is not other
        return x if own else np.array(x, order="C")

    def item(self, x: np.ndarray) -> Any:
        return x.item() if x.size == 1 else x.reshape(-1)[0].item()

    @staticmethod
    def reshape(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return x.reshape(shape)

    @staticmethod
    def permute_dims(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return x.transpose(axes)

    @staticmethod
    def argsort(x: np.ndarray, axis: int = -1, stable: bool = True) -> np.ndarray:
        return np.argsort(x, axis=axis, kind="stable" if stable else None)

    @staticmethod
    def clip(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        return np.minimum(np.maximum(x, low), high)

    # --- what NumPy does faster ---------------------------------------------------------------------------------------

    def take(self, x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
        # As intp: with 32-bit addresses, as in a page, NumPy takes no int64 here.
        return np.asarray(x.take(indices.astype(np.intp, copy=False), axis))

    def at(self, x: np.ndarray, places: Places) -> np.ndarray:
        return np.asarray(x[tuple(places)], order="C")

    def put(self, x: np.ndarray, places: Places, part: np.ndarray, word: str = "", over: bool = False) -> np.ndarray:
        if word and x.dtype.names:  # NumPy lacks the type
            return convert(self.put(widened(x), places, widened(part), word, over=True), x.dtype)
        place = tuple(places)
        out = x if over or self.overwrites else x.copy()
        if not word:
            out[place] = part
        elif part.size:
            function: Any = NUMPY[word]
            if isinstance(place[0] if place else slice(None), slice):
                cut = out[place]
                function(cut, part, out=cut)
            else:
                function.at(out, place, part)
        return out

    def windows(
        self, x: np.ndarray, fill: Any, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
        before: Sequence[int], after: Sequence[int],
    ) -> np.ndarray:  # fmt: skip
        if any(before) or any(after):
            x = np.pad(x, list(zip(before, after, strict=True)), constant_values=fill)
        reach = tuple(d * (w - 1) + 1 for w, d in zip(window, dilations, strict=True))
        places = tuple(max(0, d - r + 1) for d, r in zip(x.shape, reach, strict=True))
        every = sliding_window_view(x, reach) if all(places) else np.empty((*places, *reach), x.dtype)
        return every[(*(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))]

    def fold(self, word: str, x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
        function: Any = NUMPY[word]
        compute = dtype(x.dtype).compute
        wide = convert(x, compute.numpy)
        shape = tuple(1 if a in axes_of(axes, x.ndim, "reduce") else d for a, d in enumerate(x.shape))
        wide, axes = _long_lines(function, wide, axes)
        initial = IDENTITY[word](compute)
        out = function.reduce(wide, axis=tuple(axes), keepdims=True, dtype=compute.numpy, initial=initial)
        return convert(out.reshape(shape), x.dtype)

    def cumulate(self, word: str, x: np.ndarray, axis: int, reverse: bool = False) -> np.ndarray:
        function: Any = NUMPY[word]
        wide = convert(x, dtype(x.dtype).compute.numpy)
        wide = np.flip(wide, axis) if reverse else wide
        out = function.accumulate(wide, axis=axis, dtype=wide.dtype)
        return np.ascontiguousarray(convert(np.flip(out, axis) if reverse else out, x.dtype))

    def elementwise(
        self, row: ElementwiseRow, arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], spent: Sequence[int] = (),
        into: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The row's expression for all elements. It may overwrite the inputs at the positions `spent`, and `into`, which has the
        result's shape and type. The result never shares memory with another input."""
        calls = self._calls_for(row, arrays, attrs)
        if calls.plain:
            wide, owned = arrays, [False] * len(arrays)
            for i in spent:
                owned[i] = True
        else:
            wide = [widened(a) if a.dtype.names else convert(a, to) for a, to in zip(arrays, calls.takes, strict=True)]
            owned = [i in spent or w is not a for i, (w, a) in enumerate(zip(wide, arrays, strict=True))]
        result = np.asarray(calls.run(wide, owned, into))
        if result.dtype != calls.gives:
            result = convert(result, calls.gives)
        shape = arrays[0].shape if arrays else ()
        borrowed = False
        for i, a in enumerate(arrays):  # a generator would take as long as the arithmetic of a small array
            if a.shape != shape:
                shape = np.broadcast_shapes(shape, a.shape)
            borrowed = borrowed or (result is a and i not in spent)
        return np.broadcast_to(result, shape).copy() if borrowed or result.shape != shape else result

    def _calls_for(self, row: ElementwiseRow, arrays: Sequence[np.ndarray], attrs: Mapping[str, Any]) -> _Calls:
        """Without attributes the row and the types alone are the key, since this is asked for each op of a run, which for a small
        array takes as long as its arithmetic."""
        key = row, tuple([a.dtype for a in arrays])
        known = None if attrs else self._calls.get(key)
        if known is not None:
            return known
        given = tuple(attrs.items())
        found = _calls(row, tuple(map(dtype, key[1])), given, scalar.exact(given))
        if not attrs:
            self._calls[key] = found
        return found


def _long_lines(function: Any, x: np.ndarray, axes: Sequence[int]) -> tuple[np.ndarray, Sequence[int]]:
    """What remains to fold, and its axes, after the first axes' lines are folded as long lines of several of them."""
    count = len(axes)
    if not x.flags.c_contiguous or not x.size or tuple(axes_of(axes, x.ndim, "reduce")) != tuple(range(count)):
        return x, axes
    rows, width = math.prod(x.shape[:count]), math.prod(x.shape[count:])
    several = math.gcd(rows, 1 << max(MIN_FOLDED_LINE // width, 1).bit_length() - 1)
    if several == 1 or several == rows:
        return x, axes
    lines = function.reduce(x.reshape(rows // several, several * width), axis=0, dtype=x.dtype)
    return lines.reshape(several, width), (0,)


# --- an expression as calls of functions, which overwrite arrays that are not needed again ----------------------------


@dataclass(frozen=True)
class _Calls:
    """An expression as calls of functions on whole arrays. Values are numbered: parameters, then constants, then results."""

    takes: Sequence[np.dtype[Any]]
    plain: bool  # whether all arguments have these types as they are
    gives: np.dtype[Any]
    constants: Sequence[Any]
    steps: Sequence[
        tuple[Callable[..., Any], bool, tuple[int, ...], tuple[int, ...]]
    ]  # function, whether it is a ufunc, its arguments, those of them that are not needed again
    result: int
    writes_type: bool  # whether the last function gives elements of the type that the op gives

    def run(self, params: Sequence[np.ndarray], owned: list[bool], into: np.ndarray | None) -> Any:
        """The value. Owned arrays, which include temporaries, are overwritten once they are not needed again; the last
        function writes to `into`, if it gives elements of that type."""
        values: list[Any] = [*params, *self.constants]
        owned = [*owned, *[False] * len(self.constants)]
        for function, universal, places, last in self.steps:
            args = [values[i] for i in places]
            out = None
            if universal:
                if into is not None and len(values) == self.result and self.writes_type:
                    out = into
                else:
                    for i in last:
                        if owned[i] and _holds(values[i], args):
                            out = values[i]
                            break
            value = function(*args) if out is None else function(*args, out=out)
            values.append(value)
            owned.append(isinstance(value, np.ndarray) and value.ndim > 0)
        return values[self.result]


def _holds(out: np.ndarray, args: Sequence[Any]) -> bool:
    """Whether `out` has the shape of a ufunc's result. Some arguments may broadcast; all have the type of `out`."""
    shape = out.shape
    return all(
        a is out or not a.shape or a.shape == shape or np.broadcast_shapes(a.shape, shape) == shape for a in args
    )


@lru_cache(maxsize=4096)
def _calls(row: ElementwiseRow, dtypes: tuple[DType, ...], attrs: tuple[tuple[str, Any], ...], exact: Any) -> _Calls:
    """The calls for inputs of these types. `exact` is a key of the attributes: the cache must not take 0.0 for -0.0."""
    params = tuple(scalar.var(f"x{i}", d.compute) for i, d in enumerate(dtypes))
    given = dict(attrs)
    gives = row.result(dtypes, given)
    e = scalar.unrounded(row.value(params, gives, given), gives)
    order = scalar.postorder([e])
    constants = [x for x in order if x.word == "const"]
    number = {x: i for i, x in enumerate((*params, *constants))}
    steps = []
    final = {a: x for x in order for a in x.args}  # the last step that reads each value
    for x in order:
        if x.args:
            number[x] = len(params) + len(constants) + len(steps)
            last = {number[a] for a in x.args if final[a] is x and a.dtype is x.dtype}
            function = scalar.function(x)
            steps.append((function, isinstance(function, np.ufunc), tuple(number[a] for a in x.args), tuple(last)))
    values = [x.dtype.numpy.type(x.value) for x in constants]
    takes = [d.compute.numpy for d in dtypes]
    plain = all(d is d.compute and not d.numpy.names for d in dtypes)
    return _Calls(takes, plain, gives.numpy, values, steps, number[e], e.dtype is gives)


NUMPY_ARRAYS: Final = NumpyAdapter({})
"""NumPy's arrays. Its native functions are those of singe/ops/numpy."""
