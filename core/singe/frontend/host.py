"""Functions that NumPy computes from a tensor's elements, for what has no row: the device waits, and nothing is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..dtypes import DType, dtype, widened
from ..errors import DeviceError, InputError, OutOfRange
from ..ir.arrays import convert
from ..runtime.device import Device
from ..shapes import Dim, show
from .tensor import Tensor, TensorLike, home_of, value_on

_ADVICE: Final = {
    "Singular": "x + 1e-6 * sg.eye(n) may have an inverse, and sg.pinverse(x) is the pseudoinverse",
    "positive definite": "expected symmetric matrices of positive eigenvalues, which x + 1e-6 * sg.eye(n) may be",
    "square": "expected square matrices",
    "converge": "look for NaN and infinity among the elements",
}
"""Words of NumPy's errors of linear algebra ↦ what to do."""


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


def held(x: TensorLike | Sequence[Any]) -> np.ndarray | None:
    """Indices, if the host has them: those of a device that computes later, or elsewhere, would have to be waited for."""
    if not isinstance(x, Tensor):
        return np.asarray(x)
    on = x.device
    return widened(x.numpy()) if not on.adopts and on.eager is on and on.target is None else None


def check_classes(labels: Tensor, classes: Dim, what: str, ignored: int | None = None) -> None:
    """Refuse numbers of classes, but for one that is ignored, outside of 0 to classes - 1, if the host has them."""
    found = held(labels)
    if found is None or not isinstance(classes, int):
        return
    wrong = (found < 0) | (found >= classes)
    if ignored is not None:
        wrong &= found != ignored
    if wrong.any():
        beside = "" if ignored is None else f", or {ignored} for places that do not count"
        raise OutOfRange(f"{what}: got the class {found[wrong].flat[0]}, expected from 0 to {classes - 1}{beside}")


def on_device(array: Any, device: Device, kind: DType | None = None) -> Tensor:
    """An array as a tensor; its dtype stays unless one is given."""
    given = np.asarray(array)
    kind = kind or dtype(given.dtype)
    return Tensor(device, device.upload(convert(given, kind.numpy)))


def refuse_gradients(what: str, tensors: Sequence[Tensor]) -> None:
    if any(x.requires_grad for x in tensors):
        raise InputError(f"{what}: NumPy computes it, so it has no gradient; detach() the tensor that asks for one")


def hosted(what: str, function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """`function` of NumPy over the elements of tensors of one device; other operands are passed unchanged. Floats that NumPy
    computes in another type keep the type of the first tensor."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    first, home = tensors[0], home_of(tensors)
    for x in tensors:
        value_on(home, x)  # which refuses that of a device that cannot meet this one
    given = [elements(x, what) if isinstance(x, Tensor) else x for x in operands]
    try:
        with np.errstate(all="ignore"):
            found = function(*given, **options)
    except np.linalg.LinAlgError as e:
        advice = next((f"; {text}" for words, text in _ADVICE.items() if words in str(e)), "")
        raise InputError(f"{what} of {' and '.join(show(x.shape) for x in tensors)}: {e}{advice}") from None

    def placed(array: Any) -> Tensor:
        if np.asarray(array).dtype.kind in "fc":
            refuse_gradients(what, tensors)
        same = first.dtype.compute is not first.dtype and np.asarray(array).dtype == first.dtype.compute.numpy
        return on_device(array, home, first.dtype if same and first.dtype.is_float else None)

    return tuple(map(placed, found)) if isinstance(found, tuple) else placed(found)
