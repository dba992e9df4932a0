"""Running Programs on any GPU: memory, recordings, tuning."""
