"""Attention as the templates of the targets compute it: a tile of scores at a time, which is never stored as a whole.

A head of keys serves the queries of a group of neighbouring heads: in memory these follow each other, as its rows. The
templates go through the keys in blocks. A row has the largest score so far, the sum of exp(score − largest) and the sum
of the values times that; when the largest score grows, both sums are scaled down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..dtypes import DType, bool_, float16, float32, int32
from ..late_dataclass import dataclass
from ..shapes import Dim, Shape, product, strides

MAX_KEY_SIZE: Final = 256
"""The largest size of a key or a value: a template holds as many sums for each of its rows."""
EIGHT_BIT_BLOCK: Final = 32
"""The numbers of a row in eight bits that have a scale in common."""
WORDS_OF_A_BLOCK: Final = EIGHT_BIT_BLOCK // 4 + 1
"""Of its numbers, and of its scale."""
_TYPES: Final = (float32, float16)


@dataclass(frozen=True)
class Attention:
    """The facts of an attention: its inputs are q (…outer, heads · group, queries, size), k (…outer, heads, room, size),
    v (…outer, heads, room, width) and perhaps a mask. The first `keys` of the room are in use. Keys and values are stored as
    `held`: as dtype, or narrower; int32 are rows in eight bits (ops/products/eight_bit_rows.py).

    mask: the steps in memory along the axes (…outer, heads · group, queries, keys) of the mask's own elements, 0 along
    axes that it lacks; None without a mask. cap: 0 for none.
    """

    dtype: DType
    held: DType
    outer: Shape
    heads: Dim
    group: int
    queries: Dim
    room: Dim
    keys: Dim
    size: int
    width: int
    mask: Shape | None
    mask_dtype: DType | None
    scale: float
    causal: bool
    past: Dim
    cap: float

    @property
    def rows(self) -> Dim:
        """The queries that a head of keys serves."""
        return self.queries * self.group

    @property
    def points(self) -> Dim:
        """How many heads of keys there are."""
        return product(self.outer) * self.heads

    @property
    def packed(self) -> bool:
        """Whether keys and values are rows in eight bits: blocks of words of four numbers each, then the scale."""
        return self.held is int32

    @property
    def flops(self) -> Dim:
        """The float operations: the products, and a maximum, a difference, an exponential and a sum for each score. Those
        of hidden keys count too."""
        return self.points * self.rows * self.keys * (2 * (self.size + self.width) + 4)


def attention(attrs: Mapping[str, Any], inputs: Sequence[tuple[Shape, DType]]) -> Attention | None:
    """The facts of a node of the row `attention`; None if the templates do not take it."""
    (q, kind), (k, of_keys), (v, of_values), *rest = inputs
    if not (len(q) == len(k) == len(v)) or of_keys is not of_values or kind not in _TYPES:
        return None
    if of_keys not in (kind, float16, int32):
        return None
    *outer, all_heads, queries, size = (1,) * (len(q) == 2) + q
    *outer_k, heads, room, _ = (1,) * (len(k) == 2) + k
    *outer_v, heads_v, room_v, width = (1,) * (len(v) == 2) + v
    if of_keys is int32:
        width = width // WORDS_OF_A_BLOCK * EIGHT_BIT_BLOCK
    if not outer == outer_k == outer_v or heads != heads_v or room != room_v:
        return None
    keys = attrs.get("keys", room)
    if (
        not isinstance(size, int)
        or not isinstance(width, int)
        or not (0 < size <= MAX_KEY_SIZE and 0 < width <= MAX_KEY_SIZE)
    ):
        return None
    group = all_heads // heads if isinstance(all_heads, int) and isinstance(heads, int) and heads else 1
    if heads * group != all_heads or group < 1:
        return None
    mask, mask_kind = rest[0] if rest else (None, None)
    if mask is not None:
        whole = (*outer, all_heads, queries, keys)
        mask = (1,) * (len(whole) - len(mask)) + mask
        if mask_kind not in (bool_, *_TYPES) or any(d not in (1, n) for d, n in zip(mask, whole, strict=False)):
            return None
        mask = tuple(0 if d == 1 else step for d, step in zip(mask, strides(mask), strict=True))
    return Attention(
        kind, of_keys, tuple(outer), heads, group, queries, room, keys, size, width, mask, mask_kind,
        attrs.get("scale", 0.0) or size**-0.5, attrs.get("causal", False), attrs.get("past", 0), attrs.get("softcap", 0.0),
    )  # fmt: skip
