"""Rows that move elements: views, resampling, updates of parts."""

from . import gather, move, resize, sampling, strided, triangle, update  # noqa: F401 (each registers its rows)
