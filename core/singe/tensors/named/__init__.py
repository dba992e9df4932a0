"""Tensors whose axes have names."""
