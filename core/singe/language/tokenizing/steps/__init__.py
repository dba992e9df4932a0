"""What happens to a text before it is encoded, and to tokens when they become text."""
