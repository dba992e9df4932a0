"""What a computation is: nodes, the Builder that makes them, and gradients."""
