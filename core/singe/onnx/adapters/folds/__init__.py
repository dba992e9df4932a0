"""Adapters of ops that fold along axes: reductions, normalisations, losses."""

from . import extremes, losses, normalise, reduce, statistics  # noqa: F401 (each enters its adapters)
