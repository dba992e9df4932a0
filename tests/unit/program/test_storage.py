"""Weights stored in fewer bytes: they decode to the right values, and nothing is stored with too large an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from singe.compiler.compile import compile_with_uses
from singe.compiler.target import find_target
from singe.dtypes import bool_, float32, int64
from singe.errors import FormatError
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.ops import ROWS
from singe.program.weight_codecs import STORED, StoredPart, decode, read_piece
from singe.program.words import COPY
from singe.shapes import size
from singe.tools.export.bundle import Bundle, draft
from singe.tools.export.stored import weights
from singe.tools.export.stored.storage import PRECISION, digest, encode, output_channels
from singe.tools.export.stored.weights import pieces
from singe.tools.export.targets import page_targets

CONV = {"strides": (1, 1), "dilations": (1, 1), "before": (1, 1), "after": (1, 1)}


def network(seed: int = 0, outputs: int = 17, channels: int = 5) -> Graph:
    """Convolutions (plain, grouped, depthwise), products with either side constant, biases, a table; odd sizes."""
    b = Builder()
    rng = np.random.default_rng(seed)

    def const(*shape: int) -> Any:
        return b.const(rng.normal(size=shape).astype(np.float32))

    x, i = b.input("x", (size("N"), channels, 7, 6), float32), b.input("i", (size("N"), 1), int64)
    y = b.relu(b.conv(x, const(outputs, channels, 3, 3), const(outputs), group=1, **CONV))
    y = b.relu(b.conv(y, const(outputs, 1, 3, 3), group=outputs, **CONV))
    y = b.conv(y, const(3 * outputs, 1, 5, 5), group=outputs, **{**CONV, "before": (2, 2), "after": (2, 2)})
    y = b.conv(y, const(9, 3 * outputs, 1, 1), group=1, **{**CONV, "before": (0, 0), "after": (0, 0)})
    y = b.matmul(b.reshape(y, shape=(size("N"), 9, 42)), const(42, 13))
    y = b.matmul(const(21, 9), y)
    y = b.add(y, const(13))
    return Graph((x, i), (y, b.add(i, b.const(np.array([3, -4, 5], np.int64)))), ("y", "j"))


def compiled(graph: Graph, target: str) -> tuple[Any, Any]:
    """A Program, and the output channels of its weights."""
    program, uses = compile_with_uses(graph, find_target(page_targets()[target]))
    return program, output_channels(program, uses)


def blocks(bundle: Bundle) -> Iterator[tuple[str, np.ndarray]]:
    """The weights of each target, decoded from its files."""
    manifest = json.loads(bundle.files["model.json"])
    for name, target in manifest["targets"].items():
        found = [(w, bundle.files[w["file"]]) for w in target["weights"]]
        yield name, np.concatenate([read_piece(w, x) if "parts" in w else np.frombuffer(x, np.uint8) for w, x in found])


# --- output channels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", page_targets())
def test_channels_are_those_of_the_op(target: str) -> None:
    """All contractions have channels, biases have none; with one number put into each channel, all are found again."""
    b = Builder()
    x = b.input("x", (1, 4, 5, 5), float32)
    w = np.repeat(np.arange(1, 18, dtype=np.float32), 36).reshape(17, 4, 3, 3)
    graph = Graph((x,), (b.conv(x, b.const(w), b.const(np.arange(17, dtype=np.float32)), group=1, **CONV),), ("y",))
    program, channels = compiled(graph, target)
    found = [(program.view(u).view(np.float32), u) for u in program.buffers if u.place[0] == "weights"]
    numbers = {u.shape: channels[digest(values)] for values, u in found}
    (of_weights,) = [n for n in numbers.values() if n is not None]
    (values,) = [v for v, _ in found if v.size == of_weights.size]
    assert np.array_equal(of_weights, values.astype(np.int32)), "each packed element has its channel's number"


@pytest.mark.parametrize("target", page_targets())
def test_every_contraction_becomes_int8(target: str) -> None:
    program, channels = compiled(network(), target)
    parts, kept = encode(program, "int8", channels)
    counts = {e: sum(p.encoding == e for p in parts) for e in ("int8", "float16", "words")}
    assert not kept
    assert counts["int8"] >= 4
    assert counts["words"] == 1, "the int64s"
    assert sum(p.bytes for p in parts if p.encoding != "words") < program.weights.size / 2


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("target", page_targets())
def test_weights_that_are_outputs_too_do_not_become_int8(target: str, nested: bool) -> None:
    """Those of the model, or of a branch."""
    b = Builder()
    x, flag, inner = b.input("x", (64, 64), float32), b.input("flag", (), bool_), b.input("inner", (64, 64), float32)
    w = b.const(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32))
    z = w
    if nested:
        z = b.apply(ROWS["if"], flag, x, then=b.graph((inner,), (w,)), otherwise=b.graph((inner,), (inner,)))
    program, channels = compiled(Graph((x, flag), (b.matmul(x, w), z), ("y", "z")), target)
    places = [program.buffers[g.reads[0]].place for g in program.groups if g.head == COPY]
    copied = [at for kind, at in places if kind == "weights"]
    assert copied
    parts = {p.at: p for p in encode(program, "int8", channels)[0]}
    assert {parts[at].encoding for at in copied} == {"float16"}


@pytest.mark.parametrize("target", page_targets())
def test_one_array_with_channels_of_two_kinds_has_none(target: str) -> None:
    """Equal bytes are one weight of a Program: a square matrix whose rows are channels here and columns there."""
    b = Builder()
    x, y = b.input("x", (20, 20), float32), b.input("y", (20, 20), float32)
    w = b.const(np.random.default_rng(1).normal(size=(20, 20)).astype(np.float32))
    _, channels = compiled(Graph((x, y), (b.matmul(x, w), b.matmul(w, y)), ("right", "left")), target)
    assert w.value is not None
    assert channels[digest(w.value)] is None


# --- encodings -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("target", page_targets())
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("seed", range(3))
def test_files_decode_to_the_weights(monkeypatch: pytest.MonkeyPatch, target: str, dtype: str, seed: int) -> None:
    graph = network(seed, outputs=9 + 4 * seed, channels=3 + seed)
    program, channels = compiled(graph, target)
    expected = decode(encode(program, dtype, channels)[0], program.weights.size)
    if dtype == "float32":
        assert np.array_equal(expected, program.weights)
        return
    for limit in (4_000_000 // 256 * 256, 1024, 100):
        monkeypatch.setattr(weights, "PIECE", limit)
        bundle = draft(Model(graph, "numpy"), [target], dtype=dtype).alone()
        ((_, block),) = blocks(bundle)
        assert np.array_equal(block, expected)
        entries = bundle.manifest["targets"][target]["weights"]
        assert all(w["bytes"] <= limit and w["decoded"] % 4 == 0 for w in entries)
        assert sum(w["decoded"] for w in entries) == program.weights.size


@pytest.mark.parametrize("target", page_targets())
def test_int8_is_off_by_half_a_step_of_its_channel_at_most(target: str) -> None:
    program, channels = compiled(network(), target)
    for part in encode(program, "int8", channels)[0]:
        if part.encoding != "int8":
            continue
        exact = program.weights[part.at : part.end].view(np.float32).reshape(part.values.shape)
        assert part.scales is not None
        assert (np.abs(part.decoded() - exact) <= part.scales * 0.5001).all()
        assert np.abs(part.values).max() == 127


def test_the_stored_order_is_the_same_on_every_target() -> None:
    """An element has one scale, however it is packed: the decoded Programs compute the same."""
    found = []
    for target in page_targets():
        program, channels = compiled(network(), target)
        parts, _ = encode(program, "int8", channels)
        found.append(np.unique(np.concatenate([p.decoded().reshape(-1) for p in parts if p.encoding == "int8"])))
    assert np.array_equal(np.union1d(found[0], [0]), np.union1d(found[1], [0])), "packing adds zeros, and nothing else"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_one_model_is_one_bundle(dtype: str) -> None:
    first, second = (draft(Model(network(), "numpy"), dtype=dtype).alone().files for _ in range(2))
    assert first == second


# --- what float16 cannot hold ----------------------------------------------------------------------------------------


def table(values: Any) -> Graph:
    b = Builder()
    values = np.asarray(values, np.float32)
    x = b.input("x", values.shape, float32)
    return Graph((x,), (b.add(x, b.const(values)),), ("y",))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1, 70000.0], "holds 7e+04, beyond float16"),
        ([1, -1e30], "holds 1e+30, beyond float16"),
        ([1, 1e-6], "holds 1e-06, too small for float16"),
        ([1, 1e-12], "holds 1e-12, too small for float16"),
        ([[1, 1], [1e-6, 1e-7]], "too small for float16"),
    ],
)
def test_what_float16_cannot_hold_stays(values: Any, why: str) -> None:
    bundle = draft(Model(table(values), "numpy"), dtype="float16").alone()
    assert [why in k.why for k in bundle.kept] == [True]
    for _, block in blocks(bundle):
        assert np.array_equal(block[: 4 * np.size(values)].view(np.float32), np.ravel(values).astype(np.float32))


@pytest.mark.parametrize(
    "values", [[1, 65504, -65504, 6.1e-5], [0, -0.0, np.inf, -np.inf, 2], [np.nan, 1], [[1, 1e-9], [2, 0]]]
)
def test_what_float16_holds_is_stored_as_it(values: Any) -> None:
    bundle = draft(Model(table(values), "numpy"), dtype="float16").alone()
    assert not bundle.kept
    exact = np.ravel(values).astype(np.float32)
    for _, block in blocks(bundle):
        found = block[: 4 * exact.size].view(np.float32)
        assert np.array_equal(np.isnan(found), np.isnan(exact))
        assert np.allclose(found, exact, rtol=PRECISION, atol=PRECISION, equal_nan=True)


@pytest.mark.parametrize("scale", [1e-9, 1e-30, 1e9, 1e30])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_weights_of_any_size_keep_their_precision(scale: float, dtype: str) -> None:
    """One channel of a contraction is far smaller, or larger, than float16 has numbers: it gets a scale."""
    b = Builder()
    x = b.input("x", (2, 40), float32)
    w = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
    w[:, 2] *= np.float32(scale)
    bundle = draft(Model(Graph((x,), (b.matmul(x, b.const(w)),), ("y",)), "numpy"), ["webgpu"], dtype=dtype).alone()
    assert not bundle.kept
    ((_, block),) = blocks(bundle)
    found = block[: w.nbytes].view(np.float32).reshape(w.shape)
    limit = {"float16": PRECISION, "int8": 0.51 / 127}[dtype] * np.abs(w).max(0)
    assert (np.abs(found - w) <= limit).all()


# --- pieces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [16, 40, 100, 1 << 20])
@pytest.mark.parametrize("shape", [(3, 1, 5, 2), (1, 1, 7), (1,), (50,), (4, 4, 4, 4)])
def test_large_parts_are_cut_at_rows(shape: tuple[int, ...], limit: int) -> None:
    rng = np.random.default_rng(0)
    for scaled in (None, shape, (*[1] * (len(shape) - 1), shape[-1]), (shape[0], *[1] * (len(shape) - 1))):
        scales = None if scaled is None else rng.normal(size=scaled).astype(np.float32)
        part = StoredPart("int8", 0, rng.integers(-127, 128, shape).astype(np.int8), scales)
        files = [[row[0] for row in file] for file in pieces([(part,)], limit)]
        assert np.array_equal(
            decode([p for f in files for p in f], 4 * part.values.size), decode([part], 4 * part.values.size)
        )
        assert all(sum(p.bytes for p in f) <= limit or (len(f) == 1 and f[0].values.size == 1) for f in files)


def test_a_file_of_other_length_is_refused() -> None:
    part = StoredPart("float16", 0, np.ones(4, np.float16))
    entry = {"file": "w", "decoded": 16, "parts": [part.facts(0)]}
    assert read_piece(entry, part.stored()).view(np.float32).tolist() == [1, 1, 1, 1]
    with pytest.raises(FormatError, match="its parts are 8 bytes, the file has 9"):
        read_piece(entry, part.stored() + b"x")


def test_a_file_that_decodes_to_more_than_its_bytes_and_parts_allow_is_refused() -> None:
    part = StoredPart("bytes", 0, np.ones(64, np.int8))
    entry = {"file": "w", "decoded": 16 * 64 + 256, "parts": [part.facts(0)]}
    assert read_piece(entry, part.stored()).size == 16 * 64 + 256
    entry["decoded"] = 16 * 64 + 260
    with pytest.raises(FormatError, match="64 bytes cannot become 1284"):
        read_piece(entry, part.stored())


@pytest.mark.parametrize("zero", [256, -256, 10**12, 1.5, True, "1", None])
@pytest.mark.parametrize("encoding", ["int8", "integers"])
def test_a_zero_that_is_no_small_integer_is_refused(encoding: str, zero: Any) -> None:
    part = StoredPart(encoding, 0, np.ones(4, np.int8))
    kind = np.float32 if encoding == "int8" else np.int32
    entry: dict[str, Any] = {"file": "w", "decoded": 16, "parts": [{**part.facts(0), "zero": -255}]}
    assert read_piece(entry, part.stored()).view(kind).tolist() == [-254] * 4
    entry["parts"][0]["zero"] = zero
    with pytest.raises(FormatError, match=r"has the zero .* expected an integer from -255 to 255"):
        read_piece(entry, part.stored())


@pytest.mark.parametrize("encoding", ["words", "float16", "bytes"])
def test_a_zero_of_a_part_that_is_no_integers_is_refused(encoding: str) -> None:
    part = StoredPart(encoding, 0, np.zeros(4, STORED[encoding]))
    entry = {"file": "w", "decoded": 16, "parts": [{**part.facts(0), "zero": 1}]}
    with pytest.raises(FormatError, match=f"a part of {encoding} has the zero 1"):
        read_piece(entry, part.stored())
