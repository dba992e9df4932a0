"""Singe on WebAssembly: the code generator (`target`) and the device that runs its modules natively (`native`)."""
