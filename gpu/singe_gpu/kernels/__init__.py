"""Kernels and Routines as shaders: `nest` prints any Kernel, `products` and `attention` have templates."""
