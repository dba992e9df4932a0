"""A client of the KServe v2 protocol, written by the text of the protocol and by nothing of Singe; and calls of an ASGI application."""

from __future__ import annotations

import asyncio
import http.client
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

DATATYPES = {
    "bool": "BOOL",
    **{f"{u}int{n}": f"{u}INT{n}".upper() for u in ("", "u") for n in (8, 16, 32, 64)},
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "object": "BYTES",
}
NUMPY = {v: k for k, v in DATATYPES.items()}


class Answer(NamedTuple):
    """What came: body, and the headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def outputs(self) -> dict[str, np.ndarray]:
        """The outputs of a run, in JSON or as bytes."""
        assert self.status == 200, self.body
        size = int(self.headers.get("inference-header-content-length", len(self.body)))
        rest, found = self.body[size:], {}
        for entry in json.loads(self.body[:size])["outputs"]:
            kind = NUMPY[entry["datatype"]]
            count = entry.get("parameters", {}).get("binary_data_size")
            if count is None:
                found[entry["name"]] = np.array(entry["data"], kind).reshape(entry["shape"])
                continue
            raw, rest = rest[:count], rest[count:]
            flat = np.array(texts(raw), object) if kind == "object" else np.frombuffer(raw, kind)
            found[entry["name"]] = flat.reshape(entry["shape"])
        assert not rest
        return found


def texts(raw: bytes) -> list[str]:
    found = []
    while raw:
        (n,) = struct.unpack_from("<I", raw)
        found.append(raw[4 : 4 + n].decode())
        raw = raw[4 + n :]
    return found


def request(
    inputs: Mapping[str, np.ndarray], binary: bool = False, outputs: Sequence[Any] | None = None, **more: Any
) -> tuple[bytes, dict[str, str]]:
    """A body and its headers. binary: tensors as bytes, both ways."""
    entries, parts = [], []
    for name, array in inputs.items():
        entry: dict[str, Any] = {
            "name": name, "datatype": DATATYPES[array.dtype.name], "shape": list(array.shape)
        }  # fmt: skip
        if binary:
            text = array.dtype == object
            encoded = [x.encode() for x in array.ravel()] if text else []
            parts.append(b"".join(struct.pack("<I", len(x)) + x for x in encoded) if text else array.tobytes())
            entry["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            entry["data"] = array.ravel().tolist()
        entries.append(entry)
    data: dict[str, Any] = {"inputs": entries, **more}
    if outputs is not None:
        data["outputs"] = outputs
    if binary:
        data["parameters"] = {"binary_data_output": True}
    text = json.dumps(data).encode()
    return b"".join((text, *parts)), {"Inference-Header-Content-Length": str(len(text))} if binary else {}


class Client:
    """A connection to a server."""

    def __init__(self, url: str, token: str = "") -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, path: str, body: bytes | None = None, method: str = "", **headers: str) -> Answer:
        self._connection.request(method or ("GET" if body is None else "POST"), path, body, self._headers | headers)
        response = self._connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def infer(self, model: str, inputs: Mapping[str, np.ndarray], binary: bool = False) -> dict[str, np.ndarray]:
        body, headers = request(inputs, binary)
        return self.ask(f"/v2/models/{model}/infer", body, **headers).outputs

    def close(self) -> None:
        self._connection.close()


async def call(
    app: Any, path: str, body: bytes | Sequence[bytes] | None = None, method: str = "", root: str = "", **headers: str
) -> Answer:
    """A request to an ASGI application, without a server. root: where a larger application has it; body: in pieces, if it is a list; a
    `_` of a header's name stands for `-`."""
    pieces = [b""] if body is None else [body] if isinstance(body, (bytes, bytearray)) else list(body)
    given = {"host": "127.0.0.1", **{k.replace("_", "-").lower(): v for k, v in headers.items()}}
    scope = {
        "type": "http",
        "method": method or ("GET" if body is None else "POST"),
        "path": root + path,
        "root_path": root,
        "headers": [(k.encode(), v.encode("latin-1")) for k, v in given.items()],
    }
    messages = [{"type": "http.request", "body": p, "more_body": k + 1 < len(pieces)} for k, p in enumerate(pieces)]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        await asyncio.sleep(0)
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    assert not rest[-1].get("more_body", False)
    found = {k.decode(): v.decode() for k, v in start["headers"]}
    answer = Answer(start["status"], found, b"".join(m["body"] for m in rest))
    assert answer.status != 200 or int(found["content-length"]) == len(answer.body) or method == "HEAD"
    return answer
