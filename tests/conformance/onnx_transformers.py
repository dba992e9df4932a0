"""Small transformers with random weights as ONNX models, in the ops that exporters write: see test_transformers.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, WORDS, LAYERS = 64, 4, 50, 2
SIZE = WIDTH // HEADS
LONGEST = 160


class Net:
    """A graph while it is made: `net.op("Add", x, y)` adds a node and gives the name of its output."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def node(
        self, op: str, *inputs: str, outputs: Sequence[str | None] = (), domain: str = "", **attributes: Any
    ) -> list[str]:
        """A node with named outputs; None: any name, "": omitted."""
        names = [self.name() if given is None else given for given in outputs]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names

    def op(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.node(op, *inputs, outputs=[None], **attributes)[0]

    def microsoft(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.op(op, *inputs, domain="com.microsoft", **attributes)

    def const(self, value: Any, kind: Any = None) -> str:
        array = np.asarray(value, kind)
        self.tensors.append(numpy_helper.from_array(array, self.name()))
        return self.tensors[-1].name

    def ints(self, *values: int) -> str:
        return self.const(values, np.int64)

    def number(self, value: float) -> str:
        return self.const(value, np.float32)

    def weights(self, *shape: int) -> str:
        return self.const(self.rng.standard_normal(shape) / np.sqrt(shape[0] if len(shape) > 1 else 4), np.float32)

    def linear(self, x: str, outputs: int, inputs: int = WIDTH, bias: bool = True) -> str:
        y = self.op("MatMul", x, self.weights(inputs, outputs))
        return self.op("Add", self.weights(outputs), y) if bias else y

    def norm(self, x: str) -> str:
        return self.op("LayerNormalization", x, self.weights(WIDTH), self.weights(WIDTH), axis=-1, epsilon=1e-5)

    def dim(self, x: str, axis: int) -> str:
        """A dimension, as a vector of one number."""
        return self.op("Gather", self.op("Shape", x), self.ints(axis), axis=0)

    def reshaped(self, x: str, *dims: str | int) -> str:
        parts = [self.ints(d) if isinstance(d, int) else d for d in dims]
        return self.op("Reshape", x, self.op("Concat", *parts, axis=0))

    def heads(self, x: str, heads: int = HEADS) -> str:
        """(batch, length, width) as (batch, heads, length, size)."""
        split = self.reshaped(x, self.dim(x, 0), self.dim(x, 1), heads, SIZE)
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def joined(self, x: str) -> str:
        y = self.op("Transpose", x, perm=[0, 2, 1, 3])
        return self.reshaped(y, self.dim(y, 0), self.dim(y, 1), WIDTH)

    def attended(self, q: str, k: str, v: str, mask: str | None = None, scale: float = SIZE**-0.5) -> str:
        """Attention of (batch, heads, length, size) in plain ops."""
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = scores if scale == 1 else self.op("Div", scores, self.number(1 / scale))
        scores = scores if mask is None else self.op("Add", scores, mask)
        return self.joined(self.op("MatMul", self.op("Softmax", scores, axis=-1), v))

    def causal(self, queries: str, keys: str) -> str:
        """−3e38 for keys after their query, the last of the keys, as (queries, keys); both are lengths."""
        zero, one = self.const(0, np.int64), self.const(1, np.int64)
        queries, keys = (self.op("Squeeze", x) for x in (queries, keys))
        places = self.op("Range", self.op("Sub", keys, queries), keys, one)
        later = self.op("Greater", self.op("Range", zero, keys, one), self.op("Unsqueeze", places, self.ints(1)))
        return self.op("Where", later, self.number(-3e38), self.number(0))

    def padding(self, mask: str) -> str:
        """A mask (batch, keys) of ones and zeros as what is added to scores."""
        wide = self.op("Cast", self.op("Unsqueeze", mask, self.ints(1, 2)), to=TensorProto.FLOAT)
        return self.op("Mul", self.op("Sub", self.number(1), wide), self.number(float(np.finfo(np.float32).min)))

    def gelu(self, x: str) -> str:
        """GELU by erf, as exporters write it."""
        half = self.op("Add", self.op("Erf", self.op("Div", x, self.number(2**0.5))), self.number(1))
        return self.op("Mul", self.op("Mul", x, half), self.number(0.5))

    def gelu_tanh(self, x: str) -> str:
        cube = self.op("Mul", self.op("Pow", x, self.number(3)), self.number(0.044715))
        inner = self.op("Mul", self.op("Add", x, cube), self.number((2 / np.pi) ** 0.5))
        return self.op(
            "Mul", self.op("Mul", x, self.number(0.5)), self.op("Add", self.op("Tanh", inner), self.number(1))
        )

    def model(
        self, inputs: Mapping[str, tuple[int, Sequence[int | str]]], outputs: Sequence[str], opset: int = 17
    ) -> onnx.ModelProto:
        ports = [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()]
        results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
        graph = helper.make_graph(self.nodes, "transformer", ports, results, self.tensors)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


WORD, FLOAT = TensorProto.INT64, TensorProto.FLOAT
Tokens = (WORD, ("N", "L"))


def _named(net: Net, x: str, name: str) -> None:
    net.node("Identity", x, outputs=[name])


def _halved(net: Net, x: str) -> tuple[str, str]:
    """The two halves of the last axis."""
    left, right = net.node("Split", x, outputs=[None, None], axis=-1)
    return left, right


def modern_bert() -> onnx.ModelProto:
    """An encoder with rotary positions, norms without shifts, gated units, and layers that see near words only."""
    net = Net(7)
    x = net.norm(net.op("Gather", net.weights(WORDS, WIDTH), "input_ids", axis=0))
    zero, one = net.const(0, np.int64), net.const(1, np.int64)
    places = net.op("Range", zero, net.op("Squeeze", net.dim("input_ids", 1)), one)
    gap = net.op("Abs", net.op("Sub", places, net.op("Unsqueeze", places, net.ints(1))))
    far = net.op("Where", net.op("LessOrEqual", gap, net.ints(2)), net.number(0), net.number(-1e30))
    angles = net.op(
        "Mul", net.op("Cast", net.op("Unsqueeze", places, net.ints(1)), to=FLOAT), net.const(_angles(), np.float32)
    )
    angles = net.op("Concat", angles, angles, axis=-1)
    cos, sin = net.op("Cos", angles), net.op("Sin", angles)
    whole = net.padding("attention_mask")
    for i in range(LAYERS):
        mask = whole if i % 2 else net.op("Add", whole, far)
        qkv = net.reshaped(net.linear(net.norm(x), 3 * WIDTH, bias=False), net.dim(x, 0), net.dim(x, 1), 3, HEADS, SIZE)
        parts = net.node("Split", net.op("Transpose", qkv, perm=[2, 0, 3, 1, 4]), outputs=[None] * 3, axis=0)
        q, k, v = (net.op("Squeeze", y, net.ints(0)) for y in parts)
        y = net.attended(_turned(net, q, cos, sin), _turned(net, k, cos, sin), v, mask)
        x = net.op("Add", x, net.linear(y, WIDTH, bias=False))
        gate, up = _halved(net, net.linear(net.norm(x), 4 * WIDTH, bias=False))
        x = net.op("Add", x, net.linear(net.op("Mul", net.gelu(gate), up), WIDTH, 2 * WIDTH, bias=False))
    _named(net, net.norm(x), "last_hidden_state")
    return net.model(dict.fromkeys(("input_ids", "attention_mask"), Tokens), ["last_hidden_state"])


def _distance_bias(net: Net, queries: str, keys: str, both_ways: bool) -> str:
    """A bias (1, heads, queries, keys) that depends on the distance: exact for near keys, in buckets for far ones."""
    zero, one = net.const(0, np.int64), net.const(1, np.int64)
    count = 8 if both_ways else 16
    at, key = (net.op("Range", zero, net.op("Squeeze", d), one) for d in (queries, keys))
    gap = net.op("Sub", key, net.op("Unsqueeze", at, net.ints(1)))
    if both_ways:
        base = net.op("Mul", net.op("Cast", net.op("Greater", gap, zero), to=WORD), net.const(count, np.int64))
        gap = net.op("Abs", gap)
    else:
        base, gap = zero, net.op("Neg", net.op("Min", gap, zero))
    exact = count // 2
    ratio = net.op("Log", net.op("Div", net.op("Cast", gap, to=FLOAT), net.number(exact)))
    wide = net.op("Mul", net.op("Div", ratio, net.number(np.log(32 / exact))), net.number(count - exact))
    far = net.op("Add", net.op("Cast", wide, to=WORD), net.const(exact, np.int64))
    far = net.op("Min", far, net.const(count - 1, np.int64))
    near = net.op("Less", gap, net.const(exact, np.int64))
    bucket = net.op("Add", net.op("Where", near, gap, far), base)
    bias = net.op("Gather", net.weights(16, HEADS), bucket, axis=0)
    return net.op("Unsqueeze", net.op("Transpose", bias, perm=[2, 0, 1]), net.ints(0))


def t5() -> onnx.ModelProto:
    """An encoder and a decoder with biases by distance, RMS norms, and no scale: two texts ↦ logits."""
    net = Net(8)
    embedding = net.weights(WORDS, WIDTH)

    def layer(x: str, mask: str, states: str | None = None, of_states: str | None = None) -> str:
        def attention(y: str, seen: str, bias: str | None) -> str:
            parts = (net.heads(net.linear(z, WIDTH, bias=False)) for z in (y, seen, seen))
            return net.linear(net.attended(*parts, bias, scale=1), WIDTH, bias=False)

        y = _rms(net, x, "plain")
        x = net.op("Add", x, attention(y, y, mask))
        if states:
            x = net.op("Add", x, attention(_rms(net, x, "plain"), states, of_states))
        inner = net.op("Relu", net.linear(_rms(net, x, "plain"), 4 * WIDTH, bias=False))
        return net.op("Add", x, net.linear(inner, WIDTH, 4 * WIDTH, bias=False))

    lengths = [net.dim(name, 1) for name in ("input_ids", "decoder_input_ids")]
    padding = net.padding("attention_mask")
    x = net.op("Gather", embedding, "input_ids", axis=0)
    mask = net.op("Add", _distance_bias(net, lengths[0], lengths[0], True), padding)
    for _ in range(LAYERS):
        x = layer(x, mask)
    states, y = _rms(net, x, "plain"), net.op("Gather", embedding, "decoder_input_ids", axis=0)
    mask = net.op("Add", _distance_bias(net, lengths[1], lengths[1], False), net.causal(lengths[1], lengths[1]))
    for _ in range(LAYERS):
        y = layer(y, mask, states, padding)
    net.node("MatMul", _rms(net, y, "plain"), net.op("Transpose", embedding, perm=[1, 0]), outputs=["logits"])
    inputs = {"input_ids": Tokens, "attention_mask": Tokens, "decoder_input_ids": (WORD, ("N", "M"))}
    return net.model(inputs, ["logits"])


def _self_attention(net: Net, x: str, mask: str | None) -> str:
    q, k, v = (net.heads(net.linear(x, WIDTH)) for _ in range(3))
    return net.linear(net.attended(q, k, v, mask), WIDTH)


def bert() -> onnx.ModelProto:
    """An encoder with norms after the sums: words, a mask and segments ↦ states, and a pooled state."""
    net = Net(1)
    places = net.op("Slice", net.ints(*range(LONGEST)), net.ints(0), net.dim("input_ids", 1), net.ints(0))
    parts = [("input_ids", WORDS), (places, LONGEST), ("token_type_ids", 2)]
    words, place, segment = (net.op("Gather", net.weights(n, WIDTH), ids, axis=0) for ids, n in parts)
    x = net.norm(net.op("Add", net.op("Add", words, segment), place))
    mask = net.padding("attention_mask")
    for _ in range(LAYERS):
        x = net.norm(net.op("Add", _self_attention(net, x, mask), x))
        inner = net.gelu(net.linear(x, 4 * WIDTH))
        x = net.norm(net.op("Add", net.linear(inner, WIDTH, 4 * WIDTH), x))
    _named(net, x, "last_hidden_state")
    first = net.op("Gather", x, net.const(0, np.int64), axis=1)
    net.node("Tanh", net.op("Gemm", first, net.weights(WIDTH, WIDTH), net.weights(WIDTH), transB=1), outputs=["pooled"])
    inputs = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), Tokens)
    return net.model(inputs, ["last_hidden_state", "pooled"])


