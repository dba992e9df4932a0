"""Products of matrices, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from .each import Index, each
from .folds import places, window


def conv_last(
    x: np.ndarray, w: np.ndarray, strides: Any, dilations: Any, before: Any, after: Any, group: int
) -> np.ndarray:
    *taps, per_group, outputs = w.shape
    space = x.shape[1:-1]
    shape = [places(*facts) for facts in zip(space, taps, strides, dilations, before, after, strict=True)]

    @cache  # for all channels and items
    def met(where: Index) -> list[tuple[Index, Index]]:
        return list(window(where, space, taps, strides, dilations, before))

    def element(at: Index) -> Any:
        n, *where, o = at
        first = o // (outputs // group) * per_group
        pairs = met(tuple(where))
        terms = [x[(n, *place, slice(first, first + per_group))] @ w[(*tap, slice(None), o)] for tap, place in pairs]
        return np.sum(terms, dtype=x.dtype)

    return each((x.shape[0], *shape, outputs), x.dtype, element)


def conv(x: np.ndarray, w: np.ndarray, bias: Any = None, **facts: Any) -> np.ndarray:
    y = np.moveaxis(conv_last(np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2)), **facts), -1, 1)
    return y if bias is None else y + bias.reshape(-1, *(1,) * (x.ndim - 2))


def conv_transpose(
    x: np.ndarray, w: np.ndarray, bias: Any = None, *, strides: Any, dilations: Any, before: Any, sizes: Any, group: int
) -> np.ndarray:
    """Every input element adds the window, times its value, to the output."""
    channels, per_group, *taps = w.shape
    out = np.zeros((x.shape[0], per_group * group, *sizes), x.dtype)
    for n, c, *where in np.ndindex(*x.shape):
        first = c // (channels // group) * per_group
        for tap in np.ndindex(*taps):
            place = tuple(
                p * s + t * d - lo for p, s, t, d, lo in zip(where, strides, tap, dilations, before, strict=True)
            )
            if all(0 <= p < d for p, d in zip(place, sizes, strict=True)):
                out[(n, slice(first, first + per_group), *place)] += x[(n, c, *where)] * w[(c, slice(None), *tap)]
    return out if bias is None else out + bias.reshape(-1, *(1,) * (x.ndim - 2))


def _int8(row: np.ndarray, column: np.ndarray) -> float:
    """The sum over a row, in 7 bits, and a column of stored weights. The row's step and its roundings are in float32, as the
    op defines them."""
    row = row.astype(np.float32)
    high, low = np.float32(max([0, *row])), np.float32(min([0, *row]))
    step = np.float32(high * np.float32(1 / 127)) - np.float32(low * np.float32(1 / 127))
    inverse = np.float32(1) / step if step > 0 else np.float32(0)
    zero = round(float(-low * inverse))
    q = [min(127, max(0, round(float(v * inverse)) + zero)) for v in row]
    return sum((a - zero) * (int(w) - 128) for a, w in zip(q, column, strict=True)) * float(step)


def dot_int8(x: np.ndarray, w: np.ndarray, scale: np.ndarray) -> np.ndarray:
    shape = (*x.shape[:-1], w.shape[1])
    return each(shape, float, lambda at: _int8(x[at[:-1]], w[:, at[-1]]) * scale[at[-1]])


def conv_int8(
    x: np.ndarray, w: np.ndarray, scale: np.ndarray, strides: Any, dilations: Any, before: Any, after: Any
) -> np.ndarray:
    """Elements of the padding are 0, which is exact and within every row's range."""
    *taps, _, outputs = w.shape
    space = x.shape[1:-1]
    shape = [places(*facts) for facts in zip(space, taps, strides, dilations, before, after, strict=True)]

    def element(at: Index) -> Any:
        n, *where, o = at
        met = list(window(tuple(where), space, taps, strides, dilations, before))
        row, column = [x[(n, *place)] for _, place in met], [w[(*tap, slice(None), o)] for tap, _ in met]
        return _int8(np.array(row).ravel(), np.array(column).ravel()) * scale[o]

    return each((x.shape[0], *shape, outputs), float, element)


