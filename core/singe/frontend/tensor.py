"""Tensor: a handle on a value of a Device. Immutable, and safe to share between threads.

Every operation is a function (builder, *nodes) ↦ node that the device runs: at once, later (Fusion), or never (while
tracing). Every row of `singe.ops` is a method: `x.exp()`, `x.hard_sigmoid(alpha=0.3)`. Only methods whose arguments
differ from the row's attributes are written out below.

meet.py defines how operands of different types are combined. A NumPy array is uploaded to the device as by `tensor()`.
Tensors of different devices cannot be combined: that is a DeviceError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, Union

import numpy as np

from ..dtypes import DType, bool_, dtype, float16, float32, int32, int64, uint8, widened
from ..errors import DeviceError, DTypeError, InputError, ShapeError, SingeError, SizeNeeded
from ..ir.scalar import Number
from ..ops import ROWS, Composite, Elementwise, Region, Result, Row
from ..runtime.device import Device, DeviceValue
from ..runtime.devices import DEFAULT
from ..runtime.devices import device as find_device
from ..runtime.waiting import soon
from ..shapes import Size, axis_of, product, show, symbols
from . import indexing, shaping, spatial
from .meet import PLAIN, as_type, common_type, matmul_nodes, plain_array, power
from .reductions import SUM_TYPES, place_of, reduced
from .shaping import Axis, unpacked
from .spatial import Ints, Padding

TensorLike: TypeAlias = Union["Tensor", np.ndarray, Number]
Dims: TypeAlias = tuple[int, ...]
_int: TypeAlias = int
"""The type; within the class, `int` is the method."""

_LOGIC: Final = {
    "and": ("logical_and", "bitwise_and"),
    "or": ("logical_or", "bitwise_or"),
    "xor": ("logical_xor", "bitwise_xor"),
}
NO_METHODS: Final = (Region, Result)
"""Kinds of row for which a Tensor has no method: their inputs are graphs, or nodes of several results."""
_SHOWN: Final = 1000
"""From this number of elements, repr omits those in the middle."""


# --- operations on tensors -------------------------------------------------------------------------------------------


def apply(build: Callable[..., Any], *operands: TensorLike | None) -> Any:
    """The tensor of `build(builder, *operands)`, or a tuple of tensors if that makes several nodes.

    `build` gets nodes for tensors and arrays; numbers and None are passed unchanged.
    """
    home = _home([x.device for x in operands if isinstance(x, Tensor)])
    placed = {i: x for i, x in enumerate(operands) if isinstance(x, (Tensor, np.ndarray))}

    def built(b: Any, *nodes: Any) -> Any:
        given = dict(enumerate(operands)) | dict(zip(placed, nodes, strict=True))
        return build(b, *given.values())

    found = tuple(Tensor(home, v) for v in home.apply(built, [value_on(home, x) for x in placed.values()]))
    return found[0] if len(found) == 1 else found


def _home(devices: Sequence[Device]) -> Device:
    """The device on which an operation runs: that of its tensors. A device that adopts other devices' values comes first."""
    if not devices:
        return find_device(DEFAULT)
    return max(dict.fromkeys(devices), key=lambda d: d.adopts)


def value_on(home: Device, x: Tensor | np.ndarray) -> Any:
    """The elements of a tensor or an array as a value of the device `home`."""
    if isinstance(x, Tensor):
        return x._value if x.device is home else home.adopt(x._value, x.device)
    return home.upload(plain_array(x))


def elementwise(row: Elementwise, operands: Sequence[TensorLike], **attrs: Any) -> Tensor:
    """An elementwise row over operands, which are first converted to their common dtype."""

    def build(b: Any, *given: Any) -> Any:
        takes = row.takes or ("T",) * len(given)
        kind = common_type([x for x, takes_it in zip(given, takes, strict=False) if takes_it == "T"])
        nodes = [
            as_type(b, x, kind) if k == "T" or isinstance(x, PLAIN) else x for x, k in zip(given, takes, strict=False)
        ]
        return b.apply(row, *nodes, *given[len(takes) :], **attrs)

    return apply(build, *map(_operand, operands))


def _operand(x: Any) -> Any:
    """The operand; a NumPy scalar as a Python number."""
    return x.item() if isinstance(x, np.generic) else x


