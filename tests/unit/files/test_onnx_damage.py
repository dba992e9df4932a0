"""Damaged and hostile ONNX files: refused with the position of the error, in little time and memory."""

from __future__ import annotations

import random
import re
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_bytes import number_bytes, rich, tag_len

from singe.errors import FormatError, ImportFailure, InputError, SingeError
from singe.onnx.model import read_model
from singe.onnx.wire import MAX_DEPTH

PLACE = re.compile(r"evil\.onnx: at byte \d+, (\w+(\[\d+\])?(\.\w+(\[\d+\])?)*|top level): \S", re.ASCII)


def contents(value: Any) -> Iterator[Any]:
    """Everything in a model, to check that it can be read."""
    yield value
    inner: Any = ()
    if isinstance(value, (tuple, list)):
        inner = value
    elif isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, np.ndarray):
        value.tobytes()
    elif hasattr(value, "__slots__"):
        inner = [getattr(value, name) for name in value.__slots__]
    for item in inner:
        yield from contents(item)


def survives(data: bytes) -> bool:
    """True if a model is read, False for an error that names the file and the place; anything else fails the test."""
    try:
        model = read_model(data, name="evil.onnx")
    except SingeError as error:
        if PLACE.match(str(error)):
            return False
        raise
    for _ in contents(model):
        pass
    return True


def test_truncated_anywhere() -> None:
    data, start = rich().SerializeToString(), time.process_time()
    outcomes = [survives(data[:end]) for end in range(len(data) + 1)]
    assert (outcomes[0], outcomes[-1]) == (False, True)
    assert outcomes.count(True) < 20
    assert time.process_time() - start < 30


@pytest.mark.slow
def test_flipped_bytes() -> None:
    data, rng, start = rich().SerializeToString(), random.Random(20), time.process_time()
    outcomes = []
    for _ in range(5000):
        evil = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 5))):
            evil[rng.randrange(len(evil))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        outcomes.append(survives(bytes(evil)))
    assert 100 < outcomes.count(True) < 4900
    assert time.process_time() - start < 60


def refused(data: bytes, message: str, kind: type[SingeError] = FormatError, limit: int = 1 << 20) -> None:
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(kind, match=message) as caught:
            read_model(data, name="evil.onnx")
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()
    assert PLACE.match(str(caught.value)), str(caught.value)
    assert time.process_time() - start < 10


def with_tensor(tensor: bytes) -> bytes:
    return b"\x08\x08" + tag_len(8, b"\x10\x11") + tag_len(7, tag_len(5, tag_len(8, b"w") + tensor))


def dims(*sizes: int) -> bytes:
    return b"\x10\x01" + b"".join(b"\x08" + number_bytes(size) for size in sizes)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (dims(1 << 40), "0 bytes of data, where float32.* takes"),
        (dims(1 << 20, 1 << 20), "0 bytes of data"),
        (dims(1 << 62, 1 << 62, 0), "more than memory can address"),
        (dims(0, 1 << 62), "more than memory can address"),
        (dims(-1), "negative dimension"),
        (dims(*[1] * 33), "33 dimensions"),
        pytest.param(dims(*[1 << 62] * 20000), "20000 dimensions", marks=pytest.mark.slow),
        (dims(4) + tag_len(9, bytes(15)), "raw_data: 15 bytes of data, where float32.* takes 16"),
        (dims(4) + tag_len(9, bytes(17)), "17 bytes of data"),
        (dims(4) + tag_len(4, bytes(15)), "float_data.*not a whole number of 4-byte values"),
        (dims(4) + tag_len(7, bytes(4)), "float_data: 0 bytes of data"),
        (dims() + tag_len(9, b""), "takes 4"),
        (b"\x10\x08\x08" + number_bytes(1 << 40), "string_data: 0 strings"),
        (b"\x10\x08\x08\x01" + tag_len(9, b"abc"), "string_data: 0 strings"),
        (b"\x10\x07\x08\x01" + tag_len(7, b"\xff" * 11 + b"\x01"), "longer than 10 bytes"),
        (b"\x10\x07\x08\x01" + tag_len(7, b"\xff"), "int64_data: a varint runs past the end"),
        (b"\x10\x07\x08\x01" + tag_len(7, b"\xff" * 99), "int64_data: a varint runs past the end of a packed run"),
        (b"\x10\x07\x08\x01" + tag_len(7, b"\xff" * 99 + b"\x01"), "longer than 10 bytes"),
        (b"\x10\x63", "element type 99"),
        (b"\x08\x01", "element type 0"),
        (b"\x10\x01" + tag_len(3, b""), "segments"),
    ],
)
def test_tensors_that_lie(tensor: bytes, message: str) -> None:
    refused(with_tensor(tensor), message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "top level: there is no graph"),
        (b"PK\x03\x04 this is a zip", "top level"),
        (b"\x3a\xff\xff\xff\xff\x0f", r"graph: length 4294967295 runs past the end \(0 bytes left\)"),
        (b"\x3a" + number_bytes(1 << 63), "graph: length 9223372036854775808 runs past"),
        (b"\x3a" + b"\xff" * 9 + b"\x01", "graph: length 18446744073709551615 runs past"),
        (b"\x08" + b"\x80" * 10 + b"\x01", "ir_version: a varint is longer than 10 bytes"),
        (b"\x08\x80", "ir_version: a varint runs past the end"),
        (b"\x00\x00", "field number 0"),
        (b"\x80\x80\x80\x80\x80\x01\x00", "field number 4294967296"),
        (b"\x0b\x0c", "groups are not supported"),
        (b"\x0f", "wire type 7"),
        (tag_len(7, tag_len(1, tag_len(3, b"\xff"))), r"graph\.node\[0\]\.name: not UTF-8"),
        (tag_len(7, tag_len(1, tag_len(1, b"a") + tag_len(1, b"\xc3"))), r"graph\.node\[0\]\.input\[1\]: not UTF-8"),
        (tag_len(7, tag_len(1, tag_len(4, b"\xed\xa0\x80"))), r"op_type: not UTF-8"),
        (tag_len(7, tag_len(1, b"")), r"graph\.node\[0\]: the node has no op_type"),
        (tag_len(7, tag_len(5, b"\x10\x01" + tag_len(9, bytes(4)))), r"graph\.initializer\[0\]: it has no name"),
        (tag_len(7, b""), "ir_version: IR version 0"),
        (b"\x08\x08" + tag_len(7, b""), "opset_import: the model imports no opset"),
        (b"\x08\x08" + tag_len(7, b"") + tag_len(8, b"\x10\x00"), r"opset_import\[0\]\.version: opset version 0"),
    ],
)
def test_messages_that_lie(data: bytes, message: str) -> None:
    refused(data, message)


