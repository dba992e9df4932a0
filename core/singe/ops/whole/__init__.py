"""Rows over whole arrays, which are no loop nests."""

from . import opaque, random, strings  # noqa: F401 (each registers its rows)
