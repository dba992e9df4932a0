"""What the files of a model say of text: its tokenizer, its chat template, and the tokens that end a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..errors import FormatError, InputError
from ..files.bounded import read_bounded, read_json_object
from ..files.strings import MadeSequence
from .files import ModelFiles
from .templating import ChatTemplate
from .tokenizing import Tokenizer
from .tokenizing.gguf import gguf_tokenizer_values
from .tokenizing.tokenizer_json import MAX_BYTES
from .tokenizing.vocabulary import shortened

_GGUF_TEMPLATE: Final = "tokenizer.chat_template"


class ModelTexts:
    """See the module's docstring; each is read when it is asked for."""

    def __init__(self, files: ModelFiles, chat_template: str | Path | None = None) -> None:
        """chat_template: a file that takes the place of the model's own template."""
        self._name, self._metadata, self._folder = files.name, files.metadata, files.folder
        self._given: Final = None if chat_template is None else _text(Path(chat_template))
        if self._given is not None:
            self.template()  # what is wrong with it is said at once

    def tokenizer(self) -> Tokenizer:
        if self._folder is None:
            if not any(k.startswith("tokenizer.ggml.") for k in self._metadata):
                raise InputError(f"{self._name}: the file has no tokenizer; give ids in place of texts")
            return Tokenizer.of_gguf(self._metadata)
        file, config = self._folder / "tokenizer.json", self._folder / "tokenizer_config.json"
        if not file.exists():
            raise InputError(f"{self._name}: without tokenizer.json; give ids in place of texts")
        return Tokenizer.of_file(file, config if config.exists() else None)

    def tokenizer_values(self, tokenizer: Tokenizer) -> Mapping[str, Any]:
        """A tokenizer.json that says all of itself, for a page, which reads no other file of the tokenizer; its lists are short."""
        if self._folder is None:
            return shortened(gguf_tokenizer_values(self._metadata))
        values = read_json_object(self._folder / "tokenizer.json", MAX_BYTES)
        around = {"before": list(tokenizer.before), "after": list(tokenizer.after)}
        single = [*_marks("before", around), {"Sequence": {"id": "A"}}, *_marks("after", around)]
        special = {name: {"ids": ids} for name, ids in around.items() if ids}
        return shortened(
            {
                **values,
                "post_processor": {"type": "TemplateProcessing", "single": single, "special_tokens": special},
                "special_ids": {
                    "bos": tokenizer.bos,
                    "eos": tokenizer.eos,
                    "end_of_turn": sorted(tokenizer.end_of_turn),
                },
            }
        )

    def ends(self, tokenizer: Tokenizer) -> frozenset[int]:
        found = {*tokenizer.end_of_turn, *(() if tokenizer.eos is None else (tokenizer.eos,))}
        for name in ("config.json", "generation_config.json"):
            if self._folder is not None and (self._folder / name).exists():
                told = read_json_object(self._folder / name).get("eos_token_id")
                found |= {i for i in (told if isinstance(told, list) else [told]) if type(i) is int}
        return frozenset(found)

    def template(self) -> ChatTemplate:
        source, marks = self.template_source()
        if not isinstance(source, str):
            raise InputError(
                f"{self._name}: the model has no chat template; use generate with the whole text, or load it with chat_template=FILE"
            )
        return ChatTemplate(source, *marks)

    def template_source(self) -> tuple[Any, tuple[str, str]]:
        """The template, and the texts of the tokens that begin and end a text."""
        own, marks = self._own_template()
        return own if self._given is None else self._given, marks

    def _own_template(self) -> tuple[Any, tuple[str, str]]:
        if self._folder is None:
            tokens = self._metadata.get("tokenizer.ggml.tokens", [])
            return self._metadata.get(_GGUF_TEMPLATE), (self._mark(tokens, "bos"), self._mark(tokens, "eos"))
        file = self._folder / "tokenizer_config.json"
        config = read_json_object(file) if file.exists() else {}
        marks = _content(config.get("bos_token")), _content(config.get("eos_token"))
        own = self._folder / "chat_template.jinja"
        return (_text(own) if own.exists() else _chosen(config.get("chat_template"))), marks

    def _mark(self, tokens: Any, which: str) -> str:
        place: Any = self._metadata.get(f"tokenizer.ggml.{which}_token_id")
        if not isinstance(tokens, list | MadeSequence) or type(place) is not int or not 0 <= place < len(tokens):
            return ""
        return str(tokens[place])


def _marks(name: str, around: Mapping[str, list[int]]) -> list[dict[str, Any]]:
    return [{"SpecialToken": {"id": name}}] if around[name] else []


def _text(path: Path) -> str:
    try:
        return read_bounded(path).decode()
    except ValueError:
        raise FormatError(f"{path}: not UTF-8") from None


def _content(mark: Any) -> str:
    """The text of a token, which may be an object with it."""
    text = mark.get("content") if isinstance(mark, dict) else mark
    return text if isinstance(text, str) else ""


def _chosen(templates: Any) -> Any:
    """The template, or the one called "default" of several."""
    if not isinstance(templates, list):
        return templates
    return next((t.get("template") for t in templates if isinstance(t, dict) and t.get("name") == "default"), None)
