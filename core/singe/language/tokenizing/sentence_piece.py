"""The tokenizer of a SentencePiece file (`source.spm`, `spiece.model`) as the values of a `tokenizer.json`; what is unknown is refused by name.

The file is a message of Protobuf, whose pieces have the types and scores that GGUF took over from it. Their numbers are their places, or those
of a `vocab.json` beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...errors import FormatError
from ...onnx.wire import BYTES, FLOAT, INT32, INT64, TEXT, Fields, Format, Position, Schema, many, one
from .gguf import BYTE, CONTROL, MAX_TOKENS, NORMAL, UNKNOWN, UNUSED, Json, gguf_tokenizer_values

MAX_BYTES: Final = 1 << 26
_MODELS: Final = {1: "t5", 2: "llama"}
"""The model types of SentencePiece, unigrams and byte pairs ↦ GGUF's names."""


def _fields(found: Fields, position: Position, context: Any) -> Fields:
    return found


_FORMAT: Final = Format(
    {
        "model": Schema(_fields, {1: many("pieces", "piece"), 2: one("trainer", "trainer"), 3: one("normalizer", "normalizer")}),
        "piece": Schema(_fields, {1: one("piece", TEXT), 2: one("score", FLOAT), 3: one("type", INT32)}),
        "trainer": Schema(_fields, {3: one("model_type", INT32), 24: one("treat_whitespace_as_suffix", INT64)}),
        "normalizer": Schema(
            _fields,
            {
                2: one("precompiled_charsmap", BYTES), 3: one("add_dummy_prefix", INT64), 4: one("remove_extra_whitespaces", INT64),
                5: one("escape_whitespaces", INT64),
            },
        ),
    }
)  # fmt: skip


def sentence_piece_values(data: bytes, numbers: Mapping[str, int] | None, name: str) -> Json:
    """The values of a `tokenizer.json`. numbers: those of tokens; pieces that have none get numbers after the last of them. name: of the
    file, for errors."""
    model = _FORMAT.decode(memoryview(data), "model", name)
    trainer, normalizer = model.get("trainer", {}), model.get("normalizer", {})
    kind = trainer.get("model_type", 1)
    if kind not in _MODELS:
        raise FormatError(f"{name}: its model_type is {kind}, expected 1, of unigrams, or 2, of byte pairs")
    for part, key, expected in ((trainer, "treat_whitespace_as_suffix", 0), (normalizer, "escape_whitespaces", 1)):
        if part.get(key, expected) != expected:
            raise FormatError(f"{name}: {key} is {part[key]}, expected {expected}")
    pieces = [(x.get("piece", ""), float(x.get("score", 0.0)), x.get("type", NORMAL)) for x in model.get("pieces", ())]
    if not 0 < len(pieces) <= MAX_TOKENS:
        raise FormatError(f"{name}: {len(pieces)} pieces, expected 1 to {MAX_TOKENS}")
    if wrong := next((x for x in pieces if not NORMAL <= x[2] <= BYTE or not abs(x[1]) < 1e30), None):
        raise FormatError(
            f"{name}: the piece {wrong[0]!r:.60} has the type {wrong[2]} and the score {wrong[1]}, expected a type from {NORMAL} to {BYTE} "
            "and a finite score"
        )
    if kind == 1 and any(x[2] == BYTE for x in pieces):
        raise FormatError(f"{name}: unigrams with pieces for bytes, which Singe does not know")
    rows = pieces if numbers is None else _numbered(pieces, numbers, name)
    places = {text: k for k, (text, _, _) in enumerate(rows)}
    unknown = next((k for k, row in enumerate(rows) if row[2] == UNKNOWN), None)
    ggml = {
        "model": _MODELS[kind], "tokens": [x[0] for x in rows], "scores": [x[1] for x in rows], "token_type": [x[2] for x in rows],
        "precompiled_charsmap": list(bytes(normalizer.get("precompiled_charsmap", b""))),
        "add_space_prefix": normalizer.get("add_dummy_prefix", 1) != 0,
        "remove_extra_whitespaces": normalizer.get("remove_extra_whitespaces", 1) != 0,
        "add_bos_token": False, "add_eos_token": True, "eos_token_id": places.get("</s>"), "unknown_token_id": unknown,
    }  # fmt: skip
    return gguf_tokenizer_values({f"tokenizer.ggml.{key}": x for key, x in ggml.items() if x is not None})


def _numbered(
    pieces: list[tuple[str, float, int]], numbers: Mapping[str, int], name: str
) -> list[tuple[str, float, int]]:
    """The tokens by their numbers. Text does not become those that are no pieces; of these, words in angle brackets are marks."""
    count = max(numbers.values(), default=-1) + 1
    if len(numbers) > MAX_TOKENS or count > MAX_TOKENS or min(numbers.values(), default=0) < 0:
        raise FormatError(f"{name}: numbers of tokens up to {count - 1}, expected at most {MAX_TOKENS}")
    rows = [("", 0.0, UNUSED)] * count
    for text, number in numbers.items():
        rows[number] = (text, 0.0, CONTROL if text.startswith("<") and text.endswith(">") else UNUSED)
    for piece in pieces:
        number = numbers.get(piece[0])
        if number is None:
            rows.append(piece)
        else:
            rows[number] = piece
    return rows
