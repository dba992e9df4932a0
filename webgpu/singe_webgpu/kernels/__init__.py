"""Kernels and Routines as WGSL shaders: `nest` prints any Kernel, `gemm` the matmul and conv templates."""
