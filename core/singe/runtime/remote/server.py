"""The server of a device elsewhere: connections, tokens, and how long a session outlives its connection.

Each session has a device of its own, and the thread of its connection. A connection that is lost leaves its session for some time, in
which the client may come back with the session's name, a secret that the server made; then it is freed.

It listens on loopback, and wants a token of 128 bits, unless that is turned off there. A page may connect if it is of this machine, or if its
origin was listed; a Host that names neither an address nor this server is refused, since its name may have been made to lead here.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...awaitables import resolve
from ...compiler.target import confinement, settings_of
from ...errors import DeviceError, InputError, SingeError
from ...late_dataclass import dataclass
from ...listening import LOOPBACK, Callers, checked_port, chosen_token, in_url, is_loopback, is_token
from ...program.bundle_reader import read_bundled, read_manifest
from ...program.elements import aligned
from ...texts import say
from ...time_limits import opened_for, stopped_by
from ..device import Device
from ..devices import device as open_device
from ..registry import open_backend
from .protocol import CALLS, FRAMES_PER_ACK, NAME, PORT, TOKEN_VARIABLE, VERSION, Batch, BatchReader
from .served_session import TWIN, Answer, ServedSession, SessionLimits
from .socket import LinkLost, SocketLink, listen

GRACE_SECONDS: Final = 60.0
TOKEN_SECONDS: Final = 5.0
"""How long a client may take to give the token."""
TAKEOVER_SECONDS: Final = 10.0
"""How long a client that comes back waits for the end of the batch that its session is doing."""
STOP_SECONDS: Final = 2.0
"""How long the end of what a session computes may take before nobody waits for it any more."""
MAX_SESSIONS: Final = 16
MAX_NEW_CONNECTIONS: Final = 16
"""How many connections may wait for their token."""


@dataclass(eq=False)
class _Hosted:
    """A session, its name, and its connection while it has one. turn: held while it does a batch. is_abandoned: it computes what
    nobody waits for any more."""

    name: str
    session: ServedSession
    link: SocketLink | None = None
    batches: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)
    end: threading.Timer | None = None
    is_abandoned: bool = False


class RemoteServer:
    """A server of a device of this machine, for `sg.Remote` elsewhere.

        with sg.remote.RemoteServer("wasm", port=0) as server:
            device = sg.Remote(server.url, server.token)

    It serves from the first line on, in threads. Arguments are those of `serve`.
    """

    def __init__(
        self,
        device: str | Device = "auto",
        *,
        port: int = PORT,
        host: str = LOOPBACK,
        token: str | None = None,
        origins: Collection[str] = (),
        names: Collection[str] = (),
        limits: SessionLimits = SessionLimits(),  # noqa: B008 (frozen)
        sessions: int = MAX_SESSIONS,
        grace: float = GRACE_SECONDS,
        weights: Collection[str | Path] = (),
    ) -> None:
        opened = open_device(device).eager
        self.device: Final = opened.name
        self.target: Final = opened.target.name
        self._settings: Final = dict(settings_of(opened.target))
        if not confinement(opened.target):
            raise DeviceError(
                f"{NAME}: programs for {self.target!r} are native code, with which a client could do anything on this machine: "
                f"{self.device} is not lent; lend another device"
            )
        checked_port(port)
        self.token: Final = chosen_token(token, TOKEN_VARIABLE, host, "this device")
        self.is_local: Final = is_loopback(host)
        self.limits: Final = limits
        self._weights: Final = dict(_weights_of(Path(folder), self.target) for folder in weights)
        self.most: Final = sessions
        self.grace: Final = grace
        self._callers: Final = Callers(host, names, origins)
        self._hosted: Final[dict[str, _Hosted]] = {}
        self._lock: Final = threading.Lock()
        self._new = self._opening = 0
        self._links: Final[set[SocketLink]] = set()
        self._stopped = ""
        self._end_asked: Final = threading.Event()
        try:
            self._server: Final[Any] = listen(host, port, self._take, self._refusal)
        except OSError as e:
            raise InputError(
                f"{NAME}: cannot listen on {host}, port {port}: {e.strerror or e}; give another port or host"
            ) from e
        self.port: Final[int] = self._server.socket.getsockname()[1]
        self.url: Final = f"ws://{in_url(host)}:{self.port}"
        threading.Thread(target=self._server.serve_forever, name="singe remote", daemon=True).start()

    def __enter__(self) -> RemoteServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop("the server was stopped")

    def wait(self) -> None:
        """Wait until it is stopped, or interrupted; clients get a message that says which."""
        try:
            self._end_asked.wait()
        except KeyboardInterrupt:
            self.stop("the server was stopped by Ctrl-C")
            raise

    def stop(self, reason: str) -> None:
        """End all sessions, whose clients get the reason."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = reason
            self._end_asked.set()
            links, left = list(self._links), list(self._hosted.values())
        # Some may never end what they compute, or take what is sent to them.
        _wait_for([_apart(_say_bye, link, DeviceError(reason)) for link in links])
        _wait_for([_apart(self._server.shutdown)])
        _wait_for([_apart(self._end, hosted) for hosted in left])

    # --- connections ---

    def _refusal(self, host: str | None, origin: str | None) -> str:
        """Why a request with these headers is not answered."""
        why = self._callers.refusal(self.url, host, origin)
        if why:
            return why
        with self._lock:
            if self._new >= MAX_NEW_CONNECTIONS:
                return "too many connections"
        return ""

    def _take(self, link: SocketLink) -> None:
        """Serve a connection, in a thread of its own."""
        with self._lock:
            self._new += 1
            self._links.add(link)
        try:
            try:
                hosted = self._welcome(link)
            finally:
                with self._lock:
                    self._new -= 1
            if hosted is not None:
                self._converse(hosted, link)
        except LinkLost:
            pass
        except SingeError as e:
            _say_bye(link, e)
        finally:
            link.close()
            with self._lock:
                self._links.discard(link)

    def _welcome(self, link: SocketLink) -> _Hosted | None:
        """The session of a client that has given its token."""
        reader = BatchReader({"hello": CALLS["hello"]}, lambda *_: False, "client")
        try:
            batch = reader.feed(link.receive(TOKEN_SECONDS))
        except TimeoutError:
            raise DeviceError(f"no token came within {TOKEN_SECONDS:g} s") from None
        if batch is None or len(batch) != 1:
            raise DeviceError("the first message must be one hello")
        version, token, resumed = batch[0].values
        if not is_token(token, self.token):
            raise DeviceError(
                f"the token is wrong: give the one that the server printed, as token=… or in {TOKEN_VARIABLE}"
            )
        if version != VERSION:
            raise DeviceError(
                f"the client speaks {version!r:.80}, and the server {VERSION!r}: install one version of Singe on both"
            )
        hosted = self._found(resumed, link) if resumed else self._opened(link)
        hello = Batch()
        hello.add("ready", hosted.name, self.device, self.target, self._settings, self.grace, hosted.batches)
        _send(link, hello)
        return hosted

    def _opened(self, link: SocketLink) -> _Hosted:
        """A new session."""
        with self._lock:
            if self._stopped or len(self._hosted) + self._opening >= self.most:
                raise DeviceError(self._stopped or f"the server has {self.most} sessions already, and allows no more")
            self._opening += 1
        try:
            with opened_for(self.limits.seconds):
                backend = resolve(open_backend(self.device), TWIN)
        finally:
            with self._lock:
                self._opening -= 1
        hosted = _Hosted(secrets.token_hex(16), ServedSession(backend, self.limits, self._weights), link)
        with self._lock:
            self._hosted[hosted.name] = hosted
        return hosted

    def _found(self, name: str, link: SocketLink) -> _Hosted:
        """The session of a client that comes back."""
        with self._lock:
            hosted = next((p for p in self._hosted.values() if is_token(name, p.name)), None)
            if hosted is None or hosted.is_abandoned:
                raise DeviceError(self._stopped or "this session is no longer there")
            if hosted.end is not None:
                hosted.end.cancel()
                hosted.end = None
            before, hosted.link = hosted.link, link
        if before is not None:
            before.close()
        if not hosted.turn.acquire(timeout=TAKEOVER_SECONDS):
            raise LinkLost  # it still computes; the client may try again
        hosted.turn.release()
        return hosted

    def _converse(self, hosted: _Hosted, link: SocketLink) -> None:
        """Do what the client says until it leaves, or its connection is lost."""
        session = hosted.session
        left = False
        try:
            reader = BatchReader(CALLS, session.has_room, "client")
            frames = told = 0
            while True:
                batch = reader.feed(link.receive())
                frames += 1
                answers: list[Answer] = []
                if batch is not None:
                    with hosted.turn:
                        if hosted.link is not link:
                            return
                        left = any(m.name == "leave" for m in batch)
                        if left:
                            return
                        late = time.monotonic() + session.seconds_left + STOP_SECONDS
                        with stopped_by(lambda: self._abandon(hosted, link), late):
                            answers = session.perform(batch)
                        hosted.batches += 1
                if answers or frames - told >= FRAMES_PER_ACK:
                    told = frames
                    _reply(link, answers, hosted.batches, frames)
        except SingeError:
            left = True
            raise
        finally:
            session.forget_coming()
            if left:
                self._end(hosted)
            else:
                self._leave_for_a_while(hosted, link)

    def _leave_for_a_while(self, hosted: _Hosted, link: SocketLink) -> None:
        """Free a session that lost its connection, unless its client comes back."""
        with self._lock:
            if hosted.link is not link or hosted.name not in self._hosted:
                return
            hosted.link = None
            hosted.end = threading.Timer(self.grace, self._end, (hosted, True))
            hosted.end.daemon = True
            hosted.end.start()

    def _abandon(self, hosted: _Hosted, link: SocketLink) -> None:
        """Tell the client of a session that is out of time, and cannot be stopped, that it has ended. It counts, and has its memory,
        until what it computes is done."""
        hosted.is_abandoned = True
        _apart(_say_bye, link, hosted.session.out_of_time())

    def _end(self, hosted: _Hosted, unless_back: bool = False) -> None:
        """Free a session, once it has finished what it computes. unless_back: not if its client has come back."""
        with self._lock:
            if (unless_back and hosted.link is not None) or self._hosted.pop(hosted.name, None) is None:
                return
            if hosted.end is not None:
                hosted.end.cancel()
        with hosted.turn:
            hosted.session.close()


