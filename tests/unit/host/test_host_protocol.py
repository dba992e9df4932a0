"""The KServe v2 protocol as functions of bytes: what a client writes is read as it was meant, and nothing else is read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from kserve import Answer, request

from singe.dtypes import bfloat16, dtype, float32, int64, narrowed, own, string, uint8, widened
from singe.errors import InputError
from singe.host import protocol
from singe.host.protocol import Refused, check_ports, metadata, read_request, write_response
from singe.model.arguments import TensorSpec
from singe.shapes import size

N = size("N")
X = TensorSpec("x", float32, (N, 2))
K = TensorSpec("k", int64, ())
T = TensorSpec("t", string, (N,))
B = TensorSpec("b", dtype("bool"), (2,))
OUTPUTS = ("y", "z")


def values(kind: str) -> np.ndarray:
    if kind == "object":
        return np.array([["", "ä"], ["日本", "x" * 300]], object)
    whole = np.array([[0, 1], [2, 3]])
    return (whole % 2 == 1) if kind == "bool" else whole.astype(kind)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    "kind", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
             "float64", "object"],
)  # fmt: skip
def test_every_type_comes_as_it_went(kind: str, binary: bool) -> None:
    array = values(kind)
    body, headers = request({"x": array}, binary, id="7")
    length = headers.get("Inference-Header-Content-Length")
    spec = TensorSpec("x", string if kind == "object" else dtype(kind), (N, 2))
    read = read_request(body, length and int(length), (spec,), ("x",))  # pyright: ignore[reportArgumentType]
    assert read.id == "7"
    assert read.outputs == (("x", binary),)
    found = read.arrays["x"]
    assert found.flags.writeable
    assert np.array_equal(found, own(array))
    parts, size_of_json = write_response("m", read, {"x": found})
    headers = {} if size_of_json is None else {"inference-header-content-length": str(size_of_json)}
    answer = Answer(200, headers, b"".join(parts))
    assert np.array_equal(answer.outputs["x"], array)
    assert json.loads(parts[0])["id"] == "7"


def test_bfloat16_comes_as_bytes_and_as_numbers() -> None:
    array = narrowed(np.array([1.5, -2.0], np.float32), bfloat16)
    spec = TensorSpec("x", bfloat16, (2,))
    entry: dict[str, Any] = {"name": "x", "datatype": "BF16", "shape": [2]}
    for more, raw in (({"data": [1.5, -2]}, b""), ({"parameters": {"binary_data_size": 4}}, array.tobytes())):
        text = json.dumps({"inputs": [entry | more]}).encode()
        read = read_request(text + raw, len(text), (spec,), ("x",))
        assert widened(read.arrays["x"]).tolist() == [1.5, -2]
    assert json.loads(write_response("m", read, {"x": array})[0][0])["outputs"][0]["data"] == [1.5, -2]


def test_numbers_may_lie_in_lists_by_the_shape() -> None:
    for data in ([1, 2, 3, 4], [[1, 2], [3, 4]]):
        read = read_request(body(entry(data=data)), None, (X,), OUTPUTS)
        assert read.arrays["x"].tolist() == [[1, 2], [3, 4]]


def test_outputs_are_chosen_each_as_json_or_bytes() -> None:
    wanted = [{"name": "z", "parameters": {"binary_data": True}}, {"name": "y"}]
    read = read_request(body(entry(), outputs=wanted), None, (X,), OUTPUTS)
    assert read.outputs == (("z", True), ("y", False))
    parts, length = write_response("m", read, {"y": np.ones(2, np.float32), "z": np.zeros((2, 1), np.int32)})
    assert length == len(parts[0])
    assert parts[1] == bytes(8)
    read = read_request(body(entry(), parameters={"binary_data_output": True}), None, (X,), OUTPUTS)
    assert read.outputs == (("y", True), ("z", True))


def test_too_many_numbers_are_not_written_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_JSON_ELEMENTS", 3)
    read = read_request(body(entry()), None, (X,), ("y",))
    with pytest.raises(Refused, match="ask for them with the parameter binary_data"):
        write_response("m", read, {"y": np.ones(4, np.float32)})


def test_ports_are_described_by_their_types_and_open_sizes() -> None:
    assert metadata(X) == {"name": "x", "datatype": "FP32", "shape": [-1, 2]}
    assert metadata(K)["shape"] == []
    assert metadata(TensorSpec("y", uint8, None))["shape"] == [-1]
    with pytest.raises(InputError, match="complex64, which the protocol does not have"):
        check_ports((X, TensorSpec("c", dtype("complex64"), ())))


# --- requests that are wrong ------------------------------------------------------------------------------------------


def entry(**changes: Any) -> dict[str, Any]:
    found = {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4], **changes}
    return {k: v for k, v in found.items() if v is not None}


def body(*inputs: Any, **more: Any) -> bytes:
    return json.dumps({"inputs": list(inputs), **more}).encode()


def with_bytes(*sizes: Any, raw: bytes = bytes(16), **changes: Any) -> tuple[bytes, int]:
    entries = [entry(data=None, parameters={"binary_data_size": n}, **changes) for n in sizes]
    text = body(*entries)
    return text + raw, len(text)


TEXT = TensorSpec("x", string, (N,))
WRONG: dict[str, tuple[bytes | tuple[bytes, int | None], str]] = {
    "nothing": (b"", "no JSON"),
    "no JSON": (b"{", "no JSON"),
    "no UTF-8": (b"\xff\xfe{}", "no JSON"),
    "deep": (b"[" * 100_000, "no JSON"),
    "a long number": (b'{"inputs": [' + b"9" * 5000 + b"]}", "no JSON"),
    "a list": (b"[]", "a list, expected an object"),
    "no inputs": (b"{}", "inputs: expected a list"),
    "inputs that are no list": (b'{"inputs": {}}', "inputs: expected a list"),
    "inputs that are no objects": (b'{"inputs": [1]}', "inputs: expected a list"),
    "too few inputs": (body(), "got 0 inputs, expected 1"),
    "too many inputs": (body(entry(), entry()), "got 2 inputs, expected 1"),
    "another name": (body(entry(name="q")), "no input 'q'"),
    "a name that is no text": (body(entry(name=3)), "no input a number"),
    "another type": (body(entry(datatype="FP64")), "got the datatype 'FP64', expected FP32"),
    "no type": (body(entry(datatype=None)), "got the datatype null"),
    "no shape": (body(entry(shape=None)), "the shape must be a list"),
    "a shape below 0": (body(entry(shape=[-1, 2])), "the shape must be a list of numbers from 0"),
    "a shape of fractions": (body(entry(shape=[2.0, 2])), "the shape must be a list of numbers"),
    "a huge shape": (body(entry(shape=[2**62, 2])), "the shape must be a list of numbers from 0"),
    "a shape of much": (body(entry(shape=[2**30, 2])), "too large"),
    "another rank": (body(entry(shape=[4])), "got the shape (4,), expected (N, 2)"),
    "another size": (body(entry(shape=[1, 4])), "got the shape (1, 4), expected (N, 2)"),
    "no data": (body(entry(data=None)), "data is null"),
    "data that is no list": (body(entry(data=3)), "data is a number"),
    "too little data": (body(entry(data=[1, 2, 3])), "got 3 elements, expected 4"),
    "too much data": (body(entry(data=[1] * 5)), "got 5 elements, expected 4"),
    "ragged data": (body(entry(data=[[1, 2, 3], [4]])), "lists of other lengths"),
    "data too deep": (body(entry(data=[[1, [2]], [3, 4]])), "data has a list"),
    "texts for numbers": (body(entry(data=["1", "2", "3", "4"])), "data has a text"),
    "null for numbers": (body(entry(data=[1, 2, 3, None])), "data has null"),
    "flags for numbers": (body(entry(data=[1, 2, 3, True])), "data has true or false"),
    "a number beyond the type": (body(entry(data=[1, 2, 3, 1e39])), "beyond FP32"),
    "an integer beyond all floats": (body(entry(data=[1, 2, 3, 10**400])), "beyond FP32"),
    "an id that is no text": (body(entry(), id=3), "id must be a text"),
    "parameters that are no object": (body(entry(), parameters=3), "parameters of the request are a number"),
    "shared memory": (body(entry(parameters={"shared_memory_region": "r"})), "no shared memory"),
    "a sequence": (body(entry(), parameters={"sequence_id": 3}), "keeps nothing from request to request"),
    "a ranking": (body(entry(), outputs=[{"name": "y", "parameters": {"classification": 3}}]), "does not rank"),
    "another output": (body(entry(), outputs=[{"name": "x"}]), "no output 'x'"),
    "an output twice": (body(entry(), outputs=[{"name": "y"}, {"name": "y"}]), "asked for twice"),
    "more outputs than there are": (body(entry(), outputs=[{"name": "y"}] * 3), "3 outputs are asked for"),
    "a flag that is none": (body(entry(), parameters={"binary_data_output": 1}), "expected true or false"),
    "a length beyond the body": ((body(entry()), 10_000), "10000 bytes are JSON"),
    "bytes that nobody announced": ((body(entry()) + b"123", len(body(entry()))), "3 bytes follow the JSON"),
    "too few bytes": (with_bytes(12), "got 12 bytes, expected 16"),
    "more bytes than there are": (with_bytes(17), "of which 16 are left"),
    "bytes below 0": (with_bytes(-4), "must be a number of bytes"),
    "a flag for bytes": (with_bytes(True), "must be a number of bytes"),
    "bytes and data": (body(entry(parameters={"binary_data_size": 16})), "both data and binary_data_size"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_request_is_refused_with_what_is_wrong(wrong: str) -> None:
    given, match = WRONG[wrong]
    data, length = given if isinstance(given, tuple) else (given, None)
    with pytest.raises(Refused) as refused:
        read_request(data, length, (X,), OUTPUTS)
    assert match in str(refused.value)
    assert refused.value.status == 400
    assert len(str(refused.value)) < 500


OF_TYPES: list[tuple[TensorSpec, Any, bytes, str]] = [
    (K, {"datatype": "INT64", "shape": [], "data": [2**63]}, b"", "beyond INT64"),
    (K, {"datatype": "INT64", "shape": [], "data": [1.5]}, b"", "data has a number"),
    (B, {"datatype": "BOOL", "shape": [2], "data": [0, 1]}, b"", "data has a number"),
    (B, {"datatype": "BOOL", "shape": [2], "parameters": {"binary_data_size": 2}}, b"\1\2", "must be 0 or 1"),
    (T, {"datatype": "BYTES", "shape": [1], "data": ["\ud800"]}, b"", "lone surrogate"),
    (T, {"datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 5}}, b"\1\0\0\0\xff", "not UTF-8"),
    (T, {"datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 5}}, b"\2\0\0\0x", "goes beyond"),
    (T, {"datatype": "BYTES", "shape": [9], "parameters": {"binary_data_size": 5}}, b"\1\0\0\0x", "too few for 9"),
    (T, {"datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 5}}, b"\0\0\0\0x", "1 bytes follow"),
    (T, {"datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": 9}}, b"\2\0\0\0xy\0\0\0", "goes beyond"),
]


@pytest.mark.parametrize(("spec", "data", "raw", "match"), OF_TYPES)
def test_elements_are_those_of_their_type(spec: TensorSpec, data: Any, raw: bytes, match: str) -> None:
    text = json.dumps({"inputs": [{"name": spec.name, **data}]}).encode()
    with pytest.raises(Refused, match=match):
        read_request(text + raw, len(text), (spec,), OUTPUTS)


def test_no_size_of_an_empty_shape_is_believed_without_bytes() -> None:
    spec = TensorSpec("x", float32, (N, size("L")))
    assert read_request(body(entry(shape=[0, 8], data=[])), None, (spec,), OUTPUTS).arrays["x"].shape == (0, 8)
    with pytest.raises(Refused, match="too large"):
        read_request(body(entry(shape=[0, 2**30], data=[])), None, (spec,), OUTPUTS)


def test_json_beyond_the_limit_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_JSON_BYTES", 50)
    with pytest.raises(Refused, match="send the tensors as bytes") as refused:
        read_request(body(entry()), None, (X,), OUTPUTS)
    assert refused.value.status == 413


def mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """A body with a few bytes changed, taken out, doubled or put in."""
    found = bytearray(data)
    for _ in range(rng.integers(1, 3)):
        at, n = int(rng.integers(0, len(found) + 1)), int(rng.integers(1, 9))
        match rng.integers(0, 5):
            case 0:
                found[at : at + 1] = bytes([rng.integers(0, 256)])
            case 1:
                del found[at : at + n]
            case 2:
                found[at:at] = found[at : at + n]
            case 3:
                found[at : at + 1] = rng.choice([b"-", b"9", b"[", b"]", b"{", b'"', b"null", b"1e9", b"\xff", b"true"])
            case _:
                found[at : at + n] = rng.bytes(n)
    return bytes(found)


@pytest.mark.slow
def test_of_mutated_requests_each_is_read_or_refused() -> None:
    """Nothing else is raised, and what is read has the bytes that came for it."""
    rng, specs = np.random.default_rng(0), (X, T)
    arrays = {"x": np.ones((2, 2), np.float32), "t": np.array(["a", "ä"], object)}
    read = 0
    for binary in (False, True):
        data, headers = request(arrays, binary, id="7", outputs=[{"name": "y"}])
        length = int(headers.get("Inference-Header-Content-Length", len(data)))
        for _ in range(2000):
            given = mutated(rng, data)
            cut = length + len(given) - len(data) if binary and rng.integers(0, 2) else length if binary else None
            try:
                found = read_request(given, cut, specs, OUTPUTS)
            except Refused:
                continue
            read += 1
            assert found.arrays["x"].nbytes <= 8 * len(given)
            assert found.arrays["x"].dtype == np.float32
            assert found.arrays["t"].size <= len(given)
    assert 50 < read < 3000
