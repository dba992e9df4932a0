"""The tokens with which models end an answer: by the ids that a file names, and by their texts, since files name too few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

TEXTS: Final = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>",
    "<EOT>", "<|eot|>", "<|return|>", "<|call|>", "</s>", "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "<eos>",
)  # fmt: skip
"""What ends a turn in the templates of models."""
CHANNELS: Final = frozenset({"<|return|>", "<|call|>"})
"""Where a vocabulary has both, <|end|> ends a message of a turn that may have several."""


def end_of_turn_ids(marks: Mapping[str, int], named: Iterable[int]) -> frozenset[int]:
    """The ids that end a turn, of the marks of a vocabulary and the ids that a file names."""
    ids = {marks[text] for text in TEXTS if text in marks} | set(named)
    if marks.keys() >= CHANNELS:
        ids.discard(marks.get("<|end|>", -1))
    return frozenset(ids)