def gemm(
    x: np.ndarray,
    y: np.ndarray,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> np.ndarray:
    product = (x.T if trans_a else x) @ (y.T if trans_b else y) * x.dtype.type(alpha)
    return product if c is None else product + c * x.dtype.type(beta)


def batch_norm(x: np.ndarray, scale: Any, shift: Any, mean: Any, variance: Any, epsilon: float = 1e-5) -> np.ndarray:
    along = (-1, *(1,) * (x.ndim - 2))
    scale, shift, mean, variance = (p.reshape(along) for p in (scale, shift, mean, variance))
    return (x - mean) / np.sqrt(variance + epsilon) * scale + shift


ACTIVATIONS: Final[Mapping[str, Callable[[Any, float, float], Any]]] = {
    "affine": lambda x, alpha, beta: alpha * x + beta,
    "elu": lambda x, alpha, _: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "hardsigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "leakyrelu": lambda x, alpha, _: np.where(x < 0, alpha * x, x),
    "relu": lambda x, *_: np.maximum(x, 0),
    "scaledtanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "sigmoid": lambda x, *_: 1 / (1 + np.exp(-x)),
    "softplus": lambda x, *_: np.log1p(np.exp(x)),
    "softsign": lambda x, *_: x / (1 + np.abs(x)),
    "tanh": lambda x, *_: np.tanh(x),
    "thresholdedrelu": lambda x, alpha, _: np.where(x > alpha, x, 0),
}


def recurrent(op: str) -> Callable[..., tuple[np.ndarray, ...]]:
    """lstm, gru or rnn: one sequence after the other, one step after the other, gate by gate."""
    functions = {"lstm": 3, "gru": 2, "rnn": 1}[op]

    def reference(
        x: np.ndarray, w: np.ndarray, r: np.ndarray, *rest: np.ndarray, given: Sequence[str] = (),
        activations: Sequence[tuple[str, float, float]], direction: str = "forward", clip: float = 0.0, **options: bool,
    ) -> tuple[np.ndarray, ...]:  # fmt: skip
        named = dict(zip(given, rest, strict=True))
        (length, batch, _), (directions, rows, shown) = x.shape, r.shape
        projection = named.get("projection")
        hidden = shown if projection is None else projection.shape[2]
        gates = rows // hidden
        steps = np.zeros((length, directions, batch, shown))
        states, cells = np.zeros((directions, batch, shown)), np.zeros((directions, batch, hidden))
        for d, k in np.ndindex(directions, batch):
            f = [
                lambda v, a=a: ACTIVATIONS[a[0]](np.clip(v, -clip, clip) if clip else v, *a[1:])
                for a in activations[functions * d : functions * (d + 1)]
            ]
            bias = named["bias"][d] if "bias" in named else np.zeros(2 * rows)
            wb, rb = bias[:rows].reshape(gates, hidden), bias[rows:].reshape(gates, hidden)
            wd, rd = w[d].reshape(gates, hidden, -1), r[d].reshape(gates, hidden, shown)
            p = named["peepholes"][d].reshape(3, hidden) if "peepholes" in named else np.zeros((3, hidden))
            h = named["state"][d, k] if "state" in named else np.zeros(shown)
            c = named["cell"][d, k] if "cell" in named else np.zeros(hidden)
            count = int(named["lengths"][k]) if "lengths" in named else length
            backward = direction == "reverse" or (direction == "bidirectional" and d == 1)
            for t in reversed(range(count)) if backward else range(count):
                of_x, of_h = wd @ x[t, k] + wb, rd @ h + rb
                if op == "rnn":
                    h = f[0](of_x[0] + of_h[0])
                elif op == "gru":
                    update, reset = f[0](of_x[0] + of_h[0]), f[0](of_x[1] + of_h[1])
                    seen = reset * of_h[2] if options.get("linear_before_reset") else rd[2] @ (reset * h) + rb[2]
                    h = (1 - update) * f[1](of_x[2] + seen) + update * h
                else:
                    z = of_x + of_h
                    i = f[0](z[0] + p[0] * c)
                    forget = 1 - i if options.get("input_forget") else f[0](z[2] + p[2] * c)
                    c = forget * c + i * f[1](z[3])
                    cell = activations[functions * d + 2]
                    h = f[0](z[1] + p[1] * c) * ACTIVATIONS[cell[0]](c, *cell[1:])
                    h = h if projection is None else projection[d] @ h
                steps[t, d, k] = h
            states[d, k], cells[d, k] = h, c
        return (steps, states, cells) if op == "lstm" else (steps, states)

    return reference


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: Any = None, *,
    scale: float = 0.0, causal: bool = False, past: int = 0, softcap: float = 0.0, keys: int | None = None,
) -> np.ndarray:  # fmt: skip
    """One query after the other, over the keys that it sees."""
    k, v = k[..., :keys, :], v[..., :keys, :]
    *outer, queries, size = q.shape
    count, group = k.shape[-2], (q.shape[-3] // k.shape[-3] if q.ndim > 2 and k.shape[-3] else 1)
    allowed = np.ones((*outer, queries, count), bool)
    bias = np.zeros(allowed.shape)
    if mask is not None:
        allowed, bias = (allowed & mask, bias) if mask.dtype == bool else (allowed, bias + mask)
    k, v = (np.broadcast_to(x, (*outer[:-1], *x.shape[-3:])) if outer else x for x in (k, v))

    def element(at: Index) -> Any:
        *where, i, column = at
        head = (*where[:-1], where[-1] // group) if where else ()
        seen = [j for j in range(count) if allowed[(*where, i, j)] and not (causal and j > i + past)]
        scores = np.array([q[(*where, i)] @ k[(*head, j)] * (scale or 1 / np.sqrt(size)) for j in seen])
        scores = (np.tanh(scores / softcap) * softcap if softcap else scores) + bias[(*where, i)][seen]
        e = np.exp(scores - scores.max(initial=-np.inf))
        return e @ v[(*head, seen, column)] / e.sum() if seen else 0.0

    return each((*outer, queries, v.shape[-1]), q.dtype, element)


def eight_bit_rows(x: np.ndarray) -> np.ndarray:
    """Each block of 32 alone, as bytes."""
    *outer, size = x.shape

    def block(x: np.ndarray) -> np.ndarray:
        scale = np.abs(x).max() * np.float32(1 / 127)
        return np.frombuffer(np.rint(x / (scale or 1)).astype("<i1").tobytes() + scale.tobytes(), "<i4")

    blocks = [block(one) for one in x.astype(np.float32).reshape(-1, 32)]
    return np.array(blocks, np.int32).reshape(*outer, size // 32 * 9)


def rotary_embedding(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool = False) -> np.ndarray:
    pairs, out = cos.shape[-1], x.copy()
    for i in range(pairs):
        left, right = (2 * i, 2 * i + 1) if interleaved else (i, i + pairs)
        turned = (x[..., left] + 1j * x[..., right]) * (cos[..., i] + 1j * sin[..., i])
        out[..., left], out[..., right] = turned.real, turned.imag
    return out


def dot_blocks(
    x: np.ndarray, w: np.ndarray, scale: np.ndarray, zero: np.ndarray, *, bits: int, block: int
) -> np.ndarray:
    out = np.zeros((*x.shape[:-1], w.shape[1]))
    for k in range(x.shape[-1]):
        place = k * bits
        q = w[place // 32].astype(np.int64) >> place % 32 & (1 << bits) - 1
        middle = zero if zero.ndim == 0 else zero[k // block]
        out += x[..., k, None] * ((q - middle) * scale[k // block])
    return out


def dot_blocks_int16(
    x: np.ndarray, *weights: np.ndarray, bits: int, block: int, rounded: Callable[[np.ndarray], np.ndarray] = np.rint
) -> np.ndarray:
    """The rows' steps and their roundings are in float32, as the op defines them."""
    rows = x.astype(np.float32)
    step = np.abs(rows).max(-1, keepdims=True, initial=0) * np.float32(1 / 32639)
    whole = rounded(np.divide(1, step, where=step > 0, out=np.zeros_like(step)) * rows)
    return dot_blocks(whole, *weights, bits=bits, block=block) * step


def dot_blocks_int8(x: np.ndarray, *weights: np.ndarray, bits: int, block: int) -> np.ndarray:
    def rounded(q: np.ndarray) -> np.ndarray:
        depth = q.shape[-1]
        places = np.arange(-(-depth // 4) * 4).reshape(-1, 4).clip(max=max(depth - 1, 0))
        largest = np.abs(q[..., places]).max(-1) if depth else q
        n = np.clip(np.ceil(largest * np.float32(1 / 127)), np.float32(1), np.float32(257)).repeat(4, -1)[..., :depth]
        return np.rint(q * (1 / n)) * n

    return dot_blocks_int16(x, *weights, bits=bits, block=block, rounded=rounded)


def distances(x: np.ndarray, y: np.ndarray, squared: bool = False) -> np.ndarray:
    total = ((x[..., :, None, :] - y[..., None, :, :]) ** 2).sum(-1)
    return total if squared else np.sqrt(total)


REFERENCES: Final[Mapping[str, Callable[..., Any]]] = {
    "attention": attention,
    "eight_bit_rows": eight_bit_rows,
    "rotary_embedding": rotary_embedding,
    "dot_blocks": dot_blocks,
    "dot_blocks_int16": dot_blocks_int16,
    "dot_blocks_int8": dot_blocks_int8,
    "dot": lambda a, b: np.einsum("...mk,...kn->...mn", a, b),
    "conv_last": conv_last,
    "matmul": np.matmul,
    "gemm": gemm,
    "conv": conv,
    "conv_transpose": conv_transpose,
    "batch_norm": batch_norm,
    "cdist": distances,
    "einsum": lambda *xs, equation: np.einsum(equation.replace(" ", ""), *xs),
    "det": np.linalg.det,
    "inverse": np.linalg.inv,
    "dot_integers": lambda x, w: np.einsum("...mk,...kn->...mn", x, w),
    "conv_integers": lambda x, w, **facts: conv_last(x, w, **facts, group=1),
    "dot_int8": dot_int8,
    "conv_int8": conv_int8,
    "lstm": recurrent("lstm"),
    "gru": recurrent("gru"),
    "rnn": recurrent("rnn"),
}
"""By the names of rows."""
