"""Pictures ↦ pictures: depth, enlargement, style, mattes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from .classification import rolled, unwindowed, window_attention, windows
from .family import Family, Feeds, normal
from .net import BOOL, END, FLOAT, INT64, Net

Open = {"input": (FLOAT, ("batch_size", 3, "height", "width"))}


def sizes(*shapes: tuple[int, int, int], name: str = "input") -> Callable[[np.random.Generator], Sequence[Feeds]]:
    """Pictures of several (batch, height, width)."""
    return lambda rng: [{name: rng.random((n, 3, h, w)).astype(np.float32)} for n, h, w in shapes]


def _hw(net: Net, x: str) -> str:
    return net.Slice(net.Shape(x), (2,), (4,), (0,))


def depth_anything() -> onnx.ModelProto:
    """A transformer whose places are resized by cubics to the picture, and a head of resizes with aligned corners."""
    net, width, patch, channels = Net(31, 14), 16, 4, 8
    x = "pixel_values"
    tall, wide = (net.floordiv(net.size(x, axis), patch) for axis in (2, 3))
    y = net.conv(x, 3, width, patch, patch, pad=0)
    y = net.Transpose(net.view(y, net.size(y, 0), net.size(y, 1), -1), perm=[0, 2, 1])
    y = net.Concat(net.expand(net.weights(1, 1, width), net.size(y, 0), -1, -1), y, axis=1)
    places = net.weights(1, 10, width)
    grid = net.slice(places, 1, 1)
    grid = net.Transpose(net.view(grid, 1, 3, 3, width), perm=[0, 3, 1, 2])
    grid = net.resize_to(grid, net.shape(tall, wide), mode="cubic")
    grid = net.view(net.Transpose(grid, perm=[0, 2, 3, 1]), 1, -1, width)
    y = net.Add(y, net.Concat(net.unsqueeze(net.Gather(places, 0, axis=1), 1), grid, axis=1))
    states = []
    for _ in range(2):
        z = net.layer_norm(y, width)
        y = net.Add(net.Mul(net.attention(z, z, width, 2), net.weights(width)), y)
        z = net.linear(net.gelu(net.linear(net.layer_norm(y, width), width, 32)), 32, width)
        y = net.Add(net.Mul(z, net.weights(width)), y)
        states.append(net.layer_norm(y, width))
    maps = []
    for state, factor in zip((*states, states[-1]), (2, 1, 0), strict=True):
        z = net.slice(state, 1, 1)
        z = net.Transpose(net.view(z, net.size(z, 0), tall, wide, net.size(z, 2)), perm=[0, 3, 1, 2])
        z = net.conv(z, width, channels, 1)
        if factor == 2:
            w = net.weights(channels, channels, 2, 2)
            z = net.ConvTranspose(z, w, net.weights(channels), kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4)
        elif factor == 0:
            z = net.conv(z, channels, channels, 3, 2)
        maps.append(net.conv(z, channels, channels, bias=False))
    fused = ""
    for i, z in enumerate(reversed(maps)):
        if fused:
            z = net.Add(fused, net.Add(net.conv(net.Relu(net.conv(net.Relu(z), channels, channels)), channels, channels), z))  # fmt: skip
        if i + 1 < len(maps):
            z = net.resize_to(z, _hw(net, maps[-2 - i]), aligned=True)
        else:
            z = net.resize_by(z, 2, "linear", aligned=True)
        fused = net.conv(z, channels, channels, 1)
    z = net.conv(fused, channels, 4)
    z = net.resize_to(z, net.shape(*(net.Mul(d, patch) for d in (tall, wide))), aligned=True)
    z = net.Relu(net.conv(net.Relu(net.conv(z, 4, 4)), 4, 1, 1))
    net.output(net.squeeze(z, 1), "predicted_depth")
    return net.model({"pixel_values": (FLOAT, ("batch_size", 3, "height", "width"))})


def esrgan() -> onnx.ModelProto:
    """Dense blocks in blocks, from a picture whose pixels were made channels, and nearest resizes."""
    net, width = Net(32, 14), 8
    n, h, w = (net.size("input", axis) for axis in (0, 2, 3))
    x = net.view("input", n, 3, net.Div(h, 2), 2, net.Div(w, 2), 2)
    x = net.Transpose(x, perm=[0, 1, 3, 5, 2, 4])
    x = net.conv(net.view(x, n, 12, net.Div(h, 2), net.Div(w, 2)), 12, width)
    first = x
    for _ in range(2):
        outer = x
        for _ in range(1 + (outer is first)):
            parts, inner = [x], x
            for i in range(2):
                inner = net.LeakyRelu(net.conv(net.Concat(*parts, axis=1), width + 4 * i, 4), alpha=0.2)
                parts.append(inner)
            x = net.Add(net.Mul(net.conv(net.Concat(*parts, axis=1), width + 8, width), 0.2), x)
        x = net.Add(net.Mul(x, 0.2), outer)
    x = net.Add(first, net.conv(x, width, width))
    for _ in range(2):
        x = net.LeakyRelu(net.conv(net.resize_by(x, 2), width, width), alpha=0.2)
    net.output(net.conv(net.LeakyRelu(net.conv(x, width, width), alpha=0.2), width, 3), "output")
    return net.model(Open)


def compact() -> onnx.ModelProto:
    """A row of convolutions with PReLU; the pixels come from channels."""
    net = Net(33, 12)
    x = "input"
    for inputs in (3, 8, 8):
        x = net.PRelu(net.conv(x, inputs, 8), net.positive(8, 1, 1))
    x = net.DepthToSpace(net.conv(x, 8, 12), blocksize=2, mode="CRD")
    net.output(net.Add(x, net.resize_by("input", 2)), "output")
    return net.model(Open)


def swin2sr() -> onnx.ModelProto:
    """Windows over pictures of every size: they are padded by reflection, and the mask is assigned by ScatterND."""
    net, width, window, shift = Net(34, 16), 8, 4, 2
    height, wide = (net.size("input", axis) for axis in (2, 3))
    more = [net.Mod(net.Sub(window, net.Mod(d, window)), window) for d in (height, wide)]
    x = net.pad("input", 4, 0, more[1], 0, more[0], mode="reflect")
    h, w = net.size(x, 2), net.size(x, 3)
    x = net.conv(x, 3, width)
    first = x
    mask = net.full(net.shape(1, h, w, 1), 0.0)
    count = 0
    bounds = [(0, -window), (-window, -shift), (-shift, END)]
    for rows in bounds:
        for columns in bounds:
            mask = _assigned(net, mask, {1: rows, 2: columns}, float(count))
            count += 1
    cut = net.view(windows(net, mask, h, w, 1, window), -1, window**2)
    gap = net.Sub(net.unsqueeze(cut, 1), net.unsqueeze(cut, 2))
    gap = net.Where(net.Cast(net.Not(net.Equal(gap, 0.0)), to=BOOL), -100.0, gap)
    mask = net.Where(net.Cast(net.Equal(gap, 0.0), to=BOOL), 0.0, gap)
    x = net.Transpose(x, perm=[0, 2, 3, 1])
    for turned in (0, shift):
        y = rolled(net, x, -turned) if turned else x
        y = window_attention(net, windows(net, y, h, w, width, window), width, 2, window, mask if turned else None)
        y = unwindowed(net, y, h, w, width, window)
        y = rolled(net, y, turned) if turned else y
        x = net.Add(x, net.layer_norm(y, width))
        x = net.Add(x, net.layer_norm(net.linear(net.gelu(net.linear(x, width, 16)), 16, width), width))
    x = net.Add(net.conv(net.Transpose(x, perm=[0, 3, 1, 2]), width, width), first)
    x = net.DepthToSpace(net.conv(x, width, 12), blocksize=2, mode="CRD")
    x = net.slice(net.slice(x, 2, 0, net.Mul(height, 2)), 3, 0, net.Mul(wide, 2))
    net.output(x, "reconstruction")
    return net.model(Open)


def _assigned(net: Net, x: str, parts: dict[int, tuple[int, int]], value: float) -> str:
    """`x[:, a:b, c:d, :] = value` of four axes."""
    lines = []
    for axis in range(4):
        line = net.Range(0, net.size(x, axis), 1)
        line = net.slice(line, 0, *parts[axis]) if axis in parts else line
        lines.append(net.Reshape(line, tuple(-1 if axis == j else 1 for j in range(4))))
    shape = net.Shape(net.Add(net.Add(net.Add(lines[0], lines[1]), lines[2]), lines[3]))
    index = net.Concat(*(net.unsqueeze(net.Expand(line, shape), -1) for line in lines), axis=-1)
    return net.ScatterND(x, index, net.Expand(value, net.Slice(net.Shape(index), (0,), (-1,), (0,))))


def style() -> onnx.ModelProto:
    """Opset 9: reflected paddings, instance norms, and Upsample whose scales are computed from the shape."""
    net = Net(35, 9)

    def conv(x: str, inputs: int, outputs: int, side: int, stride: int = 1) -> str:
        reach = side // 2
        x = net.Pad(x, mode="reflect", pads=[0, 0, reach, reach] * 2)
        return net.conv(x, inputs, outputs, side, stride, pad=0)

    def norm(x: str, channels: int) -> str:
        return net.InstanceNormalization(x, net.positive(channels), net.weights(channels), epsilon=1e-5)

    def doubled(x: str) -> str:
        scales = []
        for axis in (2, 3):
            size = net.Cast(net.size(x, axis), to=FLOAT)
            target = net.Cast(net.Floor(net.Mul(size, 2.0)), to=FLOAT)
            scales.append(net.Unsqueeze(net.Div(target, size), axes=[0]))
        return net.Upsample(x, net.Concat(np.ones(2), *scales, axis=0), mode="nearest")

    x = net.Relu(norm(conv("input", 3, 8, 9), 8))
    x = net.Relu(norm(conv(x, 8, 8, 3, 2), 8))
    for _ in range(2):
        y = net.Relu(norm(conv(x, 8, 8, 3), 8))
        x = net.Add(norm(conv(y, 8, 8, 3), 8), x)
    x = net.Relu(norm(conv(doubled(x), 8, 8, 3), 8))
    net.output(conv(x, 8, 3, 9), "output")
    return net.model(Open)


def u2net() -> onnx.ModelProto:
    """Blocks that go down by pools which round up and come back by resizes to each other's sizes; dilated ones."""
    net = Net(36, 11)

    def unit(x: str, inputs: int, outputs: int, dilation: int = 1) -> str:
        return net.Relu(net.batch_norm(net.conv(x, inputs, outputs, dilation=dilation), outputs))

    def pool(x: str) -> str:
        return net.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4, ceil_mode=1)

    def like(x: str, y: str) -> str:
        return net.resize_to(x, _hw(net, y))

    def block(x: str, inputs: int, outputs: int) -> str:
        first = unit(x, inputs, outputs)
        near = unit(first, outputs, 4)
        far = unit(pool(near), 4, 4)
        low = unit(far, 4, 4, 2)
        back = unit(net.Concat(low, far, axis=1), 8, 4)
        return net.Add(unit(net.Concat(like(back, near), near, axis=1), 8, outputs), first)

    one = block("input", 3, 8)
    two = block(pool(one), 8, 8)
    back = block(net.Concat(like(two, one), one, axis=1), 16, 8)
    side = net.conv(back, 8, 1)
    deep = like(net.conv(two, 8, 1), side)
    whole = net.conv(net.Concat(side, deep, axis=1), 2, 1, 1)
    for name, x in (("whole", whole), ("side", side), ("deep", deep)):
        net.output(net.Sigmoid(x), name)
    return net.model(Open)


