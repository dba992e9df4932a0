"""Rows over whole arrays: order, selection, strings, and dimensions as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....dtypes import int64, string
from ....graph import Node
from ....shapes import axis_of
from ..block import Block
from ..facts import SINCE
from ..rules import Rule, kind_taken


def _best(w: Block, n: Node, x: str, count: str, largest: bool) -> tuple[str, ...]:
    kind = n.inputs[0].dtype
    wide = w.carrier("TopK", kind)
    assert wide is not None
    axis = axis_of(n.attrs["axis"], len(n.inputs[0].shape), n.op)
    values, places = w.several("TopK", 2, w.cast(x, kind, wide), count, axis=axis, largest=int(largest))
    return w.cast(values, wide, kind), places


def _top_k(w: Block, n: Node, x: str) -> tuple[str, ...]:
    return _best(w, n, x, w.dim(n.attrs["k"]), n.attrs["largest"])


def _sort(w: Block, n: Node, x: str) -> tuple[str, ...]:
    given = n.inputs[0]
    length = given.shape[axis_of(n.attrs["axis"], len(given.shape), n.op)]
    return _best(w, n, x, w.dim(length), n.attrs.get("descending", False))


def _unique(w: Block, n: Node, x: str) -> tuple[str, ...]:
    axis, ordered = n.attrs.get("axis"), int(n.attrs.get("ordered", True))
    if axis is None:
        return w.several("Unique", 4, x, sorted=ordered)
    return w.several("Unique", 4, x, sorted=ordered, axis=axis_of(axis, len(n.inputs[0].shape), n.op))


def _compress(w: Block, n: Node, x: str, condition: str) -> str:
    return w.node("Compress", x, condition, axis=axis_of(n.attrs["axis"], len(n.shape), n.op))


def _boxes(w: Block, n: Node, *xs: str) -> str:
    boxes, scores, limit, overlap, least = xs
    kinds = [x.dtype for x in n.inputs]
    flat = [w.node("Reshape", x, w.vector([1])) for x in (w.cast(limit, kinds[2], int64), overlap, least)]
    return w.node("NonMaxSuppression", boxes, scores, *flat, center_point_box=int(n.attrs.get("center", False)))


def _dimensions(w: Block, n: Node) -> str:
    return w.cast(w.shape(n.attrs["values"]), int64, n.attrs["kind"])


def _strings(w: Block, n: Node) -> str:
    shape = [d for d in n.attrs["shape"] if isinstance(d, int)]
    return w.node("Reshape", w.const(list(n.attrs["values"]), string), w.vector(shape))


def _split(w: Block, n: Node, x: str) -> tuple[str, ...]:
    limit, delimiter = n.attrs.get("limit"), n.attrs.get("delimiter", "")
    facts = {"delimiter": delimiter} if delimiter else {}
    return w.several("StringSplit", 2, x, **facts, **({} if limit is None else {"maxsplit": limit}))


def _normalise(w: Block, n: Node, x: str) -> str:
    attrs = n.attrs
    facts = {"stopwords": tuple(attrs["stopwords"])} if attrs["stopwords"] else {}
    return w.node(
        "StringNormalizer", x, case_change_action=attrs["case"], is_case_sensitive=int(attrs["sensitive"]), **facts
    )


def _since(name: str) -> Rule:
    """An op of strings of the same name, without attributes."""
    return Rule(lambda w, n, *xs: w.node(name, *xs), lambda w, n: w.opset >= SINCE[name])


RULES: Final[Mapping[str, Sequence[Rule]]] = {
    "compress": (Rule(_compress),),
    "decode_image": (
        Rule(
            lambda w, n, x: w.node("ImageDecoder", x, pixel_format=n.attrs.get("order", "RGB")),
            lambda w, n: w.opset >= SINCE["ImageDecoder"],
        ),
    ),
    "dimensions": (Rule(_dimensions),),
    "mel_weight_matrix": (
        Rule(
            lambda w, n, *xs: w.typed("MelWeightMatrix", n.dtype, *xs), lambda w, n: w.opset >= SINCE["MelWeightMatrix"]
        ),
    ),
    "non_max_suppression": (Rule(_boxes),),
    "nonzero": (Rule(lambda w, n, x: w.node("NonZero", x)),),
    "regex_full_match": (
        Rule(
            lambda w, n, x: w.node("RegexFullMatch", x, pattern=n.attrs["pattern"]),
            lambda w, n: w.opset >= SINCE["RegexFullMatch"],
        ),
    ),
    "sort": (Rule(_sort, kind_taken("TopK")),),
    "string_concat": (_since("StringConcat"),),
    "string_normalize": (Rule(_normalise),),
    "string_split": (Rule(_split, lambda w, n: w.opset >= SINCE["StringSplit"]),),
    "strings": (Rule(_strings),),
    "top_k": (Rule(_top_k, kind_taken("TopK")),),
    "unique": (Rule(_unique),),
}
