"""Functions that NumPy computes from a tensor's elements, for what has no row: the device waits, and nothing is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import DType, dtype, widened
from ..errors import DeviceError
from ..ir.arrays import convert
from ..runtime.device import Device
from .tensor import Tensor


def elements(x: Tensor, what: str) -> np.ndarray:
    """The elements as NumPy's numbers; `what` names the function that needs them."""
    try:
        array = x.numpy()
    except DeviceError as e:
        if x.device.adopts:
            raise DeviceError(
                f"{what} runs on the host over a tensor's elements, which are not known while a function is traced; "
                "call it before, and pass its result"
            ) from None
        raise e
    return widened(array) if array.dtype.names or array.dtype == np.float16 else array


def on_device(array: Any, device: Device, kind: DType | None = None) -> Tensor:
    """An array as a tensor; its dtype stays unless one is given."""
    given = np.asarray(array)
    kind = kind or dtype(given.dtype)
    return Tensor(device, device.upload(convert(given, kind.numpy)))


def hosted(what: str, function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """`function` of NumPy over the elements of tensors; other operands are passed unchanged. Floats that NumPy computes
    in another type keep the type of the first tensor."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    first = tensors[0]
    given = [elements(x, what) if isinstance(x, Tensor) else x for x in operands]
    with np.errstate(all="ignore"):
        found = function(*given, **options)

    def placed(array: Any) -> Tensor:
        same = first.dtype.compute is not first.dtype and np.asarray(array).dtype == first.dtype.compute.numpy
        return on_device(array, first.device, first.dtype if same and first.dtype.is_float else None)

    return tuple(map(placed, found)) if isinstance(found, tuple) else placed(found)
