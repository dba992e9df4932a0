"""An ASGI application that answers the KServe v2 protocol for some models: any ASGI server runs it.

    app = sg.host.Application({"digits": "digits.onnx"}, token="…")    # in main.py: uvicorn main:app

| route | answer |
|---|---|
| GET /v2 | the server's name, version and extensions |
| GET /v2/health/live, /v2/health/ready | whether it runs, and answers; without a token |
| GET /v2/models/M | inputs and outputs |
| GET /v2/models/M/ready | whether it answers |
| POST /v2/models/M/infer | a run |
| GET /metrics | counts, for Prometheus |

`/versions/1` may follow M. An error is `{"error": …}` with a status. Who asks is checked before a body is read, and a body is read up
to the limit, no slower than MIN_BYTES_PER_SECOND.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from ..errors import DeviceLost, DTypeError, InputError, ShapeError, SingeError
from ..listening import LOOPBACK, Callers, is_token
from ..model.files import load
from ..model.model import Model
from ..runtime.device import Device
from ..texts import say
from ..time_limits import opened_for
from .batching import ServedModel
from .metrics import prometheus_text
from .protocol import InferRequest, Refused, metadata, read_request, write_response

MAX_BODY_BYTES: Final = 64 << 20
MAX_HELD_BYTES: Final = 1 << 30
"""Of all bodies that are being read or wait for their run."""
BODY_SECONDS: Final = 20.0
"""For the body of a request, beside what MIN_BYTES_PER_SECOND allows, and for a client to take a piece of a response."""
MIN_BYTES_PER_SECOND: Final = 1 << 16
PIECE_BYTES: Final = 1 << 18
"""A response is sent in pieces of so many bytes."""
MAX_LEFT_BYTES: Final = 1 << 20
"""How much of a refused request's body is read, so that its client sees the answer."""
IN_LOOP_BYTES: Final = 1 << 16
"""Larger requests and responses are read and written in a thread, one at a time, while others are answered."""
_MODEL: Final = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(?:/(ready|infer))?")
_DIGITS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_ALLOWED_HEADERS: Final = b"authorization, content-type, inference-header-content-length"

Scope: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"
Header: TypeAlias = "tuple[bytes, bytes]"
Models: TypeAlias = "str | Path | Model | Mapping[str, str | Path | Model] | Sequence[str | Path | Model]"


class HostResponse(NamedTuple):
    """What is answered."""

    status: int
    headers: Sequence[Header]
    parts: Sequence[bytes]


