"""Speech and sound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from .family import Family, Feeds, normal
from .language import WORDS, words
from .net import END, FLOAT, INT64, Net

WIDTH = 8


def _masked_line(net: Net, lengths: str, longest: str) -> str:
    """(batch, longest): what is before each length."""
    return net.Less(net.unsqueeze(net.Range(0, longest, 1), 0), net.unsqueeze(lengths, 1))


def wav2vec2() -> onnx.ModelProto:
    """Convolutions of samples, of which the first has a group norm; places by a grouped convolution whose weight is a
    direction and a length."""
    net, width = Net(51, 14), 16
    x = net.unsqueeze("input_values", 1)
    for i, (side, stride) in enumerate(((10, 5), (3, 2), (2, 2))):
        x = net.conv1(x, WIDTH if i else 1, WIDTH, side, stride, pad=0, bias=False)
        x = net.gelu(x if i else net.group_norm(x, WIDTH, WIDTH, rank=3))
    x = net.linear(net.layer_norm(net.Transpose(x, perm=[0, 2, 1]), WIDTH), WIDTH, width)
    direction, size = net.weights(width, 4, 8), net.positive(1, 1, 8)
    length = net.Pow(net.sum(net.Pow(net.Abs(direction), 2.0), 0, 1), 0.5)
    weight = net.Mul(direction, net.Div(size, length))
    y = net.Conv(net.Transpose(x, perm=[0, 2, 1]), weight, net.weights(width), group=4, pads=[4, 4], kernel_shape=[8])
    y = net.gelu(net.slice(y, 2, 0, -1))
    x = net.layer_norm(net.Add(x, net.Transpose(y, perm=[0, 2, 1])), width)
    x = net.layer_norm(net.Add(x, net.attention(x, x, width, 2)), width)
    x = net.layer_norm(net.Add(x, net.linear(net.gelu(net.linear(x, width, 32)), 32, width)), width)
    net.output(net.linear(x, width, WORDS), "logits")
    return net.model({"input_values": (FLOAT, ("batch_size", "sequence_length"))})


def conformer() -> onnx.ModelProto:
    """Places relative to each other by a shifted view, gated and depthwise convolutions between halved units."""
    net, width = Net(52, 17), 16
    x = net.unsqueeze(net.Transpose("audio_signal", perm=[0, 2, 1]), 1)
    lengths = "length"
    for inputs in (1, WIDTH):
        x = net.Relu(net.conv(x, inputs, WIDTH, 3, 2))
        lengths = net.Cast(net.Floor(net.Add(net.Div(net.Cast(net.Sub(lengths, 1), to=FLOAT), 2.0), 1.0)), to=INT64)
    n, time = net.size(x, 0), net.size(x, 2)
    x = net.linear(net.view(net.Transpose(x, perm=[0, 2, 1, 3]), n, time, -1), WIDTH * 2, width)
    real = _masked_line(net, lengths, time)
    pairs = net.And(net.unsqueeze(real, 1), net.unsqueeze(real, 2))
    hidden = net.Not(net.unsqueeze(pairs, 1))
    line = net.Cast(net.Range(net.Sub(time, 1), net.Neg(time), -1), to=FLOAT)
    angles = net.Mul(net.unsqueeze(line, 1), np.array([1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003])[None])
    places = net.unsqueeze(net.Concat(net.Sin(angles), net.Cos(angles), axis=1), 0)
    y = net.linear(net.layer_norm(x, width), width, 32)
    x = net.Add(x, net.Mul(net.linear(net.silu(y), 32, width), 0.5))
    y = net.layer_norm(x, width)
    q, k, v = (net.heads(net.linear(y, width, width), 2, 8) for _ in range(3))
    p = net.heads(net.linear(places, width, width, False), 2, 8)
    by_word, by_place = (net.Add(q, net.weights(2, 1, 8)) for _ in range(2))
    far = net.MatMul(by_place, net.Transpose(p, perm=[0, 1, 3, 2]))
    rows, columns = net.size(far, 2), net.size(far, 3)
    far = net.Pad(far, (0, 0, 0, 1, 0, 0, 0, 0))
    far = net.slice(net.view(far, n, 2, -1, rows), 2, 1)
    far = net.slice(net.view(far, n, 2, rows, columns), 3, 0, time)
    scores = net.Mul(net.Add(net.MatMul(by_word, net.Transpose(k, perm=[0, 1, 3, 2])), far), 8**-0.5)
    shares = net.Softmax(net.Where(hidden, -10000.0, scores), axis=-1)
    met = net.joined(net.MatMul(net.Where(hidden, 0.0, shares), v), width)
    x = net.Add(x, net.linear(met, width, width))
    y = net.Transpose(net.layer_norm(x, width), perm=[0, 2, 1])
    left, right = net.split(net.conv1(y, width, 2 * width, 1), [width, width], 1)
    y = net.Mul(left, net.Sigmoid(right))
    y = net.Where(net.unsqueeze(net.Not(real), 1), 0.0, y)
    y = net.silu(net.batch_norm(net.conv1(y, width, width, 5, group=width), width))
    x = net.Add(x, net.Transpose(net.conv1(y, width, width, 1), perm=[0, 2, 1]))
    y = net.linear(net.layer_norm(x, width), width, 32)
    x = net.layer_norm(net.Add(x, net.Mul(net.linear(net.silu(y), 32, width), 0.5)), width)
    net.output(net.LogSoftmax(net.linear(x, width, 9), axis=-1), "logprobs")
    net.output(lengths, "encoded_lengths", INT64)
    return net.model({"audio_signal": (FLOAT, ("batch", 8, "time")), "length": (INT64, ("batch",))})


def spoken(rng: np.random.Generator) -> Sequence[Feeds]:
    return [
        {"audio_signal": normal(rng, len(lengths), 8, max(lengths)), "length": np.array(lengths)}
        for lengths in ((21,), (40, 33))
    ]


# --- VITS -------------------------------------------------------------------------------------------------------------


def _far_attention(net: Net, x: str, mask: str, window: int = 2) -> str:
    """Attention of (batch, width, time) with learnt keys and values of near distances, by padded views."""
    n, length = net.size(x, 0), net.size(x, 2)
    q, k, v = (
        net.Transpose(net.view(net.conv1(x, WIDTH, WIDTH, 1), n, 2, 4, length), perm=[0, 1, 3, 2]) for _ in range(3)
    )
    q = net.Div(q, 2.0)
    scores = net.MatMul(q, net.Transpose(k, perm=[0, 1, 3, 2]))
    count = net.Sub(net.Mul(length, 2), 1)

    def table() -> str:
        more = net.Cast(net.Max(net.Sub(length, window + 1), np.int64(0)), to=INT64)
        start = net.Cast(net.Max(net.Sub(window + 1, length), np.int64(0)), to=INT64)
        whole = net.pad(net.weights(1, 2 * window + 1, 4), 3, 0, 0, more, more)
        return net.slice(whole, 1, start, net.Add(start, count))

    far = net.MatMul(q, net.Transpose(net.unsqueeze(table(), 0), perm=[0, 1, 3, 2]))
    far = net.view(net.pad(far, 4, 0, 1), n, 2, net.Mul(length, net.Mul(length, 2)))
    far = net.view(net.pad(far, 3, 0, net.Sub(length, 1)), n, 2, net.Add(length, 1), count)
    far = net.slice(net.slice(far, 2, 0, length), 3, net.Sub(length, 1))
    scores = net.Where(net.Equal(mask, 0.0), -1e4, net.Add(scores, far))
    shares = net.Softmax(scores, axis=-1)
    met = net.MatMul(shares, v)
    near = net.view(net.pad(shares, 4, 0, net.Sub(length, 1)), n, 2, net.Add(net.Mul(length, length), net.Mul(length, net.Sub(length, 1))))  # fmt: skip
    near = net.slice(net.view(net.pad(near, 3, length, 0), n, 2, length, net.Mul(length, 2)), 3, 1)
    met = net.Add(met, net.MatMul(near, net.unsqueeze(table(), 0)))
    met = net.view(net.Transpose(met, perm=[0, 1, 3, 2]), n, WIDTH, length)
    return net.conv1(met, WIDTH, WIDTH, 1)


def _channel_norm(net: Net, x: str, width: int = WIDTH) -> str:
    return net.Transpose(net.layer_norm(net.Transpose(x, perm=[0, 2, 1]), width), perm=[0, 2, 1])


def _spline(net: Net, x: str, widths: str, heights: str, slopes: str, bins: int, bound: float) -> str:
    """The inverse of a monotone spline of rational quadratics, for those x that are within a bound; others stay. `x` is
    (batch, 1, time), the parameters have an axis more."""
    inside = net.And(net.GreaterOrEqual(x, -bound), net.LessOrEqual(x, bound))
    outside = net.Not(inside)
    edge = float(np.log(np.exp(1 - 1e-3) - 1))
    slopes = net.pad(slopes, 4, 1, 1)
    for column in (0, bins):
        index = net.expand(net.const(np.int64(column)), *(net.size(slopes, i) for i in range(3)), 1)
        slopes = net.ScatterElements(slopes, index, net.Expand(edge, net.Shape(index)), axis=3)
    result = net.full(net.Shape(x), 0.0)

    def found(mask: str, y: str) -> str:
        return net.GatherND(y, net.Transpose(net.NonZero(mask), perm=[1, 0]))

    def put(y: str, mask: str, values: str) -> str:
        return net.ScatterND(y, net.Transpose(net.NonZero(mask), perm=[1, 0]), values)

    result = put(result, outside, found(outside, x))
    y = found(inside, x)

    def knots(z: str) -> tuple[str, str]:
        share = net.Add(net.Mul(net.Softmax(found(inside, z), axis=-1), 1 - 1e-3 * bins), 1e-3)
        line = net.Add(net.Mul(net.pad(net.CumSum(share, -1), 2, 1, 0), 2 * bound), -bound)
        for column, value in ((0, -bound), (bins, bound)):
            index = net.expand(net.const(np.int64(column)), net.size(line, 0), 1)
            line = net.ScatterElements(line, index, net.Expand(value, net.Shape(index)), axis=1)
        return line, net.Sub(net.slice(line, 1, 1), net.slice(line, 1, 0, -1))

    across, width = knots(widths)
    up, height = knots(heights)
    slope = net.Add(net.Softplus(found(inside, slopes)), 1e-3)
    at = net.Cast(net.GreaterOrEqual(net.unsqueeze(y, -1), up), to=INT64)
    at = net.unsqueeze(net.Sub(net.sum(at, -1, keepdims=0), 1), -1)
    at = net.Clip(at, np.int64(0), np.int64(bins - 1))

    def here(z: str) -> str:
        return net.squeeze(net.GatherElements(z, at, axis=-1), -1)

    x0, w, y0, h, d = (here(z) for z in (across, width, up, height, net.Div(height, width)))
    s0, s1 = here(slope), here(net.slice(slope, 1, 1))
    both = net.Sub(net.Add(s0, s1), net.Mul(d, 2.0))
    gap = net.Sub(y, y0)
    a = net.Add(net.Mul(gap, both), net.Mul(h, net.Sub(d, s0)))
    b = net.Sub(net.Mul(h, s0), net.Mul(gap, both))
    c = net.Mul(net.Neg(d), gap)
    root = net.Sqrt(net.Sub(net.Pow(b, 2.0), net.Mul(net.Mul(a, c), 4.0)))
    share = net.Div(net.Mul(c, 2.0), net.Sub(net.Neg(b), root))
    return put(result, inside, net.Add(net.Mul(share, w), x0))


def _waves(net: Net, x: str, width: int) -> str:
    """A layer of WaveNet: tanh and sigmoid of halves."""
    y = net.conv1(x, width, 2 * width, 3)
    left, right = net.slice(y, 1, 0, width), net.slice(y, 1, width)
    return net.Add(x, net.conv1(net.Mul(net.Tanh(left), net.Sigmoid(right)), width, width, 1))


def vits() -> onnx.ModelProto:
    """Letters ↦ sound. Noise has a scale that is an input; durations decide how long the sound is."""
    net, bins, bound = Net(53, 15), 4, 2.0
    noise, speed, noise_w = (net.Gather("scales", i, axis=0) for i in range(3))
    x = net.Mul(net.Gather(net.weights(WORDS, WIDTH), "input"), WIDTH**0.5)
    x = net.Transpose(x, perm=[0, 2, 1])
    mask = net.Cast(net.unsqueeze(_masked_line(net, "input_lengths", net.size(x, 2)), 1), to=FLOAT)
    x = net.Mul(x, mask)
    pairs = net.Mul(net.unsqueeze(mask, 2), net.unsqueeze(mask, -1))
    x = _channel_norm(net, net.Add(x, _far_attention(net, x, pairs)))
    y = net.conv1(net.pad(net.Mul(x, mask), 3, 1, 1), WIDTH, 16, 3, pad=0)
    y = net.conv1(net.pad(net.Mul(net.Relu(y), mask), 3, 1, 1), 16, WIDTH, 3, pad=0)
    x = net.Mul(_channel_norm(net, net.Add(x, net.Mul(y, mask))), mask)
    mean, spread = net.split(net.Mul(net.conv1(x, WIDTH, 2 * WIDTH, 1), mask), [WIDTH, WIDTH], 1)
    # durations
    hidden = net.Mul(net.conv1(x, WIDTH, WIDTH, 1), mask)
    shape = net.shape(net.size(x, 0), 2, net.size(x, 2))
    z = net.Mul(net.RandomNormalLike(net.full(shape, 0.0)), noise_w)
    z = net.Add(z, net.Mul(net.conv1(x, WIDTH, 2, 1), 1.5))  # so that some are beyond the bound
    for _ in range(2):
        z = net.slice(z, 1, -1, -END, -1)  # flipped
        left, right = net.split(z, [1, 1], 1)
        y = net.Add(net.conv1(left, 1, WIDTH, 1), hidden)
        y = net.Add(y, net.gelu(_channel_norm(net, net.conv1(net.Mul(y, mask), WIDTH, WIDTH, 3, group=WIDTH))))
        y = net.Mul(net.conv1(y, WIDTH, 3 * bins - 1, 1), mask)
        y = net.view(y, net.size(left, 0), 1, 3 * bins - 1, net.size(left, 2))
        y = net.Transpose(y, perm=[0, 1, 3, 2])
        widths, heights, slopes = (net.slice(y, 3, i * bins, (i + 1) * bins if i < 2 else END) for i in range(3))
        right = _spline(net, right, net.Div(widths, WIDTH**0.5), net.Div(heights, WIDTH**0.5), slopes, bins, bound)
        z = net.Mul(net.Concat(left, right, axis=1), mask)
    scale, shift = net.weights(2, 1), net.weights(2, 1)
    z = net.Mul(net.Mul(net.Sub(z, shift), net.Exp(net.Neg(scale))), mask)
    log, _ = net.split(z, [1, 1], 1)
    lasting = net.Ceil(net.Mul(net.Mul(net.Exp(log), mask), speed))
    frames = net.Cast(net.Clip(net.sum(lasting, 1, 2, keepdims=0), 1.0), to=INT64)
    longest = net.ReduceMax(frames, keepdims=0)
    y_mask = net.Cast(net.unsqueeze(_masked_line(net, frames, longest), 1), to=FLOAT)
    cover = net.Mul(net.unsqueeze(mask, 2), net.unsqueeze(y_mask, -1))
    n, rows, columns = net.size(cover, 0), net.size(cover, 2), net.size(cover, 3)
    ends = net.view(net.CumSum(lasting, -1), net.Mul(n, columns))
    before = net.Less(net.unsqueeze(net.Cast(net.Range(0, rows, 1), to=FLOAT), 0), net.unsqueeze(ends, 1))
    path = net.view(net.Cast(before, to=FLOAT), n, columns, rows)
    path = net.Sub(path, net.slice(net.pad(path, 3, 0, 0, 1, 0), 1, 0, -1))
    path = net.Mul(net.Transpose(net.unsqueeze(path, 1), perm=[0, 1, 3, 2]), cover)
    path = net.squeeze(path, 1)
    mean, spread = (net.Transpose(net.MatMul(path, net.Transpose(y, perm=[0, 2, 1])), perm=[0, 2, 1]) for y in (mean, spread))  # fmt: skip
    z = net.Add(mean, net.Mul(net.Mul(net.RandomNormalLike(mean), net.Exp(spread)), noise))
    # the flow, and the vocoder
    half = WIDTH // 2
    z = net.slice(z, 1, -1, -END, -1)
    left, right = net.split(z, [half, half], 1)
    y = _waves(net, net.Mul(net.conv1(left, half, WIDTH, 1), y_mask), WIDTH)
    right = net.Mul(net.Sub(right, net.Mul(net.conv1(y, WIDTH, half, 1), y_mask)), y_mask)
    y = net.conv1(net.Mul(net.Concat(left, right, axis=1), y_mask), WIDTH, WIDTH, 7)
    for inputs, outputs in ((WIDTH, 4), (4, 4)):
        w = net.weights(inputs, outputs, 4)
        y = net.ConvTranspose(net.LeakyRelu(y, alpha=0.1), w, net.weights(outputs), strides=[2], pads=[1, 1], kernel_shape=[4])  # fmt: skip
        blocks = []
        for side, dilation in ((3, 1), (3, 3)):
            z = net.conv1(net.LeakyRelu(y, alpha=0.1), outputs, outputs, side, dilation=dilation)
            blocks.append(net.Add(y, z))
        y = net.Div(net.Add(*blocks), 2.0)
    net.output(net.unsqueeze(net.Tanh(net.conv1(net.LeakyRelu(y, alpha=0.01), 4, 1, 7, bias=False)), 1), "output")
    return net.model({
        "input": (INT64, ("batch_size", "phonemes")), "input_lengths": (INT64, ("batch_size",)), "scales": (FLOAT, (3,)),
    })  # fmt: skip


def letters(rng: np.random.Generator) -> Sequence[Feeds]:
    """The scales of noise are 0, so that every device and onnxruntime say the same."""
    return [
        {
            "input": words(rng, len(lengths), max(lengths)),
            "input_lengths": np.array(lengths),
            "scales": np.float32([0, speed, 0]),
        }
        for lengths, speed in (((6,), 1.0), ((4, 9), 1.3))
    ]


# --- Kokoro -----------------------------------------------------------------------------------------------------------


def _styled(net: Net, x: str, style: str, width: int = WIDTH) -> str:
    """An instance norm whose scale and shift come from a style."""
    ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
    y = net.InstanceNormalization(x, ones, zeros, epsilon=1e-5)
    h = net.gemm(style, 4, 2 * width)
    h = net.view(h, net.size(h, 0), net.size(h, 1), 1)
    gamma, beta = net.split(h, [width, width], 1)
    return net.Add(net.Mul(net.Add(gamma, 1.0), y), beta)


def kokoro(bins: int = 8) -> onnx.ModelProto:
    """LSTMs over letters and frames, norms by a style, a source of sines, and a Fourier transform by convolutions."""
    net, half = Net(54, 17), bins // 2 + 1
    style = net.slice("style", 1, 0, 4)

    def lstm(x: str, inputs: int) -> str:
        """(batch, width, time) to the same."""
        w, r, b = net.weights(2, 16, inputs), net.weights(2, 16, 4), net.weights(2, 32)
        state = net.expand(net.const(np.zeros((1, 1, 1), np.float32)), 2, net.size(x, 0), 4)
        y, _, _ = net.node("LSTM", net.Transpose(x, perm=[2, 0, 1]), w, r, b, "", state, state, outputs=[None] * 3,
                           direction="bidirectional", hidden_size=4)  # fmt: skip
        y = net.Reshape(net.Transpose(y, perm=[0, 2, 1, 3]), (0, 0, -1))
        return net.Transpose(y, perm=[1, 2, 0])

    x = net.Transpose(net.Gather(net.weights(WORDS, WIDTH), "input_ids"), perm=[0, 2, 1])
    x = net.LeakyRelu(_channel_norm(net, net.conv1(x, WIDTH, WIDTH, 5)), alpha=0.2)
    x = lstm(x, WIDTH)
    wide = net.expand(net.unsqueeze(style, 2), -1, -1, net.size(x, 2))
    rates = net.Sigmoid(net.linear(net.Transpose(lstm(net.Concat(x, wide, axis=1), 12), perm=[0, 2, 1]), WIDTH, 5))
    lasting = net.Clip(net.Round(net.Div(net.sum(rates, -1, keepdims=0), "speed")), 1.0)
    lasting = net.Cast(net.squeeze(lasting, 0), to=INT64)
    total = net.sum(lasting, 0, keepdims=0)
    ends = net.CumSum(lasting, 0)
    line = net.unsqueeze(net.Range(0, total, 1), 0)
    inside = net.And(net.GreaterOrEqual(line, net.unsqueeze(net.Sub(ends, lasting), 1)), net.Less(line, net.unsqueeze(ends, 1)))  # fmt: skip
    y = net.MatMul(x, net.unsqueeze(net.Cast(inside, to=FLOAT), 0))
    y = lstm(y, WIDTH)
    pitch = net.conv1(net.LeakyRelu(_styled(net, y, style), alpha=0.2), WIDTH, 1, 3)
    # a source of two harmonics
    hop = bins // 2
    rate = net.Resize(net.Mul(net.Sigmoid(pitch), 0.05), "", np.array([1, 1, 2 * hop], np.float32), mode="nearest",
                      coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    rate = net.Mul(net.Transpose(rate, perm=[0, 2, 1]), np.array([[[1.0, 2.0]]]))
    phase = net.Mul(net.CumSum(net.Mod(rate, 1.0, fmod=1), 1), 2 * np.pi)
    source = net.Tanh(net.linear(net.Sin(phase), 2, 1))
    source = net.Transpose(source, perm=[0, 2, 1])
    window = np.hanning(bins + 1)[:bins]
    angle = 2 * np.pi * np.outer(np.arange(half), np.arange(bins)) / bins
    cos, sin = np.cos(angle) * window, -np.sin(angle) * window
    source = net.pad(source, 3, hop, hop, mode="reflect")
    real, imaginary = (net.Conv(source, m[:, None].astype(np.float32), strides=[hop]) for m in (cos, sin))
    size = net.Sqrt(net.Add(net.Add(net.Pow(real, 2.0), net.Pow(imaginary, 2.0)), 1e-2))
    heard = net.Concat(size, net.Div(imaginary, size), axis=1)
    # the generator
    y = net.ConvTranspose(y, net.weights(WIDTH, 1, 4), net.weights(WIDTH), group=WIDTH, strides=[2], pads=[1, 1], kernel_shape=[4])  # fmt: skip
    y = net.pad(y, 3, 1, 0, mode="reflect")
    y = net.Add(y, net.conv1(heard, 2 * half, WIDTH, 1))
    for dilation in (1, 3):
        z, a = _styled(net, y, style), net.positive(1, WIDTH, 1)
        z = net.Add(z, net.Mul(net.Div(1.0, a), net.Pow(net.Sin(net.Mul(a, z)), 2.0)))
        y = net.Add(y, net.conv1(z, WIDTH, WIDTH, 3, dilation=dilation))
    y = net.conv1(net.LeakyRelu(y, alpha=0.01), WIDTH, 2 * half, 7)
    size, phase = net.Exp(net.Mul(net.slice(y, 1, 0, half), 0.3)), net.Sin(net.slice(y, 1, half))
    inverse = np.linalg.pinv(np.concatenate([cos, sin])).T * window
    both = net.Concat(net.Mul(size, net.Cos(phase)), net.Mul(size, net.Sin(phase)), axis=1)
    wave = net.ConvTranspose(both, inverse[:, None].astype(np.float32), strides=[hop])
    ones = net.expand(net.const(np.ones((1, 1, 1), np.float32)), 1, 1, net.size(both, 2))
    cover = net.ConvTranspose(ones, (window**2)[None, None].astype(np.float32), strides=[hop])
    wave = net.Div(wave, net.Where(net.Greater(cover, 1e-4), cover, 1.0))
    net.output(net.squeeze(net.slice(wave, 2, hop, -hop), 1), "waveform")
    net.output(lasting, "durations", INT64)
    return net.model({"input_ids": (INT64, (1, "tokens")), "style": (FLOAT, (1, 8)), "speed": (FLOAT, (1,))})


def said(rng: np.random.Generator) -> Sequence[Feeds]:
    return [
        {"input_ids": words(rng, 1, length), "style": normal(rng, 1, 8), "speed": np.float32([speed])}
        for length, speed in ((5, 1.0), (9, 0.8))
    ]


# --- codecs -----------------------------------------------------------------------------------------------------------


def codec(codes: int = 12) -> onnx.ModelProto:
    """Sound ↦ codes ↦ sound: causal convolutions padded by reflection, an LSTM, the nearest of vectors, several times."""
    net = Net(55, 16)

    def conv(x: str, inputs: int, outputs: int, side: int, stride: int = 1) -> str:
        """As much on the right as makes the last step whole."""
        length = net.size(x, 2)
        steps = net.Div(net.Cast(net.Add(net.Sub(length, side), side - stride), to=FLOAT), float(stride))
        whole = net.Add(
            net.Mul(net.Cast(net.Ceil(net.Add(steps, 1.0)), to=INT64), stride), -stride + side - (side - stride)
        )
        more = net.Sub(whole, length)
        return net.conv1(net.pad(x, 3, side - stride, more, mode="reflect"), inputs, outputs, side, stride, pad=0)

    def lstm(x: str) -> str:
        w, r, b = net.weights(1, 4 * WIDTH, WIDTH), net.weights(1, 4 * WIDTH, WIDTH), net.weights(1, 8 * WIDTH)
        y, _, _ = net.node("LSTM", net.Transpose(x, perm=[2, 0, 1]), w, r, b, outputs=[None] * 3, hidden_size=WIDTH)
        return net.Add(net.Transpose(net.squeeze(y, 1), perm=[1, 2, 0]), x)

    x = conv("input_values", 1, WIDTH, 7)
    x = net.Add(conv(net.Elu(conv(net.Elu(x, alpha=1.0), WIDTH, 4, 3), alpha=1.0), 4, WIDTH, 1), x)
    x = conv(net.Elu(lstm(conv(net.Elu(x, alpha=1.0), WIDTH, WIDTH, 4, 2)), alpha=1.0), WIDTH, WIDTH, 7)
    rest, found, total = net.Transpose(x, perm=[0, 2, 1]), [], ""
    for _ in range(2):
        book = net.weights(codes, WIDTH, scale=2.0)
        flat = net.view(rest, -1, WIDTH)
        turned = net.Transpose(book, perm=[1, 0])
        far = net.Sub(net.sum(net.Pow(flat, 2.0), 1), net.MatMul(net.Mul(flat, 2.0), turned))
        far = net.Neg(net.Add(far, net.sum(net.Pow(turned, 2.0), 0)))
        index = net.view(net.ArgMax(far, axis=-1, keepdims=0), net.size(rest, 0), net.size(rest, 1))
        near = net.Gather(book, index)
        rest, total = net.Sub(rest, near), net.Add(total, near) if total else near
        found.append(net.unsqueeze(index, 0))
    net.output(net.Concat(*found, axis=0), "audio_codes", INT64)
    y = lstm(conv(net.Transpose(total, perm=[0, 2, 1]), WIDTH, WIDTH, 7))
    y = net.ConvTranspose(
        net.Elu(y, alpha=1.0), net.weights(WIDTH, 4, 4), net.weights(4), strides=[2], kernel_shape=[4]
    )
    y = net.slice(y, 2, 0, net.Sub(net.size(y, 2), 2))
    net.output(conv(net.Elu(y, alpha=1.0), 4, 1, 7), "audio_values")
    return net.model({"input_values": (FLOAT, ("batch_size", 1, "sequence_length"))})


AUDIO = {
    "wav2vec2": Family("wav2vec 2.0, HuBERT", "a group norm of samples, grouped convolution with weight norm", wav2vec2,
                       lambda rng: [{"input_values": normal(rng, *shape)} for shape in ((1, 200), (2, 333))]),
    "conformer": Family("Conformer, FastConformer (NeMo)", "relative positions by a shifted view, masks by lengths", conformer, spoken),
    "vits": Family("VITS, Piper, MMS", "random ops, durations that decide lengths, splines by GatherND and ScatterND", vits, letters, 1e-4),
    "kokoro": Family("Kokoro, StyleTTS 2", "LSTMs, AdaIN, a source of sines, Fourier transforms by (transposed) convolutions", kokoro,
                     said, 1e-4),
    "codec": Family("EnCodec, DAC, Mimi", "padding by arithmetic, ELU, LSTM, nearest codes by ArgMax", codec,
                    lambda rng: [{"input_values": normal(rng, *shape)} for shape in ((1, 1, 40), (2, 1, 63))], numbers={"input_values": (1, 1, 40)}),
}  # fmt: skip
