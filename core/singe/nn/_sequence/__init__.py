"""Layers over sequences: embeddings and positions, recurrence, attention."""
