"""Adapters of ops that move elements: shapes, slices, selections, samples, pictures."""

from . import frames, matrices, pictures, resize, sampling, select, shapes  # noqa: F401 (each enters its adapters)