class Application:
    """An ASGI application that answers the KServe v2 protocol for models: any ASGI server runs it.

        app = sg.host.Application({"digits": "digits.onnx"}, token="…")  # in main.py: uvicorn main:app

    models: files, URLs or Models, called by the names of their files; a dict gives other names.

    device: where files are loaded. token: what clients give as `Authorization: Bearer …`; "" for none. host, names, origins: the
    address of the server, what else it is called, and the origins of pages elsewhere that may ask. batch, wait: the most rows that are
    run together, and for how many seconds a request waits for others, where the model allows that. queue: how many requests may wait
    for a model; more are answered with 503. body: the most bytes of a request. seconds: how long one may take once its body is here;
    then it is answered with 504, and its run is stopped, between steps, and by "wasm" anywhere if it was opened here.
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
        names: Collection[str] = (),
        origins: Collection[str] = (),
        host: str = LOOPBACK,
        elsewhere: Mapping[str, Any] | None = None,
    ) -> None:
        """elsewhere: what answers in place of models of this process, such as those of a deployment."""
        for what, value in (("batch", batch), ("queue", queue), ("body", body)):
            if value < 1:
                raise InputError(f"{what}: got {value}, expected a number above 0")
        if not 0 <= wait <= 60:
            raise InputError(f"wait: got {wait}, expected seconds, from 0 to 60")
        if not seconds > 0:
            raise InputError(f"seconds: got {seconds}, expected seconds above 0")
        with opened_for(seconds):
            self.models: Final[Mapping[str, Any]] = elsewhere or {
                name: ServedModel(name, model, batch=batch, wait=wait, limit=queue, seconds=seconds)
                for name, model in _loaded(models, device).items()
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
        self.refused += sum(await asyncio.gather(*(model.stop(reason) for model in self.models.values())))

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
        body = _Body(self._held, receive)
        served: ServedModel | None = None
        try:
            try:
                given = _headers(scope)
                headers += self._checked(scope, given)
                served, answer = await self._routed(scope, given, body)
            except Exception as e:
                answer = _failure(e)
                if not body.is_read:
                    await body.discard()
            await _sent(send, answer, headers, head=scope["method"] == "HEAD")
        finally:
            body.release()
        if served is not None:
            served.counts.answered(answer.status, time.perf_counter() - start)

    def _checked(self, scope: Scope, given: Mapping[str, str]) -> list[Header]:
        """The headers for a page that may ask; an error for who may not."""
        origin = given.get("origin")
        why = self._callers.refusal(self.url, given.get("host"), origin)
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
        self, scope: Scope, given: Mapping[str, str], body: _Body
    ) -> tuple[ServedModel | None, HostResponse]:
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
            self._check_token(given)
        if path in ("/v2", "/v2/"):
            _want(method, "GET")
            version = vars(sys.modules["singe"])["__version__"]  # to import the package would be an import upwards
            return None, _json({"name": "singe", "version": version, "extensions": ["binary_tensor_data"]})
        if path == "/metrics":
            _want(method, "GET")
            text = prometheus_text({name: m.counts for name, m in self.models.items()})
            return None, HostResponse(
                200, ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),), (text.encode(),)
            )
        found = _MODEL.fullmatch(path)
        if found is None:
            raise Refused(
                404, f"there is no {path[:200]!r}; there are /v2, /v2/health/ready, /v2/models/NAME and /metrics"
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
                return served, await self._inferred(served, given, body)
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

    def _check_token(self, given: Mapping[str, str]) -> None:
        scheme, _, token = given.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not is_token(token.strip(), self.token):
            raise Refused(
                401,
                "give the token that the server printed: Authorization: Bearer TOKEN",
                ((b"www-authenticate", b"Bearer"),),
            )

    async def _inferred(self, served: ServedModel, given: Mapping[str, str], body: _Body) -> HostResponse:
        if given.get("content-encoding", "identity") != "identity":
            raise Refused(415, f"the body is encoded as {given['content-encoding']!r:.80}; send it as it is")
        json_bytes = _number(given, "inference-header-content-length")
        data = await body.read(_number(given, "content-length"), self._body)
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


class HeldBytes:
    """What all bodies hold, of which only so much may be here."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, size: int) -> None:
        """Count bytes that came."""
        if self.size + size > MAX_HELD_BYTES:
            raise Refused(503, "the bodies of other requests take all room: try again later", ((b"retry-after", b"1"),))
        self.size += size

    def give(self, size: int) -> None:
        """Count bytes that went."""
        self.size -= size


