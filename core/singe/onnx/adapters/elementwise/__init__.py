"""Adapters of elementwise ops, conversions, constants and random numbers."""

from . import arithmetic, basic, random  # noqa: F401 (each enters its adapters)
