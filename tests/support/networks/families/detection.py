"""Pictures ↦ boxes, masks and words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from .classification import pictures
from .family import Family, Feeds, normal
from .net import BOOL, FLOAT, INT64, MIN, Net
from .pictures import sizes

# --- YOLO -------------------------------------------------------------------------------------------------------------


def _unit(net: Net, x: str, inputs: int, outputs: int, side: int = 3, stride: int = 1, group: int = 1) -> str:
    return net.silu(net.conv(x, inputs, outputs, side, stride, group=group))


def _c2f(net: Net, x: str, inputs: int, outputs: int) -> str:
    """Halves, of which one goes through bottlenecks whose results are all kept."""
    half = outputs // 2
    left, right = net.split(_unit(net, x, inputs, outputs, 1), [half, half], 1)
    inner = net.Add(right, _unit(net, _unit(net, right, half, half), half, half))
    return _unit(net, net.Concat(left, right, inner, axis=1), 3 * half, outputs, 1)


def _c3k2(net: Net, x: str, inputs: int, outputs: int) -> str:
    """The same of v11, with three convolutions in its part."""
    half, quarter = outputs // 2, outputs // 4
    left, right = net.split(_unit(net, x, inputs, outputs, 1), [half, half], 1)
    near, far = (_unit(net, right, half, quarter, 1) for _ in range(2))
    near = net.Add(near, _unit(net, _unit(net, near, quarter, quarter), quarter, quarter))
    inner = _unit(net, net.Concat(near, far, axis=1), half, half, 1)
    return _unit(net, net.Concat(left, right, inner, axis=1), 3 * half, outputs, 1)


def _sppf(net: Net, x: str, width: int) -> str:
    parts = [_unit(net, x, width, width // 2, 1)]
    for _ in range(3):
        parts.append(net.MaxPool(parts[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1], ceil_mode=0))
    return _unit(net, net.Concat(*parts, axis=1), 2 * width, width, 1)


def _c2psa(net: Net, x: str, width: int, heads: int = 2) -> str:
    """The attention of v11: keys of half the width, places coded by a depthwise convolution of the values."""
    half = width // 2
    size, key = half // heads, half // heads // 2
    left, right = net.split(_unit(net, x, width, width, 1), [half, half], 1)
    n, h, w = (net.size(right, axis) for axis in (0, 2, 3))
    places = net.Mul(h, w)
    qkv = net.view(net.conv(right, half, half + 2 * key * heads, 1), n, heads, 2 * key + size, places)
    q, k, v = net.split(qkv, [key, key, size], 2)
    scores = net.Mul(net.MatMul(net.Transpose(q, perm=[0, 1, 3, 2]), k), key**-0.5)
    met = net.MatMul(v, net.Transpose(net.Softmax(scores, axis=-1), perm=[0, 1, 3, 2]))
    coded = net.conv(net.Reshape(v, net.shape(n, half, h, w)), half, half, group=half)
    met = net.conv(net.Add(net.view(met, n, half, h, w), coded), half, half, 1)
    right = net.Add(right, met)
    right = net.Add(right, net.conv(_unit(net, right, half, width, 1), width, half, 1))
    return _unit(net, net.Concat(left, right, axis=1), width, width, 1)


def _necked(net: Net, modern: bool, width: int = 8) -> list[str]:
    """Two maps, at an eighth and at a sixteenth."""
    block = _c3k2 if modern else _c2f
    x = _unit(net, _unit(net, "images", 3, width, stride=2), width, width, stride=2)
    near = block(net, _unit(net, block(net, x, width, width), width, width, stride=2), width, width)
    far = _sppf(net, _unit(net, near, width, width, stride=2), width)
    far = _c2psa(net, far, width) if modern else far
    up = net.resize_by(far, 2)
    near = block(net, net.Concat(up, near, axis=1), 2 * width, width)
    down = net.Concat(_unit(net, near, width, width, stride=2), far, axis=1)
    return [near, block(net, down, 2 * width, width)]


def _headed(net: Net, maps: Sequence[str], modern: bool, classes: int, width: int = 8, bins: int = 8) -> tuple[str, list[str]]:  # fmt: skip
    """Boxes as distributions of distances, and classes: (batch, 4 · bins + classes, places)."""
    flat, parts = [], []
    for x in maps:
        box = net.conv(_unit(net, _unit(net, x, width, 8), 8, 8), 8, 4 * bins, 1)
        if modern:
            y = _unit(net, _unit(net, x, width, width, group=width), width, 8, 1)
            y = _unit(net, _unit(net, y, 8, 8, group=8), 8, 8, 1)
        else:
            y = _unit(net, _unit(net, x, width, 8), 8, 8)
        parts.append(net.Concat(box, net.conv(y, 8, classes, 1), axis=1))
        flat.append(net.view(parts[-1], net.size(x, 0), 4 * bins + classes, -1))
    return net.Concat(*flat, axis=2), parts


def _decoded(net: Net, x: str, anchors: str, strides: str, classes: int, bins: int = 8) -> tuple[str, str]:
    box, scores = net.split(x, [4 * bins, classes], 1)
    shape = net.Shape(box)
    box = net.Reshape(box, net.Concat(net.unsqueeze(net.Gather(shape, 0), 0), (4, bins), net.unsqueeze(net.Gather(shape, 2), 0), axis=0))  # fmt: skip
    chance = net.Softmax(net.Transpose(box, perm=[0, 2, 1, 3]), axis=1)
    line = np.arange(bins, dtype=np.float32).reshape(1, bins, 1, 1)
    far = net.Reshape(net.Conv(chance, line, kernel_shape=[1, 1]), net.Concat(net.unsqueeze(net.Gather(shape, 0), 0), (4, -1), axis=0))  # fmt: skip
    before, after = net.slice(far, 1, 0, 2), net.slice(far, 1, 2, 4)
    low, high = net.Sub(anchors, before), net.Add(anchors, after)
    middle = net.Div(net.Add(low, high), 2.0)
    return net.Mul(net.Concat(middle, net.Sub(high, low), axis=1), strides), net.Sigmoid(scores)


def yolov8() -> onnx.ModelProto:
    """Open height and width: anchors are made by Range and Expand."""
    net = Net(41, 16)
    x, maps = _headed(net, _necked(net, False), False, 3)
    points, strides = [], []
    for y, stride in zip(maps, (8.0, 16.0), strict=True):
        h, w = net.size(y, 2), net.size(y, 3)
        columns, rows = (net.Add(net.Cast(net.Range(0, d, 1), to=FLOAT), 0.5) for d in (w, h))
        rows = net.expand(net.view(rows, -1, 1), h, w)
        columns = net.expand(net.view(columns, 1, -1), h, w)
        both = net.Concat(net.unsqueeze(columns, -1), net.unsqueeze(rows, -1), axis=-1)
        points.append(net.view(both, -1, 2))
        strides.append(net.expand(net.const(np.float32(stride)), net.Mul(h, w), 1))
    anchors = net.unsqueeze(net.Transpose(net.Concat(*points, axis=0), perm=[1, 0]), 0)
    box, scores = _decoded(net, x, anchors, net.Transpose(net.Concat(*strides, axis=0), perm=[1, 0]), 3)
    net.output(net.Concat(box, scores, axis=1), "output0")
    return net.model({"images": (FLOAT, ("batch", 3, "height", "width"))})


def yolo11(side: int = 64) -> onnx.ModelProto:
    """Constant anchors, and the boxes that NonMaxSuppression keeps: (found, batch · class · score · box)."""
    net = Net(42, 17)
    x, _ = _headed(net, _necked(net, True), True, 3)
    points = [np.stack(np.meshgrid(*[np.arange(side // s) + 0.5] * 2, indexing="xy")).reshape(2, -1) for s in (8, 16)]
    strides = np.concatenate([np.full(p.shape[1], s) for p, s in zip(points, (8.0, 16.0), strict=True)])[None]
    box, scores = _decoded(net, x, net.const(np.concatenate(points, 1)[None]), net.const(strides), 3)
    boxes = net.Transpose(box, perm=[0, 2, 1])
    kept = net.NonMaxSuppression(boxes, scores, 5, np.float32([0.3]), np.float32([0.4]), center_point_box=1)
    batch, kind, place = (net.squeeze(net.slice(kept, 1, i, i + 1), 1) for i in range(3))
    by_pair = net.Concat(net.unsqueeze(batch, 1), net.unsqueeze(place, 1), axis=1)
    chosen = net.GatherND(boxes, by_pair)
    score = net.GatherND(scores, kept)
    first = (net.unsqueeze(net.Cast(z, to=FLOAT), 1) for z in (batch, kind))
    net.output(net.Concat(*first, net.unsqueeze(score, 1), chosen, axis=1), "detections")
    return net.model({"images": (FLOAT, ("batch", 3, side, side))})


# --- boxes from queries -----------------------------------------------------------------------------------------------


def detr() -> onnx.ModelProto:
    """A mask of pixels is resized to the features; places are counted by CumSum; queries look at what is not masked."""
    net, width = Net(43, 14), 16
    x = net.Relu(net.conv("pixel_values", 3, 8, 7, 4))
    for inputs in (8, 12):
        w = [net.Reshape(net.positive(12), (1, -1, 1, 1)) for _ in range(2)]  # norms that are frozen
        x = net.Relu(net.Add(net.Mul(net.conv(x, inputs, 12, stride=2, bias=False), w[0]), w[1]))
    h, w = net.size(x, 2), net.size(x, 3)
    mask = net.resize_to(net.unsqueeze(net.Cast("pixel_mask", to=FLOAT), 0), net.shape(h, w), mode="nearest")
    mask = net.Gather(net.Cast(mask, to=BOOL), 0)
    real = net.Cast(mask, to=FLOAT)
    coded = []
    for axis in (1, 2):
        count = net.CumSum(real, axis)
        last = net.Gather(count, (-1,), axis=axis)
        share = net.Mul(net.Div(count, net.Add(last, 1e-6)), 2 * np.pi)
        rates = net.Pow(100.0, np.repeat(np.arange(4), 2) / 4)
        angle = net.Div(net.unsqueeze(share, -1), rates)
        even, odd = net.slice(angle, 3, 0, step=2), net.slice(angle, 3, 1, step=2)
        both = net.Concat(net.unsqueeze(net.Sin(even), 4), net.unsqueeze(net.Cos(odd), 4), axis=4)
        coded.append(net.view(both, *(net.size(angle, a) for a in range(3)), -1))
    places = net.Transpose(net.Concat(*coded, axis=3), perm=[0, 3, 1, 2])
    x = net.conv(x, 12, width, 1)
    x, places = (net.Transpose(net.Reshape(y, (0, 0, -1)), perm=[0, 2, 1]) for y in (x, places))
    flat = net.view(mask, net.size(mask, 0), -1)
    hidden = net.Where(net.unsqueeze(flat, 1, 2), 0.0, MIN)

    def attention(q: str, k: str, v: str, seen: str = "") -> str:
        parts = (net.heads(net.linear(y, width, width), 2, width // 2) for y in (q, k, v))
        return net.linear(net.joined(net.sdpa(*parts, seen), width), width, width)

    def inner(y: str) -> str:
        return net.layer_norm(net.Add(y, net.linear(net.Relu(net.linear(y, width, 32)), 32, width)), width)

    y = net.Add(x, places)
    x = inner(net.layer_norm(net.Add(x, attention(y, y, x, hidden)), width))
    queries = net.Tile(net.unsqueeze(net.weights(5, width), 0), net.shape(net.size(x, 0), 1, 1))
    z = net.Mul(queries, 0.0)
    y = net.Add(z, queries)
    z = net.layer_norm(net.Add(z, attention(y, y, z)), width)
    z = net.layer_norm(net.Add(z, attention(net.Add(z, queries), net.Add(x, places), x, hidden)), width)
    z = net.layer_norm(inner(z), width)
    net.output(net.linear(z, width, 4), "logits")
    net.output(net.Sigmoid(net.linear(net.Relu(net.linear(z, width, width)), width, 4)), "pred_boxes")
    return net.model({
        "pixel_values": (FLOAT, ("batch_size", 3, "height", "width")), "pixel_mask": (INT64, ("batch_size", "height", "width")),
    })  # fmt: skip


def masked_pictures(rng: np.random.Generator) -> Sequence[Feeds]:
    found: list[Feeds] = []
    for n, h, w in ((1, 48, 64), (2, 64, 32)):
        mask = np.ones((n, h, w), np.int64)
        mask[1:, h // 2 :] = 0
        found.append({"pixel_values": normal(rng, n, 3, h, w), "pixel_mask": mask})
    return found


def rt_detr() -> onnx.ModelProto:
    """The best places become queries by TopK and GatherElements, and look at points around their boxes by GridSample."""
    net, width, heads, points, queries = Net(44, 16), 16, 2, 2, 5
    size = width // heads
    one = net.silu(net.conv("images", 3, width, 3, 4))
    maps = [one, net.silu(net.conv(one, width, width, 3, 2))]
    flat = net.Concat(*(net.Transpose(net.Reshape(y, (0, 0, -1)), perm=[0, 2, 1]) for y in maps), axis=1)
    memory = net.layer_norm(net.linear(flat, width, width), width)
    scores = net.linear(memory, width, 3)
    _, best = net.many(2, "TopK", net.ReduceMax(scores, axes=[-1], keepdims=0), (queries,), axis=1, largest=1, sorted=1)
    n = net.size(flat, 0)

    def chosen(y: str, channels: int) -> str:
        return net.GatherElements(y, net.expand(net.unsqueeze(best, -1), n, queries, channels), axis=1)

    box = net.Sigmoid(chosen(net.linear(memory, width, 4), 4))
    x = chosen(memory, width)
    q, k, v = (net.heads(net.linear(x, width, width), heads, size) for _ in range(3))
    x = net.layer_norm(net.Add(x, net.linear(net.joined(net.sdpa(q, k, v), width), width, width)), width)
    at = net.view(net.linear(x, width, heads * 2 * points * 2), n, queries, heads, 2, points, 2)
    centre, extent = (net.unsqueeze(net.slice(box, 2, i, i + 2), 2, 3, 4) for i in (0, 2))
    at = net.Add(centre, net.Mul(net.Mul(net.Div(at, float(points)), extent), 0.5))
    shares = net.Softmax(net.view(net.linear(x, width, heads * 2 * points), n, queries, heads, 2 * points), axis=-1)
    grid = net.Sub(net.Mul(at, 2.0), 1.0)
    sampled = []
    for i, y in enumerate(maps):
        value = net.view(net.conv(y, width, width, 1), net.Mul(n, heads), size, net.size(y, 2), net.size(y, 3))
        level = net.Transpose(net.Gather(grid, i, axis=3), perm=[0, 2, 1, 3, 4])
        level = net.view(level, net.Mul(n, heads), queries, points, 2)
        sampled.append(net.GridSample(value, level, mode="bilinear", padding_mode="zeros", align_corners=0))
    weights = net.view(net.Transpose(shares, perm=[0, 2, 1, 3]), net.Mul(n, heads), 1, queries, 2 * points)
    met = net.sum(net.Mul(net.Concat(*sampled, axis=-1), weights), -1, keepdims=0)
    met = net.Transpose(net.view(met, n, width, queries), perm=[0, 2, 1])
    x = net.layer_norm(net.Add(x, net.linear(met, width, width)), width)
    clipped = net.Clip(box, 0.0, 1.0)
    inverse = net.Log(net.Div(net.Clip(clipped, 1e-5), net.Clip(net.Sub(1.0, clipped), 1e-5)))
    box = net.Sigmoid(net.Add(net.linear(x, width, 4), inverse))
    low = net.Sub(net.slice(box, 2, 0, 2), net.Mul(net.slice(box, 2, 2, 4), 0.5))
    box = net.Concat(low, net.Add(low, net.slice(box, 2, 2, 4)), axis=-1)
    flat = net.Flatten(net.Sigmoid(net.linear(x, width, 3)), axis=1)
    top, index = net.many(2, "TopK", flat, (4,), axis=-1)
    labels = net.Mod(index, 3)
    place = net.expand(net.unsqueeze(net.Div(index, 3), -1), n, 4, 4)
    sizes_ = net.unsqueeze(net.Tile("orig_target_sizes", (1, 2)), 1)
    net.output(labels, "labels", INT64)
    net.output(net.GatherElements(net.Mul(box, net.Cast(sizes_, to=FLOAT)), place, axis=1), "boxes")
    net.output(top, "scores")
    return net.model({"images": (FLOAT, ("N", 3, 32, 32)), "orig_target_sizes": (INT64, ("N", 2))})


# --- PaddleOCR --------------------------------------------------------------------------------------------------------


def _affine(net: Net, x: str) -> str:
    """A learnt scale and shift of a whole tensor."""
    return net.Add(net.Mul(x, np.float32([1.1])), np.float32([0.05]))


def _paddle_swish(net: Net, x: str) -> str:
    return net.Mul(x, net.Div(net.Clip(net.Add(x, np.float32([3])), 0.0, 6.0), np.float32([6])))


def _lcnet(net: Net, x: str, inputs: int, outputs: int, stride: Sequence[int], side: int = 3, se: bool = False) -> str:
    """A block of PP-LCNetV3: a depthwise and a 1 × 1 convolution, each with learnt affines around its activation."""
    for group, inner, out, kernel, step in ((inputs, inputs, inputs, side, stride), (1, inputs, outputs, 1, (1, 1))):
        w = net.weights(out, inner // group, kernel, kernel)
        x = net.Conv(
            x, w, kernel_shape=[kernel] * 2, strides=step, pads=[kernel // 2] * 4, group=group, dilations=[1, 1]
        )
        x = net.Add(x, net.Reshape(net.weights(out), (1, -1, 1, 1)))
        x = _affine(net, _paddle_swish(net, _affine(net, x)))
        if se and group > 1:
            y = net.Relu(net.conv(net.GlobalAveragePool(x), inputs, 4, 1))
            x = net.Mul(x, net.HardSigmoid(net.conv(y, 4, inputs, 1), alpha=1 / 6, beta=0.5))
    return x


def ocr_detector() -> onnx.ModelProto:
    """A pyramid of nearest resizes, and a map twice enlarged by transposed convolutions."""
    net = Net(45, 11)
    x = _paddle_swish(net, net.conv("x", 3, 8, 3, 2))
    near = _lcnet(net, x, 8, 8, (2, 2))
    far = _lcnet(net, near, 8, 12, (2, 2), 5, se=True)
    lateral = [net.conv(y, c, 8, 1, bias=False) for y, c in ((near, 8), (far, 12))]
    up = net.resize_by(lateral[1], 2)
    met = net.conv(net.Add(lateral[0], up), 8, 4, bias=False)
    deep = net.conv(lateral[1], 8, 4, bias=False)
    deep = net.resize_by(deep, 2)
    x = net.Relu(net.batch_norm(net.conv(net.Concat(deep, met, axis=1), 8, 8, bias=False), 8))
    for outputs in (8, 1):
        w = net.weights(8, outputs, 2, 2)
        x = net.ConvTranspose(x, w, kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4, dilations=[1, 1], group=1)
        x = net.Add(x, net.Reshape(net.weights(outputs), (1, -1, 1, 1)))
        x = net.Relu(net.batch_norm(x, outputs)) if outputs > 1 else net.Sigmoid(x)
    net.output(x, "fetch_name_0")
    return net.model({"x": (FLOAT, ("DynamicDimension.0", 3, "DynamicDimension.1", "DynamicDimension.2"))})


def ocr_recogniser() -> onnx.ModelProto:
    """Lines of text: rows are pooled away, attention over columns, a probability for each letter at each column."""
    net, width, classes = Net(46, 11), 16, 9
    x = _paddle_swish(net, net.conv("x", 3, 8, 3, 2))
    x = _lcnet(net, x, 8, 8, (2, 1))
    x = _lcnet(net, x, 8, 12, (2, 1), 5, se=True)
    x = net.AveragePool(x, kernel_shape=[3, 2], strides=[3, 2], pads=[0] * 4)
    first = x
    y = net.silu(net.Conv(x, net.weights(8, 12, 1, 3), kernel_shape=[1, 3], pads=[0, 1, 0, 1]))
    y = net.silu(net.conv(y, 8, width, 1))
    shape = net.Cast(net.Shape(y), to=6)
    h, w = (net.Slice(shape, (i,), (i + 1,), (0,)) for i in (2, 3))
    z = net.Transpose(net.Reshape(y, (0, width, -1)), perm=[0, 2, 1])
    qkv = net.linear(net.layer_norm(z, width, 1e-5), width, 3 * width)
    qkv = net.Transpose(net.Reshape(qkv, (0, -1, 3, 2, width // 2)), perm=[2, 0, 3, 1, 4])
    q, k, v = (net.Squeeze(net.Slice(qkv, (i,), (i + 1,), (0,)), axes=[0]) for i in range(3))
    scores = net.MatMul(net.Mul(q, np.float32([(width // 2) ** -0.5])), net.Transpose(k, perm=[0, 1, 3, 2]))
    met = net.Transpose(net.MatMul(net.Softmax(scores, axis=-1), v), perm=[0, 2, 1, 3])
    z = net.Add(z, net.linear(net.Reshape(met, (0, -1, width)), width, width))
    z = net.Add(z, net.linear(net.silu(net.linear(net.layer_norm(z, width, 1e-5), width, 32)), 32, width))
    z = net.layer_norm(z, width, 1e-6)
    target = net.Concat(net.Cast((0,), to=6), h, w, net.Cast((width,), to=6), axis=0)
    z = net.Transpose(net.Reshape(z, net.Cast(target, to=INT64)), perm=[0, 3, 1, 2])
    z = net.silu(net.conv(z, width, 12, 1))
    z = net.silu(net.conv(net.Concat(first, z, axis=1), 24, width, 1))
    z = net.Transpose(net.Squeeze(z, axes=[2]), perm=[0, 2, 1])
    net.output(net.Softmax(net.linear(z, width, classes), axis=2), "fetch_name_0")
    return net.model({"x": (FLOAT, ("DynamicDimension.0", 3, 24, "DynamicDimension.1"))})


def ocr_turned() -> onnx.ModelProto:
    """Whether a line is upside down: a small MobileNet v3."""
    net = Net(47, 11)
    x = _paddle_swish(net, net.conv("x", 3, 8, 3, 2))
    x = _lcnet(net, _lcnet(net, x, 8, 8, (2, 1), se=True), 8, 12, (2, 1), 5)
    x = net.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4, ceil_mode=1)
    x = net.Reshape(net.GlobalAveragePool(x), (0, 12))
    net.output(net.Softmax(net.Add(net.MatMul(x, net.weights(12, 2)), net.weights(2)), axis=1), "fetch_name_0")
    return net.model({"x": (FLOAT, ("DynamicDimension.0", 3, "DynamicDimension.1", "DynamicDimension.2"))})


# --- Segment Anything -------------------------------------------------------------------------------------------------


def sam_decoder(side: int = 8, width: int = 16) -> onnx.ModelProto:
    """Points, labels and a mask become tokens; both they and the picture attend; masks are resized to a size that is an
    input."""
    net, longest = Net(48, 16), float(4 * side)
    rates, two = net.weights(2, width // 2), 2 * np.pi

    def coded(at: str) -> str:
        angles = net.Mul(net.MatMul(net.Sub(net.Mul(at, 2.0), 1.0), rates), two)
        return net.Concat(net.Sin(angles), net.Cos(angles), axis=-1)

    points = coded(net.Div(net.Add("point_coords", 0.5), longest))
    labels = net.Expand(net.unsqueeze("point_labels", -1), net.Shape(points))
    points = net.Mul(points, net.Cast(net.Not(net.Equal(labels, -1.0)), to=FLOAT))
    for label in (-1.0, 0.0, 1.0, 2.0, 3.0):
        points = net.Add(points, net.Mul(net.weights(1, width), net.Cast(net.Equal(labels, label), to=FLOAT)))
    mask = net.gelu(net.layer_norm_2d(net.conv("mask_input", 1, 4, 2, 2, pad=0), 4))
    mask = net.conv(net.gelu(net.layer_norm_2d(net.conv(mask, 4, 8, 2, 2, pad=0), 8)), 8, width, 1)
    none = net.Reshape(net.weights(1, width), (1, -1, 1, 1))
    dense = net.Add(net.Mul("has_mask_input", mask), net.Mul(net.Sub(1.0, "has_mask_input"), none))
    own = net.unsqueeze(net.Concat(net.weights(1, width), net.weights(4, width), axis=0), 0)
    own = net.expand(own, net.size(points, 0), -1, -1)
    tokens = net.Concat(own, points, axis=1)
    image = net.Add(net.Expand("image_embeddings", net.Shape("image_embeddings")), dense)
    line = (np.arange(side) + 0.5) / side
    grid = np.stack(np.meshgrid(line, line), -1).astype(np.float32)
    places = net.Transpose(coded(net.const(grid)), perm=[2, 0, 1])
    n, c, h, w = (net.size(image, axis) for axis in range(4))
    keys = net.Transpose(net.Reshape(image, (0, 0, -1)), perm=[0, 2, 1])
    places = net.Transpose(net.Reshape(net.unsqueeze(places, 0), (0, 0, -1)), perm=[0, 2, 1])

    def attention(q: str, k: str, v: str, inner: int) -> str:
        a, b, d = (net.heads(net.linear(y, width, inner), 2, inner // 2) for y in (q, k, v))
        scores = net.Div(net.MatMul(a, net.Transpose(b, perm=[0, 1, 3, 2])), (inner / 2) ** 0.5)
        return net.linear(net.joined(net.MatMul(net.Softmax(scores, axis=-1), d), inner), inner, width)

    x = net.layer_norm(attention(tokens, tokens, tokens, width), width)
    q, k = net.Add(x, tokens), net.Add(keys, places)
    x = net.layer_norm(net.Add(x, attention(q, k, keys, 8)), width)
    x = net.layer_norm(net.Add(x, net.linear(net.Relu(net.linear(x, width, 32)), 32, width)), width)
    q = net.Add(x, tokens)
    keys = net.layer_norm(net.Add(keys, attention(k, q, x, 8)), width)
    scores = net.gemm(net.Gather(x, 0, axis=1), width, 4)
    up = net.view(net.Transpose(keys, perm=[0, 2, 1]), n, c, h, w)
    for inputs, outputs in ((width, 8), (8, 4)):
        weight = net.weights(inputs, outputs, 2, 2)
        up = net.ConvTranspose(up, weight, net.weights(outputs), kernel_shape=[2, 2], strides=[2, 2])
        up = net.gelu(net.layer_norm_2d(up, outputs) if outputs == 8 else up)
    kinds = [net.gemm(net.Relu(net.gemm(net.Gather(x, 1 + i, axis=1), width, 8)), 8, 4) for i in range(4)]
    kinds = net.Concat(*(net.unsqueeze(y, 1) for y in kinds), axis=1)
    b, c, h, w = (net.size(up, axis) for axis in range(4))
    masks = net.view(net.MatMul(kinds, net.view(up, b, c, net.Mul(h, w))), b, -1, h, w)
    weight = net.Mul(net.Cast(net.Sub(net.size("point_coords", 1), 2), to=FLOAT), np.float32([[1000, 0, 0, 0]]))
    best = net.ArgMax(net.Add(scores, weight), axis=1, keepdims=0)
    rows = net.Range(0, net.size(masks, 0), 1)
    pair = net.Concat(net.unsqueeze(rows, -1), net.unsqueeze(best, -1), axis=-1)
    masks = net.unsqueeze(net.GatherND(masks, pair), 1)
    net.output(masks, "low_res_masks")
    net.output(net.unsqueeze(net.GatherND(scores, pair), 1), "iou_predictions")
    whole = net.resize_to(masks, net.const(np.array([4 * side] * 2)))
    size = net.Cast("orig_im_size", to=FLOAT)
    scale = net.Div(longest, net.ReduceMax(size, keepdims=0))
    used = net.Cast(net.Floor(net.Add(net.Mul(scale, size), 0.5)), to=INT64)
    for axis in (2, 3):
        whole = net.slice(whole, axis, 0, net.Gather(used, axis - 2))
    target = net.Cast("orig_im_size", to=INT64)
    net.output(net.resize_to(whole, net.shape(*(net.Gather(target, i) for i in range(2)))), "masks")
    return net.model({
        "image_embeddings": (FLOAT, (1, width, side, side)), "point_coords": (FLOAT, (1, "num_points", 2)),
        "point_labels": (FLOAT, (1, "num_points")), "mask_input": (FLOAT, (1, 1, 4 * side, 4 * side)),
        "has_mask_input": (FLOAT, (1,)), "orig_im_size": (FLOAT, (2,)),
    })  # fmt: skip


def prompts(rng: np.random.Generator) -> Sequence[Feeds]:
    return [
        {
            "image_embeddings": normal(rng, 1, 16, 8, 8),
            "point_coords": (rng.random((1, len(labels), 2)) * 32).astype(np.float32),
            "point_labels": np.array([labels], np.float32),
            "mask_input": normal(rng, 1, 1, 32, 32),
            "has_mask_input": np.array([has], np.float32),
            "orig_im_size": np.array(size, np.float32),
        }
        for labels, has, size in (((1, -1), 0, (20, 30)), ((2, 3, 0), 1, (48, 36)))
    ]


def one_side(rng: np.random.Generator) -> Sequence[Feeds]:
    return [{"images": normal(rng, n, 3, 32, 32), "orig_target_sizes": rng.integers(50, 90, (n, 2))} for n in (1, 2)]


DETECTION = {
    "yolov8": Family("YOLO v8, v9", "boxes as distributions; anchors made for each size", yolov8,
                     sizes((1, 64, 48), (2, 32, 64), name="images")),
    "yolo11": Family("YOLO 11", "attention, depthwise heads; NonMaxSuppression in the graph", yolo11, pictures(64, "images", (1, 2))),
    "detr": Family("DETR, Table Transformer", "a resized mask, positions by CumSum, queries", detr, masked_pictures),
    "rt_detr": Family("RT-DETR, Deformable DETR", "queries by TopK and GatherElements, GridSample", rt_detr, one_side),
    "ocr_detector": Family("PP-OCR v3 to v5, detection", "paddle2onnx: learnt affines, nearest resizes, transposed convolutions", ocr_detector,
                           sizes((1, 32, 64), (2, 64, 32), name="x")),
    "ocr_recogniser": Family("PP-OCR v3 to v5, recognition", "SVTR: attention over columns at every width", ocr_recogniser,
                             sizes((1, 24, 64), (2, 24, 40), name="x")),
    "ocr_turned": Family("PP-OCR, direction", "a pool that rounds up, open sizes", ocr_turned, sizes((1, 24, 64), (3, 24, 48), name="x")),
    "sam_decoder": Family("Segment Anything, the decoder", "prompts of any number; the size of the result is an input", sam_decoder, prompts),
}  # fmt: skip
