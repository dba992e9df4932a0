"""WebGPU for Singe: the WGSL code generator (target.py), and the backends that run it (native.py, browser.py)."""
