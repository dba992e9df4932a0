"""Rows whose elements depend on one element of each input."""

from . import arithmetic  # noqa: F401 (each registers its rows)
