"""Whisper by its architecture: what it hears, and what follows the tokens of a text about it."""
