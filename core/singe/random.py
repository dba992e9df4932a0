"""Random tensors from keys: `import singe`, then `singe.random.normal(key, (2, 3))`.

A key is a number, or a tensor of two uint32 numbers, which `key` makes of a number. Equal keys give equal numbers, which
each device makes by itself (ops/opaque/random.py); `split` makes new keys of one. A traced function may take its key as an
input, so that a compiled model draws the numbers that the caller asks for. `rand`, `randn`, `randint`, `randperm`,
`multinomial` and `poisson` take the next key of a sequence that `manual_seed` begins, as in PyTorch; in a function that is
traced they draw new numbers in every run (tensors/default_keys.py says of what).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from .dtypes import DType, float32, int64, uint32
from .dtypes import dtype as dtype_of
from .errors import InputError
from .ir.scalar import Number
from .ops import ROWS
from .runtime import random_keys
from .runtime.device import Device
from .runtime.random_keys import WORD
from .shapes import Dim, whole
from .tensors.argument_errors import check_functions as _check_functions
from .tensors.calls import apply_row
from .tensors.default_keys import STREAM_OF_KEYS, next_key, number_words, refuse_host_draws
from .tensors.functions.creation import tensor
from .tensors.methods.attach import accept_torch_names
from .tensors.nodes.shaping import given_sizes, made_shape
from .tensors.numpy_fallback import numpy_fallback
from .tensors.tensor import Tensor
from .tensors.tracing import present_tracer, running_again

__all__ = [
    "bernoulli", "integers", "key", "manual_seed", "multinomial", "normal", "permutation", "poisson", "rand", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "randperm", "split", "uniform",
]  # fmt: skip

Key: TypeAlias = SupportsIndex | Tensor
Shape: TypeAlias = Sequence[Dim]


# --- keys ------------------------------------------------------------------------------------------------------------


def key(seed: int, device: str | Device | None = None) -> Tensor:
    """The key of a seed, of which 64 bits count, as a tensor on a device."""
    return tensor(list(number_words(seed)), uint32, device)


def split(key_argument: Key, count: int = 2, *, device: str | Device | None = None) -> Tensor:
    """`count` new keys of one; use each for one draw."""
    return _drawn("random_bits", key_argument, device, shape=(count, 2), stream=STREAM_OF_KEYS)


def _drawn(row: str, key_argument: Key, device: str | Device | None, **attrs: Any) -> Tensor:
    """What a row draws with a key."""
    return apply_row(ROWS[row], (_tensor(key_argument, device),), **attrs)


def _tensor(key_argument: Key, device: str | Device | None) -> Tensor:
    if isinstance(key_argument, Tensor):
        return key_argument if device is None else key_argument.to(device)
    if isinstance(key_argument, bool) or not isinstance(key_argument, SupportsIndex):
        raise InputError(
            f"random: got the key {key_argument!r:.40}, expected an integer, or a tensor of two uint32 numbers"
        )
    return key(operator.index(key_argument), device)


# --- distributions ---------------------------------------------------------------------------------------------------


def uniform(
    key: Key, shape: Shape, low: Number = 0.0, high: Number = 1.0, *, dtype: Any = float32, device: str | Device | None = None
) -> Tensor:  # fmt: skip
    """Numbers from low (inclusive) to high (exclusive), all equally likely."""
    kind = _floating(dtype)
    y = _drawn("random_unit", key, device, shape=made_shape(shape, "random"))
    if (low, high) == (0.0, 1.0) and kind.bits >= 32:
        return y.cast(kind)
    drawn = (y * (high - low) + low).cast(kind)
    return drawn.minimum(_below(high, kind)) if low < high else drawn  # rounding may have reached high


def _below(high: Number, kind: DType) -> float:
    """The largest number of a floating-point dtype that is less than another number."""
    if kind.coding:
        mantissa, least = kind.coding.mantissa, kind.coding.least_power
    else:
        facts = np.finfo(kind.numpy)
        mantissa, least = int(facts.nmant), int(facts.minexp)
    if high == 0:
        return -math.ldexp(1, least)
    part, power = math.frexp(high)
    step = math.ldexp(1, max(power - (2 if part == 0.5 else 1), least) - mantissa)  # closer below a power of two
    return (math.ceil(high / step) - 1) * step


def normal(
    key: Key, shape: Shape, mean: Number = 0.0, std: Number = 1.0, *, dtype: Any = float32, device: str | Device | None = None
) -> Tensor:  # fmt: skip
    """Numbers of a normal distribution."""
    y = _drawn("random_normal", key, device, shape=made_shape(shape, "random"))
    return (y if (mean, std) == (0.0, 1.0) else y * std + mean).cast(_floating(dtype))


def integers(
    key: Key, shape: Shape, low: int, high: int, *, dtype: Any = int64, device: str | Device | None = None
) -> Tensor:  # fmt: skip
    """Integers from low (inclusive) to high (exclusive). The likelihoods of n numbers differ by less than n / 2³²."""
    if not 0 < high - low <= WORD:
        raise InputError(f"random: integers from {low} to {high}; expected a range of 1 to 2**32 - 1 numbers")
    bits = _drawn("random_bits", key, device, shape=made_shape(shape, "random"))
    return (bits % (high - low)).cast(int64).add(low).cast(dtype)


def bernoulli(key: Key, shape: Shape, p: Any = 0.5, *, device: str | Device | None = None) -> Tensor:
    """True with probability p, else False."""
    return uniform(key, shape, device=device) < p


def permutation(key: Key, n: int, *, device: str | Device | None = None) -> Tensor:
    """The integers below n in random order."""
    return _drawn("random_bits", key, device, shape=made_shape((whole(n, "random", "n"),), "random")).argsort()


def _floating(dtype_argument: Any) -> DType:
    kind = dtype_of(dtype_argument)
    if not kind.is_float:
        raise InputError(f"random: got {kind}, expected a floating-point dtype")
    return kind


# --- without a key ---------------------------------------------------------------------------------------------------


def manual_seed(seed: SupportsIndex) -> None:
    """Begin the shared sequence, of which everything draws that got no key, seed or generator of its own: `rand` and its
    kin, layers, their first weights, orders and changes of data, compiled functions. Equal seeds, equal numbers."""
    if running_again(present_tracer()) is not None:
        raise InputError(
            "manual_seed: a compiled function would seed only when it is traced, not in each run; call it outside, before the run, "
            "or draw in `with nn.drawing(key):` inside, with a key that is an input"
        )
    random_keys.manual_seed(seed)


@accept_torch_names
def rand(*shape: Any, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    """Numbers from 0 to 1, with the next key: rand(2, 3) or rand((2, 3))."""
    return uniform(next_key("rand", device), given_sizes(shape, "rand"), dtype=dtype)


@accept_torch_names
def randn(*shape: Any, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    """Numbers of the normal distribution, with the next key: randn(2, 3) or randn((2, 3))."""
    return normal(next_key("randn", device), given_sizes(shape, "randn"), dtype=dtype)


@accept_torch_names
def rand_like(x: Tensor, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """`rand` with x's shape and (unless given) dtype and device."""
    return rand(x.shape, dtype=dtype or x.dtype, device=device or x.device)


