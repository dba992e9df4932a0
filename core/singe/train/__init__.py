"""Training: what a Learner tells of a run."""
