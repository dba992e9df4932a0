"""The routes of OpenAI's interface: which language model is asked, and its answer as an object or as server-sent events."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any, Final

from ..protocol import Refused
from .completions import (
    CompletionPart,
    CompletionRequest,
    completion,
    embedding,
    event,
    read_completion,
    read_embedding,
    usage_json,
)
from .engine import LanguageEngine

COMPLETIONS: Final = {"/v1/chat/completions": True, "/v1/completions": False}
"""Route ↦ whether it is a chat."""


def described(models: Mapping[str, LanguageEngine]) -> dict[str, Any]:
    """The list of models."""
    return {"object": "list", "data": [{"id": n, "object": "model", "created": 0, "owned_by": "singe"} for n in models]}


def asked_of(
    models: Mapping[str, LanguageEngine], path: str, body: bytes | bytearray
) -> tuple[LanguageEngine, CompletionRequest]:
    """What a body asks, and of which model."""
    asked = read_completion(body, COMPLETIONS[path])
    return served_by(models, asked.model), asked


async def embedded(models: Mapping[str, LanguageEngine], body: bytes | bytearray) -> tuple[LanguageEngine, Any]:
    """The vectors that a body asks for, and of which model."""
    asked = read_embedding(body)
    served = served_by(models, asked.model)
    return served, embedding(asked, *await served.vectors(asked.texts))


def served_by(models: Mapping[str, LanguageEngine], name: str) -> LanguageEngine:
    """The model of this name."""
    if name not in models:
        raise Refused(404, f"there is no model {name!r:.80}; there are {', '.join(map(repr, models))}")
    return models[name]


def while_there(
    parts: AsyncGenerator[CompletionPart, None], receive: Callable[[], Awaitable[MutableMapping[str, Any]]]
) -> AsyncGenerator[CompletionPart, None]:
    """The parts while their client is there, whose body has been read; when it leaves, the text is ended."""

    async def found() -> AsyncGenerator[CompletionPart, None]:
        gone = asyncio.ensure_future(receive())
        try:
            while True:
                following = asyncio.ensure_future(_next(parts))
                await asyncio.wait((gone, following), return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
                    raise Refused(400, "the client left before its answer was there")
                part = following.result()
                if part is None:
                    return
                yield part
        finally:
            gone.cancel()
            await parts.aclose()

    return found()


async def _next(parts: AsyncGenerator[CompletionPart, None]) -> CompletionPart | None:
    return await anext(parts, None)


def _head(asked: CompletionRequest) -> dict[str, Any]:
    return {"id": f"{'chatcmpl' if asked.is_chat else 'cmpl'}-{secrets.token_hex(12)}", "created": int(time.time())}


async def whole(
    served: LanguageEngine, asked: CompletionRequest, parts: AsyncGenerator[CompletionPart, None]
) -> dict[str, Any]:
    """The answer as one object."""
    found = [part async for part in parts]
    chances = None if found[-1].chances is None else tuple(c for part in found for c in part.chances or ())
    text = "".join(part.text for part in found)
    answer = completion(asked, _head(asked), replace(found[-1], text=text, chances=chances), served.spell, "whole")
    return {**answer, "usage": usage_json(found[-1].usage)}


async def events(
    served: LanguageEngine, asked: CompletionRequest, parts: AsyncGenerator[CompletionPart, None]
) -> AsyncGenerator[bytes, None]:
    """The answer as events, one for each part."""
    head, is_first = _head(asked), True
    try:
        async for part in parts:
            yield event(completion(asked, head, part, served.spell, "first" if is_first else "more"))
            is_first = False
            if part.usage and asked.tells_usage:
                kind = "chat.completion.chunk" if asked.is_chat else "text_completion"
                yield event(
                    {**head, "object": kind, "model": asked.model, "choices": [], "usage": usage_json(part.usage)}
                )
        yield event("[DONE]")
    finally:
        await parts.aclose()


def error_event(refused: Refused) -> bytes:
    """What ends a stream in which something went wrong."""
    return event(openai_error(refused.status, str(refused)))


def openai_error(status: int, message: str) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
