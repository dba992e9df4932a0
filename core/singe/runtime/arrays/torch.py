"""The devices of PyTorch: its tensors as arrays of rows.

PyTorch has next to no arithmetic of unsigned integers beyond uint8, and Apple's GPUs no float64: ops with these are NumPy's.
Only this file, torch_rows.py and torch_kernels.py import torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ...dtypes import DType, bool_, dtype, int64
from ...dtypes import bfloat16 as bfloat16_
from ...errors import DeviceError
from ...ir.arrays.adapter import Array, ArrayAdapter, ElementwiseRow, Places
from .backend import ArrayBackend
from .torch_kernels import compiles, joined_rows
from .torch_rows import ELEMENTWISE, NATIVE, RecordedRun

TYPES: Final = (
    "bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
LACKING: Final[Mapping[str, tuple[str, ...]]] = {"mps": ("float64", "complex64", "complex128")}
"""Kinds of devices ↦ the types that they lack."""
PREFERRED: Final = ("cuda", "mps", "cpu")
"""The device without a choice is the first of these that is here."""
MAX_NUMBERS: Final = 4096
"""How many numbers a device keeps as arrays."""
REDUCTIONS: Final = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
"""Words ↦ how PyTorch calls them where it combines elements at equal places."""


class TorchAdapter(ArrayAdapter):
    """Tensors of one device."""

    unfit = (ValueError, IndexError, TypeError, RuntimeError)
    exhausted = (MemoryError, torch.OutOfMemoryError)

    # --- names that PyTorch says otherwise ---------------------------------------------------------------------------

    equal = staticmethod(torch.eq)
    permute_dims = staticmethod(torch.permute)
    bitwise_invert = staticmethod(torch.bitwise_not)
    concat = staticmethod(torch.cat)

    def __init__(self, device: torch.device, overwrites: bool = False) -> None:
        self.device, self.overwrites = device, overwrites
        self.scope = torch.no_grad if device.type == "cpu" else _exact_products
        self._numbers: dict[tuple[DType, str], Array] = {}
        self._kept: set[int] = set()  # where their memory is
        self.joined = joined_rows if compiles(device) else None
        super().__init__(torch, {"slice": _slice, **NATIVE})
        self.in_place = self if overwrites else TorchAdapter(device, overwrites=True)

    def _types(self) -> dict[Any, DType]:
        return {getattr(torch, name): dtype(name) for name in TYPES if name not in LACKING.get(self.device.type, ())}

    def astype(self, x: Array, to: Any) -> Array:
        return x.to(to)

    def asarray(self, values: Any, kind: DType | None = None) -> Array:
        to = None if kind is None else self._of(kind)
        if isinstance(values, torch.Tensor):
            return values.to(self.device, to)
        if isinstance(values, (np.ndarray, np.generic)):
            return self._of_numpy(np.asarray(values)).to(self.device, to)
        if kind is not None and isinstance(values, (bool, int, float)):
            return self._number(values, kind)
        return torch.tensor(values, dtype=to, device=self.device)

    def _number(self, value: float, kind: DType) -> Array:
        """An array of one number, which the device keeps: to send it takes longer than to compute with it."""
        key = kind, repr(value)
        found = self._numbers.get(key)
        if found is None:
            found = torch.full((), value, dtype=self._of(kind), device=self.device)
            if len(self._numbers) < MAX_NUMBERS and not self._records:
                self._numbers[key] = found
                self._kept.add(found.untyped_storage().data_ptr())
        return found

    @property
    def _records(self) -> bool:
        """Whether what runs now is being recorded, in memory that is not its own."""
        return self.device.type == "cuda" and torch.cuda.is_current_stream_capturing()

    def from_dlpack(self, x: Any) -> Array:
        return torch.from_dlpack(x).to(self.device)

    def _of_numpy(self, array: np.ndarray) -> Array:
        """A tensor over the memory of an array, which is copied if it may not be written or PyTorch cannot step through it."""
        bits = array.view(np.int16) if array.dtype.names else array
        if not bits.flags.writeable or any(s < 0 for s in bits.strides):
            bits = bits.copy()
        found = torch.from_numpy(bits)
        return found.view(torch.bfloat16) if array.dtype.names else found

    def host(self, x: Array) -> np.ndarray:
        x = x.resolve_conj().resolve_neg().cpu()
        return (
            x.contiguous().view(torch.int16).numpy().view(bfloat16_.numpy) if x.dtype is torch.bfloat16 else x.numpy()
        )

    def item(self, x: Array) -> Any:
        return x.reshape(-1)[0].item()

    def arange(self, count: int, kind: DType = int64) -> Array:
        return torch.arange(count, dtype=self._of(kind), device=self.device)

    def full(self, shape: Sequence[int], value: Any, kind: DType) -> Array:
        if isinstance(value, torch.Tensor):
            return value.to(self._of(kind)).expand(tuple(shape)).clone()
        return torch.full(tuple(shape), value, dtype=self._of(kind), device=self.device)

    def copy(self, x: Array) -> Array:
        return x.clone(memory_format=torch.contiguous_format)

    def apart(self, x: Array, taken: Sequence[Array]) -> Array:
        memory = x.untyped_storage().data_ptr()
        own = x.is_contiguous() and x.untyped_storage().nbytes() == x.nbytes
        if own and not any(isinstance(y, torch.Tensor) and y.untyped_storage().data_ptr() == memory for y in taken):
            return x
        return self.copy(x)

    def unset(self, shape: Sequence[int], kind: DType) -> Array:
        return torch.empty(tuple(shape), dtype=self._of(kind), device=self.device)

    def shares(self, x: Array, y: Array) -> bool:
        return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        return RecordedRun(function, self.apart) if self.device.type == "cuda" else None

    def wait(self, arrays: Sequence[Array]) -> None:
        if self.device.type != "cpu":
            getattr(torch, self.device.type).synchronize()

    # --- places ------------------------------------------------------------------------------------------------------

    def take(self, x: Array, indices: Array, axis: int) -> Array:
        axis %= x.ndim
        found = torch.index_select(x, axis, indices.reshape(-1).to(torch.int64))
        return found.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))

    def take_along_axis(self, x: Array, indices: Array, axis: int) -> Array:
        return torch.take_along_dim(x, indices.to(torch.int64), axis)

    def at(self, x: Array, places: Places) -> Array:
        return x[tuple(p if isinstance(p, slice) else p.to(torch.int64) for p in places)].contiguous()

    def put(self, x: Array, places: Places, part: Array, word: str = "", over: bool = False) -> Array:
        if 0 in part.shape:
            return x
        out = x if over or self.overwrites else self.copy(x)
        if any(isinstance(p, slice) for p in places) or not places:
            if any(isinstance(p, slice) and (p.step or 1) < 0 for p in places):  # PyTorch steps forward only
                turned = [i for i, p in enumerate(places) if (p.step or 1) < 0]
                places = [_forward(p, d) for p, d in zip(places, x.shape, strict=True)]
                part = torch.flip(part, turned)
            cut = out[tuple(places)]
            cut.copy_(self.words[word](cut, part) if word else part)
            return out
        flat, shape = self._flat(x, places)
        rest, count = x.shape[len(places) :], math.prod(x.shape[: len(places)])
        table = out.view(count, *rest) if out.is_contiguous() else out.reshape(count, *rest)
        part = torch.broadcast_to(part, (*shape, *rest)).reshape(-1, *rest)
        if not word:
            table[flat] = part
        elif word == "add":
            table.index_add_(0, flat, part)
        else:
            index = flat.reshape(-1, *(1 for _ in rest)).expand(part.shape)
            table.scatter_reduce_(0, index, part, REDUCTIONS[word])
        return out if table.data_ptr() == out.data_ptr() else table.reshape(x.shape)

    def windows(
        self, x: Array, fill: Any, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
        before: Sequence[int], after: Sequence[int],
    ) -> Array:  # fmt: skip
        if any(before) or any(after):
            room = self.full([a + d + b for a, d, b in zip(before, x.shape, after, strict=True)], fill, self.dtype(x))
            room[tuple(slice(a, a + d) for a, d in zip(before, x.shape, strict=True))] = x
            x = room
        facts = list(zip(x.shape, window, strides, dilations, x.stride(), strict=True))
        places = [max((d - r * (w - 1) - 1) // s + 1, 0) for d, w, s, r, _ in facts]
        steps = [s * step for _, _, s, _, step in facts] + [r * step for _, _, _, r, step in facts]
        return torch.as_strided(x, (*places, *window), steps, x.storage_offset())

    # --- folds and orders --------------------------------------------------------------------------------------------

    def sum(self, x: Array, axis: Sequence[int], keepdims: bool = False, dtype: Any = None) -> Array:
        return torch.sum(x, _axes(axis), keepdim=keepdims, dtype=dtype) if _axes(axis) else x.to(dtype or x.dtype)

    def prod(self, x: Array, axis: Sequence[int], keepdims: bool = False, dtype: Any = None) -> Array:
        x = x.to(dtype or x.dtype)
        for a in sorted((a % x.ndim for a in _axes(axis)), reverse=True):
            x = torch.prod(x, a, keepdim=keepdims, dtype=dtype)
        return x

    def max(self, x: Array, axis: Any = None, keepdims: bool = False) -> Array:
        return _extreme(torch.amax, x, axis, keepdims)

    def min(self, x: Array, axis: Any = None, keepdims: bool = False) -> Array:
        return _extreme(torch.amin, x, axis, keepdims)

    def argmax(self, x: Array, axis: int, keepdims: bool = False) -> Array:
        return torch.argmax(x.to(torch.uint8) if x.dtype is torch.bool else x, axis, keepdim=keepdims)

    def argmin(self, x: Array, axis: int, keepdims: bool = False) -> Array:
        return torch.argmin(x.to(torch.uint8) if x.dtype is torch.bool else x, axis, keepdim=keepdims)

    def cumulative_sum(self, x: Array, axis: int, dtype: Any = None) -> Array:
        return torch.cumsum(x, axis, dtype=dtype)

    def cumulative_prod(self, x: Array, axis: int, dtype: Any = None) -> Array:
        return torch.cumprod(x, axis, dtype=dtype)

    def argsort(self, x: Array, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
        return torch.argsort(x, dim=axis, descending=descending, stable=stable)

    def flip(self, x: Array, axis: Any = None) -> Array:
        return torch.flip(x, tuple(range(x.ndim)) if axis is None else _axes(axis))

    def searchsorted(self, x: Array, values: Array, side: str = "left") -> Array:
        return torch.searchsorted(x.contiguous(), values.contiguous(), side=side)

    def clip(self, x: Array, low: Any, high: Any) -> Array:
        low, high = (v if isinstance(v, torch.Tensor) else self.asarray(v, self.dtype(x)) for v in (low, high))
        return torch.minimum(torch.maximum(x, low), high)

    # --- elements ----------------------------------------------------------------------------------------------------

    def elementwise(
        self, row: ElementwiseRow, arrays: Sequence[Array], attrs: Mapping[str, Any], spent: Sequence[int] = (), into: Array | None = None
    ) -> Array:  # fmt: skip
        function = ELEMENTWISE.get(row.name)
        if function is not None and all(a.dtype is arrays[0].dtype and a.is_floating_point() for a in arrays):
            return function(*arrays, **attrs).contiguous()
        found = super().elementwise(row, arrays, attrs)
        memory = found.untyped_storage().data_ptr()
        shared = memory in self._kept or any(a.untyped_storage().data_ptr() == memory for a in arrays)
        return self.copy(found) if shared else found

    def _words(self) -> dict[str, Callable[..., Any]]:
        def bits(kind: str) -> Callable[[Array], Array]:
            return lambda a: a.view(getattr(torch, f"{kind}{8 * a.element_size()}"))

        def remainder(a: Array, b: Array) -> Array:
            if a.is_floating_point():
                return torch.fmod(a, b)
            return torch.fmod(a, torch.where(b == 0, 1, b))

        def quotient(a: Array, b: Array) -> Array:
            if a.is_floating_point() or a.is_complex():
                return torch.div(a, b)
            return torch.where(b == 0, 0, torch.div(a, torch.where(b == 0, 1, b), rounding_mode="trunc"))

        def shift(function: Callable[..., Array]) -> Callable[[Array, Array], Array]:
            return lambda a, b: function(a, torch.bitwise_and(b, 8 * a.element_size() - 1))

        return {
            **super()._words(), "bits": bits("int"), "of_bits": bits("float"), "rem": remainder, "div": quotient,
            "shl": shift(torch.bitwise_left_shift), "shr": shift(torch.bitwise_right_shift),
        }  # fmt: skip

    def bytes_held(self) -> tuple[int | None, int | None, int | None]:
        if self.device.type != "cuda":
            return super().bytes_held()
        on = torch.cuda
        return on.memory_allocated(self.device), on.memory_reserved(self.device), on.max_memory_allocated(self.device)

    def clean(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def reset_peak(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)

    def floor(self, x: Array) -> Array:
        return torch.floor(x) if x.is_floating_point() else x

    def trunc(self, x: Array) -> Array:
        return torch.trunc(x) if x.is_floating_point() else x

    def real(self, x: Array) -> Array:
        return torch.real(x).clone()

    def matmul(self, a: Array, b: Array) -> Array:
        if self.device.type == "cpu" or a.is_floating_point() or a.is_complex():
            return torch.matmul(a, b)
        return torch.matmul(a.cpu(), b.cpu()).to(self.device)  # on GPUs PyTorch multiplies no matrices of integers


@contextmanager
def _exact_products() -> Iterator[None]:
    """Products of float32 have the digits of float32, and sums of half precision those too, whatever the caller chose for PyTorch."""
    matmul: Any = torch.backends.cuda.matmul
    convolution: Any = torch.backends.cudnn
    before = matmul.allow_tf32, convolution.allow_tf32, matmul.allow_fp16_reduced_precision_reduction
    matmul.allow_tf32 = convolution.allow_tf32 = matmul.allow_fp16_reduced_precision_reduction = False
    try:
        with torch.no_grad():
            yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32, matmul.allow_fp16_reduced_precision_reduction = before


def _axes(axis: Any) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _extreme(function: Callable[..., Array], x: Array, axis: Any, keepdims: bool) -> Array:
    axes = tuple(range(x.ndim)) if axis is None else _axes(axis)
    if not axes:
        return x
    return function(x, axes, keepdim=keepdims)


def _forward(cut: slice, length: int) -> slice:
    """A slice with a positive step over the same places."""
    met = range(*cut.indices(length))
    if met.step > 0:
        return cut
    return slice(met[-1], met[0] + 1, -met.step)


def _slice(x: Array, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]) -> Array:
    """A view, but for axes with a negative step, which PyTorch has no views of."""
    cuts = []
    for at, step, count in zip(starts, steps, sizes, strict=True):
        first, last = min(at, at + (count - 1) * step), max(at, at + (count - 1) * step)
        cuts.append(slice(first, last + 1 if count else first, abs(step)))
    turned = [axis for axis, step in enumerate(steps) if step < 0]
    return torch.flip(x[tuple(cuts)], turned) if turned else x[tuple(cuts)]


def open_device(choice: str = "") -> ArrayBackend:
    """PyTorch's device of this name, or the best that is here."""
    if not choice:
        choice = next(kind for kind in PREFERRED if kind == "cpu" or getattr(torch, kind).is_available())
    try:
        device = torch.device(choice)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", 0)
        adapter = TorchAdapter(device)
        adapter.asarray(0, bool_)
    except Exception as e:  # each of PyTorch's devices raises its own kind, AssertionError among them
        why = str(e).splitlines()[0]
        raise DeviceError(
            f"no device 'torch:{choice}': {why}; name one that PyTorch has here, such as 'torch:cpu'"
        ) from e
    facts: dict[str, Any] = {"torch": torch.__version__}
    if device.type == "cuda":
        facts["adapter"] = torch.cuda.get_device_name(device)
    return ArrayBackend(f"torch:{device}", adapter, facts, on_host=device.type == "cpu")