@accept_torch_names
def randn_like(x: Tensor, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """`randn` with x's shape and (unless given) dtype and device."""
    return randn(x.shape, dtype=dtype or x.dtype, device=device or x.device)


@accept_torch_names
def randint(
    low: int, high: int | Shape | None = None, shape: Shape | None = None, *, dtype: Any = int64, device: str | Device | None = None
) -> Tensor:  # fmt: skip
    """Integers from low to high − 1, with the next key; randint(high, shape) starts at 0."""
    if isinstance(high, Sequence):
        high, shape = None, high
    if shape is None:
        raise InputError("randint: got no shape, expected one, as in randint(0, 10, (2, 3)) or randint(10, (2, 3))")
    first, end = (0, low) if high is None else (low, high)
    return integers(next_key("randint", device), shape, first, end, dtype=dtype)


@accept_torch_names
def randint_like(
    x: Tensor, low: int, high: int | None = None, *, dtype: Any = None, device: str | Device | None = None
) -> Tensor:
    """`randint` with x's shape and (unless given) device and dtype; randint_like(x, high) starts at 0."""
    first, end = (0, low) if high is None else (low, high)
    return integers(next_key("randint_like", device or x.device), x.shape, first, end, dtype=dtype or x.dtype)


def poisson(rates: Tensor) -> Tensor:
    """Numbers of a Poisson distribution of each rate, drawn on the host with the next key."""
    refuse_host_draws("poisson")
    generator = np.random.default_rng(next_key("poisson").numpy())

    def draw(array: np.ndarray) -> np.ndarray:
        if not (array >= 0).all():
            raise InputError(f"poisson: the least rate is {array.min()}, expected rates of 0 or more")
        return generator.poisson(array).astype(array.dtype)

    return numpy_fallback("poisson", draw, rates)


def randperm(n: int, *, device: str | Device | None = None) -> Tensor:
    """The integers below n in random order, with the next key."""
    return permutation(next_key("randperm", device), n)


def multinomial(weights: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    """Indices along the last axis of weights, which need not sum to 1, drawn by their shares with the next key; without
    replacement, none twice."""
    count = weights.shape[-1]
    if weights.ndim not in (1, 2) or num_samples < 1 or not (replacement or num_samples <= count):
        raise InputError(
            f"multinomial: {num_samples} of weights {weights.shape}; expected a vector or rows, and from 1 to {count} samples"
        )
    if replacement:
        so_far = weights.cumsum(-1)
        places = rand(*weights.shape[:-1], num_samples, device=weights.device) * so_far[..., -1:]
        return (so_far.unsqueeze(-2) <= places.unsqueeze(-1)).sum(-1).clip(0, count - 1)
    drawn = rand(*weights.shape, device=weights.device).clip(1e-30, 1)
    return (weights.log() - (-drawn.log()).log()).topk(num_samples, -1).indices


def __dir__() -> list[str]:
    return list(__all__)


_check_functions(globals())