def call_row(row: Row, operands: Sequence[TensorLike | None], **attrs: Any) -> Any:
    """Any row over operands; a tuple of tensors if it has several results. Numbers take the first operand's dtype, but
    for indices, which are int64."""
    if isinstance(row, Elementwise):
        return elementwise(row, [x for x in operands if x is not None], **attrs)

    def build(b: Any, first: Any, *rest: Any) -> Any:
        kinds = [int64 if row.is_index(k) and not isinstance(x, float) else first.dtype for k, x in enumerate(rest, 1)]
        nodes = [as_type(b, x, kind) if isinstance(x, PLAIN) else x for x, kind in zip(rest, kinds, strict=True)]
        return b.apply(row, first, *nodes, **attrs)

    try:
        return apply(build, *map(_operand, operands))
    except TypeError as e:
        if not isinstance(e, SingeError):
            _check_call(row, operands, attrs)
        raise


def _check_call(row: Row, operands: Sequence[Any], attrs: Mapping[str, Any]) -> None:
    """Refuse inputs and attributes that the functions of a row do not take."""
    import inspect  # noqa: PLC0415 (an error may take its time, `import singe` may not)

    if not row.declared_by:
        return
    signature = inspect.signature(getattr(row, row.declared_by))
    if isinstance(row, Composite):  # without the builder
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    try:
        signature.bind(*operands, **attrs)
    except TypeError as e:
        names = ", ".join(str(p).split(":")[0] for p in signature.parameters.values())
        raise InputError(f"{row.name}({names}): {e}; pass what is no tensor by name") from None


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    """A binary operator from an elementwise row."""

    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(other, (Tensor, np.ndarray, np.generic, *PLAIN)):
            return NotImplemented
        row = ROWS[name]
        assert isinstance(row, Elementwise)
        number = _operand(other)
        return elementwise(row, (number, self) if reflected else (self, number))

    return method


def _division(reflected: bool) -> Callable[..., Any]:
    """True division: if both sides are integers, they become float32 first."""
    divide = _operator("div", reflected)

    def method(self: Tensor, other: Any) -> Tensor:
        if not self.dtype.is_float and not (isinstance(other, (Tensor, np.ndarray)) and dtype(other.dtype).is_float):
            self = self.cast(float32)
        return divide(self, other)

    return method


def _logic(word: str) -> Callable[..., Any]:
    """& | ^: logical for bools, bitwise for integers."""

    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(other, (Tensor, np.ndarray, np.generic, bool, int)):
            return NotImplemented

        def build(b: Any, *given: Any) -> Any:
            kind = common_type(given)
            logical, bitwise = _LOGIC[word]
            return getattr(b, logical if kind is bool_ else bitwise)(*(as_type(b, x, kind) for x in given))

        return apply(build, self, _operand(other))

    return method


# --- Tensor ----------------------------------------------------------------------------------------------------------


