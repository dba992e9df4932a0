"""NATIVE: the rows' functions of NumPy's arrays and attributes, in place of `evaluate`. Each is there because it is measurably
faster, or because of what `evaluate` does not compute: composites in one call, and ranges of sizes.

products.py has convolutions, selection.py the largest elements, folds.py pools and what steps of training check, movement.py views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...ir.arrays.numpy import NUMPY_ARRAYS
from . import folds, movement, products, selection

NATIVE: Final[dict[str, Callable[..., Any]]] = {
    "arange": movement.arange,
    "checks": folds.checks,
    "conv_last": products.conv_last,
    "diagonal": movement.diagonal,
    "gather_elements": movement.gather_elements,
    "joint_norm": folds.joint_norm,
    "max_pool": folds.pool("max"),
    "pool_sum": folds.pool("add"),
    "top_k": selection.top_k,
    "unfold": movement.unfold,
}
NUMPY_ARRAYS.native.update(NATIVE)
