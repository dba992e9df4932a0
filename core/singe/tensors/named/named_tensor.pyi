"""What named_tensor.py offers, with all members of NamedTensor. Written by tests/stubs.py: do not edit."""

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, Union, overload

import numpy as np

from ...dtypes import DType
from ...tensors.gradients import Gradients
from ...tensors.methods.folds import Extremes
from ...tensors.methods.sorting import Ordered
from ...tensors.methods.selection import Places
from ...tensors.nodes.shaping import Axis, Count
from ...tensors.nodes.spatial import Ints, Padding, Sizes
from ...ir.scalar import Number
from ...runtime.device import Device, DeviceValue
from ...shapes import Dim

import builtins

from ..tensor import Tensor
from .holder import TensorHolder

NamedLike: TypeAlias = Union["NamedTensor", Tensor, np.ndarray, Number]

class NamedTensor(TensorHolder):
    """A Tensor with a name for each axis: `x.named("batch", "channels").mean("channels")`.

    Operands are matched by name, in the order of the one that has most names; what one lacks, or has with the size 1, is repeated.
    A Tensor or an array beside it has no axes. What there is not is a method of `x.tensor`."""

    __array_ufunc__: None
    def __abs__(self) -> NamedTensor: ...
    def __add__(self, other: Any) -> NamedTensor: ...
    def __and__(self, other: Any) -> NamedTensor: ...
    def __bool__(self) -> _bool: ...
    def __eq__(self, other: Any) -> NamedTensor: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __floordiv__(self, other: Any) -> NamedTensor: ...
    def __ge__(self, other: Any) -> NamedTensor: ...
    def __gt__(self, other: Any) -> NamedTensor: ...
    def __init__(self, tensor: Tensor, names: Sequence[str]) -> None: ...
    def __invert__(self) -> NamedTensor: ...
    def __le__(self, other: Any) -> NamedTensor: ...
    def __lshift__(self, other: Any) -> NamedTensor: ...
    def __lt__(self, other: Any) -> NamedTensor: ...
    def __matmul__(self, other: NamedTensor) -> NamedTensor: ...
    def __mod__(self, other: Any) -> NamedTensor: ...
    def __mul__(self, other: Any) -> NamedTensor: ...
    def __ne__(self, other: object) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __neg__(self) -> NamedTensor: ...
    def __or__(self, other: Any) -> NamedTensor: ...
    def __pow__(self, exponent: Any) -> NamedTensor: ...
    def __radd__(self, other: Any) -> NamedTensor: ...
    def __rand__(self, other: Any) -> NamedTensor: ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, other: Any) -> NamedTensor: ...
    def __rlshift__(self, other: Any) -> NamedTensor: ...
    def __rmod__(self, other: Any) -> NamedTensor: ...
    def __rmul__(self, other: Any) -> NamedTensor: ...
    def __ror__(self, other: Any) -> NamedTensor: ...
    def __rpow__(self, base: Any) -> NamedTensor: ...
    def __rrshift__(self, other: Any) -> NamedTensor: ...
    def __rshift__(self, other: Any) -> NamedTensor: ...
    def __rsub__(self, other: Any) -> NamedTensor: ...
    def __rtruediv__(self, other: Any) -> NamedTensor: ...
    def __rxor__(self, other: Any) -> NamedTensor: ...
    def __sub__(self, other: Any) -> NamedTensor: ...
    def __truediv__(self, other: Any) -> NamedTensor: ...
    def __xor__(self, other: Any) -> NamedTensor: ...
    def abs(self) -> NamedTensor:
        """the absolute value"""
    def absolute(self) -> NamedTensor:
        """the absolute value"""
    def acos(self) -> NamedTensor:
        """the inverse cosine, in radians"""
    def acosh(self) -> NamedTensor:
        """the inverse hyperbolic cosine"""
    def add(self, other: NamedLike, *, alpha: Number = 1) -> NamedTensor:
        """x + alpha · other."""
    @overload
    def all(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False) -> NamedTensor:
        """Whether no element over axes is zero."""
    @overload
    def all(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False) -> NamedTensor:
        """Whether no element over axes is zero."""
    @overload
    def amax(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False) -> NamedTensor:
        """The largest element over axes."""
    @overload
    def amax(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False) -> NamedTensor:
        """The largest element over axes."""
    @overload
    def amin(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False) -> NamedTensor:
        """The least element over axes."""
    @overload
    def amin(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False) -> NamedTensor:
        """The least element over axes."""
    @overload
    def aminmax(self, axis: str | None = None, *, keepdims: _bool = False) -> Any:
        """The least and the largest element, of all or along an axis."""
    @overload
    def aminmax(self, dim: str | None = None, *, keepdim: _bool = False) -> Any:
        """The least and the largest element, of all or along an axis."""
    @overload
    def any(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False) -> NamedTensor:
        """Whether an element over axes is not zero."""
    @overload
    def any(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False) -> NamedTensor:
        """Whether an element over axes is not zero."""
    def arccos(self) -> NamedTensor:
        """the inverse cosine, in radians"""
    def arccosh(self) -> NamedTensor:
        """the inverse hyperbolic cosine"""
    def arcsin(self) -> NamedTensor:
        """the inverse sine, in radians"""
    def arcsinh(self) -> NamedTensor:
        """the inverse hyperbolic sine"""
    def arctan(self) -> NamedTensor:
        """the inverse tangent, in radians"""
    def arctan2(self, other: NamedLike) -> NamedTensor:
        """the angle of the point (other, x) in radians, −π … π"""
    def arctanh(self) -> NamedTensor:
        """the inverse hyperbolic tangent"""
    @overload
    def argmax(self, axis: str | None = None, *, keepdims: _bool = False) -> NamedTensor:
        """The index of the largest element along an axis (the first, if several are equal), as int64;
        without an axis, the index in the flat tensor."""
    @overload
    def argmax(self, dim: str | None = None, *, keepdim: _bool = False) -> NamedTensor:
        """The index of the largest element along an axis (the first, if several are equal), as int64;
        without an axis, the index in the flat tensor."""
    @overload
    def argmin(self, axis: str | None = None, *, keepdims: _bool = False) -> NamedTensor:
        """The index of the least element, as `argmax` gives that of the largest."""
    @overload
    def argmin(self, dim: str | None = None, *, keepdim: _bool = False) -> NamedTensor:
        """The index of the least element, as `argmax` gives that of the largest."""
    @overload
    def argsort(self, axis: str, *, descending: _bool = False, stable: _bool = True) -> NamedTensor:
        """The indices that put the elements in order along an axis."""
    @overload
    def argsort(self, dim: str, *, descending: _bool = False, stable: _bool = True) -> NamedTensor:
        """The indices that put the elements in order along an axis."""
    def asin(self) -> NamedTensor:
        """the inverse sine, in radians"""
    def asinh(self) -> NamedTensor:
        """the inverse hyperbolic sine"""
    def atan(self) -> NamedTensor:
        """the inverse tangent, in radians"""
    def atan2(self, other: NamedLike) -> NamedTensor:
        """the angle of the point (other, x) in radians, −π … π"""
    def atanh(self) -> NamedTensor:
        """the inverse hyperbolic tangent"""
    def bit_cast(self, *, to: Any) -> NamedTensor:
        """the same bits read as another dtype of the same size"""
    def bitwise_and(self, other: NamedLike) -> NamedTensor:
        """x & other: the bits that both have"""
    def bitwise_left_shift(self, other: NamedLike) -> NamedTensor:
        """x << other: x times 2 to the power of other"""
    def bitwise_not(self) -> NamedTensor:
        """~x: every bit turned"""
    def bitwise_or(self, other: NamedLike) -> NamedTensor:
        """x | other: the bits that either has"""
    def bitwise_right_shift(self, other: NamedLike) -> NamedTensor:
        """x >> other: x divided by 2 to the power of other, rounded down"""
    def bitwise_xor(self, other: NamedLike) -> NamedTensor:
        """x ^ other: the bits that only one has"""
    def cast(self, to: Any) -> NamedTensor:
        """The elements as another dtype. Floats are rounded toward zero to integers, and saturate; to bool: x ≠ 0."""
    def ceil(self) -> NamedTensor:
        """the least whole number that is at least x"""
    def celu(self, *, alpha: Any = 1.0) -> NamedTensor:
        """x where it is positive, alpha · (e^(x / alpha) − 1) elsewhere"""
    @overload
    def clip(self, low: NamedLike | None = None, high: NamedLike | None = None) -> NamedTensor:
        """Elements clipped to the range from low to high (None: no limit)."""
    @overload
    def clip(self, min: NamedLike | None = None, max: NamedLike | None = None) -> NamedTensor:
        """Elements clipped to the range from low to high (None: no limit)."""
    def conj(self) -> NamedTensor:
        """the complex conjugate"""
    def copysign(self, other: NamedLike) -> NamedTensor:
        """the absolute value of x with the sign of other"""
    def cos(self) -> NamedTensor:
        """the cosine of an angle in radians"""
    def cosh(self) -> NamedTensor:
        """the hyperbolic cosine"""
    @overload
    def count_nonzero(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False) -> NamedTensor:
        """How many elements over axes are not zero."""
    @overload
    def count_nonzero(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False) -> NamedTensor:
        """How many elements over axes are not zero."""
    @overload
    def cummax(self, axis: str) -> Any:
        """The largest element up to each one along an axis, and its last index. NaN is the largest."""
    @overload
    def cummax(self, dim: str) -> Any:
        """The largest element up to each one along an axis, and its last index. NaN is the largest."""
    @overload
    def cummin(self, axis: str) -> Any:
        """The least element up to each one along an axis, and its last index. NaN is the least."""
    @overload
    def cummin(self, dim: str) -> Any:
        """The least element up to each one along an axis, and its last index. NaN is the least."""
    @overload
    def cumprod(self, axis: str, *, dtype: Any = None) -> NamedTensor:
        """The product of all elements up to each one along an axis; integers are multiplied as int64."""
    @overload
    def cumprod(self, dim: str, *, dtype: Any = None) -> NamedTensor:
        """The product of all elements up to each one along an axis; integers are multiplied as int64."""
    @overload
    def cumsum(self, axis: str, *, dtype: Any = None) -> NamedTensor:
        """The sum of all elements up to each one along an axis; integers are summed as int64."""
    @overload
    def cumsum(self, dim: str, *, dtype: Any = None) -> NamedTensor:
        """The sum of all elements up to each one along an axis; integers are summed as int64."""
    @property
    def device(self) -> Device:
        """The device on which the elements are."""
    def div(self, other: NamedLike, *, rounding_mode: str | None = None) -> NamedTensor:
        """The quotients. rounding_mode: "floor", or "trunc" (towards 0), for whole ones; integers stay integers then."""
    @property
    def dtype(self) -> DType:
        """The type of the elements."""
    def elu(self, *, alpha: Any = 1.0) -> NamedTensor:
        """x where it is positive, alpha · (e^x − 1) elsewhere"""
    def eq(self, other: NamedLike) -> NamedTensor:
        """x == other"""
    def equal(self, other: NamedLike) -> _bool:
        """Whether two tensors have the same shape and elements; `eq` compares element by element."""
    def erf(self) -> NamedTensor:
        """the error function: 2 / √π times the integral of e^(−t²) from 0 to x"""
    def exp(self) -> NamedTensor:
        """e^x, the exponential function"""
    def expit(self) -> NamedTensor:
        """1 / (1 + e^(−x))"""
    def expm1(self) -> NamedTensor:
        """e^x − 1, exact for small x"""
    def fix(self) -> NamedTensor:
        """the whole number without the fraction"""
    def flatten(self, names: Sequence[str], name: str) -> NamedTensor:
        """Neighbouring dimensions as one: `x.flatten(("height", "width"), "pixels")`."""
    def flip(self, *axis: str) -> NamedTensor:
        """The elements in reverse order along axes (all, if none is given)."""
    def floor(self) -> NamedTensor:
        """the greatest whole number that is at most x"""
    def floor_divide(self, other: NamedLike) -> NamedTensor:
        """x / other rounded down, as Python's //"""
    def fmod(self, other: NamedLike) -> NamedTensor:
        """the remainder of x / other, with the sign of x, as in C"""
    def gcd(self, other: NamedLike) -> NamedTensor:
        """the greatest common divisor"""
    def ge(self, other: NamedLike) -> NamedTensor:
        """x >= other"""
    def gelu(self, approximate: str = 'none') -> NamedTensor:
        """x · Φ(x), where Φ is the normal distribution; approximate="tanh" computes it by tanh."""
    def gelu_tanh(self) -> NamedTensor:
        """the approximation of gelu by tanh"""
    def greater(self, other: NamedLike) -> NamedTensor:
        """x > other"""
    def greater_equal(self, other: NamedLike) -> NamedTensor:
        """x >= other"""
    def gt(self, other: NamedLike) -> NamedTensor:
        """x > other"""
    def hard_sigmoid(self, *, alpha: Any = 0.2, beta: Any = 0.5) -> NamedTensor:
        """alpha · x + beta, clipped to 0 … 1"""
    def hard_swish(self) -> NamedTensor:
        """x · (x / 6 + ½), the factor clipped to 0 … 1"""
    def hypot(self, other: NamedLike) -> NamedTensor:
        """√(x² + other²), without overflow on the way"""
    def imag(self) -> NamedTensor:
        """the imaginary part"""
    def isfinite(self) -> NamedTensor:
        """whether it is a number and not infinite"""
    def isinf(self) -> NamedTensor:
        """whether it is infinite"""
    def isnan(self) -> NamedTensor:
        """whether it is NaN"""
    def lcm(self, other: NamedLike) -> NamedTensor:
        """the least common multiple"""
    def le(self, other: NamedLike) -> NamedTensor:
        """x <= other"""
    def leaky_relu(self, *, alpha: Any = 0.01) -> NamedTensor:
        """x where it is positive, alpha · x elsewhere"""
    def less(self, other: NamedLike) -> NamedTensor:
        """x < other"""
    def less_equal(self, other: NamedLike) -> NamedTensor:
        """x <= other"""
    def log(self) -> NamedTensor:
        """the natural logarithm"""
    def log10(self) -> NamedTensor:
        """the logarithm to base 10"""
    def log1p(self) -> NamedTensor:
        """log(1 + x), exact for small x"""
    def log2(self) -> NamedTensor:
        """the logarithm to base 2"""
    @overload
    def log_softmax(self, axis: str, *, dtype: Any = None) -> NamedTensor:
        """The logarithm of `softmax`."""
    @overload
    def log_softmax(self, dim: str, *, dtype: Any = None) -> NamedTensor:
        """The logarithm of `softmax`."""
    def logaddexp(self, other: NamedLike) -> NamedTensor:
        """log(e^x + e^other), without overflow on the way"""
    @overload
    def logcumsumexp(self, axis: str) -> NamedTensor:
        """The logarithm of the sum of the exponentials of all elements up to each one along an axis."""
    @overload
    def logcumsumexp(self, dim: str) -> NamedTensor:
        """The logarithm of the sum of the exponentials of all elements up to each one along an axis."""
    def logical_and(self, other: NamedLike) -> NamedTensor:
        """whether both are true"""
    def logical_not(self) -> NamedTensor:
        """whether it is false"""
    def logical_or(self, other: NamedLike) -> NamedTensor:
        """whether either is true"""
    def logical_xor(self, other: NamedLike) -> NamedTensor:
        """whether just one is true"""
    @overload
    def logsumexp(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False) -> NamedTensor:
        """The logarithm of the sum of exponentials over axes."""
    @overload
    def logsumexp(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False) -> NamedTensor:
        """The logarithm of the sum of exponentials over axes."""
    def lt(self, other: NamedLike) -> NamedTensor:
        """x < other"""
    def matmul(self, other: NamedTensor) -> NamedTensor:
        """The product along the last dimension, which the other has, too. Other names that both have are matched, and those that
        only the other has follow."""
    @overload
    def max(self, axis: str | None = None, *, keepdims: _bool = False) -> Any:
        """The largest element; along an axis, the largest elements and their indices (`amax` gives the elements alone); beside
        another tensor, the larger one of each pair."""
    @overload
    def max(self, dim: str | None = None, *, keepdim: _bool = False) -> Any:
        """The largest element; along an axis, the largest elements and their indices (`amax` gives the elements alone); beside
        another tensor, the larger one of each pair."""
    def maximum(self, other: NamedLike) -> NamedTensor:
        """the greater of two; NaN where either is"""
    @overload
    def mean(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False, dtype: Any = None) -> NamedTensor:
        """The mean over axes; integers become float32 first."""
    @overload
    def mean(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False, dtype: Any = None) -> NamedTensor:
        """The mean over axes; integers become float32 first."""
    @overload
    def median(self, axis: str | None = None, *, keepdims: _bool = False) -> Any:
        """The middle element, the lower one of two; along an axis, the middle elements and their indices."""
    @overload
    def median(self, dim: str | None = None, *, keepdim: _bool = False) -> Any:
        """The middle element, the lower one of two; along an axis, the middle elements and their indices."""
    @overload
    def min(self, axis: str | None = None, *, keepdims: _bool = False) -> Any:
        """The least element; along an axis, or beside another tensor, as `max`."""
    @overload
    def min(self, dim: str | None = None, *, keepdim: _bool = False) -> Any:
        """The least element; along an axis, or beside another tensor, as `max`."""
    def minimum(self, other: NamedLike) -> NamedTensor:
        """the lesser of two; NaN where either is"""
    def mish(self) -> NamedTensor:
        """x · tanh(softplus(x))"""
    @overload
    def mode(self, axis: str, *, keepdims: _bool = False) -> Any:
        """The most frequent element along an axis, the least of several, and its last index."""
    @overload
    def mode(self, dim: str, *, keepdim: _bool = False) -> Any:
        """The most frequent element along an axis, the least of several, and its last index."""
    def mul(self, other: NamedLike) -> NamedTensor:
        """x · other"""
    def multiply(self, other: NamedLike) -> NamedTensor:
        """x · other"""
    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, in order."""
    @overload
    def nanmean(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False, dtype: Any = None) -> NamedTensor:
        """The mean over axes of the elements that are not NaN."""
    @overload
    def nanmean(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False, dtype: Any = None) -> NamedTensor:
        """The mean over axes of the elements that are not NaN."""
    @overload
    def nanmedian(self, axis: str | None = None, *, keepdims: _bool = False) -> Any:
        """`median` of the elements that are not NaN; NaN where all are."""
    @overload
    def nanmedian(self, dim: str | None = None, *, keepdim: _bool = False) -> Any:
        """`median` of the elements that are not NaN; NaN where all are."""
    @overload
    def nansum(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False, dtype: Any = None) -> NamedTensor:
        """The sum over axes; NaN counts as 0."""
    @overload
    def nansum(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False, dtype: Any = None) -> NamedTensor:
        """The sum over axes; NaN counts as 0."""
    def neg(self) -> NamedTensor:
        """−x"""
    def negative(self) -> NamedTensor:
        """−x"""
    def nextafter(self, other: NamedLike) -> NamedTensor:
        """the next number after x in the direction of other"""
    def permute(self, *names: str) -> NamedTensor:
        """The dimensions in another order; all are named."""
    def pow(self, exponent: NamedLike) -> NamedTensor:
        """Elements to a power. Whole exponents and halves up to 16 are products and roots; integers to a negative power
        become float32."""
    @overload
    def prod(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False, dtype: Any = None) -> NamedTensor:
        """The product over axes, as `sum`."""
    @overload
    def prod(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False, dtype: Any = None) -> NamedTensor:
        """The product over axes, as `sum`."""
    def real(self) -> NamedTensor:
        """the real part"""
    def reciprocal(self) -> NamedTensor:
        """1 / x"""
    def relu(self) -> NamedTensor:
        """x where it is positive, 0 elsewhere"""
    def remainder(self, other: NamedLike) -> NamedTensor:
        """the remainder of x / other, with the sign of other, as Python's %"""
    def rename(self, **names: str) -> NamedTensor:
        """Other names: `x.rename(batch="rows")`."""
    def round(self, *, decimals: _int = 0) -> NamedTensor:
        """The nearest whole number, the even one of two; decimals: the nearest with as many digits behind the point."""
    def select(self, **places: _int) -> NamedTensor:
        """The elements at one place of dimensions, without these: `x.select(channels=0)`."""
    def sgn(self) -> NamedTensor:
        """−1, 0 or 1: the sign of x"""
    def shrink(self, *, lambd: Any = 0.5, bias: Any = 0.0) -> NamedTensor:
        """x − bias above lambd, x + bias below −lambd, 0 between"""
    def sigmoid(self) -> NamedTensor:
        """1 / (1 + e^(−x))"""
    def sign(self) -> NamedTensor:
        """−1, 0 or 1: the sign of x"""
    def signbit(self) -> NamedTensor:
        """whether the sign is negative, as −0.0's is"""
    def silu(self) -> NamedTensor:
        """x · sigmoid(x), also known as swish"""
    def sin(self) -> NamedTensor:
        """the sine of an angle in radians"""
    def sinh(self) -> NamedTensor:
        """the hyperbolic sine"""
    @property
    def sizes(self) -> dict[str, _int]:
        """The names of the dimensions ↦ their lengths."""
    def slice(self, **parts: builtins.slice) -> NamedTensor:
        """A part of dimensions: `x.slice(batch=slice(0, 2))`."""
    @overload
    def softmax(self, axis: str, *, dtype: Any = None) -> NamedTensor:
        """exp(x), divided by its sum along an axis. dtype: of the elements before."""
    @overload
    def softmax(self, dim: str, *, dtype: Any = None) -> NamedTensor:
        """exp(x), divided by its sum along an axis. dtype: of the elements before."""
    def softplus(self, beta: _float = 1.0, threshold: _float = 20.0) -> NamedTensor:
        """log(1 + exp(beta · x)) / beta; x where beta · x is above the threshold."""
    @overload
    def sort(self, axis: str, *, descending: _bool = False, stable: _bool = True) -> Any:
        """The elements in order along an axis, and their indices. Equal elements always keep their order; NaN is the largest."""
    @overload
    def sort(self, dim: str, *, descending: _bool = False, stable: _bool = True) -> Any:
        """The elements in order along an axis, and their indices. Equal elements always keep their order; NaN is the largest."""
    def sqrt(self) -> NamedTensor:
        """the square root"""
    @overload
    def std(self, axis: Sequence[str] | str | None = None, *, correction: _float = 1, keepdims: _bool = False) -> NamedTensor:
        """The square root of `var`."""
    @overload
    def std(self, dim: Sequence[str] | str | None = None, *, correction: _float = 1, keepdim: _bool = False) -> NamedTensor:
        """The square root of `var`."""
    def sub(self, other: NamedLike, *, alpha: Number = 1) -> NamedTensor:
        """x − alpha · other."""
    @overload
    def sum(self, axis: Sequence[str] | str | None = None, *, keepdims: _bool = False, dtype: Any = None) -> NamedTensor:
        """The sum over axes (all, if none is given); integers are summed as int64. dtype: of the elements before."""
    @overload
    def sum(self, dim: Sequence[str] | str | None = None, *, keepdim: _bool = False, dtype: Any = None) -> NamedTensor:
        """The sum over axes (all, if none is given); integers are summed as int64. dtype: of the elements before."""
    def tan(self) -> NamedTensor:
        """the tangent of an angle in radians"""
    def tanh(self) -> NamedTensor:
        """the hyperbolic tangent"""
    @property
    def tensor(self) -> Tensor:
        """The same elements as a Tensor without names."""
    def thresholded_relu(self, *, alpha: Any = 1.0) -> NamedTensor:
        """x where it is greater than alpha, 0 elsewhere"""
    def to(self, *targets: Any, device: str | Device | None = None, dtype: Any = None) -> NamedTensor:
        """The tensor on another device, or in another dtype, or both, as `to` of Tensor."""
    def transpose(self, name0: str, name1: str) -> NamedTensor:
        """Two dimensions change places."""
    def true_divide(self, other: NamedLike) -> NamedTensor:
        """x / other"""
    def trunc(self) -> NamedTensor:
        """the whole number without the fraction"""
    def unflatten(self, name: str, **sizes: Dim) -> NamedTensor:
        """A dimension as several: `x.unflatten("pixels", height=28, width=28)`; one of the sizes may be -1."""
    @overload
    def var(self, axis: Sequence[str] | str | None = None, *, correction: _float = 1, keepdims: _bool = False) -> NamedTensor:
        """The mean square of the distances from the mean over axes; the sum is divided by the count less `correction`."""
    @overload
    def var(self, dim: Sequence[str] | str | None = None, *, correction: _float = 1, keepdim: _bool = False) -> NamedTensor:
        """The mean square of the distances from the mean over axes; the sum is divided by the count less `correction`."""
    def where(self, condition: NamedLike, other: NamedLike) -> NamedTensor:
        """The elements where a condition holds, and those of `other` elsewhere."""
