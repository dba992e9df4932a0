"""Losses that also give what they are computed from."""

from __future__ import annotations

from typing import Any

from ....graph import Node
from .._call import Call, adapter


@adapter("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(call: Call) -> list[Node]:
    """The loss, and the logarithm of the softmax."""
    x, b = call.x(), call.b
    attrs: dict[str, Any] = {"reduction": call.attr("reduction", "mean")}
    if "ignore_index" in call.attributes:
        attrs["ignore_index"] = call.attr("ignore_index", 0)
    return [b.cross_entropy(x, call.x(1), call.maybe(2), **attrs), b.log_softmax(x, axis=1)]
