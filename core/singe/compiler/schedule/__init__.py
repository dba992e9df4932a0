"""The steps of a Program in order, the memory of their values, and the buffers that they use."""
