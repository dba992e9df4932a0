"""Classifiers of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from .family import Family, Feeds, normal
from .net import FLOAT, INT64, Net


def pictures(side: int, name: str = "input", batches: Sequence[int] = (1, 3)) -> Callable[[np.random.Generator], Sequence[Feeds]]:  # fmt: skip
    return lambda rng: [{name: normal(rng, n, 3, side, side)} for n in batches]


def _unit(net: Net, x: str, inputs: int, outputs: int, side: int = 3, stride: int = 1, group: int = 1, act: str = "Relu") -> str:  # fmt: skip
    """A convolution whose norm was folded into it, and an activation."""
    x = net.conv(x, inputs, outputs, side, stride, group=group)
    if act == "silu":
        return net.silu(x)
    if act == "relu6":
        return net.Clip(x, 0.0, 6.0)
    if act == "hard":
        return net.hard_swish(x)
    return net.op(act, x) if act else x


def _classified(net: Net, x: str, channels: int, classes: int = 5) -> str:
    return net.gemm(net.Flatten(net.GlobalAveragePool(x), axis=1), channels, classes)


def _open(side: int) -> dict[str, tuple[int, Sequence[int | str]]]:
    return {"input": (FLOAT, ("batch", 3, side, side))}


def mobilenet_v1() -> onnx.ModelProto:
    """tf2onnx: pictures are NHWC, paddings SAME, kernels are given their shape by a Reshape and their pool is a mean."""
    net = Net(21, 13)
    x, channels = net.Transpose("input_1:0", perm=[0, 3, 1, 2]), 3
    for outputs, stride in ((8, 2), (8, 1), (12, 2)):
        if channels != 3:
            kernel = net.Reshape(net.weights(channels, 1, 9), (channels, 1, 3, 3))
            x = net.Conv(x, kernel, auto_pad="SAME_UPPER", group=channels, strides=[stride] * 2, dilations=[1, 1], kernel_shape=[3, 3])  # fmt: skip
            x = net.Clip(net.batch_norm(x, channels), 0.0, 6.0)
        side = 3 if channels == 3 else 1
        kernel = net.weights(outputs, channels, side, side)
        x = net.Conv(x, kernel, net.weights(outputs), auto_pad="SAME_UPPER", strides=[stride if side == 3 else 1] * 2, kernel_shape=[side] * 2)  # fmt: skip
        x, channels = net.Clip(x, 0.0, 6.0), outputs
    x = net.squeeze(net.ReduceMean(x, axes=[2, 3], keepdims=1), 2, 3)
    x = net.Reshape(x, net.Concat(net.Slice(net.Shape(x), (0,), (1,), (0,)), (1, 1, channels), axis=0))
    x = net.Conv(net.Transpose(x, perm=[0, 3, 1, 2]), net.weights(5, channels, 1, 1), net.weights(5))
    x = net.Transpose(x, perm=[0, 2, 3, 1])
    batch = net.Cast(net.Squeeze(net.Slice(net.Cast(net.Shape(x), to=6), (0,), (1,), (0,)), (0,)), to=INT64)
    x = net.Reshape(x, net.Concat(net.unsqueeze(batch, 0), (-1,), axis=0))
    net.output(net.Softmax(x, axis=1), "predictions")
    return net.model({"input_1:0": (FLOAT, ("unk__17", 17, 17, 3))})


def _inverted(net: Net, x: str, inputs: int, outputs: int, stride: int, act: str, side: int = 3, se: str = "") -> str:
    inner = 2 * inputs
    y = _unit(net, x, inputs, inner, 1, act=act)
    y = _unit(net, y, inner, inner, side, stride, inner, act=act)
    y = _excited(net, y, inner, se) if se else y
    y = net.conv(y, inner, outputs, 1)
    return net.Add(x, y) if stride == 1 and inputs == outputs else y


def _excited(net: Net, x: str, channels: int, form: str) -> str:
    """Squeeze and excitation."""
    y = net.GlobalAveragePool(x) if form == "hard" else net.mean(x, 2, 3)
    y = net.conv(y, channels, 4, 1)
    y = net.conv(net.Relu(y) if form == "hard" else net.silu(y), 4, channels, 1)
    return net.Mul(net.HardSigmoid(y, alpha=1 / 6, beta=0.5) if form == "hard" else net.Sigmoid(y), x)


def mobilenet_v2() -> onnx.ModelProto:
    net = Net(22, 10)
    x = net.Conv("input", net.weights(8, 3, 3, 3), net.weights(8), strides=[2, 2], pads=[1] * 4, kernel_shape=[3, 3])
    x = net.Clip(x, 0.0, 6.0) if net.opset > 10 else net.Clip(x, min=0.0, max=6.0)
    for outputs, stride in ((8, 1), (12, 2), (12, 1)):
        inputs = 8 if outputs == 8 or stride == 2 else 12
        y = net.Clip(net.conv(x, inputs, 16, 1), min=0.0, max=6.0)
        y = net.Clip(net.conv(y, 16, 16, 3, stride, group=16), min=0.0, max=6.0)
        y = net.conv(y, 16, outputs, 1)
        x = net.Add(x, y) if inputs == outputs else y
    x = net.ReduceMean(x, axes=[2, 3], keepdims=0)
    net.output(net.gemm(x, 12, 5), "logits")
    return net.model(_open(16))


def mobilenet_v3() -> onnx.ModelProto:
    net = Net(23, 13)
    x = _unit(net, "input", 3, 8, stride=2, act="hard")
    x = _inverted(net, x, 8, 8, 1, "Relu", se="hard")
    x = _inverted(net, x, 8, 12, 2, "hard", 5, se="hard")
    x = net.hard_swish(net.gemm(net.Flatten(net.GlobalAveragePool(x), axis=1), 12, 16))
    net.output(net.gemm(x, 16, 5), "logits")
    return net.model(_open(16))


def mobilenet_v4() -> onnx.ModelProto:
    """Universal inverted bottlenecks, and attention whose keys are shared by all heads, at half the resolution."""
    net = Net(24, 18)
    x = _unit(net, "input", 3, 8, stride=2)
    x = _unit(net, _unit(net, x, 8, 16, stride=2), 16, 8, 1, act="")  # fused
    y = net.conv(x, 8, 8, 5, group=8)  # extra depthwise
    y = net.conv(_unit(net, _unit(net, y, 8, 16, 1), 16, 16, 3, group=16), 16, 8, 1)
    x = net.Add(net.Mul(y, net.weights(8, 1, 1)), x)
    y = net.BatchNormalization(x, net.positive(8), net.weights(8), net.weights(8), net.positive(8))
    heads, size, batch = 2, 8, net.size(x, 0)
    q = net.view(net.conv(y, 8, heads * size, 1), batch, heads, size, -1)
    q = net.Transpose(q, perm=[0, 1, 3, 2])
    k, v = (net.conv(net.conv(y, 8, 8, 3, 2, group=8), 8, size, 1) for _ in range(2))
    k, v = (net.unsqueeze(net.Transpose(net.view(z, batch, size, -1), perm=[0, 2, 1]), 1) for z in (k, v))
    met = net.Transpose(net.sdpa(q, k, v), perm=[0, 2, 1, 3])
    met = net.view(met, batch, net.size(x, 2), net.size(x, 3), heads * size)
    met = net.conv(net.Transpose(met, perm=[0, 3, 1, 2]), heads * size, 8, 1)
    x = net.Add(net.Mul(met, net.weights(8, 1, 1)), x)
    x = _unit(net, net.GlobalAveragePool(x), 8, 16, 1)
    net.output(net.gemm(net.Flatten(x), 16, 5), "logits")
    return net.model(_open(24))


def resnet() -> onnx.ModelProto:
    """A basic block, a bottleneck with a strided shortcut, and a grouped one; the norms are not folded."""
    net = Net(25, 9)
    x = net.Relu(net.batch_norm(net.conv("input", 3, 8, 7, 2, bias=False), 8))
    x = net.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = net.Relu(net.batch_norm(net.conv(x, 8, 8, bias=False), 8))
    x = net.Relu(net.Add(net.batch_norm(net.conv(y, 8, 8, bias=False), 8), x))
    y = net.Relu(net.batch_norm(net.conv(x, 8, 8, 1, bias=False), 8))
    y = net.Relu(net.batch_norm(net.conv(y, 8, 8, 3, 2, group=4, bias=False), 8))
    y = net.batch_norm(net.conv(y, 8, 16, 1, bias=False), 16)
    x = net.Relu(net.Add(y, net.batch_norm(net.conv(x, 8, 16, 1, 2, bias=False), 16)))
    net.output(_classified(net, x, 16), "logits")
    return net.model({"input": (FLOAT, ("batch", 3, "height", "width"))})


def convnext() -> onnx.ModelProto:
    net = Net(26)
    x = net.layer_norm_2d(net.conv("input", 3, 8, 4, 4, pad=0), 8)
    for inputs, outputs in ((8, 8), (8, 12)):
        if inputs != outputs:
            x = net.conv(net.layer_norm_2d(x, inputs), inputs, outputs, 2, 2, pad=0)
        y = net.Transpose(net.conv(x, outputs, outputs, 7, group=outputs), perm=[0, 2, 3, 1])
        y = net.gelu(net.linear(net.layer_norm(y, outputs, 1e-6), outputs, 4 * outputs))
        y = net.Mul(net.linear(y, 4 * outputs, outputs), net.weights(outputs))
        x = net.Add(x, net.Transpose(y, perm=[0, 3, 1, 2]))
    x = net.layer_norm(net.mean(x, 2, 3, keepdims=0), 12)
    net.output(net.gemm(x, 12, 5), "logits")
    return net.model({"input": (FLOAT, ("batch", 3, "height", "width"))})


def convnext_v2() -> onnx.ModelProto:
    """A norm of the response over places, in NHWC."""
    net = Net(27)
    x = net.layer_norm_2d(net.conv("input", 3, 8, 4, 4, pad=0), 8)
    y = net.Transpose(net.conv(x, 8, 8, 7, group=8), perm=[0, 2, 3, 1])
    y = net.gelu(net.linear(net.layer_norm(y, 8, 1e-6), 8, 32))
    size = net.norm2(y, 1, 2)
    share = net.Div(size, net.Add(net.mean(size, -1), 1e-6))
    y = net.Add(net.Add(net.Mul(net.weights(1, 1, 1, 32), net.Mul(y, share)), net.weights(1, 1, 1, 32)), y)
    x = net.Add(x, net.Transpose(net.linear(y, 32, 8), perm=[0, 3, 1, 2]))
    net.output(net.gemm(net.layer_norm(net.mean(x, -2, -1, keepdims=0), 8), 8, 5), "logits")
    return net.model(_open(16))


def efficientnet_v2() -> onnx.ModelProto:
    net = Net(28, 13)
    x = _unit(net, "input", 3, 8, stride=2, act="silu")
    x = net.Add(net.conv(_unit(net, x, 8, 16, act="silu"), 16, 8, 1), x)  # fused
    x = _inverted(net, x, 8, 12, 2, "silu", se="soft")
    x = _unit(net, _inverted(net, x, 12, 12, 1, "silu", se="soft"), 12, 16, 1, act="silu")
    net.output(_classified(net, x, 16), "logits")
    return net.model(_open(20))


def windows(net: Net, x: str, height: int | str, width: int | str, channels: int, window: int) -> str:
    """(batch, height, width, channels) cut into windows."""
    tall, wide = (d // window if isinstance(d, int) else net.floordiv(d, window) for d in (height, width))
    y = net.view(x, net.size(x, 0), tall, window, wide, window, channels)
    return net.view(net.Transpose(y, perm=[0, 1, 3, 2, 4, 5]), -1, window**2, channels)


def unwindowed(net: Net, y: str, height: int | str, width: int | str, channels: int, window: int) -> str:
    tall, wide = (d // window if isinstance(d, int) else net.floordiv(d, window) for d in (height, width))
    y = net.view(y, -1, tall, wide, window, window, channels)
    return net.view(net.Transpose(y, perm=[0, 1, 3, 2, 4, 5]), -1, height, width, channels)


def rolled(net: Net, x: str, shift: int) -> str:
    """`torch.roll` of height and width."""
    for axis in (1, 2):
        x = net.Concat(net.slice(x, axis, -shift), net.slice(x, axis, 0, -shift), axis=axis)
    return x


def window_attention(net: Net, y: str, width: int, heads: int, window: int, mask: str | None = None) -> str:
    """Attention in windows, with a bias by distance; the mask has a matrix for each window of a picture."""
    size, count = width // heads, window**2
    qkv = net.view(net.linear(y, width, 3 * width), net.size(y, 0), count, 3, heads, size)
    qkv = net.Transpose(qkv, perm=[2, 0, 3, 1, 4])
    q, k, v = (net.Gather(qkv, i, axis=0) for i in range(3))
    scores = net.MatMul(net.Mul(q, size**-0.5), net.Transpose(k, perm=[0, 1, 3, 2]))
    at = np.stack(np.meshgrid(range(window), range(window), indexing="ij")).reshape(2, -1)
    gap = at[:, :, None] - at[:, None] + window - 1
    index = (gap[0] * (2 * window - 1) + gap[1]).reshape(-1)
    bias = net.view(net.Gather(net.weights((2 * window - 1) ** 2, heads), index), count, count, -1)
    scores = net.Add(scores, net.unsqueeze(net.Transpose(bias, perm=[2, 0, 1]), 0))
    if mask is not None:
        several = net.size(mask, 0)
        parts = net.view(scores, net.Div(net.size(y, 0), several), several, heads, count, count)
        scores = net.view(net.Add(parts, net.unsqueeze(mask, 0, 2)), -1, heads, count, count)
    y = net.Transpose(net.MatMul(net.Softmax(scores, axis=-1), v), perm=[0, 2, 1, 3])
    return net.linear(net.view(y, net.size(y, 0), count, width), width, width)


def swin() -> onnx.ModelProto:
    """Windows, which are shifted in every second layer; patches are merged by strided slices."""
    net, width, side, window = Net(29, 14), 8, 8, 4
    x = net.conv("input", 3, width, 2, 2, pad=0)
    x = net.Transpose(net.view(x, net.size(x, 0), net.size(x, 1), -1), perm=[0, 2, 1])
    x = net.layer_norm(x, width)
    group = np.zeros((side, side))
    for i, rows in enumerate((slice(0, -window), slice(-window, -2), slice(-2, None))):
        for j, columns in enumerate((slice(0, -window), slice(-window, -2), slice(-2, None))):
            group[rows, columns] = 3 * i + j
    cut = group.reshape(2, 4, 2, 4).transpose(0, 2, 1, 3).reshape(-1, 16)
    mask = np.where(cut[:, None] == cut[:, :, None], 0.0, -100.0).astype(np.float32)
    for shift in (0, 2):
        y = net.view(net.layer_norm(x, width), net.size(x, 0), side, side, width)
        y = rolled(net, y, -shift) if shift else y
        y = windows(net, y, side, side, width, window)
        y = window_attention(net, y, width, 2, window, net.const(mask) if shift else None)
        y = unwindowed(net, y, side, side, width, window)
        y = rolled(net, y, shift) if shift else y
        x = net.Add(x, net.view(y, net.size(y, 0), side * side, width))
        x = net.Add(x, net.linear(net.gelu(net.linear(net.layer_norm(x, width), width, 16)), 16, width))
    x = net.view(x, net.size(x, 0), side, side, width)
    parts = [net.slice(net.slice(x, 1, i, step=2), 2, j, step=2) for j in (0, 1) for i in (0, 1)]
    x = net.view(net.Concat(*parts, axis=-1), net.size(x, 0), -1, 4 * width)
    x = net.linear(net.layer_norm(x, 4 * width), 4 * width, 12, False)
    x = net.Transpose(net.layer_norm(x, 12), perm=[0, 2, 1])
    x = net.Flatten(net.AveragePool(net.unsqueeze(x, 2), kernel_shape=[1, 16], strides=[1, 16]))
    net.output(net.gemm(x, 12, 5), "logits")
    return net.model(_open(16))


def varied(rng: np.random.Generator) -> Sequence[Feeds]:
    return [{"input": normal(rng, *shape)} for shape in ((1, 3, 32, 24), (2, 3, 20, 36))]


CLASSIFICATION = {
    "mobilenet_v1": Family("MobileNet v1", "tf2onnx: NHWC, SAME padding, clips, unfolded norms", mobilenet_v1,
                           lambda rng: [{"input_1:0": normal(rng, n, 17, 17, 3)} for n in (1, 3)]),
    "mobilenet_v2": Family("MobileNet v2", "opset 10: clips with attributes", mobilenet_v2, pictures(16)),
    "mobilenet_v3": Family("MobileNet v3", "squeeze and excitation, hard swish by a clip", mobilenet_v3, pictures(16)),
    "mobilenet_v4": Family("MobileNet v4", "inverted bottlenecks, attention with shared keys", mobilenet_v4, pictures(24)),
    "resnet": Family("ResNet, ResNeXt", "opset 9, unfolded norms, a padded pool, open height and width", resnet, varied),
    "convnext": Family("ConvNeXt", "depthwise 7 × 7, norms over channels in NHWC and NCHW", convnext, varied),
    "convnext_v2": Family("ConvNeXt v2", "a norm of the response over positions", convnext_v2, pictures(16)),
    "efficientnet_v2": Family("EfficientNet v1 and v2", "fused and plain inverted bottlenecks, SiLU", efficientnet_v2, pictures(20)),
    "swin": Family("Swin", "windows, rolls by Slice and Concat, a constant mask, merged patches", swin, pictures(16)),
}  # fmt: skip
