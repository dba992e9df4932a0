"""WebGPU for Singe: the WGSL code generator (`target`) and the devices that run it (`native`, over wgpu-py)."""
