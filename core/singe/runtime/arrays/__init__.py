"""Programs of whole-array steps, over NumPy or another array library. See README.md."""
