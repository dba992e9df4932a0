"""Texts: a task's Graph takes the tokens of several at once. A text that is longer than the model is read in windows, never cut.

The Graph's inputs are `ids`, `mask` (1 where a token is, 0 behind it) and `types` (1 in the second of a pair), int32 (rows, tokens); in place of
types `words` and `spans` where labels stand before the text (spans.py). Texts of a call go through it in batches of similar lengths, so that few
tokens are padding. An output whose name begins with "token_" has something for each token, with "word_" for each word; others are of rows.
"""

from __future__ import annotations

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
from ..medium import Files, Fitted, Following, Inputs, Medium, Run, Wishes
from .files import CONFIG, READS, TOKENIZER, check_modules, tokenizer_file, wishes_with_files
from .spans import MARKS, MOST_WORDS, SPANS, check_inputs, fed, labelled, spans_of
from .spec import MAX_LENGTH, TextInput

if TYPE_CHECKING:
    from ...language.tokenizing import Tokenizer
    from ...runtime.device import Device
    from ..kinds import TaskKind
    from ..places import Place
    from ..spec import TaskSpec

_log: Final = logging.getLogger("singe")
ROWS: Final = 32
TOKENS: Final = 4096
"""At most so many rows, and so many tokens with their padding, are in a batch."""
BY_TOKEN: Final = "token_"
BY_WORD: Final = "word_"
_ROLES: Final = {"mask": "mask", "type": "types", "segment": "types", "ids": "ids"}
"""What the name of a model's input holds ↦ the Graph's input that it takes, the first that fits."""
_POSITIONS: Final = "position"


@dataclass(frozen=True)
class TextFrame:
    """What heads get of the tokens beside a model's outputs. mask: float32 (rows, tokens), 1 where a token is."""

    mask: Tensor


@dataclass(frozen=True)
class Asking:
    """What is read of a source: a text, or a pair of which the longer is read in windows. marks: whether names of marks in it are marks;
    located: whether the answer asks where tokens stand; labels: those that stand before it, of a model of spans."""

    text: str
    second: str | None = None
    marks: bool = False
    located: bool = False
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class TokenRow:
    """A window of a question. ids: with marks; second: where the second of a pair begins, and kind: the type of its tokens; question: its
    number. Of the text that is in windows: `start` is the number of its first token here, which stands at `first`; `count` are here, of which
    `inner` are in no window before. Behind labels, these count words, and `words` has for each token the number of the word it begins, or 0."""

    ids: Sequence[int]
    second: int
    kind: int
    question: int
    start: int
    first: int
    count: int
    inner: int
    words: Sequence[int] = ()


@dataclass(frozen=True)
class Reading:
    """A source that was read. held: what the kind keeps of the files that travel with the task; spans: of located questions, where each
    token stands, of those with labels each word."""

    source: Any
    questions: Sequence[Asking]
    rows: Sequence[TokenRow]
    spans: Sequence[Sequence[tuple[int, int]]]
    tokenizer: Tokenizer
    held: Any

    @property
    def windows(self) -> int:
        """In how many parts the longest question was read."""
        counts = [row.question for row in self.rows]
        return max([1, *(counts.count(k) for k in range(len(self.questions)))])

    def mean(self, values: np.ndarray, question: int = 0) -> np.ndarray:
        """The mean of what the windows of a question gave, in which each counts as much as it has tokens of its own."""
        own = [k for k, row in enumerate(self.rows) if row.question == question]
        weights = [max(self.rows[k].inner, 1) for k in own]
        return np.average(values[own].astype(np.float64), axis=0, weights=weights)


def _fit(model: Model, kind: TaskKind, wishes: Wishes) -> Fitted:
    return _fit_spans(model, kind, wishes) if SPANS in kind.forms else _fit_rows(model, kind, wishes)


def _fit_spans(model: Model, kind: TaskKind, wishes: Wishes) -> Fitted:
    check_inputs(model, kind.name)
    graph = model.graph()
    shape = graph.outputs[0].shape
    width = shape[2] if len(shape) == 4 and isinstance(shape[2], int) else 0
    preparation = TextInput(kind.size, 0, width=width or MOST_WORDS, marks=MARKS)

    def feed(inputs: Mapping[str, Tensor], spec: TextInput) -> tuple[Sequence[Tensor], TextFrame]:
        return fed(model, inputs), TextFrame(inputs["mask"].to(dtype="float32"))

    fixed = frozenset(("overlap", *(("width",) if width else ())))
    return Fitted(graph, preparation, feed, files={TOKENIZER: tokenizer_file(kind.name, wishes.files)}, fixed=fixed)


