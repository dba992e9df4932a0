"""Elements and slices folded into those at indices, on all devices: in order, with the same numbers as NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from devices import runners, slow

import singe as sg
from singe.dtypes import NUMBERS, DType, float32, int32, int64, uint8, uint32, uint64, widened
from singe.graph import Builder, Graph
from singe.ir.arrays import convert
from singe.model.model import Model
from singe.ops.opaque.selection import REDUCTIONS
from singe.shapes import Dim, size

SIZES = ((4, 5, 4, 9, 7), (3, 1, 1, 3, 40), (2, 2, 0, 0, 0), (2, 0, 2, 0, 0), (1, 300, 1, 1000, 500))
"""Outer and inner lengths of x, outer and inner ones of its part, and a number of slices."""


def same(got: np.ndarray, want: np.ndarray) -> bool:
    """Whether arrays have the same elements; any NaN is like any other."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    return np.array_equal(widened(got), widened(want), equal_nan=want.dtype.kind in "fV")


def scattered(lengths: tuple[Dim, ...], kind: DType, index: DType, reduction: str) -> Graph:
    m, n, k, p, q = lengths
    b = Builder()
    x, part = b.input("x", (m, n, 3), kind), b.input("part", (k, p, 2), kind)
    at, offset = b.input("at", (k, p, 2), index), b.input("offset", (), index)
    slices, places = b.input("slices", (q, 3), kind), b.input("places", (q, 2), index)
    elements = b.scatter_elements_reduce(x, part, b.add(at, offset), axis=1, reduction=reduction)
    outputs = (elements, b.scatter_nd_reduce(x, slices, b.add(places, offset), reduction=reduction))
    return Graph((x, part, at, slices, places, offset), outputs, ("elements", "slices"), b.size_nodes)


def drawn(lengths: tuple[int, ...], kind: DType, index: DType, rng: np.random.Generator) -> list[np.ndarray]:
    """Inputs with NaN among floats, and indices from beyond both ends, which are refused unless the device computes them: an
    offset of 0 is added to them."""
    m, n, k, p, q = lengths

    def numbers(*shape: int) -> np.ndarray:
        values = rng.normal(0, 3, shape) if kind.is_float else rng.integers(0, 100, shape).astype(np.float64)
        if kind.is_float and values.size:
            values.flat[0] = np.nan
        return convert(values, kind.numpy)

    def indices(*shape: int) -> np.ndarray:
        return rng.integers(0 if index.kind == "uint" else -n - 2, n + 2, shape).astype(index.numpy)

    given = [numbers(m, n, 3), numbers(k, p, 2), indices(k, p, 2), numbers(q, 3), indices(q, 2)]
    return [*given, np.zeros((), index.numpy)]


@pytest.mark.slow
@runners("wasm", *slow("webgpu"))
def test_scattered_sums_have_numpys_numbers(device_name: str) -> None:
    target = sg.device(device_name).target
    rng = np.random.default_rng(0)
    kinds = [(k, int64, word) for k in NUMBERS for word in REDUCTIONS]
    for kind, index, word in (*kinds, *((float32, i, "add") for i in (uint8, int32, uint32, uint64))):
        if kind not in target.dtypes:
            continue
        graph = scattered(tuple(map(size, "MNKPQ")), kind, index, word)
        program, expected = Model(graph, device_name).program(), Model(graph, "numpy").program()
        assert "host" not in program.data.facts
        for lengths in SIZES:
            given = drawn(lengths, kind, index, rng)
            for got, want in zip(program.run(given), expected.run(given), strict=True):
                assert same(got, want), f"{kind} {word} at {index}: {lengths}"


@runners("wasm", "webgpu")
def test_scattered_sums_of_known_lengths(device_name: str) -> None:
    """Among them 0, for which a code generator may have constants that no shader can divide by."""
    for lengths in SIZES:
        graph = scattered(lengths, float32, int64, "add")
        given = drawn(lengths, float32, int64, np.random.default_rng(1))
        program, expected = Model(graph, device_name).program(), Model(graph, "numpy").program()
        for got, want in zip(program.run(given), expected.run(given), strict=True):
            assert same(got, want), str(lengths)


@runners(*slow("webgpu"))
def test_long_lists_of_indices_keep_numpys_bits(device_name: str) -> None:
    """The gradient of an embedding: more indices than a workgroup reads at once, many of them of the same row."""
    rng = np.random.default_rng(2)
    for rows, width, count in ((50, 1, 3000), (1000, 20, 1500), (7, 300, 700), (3, 8, 64)):
        b = Builder()
        x, part = b.input("x", (rows, width), float32), b.input("part", (size("N"), width), float32)
        at = b.input("at", (size("N"), 1), int32)
        elements = b.scatter_elements_reduce(b.const(np.ones(rows, np.float32)), b.reshape(part, shape=(size("N"),)),
                                             b.reshape(at, shape=(size("N"),)), axis=0, reduction="add") if width == 1 else x  # fmt: skip
        graph = Graph((x, part, at), (b.scatter_nd_reduce(x, part, at, reduction="add"), b.neg(elements)), ("y", "z"))
        given = [rng.normal(size=shape).astype(np.float32) for shape in ((rows, width), (count, width))]
        given.append((rng.integers(0, rows, (count, 1)) * rng.integers(0, 2, (count, 1))).astype(np.int32))
        program, expected = Model(graph, device_name).program(), Model(graph, "numpy").program()
        assert "host" not in program.data.facts
        for got, want in zip(program.run(given), expected.run(given), strict=True):
            np.testing.assert_array_equal(got, want)
