"""com.microsoft's mixtures of experts: a token's result is the weighted sum of those of the k experts that its router
prefers. Each expert is computed for every token; what was not chosen is left out of the sum."""

from __future__ import annotations

from collections.abc import Sequence

from ....dtypes import float32, int32, uint8
from ....graph import Builder, Node
from ....late_dataclass import dataclass
from ....ops.elementwise.gated import swish
from ....ops.movement.move import numbered
from ....shapes import show
from .._call import Call, adapter
from ..elementwise.basic import cast
from ..movement.shapes import part
from ..products.quantise import dequantised, each_of_block
from .attention import parts, picked
from .quantised import unpacked


@dataclass(frozen=True)
class ExpertWeights:
    """A linear layer of each expert: weights (experts, outputs, inputs), biases (experts, outputs)."""

    weights: Node
    bias: Node | None

    def __call__(self, b: Builder, x: Node) -> Node:
        """x: (experts or 1, tokens, inputs)."""
        y = b.matmul(x, b.transpose(self.weights, perm=(0, 2, 1)))
        if self.bias is None:
            return y
        experts, outputs = self.bias.shape
        return b.add(y, b.reshape(self.bias, shape=(experts, 1, outputs)))


def _gated(call: Call, gate: Node, linear: Node) -> Node:
    """SwiGLU: G · sigmoid(α · G) · (L + β), where G and L are the two clipped by the limit."""
    b = call.b
    if "swiglu_limit" in call.attributes:
        limit = call.attr("swiglu_limit", 0.0)
        gate = b.minimum(gate, b.const(limit, gate.dtype))
        linear = b.clip(linear, b.const(-limit, gate.dtype), b.const(limit, gate.dtype))
    linear = b.add(linear, b.const(call.attr("activation_beta", 0.0), linear.dtype))
    return b.mul(swish(b, gate, call.attr("activation_alpha", 1.0)), linear)


