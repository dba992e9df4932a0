"""The block formats of GGUF of one to four bits whose numbers are rows of a codebook, powers of three, or small floats.

A row of a codebook gives four or eight elements at once; in most formats their signs follow as bits, 1 for negative. In a
sign of seven bits the eighth makes the number of ones even.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from .blocks import FP4, HALF, BlockFormat, fields_of, float_, nibbles, spread
from .codebooks import codebook

_BITS: Final = tuple(range(8))
_SEVENTH: Final = (0, 7, 14, 21)
"""Where the signs of seven bits begin in a word; its four upper bits are a scale."""
_EVEN: Final = np.array([k | (k.bit_count() & 1) << 7 for k in range(128)], np.uint8)


def _signs(x: np.ndarray) -> np.ndarray:
    """1 or −1 for each of the bits of bytes, on a new last axis."""
    return np.float32(1) - np.float32(2) * spread(x, _BITS, 1)


def _scaled(scale: np.ndarray, rows: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """(blocks, parts) scales, and rows and signs of (blocks, parts, rows of a part, elements)."""
    return scale[..., None, None] * rows * signs


def _halves(s: np.ndarray) -> np.ndarray:
    """The four-bit numbers of bytes, the low half of each before its high one."""
    return spread(s, (0, 4), 15).reshape(len(s), -1).astype(np.float32)


def _by_words(d: np.ndarray, w: np.ndarray, rows: np.ndarray, factor: float) -> np.ndarray:
    """Eight parts of 32, for each of which a word of w holds four signs of seven bits and a scale."""
    scale = float_(d) * ((w >> np.uint32(28)).astype(np.float32) + 0.5) * factor
    return _scaled(scale, rows.reshape(-1, 8, 4, 8), _signs(_EVEN[spread(w, _SEVENTH, 127)]))


def _iq2_xxs(b: np.ndarray) -> np.ndarray:
    part = b["part"]
    return _by_words(b["d"], part["w"], codebook("IQ2_XXS")[part["q"]], 0.25)


def _iq2_xs(b: np.ndarray) -> np.ndarray:
    q = b["q"].reshape(-1, 16, 2)
    scale = float_(b["d"]) * (_halves(b["s"]) + 0.5) * 0.25
    return _scaled(scale, codebook("IQ2_XS")[q & 511], _signs(_EVEN[q >> 9]))


def _iq2_s(b: np.ndarray) -> np.ndarray:
    high = spread(b["h"], (0, 2, 4, 6), 3).reshape(-1, 16, 2).astype(np.uint16)
    q = b["q"].reshape(-1, 16, 2) | high << 8
    scale = float_(b["d"]) * (_halves(b["s"]) + 0.5) * 0.25
    return _scaled(scale, codebook("IQ2_S")[q], _signs(b["signs"].reshape(-1, 16, 2)))


def _iq3_xxs(b: np.ndarray) -> np.ndarray:
    return _by_words(b["d"], b["w"], codebook("IQ3_XXS")[b["q"]], 0.5)


def _iq3_s(b: np.ndarray) -> np.ndarray:
    q = b["q"].reshape(-1, 8, 8) | spread(b["h"], _BITS, 1).astype(np.uint16) << 8
    scale = float_(b["d"]) * (_halves(b["s"]) * 2 + 1)
    return _scaled(scale, codebook("IQ3_S")[q].reshape(-1, 8, 4, 8), _signs(b["signs"].reshape(-1, 8, 4)))


def _shifted_rows(scale: np.ndarray, q: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Rows of −1, 0 and 1, all of which are an eighth more, or less where `below`. All have the shape of q, or broadcast."""
    delta = np.where(below, np.float32(-0.125), np.float32(0.125))
    return scale[..., None] * (codebook("IQ1")[q] + delta[..., None])


def _iq1_s(b: np.ndarray) -> np.ndarray:
    h = b["h"]
    q = b["q"].reshape(-1, 8, 4) | spread(h, (0, 3, 6, 9), 7) << 8
    scale = float_(b["d"]) * ((h >> 12 & 7).astype(np.float32) * 2 + 1)
    return _shifted_rows(scale[..., None], q, (h >> 15 != 0)[..., None])


