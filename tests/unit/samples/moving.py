"""Samples of rows that read elements at computed places."""

from __future__ import annotations

from singe.dtypes import int32, uint8

from . import BATCH, N, S, Sample, index

SAMPLES: dict[str, list[Sample]] = {
    "gather_elements": [
        S((5, 3), index((4, 3), -5, 5), axis=0),
        S((2, 5, 3), index((2, 7, 2), 0, 5, int32), axis=1),
        S((2, 5), index((1, 3), -5, 5), axis=-1),
        S((6,), index((0,), 0, 6, uint8), axis=0),
        S((N, 4), index((N, 2), -4, 4), axis=1),
        S((N, 2), index((5, 2), -BATCH, BATCH), axis=0),
    ],
    "gather_nd": [
        S((5, 3), index((4, 1), -3, 3), batch=0),
        S((4, 3, 2), index((2, 3, 2), -3, 3), batch=0),
        S((2, 3, 4), index((2, 5, 1), -3, 3, int32), batch=1),
        S((2, 3, 4), index((2, 3, 2, 1), -4, 4), batch=2),
        S((3, 3), index((0, 2), 0, 3), batch=0),
        S((N, 3, 2), index((N, 2), 0, 2), batch=1),
        S((4, N), index((2, 1), -4, 4), batch=0),
    ],
}
