"""Samples of rows that move elements."""

from __future__ import annotations

from typing import Any

from singe.dtypes import bool_, float32, int32, uint8

from . import BATCH, Filled, N, S, Sample, index


def resized(
    shape: tuple[Any, ...], sizes: tuple[Any, ...], scales: tuple[float, ...] | None = None, **options: Any
) -> Sample:
    attrs = {"sizes": sizes, "scales": scales or tuple(o / d for o, d in zip(sizes, shape, strict=True)), **options}
    return Sample((shape,), attrs, floats_only="mode" in options)


COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
)
RESIZE = [
    *(
        resized((1, 2, 3, 4), (1, 2, 6, 8), nearest=n, coordinates=c)
        for n in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for c in COORDINATES[:5]
    ),
    *(resized((5, 4), (3, 7), nearest="floor", coordinates=c) for c in COORDINATES),
    *(resized((5, 4), (8, 3), mode="linear", coordinates=c) for c in COORDINATES),
    *(resized((4, 5), (7, 3), mode="cubic", coordinates=c) for c in COORDINATES[:4]),
    resized((4, 4), (3, 3), (0.8, 0.8), mode="linear"),
    resized((4, 4), (3, 3), (0.8, 0.8), mode="linear", coordinates="half_pixel_symmetric"),
    resized((8, 6), (3, 4), mode="linear", antialias=True),
    resized((8, 6), (3, 4), mode="cubic", antialias=True),
    resized((4, 4), (8, 3), mode="cubic", exclude_outside=True, cubic=-0.5),
    resized((4, 4), (1, 1), mode="linear", coordinates="pytorch_half_pixel"),
    resized(
        (4, 5), (3, 3), mode="linear", coordinates="tf_crop_and_resize", roi=(0.4, -0.2, 0.6, 1.2), extrapolation=10.0
    ),
    resized((2, 3), (2, 3), mode="linear"),
    S((N, 2, 3), sizes=(N, 4, 6), scales=(1.0, 2.0, 2.0)),
    resized((N, 2, 3), (N, 5, 2), (1.0, 2.5, 0.75), mode="linear"),
    S((N, 2), sizes=(N * 2, 2), scales=(2.0, 1.0), coordinates="asymmetric", nearest="floor"),
]

TRIANGLE = [
    S((3, 4)),
    S((2, 4, 3), diagonal=1),
    S((4, 4), diagonal=-2),
    S((2, 3), diagonal=2_000_000_000),
    S((2, 3), diagonal=-2_000_000_000),
    S((N, 4), diagonal=-1),
    S((2, 3, N)),
    S((0, 3)),
    S((2, 3, 0)),
]


def trees(at: tuple[Any, ...], x: tuple[Any, ...], nodes: int, steps: int, *, missing: bool = False) -> Sample:
    """Steps through nodes that name each other at random."""
    features = Filled(x, float32, -3, 4)
    ids, next_ids = index((nodes,), 0, x[1], int32), index((nodes,), 0, nodes, int32)
    table = (ids, Filled((nodes,), float32, -3, 4), next_ids, next_ids)
    return S(index(at, 0, nodes, int32), features, *table, *[Filled((nodes,), bool_, 0, 2)] * missing, steps=steps)


