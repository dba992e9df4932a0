"""The ops of TensorFlow Lite that Singe reads. Each family has a file; OPS is the open table."""

from . import complex, custom, detection, elementwise, folds, movement, products, variables, windows  # noqa: F401 (each enters its ops)
from ._call import OPS as OPS
from ._call import TfliteCall as TfliteCall
from ._call import Variables as Variables
from ._call import dtype_of as dtype_of
from ._call import is_quantised as is_quantised
from ._call import run_op as run_op
from .numbers import dequantised as dequantised
