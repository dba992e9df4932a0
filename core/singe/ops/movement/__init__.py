"""Rows that move elements: views, resampling, updates of parts, steps in trees."""

from . import gather, move, resize, sampling, strided, trees, triangle, update  # noqa: F401 (each registers its rows)
