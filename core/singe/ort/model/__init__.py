"""The model of a session: its file, what is kept of it, and the Models of Singe that it becomes."""
