"""Writes PyTorch's files for tests, opcode by opcode, as torch.save writes them."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from singe.weights.pytorch import LEGACY

KINDS = {
    "float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int", "int16": "Short",
    "int8": "Char", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip


def plain(value: Any, protocol: int = 2) -> bytes:
    """The opcodes that push a plain value."""
    data = pickle.dumps(value, protocol)
    return data[2 if protocol < 4 else 11 : -1]


def call(name: str, *args: bytes) -> bytes:
    """The opcodes of a call of a global."""
    module, _, attribute = name.rpartition(".")
    return f"c{module}\n{attribute}\n".encode() + b"(" + b"".join(args) + b"tR"


def storage(key: str, kind: str, count: int, legacy: bool = False) -> bytes:
    """A persistent id; in the older layout it ends with the facts of a view."""
    parts = (plain("storage"), f"ctorch\n{kind}Storage\n".encode(), plain(key), plain("cpu"), plain(count))
    return b"(" + b"".join(parts) + (b"N" if legacy else b"") + b"tQ"


def tensor(held: bytes, offset: Any, shape: Any, strides: Any) -> bytes:
    """A tensor over a storage, with no gradient and no hooks."""
    return call(
        "torch._utils._rebuild_tensor_v2",
        held, plain(offset), plain(shape), plain(strides), b"\x89", call("collections.OrderedDict"),
    )  # fmt: skip


def state(entries: Mapping[str, bytes]) -> bytes:
    """An OrderedDict with PyTorch's `_metadata` among its attributes."""
    items = b"".join(plain(k) + v for k, v in entries.items())
    metadata = plain({"_metadata": {"": {"version": 1}}})
    return call("collections.OrderedDict") + b"(" + items + b"u" + metadata + b"b"


def archive(
    root: bytes, storages: Mapping[str, bytes], more: Mapping[str, bytes] | None = None, **options: Any
) -> bytes:
    """The layout of PyTorch 1.6 and later."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **options) as held:
        held.writestr("m/data.pkl", b"\x80\x02" + root + b".")
        held.writestr("m/byteorder", b"little")
        for key, data in storages.items():
            held.writestr(f"m/data/{key}", data)
        held.writestr("m/version", b"3\n")
        for name, data in (more or {}).items():
            held.writestr(name, data, zipfile.ZIP_DEFLATED if name.startswith("m/code/") else None)
    return made.getvalue()


def exported() -> bytes:
    """The layout of torch.export: no pickle, weights by number and a description of them in JSON."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as held:
        held.writestr("m/data/weights/weight_0", bytes(4))
        held.writestr("m/archive_format", b"pt2")
    return made.getvalue()


def stream(root: bytes, storages: Mapping[str, tuple[int, bytes]], system: Any = None) -> bytes:
    """The older layout: storages with their counts."""
    facts = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}} if system is None else system
    parts = [LEGACY, pickle.dumps(1001, 2), pickle.dumps(facts, 2), b"\x80\x02" + root + b"."]
    parts += [pickle.dumps(list(storages), 2), *(struct.pack("<q", n) + data for n, data in storages.values())]
    return b"".join(parts)


def file_of(arrays: Mapping[str, np.ndarray], layout: str) -> bytes:
    """A state dict in which each array has a separate storage; in a stream, storages are in reverse order."""
    entries, zipped, streamed = {}, {}, {}
    for k, (name, array) in enumerate(arrays.items()):
        held = storage(str(k), KINDS[array.dtype.name], array.size, layout == "stream")
        strides = tuple(s // array.itemsize for s in np.zeros(array.shape, array.dtype).strides)
        entries[name] = tensor(held, 0, array.shape, strides)
        zipped[str(k)] = array.tobytes()
        streamed = {str(k): (array.size, array.tobytes()), **streamed}
    return stream(state(entries), streamed) if layout == "stream" else archive(state(entries), zipped)


def script(attributes: Mapping[str, bytes]) -> bytes:
    """A TorchScript module: an object of a class of its own, with attributes."""
    items = b"".join(plain(k) + v for k, v in attributes.items())
    return b"c__torch__.___torch_mangle_0\nNet\n)\x81}(" + items + b"ub"


LAYOUTS = pytest.mark.parametrize("layout", ["archive", "stream"])
DATA = {"0": np.ones(4, np.float32).tobytes()}
"""A storage of four ones."""