def _iq1_m(b: np.ndarray) -> np.ndarray:
    # The upper four bits of the four words of scales are those of the block's scale.
    d = np.bitwise_or.reduce((b["s"] >> 12) << np.array([0, 4, 8, 12], np.uint16), axis=1).astype("<u2").view(HALF)
    scale = float_(d) * (spread(b["s"], (0, 3, 6, 9), 7).reshape(-1, 16).astype(np.float32) * 2 + 1)
    h = spread(b["h"], (0, 4), 15)
    q = b["q"].reshape(-1, 16, 2) | (h & 7).astype(np.uint16) << 8
    return _shifted_rows(scale[..., None], q, h >> 3 != 0)


def _tq1_0(b: np.ndarray) -> np.ndarray:
    """Five digits in a byte, as a fraction of 256: the next is the whole part of three times what is left."""

    def digits(x: np.ndarray, powers: Sequence[int]) -> np.ndarray:
        return (x[:, None] * np.array(powers, np.uint8)[:, None]).reshape(len(x), -1)

    powers = (1, 3, 9, 27, 81)
    q = np.concatenate(
        [digits(b["q"][:, :32], powers), digits(b["q"][:, 32:], powers), digits(b["h"], powers[:4])], axis=1
    )
    return float_(b["d"]) * ((q.astype(np.uint16) * 3 >> 8).astype(np.float32) - 1)


def _tq2_0(b: np.ndarray) -> np.ndarray:
    q = b["q"].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & np.uint8(3)
    return float_(b["d"]) * (q.reshape(len(b), -1).astype(np.float32) - 1)


def _q1_0(b: np.ndarray) -> np.ndarray:
    return float_(b["d"]) * -_signs(b["q"]).reshape(len(b), -1)


def _scale_of_fp4(bits: int) -> float:
    """Half of the number of four bits of exponent and three of mantissa; the sign is not looked at, and NaN is 0."""
    exponent, mantissa = bits >> 3 & 15, bits & 7
    if bits == 127:
        return 0.0
    return (mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)) / 2


_SCALES: Final = np.array([_scale_of_fp4(k) for k in range(256)], np.float32)


def _nvfp4(b: np.ndarray) -> np.ndarray:
    return _SCALES[b["s"]][..., None] * FP4[nibbles(b["q"].reshape(-1, 4, 8))]


_WORDS: Final = fields_of(q=("u1", 4), w="<u4")
CODED: Final[Mapping[int, BlockFormat]] = {
    code: BlockFormat(name, count, layout, values)
    for code, name, count, layout, values in (
        (16, "IQ2_XXS", 256, fields_of(d=HALF, part=(_WORDS, 8)), _iq2_xxs),
        (17, "IQ2_XS", 256, fields_of(d=HALF, q=("<u2", 32), s=("u1", 8)), _iq2_xs),
        (18, "IQ3_XXS", 256, fields_of(d=HALF, q=("u1", 64), w=("<u4", 8)), _iq3_xxs),
        (19, "IQ1_S", 256, fields_of(d=HALF, q=("u1", 32), h=("<u2", 8)), _iq1_s),
        (21, "IQ3_S", 256, fields_of(d=HALF, q=("u1", 64), h=("u1", 8), signs=("u1", 32), s=("u1", 4)), _iq3_s),
        (22, "IQ2_S", 256, fields_of(d=HALF, q=("u1", 32), signs=("u1", 32), h=("u1", 8), s=("u1", 8)), _iq2_s),
        (29, "IQ1_M", 256, fields_of(q=("u1", 32), h=("u1", 16), s=("<u2", 4)), _iq1_m),
        (34, "TQ1_0", 256, fields_of(q=("u1", 48), h=("u1", 4), d=HALF), _tq1_0),
        (35, "TQ2_0", 256, fields_of(q=("u1", 64), d=HALF), _tq2_0),
        (40, "NVFP4", 64, fields_of(s=("u1", 4), q=("u1", 32)), _nvfp4),
        (41, "Q1_0", 128, fields_of(d=HALF, q=("u1", 16)), _q1_0),
    )
}
"""These formats by their numbers in files."""
