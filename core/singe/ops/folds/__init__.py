"""Rows that fold elements: along axes, over windows."""

from . import losses, norms, paths, place, reduce, unpool, window  # noqa: F401 (each registers its rows)
