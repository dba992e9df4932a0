"""What tensor.py offers, with all methods of Tensor. Written by tests/stubs.py: do not edit."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, Union

import numpy as np

from ..dtypes import DType
from ..ir.scalar import Number
from ..runtime.device import Device, DeviceValue
from ..shapes import Dim
from .shaping import Axis
from .spatial import Ints, Padding

_bool = bool
_complex = complex
_float = float
_int = int

TensorLike: TypeAlias = Union["Tensor", np.ndarray, Number]

class Tensor:
    """A handle on a value of a Device; `singe.tensor` makes one. See the module's docstring."""

    __array_ufunc__: None
    _device: Device
    _value: Any

    @property
    def T(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Any) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> np.ndarray: ...
    def __bool__(self) -> _bool: ...
    def __copy__(self) -> Tensor: ...
    def __deepcopy__(self, memo: Any) -> Tensor: ...
    def __dir__(self) -> list[str]: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __eq__(self, other: Any) -> Tensor: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __float__(self) -> _float: ...
    def __ge__(self, other: Any) -> Tensor: ...
    def __getitem__(self, key: Any) -> Tensor:
        """Elements by integers, slices, None, ... and one array of integers; see indexing.py."""
    def __gt__(self, other: Any) -> Tensor: ...
    def __index__(self) -> _int: ...
    def __init__(self, device: Device, value: DeviceValue) -> None: ...
    def __int__(self) -> _int: ...
    def __invert__(self) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __len__(self) -> _int: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __matmul__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __ne__(self, other: object) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, exponent: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __repr__(self) -> str: ...
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor: ...
    def abs(self) -> Tensor:
        """abs of each element"""
    def acos(self) -> Tensor:
        """acos of each element"""
    def acosh(self) -> Tensor:
        """acosh of each element"""
    def adaptive_avg_pool(self, output_size: Ints) -> Tensor:
        """Means over equal windows that give the requested output size."""
    def add(self, b: TensorLike) -> Tensor:
        """add of each element"""
    def affine_grid(self, *, space: Any, align_corners: Any = False) -> Any:
        """the grid with which grid_sample computes an affine map; theta (batch, axes, axes + 1)"""
    def arange(self, step: TensorLike, *, count: Any) -> Any:
        """count numbers: start, start + step, start + 2 · step, …"""
    def argmax(self, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The index of the largest element along an axis (the first, if several are equal), as int64;
        without an axis, the index in the flat tensor."""
    def argmin(self, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The index of the least element, as `argmax` gives that of the largest."""
    def asin(self) -> Tensor:
        """asin of each element"""
    def asinh(self) -> Tensor:
        """asinh of each element"""
    def astype(self, to: Any) -> Tensor:
        """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
    def atan(self) -> Tensor:
        """atan of each element"""
    def atanh(self) -> Tensor:
        """atanh of each element"""
    def attention(self, k: TensorLike, v: TensorLike, mask: TensorLike | None = None, *, scale: Any = 0.0, causal: Any = False, past: Any = 0, softcap: Any = 0.0) -> Any:
        """softmax(scale · q · kᵀ + mask) · v for each head (…, heads, length, size); scale 0: 1 / √size. causal: a query sees no later keys; past: how many keys precede the first query. softcap: scores are kept within ±softcap"""
    def avg_pool(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
        """The mean of each window."""
    def axes_sizes(self, *, what: Any, shape: Any, change: Any) -> Any:
        """a shape after computed axes are dropped, added or made 1"""
    def backward(self) -> Any: ...
    def batch_norm(self, scale: TensorLike, shift: TensorLike, mean: TensorLike, variance: TensorLike, *, epsilon: Any = 1e-05) -> Any:
        """normalisation along axis 1 with given mean and variance"""
    def bitwise_and(self, b: TensorLike) -> Tensor:
        """bitwise_and of each element"""
    def bitwise_left_shift(self, amount: TensorLike) -> Tensor:
        """bitwise_left_shift of each element"""
    def bitwise_not(self) -> Tensor:
        """bitwise_not of each element"""
    def bitwise_or(self, b: TensorLike) -> Tensor:
        """bitwise_or of each element"""
    def bitwise_right_shift(self, amount: TensorLike) -> Tensor:
        """bitwise_right_shift of each element"""
    def bitwise_xor(self, b: TensorLike) -> Tensor:
        """bitwise_xor of each element"""
    def broadcast_to(self, *shape: Any) -> Tensor:
        """The tensor repeated along axes of length 1, and along new leading axes."""
    def cast(self, to: Any) -> Tensor:
        """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
    def cdist(self, y: TensorLike, *, squared: Any = False) -> Any:
        """the distance of each row of the first matrix to each of the second, or its square"""
    def ceil(self) -> Tensor:
        """ceil of each element"""
    def celu(self, *, alpha: Any = 1.0) -> Tensor:
        """celu of each element"""
    def clip(self, low: TensorLike | None = None, high: TensorLike | None = None) -> Tensor:
        """Elements clipped to the range from low to high (None: no limit)."""
    def compress(self, condition: TensorLike, *, axis: Any) -> Any:
        """the slices along an axis where a condition holds"""
    def concat(self, *xs: TensorLike, axis: Any) -> Any:
        """inputs one after another along an axis"""
    def conv(self, weight: TensorLike, bias: TensorLike | None = None, *, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
        """Convolution with weights (outputs, channels per group, …window). padding: numbers, "same" or "valid"."""
    def conv_int8(self, w: TensorLike, scale: TensorLike, **facts: Any) -> Any:
        """convolution, channels last, with 8-bit weights, summed in integers"""
    def conv_integers(self, w: TensorLike, **facts: Any) -> Any:
        """convolution, channels last, of whole numbers in float32 with 8-bit integers, summed in int32"""
    def conv_last(self, w: TensorLike, *, strides: Any, dilations: Any, before: Any, after: Any, group: Any) -> Any:
        """convolution, channels last"""
    def conv_transpose(self, weight: TensorLike, bias: TensorLike | None = None, *, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
        """The transpose of a convolution, with weights (channels, outputs per group, …window)."""
    def cos(self) -> Tensor:
        """cos of each element"""
    def cosh(self) -> Tensor:
        """cosh of each element"""
    def cross_entropy(self, target: TensorLike, weight: TensorLike | None = None, *, reduction: Any = 'mean', ignore_index: Any = -100) -> Any:
        """minus the logarithm of the softmax at each place's class, times the weight of the class"""
    def deform_conv(self, w: TensorLike, offset: TensorLike, bias: TensorLike | None = None, mask: TensorLike | None = None, *, strides: Any, dilations: Any, before: Any, after: Any, group: Any, offset_group: Any) -> Any:
        """convolution of which every element read is moved by an offset, and weighted by a mask"""
    def det(self) -> Any:
        """the determinant of each matrix in the last two axes"""
    @property
    def device(self) -> Device: ...
    def dft(self, *, axis: Any = -2, length: Any = None, inverse: Any = False, onesided: Any = False) -> Any:
        """discrete Fourier transforms along an axis; the last axis has the real and the imaginary part"""
    def diagonal(self, *, axis1: Any = 0, axis2: Any = 1, offset: Any = 0) -> Any:
        """the elements with equal coordinates along two axes (axis2 − axis1 = offset), along a new last axis"""
    def dimensions(self, kind: TensorLike) -> Any:
        """dimensions as elements of a vector"""
    def div(self, b: TensorLike) -> Tensor:
        """div of each element"""
    def dot(self, b: TensorLike) -> Any:
        """matrix product over the last two axes; the axes before them broadcast"""
    def dot_int8(self, w: TensorLike, scale: TensorLike) -> Any:
        """product of float rows and a matrix of 8-bit weights, summed in integers"""
    def dot_integers(self, b: TensorLike) -> Any:
        """product of whole numbers in float32 and 8-bit integers, summed in int32"""
    @property
    def dtype(self) -> DType: ...
    def einsum(self, *xs: TensorLike, equation: Any) -> Any:
        """sums of products of elements, in the notation of NumPy: equation="ij,jk->ik" is a product of matrices"""
    def elu(self, *, alpha: Any = 1.0) -> Tensor:
        """elu of each element"""
    def equal(self, b: TensorLike) -> Tensor:
        """equal of each element"""
    def erf(self) -> Tensor:
        """erf of each element"""
    def exp(self) -> Tensor:
        """exp of each element"""
    def expand(self, *shape: Any) -> Tensor:
        """Like broadcast_to; -1 keeps a dimension."""
    def expanded_sizes(self, *, what: Any, shape: Any) -> Any:
        """the shape to which a tensor and a given shape broadcast"""
    def flatten(self, start: _int = 0, end: _int = -1) -> Tensor:
        """The axes from start to end (inclusive) merged into one."""
    def float(self) -> Tensor:
        """The elements as float32."""
    def floor(self) -> Tensor:
        """floor of each element"""
    def fmod(self, b: TensorLike) -> Tensor:
        """fmod of each element"""
    def gather(self, index: TensorLike, *, axis: Any) -> Any:
        """slices of the first input along an axis, chosen by the second; negative indices count from the end"""
    def gather_elements(self, index: TensorLike, *, axis: Any) -> Any:
        """for each index the element at it along an axis; its other coordinates are those of the index"""
    def gather_nd(self, index: TensorLike, *, batch: Any) -> Any:
        """slices at the coordinates in the last axis of the second input; the first `batch` axes of both are one"""
    def gelu(self) -> Tensor:
        """gelu of each element"""
    def gelu_tanh(self) -> Tensor:
        """the approximation of gelu by tanh"""
    def gemm(self, y: TensorLike, c: TensorLike | None = None, *, alpha: Any = 1.0, beta: Any = 1.0, trans_a: Any = False, trans_b: Any = False) -> Any:
        """alpha · a @ b + beta · c, where a and b may be transposed"""
    def global_average_pool(self) -> Any:
        """the mean over all spatial axes"""
    def global_max_pool(self) -> Any:
        """the largest element over all spatial axes"""
    def greater(self, b: TensorLike) -> Tensor:
        """greater of each element"""
    def greater_equal(self, b: TensorLike) -> Tensor:
        """greater_equal of each element"""
    def grid_sample(self, grid: TensorLike, *, mode: Any = 'linear', padding: Any = 'zeros', align_corners: Any = False) -> Any:
        """x (batch, channels, …space) at the places (x, y, …) of a grid, from −1 to 1 along each axis"""
    def gru(self, w: TensorLike, r: TensorLike, *rest: TensorLike, activations: Any, given: Any = ..., direction: Any = 'forward', clip: Any = 0.0, linear_before_reset: Any = False) -> Any:
        """a recurrent layer: gates update, reset, new"""
    def half(self) -> Tensor:
        """The elements as float16."""
    def hard_sigmoid(self, *, alpha: Any = 0.2, beta: Any = 0.5) -> Tensor:
        """hard_sigmoid of each element"""
    def hard_swish(self) -> Tensor:
        """hard_swish of each element"""
    def hardmax(self, *, axis: Any = -1) -> Any:
        """1 at the first largest element along an axis, 0 elsewhere"""
    def int(self) -> Tensor:
        """The elements as int32."""
    def interpolate(self, size: Ints | None = None, scale: Any = None, mode: str = 'nearest', align_corners: _bool = False) -> Tensor:
        """Spatial axes resampled to a size or by a scale. mode:
        nearest, nearest-exact, linear, bilinear, trilinear, bicubic."""
    def inverse(self) -> Any:
        """the inverse of each matrix in the last two axes; that of a singular one is not finite"""
    def is_inf(self, *, detect_negative: Any = True, detect_positive: Any = True) -> Tensor:
        """is_inf of each element"""
    def is_nan(self) -> Tensor:
        """is_nan of each element"""
    def item(self) -> Number:
        """The only element as a Python number."""
    def layer_norm(self, scale: TensorLike | None = None, shift: TensorLike | None = None, *, axis: Any = -1, epsilon: Any = 1e-05) -> Any:
        """(x − mean) / √(variance + epsilon) · scale + shift over the axes from `axis` on"""
    def leaky_relu(self, *, alpha: Any = 0.01) -> Tensor:
        """leaky_relu of each element"""
    def less(self, b: TensorLike) -> Tensor:
        """less of each element"""
    def less_equal(self, b: TensorLike) -> Tensor:
        """less_equal of each element"""
    def log(self) -> Tensor:
        """log of each element"""
    def log_softmax(self, axis: _int = -1) -> Tensor:
        """The logarithm of `softmax`."""
    def logical_and(self, b: TensorLike) -> Tensor:
        """logical_and of each element"""
    def logical_not(self) -> Tensor:
        """logical_not of each element"""
    def logical_or(self, b: TensorLike) -> Tensor:
        """logical_or of each element"""
    def logical_xor(self, b: TensorLike) -> Tensor:
        """logical_xor of each element"""
    def lstm(self, w: TensorLike, r: TensorLike, *rest: TensorLike, activations: Any, given: Any = ..., direction: Any = 'forward', clip: Any = 0.0, input_forget: Any = False) -> Any:
        """a recurrent layer with a cell: gates input, output, forget, cell"""
    @property
    def mT(self) -> Tensor:
        """Every matrix of a stack transposed: the last two axes are swapped."""
    def matmul(self, other: TensorLike) -> Tensor:
        """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
    def max(self, axis: Axis = None, keepdims: _bool = False) -> Tensor: ...
    def max_pool(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: _bool = False) -> Tensor:
        """The largest element of each window; the default stride is the window's size."""
    def max_pool_index(self, *, column_major: Any = False, **facts: Any) -> Any:
        """the flat index of the largest element of each window, the first if several are equal"""
    def max_roi_pool(self, rois: TensorLike, batches: TensorLike, *, size: Any, scale: Any = 1.0) -> Any:
        """the largest elements of the parts into which regions of pictures are divided"""
    def maximum(self, b: TensorLike) -> Tensor:
        """maximum of each element"""
    def mean(self, axis: Axis = None, keepdims: _bool = False) -> Tensor:
        """The mean over axes; integers become float32 first."""
    def mel_weight_matrix(self, length: TensorLike, rate: TensorLike, low: TensorLike, high: TensorLike) -> Any:
        """weights that make bins on the mel scale of the frequencies of a transform"""
    def min(self, axis: Axis = None, keepdims: _bool = False) -> Tensor: ...
    def minimum(self, b: TensorLike) -> Tensor:
        """minimum of each element"""
    def mish(self) -> Tensor:
        """mish of each element"""
    def moved_last(self, *, what: Any, shape: Any) -> Any:
        """flat indices that move computed axes of a tensor to the end, and those that move them back"""
    def mul(self, b: TensorLike) -> Tensor:
        """mul of each element"""
    @property
    def ndim(self) -> _int: ...
    def neg(self) -> Tensor:
        """neg of each element"""
    def nll_loss(self, target: TensorLike, weight: TensorLike | None = None, *, reduction: Any = 'mean', ignore_index: Any = -100) -> Any:
        """minus the log-probability of each place's class, times the weight of the class"""
    def non_max_suppression(self, scores: TensorLike, limit: TensorLike, overlap: TensorLike, least: TensorLike, *, center: Any = False) -> Any:
        """the best boxes of each class, without those that overlap a better box too much"""
    def nonzero(self) -> Any:
        """the coordinates of all nonzero elements, one column each"""
    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array that the caller owns; waits for the device.

        Elements of a type that NumPy lacks, such as bfloat16, are their bits, in a field of the type's name."""
    async def numpy_async(self) -> np.ndarray:
        """`numpy` for a page, where reading from the device may have to be awaited."""
    def overlap_add(self, *, axis: Any, length: Any, step: Any = 1, dilation: Any = 1) -> Any:
        """windows along an axis, whose elements are along the last axis, added at their places: what undoes unfold"""
    def pad(self, width: _int | Sequence[Any], mode: str = 'constant', value: Number = 0) -> Tensor:
        """The tensor with elements added before and after every axis. width: one number, or (before, after) for each
        axis. mode: "constant" (of `value`), "reflect", "edge" or "wrap"."""
    def permute(self, *perm: Any) -> Tensor:
        """The axes in another order; reversed if none is given."""
    def pool_sum(self, *, window: Any, strides: Any, dilations: Any, before: Any, after: Any) -> Any:
        """the sum of each window"""
    def pow(self, y: TensorLike) -> Tensor:
        """pow of each element"""
    def prod(self, axis: Axis = None, keepdims: _bool = False) -> Tensor: ...
    def random_bits(self, *, shape: Any, stream: Any = 0) -> Any:
        """random uint32 numbers in a given shape, from a key of two"""
    def random_normal(self, *, shape: Any) -> Any:
        """normally distributed float32 numbers in a given shape, from a key of two uint32 numbers"""
    def random_uniform(self, *, shape: Any) -> Any:
        """random numbers from 0 to 1 in a given shape, from a seed"""
    def random_unit(self, *, shape: Any) -> Any:
        """random float32 numbers from 0 (included) to 1 in a given shape, from a key of two uint32 numbers"""
    def range_size(self, limit: TensorLike, step: TensorLike, *, what: Any) -> Any:
        """how many numbers a range from a start to a limit by a step has"""
    def reciprocal(self) -> Tensor:
        """reciprocal of each element"""
    def reduce_max(self, *, axes: Any) -> Any:
        """the largest element over axes"""
    def reduce_mean(self, *, axes: Any) -> Any:
        """the mean over axes; integers are rounded toward zero"""
    def reduce_min(self, *, axes: Any) -> Any:
        """the least element over axes"""
    def reduce_prod(self, *, axes: Any) -> Any:
        """the product over axes"""
    def reduce_sum(self, *, axes: Any) -> Any:
        """the sum over axes"""
    def regex_full_match(self, *, pattern: Any) -> Any:
        """whether each string matches a regular expression"""
    def relu(self) -> Tensor:
        """relu of each element"""
    def remainder(self, b: TensorLike) -> Tensor:
        """remainder of each element"""
    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in row-major order under another shape, in which one dimension may be -1."""
    def reshaped_sizes(self, *, what: Any, shape: Any, allow_zero: Any) -> Any:
        """the shape to which a tensor is reshaped, by the rules of ONNX's Reshape"""
    def resize(self, *, sizes: Any, scales: Any = ..., mode: Any = 'nearest', coordinates: Any = 'half_pixel', nearest: Any = 'round_prefer_floor', cubic: Any = -0.75, exclude_outside: Any = False, extrapolation: Any = 0.0, roi: Any = ..., antialias: Any = False) -> Any:
        """resampled along every axis whose size changes; attributes as ONNX's Resize"""
    def resize_tables(self, roi: TensorLike, *, shape: Any, axes: Any, policy: Any, **options: Any) -> Any:
        """for each output index along each axis: the input indices that it reads, and their weights"""
    def rms_norm(self, scale: TensorLike | None = None, *, axis: Any = -1, epsilon: Any = 1e-05) -> Any:
        """x / √(mean of x² + epsilon) · scale over the axes from `axis` on"""
    def rnn(self, w: TensorLike, r: TensorLike, *rest: TensorLike, activations: Any, given: Any = ..., direction: Any = 'forward', clip: Any = 0.0) -> Any:
        """a recurrent layer without gates"""
    def roi_align(self, rois: TensorLike, batches: TensorLike, *, size: Any, mode: Any = 'avg', samples: Any = 0, scale: Any = 1.0, half_pixel: Any = True) -> Any:
        """regions of pictures, each resampled to the same size; batches: the picture of each region"""
    def rotary_embedding(self, cos: TensorLike, sin: TensorLike, *, interleaved: Any = False) -> Any:
        """pairs of elements of the last axis turned by angles with these cosines and sines: an element of the first half and one of the second, or interleaved: neighbours"""
    def round(self) -> Tensor:
        """round of each element"""
    def running_max(self, *, axis: Any, reverse: Any = False) -> Any:
        """the largest element up to each one along an axis"""
    def running_prod(self, *, axis: Any, reverse: Any = False) -> Any:
        """the product of all elements up to each one along an axis"""
    def running_sum(self, *, axis: Any, reverse: Any = False) -> Any:
        """the sum of all elements up to each one along an axis"""
    def scatter_elements(self, part: TensorLike, indices: TensorLike, *, axis: Any) -> Any:
        """a tensor with elements at indices along an axis replaced"""
    def scatter_elements_reduce(self, part: TensorLike, indices: TensorLike, *, axis: Any, reduction: Any) -> Any:
        """elements added to (or multiplied, maximum, minimum with) those at indices along an axis"""
    def scatter_nd(self, part: TensorLike, indices: TensorLike) -> Any:
        """a tensor with slices at indices replaced"""
    def scatter_nd_reduce(self, part: TensorLike, indices: TensorLike, *, reduction: Any) -> Any:
        """slices added to (or multiplied, maximum, minimum with) those at indices"""
    @property
    def shape(self) -> tuple[Dim, ...]: ...
    def shrink(self, *, lambd: Any = 0.5, bias: Any = 0.0) -> Tensor:
        """shrink of each element"""
    def sigmoid(self) -> Tensor:
        """sigmoid of each element"""
    def sign(self) -> Tensor:
        """sign of each element"""
    def signed_sizes(self, *, what: Any) -> Any:
        """each integer n as two sizes: max(n, 0) and max(−n, 0)"""
    def silu(self) -> Tensor:
        """silu of each element"""
    def sin(self) -> Tensor:
        """sin of each element"""
    def sinh(self) -> Tensor:
        """sinh of each element"""
    @property
    def size(self) -> _int: ...
    def sizes(self, *, what: Any, total: Any = None, most: Any = None) -> Any:
        """integers as sizes, each at most `most`; their sum is `total`"""
    def slice(self, *, starts: Any, steps: Any, sizes: Any) -> Any:
        """elements start, start + step, … along every axis; steps may be negative"""
    def slice_places(self, ends: TensorLike, axes: TensorLike, steps: TensorLike, *, what: Any, shape: Any, cuts: Any) -> Any:
        """the indices along each axis that a slice with computed ends selects"""
    def softmax(self, axis: _int = -1) -> Tensor:
        """exp(x), divided by its sum along an axis."""
    def softplus(self) -> Tensor:
        """softplus of each element"""
    def sort(self, *, axis: Any, descending: Any = False) -> Any:
        """the elements sorted along an axis, and their indices"""
    def split(self, sizes: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
        """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
    def sqrt(self) -> Tensor:
        """sqrt of each element"""
    def squeeze(self, axis: Axis = None) -> Tensor:
        """The tensor without axes of length 1: without those given, or without all of them."""
    def stft(self, window: TensorLike | None = None, *, length: Any, step: Any, onesided: Any = True) -> Any:
        """the transforms of overlapping parts of signals, each part weighted by a window"""
    def string_concat(self, y: TensorLike) -> Any:
        """each string followed by another"""
    def string_normalize(self, *, case: Any, stopwords: Any, sensitive: Any) -> Any:
        """strings in upper or lower case, without stopwords"""
    def string_split(self, *, delimiter: Any = '', limit: Any = None) -> Any:
        """the parts of each string, and their number"""
    def sub(self, b: TensorLike) -> Tensor:
        """sub of each element"""
    def sum(self, axis: Axis = None, keepdims: _bool = False) -> Tensor:
        """The sum over axes (all, if none is given); integers are summed as int64."""
    def swiglu(self, x: TensorLike, *, alpha: Any = 1.0) -> Any:
        """x · sigmoid(alpha · x), times a second tensor"""
    def take(self, index: Tensor | np.ndarray | Sequence[_int], axis: _int = 0) -> Tensor:
        """The slices along an axis at the given indices; negative ones count from the end."""
    def tan(self) -> Tensor:
        """tan of each element"""
    def tanh(self) -> Tensor:
        """tanh of each element"""
    def thresholded_relu(self, *, alpha: Any = 1.0) -> Tensor:
        """thresholded_relu of each element"""
    def to(self, device: str | Device) -> Tensor:
        """The tensor on another device; itself if it is on that device already."""
    def tolist(self) -> Any: ...
    def top_k(self, k: _int, axis: _int = -1, largest: _bool = True) -> tuple[Tensor, Tensor]:
        """The k largest (or smallest) elements along an axis, in order, and their places."""
    def transpose(self, *perm: Any) -> Tensor:
        """The axes in another order; reversed if none is given."""
    def tril(self, *, diagonal: Any = 0) -> Any:
        """each matrix with zeros above a diagonal (1: the one above the main diagonal)"""
    def triu(self, *, diagonal: Any = 0) -> Any:
        """each matrix with zeros below a diagonal (1: the one above the main diagonal)"""
    def unfold(self, *, axis: Any, length: Any, step: Any = 1, dilation: Any = 1) -> Any:
        """windows along an axis, which begin every `step` elements; their elements are along a new last axis"""
    def unique(self, *, axis: Any = None, ordered: Any = True) -> Any:
        """the distinct elements or slices, the first index of each, the index of every element's value, and counts"""
    def unsqueeze(self, axis: _int) -> Tensor:
        """The tensor with a new axis of length 1 at this position of the result."""
    def update_slice(self, part: TensorLike, *starts: Any) -> Tensor:
        """The tensor with a part replaced, which begins at a start along each axis: `cache.update_slice(row, at, 0)`.

        The starts are integers, or tensors of one integer. One is moved so that the part lies within the tensor."""
    def where(self, a: TensorLike, b: TensorLike) -> Tensor:
        """where of each element"""
def apply(build: Callable[..., Any], *operands: TensorLike | None) -> Any:
    """The tensor of `build(builder, *operands)`, or a tuple of tensors if that makes several nodes.

    `build` gets nodes for tensors and arrays; numbers and None are passed unchanged."""
def value_on(home: Device, x: Tensor | np.ndarray) -> Any:
    """The elements of a tensor or an array as a value of the device `home`."""