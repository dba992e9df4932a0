"""What methods of Tensor make of nodes with a builder. Nothing here uses Tensors."""