def vit(side: int = 12, patch: int = 4, classes: int = 7) -> onnx.ModelProto:
    """A classifier of pictures: patches by a convolution, a class token, norms before the layers."""
    net = Net(2)
    x = net.op("Conv", "pixels", net.weights(WIDTH, 3, patch, patch), net.weights(WIDTH), strides=[patch, patch])
    x = net.op("Transpose", net.reshaped(x, net.dim(x, 0), WIDTH, -1), perm=[0, 2, 1])
    token = net.op("Expand", net.weights(1, 1, WIDTH), net.op("Concat", net.dim(x, 0), net.ints(1, 1), axis=0))
    count = (side // patch) ** 2 + 1
    x = net.op("Add", net.op("Concat", token, x, axis=1), net.weights(1, count, WIDTH))
    for _ in range(LAYERS):
        x = net.op("Add", _self_attention(net, net.norm(x), None), x)
        x = net.op("Add", net.linear(net.gelu(net.linear(net.norm(x), 4 * WIDTH)), WIDTH, 4 * WIDTH), x)
    first = net.op("Gather", net.norm(x), net.const(0, np.int64), axis=1)
    net.node("Gemm", first, net.weights(classes, WIDTH), net.weights(classes), outputs=["logits"], transB=1)
    return net.model({"pixels": (FLOAT, ("N", 3, side, side))}, ["logits"])


def _cache_inputs(heads: int, names: Sequence[str] = ("key", "value")) -> dict[str, tuple[int, Sequence[int | str]]]:
    return {f"past.{i}.{n}": (FLOAT, ("N", heads, "P", SIZE)) for i in range(LAYERS) for n in names}


def _cache_outputs() -> list[str]:
    return [f"present.{i}.{n}" for i in range(LAYERS) for n in ("key", "value")]


def _grown(net: Net, layer: int, k: str, v: str) -> tuple[str, str]:
    """The caches of a layer with the keys and values of this call."""
    for name, x in (("key", k), ("value", v)):
        net.node("Concat", f"past.{layer}.{name}", x, outputs=[f"present.{layer}.{name}"], axis=2)
    return f"present.{layer}.key", f"present.{layer}.value"


def gpt2() -> onnx.ModelProto:
    """A decoder step: words, the keys and values so far and a mask for all ↦ logits, and the keys and values with these."""
    net = Net(3)
    embedding = net.weights(WORDS, WIDTH)
    words = net.op("Gather", embedding, "input_ids", axis=0)
    x = net.op("Add", words, net.op("Gather", net.weights(LONGEST, WIDTH), "position_ids", axis=0))
    mask = net.op(
        "Add", net.causal(net.dim("input_ids", 1), net.dim("attention_mask", 1)), net.padding("attention_mask")
    )
    mask = net.op("Max", mask, net.number(float(np.finfo(np.float32).min)))
    for i in range(LAYERS):
        qkv = net.linear(net.norm(x), 3 * WIDTH)
        parts = net.node("Split", qkv, net.ints(WIDTH, WIDTH, WIDTH), outputs=[None] * 3, axis=2)
        q, k, v = (net.heads(y) for y in parts)
        x = net.op("Add", net.linear(net.attended(q, *_grown(net, i, k, v), mask), WIDTH), x)
        inner = net.gelu_tanh(net.linear(net.norm(x), 4 * WIDTH))
        x = net.op("Add", x, net.linear(inner, WIDTH, 4 * WIDTH))
    net.node("MatMul", net.norm(x), net.op("Transpose", embedding, perm=[1, 0]), outputs=["logits"])
    inputs = {"input_ids": Tokens, "attention_mask": (WORD, ("N", "T")), "position_ids": Tokens, **_cache_inputs(HEADS)}
    return net.model(inputs, ["logits", *_cache_outputs()])


KV_HEADS = 2


def _angles() -> np.ndarray:
    return 1 / 100 ** (np.arange(0, SIZE, 2) / SIZE)


def _rms(net: Net, x: str, form: str) -> str:
    scale = net.weights(WIDTH)
    if form == "opset23":
        return net.op("RMSNormalization", x, scale, epsilon=1e-5)
    if form == "microsoft":
        return net.op("SimplifiedLayerNormalization", x, scale, epsilon=1e-5, axis=-1)
    mean = net.op("ReduceMean", net.op("Pow", x, net.number(2)), axes=[-1], keepdims=1)
    inverse = net.op("Reciprocal", net.op("Sqrt", net.op("Add", mean, net.number(1e-5))))
    return net.op("Mul", scale, net.op("Mul", x, inverse))


def _turned(net: Net, x: str, cos: str, sin: str) -> str:
    """Rotary positions in plain ops: x · cos + (−right, left) · sin."""
    half, end = net.ints(SIZE // 2), net.ints(2**31)
    left = net.op("Slice", x, net.ints(0), half, net.ints(3))
    right = net.op("Slice", x, half, end, net.ints(3))
    other = net.op("Concat", net.op("Neg", right), left, axis=-1)
    return net.op("Add", net.op("Mul", x, cos), net.op("Mul", other, sin))


def _repeated(net: Net, x: str) -> str:
    """(batch, heads of keys, length, size) with each head as often as it has heads of queries."""
    dims = [net.dim(x, 0), net.ints(KV_HEADS), net.ints(HEADS // KV_HEADS), net.dim(x, 2), net.ints(SIZE)]
    wide = net.op("Expand", net.op("Unsqueeze", x, net.ints(2)), net.op("Concat", *dims, axis=0))
    return net.reshaped(wide, net.dim(x, 0), HEADS, net.dim(x, 2), SIZE)


def llama(form: str) -> onnx.ModelProto:
    """A decoder step with RMS norms, rotary positions, grouped heads and gated units.

    form: "plain" (ops of opset 17), "opset23" (Attention, RMSNormalization, RotaryEmbedding), or "microsoft"
    (GroupQueryAttention, SkipSimplifiedLayerNormalization).
    """
    net, microsoft = Net(4), form == "microsoft"
    x, skip = net.op("Gather", net.weights(WORDS, WIDTH), "input_ids", axis=0), ""
    shared = _rotation(net, form)
    for i in range(LAYERS):
        y, x = _sum_norm(net, x, skip, form)
        q, k, v = (net.linear(y, heads * SIZE, bias=False) for heads in (HEADS, KV_HEADS, KV_HEADS))
        met = _grouped(net, i, q, k, v, shared, form)
        y, x = _sum_norm(net, x, net.linear(met, WIDTH, bias=False), form)
        gate, up = (net.linear(y, 3 * WIDTH, bias=False) for _ in range(2))
        inner = net.op("Mul", net.op("Mul", gate, net.op("Sigmoid", gate)), up)
        skip = net.linear(inner, WIDTH, 3 * WIDTH, bias=False)
    y, _ = _sum_norm(net, x, skip, form)
    net.node("MatMul", y, net.weights(WIDTH, WORDS), outputs=["logits"])
    inputs = {
        "input_ids": Tokens,
        "attention_mask": (WORD, ("N", "T")),
        "position_ids": Tokens,
        **_cache_inputs(KV_HEADS),
    }
    if microsoft:
        del inputs["position_ids"]
    return net.model(inputs, ["logits", *_cache_outputs()], opset={"opset23": 23}.get(form, 17))


def _sum_norm(net: Net, x: str, skip: str, form: str) -> tuple[str, str]:
    """The norm of a sum, and the sum."""
    if not skip:
        return _rms(net, x, form), x
    if form != "microsoft":
        total = net.op("Add", x, skip)
        return _rms(net, total, form), total
    y, _, _, total = net.node(
        "SkipSimplifiedLayerNormalization", x, skip, net.weights(WIDTH), outputs=[None, "", "", None],
        domain="com.microsoft", epsilon=1e-5,
    )  # fmt: skip
    return y, total


def _rotation(net: Net, form: str) -> tuple[str, ...]:
    """What all layers share: cosines and sines, and the mask or the lengths."""
    if form == "microsoft":
        angles = np.arange(LONGEST)[:, None] * _angles()
        caches = (net.const(f(angles), np.float32) for f in (np.cos, np.sin))
        count = net.op("ReduceSum", "attention_mask", net.ints(1), keepdims=0)
        ends = net.op("Cast", net.op("Sub", count, net.ints(1)), to=TensorProto.INT32)
        total = net.op("Gather", net.op("Shape", "attention_mask"), net.const(1, np.int64), axis=0)
        return *caches, ends, net.op("Cast", total, to=TensorProto.INT32)
    mask = net.causal(net.dim("input_ids", 1), net.dim("attention_mask", 1))
    mask = net.op(
        "Max", net.op("Add", mask, net.padding("attention_mask")), net.number(float(np.finfo(np.float32).min))
    )
    places = net.op("Cast", net.op("Unsqueeze", "position_ids", net.ints(2)), to=TensorProto.FLOAT)
    angles = net.op("Mul", places, net.const(_angles(), np.float32))
    if form == "plain":
        angles = net.op("Unsqueeze", net.op("Concat", angles, angles, axis=-1), net.ints(1))
    return net.op("Cos", angles), net.op("Sin", angles), mask


def _grouped(net: Net, layer: int, q: str, k: str, v: str, shared: tuple[str, ...], form: str) -> str:
    past = [f"past.{layer}.{n}" for n in ("key", "value")]
    present = [f"present.{layer}.{n}" for n in ("key", "value")]
    if form == "microsoft":
        cos, sin, ends, total = shared
        y, *_ = net.node(
            "GroupQueryAttention", q, k, v, *past, ends, total, cos, sin, outputs=[None, *present],
            domain="com.microsoft", num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1,
        )  # fmt: skip
        return y
    cos, sin, mask = shared
    if form == "opset23":
        q, k = (net.op("RotaryEmbedding", x, cos, sin, num_heads=heads) for x, heads in ((q, HEADS), (k, KV_HEADS)))
        y, *_ = net.node(
            "Attention", q, k, v, mask, *past, outputs=[None, *present], q_num_heads=HEADS, kv_num_heads=KV_HEADS
        )  # fmt: skip
        return y
    q = _turned(net, net.heads(q), cos, sin)
    k, v = _grown(net, layer, _turned(net, net.heads(k, KV_HEADS), cos, sin), net.heads(v, KV_HEADS))
    return net.attended(q, _repeated(net, k), _repeated(net, v), mask)


def whisper_encoder(mels: int = 8) -> onnx.ModelProto:
    """Sound ↦ states at half its length: two convolutions, then layers."""
    net = Net(5)
    x = net.gelu(net.op("Conv", "mel", net.weights(WIDTH, mels, 3), net.weights(WIDTH), pads=[1, 1]))
    x = net.gelu(net.op("Conv", x, net.weights(WIDTH, WIDTH, 3), net.weights(WIDTH), pads=[1, 1], strides=[2]))
    x = net.op("Transpose", x, perm=[0, 2, 1])
    places = net.op("Slice", net.weights(LONGEST, WIDTH), net.ints(0), net.dim(x, 1), net.ints(0))
    x = net.op("Add", x, places)
    for _ in range(LAYERS):
        x = net.op("Add", x, _self_attention(net, net.norm(x), None))
        x = net.op("Add", x, net.linear(net.gelu(net.linear(net.norm(x), 4 * WIDTH)), WIDTH, 4 * WIDTH))
    _named(net, net.norm(x), "states")
    return net.model({"mel": (FLOAT, ("N", mels, "S"))}, ["states"])


def whisper_decoder() -> onnx.ModelProto:
    """Words and the encoder's states ↦ logits: layers of causal attention, and of attention to the states."""
    net = Net(6)
    embedding = net.weights(WORDS, WIDTH)
    length = net.dim("input_ids", 1)
    places = net.op("Slice", net.weights(LONGEST, WIDTH), net.ints(0), length, net.ints(0))
    x = net.op("Add", net.op("Gather", embedding, "input_ids", axis=0), places)
    mask = net.causal(length, length)
    for _ in range(LAYERS):
        x = net.op("Add", x, _self_attention(net, net.norm(x), mask))
        q, k, v = (net.heads(net.linear(y, WIDTH)) for y in (net.norm(x), "states", "states"))
        x = net.op("Add", x, net.linear(net.attended(q, k, v), WIDTH))
        x = net.op("Add", x, net.linear(net.gelu(net.linear(net.norm(x), 4 * WIDTH)), WIDTH, 4 * WIDTH))
    net.node("MatMul", net.norm(x), net.op("Transpose", embedding, perm=[1, 0]), outputs=["logits"])
    return net.model({"input_ids": Tokens, "states": (FLOAT, ("N", "S", WIDTH))}, ["logits"])
