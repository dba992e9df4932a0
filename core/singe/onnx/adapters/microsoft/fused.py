"""Fused ops: several of ONNX's as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from ....dtypes import int32
from ....graph import Node
from ....ops.elementwise.gated import swish
from ....ops.movement.move import numbered
from ....ops.products.recurrent import ACTIVATIONS
from ....shapes import same
from .._call import ADAPTERS, Call, adapter
from ..elementwise.basic import cast
from ..movement.shapes import part
from ..products.recurrent import parameters
from ..products.transformer import layer_norm, merged_heads, rms_norm, rotated, split_heads
from .channels import through

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


@adapter("com.microsoft.BiasSoftmax")
def _bias_softmax(call: Call) -> Node:
    """Over the axis and all later ones together; the bias broadcasts, whichever its axes of length 1 are."""
    given = replace(call, attributes={"axis": call.attr("axis", 1)})
    return through(given, "Softmax", call.b.add(call.x(), call.x(1)), version=11)


def total(call: Call, *xs: Node | None) -> Node:
    """The sum of the inputs that are not omitted."""
    return reduce(call.b.add, [x for x in xs if x is not None])


# --- products and convolutions with an activation --------------------------------------------------------------------


def _activated(call: Call, x: Node, given: Sequence[float]) -> Node:
    name, b = call.attr("activation", ""), call.b
    if not name:
        return x
    if name == "Clip":
        if len(given) != 2:
            raise call.fail(f"Clip has {len(given)} parameters; expected two bounds")
        return b.clip(x, *(b.const(v, x.dtype) for v in given))
    alpha, beta, *_ = (*given, *parameters(call, name.lower())[len(given) :], 0.0, 0.0)
    return ACTIVATIONS[name.lower()](b, x, alpha, beta)


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


@adapter("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
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


# --- words of characters ----------------------------------------------------------------------------------------------


@adapter("com.microsoft.WordConvEmbedding")
def _word_conv_embedding(call: Call) -> Node:
    """Words, rows of characters of which those behind the word are 0, as vectors: for each filter the largest of the tanh of
    its products with the windows that begin within the word. A word without characters gives zeros."""
    b, words, filters, table = call.b, call.ranked(0, 2), call.ranked(1, 4), call.ranked(3, 2)
    count, _, width, size = call.known_shape(filters, "the filters' shape")
    for name, own in (("embedding_size", count), ("conv_window_size", width), ("char_embedding_size", size)):
        if call.attr(name, own) != own:
            raise call.fail(f"{name} is {call.attr(name, own)}, and the filters have {own}")
    if filters.shape[1] != 1 or not same(table.shape[1], size, call.op):
        raise call.fail(
            f"filters {filters!r} over characters {table!r}; expected (filters, 1, window, size) and (characters, size)"
        )
    chars = b.transpose(b.gather(table, words, axis=0), perm=(0, 2, 1))
    kernel = b.transpose(b.reshape(filters, shape=(count, width, size)), perm=(0, 2, 1))
    y = b.tanh(b.conv(chars, kernel, call.x(2), strides=(1,), dilations=(1,), before=(0,), after=(0,), group=1))
    zero = b.const(0, words.dtype)
    is_char = b.greater(words, zero)
    length = b.reduce_sum(cast(call, is_char, int32), axes=(1,))
    is_word = b.reshape(part(b, is_char, 1, 0, 1), shape=(words.shape[0], 1, 1))
    windows = b.reshape(b.sub(length, b.const(width - 1, int32)), shape=(words.shape[0], 1, 1))
    # The first window counts in a word that is shorter than a window.
    seen = b.less(numbered(b, y.shape[2]), b.maximum(windows, b.const(1, int32)))
    best = b.reduce_max(b.where(seen, y, b.const(-1, y.dtype)), axes=(2,))
    return b.reshape(b.where(is_word, best, b.const(0, y.dtype)), shape=(words.shape[0], count))


# --- triangles and positions ----------------------------------------------------------------------------------------


@adapter("com.microsoft.Trilu")
def _trilu(call: Call) -> Node:
    return through(call, "Trilu", *call.inputs)


@adapter("com.microsoft.GatedRelativePositionBias")
def _gated_position_bias(call: Call) -> Node:
    """A bias by relative position, times u · (r · eco_a − 1) + 2 where u and r are gates that each query computes."""
    b, x, weights, heads = call.b, call.ranked(0, 3), call.ranked(3, 2), call.attr("num_heads", 0)
    if call.maybe(6) is not None:
        raise call.fail("queries without padding (token_offset) are not supported; export the model without it")
    width = call.number(weights.shape[1], "the width of the gates")
    if width < 2 or width % 2:
        raise call.fail(f"the gates' weights are {weights!r}; expected an even number of columns")
    queries = split_heads(call, b.add(x, call.x(1)), heads)
    gates = b.add(b.matmul(queries, weights), call.x(4))
    halves = b.reshape(gates, shape=(*gates.shape[:3], 2, width // 2))
    gates = b.sigmoid(b.reshape(b.reduce_sum(halves, axes=(4,)), shape=(*gates.shape[:3], 2)))
    u, r = (part(b, gates, 3, place, 1) for place in (0, 1))
    inner = b.sub(b.mul(r, call.x(5)), b.const(1, r.dtype))
    return b.mul(b.add(b.mul(u, inner), b.const(2, u.dtype)), call.x(2))


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
