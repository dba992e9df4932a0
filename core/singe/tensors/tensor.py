"""Tensor: a handle on a value of a Device. Immutable, and safe to share between threads.

Every operation is a function (builder, *nodes) ↦ node that the device runs: at once, later (Fusion), or never (while
tracing). This file has what a handle needs; the other methods are functions in methods/, one file for each subject.
Rows of `singe.ops` are methods, too, but for those that say `public=False`: `x.hard_sigmoid(alpha=0.3)`. `tensor.pyi`, which tests/stubs.py
writes, lists all methods for editors and type checkers.

nodes/promotion.py defines how operands of different types are combined. A NumPy array is uploaded to the device as by `tensor()`.
Tensors of different devices cannot be combined: that is a DeviceError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union

import numpy as np

from ..awaitables import MaybeAwaitable, map_result, resolve, resolve_async
from ..dtypes import DTYPES, DType, own, plain
from ..dtypes import dtype as dtype_of
from ..errors import DeviceError, DTypeError, InputError, ShapeError, SizeNeeded
from ..ir.arrays import convert
from ..ir.scalar import Number
from ..runtime.device import Device, DeviceValue
from ..runtime.devices import DEFAULT, device_or_default
from ..runtime.devices import device as find_device
from ..shapes import Size, same_form, show, symbols, traced
from . import printing
from .nodes.promotion import plain_array
from .nodes.shaping import Count, count_of

if TYPE_CHECKING:
    from .gradients import Gradients

TensorLike: TypeAlias = Union["Tensor", np.ndarray, Number]
DLPACK_CPU: Final = (1, 0)
"""DLPack's kind of the CPU's memory, and the number of the CPU."""
CHOICE: Final = "in place of `if` and `while`, sg.where(condition, x, y) chooses between values"
LATER: Final = (
    "compute with tensors here, return the tensor (has_aux=True returns more than the loss), and read it after the call"
)
"""What to do where elements are not known: for the truth of a tensor, and for all other uses."""


class Tensor:
    """An array on a device, with PyTorch's methods: `singe.tensor([1.0, 2.0]).exp().sum(dim=0)`.

    `singe.tensor` makes one; `x.numpy()` gives its elements. It does not change: each method gives a new Tensor. Operands are
    on one device (`x.to("wasm")` moves a Tensor). How dtypes combine, and where names differ from NumPy's: docs/tensors.md.
    """

    __slots__ = ("__weakref__", "_device", "_value")

    def __init__(self, device: Device, value: DeviceValue | None = None) -> None:
        if value is None:
            raise InputError("Tensor: got no value of a device; sg.tensor(data) makes a tensor of data")
        self._device = device
        self._value = value

    # properties

    @property
    def device(self) -> Device:
        """The device on which the elements are."""
        return self._device

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes. While a function is traced, an open one is a Size, which counts as an int in types."""
        shape = self._value.shape
        return traced(shape) if self._device.trace_depth else shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._value.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Count:
        """The number of elements. PyTorch's calls work, too: size() is the shape, size(0) the length of an axis."""
        return count_of(self.shape)

    def __len__(self) -> int:
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
        return printing.text(self._known(), self.shape, self.dtype, self.device.label)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return printing.html(self._known(), self.shape, self.dtype, self.device.label)

    def _known(self) -> np.ndarray | None:
        """The elements; None while tracing, or after the device was lost."""
        try:
            return self._widened()
        except DeviceError:
            return None

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if how else str(self)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        """Elements of its own, as a copied layer is to be trained apart from the first; itself while tracing, where none are known."""
        if self.device.trace_depth:
            return self
        made = Tensor(self.device, self.device.upload(self.numpy()))
        return made.require_grad() if self.requires_grad else made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.device, own(self.numpy()))  # which is read where ml_dtypes is missing, too

    # elements

    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array that the caller owns; waits for the device.

        Elements of a type that NumPy lacks, such as bfloat16, are those of the package ml_dtypes; where it is not installed
        their bits, in a field of the type's name."""
        return self._read("numpy()")

    def _read(self, what: str) -> np.ndarray:
        """`numpy`, for what a caller wrote."""
        try:
            return self.device.download(self._value)
        except DeviceError:
            if not self.device.trace_depth:
                raise
            raise DeviceError(
                f"{what}: got a tensor whose elements are not known, as a function is traced (to compile it, or for its "
                f"gradient); {CHOICE if what == 'bool(x)' else LATER}"
            ) from None

    def _widened(self, what: str = "numpy()") -> np.ndarray:
        """The elements as numbers of NumPy's: those of a type that it lacks in the type that they are computed in."""
        return plain(self._read(what))

    async def numpy_async(self) -> np.ndarray:
        """`numpy` for a page, where reading from the device may have to be awaited."""
        return await resolve_async(self.device.fetch(self._value))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a tensor cannot become an array without a copy")
        array = self._read("np.asarray(x)")
        if dtype is None or array.dtype == dtype:
            return array
        wanted = np.dtype(dtype)
        return convert(array, wanted) if wanted.names else plain(array).astype(wanted)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The namespace of the Python array API standard: singe.array_api."""
        from .. import array_api  # noqa: PLC0415 (few users need it, and `import singe` shall be quick)

        if api_version not in (None, "2021.12", "2022.12", "2023.12", array_api.__array_api_version__):
            raise ValueError(
                f"__array_namespace__: got the version {api_version!r}, expected 2024.12 or an earlier one"
            )
        return array_api

    def __dlpack__(
        self, /, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:  # fmt: skip
        """A DLPack capsule: over the elements on numpy, cuda and the devices of array libraries, which who takes it must not change;
        of other devices with a copy on the CPU."""
        if copy is False and not self._device.shares:
            raise BufferError(f"the elements of a tensor on {self._device!r} are exported as a copy; leave copy out")
        shared = self.numpy() if copy else self._device.exported(self._value)
        return shared.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's kind of the memory that `__dlpack__` exports, and the number of its device."""
        return self._device.exported(self._value).__dlpack_device__() if self._device.shares else DLPACK_CPU

    def item(self) -> Number:
        """The only element as a Python number."""
        return self._only("item()")

    def _only(self, what: str) -> Number:
        """`item`, for what a caller wrote."""
        if not same_form(self.size, 1):
            raise ShapeError(f"{what}: got a tensor of {self.size} elements, expected one; use numpy() or tolist()")
        return self._widened(what).item()

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists; a number, if there are no axes."""
        return self._widened("tolist()").tolist()

    def __bool__(self) -> bool:
        if not same_form(self.size, 1):
            raise ShapeError(
                f"the truth of a tensor with {self.size} elements is ambiguous; reduce it first, as in (x > 0).min()"
            )
        return bool(self._only("bool(x)"))

    def __float__(self) -> float:
        return float(self._only("float(x)"))

    def __complex__(self) -> complex:
        return complex(self._only("complex(x)"))

    def __int__(self) -> int:
        return int(self._only("int(x)"))

    def __index__(self) -> int:
        if not self.dtype.is_int:
            raise DTypeError(
                f"got a tensor of {self.dtype} as an index or a count, expected an integer; int(x) makes one"
            )
        return int(self._only("int(x)"))

    def to(self, *targets: Any, device: str | Device | None = None, dtype: Any = None) -> Tensor:
        """The tensor on another device, or in another dtype, or both: to("wasm"), to(sg.float16), to("wasm", sg.float16), or
        those of another tensor, to(x)."""
        return resolve(self._moved(targets, device, dtype), "await tensor.to_async(device)")

    async def to_async(self, *targets: Any, device: str | Device | None = None, dtype: Any = None) -> Tensor:
        """`to` for a page, where reading from the device may have to be awaited."""
        return await resolve_async(self._moved(targets, device, dtype))

    def _moved(self, targets: Sequence[Any], device: Any, dtype: Any) -> MaybeAwaitable[Tensor]:
        device, dtype = destination("to", targets, device, dtype)
        x = self if dtype is None else self.cast(dtype)  # pyright: ignore[reportAttributeAccessIssue]
        target = x.device if device is None else x.device.destination(find_device(device))
        if target == x.device:
            return x
        return map_result(target.receive(x._value, x.device), lambda value: Tensor(target, value))

    def cpu(self) -> Tensor:
        """The tensor on the device "numpy"."""
        return self.to(DEFAULT)

    def to_device(self, device: str | Device, /, *, stream: Any = None) -> Tensor:
        """`to`, under the name of the array API standard."""
        return self.to(device)

    # gradients

    @property
    def requires_grad(self) -> bool:
        """Whether `backward` goes through this tensor: it, or one that it was computed from, asks for its gradient."""
        return self._device.is_recorded(self._value)

    def require_grad(self) -> Tensor:
        """The same elements as a tensor that asks for its gradient; on a device `sg.Autodiff(…)` only."""
        return Tensor(self._device, self._device.watched(self._value))

    def detach(self) -> Tensor:
        """The same elements as a tensor through which no gradient goes."""
        return Tensor(self._device, self._device.detached(self._value))

    def stop_gradient(self) -> Tensor:
        """`detach`, under JAX's name."""
        return self.detach()

    def backward(self, gradient: TensorLike | None = None, *, create_graph: bool = False) -> Gradients:
        """The gradients of this number, for each tensor that asked for its gradient. No tensor changes, and it may be called
        again. create_graph: the gradients can be differentiated, too.

        Of a tensor of several numbers they are those of the sum, as in Burn; with gradient, a tensor of the same shape, of
        (x * gradient).sum(). PyTorch refuses several numbers without a gradient."""
        from .gradients import Gradients  # noqa: PLC0415

        seed = None if gradient is None else self._seed(gradient)
        found = self._device.backward(self._value, create_graph, seed)
        return Gradients([(Tensor(on, x), Tensor(on, g)) for on, x, g in found])

    def _seed(self, gradient: TensorLike) -> DeviceValue:
        """What `backward` begins with, as a value of this tensor's device and dtype."""
        if not isinstance(gradient, Tensor):
            gradient = Tensor(self._device, self._device.upload(plain_array(gradient, self.dtype)))
        if not same_form(gradient.shape, self.shape):
            raise ShapeError(
                f"backward: got a gradient of the shape {show(gradient.shape)}, expected {show(self.shape)}, that of the tensor"
            )
        return value_on(self._device, gradient.to(self.dtype))


