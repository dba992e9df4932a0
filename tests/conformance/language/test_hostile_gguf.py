"""Changed GGUF files are loaded and read, or refused with an error of Singe, in bounded memory."""

from __future__ import annotations

import random
import re
import struct
import tracemalloc
from pathlib import Path
from typing import Final

import pytest
from tiny_language import tiny_gguf

import singe as sg
from singe.errors import SingeError

CHANGES: Final = 50
"""In each of the forty parts."""
TRACED: Final = 10
"""Of so many files, the memory of one is traced, which takes four times as long."""
MAX_BYTES: Final = 64 << 20
"""What loading and reading a file of half a megabyte may take: the files as they are take 4 MB."""
CASES: Final = ("llama3", "gemma2", "lfm2", "qwen3")
NUMBERS: Final = (0, 1, 2, 3, 5, 7, 63, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
SIZE_KEYS: Final = re.compile(
    rb"\.(?:block_count|context_length|embedding_length|feed_forward_length|attention\.[a-z_]+|rope\.[a-z_.]+|vocab_size|[a-z_.]*(?:scale|softcapping|l_cache))"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, int, list[int]]]:
    """Of each file its bytes, where its header ends or a little behind, and where the values of sizes and constants are."""
    folder, made = tmp_path_factory.mktemp("files"), list[tuple[bytes, int, list[int]]]()
    for case in CASES:
        data = tiny_gguf(folder / f"{case}.gguf", case).read_bytes()
        end = data.index(b"blk.0.") + 12_000
        made.append((data, end, [m.end() + 4 for m in SIZE_KEYS.finditer(data, 0, end)]))
    return made


def number(draw: random.Random) -> bytes:
    """A size, a count, an offset or a constant."""
    value = draw.choice(NUMBERS) if draw.random() < 0.7 else draw.getrandbits(draw.choice((4, 8, 16, 32, 64)))
    if draw.random() < 0.1:
        return struct.pack("<f", draw.choice((0.0, -1.0, 1e-45, 1e38, float("inf"), float("nan"))))
    return struct.pack("<Q", value)[: draw.choice((1, 4, 8))]


def changed(data: bytes, end: int, values: list[int], draw: random.Random) -> bytes:
    """A file with one to three changes."""
    found = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        way = draw.randrange(8)
        if way == 0:
            del found[draw.randrange(len(found) if draw.random() < 0.3 else end) :]
        elif way == 1:
            at = draw.randrange(end)
            found[at : at + draw.randrange(1, 9)] = draw.randbytes(draw.randrange(9))
        elif way == 2:
            start, count = draw.randrange(end), draw.randrange(1, 200)
            at = draw.randrange(end)
            found[at : at + count] = data[start : start + count]
        else:
            at = draw.randrange(end) if way < 5 else draw.choice(values)
            new = number(draw)
            found[at : at + len(new)] = new
    return bytes(found)


def use(path: Path) -> bool:
    """Whether a file could be loaded and read."""
    try:
        llm = sg.language.load(path, "numpy", context=16)
        assert llm.session().feed([5, 6]).shape == (llm.description.vocabulary,)
        assert llm.tokenizer.encode("hello") is not None
    except SingeError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("part", range(40))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_changed_files_are_read_or_refused(
    part: int, files: list[tuple[bytes, int, list[int]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINGE_CACHE", "off")
    draw, outcomes = random.Random(part), list[bool]()
    path = tmp_path / "changed.gguf"
    for k in range(CHANGES):
        path.write_bytes(changed(*draw.choice(files), draw))
        if k % TRACED:
            outcomes.append(use(path))
            continue
        tracemalloc.start()
        try:
            outcomes.append(use(path))
            assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
        finally:
            tracemalloc.stop()
    assert {*outcomes} == {True, False}
