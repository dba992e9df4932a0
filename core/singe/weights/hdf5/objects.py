"""The objects of an HDF5 file: its superblock, the headers of groups and datasets, and the links of groups.

Read are superblocks 0 to 3, headers 1 and 2, and groups whose links are in a symbol table or in their header. A sound
file's structures do not overlap. So all that is read is taken from as many bytes as the file has, and what runs in circles,
or is told twice, ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ...errors import FormatError

SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
NOWHERE: Final = (1 << 64) - 1
"""The address of what is not there."""
AGAIN: Final = "write the file again with h5py's defaults (no libver, no track_order), as Keras does"

SPACE, LINKS, TYPE, LINK, LAYOUT, FILTERS, ATTRIBUTE, MORE, SYMBOLS = (
    0x01,
    0x02,
    0x03,
    0x06,
    0x08,
    0x0B,
    0x0C,
    0x10,
    0x11,
)
"""Messages in headers."""
_SHARED: Final = 2
_DEPTH: Final = 32
"""Levels of a B-tree."""


class Message(NamedTuple):
    kind: int
    data: memoryview
    at: int


class File:
    """The bytes of a file, of which each is taken once."""

    def __init__(self, data: memoryview, name: str) -> None:
        self.data, self.name = data, name
        self._left = len(data)

    def fault(self, at: int, text: str) -> FormatError:
        return FormatError(f"{self.name}, byte {at}: {text}")

    def take(self, at: int, size: int, what: str) -> memoryview:
        if at > len(self.data) or size > len(self.data) - at:
            raise self.fault(at, f"{what} has {size} bytes, the file ends at byte {len(self.data)}")
        self._left -= size
        if self._left < 0:
            raise self.fault(at, f"{what} would be read twice: parts of the file overlap, or lead back to each other")
        return self.data[at : at + size]

    def signed(self, at: int, signature: bytes, size: int, what: str) -> memoryview:
        """A part that begins with a signature of four bytes."""
        found = self.take(at, size, what)
        if found[:4] != signature:
            raise self.fault(at, f"{bytes(found[:4])!r}, expected {signature!r}: {what}")
        return found


def number(data: memoryview, at: int, size: int, file: File, start: int) -> int:
    """A little-endian number in a part that begins at byte `start` of the file."""
    if at + size > len(data):
        raise file.fault(start, f"a part of {len(data)} bytes, at least {at + size} are needed")
    return int.from_bytes(data[at : at + size], "little")


def root_of(file: File) -> int:
    """The address of the header of the root group."""
    version = number(file.data, 8, 1, file, 0)
    if version > 3:
        raise file.fault(8, f"version {version} of the superblock, those that Singe reads are 0 to 3; {AGAIN}")
    head = file.take(0, 48 if version >= 2 else 96 + 4 * version, "the superblock")
    sizes = 13 if version < 2 else 9
    if bytes(head[sizes : sizes + 2]) != b"\x08\x08":
        raise file.fault(sizes, f"offsets and lengths of {list(head[sizes : sizes + 2])} bytes, expected 8; {AGAIN}")
    base = 12 if version >= 2 else 24 + 4 * version
    if number(head, base, 8, file, 0):
        raise file.fault(base, f"the file begins elsewhere, expected a base address of 0; {AGAIN}")
    return number(head, base + (24 if version >= 2 else 40), 8, file, 0)


def messages_of(file: File, at: int) -> list[Message]:
    """The messages of the header at an address."""
    if file.data[at : at + 4] == b"OHDR":
        return list(_messages_2(file, at))
    return list(_messages_1(file, at))


def _messages_1(file: File, at: int) -> Iterator[Message]:
    head = file.take(at, 16, "a header")
    if head[0] != 1:
        raise file.fault(at, f"no header of an object: it begins with {bytes(head[:4])!r}")
    pending = [(at + 16, number(head, 8, 4, file, at))]
    while pending:
        start, size = pending.pop()
        block = file.take(start, size, "messages of a header")
        inner = 0
        while inner + 8 <= size:
            kind, length = number(block, inner, 2, file, start), number(block, inner + 2, 2, file, start)
            found = _message(file, start + inner, kind, block[inner + 4], block[inner + 8 :], length)
            inner += 8 + length
            if kind == MORE:
                pending.append(_continued(file, found))
            else:
                yield found


def _messages_2(file: File, at: int) -> Iterator[Message]:
    head = file.take(at, 6, "a header")
    if head[4] != 2:
        raise file.fault(at, f"version {head[4]} of a header, expected 1 or 2; {AGAIN}")
    flags = head[5]
    wide = 1 << (flags & 3)
    start = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    size = number(file.take(start, wide, "the size of a header"), 0, wide, file, start)
    pending = [(start + wide, size)]
    least = 6 if flags & 4 else 4
    while pending:
        start, size = pending.pop()
        block = file.take(start, size, "messages of a header")
        inner = 0
        while inner + least <= size:
            kind, length = block[inner], number(block, inner + 1, 2, file, start)
            found = _message(file, start + inner, kind, block[inner + 3], block[inner + least :], length)
            inner += least + length
            if kind == MORE:
                place, length = _continued(file, found)
                if length < 8:
                    raise file.fault(place, f"messages of a header in {length} bytes, at least 8 are needed")
                file.signed(place, b"OCHK", 4, "messages of a header")
                pending.append((place + 4, length - 8))
            else:
                yield found


def _message(file: File, at: int, kind: int, flags: int, rest: memoryview, length: int) -> Message:
    if length > len(rest):
        raise file.fault(at, f"a message of {length} bytes, of which its header has {len(rest)}")
    if flags & _SHARED and kind in (SPACE, TYPE, LAYOUT, FILTERS, LINK, LINKS):
        raise file.fault(at, f"a message that several objects share is not read; {AGAIN}")
    return Message(kind, rest[:length], at)


def _continued(file: File, m: Message) -> tuple[int, int]:
    return number(m.data, 0, 8, file, m.at), number(m.data, 8, 8, file, m.at)


def links_of(file: File, messages: list[Message], at: int) -> dict[str, int] | None:
    """The objects that a group links to, by name; None if the header is of something else."""
    found: dict[str, int] = {}
    is_group = False
    for m in messages:
        if m.kind == SYMBOLS:
            links = _symbols(file, number(m.data, 0, 8, file, m.at), number(m.data, 8, 8, file, m.at))
        elif m.kind == LINK:
            links = iter([_link(file, m)])
        elif m.kind == LINKS:
            flags = number(m.data, 1, 1, file, m.at)
            if number(m.data, 10 if flags & 1 else 2, 8, file, m.at) != NOWHERE:
                raise file.fault(m.at, f"a group whose links are in a heap of the newer layout is not read; {AGAIN}")
            links = iter(())
        else:
            continue
        is_group = True
        for raw, address in links:
            try:
                name = raw.decode()
            except UnicodeDecodeError:
                raise file.fault(m.at, f"the name {raw!r:.80} is not UTF-8") from None
            if name in found or name in ("", ".", "..") or "/" in name:
                raise file.fault(m.at, f"{name!r:.80} is no name, or comes twice in a group")
            found[name] = address
    return found if is_group else None


def _link(file: File, m: Message) -> tuple[bytes, int]:
    version, flags = number(m.data, 0, 1, file, m.at), number(m.data, 1, 1, file, m.at)
    at, kind = 2, 0
    if flags & 8:
        kind, at = number(m.data, at, 1, file, m.at), at + 1
    at += (8 if flags & 4 else 0) + (1 if flags & 16 else 0)
    if version != 1 or kind:
        raise file.fault(m.at, f"a soft or external link (version {version}, kind {kind}) is not read; {AGAIN}")
    wide = 1 << (flags & 3)
    length = number(m.data, at, wide, file, m.at)
    at += wide
    return bytes(m.data[at : at + length]), number(m.data, at + length, 8, file, m.at)


def _symbols(file: File, tree: int, heap: int) -> Iterator[tuple[bytes, int]]:
    """The links in a symbol table: its B-tree leads to nodes of entries, whose names are in a heap."""
    head = file.signed(heap, b"HEAP", 32, "names in a group")
    names = bytes(
        file.take(number(head, 24, 8, file, heap), number(head, 8, 8, file, heap), "the list of names in a group")
    )
    room = len(names)
    for node, _ in leaves(file, tree, 0, 8):
        top = file.signed(node, b"SNOD", 8, "entries of a group")
        entries = file.take(node + 8, 40 * number(top, 6, 2, file, node), "entries of a group")
        for at in range(0, len(entries), 40):
            start = number(entries, at, 8, file, node)
            end = names.find(b"\0", start) if start < len(names) else -1
            if end < 0:
                raise file.fault(
                    node, f"a name at byte {start} of {len(names)} bytes of names, which does not end there"
                )
            room -= end - start
            if room < 0:
                raise file.fault(node, "names in a group overlap")
            if number(entries, at + 16, 4, file, node) == 2:
                raise file.fault(
                    node, f"the soft link {names[start:end].decode(errors='replace')!r:.80} is not read; {AGAIN}"
                )
            yield names[start:end], number(entries, at + 8, 8, file, node)


def leaves(file: File, at: int, kind: int, key: int) -> Iterator[tuple[int, memoryview]]:
    """What the leaves of a B-tree lead to: addresses, each with the key before it, of so many bytes."""
    pending = [(at, -1)]
    while pending:
        at, level = pending.pop()
        head = file.signed(at, b"TREE", 24, "a node of a B-tree")
        if head[4] != kind or head[5] > _DEPTH or level not in (-1, head[5]):
            raise file.fault(
                at, f"a node of a B-tree of kind {head[4]} and level {head[5]}, expected {kind} and {level}"
            )
        count = number(head, 6, 2, file, at)
        body = file.take(at + 24, count * (key + 8), "a node of a B-tree")
        places = [(number(body, k + key, 8, file, at), body[k : k + key]) for k in range(0, len(body), key + 8)]
        if head[5] == 0:
            yield from places
        else:
            pending.extend((place, head[5] - 1) for place, _ in reversed(places))