def _hidden(call: Call, x: Node, layer: ExpertWeights, other: ExpertWeights | None) -> Node:
    """What lies between an expert's first and last layer."""
    b, kind, fusion = call.b, call.attr("activation_type", "relu"), call.attr("swiglu_fusion", 0)
    y = layer(b, x)
    if kind == "swiglu":
        if fusion == 0 and other is not None:
            return _gated(call, y, other(b, x))
        size = call.number(y.shape[2], "the width of the first layer")
        if fusion not in (1, 2) or other is not None or size % 2:
            given = f"swiglu_fusion = {fusion}, {'a' if other else 'no'} third layer, and a first one of width {size}"
            raise call.fail(f"{given}; expected 0 with a third layer, or 1 or 2 without one and an even width")
        if fusion == 2:
            return _gated(call, *parts(call, y, (size // 2, size // 2)))
        pairs = b.reshape(y, shape=(*y.shape[:2], size // 2, 2))
        return _gated(call, picked(call, pairs, 3, 0), picked(call, pairs, 3, 1))
    functions = {"relu": b.relu, "gelu": b.gelu_tanh, "silu": lambda v: swish(b, v, 1.0), "identity": lambda v: v}
    if kind not in functions:
        raise call.fail(f"activation_type is {kind!r}; expected swiglu, {', '.join(functions)}")
    y = functions[kind](y)
    return y if other is None else b.mul(y, other(b, x))


def _mixture(call: Call, layers: Sequence[ExpertWeights | None], over_chosen: bool, mixing: Node | None = None) -> Node:
    """layers: the first, the last, and the one beside the first. over_chosen: the weights are a softmax over the chosen
    experts alone; otherwise over all. mixing: weights that take the place of the softmax."""
    b, x, router = call.b, call.ranked(0, 2, 3), call.ranked(1, 2)
    inner, outer, beside = layers
    assert inner is not None
    assert outer is not None
    experts = call.number(router.shape[1], "the number of experts")
    for layer in (inner, outer, *([beside] if beside else [])):
        if len(layer.weights.shape) != 3 or layer.weights.shape[0] != experts:
            raise call.fail(f"weights {show(layer.weights.shape)}; expected three axes, the first of {experts} experts")
    count = call.attr("k", 1)
    if not 1 <= count <= experts:
        raise call.fail(f"k is {count}; expected 1 to the number of experts, {experts}")
    if call.flag("use_sparse_mixer"):
        raise call.fail("use_sparse_mixer, which onnxruntime has for GPUs only; export the model without it")
    tokens, width = router.shape[0], x.shape[-1]
    scores = cast(call, router, float32)
    if mixing is None and not over_chosen:
        scores = b.softmax(scores, axis=1)
    best, places = b.top_k(scores, axis=1, k=count, largest=True)
    if mixing is not None:
        best = b.gather_elements(cast(call, mixing, float32), places, axis=1)
    elif over_chosen:
        best = b.softmax(best, axis=1)
    if call.flag("normalize_routing_weights"):
        best = b.div(best, b.reduce_sum(best, axes=(1,)))
    is_chosen = b.equal(b.reshape(cast(call, places, int32), shape=(tokens, count, 1)), numbered(b, experts))
    shares = b.where(is_chosen, b.reshape(best, shape=(tokens, count, 1)), b.const(0, float32))

    def of_experts(each: Node) -> Node:
        """(tokens, 1, experts) as (experts, tokens, 1)."""
        return b.reshape(b.transpose(b.reshape(each, shape=(tokens, experts)), perm=(1, 0)), shape=(experts, tokens, 1))

    taken = b.reduce_max(cast(call, is_chosen, int32), axes=(1,))
    rows = b.reshape(x, shape=(1, tokens, width))
    y = outer(b, _hidden(call, rows, inner, beside))
    weighted = b.mul(y, cast(call, of_experts(b.reduce_sum(shares, axes=(1,))), y.dtype))
    kept = b.where(b.equal(of_experts(taken), b.const(1, int32)), weighted, b.const(0, y.dtype))
    return b.reshape(b.reduce_sum(kept, axes=(0,)), shape=x.shape)


@adapter("com.microsoft.MoE")
def _experts(call: Call) -> Node:
    """The weights are a softmax over all experts."""
    beside = call.maybe(6)
    layers = [ExpertWeights(call.x(i), call.maybe(i + 1)) for i in (2, 4)]
    return _mixture(call, [*layers, beside and ExpertWeights(beside, call.maybe(7))], over_chosen=False)


def _weights(call: Call, i: int, zeros: int, bits: int) -> Node:
    """The numbers that input i, packed, and its scales behind it represent, by the zero points in input `zeros`."""
    b, block = call.b, call.attr("block_size", 0)
    numbers, scales, packed = unpacked(call, call.ranked(i, 3), bits), call.x(i + 1), call.maybe(zeros)
    experts, outputs, depth = (call.number(d, "a dimension of quantised weights") for d in numbers.shape)
    wanted = (experts, outputs) if block < 1 else (experts, outputs, depth // max(block, 1))
    if (block > 0 and depth % block) or scales.shape != wanted:
        raise call.fail(f"scales {show(scales.shape)} in blocks of {block}; expected {show(wanted)}")
    middle = b.const(1 << bits - 1, uint8) if packed is None else unpacked(call, packed, bits)
    if middle.shape:
        middle = part(b, middle, len(middle.shape) - 1, 0, wanted[-1])

    def each(p: Node) -> Node:
        if not p.shape:
            return p
        return b.reshape(p, shape=(*wanted, 1)) if block < 1 else each_of_block(call, p, numbers.shape, 2, block)

    return dequantised(call, numbers, each(cast(call, scales, float32)), each(middle))


@adapter("com.microsoft.QMoE")
def _quantised_experts(call: Call) -> Node:
    """The weights are a softmax over the chosen experts, as onnxruntime's kernel for CPUs computes it."""
    if call.attr("quant_type", "int") != "int" or call.attr("weights_prepacked", -1) == 1:
        given = f"quant_type {call.attr('quant_type', 'int')!r}, weights_prepacked {call.attr('weights_prepacked', -1)}"
        raise call.fail(f"{given}; expected weights of integers, not prepacked")
    common = call.attr("expert_weight_bits", 4)

    def layer(number: int, i: int) -> ExpertWeights:
        bits = call.attr(f"fc{number}_expert_weight_bits", common)
        weights, bias = _weights(call, i, 10 + number, bits), call.maybe(i + 2)
        return ExpertWeights(cast(call, weights, call.x().dtype), bias)

    beside = None if call.maybe(8) is None else layer(3, 8)
    return _mixture(call, [layer(1, 2), layer(2, 5), beside], over_chosen=True, mixing=call.maybe(14))
