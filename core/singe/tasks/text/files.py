"""What files beside a text model say of it: those of Hugging Face, and of sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...errors import FormatError, InputError
from ...files.bounded import read_bounded, read_json_list, read_json_object
from ..labels import labels_of_config
from ..medium import Wishes
from .spans import SPANS, facts_of_config

if TYPE_CHECKING:
    from ..kinds import TaskKind

TOKENIZER: Final = "tokenizer.json"
WORDS: Final = "vocab.txt"
"""BERT's words, of models without a TOKENIZER."""
CONFIG: Final = "config.json"
OF_TOKENIZER: Final = "tokenizer_config.json"
POOLING: Final = "1_Pooling/config.json"
LENGTHS: Final = "sentence_bert_config.json"
PROMPTS: Final = "config_sentence_transformers.json"
MODULES: Final = "modules.json"
OF_SPANS: Final = "gliner_config.json"
READS: Final = (TOKENIZER, WORDS, CONFIG, OF_TOKENIZER, POOLING, LENGTHS, PROMPTS, MODULES, OF_SPANS)
MAX_TOKENIZER: Final = 1 << 28
"""The most bytes of a tokenizer."""
_POOLINGS: Final = {
    "pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first", "pooling_mode_lasttoken": "last", "pooling_mode_max_tokens": "max",
}  # fmt: skip
"""What sentence-transformers calls a pooling ↦ the head's name."""
_MODULES: Final = ("Transformer", "Pooling", "Normalize")
"""What sentence-transformers calls the parts of a model that heads compute, or the network itself."""
_PADDED_POSITIONS: Final = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Families whose first positions are kept for padding."""


def wishes_with_files(kind: TaskKind, wishes: Wishes) -> Wishes:
    """Wishes, with what the files say where the caller says nothing."""
    config, tokens, pooling, lengths, prompts = (
        _read(wishes.files, name) for name in (CONFIG, OF_TOKENIZER, POOLING, LENGTHS, PROMPTS)
    )
    facts: dict[str, Any] = {}
    if (length := _length(config, tokens, lengths)) is not None:
        facts["length"] = length
    if SPANS in kind.forms:
        facts |= facts_of_config(_read(wishes.files, OF_SPANS), OF_SPANS)
    if isinstance(named := prompts.get("prompts"), dict) and named:
        facts["prompts"] = {str(k): str(v) for k, v in named.items()}
        if prompts.get("default_prompt_name") in named:
            facts["prompt"] = prompts["default_prompt_name"]
    heads = [head for name, head in _POOLINGS.items() if pooling.get(name) is True]
    unknown = [
        name
        for name, on in pooling.items()
        if name.startswith("pooling_mode_") and on is True and name not in _POOLINGS
    ]
    if unknown:
        raise FormatError(f"{POOLING}: {unknown[0]:.60}, expected one of {', '.join(_POOLINGS)}")
    if len(heads) > 1:
        raise FormatError(f"{POOLING}: {' and '.join(heads)} at once, expected one pooling")
    known = {head.name for head in kind.heads}
    if config.get("problem_type") == "multi_label_classification":
        heads.append("several")
    head = next((h for h in heads if h in known), "")
    return replace(
        wishes,
        head=wishes.head or head,
        labels=wishes.labels or labels_of_config(config) if kind.labels else wishes.labels,
        preparation={**facts, **wishes.preparation},
    )


def _length(config: Mapping[str, Any], tokens: Mapping[str, Any], lengths: Mapping[str, Any]) -> int | None:
    """The most tokens at once: the least of what the files say; the tokenizer's "very many" says nothing."""
    positions = config.get("max_position_embeddings")
    if type(positions) is int and config.get("model_type") in _PADDED_POSITIONS:
        positions -= 2
    said = (lengths.get("max_seq_length"), tokens.get("model_max_length"), positions)
    numbers = [x for x in said if type(x) is int and 0 < x < 1 << 20]
    return min(numbers, default=None)


def tokenizer_file(kind: str, files: Mapping[str, Path]) -> bytes:
    """The tokenizer.json that travels with a task."""
    if TOKENIZER in files:
        return read_bounded(files[TOKENIZER], MAX_TOKENIZER)
    if WORDS not in files:
        raise InputError(
            f"{kind}: no {TOKENIZER} and no {WORDS}: expected one beside the model, in a folder of Hugging Face, or in the folder that beside names"
        )
    from ...language.tokenizing.vocab_txt import vocab_txt_values  # noqa: PLC0415 (pictures need none)

    small = _read(files, OF_TOKENIZER).get("do_lower_case") is not False
    return json.dumps(vocab_txt_values(read_bounded(files[WORDS], MAX_TOKENIZER), str(files[WORDS]), small)).encode()


def check_modules(files: Mapping[str, Path]) -> None:
    """Refuse a model that has parts after its network which no head computes."""
    for module in read_json_list(files[MODULES]) if MODULES in files else ():
        kind = str(module.get("type") if isinstance(module, dict) else module).rpartition(".")[2]
        if kind not in _MODULES:
            raise FormatError(
                f"{files[MODULES]}: a module {kind!r:.60}, expected {', '.join(_MODULES)}; a model with others is read from an ONNX file"
            )


def _read(files: Mapping[str, Path], name: str) -> Mapping[str, Any]:
    """An object of a JSON file, empty if there is none."""
    return read_json_object(files[name]) if name in files else {}
