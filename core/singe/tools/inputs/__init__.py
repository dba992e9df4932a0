"""Pictures, sounds, texts and files of arrays become the inputs of a model."""
