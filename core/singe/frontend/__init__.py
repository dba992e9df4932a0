"""What users write with: Tensor, creation, indexing, tracing."""