SAMPLES: dict[str, list[Sample]] = {
    "tril": TRIANGLE,
    "triu": TRIANGLE,
    "tree_steps": [
        trees((1, 4), (5, 3), 11, 6),
        trees((5, 2), (5, 1), 30, 1, missing=True),
        trees((1, 3), (N, 4), 40, 15),
        trees((1, 3), (0, 4), 7, 2),
    ],
    "reshape": [
        S((2, 3, 4), shape=(4, 6)),
        S((), shape=(1, 1)),
        S((1,), shape=()),
        S((0, 3), shape=(3, 0)),
        S((2, 0, 3), shape=(0,)),
        S((6,), shape=(1, 2, 3)),
        S((5, 7), shape=(7, 5)),
        S((N, 3, 4), shape=(N, 12)),
        S((N, 12), shape=(N, 4, 3)),
        S((N, 4), shape=(4, N)),
        S((2, N, 6), shape=(N * 3, 4)),
    ],
    "transpose": [
        S((2, 3, 4), perm=(2, 0, 1)),
        S((3, 4), perm=(1, 0)),
        S((), perm=()),
        S((0, 2), perm=(1, 0)),
        S((N, 3, 2), perm=(0, 2, 1)),
        S((N, 3), perm=(1, 0)),
    ],
    "expand": [
        S((3, 1), shape=(3, 4)),
        S((), shape=(2, 3)),
        S((1,), shape=(0,)),
        S((2,), shape=(3, 1, 2)),
        S((N, 1), shape=(2, N, 4)),
    ],
    "slice": [
        S((5, 6), starts=(1, 5), steps=(1, -1), sizes=(3, 6)),
        S((7, 6), starts=(6, 0), steps=(-3, 2), sizes=(3, 3)),
        S((5,), starts=(2,), steps=(1,), sizes=(0,)),
        S((), starts=(), steps=(), sizes=()),
        S((N, 6), starts=(0, 1), steps=(1, 4), sizes=(N, 2)),
        S((N, 2), starts=(N - 1, 0), steps=(-1, 1), sizes=(N, 2)),
        S((N, 2), starts=(1, 0), steps=(1, 1), sizes=(N - 1, 2)),
    ],
    "pad": [
        S((3, 4), (), before=(1, 0), after=(0, 2), mode="constant"),
        S((3, 4), (), before=(2, 1), after=(1, 3), mode="reflect"),
        S((3, 4), (), before=(2, 1), after=(5, 0), mode="edge"),
        S((3, 4), (), before=(4, 1), after=(5, 9), mode="wrap"),
        S((4,), (), before=(2,), after=(3,), mode="reflect"),
        S((0, 2), (), before=(1, 1), after=(2, 0), mode="constant"),
        S((), (), before=(), after=(), mode="constant"),
        S((N, 2), (), before=(0, 1), after=(1, 1), mode="constant"),
        S((N, 3), (), before=(0, 1), after=(0, 2), mode="reflect"),
        S((N, 3), (), before=(1, 1), after=(2, 1), mode="edge"),
    ],
    "concat": [
        S((2, 3), (2, 1), (2, 4), axis=1),
        S((2, 3), (1, 3), axis=0),
        S((2, 3), axis=-1),
        S((0, 3), (2, 3), (0, 3), axis=0),
        S((0,), (0,), axis=0),
        S((N, 3), (N, 2), axis=1),
        S((N, 3), (2, 3), (N, 3), axis=0),
    ],
    "arange": [S((), (), count=7), S((), (), count=0), S((), (), count=1)],
    "recomputed": [S((3, 4), (2,)), S((N, 3), (N,)), S((), (2,))],
    "gather": [
        S((5, 3), index((4,), -5, 5), axis=0),
        S((2, 5, 3), index((2, 2), 0, 5, int32), axis=1),
        S((2, 5), index((), -5, 5), axis=-1),
        S((6,), index((2, 3), 0, 6, uint8), axis=0),
        S((3, 2), index((0,), 0, 1), axis=0),
        S((N, 4), index((3,), -4, 4), axis=1),
        S((4, 2), index((N,), -4, 4), axis=0),
        S((N, 2), index((4,), -BATCH, BATCH), axis=0),
    ],
    "resize": RESIZE,
    "update_slice": [
        S((5, 3), (2, 3), index((), 0, 4), index((), 0, 1)),
        S((6,), (6,), index((), 0, 9)),
        S((6,), (4,), index((), -3, 0, int32)),
        S((N, 4), (1, 4), index((), 0, BATCH), index((), 0, 1)),
        S((4, N), (4, N), index((), 0, 1), index((), 0, 1)),
        S((3, 2), (0, 2), index((), 0, 1), index((), 0, 1)),
    ],
    "scatter_elements": [
        S((5, 3), (1, 3), index((1, 3), -5, 5), axis=0),
        S((2, 6), (2, 1), index((2, 1), 0, 6, int32), axis=1),
        S((N, 4), (N, 1), index((N, 1), -4, 4), axis=1),
    ],
    "scatter_nd": [
        S((5, 3), (1, 3), index((1, 1), -5, 5)),
        S((4, 4, 2), (1, 2), index((1, 2), 0, 4, int32)),
        S((N, 3), (1,), index((1, 2), 0, BATCH)),
    ],
}
