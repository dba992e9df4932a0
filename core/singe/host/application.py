"""An ASGI application that answers the KServe v2 protocol for models, and OpenAI's for language models: any ASGI server runs it.

    app = sg.host.Application({"digits": "digits.onnx"}, token="…")    # in main.py: uvicorn main:app

| route | answer |
|---|---|
| GET /v2 | the server's name, version and extensions |
| GET /v2/health/live, /v2/health/ready | whether it runs, and answers; without a token |
| GET /v2/models/M | inputs and outputs |
| GET /v2/models/M/ready | whether it answers |
| POST /v2/models/M/infer | a run |
| GET /metrics | counts, for Prometheus |
| GET /v1/models | the language models, in OpenAI's shape |
| POST /v1/chat/completions, /v1/completions | a text of one, in OpenAI's shape, whole or as server-sent events |
| POST /v1/embeddings | vectors of texts |

`/versions/1` may follow M. An error is `{"error": …}` with a status, below /v1 in OpenAI's shape. Who asks is checked before a body is
read, and a body is read up to the limit, no slower than MIN_BYTES_PER_SECOND.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ..errors import DeviceLost, DTypeError, InputError, ShapeError, SingeError
from ..lazy_names import LateModule
from ..listening import LOOPBACK, Callers, is_token
from ..model.model import Model
from ..runtime.device import Device
from ..texts import say
from ..time_limits import opened_for
from .batching import ServedModel
from .bodies import HeldBytes, RequestBody
from .metrics import prometheus_text
from .models import Models, loaded_models
from .protocol import InferRequest, Refused, metadata, read_request, write_response

if TYPE_CHECKING:
    from .openai import engine as engines
    from .openai import routes
    from .openai.engine import LanguageEngine
else:
    engines, routes = (LateModule(f"host.openai.{name}") for name in ("engine", "routes"))

MAX_BODY_BYTES: Final = 64 << 20
SEND_SECONDS: Final = 20.0
"""For a client to take a piece of a response."""
PIECE_BYTES: Final = 1 << 18
"""A response is sent in pieces of so many bytes."""
IN_LOOP_BYTES: Final = 1 << 16
"""Larger requests and responses are read and written in a thread, one at a time, while others are answered."""
CACHE_BYTES: Final = 1 << 30
"""Of the conversations of a language model."""
_MODEL: Final = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(?:/(ready|infer))?")
_DIGITS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_ALLOWED_HEADERS: Final = b"authorization, content-type, inference-header-content-length"

Scope: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"
Header: TypeAlias = "tuple[bytes, bytes]"


class EventStream(NamedTuple):
    """What is sent as it is made. error: the last piece, when something goes wrong after the first."""

    pieces: AsyncGenerator[bytes, None]
    error: Callable[[Refused], bytes]


class HostResponse(NamedTuple):
    """What is answered. stream: what follows the headers in place of parts."""

    status: int
    headers: Sequence[Header]
    parts: Sequence[bytes]
    stream: EventStream | None = None


class Application:
    """An ASGI application that answers the KServe v2 protocol for models: any ASGI server runs it.

        app = sg.host.Application({"digits": "digits.onnx"}, token="…")  # in main.py: uvicorn main:app

    models: files, URLs or Models, called by the names of their files; a dict gives other names. Language models, in GGUF files, folders
    with config.json or as LanguageModels, are answered in OpenAI's shapes instead.

    device: where files are loaded. token: what clients give as `Authorization: Bearer …`; "" for none. host, names, origins: the
    address of the server, what else it is called, and the origins of pages elsewhere that may ask. batch, wait: the most rows that are
    run together, and for how many seconds a request waits for others, where the model allows that. queue: how many requests may wait
    for a model; more are answered with 503. body: the most bytes of a request. seconds: how long one may take once its body is here;
    then it is answered with 504, and its run is stopped, between steps, and by "wasm" anywhere if it was opened here. cache: the
    most bytes of all conversations with a language model, which decides how many texts are made at once. context, activations,
    cache_dtype, chat_template: how language models are loaded, as `sg.language.load` takes them.
    """

    def __init__(
        self,
        models: Models,
        device: str | Device = "auto",
        *,
        token: str = "",
        batch: int = 1,
        wait: float = 0.002,
        queue: int = 256,
        body: int = MAX_BODY_BYTES,
        seconds: float = math.inf,
        cache: int = CACHE_BYTES,
        context: int | None = None,
        activations: str | None = None,
        cache_dtype: str | None = None,
        chat_template: str | Path | None = None,
        names: Collection[str] = (),
        origins: Collection[str] = (),
        host: str = LOOPBACK,
        elsewhere: Mapping[str, Any] | None = None,
    ) -> None:
        """elsewhere: what answers in place of models of this process, such as those of a deployment."""
        for what, value in (("batch", batch), ("queue", queue), ("body", body), ("cache", cache)):
            if value < 1:
                raise InputError(f"{what}: got {value}, expected a number above 0")
        if not 0 <= wait <= 60:
            raise InputError(f"wait: got {wait}, expected seconds, from 0 to 60")
        if not seconds > 0:
            raise InputError(f"seconds: got {seconds}, expected seconds above 0")
        with opened_for(seconds):
            options = {
                "context": context,
                "activations": activations,
                "cache_dtype": cache_dtype,
                "chat_template": chat_template,
            }
            of_language = {name: value for name, value in options.items() if value is not None}
            loaded = {} if elsewhere else loaded_models(models, device, of_language)
            self.models: Final[Mapping[str, Any]] = elsewhere or {
                name: ServedModel(name, model, batch=batch, wait=wait, limit=queue, seconds=seconds)
                for name, model in loaded.items()
                if isinstance(model, Model)
            }
        languages = {name: model for name, model in loaded.items() if not isinstance(model, Model)}
        self.languages: Final[Mapping[str, LanguageEngine]] = {
            name: engines.LanguageEngine(name, model, queue, seconds, cache) for name, model in languages.items()
        }
        self.token: Final = token
        self.url = "at another address"
        """The server's address, for messages."""
        self.refused = 0
        """How many requests waited when it was stopped, and were answered with 503."""
        self._body: Final = body
        self._callers: Final = Callers(host, names, origins)
        self._held: Final = HeldBytes()
        self._turn: Final = asyncio.Lock()
        self._stopped = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: what an ASGI server calls."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def stop(self, reason: str) -> None:
        """Answer with 503 what waits and what comes, and wait for the runs that have begun."""
        self._stopped = reason
        self.refused += sum(await asyncio.gather(*(model.stop(reason) for model in self._all().values())))

    def _all(self) -> dict[str, Any]:
        return {**self.models, **self.languages}

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                await self.stop("the server was stopped")
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    # --- one request ---

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        headers = list[Header]()
        body = RequestBody(self._held, receive)
        served: ServedModel | LanguageEngine | None = None
        try:
            try:
                request_headers = _headers(scope)
                headers += self._checked(scope, request_headers)
                served, answer = await self._routed(scope, request_headers, body)
            except Exception as e:
                answer = _failure(e)
                if self.languages and scope["path"].startswith("/v1/"):
                    answer = _in_openai(answer)
                if not body.is_read:
                    await body.discard()
            status = await _sent(send, answer, headers, head=scope["method"] == "HEAD")
        finally:
            body.release()
        if served is not None:
            served.counts.answered(status, time.perf_counter() - start)

    def _checked(self, scope: Scope, headers: Mapping[str, str]) -> list[Header]:
        """The headers for a page that may ask; an error for who may not."""
        origin = headers.get("origin")
        why = self._callers.refusal(self.url, headers.get("host"), origin)
        if why:
            raise Refused(403, why)
        if origin is None:
            return []
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", b"inference-header-content-length"),
            (b"vary", b"origin"),
        ]

    async def _routed(
        self, scope: Scope, headers: Mapping[str, str], body: RequestBody
    ) -> tuple[ServedModel | LanguageEngine | None, HostResponse]:
        path, method = scope["path"].removeprefix(scope.get("root_path", "")), scope["method"]
        if method == "OPTIONS":
            allow = (b"access-control-allow-headers", _ALLOWED_HEADERS), (b"access-control-allow-methods", b"GET, POST")
            return None, HostResponse(204, allow, ())
        if path in ("/v2/health/live", "/v2/health/ready"):
            _want(method, "GET")
            what = path.rpartition("/")[2]
            up = what == "live" or not self._stopped
            return None, _json({what: up}, 200 if up else 503)
        if self.token:
            self._check_token(headers)
        if path in ("/v2", "/v2/"):
            _want(method, "GET")
            version = vars(sys.modules["singe"])["__version__"]  # to import the package would be an import upwards
            return None, _json({"name": "singe", "version": version, "extensions": ["binary_tensor_data"]})
        if path == "/metrics":
            _want(method, "GET")
            text = prometheus_text({name: m.counts for name, m in self._all().items()})
            return None, HostResponse(
                200, ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),), (text.encode(),)
            )
        if self.languages and path.startswith("/v1/"):
            if path == "/v1/models":
                _want(method, "GET")
                return None, _json(routes.described(self.languages))
            if path == "/v1/embeddings":
                _want(method, "POST")
                data = await self._read(headers, body)
                served, answer = await routes.embedded(self.languages, data)
                return served, _json(answer)
            if path in routes.COMPLETIONS:
                _want(method, "POST")
                return await self._completed(path, headers, body)
        return await self._of_model(path, method, headers, body)

    async def _of_model(
        self, path: str, method: str, headers: Mapping[str, str], body: RequestBody
    ) -> tuple[ServedModel | None, HostResponse]:
        """The answer of a path of one model."""
        found = _MODEL.fullmatch(path)
        if found is None:
            raise Refused(
                404,
                f"there is no {path[:200]!r}; there are /v2, /v2/health/ready, /v2/models/NAME, /metrics, /v1/models, "
                "/v1/chat/completions, /v1/completions and /v1/embeddings",
            )
        name, version, action = found.groups()
        served = self.models.get(name)
        if served is None:
            raise Refused(404, f"there is no model {name[:80]!r}; there are {', '.join(map(repr, self.models))}")
        if version not in (None, "1"):
            raise Refused(404, f"model {name!r} has no version {version[:80]!r}; there is 1")
        if action == "infer":
            _want(method, "POST")
            try:
                return served, await self._inferred(served, headers, body)
            except Exception as e:
                if not body.is_read:
                    await body.discard()
                return served, _failure(e)
        _want(method, "GET")
        if action == "ready":
            return None, _json({"name": name, "ready": not self._stopped}, 503 if self._stopped else 200)
        return None, _json({
            "name": name,
            "versions": ["1"],
            "platform": "singe",
            "inputs": [metadata(p) for p in served.inputs],
            "outputs": [metadata(p) for p in served.outputs],
        })  # fmt: skip

    def _check_token(self, headers: Mapping[str, str]) -> None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not is_token(token.strip(), self.token):
            raise Refused(
                401,
                "give the token that the server printed: Authorization: Bearer TOKEN",
                ((b"www-authenticate", b"Bearer"),),
            )

    async def _read(self, headers: Mapping[str, str], body: RequestBody) -> bytearray:
        if headers.get("content-encoding", "identity") != "identity":
            raise Refused(415, f"the body is encoded as {headers['content-encoding']!r:.80}; send it as it is")
        return await body.read(_number(headers, "content-length"), self._body)

    async def _completed(
        self, path: str, headers: Mapping[str, str], body: RequestBody
    ) -> tuple[LanguageEngine, HostResponse]:
        data = await self._read(headers, body)
        served, asked = await self._apart(len(data), routes.asked_of, self.languages, path, data)
        del data
        body.release()
        try:
            parts = routes.while_there(served.parts(asked), body.receive)
            if not asked.stream:
                return served, _json(await routes.whole(served, asked, parts))
            first = await anext(parts)  # what is refused has a status; what comes later is an event
        except Exception as e:
            return served, _in_openai(_failure(e))

        async def pieces() -> AsyncGenerator[Any, None]:
            try:
                yield first
                async for part in parts:
                    yield part
            finally:
                await parts.aclose()

        head = ((b"content-type", b"text/event-stream; charset=utf-8"),)
        stream = EventStream(routes.events(served, asked, pieces()), routes.error_event)
        return served, HostResponse(200, head, (), stream)

    async def _inferred(self, served: ServedModel, headers: Mapping[str, str], body: RequestBody) -> HostResponse:
        json_bytes = _number(headers, "inference-header-content-length")
        data = await self._read(headers, body)
        outputs = [p.name for p in served.outputs]
        request: InferRequest = await self._apart(len(data), read_request, data, json_bytes, served.inputs, outputs)
        results = await served.infer(request.arrays)
        size = sum(results[name].nbytes for name, _ in request.outputs)
        parts, json_bytes = await self._apart(size, write_response, served.name, request, results)
        if json_bytes is None:
            return HostResponse(200, ((b"content-type", b"application/json"),), parts)
        length = (b"inference-header-content-length", str(json_bytes).encode())
        return HostResponse(200, ((b"content-type", b"application/octet-stream"), length), parts)

    async def _apart(self, size: int, work: Callable[..., Any], *args: Any) -> Any:
        """The result of work on so many bytes: in a thread, if they are many."""
        if size <= IN_LOOP_BYTES:
            return work(*args)
        async with self._turn:
            return await asyncio.to_thread(work, *args)


