"""WebGPU devices, and what runs a Program on them."""
