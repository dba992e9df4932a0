"""Expressions and functions in WebAssembly: typed values, trees, instructions and their bytes."""
