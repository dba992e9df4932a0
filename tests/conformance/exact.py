"""What quantised ops give, by exact arithmetic: products of integers in 64 bits; numbers that are quantised in float32, as the
ops are defined, so that what lies between two steps falls the same way; sums of other products in float64.

onnxruntime is no judge of them: where a processor has no instruction for products of 8 bits (x86 without VNNI), its sums of
unsigned times signed numbers saturate at 16 bits. Where it has, these functions agreed with onnxruntime 1.31.1 in every
case of the tests that use them, within a step where an unrounded value lies between two. It runs DynamicQuantizeLSTM with one
thread then: with more, each quantises the states of its part of the batch by themselves, and the answers depend on the number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

Array: TypeAlias = np.ndarray
Attributes: TypeAlias = Mapping[str, Any]
MASKED: Final = -10_000.0
"""What attention adds to the scores of what a mask leaves out."""

# --- numbers and the integers that stand for them ---------------------------------------------------------------------


def along(p: Array, rank: int, axis: int) -> Array:
    """A scale or zero point: one, or one for each index of an axis."""
    return p.reshape([-1 if k == axis % rank else 1 for k in range(rank)]) if p.size > 1 else p.reshape(())


def centred(x: Array, zero: Array | None) -> Array:
    """Integers less their zero point."""
    return x.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))


def real(x: Array, scale: Array, zero: Array | None, axis: int = 1) -> Array:
    """The numbers that integers stand for."""
    scale, zero = along(scale, x.ndim, axis), None if zero is None else along(zero, x.ndim, axis)
    return f32(centred(x, zero)) * scale


def quantised(y: Array, scale: Array, zero: Array, axis: int = 1) -> Array:
    facts = np.iinfo(zero.dtype)
    steps = np.rint(y / along(scale, y.ndim, axis)) + along(zero, y.ndim, axis)
    return np.clip(steps, facts.min, facts.max).astype(zero.dtype)


def dynamically(x: Array) -> tuple[Array, Array, Array]:
    """Numbers as uint8, with their scale and zero point."""
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = np.asarray((high - low) / np.float32(255) if high > low else np.float32(1))
    zero = np.asarray(np.clip(np.rint(-low / scale), 0, 255)).astype(np.uint8)
    return quantised(x, scale, zero), scale, zero


def f32(x: Array) -> Array:
    return x.astype(np.float32)


# --- windows ----------------------------------------------------------------------------------------------------------


def windows(x: Array, shape: Sequence[int], attributes: Attributes, outside: Any) -> Array:
    """(…, spatial places, window) of an x (N, C, spatial); `outside` is what padding holds."""
    rank = len(shape)
    pads = attributes.get("pads", [0] * 2 * rank)
    strides = attributes.get("strides", [1] * rank)
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)], constant_values=outside)
    found = np.lib.stride_tricks.sliding_window_view(x, tuple(shape), axis=tuple(range(2, x.ndim)))
    return found[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]


def convolved(x: Array, w: Array, attributes: Attributes) -> Array:
    """The convolution of integers that are centred."""
    groups = attributes.get("group", 1)
    seen = windows(x, w.shape[2:], attributes, 0)
    rank = w.ndim - 2
    inside = [1, *range(2 + rank, 2 + 2 * rank)], [1, *range(2, 2 + rank)]
    parts = [
        np.moveaxis(np.tensordot(xs, ws, axes=inside), -1, 1)
        for xs, ws in zip(np.split(seen, groups, 1), np.split(w, groups), strict=True)
    ]
    return np.concatenate(parts, 1)


def last(compute: Callable[[Attributes, Array], Array]) -> Callable[[Attributes, Array], Array]:
    """Channels in the last axis where the attribute says so."""

    def computed(attributes: Attributes, x: Array) -> Array:
        if not attributes.get("channels_last", 0):
            return compute(attributes, x)
        return np.moveaxis(compute(attributes, np.moveaxis(x, -1, 1)), 1, -1)

    return computed


@last
def averages(attributes: Attributes, x: Array) -> Array:
    seen = windows(x, attributes["kernel_shape"], attributes, np.nan)
    return np.nanmean(seen, axis=tuple(range(x.ndim, seen.ndim)))


@last
def average(_: Attributes, x: Array) -> Array:
    return x.mean(axis=tuple(range(2, x.ndim)), keepdims=True)


@last
def greatest(attributes: Attributes, x: Array) -> Array:
    seen = windows(x, attributes["kernel_shape"], attributes, np.iinfo(x.dtype).min)
    return seen.max(axis=tuple(range(x.ndim, seen.ndim)))


# --- ops --------------------------------------------------------------------------------------------------------------


def softmax(attributes: Attributes, x: Array) -> Array:
    axis = attributes.get("axis", -1)
    whole = x if attributes["opset"] >= 13 else x.reshape(*x.shape[:axis], -1)
    axis = axis if attributes["opset"] >= 13 else -1
    powers = np.exp(whole - whole.max(axis, keepdims=True))
    return (powers / powers.sum(axis, keepdims=True)).reshape(x.shape)


def unary(compute: Callable[[Attributes, Array], Array]) -> Callable[..., Array]:
    """An op that takes x, its scale and zero point, and the result's."""
    return lambda a, x, xs, xz, ys, yz: quantised(compute(a, real(x, xs, xz)), ys, yz)


