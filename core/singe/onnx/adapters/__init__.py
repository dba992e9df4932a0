"""Adapters translate ONNX ops that do not match one row exactly. Each family has a folder, named like
that of its rows in ops where they have one; ADAPTERS is the open table."""

from . import control, elementwise, folds, microsoft, ml, movement, products  # noqa: F401 (each enters its adapters)
from ._call import ADAPTERS as ADAPTERS
from ._call import MAX_FOLDED as MAX_FOLDED
from ._call import OBJECTS as OBJECTS
from ._call import Call as Call
from ._call import adapter as adapter
