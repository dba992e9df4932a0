"""What every row is tested by."""
