"""Tensor's methods, one file for each subject. Importing this package attaches them."""

from . import elementwise, folds, movement, order, rows, selection, special, statistics, types, windows

__all__ = [
    "elementwise",
    "folds",
    "movement",
    "order",
    "rows",
    "selection",
    "special",
    "statistics",
    "types",
    "windows",
]

rows.attach_rows()
