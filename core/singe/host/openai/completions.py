"""OpenAI's completions and embeddings as values of JSON: what a request asks of a language model, and the shapes of answers. Nothing here runs a model.

What a field means is a row of a table; a field that is in none is refused by its name.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...language.generation import TokenChance, Usage
from ...late_dataclass import dataclass
from ..protocol import Refused

_OPTIONS: Final = {
    "max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p",
    "repeat_penalty": "repeat_penalty", "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty",
    "seed": "seed", "stop": "stop", "regex": "regex", "shift": "shift",
}  # fmt: skip
"""Field ↦ option of `LanguageModel.generate`."""
_COMMON: Final = frozenset({*_OPTIONS, "model", "n", "stream", "stream_options", "logprobs", "user", "response_format"})
_OWN: Final = {
    True: _COMMON
    | {"messages", "tools", "tool_choice", "max_completion_tokens", "top_logprobs", "chat_template_kwargs"},
    False: _COMMON | {"prompt"},
}
"""Whether it is a chat ↦ the fields of its requests."""


_OF_EMBEDDINGS: Final = frozenset({"model", "input", "encoding_format", "user"})
MAX_TEXTS: Final = 2048
"""Of one request for vectors."""


@dataclass(frozen=True)
class CompletionRequest:
    """What is asked. prompt: messages of a chat, otherwise a text or ids; names: what else its template knows. tells_usage: a stream ends
    with counts of tokens."""

    is_chat: bool
    model: str
    prompt: Any
    tools: Any
    names: Mapping[str, Any]
    options: Mapping[str, Any]
    stream: bool
    tells_usage: bool


@dataclass(frozen=True)
class CompletionPart:
    """Some text of an answer; the last part has the reason of its end and the usage. chances: None if they were not asked for."""

    text: str
    chances: tuple[TokenChance, ...] | None
    finish_reason: str | None = None
    usage: Usage | None = None
    tool_calls: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class EmbeddingRequest:
    """What is asked. texts: texts, or the ids of some; packed: vectors are wanted as base64 of float32."""

    model: str
    texts: Sequence[Any]
    packed: bool


def _fields(body: bytes | bytearray, known: frozenset[str], expected: str) -> dict[str, Any]:
    """The fields of a body that are not null."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise Refused(400, f"the body is no JSON: {str(e) or type(e).__name__:.200}") from None
    if not isinstance(data, dict):
        raise Refused(400, f"the JSON is no object, expected one with {expected}")
    fields: dict[str, Any] = {k: v for k, v in data.items() if v is not None}
    unknown = sorted(fields.keys() - known)
    if unknown:
        raise Refused(400, f"there is no field {', '.join(unknown):.200}; there are {', '.join(sorted(known))}")
    return fields


def read_embedding(body: bytes | bytearray) -> EmbeddingRequest:
    """What a body asks."""
    fields = _fields(body, _OF_EMBEDDINGS, "model and input")
    found = _of(fields, "input", (str, list), "a text, the ids of one, or a list of these")
    texts = [found] if isinstance(found, str) or (found and type(found[0]) is int) else found
    if not 0 < len(texts) <= MAX_TEXTS or not all(isinstance(t, (str, list)) and t for t in texts):
        raise Refused(400, f"input: got {found!r:.80}, expected 1 to {MAX_TEXTS} texts, none of them empty")
    form = fields.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise Refused(400, f"encoding_format: got {form!r:.40}, expected float or base64")
    return EmbeddingRequest(_of(fields, "model", str, "a name"), texts, form == "base64")


def embedding(asked: EmbeddingRequest, vectors: np.ndarray, count: int) -> dict[str, Any]:
    """The answer. count: of the tokens of all texts."""
    rows = vectors.astype("<f4")
    encoded = [base64.b64encode(row.tobytes()).decode() if asked.packed else row.tolist() for row in rows]
    return {
        "object": "list",
        "model": asked.model,
        "data": [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(encoded)],
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }


def read_completion(body: bytes | bytearray, is_chat: bool) -> CompletionRequest:
    """What a body asks."""
    fields = _fields(body, _OWN[is_chat], "model and " + ("messages" if is_chat else "prompt"))
    if fields.get("n", 1) != 1:
        raise Refused(400, f"n: got {fields['n']!r:.40}, expected 1: ask several times for several answers")
    options = {option: fields[field] for field, option in _OPTIONS.items() if field in fields}
    if "max_completion_tokens" in fields:
        options["max_tokens"] = fields["max_completion_tokens"]
    stop = options.get("stop", ())
    if not isinstance(stop, (str, list, tuple)):
        raise Refused(400, f"stop: got {stop!r:.40}, expected a text or a list of some")
    logprobs = _logprobs(fields, is_chat)
    if logprobs is not None:
        options["logprobs"] = logprobs
    schema = _schema(fields.get("response_format", {"type": "text"}))
    if schema is not None:
        options["schema"] = schema
    names = _of(fields, "chat_template_kwargs", dict, "an object") if "chat_template_kwargs" in fields else {}
    stream_options = fields.get("stream_options", {})
    if not isinstance(stream_options, dict) or stream_options.keys() - {"include_usage"}:
        raise Refused(400, f"stream_options: got {stream_options!r:.80}, expected an object with include_usage")
    return CompletionRequest(
        is_chat,
        _of(fields, "model", str, "a name"),
        _messages(fields) if is_chat else _of(fields, "prompt", (str, list), "a text, or the ids of one"),
        _tools(fields),
        names,
        options,
        _flag(fields, "stream"),
        _flag(stream_options, "include_usage"),
    )


