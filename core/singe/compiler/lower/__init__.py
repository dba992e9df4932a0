"""Parts of a Graph that targets lack, rewritten in terms of what they have."""
