"""Elementwise functions: the row of each, and NumPy's function for the dtypes that the row lacks.

`compute` converts the operands to their common dtype, and runs the row on the device; without one, NumPy runs on the
host. Results follow NumPy and the Python array API standard.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..dtypes import COMPLEX, DType, bool_, float32
from ..errors import DTypeError
from ..ops import ROWS, Elementwise
from .calls import elementwise, operand
from .nodes.promotion import PLAIN, common_type
from .numpy_fallback import numpy_fallback
from .tensor import Tensor, home_of, value_on

WHOLE: Final = ("bool", "int", "uint")


def compute(name: str, *operands: Any) -> Tensor:
    """The row of this name over tensors, arrays and numbers, of which one is a tensor or an array."""
    kinds: list[Any] = [name]
    for x in operands:
        kinds.append(x.dtype.name if isinstance(x, Tensor) else type(x))
    key = tuple(kinds)
    known = _rows.get(key)
    if known is not None:
        row, kind = known
        return elementwise(
            row, [x.cast(kind) if isinstance(x, Tensor) and x.dtype is not kind else x for x in operands]
        )
    function = ROWS[name]
    assert isinstance(function, Elementwise)
    given = placed(*operands)
    kind = common_type(given)
    if function.promote == "float" and kind.kind in WHOLE:
        kind = float32
    if kind.kind not in function.kinds:
        raise DTypeError(
            f"{name}: got {kind}, expected elements of the kinds {', '.join(function.kinds)}; cast them first"
        )
    if kind.kind in function.unchanged:
        return given[0]
    if function.promote == "bool" and kind not in COMPLEX:
        kind = bool_
    row = ROWS[function.bools] if kind is bool_ and function.bools else function
    if isinstance(row, Elementwise) and kind in row.dtypes:
        if all(isinstance(x, (Tensor, int, float)) for x in operands):
            _rows[key] = row, kind
        return elementwise(row, [_cast(x, kind) for x in given])
    return numpy_fallback(name, function.numpy, *(_cast(x, kind, always=True) for x in given))


_rows: Final[dict[tuple[Any, ...], tuple[Elementwise, DType]]] = {}
"""A function and the types of its operands ↦ the row that computes it, and the dtype that the operands are converted to."""


def placed(*operands: Any) -> list[Any]:
    """The operands, with arrays as tensors on the device of the others, and NumPy's scalars as numbers."""
    home = home_of(operands)
    return [Tensor(home, value_on(home, x)) if isinstance(x, np.ndarray) else operand(x) for x in operands]


def _cast(x: Any, kind: DType, always: bool = False) -> Any:
    """A tensor in a dtype; a number as an array of it if it must be one."""
    if isinstance(x, PLAIN):
        return np.asarray(x, kind.numpy) if always else x
    return x.cast(kind)
