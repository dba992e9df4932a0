"""Pictures: how pixels become the input of a model, and places in it those of the picture."""
