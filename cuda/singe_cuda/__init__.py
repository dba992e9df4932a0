"""CUDA: kernels in CUDA C++, compiled by NVRTC and run by NVIDIA's driver, without CUDA's toolkit."""
