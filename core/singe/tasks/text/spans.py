"""Models that are given labels with a text, as GLiNER: the labels stand before the text, its words are numbered, and each span of a few words has
a score for each label.

The Graph takes `words`, int32 (rows, tokens), at the first token of each word its number from 1 on, otherwise 0, and `spans`, int32 (rows,
places, 2), for each word as many spans as the longest has words, with the first and the last word, from 0 on; −1 where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import FormatError, InputError
from ...late_dataclass import dataclass
from ...model.model import Model
from ...tensors.tensor import Tensor

if TYPE_CHECKING:
    from ...language.tokenizing import Tokenizer
    from .spec import TextInput

SPANS: Final = "spans"
"""The form of these models, of a TaskKind."""
MARKS: Final = ("<<ENT>>", "<<SEP>>")
"""What stands before each label, and before the text, where no file says it."""
MOST_WORDS: Final = 12
"""How many words a span has at most, where neither the model nor a file says it."""
_WORD: Final = re.compile(r"\w+(?:[-_]\w+)*|\S")
_FROM: Final[Mapping[str, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]]] = {
    "input_ids": lambda ids, mask, words, spans: ids,
    "attention_mask": lambda ids, mask, words, spans: mask,
    "words_mask": lambda ids, mask, words, spans: words,
    "text_lengths": lambda ids, mask, words, spans: words.amax(1, keepdims=True),
    "span_idx": lambda ids, mask, words, spans: spans.clip(0, None),
    "span_mask": lambda ids, mask, words, spans: spans[:, :, 1] >= 0,
}
"""The inputs of such a model ↦ how each is made of those of the task's Graph."""
_KNOWN: Final = {"words_splitter_type": "whitespace", "subtoken_pooling": "first"}
"""Of GLiNER's own file, what these models do, where it may say something else."""


@dataclass(frozen=True)
class LabelledRow:
    """A window of a text behind the labels. ids: with marks; words: for each token the number of the word that begins with it, or 0; start,
    count: of its words in the text."""

    ids: Sequence[int]
    words: Sequence[int]
    start: int
    count: int


def facts_of_config(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What GLiNER's own file says, as fields of TextInput."""
    for key, known in _KNOWN.items():
        if config.get(key, known) != known:
            raise FormatError(f"{name}: {key} is {config[key]!r:.40}, expected {known!r}: others are not known")
    found: dict[str, Any] = {}
    if "max_width" in config:
        found["width"] = config["max_width"]
    if "ent_token" in config or "sep_token" in config:
        found["marks"] = (config.get("ent_token", MARKS[0]), config.get("sep_token", MARKS[1]))
    return found


def check_inputs(model: Model, kind: str) -> None:
    """Refuse a model that takes something else."""
    names = {x.name for x in model.inputs}
    if names == _FROM.keys():
        return
    why = ""
    if any(name.startswith("labels_") for name in names):
        why = "; one that reads labels by an encoder of their own is not taken"
    elif "words_mask" in names and "span_idx" not in names:
        why = "; one that scores tokens in place of spans (span_mode token_level) is not taken"
    raise InputError(
        f"{kind}: a model of spans is expected, as GLiNER's, whose inputs are {', '.join(_FROM)}; its inputs are "
        f"{', '.join(map(str, model.inputs)) or 'none'}{why}"
    )


def fed(model: Model, inputs: Mapping[str, Tensor]) -> list[Tensor]:
    """The model's inputs, of those of the task's Graph."""
    given = [inputs[name] for name in ("ids", "mask", "words", "spans")]
    return [_FROM[x.name](*given).to(dtype=x.dtype.name) for x in model.inputs]


def labelled(
    text: str, labels: Sequence[str], tokenizer: Tokenizer, spec: TextInput
) -> tuple[list[LabelledRow], list[tuple[int, int]]]:
    """The windows of a text, each with all labels, and where its words stand. A window begins as many words before the end of the one before it
    as a span has at most, so that each span is in one."""

    def ids_of(part: str) -> list[int]:
        return tokenizer.encode(part, add_special=False, parse_special=False)

    before_label, before_text = (_mark(tokenizer, name) for name in spec.marks)
    head = list(tokenizer.before)
    for label in labels:
        own = ids_of(label)
        if before_label in own:
            raise InputError(
                f"text: the label {label!r:.60} has the mark {spec.marks[0]} in it, which stands before labels"
            )
        head += [before_label, *own]
    head.append(before_text)
    after = tokenizer.after
    found = [(ids, place.span()) for place in _WORD.finditer(text) if (ids := ids_of(place[0]))]
    room = spec.length - len(head) - len(after)
    rows: list[LabelledRow] = []
    start = 0
    while start < len(found):
        ids: list[int] = []
        words: list[int] = []
        end = start
        while end < len(found) and len(ids) + len(found[end][0]) <= room:
            own = found[end][0]
            ids += own
            words += [end - start + 1, *[0] * (len(own) - 1)]
            end += 1
        if end < len(found) and end - start <= spec.width:
            raise InputError(
                f"text: of {spec.length} tokens, {spec.length - room} are labels and marks: no room is left for more than {spec.width} words "
                "of the text"
            )
        rows.append(
            LabelledRow([*head, *ids, *after], [*[0] * len(head), *words, *[0] * len(after)], start, end - start)
        )
        start = end if end == len(found) else end - spec.width
    return rows, [place for _, place in found]


def _mark(tokenizer: Tokenizer, name: str) -> int:
    ids = tokenizer.encode(name, add_special=False)
    if len(ids) != 1:
        raise InputError(
            f"text: the tokenizer has no token {name!r:.40}, which stands before labels or before the text"
        )
    return ids[0]


def spans_of(counts: Sequence[int], width: int) -> np.ndarray:
    """The spans of rows with so many words."""
    first, more = np.meshgrid(np.arange(max(counts)), np.arange(width), indexing="ij")
    both = np.stack([first, first + more], -1).reshape(1, -1, 2)
    return np.where(both[..., 1:] < np.reshape(counts, (-1, 1, 1)), both, -1).astype(np.int32)
