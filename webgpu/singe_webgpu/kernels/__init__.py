"""Kernels and Routines as WGSL modules: `nest` prints any Kernel, `gemm` the matmul and conv templates."""