class _Body:
    """The body of a request, which comes in pieces."""

    def __init__(self, room: HeldBytes, receive: Receive) -> None:
        self._room: Final = room
        self._receive: Final = receive
        self._held = 0
        self.is_read = False

    async def read(self, length: int | None, limit: int) -> bytearray:
        """All of it, if it is no longer than the limit, and no slower than it may be."""
        if (length or 0) > limit:
            raise Refused(413, f"the body has {length} bytes, and {limit} are allowed")
        found, start = bytearray(), time.monotonic()
        while not self.is_read:
            piece = await self._piece(start + BODY_SECONDS + len(found) / MIN_BYTES_PER_SECOND - time.monotonic())
            if len(found) + len(piece) > limit:
                raise Refused(413, f"the body has more than the {limit} bytes that are allowed")
            self._room.take(len(piece))
            self._held += len(piece)
            found += piece
        return found

    async def discard(self) -> None:
        """Take what comes for a short while, so that a client which still sends sees the answer."""
        left = MAX_LEFT_BYTES
        try:
            while not self.is_read and left > 0:
                left -= len(await self._piece(BODY_SECONDS / 4))
        except Refused:
            pass

    def release(self) -> None:
        self._room.give(self._held)
        self._held = 0

    async def _piece(self, seconds: float) -> bytes:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                message = await self._receive()
        except TimeoutError:
            raise Refused(408, f"the body did not come within {BODY_SECONDS:g} seconds") from None
        if message["type"] != "http.request":
            self.is_read = True
            raise Refused(400, "the client left before its body was here")
        self.is_read = not message.get("more_body", False)
        return message.get("body", b"")


def named_models(models: Models) -> dict[str, str | Path | Model]:
    """The models by name: those of a dict, or called by the names of their files."""
    if isinstance(models, Mapping):
        return dict(models)
    several = [models] if isinstance(models, (str, Path, Model)) else models
    return {(m.name if isinstance(m, Model) else Path(m).stem): m for m in several}


def _loaded(models: Models, device: str | Device) -> dict[str, Model]:
    """The Models by name."""
    if isinstance(models, Mapping):
        named = list(models.items())
    else:
        several = [models] if isinstance(models, (str, Path, Model)) else models
        named = [(m.name if isinstance(m, Model) else Path(m).stem, m) for m in several]
    if not named:
        raise InputError("there is no model to serve: give at least one")
    found: dict[str, Model] = {}
    for name, model in named:
        if not name or "/" in name:
            raise InputError(
                f"a model is called {name!r:.80}, expected a name without a slash, as it stands in addresses"
            )
        if name in found:
            raise InputError(f"two models are called {name!r:.80}: give one of them another name, as in {name}2=FILE")
        found[name] = model if isinstance(model, Model) else load(model, device)
    return found


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


def _number(given: Mapping[str, str], header: str) -> int | None:
    text = given.get(header)
    if text is not None and not _DIGITS.fullmatch(text):
        raise Refused(400, f"the header {header} is {text!r:.40}, expected a number of bytes")
    return None if text is None else int(text)


def _want(method: str, wanted: str) -> None:
    if method != wanted and (method, wanted) != ("HEAD", "GET"):
        raise Refused(405, f"got {method[:20]}, expected {wanted}", ((b"allow", wanted.encode()),))


def _json(data: Any, status: int = 200, headers: Sequence[Header] = ()) -> HostResponse:
    return HostResponse(status, ((b"content-type", b"application/json"), *headers), (json.dumps(data).encode(),))


def _failure(e: Exception) -> HostResponse:
    """The response for an error: who asked wrongly is told why; what else went wrong is printed, too."""
    if isinstance(e, Refused):
        return _json({"error": str(e)}, e.status, e.headers)
    if isinstance(e, (InputError, ShapeError, DTypeError)):
        return _json({"error": str(e)}, 400)
    say(f"singe host: {type(e).__name__}: {e!s:.2000}", file=sys.stderr)
    if isinstance(e, DeviceLost):
        return _json({"error": str(e)}, 503)
    if isinstance(e, SingeError):
        return _json({"error": str(e)}, 500)
    return _json({"error": f"{type(e).__name__}: the run failed; the server has printed why"}, 500)


async def _sent(send: Send, answer: HostResponse, headers: Sequence[Header], head: bool) -> None:
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
    async with asyncio.timeout(BODY_SECONDS) as patience:
        await send(start)
        for k, piece in enumerate(pieces, 1):
            await send({"type": "http.response.body", "body": piece, "more_body": k < len(pieces)})
            if k < len(pieces):
                patience.reschedule(asyncio.get_running_loop().time() + BODY_SECONDS)
