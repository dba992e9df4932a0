"""What code generators for GPUs share: templates of kernels, the texts that they emit, and what runs Programs on a device."""
