"""Functions that make Tensors; the default device is "numpy", which is always available."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, Final

import numpy as np

from ...dtypes import DType, dtype, float32, int64
from ...errors import DeviceError, InputError
from ...ir.scalar import Number
from ...ops import ROWS
from ...runtime.device import Device
from ...runtime.devices import device as find_device
from ...runtime.devices import device_or_default
from ...shapes import MAX_ELEMENTS, Dim, Size, ceildiv, dim_max, number, plain, show
from ..argument_errors import check_functions, in_words
from ..calls import apply_row, traced
from ..methods.attach import accept_torch_names
from ..nodes.promotion import NATURAL, as_type, common_type, plain_array, whole_array
from ..nodes.shaping import made_shape, unpacked
from ..tensor import Tensor, TensorLike, apply


def tensor(data: Any, dtype: Any = None, device: str | Device | None = None, *, requires_grad: bool = False) -> Tensor:
    """A tensor of numbers, nested lists, a NumPy array or another tensor; the data is copied.

    requires_grad: `backward` gives its gradient; on a device `sg.Autodiff(…)` only.

    Python's floats become float32, integers int64, bools bool. A NumPy array keeps its dtype, except that float64, which
    is NumPy's default for floats, becomes float32. Pass dtype to choose another. While a function is traced, sizes count as
    integers.
    """
    if isinstance(data, Size) or (isinstance(data, (list, tuple)) and any(isinstance(d, Size) for d in data)):
        made = full((), data, dtype) if isinstance(data, Size) else stack([tensor(d, dtype) for d in data])
    elif isinstance(data, Tensor):
        moved = data if device is None else data.to(device)
        made = moved if dtype is None else moved.cast(dtype)
    else:
        on = device_or_default(device)
        made = Tensor(on, on.upload(plain_array(data, _kind(dtype))))
    return made.require_grad() if requires_grad else made


MEMORY: Final[Mapping[int, Sequence[str]]] = {
    1: (),
    2: ("torch:cuda:{}", "cupy:{}"),
    8: ("torch:mps",),
    10: ("torch:cuda:{}",),
    14: ("torch:xpu:{}",),
}
"""DLPack's kinds of memory (the CPU, CUDA, Metal, ROCm, oneAPI) ↦ the devices of ours that use it, by the number of the card."""


