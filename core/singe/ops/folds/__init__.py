"""Rows that fold elements: along axes, over windows."""

from . import reduce, window  # noqa: F401 (each registers its rows)