def _schema(form: Any) -> Any:
    """The JSON schema of a response_format; True for any object, None for any text."""
    match form:
        case {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return True
        case {"type": "json_schema", "json_schema": {"schema": dict() as schema}}:
            return schema
        case _:
            raise Refused(
                400,
                f"response_format: got {form!r:.80}, expected the type text, json_object or json_schema, with json_schema.schema",
            )


def _logprobs(fields: Mapping[str, Any], is_chat: bool) -> int | None:
    """How many tokens at each place the answer lists with their chances; None for no chances at all."""
    if not is_chat:
        return fields.get("logprobs")
    if _flag(fields, "logprobs"):
        return fields.get("top_logprobs", 0)
    if "top_logprobs" in fields:
        raise Refused(400, "top_logprobs is given without logprobs; give logprobs: true")
    return None


def _messages(fields: Mapping[str, Any]) -> list[Any]:
    messages = _of(fields, "messages", list, "a list of messages")
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Refused(400, f"messages: got {message!r:.80}, expected objects with role and content")
        if not isinstance(message.get("content", ""), (str, type(None))):
            raise Refused(400, "messages: content is no text; parts other than one text are not read")
    return messages


def _tools(fields: Mapping[str, Any]) -> list[Any] | None:
    choice = fields.get("tool_choice", "auto")
    if choice not in ("auto", "none"):
        raise Refused(
            400, f"tool_choice: got {choice!r:.80}, expected auto or none; response_format makes a text certain"
        )
    return _of(fields, "tools", list, "a list of functions") if "tools" in fields and choice == "auto" else None


def _of(fields: Mapping[str, Any], field: str, kind: Any, expected: str) -> Any:
    if not isinstance(fields.get(field), kind):
        raise Refused(400, f"{field}: got {fields.get(field)!r:.80}, expected {expected}")
    return fields[field]


def _flag(fields: Mapping[str, Any], field: str) -> bool:
    return _of(fields, field, bool, "true or false") if field in fields else False


def completion(
    asked: CompletionRequest, head: Mapping[str, Any], part: CompletionPart, spell: Callable[[int], str], place: str
) -> dict[str, Any]:
    """An answer, or a piece of one. head: its id and time, which all pieces share; spell: the text of a token; place: "whole", or the
    "first" piece, which has the role, or one "more"."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": part.finish_reason, "logprobs": None}
    if asked.is_chat:
        role = {} if place == "more" else {"role": "assistant"}
        said = {**role, "content": part.text if part.text or not part.tool_calls else None}
        if part.tool_calls:
            numbered = place != "whole"
            said["tool_calls"] = [{"index": i, **c} if numbered else {**c} for i, c in enumerate(part.tool_calls)]
        choice["message" if place == "whole" else "delta"] = said
    else:
        choice["text"] = part.text
    if part.chances is not None:
        choice["logprobs"] = (_chat_chances if asked.is_chat else _text_chances)(part.chances, spell)
    kind = ("chat.completion" + ("" if place == "whole" else ".chunk")) if asked.is_chat else "text_completion"
    return {**head, "object": kind, "model": asked.model, "choices": [choice]}


def usage_json(usage: Usage | None) -> dict[str, Any] | None:
    """Counts of tokens."""
    return usage and {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.reused_tokens},
    }


def _chance(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


def _chat_chances(chances: Sequence[TokenChance], spell: Callable[[int], str]) -> dict[str, Any]:
    return {
        "content": [
            {**_chance(c.text, c.logprob), "top_logprobs": [_chance(spell(token), p) for token, p in c.likeliest]}
            for c in chances
        ]
    }


def _text_chances(chances: Sequence[TokenChance], spell: Callable[[int], str]) -> dict[str, Any]:
    return {
        "tokens": [c.text for c in chances],
        "token_logprobs": [c.logprob for c in chances],
        "top_logprobs": [{spell(token): p for token, p in c.likeliest} for c in chances],
    }


def event(data: Any) -> bytes:
    """One server-sent event; of a text as it is, such as [DONE]."""
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