def from_dlpack(x: Any, /, *, device: str | Device | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of an object with DLPack, such as an array of NumPy, PyTorch, JAX or CuPy: without a copy where its memory is the device's own,
    and then it must not be changed.

    device: by default that of the memory; for memory of the CPU the default device. copy=True copies.
    """
    if isinstance(x, Tensor):
        return x if device is None else x.to(device)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise InputError(
            f"from_dlpack: got {in_words(x)} as x, expected an array that has DLPack; sg.tensor(…) takes others"
        )
    on = _device_of(*x.__dlpack_device__()) if device is None else device_or_default(device)
    try:
        found = Tensor(on, on.imported(x))
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise InputError(f"from_dlpack: {in_words(x)} cannot be had on {on!r}: {e}; move it to the CPU before") from e
    return Tensor(on, on.upload(found.numpy())) if copy else found


def _device_of(kind: int, number: int) -> Device:
    """The device whose memory an object with DLPack has."""
    errors = []
    for name in MEMORY.get(kind, ()):
        try:
            return find_device(name.format(number))
        except DeviceError as e:
            errors.append(str(e))
    if kind == 1:
        return device_or_default(None)
    raise DeviceError(
        f"from_dlpack: no device here uses the memory of x (DLPack's kind {kind}): {'; '.join(errors) or 'move it to the CPU'}"
    )


def _kind(argument: Any) -> DType | None:
    return None if argument is None else dtype(argument)


@accept_torch_names
def full(
    shape: Sequence[Dim] | Dim,
    fill_value: Number | complex | Size,
    dtype: Any = None,
    device: str | Device | None = None,
) -> Tensor:
    """A tensor filled with one value; the default dtype is that of the value."""
    dims = made_shape(shape, "full")
    if any(isinstance(d, Size) for d in (*dims, fill_value)):
        kind = _kind(dtype) or NATURAL[type(plain(fill_value))]
        return _traced(lambda b: b.expand(as_type(b, fill_value, kind), shape=dims))
    return tensor(np.broadcast_to(whole_array(fill_value), dims), dtype, device)


def _traced(build: Callable[[Any], Any]) -> Tensor:
    """A tensor in whose shape or elements there are sizes: of the function that is being traced."""
    from ..tracing import tracer  # noqa: PLC0415 (it is there where sizes are)

    on = tracer()
    return Tensor(on, on.apply(build, ())[0])


def _asked(what: str, arguments: tuple[Any, ...], dtype: Any, device: Any) -> tuple[Any, Any, Any]:
    """The shape, dtype and device of sizes one by one, as PyTorch takes them, or of a shape, and a dtype and a device
    behind it, as NumPy takes them."""
    if arguments and all(isinstance(d, (int, Size)) for d in arguments):
        return arguments, dtype, device
    if not 1 <= len(arguments) <= 3:
        raise InputError(
            f"{what}: got {arguments}, expected a shape, as in {what}(2, 3) or {what}((2, 3), dtype='int32')"
        )
    return (*arguments, dtype, device)[:3] if len(arguments) != 2 else (*arguments, device)


@accept_torch_names
def zeros(*shape: Any, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    """Zeros of a shape: zeros(2, 3) or zeros((2, 3))."""
    sizes, dtype, device = _asked("zeros", shape, dtype, device)
    return full(sizes, 0, dtype, device)


@accept_torch_names
def ones(*shape: Any, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    """Ones of a shape: ones(2, 3) or ones((2, 3))."""
    sizes, dtype, device = _asked("ones", shape, dtype, device)
    return full(sizes, 1, dtype, device)


@accept_torch_names
def empty(*shape: Any, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    """Any elements of a shape: zeros."""
    sizes, dtype, device = _asked("empty", shape, dtype, device)
    return full(sizes, 0, dtype, device)


def asarray(data: Any, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """A tensor of what `tensor` takes; a tensor as it is."""
    return tensor(data, dtype, device)


as_tensor = asarray


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor with a copy of an array's elements, in the array's dtype."""
    if not isinstance(array, np.ndarray):
        raise InputError(f"from_numpy: got {array!r:.80}, expected an array; use tensor")
    return tensor(array, array.dtype)


@accept_torch_names
def full_like(
    x: Tensor, fill_value: Number | complex | Size, dtype: Any = None, device: str | Device | None = None
) -> Tensor:
    """A tensor filled with one value, with x's shape and (unless given) dtype and device."""
    kind = _kind(dtype) or x.dtype
    if device is not None:
        return full(x.shape, fill_value, kind, device)
    like = traced(x) if isinstance(fill_value, Size) else x
    return apply(lambda b, n: b.expand(as_type(b, fill_value, kind), shape=n.shape), like)


@accept_torch_names
def zeros_like(x: Tensor, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """Zeros, with x's shape and (unless given) dtype and device."""
    return full_like(x, 0, dtype, device)


@accept_torch_names
def ones_like(x: Tensor, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """Ones, with x's shape and (unless given) dtype and device."""
    return full_like(x, 1, dtype, device)


empty_like = zeros_like


@accept_torch_names
def arange(
    start: Number | Size = 0,
    end: Number | Size | None = None,
    step: Number = 1,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
) -> Tensor:
    """start, start + step, … below end; arange(end) starts at 0. int64, or float32 if an argument is a float.

    While a function is traced, start and end may be sizes."""
    first, last = (0, start) if end is None else (start, end)
    if step == 0:
        raise InputError("arange: the step is 0, expected another number")
    if isinstance(first, Size) or isinstance(last, Size):
        if not (isinstance(first, (int, Size)) and isinstance(last, (int, Size)) and isinstance(step, int)):
            raise InputError(
                f"arange: got {first}, {last} and the step {step}, expected integers beside sizes; sg.arange(size) * step + start "
                "gives others"
            )
        count = dim_max(ceildiv(last - first, step) if step > 0 else ceildiv(first - last, -step), 0)
        numbers = _traced(lambda b: b.arange(b.const(first, int64), b.const(step, int64), count=count))
        return numbers if dtype is None else numbers.cast(dtype)
    for given in (first, last, step):
        if not isinstance(given, Real | np.ndarray | Tensor):
            raise InputError(f"arange: got {given!r:.80}, expected numbers")
    ends, by = (number(first, "arange", "start"), number(last, "arange", "end")), number(step, "arange", "step")
    if not -math.inf < (ends[1] - ends[0]) / by <= MAX_ELEMENTS:
        raise InputError(
            f"arange: got {first} to {last} by {step}, expected finite numbers, and at most {MAX_ELEMENTS} elements"
        )
    return tensor(np.arange(first, last, step), dtype, device)


@accept_torch_names
def eye(n: Dim, m: Dim | None = None, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    """n × m ones on the diagonal, zeros elsewhere. While a function is traced, n and m may be sizes."""
    if isinstance(n, Size) or isinstance(m, Size):
        return (arange(n).unsqueeze(1) == arange(n if m is None else m)).cast(dtype)
    rows, columns = made_shape((n, n if m is None else m), "eye")
    return tensor(np.eye(rows, columns), dtype, device)


@accept_torch_names
def concat(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Tensors joined along an existing axis, in their common dtype."""
    if isinstance(tensors, (Tensor, np.ndarray)):
        raise InputError(
            f"concat: got one tensor, of {show(tensors.shape)}, expected several in a list: sg.cat([x, y])"
        )
    if not tensors:
        raise InputError("concat: got no tensors, expected at least one")

    def build(b: Any, *nodes: Any) -> Any:
        kind = common_type(nodes)
        return b.concat(*(as_type(b, n, kind) for n in nodes), axis=axis)

    return apply(build, *tensors)


cat = concatenate = concat
"""PyTorch's other names of concat."""


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 1, vectors along axis 0."""
    return concat(tensors, 1 if tensors and tensors[0].ndim > 1 else 0)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 0; vectors are rows."""
    return concat([x if x.ndim > 1 else x.reshape(1, -1) for x in tensors])


row_stack = vstack


@accept_torch_names
def stack(tensors: Sequence[Tensor | np.ndarray], axis: int = 0) -> Tensor:
    """Tensors joined along a new axis, in their common dtype."""
    return concat([np.expand_dims(x, axis) if isinstance(x, np.ndarray) else x.unsqueeze(axis) for x in tensors], axis)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """For vectors of coordinates, the coordinates of every point of the grid that they span. indexing: "ij", or "xy" to
    have the first two axes exchanged, as in pictures. The vectors may be in a list."""
    if indexing not in ("ij", "xy"):
        raise InputError(f"meshgrid: the indexing is {indexing!r}, expected 'ij' or 'xy'")
    vectors = [x.reshape(-1) if isinstance(x, Tensor) else tensor(x).reshape(-1) for x in unpacked(tensors)]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(vectors[order.index(i)].shape[0] for i in range(len(order)))
    return tuple(
        x.reshape((1,) * at + (x.shape[0],) + (1,) * (len(order) - at - 1)).broadcast_to(shape)
        for x, at in zip(vectors, order, strict=True)
    )


@accept_torch_names
def linspace(
    start: Number | Size, end: Number | Size, steps: Dim, *, dtype: Any = float32, device: str | Device | None = None
) -> Tensor:
    """`steps` numbers at equal distances from start to end. While a function is traced, all three may be sizes."""
    if isinstance(start, Size) or isinstance(end, Size) or isinstance(steps, Size):
        first, last, count = (tensor(x, float32) for x in (start, end, steps - 1))
        places = arange(steps)
        return where(places == steps - 1, last, first + (last - first) * (places / count.clip(1))).cast(dtype)
    ends = number(start, "linspace", "start"), number(end, "linspace", "end")
    return tensor(np.linspace(*ends, *made_shape((steps,), "linspace")), dtype, device)


@accept_torch_names
def logspace(
    start: Number, end: Number, steps: Dim, base: float = 10.0, *, dtype: Any = float32, device: str | Device | None = None
) -> Tensor:  # fmt: skip
    """`steps` powers of a base, whose exponents are at equal distances from start to end."""
    if isinstance(steps, Size):
        return (base ** linspace(start, end, steps)).cast(dtype)
    ends = number(start, "logspace", "start"), number(end, "logspace", "end")
    return tensor(np.logspace(*ends, *made_shape((steps,), "logspace"), base=base), dtype, device)


@accept_torch_names
def where(condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None) -> Any:
    """x where the condition holds, y elsewhere; of a condition alone, where it holds: a vector of indices for each axis."""
    if x is None or y is None:
        if x is not None or y is not None or not isinstance(condition, Tensor):
            given = "alone" if x is y else "with one choice"
            raise InputError(
                f"where: got {in_words(condition)} {given}, expected a condition and two choices, or a Tensor alone"
            )
        return condition.nonzero(as_tuple=True)
    return apply_row(ROWS["where"], (condition, x, y))


check_functions(globals())
