"""HDF5 files, as h5py and so Keras write them: read exactly in each layout, and hostile ones refused."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import assert_read_or_refused

import singe as sg
from singe import nn

h5py = pytest.importorskip("h5py")
RNG = np.random.default_rng(0)
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f4", ">i2", ">u8", "?")
ARRAYS = {name: (RNG.standard_normal((5, 7)) * 50).astype(name) for name in DTYPES}
MATRIX = RNG.standard_normal((30, 17)).astype(np.float32)


def file_of(write: Callable[[Any], object], **options: Any) -> bytes:
    made = io.BytesIO()
    with h5py.File(made, "w", **options) as file:
        write(file)
    return made.getvalue()


def keras(data: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive as Keras 3 writes it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as held:
        held.writestr("metadata.json", "{}")
        held.writestr("config.json", "{}")
        held.writestr("model.weights.h5", data)
    return made.getvalue()


def test_every_dtype() -> None:
    def write(file: Any) -> None:
        for name, array in ARRAYS.items():
            file.create_dataset(f"d/{name}", data=array)
        file["number"] = np.float32(3)
        file["none"] = np.zeros((0, 3), np.float32)
        file["bfloat16"] = np.array([0x3F80, 0xC000], np.uint16).view("V2")
        file["bfloat16"].attrs["dtype"] = "bfloat16"
        file.create_group("empty")

    found = sg.read_weights(file_of(write))
    assert len(found) == len(ARRAYS) + 3
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[f"d/{name}"], array)
        assert found[f"d/{name}"].dtype == array.dtype.newbyteorder("=")
        assert not found[f"d/{name}"].flags.writeable
    assert (found["number"].shape, found["number"], found["none"].shape) == ((), 3, (0, 3))
    assert sg.tensor(found["bfloat16"]).tolist() == [1, -2]


def in_header(file: Any) -> None:
    """In HDF5's compact layout."""
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(MATRIX.shape)
    made = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_FLOAT, space, layout)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, MATRIX)


STORED: dict[str, Callable[[Any], object]] = {
    "one piece": lambda f: f.create_dataset("x", data=MATRIX),
    "the header": in_header,
    "chunks": lambda f: f.create_dataset("x", data=MATRIX, chunks=(8, 5)),
    "one chunk": lambda f: f.create_dataset("x", data=MATRIX, chunks=MATRIX.shape, compression="gzip"),
    "many chunks": lambda f: f.create_dataset("x", data=MATRIX, chunks=(1, 2)),
    "chunks beyond the array": lambda f: f.create_dataset("x", data=MATRIX, chunks=(64, 64), maxshape=(None, None)),
    "compressed chunks": lambda f: f.create_dataset("x", data=MATRIX, chunks=(8, 5), compression="gzip"),
    "shuffled chunks": lambda f: f.create_dataset("x", data=MATRIX, chunks=(8, 5), shuffle=True),
    "both": lambda f: f.create_dataset("x", data=MATRIX, chunks=(8, 5), shuffle=True, compression=9),
    "one of many links": lambda f: [f.create_dataset(n, data=MATRIX) for n in ("x", *map(str, range(60)))],
    "a file with attributes": lambda f: f.create_dataset("x", data=MATRIX).attrs.update({"a": "text", "b": ["c", "d"]}),
}


@pytest.mark.parametrize("name", STORED)
def test_every_layout(name: str) -> None:
    found = sg.read_weights(file_of(STORED[name]))
    np.testing.assert_array_equal(found["x"], MATRIX)


@pytest.mark.parametrize("options", [{"libver": "latest"}, {"libver": "v108"}, {"track_order": True}])
def test_the_newer_layout(options: dict[str, Any]) -> None:
    def write(file: Any) -> None:
        for name in ("f4", "u2", "?"):
            file.create_dataset(f"group/inner/{name}", data=ARRAYS[name])
        file["number"] = 1.5

    found = sg.read_weights(file_of(write, **options))
    assert {k: v.tolist() for k, v in found.items()} == {
        "number": 1.5, **{f"group/inner/{k}": ARRAYS[k].tolist() for k in ("f4", "u2", "?")}
    }  # fmt: skip


def test_arrays_beyond_4_gb_of_a_file(tmp_path: Path) -> None:
    """The file has a hole of 5 GiB, which takes no room on the disk."""
    with h5py.File(tmp_path / "w.h5", "w") as file:
        layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        h5py.h5d.create(file.id, b"a", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((5 << 27,)), layout)
        file["b"] = MATRIX
    found = sg.read_weights(tmp_path / "w.h5")
    np.testing.assert_array_equal(found["b"], MATRIX)
    assert (found["a"].shape, found["a"][-1]) == ((5 << 27,), 0)


