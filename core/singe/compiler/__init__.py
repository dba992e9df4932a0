"""Graph in, Program out: the Target protocol, rewriting, fusion, scheduling."""
