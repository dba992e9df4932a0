"""Singe: a neural-network runtime for the places where nothing is installed. The public names, and nothing else."""

from . import nn as nn
from ._creation import arange as arange
from ._creation import concat as concat
from ._creation import eye as eye
from ._creation import full as full
from ._creation import full_like as full_like
from ._creation import ones as ones
from ._creation import ones_like as ones_like
from ._creation import stack as stack
from ._creation import tensor as tensor
from ._creation import where as where
from ._creation import zeros as zeros
from ._creation import zeros_like as zeros_like
from ._dtypes import DType as DType
from ._dtypes import bool_ as bool_
from ._dtypes import dtype as dtype
from ._dtypes import float16 as float16
from ._dtypes import float32 as float32
from ._dtypes import int32 as int32
from ._dtypes import int64 as int64
from ._dtypes import uint8 as uint8
from ._errors import CompileError as CompileError
from ._errors import DeviceError as DeviceError
from ._errors import DeviceLost as DeviceLost
from ._errors import DTypeError as DTypeError
from ._errors import FormatError as FormatError
from ._errors import ImportFailure as ImportFailure
from ._errors import InputError as InputError
from ._errors import ShapeError as ShapeError
from ._errors import SingeError as SingeError
from ._errors import UnsupportedOp as UnsupportedOp
from ._errors import ValueNeeded as ValueNeeded
from ._tensor import Tensor as Tensor
from .device import Device as Device
from .device import Fusion as Fusion
from .device import Numpy as Numpy
from .device import Wasm as Wasm
from .device import WebGpu as WebGpu
from .device import device as device
from .device import device_async as device_async
from .device import devices as devices
from .model import Model as Model
from .model import Runnable as Program
from .model import compile as compile
from .model import load as load
from .model import load_async as load_async
from .model import save as save
from .weights import load_weights as load_weights

__version__ = "0.1.0"

__all__ = [
    "CompileError", "DType", "DTypeError", "Device", "DeviceError", "DeviceLost", "FormatError", "Fusion", "ImportFailure", "InputError",
    "Model", "Numpy", "Program", "ShapeError", "SingeError", "Tensor", "UnsupportedOp", "ValueNeeded", "Wasm", "WebGpu",
    "__version__", "arange", "bool_", "compile", "concat", "device", "device_async", "devices", "dtype", "eye", "float16", "float32", "full", "full_like",
    "int32", "int64", "load", "load_async", "load_weights", "nn", "ones", "ones_like", "save", "stack", "tensor", "uint8", "where", "zeros", "zeros_like",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names only: Python also puts every submodule that was imported here."""
    return list(__all__)
