"""ArrayAdapter: the `xp` with which a row's `evaluate` computes, over any array library with the names of the array API standard.

Its own methods say what the standard lacks, or says otherwise than our words: a row uses DTypes, casts saturate, folds are in
the compute type. Each is derived from the standard; an adapter of a library overrides those that the library has itself. All other names
are the functions of the library, as the standard defines them: `xp.matmul`, `xp.permute_dims`, `xp.where`.

An adapter of a library whose element types are no attributes of the namespace, with Singe's names, overrides `_types` and `_of`; one whose
arrays `np.asarray` does not read, `host`; one that takes none of NumPy's arrays, `asarray`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from ...dtypes import DTYPES, DType, bool_, int64
from ...errors import DTypeError
from .. import scalar
from ..kernel import IDENTITY
from ..scalar import Expr

Array: TypeAlias = Any
"""An array of the adapter's library: with `shape`, `ndim`, `size`, `dtype`, Python's operators, and indexing by numbers, slices,
`...` and None."""
Places: TypeAlias = "Sequence[Any]"
"""Where elements are: for each of the first axes an array of integers, all of which broadcast to one shape; or for each axis a slice."""
Words: TypeAlias = "Mapping[str, Callable[..., Any]]"


class ElementwiseRow(Protocol):
    """What an adapter evaluates element by element: a row of that kind."""

    @property
    def name(self) -> str: ...
    def result(self, dtypes: Sequence[DType], attrs: Mapping[str, Any]) -> DType: ...
    def value(self, args: Sequence[Expr], stored: DType, attrs: Mapping[str, Any]) -> Expr: ...


FOLDS: Final = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
"""Words that fold ↦ the standard's function."""
RUNNING: Final = {"add": "cumulative_sum", "mul": "cumulative_prod"}


