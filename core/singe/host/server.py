"""A server of models on a socket: what `singe host MODEL` runs.

It listens on loopback, and wants a token of 128 bits, unless that is turned off there. When it stops, runs that have begun are
finished and answered, and what waits is answered with 503.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ..ending import OrderlyEnd, in_order
from ..errors import InputError
from ..listening import LOOPBACK, checked_port, chosen_token, in_url, is_loopback
from ..model.arguments import TensorSpec
from ..model.model import Model
from ..runtime.device import Device
from ..runtime.remote.protocol import PORT, TOKEN_VARIABLE
from ..texts import say
from .application import Application
from .deployment import DeployedModel, deployed, end_deployment
from .models import Models, is_language, named_models
from .protocol import metadata
from .web_server import BACKLOG, END_SECONDS, WebServer, uvicorn

STOP_SECONDS: Final = 3600.0
"""How long a run that has begun may go on when the server stops; Ctrl-C once more ends it."""
EXAMPLE_ELEMENTS: Final = 16
"""The most elements of an input in the example that is printed."""


class ModelServer:
    """A server of models of this machine, for clients of the KServe v2 protocol.

        with sg.host.ModelServer("digits.onnx", port=0) as server:
            print(server.url, server.token)

    It serves from the first line on, in threads. Arguments are those of `serve`.
    """

    def __init__(
        self, models: Models, *, port: int = PORT, host: str = LOOPBACK, token: str | None = None,
        device: str | Device = "auto", replicas: tuple[int, int] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """replicas: the models run in at least and at most so many processes of a Ray cluster; None: in this process."""
        uvicorn()
        checked_port(port)
        self._replicas: Final = replicas
        self._joins: Final = options.get("batch", 1) > 1
        self.token: Final = chosen_token(token, TOKEN_VARIABLE, host, "these models")
        self.is_local: Final = is_loopback(host)
        listener = _bound(host, port)
        try:
            there = None if replicas is None else self._deployed(models, device, replicas, options)
            self.application: Final = Application(
                models, device, token=self.token, host=host, elsewhere=there, **options
            )
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
        self.port: Final[int] = listener.getsockname()[1]
        self.url: Final = f"http://{in_url(host)}:{self.port}"
        self.application.url = self.url
        self._end_asked: Final = threading.Event()
        self._web: Final = WebServer(self.application, listener)
        self._thread: Final = threading.Thread(target=self._served, name="singe host", daemon=True)
        self._thread.start()

    def _deployed(
        self, models: Models, device: str | Device, replicas: tuple[int, int], options: dict[str, Any]
    ) -> dict[str, DeployedModel]:
        languages = [name for name, model in named_models(models).items() if is_language(model)]
        if languages:
            raise InputError(
                f"{languages[0]!r:.80} is a language model, which replicas do not run; serve it without them"
            )
        name = device if isinstance(device, str) else device.name
        kept = {k: options[k] for k in ("batch", "wait", "seconds") if k in options}
        return deployed(named_models(models), name, replicas, options.get("queue", 256), kept)

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop("the server was stopped")

    def _served(self) -> None:
        try:
            self._web.run()
        finally:
            self._end_asked.set()

    def run(self) -> None:
        """Print the address and the token, and wait until it is stopped."""
        served, languages = self.application.models, self.application.languages
        say(f"{', '.join((*served, *languages))}: at {self.url} (Ctrl-C ends)")
        say(f"token: {self.token}" if self.token else "no token is needed")
        for name, model in served.items():
            if self._joins:
                say(f"{name}: {model.alone or 'requests that agree are run together'}")
        for name, engine in languages.items():
            say(f"{name}: {engine.about()}")
        say(f"try: {self.example()}")
        if not self.is_local:
            say(
                "without TLS in front, token and data can be read on the way: let clients connect to a proxy with https://"
            )
        self.wait()
        answered = sum(model.counts.requests for model in (*served.values(), *languages.values()))
        say(f"ended: {answered} requests were answered, {self.application.refused} of them with 503 as it ended")

    def wait(self) -> None:
        """Wait until it is stopped; Ctrl-C or SIGTERM stops it, and once more at once."""
        with _interrupted_by_sigterm(), in_order(OrderlyEnd(lambda: 1.0, lambda: "ended before its runs", ended=True)):
            try:
                self._end_asked.wait()
            except KeyboardInterrupt:
                self.stop("the server was stopped")

    def stop(self, reason: str) -> None:
        """Finish the runs that have begun, answer what waits with the reason, and close all connections."""
        loop = self._web.loop
        if loop is not None and self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self.application.stop(reason), loop).result(STOP_SECONDS)
        self._web.end()
        self._thread.join(2 * END_SECONDS)
        if self._replicas is not None:
            end_deployment()
        self._end_asked.set()

    def example(self) -> str:
        """A command line that asks the first model: for its run, if its inputs are small, otherwise what they are."""
        token = f" -H 'Authorization: Bearer {self.token}'" if self.token else ""
        if not self.application.models:
            asked = {
                "model": next(iter(self.application.languages)),
                "messages": [{"role": "user", "content": "Hello"}],
            }
            return f"curl{token} {self.url}/v1/chat/completions -d '{json.dumps(asked)}'"
        name, served = next(iter(self.application.models.items()))
        inputs = [_example_input(p) for p in served.inputs]
        if not all(inputs):
            return f"curl{token} {self.url}/v2/models/{name}"
        return f"curl{token} {self.url}/v2/models/{name}/infer -d '{json.dumps({'inputs': inputs})}'"


def _bound(host: str, port: int) -> socket.socket:
    """A socket with this address, which does not listen yet."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM)
        try:
            if os.name != "nt":  # there it would share the port with another server
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((host, port))
        except BaseException:
            found.close()
            raise
    except OSError as e:
        raise InputError(f"cannot listen on {host}, port {port}: {e.strerror or e}; give another port or host") from e
    return found


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """In this block SIGTERM, by which systems end their services, is a KeyboardInterrupt in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _example_input(spec: TensorSpec) -> dict[str, Any] | None:
    """An input as JSON, of ones; None if it is not small."""
    shape = [max(n, 1) for n in metadata(spec)["shape"]]
    count = 1
    for n in shape:
        count *= n
    if spec.shape is None or count > EXAMPLE_ELEMENTS:
        return None
    one = "text" if spec.dtype.kind == "string" else True if spec.dtype.kind == "bool" else 1
    return {**metadata(spec), "shape": shape, "data": [one] * count}


def serve(models: str | Path | Model | Any, **options: Any) -> None:
    """Serve models to clients of the KServe v2 protocol (Open Inference Protocol), until Ctrl-C; the address and the token are printed.

        sg.host.serve("digits.onnx", port=3000)
        sg.host.serve({"digits": model, "names": "names.onnx"}, batch=8, wait=0.002)

    models: files, URLs or Models; a dict gives them names. device: where files are loaded. token: what clients must give; by default
    that of SINGE_REMOTE_TOKEN, or one that is made. host: the address to listen on. Beyond loopback, put something in front of it that
    speaks TLS: without, token and data can be read on the way. batch, wait, queue, body, seconds, names, origins: as `Application` has
    them. replicas=(1, 4): the models run in so many processes of a Ray cluster, at least and at most, by how many requests wait.
    """
    ModelServer(models, **options).run()
