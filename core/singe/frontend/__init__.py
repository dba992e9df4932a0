"""The interface for users' code: Tensor, creation, indexing, tracing."""