def binary(compute: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    return lambda _, x, xs, xz, y, ys, yz, zs, zz: quantised(compute(real(x, xs, xz), real(y, ys, yz)), zs, zz)


def concat(attributes: Attributes, scale: Array, zero: Array, *rest: Array) -> Array:
    parts = [real(rest[k], rest[k + 1], rest[k + 2]) for k in range(0, len(rest), 3)]
    return quantised(np.concatenate(parts, attributes["axis"]), scale, zero)


def where(_: Attributes, given: Array, x: Array, xs: Array, xz: Array, *rest: Array) -> Array:
    y, ys, yz, zs, zz = rest
    return quantised(np.where(given, real(x, xs, xz), real(y, ys, yz)), zs, zz)


def integer_products(_: Attributes, a: Array, b: Array, az: Array | None = None, bz: Array | None = None) -> Array:
    """The zero points of a are of its rows, those of b of its columns."""
    if az is not None and az.ndim == 1 and az.size > 1:
        az = az[:, None]
    return (centred(a, az) @ centred(b, bz)).astype(np.int32)


def to_float(_: Attributes, a: Array, b: Array, as_: Array, bs: Array, *rest: Array | None) -> Array:
    az, bz, bias = (*rest, None, None, None)[:3]
    sums = integer_products({}, a, b, az, bz) * (as_.astype(np.float64) * bs)
    return f32(sums if bias is None else sums + bias)


def dynamic_product(
    _: Attributes, x: Array, w: Array, ws: Array, wz: Array | None = None, bias: Array | None = None
) -> Array:
    x, scale, zero = dynamically(x)
    return to_float({}, x, w, scale, ws, zero, wz, bias)


def gemm(
    attributes: Attributes, a: Array, as_: Array, az: Array, b: Array, bs: Array, bz: Array, *rest: Array | None
) -> Array:
    bias, ys, yz = (*rest, None, None, None)[:3]
    x, w = centred(a, az), centred(b, along(bz, 2, 0 if attributes.get("transB") else 1))
    sums = (x.T if attributes.get("transA") else x) @ (w.T if attributes.get("transB") else w)
    y = (sums if bias is None else sums + bias) * (attributes.get("alpha", 1.0) * as_.astype(np.float64) * bs)
    return f32(y) if ys is None or yz is None else quantised(y, ys, yz)


def matrix_product(
    _: Attributes, a: Array, as_: Array, az: Array, b: Array, bs: Array, bz: Array, ys: Array, yz: Array
) -> Array:
    return quantised(integer_products({}, a, b, az, bz) * (as_.astype(np.float64) * bs), ys, yz, axis=-1)


def conv_integer(attributes: Attributes, x: Array, w: Array, xz: Array | None = None, wz: Array | None = None) -> Array:
    filters = centred(w, None if wz is None else along(wz, w.ndim, 0))
    return convolved(centred(x, xz), filters, attributes).astype(np.int32)


def conv(attributes: Attributes, x: Array, xs: Array, xz: Array, w: Array, ws: Array, wz: Array, *rest: Array) -> Array:
    ys, yz, bias = (*rest, np.zeros(len(w), np.int32))[:3]
    factor = along(xs.astype(np.float64) * ws, x.ndim, 1)

    @last
    def computed(attributes: Attributes, x: Array) -> Array:
        sums = convolved(centred(x, xz), centred(w, along(wz, w.ndim, 0)), attributes)
        return quantised((sums + along(bias, x.ndim, 1)) * factor, ys, yz)

    return computed(attributes, x)


def attention(
    attributes: Attributes, x: Array, w: Array, bias: Array, xs: Array, ws: Array, *rest: Array | None
) -> tuple[Array, Array]:
    mask, xz, wz, past = (*rest, None, None, None, None)[:4]
    heads = attributes["num_heads"]
    joined = real(x, xs, xz).astype(np.float64) @ real(w, ws, wz) + bias
    q, k, v = (p.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2) for p in np.split(joined, 3, -1))
    if past is not None:
        k, v = (np.concatenate([old, new], 2) for old, new in zip(past, (k, v), strict=True))
    scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores += np.where(mask, 0, MASKED)[:, None, None]
    if attributes.get("unidirectional"):
        rows, columns = scores.shape[2:]
        scores = np.where(np.tri(rows, columns, columns - rows, bool), scores, -np.inf)
    met = softmax({"opset": 13}, scores) @ v
    return f32(met.swapaxes(1, 2).reshape(*x.shape[:2], -1)), f32(np.stack([k, v]))


