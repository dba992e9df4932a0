"""What transformers have around attention: layer norms, their activations, rotary positions."""

from __future__ import annotations

from ....dtypes import DType
from ....graph import Node
from ....ops.elementwise.gated import swish
from ....ops.folds.norms import inverse_rms, scaled, standardised
from ....shapes import Dim, same, show
from .._call import Call, adapter
from ..elementwise.basic import cast, dtype_of_code


def stash_type(call: Call, x: Node) -> tuple[DType, DType]:
    """The type of a norm's statistics, and the one in which to compute: the wider of that and x's compute type."""
    given = dtype_of_code(call, call.attr("stash_type", 1))
    if not given.is_float:
        raise call.fail(f"stash_type is {given}; expected a type of floats")
    return given, max(given.compute, x.dtype.compute, key=lambda kind: kind.bits)


def layer_norm(
    call: Call, x: Node, scale: Node | None, shift: Node | None, default_epsilon: float = 1e-5
) -> list[Node]:
    """The normalised x, the means, and the inverse deviations."""
    b, (stash, wide) = call.b, stash_type(call, x)
    axis, epsilon = call.axis(-1, len(x.shape)), call.attr("epsilon", default_epsilon)
    normal, *statistics = standardised(b, cast(call, x, wide), axis, epsilon)
    if wide is x.dtype.compute:
        y = b.layer_norm(x, scale, shift, axis=axis, epsilon=epsilon)
    else:
        y = cast(call, scaled(b, normal, scale, shift), x.dtype)
    return [y, *(cast(call, s, stash) for s in statistics)]


def rms_norm(call: Call, x: Node, scale: Node, default_epsilon: float = 1e-5) -> list[Node]:
    """The normalised x, and the inverse root mean squares."""
    b, (stash, wide) = call.b, stash_type(call, x)
    axis, epsilon = call.axis(-1, len(x.shape)), call.attr("epsilon", default_epsilon)
    inverse = inverse_rms(b, cast(call, x, wide), axis, epsilon)
    if wide is x.dtype.compute and x.dtype is scale.dtype:
        y = b.rms_norm(x, scale, axis=axis, epsilon=epsilon)
    else:
        y = cast(call, scaled(b, b.mul(cast(call, x, wide), inverse), scale, None), scale.dtype)
    return [y, cast(call, inverse, stash)]


@adapter("LayerNormalization")
def _layer_norm(call: Call) -> list[Node]:
    return layer_norm(call, call.x(), call.x(1), call.maybe(2))


@adapter("RMSNormalization")
def _rms_norm(call: Call) -> Node:
    return rms_norm(call, call.x(), call.x(1))[0]


@adapter("Gelu")
def _gelu(call: Call) -> Node:
    approximate = call.attr("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise call.fail(f"approximate is {approximate!r}; expected none or tanh")
    return call.b.gelu(call.x()) if approximate == "none" else call.b.gelu_tanh(call.x())


@adapter("Swish")
def _swish(call: Call) -> Node:
    return swish(call.b, call.x(), call.attr("alpha", 1.0))


@adapter("RotaryEmbedding")
def _rotary_embedding(call: Call) -> Node:
    x, cos, sin, b = call.x(), call.x(1), call.x(2), call.b
    if call.maybe(3) is not None:
        cos, sin = (b.gather(c, call.x(3), axis=0) for c in (cos, sin))
    heads = call.attr("num_heads", 0)
    packed = len(x.shape) == 3
    y = split_heads(call, x, heads) if packed else x
    y = rotated(call, y, cos, sin, call.attr("rotary_embedding_dim", 0), call.flag("interleaved"))
    return merged_heads(call, y) if packed else y


def rotated(call: Call, x: Node, cos: Node, sin: Node, size: int, interleaved: bool) -> Node:
    """x (batch, heads, length, size of a head) with the first `size` elements of each head (0: all) turned by the angles
    with these cosines and sines: (batch, length, size / 2)."""
    b = call.b
    if len(x.shape) != 4 or len(cos.shape) != 3 or len(sin.shape) != 3:
        shapes = ", ".join(show(y.shape) for y in (x, cos, sin))
        raise call.fail(f"got {shapes}; expected (batch, heads, length, size) and (batch, length, pairs) twice")
    pairs = size // 2 if size else x.shape[-1] // 2
    if not all(same(c.shape[-1], pairs, call.op) for c in (cos, sin)):
        raise call.fail(f"the caches are for {cos.shape[-1]} and {sin.shape[-1]} pairs; expected {pairs}")
    cos, sin = (b.reshape(c, shape=(c.shape[0], 1, *c.shape[1:])) for c in (cos, sin))
    return b.rotary_embedding(x, cos, sin, interleaved=interleaved)


def split_heads(call: Call, x: Node, heads: int) -> Node:
    """(batch, length, heads · size) as (batch, heads, length, size)."""
    if len(x.shape) != 3:
        raise call.fail(f"got {show(x.shape)}; expected (batch, length, heads · size)")
    batch, length, width = x.shape
    if heads < 1 or not same(width, width // heads * heads, call.op):
        raise call.fail(f"the width {width} is no multiple of {heads} heads")
    return call.b.transpose(call.b.reshape(x, shape=(batch, length, heads, width // heads)), perm=(0, 2, 1, 3))


def merged_heads(call: Call, x: Node) -> Node:
    """(batch, heads, length, size) as (batch, length, heads · size)."""
    batch, heads, length, size = x.shape
    merged: Dim = heads * size
    return call.b.reshape(call.b.transpose(x, perm=(0, 2, 1, 3)), shape=(batch, length, merged))