def test_names_are_those_of_keras() -> None:
    def keras_3(file: Any) -> None:
        file["layers/dense/vars/0"], file["layers/dense/vars/1"] = MATRIX, MATRIX[0]
        file["optimizer/vars/0"] = np.int64(7)

    def keras_2(file: Any) -> None:
        file["dense/dense/kernel:0"] = MATRIX
        file.attrs["layer_names"] = ["dense"]

    def whole(file: Any) -> None:
        file.attrs["model_config"] = "{}"
        file["model_weights/dense/dense/kernel:0"] = MATRIX
        file["model_weights/top_level_model_weights/none"] = np.zeros(0)
        file["optimizer_weights/Adam/m:0"] = MATRIX

    new = ["layers/dense/vars/0", "layers/dense/vars/1"]
    assert [*sg.read_weights(file_of(keras_3))] == new
    assert [*sg.read_weights(keras(file_of(keras_3)))] == new
    assert [*sg.read_weights(keras(file_of(keras_3), zipfile.ZIP_DEFLATED))] == new
    assert [*sg.read_weights(file_of(keras_2))] == ["dense/dense/kernel:0"]
    assert [*sg.read_weights(file_of(whole))] == ["dense/dense/kernel:0", "top_level_model_weights/none"]


def test_a_module_takes_the_weights_of_keras() -> None:
    """As README.md of the weights shows: kernels of Dense are the transposes of Linear's weights."""

    def write(file: Any) -> None:
        file["layers/dense/vars/0"], file["layers/dense/vars/1"] = MATRIX, MATRIX[0]

    data = file_of(write)
    state = {
        "weight": sg.read_weights(data)["layers/dense/vars/0"].T,
        "bias": sg.read_weights(data)["layers/dense/vars/1"],
    }
    layer = nn.Linear(30, 17).with_state(state)
    x = RNG.standard_normal((2, 30)).astype(np.float32)
    np.testing.assert_allclose(layer(sg.tensor(x)).numpy(), x @ MATRIX + MATRIX[0], rtol=1e-4, atol=1e-4)
    norm = nn.LayerNorm(17)
    names = {"layers/dense/vars/1": "weight"}
    told = sg.load_weights(norm, data, strict=False, rename=names)
    np.testing.assert_array_equal(told.state_dict()["weight"].numpy(), MATRIX[0])


