"""The texts that a search looks through: their vectors, as numbers or codes, and the texts themselves, which travel with the task.

A vector is found by its product with the query's. Of more than LARGE texts only those are compared whose signs agree with the query's in most
places: so many as the setting `reach` says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...errors import FormatError, InputError
from ...late_dataclass import dataclass
from ..medium import Files

VECTORS: Final = "index.bin"
TEXTS: Final = "index.json"
CODES: Final = ("float32", "int8")
LARGE: Final = 20_000
MAX_TEXTS: Final = 1 << 24
_BITS_OF_BYTES: Final = np.array([bin(k).count("1") for k in range(256)], np.uint8)


@dataclass(frozen=True)
class TextIndex:
    """texts: in the order of their numbers; table: their vectors, float32 (texts, dimensions); codes: how these are stored, one of CODES; bits: the
    signs of the vectors."""

    texts: Sequence[str]
    table: np.ndarray
    codes: str
    bits: np.ndarray

    @staticmethod
    def of(texts: Sequence[str], table: np.ndarray, codes: str) -> TextIndex:
        if codes not in CODES:
            raise InputError(f"index: codes {codes!r:.40}, expected {' or '.join(CODES)}")
        if codes == "int8":
            table = _decoded(*_encoded(table))
        return TextIndex(texts, table, codes, _signs(table))

    def files(self) -> Files:
        """As they travel with a task."""
        facts = {"codes": self.codes, "dimensions": self.table.shape[1], "texts": list(self.texts)}
        data = self.table.astype("<f4").tobytes()
        if self.codes == "int8":
            scales, numbers = _encoded(self.table)
            data = scales.astype("<f4").tobytes() + numbers.tobytes()
        return {TEXTS: json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode(), VECTORS: data}

    def nearest(self, query: np.ndarray, top: int, reach: int, among: Sequence[int] | None) -> list[tuple[int, float]]:
        """The numbers of the texts that are most alike, and the cosines."""
        rows = np.arange(len(self.texts)) if among is None else np.asarray(sorted(set(among)), np.int64)
        if reach and len(rows) > max(LARGE, reach):
            signs = _signs(query[None])[:, 0]
            apart = np.zeros(len(rows), np.uint16)
            for own, sign in zip(self.bits if among is None else self.bits[:, rows], signs, strict=True):
                apart += _ones(own ^ sign)
            rows = rows[np.argpartition(apart, max(reach, top) - 1)[: max(reach, top)]]
            rows.sort()
        whole = among is None and len(rows) == len(self.texts)
        scores = (self.table if whole else self.table[rows]) @ query
        top = min(top, len(rows))
        best = np.argpartition(-scores, top - 1)[:top] if 0 < top < len(rows) else np.arange(len(rows))
        order = best[np.lexsort((rows[best], -scores[best]))]
        return [(int(rows[k]), float(scores[k])) for k in order]


def read_index(files: Files) -> TextIndex | None:
    """The index that travels with a task; None if it has none yet. Its files may hold anything."""
    if TEXTS not in files and VECTORS not in files:
        return None
    try:
        facts = json.loads(files[TEXTS])
        texts, codes, width = facts["texts"], facts["codes"], facts["dimensions"]
        if codes not in CODES or type(width) is not int or not 0 < width < 1 << 16 or not isinstance(texts, list):
            raise ValueError("codes, dimensions or texts are not what they should be")
        if len(texts) > MAX_TEXTS or not all(isinstance(text, str) for text in texts):
            raise ValueError("the texts are not texts")
        data, count = files[VECTORS], len(texts)
        expected = count * width * 4 if codes == "float32" else count * (width + 4)
        if len(data) != expected:
            raise ValueError(f"{len(data)} bytes of vectors, expected {expected}")
        if codes == "float32":
            table = np.frombuffer(data, "<f4").reshape(count, width).astype(np.float32)
        else:
            numbers = np.frombuffer(data, np.int8, offset=4 * count).reshape(count, width)
            table = _decoded(np.frombuffer(data, "<f4", count), numbers)
        if not np.isfinite(table).all():
            raise ValueError("numbers that are not finite")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f"{TEXTS}: not the index of a search: {error}; make it once more") from None
    return TextIndex(texts, table, codes, _signs(table))


def _signs(table: np.ndarray) -> np.ndarray:
    """The signs of vectors as bits, in words: (words, vectors)."""
    packed = np.packbits(table > 0, axis=1)
    whole = np.zeros((len(table), -(-packed.shape[1] // 8) * 8), np.uint8)
    whole[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(whole.view(np.uint64).T)


def _ones(words: np.ndarray) -> np.ndarray:
    """How many bits of each are 1."""
    counted: Any = getattr(np, "bitwise_count", None)  # from NumPy 2 on
    if counted is not None:
        return counted(words)
    return _BITS_OF_BYTES[words.view(np.uint8).reshape(-1, 8)].sum(1, dtype=np.uint8)


def _encoded(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scale of each vector, and its numbers from −127 to 127."""
    scales = np.maximum(np.abs(table).max(1, initial=0.0), 1e-12).astype(np.float32) / np.float32(127)
    return scales, np.round(table / scales[:, None]).astype(np.int8)


def _decoded(scales: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.float32) * scales.astype(np.float32)[:, None]


def joined(one: TextIndex | None, texts: Sequence[str], table: np.ndarray, codes: str) -> TextIndex:
    """An index with more texts, which have the numbers after its own."""
    if one is None:
        return TextIndex.of(list(texts), table, codes)
    return TextIndex.of([*one.texts, *texts], np.concatenate([one.table, table]), one.codes)


def checked_texts(texts: Any) -> list[str]:
    """Texts to look through."""
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"index: got {texts!r:.60}, expected a list of texts")
    return list(texts)
