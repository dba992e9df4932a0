"""Networks with open dimensions, for tests and measurements: a transformer encoder and a fully convolutional net."""

from __future__ import annotations

import numpy as np

from singe.dtypes import float32, int64
from singe.graph import Builder, Graph, Node
from singe.ops.folds.window import ceiling
from singe.shapes import ceildiv, dim_max, size

N, L, H, W = (size(name) for name in "NLHW")


def encoder(layers: int = 6, width: int = 64, heads: int = 4, words: int = 100, longest: int = 512) -> Graph:
    """(N, L) words and a mask → (N, L, width): embeddings, then layers of attention and two products."""
    b, rng = Builder(), np.random.default_rng(0)
    x, mask = b.input("words", (N, L), int64), b.input("mask", (N, L), float32)

    def weights(*shape: int) -> Node:
        return b.const((rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def linear(y: Node, outputs: int) -> Node:
        inputs = y.shape[-1]
        assert isinstance(inputs, int)
        return b.add(b.matmul(y, weights(inputs, outputs)), weights(outputs))

    def normed(y: Node) -> Node:
        count = b.const(float(width))
        centred = b.sub(y, b.div(b.reduce_sum(y, axes=(2,)), count))
        spread = b.div(b.reduce_sum(b.mul(centred, centred), axes=(2,)), count)
        return b.add(b.mul(b.div(centred, b.sqrt(b.add(spread, b.const(1e-5)))), weights(width)), weights(width))

    def split(y: Node) -> Node:
        return b.transpose(b.reshape(y, shape=(N, L, heads, width // heads)), perm=(0, 2, 1, 3))

    places = b.gather(weights(longest, width), b.arange(b.const(0, int64), b.const(1, int64), count=L), axis=0)
    y = normed(b.add(b.gather(weights(words, width), x, axis=0), places))
    hidden = b.mul(b.sub(b.reshape(mask, shape=(N, 1, 1, L)), b.const(1.0)), b.const(1e4))
    for _ in range(layers):
        q, k, v = (split(linear(y, width)) for _ in range(3))
        scores = b.mul(b.matmul(q, b.transpose(k, perm=(0, 1, 3, 2))), b.const((width // heads) ** -0.5))
        met = b.matmul(b.softmax(b.add(scores, hidden), axis=-1), v)
        joined = b.reshape(b.transpose(met, perm=(0, 2, 1, 3)), shape=(N, L, width))
        y = normed(b.add(y, linear(joined, width)))
        y = normed(b.add(y, linear(b.gelu(linear(y, 4 * width)), width)))
    return Graph((x, mask), (y,), ("y",))


def convolutional(channels: int = 8) -> Graph:
    """(N, 3, H, W) → (N, 1, H, W): SAME padding under strides, a pool that rounds up, depthwise and 1×1 convolutions, a
    branch resized to another's size and added, and a resize back to the input's."""
    b, rng = Builder(), np.random.default_rng(0)
    x = b.input("x", (N, 3, H, W), float32)

    def conv(y: Node, outputs: int, side: int, stride: int = 1, group: int = 1) -> Node:
        inputs = y.shape[1]
        assert isinstance(inputs, int)
        w = rng.standard_normal((outputs, inputs // group, side, side)) / np.sqrt(inputs // group * side * side)
        totals = [dim_max((ceildiv(d, stride) - 1) * stride + side - d, 0) for d in y.shape[2:]]
        before = tuple(t // 2 for t in totals)
        after = tuple(t - lo for t, lo in zip(totals, before, strict=True))
        ones = (1, 1)
        weights, bias = b.const(w.astype(np.float32)), b.const(rng.standard_normal(outputs).astype(np.float32))
        return b.relu(
            b.conv(y, weights, bias, strides=(stride, stride), dilations=ones, before=before, after=after, group=group)
        )

    near = conv(conv(x, channels, 3, 2), channels, 3)
    window = {"window": (1, 1, 3, 3), "strides": (1, 1, 2, 2), "dilations": (1,) * 4, "before": (0,) * 4}
    after = (0, 0, *(ceiling(d, 3, 2, 0, 0) for d in near.shape[2:]))
    far = b.max_pool(near, **window, after=after)
    far = conv(far, 2 * channels, 1)
    far = conv(far, 2 * channels, 5, group=2 * channels)
    far = conv(conv(far, 2 * channels, 3, 2), 2 * channels, 3)
    far = conv(far, channels, 1)
    met = b.add(near, b.resize(far, sizes=near.shape, mode="linear", coordinates="half_pixel"))
    y = conv(conv(met, channels, 3), 1, 3)
    return Graph(
        (x,), (b.resize(y, sizes=(N, 1, H, W), mode="nearest", coordinates="asymmetric", nearest="floor"),), ("y",)
    )
