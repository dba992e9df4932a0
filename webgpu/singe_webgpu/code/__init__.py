"""WGSL: the scalar vocabulary, how elements are stored, and the text of a shader."""
