"""The compiled artifact as plain data: its parts, its file format, and the container of files."""
