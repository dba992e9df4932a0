"""Singe: a neural-network runtime for the places where nothing is installed. The public names, and nothing else."""

import typing as _typing

__version__ = "0.1.0"

from . import starting as _starting  # noqa: F401 (it hears Ctrl-C while a command imports what follows)

# isort: split
from . import nn as nn
from .dtypes import DType as DType
from .dtypes import bfloat16 as bfloat16
from .dtypes import bool_ as bool_
from .dtypes import complex64 as complex64
from .dtypes import complex128 as complex128
from .dtypes import dtype as dtype
from .dtypes import float4_e2m1fn as float4_e2m1fn
from .dtypes import float6_e2m3fn as float6_e2m3fn
from .dtypes import float6_e3m2fn as float6_e3m2fn
from .dtypes import float8_e4m3fn as float8_e4m3fn
from .dtypes import float8_e4m3fnuz as float8_e4m3fnuz
from .dtypes import float8_e5m2 as float8_e5m2
from .dtypes import float8_e5m2fnuz as float8_e5m2fnuz
from .dtypes import float8_e8m0fnu as float8_e8m0fnu
from .dtypes import float16 as float16
from .dtypes import float32 as float32
from .dtypes import float64 as float64
from .dtypes import int2 as int2
from .dtypes import int4 as int4
from .dtypes import int8 as int8
from .dtypes import int16 as int16
from .dtypes import int32 as int32
from .dtypes import int64 as int64
from .dtypes import string as string
from .dtypes import uint2 as uint2
from .dtypes import uint4 as uint4
from .dtypes import uint8 as uint8
from .dtypes import uint16 as uint16
from .dtypes import uint32 as uint32
from .dtypes import uint64 as uint64
from .errors import CompileError as CompileError
from .errors import DeviceError as DeviceError
from .errors import DeviceLost as DeviceLost
from .errors import DTypeError as DTypeError
from .errors import FormatError as FormatError
from .errors import ImportFailure as ImportFailure
from .errors import InputError as InputError
from .errors import NonFinite as NonFinite
from .errors import OutOfMemory as OutOfMemory
from .errors import OutOfRange as OutOfRange
from .errors import RemoteDisconnected as RemoteDisconnected
from .errors import ShapeError as ShapeError
from .errors import SingeError as SingeError
from .errors import UnsupportedOp as UnsupportedOp
from .errors import ValueNeeded as ValueNeeded
from .gradients import checkpoint as checkpoint
from .gradients import grad as grad
from .gradients import value_and_grad as value_and_grad
from .hints import no_attribute as _no_attribute
from .model.compiling import compile as compile
from .model.files import load as load
from .model.files import load_async as load_async
from .model.files import load_module as load_module
from .model.files import save as save
from .model.model import Model as Model
from .model.program import Program
from .model.session import Session as Session
from .ops import Wgsl as Wgsl
from .runtime.debugging import debug as debug
from .runtime.decorators import Autodiff as Autodiff
from .runtime.decorators import Fusion as Fusion
from .runtime.decorators import Router as Router
from .runtime.device import Device as Device
from .runtime.devices import Cuda as Cuda
from .runtime.devices import CuPy as CuPy
from .runtime.devices import Jax as Jax
from .runtime.devices import Numpy as Numpy
from .runtime.devices import Torch as Torch
from .runtime.devices import Wasm as Wasm
from .runtime.devices import WebGpu as WebGpu
from .runtime.devices import device as device
from .runtime.devices import device_async as device_async
from .runtime.devices import devices as devices
from .runtime.memory.settings import Memory as Memory
from .runtime.memory.usage import MemoryUse as MemoryUse
from .runtime.remote.client import Remote as Remote
from .tensors.custom_ops import op as op
from .tensors.functions.combining import atleast_1d as atleast_1d
from .tensors.functions.combining import atleast_2d as atleast_2d
from .tensors.functions.combining import atleast_3d as atleast_3d
from .tensors.functions.combining import block_diag as block_diag
from .tensors.functions.combining import broadcast_shapes as broadcast_shapes
from .tensors.functions.combining import broadcast_tensors as broadcast_tensors
from .tensors.functions.combining import can_cast as can_cast
from .tensors.functions.combining import cartesian_prod as cartesian_prod
from .tensors.functions.combining import chain_matmul as chain_matmul
from .tensors.functions.combining import column_stack as column_stack
from .tensors.functions.combining import combinations as combinations
from .tensors.functions.combining import dstack as dstack
from .tensors.functions.combining import einsum as einsum
from .tensors.functions.combining import is_tensor as is_tensor
from .tensors.functions.combining import promote_types as promote_types
from .tensors.functions.combining import result_type as result_type
from .tensors.functions.combining import std_mean as std_mean
from .tensors.functions.combining import tensordot as tensordot
from .tensors.functions.combining import trapezoid as trapezoid
from .tensors.functions.combining import trapz as trapz
from .tensors.functions.combining import tril_indices as tril_indices
from .tensors.functions.combining import triu_indices as triu_indices
from .tensors.functions.combining import unravel_index as unravel_index
from .tensors.functions.combining import var_mean as var_mean
from .tensors.functions.creation import arange as arange
from .tensors.functions.creation import as_tensor as as_tensor
from .tensors.functions.creation import asarray as asarray
from .tensors.functions.creation import cat as cat
from .tensors.functions.creation import concat as concat
from .tensors.functions.creation import concatenate as concatenate
from .tensors.functions.creation import empty as empty
from .tensors.functions.creation import empty_like as empty_like
from .tensors.functions.creation import eye as eye
from .tensors.functions.creation import from_dlpack as from_dlpack
from .tensors.functions.creation import from_numpy as from_numpy
from .tensors.functions.creation import full as full
from .tensors.functions.creation import full_like as full_like
from .tensors.functions.creation import hstack as hstack
from .tensors.functions.creation import linspace as linspace
from .tensors.functions.creation import logspace as logspace
from .tensors.functions.creation import meshgrid as meshgrid
from .tensors.functions.creation import ones as ones
from .tensors.functions.creation import ones_like as ones_like
from .tensors.functions.creation import row_stack as row_stack
from .tensors.functions.creation import stack as stack
from .tensors.functions.creation import tensor as tensor
from .tensors.functions.creation import vstack as vstack
from .tensors.functions.creation import where as where
from .tensors.functions.creation import zeros as zeros
from .tensors.functions.creation import zeros_like as zeros_like
from .tensors.functions.random import normal as normal
from .tensors.functions.window_functions import bartlett_window as bartlett_window
from .tensors.functions.window_functions import blackman_window as blackman_window
from .tensors.functions.window_functions import hamming_window as hamming_window
from .tensors.functions.window_functions import hann_window as hann_window
from .tensors.functions.window_functions import kaiser_window as kaiser_window
from .tensors.gradients import Gradients as Gradients
from .tensors.tensor import Tensor as Tensor
from .tools.export.bundle import Bundle as Bundle
from .tools.export.bundle import export as export
from .tools.export.freestanding import export_freestanding as export_freestanding
from .tools.inputs.images import PictureSpec as PictureSpec
from .weights import Weights as Weights
from .weights import WeightsReport as WeightsReport
from .weights import load_weights as load_weights
from .weights import read_weights as read_weights

