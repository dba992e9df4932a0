"""The public names of Singe, with all methods of Tensor as functions. Written by tests/stubs.py: do not edit."""

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, Union, overload

import numpy as np

from .dtypes import DType
from .tensors.gradients import Gradients
from .tensors.named.named_tensor import NamedTensor
from .tensors.methods.folds import Extremes
from .tensors.methods.sorting import Ordered
from .tensors.methods.selection import Places
from .tensors.nodes.shaping import Axis, Count
from .tensors.nodes.spatial import Ints, Padding, Sizes
from .ir.scalar import Number
from .runtime.device import Device, DeviceValue
from .shapes import Dim

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
from .model.compiling import compile as compile
from .model.files import load as load
from .model.files import load_async as load_async
from .model.files import load_module as load_module
from .model.files import save as save
from .model.model import Model as Model
from .model.program import Program as Program
from .model.session import Session as Session
from .ops import Wgsl as Wgsl
from .runtime.debugging import debug as debug
from .runtime.decorators import Autodiff as Autodiff
from .runtime.decorators import Fusion as Fusion
from .runtime.decorators import Router as Router
from .runtime.device import Device as Device
from .runtime.devices import Cuda as Cuda
from .runtime.devices import CuPy as CuPy
from .runtime.devices import Hip as Hip
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
from .tensors.named.named_tensor import NamedTensor as NamedTensor
from .tensors.tensor import Tensor as Tensor
from .tools.export.bundle import Bundle as Bundle
from .tools.export.bundle import export as export
from .tools.export.freestanding import export_freestanding as export_freestanding
from .tasks.picture.spec import PictureSpec as PictureSpec
from .tasks.task import task as task
from .weights import Weights as Weights
from .weights import WeightsReport as WeightsReport
from .weights import load_weights as load_weights
from .weights import read_weights as read_weights
from . import array_api as array_api
from . import cluster as cluster
from . import data as data
from . import fft as fft
from . import host as host
from . import language as language
from . import linalg as linalg
from . import metrics as metrics
from . import nn as nn
from . import onnx as onnx
from . import optim as optim
from . import ort as ort
from . import random as random
from . import remote as remote
from . import tasks as tasks
from . import train as train
from . import zoo as zoo
from .random import manual_seed as manual_seed
from .random import multinomial as multinomial
from .random import poisson as poisson
from .random import rand as rand
from .random import rand_like as rand_like
from .random import randint as randint
from .random import randint_like as randint_like
from .random import randn as randn
from .random import randn_like as randn_like
from .random import randperm as randperm
from .tensors.tensor import TensorLike

__version__: str

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
    "Hip",
    "ImportFailure",
    "InputError",
    "Jax",
    "Memory",
    "MemoryUse",
    "Model",
    "NamedTensor",
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
    "complex128",
    "complex64",
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
    "float16",
    "float32",
    "float4_e2m1fn",
    "float64",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "grad",
    "hamming_window",
    "hann_window",
    "hstack",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
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
    "task",
    "tensor",
    "tensordot",
    "trapezoid",
    "trapz",
    "tril_indices",
    "triu_indices",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
    "unravel_index",
    "value_and_grad",
    "var_mean",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]

bool: DType
double: DType
float: DType
half: DType
int: DType
long: DType
short: DType

def abs(x: Tensor) -> Tensor:
    """the absolute value"""
def absolute(x: Tensor) -> Tensor:
    """the absolute value"""
def acos(x: Tensor) -> Tensor:
    """the inverse cosine, in radians"""
def acosh(x: Tensor) -> Tensor:
    """the inverse hyperbolic cosine"""
def adaptive_avg_pool(x: Tensor, output_size: Sizes) -> Tensor:
    """Means over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis."""
def adaptive_avg_pool1d(x: Tensor, output_size: Sizes) -> Tensor:
    """Means over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis."""
def adaptive_avg_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    """Means over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis."""
def adaptive_avg_pool3d(x: Tensor, output_size: Sizes) -> Tensor:
    """Means over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis."""
def adaptive_max_pool(x: Tensor, output_size: Sizes, return_indices: _bool = False) -> Any:
    """Maxima over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis.
    return_indices: also the place of each among the elements of its channel."""
def adaptive_max_pool1d(x: Tensor, output_size: Sizes, return_indices: _bool = False) -> Any:
    """Maxima over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis.
    return_indices: also the place of each among the elements of its channel."""
def adaptive_max_pool2d(x: Tensor, output_size: Sizes, return_indices: _bool = False) -> Any:
    """Maxima over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis.
    return_indices: also the place of each among the elements of its channel."""
def adaptive_max_pool3d(x: Tensor, output_size: Sizes, return_indices: _bool = False) -> Any:
    """Maxima over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis.
    return_indices: also the place of each among the elements of its channel."""
