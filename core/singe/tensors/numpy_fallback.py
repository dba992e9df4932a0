"""Functions that NumPy computes from a tensor's elements, for what has no row: the device waits, and nothing is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..dtypes import DType, dtype, plain, widened
from ..errors import DeviceError, InputError
from ..ir.arrays import convert
from ..program.ranges import IndexRange
from ..runtime.device import Device
from ..shapes import Dim, show
from .flags import flag_range
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
        if x.device.trace_depth:
            raise DeviceError(
                f"{what} runs on the host over a tensor's elements, which are not known while a function is traced; "
                "call it before, and pass its result"
            ) from None
        raise e
    return widened(array) if array.dtype == np.float16 else plain(array)


def values_on_host(x: TensorLike | Sequence[Any]) -> np.ndarray | None:
    """Indices that are given as an array or a list. Those of a tensor are checked where the op runs."""
    return None if isinstance(x, Tensor) else np.asarray(x)


def check_classes(labels: Tensor, classes: Dim, what: str, ignored: int | None = None, least: int = 0) -> None:
    """Refuse numbers of classes, but for one that is ignored, outside of `least` to classes - 1: if the host has them here, otherwise
    where what is traced can tell (flags.py)."""
    if not isinstance(classes, int):
        return
    found = labels.device.integers(labels._value)
    if found is not None:
        IndexRange(0, None, least, classes - 1, ignored, what).check(found, {})
    else:
        flag_range(labels, least, classes - 1, what, ignored)


def on_device(array: Any, device: Device, kind: DType | None = None) -> Tensor:
    """An array as a tensor; its dtype stays unless one is given."""
    given = np.asarray(array)
    kind = kind or dtype(given.dtype)
    return Tensor(device, device.upload(convert(given, kind.numpy)))


def refuse_gradients(what: str, tensors: Sequence[Tensor]) -> None:
    if any(x.requires_grad for x in tensors):
        raise InputError(f"{what}: NumPy computes it, so it has no gradient; detach() the tensor that asks for one")


def numpy_fallback(what: str, function: Callable[..., Any] | str, *operands: Any, **options: Any) -> Any:
    """A function of NumPy, or that of this name, over the elements of tensors of one device; other operands are passed unchanged.
    Floats that NumPy computes in another type keep the type of the first tensor."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    first, home = tensors[0], home_of(tensors)
    for x in tensors:
        value_on(home, x)  # which refuses that of a device that cannot meet this one
    computes = getattr(np, function) if isinstance(function, str) else function
    given = [elements(x, what) if isinstance(x, Tensor) else x for x in operands]
    try:
        with np.errstate(all="ignore"):
            found = computes(*given, **options)
    except np.linalg.LinAlgError as e:
        advice = next((f"; {text}" for words, text in _ADVICE.items() if words in str(e)), "")
        raise InputError(f"{what} of {' and '.join(show(x.shape) for x in tensors)}: {e}{advice}") from None

    def placed(array: Any) -> Tensor:
        if np.asarray(array).dtype.kind in "fc":
            refuse_gradients(what, tensors)
        same = first.dtype.compute is not first.dtype and np.asarray(array).dtype == first.dtype.compute.numpy
        return on_device(array, home, first.dtype if same and first.dtype.is_float else None)

    return tuple(map(placed, found)) if isinstance(found, tuple) else placed(found)
