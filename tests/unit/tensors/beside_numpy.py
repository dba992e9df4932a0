"""Operations of tensors beside the same ones of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import singe as sg

Operation: TypeAlias = tuple[Callable[..., Any], Callable[..., Any] | None, tuple[np.ndarray, ...]]
"""A function of tensors, the function of arrays (the same one, if it is None), and operands."""


def check(got: sg.Tensor, want: Any) -> None:
    """Check that a tensor equals NumPy's result in shape and values;
    NumPy's float64 and int32 count as float32 and int64."""
    want = np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype.numpy.kind == want.dtype.kind
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=2e-5)


def check_operation(case: Operation, on: sg.Device) -> None:
    operation, reference, arrays = case
    with np.errstate(all="ignore"):
        want = (reference or operation)(*arrays)
    got = operation(*(sg.tensor(a, device=on) for a in arrays))
    assert got.device.name == on.name
    check(got, want)
