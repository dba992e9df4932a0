"""The files of a bundle's weights: what several targets have in common is stored once.

Each file is a piece of a Program's block of weights, in order. The weights of each Program are laid out anew, so that those
that all targets share come first, in the same order: their files are named by every target, and a page that uses
one target fetches nothing that only another needs. Two arrays are the same if their stored bytes are; where a
kernel wants elements in another order than the model has them, the array is stored as the model has it (narrow.py), if
that lets targets share it. Arrays that are stored unchanged have files of their own, which a page need not decode.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ....program.block import BlockWriter
from ....program.container import ALIGN
from ....program.program import Buffer, ProgramData
from ....program.weight_codecs import StoredPart
from .narrow import LEAST, Uses, ordered

PIECE: Final = 4_000_000 // ALIGN * ALIGN
"""The most bytes in a file of weights: small enough to download in parallel and to retry alone."""
WORTH: Final = 1 << 16
"""The fewest bytes for which a page fetches one more file."""
SHARED: Final = "shared"


@dataclass(frozen=True)
class BundleWeights:
    """A target's Program, all of its weights as stored, in order, and how its kernels read them."""

    program: ProgramData
    parts: Sequence[StoredPart]
    uses: Uses


Row = tuple[StoredPart, ...]
"""The same array for each of some targets: the stored bytes are equal."""


@dataclass(frozen=True)
class _Group:
    """Arrays that follow each other in a block, and have files named alike. plain: the files are the block's own bytes."""

    name: str
    rows: Sequence[Row]
    plain: bool


@dataclass(frozen=True)
class _WeightColumn:
    """A group's arrays in the block of one target: from where to where, and the parts."""

    program: ProgramData
    start: int
    end: int
    parts: Sequence[StoredPart]


def weight_files(
    weights_of: Mapping[str, BundleWeights], files: dict[str, bytes]
) -> dict[str, tuple[ProgramData, list[dict[str, Any]]]]:
    """Each target's Program, with its weights laid out anew, and the entries of its files, which are added to `files`."""
    rows, own = _shared(weights_of)
    common = _groups(SHARED, rows)
    made: dict[str, tuple[ProgramData, list[dict[str, Any]]]] = {}
    shared: list[list[_WeightColumn]] = [[] for _ in common]
    for k, (name, w) in enumerate(weights_of.items()):
        alone = _groups(name, [(p,) for p in own[name]])
        lists = [[row[k] for row in g.rows] for g in common] + [[row[0] for row in g.rows] for g in alone]
        program, columns = _laid_out(w.program, lists)
        for found, column in zip(shared, columns, strict=False):
            found.append(column)
        mine = [([column], group) for column, group in zip(columns[len(common) :], alone, strict=True)]
        made[name] = program, [entry for (entry,) in _entries(mine, files)]
    for k, entries in enumerate(zip(*_entries(list(zip(shared, common, strict=True)), files), strict=True)):
        found = list(made.values())[k][1]
        found[:0] = entries
    return made


# --- what targets share -----------------------------------------------------------------------------------------------


def _shared(weights_of: Mapping[str, BundleWeights]) -> tuple[list[Row], dict[str, list[StoredPart]]]:
    """The rows of arrays that all targets have, and the parts that each has for itself."""
    own = {name: list(w.parts) for name, w in weights_of.items()}
    if len(weights_of) < 2:
        return [], own
    known = {name: {_key(p): p for p in reversed(w.parts)} for name, w in weights_of.items()}
    keys = {name: dict.fromkeys(found) for name, found in known.items()}
    for name, w in weights_of.items():
        elsewhere = set[bytes]().union(*(found for other, found in keys.items() if other != name))
        for part in w.parts:
            made = _as_given(part, w, elsewhere) if _key(part) not in elsewhere else None
            if made is not None:
                known[name][_key(made)] = made
    first, *others = known.values()
    rows = [(p, *(found[key] for found in others)) for key, p in first.items() if all(key in found for found in others)]
    rows = [_alike(row) for row in rows] if sum(row[0].bytes for row in rows) >= WORTH else []
    for k, name in enumerate(weights_of):
        taken = {row[k].at for row in rows}
        own[name] = [p for p in own[name] if p.at not in taken]
    return rows, own


def _key(part: StoredPart) -> bytes:
    """The same for parts with the same stored bytes, but for zeros that fill up the last word."""
    data = part.stored()
    return hashlib.blake2b(data + bytes(-len(data) % 4), digest_size=16).digest()


def _alike(row: Row) -> Row:
    """The row, with as many stored bytes in each part: unchanged bytes have no zeros at their end."""
    count = min(p.bytes for p in row)

    def cut(p: StoredPart) -> StoredPart:
        same = p.bytes == count
        return p if same else replace(p, encoding="bytes", values=p.values.reshape(-1).view(np.int8)[:count])

    return tuple(map(cut, row))


def _is_plain(part: StoredPart) -> bool:
    return part.encoding == "words" and part.order is None


def _as_given(part: StoredPart, w: BundleWeights, elsewhere: set[bytes]) -> StoredPart | None:
    """A packed array of integers as the model has it, if another target has those bytes."""
    use = w.uses.get(part.at)
    if not _is_plain(part) or use is None or use.packer is None or not use.buffer.dtype.is_int:
        return None
    values = np.ascontiguousarray(use.values)
    if values.size < LEAST or values.dtype.itemsize not in (1, 4):
        return None
    whole = values.dtype.itemsize == 4
    given = StoredPart("words" if whole else "bytes", part.at, values.view(np.uint32 if whole else np.int8))
    if _key(given) not in elsewhere:
        return None
    return ordered(given, use, w.program.view(use.buffer))


