"""Data sets in files: of pictures, tables and texts."""
