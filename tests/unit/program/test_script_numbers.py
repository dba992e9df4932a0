"""A Program whose header passed through JavaScript computes the same: JSON.stringify writes 1.0 as 1, and a server reads an integer."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pytest
from rows.row_samples import SAMPLED, graph_of, sampled, samples_of

import singe as sg
from singe.dtypes import DTYPES
from singe.ir.arrays.numpy import NUMPY_ARRAYS
from singe.ops import ROWS, Composite, Row
from singe.program.format import header, made
from singe.runtime.numpy_backend import NumpyBackend

FLOATS: Final = {
    row: names
    for row in SAMPLED
    if not isinstance(row, Composite)  # which compilers replace
    and (names := [p.name for p in row.parameters if type(p.default) is float])
}
"""Rows ↦ their attributes that are floats."""


def through_javascript(data: Any) -> Any:
    """What JSON.stringify(JSON.parse(…)) makes of it."""
    if isinstance(data, dict):
        return {name: through_javascript(value) for name, value in data.items()}
    if isinstance(data, list):
        return [through_javascript(value) for value in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (row, kind)
        for row in FLOATS
        for kind in ("float16", "float32", "float64", "int32")
        if DTYPES[kind] in row.dtypes
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_floats_that_became_integers_compute_the_same(row: Row, kind: str) -> None:
    sample = samples_of(row)[0]
    arrays = sampled(row, sample, np.random.default_rng(0), DTYPES[kind])
    graph = graph_of(row, sample, arrays, **dict.fromkeys(FLOATS[row], 2.0))
    backend = NumpyBackend()
    program = sg.Model(graph, "numpy").program().data
    head = json.loads(json.dumps(header(program)))
    passed = through_javascript(head)
    assert json.dumps(passed) != json.dumps(head)
    outputs = []
    for fields in (head, passed):
        executable = backend.prepare(made(fields, program.modules, program.weights, "a program", program.shared))
        outputs.append(executable.run([backend.upload(x) for x in arrays])[0].data)
    assert outputs[0].dtype == outputs[1].dtype
    np.testing.assert_array_equal(*outputs)


def test_tables_of_resize_are_the_same() -> None:
    given = np.array([2.5, 0.7], np.float32), np.array([0, 0, 1, 1], np.float32)
    names = {"policy": "stretch", "coordinates": "half_pixel", "nearest": "floor", "mode": "cubic", "antialias": False}
    found = [
        ROWS["resize_tables"].run(
            NUMPY_ARRAYS, given, {**names, "shape": (7, 9), "axes": (0, 1), "cubic": cubic, "exclude_outside": False}
        )
        for cubic in (-1.0, -1)
    ]
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
