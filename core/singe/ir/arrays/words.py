"""The words of scalar.py on NumPy's arrays: the table NUMPY, and `convert`, which is the words `cast` and `rounded`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ...dtypes import REGISTERED, dtype, narrowed, own, string, widened
from ...errors import InputError


def convert(array: np.ndarray, to: np.dtype[Any]) -> np.ndarray:
    """The word `cast` in NumPy, between any element types."""
    if array.dtype == to:
        return array
    array = own(array) if array.dtype.isbuiltin == REGISTERED else array
    if array.dtype.kind == "V":
        return array if array.dtype == to else convert(widened(array), to)
    if to.kind == "V":
        kind = dtype(to)
        if kind is string:
            return narrowed(array if array.dtype == object else array.astype(str), kind)
        return narrowed(convert(array, kind.compute.numpy), kind)
    if array.dtype == object:
        return _parsed(array, to)
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype.kind == "c" and to.kind not in "cb":
            return convert(np.array(np.real(array)), to)
        return _saturated(array, to) if array.dtype.kind == "f" and to.kind in "iu" else array.astype(to)


def _parsed(array: np.ndarray, to: np.dtype[Any]) -> np.ndarray:
    """Strings as numbers. A bool is a word or a number."""
    words = {"true": 1.0, "false": 0.0}
    read: Callable[[str], Any] = {"i": int, "u": int, "c": complex}.get(
        to.kind, lambda text: words[text.lower()] if text.lower() in words else float(text)
    )
    out = np.empty(array.shape, to)
    for i, text in np.ndenumerate(array):
        try:
            out[i] = read(text)
        except (ValueError, OverflowError):
            raise InputError(f"cast: the string {text!r:.40} is not a number of the type {to}") from None
    return out


def _saturated(array: np.ndarray, to: np.dtype[Any]) -> np.ndarray:
    """Floats as integers, rounded toward zero and clipped to the range of the compute type of `to`."""
    wide = dtype(to).compute
    least, most = wide.limits
    if array.size and float(least) <= array.min() and array.max() < float(most):  # no bound is, if one element is NaN
        return array.astype(wide.numpy).astype(to, copy=False)
    clean = np.nan_to_num(np.trunc(array.astype(np.float64)), nan=0.0, posinf=float(most), neginf=float(least))
    top = clean >= float(most)  # float(2**63 − 1) rounds up to 2**63, which does not fit
    inside = np.where(top, 0, np.maximum(clean, float(least))).astype(wide.numpy)
    return np.where(top, np.asarray(most, wide.numpy), inside).astype(to)


def _divide(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind in "fc":
        return np.divide(a, b)
    q = np.floor_divide(a, b)
    return q + ((q * b != a) & ((a < 0) != (b < 0)))


def _remainder(a: Any, b: Any) -> Any:
    return np.fmod(a, b)


def _viewed(kind: str) -> Callable[..., Any]:
    """The same bits as numbers of another kind, in an array of its own."""
    return lambda a: np.array(a).view(f"{kind}{8 * np.asarray(a).dtype.itemsize}")


MIN_ELEMENTS_CHOSEN_BY_BITS: Final = 4096
"""The fewest elements that are chosen by their bits."""


def _chosen(condition: Any, a: Any, b: Any) -> Any:
    """np.where, by bits where it pays: np.where branches at each element, which takes ten times as long if these differ."""
    kind = np.asarray(a).dtype
    if (
        np.size(condition) < MIN_ELEMENTS_CHOSEN_BY_BITS
        or condition.dtype != np.bool_
        or kind != np.asarray(b).dtype
        or kind.kind not in "fiu"
    ):
        return np.where(condition, a, b)
    bits = np.dtype(f"i{kind.itemsize}")
    x, y = np.asarray(a).view(bits), np.asarray(b).view(bits)
    return (y ^ ((x ^ y) & -condition.astype(bits))).view(kind)


NUMPY: Final[Mapping[str, Callable[..., Any]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "rem": _remainder,
    "min": np.minimum, "max": np.maximum, "neg": np.negative, "abs": np.abs,
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "isnan": np.isnan,
    "bits": _viewed("int"), "of_bits": _viewed("float"),
    "eq": np.equal, "lt": np.less, "le": np.less_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "shl": lambda a, b: np.left_shift(a, b & (8 * a.dtype.itemsize - 1)),
    "shr": lambda a, b: np.right_shift(a, b & (8 * a.dtype.itemsize - 1)),
    "select": _chosen,
}  # fmt: skip
