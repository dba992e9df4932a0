"""The file format of a Program: what `pieces` gives, and `read_program` checks before anything is used.

static/README.md documents it field by field. Here it is tables of codecs, by which a file is written and read; checks.py
has what must hold of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from ..errors import InputError
from ..lazy_names import LateModule
from .block import alone
from .container import PROGRAM as FORMAT
from .container import (
    BlockPieces,
    Bytes,
    bytes_at,
    checking,
    count,
    decode_attr,
    decode_dim,
    dtype_named,
    encode_attr,
    encode_dim,
    file_pieces,
    read,
    string,
    whole,
)
from .program import Bind, Buffer, Check, Code, Host, ProgramData, Specialised, State, Stop, Variant
from .ranges import IndexRange

if TYPE_CHECKING:
    from . import checks
else:
    checks = LateModule("program.checks")

T = TypeVar("T")

MAX_WORD: Final = 2**31 - 1


def read_program(path: str | Path) -> ProgramData:
    """Read a file of `pieces`; a file that is not one raises FormatError."""
    try:
        data = Path(path).read_bytes()
    except OSError as e:
        raise InputError(f"cannot read the program {path}: {e.strerror}") from e
    return from_bytes(data, str(path))


def header(program: ProgramData) -> dict[str, Any]:
    """The Program without its bytes, as JSON data."""
    return {"format": FORMAT, **{name: codec.encode(getattr(program, name)) for name, codec in HEADER.items()}}


def to_bytes(program: ProgramData) -> bytes:
    """The bytes of the file."""
    return b"".join(pieces(program))


def pieces(program: ProgramData) -> list[Bytes]:
    program = alone(program)
    block = BlockPieces()
    weights = [block.add(program.weights.data), program.weights.size]
    return _pieces(program, weights, block)


def pieces_without_weights(program: ProgramData, weights: Any) -> list[Bytes]:
    """The same without the bytes of the weights. weights: data of JSON that says where `without_weights` finds them."""
    return _pieces(program, weights, BlockPieces())


def _pieces(program: ProgramData, weights: Any, block: BlockPieces) -> list[Bytes]:
    modules: dict[str, Any] = {}
    for name, code in program.modules.items():
        raw = code.encode() if isinstance(code, str) else code
        modules[name] = {"kind": "text" if isinstance(code, str) else "bytes", "at": [block.add(raw), len(raw)]}
    return file_pieces(header(program) | {"blocks": {"weights": weights}, "modules": modules}, block)


def from_bytes(data: Bytes, name: str = "program") -> ProgramData:
    """Read a program file; everything in it is checked before use."""
    head, block = read(data, name, FORMAT)
    with checking(name):
        weights = np.frombuffer(bytes_at(block, head["blocks"]["weights"], "weights"), np.uint8)
        return made(head, _modules(head, block), weights, name)


def without_weights(
    data: Bytes, name: str, weights: Callable[[Any], tuple[np.ndarray, Mapping[int, np.ndarray]]]
) -> ProgramData:
    """Read what `pieces_without_weights` gave, of which the caller knows that nothing else wrote it and that no byte has changed. weights:
    gives the weights, and the blocks that others hold too, for what was said of them."""
    head, block = read(data, name, FORMAT, is_whole=True)
    with checking(name):
        own, shared = weights(head["blocks"]["weights"])
        return _decoded(head, _modules(head, block), own, shared)


def _modules(head: Mapping[str, Any], block: memoryview) -> dict[str, str | bytes]:
    modules = {k: bytes(bytes_at(block, m["at"], f"module {k}")) for k, m in head["modules"].items()}
    return {k: m.decode() if head["modules"][k]["kind"] == "text" else m for k, m in modules.items()}


def made(
    head: Mapping[str, Any],
    modules: Mapping[str, str | bytes],
    weights: np.ndarray,
    name: str,
    shared: Mapping[int, np.ndarray] | None = None,
) -> ProgramData:
    """The Program of a header, its code and its weights, checked. shared: blocks of weights that others hold, too, by their start."""
    program = _decoded(head, modules, weights, shared or {})
    checks.check_program(program, name)
    return program


def _decoded(
    head: Mapping[str, Any],
    modules: Mapping[str, str | bytes],
    weights: np.ndarray,
    shared: Mapping[int, np.ndarray],
) -> ProgramData:
    fields = {name: codec.decode(head[name]) for name, codec in HEADER.items()}
    return ProgramData(**fields, modules=modules, weights=weights, shared=shared)


# --- codecs ----------------------------------------------------------------------------------------------------------


class Codec:
    """How a value becomes JSON data, and is read from it."""

    def __init__(self, encode: Callable[[Any], Any], decode: Callable[[Any], Any]) -> None:
        self.encode: Final = encode
        self.decode: Final = decode


def _same(decode: Callable[[Any], Any]) -> Codec:
    """A value that JSON has too."""
    return Codec(lambda value: value, decode)


_JSON: Final[Mapping[type, str]] = {bool: "true or false", list: "a list", dict: "an object"}


def _of(kind: type[T], data: Any) -> T:
    """The data, which must be of this type."""
    if type(data) is not kind:
        raise ValueError(f"expected {_JSON[kind]}, got {data!r:.40}")
    return data


def _maybe(one: Codec) -> Codec:
    """Such a value or None."""
    encode, decode = one.encode, one.decode
    return Codec(
        lambda value: None if value is None else encode(value), lambda data: None if data is None else decode(data)
    )


def _list(one: Codec) -> Codec:
    """A tuple of such values."""
    encode, decode = one.encode, one.decode
    return Codec(lambda values: [*map(encode, values)], lambda data: tuple(map(decode, _of(list, data))))


def _object(one: Codec) -> Codec:
    """A mapping of names to such values."""
    encode, decode = one.encode, one.decode
    return Codec(
        lambda values: {k: encode(v) for k, v in values.items()},
        lambda data: {k: decode(v) for k, v in _of(dict, data).items()},
    )


def _tuple(**row: Codec) -> Codec:
    """A tuple, as an object with these fields."""
    return Codec(
        lambda values: {name: codec.encode(v) for (name, codec), v in zip(row.items(), values, strict=True)},
        lambda data: tuple(codec.decode(_of(dict, data)[name]) for name, codec in row.items()),
    )


def _record(make: type, **row: Codec) -> Codec:
    """An instance of a dataclass, as an object: the row has a name and a codec for each of its fields, in order."""
    one = _tuple(**row)
    encode, decode = one.encode, one.decode
    return Codec(lambda value: encode(getattr(value, f.name) for f in fields(make)), lambda data: make(*decode(data)))


def _leaving_out(name: str, one: Codec) -> Codec:
    """Such an object, in which a field that is None is not written."""
    encode, decode = one.encode, one.decode
    return Codec(
        lambda value: {k: v for k, v in encode(value).items() if k != name or v is not None},
        lambda data: decode({name: None, **_of(dict, data)}),
    )


def _encode_stop(stop: Stop) -> dict[str, Any]:
    kind = _KINDS[type(stop)]
    return {"do": kind, **_CODECS[kind].encode(stop)}


def _decode_stop(data: Any) -> Stop:
    kind = string(_of(dict, data)["do"])
    if kind not in STOPS:
        raise ValueError(f"unknown stop {kind!r:.40}, expected one of {', '.join(STOPS)}")
    return _CODECS[kind].decode(data)


def _word(data: Any) -> int:
    if type(data) is not int or not -MAX_WORD <= data <= MAX_WORD:
        raise ValueError(f"expected a word, an integer of 32 bits, got {data!r:.40}")
    return data


# --- the format ------------------------------------------------------------------------------------------------------

COUNT: Final = _same(count)
COUNTS: Final = _list(COUNT)
TEXT: Final = _same(string)
FLAG: Final = _same(lambda data: _of(bool, data))
DIM: Final = Codec(encode_dim, decode_dim)
DIMS: Final = _list(DIM)
PLACE: Final = Codec(list, lambda data: (string(data[0]), count(data[1])))

STOPS: Final[Mapping[str, tuple[type[Stop], Mapping[str, Codec]]]] = {
    "host": (
        Host,
        {"op": TEXT, "attrs": _object(Codec(encode_attr, decode_attr)), "inputs": COUNTS, "outputs": COUNTS},
    ),
    "bind": (Bind, {"size": TEXT, "buffer": _maybe(COUNT), "dim": _maybe(DIM)}),
    "check": (Check, {"dim": DIM, "text": TEXT}),
}
"""A kind of stop ↦ its class, and a name and a codec for each field of the class, in order."""
_KINDS: Final = {make: kind for kind, (make, _) in STOPS.items()}
_CODECS: Final = {kind: _record(make, **row) for kind, (make, row) in STOPS.items()}
STOPS_OF: Final = _list(Codec(_encode_stop, _decode_stop))
WORDS: Final = _list(_same(_word))

BUFFERS: Final = _list(
    _record(Buffer, name=TEXT, dtype=Codec(lambda d: d.name, dtype_named), shape=DIMS, size=COUNT, place=PLACE)
)
CHECKS: Final = _list(_tuple(dim=DIM, text=TEXT))
SIZES: Final = _object(COUNT)
WHOLE: Final = _same(whole)
PART: Final = _list(_tuple(start=DIM, step=WHOLE, count=DIM))
RANGES: Final = _list(
    _record(IndexRange, input=COUNT, part=_maybe(PART), least=DIM, most=DIM, ignored=_maybe(WHOLE), text=TEXT)
)
VARIANT: Final = _record(Variant, entry=TEXT, requires=_list(TEXT), groups=DIMS)
KERNEL: Final = _record(
    Code, label=TEXT, kind=TEXT, ports=COUNT, sizes=DIMS, variants=_list(VARIANT), flops=DIM, bytes=DIM, workspace=FLAG
)  # fmt: skip

STATE: Final = _leaving_out(
    "draws", _record(State, name=TEXT, buffer=COUNT, initial=_maybe(COUNT), draws=_maybe(COUNT))
)

HEADER: Final[Mapping[str, Codec]] = {
    "target": TEXT,
    "inputs": COUNTS,
    "outputs": COUNTS,
    "slots": COUNT,
    "buffers": BUFFERS,
    "kernels": _list(KERNEL),
    "words": WORDS,
    "counts": DIMS,
    "stops": STOPS_OF,
    "states": _list(STATE),
    "checks": CHECKS,
    "bounds": SIZES,
    "ranges": RANGES,
    "specialised": _list(
        _record(
            Specialised,
            sizes=SIZES,
            slots=COUNT,
            buffers=BUFFERS,
            words=WORDS,
            counts=DIMS,
            stops=STOPS_OF,
            checks=CHECKS,
        )
    ),
    "facts": _object(_same(lambda data: data)),
}
"""A field of ProgramData ↦ its codec, in the order in which they are written."""
