"""Graphs become ONNX files; see README.md."""
