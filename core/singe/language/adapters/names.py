"""The names that other programs give to the matrices of a decoder, and the order in which they hold the rows of these."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from ..description import DecoderDescription

_CHOICE: Final = re.compile(r"\[(\w+)\]|\((\w+(?:\|\w+)+)\)")
"""The places in a pattern of Architecture.tensors that stand for one of several words."""
_NUMBER: Final = r"(\d+)"
_PREFIX: Final = re.compile(r"\(\?:(.*?)\)\?")
_ROTATED: Final = ("attn_q", "attn_k")


def hugging_names(d: DecoderDescription) -> Mapping[str, str]:
    """GGUF's names of matrices ↦ those in a folder of Hugging Face, both without ".weight"."""
    found: dict[str, str] = {}
    for pattern, to in d.architecture.tensors.items():
        for i in range(len(d.layers)) if _NUMBER in pattern else (0,):
            for name in _spelled(pattern.replace(_NUMBER, str(i))):
                match = re.fullmatch(pattern, name)
                assert match is not None
                found[match.expand(to)] = name  # a family's own rows come last
    return found


def _spelled(pattern: str) -> Iterator[str]:
    """The names that a pattern matches, with what it leaves open."""
    plain = _PREFIX.sub(r"\1", pattern)
    parts = _CHOICE.split(plain.replace("([", "[").replace("])", "]"))
    # of each choice the split gives two groups, of which one is None
    texts, choices = parts[::3], list(zip(parts[1::3], parts[2::3], strict=True))
    words = [list(letters) if letters else several.split("|") for letters, several in choices]
    for chosen in itertools.product(*words):
        name = texts[0] + "".join(word + text for word, text in zip(chosen, texts[1:], strict=True))
        yield name.replace("\\", "")


def target_of(hugging_name: str) -> str:
    """What PEFT calls a kind of matrix: the last part of its name."""
    return hugging_name.rpartition(".")[2]


def turned(rows: np.ndarray, name: str, d: DecoderDescription, from_adjacent: bool, to_adjacent: bool) -> np.ndarray:
    """The rows that make queries and keys, in the order in which rotated pairs are neighbours, or halves."""
    axes = turned_axes(len(rows), name, d, from_adjacent, to_adjacent)
    return rows if axes is None else np.ascontiguousarray(rows.reshape(*axes, -1).swapaxes(1, 2).reshape(rows.shape))


def turned_axes(
    count: int, name: str, d: DecoderDescription, from_adjacent: bool, to_adjacent: bool
) -> list[int] | None:
    """The sizes of three axes of rows, of which `turned` exchanges the last two; None if the rows stay."""
    _, number, kind = name.split(".") if name.count(".") == 2 else ("", "", "")
    if from_adjacent == to_adjacent or kind not in _ROTATED:
        return None
    heads = d.heads if kind == "attn_q" else d.layers[int(number)].kv_heads
    half = count // heads // 2
    return [heads, half, 2] if from_adjacent else [heads, 2, half]
