"""Steps that draw one more node of a random Graph: what is computed, compared, moved, summed and reduced; see sketch.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from networks.random_graphs.sketch import (
    WHOLE,
    Sketch,
    Step,
    axis_in,
    by_name,
    filled,
    is_float,
    is_number,
    numbers,
    open_sizes,
)
from singe.dtypes import FLOATS, INTS, SINGLES, STORED, bool_, float8_e8m0fnu, float16, float32, float64, int64
from singe.shapes import Size, at_least, symbols

# --- elementwise -----------------------------------------------------------------------------------------------------


def unary(s: Sketch) -> None:
    x = s.pick(is_float)
    if x is None:
        return
    op, needs, exact, after = s.one_of(*UNARY)
    if needs(s.bound[x]) and (op not in ("erf", "gelu") or x.dtype in SINGLES):
        exact = exact and x in s.exact
        bound = after(s.bound[x])
        if op == "log":
            x = s.b.add(s.b.abs(x), s.b.const(0.5, x.dtype))
        elif op == "sqrt":
            x = s.b.abs(x)
        s.add(by_name(s.b, op, x), exact, bound)


UNARY: Final[list[tuple[str, Callable[[float], bool], bool, Callable[[float], float]]]] = [
    ("neg", lambda m: True, True, lambda m: m),
    ("abs", lambda m: True, True, lambda m: m),
    ("relu", lambda m: True, True, lambda m: m),
    ("exp", lambda m: m <= 4, False, lambda m: float(np.exp(m))),
    ("tanh", lambda m: True, False, lambda m: 1.0),
    ("sigmoid", lambda m: True, False, lambda m: 1.0),
    ("erf", lambda m: True, False, lambda m: 1.0),
    ("gelu", lambda m: True, False, lambda m: m),
    ("log", lambda m: m < 1e4, False, lambda m: 10.0),
    ("sqrt", lambda m: m < 1e4, False, lambda m: m + 1),
    ("hard_sigmoid", lambda m: True, False, lambda m: 1.0),
]


def whole_unary(s: Sketch) -> None:
    x = s.pick(lambda n: n in s.exact and is_number(n))
    if x is None:
        return
    among = ["abs", "sign", "relu"] if x.dtype.is_int else ["floor", "ceil", "round", "sign"]
    op = s.one_of(*among, "neg", *(("bitwise_not",) if x.dtype.is_int else ()))
    s.add(by_name(s.b, op, x), True, s.bound[x] + 1)


def binary(s: Sketch) -> None:
    x = s.pick(is_number)
    y = s.partner(x) if x is not None else None
    if x is None or y is None:
        return
    op = s.one_of("add", "sub", "mul", "minimum", "maximum")
    a, b = (x, y) if s.chance(0.5) else (y, x)
    bound = s.bound[a] * s.bound[b] if op == "mul" else s.bound[a] + s.bound[b]
    s.add(by_name(s.b, op, a, b), {a, b} <= s.exact, bound)


def divide(s: Sketch) -> None:
    """A division by a constant, or for integers a bitwise op."""
    x = s.pick(is_number)
    if x is None:
        return
    if x.dtype.is_int and s.chance(0.5):
        y = s.partner(x)
        if y is not None:
            s.add(by_name(s.b, s.one_of("bitwise_and", "bitwise_or", "bitwise_xor"), x, y), True, 2.0**64)
        return
    by = s.one_of(1, 2, 3) if x.dtype.is_int else s.one_of(1.0, -2.0, 3.0)
    s.add(s.b.div(x, s.b.const(by, x.dtype)), False, s.bound[x])


def with_constant(s: Sketch) -> None:
    """An op with a constant: a number, often 0 or 1, or one number for each channel."""
    x = s.pick(lambda n: is_number(n) or n.dtype is bool_)
    if x is None:
        return
    last = x.shape[-1] if x.shape else 1
    if isinstance(last, int) and s.chance(0.4):
        value = s.rng.integers(0 if x.dtype.kind == "uint" else -2, 3, (last,))
    else:
        value = np.asarray(s.one_of(0, 0, 1, 1, 2))
    if x.dtype.held:
        constant = s.b.cast(s.b.const(value.astype(np.float32)), to=x.dtype)
    else:
        constant = s.b.const(value.astype(x.dtype.numpy))
    if x.dtype is bool_:
        s.add(s.b.logical_or(x, constant), True, 1)
        return
    op = s.one_of("add", "sub", "mul", "maximum")
    bound = s.bound[x] * 2 if op == "mul" else s.bound[x] + 2
    s.add(by_name(s.b, op, *((x, constant) if s.chance(0.7) else (constant, x))), x in s.exact, bound)


def compare(s: Sketch) -> None:
    x = s.pick(lambda n: n in s.exact)
    y = s.partner(x) if x is not None else None
    if x is not None and y is not None and y in s.exact:
        ops = ("equal", "less", "greater_equal", "less_equal", "greater") if is_number(x) else ("equal",)
        s.add(by_name(s.b, s.one_of(*ops), x, y), True, 1)


def logic(s: Sketch) -> None:
    x = s.pick(lambda n: n.dtype is bool_)
    y = s.partner(x) if x is not None else None
    if x is not None and y is not None:
        s.add(by_name(s.b, s.one_of("logical_and", "logical_or", "logical_xor"), x, y), True, 1)
        s.add(s.b.logical_not(x), True, 1)


def choose(s: Sketch) -> None:
    c = s.pick(lambda n: n.dtype is bool_)
    x = s.pick(lambda n: c is not None and n.dtype is not bool_ and n.shape == c.shape)
    y = s.partner(x) if x is not None else None
    if c is not None and x is not None and y is not None:
        s.add(s.b.where(c, x, y), {x, y} <= s.exact, max(s.bound[x], s.bound[y]))


def convert(s: Sketch) -> None:
    x = s.pick(lambda n: n in s.exact or (is_float(n) and s.chance(0.3)))
    if x is None:
        return
    to = s.one_of(*(s.kinds if x in s.exact else [k for k in s.kinds if k in FLOATS]))
    bound = s.bound[x]
    if to is float8_e8m0fnu or (is_float(x) and to.is_int and bound >= 2**31):
        return
    largest = 8.0 if to in STORED else WHOLE.get(to.name, 0)
    exact = x in s.exact and (not to.is_float or bound <= largest)
    if exact or to in FLOATS:
        s.add(s.b.cast(x, to=to), exact, 2.0**64 if to.is_int and x.dtype.kind != "bool" else bound)


def of_size(s: Sketch) -> None:
    """A dimension as a value: a scalar, or an element of a shape's vector."""
    x = s.pick(lambda n: bool(symbols(n.shape)))
    if x is None:
        return
    if s.chance(0.3):
        s.add(s.b.shape_of(x), True, 1e4)
        return
    d = s.one_of(*(d for d in x.shape if isinstance(d, Size)))
    number = s.b.const(d)
    s.add(number, True, 1e4)
    if is_number(x) and x.dtype not in (float16,) and s.bound[x] < 50 and x.dtype.name != "bfloat16":
        s.add(by_name(s.b, s.one_of("add", "mul"), x, s.b.cast(number, to=x.dtype)), x in s.exact, s.bound[x] * 40 + 40)