def test_the_place_of_a_fault_is_exact() -> None:
    good = tag_len(1, tag_len(4, b"Relu"))
    bad = tag_len(1, tag_len(4, b"Conv") + tag_len(5, b"\x0a\x01k\xa0\x01\x02\x18\x01") + b"\x2a\x63\x0a\x01")
    data = b"\x08\x08" + tag_len(7, good * 17 + bad)
    with pytest.raises(FormatError) as caught:
        read_model(data, name="model.onnx")
    at = len(data) - 4
    place = f"model.onnx: at byte {at}, graph.node[17].attribute[1]"
    assert str(caught.value) == f"{place}: length 99 runs past the end (2 bytes left)"


def test_deep_graphs_are_refused_and_shallow_ones_read() -> None:
    def nested(levels: int) -> bytes:
        graph = b""
        for _ in range(levels):
            attribute = tag_len(1, b"body") + b"\xa0\x01\x05" + tag_len(6, graph)
            graph = tag_len(1, tag_len(4, b"Loop") + tag_len(5, attribute))
        return b"\x08\x08" + tag_len(8, b"\x10\x11") + tag_len(7, graph)

    assert survives(nested(20))
    refused(nested(22), f"nest more than {MAX_DEPTH} deep")
    refused(nested(5000), f"nest more than {MAX_DEPTH} deep", limit=8 << 20)


def test_deep_types_are_refused() -> None:
    kind = b""
    for _ in range(10000):
        kind = tag_len(4, tag_len(1, kind))
    refused(b"\x08\x08" + tag_len(7, tag_len(11, tag_len(2, kind))), "deep", limit=8 << 20)


@pytest.mark.slow
def test_time_and_memory_are_linear() -> None:
    """Many tiny runs, each of which a careless reader would join to all that came before."""
    tiny = with_tensor(dims(1) + tag_len(4, bytes(4)) * 100_000)
    refused(tiny, "400000 bytes of data", limit=16 * len(tiny))
    long_then_tiny = with_tensor(dims(1) + tag_len(4, bytes(1 << 20)) + tag_len(4, bytes(4)) * 20_000)
    refused(long_then_tiny, "bytes of data", limit=16 * len(long_then_tiny))
    ones = with_tensor(b"\x10\x07" + tag_len(7, b"\x01" * (1 << 20)))
    refused(ones, "8388608 bytes of data", limit=32 << 20)
    dimensions = with_tensor(b"\x10\x01" + tag_len(1, b"\xff" * 9 + b"\x01") * 20_000)
    refused(dimensions, "20000 dimensions", limit=16 * len(dimensions))


def test_a_name_counts_once() -> None:
    weight = tag_len(5, tag_len(8, b"w") + b"\x10\x01" + tag_len(9, bytes(4)))
    refused(b"\x08\x08" + tag_len(7, weight * 2), r"graph\.initializer\[1\]: the name 'w' is taken")
    attribute = tag_len(5, tag_len(1, b"k") + b"\xa0\x01\x02\x18\x01")
    refused(b"\x08\x08" + tag_len(7, tag_len(1, tag_len(4, b"Op") + attribute * 2)), r"attribute\[1\]: the name 'k'")


def test_an_attribute_has_the_value_that_its_type_says() -> None:
    def attribute(rest: bytes) -> bytes:
        return tag_len(7, tag_len(1, tag_len(4, b"Op") + tag_len(5, tag_len(1, b"k") + rest)))

    refused(attribute(b"\xa0\x01\x02\x15\x00\x00\x00\x00"), "'k' should have its value in 'i' alone, and has f")
    refused(attribute(b"\xa0\x01\x05"), "'k' has no value; expected one in 'g'")
    refused(attribute(b""), "'k' has no value")
    refused(attribute(b"\xa0\x01\x63"), "attribute type 99", ImportFailure)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.onnx: cannot be read"):
        read_model(tmp_path / "absent.onnx")
    with pytest.raises(InputError, match="not a regular file"):
        read_model(tmp_path)
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(FormatError, match=r"empty\.onnx: at byte 0, top level: there is no graph"):
        read_model(str(tmp_path / "empty.onnx"))
