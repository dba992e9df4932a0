"""array-api-strict, which has the functions of the array API standard and nothing else, adapted for rows: all that another array
library needs. What it has itself, such as assignment to elements, would be methods of a subclass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

import array_api_strict

from singe.dtypes import DTYPES
from singe.ir.arrays.adapter import ArrayAdapter

FUNCTIONS: Final = (
    "abs", "add", "arange", "argmax", "argmin", "argsort", "asarray", "astype", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "broadcast_to", "ceil", "clip", "concat", "copysign", "cos", "cumulative_prod",
    "cumulative_sum", "divide", "equal", "exp", "flip", "floor", "floor_divide", "isnan", "less", "less_equal", "log", "matmul", "max",
    "maximum", "min", "minimum", "moveaxis", "multiply", "negative", "permute_dims", "prod", "real", "remainder", "reshape", "round",
    "searchsorted", "sin", "sqrt", "subtract", "sum", "take", "take_along_axis", "tanh", "trunc", "where",
)  # fmt: skip
"""The standard's functions that rows use: all that the namespace below has, beside element types. Only complex numbers need `real`."""
TYPES: Final = tuple(name for name in DTYPES if hasattr(array_api_strict, name))

STRICT: Final = ArrayAdapter(
    SimpleNamespace(**{name: getattr(array_api_strict, name) for name in (*FUNCTIONS, *TYPES)})
)
