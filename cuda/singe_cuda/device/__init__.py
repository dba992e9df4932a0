"""NVRTC, the driver, and the device over both."""