def lstm(
    attributes: Attributes, x: Array, w: Array, r: Array, bias: Array, *rest: Array | None
) -> tuple[Array, Array, Array]:
    """With the weights that the integers stand for; x as a whole, and the state at each step, are quantised before they are multiplied."""

    def rounded(given: Array) -> Array:
        whole, scale, zero = dynamically(f32(given))
        return centred(whole, zero) * scale.astype(np.float64)

    _, h, c, _, ws, wz, rs, rz = rest
    assert ws is not None
    assert wz is not None
    assert rs is not None
    assert rz is not None
    way, hidden = attributes.get("direction", "forward"), attributes["hidden_size"]
    ways, batch = len(w), x.shape[1]
    found, hs, cs = (
        np.zeros((len(x), ways, batch, hidden)),
        np.zeros((ways, batch, hidden)),
        np.zeros((ways, batch, hidden)),
    )
    for k in range(ways):
        wk, rk = (centred(p[k], z[k]) * s[k].astype(np.float64) for p, s, z in ((w, ws, wz), (r, rs, rz)))
        hk, ck = (np.zeros((batch, hidden)) if p is None else p[k].astype(np.float64) for p in (h, c))
        for t in reversed(range(len(x))) if k or way == "reverse" else range(len(x)):
            gates = rounded(x)[t] @ wk + rounded(hk) @ rk + bias[k].reshape(2, -1).sum(0)
            i, o, f, g = np.split(gates, 4, -1)
            i, o, f = (1 / (1 + np.exp(-p)) for p in (i, o, f))
            ck = f * ck + i * np.tanh(g)
            hk = found[t, k] = o * np.tanh(ck)
        hs[k], cs[k] = hk, ck
    return f32(found), f32(hs), f32(cs)


# --- weights of a few bits --------------------------------------------------------------------------------------------


def unpacked(x: Array, bits: int) -> Array:
    """The numbers of `bits` bits in bytes, the first in the lowest, along the last axis."""
    found = x[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & (1 << bits) - 1
    return found.reshape(*x.shape[:-1], -1)


def n_bits(attributes: Attributes, x: Array, packed: Array, scales: Array, *rest: Array | None) -> Array:
    zeros, groups = (*rest, None, None)[:2]
    columns, depth, bits, block = (attributes[name] for name in ("N", "K", "bits", "block_size"))
    blocks = packed.shape[1]
    numbers = unpacked(packed, bits).reshape(columns, -1)[:, :depth].astype(np.float64)
    if zeros is None:
        middle = np.full((columns, blocks), float(1 << bits - 1))
    elif zeros.dtype == np.uint8:
        middle = unpacked(zeros.reshape(columns, -1), bits)[:, :blocks].astype(np.float64)
    else:
        middle = zeros.reshape(columns, blocks).astype(np.float64)
    own = np.arange(depth) // block if groups is None else groups[:depth]
    weights = (numbers - middle[:, own]) * scales.reshape(columns, blocks)[:, own]
    return f32(x @ weights.T)


FP4: Final = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4])
NF4: Final = np.array([
    -1, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1,
])  # fmt: skip
CODES: Final = (np.concatenate([FP4, -FP4]), NF4)
"""What codes of 4 bits stand for, by quant_type."""


