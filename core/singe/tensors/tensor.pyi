"""What tensor.py offers, with all methods of Tensor. Written by tests/stubs.py: do not edit."""

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, Union, overload

import numpy as np

from ..dtypes import DType
from .gradients import Gradients
from .named.named_tensor import NamedTensor
from .methods.folds import Extremes
from .methods.sorting import Ordered
from .methods.selection import Places
from .nodes.shaping import Axis, Count
from .nodes.spatial import Ints, Padding, Sizes
from ..ir.scalar import Number
from ..runtime.device import Device, DeviceValue
from ..shapes import Dim

TensorLike: TypeAlias = Union["Tensor", np.ndarray, Number]

class Tensor:
    """An array on a device, with PyTorch's methods: `singe.tensor([1.0, 2.0]).exp().sum(dim=0)`.

    `singe.tensor` makes one; `x.numpy()` gives its elements. It does not change: each method gives a new Tensor. Operands are
    on one device (`x.to("wasm")` moves a Tensor). How dtypes combine, and where names differ from NumPy's: docs/tensors.md."""

    __array_ufunc__: None
    _device: Device
    _value: Any

    @property
    def H(self) -> Tensor:
        """A matrix transposed, and its elements conjugated."""
    @property
    def T(self) -> Tensor:
        """All axes in reverse order."""
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Any) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> np.ndarray: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The namespace of the Python array API standard: singe.array_api."""
    def __bool__(self) -> _bool: ...
    def __complex__(self) -> _complex: ...
    def __contains__(self, element: TensorLike) -> _bool:
        """Whether any element is equal."""
    def __copy__(self) -> Tensor: ...
    def __deepcopy__(self, memo: Any) -> Tensor:
        """Elements of its own, as a copied layer is to be trained apart from the first; itself while tracing, where none are known."""
    def __dir__(self) -> list[str]: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __divmod__(self, other: TensorLike) -> tuple[Tensor, Tensor]: ...
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: _bool | None = None) -> Any:
        """A DLPack capsule: over the elements on numpy, cuda and the devices of array libraries, which who takes it must not change;
        of other devices with a copy on the CPU."""
    def __dlpack_device__(self) -> tuple[_int, _int]:
        """DLPack's kind of the memory that `__dlpack__` exports, and the number of its device."""
    def __eq__(self, other: Any) -> Tensor: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __float__(self) -> _float: ...
    def __floordiv__(self, other: Any) -> Tensor: ...
    def __format__(self, how: str) -> str: ...
    def __ge__(self, other: Any) -> Tensor: ...
    def __getitem__(self, key: Any) -> Tensor:
        """Elements by integers, slices, None, ..., integer arrays and masks; see nodes/indexing.py."""
    def __gt__(self, other: Any) -> Tensor: ...
    def __index__(self) -> _int: ...
    def __init__(self, device: Device, value: DeviceValue | None = None) -> None: ...
    def __int__(self) -> _int: ...
    def __invert__(self) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __len__(self) -> _int: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __matmul__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __ne__(self, other: object) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __pos__(self) -> Tensor:
        """The tensor itself."""
    def __pow__(self, exponent: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __rdivmod__(self, other: TensorLike) -> tuple[Tensor, Tensor]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __round__(self, decimals: _int | None = None) -> Tensor: ...
    def __rpow__(self, base: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor: ...
    def abs(self) -> Tensor:
        """the absolute value"""
    def absolute(self) -> Tensor:
        """the absolute value"""
    def acos(self) -> Tensor:
        """the inverse cosine, in radians"""
    def acosh(self) -> Tensor:
        """the inverse hyperbolic cosine"""
    def adaptive_avg_pool(self, output_size: Sizes) -> Tensor:
        """Means over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis."""
    def adaptive_avg_pool1d(self, output_size: Sizes) -> Tensor:
        """Means over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis."""
    def adaptive_avg_pool2d(self, output_size: Sizes) -> Tensor:
        """Means over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis."""
    def adaptive_avg_pool3d(self, output_size: Sizes) -> Tensor:
        """Means over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis."""
    def adaptive_max_pool(self, output_size: Sizes, return_indices: _bool = False) -> Any:
        """Maxima over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis.
        return_indices: also the place of each among the elements of its channel."""
    def adaptive_max_pool1d(self, output_size: Sizes, return_indices: _bool = False) -> Any:
        """Maxima over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis.
        return_indices: also the place of each among the elements of its channel."""
    def adaptive_max_pool2d(self, output_size: Sizes, return_indices: _bool = False) -> Any:
        """Maxima over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis.
        return_indices: also the place of each among the elements of its channel."""
    def adaptive_max_pool3d(self, output_size: Sizes, return_indices: _bool = False) -> Any:
        """Maxima over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis.
        return_indices: also the place of each among the elements of its channel."""
    def add(self, other: TensorLike, *, alpha: Number = 1) -> Tensor:
        """x + alpha · other."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta · x + alpha · the sum of the products of two stacks of matrices."""
    def addcdiv(self, tensor1: TensorLike, tensor2: TensorLike, value: Number = 1) -> Tensor:
        """x + value · tensor1 / tensor2."""
    def addcmul(self, tensor1: TensorLike, tensor2: TensorLike, value: Number = 1) -> Tensor:
        """x + value · tensor1 · tensor2."""
    def addmm(self, mat1: TensorLike, mat2: TensorLike, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta · x + alpha · (mat1 @ mat2)."""
    def addmv(self, mat: TensorLike, vec: TensorLike, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta · x + alpha · (mat @ vec)."""
    def addr(self, vec1: TensorLike, vec2: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta · x + alpha · the products of each element of a vector with each of another."""
    def adjoint(self) -> Tensor:
        """`mH`, called."""
    def affine_grid(self, size: Sequence[Dim], align_corners: _bool | None = None) -> Tensor:
        """The grid for grid_sample that affine maps, (batch, axes, axes + 1), give for pictures of a size (batch, channels,
        …space)."""
    @overload
    def all(self, axis: Axis = None, keepdims: _bool = False) -> Tensor:
        """Whether no element over axes is zero."""
    @overload
    def all(self, dim: Axis = None, keepdim: _bool = False) -> Tensor:
        """Whether no element over axes is zero."""
    def allclose(self, other: TensorLike, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Whether all elements are close, as `isclose` says."""
    @overload
    def amax(self, axis: Axis = None, keepdims: _bool = False) -> Tensor:
        """The largest element over axes."""
    @overload
    def amax(self, dim: Axis = None, keepdim: _bool = False) -> Tensor:
        """The largest element over axes."""
    @overload
    def amin(self, axis: Axis = None, keepdims: _bool = False) -> Tensor:
        """The least element over axes."""
    @overload
    def amin(self, dim: Axis = None, keepdim: _bool = False) -> Tensor:
        """The least element over axes."""
    @overload
    def aminmax(self, axis: _int | None = None, keepdims: _bool = False) -> Extremes:
        """The least and the largest element, of all or along an axis."""
    @overload
    def aminmax(self, dim: _int | None = None, keepdim: _bool = False) -> Extremes:
        """The least and the largest element, of all or along an axis."""
    def angle(self) -> Tensor:
        """The angle of each number in the complex plane: π for negative ones, 0 for the others."""
    @overload
    def any(self, axis: Axis = None, keepdims: _bool = False) -> Tensor:
        """Whether an element over axes is not zero."""
    @overload
    def any(self, dim: Axis = None, keepdim: _bool = False) -> Tensor:
        """Whether an element over axes is not zero."""
    def arccos(self) -> Tensor:
        """the inverse cosine, in radians"""
    def arccosh(self) -> Tensor:
        """the inverse hyperbolic cosine"""
    def arcsin(self) -> Tensor:
        """the inverse sine, in radians"""
    def arcsinh(self) -> Tensor:
        """the inverse hyperbolic sine"""
    def arctan(self) -> Tensor:
        """the inverse tangent, in radians"""
    def arctan2(self, other: TensorLike) -> Tensor:
        """the angle of the point (other, x) in radians, −π … π"""
    def arctanh(self) -> Tensor:
        """the inverse hyperbolic tangent"""
    @overload
    def argmax(self, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The index of the largest element along an axis (the first, if several are equal), as int64;
        without an axis, the index in the flat tensor."""
    @overload
    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the largest element along an axis (the first, if several are equal), as int64;
        without an axis, the index in the flat tensor."""
    @overload
    def argmin(self, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The index of the least element, as `argmax` gives that of the largest."""
    @overload
    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the least element, as `argmax` gives that of the largest."""
    @overload
    def argsort(self, axis: _int = -1, descending: _bool = False, stable: _bool = True) -> Tensor:
        """The indices that put the elements in order along an axis."""
    @overload
    def argsort(self, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> Tensor:
        """The indices that put the elements in order along an axis."""
    def argwhere(self, *, as_tuple: _bool = False) -> Any:
        """The coordinates of all elements that are not zero, one row each. as_tuple: one vector for each axis."""
    def asin(self) -> Tensor:
        """the inverse sine, in radians"""
    def asinh(self) -> Tensor:
        """the inverse hyperbolic sine"""
    def astype(self, to: Any) -> Tensor:
        """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
    @property
    def at(self) -> Places:
        """Elements replaced by keys, as in `x.at[0, ::2].set(1)` or `x.at[index].add(y)`; x itself does not change."""
    def atan(self) -> Tensor:
        """the inverse tangent, in radians"""
    def atan2(self, other: TensorLike) -> Tensor:
        """the angle of the point (other, x) in radians, −π … π"""
    def atanh(self) -> Tensor:
        """the inverse hyperbolic tangent"""
    def attention(self, k: TensorLike, v: TensorLike, mask: TensorLike | None = None, *, scale: Any = 0.0, causal: Any = False, past: Any = 0, softcap: Any = 0.0, keys: Any = None) -> Any:
        """softmax(scale · q · kᵀ + mask) · v for each head (…, heads, length, size); scale 0: 1 / √size. causal: a query sees no later keys; past: how many keys precede the first query. softcap: scores are kept within ±softcap; keys: how many of the first keys are in use. Keys and values that are stored in another type, or in eight bits, are computed in that of q"""
    def avg_pool(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
        """The mean of each window."""
    def avg_pool1d(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
        """The mean of each window."""
    def avg_pool2d(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
        """The mean of each window."""
    def avg_pool3d(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
        """The mean of each window."""
    def backward(self, gradient: TensorLike | None = None, *, create_graph: _bool = False) -> Gradients:
        """The gradients of this number, for each tensor that asked for its gradient. No tensor changes, and it may be called
        again. create_graph: the gradients can be differentiated, too.

        Of a tensor of several numbers they are those of the sum, as in Burn; with gradient, a tensor of the same shape, of
        (x * gradient).sum(). PyTorch refuses several numbers without a gradient."""
    def baddbmm(self, mat1: TensorLike, mat2: TensorLike, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """beta · x + alpha · (mat1 @ mat2)."""
    def batch_norm(self, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, training: _bool = False, momentum: _float = 0.1, eps: _float = 1e-05) -> Tensor:
        """(x − mean) / √(variance + eps) · weight + bias for each channel (axis 1), by given statistics."""
    def bernoulli(self, p: _float | None = None) -> Tensor:
        """1 with the probability that each element is, otherwise 0, in the tensor's dtype, with the next key; with p, of the same
        shape, with that probability. Probabilities beyond 0 and 1 count as these."""
    def bfloat16(self) -> Tensor:
        """The elements as bfloat16."""
    def bilinear(self, other: Tensor, weight: Tensor, bias: TensorLike | None = None) -> Tensor:
        """x · weight[k] · other + bias[k] for each output k; weight is (outputs, inputs of x, inputs of the other)."""
    def bincount(self, weights: Any = None, minlength: _int = 0) -> Tensor:
        """How often each integer from 0 on is an element; with weights, the sum of those beside it."""
    def bit_cast(self, *, to: Any) -> Tensor:
        """the same bits read as another dtype of the same size"""
    def bitwise_and(self, other: TensorLike) -> Tensor:
        """x & other: the bits that both have"""
    def bitwise_left_shift(self, other: TensorLike) -> Tensor:
        """x << other: x times 2 to the power of other"""
    def bitwise_not(self) -> Tensor:
        """~x: every bit turned"""
    def bitwise_or(self, other: TensorLike) -> Tensor:
        """x | other: the bits that either has"""
    def bitwise_right_shift(self, other: TensorLike) -> Tensor:
        """x >> other: x divided by 2 to the power of other, rounded down"""
    def bitwise_xor(self, other: TensorLike) -> Tensor:
        """x ^ other: the bits that only one has"""
    def bmm(self, other: TensorLike) -> Tensor:
        """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
    def bool(self) -> Tensor:
        """The elements as bool."""
    def broadcast_to(self, *shape: Any) -> Tensor:
        """The tensor repeated along axes of length 1, and along new leading axes."""
    def bucketize(self, boundaries: Tensor | np.ndarray | Sequence[_float], *, out_int32: _bool = False, right: _bool = False) -> Tensor:
        """The number of the interval between boundaries in order that each element lies in."""
    def byte(self) -> Tensor:
        """The elements as uint8."""
    def cast(self, to: Any) -> Tensor:
        """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
    def cdist(self, other: Tensor, p: _float = 2.0) -> Tensor:
        """The distance, by the p-norm, of each row of a matrix to each of another."""
    def ceil(self) -> Tensor:
        """the least whole number that is at least x"""
    def celu(self, *, alpha: Any = 1.0) -> Tensor:
        """x where it is positive, alpha · (e^(x / alpha) − 1) elsewhere"""
    def channel_shuffle(self, groups: _int) -> Tensor:
        """Channels (axis 1), taken from each of the groups in turn."""
    def char(self) -> Tensor:
        """The elements as int8."""
    def cholesky(self, upper: _bool = False) -> Tensor:
        """The lower triangular matrix whose product with its transpose is x; upper: its transpose."""
    @overload
    def chunk(self, chunks: _int, axis: _int = 0) -> tuple[Tensor, ...]:
        """Up to `chunks` pieces of equal size along an axis; the last may be smaller."""
    @overload
    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """Up to `chunks` pieces of equal size along an axis; the last may be smaller."""
    def clamp(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """Elements clipped to the range from min to max (None: no limit)."""
    def clamp_max(self, max: TensorLike) -> Tensor:
        """Elements, or the limit where they are larger."""
    def clamp_min(self, min: TensorLike) -> Tensor:
        """Elements, or the limit where they are less."""
    @overload
    def clip(self, low: TensorLike | None = None, high: TensorLike | None = None) -> Tensor:
        """Elements clipped to the range from low to high (None: no limit)."""
    @overload
    def clip(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """Elements clipped to the range from low to high (None: no limit)."""
    def clone(self) -> Tensor:
        """The tensor itself, which does not change."""
    @overload
    def compress(self, condition: TensorLike, *, axis: Any) -> Any:
        """the slices along an axis where a condition holds"""
    @overload
    def compress(self, condition: TensorLike, *, dim: Any) -> Any:
        """the slices along an axis where a condition holds"""
    def conj(self) -> Tensor:
        """the complex conjugate"""
    def contiguous(self) -> Tensor:
        """The tensor itself, which does not change."""
    def conv(self, weight: TensorLike, bias: TensorLike | None = None, *, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
        """Convolution with weights (outputs, channels per group, …window). padding: numbers, "same" or "valid"."""
    def conv1d(self, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
        """`conv`, of inputs with this number of axes of space."""
    def conv2d(self, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
        """`conv`, of inputs with this number of axes of space."""
    def conv3d(self, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
        """`conv`, of inputs with this number of axes of space."""
    def conv_transpose(self, weight: TensorLike, bias: TensorLike | None = None, *, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
        """The transpose of a convolution, with weights (channels, outputs per group, …window)."""
    def conv_transpose1d(self, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, groups: _int = 1, dilation: Ints = 1) -> Tensor:
        """`conv_transpose`, of inputs with this number of axes of space."""
    def conv_transpose2d(self, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, groups: _int = 1, dilation: Ints = 1) -> Tensor:
        """`conv_transpose`, of inputs with this number of axes of space."""
    def conv_transpose3d(self, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, groups: _int = 1, dilation: Ints = 1) -> Tensor:
        """`conv_transpose`, of inputs with this number of axes of space."""
    def copysign(self, other: TensorLike) -> Tensor:
        """the absolute value of x with the sign of other"""
    def corrcoef(self) -> Tensor:
        """The correlations of variables: each row is one, each column an observation of all."""
    def cos(self) -> Tensor:
        """the cosine of an angle in radians"""
    def cosh(self) -> Tensor:
        """the hyperbolic cosine"""
    @overload
    def cosine_similarity(self, other: Tensor, axis: _int = 1, eps: _float = 1e-08) -> Tensor:
        """The cosines of the angles between vectors along an axis; no length counts as less than eps."""
    @overload
    def cosine_similarity(self, other: Tensor, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
        """The cosines of the angles between vectors along an axis; no length counts as less than eps."""
    @overload
    def count_nonzero(self, axis: Axis = None, keepdims: _bool = False) -> Tensor:
        """How many elements over axes are not zero."""
    @overload
    def count_nonzero(self, dim: Axis = None, keepdim: _bool = False) -> Tensor:
        """How many elements over axes are not zero."""
    def cov(self, correction: _int = 1) -> Tensor:
        """The covariances of variables: each row is one, each column an observation of all."""
    def cpu(self) -> Tensor:
        """The tensor on the device "numpy"."""
    @overload
    def cross(self, other: TensorLike, axis: _int | None = None) -> Tensor:
        """The cross products of vectors of three elements along an axis: by default the first of this length."""
    @overload
    def cross(self, other: TensorLike, dim: _int | None = None) -> Tensor:
        """The cross products of vectors of three elements along an axis: by default the first of this length."""
    def cross_entropy(self, target: TensorLike, weight: TensorLike | None = None, *, reduction: Any = 'mean', ignore_index: Any = -100) -> Any:
        """minus the logarithm of the softmax at each place's class, times the weight of the class"""
    @overload
    def cummax(self, axis: _int) -> Ordered:
        """The largest element up to each one along an axis, and its last index. NaN is the largest."""
    @overload
    def cummax(self, dim: _int) -> Ordered:
        """The largest element up to each one along an axis, and its last index. NaN is the largest."""
    @overload
    def cummin(self, axis: _int) -> Ordered:
        """The least element up to each one along an axis, and its last index. NaN is the least."""
    @overload
    def cummin(self, dim: _int) -> Ordered:
        """The least element up to each one along an axis, and its last index. NaN is the least."""
    @overload
    def cumprod(self, axis: _int, dtype: Any = None) -> Tensor:
        """The product of all elements up to each one along an axis; integers are multiplied as int64."""
    @overload
    def cumprod(self, dim: _int, dtype: Any = None) -> Tensor:
        """The product of all elements up to each one along an axis; integers are multiplied as int64."""
    @overload
    def cumsum(self, axis: _int, dtype: Any = None) -> Tensor:
        """The sum of all elements up to each one along an axis; integers are summed as int64."""
    @overload
    def cumsum(self, dim: _int, dtype: Any = None) -> Tensor:
        """The sum of all elements up to each one along an axis; integers are summed as int64."""
    @overload
    def cumulative_trapezoid(self, x: Tensor | None = None, *, dx: Number = 1, axis: _int = -1) -> Tensor:
        """The integral up to each point along an axis of lines through points: at the places x, or at distances dx."""
    @overload
    def cumulative_trapezoid(self, x: Tensor | None = None, *, dx: Number = 1, dim: _int = -1) -> Tensor:
        """The integral up to each point along an axis of lines through points: at the places x, or at distances dx."""
    def deform_conv(self, w: TensorLike, offset: TensorLike, bias: TensorLike | None = None, mask: TensorLike | None = None, *, strides: Any, dilations: Any, before: Any, after: Any, group: Any, offset_group: Any) -> Any:
        """convolution of which every element read is moved by an offset, and weighted by a mask"""
    def deg2rad(self) -> Tensor:
        """Degrees as radians."""
    def det(self) -> Any:
        """the determinant of each matrix in the last two axes"""
    def detach(self) -> Tensor:
        """The same elements as a tensor through which no gradient goes."""
    @property
    def device(self) -> Device:
        """The device on which the elements are."""
    @overload
    def dft(self, *, axis: Any = -2, length: Any = None, inverse: Any = False, onesided: Any = False) -> Any:
        """discrete Fourier transforms along an axis; the last axis has the real and the imaginary part"""
    @overload
    def dft(self, *, dim: Any = -2, length: Any = None, inverse: Any = False, onesided: Any = False) -> Any:
        """discrete Fourier transforms along an axis; the last axis has the real and the imaginary part"""
    def diag(self, diagonal: _int = 0) -> Tensor:
        """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    @overload
    def diag_embed(self, offset: _int = 0, axis1: _int = -2, axis2: _int = -1) -> Tensor:
        """Matrices, of these axes of the result, with the vectors along the last axis on a diagonal; zeros elsewhere."""
    @overload
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Matrices, of these axes of the result, with the vectors along the last axis on a diagonal; zeros elsewhere."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """The matrix with all elements on a diagonal."""
    @overload
    def diagonal(self, offset: _int = 0, axis1: _int = 0, axis2: _int = 1) -> Tensor:
        """The elements with equal coordinates along two axes (axis2 − axis1 = offset), along a new last axis."""
    @overload
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The elements with equal coordinates along two axes (axis2 − axis1 = offset), along a new last axis."""
    @overload
    def diagonal_scatter(self, src: TensorLike, offset: _int = 0, axis1: _int = 0, axis2: _int = 1) -> Tensor:
        """The tensor with a diagonal (as `diagonal` gives it) replaced."""
    @overload
    def diagonal_scatter(self, src: TensorLike, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The tensor with a diagonal (as `diagonal` gives it) replaced."""
    @overload
    def diff(self, n: _int = 1, axis: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The differences between neighbours along an axis, taken n times; of bools, whether they differ."""
    @overload
    def diff(self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The differences between neighbours along an axis, taken n times; of bools, whether they differ."""
    def digamma(self) -> Tensor:
        """The derivative of lgamma."""
    def dim(self) -> _int:
        """The number of axes."""
    def dist(self, other: TensorLike, p: _float = 2) -> Tensor:
        """The p-norm of the difference."""
    def div(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """The quotients. rounding_mode: "floor", or "trunc" (towards 0), for whole ones; integers stay integers then."""
    def divide(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """The quotients. rounding_mode: "floor", or "trunc" (towards 0), for whole ones; integers stay integers then."""
    def dot(self, other: TensorLike) -> Tensor:
        """The product of two vectors, or matrices. For more axes NumPy's dot is not matmul, and PyTorch has none."""
    def double(self) -> Tensor:
        """The elements as float64."""
    def dsplit(self, sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """`tensor_split` along axis 2."""
    @property
    def dtype(self) -> DType:
        """The type of the elements."""
    def element_size(self) -> _int:
        """How many bytes an element takes."""
    def elu(self, *, alpha: Any = 1.0) -> Tensor:
        """x where it is positive, alpha · (e^x − 1) elsewhere"""
    def embedding(self, weight: Tensor) -> Tensor:
        """The rows of a matrix at indices: x.embedding(weight), or sg.embedding(x, weight)."""
    def eq(self, other: TensorLike) -> Tensor:
        """x == other"""
    def equal(self, other: TensorLike) -> _bool:
        """Whether two tensors have the same shape and elements; `eq` compares element by element."""
    def erf(self) -> Tensor:
        """the error function: 2 / √π times the integral of e^(−t²) from 0 to x"""
    def erfc(self) -> Tensor:
        """1 − erf(x)."""
    def erfinv(self) -> Tensor:
        """The inverse of erf."""
    def exp(self) -> Tensor:
        """e^x, the exponential function"""
    def exp2(self) -> Tensor:
        """2 to the power of each element."""
    def expand(self, *shape: Any) -> Tensor:
        """Like broadcast_to; -1 keeps a dimension."""
    def expand_as(self, other: Tensor) -> Tensor:
        """The tensor repeated to the shape of another."""
    def expit(self) -> Tensor:
        """1 / (1 + e^(−x))"""
    def expm1(self) -> Tensor:
        """e^x − 1, exact for small x"""
    def fill(self, value: TensorLike) -> Tensor:
        """A tensor of the shape and dtype, with one value."""
    def fix(self) -> Tensor:
        """the whole number without the fraction"""
    def flatten(self, start: _int = 0, end: _int = -1) -> Tensor:
        """The axes from start to end (inclusive) merged into one."""
    def flip(self, *axis: Any) -> Tensor:
        """The elements in reverse order along axes (all, if none is given)."""
    def fliplr(self) -> Tensor:
        """The columns (axis 1) in reverse order."""
    def flipud(self) -> Tensor:
        """The rows (axis 0) in reverse order."""
    def float(self) -> Tensor:
        """The elements as float32."""
    def float_power(self, exponent: TensorLike) -> Tensor:
        """Elements to a power, in float64."""
    def floor(self) -> Tensor:
        """the greatest whole number that is at most x"""
    def floor_divide(self, other: TensorLike) -> Tensor:
        """x / other rounded down, as Python's //"""
    def fmax(self, other: TensorLike) -> Tensor:
        """The larger of two; of NaN and a number the number."""
    def fmin(self, other: TensorLike) -> Tensor:
        """The lesser of two; of NaN and a number the number."""
    def fmod(self, other: TensorLike) -> Tensor:
        """the remainder of x / other, with the sign of x, as in C"""
    def frac(self) -> Tensor:
        """Elements without their whole part; the sign stays."""
    def frexp(self) -> tuple[Tensor, Tensor]:
        """Mantissas, of absolute values from 0.5 to 1, and the exponents of 2 with which they give the elements."""
    def gammainc(self, other: TensorLike) -> Tensor:
        """The share of the gamma function of x whose integral runs from 0 to the other number."""
    def gammaincc(self, other: TensorLike) -> Tensor:
        """The share of the gamma function of x whose integral runs from the other number on: 1 − igamma."""
    @overload
    def gather(self, axis: _int, index: TensorLike) -> Tensor:
        """For each index the element at it along an axis; its other coordinates are those of the index."""
    @overload
    def gather(self, dim: _int, index: TensorLike) -> Tensor:
        """For each index the element at it along an axis; its other coordinates are those of the index."""
    def gather_nd(self, index: TensorLike, *, batch: Any) -> Any:
        """slices at the coordinates in the last axis of the second input; the first `batch` axes of both are one"""
    def gcd(self, other: TensorLike) -> Tensor:
        """the greatest common divisor"""
    def ge(self, other: TensorLike) -> Tensor:
        """x >= other"""
    def gelu(self, approximate: str = 'none') -> Tensor:
        """x · Φ(x), where Φ is the normal distribution; approximate="tanh" computes it by tanh."""
    def gelu_tanh(self) -> Tensor:
        """the approximation of gelu by tanh"""
    def ger(self, other: TensorLike) -> Tensor:
        """The products of each element of a vector with each of another."""
    def global_average_pool(self) -> Any:
        """the mean over all spatial axes"""
    def global_max_pool(self) -> Any:
        """the largest element over all spatial axes"""
    @overload
    def glu(self, axis: _int = -1) -> Tensor:
        """The first half of an axis, times the sigmoid of the second half."""
    @overload
    def glu(self, dim: _int = -1) -> Tensor:
        """The first half of an axis, times the sigmoid of the second half."""
    def greater(self, other: TensorLike) -> Tensor:
        """x > other"""
    def greater_equal(self, other: TensorLike) -> Tensor:
        """x >= other"""
    def grid_sample(self, grid: TensorLike, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: _bool | None = None) -> Tensor:
        """The elements at places of a grid, from −1 to 1 along each axis of space. mode: bilinear, nearest or bicubic;
        padding_mode: zeros, border or reflection."""
    def group_norm(self, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05) -> Tensor:
        """(x − mean) / √(variance + eps) for each group of channels (axis 1), then · weight + bias for each channel."""
    def gru(self, w: TensorLike, r: TensorLike, *rest: TensorLike, activations: Any, given: Any = ..., direction: Any = 'forward', clip: Any = 0.0, linear_before_reset: Any = False) -> Any:
        """a recurrent layer: gates update, reset, new"""
    def gt(self, other: TensorLike) -> Tensor:
        """x > other"""
    def half(self) -> Tensor:
        """The elements as float16."""
    def hard_sigmoid(self, *, alpha: Any = 0.2, beta: Any = 0.5) -> Tensor:
        """alpha · x + beta, clipped to 0 … 1"""
    def hard_swish(self) -> Tensor:
        """x · (x / 6 + ½), the factor clipped to 0 … 1"""
    @overload
    def hardmax(self, *, axis: Any = -1) -> Any:
        """1 at the first largest element along an axis, 0 elsewhere"""
    @overload
    def hardmax(self, *, dim: Any = -1) -> Any:
        """1 at the first largest element along an axis, 0 elsewhere"""
    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """Elements beyond ±lambd, zeros in place of the others."""
    def hardsigmoid(self) -> Tensor:
        """x / 6 + 1/2, clipped to 0 … 1."""
    def hardswish(self) -> Tensor:
        """x · hardsigmoid(x)."""
    def hardtanh(self, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
        """x, clipped to min_val … max_val."""
    def heaviside(self, values: TensorLike) -> Tensor:
        """0 for negative elements, 1 for positive ones, `values` for zeros; NaN for NaN."""
    @overload
    def histc(self, bins: _int = 100, low: _float = 0, high: _float = 0) -> Tensor:
        """How many elements lie in each of `bins` equal intervals from low to high; from the least element to the largest, if
        low and high are equal. Elements beyond are not counted."""
    @overload
    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
        """How many elements lie in each of `bins` equal intervals from low to high; from the least element to the largest, if
        low and high are equal. Elements beyond are not counted."""
    def histogram(self, bins: _int | Tensor | Sequence[_float], *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> tuple[Tensor, Tensor]:
        """How many elements lie in each interval, and the edges of these: `bins` equal ones over a range (of the elements, if
        none is given), or those between given edges. weight: of each element; density: divided by the total and the widths."""
    def hsplit(self, sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """`tensor_split` along axis 1, of a vector along axis 0."""
    def hypot(self, other: TensorLike) -> Tensor:
        """√(x² + other²), without overflow on the way"""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind, of order 0."""
    def igamma(self, other: TensorLike) -> Tensor:
        """The share of the gamma function of x whose integral runs from 0 to the other number."""
    def igammac(self, other: TensorLike) -> Tensor:
        """The share of the gamma function of x whose integral runs from the other number on: 1 − igamma."""
    def imag(self) -> Tensor:
        """the imaginary part"""
    @overload
    def index_add(self, axis: _int, index: TensorLike, source: TensorLike, *, alpha: Number = 1) -> Tensor:
        """The tensor with slices, times alpha, added to those at indices along an axis."""
    @overload
    def index_add(self, dim: _int, index: TensorLike, source: TensorLike, *, alpha: Number = 1) -> Tensor:
        """The tensor with slices, times alpha, added to those at indices along an axis."""
    @overload
    def index_copy(self, axis: _int, index: TensorLike, source: TensorLike) -> Tensor:
        """The tensor with the slices at indices along an axis replaced."""
    @overload
    def index_copy(self, dim: _int, index: TensorLike, source: TensorLike) -> Tensor:
        """The tensor with the slices at indices along an axis replaced."""
    @overload
    def index_fill(self, axis: _int, index: TensorLike, value: TensorLike) -> Tensor:
        """The tensor with one value in the slices at indices along an axis."""
    @overload
    def index_fill(self, dim: _int, index: TensorLike, value: TensorLike) -> Tensor:
        """The tensor with one value in the slices at indices along an axis."""
    def index_put(self, indices: Sequence[Any], values: TensorLike, accumulate: _bool = False) -> Tensor:
        """The tensor with the elements at indices, one tensor for each axis, replaced, or with values added to them."""
    @overload
    def index_reduce(self, axis: _int, index: TensorLike, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """The tensor with slices combined with those at indices along an axis: prod, mean, amax or amin. include_self: whether
        the slices that are there count, too."""
    @overload
    def index_reduce(self, dim: _int, index: TensorLike, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """The tensor with slices combined with those at indices along an axis: prod, mean, amax or amin. include_self: whether
        the slices that are there count, too."""
    @overload
    def index_select(self, axis: _int, index: Tensor | np.ndarray | Sequence[_int]) -> Tensor:
        """The slices along an axis at the given indices."""
    @overload
    def index_select(self, dim: _int, index: Tensor | np.ndarray | Sequence[_int]) -> Tensor:
        """The slices along an axis at the given indices."""
    def inner(self, other: Tensor) -> Tensor:
        """The products of all vectors along the last axis of x with those of another."""
    def int(self) -> Tensor:
        """The elements as int32."""
    def interpolate(self, size: Ints | None = None, scale: Any = None, mode: str = 'nearest', align_corners: _bool = False) -> Tensor:
        """Spatial axes resampled to a size or by a scale. mode: nearest, nearest-exact, linear, bilinear, trilinear, bicubic, or
        area, which is adaptive_avg_pool."""
    def inverse(self) -> Any:
        """the inverse of each matrix in the last two axes; that of a singular one is not finite"""
    def is_complex(self) -> _bool:
        """Whether the dtype is complex."""
    def is_floating_point(self) -> _bool:
        """Whether the dtype is a float."""
    def is_nonzero(self) -> _bool:
        """Whether the only element is not 0."""
    def is_signed(self) -> _bool:
        """Whether the dtype has negative numbers."""
    def isclose(self, other: TensorLike, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Whether elements differ by at most atol + rtol · |other|; infinities are close to themselves only."""
    def isfinite(self) -> Tensor:
        """whether it is a number and not infinite"""
    def isin(self, test_elements: TensorLike, *, assume_unique: _bool = False, invert: _bool = False) -> Tensor:
        """Whether each element is one of the others; invert: whether it is none of them."""
    def isinf(self) -> Tensor:
        """whether it is infinite"""
    def isnan(self) -> Tensor:
        """whether it is NaN"""
    def isneginf(self) -> Tensor:
        """Whether each element is −∞."""
    def isposinf(self) -> Tensor:
        """Whether each element is ∞."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part of each element is 0."""
    def item(self) -> Number:
        """The only element as a Python number."""
    @property
    def itemsize(self) -> _int:
        """How many bytes an element takes."""
    def kron(self, other: Tensor) -> Tensor:
        """Kronecker's product: each element of x times the whole other tensor."""
    @overload
    def kthvalue(self, k: _int, axis: _int = -1, keepdims: _bool = False) -> Ordered:
        """The k-th smallest element along an axis (1: the smallest), and its index."""
    @overload
    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False) -> Ordered:
        """The k-th smallest element along an axis (1: the smallest), and its index."""
    def layer_norm(self, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05) -> Tensor:
        """(x − mean) / √(variance + eps) · weight + bias over the last axes, which have the given shape."""
    def lcm(self, other: TensorLike) -> Tensor:
        """the least common multiple"""
    def ldexp(self, exponent: TensorLike) -> Tensor:
        """x · 2ʸ."""
    def le(self, other: TensorLike) -> Tensor:
        """x <= other"""
    def leaky_relu(self, *, alpha: Any = 0.01) -> Tensor:
        """x where it is positive, alpha · x elsewhere"""
    def lerp(self, end: TensorLike, weight: TensorLike) -> Tensor:
        """x + weight · (end − x)."""
    def less(self, other: TensorLike) -> Tensor:
        """x < other"""
    def less_equal(self, other: TensorLike) -> Tensor:
        """x <= other"""
    def lgamma(self) -> Tensor:
        """The logarithm of the absolute value of the gamma function."""
    def linear(self, weight: Tensor, bias: TensorLike | None = None) -> Tensor:
        """x @ weight.T + bias along the last axis; weight is (outputs, inputs)."""
    def local_response_norm(self, size: _int, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0) -> Tensor:
        """x / (k + alpha · the mean of x² over `size` neighbouring channels) ^ beta; outside there are zeros."""
    def log(self) -> Tensor:
        """the natural logarithm"""
    def log10(self) -> Tensor:
        """the logarithm to base 10"""
    def log1p(self) -> Tensor:
        """log(1 + x), exact for small x"""
    def log2(self) -> Tensor:
        """the logarithm to base 2"""
    @overload
    def log_softmax(self, axis: _int = -1, dtype: Any = None) -> Tensor:
        """The logarithm of `softmax`."""
    @overload
    def log_softmax(self, dim: _int = -1, dtype: Any = None) -> Tensor:
        """The logarithm of `softmax`."""
    def logaddexp(self, other: TensorLike) -> Tensor:
        """log(e^x + e^other), without overflow on the way"""
    def logaddexp2(self, other: TensorLike) -> Tensor:
        """log₂(2ˣ + 2ʸ)."""
    @overload
    def logcumsumexp(self, axis: _int) -> Tensor:
        """The logarithm of the sum of the exponentials of all elements up to each one along an axis."""
    @overload
    def logcumsumexp(self, dim: _int) -> Tensor:
        """The logarithm of the sum of the exponentials of all elements up to each one along an axis."""
    def logdet(self) -> Tensor:
        """The logarithm of the determinant of every matrix."""
    def logical_and(self, other: TensorLike) -> Tensor:
        """whether both are true"""
    def logical_not(self) -> Tensor:
        """whether it is false"""
    def logical_or(self, other: TensorLike) -> Tensor:
        """whether either is true"""
    def logical_xor(self, other: TensorLike) -> Tensor:
        """whether just one is true"""
    def logit(self, eps: _float | None = None) -> Tensor:
        """log(x / (1 − x)), the inverse of sigmoid; eps: x is clipped to eps … 1 − eps before."""
    def logsigmoid(self) -> Tensor:
        """The logarithm of sigmoid."""
    @overload
    def logsumexp(self, axis: Axis = None, keepdims: _bool = False) -> Tensor:
        """The logarithm of the sum of exponentials over axes."""
    @overload
    def logsumexp(self, dim: Axis = None, keepdim: _bool = False) -> Tensor:
        """The logarithm of the sum of exponentials over axes."""
    def long(self) -> Tensor:
        """The elements as int64."""
    def lstm(self, w: TensorLike, r: TensorLike, *rest: TensorLike, activations: Any, given: Any = ..., direction: Any = 'forward', clip: Any = 0.0, input_forget: Any = False, quantised: Any = False) -> Any:
        """a recurrent layer with a cell: gates input, output, forget, cell"""
    def lt(self, other: TensorLike) -> Tensor:
        """x < other"""
    @property
    def mH(self) -> Tensor:
        """Every matrix of a stack transposed, and its elements conjugated."""
    @property
    def mT(self) -> Tensor:
        """Every matrix of a stack transposed: the last two axes are swapped."""
    def masked_fill(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """The tensor with a value where a mask holds."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """The tensor with elements where a mask holds replaced by those of another, in order."""
    def masked_select(self, mask: Tensor | np.ndarray) -> Tensor:
        """The elements where a mask holds, as a vector."""
    def matmul(self, other: TensorLike) -> Tensor:
        """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
    def matrix_exp(self) -> Tensor:
        """The exponential of every square matrix."""
    def matrix_power(self, n: _int) -> Tensor:
        """Every matrix of a stack times itself, n factors; of the inverse, if n is negative."""
    @overload
    def max(self, axis: _int | Tensor | np.ndarray | None = None, keepdims: _bool = False) -> Any:
        """The largest element; along an axis, the largest elements and their indices (`amax` gives the elements alone); beside
        another tensor, the larger one of each pair."""
    @overload
    def max(self, dim: _int | Tensor | np.ndarray | None = None, keepdim: _bool = False) -> Any:
        """The largest element; along an axis, the largest elements and their indices (`amax` gives the elements alone); beside
        another tensor, the larger one of each pair."""
    def max_pool(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
        """The largest element of each window; the default stride is the window's size. return_indices: also its place among the
        elements of its channel."""
    def max_pool1d(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
        """The largest element of each window; the default stride is the window's size. return_indices: also its place among the
        elements of its channel."""
    def max_pool2d(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
        """The largest element of each window; the default stride is the window's size. return_indices: also its place among the
        elements of its channel."""
    def max_pool3d(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
        """The largest element of each window; the default stride is the window's size. return_indices: also its place among the
        elements of its channel."""
    def max_roi_pool(self, rois: TensorLike, batches: TensorLike, *, size: Any, scale: Any = 1.0) -> Any:
        """the largest elements of the parts into which regions of pictures are divided"""
    def maximum(self, other: TensorLike) -> Tensor:
        """the greater of two; NaN where either is"""
    @overload
    def mean(self, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
        """The mean over axes; integers become float32 first."""
    @overload
    def mean(self, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
        """The mean over axes; integers become float32 first."""
    @overload
    def median(self, axis: _int | None = None, keepdims: _bool = False) -> Any:
        """The middle element, the lower one of two; along an axis, the middle elements and their indices."""
    @overload
    def median(self, dim: _int | None = None, keepdim: _bool = False) -> Any:
        """The middle element, the lower one of two; along an axis, the middle elements and their indices."""
    @overload
    def mel_weight_matrix(self, length: TensorLike, rate: TensorLike, low: TensorLike, high: TensorLike) -> Any:
        """weights that make bins on the mel scale of the frequencies of a transform"""
    @overload
    def mel_weight_matrix(self, length: TensorLike, rate: TensorLike, min: TensorLike, max: TensorLike) -> Any:
        """weights that make bins on the mel scale of the frequencies of a transform"""
    @overload
    def min(self, axis: _int | Tensor | np.ndarray | None = None, keepdims: _bool = False) -> Any:
        """The least element; along an axis, or beside another tensor, as `max`."""
    @overload
    def min(self, dim: _int | Tensor | np.ndarray | None = None, keepdim: _bool = False) -> Any:
        """The least element; along an axis, or beside another tensor, as `max`."""
    def minimum(self, other: TensorLike) -> Tensor:
        """the lesser of two; NaN where either is"""
    def mish(self) -> Tensor:
        """x · tanh(softplus(x))"""
    def mm(self, other: TensorLike) -> Tensor:
        """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
    @overload
    def mode(self, axis: _int = -1, keepdims: _bool = False) -> Ordered:
        """The most frequent element along an axis, the least of several, and its last index."""
    @overload
    def mode(self, dim: _int = -1, keepdim: _bool = False) -> Ordered:
        """The most frequent element along an axis, the least of several, and its last index."""
    def moveaxis(self, source: Axis, destination: Axis) -> Tensor:
        """Axes moved to other positions; the others keep their order."""
    def movedim(self, source: Axis, destination: Axis) -> Tensor:
        """Axes moved to other positions; the others keep their order."""
    def msort(self) -> Tensor:
        """The elements in order along the first axis."""
    def mul(self, other: TensorLike) -> Tensor:
        """x · other"""
    def multiply(self, other: TensorLike) -> Tensor:
        """x · other"""
    def mv(self, other: TensorLike) -> Tensor:
        """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
    def mvlgamma(self, p: _int) -> Tensor:
        """The logarithm of the gamma function of p dimensions."""
    def named(self, *names: str) -> NamedTensor:
        """The tensor with a name for each axis, by which ops check and match them: `x.named("batch", "channels")`."""
    def nan_to_num(self, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """Numbers in place of NaN and infinities: by default 0, and the largest and the least of the dtype."""
    @overload
    def nanmean(self, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
        """The mean over axes of the elements that are not NaN."""
    @overload
    def nanmean(self, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
        """The mean over axes of the elements that are not NaN."""
    @overload
    def nanmedian(self, axis: _int | None = None, keepdims: _bool = False) -> Any:
        """`median` of the elements that are not NaN; NaN where all are."""
    @overload
    def nanmedian(self, dim: _int | None = None, keepdim: _bool = False) -> Any:
        """`median` of the elements that are not NaN; NaN where all are."""
    @overload
    def nanquantile(self, q: _float | Sequence[_float], axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """`quantile` of the elements that are not NaN; NaN where all are."""
    @overload
    def nanquantile(self, q: _float | Sequence[_float], dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """`quantile` of the elements that are not NaN; NaN where all are."""
    @overload
    def nansum(self, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
        """The sum over axes; NaN counts as 0."""
    @overload
    def nansum(self, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
        """The sum over axes; NaN counts as 0."""
    @overload
    def narrow(self, axis: _int, start: _int, length: _int) -> Tensor:
        """The elements from `start` to `start + length` along an axis. A negative number as start counts from the end."""
    @overload
    def narrow(self, dim: _int, start: _int, length: _int) -> Tensor:
        """The elements from `start` to `start + length` along an axis. A negative number as start counts from the end."""
    @overload
    def narrow_copy(self, axis: _int, start: _int, length: _int) -> Tensor:
        """`narrow`: a tensor does not change, so views and copies are the same."""
    @overload
    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor:
        """`narrow`: a tensor does not change, so views and copies are the same."""
    @property
    def nbytes(self) -> _int:
        """How many bytes the elements take."""
    @property
    def ndim(self) -> _int:
        """The number of axes."""
    def ndimension(self) -> _int:
        """The number of axes."""
    def ne(self, other: TensorLike) -> Tensor:
        """Whether elements differ."""
    def neg(self) -> Tensor:
        """−x"""
    def negative(self) -> Tensor:
        """−x"""
    def nelement(self) -> _int:
        """The number of elements."""
    def new_empty(self, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """Zeros, with x's dtype and device unless others are given: new_zeros(2, 3) or new_zeros((2, 3))."""
    @overload
    def new_full(self, shape: Sequence[_int], fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """A tensor filled with a value, with x's dtype and device unless others are given."""
    @overload
    def new_full(self, size: Sequence[_int], fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """A tensor filled with a value, with x's dtype and device unless others are given."""
    def new_ones(self, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """Ones, with x's dtype and device unless others are given: new_ones(2, 3) or new_ones((2, 3))."""
    def new_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """A tensor of data, with x's dtype and device unless others are given."""
    def new_zeros(self, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """Zeros, with x's dtype and device unless others are given: new_zeros(2, 3) or new_zeros((2, 3))."""
    def nextafter(self, other: TensorLike) -> Tensor:
        """the next number after x in the direction of other"""
    def nll_loss(self, target: TensorLike, weight: TensorLike | None = None, *, reduction: Any = 'mean', ignore_index: Any = -100) -> Any:
        """minus the log-probability of each place's class, times the weight of the class"""
    def non_max_suppression(self, scores: TensorLike, limit: TensorLike, overlap: TensorLike, least: TensorLike, *, center: Any = False) -> Any:
        """the best boxes of each class, without those that overlap a better box too much"""
    def nonzero(self, *, as_tuple: _bool = False) -> Any:
        """The coordinates of all elements that are not zero, one row each. as_tuple: one vector for each axis."""
    @overload
    def norm(self, p: _float | str = 2, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
        """The p-norm over axes (all, if none is given). p: a number, ±inf, 0 (how many are not zero), "fro" (2), or "nuc", of
        matrices (two axes): the sum of the singular values. dtype: of the elements before."""
    @overload
    def norm(self, p: _float | str = 2, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
        """The p-norm over axes (all, if none is given). p: a number, ±inf, 0 (how many are not zero), "fro" (2), or "nuc", of
        matrices (two axes): the sum of the singular values. dtype: of the elements before."""
    @overload
    def normalize(self, p: _float = 2.0, axis: Any = 1, eps: _float = 1e-12) -> Tensor:
        """x, divided by its p-norm along an axis, or by eps where that is less."""
    @overload
    def normalize(self, p: _float = 2.0, dim: Any = 1, eps: _float = 1e-12) -> Tensor:
        """x, divided by its p-norm along an axis, or by eps where that is less."""
    def not_equal(self, other: TensorLike) -> Tensor:
        """Whether elements differ."""
    def numel(self) -> _int:
        """The number of elements."""
    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array that the caller owns; waits for the device.

        Elements of a type that NumPy lacks, such as bfloat16, are those of the package ml_dtypes; where it is not installed
        their bits, in a field of the type's name."""
    async def numpy_async(self) -> np.ndarray:
        """`numpy` for a page, where reading from the device may have to be awaited."""
    def one_hot(self, num_classes: _int = -1) -> Tensor:
        """1 at the index that each element is along a new last axis, 0 elsewhere. num_classes: the length of the axis; by
        default the largest element and one."""
    def outer(self, other: TensorLike) -> Tensor:
        """The products of each element of a vector with each of another."""
    def pad(self, width: _int | Sequence[Any], mode: str = 'constant', value: Number = 0) -> Tensor:
        """The tensor with elements added before and after its axes. width: one number for all axes, (before, after) for each
        axis, or PyTorch's flat sequence of numbers, which begins with the last axis; negative ones remove elements. mode:
        "constant" (of `value`), "reflect", "edge" (or "replicate") or "wrap" (or "circular")."""
    @overload
    def pairwise_distance(self, other: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdims: _bool = False) -> Tensor:
        """The p-norm of x − other + eps along the last axis."""
    @overload
    def pairwise_distance(self, other: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
        """The p-norm of x − other + eps along the last axis."""
    def pdist(self, p: _float = 2.0) -> Tensor:
        """The distances of all pairs of rows of a matrix, as a vector."""
    def permute(self, *axis: Any) -> Tensor:
        """The axes in another order."""
    def pinverse(self, rcond: _float = 1e-15) -> Tensor:
        """The pseudoinverse (Moore's and Penrose's) of every matrix; singular values up to rcond · the largest count as 0."""
    def pixel_shuffle(self, upscale_factor: _int) -> Tensor:
        """(…, c · r², h, w) to (…, c, h · r, w · r): channels become the pixels between."""
    def pixel_unshuffle(self, downscale_factor: _int) -> Tensor:
        """(…, c, h · r, w · r) to (…, c · r², h, w): the inverse of pixel_shuffle."""
    def polygamma(self, n: Any) -> Tensor:
        """The n-th derivative of digamma: x.polygamma(n), or sg.polygamma(n, x)."""
    def positive(self) -> Tensor:
        """The tensor itself."""
    def pow(self, exponent: TensorLike) -> Tensor:
        """Elements to a power. Whole exponents and halves up to 16 are products and roots; integers to a negative power
        become float32."""
    def prelu(self, weight: Tensor) -> Tensor:
        """The elements above 0; the others times a weight, of which there is one for all or one for each channel (axis 1)."""
    @overload
    def prod(self, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
        """The product over axes, as `sum`."""
    @overload
    def prod(self, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
        """The product over axes, as `sum`."""
    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """The tensor with the elements at indices into the flat tensor replaced, or with those of source added to them."""
    def qr(self, some: _bool = True) -> tuple[Tensor, Tensor]:
        """Q, of orthogonal columns, and R, triangular, whose product is x; some: Q has no more columns than x."""
    @overload
    def quantile(self, q: _float | Sequence[_float], axis: _int | None = None, keepdims: _bool = False, interpolation: str = 'linear') -> Tensor:
        """The numbers below which the shares q of the elements lie, along an axis or of all. Several q are a new first axis.
        interpolation: what to take between two elements. NaN beside NaN."""
    @overload
    def quantile(self, q: _float | Sequence[_float], dim: _int | None = None, keepdim: _bool = False, interpolation: str = 'linear') -> Tensor:
        """The numbers below which the shares q of the elements lie, along an axis or of all. Several q are a new first axis.
        interpolation: what to take between two elements. NaN beside NaN."""
    def rad2deg(self) -> Tensor:
        """Radians as degrees."""
    def ravel(self) -> Tensor:
        """The elements as a vector."""
    def real(self) -> Tensor:
        """the real part"""
    def reciprocal(self) -> Tensor:
        """1 / x"""
    def regex_full_match(self, *, pattern: Any) -> Any:
        """whether each string matches a regular expression"""
    def relu(self) -> Tensor:
        """x where it is positive, 0 elsewhere"""
    def relu6(self) -> Tensor:
        """max(x, 0), at most 6."""
    def remainder(self, other: TensorLike) -> Tensor:
        """the remainder of x / other, with the sign of other, as Python's %"""
    @overload
    def renorm(self, p: _float, axis: _int, maxnorm: _float) -> Tensor:
        """The tensor with each slice along an axis whose p-norm is above maxnorm scaled down to it."""
    @overload
    def renorm(self, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """The tensor with each slice along an axis whose p-norm is above maxnorm scaled down to it."""
    def repeat(self, *repeats: Any) -> Tensor:
        """The tensor repeated as a whole along each axis; more numbers than axes add leading axes."""
    @overload
    def repeat_interleave(self, repeats: _int | Sequence[_int] | Tensor | None = None, axis: _int | None = None) -> Tensor:
        """Every element, or every slice along an axis, repeated by itself. repeats: a number, or one for each. Without it, the
        place of each element of a vector, repeated that many times."""
    @overload
    def repeat_interleave(self, repeats: _int | Sequence[_int] | Tensor | None = None, dim: _int | None = None) -> Tensor:
        """Every element, or every slice along an axis, repeated by itself. repeats: a number, or one for each. Without it, the
        place of each element of a vector, repeated that many times."""
    def require_grad(self) -> Tensor:
        """The same elements as a tensor that asks for its gradient; on a device `sg.Autodiff(…)` only."""
    @property
    def requires_grad(self) -> _bool:
        """Whether `backward` goes through this tensor: it, or one that it was computed from, asks for its gradient."""
    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in row-major order under another shape, in which one dimension may be -1."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """The elements under the shape of another tensor."""
    def resize(self, *, sizes: Any, scales: Any = ..., mode: Any = 'nearest', coordinates: Any = 'half_pixel', nearest: Any = 'round_prefer_floor', cubic: Any = -0.75, exclude_outside: Any = False, extrapolation: Any = 0.0, roi: Any = ..., antialias: Any = False) -> Any:
        """resampled along every axis whose size changes; attributes as ONNX's Resize"""
    def rms_norm(self, normalized_shape: _int | Sequence[_int], weight: Tensor | None = None, eps: _float | None = None) -> Tensor:
        """x / √(mean of x² + eps) · weight over the last axes, which have the given shape; eps: by default the dtype's."""
    def rnn(self, w: TensorLike, r: TensorLike, *rest: TensorLike, activations: Any, given: Any = ..., direction: Any = 'forward', clip: Any = 0.0) -> Any:
        """a recurrent layer without gates"""
    def roi_align(self, rois: TensorLike, batches: TensorLike, *, size: Any, samples: Any, adaptive: Any = False, mode: Any = 'avg', scale: Any = 1.0, half_pixel: Any = True) -> Any:
        """regions of pictures, each resampled to the same size; batches: the picture of each region"""
    @overload
    def roll(self, shifts: _int | Sequence[_int], axis: Axis = None) -> Tensor:
        """Elements moved along axes; those that leave at one end come back at the other. Without axes, in the flat tensor."""
    @overload
    def roll(self, shifts: _int | Sequence[_int], dim: Axis = None) -> Tensor:
        """Elements moved along axes; those that leave at one end come back at the other. Without axes, in the flat tensor."""
    @overload
    def rot90(self, k: _int = 1, axis: Sequence[_int] = ...) -> Tensor:
        """The plane of two axes turned k times by 90 degrees, from the first towards the second."""
    @overload
    def rot90(self, k: _int = 1, dim: Sequence[_int] = ...) -> Tensor:
        """The plane of two axes turned k times by 90 degrees, from the first towards the second."""
    def rotary_embedding(self, cos: TensorLike, sin: TensorLike, *, interleaved: Any = False) -> Any:
        """pairs of elements of the last axis turned by angles with these cosines and sines: an element of the first half and one of the second, or interleaved: neighbours"""
    def round(self, *, decimals: _int = 0) -> Tensor:
        """The nearest whole number, the even one of two; decimals: the nearest with as many digits behind the point."""
    def rsqrt(self) -> Tensor:
        """1 / √x."""
    def rsub(self, other: TensorLike, alpha: Number = 1) -> Tensor:
        """other − alpha · x."""
    def scaled_dot_product_attention(self, key: Tensor, value: Tensor, attn_mask: TensorLike | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, scale: _float | None = None, enable_gqa: _bool = False) -> Tensor:
        """softmax(scale · x · keyᵀ + mask) · value for each head, of (…, heads, length, size); a mask of bools says which keys
        are seen. scale: 1 / √size, if none is given."""
    @overload
    def scatter(self, axis: _int, index: TensorLike, src: TensorLike | None = None, reduce: str | None = None, *, value: Number | None = None) -> Tensor:
        """The tensor with the elements of `src` (or one value) at indices along an axis; where an index has an element,
        its other coordinates are those of the index. reduce: "add" or "multiply", to combine them with what is there."""
    @overload
    def scatter(self, dim: _int, index: TensorLike, src: TensorLike | None = None, reduce: str | None = None, *, value: Number | None = None) -> Tensor:
        """The tensor with the elements of `src` (or one value) at indices along an axis; where an index has an element,
        its other coordinates are those of the index. reduce: "add" or "multiply", to combine them with what is there."""
    @overload
    def scatter_add(self, axis: _int, index: TensorLike, src: TensorLike) -> Tensor:
        """The tensor with the elements of `src` added to those at indices along an axis."""
    @overload
    def scatter_add(self, dim: _int, index: TensorLike, src: TensorLike) -> Tensor:
        """The tensor with the elements of `src` added to those at indices along an axis."""
    @overload
    def scatter_reduce(self, axis: _int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: _bool = True) -> Tensor:
        """The tensor with the elements of `src` combined with those at indices along an axis: sum, prod, amax, amin or mean.
        include_self: whether the elements that are there count, too."""
    @overload
    def scatter_reduce(self, dim: _int, index: TensorLike, src: TensorLike, reduce: str, *, include_self: _bool = True) -> Tensor:
        """The tensor with the elements of `src` combined with those at indices along an axis: sum, prod, amax, amin or mean.
        include_self: whether the elements that are there count, too."""
    def searchsorted(self, values: Any, *, out_int32: _bool = False, right: _bool = False, side: str | None = None) -> Tensor:
        """The indices in a vector in order at which values would be inserted to keep the order: before elements that are equal,
        or with right=True (or side="right") behind them. Of vectors along the last axis, those of the values at the same place."""
    @overload
    def select(self, axis: _int, index: _int) -> Tensor:
        """The slice at an index along an axis, without the axis."""
    @overload
    def select(self, dim: _int, index: _int) -> Tensor:
        """The slice at an index along an axis, without the axis."""
    @overload
    def select_scatter(self, src: TensorLike, axis: _int, index: _int) -> Tensor:
        """The tensor with the slice at an index along an axis replaced."""
    @overload
    def select_scatter(self, src: TensorLike, dim: _int, index: _int) -> Tensor:
        """The tensor with the slice at an index along an axis replaced."""
    def selu(self) -> Tensor:
        """A scaled elu whose results keep mean 0 and variance 1."""
    def sgn(self) -> Tensor:
        """−1, 0 or 1: the sign of x"""
    @property
    def shape(self) -> tuple[_int, ...]:
        """The lengths of the axes. While a function is traced, an open one is a Size, which counts as an int in types."""
    def short(self) -> Tensor:
        """The elements as int16."""
    def shrink(self, *, lambd: Any = 0.5, bias: Any = 0.0) -> Tensor:
        """x − bias above lambd, x + bias below −lambd, 0 between"""
    def sigmoid(self) -> Tensor:
        """1 / (1 + e^(−x))"""
    def sign(self) -> Tensor:
        """−1, 0 or 1: the sign of x"""
    def signbit(self) -> Tensor:
        """whether the sign is negative, as −0.0's is"""
    def silu(self) -> Tensor:
        """x · sigmoid(x), also known as swish"""
    def sin(self) -> Tensor:
        """the sine of an angle in radians"""
    def sinc(self) -> Tensor:
        """sin(πx) / (πx), and 1 at 0."""
    def sinh(self) -> Tensor:
        """the hyperbolic sine"""
    @property
    def size(self) -> Count:
        """The number of elements. PyTorch's calls work, too: size() is the shape, size(0) the length of an axis."""
    @overload
    def slice_scatter(self, src: TensorLike, axis: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """The tensor with a slice along an axis replaced."""
    @overload
    def slice_scatter(self, src: TensorLike, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """The tensor with a slice along an axis replaced."""
    def slogdet(self) -> tuple[Tensor, Tensor]:
        """The sign of the determinant of every matrix, and the logarithm of its absolute value."""
    @overload
    def softmax(self, axis: _int = -1, dtype: Any = None) -> Tensor:
        """exp(x), divided by its sum along an axis. dtype: of the elements before."""
    @overload
    def softmax(self, dim: _int = -1, dtype: Any = None) -> Tensor:
        """exp(x), divided by its sum along an axis. dtype: of the elements before."""
    @overload
    def softmin(self, axis: _int = -1) -> Tensor:
        """The softmax of −x."""
    @overload
    def softmin(self, dim: _int = -1) -> Tensor:
        """The softmax of −x."""
    def softplus(self, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
        """log(1 + exp(beta · x)) / beta; x where beta · x is above the threshold."""
    def softshrink(self, lambd: _float = 0.5) -> Tensor:
        """x moved towards 0 by lambd, and 0 in −lambd … lambd."""
    def softsign(self) -> Tensor:
        """x / (1 + |x|)."""
    @overload
    def sort(self, axis: _int = -1, descending: _bool = False, stable: _bool = True) -> Ordered:
        """The elements in order along an axis, and their indices. Equal elements always keep their order; NaN is the largest."""
    @overload
    def sort(self, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> Ordered:
        """The elements in order along an axis, and their indices. Equal elements always keep their order; NaN is the largest."""
    @overload
    def split(self, sizes: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
        """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
    @overload
    def split(self, sizes: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
    @overload
    def split_with_sizes(self, sizes: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
        """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
    @overload
    def split_with_sizes(self, sizes: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
    def sqrt(self) -> Tensor:
        """the square root"""
    def square(self) -> Tensor:
        """x · x."""
    @overload
    def squeeze(self, axis: Axis = None) -> Tensor:
        """The tensor without axes of length 1: without those given, or without all of them. Longer ones stay."""
    @overload
    def squeeze(self, dim: Axis = None) -> Tensor:
        """The tensor without axes of length 1: without those given, or without all of them. Longer ones stay."""
    @overload
    def std(self, axis: Axis = None, correction: _float = 1, keepdims: _bool = False) -> Tensor:
        """The square root of `var`."""
    @overload
    def std(self, dim: Axis = None, correction: _float = 1, keepdim: _bool = False) -> Tensor:
        """The square root of `var`."""
    def stft(self, window: TensorLike | None = None, *, length: Any, step: Any, onesided: Any = True) -> Any:
        """the transforms of overlapping parts of signals, each part weighted by a window"""
    def stop_gradient(self) -> Tensor:
        """`detach`, under JAX's name."""
    def string_concat(self, y: TensorLike) -> Any:
        """each string followed by another"""
    def string_normalize(self, *, case: Any, stopwords: Any, sensitive: Any) -> Any:
        """strings in upper or lower case, without stopwords"""
    def string_split(self, *, delimiter: Any = '', limit: Any = None) -> Any:
        """the parts of each string, and their number"""
    def string_tokens(self, *, pattern: Any, between: Any, least: Any, marked: Any, fill: Any) -> Any:
        """the parts of each string that a regular expression matches, or those between"""
    def sub(self, other: TensorLike, *, alpha: Number = 1) -> Tensor:
        """x − alpha · other."""
    def subtract(self, other: TensorLike, *, alpha: Number = 1) -> Tensor:
        """x − alpha · other."""
    @overload
    def sum(self, axis: Axis = None, keepdims: _bool = False, dtype: Any = None) -> Tensor:
        """The sum over axes (all, if none is given); integers are summed as int64. dtype: of the elements before."""
    @overload
    def sum(self, dim: Axis = None, keepdim: _bool = False, dtype: Any = None) -> Tensor:
        """The sum over axes (all, if none is given); integers are summed as int64. dtype: of the elements before."""
    def sum_to_size(self, *size: Any) -> Tensor:
        """The sums over axes that leave a shape which broadcasts to x's."""
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """U, S and V, of x = U · diag(S) · V.H; without compute_uv, zeros in place of U and V."""
    @overload
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """The tensor with two axes exchanged."""
    @overload
    def swapaxes(self, dim0: _int, dim1: _int) -> Tensor:
        """The tensor with two axes exchanged."""
    @overload
    def swapdims(self, axis0: _int, axis1: _int) -> Tensor:
        """The tensor with two axes exchanged."""
    @overload
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """The tensor with two axes exchanged."""
    def swiglu(self, x: TensorLike, *, alpha: Any = 1.0) -> Any:
        """x · sigmoid(alpha · x), times a second tensor"""
    def t(self) -> Tensor:
        """A matrix transposed; a vector as it is."""
    @overload
    def take(self, index: Tensor | np.ndarray | Sequence[_int], axis: _int | None = None) -> Tensor:
        """The slices along an axis at the given indices; without an axis, the elements of the flat tensor."""
    @overload
    def take(self, index: Tensor | np.ndarray | Sequence[_int], dim: _int | None = None) -> Tensor:
        """The slices along an axis at the given indices; without an axis, the elements of the flat tensor."""
    @overload
    def take_along_dim(self, index: TensorLike, axis: _int | None = None) -> Tensor:
        """Like gather; the other axes broadcast. Without an axis, the elements of the flat tensor at flat indices."""
    @overload
    def take_along_dim(self, index: TensorLike, dim: _int | None = None) -> Tensor:
        """Like gather; the other axes broadcast. Without an axis, the elements of the flat tensor at flat indices."""
    def tan(self) -> Tensor:
        """the tangent of an angle in radians"""
    def tanh(self) -> Tensor:
        """the hyperbolic tangent"""
    def tanhshrink(self) -> Tensor:
        """x − tanh(x)."""
    @overload
    def tensor_split(self, sections: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
        """So many pieces along an axis, of sizes that differ by one at most; or pieces that begin at given places."""
    @overload
    def tensor_split(self, sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """So many pieces along an axis, of sizes that differ by one at most; or pieces that begin at given places."""
    def threshold(self, threshold: Number, value: Number) -> Tensor:
        """The elements above a threshold; a value in place of the others."""
    def thresholded_relu(self, *, alpha: Any = 1.0) -> Tensor:
        """x where it is greater than alpha, 0 elsewhere"""
    def tile(self, *axis: Any) -> Tensor:
        """The tensor repeated as a whole along its last axes."""
    def to(self, *targets: Any, device: str | Device | None = None, dtype: Any = None) -> Tensor:
        """The tensor on another device, or in another dtype, or both: to("wasm"), to(sg.float16), to("wasm", sg.float16), or
        those of another tensor, to(x)."""
    async def to_async(self, *targets: Any, device: str | Device | None = None, dtype: Any = None) -> Tensor:
        """`to` for a page, where reading from the device may have to be awaited."""
    def to_device(self, device: str | Device, *, stream: Any = None) -> Tensor:
        """`to`, under the name of the array API standard."""
    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists; a number, if there are no axes."""
    @overload
    def top_k(self, k: Dim, axis: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ordered:
        """The k largest (or smallest) elements along an axis, always in order, and their indices."""
    @overload
    def top_k(self, k: Dim, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ordered:
        """The k largest (or smallest) elements along an axis, always in order, and their indices."""
    @overload
    def topk(self, k: Dim, axis: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ordered:
        """The k largest (or smallest) elements along an axis, always in order, and their indices."""
    @overload
    def topk(self, k: Dim, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ordered:
        """The k largest (or smallest) elements along an axis, always in order, and their indices."""
    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""
    @overload
    def transpose(self, axis0: Any = None, axis1: _int | None = None, *more: _int) -> Tensor:
        """Two axes exchanged, as in transpose(1, 2); the axes in the order of a tuple; reversed if none is given."""
    @overload
    def transpose(self, dim0: Any = None, dim1: _int | None = None, *more: _int) -> Tensor:
        """Two axes exchanged, as in transpose(1, 2); the axes in the order of a tuple; reversed if none is given."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """The elements on and below a diagonal of each matrix; zeros elsewhere."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """The elements on and above a diagonal of each matrix; zeros elsewhere."""
    def true_divide(self, other: TensorLike) -> Tensor:
        """x / other"""
    def trunc(self) -> Tensor:
        """the whole number without the fraction"""
    def type(self, dtype: Any) -> Tensor:
        """The elements as another dtype."""
    def type_as(self, other: Tensor) -> Tensor:
        """The elements in the dtype of another tensor."""
    @overload
    def unbind(self, axis: _int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis, without it."""
    @overload
    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis, without it."""
    @overload
    def unflatten(self, axis: _int, sizes: Sequence[Any]) -> Tensor:
        """An axis divided into several; one of the sizes may be -1."""
    @overload
    def unflatten(self, dim: _int, sizes: Sequence[Any]) -> Tensor:
        """An axis divided into several; one of the sizes may be -1."""
    @overload
    def unfold(self, axis: _int, size: _int, step: _int = 1) -> Tensor:
        """All windows of `size` elements along an axis, `step` apart; their elements are a new last axis."""
    @overload
    def unfold(self, dim: _int, size: _int, step: _int = 1) -> Tensor:
        """All windows of `size` elements along an axis, `step` apart; their elements are a new last axis."""
    @overload
    def unique(self, ordered: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, axis: _int | None = None, *, return_index: _bool = False) -> Any:
        """The distinct elements (or slices along an axis), in order or as they come first. With more results, a tuple: the
        first index of each, the index of every element's value among them, how often each occurs."""
    @overload
    def unique(self, ordered: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None, *, return_index: _bool = False) -> Any:
        """The distinct elements (or slices along an axis), in order or as they come first. With more results, a tuple: the
        first index of each, the index of every element's value among them, how often each occurs."""
    @overload
    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False, axis: _int | None = None) -> Any:
        """The elements, or slices along an axis, that differ from the one before; the place of each in the result, and how many
        are equal."""
    @overload
    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
        """The elements, or slices along an axis, that differ from the one before; the place of each in the result, and how many
        are equal."""
    @overload
    def unsqueeze(self, axis: _int) -> Tensor:
        """The tensor with a new axis of length 1 at this position of the result."""
    @overload
    def unsqueeze(self, dim: _int) -> Tensor:
        """The tensor with a new axis of length 1 at this position of the result."""
    def update_slice(self, part: TensorLike, *starts: Any) -> Tensor:
        """The tensor with a part replaced, which begins at a start along each axis: `cache.update_slice(row, at, 0)`.

        The starts are integers, or tensors of one integer. One is moved so that the part lies within the tensor."""
    def vander(self, N: _int | None = None, increasing: _bool = False) -> Tensor:
        """The powers of each element of a vector, N of them (as many as elements, if none is given), one row for each."""
    @overload
    def var(self, axis: Axis = None, correction: _float = 1, keepdims: _bool = False) -> Tensor:
        """The mean square of the distances from the mean over axes; the sum is divided by the count less `correction`."""
    @overload
    def var(self, dim: Axis = None, correction: _float = 1, keepdim: _bool = False) -> Tensor:
        """The mean square of the distances from the mean over axes; the sum is divided by the count less `correction`."""
    def vdot(self, other: Tensor) -> Tensor:
        """The product of two vectors; of a complex first one, the conjugates."""
    def view(self, *shape: Any) -> Tensor:
        """`reshape`."""
    def view_as(self, other: Tensor) -> Tensor:
        """The elements under the shape of another tensor."""
    def vsplit(self, sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """`tensor_split` along axis 0."""
    def where(self, condition: TensorLike, other: TensorLike) -> Tensor:
        """The elements where a condition holds, and those of `other` elsewhere."""
    def xlogy(self, other: TensorLike) -> Tensor:
        """x · log(other), and 0 where x is 0 and the other is not NaN."""
def apply(build: Callable[..., Any], *operands: TensorLike | None) -> Any:
    """The tensor of `build(builder, *operands)`, or a tuple of tensors if that makes several nodes.

    `build` gets nodes for tensors, arrays and lists; numbers and None are passed unchanged."""
def destination(what: str, targets: Sequence[Any], device: Any, dtype: Any) -> tuple[Any, Any]:
    """The device and the dtype, or None, that the arguments of `to` name."""
def home_of(operands: Sequence[Any]) -> Device:
    """The device on which an operation runs: that of its tensors. A device that takes over the others' values comes first."""
def value_on(home: Device, x: Tensor | np.ndarray) -> Any:
    """The elements of a tensor or an array as a value of the device `home`."""