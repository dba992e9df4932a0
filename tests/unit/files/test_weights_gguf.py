"""GGUF files: metadata and tensors as others write them, blocks dequantised to the bit, hostile files refused."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from damage import assert_read_or_refused

import singe as sg
from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
from singe.tensors.tracing import trace_call
from singe.weights.gguf.blocks import BlockFormat
from singe.weights.gguf.codebooks import LEVELS, codebook
from singe.weights.gguf.packed import PARTS
from singe.weights.gguf.reader import FORMATS, PLAIN


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def file_of(
    tensors: Mapping[str, tuple[tuple[int, ...], int, bytes]], metadata: Mapping[str, tuple[int, bytes]] | None = None,
    alignment: int = 32, version: int = 3,
) -> bytes:  # fmt: skip
    """A file of tensors (shape in PyTorch's order, type, bytes) and metadata (type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata or {}))
    for key, (kind, value) in (metadata or {}).items():
        head += text(key) + struct.pack("<I", kind) + value
    block = b""
    for name, (shape, code, data) in tensors.items():
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], code, len(block))
        block += data + bytes(-len(data) % alignment)
    return head + bytes(-len(head) % alignment) + block


def blocks(form: BlockFormat, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random blocks whose scales are finite."""
    raw = rng.integers(0, 256, (count, form.layout.itemsize), np.uint8)
    made = raw.view(form.layout)[:, 0].copy()
    for name in ("d", "m"):
        if name in (form.layout.names or ()):
            made[name] = rng.standard_normal(count)
    if "e" in (form.layout.names or ()):
        made["e"] = rng.integers(0, 250, count)
    if form.name == "IQ1_M":  # the upper bits of its scale's exponent
        made["s"][:, 3] &= 0xBFFF
    return made


@pytest.mark.parametrize("code", FORMATS)
def test_blocks_are_dequantised_as_their_authors_do(code: int) -> None:
    package = pytest.importorskip("gguf")
    form = FORMATS[code]
    made = blocks(form, 999, np.random.default_rng(code))
    kind = package.GGMLQuantizationType(code)
    assert package.GGML_QUANT_SIZES[kind] == (form.count, form.layout.itemsize)
    if form.name == "Q8_K":  # the package has no function for this and the next
        wanted = made["d"][:, None] * made["q"]
    elif form.name == "Q1_0":
        wanted = np.where(np.unpackbits(made["q"], axis=1, bitorder="little"), 1, -1) * made["d"][:, None].astype("f4")
    else:
        wanted = package.quants.dequantize(made.view(np.uint8).reshape(len(made), -1), kind)
    found = sg.read_weights(file_of({"x": ((999, form.count), code, made.tobytes())}))
    np.testing.assert_array_equal(found["x"], wanted)
    assert (found.stored["x"].stored, found["x"].dtype) == (form.name, np.float32)


def by_hand(form: str, b: np.void) -> list[float]:
    """The elements of one block, from the format's definition, one after the other."""
    d, q = float(b["d"]), [int(v) for v in b["q"]]
    halves = [v & 15 for v in q] + [v >> 4 for v in q]
    match form:
        case "Q4_0":
            return [d * (v - 8) for v in halves]
        case "Q4_1":
            return [d * v + float(b["m"]) for v in halves]
        case "Q5_0":
            return [d * ((v | (int(b["h"]) >> k & 1) << 4) - 16) for k, v in enumerate(halves)]
        case "Q8_0":
            return [d * v for v in q]
        case "Q1_0":
            return [d if q[k // 8] >> k % 8 & 1 else -d for k in range(128)]
        case "IQ2_XS":  # words of nine bits of a row, seven of signs; the eighth makes the number of ones even
            rows, found = codebook(form), []
            for k in range(256):
                word, at = q[k // 8], k % 8
                minus = (word >> 9 >> at if at < 7 else (word >> 9).bit_count()) & 1
                scale = d * (0.5 + (int(b["s"][k // 32]) >> k // 16 % 2 * 4 & 15)) / 4
                found.append(scale * float(rows[word & 511, at]) * (-1 if minus else 1))
            return found
        case _:  # Q6_K: two halves of 128, each from 64 bytes of low and 32 of high bits
            found = []
            for k in range(256):
                half, part, at = k // 128, k % 128 // 32, k % 32
                low = q[64 * half + 32 * (part % 2) + at] >> 4 * (part // 2) & 15
                high = int(b["h"][32 * half + at]) >> 2 * part & 3
                found.append(d * int(b["s"][k // 16]) * ((low | high << 4) - 32))
            return found


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q6_K", "Q1_0", "IQ2_XS"])
def test_blocks_follow_their_definition(name: str) -> None:
    code, form = next((c, f) for c, f in FORMATS.items() if f.name == name)
    made = blocks(form, 6, np.random.default_rng(1))
    found = sg.read_weights(file_of({"x": ((2, 3 * form.count), code, made.tobytes())}))["x"]
    np.testing.assert_allclose(found.reshape(6, -1), [by_hand(name, b) for b in made], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", LEVELS)
def test_rows_of_codebooks_differ_and_have_its_levels(name: str) -> None:
    rows = codebook(name)
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert {float(v) for v in np.unique(rows)} == set(LEVELS[name])


def test_tensors_of_plain_numbers_and_metadata(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {k.name: rng.integers(0, 100, (2, 3, 4)).astype(np.uint8) for k in PLAIN.values()}
    arrays = {k.name: sg.tensor(arrays[k.name]).cast(k).numpy() for k in PLAIN.values()}
    metadata = {
        "u8": (0, b"\x07", 7), "i64": (11, struct.pack("<q", -5), -5), "f32": (6, struct.pack("<f", 0.5), 0.5),
        "yes": (7, b"\1", True), "name": (8, text("Übung"), "Übung"),
        "numbers": (9, struct.pack("<IQ3i", 5, 3, 1, -2, 3), [1, -2, 3]),
        "words": (9, struct.pack("<IQ", 8, 2) + text("a") + text(b"\xff"), ["a", "\udcff"]),
        "nested": (9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ2B", 0, 2, 1, 2), [[1, 2]]),
        "general.alignment": (4, struct.pack("<I", 64), 64),
    }  # fmt: skip
    tensors = {k.name: (arrays[k.name].shape, code, arrays[k.name].tobytes()) for code, k in PLAIN.items()}
    tensors["one"] = ((), 0, np.float32(3).tobytes())
    path = tmp_path / "m.gguf"
    path.write_bytes(file_of(tensors, {k: v[:2] for k, v in metadata.items()}, 64))
    found = sg.read_weights(path)
    assert found.metadata == {k: v[2] for k, v in metadata.items()}
    assert (found.metadata["words"][-1], found.metadata["words"][:1]) == ("\udcff", ["a"])
    with pytest.raises(IndexError):
        found.metadata["words"][2]
    assert found["one"].shape == ()
    for name, array in arrays.items():
        assert sg.dtype(found[name].dtype).name == name
        np.testing.assert_array_equal(found[name], array)
        assert found[name].base is not None
    assert len(sg.read_weights(file_of({"x": ((1,), 0, bytes(4))}, version=2))) == 1


def test_files_of_the_package_are_read(tmp_path: Path) -> None:
    package = pytest.importorskip("gguf")
    writer = package.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_context_length(128)
    writer.add_array("tokens", ["a", "b"])
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    writer.add_tensor("x", x)
    kind = package.GGMLQuantizationType.Q5_1
    packed = package.quants.quantize(x, kind)
    writer.add_tensor("y", packed, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = sg.read_weights(tmp_path / "m.gguf")
    assert (found.metadata["llama.context_length"], found.metadata["tokens"]) == (128, ["a", "b"])
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_array_equal(found["y"], package.quants.dequantize(packed, kind))


ONE: dict[str, tuple[tuple[int, ...], int, bytes]] = {"x": ((2, 2), 0, bytes(16))}
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a version of no use": (lambda: file_of(ONE, version=1), "version 1"),
    "the other byte order": (lambda: b"GGUF" + struct.pack(">I", 3) + bytes(99), "version 50331648"),
    "a head alone": (lambda: b"GGUF", "4 bytes expected"),
    "more tensors than bytes": (lambda: b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "things of at least 24"),
    "more metadata than bytes": (lambda: b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "things of at least 13"),
    "a string beyond the file": (lambda: file_of(ONE, {"k": (8, struct.pack("<Q", 1 << 40))}), "things of at least 1 "),
    "an array beyond the file": (lambda: file_of(ONE, {"k": (9, struct.pack("<IQ", 12, 1 << 40))}), "things of at least 8"),
    "an array of strings beyond it": (lambda: file_of(ONE, {"k": (9, struct.pack("<IQ", 8, 1 << 30))}), "things of at least 8"),
    "an array of no type": (lambda: file_of(ONE, {"k": (9, struct.pack("<IQ", 99, 1))}), "an array of the type 99"),
    "arrays without end": (lambda: file_of(ONE, {"k": (9, struct.pack("<IQ", 9, 1) * 999)}), "in 4 arrays"),
    "metadata of no type": (lambda: file_of(ONE, {"k": (13, b"")}), "metadata of the type 13"),
    "a key twice": (
        lambda: file_of(ONE, {"k": (0, b"\1"), "l": (0, b"\1")}).replace(text("l"), text("k")), "the key 'k' comes twice"
    ),
    "a tensor twice": (
        lambda: file_of({**ONE, "y": ONE["x"]}).replace(text("y"), text("x")), "the tensor 'x' comes twice"
    ),
    "an alignment that is none": (lambda: file_of(ONE, {"general.alignment": (4, struct.pack("<I", 48))}), "a power of two"),
    "an alignment of text": (lambda: file_of(ONE, {"general.alignment": (8, text("32"))}), "a power of two"),
    "many axes": (lambda: file_of({"x": ((1,) * 5, 0, bytes(4))}), "5 axes"),
    "a huge tensor": (lambda: file_of({"x": ((1 << 62, 4), 0, bytes(16))}), "expected counts"),
    "a huge tensor of no elements": (lambda: file_of({"x": ((1 << 62, 0), 0, b"")}), "expected counts"),
    "a tensor beyond the file": (lambda: file_of({"x": ((2, 99), 0, bytes(16))}), "has 792 bytes"),
    "a type that is not read": (lambda: file_of({"x": ((256,), 9, bytes(320))}), "GGUF's type 9"),
    "a part of a block": (lambda: file_of({"x": ((2, 33), 2, bytes(36))}), "blocks of 32"),
    "a number in blocks": (lambda: file_of({"x": ((), 2, bytes(18))}), "blocks of 32"),
    "tensors that overlap": (
        lambda: file_of({k: ((8,), 0, bytes(32)) for k in "xy"}).replace(struct.pack("<IQ", 0, 32), struct.pack("<IQ", 0, 0))[:-32],
        "they overlap",
    ),
    "an offset between": (
        lambda: file_of({k: ((8,), 0, bytes(32)) for k in "xy"}).replace(struct.pack("<IQ", 0, 32), struct.pack("<IQ", 0, 4)),
        "a multiple of 32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_files_are_refused(name: str) -> None:
    make, words = REFUSED[name]
    with pytest.raises(sg.FormatError) as caught:
        sg.read_weights(make())
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("count", [1000, pytest.param(6000, marks=pytest.mark.slow)])
def test_mutations_are_read_or_refused(count: int) -> None:
    """Each number of the head replaced by others, and random bytes changed: a typed error, or arrays no larger than told."""
    rng = random.Random(count)
    form = FORMATS[12]
    made = blocks(form, 2, np.random.default_rng(0)).tobytes()
    metadata = {"a": (9, struct.pack("<IQ2i", 5, 2, 1, 2)), "n": (8, text("word")), "g": (6, struct.pack("<f", 1))}
    data = file_of({"x": ((2, 256), 12, made), "y": ((3,), 1, bytes(6))}, metadata)
    head = len(data) - 320

    def changed(k: int) -> bytes:
        made = bytearray(data)
        at = k % head if k < 900 else rng.randrange(len(data))
        if rng.random() < 0.5:
            made[at : at + 8] = struct.pack("<q", rng.choice([-1, 0, 1, 2, 9, 255, 1 << 31, 1 << 62]))
        else:
            made[at] ^= 1 << rng.randrange(8)
        return bytes(made)

    assert_read_or_refused(map(changed, range(count)), 10_000)


@pytest.mark.parametrize("name", PARTS)
def test_linear_layers_keep_the_files_blocks(name: str) -> None:
    """With `packed`, products have the values of the dequantised weights, and the weights take a quarter or an eighth."""
    code, form = next((code, form) for code, form in FORMATS.items() if form.name == name)
    rng = np.random.default_rng(code)
    inputs, outputs = 512, 40
    made = blocks(form, outputs * inputs // form.count, rng)
    if "m" in (form.layout.names or ()):
        made["d"][: len(made) // 3] = 0  # blocks of one value
    bias = rng.normal(size=outputs).astype(np.float32)
    tensors = {"up.weight": ((outputs, inputs), code, made.tobytes()), "up.bias": ((outputs,), 0, bias.tobytes())}
    data = file_of(tensors)
    module = sg.nn.Sequential({"up": sg.nn.Linear(inputs, outputs), "act": sg.nn.ReLU()})
    plain, packed = sg.load_weights(module, data), sg.load_weights(module, data, packed=True)
    x = rng.normal(size=(2, 3, inputs)).astype(np.float32)
    wanted = plain(sg.tensor(x)).numpy()
    found = packed(sg.tensor(x)).numpy()
    assert isinstance(dict(packed.named_modules())["up"], sg.nn.PackedLinear)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max())
    assert packed.half()(sg.tensor(x)).shape == wanted.shape
    sizes = [sum(t.numpy().nbytes for t in m.state_dict().values()) for m in (plain, packed)]
    assert sizes[1] < sizes[0] * (0.42 if PARTS[name][0] == 8 else 0.3)


@pytest.mark.parametrize("bias", [False, True])
def test_packed_layers_compile_to_packed_products(bias: bool) -> None:
    form = FORMATS[2]
    made = blocks(form, 64 * 128 // form.count, np.random.default_rng(0))
    tensors: dict[str, tuple[tuple[int, ...], int, bytes]] = {"weight": ((64, 128), 2, made.tobytes())}
    if bias:
        tensors["bias"] = ((64,), 0, np.ones(64, np.float32).tobytes())
    layer = sg.load_weights(sg.nn.Linear(128, 64, bias=bias), file_of(tensors), packed=True)
    assert [k for k, _ in layer.named_parameters()] == ["bias"] * bias
    graph = trace_call(layer, [np.zeros((1, 128), np.float32)])
    program = compile_graph(graph, find_target("wgsl"))
    assert [k.kind for k in program.kernels] == ["matmul_blocks"]
    assert program.weights.size == 64 * 128 // 2 + 4 * 64 * 128 // 32 + 256 * bias
