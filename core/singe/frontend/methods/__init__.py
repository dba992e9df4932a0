"""Tensor's methods, one file for each subject. Importing this package attaches them."""

from . import (
    drawn,
    elementwise,
    folds,
    gamma,
    matrices,
    movement,
    neural,
    order,
    rows,
    selection,
    special,
    statistics,
    types,
    ufuncs,
    windows,
)

__all__ = [
    "drawn",
    "elementwise",
    "folds",
    "gamma",
    "matrices",
    "movement",
    "neural",
    "order",
    "rows",
    "selection",
    "special",
    "statistics",
    "types",
    "ufuncs",
    "windows",
]

rows.attach_rows()
