"""Training: what a Learner tells of a run."""

from .step import TrainStep as TrainStep