def _fit_rows(model: Model, kind: TaskKind, wishes: Wishes) -> Fitted:
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
    bounds = model.sizes.bounds
    most = min((bounds[str(d)] for x in model.inputs for d in x.shape or () if str(d) in bounds), default=MAX_LENGTH)
    if (length := wishes.preparation.get("length", 0)) > most:
        raise InputError(f"{kind.name}: length is {length}, and the model takes at most {most} tokens at once")
    graph = model.graph()
    preparation = TextInput(length=min(kind.size, most))

    def feed(inputs: Mapping[str, Tensor], spec: TextInput) -> tuple[Sequence[Tensor], TextFrame]:
        return [place(inputs) for place in places], TextFrame(inputs["mask"].to(dtype="float32"))

    return Fitted(graph, preparation, feed, files={TOKENIZER: tokenizer_file(kind.name, wishes.files)})


def _of(role: str, dtype: str) -> Callable[[Mapping[str, Tensor]], Tensor]:
    def place(inputs: Mapping[str, Tensor]) -> Tensor:
        if role != _POSITIONS:
            return inputs[role].to(dtype=dtype)
        ids = inputs["ids"]
        return (arange(ids.shape[1]).to(dtype=dtype).unsqueeze(0) + (ids * 0).to(dtype=dtype)).to(dtype=dtype)

    return place


def network_of(kind: TaskKind, place: Place, device: str | Device) -> Model:
    """The encoder of a folder that has no graph, with the head that the kind needs."""
    from ...language.encoders.files import encoder_model  # noqa: PLC0415 (ONNX files need none)

    if CONFIG not in place.files:
        raise InputError(
            f"{kind.name}: {place.model}: weights without a {CONFIG} beside them, which says of what architecture they are"
        )
    if kind.network == "vectors":
        check_modules(place.files)
    return encoder_model(place.model, place.files[CONFIG], kind.network, device, place.name)


def text_of(source: Any) -> str:
    """A source that is a text."""
    if not isinstance(source, str):
        raise InputError(f"text: got a {type(source).__name__}, expected a text, or a list of texts")
    return source


# --- reading ----------------------------------------------------------------------------------------------------------


def _open(kind: TaskKind, info: TaskSpec, files: Files) -> Callable[[Run, Mapping[str, Any]], Following]:
    tokenizer = _tokenizer_of(files)
    spec: Any = info.preparation

    held = kind.holds(files)

    def begin(run: Run, settings: Mapping[str, Any]) -> Following:
        def several(sources: Sequence[Any]) -> list[Answer]:
            readings = [_read(source, kind.asks(source, info, settings), tokenizer, spec, held) for source in sources]
            for reading in readings:
                if reading.windows > 1:
                    _log.info(
                        "%s: a text that is longer than the model is read in %d windows", kind.name, reading.windows
                    )
            outputs = _run_rows(run, [row for reading in readings for row in reading.rows], spec.width)
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
    return Tokenizer.of_json(files[TOKENIZER])


def _read(source: Any, questions: Sequence[Asking], tokenizer: Tokenizer, spec: TextInput, held: Any) -> Reading:
    """The windows of a source's questions."""
    from ...language.tokenizing.offsets import encoded  # noqa: PLC0415 (pictures need none)

    rows: list[TokenRow] = []
    spans: list[Sequence[tuple[int, int]]] = []
    for number, question in enumerate(questions):
        if question.labels:
            made, words = labelled(question.text, question.labels, tokenizer, spec)
            spans.append(words)
            rows += [
                TokenRow(row.ids, len(row.ids), 0, number, row.start, 0, row.count, row.count, row.words)
                for row in made
            ]
            continue
        if question.located:
            ids, places = encoded(tokenizer, question.text)
        else:
            ids, places = tokenizer.encode(question.text, add_special=False, parse_special=question.marks), ()
        spans.append(places)
        second = (
            [] if question.second is None else tokenizer.encode(question.second, add_special=False, parse_special=False)
        )
        if question.second is not None and not tokenizer.between:
            raise InputError(
                f"text: {TOKENIZER} does not say how two texts stand together; this model takes single ones"
            )
        rows += _windows(number, ids, question.second is not None, second, tokenizer, spec)
    return Reading(source, questions, rows, spans, tokenizer, held)


