"""Products and convolutions: one contraction, its feeds, its tiles and its special forms."""