def _weights_of(folder: Path, target: str) -> tuple[str, np.ndarray]:
    """The hashes of a bundle's files of weights for a target, and the weights."""
    manifest = read_manifest(folder)
    name = next((name for name, entry in manifest["targets"].items() if entry["program"]["target"] == target), None)
    if name is None:
        raise InputError(f"{folder}: it has no program for {target}; export it again: singe export MODEL -o {folder}")
    found = read_bundled(folder, manifest, name).weights
    weights = aligned(found.size)
    weights[:] = found
    weights.flags.writeable = False  # all sessions share them
    return ",".join(file["sha256"] for file in manifest["targets"][name]["weights"]), weights


def _apart(do: Callable[..., object], *args: Any) -> threading.Thread:
    """A thread that does something which may take for ever."""
    thread = threading.Thread(target=do, args=args, name="singe remote end", daemon=True)
    thread.start()
    return thread


def _wait_for(threads: Sequence[threading.Thread]) -> None:
    """Wait for them, for STOP_SECONDS at most."""
    end = time.monotonic() + STOP_SECONDS
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))


def _send(link: SocketLink, batch: Batch) -> None:
    for frame in batch.frames():
        link.send(frame)


def _reply(link: SocketLink, answers: list[Answer], batches: int, frames: int) -> None:
    batch = Batch()
    batch.add("ack", batches, frames)
    for name, values, raw in answers:
        batch.add(name, *values, parts=(raw,) if raw else ())
    _send(link, batch)


