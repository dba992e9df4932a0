"""Layers of singe.nn in NumPy, from PyTorch's documented formulas, with loops where that is plainest. `p` is a state dict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

Params = Mapping[str, np.ndarray]


def windows(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> np.ndarray:
    """(batch, channels, …places, …window) of (batch, channels, …space)."""
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    found = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(2, x.ndim)))
    places = tuple(slice(None, None, s) for s in stride)
    inner = tuple(slice(None, None, d) for d in dilation)
    return found[(slice(None), slice(None), *places, *inner)]


def padded(x: np.ndarray, pads: Sequence[int], value: float = 0, mode: str = "constant") -> np.ndarray:
    width = [(0, 0), (0, 0), *((n, n) for n in pads)]
    return np.pad(x, width, mode, constant_values=value) if mode == "constant" else np.pad(x, width, mode)  # pyright: ignore


def conv(
    x: np.ndarray, p: Params, stride: Sequence[int], pads: Sequence[int], dilation: Sequence[int], groups: int, mode: str = "constant"
) -> np.ndarray:  # fmt: skip
    w, parts = p["weight"], []
    rank = x.ndim - 2
    for g in range(groups):
        own = x[:, g * w.shape[1] : (g + 1) * w.shape[1]]
        kernel = w[g * len(w) // groups : (g + 1) * len(w) // groups]
        seen = windows(padded(own, pads, mode=mode), w.shape[2:], stride, dilation)
        axes = [1, *range(2 + rank, 2 + 2 * rank)]
        parts.append(np.moveaxis(np.tensordot(seen, kernel, (axes, range(1, 2 + rank))), -1, 1))
    y = np.concatenate(parts, 1)
    return y + p["bias"].reshape(-1, *(1,) * rank) if "bias" in p else y


def conv_transpose(
    x: np.ndarray, p: Params, stride: Sequence[int], pads: Sequence[int], extra: Sequence[int], dilation: Sequence[int], groups: int
) -> np.ndarray:  # fmt: skip
    """Each element adds its kernel to the output."""
    w = p["weight"]
    rank = x.ndim - 2
    space, window = x.shape[2:], w.shape[2:]
    whole = [
        (d - 1) * s + r * (k - 1) + 1 + e for d, s, r, k, e in zip(space, stride, dilation, window, extra, strict=True)
    ]
    outputs = w.shape[1]
    y = np.zeros((len(x), groups * outputs, *whole))
    per = x.shape[1] // groups
    for g, place in product(range(groups), product(*map(range, space))):
        value = x[(slice(None), slice(g * per, (g + 1) * per), *place)]
        at = tuple(
            slice(i * s, i * s + r * (k - 1) + 1, r) for i, s, r, k in zip(place, stride, dilation, window, strict=True)
        )
        y[(slice(None), slice(g * outputs, (g + 1) * outputs), *at)] += np.tensordot(
            value, w[g * per : (g + 1) * per], (1, 0)
        )
    y = y[(slice(None), slice(None), *(slice(n, d - n) for n, d in zip(pads, whole, strict=True)))]
    return y + p["bias"].reshape(-1, *(1,) * rank)


def adaptive(x: np.ndarray, sizes: Sequence[int], fold: Callable[..., Any]) -> np.ndarray:
    y = np.empty((*x.shape[:2], *sizes))
    for place in product(*map(range, sizes)):
        cut = tuple(slice(i * d // n, -(-(i + 1) * d // n)) for i, d, n in zip(place, x.shape[2:], sizes, strict=True))
        y[(slice(None), slice(None), *place)] = fold(x[(slice(None), slice(None), *cut)], tuple(range(2, x.ndim)))
    return y


def normalised(x: np.ndarray, axes: tuple[int, ...], eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def local_response(x: np.ndarray, size: int, alpha: float, beta: float, k: float) -> np.ndarray:
    y = np.empty_like(x)
    for c in range(x.shape[1]):
        near = x[:, max(0, c - size // 2) : c + (size - 1) // 2 + 1]
        y[:, c] = x[:, c] / (k + alpha * (near**2).sum(1) / size) ** beta
    return y


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def cell(
    kind: str, x: np.ndarray, h: np.ndarray, c: np.ndarray, weights: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    w, r, wb, rb = weights
    n = len(h[0])
    i, j = x @ w.T + wb, h @ r.T + rb
    if kind in ("tanh", "relu"):
        return (np.tanh(i + j) if kind == "tanh" else np.maximum(i + j, 0)), c
    a, b = ([v[:, k * n : (k + 1) * n] for k in range(len(w) // n)] for v in (i, j))
    if kind == "lstm":
        c = sigmoid(a[1] + b[1]) * c + sigmoid(a[0] + b[0]) * np.tanh(a[2] + b[2])
        return sigmoid(a[3] + b[3]) * np.tanh(c), c
    reset, update = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    return (1 - update) * np.tanh(a[2] + reset * b[2]) + update * h, c


def recurrent(
    kind: str, x: np.ndarray, p: Params, layers: int, hidden: int, ends: Sequence[str], h0: np.ndarray, c0: np.ndarray
) -> Any:
    """x (length, batch, features) → outputs, last states, last cells."""
    last: list[tuple[np.ndarray, np.ndarray]] = []
    for layer in range(layers):
        sides = []
        for d, end in enumerate(ends):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weights = [p.get(f"{n}_l{layer}{end}", np.zeros(())) for n in names]
            h, c = h0[layer * len(ends) + d], c0[layer * len(ends) + d]
            steps = [np.zeros(())] * len(x)
            for t in range(len(x))[:: -1 if end else 1]:
                h, c = cell(kind, x[t], h, c, weights)
                steps[t] = h
            sides.append(np.stack(steps))
            last.append((h, c))
        x = np.concatenate(sides, -1)
    return x, *(np.stack(v) for v in zip(*last, strict=True))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, p: Params, heads: int, mask: np.ndarray | None = None, name: str = ""
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(batch, length, size), one head after the other; mask: added to the scores (batch, heads, target, source)."""
    w, b = p[name + "in_proj_weight"], p[name + "in_proj_bias"]
    size = q.shape[-1]
    q, k, v = (x @ w[i * size : (i + 1) * size].T + b[i * size : (i + 1) * size] for i, x in enumerate((q, k, v)))
    n = size // heads
    outputs, weights = [], []
    for h in range(heads):
        cut = slice(h * n, (h + 1) * n)
        scores = q[..., cut] @ np.swapaxes(k[..., cut], -1, -2) / np.sqrt(n)
        weights.append(softmax(scores if mask is None else scores + mask[:, h]))
        outputs.append(weights[-1] @ v[..., cut])
    y = np.concatenate(outputs, -1) @ p[name + "out_proj.weight"].T + p[name + "out_proj.bias"]
    return y, np.stack(weights, 1)


def layer_norm(x: np.ndarray, p: Params, name: str) -> np.ndarray:
    return normalised(x, (-1,)) * p[name + ".weight"] + p[name + ".bias"]


def transformer_layer(
    x: np.ndarray, p: Params, heads: int, mask: np.ndarray | None, memory: np.ndarray | None, first: bool, name: str = ""
) -> np.ndarray:  # fmt: skip
    """A layer of an encoder, or with a memory of a decoder; first: the norms come first."""

    def fed(y: np.ndarray) -> np.ndarray:
        h = np.maximum(y @ p[name + "linear1.weight"].T + p[name + "linear1.bias"], 0)
        return h @ p[name + "linear2.weight"].T + p[name + "linear2.bias"]

    parts = [lambda y: attention(y, y, y, p, heads, mask, name + "self_attn.")[0]]
    if memory is not None:
        parts.append(lambda y: attention(y, memory, memory, p, heads, None, name + "multihead_attn.")[0])
    for k, part in enumerate([*parts, fed], 1):
        norm = f"{name}norm{k}"
        x = x + part(layer_norm(x, p, norm)) if first else layer_norm(x + part(x), p, norm)
    return x