@pytest.mark.parametrize("pack", [bytes, keras])
def test_a_load_of_a_model_says_what_to_do(pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(sg.FormatError, match=r"weights without a model .*Keras.*model\.export\(path, format='onnx'\)"):
        sg.load(pack(SMALL))


SMALL = file_of(lambda f: f.create_dataset("x", data=MATRIX[:2, :2]))
CHUNKED = file_of(lambda f: f.create_dataset("g/x", data=MATRIX, chunks=(8, 5), compression="gzip", shuffle=True))
NEW = file_of(lambda f: f.create_dataset("g/x", data=MATRIX[:2, :2]), libver="latest")


def changed(data: bytes, find: bytes, offset: int, value: bytes) -> bytes:
    at = data.index(find) + offset
    return data[:at] + value + data[at + len(value) :]


def cycle(file: Any) -> None:
    file.create_group("g")["up"] = file["/"]


def deep(file: Any) -> None:
    for _ in range(180):
        file = file.create_group("group")


U64 = struct.Struct("<Q").pack
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a signature alone": (lambda: SMALL[:8], "at least 9 are needed"),
    "a cut superblock": (lambda: SMALL[:50], "the superblock has 96 bytes"),
    "a version of no use": (lambda: changed(SMALL, b"\x89HDF", 8, b"\t"), "version 9 of the superblock"),
    "short offsets": (lambda: changed(SMALL, b"\x89HDF", 13, b"\4"), "expected 8"),
    "another beginning": (lambda: changed(SMALL, b"\x89HDF", 24, b"\1"), "base address"),
    "a root beyond the file": (lambda: changed(SMALL, b"\x89HDF", 64, U64(1 << 60)), "the file ends at byte"),
    "a root that is none": (lambda: changed(SMALL, b"\x89HDF", 64, U64(0)), "no header of an object"),
    "a node with many entries": (lambda: changed(SMALL, b"SNOD", 6, b"\xff\xff"), "entries of a group"),
    "a tree of another kind": (lambda: changed(SMALL, b"TREE", 4, b"\1"), "a node of a B-tree of kind 1"),
    "a tree within itself": (
        lambda: changed(changed(SMALL, b"TREE", 5, b"\1"), b"TREE", 32, U64(SMALL.index(b"TREE"))), "of level|read twice|level 1"
    ),
    "names beyond the file": (lambda: changed(SMALL, b"HEAP", 8, U64(1 << 50)), "the list of names"),
    "a group within itself": (lambda: file_of(cycle), "lead back"),
    "groups without end": (lambda: file_of(deep), "at most 1000"),
    "a soft link": (lambda: file_of(lambda f: f.__setitem__("b", h5py.SoftLink("/a"))), "the soft link 'b'"),
    "an external link": (lambda: file_of(lambda f: f.__setitem__("b", h5py.ExternalLink("a", "/a"))), "external link"),
    "a text": (lambda: file_of(lambda f: f.__setitem__("x", "text")), "lists; read are"),
    "texts": (lambda: file_of(lambda f: f.__setitem__("x", np.array([b"ab"]))), "strings; read are"),
    "complex numbers": (lambda: file_of(lambda f: f.__setitem__("x", np.ones(2, "c8"))), "records; read are"),
    "opaque bytes": (lambda: file_of(lambda f: f.__setitem__("x", np.ones(2, "V2"))), "opaque bytes; read are"),
    "no array": (lambda: file_of(lambda f: f.__setitem__("x", h5py.Empty("f4"))), "leave it out"),
    "a dtype": (lambda: file_of(lambda f: f.__setitem__("x", np.dtype("f4"))), "neither a group nor a dataset"),
    "what was never written": (lambda: file_of(lambda f: f.create_dataset("x", (3,), "f4")), "never written"),
    "huge, and never written": (lambda: file_of(lambda f: f.create_dataset("x", (1 << 30,), "f4")), "never written"),
    "chunks that were never written": (
        lambda: file_of(lambda f: f.create_dataset("x", (1 << 20, 1 << 10), "f4", chunks=(8, 8))), "0 of 16777216 chunks"
    ),
    "checksums": (
        lambda: file_of(lambda f: f.create_dataset("x", data=MATRIX, chunks=(8, 5), fletcher32=True)), "the filters [3]"
    ),
    "another compression": (
        lambda: file_of(lambda f: f.create_dataset("x", data=MATRIX, chunks=(8, 5), compression="lzf")), "32000"
    ),
    "the newest chunks": (
        lambda: file_of(lambda f: f.create_dataset("x", data=MATRIX, chunks=(8, 5)), libver="latest"), "version 4 and class 2"
    ),
    "the newest groups": (
        lambda: file_of(lambda f: [f.create_dataset(str(k), data=k) for k in range(99)], libver="latest"), "newer layout"
    ),
    "an archive of no HDF5": (lambda: keras(b"text"), "model.weights.h5 is not HDF5"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_files_are_refused(name: str) -> None:
    make, words = REFUSED[name]
    with pytest.raises(sg.FormatError) as caught:
        sg.read_weights(make())
    assert any(w in str(caught.value) for w in words.split("|")), caught.value
    assert len(str(caught.value)) < 600


def test_damaged_chunks_are_refused() -> None:
    start = CHUNKED.index(b"\x78\x5e")  # of a stream of zlib
    for find in (start + 5, start + 12):
        damaged = bytearray(CHUNKED)
        damaged[find] ^= 0xFF
        found = sg.read_weights(bytes(damaged))
        with pytest.raises(sg.FormatError, match=r"'g/x': a chunk at .* is damaged"):
            found["g/x"]


@pytest.mark.parametrize("data", [SMALL, CHUNKED, NEW, keras(CHUNKED)], ids=["small", "chunked", "new", "keras"])
@pytest.mark.parametrize("count", [80, pytest.param(5000, marks=pytest.mark.slow)])
def test_mutations_are_read_or_refused(data: bytes, count: int) -> None:
    """Bytes and numbers changed where the file has any: a typed error, or arrays no larger than the file can hold."""
    rng = random.Random(count)
    used = [k for k in range(len(data)) if data[k] or rng.random() < 0.05]

    def damaged(k: int) -> bytes:
        made = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            at = used[k % len(used)] if rng.random() < 0.5 else rng.choice(used)
            match rng.randrange(4):
                case 0:
                    made[at] ^= 1 << rng.randrange(8)
                case 1:
                    made[at] = rng.choice([0, 1, 2, 3, 4, 8, 127, 255])
                case 2:
                    value = rng.choice([-1, 0, 1, 1 << 31, 1 << 40, 1 << 62, at, rng.choice(used), len(data)])
                    made[at : at + 8] = struct.pack("<q", value)
                case _:
                    made[at : at + 4] = struct.pack("<I", rng.choice([0, 1, 255, 65535, (1 << 32) - 1, at]))
        return bytes(made)

    assert_read_or_refused(map(damaged, range(count)), 1032 * len(data))
