"""Networks in the sizes of models that people know, with random weights: MiniLM-L6, ViT-tiny and YOLOv8n.

They have the layers of their namesakes, written as PyTorch's exporter writes them; a run takes the same time whatever the
weights are. others.py makes files of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from networks.families.net import FLOAT, INT64, Net


def _layers(net: Net, x: str, count: int, width: int, heads: int, mask: str = "", first: bool = False) -> str:
    """Layers of attention and two products, with the norm after each, or `first`."""
    for _ in range(count):
        y = net.layer_norm(x, width) if first else x
        x = net.Add(net.attention(y, y, width, heads, mask), x)
        x = x if first else net.layer_norm(x, width)
        y = net.layer_norm(x, width) if first else x
        x = net.Add(net.linear(net.gelu(net.linear(y, width, 4 * width)), 4 * width, width), x)
        x = x if first else net.layer_norm(x, width)
    return x


def minilm_l6(length: int = 128, width: int = 384, heads: int = 12) -> onnx.ModelProto:
    """all-MiniLM-L6-v2: BERT of six layers."""
    net = Net(1)
    tables = (
        (30522, "input_ids"),
        (2, "token_type_ids"),
        (512, net.slice(net.const(np.arange(512)[None]), 1, 0, length)),
    )
    words, kinds, places = (net.Gather(net.weights(rows, width), ids) for rows, ids in tables)
    x = net.layer_norm(net.Add(net.Add(words, kinds), places), width)
    mask = net.encoder_mask("attention_mask", net.size("input_ids", 1))
    net.output(_layers(net, x, 6, width, heads, mask), "last_hidden_state")
    return net.model(dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), (INT64, (1, length))))


def vit_tiny(side: int = 224, width: int = 192, heads: int = 3) -> onnx.ModelProto:
    """ViT-tiny: patches of 16 × 16 and a token for the class, twelve layers."""
    net, count = Net(2), (side // 16) ** 2
    x = net.Reshape(net.conv("pixel_values", 3, width, 16, 16, pad=0), (1, width, count))
    x = net.Concat(net.weights(1, 1, width), net.Transpose(x, perm=[0, 2, 1]), axis=1)
    x = _layers(net, net.Add(x, net.weights(1, count + 1, width)), 12, width, heads, first=True)
    net.output(net.gemm(net.Gather(net.layer_norm(x, width), 0, axis=1), width, 1000), "logits")
    return net.model({"pixel_values": (FLOAT, (1, 3, side, side))})


# --- YOLO v8, the n size ----------------------------------------------------------------------------------------------

BINS: Final = 16
CLASSES: Final = 80


def _unit(net: Net, x: str, inputs: int, outputs: int, side: int = 3, stride: int = 1) -> str:
    return net.silu(net.conv(x, inputs, outputs, side, stride))


def _c2f(net: Net, x: str, inputs: int, outputs: int, count: int, added: bool) -> str:
    """Two halves, of which one goes through bottlenecks whose results are all kept."""
    half = outputs // 2
    parts = net.split(_unit(net, x, inputs, outputs, 1), [half, half], 1)
    for _ in range(count):
        y = _unit(net, _unit(net, parts[-1], half, half), half, half)
        parts.append(net.Add(parts[-1], y) if added else y)
    return _unit(net, net.Concat(*parts, axis=1), (2 + count) * half, outputs, 1)


def _maps(net: Net) -> list[tuple[str, int]]:
    """Three maps, at an eighth, a sixteenth and a thirty-second of the picture, and their channels."""
    x, kept = _unit(net, "images", 3, 16, stride=2), []
    for channels, count in ((32, 1), (64, 2), (128, 2), (256, 1)):
        x = _c2f(net, _unit(net, x, channels // 2, channels, stride=2), channels, channels, count, True)
        kept.append(x)
    pools = [_unit(net, x, 256, 128, 1)]
    for _ in range(3):
        pools.append(net.MaxPool(pools[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    far = _unit(net, net.Concat(*pools, axis=1), 512, 256, 1)
    middle = _c2f(net, net.Concat(net.resize_by(far, 2), kept[2], axis=1), 384, 128, 1, False)
    near = _c2f(net, net.Concat(net.resize_by(middle, 2), kept[1], axis=1), 192, 64, 1, False)
    middle = _c2f(net, net.Concat(_unit(net, near, 64, 64, stride=2), middle, axis=1), 192, 128, 1, False)
    far = _c2f(net, net.Concat(_unit(net, middle, 128, 128, stride=2), far, axis=1), 384, 256, 1, False)
    return [(near, 64), (middle, 128), (far, 256)]


def _head(net: Net, maps: Sequence[tuple[str, int]]) -> tuple[str, str]:
    """Distributions of the distances of sides, (1, 4 · BINS, places), and scores of classes."""
    flat: list[str] = []
    for x, channels in maps:
        box = net.conv(_unit(net, _unit(net, x, channels, 64), 64, 64), 64, 4 * BINS, 1)
        score = net.conv(_unit(net, _unit(net, x, channels, CLASSES), CLASSES, CLASSES), CLASSES, CLASSES, 1)
        flat.append(net.Reshape(net.Concat(box, score, axis=1), (1, 4 * BINS + CLASSES, -1)))
    box, score = net.split(net.Concat(*flat, axis=2), [4 * BINS, CLASSES], 1)
    return box, score


def yolov8n(side: int = 320) -> onnx.ModelProto:
    """YOLOv8n: boxes as distributions around constant anchors."""
    net = Net(3)
    box, score = _head(net, _maps(net))
    steps = (8, 16, 32)
    grids = [np.stack(np.meshgrid(*[np.arange(side // s) + 0.5] * 2)).reshape(1, 2, -1) for s in steps]
    strides = np.concatenate([np.full(g.shape[2], float(s)) for g, s in zip(grids, steps, strict=True)])[None]
    chance = net.Softmax(net.Transpose(net.Reshape(box, (1, 4, BINS, -1)), perm=[0, 2, 1, 3]), axis=1)
    line = np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1)
    before, after = net.split(net.Reshape(net.Conv(chance, line, kernel_shape=[1, 1]), (1, 4, -1)), [2, 2], 1)
    anchors = net.const(np.concatenate(grids, axis=2))
    low, high = net.Sub(anchors, before), net.Add(anchors, after)
    edges = net.Concat(net.Div(net.Add(low, high), 2.0), net.Sub(high, low), axis=1)
    net.output(net.Concat(net.Mul(edges, strides), net.Sigmoid(score), axis=1), "output0")
    return net.model({"images": (FLOAT, (1, 3, side, side))})
