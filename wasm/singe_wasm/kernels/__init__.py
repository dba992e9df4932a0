"""Templates: plain loop nests, matrix products, convolutions; each writes the body of one function."""
