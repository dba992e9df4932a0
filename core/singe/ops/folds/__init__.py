"""Rows that fold elements: along axes, over windows."""

from . import argmax, losses, norms, paths, reduce, unpool, window  # noqa: F401 (each registers its rows)
