"""Rows that fold elements: along axes, over windows."""

from . import norms, reduce, window  # noqa: F401 (each registers its rows)
