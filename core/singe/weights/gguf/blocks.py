"""The block formats of GGUF whose numbers are integers or short lists, made float32 by whole-array NumPy.

A block is a record of fields (`layout`); `values` computes the elements of many blocks at once, in order. In all formats
d is the scale of the block, q the quantised numbers. In those of 256 elements, each part of 16 or 32 has a scale of its
own, and some have a minimum m, which is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...late_dataclass import dataclass

AT_ONCE: Final = 1 << 18
"""Elements that are computed together, so that intermediate arrays fit in caches."""
HALF: Final = "<f2"


def fields_of(**fields: Any) -> np.dtype[Any]:
    """A record of these fields, in order: the dtype of each, or (dtype, how many)."""
    return np.dtype([(name, *(kind if isinstance(kind, tuple) else (kind,))) for name, kind in fields.items()])


@dataclass(frozen=True)
class BlockFormat:
    """How elements are packed: `count` of them in the record `layout`, made float32 by `values`."""

    name: str
    count: int
    layout: np.dtype[Any]
    values: Callable[[np.ndarray], np.ndarray]

    def dequantised(self, raw: memoryview, shape: tuple[int, ...]) -> np.ndarray:
        """The elements of the blocks in `raw` as float32."""
        blocks = np.frombuffer(raw, self.layout)
        made = np.empty((len(blocks), self.count), np.float32)
        step = max(1, AT_ONCE // self.count)
        for start in range(0, len(blocks), step):
            part = blocks[start : start + step]
            with np.errstate(all="ignore"):  # scales may be infinite or NaN
                made[start : start + step] = self.values(part).reshape(len(part), self.count)
        return made.reshape(shape)


def spread(x: np.ndarray, shifts: Sequence[int], mask: int) -> np.ndarray:
    """x >> shift & mask for each of the shifts, on a new last axis."""
    return x[..., None] >> np.array(shifts, x.dtype) & x.dtype.type(mask)


def _shifted(x: np.ndarray, shifts: Sequence[int], mask: int) -> np.ndarray:
    """x >> shift & mask for each of the shifts, on a new axis before the last one."""
    return x[..., None, :] >> np.array(shifts, x.dtype)[:, None] & x.dtype.type(mask)


def nibbles(x: np.ndarray) -> np.ndarray:
    """The low halves of all bytes along the last axis, then the high ones."""
    found = _shifted(x, (0, 4), 15)
    return found.reshape(*x.shape[:-1], 2 * x.shape[-1])


def float_(x: np.ndarray) -> np.ndarray:
    """A field of one scale for each block, as a column of float32."""
    return x.astype(np.float32)[:, None]


def _q4_0(b: np.ndarray) -> np.ndarray:
    return float_(b["d"]) * (nibbles(b["q"]).astype(np.float32) - 8)


def _q4_1(b: np.ndarray) -> np.ndarray:
    return float_(b["d"]) * nibbles(b["q"]) + float_(b["m"])


def fives(b: np.ndarray) -> np.ndarray:
    """Numbers of five bits: the low four are nibbles, the fifth is in `h`."""
    high = b["h"][:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
    return (nibbles(b["q"]) | high.astype(np.uint8) << np.uint8(4)).astype(np.float32)


def _q5_0(b: np.ndarray) -> np.ndarray:
    return float_(b["d"]) * (fives(b) - 16)


def _q5_1(b: np.ndarray) -> np.ndarray:
    return float_(b["d"]) * fives(b) + float_(b["m"])


def _q8(b: np.ndarray) -> np.ndarray:
    return float_(b["d"]) * b["q"]


def _q2_k(b: np.ndarray) -> np.ndarray:
    scales = (float_(b["d"]) * (b["s"] & 15))[..., None]
    least = (float_(b["m"]) * (b["s"] >> 4))[..., None]
    q = _shifted(b["q"].reshape(-1, 2, 32), (0, 2, 4, 6), 3).reshape(-1, 16, 16)
    return scales * q - least


def _q3_k(b: np.ndarray) -> np.ndarray:
    low = nibbles(b["s"][:, :8])
    high = _shifted(b["s"][:, 8:], (0, 2, 4, 6), 3).reshape(-1, 16)
    scales = float_(b["d"]) * ((low | high << np.uint8(4)).astype(np.float32) - 32)
    q = _shifted(b["q"].reshape(-1, 2, 32), (0, 2, 4, 6), 3).reshape(-1, 16, 16).astype(np.float32)
    more = _shifted(b["h"], range(8), 1).reshape(-1, 16, 16)
    return scales[..., None] * (q + 4 * more.astype(np.float32) - 4)


def scales_and_minima(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scales and minima of the eight parts of a block, of six bits each, in twelve bytes."""
    low, middle, high = (b["s"][:, k : k + 4] for k in (0, 4, 8))
    top = np.uint8(0x30)
    scales = np.concatenate([low & 63, high & 15 | low >> 2 & top], axis=1)
    least = np.concatenate([middle & 63, high >> 4 | middle >> 2 & top], axis=1)
    return (float_(b["d"]) * scales)[..., None], (float_(b["m"]) * least)[..., None]