def bnb4(attributes: Attributes, x: Array, packed: Array, largest: Array) -> Array:
    """The codes lie flat, the first in a byte's high bits."""
    columns, depth, block = (attributes[name] for name in ("N", "K", "block_size"))
    codes = np.stack([packed >> 4, packed & 15], -1).reshape(-1)[: columns * depth]
    numbers = CODES[attributes["quant_type"]][codes] * largest[np.arange(codes.size) // block]
    return f32(x @ numbers.reshape(columns, depth).T)


def gather_blocks(
    attributes: Attributes, data: Array, indices: Array, scales: Array, zeros: Array | None = None
) -> Array:
    """Of rows, each quantised in blocks along it."""
    bits, block = attributes.get("bits", 4), attributes["block_size"]
    numbers = unpacked(data, bits).astype(np.float64)
    middle = float(1 << bits - 1) if zeros is None else unpacked(zeros, bits)[:, : scales.shape[1]].repeat(block, 1)
    return f32(((numbers - middle) * scales.repeat(block, 1))[indices])


def quantise(attributes: Attributes, x: Array, scale: Array, zero: Array) -> Array:
    return quantised(x, scale, zero, attributes.get("axis", 1))


def dequantise(attributes: Attributes, x: Array, scale: Array, zero: Array | None = None) -> Array:
    return f32(real(x, scale, zero, attributes.get("axis", 1)))


OPS: Final[Mapping[str, Callable[..., Any]]] = {
    "ConvInteger": conv_integer,
    "DequantizeLinear": dequantise,
    "DynamicQuantizeLinear": lambda _, x: dynamically(x),
    "MatMulInteger": integer_products,
    "QLinearConv": conv,
    "QLinearMatMul": matrix_product,
    "QuantizeLinear": quantise,
    "com.microsoft.DequantizeLinear": dequantise,
    "com.microsoft.DynamicQuantizeLSTM": lstm,
    "com.microsoft.DynamicQuantizeMatMul": dynamic_product,
    "com.microsoft.GatherBlockQuantized": gather_blocks,
    "com.microsoft.MatMulBnb4": bnb4,
    "com.microsoft.MatMulIntegerToFloat": to_float,
    "com.microsoft.MatMulNBits": n_bits,
    "com.microsoft.NhwcMaxPool": lambda a, x: greatest({**a, "channels_last": 1}, x),
    "com.microsoft.QAttention": attention,
    "com.microsoft.QGemm": gemm,
    "com.microsoft.QLinearAdd": binary(np.add),
    "com.microsoft.QLinearAveragePool": unary(averages),
    "com.microsoft.QLinearConcat": concat,
    "com.microsoft.QLinearConv": conv,
    "com.microsoft.QLinearGlobalAveragePool": unary(average),
    "com.microsoft.QLinearLeakyRelu": unary(lambda a, x: np.where(x < 0, a["alpha"] * x, x)),
    "com.microsoft.QLinearMul": binary(np.multiply),
    "com.microsoft.QLinearSigmoid": unary(lambda _, x: 1 / (1 + np.exp(-x))),
    "com.microsoft.QLinearSoftmax": unary(softmax),
    "com.microsoft.QLinearWhere": where,
    "com.microsoft.QuantizeLinear": quantise,
}
"""Each takes the attributes of a node and its inputs."""


def answers(op: str, attributes: Attributes, inputs: Sequence[Any]) -> list[Array]:
    """The outputs of a node; an input that is omitted is None."""
    found = OPS[op](attributes, *inputs)
    return list(found) if isinstance(found, tuple) else [found]


def _run(self: OpRun, *inputs: Array | None, **_: Any) -> tuple[Array, ...]:
    node: Any = self.onnx_node
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return tuple(answers(name, attributes, inputs))


def _as_classes() -> list[type[OpRun]]:
    split = [name.rpartition(".") for name in OPS]
    return [type(op, (OpRun,), {"op_domain": domain, "_run": _run}) for domain, _, op in split]


def evaluated(model: bytes, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs of a model, by ONNX's own reference with the ops above."""
    found = ReferenceEvaluator(model, new_ops=_as_classes()).run(None, dict(feeds))
    assert isinstance(found, list)
    return found