def _say_bye(link: SocketLink, error: SingeError) -> None:
    """Tell a client why its session ends, and close the connection."""
    batch = Batch()
    batch.add("bye", type(error).__name__, Exception.__str__(error))
    with suppress(LinkLost):
        _send(link, batch)
    link.close(str(error))


def serve(device: str | Device = "auto", **options: Any) -> None:
    """Lend a device of this machine to clients elsewhere, `sg.Remote`, until Ctrl-C; the address and the token are printed.

        sg.remote.serve("webgpu", port=3000)

    token: what clients must give; by default that of SINGE_REMOTE_TOKEN, or one that is made. host: the address to listen on. Beyond
    loopback, put something in front of it that speaks TLS: without, token and data can be read on the way. origins, names: of pages
    that may connect beside those of this machine, and what else the server is called. limits: what one session may have;
    sessions: how many there may be; grace: for how many seconds a session outlives its connection. weights: folders of bundles,
    whose weights pages then neither fetch nor send.
    """
    server = RemoteServer(device, **options)
    say(f"{server.device} is at {server.url} (Ctrl-C ends)")
    say(f"token: {server.token}" if server.token else "no token is needed")
    if not server.is_local:
        say("without TLS in front, token and data can be read on the way: let clients connect to a proxy with wss://")
    server.wait()
