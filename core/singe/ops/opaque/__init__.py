"""Rows over whole arrays, which are no loop nests."""

from . import pictures, random, selection, strings  # noqa: F401 (each registers its rows)
