"""Texts: how they become tokens, and what a search looks through."""