class Tensor:
    """A handle on a value of a Device; `singe.tensor` makes one. See the module's docstring."""

    __slots__ = ("__weakref__", "_device", "_value")

    __array_ufunc__ = None  # so that `array * tensor` calls our operator, not NumPy's

    def __init__(self, device: Device, value: DeviceValue) -> None:
        self._device = device
        self._value = value

    # properties

    @property
    def device(self) -> Device:
        return self._device

    @property
    def shape(self) -> Dims:
        return self._value.shape

    @property
    def dtype(self) -> DType:
        return self._value.dtype

    @property
    def ndim(self) -> _int:
        return len(self.shape)

    @property
    def size(self) -> _int:
        return product(self.shape)  # pyright: ignore[reportReturnType]

    def __len__(self) -> _int:
        if not self.shape:
            raise ShapeError("len: this tensor has no axes; use item() for its value")
        if isinstance(self.shape[0], Size):
            raise SizeNeeded(
                f"axis 0 of {show(self.shape)} has no length until a run, so that Python cannot count or iterate over it; "
                "shape[0] may be used in its place",
                symbols(self.shape[0]),
            )
        return self.shape[0]

    def __repr__(self) -> str:
        try:
            elements = np.array2string(self._widened(), separator=", ", prefix="tensor(", threshold=_SHOWN)
        except DeviceError:  # while tracing, or after the device was lost
            elements = "…"
        return f"tensor({elements}, shape={show(self.shape)}, dtype={self.dtype}, device={self.device.label})"

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.device, self.numpy())

    # elements

    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array that the caller owns; waits for the device.

        Elements of a type that NumPy lacks, such as bfloat16, are their bits, in a field of the type's name."""
        return self.device.download(self._value)

    def _widened(self) -> np.ndarray:
        """The elements as numbers of NumPy's: those of a type that it lacks in the type that they are computed in."""
        array = self.numpy()
        return widened(array) if array.dtype.names else array

    async def numpy_async(self) -> np.ndarray:
        """`numpy` for a page, where reading from the device may have to be awaited."""
        return await soon(self.device.fetch(self._value))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a tensor cannot become an array without a copy")
        array = self.numpy()
        if dtype is None or array.dtype == dtype:
            return array
        return self._widened().astype(dtype)

    def item(self) -> Number:
        """The only element as a Python number."""
        if self.size != 1:
            raise ShapeError(f"item: the tensor has {self.size} elements, expected 1; use numpy() or tolist()")
        return self._widened().item()

    def tolist(self) -> Any:
        return self._widened().tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"the truth of a tensor with {self.size} elements is ambiguous; reduce it first, as in (x > 0).min()"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> _int:
        return int(self.item())

    def __index__(self) -> _int:
        if not self.dtype.is_int:
            raise DTypeError(f"an index must be an integer, this tensor is {self.dtype}")
        return int(self.item())

    def to(self, device: str | Device) -> Tensor:
        """The tensor on another device; itself if it is on that device already."""
        target = find_device(device)
        return self if target is self.device else Tensor(target, target.upload(self.numpy()))

    def backward(self) -> Any:
        raise DeviceError(f"backward: {self.device!r} does not record gradients; no device does yet")

    # rows as methods

    def __getattr__(self, name: str) -> Callable[..., Any]:
        row = ROWS.get(name)
        if row is None or isinstance(row, NO_METHODS):
            raise AttributeError(f"a tensor has no method {name!r}{_closest(name)}", name=name, obj=self)
        return _method(row).__get__(self)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name, row in ROWS.items() if not isinstance(row, NO_METHODS))})

    def update_slice(self, part: TensorLike, *starts: Any) -> Tensor:
        """The tensor with a part replaced, which begins at a start along each axis: `cache.update_slice(row, at, 0)`.

        The starts are integers, or tensors of one integer. One is moved so that the part lies within the tensor."""
        return call_row(ROWS["update_slice"], (self, part, *unpacked(starts)))

    def top_k(self, k: _int, axis: _int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
        """The k largest (or smallest) elements along an axis, in order, and their places."""
        return call_row(ROWS["top_k"], (self,), axis=axis, k=k, largest=largest)

    # operators

    __add__ = __radd__ = _operator("add")
    __mul__ = __rmul__ = _operator("mul")
    __sub__ = _operator("sub")
    __rsub__ = _operator("sub", reflected=True)
    __truediv__ = _division(reflected=False)
    __rtruediv__ = _division(reflected=True)
    __eq__: Callable[..., Any] = _operator("equal")  # pyright: ignore[reportAssignmentType]
    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater")
    __ge__ = _operator("greater_equal")
    __and__ = __rand__ = _logic("and")
    __or__ = __ror__ = _logic("or")
    __xor__ = __rxor__ = _logic("xor")
    __hash__ = object.__hash__

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else ~same

    def __neg__(self) -> Tensor:
        return call_row(ROWS["neg"], (self,))

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return call_row(ROWS["abs"], (self,))

    def __invert__(self) -> Tensor:
        return call_row(ROWS["logical_not" if self.dtype is bool_ else "bitwise_not"], (self,))

    def __pow__(self, exponent: Any) -> Tensor:
        return apply(lambda b, x: power(b, x, _operand(exponent)), self)

    def __matmul__(self, other: Any) -> Tensor:
        return self.matmul(other) if isinstance(other, (Tensor, np.ndarray)) else NotImplemented

    def __rmatmul__(self, other: Any) -> Tensor:
        return apply(matmul_nodes, other, self) if isinstance(other, np.ndarray) else NotImplemented

    def matmul(self, other: TensorLike) -> Tensor:
        """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
        return apply(matmul_nodes, self, other)

    # types

    def cast(self, to: Any) -> Tensor:
        """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
        kind = dtype(to)
        return self if kind is self.dtype else call_row(ROWS["cast"], (self,), to=kind)

    astype = cast

    def float(self) -> Tensor:
        return self.cast(float32)

    def half(self) -> Tensor:
        return self.cast(float16)

    def int(self) -> Tensor:
        return self.cast(int32)

    # shapes

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in row-major order under another shape, in which one dimension may be -1."""
        wanted = unpacked(shape)
        return apply(lambda b, x: b.reshape(x, shape=shaping.inferred_shape(x.shape, wanted)), self)

    def flatten(self, start: _int = 0, end: _int = -1) -> Tensor:
        """The axes from start to end (inclusive) merged into one."""
        return self.reshape(*shaping.flattened(self.shape, start, end))

    def squeeze(self, axis: Axis = None) -> Tensor:
        """The tensor without axes of length 1: without those given, or without all of them."""
        return self.reshape(*shaping.squeezed(self.shape, axis))

    def unsqueeze(self, axis: _int) -> Tensor:
        """The tensor with a new axis of length 1 at this position of the result."""
        at = axis_of(axis, self.ndim + 1, "unsqueeze")
        return self.reshape(*self.shape[:at], 1, *self.shape[at:])

    def transpose(self, *perm: Any) -> Tensor:
        """The axes in another order; reversed if none is given."""
        order = unpacked(perm) or tuple(reversed(range(self.ndim)))
        return call_row(ROWS["transpose"], (self,), perm=tuple(axis_of(p, self.ndim, "transpose") for p in order))

    permute = transpose

    @property
    def T(self) -> Tensor:
        return self.transpose()

    @property
    def mT(self) -> Tensor:
        """Every matrix of a stack transposed: the last two axes are swapped."""
        if self.ndim < 2:
            raise ShapeError(f"mT: got {show(self.shape)}, expected at least two axes")
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def broadcast_to(self, *shape: Any) -> Tensor:
        """The tensor repeated along axes of length 1, and along new leading axes."""
        return call_row(ROWS["expand"], (self,), shape=unpacked(shape))

    def expand(self, *shape: Any) -> Tensor:
        """Like broadcast_to; -1 keeps a dimension."""
        return self.broadcast_to(shaping.expanded(self.shape, unpacked(shape)))

    def pad(self, width: _int | Sequence[Any], mode: str = "constant", value: Number = 0) -> Tensor:
        """The tensor with elements added before and after every axis. width: one number, or (before, after) for each
        axis. mode: "constant" (of `value`), "reflect", "edge" or "wrap"."""
        before, after = shaping.pad_widths(width, self.ndim)
        return call_row(ROWS["pad"], (self, value), before=before, after=after, mode=mode)

    def __getitem__(self, key: Any) -> Tensor:
        """Elements by integers, slices, None, ... and one array of integers; see indexing.py."""
        places: list[Any] = []
        index: Any = None
        for item in key if isinstance(key, tuple) else (key,):
            if isinstance(item, Tensor):
                index, item = item, indexing.ArrayIndex(item.dtype.numpy)
            elif isinstance(item, (np.ndarray, list)):
                index = np.asarray(item, np.int64 if isinstance(item, list) and not item else None)
                item = indexing.ArrayIndex(index.dtype, index)
                index = index.astype(np.int64)
            places.append(item)
        return apply(indexing.parse_key(self.shape, places).build, self, index)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def take(self, index: Tensor | np.ndarray | Sequence[_int], axis: _int = 0) -> Tensor:
        """The slices along an axis at the given indices; negative ones count from the end."""
        at = axis_of(axis, self.ndim, "take")
        return self[(slice(None),) * at + (index if isinstance(index, (Tensor, np.ndarray)) else list(index),)]

    def split(self, sizes: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
        """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
        at = axis_of(axis, self.ndim, "split")
        return tuple(self[(slice(None),) * at + (part,)] for part in shaping.split_slices(sizes, self.shape, at))

    # reductions

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The sum over axes (all, if none is given); integers are summed as int64."""
        return self.cast(SUM_TYPES.get(self.dtype, self.dtype))._reduced("reduce_sum", axis, keepdims)

    def prod(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return self.cast(SUM_TYPES.get(self.dtype, self.dtype))._reduced("reduce_prod", axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The mean over axes; integers become float32 first."""
        return (self if self.dtype.is_float else self.cast(float32))._reduced("reduce_mean", axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return self._extreme("reduce_max", axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return self._extreme("reduce_min", axis, keepdims)

    def argmax(self, axis: _int | None = None, keepdims: bool = False) -> Tensor:
        """The index of the largest element along an axis (the first, if several are equal), as int64;
        without an axis, the index in the flat tensor."""
        return self._place_of("reduce_max", axis, keepdims)

    def argmin(self, axis: _int | None = None, keepdims: bool = False) -> Tensor:
        return self._place_of("reduce_min", axis, keepdims)

    def _reduced(self, row: str, axis: Axis, keepdims: bool) -> Tensor:
        axes = shaping.chosen_axes(axis, self.ndim, row.removeprefix("reduce_"))
        return apply(lambda b, x: reduced(b, x, row, axes, keepdims), self) if axes else self

    def _extreme(self, row: str, axis: Axis, keepdims: bool) -> Tensor:
        if self.dtype is bool_:
            return self.cast(uint8)._reduced(row, axis, keepdims).cast(bool_)
        return self._reduced(row, axis, keepdims)

    def _place_of(self, row: str, axis: _int | None, keepdims: bool) -> Tensor:
        if axis is None:
            place = self.flatten()._place_of(row, 0, keepdims=False)
            return place.reshape((1,) * self.ndim) if keepdims else place
        at = axis_of(axis, self.ndim, row)
        return apply(lambda b, x: place_of(b, x, row, at, keepdims), self)

    def softmax(self, axis: _int = -1) -> Tensor:
        """exp(x), divided by its sum along an axis."""
        return call_row(ROWS["softmax"], (self,), axis=axis)

    def log_softmax(self, axis: _int = -1) -> Tensor:
        """The logarithm of `softmax`."""
        return call_row(ROWS["log_softmax"], (self,), axis=axis)

    def clip(self, low: TensorLike | None = None, high: TensorLike | None = None) -> Tensor:
        """Elements clipped to the range from low to high (None: no limit)."""
        bounds = ((low, "maximum"), (high, "minimum"))
        if low is not None and high is not None:
            return call_row(ROWS["clip"], (self, low, high))
        return next((call_row(ROWS[row], (self, bound)) for bound, row in bounds if bound is not None), self)

    # windows: (batch, channels, …space), with PyTorch's arguments

    def conv(
        self, weight: TensorLike, bias: TensorLike | None = None, *, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1
    ) -> Tensor:  # fmt: skip
        """Convolution with weights (outputs, channels per group, …window). padding: numbers, "same" or "valid"."""
        return apply(lambda b, x, w, c: spatial.conv(b, x, w, c, stride, padding, dilation, groups), self, weight, bias)

    def conv_transpose(
        self, weight: TensorLike, bias: TensorLike | None = None, *,
        stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, dilation: Ints = 1, groups: _int = 1,
    ) -> Tensor:  # fmt: skip
        """The transpose of a convolution, with weights (channels, outputs per group, …window)."""
        return apply(
            lambda b, x, w, c: spatial.conv_transpose(b, x, w, c, stride, padding, output_padding, dilation, groups),
            self, weight, bias,
        )  # fmt: skip

    def max_pool(
        self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: bool = False
    ) -> Tensor:  # fmt: skip
        """The largest element of each window; the default stride is the window's size."""
        return apply(lambda b, x: spatial.max_pool(b, x, kernel_size, stride, padding, dilation, ceil_mode), self)

    def avg_pool(
        self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> Tensor:  # fmt: skip
        """The mean of each window."""
        return apply(
            lambda b, x: spatial.avg_pool(b, x, kernel_size, stride, padding, ceil_mode, count_include_pad), self
        )

    def adaptive_avg_pool(self, output_size: Ints) -> Tensor:
        """Means over equal windows that give the requested output size."""
        return apply(lambda b, x: spatial.adaptive_avg_pool(b, x, output_size), self)

    def interpolate(
        self, size: Ints | None = None, scale: Any = None, mode: str = "nearest", align_corners: bool = False
    ) -> Tensor:  # fmt: skip
        """Spatial axes resampled to a size or by a scale. mode:
        nearest, nearest-exact, linear, bilinear, trilinear, bicubic."""
        return apply(lambda b, x: spatial.interpolate(b, x, size, scale, mode, align_corners), self)


def _method(row: Row) -> Any:
    """A row as a method."""

    def method(self: Tensor, *others: Any, **attrs: Any) -> Any:
        return call_row(row, (self, *others), **attrs)

    method.__name__ = row.name
    method.__qualname__ = f"Tensor.{row.name}"
    method.__doc__ = row.doc or f"{row.name} of each element"
    return method


for _row in ROWS.values():  # those that are registered later are found by __getattr__
    if not isinstance(_row, NO_METHODS) and not hasattr(Tensor, _row.name):
        setattr(Tensor, _row.name, _method(_row))


def _restored(device: Device, array: np.ndarray) -> Tensor:
    """The function that unpickling calls."""
    return Tensor(device, device.upload(array))


def _closest(name: str) -> str:
    if name.startswith("__"):  # Python's and NumPy's protocols often look these up
        return ""
    import difflib  # noqa: PLC0415 (an error may take its time, `import singe` may not)

    near = difflib.get_close_matches(name, [n for n in {*dir(Tensor), *ROWS} if not n.startswith("_")], 1)
    return f"; did you mean {near[0]!r}?" if near else ""
