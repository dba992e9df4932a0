"""HDF5 files, as Keras writes weights: `reader.py` is where to start."""

from .reader import KERAS as KERAS
from .reader import is_hdf5 as is_hdf5
from .reader import read_hdf5 as read_hdf5
from .reader import read_keras as read_keras

__all__ = ["KERAS", "is_hdf5", "read_hdf5", "read_keras"]
