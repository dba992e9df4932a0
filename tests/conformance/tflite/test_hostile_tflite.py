"""Changed TensorFlow Lite files are refused with typed errors that name the file, or become Graphs that run, in bounded memory."""

from __future__ import annotations

import random
import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from tflite_bytes import Op, Sub, Value, Writer, graph_fields, model_bytes
from tflite_cases import CASES
from tflite_damage import changed, misstated

from singe.errors import FormatError, ImportFailure, SingeError, UnsupportedOp
from singe.graph import Graph
from singe.model.model import Model
from singe.model.source import GraphSource
from singe.runtime.devices import device
from singe.shapes import product
from singe.tflite import schema as s
from singe.tflite.importer import import_model
from singe.tflite.model import read_model

PARTS, EACH, BYTES, SMALL = 40, 50, 64 << 20, 1 << 16
FILES = [case.data for case in CASES.values()]


def read(data: bytes) -> Graph | None:
    try:
        return import_model(read_model(data, name="evil.tflite"))
    except SingeError as e:
        error = e
    assert "evil.tflite" in str(error)
    return None


def ran(graph: Graph) -> None:
    """Run a small Graph, if it can be compiled."""
    shapes = [shape for n in graph.nodes for shape, _ in n.results]
    if any(not isinstance(d, int) or d > SMALL for shape in shapes for d in shape) or any(
        product(shape) > SMALL for shape in shapes
    ):  # pyright: ignore[reportOperatorIssue]
        return
    try:
        with np.errstate(all="ignore"):
            Model(GraphSource(graph), device("numpy"), "evil")(*(np.ones(x.shape, x.dtype.numpy) for x in graph.inputs))  # pyright: ignore[reportCallIssue, reportArgumentType]
    except SingeError:
        return


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_changed_files_are_read_or_refused(part: int) -> None:
    rng = random.Random(part)
    tracemalloc.start()
    outcomes = []
    for k in range(EACH):
        graph = read((changed, misstated)[k % 2](rng.choice(FILES), rng))
        outcomes.append(graph is not None)
        if graph is not None:
            ran(graph)
    assert tracemalloc.get_traced_memory()[1] < BYTES
    tracemalloc.stop()
    assert {*outcomes} == {True, False}


def test_truncated_anywhere() -> None:
    data = CASES["CONV_2D int8 same"].data
    for end in range(len(data)):
        with pytest.raises(FormatError, match=r"evil\.tflite: "):
            import_model(read_model(data[:end], name="evil.tflite"))


def test_tables_that_share_what_they_hold_do_not_multiply() -> None:
    """A vector whose thousand offsets all lead to one graph with a thousand ops."""
    values, ops = [Value(np.zeros(3, np.float32))] * 2, [Op("RELU", [0], [1])] * 1000
    file = Writer({}, {})
    file.out += bytes(-len(file.out) % 8)
    vector = len(file.out)
    file.out += struct.pack("<I", 1000) + bytes(4000)
    graph = file.table(s.GRAPH, graph_fields(values, ops, [0], [1]))
    for k in range(1000):
        struct.pack_into("<I", file.out, vector + 4 + 4 * k, graph - vector - 4 - 4 * k)
    model = file.table(
        s.MODEL, {"version": s.VERSION, "operator_codes": [{"old_code": 19}], "graphs": [], "buffers": [{"data": b""}]}
    )
    vtable = model - struct.unpack_from("<i", file.out, model)[0]
    field = model + struct.unpack_from("<H", file.out, vtable + 4 + 2 * 2)[0]
    struct.pack_into("<I", file.out, field, (vector - field) % (1 << 32))
    struct.pack_into("<I", file.out, 0, model)
    with pytest.raises(FormatError, match=r"expected 4 more here|more than the file has bytes"):
        read_model(bytes(file.out), name="evil.tflite")


def test_a_small_file_is_no_large_tensor() -> None:
    """Sparse tensors are as large as their values allow."""
    dims = [
        {"format": 0, "dense_size": 1 << 14},
        {
            "format": 1,
            "segments_type": 1,
            "segments": Sub(s.INDEX_VECTORS[1], {"values": np.zeros((1 << 14) + 1)}),
            "indices_type": 1,
            "indices": Sub(s.INDEX_VECTORS[1], {"values": []}),
        },
    ]
    sparse = Value(
        np.zeros((1 << 14, 1 << 14), np.float32),
        is_constant=True,
        raw=b"\0\0\0\0",
        sparsity={"order": [0, 1], "dimensions": dims},
    )
    data = model_bytes(
        [Value(np.zeros(1, np.float32)), sparse, Value(np.zeros(1, np.float32))], [Op("ADD", [0, 1], [2])], [0], [2]
    )
    with pytest.raises(ImportFailure, match="values for 268435456 elements"):
        read_model(data)


def test_ops_that_singe_lacks_are_listed_once() -> None:
    values: list[Any] = [Value(np.zeros(3, np.float32))] * 5
    ops = [Op("SVDF", [0], [1]), Op("SVDF", [1], [2]), Op("CUSTOM:Mystery", [2], [3]), Op("WHERE", [0], [4])]
    with pytest.raises(UnsupportedOp, match=r"ops that Singe lacks: SVDF \(2\), CUSTOM:Mystery \(1\); convert") as e:
        import_model(read_model(model_bytes(values, ops, [0], [3])))
    assert e.value.ops == ("SVDF", "CUSTOM:Mystery")