def _headers(scope: Scope) -> dict[str, str]:
    """The headers by name, in lower case; one that decides something may not come twice."""
    found: dict[str, str] = {}
    single = (
        "host",
        "origin",
        "authorization",
        "content-length",
        "content-encoding",
        "inference-header-content-length",
    )
    for key, value in scope["headers"]:
        name = key.decode("latin-1").lower()
        if name in found and name in single:
            raise Refused(400, f"the header {name} comes twice")
        found[name] = value.decode("latin-1").strip()
    return found


def _number(headers: Mapping[str, str], header: str) -> int | None:
    text = headers.get(header)
    if text is not None and not _DIGITS.fullmatch(text):
        raise Refused(400, f"the header {header} is {text!r:.40}, expected a number of bytes")
    return None if text is None else int(text)


def _want(method: str, wanted: str) -> None:
    if method != wanted and (method, wanted) != ("HEAD", "GET"):
        raise Refused(405, f"got {method[:20]}, expected {wanted}", ((b"allow", wanted.encode()),))


def _json(data: Any, status: int = 200, headers: Sequence[Header] = ()) -> HostResponse:
    return HostResponse(status, ((b"content-type", b"application/json"), *headers), (json.dumps(data).encode(),))


def _failure(e: Exception) -> HostResponse:
    """The response for an error."""
    refused = _refused(e)
    return _json({"error": str(refused)}, refused.status, refused.headers)


