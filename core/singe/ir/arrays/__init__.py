"""Arrays of a library, as rows see them.

words.py    the scalar words on NumPy's arrays, and `convert`: what scalar.py folds constants with.
adapter.py  ArrayAdapter: the `xp` of a row's `evaluate`, over any library with the names of the array API standard.
numpy.py    NUMPY_ARRAYS, the adapter of NumPy.
calls.py    an expression as calls of NumPy's functions, which overwrite what is not needed again.
"""

from .words import NUMPY as NUMPY
from .words import convert as convert
