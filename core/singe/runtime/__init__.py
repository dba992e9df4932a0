"""Who runs a Program: the Backend protocol, devices, and the NumPy backend."""
