"""WebGPU devices: over wgpu-py, and in a page."""
