"""The commands that answer others until they are interrupted."""