# --- movement --------------------------------------------------------------------------------------------------------


def reshape(s: Sketch) -> None:
    x = s.pick(lambda n: len(n.shape) >= 2)
    if x is None:
        return
    i = int(s.rng.integers(len(x.shape) - 1))
    pick = s.rng.random()
    if pick < 0.4:
        shape = (*x.shape[:i], x.shape[i] * x.shape[i + 1], *x.shape[i + 2 :])
    elif pick < 0.6:
        shape = (*x.shape[:i], 1, *x.shape[i:]) if s.chance(0.5) else tuple(d for d in x.shape if d != 1)
    else:
        d = x.shape[i + 1]
        k = next((k for k in (2, 3, 4) if isinstance(d, int) and d % k == 0 and d), 1)
        shape = (*x.shape[: i + 1], d // k, k, *x.shape[i + 2 :])
    s.add(s.b.reshape(x, shape=shape), x in s.exact, s.bound[x])


def transpose(s: Sketch) -> None:
    x = s.pick(lambda n: len(n.shape) >= 2)
    if x is not None:
        s.add(s.b.transpose(x, perm=tuple(map(int, s.rng.permutation(len(x.shape))))), x in s.exact, s.bound[x])


def expand(s: Sketch) -> None:
    x = s.pick(lambda n: len(n.shape) <= 3)
    if x is not None:
        lengths = [s.one_of(2, 3, *open_sizes(s)) if d == 1 and s.chance(0.7) else d for d in x.shape]
        front = (s.one_of(1, 2, *open_sizes(s)),) if s.chance(0.5) else ()
        s.add(s.b.expand(x, shape=(*front, *lengths)), x in s.exact, s.bound[x])


def cut(s: Sketch) -> None:
    x = s.pick(lambda n: any(isinstance(d, int) and d > 1 for d in n.shape))
    if x is None:
        return
    axis = s.one_of(*(i for i, d in enumerate(x.shape) if isinstance(d, int) and d > 1))
    starts, steps, sizes = [0] * len(x.shape), [1] * len(x.shape), list(x.shape)
    d = int(x.shape[axis])  # pyright: ignore[reportArgumentType]
    steps[axis] = s.one_of(1, 2, -1)
    starts[axis] = int(s.rng.integers(d))
    room = (starts[axis] if steps[axis] < 0 else d - 1 - starts[axis]) // abs(steps[axis]) + 1
    sizes[axis] = int(s.rng.integers(1, room + 1))
    s.add(s.b.slice(x, starts=tuple(starts), steps=tuple(steps), sizes=tuple(sizes)), x in s.exact, s.bound[x])


def open_cut(s: Sketch) -> None:
    """A slice of an open axis: backwards, every other element, or without the first."""
    x = s.pick(lambda n: any(isinstance(d, Size) for d in n.shape))
    if x is None:
        return
    axis = s.one_of(*(i for i, d in enumerate(x.shape) if isinstance(d, Size)))
    d = x.shape[axis]
    rank = len(x.shape)
    ways = [(d - 1, -1, d), (0, 2, (d + 1) // 2)]
    if at_least(d, 1):
        ways.append((1, 1, d - 1))
    start, step, count = s.one_of(*ways)
    s.add(
        s.b.slice(
            x,
            starts=tuple(start if i == axis else 0 for i in range(rank)),
            steps=tuple(step if i == axis else 1 for i in range(rank)),
            sizes=tuple(count if i == axis else e for i, e in enumerate(x.shape)),
        ),
        x in s.exact,
        s.bound[x],
    )


def split(s: Sketch) -> None:
    """A tensor split into two parts along an axis."""
    x = s.pick(lambda n: any(isinstance(d, int) and d > 1 for d in n.shape))
    if x is None:
        return
    axis = s.one_of(*(i for i, d in enumerate(x.shape) if isinstance(d, int) and d > 1))
    at = s.whole(1, int(x.shape[axis]) - 1)  # pyright: ignore[reportArgumentType]
    for start, length in ((0, at), (at, x.shape[axis] - at)):
        starts = tuple(start if i == axis else 0 for i in range(len(x.shape)))
        sizes = tuple(length if i == axis else d for i, d in enumerate(x.shape))
        s.add(s.b.slice(x, starts=starts, steps=(1,) * len(starts), sizes=sizes), x in s.exact, s.bound[x])


def pad(s: Sketch) -> None:
    x = s.pick(lambda n: (is_number(n) or n.dtype is bool_) and len(n.shape) >= 1)
    if x is None:
        return
    axis = axis_in(s, x)
    mode = s.one_of("constant", "constant", "reflect", "edge", "wrap")
    d = x.shape[axis]
    if mode != "constant" and not (isinstance(d, int) and d > 2):
        return
    before, after = ([0] * len(x.shape) for _ in range(2))
    before[axis], after[axis] = s.whole(0, 2), s.one_of(0, 1, 2, *open_sizes(s)[:1] * (mode == "constant"))
    s.add(
        s.b.pad(x, s.b.const(s.one_of(0, 1), x.dtype), before=tuple(before), after=tuple(after), mode=mode),
        x in s.exact,
        max(1, s.bound[x]),
    )


def concat(s: Sketch) -> None:
    x = s.pick(lambda n: len(n.shape) >= 1)
    if x is None:
        return
    axis = axis_in(s, x)
    same = [
        n
        for n in s.nodes
        if n.dtype is x.dtype
        and len(n.shape) == len(x.shape)
        and all(a == b or i == axis for i, (a, b) in enumerate(zip(n.shape, x.shape, strict=True)))
    ]
    parts = [s.one_of(*same) for _ in range(int(s.rng.integers(2, 4)))]
    s.add(s.b.concat(*parts, axis=axis), all(p in s.exact for p in parts), max(s.bound[p] for p in parts))


def gather(s: Sketch) -> None:
    x = s.pick(lambda n: len(n.shape) >= 1 and any(filled(n, a) for a in range(len(n.shape))))
    if x is None:
        return
    axis = s.one_of(*(a for a in range(len(x.shape)) if filled(x, a)))
    d = int(x.shape[axis]) if isinstance(x.shape[axis], int) else 1  # pyright: ignore[reportArgumentType]
    index = s.pick(lambda n: n.dtype.is_int and n.dtype in INTS and len(n.shape) <= 2) if s.chance(0.4) else None
    if index is None:
        index = s.b.const(s.rng.integers(-d, d, size=s.one_of((2,), (3,), (2, 2), ())), int64)
    else:
        low, high = s.b.const(0, index.dtype), s.b.const(min(d - 1, 100), index.dtype)
        index = s.b.minimum(s.b.maximum(index, low), high)
    s.add(s.b.gather(x, index, axis=axis), x in s.exact, s.bound[x])


# --- sums and products -----------------------------------------------------------------------------------------------


def reduce(s: Sketch) -> None:
    x = s.pick(lambda n: is_number(n) and len(n.shape) >= 1)
    if x is None:
        return
    axes = tuple(sorted({axis_in(s, x), axis_in(s, x)}))
    whole = all(filled(x, a) for a in axes)
    op = s.one_of("reduce_sum", *(("reduce_max", "reduce_min", "reduce_mean") if whole else ("reduce_sum",)))
    bound = s.bound[x] * 200 if op == "reduce_sum" else s.bound[x]
    if op == "reduce_sum" and (x.dtype.bits == 16 and is_float(x)):
        return
    keep = by_name(s.b, op, x, axes=axes)
    exact = x in s.exact and op != "reduce_mean"
    s.add(keep, exact, bound)
    if s.chance(0.5):
        s.add(s.b.reshape(keep, shape=tuple(d for i, d in enumerate(x.shape) if i not in axes)), exact, bound)


def running(s: Sketch) -> None:
    x = s.pick(
        lambda n: is_number(n) and len(n.shape) >= 1 and n.dtype not in (float16,) and n.dtype.name != "bfloat16"
    )
    if x is not None:
        op = s.one_of("running_sum", "running_max")
        s.add(
            by_name(s.b, op, x, axis=axis_in(s, x), reverse=s.chance(0.5)),
            x in s.exact,
            s.bound[x] * (200 if op == "running_sum" else 1),
        )


def normalise(s: Sketch) -> None:
    x = s.pick(lambda n: n.dtype in (float32, float64) and len(n.shape) >= 1)
    if x is None:
        return
    if s.chance(0.5):
        s.add(s.b.softmax(x, axis=axis_in(s, x)), False, 1)
        return
    last = len(x.shape) - 1
    if not filled(x, last):
        return
    mean = s.b.reduce_mean(x, axes=(last,))
    centred = s.b.sub(x, mean)
    variance = s.b.reduce_mean(s.b.mul(centred, centred), axes=(last,))
    s.add(mean, False, s.bound[x])
    s.add(variance, False, 4 * s.bound[x] ** 2)
    s.add(s.b.div(centred, s.b.sqrt(s.b.add(variance, s.b.const(0.1, x.dtype)))), False, 20)


def dot(s: Sketch) -> None:
    x = s.pick(
        lambda n: (
            is_float(n)
            and len(n.shape) >= 2
            and isinstance(n.shape[-1], int)
            and n.shape[-1] <= 64
            and s.bound[n] < 100
        )
    )
    if x is None:
        return
    k, n = int(x.shape[-1]), s.one_of(1, 2, 5, 8, 17)  # pyright: ignore[reportArgumentType]
    w = s.b.cast(s.b.const((s.rng.uniform(-1, 1, (k, n)) / np.sqrt(max(k, 1))).astype(np.float32)), to=x.dtype)
    y = s.b.dot(x, w)
    if s.chance(0.7):
        y = s.b.add(y, s.b.cast(s.b.const(s.rng.uniform(-1, 1, (n,)).astype(np.float32)), to=x.dtype))
    s.add(y, False, s.bound[x] * np.sqrt(k) + 1)


def matmul(s: Sketch) -> None:
    """The product of a value and its own transpose: both lengths may be open."""
    x = s.pick(lambda n: n.dtype in (float32, float64) and 2 <= len(n.shape) <= 4 and s.bound[n] < 8)
    if x is not None:
        rank = len(x.shape)
        turned = s.b.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))
        pair = (x, turned) if s.chance(0.5) else (turned, x)
        s.add(s.b.matmul(*pair), x in s.exact, s.bound[x] ** 2 * 30)


def conv(s: Sketch) -> None:
    x = s.pick(
        lambda n: (
            n.dtype is float32
            and 3 <= len(n.shape) <= 5
            and isinstance(n.shape[1], int)
            and n.shape[1] > 0
            and s.bound[n] < 100
        )
    )
    if x is None:
        return
    spaces = len(x.shape) - 2
    channels = int(x.shape[1])  # pyright: ignore[reportArgumentType]
    group = s.one_of(1, channels, *(g for g in (2, 3) if channels % g == 0))
    outputs = group * s.one_of(1, 2, 3) if s.chance(0.6) else channels
    outputs -= outputs % group
    window = tuple(min(s.whole(1, 3), d) if isinstance(d, int) and d else s.one_of(1, 2) for d in x.shape[2:])
    w = s.b.const(
        s.rng.uniform(-1, 1, (outputs, channels // group, *window)) / np.sqrt(np.prod(window) * channels / group),
        float32,
    )
    bias = s.b.const(s.rng.uniform(-1, 1, (outputs,)), float32) if s.chance(0.7) else None
    pads = [tuple(1 if not at_least(d, 1) else s.whole(0, 1) for d in x.shape[2:]) for _ in range(2)]
    strides = tuple(map(int, s.rng.integers(1, 3, spaces)))
    y = s.b.conv(x, w, bias, strides=strides, dilations=(1,) * spaces, before=pads[0], after=pads[1], group=group)
    s.add(y, False, s.bound[x] * 30**0.5 + 1)


def pool(s: Sketch) -> None:
    x = s.pick(lambda n: is_float(n) and len(n.shape) >= 2 and numbers(n.shape[1:]))
    if x is not None:
        window = (1, *(min(2, int(d)) if d else 1 for d in x.shape[1:]))  # pyright: ignore[reportArgumentType]
        ones, none = (1,) * len(x.shape), (0,) * len(x.shape)
        s.add(
            s.b.max_pool(x, window=window, strides=window, dilations=ones, before=none, after=none),
            x in s.exact,
            s.bound[x],
        )


def resize(s: Sketch) -> None:
    x = s.pick(lambda n: n.dtype is float32 and len(n.shape) == 4 and numbers(n.shape[2:]) and all(n.shape[2:]))
    if x is not None:
        mode, factor = s.one_of("nearest", "linear", "cubic"), s.one_of(2.0, 1.5)
        sizes = (*x.shape[:2], *(int(d * factor) for d in x.shape[2:]))  # pyright: ignore[reportOperatorIssue]
        s.add(s.b.resize(x, sizes=sizes, scales=(1.0, 1.0, factor, factor), mode=mode), False, 2 * s.bound[x])


STEPS: Final[Sequence[Step]] = (
    unary, unary, whole_unary, binary, binary, divide, with_constant, compare, logic, choose, convert, convert, of_size,
    reshape, transpose, expand, cut, open_cut, split, pad, concat, gather, reduce, running, normalise, dot, matmul, conv,
    pool, resize,
)  # fmt: skip
