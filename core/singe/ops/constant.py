"""The rows over floats whose results do not change smoothly with them, so that they have no gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WHOLE: Final = "its result is a whole number or a truth"
_SIZES: Final = "its results are sizes"
_ROUNDS: Final = "it rounds its input to 8 bits"

NO_GRADIENT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("equal", "less", "less_equal", "greater", "greater_equal", "is_nan", "is_inf", "signbit"), _WHOLE),
    **dict.fromkeys(("argmax", "argmin", "max_pool_index", "pool_place", "nonzero", "non_max_suppression"), _WHOLE),
    **dict.fromkeys(("dot_integers", "conv_integers"), _WHOLE),
    **dict.fromkeys(("sizes", "signed_sizes", "reshaped_sizes", "expanded_sizes", "range_size", "axes_sizes"), _SIZES),
    **dict.fromkeys(("moved_last", "slice_places", "dimensions", "resize_tables"), _SIZES),
    **dict.fromkeys(("dot_int8", "conv_int8"), _ROUNDS),
    "bit_cast": "the bits of a number are no function that has a slope",
    "nextafter": "its result is a step away from its input, of either sign",
    "mel_weight_matrix": "its inputs are a number of bands, a length and a rate",
    "unique": "elements that are equal become one",
}
"""Row ↦ why it has no gradient. A gradient that would flow through one is refused. (Rounding is not among them: its
gradient is zero.)"""
