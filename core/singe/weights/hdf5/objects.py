"""The objects of an HDF5 file: its superblock, the headers of groups and datasets, and the links of groups.

Read are superblocks 0 to 3, headers 1 and 2, and groups whose links are in a symbol table or in their header. A sound
file's structures do not overlap. So all that is read is taken from as many bytes as the file has, and reading a file whose
links run in circles, or that lists a structure twice, ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...errors import FormatError
from ...late_dataclass import dataclass

SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
NOWHERE: Final = (1 << 64) - 1
"""The address of what is not there."""
AGAIN: Final = "write the file again with h5py's defaults (no libver, no track_order), as Keras does"

SPACE, LINKS, TYPE, LINK, LAYOUT = 0x01, 0x02, 0x03, 0x06, 0x08
FILTERS, ATTRIBUTE, MORE, SYMBOLS = 0x0B, 0x0C, 0x10, 0x11
"""Messages in headers."""
_SHARED: Final = 2
_DEPTH: Final = 32
"""Levels of a B-tree."""


@dataclass(frozen=True)
class FileSpan:
    """Some bytes of a file, the first of which is its byte `at`."""

    file: File
    data: memoryview
    at: int

    def number(self, at: int, size: int) -> int:
        """The little-endian number in so many bytes, from byte `at` of the part on."""
        if at + size > len(self.data):
            raise self.fault(f"a part of {len(self.data)} bytes, at least {at + size} are needed")
        return int.from_bytes(self.data[at : at + size], "little")

    def fault(self, text: str) -> FormatError:
        return self.file.fault(self.at, text)


@dataclass(frozen=True)
class Message(FileSpan):
    kind: int


class File:
    """The bytes of a file, of which each is taken once."""

    def __init__(self, data: memoryview, name: str) -> None:
        self.data, self.name = data, name
        self._left = len(data)

    def fault(self, at: int, text: str) -> FormatError:
        return FormatError(f"{self.name}, byte {at}: {text}")

    def take(self, at: int, size: int, what: str) -> FileSpan:
        if at > len(self.data) or size > len(self.data) - at:
            raise self.fault(at, f"{what} has {size} bytes, the file ends at byte {len(self.data)}")
        self._left -= size
        if self._left < 0:
            raise self.fault(at, f"{what} would be read twice: parts of the file overlap, or lead back to each other")
        return FileSpan(self, self.data[at : at + size], at)

    def signed(self, at: int, signature: bytes, size: int, what: str) -> FileSpan:
        """A part that begins with a signature of four bytes."""
        found = self.take(at, size, what)
        if found.data[:4] != signature:
            raise found.fault(f"{bytes(found.data[:4])!r}, expected {signature!r}: {what}")
        return found


def root_of(file: File) -> int:
    """The address of the header of the root group."""
    version = FileSpan(file, file.data, 0).number(8, 1)
    if version > 3:
        raise file.fault(8, f"version {version} of the superblock, those that Singe reads are 0 to 3; {AGAIN}")
    head = file.take(0, 48 if version >= 2 else 96 + 4 * version, "the superblock")
    at = 13 if version < 2 else 9
    sizes = head.data[at : at + 2]
    if sizes != b"\x08\x08":
        raise file.fault(at, f"offsets and lengths of {list(sizes)} bytes, expected 8; {AGAIN}")
    base = 12 if version >= 2 else 24 + 4 * version
    if head.number(base, 8):
        raise file.fault(base, f"the file begins elsewhere, expected a base address of 0; {AGAIN}")
    return head.number(base + (24 if version >= 2 else 40), 8)


def messages_of(file: File, at: int) -> list[Message]:
    """The messages of the header at an address."""
    if file.data[at : at + 4] == b"OHDR":
        return list(_messages_2(file, at))
    return list(_messages_1(file, at))


def _messages_1(file: File, at: int) -> Iterator[Message]:
    head = file.take(at, 16, "a header")
    if head.data[0] != 1:
        raise head.fault(f"no header of an object: it begins with {bytes(head.data[:4])!r}")
    pending = [(at + 16, head.number(8, 4))]
    while pending:
        block = file.take(*pending.pop(), "messages of a header")
        inner = 0
        while inner + 8 <= len(block.data):
            length = block.number(inner + 2, 2)
            found = _message(block, inner, 8, block.number(inner, 2), block.data[inner + 4], length)
            inner += 8 + length
            if found.kind == MORE:
                pending.append((found.number(0, 8), found.number(8, 8)))
            else:
                yield found


def _messages_2(file: File, at: int) -> Iterator[Message]:
    head = file.take(at, 6, "a header")
    version, flags = head.data[4], head.data[5]
    if version != 2:
        raise head.fault(f"version {version} of a header, expected 1 or 2; {AGAIN}")
    wide = 1 << (flags & 3)
    start = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    pending = [(start + wide, file.take(start, wide, "the size of a header").number(0, wide))]
    least = 6 if flags & 4 else 4
    while pending:
        block = file.take(*pending.pop(), "messages of a header")
        inner = 0
        while inner + least <= len(block.data):
            length = block.number(inner + 1, 2)
            found = _message(block, inner, least, block.data[inner], block.data[inner + 3], length)
            inner += least + length
            if found.kind == MORE:
                place, size = found.number(0, 8), found.number(8, 8)
                if size < 8:
                    raise file.fault(place, f"messages of a header in {size} bytes, at least 8 are needed")
                file.signed(place, b"OCHK", 4, "messages of a header")
                pending.append((place + 4, size - 8))
            else:
                yield found


def _message(block: FileSpan, at: int, head: int, kind: int, flags: int, length: int) -> Message:
    """The message at byte `at` of a block, behind a head of so many bytes."""
    rest, place = block.data[at + head :], block.at + at
    if length > len(rest):
        raise block.file.fault(place, f"a message of {length} bytes, of which its header has {len(rest)}")
    if flags & _SHARED and kind in (SPACE, TYPE, LAYOUT, FILTERS, LINK, LINKS):
        raise block.file.fault(place, f"a message that several objects share is not read; {AGAIN}")
    return Message(block.file, rest[:length], place, kind)


def links_of(messages: list[Message]) -> dict[str, int] | None:
    """The objects that a group links to, by name, of the messages of its header; None if that is of something else."""
    found: dict[str, int] = {}
    is_group = False
    for m in messages:
        if m.kind == SYMBOLS:
            links = _symbols(m.file, m.number(0, 8), m.number(8, 8))
        elif m.kind == LINK:
            links = iter([_link(m)])
        elif m.kind == LINKS:
            if m.number(10 if m.number(1, 1) & 1 else 2, 8) != NOWHERE:
                raise m.fault(f"a group whose links are in a heap of the newer layout is not read; {AGAIN}")
            links = iter(())
        else:
            continue
        is_group = True
        for raw, address in links:
            try:
                name = raw.decode()
            except UnicodeDecodeError:
                raise m.fault(f"the name {raw!r:.80} is not UTF-8") from None
            if name in found or name in ("", ".", "..") or "/" in name:
                raise m.fault(f"{name!r:.80} is no name, or comes twice in a group")
            found[name] = address
    return found if is_group else None


def _link(m: Message) -> tuple[bytes, int]:
    version, flags = m.number(0, 1), m.number(1, 1)
    at, kind = 2, 0
    if flags & 8:
        kind, at = m.number(at, 1), at + 1
    at += (8 if flags & 4 else 0) + (1 if flags & 16 else 0)
    if version != 1 or kind:
        raise m.fault(f"a soft or external link (version {version}, kind {kind}) is not read; {AGAIN}")
    wide = 1 << (flags & 3)
    length = m.number(at, wide)
    at += wide
    return bytes(m.data[at : at + length]), m.number(at + length, 8)


def _symbols(file: File, tree: int, heap: int) -> Iterator[tuple[bytes, int]]:
    """The links in a symbol table: its B-tree leads to nodes of entries, whose names are in a heap."""
    head = file.signed(heap, b"HEAP", 32, "names in a group")
    names = bytes(file.take(head.number(24, 8), head.number(8, 8), "the list of names in a group").data)
    room = len(names)
    for place, _ in leaves(file, tree, 0, 8):
        node = file.signed(place, b"SNOD", 8, "entries of a group")
        entries = file.take(place + 8, 40 * node.number(6, 2), "entries of a group")
        for at in range(0, len(entries.data), 40):
            start = entries.number(at, 8)
            end = names.find(b"\0", start) if start < len(names) else -1
            if end < 0:
                raise node.fault(f"a name at byte {start} of {len(names)} bytes of names, which does not end there")
            room -= end - start
            if room < 0:
                raise node.fault("names in a group overlap")
            if entries.number(at + 16, 4) == 2:
                raise node.fault(
                    f"the soft link {names[start:end].decode(errors='replace')!r:.80} is not read; {AGAIN}"
                )
            yield names[start:end], entries.number(at + 8, 8)


def leaves(file: File, at: int, kind: int, key: int) -> Iterator[tuple[int, FileSpan]]:
    """What the leaves of a B-tree lead to: addresses, each with the key before it, of so many bytes."""
    pending = [(at, -1)]
    while pending:
        at, wanted = pending.pop()
        head = file.signed(at, b"TREE", 24, "a node of a B-tree")
        found, level = head.data[4], head.data[5]
        if found != kind or level > _DEPTH or wanted not in (-1, level):
            raise head.fault(f"a node of a B-tree of kind {found} and level {level}, expected {kind} and {wanted}")
        body = file.take(at + 24, head.number(6, 2) * (key + 8), "a node of a B-tree")
        entries = range(0, len(body.data), key + 8)
        places = [(body.number(k + key, 8), FileSpan(file, body.data[k : k + key], body.at + k)) for k in entries]
        if level == 0:
            yield from places
        else:
            pending.extend((place, level - 1) for place, _ in reversed(places))