class ArrayAdapter:
    """See the module's docstring. namespace: the library's functions. native: the row's name ↦ the library's own function of its arrays
    and attributes, which is called in place of the row's `evaluate`, unless it gives NotImplemented, or of the rows to which a composite is
    lowered; elementwise rows are computed with `words`, and rows with `on_host` by NumPy. dtypes: the element types that the library
    has; ops with others are NumPy's.

    complete: whether it computes every row, as NumPy's does, with which rows are computed that others lack.

    What follows says how Programs run over the arrays (runtime/arrays/executable.py). in_place: the adapter whose `put` overwrites the
    array that it is given; None: arrays never change. reuses: whether `elementwise` can write into arrays that are not needed again. scope:
    makes the context in which the library is called. unfit: the errors of the library for values, such as indices, that do not fit.
    exhausted: its errors where memory is not enough. joined: computes the members of a kernel (c_elements.py) in one pass: of a shape, the
    members, the numbers of those that are stored, the inputs, and the arrays for what is stored, which have that shape, or broadcast to it."""

    dtypes: tuple[DType, ...]
    complete: bool = False
    in_place: ArrayAdapter | None = None
    reuses: bool = False
    scope: Callable[[], AbstractContextManager[Any]] = nullcontext
    unfit: tuple[type[Exception], ...] = (ValueError, IndexError, TypeError)
    exhausted: tuple[type[Exception], ...] = (MemoryError,)
    joined: Callable[[tuple[int, ...], Sequence[Any], Sequence[int], Sequence[Array], Sequence[Array]], None] | None = (
        None
    )

    def __init__(self, namespace: ModuleType | Any, native: dict[str, Callable[..., Any]] | None = None) -> None:
        self.namespace = namespace
        self.native = {} if native is None else native
        self._dtypes = self._types()
        self.dtypes = tuple(self._dtypes.values())
        self.words: Words = scalar.complete("arrays", {**self._words(), "cast": self.cast, "rounded": self.cast})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            found = getattr(self.namespace, name)
        except AttributeError:
            raise AttributeError(
                f"{self.library} has no {name!r}, a function of the array API standard: add it there, or as a method to the adapter",
                name=name,
                obj=self,
            ) from None
        setattr(self, name, found)
        return found

    # --- element types -----------------------------------------------------------------------------------------------

    def dtype(self, x: Array) -> DType:
        try:
            return self._dtypes[x.dtype]
        except KeyError:
            raise DTypeError(
                f"an array has elements of the type {x.dtype!r}, expected one of {list(self._dtypes)}, the types of {self.library}: "
                "give an array of that library, or override the adapter's `_types`"
            ) from None

    def cast(self, x: Array, to: DType) -> Array:
        """The word `cast`: floats become integers toward zero, saturating, and NaN becomes 0; integers wrap."""
        if self.dtype(x) is to:
            return x
        if self.dtype(x).kind == "complex" and to.kind not in ("complex", "bool"):
            x = self.real(x)
        if self.dtype(x).is_float and to.is_int:
            wide = to.compute
            least, most = wide.limits
            x = self.trunc(x)
            low, high = x <= float(least), x >= float(most)  # float(2**63 − 1) is 2**63, which does not fit
            inside = self.astype(self.where(low | high | self.isnan(x), 0.0, x), self._of(wide))
            x = self.where(low, least, self.where(high, most, inside))
        return self.astype(x, self._of(to))

    def wide(self, x: Array) -> Array:
        """Floats in their compute type; other elements as they are."""
        kind = self.dtype(x)
        return self.cast(x, kind.compute) if kind.is_float else x

    @property
    def library(self) -> str:
        """The namespace's name, for messages."""
        return getattr(self.namespace, "__name__", type(self.namespace).__name__)

    def _types(self) -> dict[Any, DType]:
        """The library's element types, which are the `dtype` of its arrays, ↦ ours."""
        return {getattr(self.namespace, name): kind for name, kind in DTYPES.items() if hasattr(self.namespace, name)}

    def _of(self, kind: DType) -> Any:
        """The library's element type of ours, as its functions take it."""
        try:
            return getattr(self.namespace, kind.name)
        except AttributeError:
            raise DTypeError(
                f"{self.library} has no element type {kind.name!r}: add it there, or override the adapter's `_of` and `_types`"
            ) from None

    # --- arrays from numbers, and numbers of arrays ------------------------------------------------------------------

    def asarray(self, values: Any, kind: DType | None = None) -> Array:
        """An array of numbers, of nested lists of them, or of NumPy's array."""
        return self.namespace.asarray(values, dtype=None if kind is None else self._of(kind))

    def arange(self, count: int, kind: DType = int64) -> Array:
        return self.namespace.arange(count, dtype=self._of(kind))

    def full(self, shape: Sequence[int], value: Any, kind: DType) -> Array:
        """An array of one number, which may be an array of rank 0."""
        return self.broadcast_to(self.asarray(value, kind), tuple(shape))

    def copy(self, x: Array) -> Array:
        """An array of its own with the same elements."""
        return self.namespace.asarray(x, copy=True)

    def host(self, x: Array) -> np.ndarray:
        """NumPy's array of the elements."""
        found = np.asarray(x)
        if found.dtype == object:
            raise DTypeError(f"NumPy reads no elements from {type(x).__name__}: override the adapter's `host`")
        return found

    def item(self, x: Array) -> Any:
        """The first element as a number."""
        return self.host(x).reshape(-1)[0].item()

    def apart(self, x: Array, taken: Sequence[Array]) -> Array:
        """x in memory of its own, which is none of the arrays `taken`; where arrays never change, x itself."""
        return x if self.in_place is None else self.copy(x)

    def unset(self, shape: Sequence[int], kind: DType) -> Array:
        """An array whose elements are still to be written."""
        return self.namespace.empty(tuple(shape), dtype=self._of(kind))

    def shares(self, x: Array, y: Array) -> bool:
        """Whether two arrays may have memory in common."""
        return x is y

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """A function of lists of arrays, which gives such, compiled as a whole by the library; None if the library runs it call by call."""

    def wait(self, arrays: Sequence[Array]) -> None:
        """Wait until arrays are computed, where the library computes later."""

    def bytes_held(self) -> tuple[int | None, int | None, int | None]:
        """Bytes that the library has in use for this process on the device, that it took from it, and the most that were in use;
        None where it does not say."""
        return None, None, None

    def clean(self) -> None:
        """Give memory that the library keeps, and does not use, back to the system."""

    def reset_peak(self) -> None:
        """Begin to measure anew what is the most."""

    # --- places ------------------------------------------------------------------------------------------------------

    def take(self, x: Array, indices: Array, axis: int) -> Array:
        """Slices along an axis at indices of any rank, from 0 on; the indices' axes take the place of the axis."""
        axis %= x.ndim
        found = self.namespace.take(x, self.reshape(indices, (-1,)), axis=axis)
        return self.reshape(found, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))

    def at(self, x: Array, places: Places) -> Array:
        """The elements at places, which are arrays; axes of x without one are the last axes of the result."""
        flat, shape = self._flat(x, places)
        rest = x.shape[len(places) :]
        table = self.reshape(x, (math.prod(x.shape[: len(places)]), *rest))
        return self.reshape(self.namespace.take(table, flat, axis=0), (*shape, *rest))

    def put(self, x: Array, places: Places, part: Array, word: str = "", over: bool = False) -> Array:
        """x with the elements at places replaced by those of `part`, which has the shape of `at`; with a word they are combined, one part
        after the other where places are equal. over: x is not needed again, and a library may overwrite it."""
        if 0 in part.shape:
            return x
        if isinstance(places[0] if places else slice(None), slice):
            return self._put_slices(x, places, part, word)
        flat, shape = self._flat(x, places)
        rest, count = x.shape[len(places) :], math.prod(x.shape[: len(places)])
        table = self.reshape(x, (count, *rest))
        part = self.reshape(self.broadcast_to(part, (*shape, *rest)), (flat.shape[0], *rest))
        order = self.argsort(flat, stable=True)
        places_in_order = self.namespace.take(flat, order, axis=0)
        first, last = (self.searchsorted(places_in_order, self.arange(count), side=side) for side in ("left", "right"))
        if not word:
            first = self.where(last > first, last - 1, first)
        for turn in range(int(self.item(self.max(last - first)))):
            at = self.take(order, self.clip(first + turn, 0, flat.shape[0] - 1), axis=0)
            found = self.namespace.take(part, at, axis=0)
            hit = self.reshape(first + turn < last, (count, *(1 for _ in rest)))
            table = self.where(hit, self.words[word](table, found) if word else found, table)
        return self.reshape(table, x.shape)

    def _put_slices(self, x: Array, cuts: Places, part: Array, word: str) -> Array:
        """Each axis of the part is spread over that of x; elements that are not met are those of x."""
        hits = self.asarray(True, bool_)
        for axis, (cut, d) in enumerate(zip(cuts, x.shape, strict=True)):
            source = np.full(d, -1)
            met = range(*cut.indices(d))
            source[list(met)] = np.arange(len(met))
            part = self.take(part, self.asarray(np.maximum(source, 0), int64), axis=axis)
            along = tuple(d if i == axis else 1 for i in range(x.ndim))
            hits = hits & self.reshape(self.asarray(source >= 0, bool_), along)
        return self.where(hits, self.words[word](x, part) if word else part, x)

    def _flat(self, x: Array, places: Places) -> tuple[Array, tuple[int, ...]]:
        """Places as numbers of the elements of the first axes, in a vector; and the common shape of the places."""
        total, shape = self.asarray(0, int64), np.broadcast_shapes(*(p.shape for p in places))
        for place, d in zip(places, x.shape, strict=False):
            total = total * d + self.cast(place, int64)
        return self.reshape(self.broadcast_to(total, shape), (-1,)), shape

    def windows(
        self, x: Array, fill: Any, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
        before: Sequence[int], after: Sequence[int],
    ) -> Array:  # fmt: skip
        """Every window of x with `fill` around it: axes of places, then axes within the window."""
        if any(before) or any(after):
            room = self.full([a + d + b for a, d, b in zip(before, x.shape, after, strict=True)], fill, self.dtype(x))
            x = self.put(room, [slice(a, a + d) for a, d in zip(before, x.shape, strict=True)], x)
        rank, facts = x.ndim, list(zip(x.shape, window, strides, dilations, strict=True))
        for axis, (d, w, s, r) in reversed(list(enumerate(facts))):
            starts = np.arange(max((d - r * (w - 1) - 1) // s + 1, 0))[:, None] * s
            x = self.take(x, self.asarray(starts + np.arange(w) * r, int64), axis=axis)
        return self.permute_dims(x, (*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)))

    # --- folds -------------------------------------------------------------------------------------------------------

    def fold(self, word: str, x: Array, axes: Sequence[int]) -> Array:
        """The fold of elements over axes, which get length 1, in the compute type; integers wrap to their own width."""
        kind, compute, axes = self.dtype(x), self.dtype(x).compute, tuple(a % x.ndim for a in axes)
        if word in ("max", "min") and any(x.shape[a] == 0 for a in axes):
            shape = [1 if i in axes else d for i, d in enumerate(x.shape)]
            return self.full(shape, IDENTITY[word](kind), kind)
        given: dict[str, Any] = {} if word in ("max", "min") else {"dtype": self._of(compute)}
        found = getattr(self, FOLDS[word])(self.cast(x, compute), axis=axes, keepdims=True, **given)
        return self.cast(found, kind)

    def cumulate(self, word: str, x: Array, axis: int, reverse: bool = False) -> Array:
        """The fold of the elements up to each one along an axis; reverse: from each one to the end."""
        kind, axis = self.dtype(x), axis % x.ndim
        found = self.flip(self.cast(x, kind.compute), axis=axis) if reverse else self.cast(x, kind.compute)
        if word in RUNNING:
            found = getattr(self, RUNNING[word])(found, axis=axis, dtype=self._of(kind.compute))
        else:  # a word for which an element may count twice
            cut, step = [slice(None)] * x.ndim, 1
            while step < x.shape[axis]:
                head, tail, rest = (
                    found[(*cut[:axis], part, *cut[axis + 1 :])]
                    for part in (slice(0, step), slice(step, None), slice(0, x.shape[axis] - step))
                )
                found, step = self.concat((head, self.words[word](tail, rest)), axis=axis), 2 * step
        return self.cast(self.flip(found, axis=axis) if reverse else found, kind)

    # --- elements ----------------------------------------------------------------------------------------------------

    def elementwise(
        self, row: ElementwiseRow, arrays: Sequence[Array], attrs: Mapping[str, Any], spent: Sequence[int] = (), into: Array | None = None
    ) -> Array:  # fmt: skip
        """The row's expression for all elements, word by word. If the adapter `reuses` arrays: it may overwrite the inputs at the positions
        `spent`, and `into`, which has the result's shape and type."""
        kinds = [self.dtype(a) for a in arrays]
        params = [scalar.var(f"x{i}", kind.compute) for i, kind in enumerate(kinds)]
        wide = {p: self.cast(a, kind.compute) for p, a, kind in zip(params, arrays, kinds, strict=True)}
        gives = row.result(kinds, attrs)

        def step(e: Expr, args: tuple[Array, ...]) -> Array:
            if e.word == "var":
                return wide[e]
            if e.word == "const":
                return self.asarray(e.value, e.dtype)
            if e.word == "cast":
                return self.cast(args[0], e.dtype)
            return self.cast(self.cast(args[0], e.value), e.dtype) if e.word == "rounded" else self.words[e.word](*args)

        (found,) = scalar.fold([scalar.unrounded(row.value(params, gives, attrs), gives)], step)
        return self.broadcast_to(self.cast(found, gives), np.broadcast_shapes(*(a.shape for a in arrays)))

    def _words(self) -> dict[str, Callable[..., Any]]:
        """The scalar words, but for `cast` and `rounded`."""

        def quotient(a: Array, b: Array) -> Array:
            if not self.dtype(a).is_int:
                return self.divide(a, b)
            q = self.floor_divide(a, b)
            return self.where((q * b != a) & ((a < 0) != (b < 0)), q + 1, q)

        def remainder(a: Array, b: Array) -> Array:
            if self.dtype(a).is_float:
                return self.copysign(self.remainder(self.abs(a), self.abs(b)), a)
            r = self.remainder(a, b)
            return self.where((r != 0) & ((r < 0) != (a < 0)), r - b, r)

        def bits(kind: str) -> Callable[[Array], Array]:
            def view(a: Array) -> Array:
                to = DTYPES[f"{kind}{self.dtype(a).bits}"]
                return self.asarray(np.array(self.host(a)).view(to.numpy), to)

            return view

        def shift(name: str) -> Callable[[Array, Array], Array]:
            return lambda a, b: getattr(self, name)(
                a, self.bitwise_and(b, self.asarray(self.dtype(a).bits - 1, self.dtype(b)))
            )

        names = {
            "add": "add", "sub": "subtract", "mul": "multiply", "min": "minimum", "max": "maximum", "neg": "negative", "abs": "abs",
            "sqrt": "sqrt", "exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tanh": "tanh", "floor": "floor", "ceil": "ceil",
            "round": "round", "isnan": "isnan", "eq": "equal", "lt": "less", "le": "less_equal", "and": "bitwise_and", "or": "bitwise_or",
            "xor": "bitwise_xor", "not": "bitwise_invert", "select": "where",
        }  # fmt: skip
        return {
            **{word: getattr(self, name) for word, name in names.items()},
            "div": quotient, "rem": remainder, "bits": bits("int"), "of_bits": bits("float"),
            "shl": shift("bitwise_left_shift"), "shr": shift("bitwise_right_shift"),
        }  # fmt: skip
