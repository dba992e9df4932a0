"""WGSL: the scalar vocabulary, how elements are stored, and how a text is put together."""
