"""Random numbers that need no state: each is a function of a key, two uint32 numbers, and of its place.

They are those of Threefry-2x32 with 20 rounds, as in JAX: the same on every device, in any order. (`random_uniform`, in
opaque.py, gives NumPy's numbers of a seed, one after the other, on the host.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from ...dtypes import float32, int32, uint32
from ...errors import ShapeError
from ...ir import scalar
from ...ir.affine import flatten
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const
from ...shapes import Shape, same, show
from ..kinds import Composite, Read, Shaped, View, register

ROTATIONS: Final = (13, 15, 26, 6, 17, 29, 16, 24)
ROUNDS: Final = 20
PARITY: Final = 0x1BD11BDA
_EXPRESSIONS: Final = {"add": scalar.add, "xor": scalar.xor, "or": scalar.or_, "shl": scalar.shl, "shr": scalar.shr}


def _mixed(words: Mapping[str, Callable[..., Any]], number: Callable[[int], Any], key: Any, counter: Any) -> Any:
    """The first of the two numbers that Threefry makes of a counter, with these functions for the words."""
    add, xor = words["add"], words["xor"]
    keys = (*key, xor(xor(key[0], key[1]), number(PARITY)))
    a, b = add(counter[0], keys[0]), add(counter[1], keys[1])
    for turn in range(ROUNDS):
        by = ROTATIONS[turn % len(ROTATIONS)]
        a = add(a, b)
        b = xor(words["or"](words["shl"](b, number(by)), words["shr"](b, number(32 - by))), a)
        if turn % 4 == 3:
            step = turn // 4 + 1
            a, b = add(a, keys[step % 3]), add(add(b, keys[(step + 1) % 3]), number(step))
    return a


def _shape(key: Shaped, shape: Shape, stream: int = 0) -> Shape:
    if len(key.shape) != 1 or not same(key.shape[0], 2, "random_bits"):
        raise ShapeError(f"random_bits: the key has the shape {show(key.shape)}, expected two numbers")
    return shape


def _value(coords: Sequence[Expr], read: Read, key: Shaped, shape: Shape, stream: int = 0) -> Expr:
    place = scalar.cast(flatten(coords, shape), uint32)
    words = [read(0, [const(k, int32)]) for k in range(2)]
    return _mixed(_EXPRESSIONS, lambda n: const(n, uint32), words, (const(stream, uint32), place))


def _evaluate(xp: ArrayAdapter, key: Array, shape: Sequence[int], stream: int = 0) -> Array:
    shape = tuple(map(int, shape))
    places = xp.arange(math.prod(shape), uint32)
    words = [xp.full(places.shape, k, uint32) for k in (key[0], key[1], stream)]
    found = _mixed(xp.words, cache(lambda n: xp.asarray(n, uint32)[()]), words[:2], (words[2], places))
    return xp.reshape(found, shape)


def _unit(b: Any, key: Any, shape: Shape, stream: int) -> Any:
    bits = b.bitwise_right_shift(b.random_bits(key, shape=shape, stream=stream), b.const(8, uint32))
    return b.mul(b.cast(bits, to=float32), b.const(2.0**-24, float32))


def _normal(b: Any, key: Any, *, shape: Shape) -> Any:
    """By Box and Muller: a distance and an angle. The distance is of a number above 0."""
    above = b.add(_unit(b, key, shape, 0), b.const(2.0**-24, float32))
    distance = b.sqrt(b.mul(b.log(above), b.const(-2.0, float32)))
    return b.mul(distance, b.cos(b.mul(_unit(b, key, shape, 1), b.const(2 * math.pi, float32))))


register(
    View(name="random_bits", public=False, doc="random uint32 numbers in a given shape, from a key of two", shape=_shape, value=_value, evaluate=_evaluate,
         dtypes=(uint32,)),
    Composite(name="random_unit", public=False, doc="random float32 numbers from 0 (included) to 1 in a given shape, from a key of two uint32 numbers",
              lower=lambda b, key, *, shape: _unit(b, key, shape, 0), dtypes=(uint32,)),
    Composite(name="random_normal", public=False, doc="normally distributed float32 numbers in a given shape, from a key of two uint32 numbers",
              lower=_normal, dtypes=(uint32,), tolerance=64),
)  # fmt: skip
