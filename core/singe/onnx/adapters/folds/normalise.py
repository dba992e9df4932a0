"""Normalisations: softmax and its variants, batch, instance and local response normalisation."""

from __future__ import annotations

from ....dtypes import float32
from ....graph import Node
from ....shapes import product
from .._call import MAX_FOLDED, Call, adapter
from ..elementwise.basic import cast, power


def along_axis(call: Call, row: str) -> Node:
    """Softmax along an axis; before version 13, over that axis and all later ones together."""
    x, b = call.x(), call.b
    rank = len(x.shape)
    axis = call.axis(-1 if call.version >= 13 else 1 if rank > 1 else 0, rank)
    function = getattr(b, row)
    if call.version >= 13 or axis == rank - 1:
        return function(x, axis=axis)
    flat = b.reshape(x, shape=(product(x.shape[:axis]), product(x.shape[axis:])))
    return b.reshape(function(flat, axis=1), shape=x.shape)


@adapter("Softmax")
def _softmax(call: Call) -> Node:
    return along_axis(call, "softmax")


@adapter("LogSoftmax")
def _log_softmax(call: Call) -> Node:
    return along_axis(call, "log_softmax")


def _check_channels(call: Call, x: Node) -> None:
    if len(x.shape) < 2:
        raise call.fail(f"input 0 is {x!r}; expected at least 2 axes, of which the second is for channels")


@adapter("BatchNormalization")
def _batch_norm(call: Call) -> list[Node]:
    x, *parameters = (call.x(i) for i in range(5))
    epsilon = call.attr("epsilon", 1e-5)
    wanted = any(call.outputs[1:])
    training = call.flag("training_mode") if call.version >= 14 else wanted  # before 14 the outputs tell
    if not training:
        if wanted:
            raise call.fail(
                "it has outputs for statistics, but is not in training mode; export the model for inference"
            )
        per_element = call.version < 9 and not call.flag("spatial", True)
        return [
            _normalised(call, x, parameters, epsilon)
            if per_element
            else call.b.batch_norm(x, *parameters, epsilon=epsilon)
        ]
    return _batch_norm_training(call, x, parameters, epsilon)


def _normalised(call: Call, x: Node, parameters: list[Node], epsilon: float) -> Node:
    """(x − mean) / √(variance + ε) · scale + shift, with broadcasting."""
    b = call.b
    scale, shift, mean, variance = parameters
    deviation = b.sqrt(b.add(variance, b.const(epsilon, variance.dtype)))
    return b.add(b.mul(b.div(b.sub(x, mean), deviation), scale), shift)


def _batch_norm_training(call: Call, x: Node, parameters: list[Node], epsilon: float) -> list[Node]:
    """Normalise a batch with its own statistics, and move the running statistics towards these; before version 14, its own
    statistics follow as outputs."""
    b = call.b
    _check_channels(call, x)
    wide = cast(call, x, float32)
    axes = tuple(i for i in range(len(x.shape)) if i != 1)
    mean = b.reduce_mean(wide, axes=axes)
    off = b.sub(wide, mean)
    variance = b.reduce_mean(b.mul(off, off), axes=axes)
    momentum = call.attr("momentum", 0.9)
    scale, shift, *running = parameters
    current = [b.reshape(s, shape=(x.shape[1],)) for s in (mean, variance)]
    saved = [cast(call, new, old.dtype) for old, new in zip(running, current, strict=True)]
    moved = []
    for old, new in zip(running, current, strict=True):
        kept = b.mul(cast(call, old, float32), b.const(momentum, float32))
        moved.append(cast(call, b.add(kept, b.mul(new, b.const(1 - momentum, float32))), old.dtype))
    return [b.batch_norm(x, scale, shift, *current, epsilon=epsilon), *moved, *saved]


@adapter("InstanceNormalization")
def _instance_norm(call: Call) -> Node:
    x, scale, shift, b = call.x(), call.x(1), call.x(2), call.b
    _check_channels(call, x)
    axes = tuple(range(2, len(x.shape)))
    mean = b.reduce_mean(x, axes=axes)
    off = b.sub(x, mean)
    variance = b.reduce_mean(b.mul(off, off), axes=axes)
    shape = (x.shape[1], *(1,) * len(axes))
    parameters = [b.reshape(scale, shape=shape), b.reshape(shift, shape=shape), mean, variance]
    return _normalised(call, x, parameters, call.attr("epsilon", 1e-5))


@adapter("LRN")
def _local_response(call: Call) -> Node:
    """x / (bias + α/size · Σ of squares over neighbouring channels)^β."""
    x, b = call.x(), call.b
    size, rank = call.attr("size", 1), len(x.shape)
    if not 1 <= size <= MAX_FOLDED or rank < 2:
        raise call.fail(f"a window of {size} channels over rank {rank}")

    def channels(value: int, other: int) -> tuple[int, ...]:
        return tuple(value if i == 1 else other for i in range(rank))

    ones = (1,) * rank
    squares = b.pool_sum(
        b.mul(x, x),
        window=channels(size, 1),
        strides=ones,
        dilations=ones,
        before=channels((size - 1) // 2, 0),
        after=channels(size // 2, 0),
    )
    scaled = b.mul(squares, b.const(call.attr("alpha", 1e-4) / size, x.dtype))
    return b.div(x, power(call, b.add(scaled, b.const(call.attr("bias", 1.0), x.dtype)), call.attr("beta", 0.75)))
