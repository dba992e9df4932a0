"""The kinds of tasks that take sounds."""
