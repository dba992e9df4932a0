"""Samples of rows over whole arrays."""

from __future__ import annotations

from singe.dtypes import uint32

from . import S, Sample, index

KEY = index((2,), 0, 1 << 32, uint32)
RANDOM = [S(KEY, shape=(3, 4)), S(KEY, shape=())]

SAMPLES: dict[str, list[Sample]] = {
    "random_bits": [*RANDOM, S(KEY, shape=(5,), stream=1)],
    "random_unit": RANDOM,
    "random_normal": RANDOM,
}
