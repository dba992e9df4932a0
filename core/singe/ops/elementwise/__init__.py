"""Rows whose elements depend on one element of each input."""

from . import activations, arithmetic, barriers, bits, conversion, gated, logic, powers, trigonometry  # noqa: F401 (each registers its rows)
