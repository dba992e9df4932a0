"""Arguments and results of models: specs of inputs, outputs and states, and the conversion of arguments to arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..dtypes import TEXT, DType, check_fits, own, string, strings
from ..errors import DTypeError, InputError
from ..late_dataclass import dataclass
from ..lazy_names import LateModule
from ..shapes import Shape, show
from ..texts import escaped

if TYPE_CHECKING:
    from ..ir import arrays
else:
    arrays = LateModule("ir.arrays")


@dataclass(frozen=True)
class TensorSpec:
    """An input, output or state: its name, element type, and shape, with names for sizes that a run decides."""

    name: str
    dtype: DType
    shape: Shape | None  # None: not known before a run

    def __str__(self) -> str:
        return escaped(f"{self.name}: {self.dtype}{'' if self.shape is None else show(self.shape)}")

    def __repr__(self) -> str:
        return escaped(f"TensorSpec(name={self.name!r}, dtype={self.dtype}, shape={self.shape})")


LISTED: Final = 4
"""How many of many inputs, outputs or states the text of an object names."""


def listed(parts: Iterable[Any]) -> str:
    """What there is, for the text of an object: a training step has hundreds of states."""
    texts = [escaped(str(part)) for part in parts]
    more = len(texts) - LISTED
    return ", ".join(texts if more <= 1 else [*texts[:LISTED], f"and {more} more"])


def bind(inputs: Sequence[TensorSpec], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Arguments as arrays of the inputs' dtypes, by input name."""
    given = by_name([p.name for p in inputs], args, kwargs, list(map(str, inputs)))
    return {p.name: as_array(given[p.name], p) for p in inputs}


def by_name(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any], described: Sequence[str]
) -> dict[str, Any]:
    """Arguments by input name: one for each input. described: the inputs, for people."""
    if len(args) == 1 and isinstance(args[0], Mapping) and not kwargs:
        kwargs, args = args[0], ()
    if len(args) > len(names):
        raise InputError(f"got {len(args)} inputs, expected {len(names)}: {', '.join(names)}")
    given = dict(zip(names, args, strict=False))
    twice = given.keys() & kwargs.keys()
    given |= kwargs
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in names]
    if twice or missing or unknown:
        faults = (("given twice:", sorted(twice)), ("missing:", missing), ("unknown:", unknown))
        parts = [f"{fault} {', '.join(map(repr, which))}" for fault, which in faults if which]
        raise InputError(f"inputs {'; '.join(parts)}. The inputs are {', '.join(described) or 'none'}")
    return given


def as_array(value: Any, spec: TensorSpec, what: str = "input") -> np.ndarray:
    """A value as an array of the dtype of `spec`; `what` is its kind, for errors.

    Numbers and lists are converted. An array must have this dtype, except that float64 is narrowed to float32.
    """
    if spec.dtype is string:
        try:
            return strings(value)
        except (DTypeError, ValueError) as e:
            raise InputError(f"{what} {spec.name!r}: {e}") from None
    wanted = spec.dtype.numpy
    try:
        array = own(value if isinstance(value, np.ndarray) else np.asarray(value))
    except ValueError:
        raise InputError(
            f"{what} {spec.name!r}: got lists of different lengths, expected equal ones, or an array"
        ) from None
    if array.dtype == wanted:
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)
    if array.dtype.kind in TEXT or array.dtype == string.numpy:
        raise InputError(f"{what} {spec.name!r}: got {value!r:.60}, expected numbers of the type {spec.dtype}")
    plain = not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "dtype")
    numbers = array.dtype.kind in "iuf" and (spec.dtype.is_float or (array.dtype.kind != "f" and spec.dtype.is_int))
    if plain and (numbers or array.size == 0 or np.can_cast(array.dtype, wanted, "same_kind")):
        try:
            check_fits(array, spec.dtype)
        except DTypeError as e:
            raise InputError(f"{what} {spec.name!r}: {e}") from None
        return arrays.convert(array, wanted)
    if array.dtype == np.float64 and wanted == np.float32:
        return arrays.convert(array, wanted)
    given = array.dtype.names[0] if array.dtype.names else array.dtype
    way = f"sg.tensor(x, {spec.dtype.name!r}).numpy()" if spec.dtype.held else f".astype({spec.dtype.name!r})"
    raise InputError(f"{what} {spec.name!r}: got {given}, expected {spec.dtype}; convert it with {way}")


def unwrap(arrays: Sequence[np.ndarray], names: Sequence[str]) -> Any:
    """A single output, or a dict of several by name."""
    return arrays[0] if len(arrays) == 1 else dict(zip(names, arrays, strict=True))
