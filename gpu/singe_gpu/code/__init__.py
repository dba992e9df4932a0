"""Kernel text, written from Python: statements, shaders and their variants."""
