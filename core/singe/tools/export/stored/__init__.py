"""What the files of weights hold: all of it, or fewer bytes."""