def _windows(
    number: int, one: list[int], is_pair: bool, other: list[int], tokenizer: Tokenizer, spec: TextInput
) -> list[TokenRow]:
    """Of a pair the longer is in windows, and all of the shorter in each."""
    before, after = tokenizer.before, tokenizer.after
    between = tokenizer.between if is_pair else []
    first_moves = len(one) >= len(other)
    moving, fixed = (one, other) if first_moves else (other, one)
    room = spec.length - len(before) - len(after) - len(between) - len(fixed)
    if room <= spec.overlap:
        raise InputError(
            f"text: of {spec.length} tokens, {spec.length - room} are marks and the shorter of two texts: no room is left for the longer"
        )
    rows: list[TokenRow] = []
    for start in range(0, max(1, len(moving) - spec.overlap), room - spec.overlap):
        part = moving[start : start + room]
        a, b = (part, fixed) if first_moves else (fixed, part)
        ids = [*before, *a, *between, *b, *after]
        second = len(before) + len(a) + len(between) if is_pair else len(ids)
        inner = len(part) - (spec.overlap if start else 0)
        first = len(before) if first_moves else second
        rows.append(TokenRow(ids, second, tokenizer.second, number, start, first, len(part), inner))
    return rows


def _run_rows(run: Run, rows: Sequence[TokenRow], width: int) -> list[dict[str, np.ndarray]]:
    """The outputs of each row; width: the spans of each word, which count as tokens do."""
    most = TOKENS // max(width, 1)
    order = sorted(range(len(rows)), key=lambda k: len(rows[k].ids))
    found: list[dict[str, np.ndarray]] = [{} for _ in rows]
    at = 0
    while at < len(order):
        count = 1
        while at + count < len(order) and count < ROWS and (count + 1) * len(rows[order[at + count]].ids) <= most:
            count += 1
        batch = [(place, k, rows[k]) for place, k in enumerate(order[at : at + count])]
        at += count
        shape = (count, max(1, *(len(row.ids) for _, _, row in batch), 1))
        ids, mask, types, words = (np.zeros(shape, np.int32) for _ in range(4))
        for place, _, row in batch:
            ids[place, : len(row.ids)] = row.ids
            mask[place, : len(row.ids)] = 1
            types[place, row.second : len(row.ids)] = row.kind
            words[place, : len(row.words)] = row.words
        spans = {"words": words, "spans": spans_of([row.count for _, _, row in batch], width)} if width else {}
        outputs = run({"ids": ids, "mask": mask, "types": types, **spans})
        for place, k, row in batch:
            for name, values in outputs.items():
                found[k][name] = values[place, : len(row.ids)] if name.startswith(BY_TOKEN) else values[place]
    return found


def _stacked(rows: Sequence[Mapping[str, np.ndarray]]) -> Arrays:
    """The outputs of the rows of one source, which may have none; those by token or word have zeros behind shorter rows."""
    names = rows[0] if rows else ()
    return {
        name: (_padded if name.startswith((BY_TOKEN, BY_WORD)) else np.stack)([row[name] for row in rows])
        for name in names
    }


def _padded(parts: Sequence[np.ndarray]) -> np.ndarray:
    found = np.zeros((len(parts), max(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    for k, part in enumerate(parts):
        found[k, : len(part)] = part
    return found


def _inputs(spec: TextInput) -> Inputs:
    by_token = dict.fromkeys(("ids", "mask", "words" if spec.width else "types"), ("int32", ("rows", "tokens")))
    return {**by_token, **({"spans": ("int32", ("rows", "places", 2))} if spec.width else {})}


TEXT: Final = Medium(
    "text", TextInput, frozenset(("length", "overlap", "prompts", "prompt")), _inputs, _fit, _open, READS, wishes_with_files, network_of,
)  # fmt: skip