__all__ = [
    "Autodiff",
    "Bundle",
    "CompileError",
    "CuPy",
    "Cuda",
    "DType",
    "DTypeError",
    "Device",
    "DeviceError",
    "DeviceLost",
    "FormatError",
    "Fusion",
    "Gradients",
    "ImportFailure",
    "InputError",
    "Jax",
    "Memory",
    "MemoryUse",
    "Model",
    "NonFinite",
    "Numpy",
    "OutOfMemory",
    "OutOfRange",
    "PictureSpec",
    "Program",
    "Remote",
    "RemoteDisconnected",
    "Router",
    "Session",
    "ShapeError",
    "SingeError",
    "Tensor",
    "Torch",
    "UnsupportedOp",
    "ValueNeeded",
    "Wasm",
    "WebGpu",
    "Weights",
    "WeightsReport",
    "Wgsl",
    "__version__",
    "arange",
    "as_tensor",
    "asarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bartlett_window",
    "bfloat16",
    "blackman_window",
    "block_diag",
    "bool_",
    "broadcast_shapes",
    "broadcast_tensors",
    "can_cast",
    "cartesian_prod",
    "cat",
    "chain_matmul",
    "checkpoint",
    "column_stack",
    "combinations",
    "compile",
    "complex64",
    "complex128",
    "concat",
    "concatenate",
    "debug",
    "device",
    "device_async",
    "devices",
    "dstack",
    "dtype",
    "einsum",
    "empty",
    "empty_like",
    "export",
    "export_freestanding",
    "eye",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "grad",
    "hamming_window",
    "hann_window",
    "hstack",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_tensor",
    "kaiser_window",
    "linspace",
    "load",
    "load_async",
    "load_module",
    "load_weights",
    "logspace",
    "meshgrid",
    "nn",
    "normal",
    "ones",
    "ones_like",
    "op",
    "promote_types",
    "read_weights",
    "result_type",
    "row_stack",
    "save",
    "stack",
    "std_mean",
    "string",
    "tensor",
    "tensordot",
    "trapezoid",
    "trapz",
    "tril_indices",
    "triu_indices",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unravel_index",
    "value_and_grad",
    "var_mean",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]  # fmt: skip


_LAZY = ("array_api", "cluster", "data", "fft", "host", "linalg", "metrics", "optim", "random", "remote", "train")
"""Submodules that are imported when they are first used."""
_RANDOM = (
    "manual_seed", "multinomial", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
)  # fmt: skip
"""Functions of `random` that PyTorch has at the top, too."""
_SHORT = {
    "bool": "bool", "double": "float64", "float": "float32", "half": "float16", "int": "int32", "long": "int64", "short": "int16",
}  # fmt: skip
"""PyTorch's other names of dtypes."""


def __getattr__(name: str) -> _typing.Any:
    """A submodule of _LAZY, a function of _RANDOM, a dtype of _SHORT, or a method of Tensor as a function: `singe.topk(x, 3)`."""
    if name in _LAZY:
        from importlib import import_module  # noqa: PLC0415

        return import_module(f"singe.{name}")
    if name in _RANDOM:
        from . import random  # noqa: PLC0415

        return getattr(random, name)
    if name in _SHORT:
        return dtype(_SHORT[name])
    if name.startswith("_") or not callable(getattr(Tensor, name, None)):
        raise _no_attribute(__name__, name)
    return getattr(Tensor, name)


def _functions() -> list[str]:
    """The methods of Tensor that are functions here."""
    own = {*__all__, *_LAZY, *_RANDOM, *_SHORT}
    return [n for n in dir(Tensor) if n[0] != "_" and n not in own and callable(getattr(Tensor, n))]


def __dir__() -> list[str]:
    """The public names only: Python also puts every submodule that was imported here."""
    return [*__all__, *_LAZY, *_RANDOM, *_SHORT, *_functions()]