def modnet() -> onnx.ModelProto:
    """Batch norms of half the channels and instance norms of the others; scales of a sixteenth and of two."""
    net, width = Net(37, 11), 8

    def unit(x: str, inputs: int, outputs: int, stride: int = 1) -> str:
        x = net.conv(x, inputs, outputs, 3, stride)
        half = outputs // 2
        left = net.batch_norm(net.slice(x, 1, 0, half), half)
        right = net.slice(x, 1, half)
        right = net.InstanceNormalization(right, np.ones(half, np.float32), np.zeros(half, np.float32), epsilon=1e-5)
        return net.Relu(net.Concat(left, right, axis=1))

    def excited(x: str) -> str:
        y = net.view(net.GlobalAveragePool(x), net.size(x, 0), net.size(x, 1))
        y = net.Sigmoid(net.MatMul(net.Relu(net.MatMul(y, net.weights(width, 4))), net.weights(4, width)))
        y = net.view(y, net.size(x, 0), net.size(x, 1), 1, 1)
        return net.Mul(x, net.Expand(y, net.Shape(x)))

    small = net.resize_by("input", 0.25, "linear")
    deep = excited(unit(unit("input", 3, width, 2), width, width, 2))
    semantic = net.Sigmoid(net.conv(deep, width, 1, 3, 2))
    up = net.resize_by(unit(deep, width, width), 2, "linear")
    detail = unit(net.Concat(up, net.resize_by(small, 2, "linear"), axis=1), width + 3, width)
    matte = net.resize_by(unit(detail, width, width), 2, "linear")
    matte = net.conv(net.Concat(matte, "input", axis=1), width + 3, 1)
    net.output(net.Sigmoid(matte), "output")
    net.output(semantic, "semantic")
    return net.model(Open)


