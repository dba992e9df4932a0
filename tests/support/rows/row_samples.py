"""All rows that are tested alike, their samples, and values for them.

Elementwise rows need no entry in samples/: they are sampled by arity, and ATTRIBUTES names their attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rows.samples import BATCH, Filled, N, Sample, folds, movement, moving, products, whole
from singe.dtypes import DTYPES, DType, dtype
from singe.graph import Builder, Graph
from singe.ops import ROWS, Elementwise, Opaque, Region, Result, Row
from singe.shapes import Size, known

SAMPLES: dict[str, list[Sample]] = {
    **folds.SAMPLES, **movement.SAMPLES, **moving.SAMPLES, **products.SAMPLES, **whole.SAMPLES
}  # fmt: skip
NOT_SAMPLED = (Opaque, Region, Result)
"""Kinds of row that have separate tests, because of several results, graphs, or shapes found in mid-run."""
ELSEWHERE = ("lstm", "gru", "rnn", "path_sums", "checks", "bit_cast")
"""Rows of several results, or that are loops: see test_recurrent.py and test_path_sums.py; and one whose attribute must fit the dtype: see test_dtypes.py."""
SAMPLED: list[Row] = [
    row
    for row in ROWS.values()
    if row.dtypes and not row.outside and not isinstance(row, NOT_SAMPLED) and row.name not in ELSEWHERE
]
"""Those that devices compute: a row without dtypes, such as `real`, runs in NumPy alone. Rows of other tests' functions do not count."""

DEAR = {
    "attention", "conv", "conv_int8", "conv_integers", "conv_last", "conv_transpose", "deform_conv", "det", "dft",
    "dot_blocks", "dot_blocks_int16", "dot_blocks_int8", "dot_int8", "einsum", "gcd", "grid_sample", "inverse", "lcm", "max_roi_pool", "resize", "roi_align",
    "rotary_embedding", "unpool_pick", "unpool_sum",
}  # fmt: skip
"""Rows with a slow reference, or with many kernels, each of which takes long to compile: `make quick` tests them on numpy only,
with every third sample."""

SHAPES: dict[int, list[tuple[Any, ...]]] = {
    1: [((2, 3, 5),), ((),), ((0,),), ((300,),), ((N, 4),)],
    2: [((40, 3), (40, 3)), ((2, 3), ()), ((3, 1), (1, 4)), ((), ()), ((0, 2), (2,)), ((N, 3), (3,)), ((N, 1), (N, 4))],
    3: [((4, 3), (4, 3), (4, 3)), ((3, 1), (4,), ()), ((), (), ()), ((N, 1), (3,), (N, 3)), ((0,), (1,), ())],
}
ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "cast": [{"to": DTYPES[name]} for name in ("bool", "uint8", "int32", "int64", "float16", "float32")],
    "hard_sigmoid": [{}, {"alpha": 1 / 6, "beta": 0.4}],
    "leaky_relu": [{}, {"alpha": 0.3}],
    "elu": [{}, {"alpha": 1.7}],
    "celu": [{}, {"alpha": 1.7}],
    "thresholded_relu": [{}, {"alpha": 0.3}],
    "shrink": [{}, {"lambd": 1.5, "bias": 1.2}],
    "isinf": [{}, {"detect_negative": False}, {"detect_positive": False}],
}


def samples_of(row: Row) -> list[Sample]:
    """All samples of a row."""
    if isinstance(row, Elementwise) and row.name not in SAMPLES:
        return [Sample(shapes, attrs) for attrs in ATTRIBUTES.get(row.name, [{}]) for shapes in SHAPES[row.arity]]
    assert row.name in SAMPLES, (
        f"a test of every row takes samples of inputs, and {row.name} has none: add some in tests/support/rows"
    )
    return SAMPLES[row.name]


def numbers(value: Any, batch: int = BATCH) -> Any:
    """Shapes and attributes with the batch size as a number."""
    if isinstance(value, (tuple, list)):
        return tuple(numbers(v, batch) for v in value)
    return known(value, {"N": batch}) if isinstance(value, Size) else value


def shape_of(given: Any) -> tuple[Any, ...]:
    return given.shape if isinstance(given, Filled) else given


def random_values(
    rng: np.random.Generator, shape: Sequence[int], dtype: DType, domain: tuple[float, float]
) -> np.ndarray:
    """Floats within a domain, some of them whole numbers or halves;
    small integers, and some at the ends of their range."""
    if dtype.is_float:
        values = rng.uniform(*domain, shape)
        halves = np.clip(np.round(values * 2) / 2, *domain)
        return np.where(rng.random(shape) < 0.1, halves, values).astype(dtype.numpy)
    if dtype.name == "bool":
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype.numpy)
    small = rng.integers(max(info.min, -9), 10, shape)
    ends = rng.choice(np.array([info.min, info.max, info.max // 3], dtype.numpy), shape)
    return np.where(rng.random(shape) < 0.1, ends, small.astype(dtype.numpy))


def arrays_of(
    sample: Sample, rng: np.random.Generator, dtype: DType, row: Row, takes: Sequence[str] = ()
) -> list[np.ndarray]:
    """Values for a sample's inputs, within the row's domain."""
    domain = getattr(row, "domain", (-4.0, 4.0))
    arrays = []
    for k, given in enumerate(sample.inputs):
        shape = numbers(shape_of(given))
        kind = DTYPES[takes[k]] if takes and takes[k] != "T" else dtype
        if isinstance(given, Filled) and given.dtype is not None:
            arrays.append(rng.integers(given.low, given.high, shape).astype(given.dtype.numpy))
        else:
            values = random_values(rng, shape, kind, domain)
            arrays.append(given.make(values).astype(kind.numpy) if isinstance(given, Filled) and given.make else values)
    return arrays


KINDS = [DTYPES[name] for name in ("bool", "uint8", "int32", "int64", "float16", "float32")]


"""One dtype for each way of computing and storing; test_dtypes.py tests all dtypes, on a few rows."""


def graph_of(row: Row, sample: Sample, arrays: Sequence[np.ndarray], **attrs: Any) -> Graph:
    b = Builder()
    inputs = tuple(
        b.input(f"x{k}", shape_of(s), dtype(a.dtype))
        for k, (s, a) in enumerate(zip(sample.inputs, arrays, strict=True))
    )
    return Graph(inputs, (b.apply(row, *inputs, **{**sample.attrs, **attrs}),), ("y",))


def sampled(row: Row, sample: Sample, rng: np.random.Generator, kind: DType) -> list[np.ndarray]:
    arrays = arrays_of(sample, rng, kind, row, row.argument_types if isinstance(row, Elementwise) else ())
    # A quotient by zero, or beyond the type, is promised nothing.
    if row.name in ("div", "floor_divide") and kind.is_int:
        arrays[1][(arrays[1] == 0) | (arrays[1] == -1)] = 2
    if row.name in ("fmod", "remainder") and kind.is_int:
        arrays[1][arrays[1] == 0] = 2
    if row.name == "pow" and kind.is_int:  # what is far beyond the type is promised nothing
        np.clip(arrays[1], 0 if kind.kind == "uint" else -9, 63, out=arrays[1])
    return arrays