def _restored(device: Device, array: np.ndarray) -> Tensor:
    """The function that unpickling calls."""
    return Tensor(device, device.upload(array))


def apply(build: Callable[..., Any], *operands: TensorLike | None) -> Any:
    """The tensor of `build(builder, *operands)`, or a tuple of tensors if that makes several nodes.

    `build` gets nodes for tensors, arrays and lists; numbers and None are passed unchanged.
    """
    placed: list[Any] = []
    rest: list[Any] = []  # the operands that are passed unchanged, and NODE where a node is passed
    for x in operands:
        if isinstance(x, (list, tuple)):
            x = plain_array(x)
        if not isinstance(x, (Tensor, np.ndarray)):
            rest.append(x)
            continue
        placed.append(x)
        rest.append(NODE)
    on = home_of(placed)
    if len(placed) < len(operands):
        build = _passing(build, tuple(rest))
    values = []
    for x in placed:
        values.append(x._value if isinstance(x, Tensor) and x._device is on else value_on(on, x))
    found = on.apply(build, values)
    if len(found) == 1:
        return Tensor(on, found[0])
    return tuple([Tensor(on, v) for v in found])


NODE: Final = Tensor
"""What stands for a node among operands that are passed unchanged: no operand is a class."""


def _passing(build: Callable[..., Any], operands: tuple[Any, ...]) -> Callable[..., Any]:
    """`build` as a function of the nodes alone. It captures what the others are, by which a device knows calls again."""

    def built(b: Any, *nodes: Any) -> Any:
        left = iter(nodes)
        return build(b, *[next(left) if x is NODE else x for x in operands])

    return built


def destination(what: str, targets: Sequence[Any], device: Any, dtype: Any) -> tuple[Any, Any]:
    """The device and the dtype, or None, that the arguments of `to` name."""
    for given in targets:
        both = (given.device, given.dtype) if isinstance(given, Tensor) else (None, given)
        if isinstance(given, Device) or (isinstance(given, str) and given not in DTYPES):
            both = given, None
        if (both[0] and device) or (both[1] and dtype):
            raise InputError(f"{what}: got {targets}, expected a device and a dtype, at most one of each")
        device, dtype = both[0] or device, both[1] or dtype
    return device, None if dtype is None else dtype_of(dtype)


def home_of(operands: Sequence[Any]) -> Device:
    """The device on which an operation runs: that of its tensors. A device that takes over the others' values comes first."""
    home: Device | None = None
    for x in operands:
        if isinstance(x, Tensor) and (home is None or x._device.precedence > home.precedence):
            home = x._device
    return device_or_default() if home is None else home


def value_on(home: Device, x: Tensor | np.ndarray) -> Any:
    """The elements of a tensor or an array as a value of the device `home`."""
    if isinstance(x, Tensor):
        return x._value if x.device is home else home.import_value(x._value, x.device)
    return home.upload(plain_array(x))
