"""Kernels and Routines as shaders: `nest` prints any Kernel, `gemm` the matmul and conv templates."""
