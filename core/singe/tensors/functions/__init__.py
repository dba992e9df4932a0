"""Functions beside the methods of Tensor: those that make Tensors, or take several."""
