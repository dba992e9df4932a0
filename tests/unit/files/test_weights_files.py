"""Files of weights in the formats of others: read exactly, written so that others read them, and hostile ones refused."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import assert_read_or_refused, scrambled

import singe as sg
from singe import nn
from singe.dtypes import own, widened
from singe.weights.safetensors import CODES, safetensors_pieces

RNG = np.random.default_rng(0)


def every_dtype() -> dict[str, np.ndarray]:
    """An array of each dtype that safetensors have, one without elements, and one without axes."""
    bits = {kind: RNG.integers(0, 200, (3, 5, kind.size), np.uint8) for kind in CODES.values()}
    arrays = {k.name: (b & 1 if k.name == "bool" else b).view(k.numpy)[..., 0] for k, b in bits.items()}
    return arrays | {"none": np.zeros((0, 3), np.float32), "number": np.array(7.0, np.float32)}


def same_bits(found: np.ndarray, wanted: np.ndarray) -> None:
    assert (sg.dtype(found.dtype), found.shape) == (sg.dtype(wanted.dtype), wanted.shape)
    assert found.tobytes() == wanted.tobytes()


def safetensors(head: Any, block: bytes = bytes(16)) -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + block


def entry(shape: Any = (2, 2), code: Any = "F32", offsets: Any = (0, 16)) -> dict[str, Any]:
    return {"dtype": code, "shape": list(shape), "data_offsets": list(offsets)}


def npz(arrays: Mapping[str, Any], compressed: bool = False) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def archive(entries: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as held:
        for name, data in entries.items():
            held.writestr(name, data)
    return file.getvalue()


# --- what is written is read ------------------------------------------------------------------------------------------


def test_safetensors_of_every_dtype_come_back() -> None:
    arrays = every_dtype()
    found = sg.read_weights(b"".join(map(bytes, safetensors_pieces(arrays))))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        same_bits(found[name], array)
        assert found.stored[name].stored == sg.dtype(array.dtype).name
    assert found.metadata == {"format": "pt"}


def test_the_safetensors_package_reads_what_is_written_and_the_reverse(tmp_path: Path) -> None:
    other = pytest.importorskip("safetensors.numpy")
    net = nn.Sequential(nn.Conv2d(3, 4, 3, rng=0), nn.BatchNorm2d(4))
    sg.save(net, tmp_path / "w.safetensors")
    read = other.load_file(tmp_path / "w.safetensors")
    assert read.keys() == net.state_dict().keys()
    for name, t in net.state_dict().items():
        np.testing.assert_array_equal(read[name], t.numpy())
    arrays = {k: a for k, a in every_dtype().items() if not sg.dtype(a.dtype).held and a.dtype != np.complex64}
    found = sg.read_weights(other.save(arrays, {"by": "the package"}))
    assert found.metadata == {"by": "the package"}
    for name, array in arrays.items():
        same_bits(found[name], array)


def test_arrays_of_a_mapped_file_are_views(tmp_path: Path) -> None:
    layer = nn.Linear(3, 2, rng=0)
    sg.save(layer, tmp_path / "w.safetensors")
    found = sg.read_weights(tmp_path / "w.safetensors")["weight"]
    assert found.base is not None
    assert not found.flags.writeable
    assert found.flags.aligned
    loaded = sg.load_weights(nn.Linear(3, 2), tmp_path / "w.safetensors")
    # The file may be replaced while it is mapped.
    sg.save(loaded.map(lambda t: t * 2), tmp_path / "w.safetensors")
    np.testing.assert_array_equal(loaded.weight.numpy(), layer.weight.numpy())
    np.testing.assert_array_equal(sg.read_weights(tmp_path / "w.safetensors")["weight"], 2 * layer.weight.numpy())


def test_float16_halves_a_file(tmp_path: Path) -> None:
    layer = nn.Linear(64, 64, rng=0)
    sg.save(layer, tmp_path / "w.safetensors", dtype="float16")
    found = sg.read_weights(tmp_path / "w.safetensors")
    assert found["weight"].dtype == np.float16
    loaded = sg.load_weights(nn.Linear(64, 64), tmp_path / "w.safetensors")
    np.testing.assert_array_equal(loaded.weight.numpy(), layer.weight.numpy().astype(np.float16).astype(np.float32))


def test_shards_are_written_and_read(tmp_path: Path) -> None:
    net = nn.Sequential(*(nn.Linear(8, 8, rng=k) for k in range(5)))
    sg.save(net, tmp_path / "m.safetensors", shard_bytes=600)
    assert len(list(tmp_path.glob("m-*-of-00003.safetensors"))) == 3
    index = tmp_path / "m.safetensors.index.json"
    loaded = sg.load_weights(nn.Sequential(*(nn.Linear(8, 8) for _ in range(5))), index)
    for name, t in loaded.state_dict().items():
        np.testing.assert_array_equal(t.numpy(), net.state_dict()[name].numpy())
    with pytest.raises(sg.InputError, match="give its path"):
        sg.read_weights(index.read_bytes())
    places = json.loads(index.read_text())
    for hostile, words in (("../m.safetensors", "not a path inside"), ("/etc/passwd", "not a path inside"), ("", "not a path"),
                           (".", "not a path inside"), ("a\0b", "not a path inside"), ("\udc80", "not a path inside"),
                           ("other", "cannot read"), ("m.safetensors.index.json", "an index of weights in other files")):  # fmt: skip
        index.write_text(json.dumps({"weight_map": places["weight_map"] | {"x": hostile}}))
        with pytest.raises(sg.SingeError, match=words):
            sg.read_weights(index)
    index.write_text(json.dumps({"weight_map": {"x": "m-00001-of-00003.safetensors"}}))
    with pytest.raises(sg.FormatError, match="'x' is not in"):
        sg.read_weights(index)
    link = tmp_path / "inner" / "m.index.json"
    link.parent.mkdir()
    (link.parent / "out.safetensors").symlink_to(tmp_path / "m-00001-of-00003.safetensors")
    link.write_text(json.dumps({"weight_map": {"x": "out.safetensors"}}))
    with pytest.raises(sg.FormatError, match="leads out of the folder"):
        sg.read_weights(link)
    (link.parent / "loop.safetensors").symlink_to("loop.safetensors")
    link.write_text(json.dumps({"weight_map": {"x": "loop.safetensors"}}))
    with pytest.raises(sg.FormatError, match=r"'loop\.safetensors' cannot be read"):
        sg.read_weights(link)


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_archives_come_back(compressed: bool) -> None:
    kinds = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "bfloat16")
    arrays = {k: RNG.integers(0, 2, (3, 4)).astype(np.uint8).astype("float32") for k in kinds}
    arrays = {k: own(sg.tensor(a).cast(k).numpy()) for k, a in arrays.items()}
    arrays |= {
        "turned": np.asfortranarray(RNG.standard_normal((3, 4, 5))), "big": np.arange(5, dtype=">i4"), "number": np.array(3),
        "none": np.zeros((2, 0)),
    }  # fmt: skip
    found = sg.read_weights(npz(arrays, compressed))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found.stored[name].shape == array.shape
        np.testing.assert_array_equal(own(found[name]), array)
        assert found[name].dtype.isnative


def test_an_archive_that_lost_a_type_says_what_to_write() -> None:
    halves = sg.ones((2,), sg.bfloat16).numpy()
    with pytest.raises(sg.FormatError, match=r"elements of 2 bytes of no type: .* write such arrays as \.safetensors"):
        sg.read_weights(npz({"w": halves}))


# --- loading a part ---------------------------------------------------------------------------------------------------


def test_names_are_changed_by_patterns() -> None:
    arrays = {"model.layers.0.w": np.ones((2, 3), np.float32), "model.layers.0.b": np.zeros(2, np.float32)}
    rules = {r"^model\.": "", r"layers\.(\d+)\.": r"\1.", r"\.w$": ".weight", r"\.b$": ".bias"}
    net = sg.load_weights(nn.Sequential(nn.Linear(3, 2)), npz(arrays), rename=rules)
    np.testing.assert_array_equal(net.state_dict()["0.weight"].numpy(), arrays["model.layers.0.w"])
    with pytest.raises(sg.InputError, match=r"'model.layers.0.b' and 'model.layers.0.w' both become 'x'"):
        sg.load_weights(net, npz(arrays), rename={".*\\w$": "x"})
    with pytest.raises(sg.InputError, match="not a regular expression"):
        sg.load_weights(net, npz(arrays), rename={"(": "x"})


def test_a_report_says_what_was_loaded_and_what_was_not() -> None:
    arrays = {"weight": np.ones((2, 3), np.float32), "bias": np.zeros(5, np.float32), "other": np.ones(1, np.float32)}
    told: list[sg.WeightsReport] = []
    layer = nn.Linear(3, 2)
    loaded = sg.load_weights(layer, npz(arrays), strict=False, report=told.append)
    for net in (loaded, sg.load_weights(layer, npz(arrays), strict=False)):
        np.testing.assert_array_equal(net.weight.numpy(), arrays["weight"])
        assert net.bias is layer.bias, "a report changes nothing of what is loaded"
    assert told == [sg.WeightsReport(("weight",), (), ("other",), {"bias": ((5,), (2,))})]
    assert str(told[0]) == "loaded: 1 of 2\nleft over: 1\n  other\nof another shape: 1\n  bias is (5,), expected (2,)"
    with pytest.raises(sg.InputError, match="unknown: other"):
        sg.load_weights(layer, npz(arrays), report=told.append)
    assert len(told) == 2


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64", "int8", "float8_e4m3fn"])
def test_values_are_converted_to_the_module_s_dtypes(kind: str) -> None:
    values = sg.tensor(np.array([[1, -2, 3]], np.float32)).cast(kind).numpy()
    loaded = nn.Linear(3, 1, bias=False).with_state({"weight": values})
    assert loaded.weight.dtype is sg.float32
    np.testing.assert_array_equal(loaded.weight.numpy(), np.asarray(widened(values), np.float32))


# --- hostile files ----------------------------------------------------------------------------------------------------

HEAD = {"a": entry(), "__metadata__": {"k": "v"}}
NPY = npz({"a": np.ones((2, 2), np.float32)})
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a header beyond the file": (lambda: struct.pack("<Q", 1 << 40) + b'{"a": 1}', "not a file of weights"),
    "no JSON": (lambda: safetensors(b"{{{{{{{{"), "not JSON"),
    "JSON without end": (lambda: safetensors(b'{"a":' * 100_000), "not JSON"),
    "a key twice": (lambda: safetensors(b'{"a": 1, "a": 1}'), "a key comes twice"),
    "an entry that is none": (lambda: safetensors({"a": 1}), "not described by"),
    "an entry with more": (lambda: safetensors({"a": entry() | {"x": 1}}), "not described by"),
    "metadata that are numbers": (lambda: safetensors({"a": entry(), "__metadata__": {"x": 1}}), "not a dict of strings"),
    "a dtype of no name": (lambda: safetensors({"a": entry(code="F4")}), "dtype 'F4'"),
    "a dtype that is a list": (lambda: safetensors({"a": entry(code=[])}), "has the dtype"),
    "a negative size": (lambda: safetensors({"a": entry((-2, -2))}), "expected counts"),
    "a huge size": (lambda: safetensors({"a": entry((1 << 40, 1 << 40))}), "expected counts"),
    "a huge size beside none": (lambda: safetensors({"a": entry((1 << 40, 0), offsets=(0, 0))}, b""), "expected counts"),
    "many axes": (lambda: safetensors({"a": entry((1,) * 99)}), "99 axes"),
    "a size that is a truth value": (lambda: safetensors({"a": entry((True, 4))}), "expected numbers"),
    "three offsets": (lambda: safetensors({"a": entry(offsets=(0, 8, 16))}), "expected numbers"),
    "negative offsets": (lambda: safetensors({"a": entry(offsets=(-16, 0))}), "needs 16"),
    "other bytes than its shape": (lambda: safetensors({"a": entry((2, 3))}), "needs 24"),
    "a gap": (lambda: safetensors({"a": entry(offsets=(4, 20))}, bytes(20)), "begins at byte 4"),
    "an overlap": (lambda: safetensors({"a": entry(), "b": entry(offsets=(8, 24))}, bytes(24)), "begins at byte 8"),
    "bytes left over": (lambda: safetensors({"a": entry()}, bytes(20)), "of which there are 20"),
    "too few bytes": (lambda: safetensors({"a": entry()}, bytes(12)), "of which there are 12"),
    "an npz with objects": (lambda: npz({"a": np.array([{}], object)}), "object arrays are pickles"),
    "an npz with strings": (lambda: npz({"a": np.array(["x"])}), "expected numbers"),
    "an npz with dates": (lambda: npz({"a": np.array(["2020-01-01"], "datetime64[D]")}), "not supported"),
    "an npy of another size": (lambda: archive({"a.npy": _member(NPY)[:-4]}), "its header needs"),
    "an npy of a huge size": (lambda: archive({"a.npy": _member(NPY).replace(b"(2, 2)", b"(2**63,2)"[:6])}), "not NumPy's format"),
    "an npy that is none": (lambda: archive({"a.npy": b"x" * 99}), "not NumPy's format"),
    "an npy of a later version": (lambda: archive({"a.npy": _member(NPY).replace(b"NUMPY\1", b"NUMPY\3", 1)}), "not NumPy's format"),
    "an archive that expands": (
        lambda: archive({"a.npy": _member(npz({"a": np.zeros(1 << 20)}))}, zipfile.ZIP_BZIP2), "compressed or encrypted"
    ),
    "JSON of no index": (lambda: b'{"a": 1}', "without a weight_map"),
    "an index of numbers": (lambda: b'{"weight_map": {"a": 1}}', "without a weight_map"),
    "half of an index": (lambda: b'{"weight_map": ', "not JSON"),
    "nothing": (lambda: b"", "not a file of weights"),
}  # fmt: skip


def _member(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as held:
        return held.read(held.namelist()[0])


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_files_are_refused(name: str) -> None:
    make, words = REFUSED[name]
    with pytest.raises((sg.FormatError, sg.InputError)) as caught:
        sg.read_weights(make())
    assert words in str(caught.value)
    assert len(str(caught.value)) < 600


def test_tensors_beyond_4_gb_of_a_file(tmp_path: Path) -> None:
    """The file has a hole of 5 GiB, which takes no room on the disk."""
    far, last = 5 << 30, np.array([1, 2, 3], np.float32)
    head = {"a": entry((far // 8,), "F64", (0, far)), "b": entry((3,), "F32", (far, far + 12))}
    text = json.dumps(head).encode()
    start = safetensors(text + b" " * (-len(text) % 8), b"")
    with (tmp_path / "w.safetensors").open("wb") as file:
        file.write(start)
        file.seek(len(start) + far)
        file.write(last.tobytes())
    found = sg.read_weights(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(found["b"], last)
    assert (found["a"].shape, found["a"][-1]) == ((far // 8,), 0)


def mutated_safetensors(rng: random.Random) -> bytes:
    """A file with one value of its header replaced, or with a few bytes changed, or cut."""
    numbers = (-1, 0, 1, 3, 1 << 31, 1 << 62, 10**30, 0.5)
    values = (None, True, *numbers, "", "F32", "I64", "BOOL", [], [2, 2], [0, 16], [16, 0], {})
    head = {"a": entry(), "b": entry((3,), "I16", (16, 22)), "__metadata__": {"k": "v"}}
    if rng.random() < 0.7:
        place: Any = rng.choice([head, *head.values()])
        place[rng.choice([*place, "x"])] = rng.choice(values)
        return safetensors(head, bytes(22))
    return scrambled(safetensors(head, bytes(22)), rng)


def mutated_npz(rng: random.Random) -> bytes:
    """An archive with a header of an array changed, and right checksums; or with a few bytes changed."""
    data = npz({"a": np.ones((2, 3), np.float32), "b": np.arange(5)}, rng.random() < 0.5)
    if rng.random() < 0.3:
        return scrambled(data, rng)
    return archive({"a.npy": scrambled(_member(data), rng)}, rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))


@pytest.mark.parametrize("mutate", [mutated_safetensors, mutated_npz])
@pytest.mark.filterwarnings("ignore:Reading .npy:UserWarning")
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@pytest.mark.parametrize("count", [400, pytest.param(5000, marks=pytest.mark.slow)])
def test_mutations_are_read_or_refused(mutate: Callable[[random.Random], bytes], count: int) -> None:
    rng = random.Random(count)
    assert_read_or_refused((mutate(rng) for _ in range(count)), 10_000)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid",
            "a pointer of Git LFS .*; fetch the file itself: git lfs pull",
        ),
        (b"<!DOCTYPE html><html></html>", "a page of HTML; download the file itself"),
    ],
)
def test_files_of_other_programs_say_what_to_do(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(data)
    for read in (sg.read_weights, sg.load):
        for given in (path, data):
            with pytest.raises(sg.FormatError, match=message):
                read(given)


def test_a_tensorflow_lite_model_holds_no_weights_by_name() -> None:
    with pytest.raises(sg.FormatError, match=r"a TensorFlow Lite model; singe.load\(path\) reads it"):
        sg.read_weights(b"\x1c\0\0\0TFL3" + bytes(100))
