"""A step of training: what a batch is, what is minimised, and the Program that updates the weights."""
