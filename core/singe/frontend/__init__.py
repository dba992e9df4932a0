"""The interface for users' code: Tensor, creation, indexing, tracing."""

from . import methods as methods