def add(x: Tensor, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """x + alpha · other."""
def addbmm(x: Tensor, batch1: Tensor, batch2: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · the sum of the products of two stacks of matrices."""
def addcdiv(x: Tensor, tensor1: TensorLike, tensor2: TensorLike, value: Number = 1) -> Tensor:
    """x + value · tensor1 / tensor2."""
def addcmul(x: Tensor, tensor1: TensorLike, tensor2: TensorLike, value: Number = 1) -> Tensor:
    """x + value · tensor1 · tensor2."""
def addmm(x: Tensor, mat1: TensorLike, mat2: TensorLike, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · (mat1 @ mat2)."""
def addmv(x: Tensor, mat: TensorLike, vec: TensorLike, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · (mat @ vec)."""
def addr(x: Tensor, vec1: TensorLike, vec2: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · the products of each element of a vector with each of another."""
def adjoint(x: Tensor) -> Tensor:
    """`mH`, called."""
def affine_grid(x: Tensor, size: Sequence[Dim], align_corners: _bool | None = None) -> Tensor:
    """The grid for grid_sample that affine maps, (batch, axes, axes + 1), give for pictures of a size (batch, channels,
    …space)."""
@overload
def all(x: Tensor, axis: Axis = None, keepdims: _bool = False) -> Tensor:
    """Whether no element over axes is zero."""
@overload
def all(x: Tensor, dim: Axis = None, keepdim: _bool = False) -> Tensor:
    """Whether no element over axes is zero."""
def allclose(x: Tensor, other: TensorLike, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
    """Whether all elements are close, as `isclose` says."""
@overload
def amax(x: Tensor, axis: Axis = None, keepdims: _bool = False) -> Tensor:
    """The largest element over axes."""
@overload
def amax(x: Tensor, dim: Axis = None, keepdim: _bool = False) -> Tensor:
    """The largest element over axes."""
@overload
def amin(x: Tensor, axis: Axis = None, keepdims: _bool = False) -> Tensor:
    """The least element over axes."""
@overload
def amin(x: Tensor, dim: Axis = None, keepdim: _bool = False) -> Tensor:
    """The least element over axes."""
@overload
def aminmax(x: Tensor, axis: _int | None = None, keepdims: _bool = False) -> Extremes:
    """The least and the largest element, of all or along an axis."""
@overload
def aminmax(x: Tensor, dim: _int | None = None, keepdim: _bool = False) -> Extremes:
    """The least and the largest element, of all or along an axis."""
def angle(x: Tensor) -> Tensor:
    """The angle of each number in the complex plane: π for negative ones, 0 for the others."""
@overload
def any(x: Tensor, axis: Axis = None, keepdims: _bool = False) -> Tensor:
    """Whether an element over axes is not zero."""
@overload
def any(x: Tensor, dim: Axis = None, keepdim: _bool = False) -> Tensor:
    """Whether an element over axes is not zero."""
def arccos(x: Tensor) -> Tensor:
    """the inverse cosine, in radians"""
def arccosh(x: Tensor) -> Tensor:
    """the inverse hyperbolic cosine"""
def arcsin(x: Tensor) -> Tensor:
    """the inverse sine, in radians"""
def arcsinh(x: Tensor) -> Tensor:
    """the inverse hyperbolic sine"""
def arctan(x: Tensor) -> Tensor:
    """the inverse tangent, in radians"""
def arctan2(x: Tensor, other: TensorLike) -> Tensor:
    """the angle of the point (other, x) in radians, −π … π"""
def arctanh(x: Tensor) -> Tensor:
    """the inverse hyperbolic tangent"""
@overload
def argmax(x: Tensor, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
    """The index of the largest element along an axis (the first, if several are equal), as int64;
    without an axis, the index in the flat tensor."""
@overload
def argmax(x: Tensor, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """The index of the largest element along an axis (the first, if several are equal), as int64;
    without an axis, the index in the flat tensor."""
@overload
def argmin(x: Tensor, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
    """The index of the least element, as `argmax` gives that of the largest."""
@overload
def argmin(x: Tensor, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """The index of the least element, as `argmax` gives that of the largest."""
@overload
def argsort(x: Tensor, axis: _int = -1, descending: _bool = False, stable: _bool = True) -> Tensor:
    """The indices that put the elements in order along an axis."""
@overload
def argsort(x: Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> Tensor:
    """The indices that put the elements in order along an axis."""
def argwhere(x: Tensor, *, as_tuple: _bool = False) -> Any:
    """The coordinates of all elements that are not zero, one row each. as_tuple: one vector for each axis."""
def asin(x: Tensor) -> Tensor:
    """the inverse sine, in radians"""
def asinh(x: Tensor) -> Tensor:
    """the inverse hyperbolic sine"""
def astype(x: Tensor, to: Any) -> Tensor:
    """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
def atan(x: Tensor) -> Tensor:
    """the inverse tangent, in radians"""
def atan2(x: Tensor, other: TensorLike) -> Tensor:
    """the angle of the point (other, x) in radians, −π … π"""
def atanh(x: Tensor) -> Tensor:
    """the inverse hyperbolic tangent"""
def attention(x: TensorLike, k: TensorLike, v: TensorLike, mask: TensorLike | None = None, *, scale: Any = 0.0, causal: Any = False, past: Any = 0, softcap: Any = 0.0, keys: Any = None) -> Any:
    """softmax(scale · q · kᵀ + mask) · v for each head (…, heads, length, size); scale 0: 1 / √size. causal: a query sees no later keys; past: how many keys precede the first query. softcap: scores are kept within ±softcap; keys: how many of the first keys are in use. Keys and values that are stored in another type, or in eight bits, are computed in that of q"""
def avg_pool(x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean of each window."""
def avg_pool1d(x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean of each window."""
def avg_pool2d(x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean of each window."""
def avg_pool3d(x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean of each window."""
def backward(x: Tensor, gradient: TensorLike | None = None, *, create_graph: _bool = False) -> Gradients:
    """The gradients of this number, for each tensor that asked for its gradient. No tensor changes, and it may be called
    again. create_graph: the gradients can be differentiated, too.

    Of a tensor of several numbers they are those of the sum, as in Burn; with gradient, a tensor of the same shape, of
    (x * gradient).sum(). PyTorch refuses several numbers without a gradient."""
def baddbmm(x: Tensor, mat1: TensorLike, mat2: TensorLike, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · (mat1 @ mat2)."""
def batch_norm(x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, training: _bool = False, momentum: _float = 0.1, eps: _float = 1e-05) -> Tensor:
    """(x − mean) / √(variance + eps) · weight + bias for each channel (axis 1), by given statistics."""
def bernoulli(x: Tensor, p: _float | None = None) -> Tensor:
    """1 with the probability that each element is, otherwise 0, in the tensor's dtype, with the next key; with p, of the same
    shape, with that probability. Probabilities beyond 0 and 1 count as these."""
def bilinear(x: Tensor, other: Tensor, weight: Tensor, bias: TensorLike | None = None) -> Tensor:
    """x · weight[k] · other + bias[k] for each output k; weight is (outputs, inputs of x, inputs of the other)."""
def bincount(x: Tensor, weights: Any = None, minlength: _int = 0) -> Tensor:
    """How often each integer from 0 on is an element; with weights, the sum of those beside it."""
def bit_cast(x: TensorLike, *, to: Any) -> Tensor:
    """the same bits read as another dtype of the same size"""
def bitwise_and(x: Tensor, other: TensorLike) -> Tensor:
    """x & other: the bits that both have"""
def bitwise_left_shift(x: Tensor, other: TensorLike) -> Tensor:
    """x << other: x times 2 to the power of other"""
def bitwise_not(x: Tensor) -> Tensor:
    """~x: every bit turned"""
def bitwise_or(x: Tensor, other: TensorLike) -> Tensor:
    """x | other: the bits that either has"""
def bitwise_right_shift(x: Tensor, other: TensorLike) -> Tensor:
    """x >> other: x divided by 2 to the power of other, rounded down"""
def bitwise_xor(x: Tensor, other: TensorLike) -> Tensor:
    """x ^ other: the bits that only one has"""
def bmm(x: Tensor, other: TensorLike) -> Tensor:
    """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
def broadcast_to(x: Tensor, *shape: Any) -> Tensor:
    """The tensor repeated along axes of length 1, and along new leading axes."""
def bucketize(x: Tensor, boundaries: Tensor | np.ndarray | Sequence[_float], *, out_int32: _bool = False, right: _bool = False) -> Tensor:
    """The number of the interval between boundaries in order that each element lies in."""
def byte(x: Tensor) -> Tensor:
    """The elements as uint8."""
def cast(x: Tensor, to: Any) -> Tensor:
    """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
def cdist(x: Tensor, other: Tensor, p: _float = 2.0) -> Tensor:
    """The distance, by the p-norm, of each row of a matrix to each of another."""
def ceil(x: Tensor) -> Tensor:
    """the least whole number that is at least x"""
def celu(x: TensorLike, *, alpha: Any = 1.0) -> Tensor:
    """x where it is positive, alpha · (e^(x / alpha) − 1) elsewhere"""
def channel_shuffle(x: Tensor, groups: _int) -> Tensor:
    """Channels (axis 1), taken from each of the groups in turn."""
def char(x: Tensor) -> Tensor:
    """The elements as int8."""
def cholesky(x: Tensor, upper: _bool = False) -> Tensor:
    """The lower triangular matrix whose product with its transpose is x; upper: its transpose."""
@overload
def chunk(x: Tensor, chunks: _int, axis: _int = 0) -> tuple[Tensor, ...]:
    """Up to `chunks` pieces of equal size along an axis; the last may be smaller."""
@overload
def chunk(x: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """Up to `chunks` pieces of equal size along an axis; the last may be smaller."""
def clamp(x: Tensor, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Elements clipped to the range from min to max (None: no limit)."""
def clamp_max(x: Tensor, max: TensorLike) -> Tensor:
    """Elements, or the limit where they are larger."""
def clamp_min(x: Tensor, min: TensorLike) -> Tensor:
    """Elements, or the limit where they are less."""
@overload
def clip(x: Tensor, low: TensorLike | None = None, high: TensorLike | None = None) -> Tensor:
    """Elements clipped to the range from low to high (None: no limit)."""
@overload
def clip(x: Tensor, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Elements clipped to the range from low to high (None: no limit)."""
def clone(x: Tensor) -> Tensor:
    """The tensor itself, which does not change."""
@overload
def compress(x: TensorLike, condition: TensorLike, *, axis: Any) -> Any:
    """the slices along an axis where a condition holds"""
@overload
def compress(x: TensorLike, condition: TensorLike, *, dim: Any) -> Any:
    """the slices along an axis where a condition holds"""
def conj(x: Tensor) -> Tensor:
    """the complex conjugate"""
def contiguous(x: Tensor) -> Tensor:
    """The tensor itself, which does not change."""
def conv(x: Tensor, weight: TensorLike, bias: TensorLike | None = None, *, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
    """Convolution with weights (outputs, channels per group, …window). padding: numbers, "same" or "valid"."""
def conv1d(x: Tensor, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
    """`conv`, of inputs with this number of axes of space."""
def conv2d(x: Tensor, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
    """`conv`, of inputs with this number of axes of space."""
def conv3d(x: Tensor, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
    """`conv`, of inputs with this number of axes of space."""
def conv_transpose(x: Tensor, weight: TensorLike, bias: TensorLike | None = None, *, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
    """The transpose of a convolution, with weights (channels, outputs per group, …window)."""
def conv_transpose1d(x: Tensor, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, groups: _int = 1, dilation: Ints = 1) -> Tensor:
    """`conv_transpose`, of inputs with this number of axes of space."""
def conv_transpose2d(x: Tensor, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, groups: _int = 1, dilation: Ints = 1) -> Tensor:
    """`conv_transpose`, of inputs with this number of axes of space."""
def conv_transpose3d(x: Tensor, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, groups: _int = 1, dilation: Ints = 1) -> Tensor:
    """`conv_transpose`, of inputs with this number of axes of space."""
def copysign(x: Tensor, other: TensorLike) -> Tensor:
    """the absolute value of x with the sign of other"""
def corrcoef(x: Tensor) -> Tensor:
    """The correlations of variables: each row is one, each column an observation of all."""
def cos(x: Tensor) -> Tensor:
    """the cosine of an angle in radians"""
def cosh(x: Tensor) -> Tensor:
    """the hyperbolic cosine"""
@overload
def cosine_similarity(x: Tensor, other: Tensor, axis: _int = 1, eps: _float = 1e-08) -> Tensor:
    """The cosines of the angles between vectors along an axis; no length counts as less than eps."""
@overload
def cosine_similarity(x: Tensor, other: Tensor, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """The cosines of the angles between vectors along an axis; no length counts as less than eps."""
@overload
def count_nonzero(x: Tensor, axis: Axis = None, keepdims: _bool = False) -> Tensor:
    """How many elements over axes are not zero."""
@overload
def count_nonzero(x: Tensor, dim: Axis = None, keepdim: _bool = False) -> Tensor:
    """How many elements over axes are not zero."""
def cov(x: Tensor, correction: _int = 1) -> Tensor:
    """The covariances of variables: each row is one, each column an observation of all."""
def cpu(x: Tensor) -> Tensor:
    """The tensor on the device "numpy"."""
@overload
def cross(x: Tensor, other: TensorLike, axis: _int | None = None) -> Tensor:
    """The cross products of vectors of three elements along an axis: by default the first of this length."""
@overload
def cross(x: Tensor, other: TensorLike, dim: _int | None = None) -> Tensor:
    """The cross products of vectors of three elements along an axis: by default the first of this length."""
def cross_entropy(x: TensorLike, target: TensorLike, weight: TensorLike | None = None, *, reduction: Any = 'mean', ignore_index: Any = -100) -> Any:
    """minus the logarithm of the softmax at each place's class, times the weight of the class"""
@overload
def cummax(x: Tensor, axis: _int) -> Ordered:
    """The largest element up to each one along an axis, and its last index. NaN is the largest."""
@overload
def cummax(x: Tensor, dim: _int) -> Ordered:
    """The largest element up to each one along an axis, and its last index. NaN is the largest."""
@overload
def cummin(x: Tensor, axis: _int) -> Ordered:
    """The least element up to each one along an axis, and its last index. NaN is the least."""
@overload
def cummin(x: Tensor, dim: _int) -> Ordered:
    """The least element up to each one along an axis, and its last index. NaN is the least."""
@overload
def cumprod(x: Tensor, axis: _int, dtype: Any = None) -> Tensor:
    """The product of all elements up to each one along an axis; integers are multiplied as int64."""
@overload
def cumprod(x: Tensor, dim: _int, dtype: Any = None) -> Tensor:
    """The product of all elements up to each one along an axis; integers are multiplied as int64."""
@overload
def cumsum(x: Tensor, axis: _int, dtype: Any = None) -> Tensor:
    """The sum of all elements up to each one along an axis; integers are summed as int64."""
@overload
def cumsum(x: Tensor, dim: _int, dtype: Any = None) -> Tensor:
    """The sum of all elements up to each one along an axis; integers are summed as int64."""
@overload
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, axis: _int = -1) -> Tensor:
    """The integral up to each point along an axis of lines through points: at the places x, or at distances dx."""
@overload
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: _int = -1) -> Tensor:
    """The integral up to each point along an axis of lines through points: at the places x, or at distances dx."""
def deform_conv(x: TensorLike, w: TensorLike, offset: TensorLike, bias: TensorLike | None = None, mask: TensorLike | None = None, *, strides: Any, dilations: Any, before: Any, after: Any, group: Any, offset_group: Any) -> Any:
    """convolution of which every element read is moved by an offset, and weighted by a mask"""
def deg2rad(x: Tensor) -> Tensor:
    """Degrees as radians."""
def det(x: TensorLike) -> Any:
    """the determinant of each matrix in the last two axes"""
def detach(x: Tensor) -> Tensor:
    """The same elements as a tensor through which no gradient goes."""
@overload
def dft(x: TensorLike, *, axis: Any = -2, length: Any = None, inverse: Any = False, onesided: Any = False) -> Any:
    """discrete Fourier transforms along an axis; the last axis has the real and the imaginary part"""
@overload
def dft(x: TensorLike, *, dim: Any = -2, length: Any = None, inverse: Any = False, onesided: Any = False) -> Any:
    """discrete Fourier transforms along an axis; the last axis has the real and the imaginary part"""
def diag(x: Tensor, diagonal: _int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
@overload
def diag_embed(x: Tensor, offset: _int = 0, axis1: _int = -2, axis2: _int = -1) -> Tensor:
    """Matrices, of these axes of the result, with the vectors along the last axis on a diagonal; zeros elsewhere."""
@overload
def diag_embed(x: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """Matrices, of these axes of the result, with the vectors along the last axis on a diagonal; zeros elsewhere."""
def diagflat(x: Tensor, offset: _int = 0) -> Tensor:
    """The matrix with all elements on a diagonal."""
@overload
def diagonal(x: Tensor, offset: _int = 0, axis1: _int = 0, axis2: _int = 1) -> Tensor:
    """The elements with equal coordinates along two axes (axis2 − axis1 = offset), along a new last axis."""
@overload
def diagonal(x: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """The elements with equal coordinates along two axes (axis2 − axis1 = offset), along a new last axis."""
@overload
def diagonal_scatter(x: Tensor, src: TensorLike, offset: _int = 0, axis1: _int = 0, axis2: _int = 1) -> Tensor:
    """The tensor with a diagonal (as `diagonal` gives it) replaced."""
@overload
def diagonal_scatter(x: Tensor, src: TensorLike, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """The tensor with a diagonal (as `diagonal` gives it) replaced."""
@overload
def diff(x: Tensor, n: _int = 1, axis: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The differences between neighbours along an axis, taken n times; of bools, whether they differ."""
@overload
def diff(x: Tensor, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The differences between neighbours along an axis, taken n times; of bools, whether they differ."""
def digamma(x: Tensor) -> Tensor:
    """The derivative of lgamma."""
def dim(x: Tensor) -> _int:
    """The number of axes."""
def dist(x: Tensor, other: TensorLike, p: _float = 2) -> Tensor:
    """The p-norm of the difference."""
def div(x: Tensor, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """The quotients. rounding_mode: "floor", or "trunc" (towards 0), for whole ones; integers stay integers then."""
def divide(x: Tensor, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """The quotients. rounding_mode: "floor", or "trunc" (towards 0), for whole ones; integers stay integers then."""
def dot(x: Tensor, other: TensorLike) -> Tensor:
    """The product of two vectors, or matrices. For more axes NumPy's dot is not matmul, and PyTorch has none."""
def dsplit(x: Tensor, sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 2."""
def element_size(x: Tensor) -> _int:
    """How many bytes an element takes."""
def elu(x: TensorLike, *, alpha: Any = 1.0) -> Tensor:
    """x where it is positive, alpha · (e^x − 1) elsewhere"""
def embedding(x: Tensor, weight: Tensor) -> Tensor:
    """The rows of a matrix at indices: x.embedding(weight), or sg.embedding(x, weight)."""
def eq(x: Tensor, other: TensorLike) -> Tensor:
    """x == other"""
def equal(x: Tensor, other: TensorLike) -> _bool:
    """Whether two tensors have the same shape and elements; `eq` compares element by element."""
def erf(x: Tensor) -> Tensor:
    """the error function: 2 / √π times the integral of e^(−t²) from 0 to x"""
def erfc(x: Tensor) -> Tensor:
    """1 − erf(x)."""
def erfinv(x: Tensor) -> Tensor:
    """The inverse of erf."""
def exp(x: Tensor) -> Tensor:
    """e^x, the exponential function"""
def exp2(x: Tensor) -> Tensor:
    """2 to the power of each element."""
def expand(x: Tensor, *shape: Any) -> Tensor:
    """Like broadcast_to; -1 keeps a dimension."""
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """The tensor repeated to the shape of another."""
def expit(x: Tensor) -> Tensor:
    """1 / (1 + e^(−x))"""
def expm1(x: Tensor) -> Tensor:
    """e^x − 1, exact for small x"""
def fill(x: Tensor, value: TensorLike) -> Tensor:
    """A tensor of the shape and dtype, with one value."""
def fix(x: Tensor) -> Tensor:
    """the whole number without the fraction"""
def flatten(x: Tensor, start: _int = 0, end: _int = -1) -> Tensor:
    """The axes from start to end (inclusive) merged into one."""
def flip(x: Tensor, *axis: Any) -> Tensor:
    """The elements in reverse order along axes (all, if none is given)."""
def fliplr(x: Tensor) -> Tensor:
    """The columns (axis 1) in reverse order."""
def flipud(x: Tensor) -> Tensor:
    """The rows (axis 0) in reverse order."""
def float_power(x: Tensor, exponent: TensorLike) -> Tensor:
    """Elements to a power, in float64."""
def floor(x: Tensor) -> Tensor:
    """the greatest whole number that is at most x"""
def floor_divide(x: Tensor, other: TensorLike) -> Tensor:
    """x / other rounded down, as Python's //"""
def fmax(x: Tensor, other: TensorLike) -> Tensor:
    """The larger of two; of NaN and a number the number."""
def fmin(x: Tensor, other: TensorLike) -> Tensor:
    """The lesser of two; of NaN and a number the number."""
def fmod(x: Tensor, other: TensorLike) -> Tensor:
    """the remainder of x / other, with the sign of x, as in C"""
def frac(x: Tensor) -> Tensor:
    """Elements without their whole part; the sign stays."""
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissas, of absolute values from 0.5 to 1, and the exponents of 2 with which they give the elements."""
def gammainc(x: Tensor, other: TensorLike) -> Tensor:
    """The share of the gamma function of x whose integral runs from 0 to the other number."""
def gammaincc(x: Tensor, other: TensorLike) -> Tensor:
    """The share of the gamma function of x whose integral runs from the other number on: 1 − igamma."""
@overload
def gather(x: Tensor, axis: _int, index: TensorLike) -> Tensor:
    """For each index the element at it along an axis; its other coordinates are those of the index."""
@overload
def gather(x: Tensor, dim: _int, index: TensorLike) -> Tensor:
    """For each index the element at it along an axis; its other coordinates are those of the index."""
def gather_nd(x: TensorLike, index: TensorLike, *, batch: Any) -> Any:
    """slices at the coordinates in the last axis of the second input; the first `batch` axes of both are one"""
def gcd(x: Tensor, other: TensorLike) -> Tensor:
    """the greatest common divisor"""
def ge(x: Tensor, other: TensorLike) -> Tensor:
    """x >= other"""
def gelu(x: Tensor, approximate: str = 'none') -> Tensor:
    """x · Φ(x), where Φ is the normal distribution; approximate="tanh" computes it by tanh."""
def gelu_tanh(x: TensorLike) -> Tensor:
    """the approximation of gelu by tanh"""
def ger(x: Tensor, other: TensorLike) -> Tensor:
    """The products of each element of a vector with each of another."""
def global_average_pool(x: TensorLike) -> Any:
    """the mean over all spatial axes"""
def global_max_pool(x: TensorLike) -> Any:
    """the largest element over all spatial axes"""
@overload
def glu(x: Tensor, axis: _int = -1) -> Tensor:
    """The first half of an axis, times the sigmoid of the second half."""
@overload
def glu(x: Tensor, dim: _int = -1) -> Tensor:
    """The first half of an axis, times the sigmoid of the second half."""
def greater(x: Tensor, other: TensorLike) -> Tensor:
    """x > other"""
def greater_equal(x: Tensor, other: TensorLike) -> Tensor:
    """x >= other"""
def grid_sample(x: Tensor, grid: TensorLike, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: _bool | None = None) -> Tensor:
    """The elements at places of a grid, from −1 to 1 along each axis of space. mode: bilinear, nearest or bicubic;
    padding_mode: zeros, border or reflection."""
def group_norm(x: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05) -> Tensor:
    """(x − mean) / √(variance + eps) for each group of channels (axis 1), then · weight + bias for each channel."""
def gru(x: TensorLike, w: TensorLike, r: TensorLike, *rest: TensorLike, activations: Any, given: Any = ..., direction: Any = 'forward', clip: Any = 0.0, linear_before_reset: Any = False) -> Any:
    """a recurrent layer: gates update, reset, new"""
def gt(x: Tensor, other: TensorLike) -> Tensor:
    """x > other"""
def hard_sigmoid(x: TensorLike, *, alpha: Any = 0.2, beta: Any = 0.5) -> Tensor:
    """alpha · x + beta, clipped to 0 … 1"""
def hard_swish(x: TensorLike) -> Tensor:
    """x · (x / 6 + ½), the factor clipped to 0 … 1"""
@overload
def hardmax(x: TensorLike, *, axis: Any = -1) -> Any:
    """1 at the first largest element along an axis, 0 elsewhere"""
@overload
def hardmax(x: TensorLike, *, dim: Any = -1) -> Any:
    """1 at the first largest element along an axis, 0 elsewhere"""
def hardshrink(x: Tensor, lambd: _float = 0.5) -> Tensor:
    """Elements beyond ±lambd, zeros in place of the others."""
def hardsigmoid(x: Tensor) -> Tensor:
    """x / 6 + 1/2, clipped to 0 … 1."""
def hardswish(x: Tensor) -> Tensor:
    """x · hardsigmoid(x)."""
def hardtanh(x: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
    """x, clipped to min_val … max_val."""
def heaviside(x: Tensor, values: TensorLike) -> Tensor:
    """0 for negative elements, 1 for positive ones, `values` for zeros; NaN for NaN."""
@overload
def histc(x: Tensor, bins: _int = 100, low: _float = 0, high: _float = 0) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from low to high; from the least element to the largest, if
    low and high are equal. Elements beyond are not counted."""
@overload
def histc(x: Tensor, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from low to high; from the least element to the largest, if
    low and high are equal. Elements beyond are not counted."""
def histogram(x: Tensor, bins: _int | Tensor | Sequence[_float], *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> tuple[Tensor, Tensor]:
    """How many elements lie in each interval, and the edges of these: `bins` equal ones over a range (of the elements, if
    none is given), or those between given edges. weight: of each element; density: divided by the total and the widths."""
def hsplit(x: Tensor, sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 1, of a vector along axis 0."""
def hypot(x: Tensor, other: TensorLike) -> Tensor:
    """√(x² + other²), without overflow on the way"""
def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""
def igamma(x: Tensor, other: TensorLike) -> Tensor:
    """The share of the gamma function of x whose integral runs from 0 to the other number."""
def igammac(x: Tensor, other: TensorLike) -> Tensor:
    """The share of the gamma function of x whose integral runs from the other number on: 1 − igamma."""
def imag(x: Tensor) -> Tensor:
    """the imaginary part"""
@overload
def index_add(x: Tensor, axis: _int, index: TensorLike, source: TensorLike, *, alpha: Number = 1) -> Tensor:
    """The tensor with slices, times alpha, added to those at indices along an axis."""
@overload
def index_add(x: Tensor, dim: _int, index: TensorLike, source: TensorLike, *, alpha: Number = 1) -> Tensor:
    """The tensor with slices, times alpha, added to those at indices along an axis."""
@overload
def index_copy(x: Tensor, axis: _int, index: TensorLike, source: TensorLike) -> Tensor:
    """The tensor with the slices at indices along an axis replaced."""
@overload
def index_copy(x: Tensor, dim: _int, index: TensorLike, source: TensorLike) -> Tensor:
    """The tensor with the slices at indices along an axis replaced."""
@overload
def index_fill(x: Tensor, axis: _int, index: TensorLike, value: TensorLike) -> Tensor:
    """The tensor with one value in the slices at indices along an axis."""
@overload
def index_fill(x: Tensor, dim: _int, index: TensorLike, value: TensorLike) -> Tensor:
    """The tensor with one value in the slices at indices along an axis."""
def index_put(x: Tensor, indices: Sequence[Any], values: TensorLike, accumulate: _bool = False) -> Tensor:
    """The tensor with the elements at indices, one tensor for each axis, replaced, or with values added to them."""
@overload
def index_reduce(x: Tensor, axis: _int, index: TensorLike, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
    """The tensor with slices combined with those at indices along an axis: prod, mean, amax or amin. include_self: whether
    the slices that are there count, too."""
@overload
def index_reduce(x: Tensor, dim: _int, index: TensorLike, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
    """The tensor with slices combined with those at indices along an axis: prod, mean, amax or amin. include_self: whether
    the slices that are there count, too."""
@overload
def index_select(x: Tensor, axis: _int, index: Tensor | np.ndarray | Sequence[_int]) -> Tensor:
    """The slices along an axis at the given indices."""
@overload
def index_select(x: Tensor, dim: _int, index: Tensor | np.ndarray | Sequence[_int]) -> Tensor:
    """The slices along an axis at the given indices."""
def inner(x: Tensor, other: Tensor) -> Tensor:
    """The products of all vectors along the last axis of x with those of another."""
def interpolate(x: Tensor, size: Ints | None = None, scale: Any = None, mode: str = 'nearest', align_corners: _bool = False) -> Tensor:
    """Spatial axes resampled to a size or by a scale. mode: nearest, nearest-exact, linear, bilinear, trilinear, bicubic, or
    area, which is adaptive_avg_pool."""
def inverse(x: TensorLike) -> Any:
    """the inverse of each matrix in the last two axes; that of a singular one is not finite"""
def is_complex(x: Tensor) -> _bool:
    """Whether the dtype is complex."""
def is_floating_point(x: Tensor) -> _bool:
    """Whether the dtype is a float."""
def is_nonzero(x: Tensor) -> _bool:
    """Whether the only element is not 0."""
def is_signed(x: Tensor) -> _bool:
    """Whether the dtype has negative numbers."""
def isclose(x: Tensor, other: TensorLike, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
    """Whether elements differ by at most atol + rtol · |other|; infinities are close to themselves only."""
def isfinite(x: Tensor) -> Tensor:
    """whether it is a number and not infinite"""
def isin(elements: Tensor, test_elements: TensorLike, *, assume_unique: _bool = False, invert: _bool = False) -> Tensor:
    """Whether each element is one of the others; invert: whether it is none of them."""
def isinf(x: Tensor) -> Tensor:
    """whether it is infinite"""
def isnan(x: Tensor) -> Tensor:
    """whether it is NaN"""
def isneginf(x: Tensor) -> Tensor:
    """Whether each element is −∞."""
def isposinf(x: Tensor) -> Tensor:
    """Whether each element is ∞."""
def isreal(x: Tensor) -> Tensor:
    """Whether the imaginary part of each element is 0."""
def item(x: Tensor) -> Number:
    """The only element as a Python number."""
def kron(x: Tensor, other: Tensor) -> Tensor:
    """Kronecker's product: each element of x times the whole other tensor."""
@overload
def kthvalue(x: Tensor, k: _int, axis: _int = -1, keepdims: _bool = False) -> Ordered:
    """The k-th smallest element along an axis (1: the smallest), and its index."""
@overload
def kthvalue(x: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False) -> Ordered:
    """The k-th smallest element along an axis (1: the smallest), and its index."""
def layer_norm(x: Tensor, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05) -> Tensor:
    """(x − mean) / √(variance + eps) · weight + bias over the last axes, which have the given shape."""
def lcm(x: Tensor, other: TensorLike) -> Tensor:
    """the least common multiple"""
def ldexp(x: Tensor, exponent: TensorLike) -> Tensor:
    """x · 2ʸ."""
def le(x: Tensor, other: TensorLike) -> Tensor:
    """x <= other"""
def leaky_relu(x: TensorLike, *, alpha: Any = 0.01) -> Tensor:
    """x where it is positive, alpha · x elsewhere"""
def lerp(x: Tensor, end: TensorLike, weight: TensorLike) -> Tensor:
    """x + weight · (end − x)."""
def less(x: Tensor, other: TensorLike) -> Tensor:
    """x < other"""
def less_equal(x: Tensor, other: TensorLike) -> Tensor:
    """x <= other"""
def lgamma(x: Tensor) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
def linear(x: Tensor, weight: Tensor, bias: TensorLike | None = None) -> Tensor:
    """x @ weight.T + bias along the last axis; weight is (outputs, inputs)."""
def local_response_norm(x: Tensor, size: _int, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0) -> Tensor:
    """x / (k + alpha · the mean of x² over `size` neighbouring channels) ^ beta; outside there are zeros."""
def log(x: Tensor) -> Tensor:
    """the natural logarithm"""
def log10(x: Tensor) -> Tensor:
    """the logarithm to base 10"""
def log1p(x: Tensor) -> Tensor:
    """log(1 + x), exact for small x"""
def log2(x: Tensor) -> Tensor:
    """the logarithm to base 2"""
@overload
def log_softmax(x: Tensor, axis: _int = -1, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
@overload
def log_softmax(x: Tensor, dim: _int = -1, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
def logaddexp(x: Tensor, other: TensorLike) -> Tensor:
    """log(e^x + e^other), without overflow on the way"""
def logaddexp2(x: Tensor, other: TensorLike) -> Tensor:
    """log₂(2ˣ + 2ʸ)."""
@overload
def logcumsumexp(x: Tensor, axis: _int) -> Tensor:
    """The logarithm of the sum of the exponentials of all elements up to each one along an axis."""
@overload
def logcumsumexp(x: Tensor, dim: _int) -> Tensor:
    """The logarithm of the sum of the exponentials of all elements up to each one along an axis."""
def logdet(x: Tensor) -> Tensor:
    """The logarithm of the determinant of every matrix."""
def logical_and(x: Tensor, other: TensorLike) -> Tensor:
    """whether both are true"""
def logical_not(x: Tensor) -> Tensor:
    """whether it is false"""
def logical_or(x: Tensor, other: TensorLike) -> Tensor:
    """whether either is true"""
def logical_xor(x: Tensor, other: TensorLike) -> Tensor:
    """whether just one is true"""
def logit(x: Tensor, eps: _float | None = None) -> Tensor:
    """log(x / (1 − x)), the inverse of sigmoid; eps: x is clipped to eps … 1 − eps before."""
def logsigmoid(x: Tensor) -> Tensor:
    """The logarithm of sigmoid."""
@overload
def logsumexp(x: Tensor, axis: Axis = None, keepdims: _bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over axes."""
@overload
def logsumexp(x: Tensor, dim: Axis = None, keepdim: _bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over axes."""
def lstm(x: TensorLike, w: TensorLike, r: TensorLike, *rest: TensorLike, activations: Any, given: Any = ..., direction: Any = 'forward', clip: Any = 0.0, input_forget: Any = False, quantised: Any = False) -> Any:
    """a recurrent layer with a cell: gates input, output, forget, cell"""
def lt(x: Tensor, other: TensorLike) -> Tensor:
    """x < other"""
def masked_fill(x: Tensor, mask: TensorLike, value: TensorLike) -> Tensor:
    """The tensor with a value where a mask holds."""
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The tensor with elements where a mask holds replaced by those of another, in order."""
def masked_select(x: Tensor, mask: Tensor | np.ndarray) -> Tensor:
    """The elements where a mask holds, as a vector."""
def matmul(x: Tensor, other: TensorLike) -> Tensor:
    """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
def matrix_exp(x: Tensor) -> Tensor:
    """The exponential of every square matrix."""
def matrix_power(x: Tensor, n: _int) -> Tensor:
    """Every matrix of a stack times itself, n factors; of the inverse, if n is negative."""
@overload
def max(x: Tensor, axis: _int | Tensor | np.ndarray | None = None, keepdims: _bool = False) -> Any:
    """The largest element; along an axis, the largest elements and their indices (`amax` gives the elements alone); beside
    another tensor, the larger one of each pair."""
@overload
def max(x: Tensor, dim: _int | Tensor | np.ndarray | None = None, keepdim: _bool = False) -> Any:
    """The largest element; along an axis, the largest elements and their indices (`amax` gives the elements alone); beside
    another tensor, the larger one of each pair."""
def max_pool(x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
    """The largest element of each window; the default stride is the window's size. return_indices: also its place among the
    elements of its channel."""
def max_pool1d(x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
    """The largest element of each window; the default stride is the window's size. return_indices: also its place among the
    elements of its channel."""
def max_pool2d(x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
    """The largest element of each window; the default stride is the window's size. return_indices: also its place among the
    elements of its channel."""
def max_pool3d(x: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
    """The largest element of each window; the default stride is the window's size. return_indices: also its place among the
    elements of its channel."""
def max_roi_pool(x: TensorLike, rois: TensorLike, batches: TensorLike, *, size: Any, scale: Any = 1.0) -> Any:
    """the largest elements of the parts into which regions of pictures are divided"""
def maximum(x: Tensor, other: TensorLike) -> Tensor:
    """the greater of two; NaN where either is"""
@overload
def mean(x: Tensor, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
    """The mean over axes; integers become float32 first."""
@overload
def mean(x: Tensor, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
    """The mean over axes; integers become float32 first."""
@overload
def median(x: Tensor, axis: _int | None = None, keepdims: _bool = False) -> Any:
    """The middle element, the lower one of two; along an axis, the middle elements and their indices."""
@overload
def median(x: Tensor, dim: _int | None = None, keepdim: _bool = False) -> Any:
    """The middle element, the lower one of two; along an axis, the middle elements and their indices."""
@overload
def mel_weight_matrix(x: TensorLike, length: TensorLike, rate: TensorLike, low: TensorLike, high: TensorLike) -> Any:
    """weights that make bins on the mel scale of the frequencies of a transform"""
@overload
def mel_weight_matrix(x: TensorLike, length: TensorLike, rate: TensorLike, min: TensorLike, max: TensorLike) -> Any:
    """weights that make bins on the mel scale of the frequencies of a transform"""
@overload
def min(x: Tensor, axis: _int | Tensor | np.ndarray | None = None, keepdims: _bool = False) -> Any:
    """The least element; along an axis, or beside another tensor, as `max`."""
@overload
def min(x: Tensor, dim: _int | Tensor | np.ndarray | None = None, keepdim: _bool = False) -> Any:
    """The least element; along an axis, or beside another tensor, as `max`."""
def minimum(x: Tensor, other: TensorLike) -> Tensor:
    """the lesser of two; NaN where either is"""
def mish(x: TensorLike) -> Tensor:
    """x · tanh(softplus(x))"""
def mm(x: Tensor, other: TensorLike) -> Tensor:
    """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
@overload
def mode(x: Tensor, axis: _int = -1, keepdims: _bool = False) -> Ordered:
    """The most frequent element along an axis, the least of several, and its last index."""
@overload
def mode(x: Tensor, dim: _int = -1, keepdim: _bool = False) -> Ordered:
    """The most frequent element along an axis, the least of several, and its last index."""
def moveaxis(x: Tensor, source: Axis, destination: Axis) -> Tensor:
    """Axes moved to other positions; the others keep their order."""
def movedim(x: Tensor, source: Axis, destination: Axis) -> Tensor:
    """Axes moved to other positions; the others keep their order."""
def msort(x: Tensor) -> Tensor:
    """The elements in order along the first axis."""
def mul(x: Tensor, other: TensorLike) -> Tensor:
    """x · other"""
def multiply(x: Tensor, other: TensorLike) -> Tensor:
    """x · other"""
def mv(x: Tensor, other: TensorLike) -> Tensor:
    """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
def mvlgamma(x: Tensor, p: _int) -> Tensor:
    """The logarithm of the gamma function of p dimensions."""
def named(x: Tensor, *names: str) -> NamedTensor:
    """The tensor with a name for each axis, by which ops check and match them: `x.named("batch", "channels")`."""
def nan_to_num(x: Tensor, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """Numbers in place of NaN and infinities: by default 0, and the largest and the least of the dtype."""
@overload
def nanmean(x: Tensor, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
    """The mean over axes of the elements that are not NaN."""
@overload
def nanmean(x: Tensor, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
    """The mean over axes of the elements that are not NaN."""
@overload
def nanmedian(x: Tensor, axis: _int | None = None, keepdims: _bool = False) -> Any:
    """`median` of the elements that are not NaN; NaN where all are."""
@overload
def nanmedian(x: Tensor, dim: _int | None = None, keepdim: _bool = False) -> Any:
    """`median` of the elements that are not NaN; NaN where all are."""
@overload
def nanquantile(x: Tensor, q: _float | Sequence[_float], axis: _int | None = None, keepdims: _bool = False) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where all are."""
@overload
def nanquantile(x: Tensor, q: _float | Sequence[_float], dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where all are."""
@overload
def nansum(x: Tensor, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
    """The sum over axes; NaN counts as 0."""
@overload
def nansum(x: Tensor, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
    """The sum over axes; NaN counts as 0."""
@overload
def narrow(x: Tensor, axis: _int, start: _int, length: _int) -> Tensor:
    """The elements from `start` to `start + length` along an axis. A negative number as start counts from the end."""
@overload
def narrow(x: Tensor, dim: _int, start: _int, length: _int) -> Tensor:
    """The elements from `start` to `start + length` along an axis. A negative number as start counts from the end."""
@overload
def narrow_copy(x: Tensor, axis: _int, start: _int, length: _int) -> Tensor:
    """`narrow`: a tensor does not change, so views and copies are the same."""
@overload
def narrow_copy(x: Tensor, dim: _int, start: _int, length: _int) -> Tensor:
    """`narrow`: a tensor does not change, so views and copies are the same."""
def ndimension(x: Tensor) -> _int:
    """The number of axes."""
def ne(x: Tensor, other: TensorLike) -> Tensor:
    """Whether elements differ."""
def neg(x: Tensor) -> Tensor:
    """−x"""
def negative(x: Tensor) -> Tensor:
    """−x"""
def nelement(x: Tensor) -> _int:
    """The number of elements."""
def new_empty(x: Tensor, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros, with x's dtype and device unless others are given: new_zeros(2, 3) or new_zeros((2, 3))."""
@overload
def new_full(x: Tensor, shape: Sequence[_int], fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with a value, with x's dtype and device unless others are given."""
@overload
def new_full(x: Tensor, size: Sequence[_int], fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with a value, with x's dtype and device unless others are given."""
def new_ones(x: Tensor, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones, with x's dtype and device unless others are given: new_ones(2, 3) or new_ones((2, 3))."""
def new_tensor(x: Tensor, data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of data, with x's dtype and device unless others are given."""
def new_zeros(x: Tensor, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros, with x's dtype and device unless others are given: new_zeros(2, 3) or new_zeros((2, 3))."""
def nextafter(x: Tensor, other: TensorLike) -> Tensor:
    """the next number after x in the direction of other"""
def nll_loss(x: TensorLike, target: TensorLike, weight: TensorLike | None = None, *, reduction: Any = 'mean', ignore_index: Any = -100) -> Any:
    """minus the log-probability of each place's class, times the weight of the class"""
def non_max_suppression(x: TensorLike, scores: TensorLike, limit: TensorLike, overlap: TensorLike, least: TensorLike, *, center: Any = False) -> Any:
    """the best boxes of each class, without those that overlap a better box too much"""
def nonzero(x: Tensor, *, as_tuple: _bool = False) -> Any:
    """The coordinates of all elements that are not zero, one row each. as_tuple: one vector for each axis."""
@overload
def norm(x: Tensor, p: _float | str = 2, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
    """The p-norm over axes (all, if none is given). p: a number, ±inf, 0 (how many are not zero), "fro" (2), or "nuc", of
    matrices (two axes): the sum of the singular values. dtype: of the elements before."""
@overload
def norm(x: Tensor, p: _float | str = 2, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
    """The p-norm over axes (all, if none is given). p: a number, ±inf, 0 (how many are not zero), "fro" (2), or "nuc", of
    matrices (two axes): the sum of the singular values. dtype: of the elements before."""
@overload
def normalize(x: Tensor, p: _float = 2.0, axis: Any = 1, eps: _float = 1e-12) -> Tensor:
    """x, divided by its p-norm along an axis, or by eps where that is less."""
@overload
def normalize(x: Tensor, p: _float = 2.0, dim: Any = 1, eps: _float = 1e-12) -> Tensor:
    """x, divided by its p-norm along an axis, or by eps where that is less."""
def not_equal(x: Tensor, other: TensorLike) -> Tensor:
    """Whether elements differ."""
def numel(x: Tensor) -> _int:
    """The number of elements."""
def numpy(x: Tensor) -> np.ndarray:
    """The elements as a NumPy array that the caller owns; waits for the device.

    Elements of a type that NumPy lacks, such as bfloat16, are those of the package ml_dtypes; where it is not installed
    their bits, in a field of the type's name."""
async def numpy_async(x: Tensor) -> np.ndarray:
    """`numpy` for a page, where reading from the device may have to be awaited."""
def one_hot(x: Tensor, num_classes: _int = -1) -> Tensor:
    """1 at the index that each element is along a new last axis, 0 elsewhere. num_classes: the length of the axis; by
    default the largest element and one."""
def outer(x: Tensor, other: TensorLike) -> Tensor:
    """The products of each element of a vector with each of another."""
def pad(x: Tensor, width: _int | Sequence[Any], mode: str = 'constant', value: Number = 0) -> Tensor:
    """The tensor with elements added before and after its axes. width: one number for all axes, (before, after) for each
    axis, or PyTorch's flat sequence of numbers, which begins with the last axis; negative ones remove elements. mode:
    "constant" (of `value`), "reflect", "edge" (or "replicate") or "wrap" (or "circular")."""
@overload
def pairwise_distance(x: Tensor, other: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdims: _bool = False) -> Tensor:
    """The p-norm of x − other + eps along the last axis."""
@overload
def pairwise_distance(x: Tensor, other: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
    """The p-norm of x − other + eps along the last axis."""
def pdist(x: Tensor, p: _float = 2.0) -> Tensor:
    """The distances of all pairs of rows of a matrix, as a vector."""
def permute(x: Tensor, *axis: Any) -> Tensor:
    """The axes in another order."""
def pinverse(x: Tensor, rcond: _float = 1e-15) -> Tensor:
    """The pseudoinverse (Moore's and Penrose's) of every matrix; singular values up to rcond · the largest count as 0."""
def pixel_shuffle(x: Tensor, upscale_factor: _int) -> Tensor:
    """(…, c · r², h, w) to (…, c, h · r, w · r): channels become the pixels between."""
def pixel_unshuffle(x: Tensor, downscale_factor: _int) -> Tensor:
    """(…, c, h · r, w · r) to (…, c · r², h, w): the inverse of pixel_shuffle."""
def polygamma(x: Tensor, n: Any) -> Tensor:
    """The n-th derivative of digamma: x.polygamma(n), or sg.polygamma(n, x)."""
def positive(x: Tensor) -> Tensor:
    """The tensor itself."""
def pow(x: Tensor, exponent: TensorLike) -> Tensor:
    """Elements to a power. Whole exponents and halves up to 16 are products and roots; integers to a negative power
    become float32."""
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """The elements above 0; the others times a weight, of which there is one for all or one for each channel (axis 1)."""
@overload
def prod(x: Tensor, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
    """The product over axes, as `sum`."""
@overload
def prod(x: Tensor, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
    """The product over axes, as `sum`."""
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
    """The tensor with the elements at indices into the flat tensor replaced, or with those of source added to them."""
def qr(x: Tensor, some: _bool = True) -> tuple[Tensor, Tensor]:
    """Q, of orthogonal columns, and R, triangular, whose product is x; some: Q has no more columns than x."""
@overload
def quantile(x: Tensor, q: _float | Sequence[_float], axis: _int | None = None, keepdims: _bool = False, interpolation: str = 'linear') -> Tensor:
    """The numbers below which the shares q of the elements lie, along an axis or of all. Several q are a new first axis.
    interpolation: what to take between two elements. NaN beside NaN."""
@overload
def quantile(x: Tensor, q: _float | Sequence[_float], dim: _int | None = None, keepdim: _bool = False, interpolation: str = 'linear') -> Tensor:
    """The numbers below which the shares q of the elements lie, along an axis or of all. Several q are a new first axis.
    interpolation: what to take between two elements. NaN beside NaN."""
def rad2deg(x: Tensor) -> Tensor:
    """Radians as degrees."""
def ravel(x: Tensor) -> Tensor:
    """The elements as a vector."""
def real(x: Tensor) -> Tensor:
    """the real part"""
def reciprocal(x: Tensor) -> Tensor:
    """1 / x"""
def regex_full_match(x: TensorLike, *, pattern: Any) -> Any:
    """whether each string matches a regular expression"""
def relu(x: TensorLike) -> Tensor:
    """x where it is positive, 0 elsewhere"""
def relu6(x: Tensor) -> Tensor:
    """max(x, 0), at most 6."""
def remainder(x: Tensor, other: TensorLike) -> Tensor:
    """the remainder of x / other, with the sign of other, as Python's %"""
@overload
def renorm(x: Tensor, p: _float, axis: _int, maxnorm: _float) -> Tensor:
    """The tensor with each slice along an axis whose p-norm is above maxnorm scaled down to it."""
@overload
def renorm(x: Tensor, p: _float, dim: _int, maxnorm: _float) -> Tensor:
    """The tensor with each slice along an axis whose p-norm is above maxnorm scaled down to it."""
def repeat(x: Tensor, *repeats: Any) -> Tensor:
    """The tensor repeated as a whole along each axis; more numbers than axes add leading axes."""
@overload
def repeat_interleave(x: Tensor, repeats: _int | Sequence[_int] | Tensor | None = None, axis: _int | None = None) -> Tensor:
    """Every element, or every slice along an axis, repeated by itself. repeats: a number, or one for each. Without it, the
    place of each element of a vector, repeated that many times."""
@overload
def repeat_interleave(x: Tensor, repeats: _int | Sequence[_int] | Tensor | None = None, dim: _int | None = None) -> Tensor:
    """Every element, or every slice along an axis, repeated by itself. repeats: a number, or one for each. Without it, the
    place of each element of a vector, repeated that many times."""
def require_grad(x: Tensor) -> Tensor:
    """The same elements as a tensor that asks for its gradient; on a device `sg.Autodiff(…)` only."""
def reshape(x: Tensor, *shape: Any) -> Tensor:
    """The same elements in row-major order under another shape, in which one dimension may be -1."""
def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements under the shape of another tensor."""
def resize(x: TensorLike, *, sizes: Any, scales: Any = ..., mode: Any = 'nearest', coordinates: Any = 'half_pixel', nearest: Any = 'round_prefer_floor', cubic: Any = -0.75, exclude_outside: Any = False, extrapolation: Any = 0.0, roi: Any = ..., antialias: Any = False) -> Any:
    """resampled along every axis whose size changes; attributes as ONNX's Resize"""
def rms_norm(x: Tensor, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None, eps: _float | None = None) -> Tensor:
    """x / √(mean of x² + eps) · weight over the last axes, which have the given shape; eps: by default the dtype's."""
def rnn(x: TensorLike, w: TensorLike, r: TensorLike, *rest: TensorLike, activations: Any, given: Any = ..., direction: Any = 'forward', clip: Any = 0.0) -> Any:
    """a recurrent layer without gates"""
def roi_align(x: TensorLike, rois: TensorLike, batches: TensorLike, *, size: Any, samples: Any, adaptive: Any = False, mode: Any = 'avg', scale: Any = 1.0, half_pixel: Any = True) -> Any:
    """regions of pictures, each resampled to the same size; batches: the picture of each region"""
@overload
def roll(x: Tensor, shifts: _int | Sequence[_int], axis: Axis = None) -> Tensor:
    """Elements moved along axes; those that leave at one end come back at the other. Without axes, in the flat tensor."""
@overload
def roll(x: Tensor, shifts: _int | Sequence[_int], dim: Axis = None) -> Tensor:
    """Elements moved along axes; those that leave at one end come back at the other. Without axes, in the flat tensor."""
@overload
def rot90(x: Tensor, k: _int = 1, axis: Sequence[_int] = ...) -> Tensor:
    """The plane of two axes turned k times by 90 degrees, from the first towards the second."""
@overload
def rot90(x: Tensor, k: _int = 1, dim: Sequence[_int] = ...) -> Tensor:
    """The plane of two axes turned k times by 90 degrees, from the first towards the second."""
def rotary_embedding(x: TensorLike, cos: TensorLike, sin: TensorLike, *, interleaved: Any = False) -> Any:
    """pairs of elements of the last axis turned by angles with these cosines and sines: an element of the first half and one of the second, or interleaved: neighbours"""
def round(x: Tensor, *, decimals: _int = 0) -> Tensor:
    """The nearest whole number, the even one of two; decimals: the nearest with as many digits behind the point."""
def rsqrt(x: Tensor) -> Tensor:
    """1 / √x."""
def rsub(x: Tensor, other: TensorLike, alpha: Number = 1) -> Tensor:
    """other − alpha · x."""
def scaled_dot_product_attention(x: Tensor, key: Tensor, value: Tensor, attn_mask: TensorLike | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, scale: _float | None = None, enable_gqa: _bool = False) -> Tensor:
    """softmax(scale · x · keyᵀ + mask) · value for each head, of (…, heads, length, size); a mask of bools says which keys
    are seen. scale: 1 / √size, if none is given."""
@overload
def scatter(x: Tensor, axis: _int, index: TensorLike, src: TensorLike | None = None, reduce: str | None = None, *, value: Number | None = None) -> Tensor:
    """The tensor with the elements of `src` (or one value) at indices along an axis; where an index has an element,
    its other coordinates are those of the index. reduce: "add" or "multiply", to combine them with what is there."""
@overload
def scatter(x: Tensor, dim: _int, index: TensorLike, src: TensorLike | None = None, reduce: str | None = None, *, value: Number | None = None) -> Tensor:
    """The tensor with the elements of `src` (or one value) at indices along an axis; where an index has an element,
    its other coordinates are those of the index. reduce: "add" or "multiply", to combine them with what is there."""
@overload
def scatter_add(x: Tensor, axis: _int, index: TensorLike, src: TensorLike) -> Tensor:
    """The tensor with the elements of `src` added to those at indices along an axis."""
@overload
def scatter_add(x: Tensor, dim: _int, index: TensorLike, src: TensorLike) -> Tensor:
    """The tensor with the elements of `src` added to those at indices along an axis."""
@overload
def scatter_reduce(x: Tensor, axis: _int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: _bool = True) -> Tensor:
    """The tensor with the elements of `src` combined with those at indices along an axis: sum, prod, amax, amin or mean.
    include_self: whether the elements that are there count, too."""
@overload
def scatter_reduce(x: Tensor, dim: _int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: _bool = True) -> Tensor:
    """The tensor with the elements of `src` combined with those at indices along an axis: sum, prod, amax, amin or mean.
    include_self: whether the elements that are there count, too."""
def searchsorted(x: Tensor, values: Any, *, out_int32: _bool = False, right: _bool = False, side: str | None = None) -> Tensor:
    """The indices in a vector in order at which values would be inserted to keep the order: before elements that are equal,
    or with right=True (or side="right") behind them. Of vectors along the last axis, those of the values at the same place."""
@overload
def select(x: Tensor, axis: _int, index: _int) -> Tensor:
    """The slice at an index along an axis, without the axis."""
@overload
def select(x: Tensor, dim: _int, index: _int) -> Tensor:
    """The slice at an index along an axis, without the axis."""
@overload
def select_scatter(x: Tensor, src: TensorLike, axis: _int, index: _int) -> Tensor:
    """The tensor with the slice at an index along an axis replaced."""
@overload
def select_scatter(x: Tensor, src: TensorLike, dim: _int, index: _int) -> Tensor:
    """The tensor with the slice at an index along an axis replaced."""
def selu(x: Tensor) -> Tensor:
    """A scaled elu whose results keep mean 0 and variance 1."""
def sgn(x: Tensor) -> Tensor:
    """−1, 0 or 1: the sign of x"""
def shrink(x: TensorLike, *, lambd: Any = 0.5, bias: Any = 0.0) -> Tensor:
    """x − bias above lambd, x + bias below −lambd, 0 between"""
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e^(−x))"""
def sign(x: Tensor) -> Tensor:
    """−1, 0 or 1: the sign of x"""
def signbit(x: Tensor) -> Tensor:
    """whether the sign is negative, as −0.0's is"""
def silu(x: TensorLike) -> Tensor:
    """x · sigmoid(x), also known as swish"""
def sin(x: Tensor) -> Tensor:
    """the sine of an angle in radians"""
def sinc(x: Tensor) -> Tensor:
    """sin(πx) / (πx), and 1 at 0."""
def sinh(x: Tensor) -> Tensor:
    """the hyperbolic sine"""
@overload
def slice_scatter(x: Tensor, src: TensorLike, axis: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """The tensor with a slice along an axis replaced."""
@overload
def slice_scatter(x: Tensor, src: TensorLike, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """The tensor with a slice along an axis replaced."""
def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of the determinant of every matrix, and the logarithm of its absolute value."""
@overload
def softmax(x: Tensor, axis: _int = -1, dtype: Any = None) -> Tensor:
    """exp(x), divided by its sum along an axis. dtype: of the elements before."""
@overload
def softmax(x: Tensor, dim: _int = -1, dtype: Any = None) -> Tensor:
    """exp(x), divided by its sum along an axis. dtype: of the elements before."""
@overload
def softmin(x: Tensor, axis: _int = -1) -> Tensor:
    """The softmax of −x."""
@overload
def softmin(x: Tensor, dim: _int = -1) -> Tensor:
    """The softmax of −x."""
def softplus(x: Tensor, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
    """log(1 + exp(beta · x)) / beta; x where beta · x is above the threshold."""
def softshrink(x: Tensor, lambd: _float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 in −lambd … lambd."""
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|)."""
@overload
def sort(x: Tensor, axis: _int = -1, descending: _bool = False, stable: _bool = True) -> Ordered:
    """The elements in order along an axis, and their indices. Equal elements always keep their order; NaN is the largest."""
@overload
def sort(x: Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> Ordered:
    """The elements in order along an axis, and their indices. Equal elements always keep their order; NaN is the largest."""
@overload
def split(x: Tensor, sizes: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
    """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
@overload
def split(x: Tensor, sizes: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
@overload
def split_with_sizes(x: Tensor, sizes: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
    """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
@overload
def split_with_sizes(x: Tensor, sizes: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
def sqrt(x: Tensor) -> Tensor:
    """the square root"""
def square(x: Tensor) -> Tensor:
    """x · x."""
@overload
def squeeze(x: Tensor, axis: Axis = None) -> Tensor:
    """The tensor without axes of length 1: without those given, or without all of them. Longer ones stay."""
@overload
def squeeze(x: Tensor, dim: Axis = None) -> Tensor:
    """The tensor without axes of length 1: without those given, or without all of them. Longer ones stay."""
@overload
def std(x: Tensor, axis: Axis = None, correction: _float = 1, keepdims: _bool = False) -> Tensor:
    """The square root of `var`."""
@overload
def std(x: Tensor, dim: Axis = None, correction: _float = 1, keepdim: _bool = False) -> Tensor:
    """The square root of `var`."""
def stft(x: TensorLike, window: TensorLike | None = None, *, length: Any, step: Any, onesided: Any = True) -> Any:
    """the transforms of overlapping parts of signals, each part weighted by a window"""
def stop_gradient(x: Tensor) -> Tensor:
    """`detach`, under JAX's name."""
def string_concat(x: TensorLike, y: TensorLike) -> Any:
    """each string followed by another"""
def string_normalize(x: TensorLike, *, case: Any, stopwords: Any, sensitive: Any) -> Any:
    """strings in upper or lower case, without stopwords"""
def string_split(x: TensorLike, *, delimiter: Any = '', limit: Any = None) -> Any:
    """the parts of each string, and their number"""
def string_tokens(x: TensorLike, *, pattern: Any, between: Any, least: Any, marked: Any, fill: Any) -> Any:
    """the parts of each string that a regular expression matches, or those between"""
def sub(x: Tensor, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """x − alpha · other."""
def subtract(x: Tensor, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """x − alpha · other."""
@overload
def sum(x: Tensor, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
    """The sum over axes (all, if none is given); integers are summed as int64. dtype: of the elements before."""
@overload
def sum(x: Tensor, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
    """The sum over axes (all, if none is given); integers are summed as int64. dtype: of the elements before."""
def sum_to_size(x: Tensor, *size: Any) -> Tensor:
    """The sums over axes that leave a shape which broadcasts to x's."""
def svd(x: Tensor, some: _bool = True, compute_uv: _bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V, of x = U · diag(S) · V.H; without compute_uv, zeros in place of U and V."""
@overload
def swapaxes(x: Tensor, axis0: _int, axis1: _int) -> Tensor:
    """The tensor with two axes exchanged."""
@overload
def swapaxes(x: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """The tensor with two axes exchanged."""
@overload
def swapdims(x: Tensor, axis0: _int, axis1: _int) -> Tensor:
    """The tensor with two axes exchanged."""
@overload
def swapdims(x: Tensor, dim0: _int, dim1: _int) -> Tensor:
    """The tensor with two axes exchanged."""
def swiglu(self: TensorLike, x: TensorLike, *, alpha: Any = 1.0) -> Any:
    """x · sigmoid(alpha · x), times a second tensor"""
def t(x: Tensor) -> Tensor:
    """A matrix transposed; a vector as it is."""
@overload
def take(x: Tensor, index: Tensor | np.ndarray | Sequence[_int], axis: _int | None = None) -> Tensor:
    """The slices along an axis at the given indices; without an axis, the elements of the flat tensor."""
@overload
def take(x: Tensor, index: Tensor | np.ndarray | Sequence[_int], dim: _int | None = None) -> Tensor:
    """The slices along an axis at the given indices; without an axis, the elements of the flat tensor."""
@overload
def take_along_dim(x: Tensor, index: TensorLike, axis: _int | None = None) -> Tensor:
    """Like gather; the other axes broadcast. Without an axis, the elements of the flat tensor at flat indices."""
@overload
def take_along_dim(x: Tensor, index: TensorLike, dim: _int | None = None) -> Tensor:
    """Like gather; the other axes broadcast. Without an axis, the elements of the flat tensor at flat indices."""
def tan(x: Tensor) -> Tensor:
    """the tangent of an angle in radians"""
def tanh(x: Tensor) -> Tensor:
    """the hyperbolic tangent"""
def tanhshrink(x: Tensor) -> Tensor:
    """x − tanh(x)."""
@overload
def tensor_split(x: Tensor, sections: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
    """So many pieces along an axis, of sizes that differ by one at most; or pieces that begin at given places."""
@overload
def tensor_split(x: Tensor, sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """So many pieces along an axis, of sizes that differ by one at most; or pieces that begin at given places."""
def threshold(x: Tensor, threshold: Number, value: Number) -> Tensor:
    """The elements above a threshold; a value in place of the others."""
def thresholded_relu(x: TensorLike, *, alpha: Any = 1.0) -> Tensor:
    """x where it is greater than alpha, 0 elsewhere"""
def tile(x: Tensor, *axis: Any) -> Tensor:
    """The tensor repeated as a whole along its last axes."""
def to(x: Tensor, *targets: Any, device: str | Device | None = None, dtype: Any = None) -> Tensor:
    """The tensor on another device, or in another dtype, or both: to("wasm"), to(sg.float16), to("wasm", sg.float16), or
    those of another tensor, to(x)."""
async def to_async(x: Tensor, *targets: Any, device: str | Device | None = None, dtype: Any = None) -> Tensor:
    """`to` for a page, where reading from the device may have to be awaited."""
def to_device(x: Tensor, device: str | Device, *, stream: Any = None) -> Tensor:
    """`to`, under the name of the array API standard."""
def tolist(x: Tensor) -> Any:
    """The elements as Python numbers, in nested lists; a number, if there are no axes."""
@overload
def top_k(x: Tensor, k: Dim, axis: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ordered:
    """The k largest (or smallest) elements along an axis, always in order, and their indices."""
@overload
def top_k(x: Tensor, k: Dim, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ordered:
    """The k largest (or smallest) elements along an axis, always in order, and their indices."""
@overload
def topk(x: Tensor, k: Dim, axis: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ordered:
    """The k largest (or smallest) elements along an axis, always in order, and their indices."""
@overload
def topk(x: Tensor, k: Dim, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ordered:
    """The k largest (or smallest) elements along an axis, always in order, and their indices."""
def trace(x: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
@overload
def transpose(x: Tensor, axis0: Any = None, axis1: _int | None = None, *more: _int) -> Tensor:
    """Two axes exchanged, as in transpose(1, 2); the axes in the order of a tuple; reversed if none is given."""
@overload
def transpose(x: Tensor, dim0: Any = None, dim1: _int | None = None, *more: _int) -> Tensor:
    """Two axes exchanged, as in transpose(1, 2); the axes in the order of a tuple; reversed if none is given."""
def tril(x: Tensor, diagonal: _int = 0) -> Tensor:
    """The elements on and below a diagonal of each matrix; zeros elsewhere."""
def triu(x: Tensor, diagonal: _int = 0) -> Tensor:
    """The elements on and above a diagonal of each matrix; zeros elsewhere."""
def true_divide(x: Tensor, other: TensorLike) -> Tensor:
    """x / other"""
def trunc(x: Tensor) -> Tensor:
    """the whole number without the fraction"""
def type(x: Tensor, dtype: Any) -> Tensor:
    """The elements as another dtype."""
def type_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements in the dtype of another tensor."""
@overload
def unbind(x: Tensor, axis: _int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without it."""
@overload
def unbind(x: Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without it."""
@overload
def unflatten(x: Tensor, axis: _int, sizes: Sequence[Any]) -> Tensor:
    """An axis divided into several; one of the sizes may be -1."""
@overload
def unflatten(x: Tensor, dim: _int, sizes: Sequence[Any]) -> Tensor:
    """An axis divided into several; one of the sizes may be -1."""
@overload
def unfold(x: Tensor, axis: _int, size: _int, step: _int = 1) -> Tensor:
    """All windows of `size` elements along an axis, `step` apart; their elements are a new last axis."""
@overload
def unfold(x: Tensor, dim: _int, size: _int, step: _int = 1) -> Tensor:
    """All windows of `size` elements along an axis, `step` apart; their elements are a new last axis."""
@overload
def unique(x: Tensor, ordered: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, axis: _int | None = None, *, return_index: _bool = False) -> Any:
    """The distinct elements (or slices along an axis), in order or as they come first. With more results, a tuple: the
    first index of each, the index of every element's value among them, how often each occurs."""
@overload
def unique(x: Tensor, ordered: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None, *, return_index: _bool = False) -> Any:
    """The distinct elements (or slices along an axis), in order or as they come first. With more results, a tuple: the
    first index of each, the index of every element's value among them, how often each occurs."""
@overload
def unique_consecutive(x: Tensor, return_inverse: _bool = False, return_counts: _bool = False, axis: _int | None = None) -> Any:
    """The elements, or slices along an axis, that differ from the one before; the place of each in the result, and how many
    are equal."""
@overload
def unique_consecutive(x: Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
    """The elements, or slices along an axis, that differ from the one before; the place of each in the result, and how many
    are equal."""
@overload
def unsqueeze(x: Tensor, axis: _int) -> Tensor:
    """The tensor with a new axis of length 1 at this position of the result."""
@overload
def unsqueeze(x: Tensor, dim: _int) -> Tensor:
    """The tensor with a new axis of length 1 at this position of the result."""
def update_slice(x: Tensor, part: TensorLike, *starts: Any) -> Tensor:
    """The tensor with a part replaced, which begins at a start along each axis: `cache.update_slice(row, at, 0)`.

    The starts are integers, or tensors of one integer. One is moved so that the part lies within the tensor."""
def vander(x: Tensor, N: _int | None = None, increasing: _bool = False) -> Tensor:
    """The powers of each element of a vector, N of them (as many as elements, if none is given), one row for each."""
@overload
def var(x: Tensor, axis: Axis = None, correction: _float = 1, keepdims: _bool = False) -> Tensor:
    """The mean square of the distances from the mean over axes; the sum is divided by the count less `correction`."""
@overload
def var(x: Tensor, dim: Axis = None, correction: _float = 1, keepdim: _bool = False) -> Tensor:
    """The mean square of the distances from the mean over axes; the sum is divided by the count less `correction`."""
def vdot(x: Tensor, other: Tensor) -> Tensor:
    """The product of two vectors; of a complex first one, the conjugates."""
def view(x: Tensor, *shape: Any) -> Tensor:
    """`reshape`."""
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements under the shape of another tensor."""
def vsplit(x: Tensor, sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 0."""
def xlogy(x: Tensor, other: TensorLike) -> Tensor:
    """x · log(other), and 0 where x is 0 and the other is not NaN."""