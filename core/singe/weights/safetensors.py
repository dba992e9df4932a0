"""Safetensors files: 8 bytes with the length of a JSON header, the header, and the elements of all tensors.

Read: the arrays are views of the mapped file. Every tensor's span must have the bytes that its shape and dtype need, and
the spans must fill the rest of the file without gaps or overlaps, as the format demands. Write: the largest elements
come first, so that all arrays are aligned.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..dtypes import DTYPES, DType, dtype
from ..errors import DTypeError, FormatError
from ..files import write
from .stored import StoredArray, Weights, element_count, viewed

MAX_HEADER: Final = 100_000_000
"""The format's own limit."""
SAFETENSORS: Final = ".safetensors"
METADATA: Final = "__metadata__"
CODES: Final[Mapping[str, DType]] = {
    code: DTYPES[name]
    for code, name in {
        "BOOL": "bool", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
        "I64": "int64", "U64": "uint64", "F8_E4M3": "float8_e4m3fn", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2": "float8_e5m2",
        "F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E8M0": "float8_e8m0fnu", "F16": "float16", "BF16": "bfloat16", "F32": "float32",
        "F64": "float64", "C64": "complex64",
    }.items()
}  # fmt: skip
"""The format's names of the dtypes that Singe has."""
_NAMES: Final = {kind.name: code for code, kind in CODES.items()}


def is_safetensors(data: memoryview) -> bool:
    """Whether these bytes begin like a safetensors file."""
    return len(data) >= 10 and data[8] == ord("{") and int.from_bytes(data[:8], "little") <= len(data) - 8


def read_safetensors(data: memoryview, name: str) -> Weights:
    """The tensors of a file, and its metadata, a dict of strings."""
    length = int.from_bytes(data[:8], "little")
    if length > min(MAX_HEADER, len(data) - 8):
        raise FormatError(f"{name}: a header of {length} bytes, the file has {len(data)} and the limit is {MAX_HEADER}")
    head = _header(bytes(data[8 : 8 + length]), name)
    metadata = head.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FormatError(f"{name}: {METADATA} is not a dict of strings")
    block = data[8 + length :]
    spans = {key: _span(entry, f"{name}: the tensor {key!r:.80}") for key, entry in head.items()}
    end = 0
    for key, (start, stop) in sorted(spans.items(), key=lambda item: item[1]):
        if start != end:
            raise FormatError(
                f"{name}: the tensor {key!r:.80} begins at byte {start} of the data, the one before it ends at {end}"
            )
        end = stop
    if end != len(block):
        raise FormatError(f"{name}: its tensors end at byte {end} of the data, of which there are {len(block)} bytes")
    return Weights({k: _stored(block, head[k], spans[k]) for k in head}, metadata)


def _header(text: bytes, name: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise FormatError(f"{name}: a key comes twice in the header")
        return made

    try:
        head = json.loads(text, object_pairs_hook=once)
    except FormatError:
        raise
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{name}: the header is not JSON: {e or type(e).__name__}") from None
    if not isinstance(head, dict):
        raise FormatError(f"{name}: the header is not a dict")
    return head


def _span(entry: Any, what: str) -> tuple[int, int]:
    """Where the elements of a tensor begin and end, after a check of its entry."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"{what} is not described by dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in CODES:
        raise FormatError(f"{what} has the dtype {code!r:.40}; those that Singe reads are {', '.join(CODES)}")
    if not all(isinstance(v, list) and all(type(n) is int for n in v) for v in (shape, offsets)) or len(offsets) != 2:
        raise FormatError(f"{what} has the shape {shape!r:.80} and the offsets {offsets!r:.80}, expected numbers")
    size = element_count(tuple(shape), what) * CODES[code].size
    start, stop = offsets
    if start < 0 or stop - start != size:
        raise FormatError(f"{what} has the bytes {start} to {stop}, its shape {tuple(shape)} of {code} needs {size}")
    return start, stop


def _stored(block: memoryview, entry: dict[str, Any], span: tuple[int, int]) -> StoredArray:
    return viewed(block[slice(*span)], CODES[entry["dtype"]], tuple(entry["shape"]))


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray], shard_bytes: int | None = None) -> None:
    """Write a file; or, if the arrays take more than shard_bytes, files of at most so many bytes where no array is larger,
    name-00001-of-00003.safetensors, and their index, name.safetensors.index.json."""
    if shard_bytes is None or sum(a.nbytes for a in arrays.values()) <= shard_bytes:
        return write(path, safetensors_pieces(arrays))
    shards: list[dict[str, np.ndarray]] = [{}]
    room = shard_bytes
    for name, array in arrays.items():
        if array.nbytes > room and shards[-1]:
            shards.append({})
            room = shard_bytes
        room -= array.nbytes
        shards[-1][name] = array
    places: dict[str, str] = {}
    for k, shard in enumerate(shards, 1):
        file = f"{path.stem}-{k:05}-of-{len(shards):05}{path.suffix}"
        write(path.with_name(file), safetensors_pieces(shard))
        places |= dict.fromkeys(shard, file)
    index = {"metadata": {"total_size": sum(a.nbytes for a in arrays.values())}, "weight_map": places}
    return write(path.with_name(path.name + ".index.json"), [json.dumps(index, indent=1).encode()])


def safetensors_pieces(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> list[Any]:
    """The bytes of a file, in consecutive pieces: the header, then the elements of all arrays."""
    head: dict[str, Any] = {METADATA: {"format": "pt", **(metadata or {})}}  # other readers ask for PyTorch's format
    pieces: list[Any] = []
    end = 0
    for name in sorted(arrays, key=lambda k: (-dtype(arrays[k].dtype).size, k)):
        array = np.ascontiguousarray(arrays[name])
        kind = dtype(array.dtype)
        if kind.name not in _NAMES or name == METADATA:
            raise DTypeError(f"a safetensors file cannot hold {name!r} of {kind}; cast it to one of {', '.join(CODES)}")
        little = array if kind.held else array.astype(array.dtype.newbyteorder("<"), copy=False)
        raw = little.reshape(-1).view(np.uint8).data
        shape = list(arrays[name].shape)
        head[name] = {"dtype": _NAMES[kind.name], "shape": shape, "data_offsets": [end, end + len(raw)]}
        end += len(raw)
        pieces.append(raw)
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [struct.pack("<Q", len(text)) + text, *pieces]
