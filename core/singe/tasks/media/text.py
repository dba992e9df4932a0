"""Texts: a task's Graph takes the tokens of several at once. A text that is longer than the model is read in windows, never cut.

The Graph's inputs are `ids`, `mask` (1 where a token is, 0 behind it) and `types` (1 in the second of a pair), int32 (rows, tokens). Texts
of a call go through it in batches of similar lengths, so that few tokens are padding. An output whose name begins with "token_" has
something for each token; others are of rows.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import FormatError, InputError
from ...late_dataclass import dataclass
from ...model.model import Model
from ...shapes import Size, show
from ...tensors.functions.creation import arange
from ...tensors.tensor import Tensor
from ..answers import Answer, Arrays
from ..medium import Files, Fitted, Following, Medium, Run, Wishes
from ..text_spec import TextInput
from .text_files import READS, TOKENIZER, told

if TYPE_CHECKING:
    from ...language.tokenizing import Tokenizer
    from ..kinds import TaskKind
    from ..spec import TaskSpec

_log: Final = logging.getLogger("singe")
ROWS: Final = 32
TOKENS: Final = 4096
"""At most so many rows, and so many tokens with their padding, are in a batch."""
BY_TOKEN: Final = "token_"
_ROLES: Final = {"mask": "mask", "type": "types", "segment": "types", "ids": "ids"}
"""What the name of a model's input holds ↦ the Graph's input that it takes, the first that fits."""
_POSITIONS: Final = "position"


@dataclass(frozen=True)
class TextFrame:
    """What heads are told of the tokens. mask: float32 (rows, tokens), 1 where a token is."""

    mask: Tensor


@dataclass(frozen=True)
class Reading:
    """A source that was read. text: what was asked of it, with its prompt; rows: the ids of each window, with marks; inner: how many tokens
    of a window are neither marks nor in the window before it."""

    source: Any
    rows: Sequence[Sequence[int]]
    inner: Sequence[int]


def _fit(model: Model, kind: TaskKind, wishes: Wishes) -> Fitted:
    places: list[Callable[[Mapping[str, Tensor]], Tensor]] = []
    for x in model.inputs:
        shape = tuple(x.shape or ())
        role = next((role for part, role in _ROLES.items() if part in x.name.lower()), None)
        if _POSITIONS in x.name.lower():
            role = _POSITIONS
        if role is None or len(shape) != 2:
            told = ", ".join(map(str, model.inputs)) or "none"
            raise InputError(
                f"{kind.name}: the model takes no text: the ids, the mask and the types of tokens are expected, (rows, tokens); its inputs "
                f"are {told}"
            )
        if not all(isinstance(d, Size) for d in shape):
            raise InputError(
                f"{kind.name}: {x.name} is {show(shape)}, expected open sizes; export the model with dynamic axes"
            )
        places.append(_of(role, x.dtype.name))
    graph = model.graph()
    preparation = TextInput(length=kind.size)

    def feed(given: Mapping[str, Tensor], spec: TextInput) -> tuple[Sequence[Tensor], TextFrame]:
        return [place(given) for place in places], TextFrame(given["mask"].to(dtype="float32"))

    return Fitted(graph, preparation, feed, files={TOKENIZER: _tokenizer_file(kind, wishes)})


def _of(role: str, dtype: str) -> Callable[[Mapping[str, Tensor]], Tensor]:
    def place(given: Mapping[str, Tensor]) -> Tensor:
        if role != _POSITIONS:
            return given[role].to(dtype=dtype)
        ids = given["ids"]
        return (arange(ids.shape[1]).to(dtype=dtype).unsqueeze(0) + (ids * 0).to(dtype=dtype)).to(dtype=dtype)

    return place


def _tokenizer_file(kind: TaskKind, wishes: Wishes) -> bytes:
    path = wishes.files.get(TOKENIZER)
    if path is None:
        raise InputError(
            f"{kind.name}: no {TOKENIZER}: expected it beside the model, in a folder of Hugging Face, or as tokenizer="
        )
    return path.read_bytes()


# --- reading ----------------------------------------------------------------------------------------------------------


def _open(kind: TaskKind, info: TaskSpec, files: Files) -> Callable[[Run, Mapping[str, Any]], Following]:
    tokenizer = _tokenizer_of(files)
    spec: Any = info.preparation

    def begin(run: Run, settings: Mapping[str, Any]) -> Following:
        def several(sources: Sequence[Any]) -> list[Answer]:
            readings = [read(source, kind.asks(source, info, settings), tokenizer, spec) for source in sources]
            for reading in readings:
                if len(reading.rows) > 1:
                    _log.info(
                        "%s: a text of %d tokens is read in %d windows",
                        kind.name,
                        sum(reading.inner),
                        len(reading.rows),
                    )
            outputs = run_rows(run, [row for reading in readings for row in reading.rows])
            answers: list[Answer] = []
            at = 0
            for reading in readings:
                own = outputs[at : at + len(reading.rows)]
                at += len(reading.rows)
                answers.append(kind.answer(_stacked(own), info, reading, settings))
            return answers

        return several

    return begin


def _tokenizer_of(files: Files) -> Tokenizer:
    """The tokenizer that travels with a task."""
    from ...language.tokenizing import Tokenizer  # noqa: PLC0415 (pictures need none)

    if TOKENIZER not in files:
        raise FormatError(f"task: no {TOKENIZER} travels with it; export or save it once more")
    try:
        values = json.loads(files[TOKENIZER])
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{TOKENIZER} is no JSON: {error}") from None
    return Tokenizer.of_values(values)


def read(source: Any, text: Any, tokenizer: Tokenizer, spec: TextInput) -> Reading:
    """The windows of a text."""
    if not isinstance(text, str):
        raise InputError(f"text: got a {type(text).__name__}, expected a text, or a list of texts")
    ids = tokenizer.encode(text, add_special=False, parse_special=False)
    before, after = tokenizer.before, tokenizer.after
    room = spec.length - len(before) - len(after)
    if room <= spec.overlap:
        raise InputError(
            f"text: length {spec.length} leaves no room for tokens beside the marks and an overlap of {spec.overlap}"
        )
    step = room - spec.overlap
    starts = range(0, max(1, len(ids) - spec.overlap), step)
    rows = [[*before, *ids[start : start + room], *after] for start in starts]
    inner = [min(room, len(ids) - start) - (spec.overlap if start else 0) for start in starts]
    return Reading(source, rows, inner)


def run_rows(run: Run, rows: Sequence[Sequence[int]]) -> list[dict[str, np.ndarray]]:
    """The outputs of each row."""
    order = sorted(range(len(rows)), key=lambda k: len(rows[k]))
    found: list[dict[str, np.ndarray]] = [{} for _ in rows]
    at = 0
    while at < len(order):
        count = 1
        while at + count < len(order) and count < ROWS and (count + 1) * len(rows[order[at + count]]) <= TOKENS:
            count += 1
        batch = order[at : at + count]
        at += count
        longest = max(1, *(len(rows[k]) for k in batch), 1)
        ids = np.zeros((count, longest), np.int32)
        mask = np.zeros((count, longest), np.int32)
        for place, k in enumerate(batch):
            ids[place, : len(rows[k])] = rows[k]
            mask[place, : len(rows[k])] = 1
        outputs = run({"ids": ids, "mask": mask, "types": np.zeros_like(ids)})
        for place, k in enumerate(batch):
            for name, values in outputs.items():
                found[k][name] = values[place, : len(rows[k])] if name.startswith(BY_TOKEN) else values[place]
    return found


def _stacked(rows: Sequence[Mapping[str, np.ndarray]]) -> Arrays:
    """The outputs of the rows of one text: a list of those that are by token, which are of different lengths, is an array of objects."""
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


TEXT: Final = Medium(
    "text", TextInput, frozenset(("length", "overlap", "prompts", "prompt")),
    lambda spec: dict.fromkeys(("ids", "mask", "types"), ("int32", ("rows", "tokens"))), _fit, _open, READS, told, in_pages=False,
)  # fmt: skip
