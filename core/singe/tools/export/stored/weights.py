"""The files of bundles' weights: what several Programs have in common is stored once.

Each file is a piece of a Program's block of weights, in order. The weights of each Program are laid out anew, so that those
that the most Programs share come first, in the same order: their files are named by each of these, and a page that uses
one Program fetches nothing that only another needs. Two arrays are the same if their stored bytes are; where a
kernel wants elements in another order than the model has them, the array is stored as the model has it (narrow.py), if
that lets Programs share it, or two kernels of one: such a Program names the file twice. Floats of small models are stored so
for two kernels of one only, since a page copies faster than it orders. Numbers of 32 bits that are those of float16s are
stored as such. Arrays that are stored unchanged have files of their own, which a page need not decode.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ....late_dataclass import dataclass
from ....program.block import BlockWriter
from ....program.container import ALIGN
from ....program.program import Buffer, ProgramData
from ....program.weight_codecs import StoredPart
from .narrow import LEAST, Uses, as_kept, ordered

PIECE: Final = 4_000_000 // ALIGN * ALIGN
"""The most bytes in a file of weights: small enough to download in parallel and to retry alone."""
STRETCH: Final = 4_000_000
"""The bytes of a file that a page holds while it decodes them; of longer files each such stretch has a hash."""
WORTH: Final = 1 << 16
"""The fewest bytes for which a page fetches one more file."""
COPIED: Final = 1 << 25
"""A model of at most so many bytes is loaded by copying its floats, which needs no script to order them."""
SHARED: Final = "shared"
_GIVEN: Final = ("words", "float16")
"""The encodings of arrays that may be stored as the model has them."""


@dataclass(frozen=True)
class BundleWeights:
    """A target's Program, all of its weights as stored, in order, and how its kernels read them."""

    program: ProgramData
    parts: Sequence[StoredPart]
    uses: Uses


Place = tuple[str, str]
"""A bundle, and one of its targets: where a Program is."""
Row = tuple[StoredPart, ...]
"""The same array in several blocks, or in several places of one: the stored bytes are equal."""


@dataclass(frozen=True)
class _Group:
    """Arrays that follow each other in a block, and have files of their own. owners: for each part of a row the Program in whose
    block it is. plain: the files are the block's own bytes."""

    owners: Sequence[Place]
    rows: Sequence[Row]
    plain: bool


@dataclass(frozen=True)
class _WeightColumn:
    """A group's arrays in the block of one Program: from where to where, and the parts."""

    program: ProgramData
    start: int
    end: int
    parts: Sequence[StoredPart]


@dataclass(frozen=True)
class WeightFiles:
    """Of a bundle: each target's Program, with its weights laid out anew, and the entries of its files; the files that are in this bundle's
    own folder."""

    placed: Mapping[str, tuple[ProgramData, list[dict[str, Any]]]]
    files: Mapping[str, bytes]


def weight_files(bundles: Mapping[str, Mapping[str, BundleWeights]]) -> dict[str, WeightFiles]:
    """The files of the weights of bundles, by the name of a bundle's folder and its target. A file that several bundles need is in
    the first of them; the folders are beside each other."""
    weights_of = {(bundle, target): w for bundle, of in bundles.items() for target, w in of.items()}
    groups = _shared(weights_of)
    programs: dict[Place, ProgramData] = {}
    columns: dict[tuple[int, int], _WeightColumn] = {}
    for place, w in weights_of.items():
        places = [(k, i) for k, g in enumerate(groups) for i, owner in enumerate(g.owners) if owner == place]
        programs[place], found = _laid_out(w.program, [[row[i] for row in groups[k].rows] for k, i in places])
        columns |= zip(places, found, strict=True)
    said: dict[Place, list[dict[str, Any]]] = {place: [] for place in weights_of}
    files: dict[str, dict[str, bytes]] = {bundle: {} for bundle in bundles}
    numbers: Counter[Place] = Counter()
    for k, group in enumerate(groups):
        views = [columns[k, i] for i in range(len(group.owners))]
        home, target = group.owners[0]
        name = target if len(set(group.owners)) == 1 else SHARED
        written: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = []
        for facts, data in _plain_files(views) if group.plain else _encoded_files(views):
            file = f"weights-{name}-{numbers[home, name]}.bin"
            numbers[home, name] += 1
            files[home][file] = data
            written.append((file, _said(data), facts))
        for i, owner in enumerate(group.owners):
            way = "" if owner[0] == home else f"../{home}/"
            said[owner] += [{"file": way + file, **entry, **facts[i]} for file, entry, facts in written]
    return {
        bundle: WeightFiles({target: (programs[bundle, target], said[bundle, target]) for target in of}, files[bundle])
        for bundle, of in bundles.items()
    }


