"""What a run keeps on disk so that it can go on: checkpoints, how far it is, and the lock of its folder."""
