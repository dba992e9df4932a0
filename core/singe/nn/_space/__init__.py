"""Layers over images, sounds and volumes: (batch, channels, …space)."""
