"""Texts as examples for training: tokens, those that follow them, and which of these the loss counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...lazy_names import LateModule
from ...nn import Module
from ...tensors.tensor import Tensor

if TYPE_CHECKING:
    from ... import data
    from ..llm import LanguageModel
else:
    data = LateModule("data")

Conversation = Sequence[Mapping[str, Any]]


def examples(llm: LanguageModel, texts: str | Sequence[str | Conversation], length: int = 256) -> data.Dataset:
    """Texts, or conversations (lists of messages), as a Dataset of (tokens, labels, mask), each of so many numbers: a label is the token
    that follows, and the mask is 1 where the loss counts it: of a conversation, in the assistant's answers. What is longer becomes
    several examples."""
    if type(length) is not int or not 1 <= length <= llm.context:
        raise InputError(
            f"examples: got length={length!r:.40}, expected a number of tokens from 1 to {llm.context}, the model's context"
        )
    rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for text in [texts] if isinstance(texts, str) else texts:
        ids, counted = _of_text(llm, text) if isinstance(text, str) else _of_conversation(llm, text)
        for at in range(0, len(ids) - 1, length):
            part, mask = ids[at : at + length + 1], counted[at + 1 : at + length + 1]
            if any(mask):
                rows.append((_filled(part[:-1], length), _filled(part[1:], length), _filled(mask, length)))
    if not rows:
        raise InputError("examples: the texts have no token that follows another one; give longer ones")
    tokens, labels, mask = (np.stack(column) for column in zip(*rows, strict=True))
    return data.Dataset.of((tokens.astype(np.int32), labels.astype(np.int32), mask.astype(np.float32)))


def _filled(values: Sequence[int], length: int) -> np.ndarray:
    return np.pad(np.asarray(values), (0, length - len(values)))


def _of_text(llm: LanguageModel, text: str) -> tuple[list[int], list[int]]:
    ids = [*llm.tokenizer.encode(text)]
    if llm.tokenizer.eos is not None and ids[-1:] != [llm.tokenizer.eos]:
        ids.append(llm.tokenizer.eos)
    return ids, [1] * len(ids)


def _of_conversation(llm: LanguageModel, messages: Conversation) -> tuple[list[int], list[int]]:
    def encoded(count: int, prompt: bool) -> list[int]:
        text = llm.template(messages[:count], add_generation_prompt=prompt)
        return [*llm.tokenizer.encode(text, add_special=False)]

    ids = encoded(len(messages), False)
    counted = [0] * len(ids)
    for i, message in enumerate(messages):
        if message.get("role") == "assistant":
            before, after = encoded(i, True), encoded(i + 1, False)
            if ids[: len(before)] != before or ids[: len(after)] != after:
                raise InputError(
                    "examples: the model's template writes the beginning of this conversation in another way than the whole, so that "
                    "it is not known which tokens are answers; give texts in place of messages"
                )
            counted[len(before) : len(after)] = [1] * (len(after) - len(before))
    return ids, counted


def next_token_loss(model: Module, tokens: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The mean of −log of the chance of each label, over those that the mask counts: the loss function for `TrainStep` and `Learner`."""
    scores = model(tokens)
    losses = scores.reshape(-1, scores.shape[-1]).cross_entropy(labels.reshape(-1), reduction="none")
    counted = mask.reshape(-1)
    return (losses * counted).sum() / counted.sum().maximum(1.0)