def _q4_k(b: np.ndarray) -> np.ndarray:
    scales, least = scales_and_minima(b)
    return scales * nibbles(b["q"].reshape(-1, 4, 32)).reshape(-1, 8, 32) - least


def _q5_k(b: np.ndarray) -> np.ndarray:
    scales, least = scales_and_minima(b)
    low = nibbles(b["q"].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return scales * (low | _shifted(b["h"], range(8), 1) << np.uint8(4)) - least


def _q6_k(b: np.ndarray) -> np.ndarray:
    low = nibbles(b["q"].reshape(-1, 2, 64)).reshape(-1, 16, 16)
    high = _shifted(b["h"].reshape(-1, 2, 32), (0, 2, 4, 6), 3).reshape(-1, 16, 16)
    scales = (float_(b["d"]) * b["s"])[..., None]
    return scales * ((low | high << np.uint8(4)).astype(np.float32) - 32)


CURVE: Final = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
"""The numbers for which the nibbles of the formats IQ4 stand."""


def _iq4_nl(b: np.ndarray) -> np.ndarray:
    return float_(b["d"]) * CURVE[nibbles(b["q"])]


def _iq4_xs(b: np.ndarray) -> np.ndarray:
    low = spread(b["s"], (0, 4), 15).reshape(-1, 8)
    high = spread(b["h"], range(0, 16, 2), 3)
    scales = float_(b["d"]) * ((low | high << 4).astype(np.float32) - 32)
    return scales[..., None] * CURVE[nibbles(b["q"].reshape(-1, 8, 16))]


FP4: Final = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)
"""Twice the numbers of four-bit floats."""


def _mxfp4(b: np.ndarray) -> np.ndarray:
    return np.ldexp(FP4[nibbles(b["q"])], b["e"].astype(np.int32)[:, None] - 128)


SCALED: Final[Mapping[int, BlockFormat]] = {
    code: BlockFormat(name, count, layout, values)
    for code, name, count, layout, values in (
        (2, "Q4_0", 32, fields_of(d=HALF, q=("u1", 16)), _q4_0),
        (3, "Q4_1", 32, fields_of(d=HALF, m=HALF, q=("u1", 16)), _q4_1),
        (6, "Q5_0", 32, fields_of(d=HALF, h="<u4", q=("u1", 16)), _q5_0),
        (7, "Q5_1", 32, fields_of(d=HALF, m=HALF, h="<u4", q=("u1", 16)), _q5_1),
        (8, "Q8_0", 32, fields_of(d=HALF, q=("i1", 32)), _q8),
        (10, "Q2_K", 256, fields_of(s=("u1", 16), q=("u1", 64), d=HALF, m=HALF), _q2_k),
        (11, "Q3_K", 256, fields_of(h=("u1", 32), q=("u1", 64), s=("u1", 12), d=HALF), _q3_k),
        (12, "Q4_K", 256, fields_of(d=HALF, m=HALF, s=("u1", 12), q=("u1", 128)), _q4_k),
        (13, "Q5_K", 256, fields_of(d=HALF, m=HALF, s=("u1", 12), h=("u1", 32), q=("u1", 128)), _q5_k),
        (14, "Q6_K", 256, fields_of(q=("u1", 128), h=("u1", 64), s=("i1", 16), d=HALF), _q6_k),
        (15, "Q8_K", 256, fields_of(d="<f4", q=("i1", 256), sums=("<i2", 16)), _q8),
        (20, "IQ4_NL", 32, fields_of(d=HALF, q=("u1", 16)), _iq4_nl),
        (23, "IQ4_XS", 256, fields_of(d=HALF, h="<u2", s=("u1", 4), q=("u1", 128)), _iq4_xs),
        (39, "MXFP4", 32, fields_of(e="u1", q=("u1", 16)), _mxfp4),
    )
}
"""These formats by their numbers in files."""