def _refused(e: Exception) -> Refused:
    """What a client is told of an error: who asked wrongly is told why; what else went wrong is printed, too."""
    if isinstance(e, Refused):
        return e
    if isinstance(e, (InputError, ShapeError, DTypeError)):
        return Refused(400, str(e))
    say(f"singe host: {type(e).__name__}: {e!s:.2000}", file=sys.stderr)
    if isinstance(e, SingeError):
        return Refused(503 if isinstance(e, DeviceLost) else 500, str(e))
    return Refused(500, f"{type(e).__name__}: the run failed; the server has printed why")


def _in_openai(answer: HostResponse) -> HostResponse:
    message = json.loads(b"".join(answer.parts))["error"]
    kept = [h for h in answer.headers if h[0] != b"content-type"]
    return _json(routes.openai_error(answer.status, message), answer.status, kept)


async def _streamed(send: Send, answer: HostResponse, stream: EventStream, headers: Sequence[Header]) -> int:
    """Send the pieces as they are made; the status by which the answer is counted."""
    status = answer.status
    fixed = (b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")
    try:
        await send({"type": "http.response.start", "status": status, "headers": [*answer.headers, *headers, *fixed]})
        while True:
            try:
                piece = await anext(stream.pieces, b"")
            except Exception as e:  # the status was sent
                refused = _refused(e)
                piece, status = stream.error(refused), refused.status
            async with asyncio.timeout(SEND_SECONDS):
                await send({"type": "http.response.body", "body": piece, "more_body": bool(piece)})
            if not piece:
                return status
    finally:
        await stream.pieces.aclose()


async def _sent(send: Send, answer: HostResponse, headers: Sequence[Header], head: bool) -> int:
    """Send an answer; the status by which it is counted."""
    if answer.stream is not None:
        return await _streamed(send, answer, answer.stream, headers)
    size = sum(map(len, answer.parts))
    fixed = (
        (b"content-length", str(size).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    )
    start = {"type": "http.response.start", "status": answer.status, "headers": [*answer.headers, *headers, *fixed]}
    parts = (b"".join(answer.parts),) if size <= PIECE_BYTES else answer.parts  # one system call, of most
    pieces = [part[at : at + PIECE_BYTES] for part in parts for at in range(0, len(part), PIECE_BYTES)]
    pieces = [b""] if head or not pieces else pieces
    async with asyncio.timeout(SEND_SECONDS) as patience:
        await send(start)
        for k, piece in enumerate(pieces, 1):
            await send({"type": "http.response.body", "body": piece, "more_body": k < len(pieces)})
            if k < len(pieces):
                patience.reschedule(asyncio.get_running_loop().time() + SEND_SECONDS)
    return answer.status
