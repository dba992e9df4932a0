"""Functions that make Tensors; the default device is "numpy", which is always available."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, dtype, float32, int64
from ..errors import InputError, ShapeError
from ..ir.scalar import Number
from ..ops import ROWS
from ..runtime.device import Device
from ..runtime.devices import DEFAULT
from ..runtime.devices import device as find_device
from ..shapes import Dim, Size, ceildiv, dim_max, show
from .calls import call_row
from .meet import NATURAL, as_type, common_type, plain_array
from .methods.attach import both_spellings
from .tensor import Tensor, TensorLike, apply


def tensor(data: Any, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """A tensor of numbers, nested lists, a NumPy array or another tensor; the data is copied.

    Python's floats become float32, integers int64, bools bool. A NumPy array keeps its dtype, except that float64, which
    is NumPy's default for floats, becomes float32. Pass dtype to choose another.
    """
    if isinstance(data, Tensor):
        moved = data if device is None else data.to(device)
        return moved if dtype is None else moved.cast(dtype)
    on = find_device(device or DEFAULT)
    return Tensor(on, on.upload(plain_array(data, _kind(dtype))))


def _kind(given: Any) -> DType | None:
    return None if given is None else dtype(given)


def full(
    shape: Sequence[Dim] | Dim, value: Number | complex | Size, dtype: Any = None, device: str | Device | None = None
) -> Tensor:
    """A tensor filled with one value; the default dtype is that of the value."""
    dims = (shape,) if isinstance(shape, (int, Size)) else tuple(shape)
    if any(isinstance(d, int) and d < 0 for d in dims):
        raise ShapeError(f"full: the shape is {show(dims)}, expected no negative dimensions")
    if any(isinstance(d, Size) for d in (*dims, value)):
        kind = _kind(dtype) or NATURAL[type(value)]
        return _traced(lambda b: b.expand(as_type(b, value, kind), shape=dims))
    return tensor(np.full(shape, value), dtype, device)


def _traced(build: Callable[[Any], Any]) -> Tensor:
    """A tensor in whose shape or elements there are sizes: of the function that is being traced."""
    from .tracing import tracer  # noqa: PLC0415 (it is there where sizes are)

    on = tracer()
    return Tensor(on, on.apply(build, ())[0])


def _one_shape(name: str, shape: Any, *others: Any) -> None:
    """Refuse dimensions as separate arguments, as in zeros(2, 3)."""
    if dims := [d for d in others if isinstance(d, (int, Size))]:
        wanted = ", ".join(map(str, (shape, *dims)))
        raise InputError(f"{name}: the shape is one argument; write {name}(({wanted}))")


def zeros(shape: Sequence[Dim] | Dim, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    _one_shape("zeros", shape, dtype, device)
    return full(shape, 0, dtype, device)


def ones(shape: Sequence[Dim] | Dim, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    _one_shape("ones", shape, dtype, device)
    return full(shape, 1, dtype, device)


def full_like(x: Tensor, value: Number | complex | Size, dtype: Any = None) -> Tensor:
    """A tensor filled with one value, with x's shape, device and (unless given) dtype."""
    kind = _kind(dtype) or x.dtype
    return apply(lambda b, n: b.expand(as_type(b, value, kind), shape=n.shape), x)


def zeros_like(x: Tensor, dtype: Any = None) -> Tensor:
    return full_like(x, 0, dtype)


def ones_like(x: Tensor, dtype: Any = None) -> Tensor:
    return full_like(x, 1, dtype)


def arange(
    start: Number | Size,
    stop: Number | Size | None = None,
    step: Number = 1,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
) -> Tensor:
    """start, start + step, … below stop; arange(stop) starts at 0. int64, or float32 if an argument is a float.

    While a function is traced, start and stop may be sizes."""
    first, end = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise InputError("arange: the step is 0")
    if isinstance(first, Size) or isinstance(end, Size):
        if not (isinstance(first, (int, Size)) and isinstance(end, (int, Size)) and isinstance(step, int)):
            raise InputError(f"arange: got {first}, {end} and the step {step}, expected integers beside sizes")
        count = dim_max(ceildiv(end - first, step) if step > 0 else ceildiv(first - end, -step), 0)
        numbers = _traced(lambda b: b.arange(b.const(first, int64), b.const(step, int64), count=count))
        return numbers if dtype is None else numbers.cast(dtype)
    return tensor(np.arange(first, end, step), dtype, device)


def eye(rows: int, columns: int | None = None, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    return tensor(np.eye(rows, columns), dtype, device)


@both_spellings
def concat(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Tensors joined along an existing axis, in their common dtype."""
    if not tensors:
        raise InputError("concat: got no tensors, expected at least one")

    def build(b: Any, *nodes: Any) -> Any:
        kind = common_type(nodes)
        return b.concat(*(as_type(b, n, kind) for n in nodes), axis=axis)

    return apply(build, *tensors)


cat = concat
"""PyTorch's name of concat."""


@both_spellings
def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors joined along a new axis."""
    return concat([x.unsqueeze(axis) for x in tensors], axis)


def meshgrid(*tensors: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """For vectors of coordinates, the coordinates of every point of the grid that they span. indexing: "ij", or "xy" to
    have the first two axes exchanged, as in pictures."""
    if indexing not in ("ij", "xy"):
        raise InputError(f"meshgrid: the indexing is {indexing!r}, expected 'ij' or 'xy'")
    vectors = [x.reshape(-1) for x in tensors]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(vectors[order.index(i)].shape[0] for i in range(len(order)))
    return tuple(
        x.reshape((1,) * at + (x.shape[0],) + (1,) * (len(order) - at - 1)).broadcast_to(shape)
        for x, at in zip(vectors, order, strict=True)
    )


def linspace(
    start: Number, stop: Number, num: int, *, dtype: Any = float32, device: str | Device | None = None
) -> Tensor:
    """`num` numbers at equal distances from start to stop."""
    return tensor(np.linspace(start, stop, num), dtype, device)


def where(condition: TensorLike, x: TensorLike, y: TensorLike) -> Tensor:
    """x where the condition holds, y elsewhere."""
    return call_row(ROWS["where"], (condition, x, y))
