"""Changes of TensorFlow Lite files that leave most of a file in its place, so that much of it is still read."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from tflite_bytes import Sub, Writer

from singe.tflite import schema as s
from singe.tflite.flatbuffer import root

NUMBERS = (-1, 0, 1, 2, 3, 7, 127, 128, 255, 1 << 15, (1 << 31) - 1, 1 << 30, -(1 << 31))


def changed(data: bytes, rng: random.Random) -> bytes:
    """The bytes with one to four changes: a bit flipped, a small number in a byte or in four, a number copied from elsewhere, an end cut off."""
    out = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(8, len(out) - 8)
        even = at & ~3
        match rng.randrange(9):
            case 0 | 1:
                out[at] ^= 1 << rng.randrange(8)
            case 2 | 3:
                out[at] = rng.choice((0, 1, 2, 3, 4, 5, 9, 32, 127, 255))
            case 4 | 5:
                struct.pack_into("<i", out, even, rng.choice(NUMBERS))
            case 6 | 7:
                there = rng.randrange(8, len(out) - 8) & ~3
                out[even : even + 4] = out[there : there + 4]
            case _:
                if rng.randrange(10) == 0:
                    del out[max(24, len(out) - rng.randrange(1, 40)) :]
    return bytes(out)


def opened(data: bytes) -> dict[str, Any]:
    """What a file says, as its tables, with the options of ops."""
    model = root(memoryview(data), "whole.tflite").read(s.MODEL)
    names = [s.OPS[c["code"]] for c in model["operator_codes"]]
    for graph in model["graphs"]:
        for o in graph["operators"]:
            row = s.OPTIONS.get(names[o["opcode"]])
            o["options"] = Sub(row.fields, o["options"].read(row.fields)) if row and o["options"] is not None else None
    return model


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each number, flag and vector in a table: what holds it, and where."""
    inner: Any = value.values if isinstance(value, Sub) else value
    for key, v in inner.items() if isinstance(inner, dict) else enumerate(inner):
        if isinstance(v, (dict, list, Sub)):
            yield from _places(v)
        elif isinstance(v, (int, float, np.ndarray, memoryview)):
            yield inner, key


def misstated(data: bytes, rng: random.Random) -> bytes:
    """A well-formed file that says one to three things otherwise: a number, a flag, a length, a vector."""
    model = opened(data)
    for _ in range(rng.randrange(1, 4)):
        holder, key = rng.choice([*_places(model)])
        holder[key] = _other(holder[key], rng)
    try:
        return bytes(Writer(s.MODEL, model).out)
    except (struct.error, OverflowError):  # the field holds no such number
        return data


def _other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((*NUMBERS, value + 1, value - 1))
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    if isinstance(value, memoryview):
        return bytes(value)[: rng.randrange(len(value) + 1)]
    if not len(value):
        return np.array([rng.choice((0, 1, 2, 5))], value.dtype)
    changed = value.copy()
    with np.errstate(over="ignore"):
        changed[rng.randrange(len(value))] = rng.choice((-1, 0, 1, 2, 3, 9, 127, 1 << 20, (1 << 31) - 1))
    return rng.choice((changed, value[1:], np.concatenate((value, value[:1]))))