def _said(data: bytes) -> dict[str, Any]:
    """What the entry of a file says of its bytes."""
    hashes = [hashlib.sha256(data[at : at + STRETCH]).hexdigest() for at in range(0, len(data), STRETCH)]
    more = {"hashes": hashes} if len(hashes) > 1 else {}
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), **more}


# --- what is shared ---------------------------------------------------------------------------------------------------


def _shared(weights_of: Mapping[Place, BundleWeights]) -> list[_Group]:
    """All arrays: first those that the most Programs have, at last those of each; what stands in a block twice has files of its own."""
    keys = {place: {_key(p) for p in w.parts} for place, w in weights_of.items()}
    known: dict[bytes, dict[Place, list[StoredPart]]] = {}
    for place, w in weights_of.items():
        others = [found for other, found in keys.items() if other != place]
        anywhere = keys[place].union(*others)
        for part in w.parts:
            everywhere = bool(others) and all(_key(part) in found for found in others)
            made = None if everywhere else _as_given(part, w, keys[place], anywhere)
            found = made or part
            known.setdefault(_key(found), {}).setdefault(place, []).append(found)
    rows_of: dict[tuple[Place, ...], list[Row]] = {}
    for found in known.values():
        owners = tuple(place for place in weights_of for _ in found.get(place, ()))
        row = tuple(p for place in weights_of for p in found.get(place, ()))
        if len(owners) > 1 and (len(owners) == len(found) or row[0].bytes >= WORTH):
            rows_of.setdefault(owners, []).append(row)
    groups: list[_Group] = []
    for owners, rows in sorted(rows_of.items(), key=lambda item: (-len(set(item[0])), len(item[0]))):
        if sum(row[0].bytes for row in rows) >= WORTH:
            groups += _groups(owners, rows)
    taken = {(place, p.at) for g in groups for row in g.rows for place, p in zip(g.owners, row, strict=True)}
    for place, w in weights_of.items():
        groups += _groups([place], [(p,) for p in w.parts if (place, p.at) not in taken])
    return groups


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


def _as_given(part: StoredPart, w: BundleWeights, own: set[bytes], elsewhere: set[bytes]) -> StoredPart | None:
    """An array that a kernel wants in another order as the model has it, if those bytes are elsewhere; where floats are copied, in
    the same block."""
    found = w.uses.get(part.at)
    if found is None or part.order is not None or part.encoding not in _GIVEN:
        return None
    if found.values.size < LEAST or found.values.dtype.itemsize not in (1, 4):
        return None
    known = own if found.values.dtype == np.float32 and _copies(w) else elsewhere
    for use in as_kept(found):
        assert use.packer is not None
        values, raw = use.values, w.program.view(use.buffer)
        if part.encoding == "float16":
            values = values.astype(np.float16)
            raw = np.ascontiguousarray(use.packer(values.astype(np.float32))).reshape(-1).view(np.uint8)
            given = StoredPart("float16", part.at, values)
        elif values.dtype.itemsize == 4:
            given = StoredPart("words", part.at, values.view(np.uint32))
        else:
            given = StoredPart("bytes", part.at, values.view(np.int8))
        if _key(given) in known:
            return ordered(given, use, raw)
    return None


def _copies(w: BundleWeights) -> bool:
    """Whether floats are stored as each target has them: those of small models, without packed weights."""
    packed = any(u.packer and u.values.dtype == np.int32 for u in w.uses.values())
    return not packed and w.program.weights.size <= COPIED


# --- the block and its files ------------------------------------------------------------------------------------------


def _groups(owners: Sequence[Place], rows: Sequence[Row]) -> list[_Group]:
    """Plain rows and others, each in the order in which they come; few plain ones are listed with the others."""
    rows = [_halved(_alike(row)) for row in rows]
    plain = [row for row in rows if all(map(_is_plain, row))]
    if sum(row[0].bytes for row in plain) < WORTH and len(plain) < len(rows):
        plain = []
    rest = [row for row in rows if row not in plain] if plain else rows
    return [_Group(owners, found, is_plain) for found, is_plain in ((plain, True), (rest, False)) if found]


def _halved(row: Row) -> Row:
    """The row as float16s, if all of its words are the float32s of such, to the bit."""
    words = row[0].values
    if row[0].encoding != "words" or words.size < LEAST:
        return row
    with np.errstate(all="ignore"):
        halves = words.view(np.float32).astype(np.float16)
    if not np.array_equal(halves.astype(np.float32).view(np.uint32), words) or np.isnan(halves).any():
        return row
    return tuple(replace(p, encoding="float16", values=halves.reshape(p.values.shape)) for p in row)


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
