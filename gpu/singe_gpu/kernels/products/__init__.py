"""Templates of matrix products and convolutions."""
