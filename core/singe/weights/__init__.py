"""Weights and models in files: records of our own, and PyTorch's files, read without executing them."""

from .files import load_weights as load_weights

__all__ = ["load_weights"]
