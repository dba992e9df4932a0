"""Fused ops: several of ONNX's as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from ....dtypes import int32
from ....graph import Node
from ....ops.elementwise.gated import swish
from ....ops.products.attention import numbered
from ....ops.products.recurrent import ACTIVATIONS
from .._call import ADAPTERS, Call, adapter
from ..elementwise.basic import cast
from ..products.transformer import layer_norm, merged_heads, rms_norm, rotated, split_heads

# --- activations -----------------------------------------------------------------------------------------------------


@adapter("com.microsoft.Gelu")
def _gelu(call: Call) -> Node:
    return call.b.gelu(call.x())


@adapter("com.microsoft.BiasGelu")
def _bias_gelu(call: Call) -> Node:
    return call.b.gelu(call.b.add(call.x(), call.x(1)))


@adapter("com.microsoft.FastGelu")
def _fast_gelu(call: Call) -> Node:
    return call.b.gelu_tanh(total(call, call.x(), call.maybe(1)))


@adapter("com.microsoft.QuickGelu")
def _quick_gelu(call: Call) -> Node:
    return swish(call.b, call.x(), call.attr("alpha", 1.702))


def total(call: Call, *xs: Node | None) -> Node:
    """The sum of the inputs that are not omitted."""
    return reduce(call.b.add, [x for x in xs if x is not None])


# --- products and convolutions with an activation --------------------------------------------------------------------

PARAMETERS: Final[Mapping[str, Sequence[float]]] = {
    "Elu": (1.0,), "HardSigmoid": (0.2, 0.5), "LeakyRelu": (0.01,), "ScaledTanh": (1.0, 1.0), "ThresholdedRelu": (1.0,),
    "Relu": (), "Sigmoid": (), "Softplus": (), "Softsign": (), "Tanh": (), "Clip": (),
}  # fmt: skip
"""The activations, with the default values of their parameters."""


def _activated(call: Call, x: Node, given: Sequence[float]) -> Node:
    name, b = call.attr("activation", ""), call.b
    if not name:
        return x
    if name not in PARAMETERS:
        raise call.fail(f"the activation {name!r} is unknown; expected one of {', '.join(PARAMETERS)}")
    if name == "Clip":
        if len(given) != 2:
            raise call.fail(f"Clip has {len(given)} parameters; expected two bounds")
        return b.clip(x, *(b.const(v, x.dtype) for v in given))
    alpha, beta, *_ = (*given, *PARAMETERS[name][len(given) :], 0.0, 0.0)
    function: Callable[..., Any] = ACTIVATIONS[name.lower()]
    return function(b, x, alpha, beta)


@adapter("com.microsoft.FusedConv")
def _fused_conv(call: Call) -> Node:
    y = ADAPTERS["Conv"](call)
    assert isinstance(y, Node)
    return _activated(call, total(call, y, call.maybe(3)), call.items("activation_params", float) or ())


@adapter("com.microsoft.FusedGemm")
def _fused_gemm(call: Call) -> Node:
    y = ADAPTERS["Gemm"](call)
    assert isinstance(y, Node)
    names = [name for name in ("activation_alpha", "activation_beta") if name in call.attributes]
    return _activated(call, y, [call.attr(name, 0.0) for name in names])


@adapter("com.microsoft.FusedMatMul")
def _fused_matmul(call: Call) -> Node:
    b = call.b
    y = b.matmul(*(_turned(call, call.x(i), side) for i, side in enumerate("AB")))
    alpha = call.attr("alpha", 1.0)
    return y if alpha == 1 else b.mul(y, b.const(alpha, y.dtype))


def _turned(call: Call, x: Node, side: str) -> Node:
    """transBatch: the first axis stands after those of the batch; trans: the last two axes are swapped."""
    perm = list(range(len(x.shape)))
    if len(perm) < 2:
        return x
    if call.flag(f"transBatch{side}"):
        perm = [*perm[1:-1], 0, perm[-1]]
    if call.flag(f"trans{side}"):
        perm[-2:] = reversed(perm[-2:])
    return call.b.transpose(x, perm=tuple(perm))


# --- norms -----------------------------------------------------------------------------------------------------------


@adapter("SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization")
def _rms_norm(call: Call) -> list[Node]:
    return rms_norm(call, call.x(), call.x(1))


@adapter("com.microsoft.SkipLayerNormalization")
def _skip_layer_norm(call: Call) -> list[Node]:
    x = total(call, call.x(), call.x(1), call.maybe(4))
    return [*layer_norm(call, x, call.x(2), call.maybe(3), 1e-12), x]


@adapter("com.microsoft.SkipSimplifiedLayerNormalization")
def _skip_rms_norm(call: Call) -> list[Node]:
    x = total(call, call.x(), call.x(1), call.maybe(3))
    y, inverse = rms_norm(call, x, call.x(2), 1e-12)
    if len(call.outputs) > 1 and call.outputs[1]:
        raise call.fail("the output 'mean': an RMS norm has none; remove it")
    return [y, inverse, inverse, x]


@adapter("com.microsoft.EmbedLayerNormalization")
def _embed_layer_norm(call: Call) -> list[Node]:
    """Embeddings of words, positions and segments, their sum and its layer norm; and how many words the mask leaves."""
    b, ids, segments, mask = call.b, call.ranked(0, 2), call.maybe(1), call.maybe(7)
    batch, length = ids.shape
    places = call.maybe(8)
    if places is None:
        places = b.reshape(numbered(b, length), shape=(1, length))
    parts = [b.gather(call.x(2), ids, axis=0), b.gather(call.x(3), places, axis=0)]
    if segments is not None:
        parts.append(b.gather(call.x(4), segments, axis=0))
    x = total(call, *parts)
    if mask is None:
        count = b.expand(b.const(0, int32), shape=(batch,))
    else:
        is_word = cast(call, b.equal(mask, b.const(1, mask.dtype)), int32)
        count = b.reshape(b.reduce_sum(is_word, axes=(1,)), shape=(batch,))
    return [layer_norm(call, x, call.x(5), call.x(6), 1e-12)[0], count, x]


# --- rotary positions ------------------------------------------------------------------------------------------------


@adapter("com.microsoft.RotaryEmbedding")
def _rotary_embedding(call: Call) -> Node:
    """Like ONNX's, with positions as second input: for each element, or that of the first one of all sequences."""
    b, x, places = call.b, call.ranked(0, 3, 4), call.ranked(1, 1, 2)
    if call.flag("is_packed_batching") or call.attr("scale", 1.0) != 1:
        raise call.fail("packed batches and scales are not supported; export the model without them")
    packed, size = len(x.shape) == 3, call.attr("rotary_embedding_dim", 0)
    length = x.shape[1 if packed else 2]
    if len(places.shape) == 1:
        places = b.reshape(b.add(numbered(b, length), cast(call, places, int32)), shape=(1, length))
    heads = call.attr("num_heads", 0)
    if packed and not heads:
        pairs = call.number(call.ranked(2, 2).shape[1], "the number of pairs")
        heads = call.number(x.shape[2] // max(2 * pairs, 1), "the number of heads")
    y = split_heads(call, x, heads) if packed else x
    cos, sin = (b.gather(call.x(i), places, axis=0) for i in (2, 3))
    y = rotated(call, y, cos, sin, size, call.flag("interleaved"))
    return merged_heads(call, y) if packed else y
