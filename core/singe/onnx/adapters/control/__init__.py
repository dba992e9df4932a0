"""Adapters of ops that own graphs, of values that are no tensors of numbers, of gradients, and of steps of optimisers."""

from . import branches, gradient, loops, ngrams, sequences, strings, training  # noqa: F401 (each enters its adapters)
