"""Tensor's methods, one file for each subject. Importing this package attaches them."""

from . import (
    elementwise,
    folds,
    gamma,
    matrices,
    movement,
    naming,
    neural,
    random,
    row_methods,
    selection,
    sorting,
    special,
    statistics,
    types,
    ufuncs,
    windows,
)

__all__ = [
    "elementwise",
    "folds",
    "gamma",
    "matrices",
    "movement",
    "naming",
    "neural",
    "random",
    "row_methods",
    "selection",
    "sorting",
    "special",
    "statistics",
    "types",
    "ufuncs",
    "windows",
]

row_methods.attach_rows()
