"""Sounds in tasks: samples in rows, what models remember, and what their scores mean."""