# --- the block and its files ------------------------------------------------------------------------------------------


def _groups(name: str, rows: Sequence[Row]) -> list[_Group]:
    """Plain rows and others, each in the order in which they come; few plain ones are listed with the others."""
    plain = [row for row in rows if all(map(_is_plain, row))]
    if sum(row[0].bytes for row in plain) < WORTH and len(plain) < len(rows):
        plain = []
    rest = [row for row in rows if row not in plain] if plain else list(rows)
    return [_Group(name, found, is_plain) for found, is_plain in ((plain, True), (rest, False)) if found]


def _laid_out(program: ProgramData, lists: Sequence[Sequence[StoredPart]]) -> tuple[ProgramData, list[_WeightColumn]]:
    """The Program with its weights in this order, and where the lists are in it."""
    order = [p.at for parts in lists for p in parts]
    to = dict(zip(order, order, strict=True))
    if order != sorted(order):
        program, to = _moved(program, order)
    moved = [[replace(p, at=to[p.at]) for p in parts] for parts in lists]
    starts = [0, *(parts[0].at for parts in moved[1:]), program.weights.size]
    return program, [_WeightColumn(program, starts[k], starts[k + 1], parts) for k, parts in enumerate(moved)]


def _moved(program: ProgramData, order: Sequence[int]) -> tuple[ProgramData, dict[int, int]]:
    """The Program with its weights in the order of these offsets, and the new offset of each."""
    sizes = dict.fromkeys(order, 0)
    placed = [b for p in program.programs for b in p.buffers if b.place[0] == "weights"]
    for b in placed:
        if b.place[1] in sizes:
            sizes[b.place[1]] = max(sizes[b.place[1]], program.view(b).size)
    writer = BlockWriter()
    to = {at: writer.add(program.weights[at : at + size], str(at)) for at, size in sizes.items()}

    def moved(buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
        # An empty array has no part, and may be anywhere.
        places = [("weights", to.get(b.place[1], 0)) if b.place[0] == "weights" else b.place for b in buffers]
        return tuple(replace(b, place=place) for b, place in zip(buffers, places, strict=True))

    specialised = tuple(replace(s, buffers=moved(s.buffers)) for s in program.specialised)
    return replace(program, buffers=moved(program.buffers), specialised=specialised, weights=writer.block()), to


def _entries(
    groups: Sequence[tuple[Sequence[_WeightColumn], _Group]], files: dict[str, bytes]
) -> Iterator[list[dict[str, Any]]]:
    """For each file, which is added to `files`, its entry for each column."""
    number = 0
    for columns, group in groups:
        for said, data in _plain_files(columns) if group.plain else _encoded_files(columns):
            file = f"weights-{group.name}-{number}.bin"
            number += 1
            files[file] = data
            entry = {"file": file, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            yield [{**entry, **facts} for facts in said]


_Files = Iterator[tuple[list[dict[str, Any]], bytes]]
"""For each file what its entries say, one for each column, and its bytes."""


def _plain_files(columns: Sequence[_WeightColumn]) -> _Files:
    first = columns[0]
    for start in range(first.start, first.end, PIECE):
        yield [{} for _ in columns], first.program.weights[start : min(start + PIECE, first.end)].tobytes()


def _encoded_files(columns: Sequence[_WeightColumn]) -> _Files:
    found = pieces(list(zip(*(c.parts for c in columns), strict=True)), PIECE)
    starts = [c.start for c in columns]
    for k, rows in enumerate(found):
        ends = [p.at for p in found[k + 1][0]] if k + 1 < len(found) else [c.end for c in columns]
        said = [
            {"decoded": end - start, "parts": [row[i].facts(start) for row in rows]}
            for i, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
        yield said, b"".join(row[0].stored() for row in rows)
        starts = ends


def pieces(rows: Sequence[Row], limit: int) -> list[list[Row]]:
    """The rows grouped into files of at most the given bytes, but for one with an order; each can be decoded alone."""
    files: list[list[Row]] = [[]]
    room = limit
    for row in (piece for whole in rows for piece in _cut(whole, limit)):
        if row[0].bytes > room and files[-1]:
            files.append([])
            room = limit
        files[-1].append(row)
        room -= row[0].bytes
    return [file for file in files if file]


def _cut(row: Row, limit: int) -> Iterator[Row]:
    """The row, or lines of its arrays in the fewest parts of at most the given bytes; an element is never split."""
    part = row[0]
    values, scales = part.values, part.scales
    axis = next((i for i, n in enumerate(values.shape) if n > 1), None)
    if part.bytes <= limit or axis is None or any(p.order is not None or p.encoding == "bytes" for p in row):
        yield row
        return
    length = values.shape[axis]
    shared = scales.nbytes if scales is not None and scales.shape[axis] == 1 else 0
    lines = max(1, (limit - shared) * length // (part.bytes - shared))
    for start in range(0, length, lines):
        key = (*[slice(None)] * axis, slice(start, start + lines))

        def some(p: StoredPart, start: int = start, key: tuple[slice, ...] = key) -> StoredPart:
            own = p.scales if p.scales is None or p.scales.shape[axis] == 1 else p.scales[key]
            return replace(p, at=p.at + 4 * start * (p.values.size // length), values=p.values[key], scales=own)

        yield from _cut(tuple(map(some, row)), limit)
