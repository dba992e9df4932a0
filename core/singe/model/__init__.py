"""Models and Programs that are called with arrays; loading and saving them."""
