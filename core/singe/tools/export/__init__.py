"""A model becomes files that run without Python: a page's bundle, or a freestanding module."""
