"""The command line and what it does."""