# --- pictures from noise ----------------------------------------------------------------------------------------------


def _residual(net: Net, x: str, inputs: int, outputs: int, time: str = "") -> str:
    y = net.conv(net.silu(net.group_norm(x, 4, inputs)), inputs, outputs)
    if time:
        y = net.Add(y, net.unsqueeze(net.gemm(net.silu(time), 32, outputs), 2, 3))
    y = net.conv(net.silu(net.group_norm(y, 4, outputs)), outputs, outputs)
    x = x if inputs == outputs else net.conv(x, inputs, outputs, 1)
    return net.Div(net.Add(x, y), 1.0)


def _attended(net: Net, x: str, width: int, states: str) -> str:
    """A transformer's block over places, which also sees the text."""
    n, h, w = (net.size(x, axis) for axis in (0, 2, 3))
    y = net.conv(net.group_norm(x, 4, width), width, width, 1)
    y = net.view(net.Transpose(y, perm=[0, 2, 3, 1]), n, net.Mul(h, w), width)
    z = net.layer_norm(y, width)
    y = net.Add(net.attention(z, z, width, 2, bias=False), y)
    q = net.heads(net.linear(net.layer_norm(y, width), width, width, False), 2, width // 2)
    k, v = (net.heads(net.linear(states, 12, width, False), 2, width // 2) for _ in range(2))
    y = net.Add(net.linear(net.joined(net.sdpa(q, k, v), width), width, width), y)
    wide = net.linear(net.layer_norm(y, width), width, 4 * width)
    half = net.floordiv(net.Add(net.size(wide, 2), 1), 2)
    left, gate = net.slice(wide, 2, 0, half), net.slice(wide, 2, half, net.Mul(half, 2))
    y = net.Add(net.linear(net.Mul(left, net.gelu(gate)), 2 * width, width), y)
    y = net.Transpose(net.view(y, n, h, w, width), perm=[0, 3, 1, 2])
    return net.Add(net.conv(y, width, width, 1), x)


def unet() -> onnx.ModelProto:
    """A step of diffusion: noise, a time and a text."""
    net, width = Net(38, 14), 8
    x, states = "sample", "encoder_hidden_states"
    time = net.expand("timestep", net.size(x, 0))
    rates = np.exp(-np.log(10000) * np.arange(4) / 4).astype(np.float32)
    angles = net.Mul(net.Cast(net.unsqueeze(time, 1), to=FLOAT), rates[None])
    both = net.Concat(net.Sin(angles), net.Cos(angles), axis=-1)
    both = net.Concat(net.slice(both, 1, 4), net.slice(both, 1, 0, 4), axis=-1)
    time = net.gemm(net.silu(net.gemm(both, 8, 32)), 32, 32)
    first = net.conv(x, 4, width)
    near = _residual(net, first, width, width, time)
    far = net.conv(near, width, width, 3, 2)
    far = _attended(net, _residual(net, far, width, 2 * width, time), 2 * width, states)
    back = net.conv(net.resize_by(far, 2), 2 * width, 2 * width)
    back = _residual(net, net.Concat(back, near, first, axis=1), 4 * width, width, time)
    net.output(net.conv(net.silu(net.group_norm(back, 4, width)), width, 4), "out_sample")
    return net.model({
        "sample": (FLOAT, ("batch_size", 4, "height", "width")), "timestep": (INT64, ("steps",)),
        "encoder_hidden_states": (FLOAT, ("batch_size", "sequence_length", 12)),
    })  # fmt: skip


def noises(rng: np.random.Generator) -> Sequence[Feeds]:
    return [
        {
            "sample": normal(rng, n, 4, h, w),
            "timestep": np.array([t]),
            "encoder_hidden_states": normal(rng, n, words, 12),
        }
        for n, h, w, t, words in ((2, 8, 8, 981, 7), (1, 12, 8, 1, 4))
    ]


def autoencoder() -> onnx.ModelProto:
    """Latents ↦ a picture: residual blocks, attention over places, nearest resizes."""
    net, width = Net(39, 14), 8
    x = _residual(net, net.conv(net.conv("latent_sample", 4, 4, 1), 4, width), width, width)
    n, c, h, w = (net.size(x, axis) for axis in range(4))
    flat = net.Transpose(net.view(x, n, c, net.Mul(h, w)), perm=[0, 2, 1])
    y = net.Transpose(net.group_norm(net.Transpose(flat, perm=[0, 2, 1]), 4, width, rank=3), perm=[0, 2, 1])
    y = net.Transpose(net.attention(y, y, width, 1), perm=[0, 2, 1])
    x = net.Add(net.view(y, n, c, h, w), x)
    x = net.conv(net.resize_by(_residual(net, x, width, width), 2), width, width)
    x = _residual(net, x, width, 4)
    net.output(net.conv(net.silu(net.group_norm(x, 4, 4)), 4, 3), "sample")
    return net.model({"latent_sample": (FLOAT, ("batch_size", 4, "height", "width"))})


PICTURES = {
    "depth_anything": Family("Depth-Anything, DINOv2, DPT, MiDaS", "position embeddings by a cubic Resize; resizes with aligned corners", depth_anything,
                             sizes((1, 12, 16), (2, 20, 12), name="pixel_values")),
    "esrgan": Family("ESRGAN, Real-ESRGAN", "dense blocks, nearest resizes, pixels as channels", esrgan, sizes((1, 12, 10), (2, 8, 14))),
    "compact": Family("Real-ESRGAN compact, ESPCN", "PReLU, DepthToSpace", compact, sizes((1, 12, 10), (2, 8, 14))),
    "swin2sr": Family("SwinIR, Swin2SR", "windows at every size; reflected padding by arithmetic, a mask by ScatterND", swin2sr,
                      sizes((1, 10, 12), (2, 16, 9))),
    "style": Family("Fast neural style", "opset 9: reflected padding, instance norms, Upsample by computed scales", style,
                    sizes((1, 16, 20), (2, 24, 12)), host="Resize by scales that a run computes"),
    "u2net": Family("U²-Net, IS-Net (rembg)", "pools that round up, dilated convolutions, resizes to each other's sizes", u2net,
                    sizes((1, 16, 13), (2, 11, 20))),
    "modnet": Family("MODNet", "batch and instance norms of halves of channels, fractional scales", modnet, sizes((1, 16, 24), (2, 32, 16))),
    "unet": Family("Stable Diffusion UNet", "group norms, cross attention, gated GELU; its time is one number or one for each picture", unet, noises,
                   numbers={"timestep": (1,)}),
    "autoencoder": Family("Stable Diffusion VAE", "group norms, attention over positions", autoencoder,
                          lambda rng: [{"latent_sample": normal(rng, n, 4, h, w)} for n, h, w in ((1, 6, 4), (2, 4, 8))]),
}  # fmt: skip
