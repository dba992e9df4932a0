"""Samples of rows that read elements at computed places, and between elements."""

from __future__ import annotations

from typing import Any

from singe.dtypes import int32, uint8

from . import BATCH, N, S, Sample, index


def floats(*inputs: Any, **attrs: Any) -> Sample:
    return Sample(inputs, attrs, floats_only=True)


def deformed(*inputs: Any, **attrs: Any) -> Sample:
    defaults = {
        "strides": (1, 1),
        "dilations": (1, 1),
        "before": (0, 0),
        "after": (0, 0),
        "group": 1,
        "offset_group": 1,
    }
    return Sample(inputs, {**defaults, **attrs})


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
        S((5, 3), index((2,), -3, 3), batch=0),
        S((4, 3, 2), index((2, 3, 2), -3, 3), batch=0),
        S((2, 3, 4), index((2, 5, 1), -3, 3, int32), batch=1),
        S((2, 3, 4), index((2, 3, 2, 1), -4, 4), batch=2),
        S((3, 3), index((0, 2), 0, 3), batch=0),
        S((N, 3, 2), index((N, 2), 0, 2), batch=1),
        S((4, N), index((2, 1), -4, 4), batch=0),
    ],
    "diagonal": [
        S((3, 4)),
        S((2, 3, 4, 3), axis1=1, axis2=3),
        S((2, 4, 3), axis1=-1, axis2=-2, offset=-1),
        S((3, 4), offset=2),
        S((3, 3), offset=5),
        S((N, N, 2)),
        S((2, N, 4), axis1=1, axis2=2, offset=1),
    ],
    "unfold": [
        S((7,), axis=0, length=3),
        S((2, 9, 3), axis=1, length=2, step=3),
        S((2, 9), axis=-1, length=3, step=2, dilation=2),
        S((N, 4), axis=1, length=4),
        S((2, N), axis=1, length=2, step=2),
    ],
    "overlap_add": [
        S((5, 3), axis=0, length=7),
        S((2, 3, 3, 2), axis=1, length=9, step=3),
        S((2, 3, 3), axis=1, length=9, step=2, dilation=2),
        S((2, 3, 2), axis=-1, length=8, step=1, dilation=3),
        S((3, N, 2), axis=0, length=4),
        S((2, N, 3), axis=1, length=N * 2 + 3, step=2),
    ],
    "grid_sample": [
        *(
            floats((1, 2, 4, 3), (1, 3, 2, 2), mode=mode, padding=padding, align_corners=corners)
            for mode in ("linear", "nearest", "cubic")
            for padding in ("zeros", "border", "reflection")
            for corners in (False, True)
        ),
        floats((1, 2, 4, 3), (1, 3, 2, 2), mode="cubic", padding="border", by_element=True),
        floats((2, 1, 2, 3, 2), (2, 1, 2, 3, 3), mode="linear", padding="reflection"),
        floats((1, 1, 5), (1, 4, 1), mode="cubic"),
        floats((1, 2, 1, 3), (1, 3, 2, 2), mode="nearest", padding="border", align_corners=True),
        floats((1, 0, 2, 2), (1, 3, 2, 2)),
        floats((N, 2, 3, 3), (N, 2, 2, 2), padding="border"),
        floats((1, 2, 3, N), (1, 2, 2, 2), mode="cubic", padding="reflection"),
    ],
    "affine_grid": [
        S((2, 2, 3), space=(3, 4)),
        S((1, 2, 3), space=(3, 1), align_corners=True),
        S((1, 3, 4), space=(2, 3, 2), align_corners=True),
        S((N, 2, 3), space=(N, 2)),
    ],
    "deform_conv": [
        deformed((1, 2, 4, 4), (2, 2, 3, 3), (1, 18, 2, 2)),
        deformed(
            (1, 2, 5, 4),
            (2, 2, 2, 2),
            (1, 16, 3, 3),
            (2,),
            (1, 8, 3, 3),
            strides=(2, 2),
            before=(1, 1),
            after=(1, 2),
            offset_group=2,
        ),
        deformed((2, 4, 3, 3), (2, 2, 2, 1), (2, 4, 1, 3), (2,), dilations=(2, 1), group=2),
        deformed((1, 1, 6), (1, 1, 3), (1, 3, 4), strides=(1,), dilations=(1,), before=(0,), after=(0,)),
        deformed((N, 1, 3, 3), (1, 1, 2, 2), (N, 8, 2, 2)),
    ],
    "roi_align": [
        S((2, 3, 6, 5), (4, 4), index((4,), 0, 2), size=(2, 3), samples=(2, 2)),
        S((2, 1, 6, 5), (3, 4), index((3,), 0, 2), size=(2, 2), samples=(1, 1), mode="max", scale=0.7),
        S((1, 2, 4, 4), (2, 4), index((2,), 0, 1), size=(3, 1), samples=(3, 3), half_pixel=False, scale=1.5),
        S((1, 1, 4, 4), (0, 4), index((0,), 0, 1), size=(2, 2), samples=(2, 2)),
        S((2, 1, 4, N), (N, 4), index((N,), 0, 2), size=(2, 2), samples=(2, 2)),
        S((2, 1, 6, 5), (5, 4), index((5,), 0, 2), size=(2, 1), samples=(3, 9), adaptive=True),
        S((2, 1, 6, 5), (5, 4), index((5,), 0, 2), size=(2, 1), samples=(3, 2), adaptive=True, mode="max"),
    ],
    "max_roi_pool": [
        S((2, 3, 6, 5), (4, 4), index((4,), 0, 2), size=(2, 3)),
        S((1, 1, 6, 5), (3, 4), index((3,), 0, 1), size=(1, 2), scale=0.5),
        S((2, 1, N, 4), (N, 4), index((N,), 0, 2), size=(2, 2)),
    ],
    "dft": [
        S((2, 7, 1), axis=1),
        S((2, 8, 3, 2), axis=1),
        S((2, 6, 2), axis=-2, inverse=True),
        S((3, 9, 1), axis=1, onesided=True),
        S((2, 5, 2), axis=1, inverse=True, onesided=True),
        S((2, 5, 2), axis=1, length=7, inverse=True, onesided=True),
        S((2, 5, 1), axis=1, length=8),
        S((2, 5, 2), axis=1, length=3),
        S((1, 1, 2), axis=1),
        S((0, 4, 1), axis=1),
        S((N, 6, 2), axis=1),
        S((1, N, 2), axis=1, onesided=True),
        S((1, N, 1), axis=1, inverse=True),
        S((N, 4, 2), axis=1, length=N + 2, inverse=True, onesided=True),
    ],
    "stft": [
        S((2, 9, 1), length=4, step=2),
        S((2, 9, 1), (4,), length=4, step=3, onesided=False),
        S((1, 9, 2), (3,), length=5, step=1, onesided=False),
        S((N, 8, 1), (4,), length=4, step=2),
        S((1, N, 1), (4,), length=2, step=1),
    ],
}
