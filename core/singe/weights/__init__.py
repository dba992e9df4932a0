"""Weights and models in files: records of our own, and the formats of others, read without executing anything."""

from ..nn._report import WeightsReport as WeightsReport
from .files import load_weights as load_weights
from .files import read_weights as read_weights
from .stored import Weights as Weights

__all__ = ["Weights", "WeightsReport", "load_weights", "read_weights"]
