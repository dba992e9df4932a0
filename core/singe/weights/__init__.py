"""Weights and models in files: records of our own, and PyTorch's files, read without executing them. README.md: the format."""
