"""Tensor's methods, one file for each subject. Importing this package attaches them."""

from . import folds, movement, operators, rows, selection, types, windows

__all__ = ["folds", "movement", "operators", "rows", "selection", "types", "windows"]

rows.attach_rows()
