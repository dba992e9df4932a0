"""The interface for users' code: Tensor, its methods, functions, tracing."""

from . import methods as methods
