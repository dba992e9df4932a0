"""Sessions that compute for longer than they may: what runs is stopped or abandoned, and nobody else waits for it."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from networks.control_graphs import endless
from remote_kinds import Join, Serve

import singe as sg
from singe.runtime.remote import server as servers
from singe.time_limits import OutOfTime, limited, opened_for

X = np.ones(2, np.float32)
LIMIT = sg.remote.SessionLimits(seconds=0.3)


def ended(server: sg.remote.RemoteServer, left: int) -> bool:
    """Whether so many sessions are left, after some time."""
    end = time.monotonic() + 30
    while len(server._hosted) > left and time.monotonic() < end:
        time.sleep(0.01)
    return len(server._hosted) == left


@pytest.mark.parametrize(
    "kind",
    [
        "numpy",
        pytest.param("wasm", marks=pytest.mark.slow),
        pytest.param("webgpu", marks=[pytest.mark.slow, pytest.mark.full]),
    ],
    indirect=True,
)
def test_a_run_that_never_ends_is_stopped(kind: str, serve: Serve, join: Join) -> None:
    """Its client is told why, the others go on, and what it had is freed."""
    seconds = 5 if kind == "webgpu" else 0.5  # of which the others need some, too
    server = serve(kind, limits=sg.remote.SessionLimits(seconds=seconds))
    there, other = join(server), join(server)
    model = sg.Model(endless(), there)
    kept = next(iter(server._hosted.values())).session
    for _ in range(2):
        with pytest.raises(sg.RemoteDisconnected, match=r"computed for as long as the server allows"):
            model(X)
    np.testing.assert_array_equal((sg.tensor(X, device=other) + 1).numpy(), X + 1)
    assert ended(server, 1)
    assert kept.bytes == 0
    np.testing.assert_array_equal((sg.tensor(X, device=join(server)) + 1).numpy(), X + 1)


def test_webassembly_is_stopped_anywhere() -> None:
    """A client sends modules of its own, which need not look at any limit; the engine goes on with others."""
    wasmtime = pytest.importorskip("wasmtime", reason="the extra `wasm` is not installed")
    native = pytest.importorskip("singe_wasm.native")
    body = '(import "env" "memory" (memory 1)) (func (export "run") (param i32 i32) (result i32) {} local.get 1)'
    binaries = [wasmtime.wat2wasm(f"(module {body.format(code)})") for code in ("(loop (br 0))", "")]
    with opened_for(0.2):
        engine = native.WasmtimeEngine()
    endless, plain = map(engine.link, map(bytes, binaries))
    words = np.zeros(4, np.uint32)
    for _ in range(2):
        with pytest.raises(OutOfTime), limited(0.2):
            engine.run(endless, words, 0, None)
        with limited(30):
            assert engine.run(plain, words, 0, None) == words.size


def test_what_cannot_be_stopped_is_abandoned(serve: Serve, join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is told at once; the session counts until what it computes is done."""
    monkeypatch.setattr(servers, "STOP_SECONDS", 0.0)
    server = serve(limits=LIMIT, sessions=2)
    there, other = join(server), join(server)
    x = sg.tensor(X, device=there)
    (hosted, _) = server._hosted.values()
    done = threading.Event()
    monkeypatch.setattr(hosted.session.backend, "download", lambda _: done.wait(30) and X)
    with pytest.raises(sg.RemoteDisconnected, match="computed for as long as the server allows"):
        x.numpy()
    np.testing.assert_array_equal((sg.tensor(X, device=other) + 1).numpy(), X + 1)
    with pytest.raises(sg.DeviceError, match="the server has 2 sessions already"):
        join(server)
    done.set()
    assert ended(server, 1)
    assert hosted.session.bytes == 0


def test_a_server_stops_although_a_run_does_not_end(serve: Serve, join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "STOP_SECONDS", 0.0)
    server = serve()
    x = sg.tensor(X, device=join(server))
    (hosted,) = server._hosted.values()
    begun, done = threading.Event(), threading.Event()

    def download(_: object) -> np.ndarray:
        begun.set()
        done.wait(30)
        return X

    monkeypatch.setattr(hosted.session.backend, "download", download)

    def read() -> None:
        with pytest.raises(sg.RemoteDisconnected):
            x.numpy()

    reading = threading.Thread(target=read)
    reading.start()
    assert begun.wait(30)
    server.stop("it is late")
    reading.join(30)
    assert not reading.is_alive()
    done.set()


def test_a_server_stops_although_a_client_takes_nothing(
    serve: Serve, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "STOP_SECONDS", 0.0)
    server = serve()
    join(server)
    taken = threading.Event()
    monkeypatch.setattr(servers.SocketLink, "send", lambda *_: taken.wait(30))
    start = time.monotonic()
    server.stop("it is late")
    assert time.monotonic() - start < 20
    taken.set()
