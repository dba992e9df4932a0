"""Connections that are lost, and servers that stop: who waits is told at once, and what was said is done once or not at all."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import numpy as np
import pytest
from remote_kinds import Join, Serve
from slow_link import SlowLink

import singe as sg
from singe.runtime.eager import EagerDevice
from singe.runtime.remote import socket

X = np.ones(2, np.float32)
Through = Callable[..., SlowLink]


@pytest.fixture
def through() -> Iterator[Through]:
    """A proxy to a server."""
    with ExitStack() as stack:
        yield lambda server, latency=0.0: stack.enter_context(SlowLink(server.port, latency))


def counting(device: sg.Device) -> sg.Session:
    def step(x: sg.Tensor, *, count: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        return x * count, {"count": count + 1}

    return sg.Model.of(step, {"x": (2,)}, states={"count": np.float32(1)}, device=device).session()


def told(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """A thread that does something, and the error that it ends with."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as e:
            errors.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def until(holds: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def read_again(t: sg.Tensor) -> np.ndarray:
    """What a tensor holds after its link was cut: where that is noticed only while the first read waits, the read says so."""
    with suppress(sg.RemoteDisconnected):
        return t.numpy()
    return t.numpy()


@pytest.mark.parametrize("arrives", [True, False])
def test_who_waits_is_told_at_once_and_the_run_is_done_once(
    arrives: bool, serve: Serve, join: Join, through: Through
) -> None:
    """Whether the step arrived and its answer was lost, or never arrived."""
    server = serve()
    link = through(server)
    there = join(server, link.url)
    session = counting(there)
    x = sg.tensor(X, device=there)
    assert session(X)[0] == 1
    (hosted,) = server._hosted.values()
    before = hosted.batches
    if arrives:
        with hosted.turn:  # the step waits for its turn
            thread, errors = told(lambda: session(X))
            until(lambda: there.backend.connection._batches > before)
            time.sleep(0.1)
            link.cut()
            thread.join(30)
        until(lambda: hosted.batches > before or hosted.link is None)
    else:
        link.hold()
        thread, errors = told(lambda: session(X))
        until(lambda: there.backend.connection._batches > before)
        link.cut()
        thread.join(30)
    assert not thread.is_alive()
    assert [type(e) for e in errors] == [sg.RemoteDisconnected]
    assert isinstance(errors[0], sg.DeviceLost)
    assert "the next call connects again" in str(errors[0])
    assert session(X)[0] == 3
    np.testing.assert_array_equal((x + 1).numpy(), X + 1)


def test_calls_that_wait_for_nothing_go_on_over_a_new_connection(serve: Serve, join: Join, through: Through) -> None:
    server = serve()
    link = through(server)
    there = join(server, link.url)
    t = sg.tensor(X, device=there)
    there.synchronize()
    for _ in range(3):
        t = t + 1
        link.cut()
        for _ in range(100):
            t = t + 1
    np.testing.assert_array_equal(read_again(t), X + 303)


def test_without_a_client_a_session_is_freed_after_the_grace(serve: Serve, join: Join, through: Through) -> None:
    server = serve(grace=0.05)
    link = through(server)
    there = join(server, link.url)
    t = sg.tensor(X, device=there)
    there.synchronize()
    (hosted,) = server._hosted.values()
    assert hosted.session.bytes > 0
    link.cut()
    until(lambda: not server._hosted)
    until(lambda: hosted.session.bytes == 0)
    with pytest.raises(sg.RemoteDisconnected, match="no longer there; what was on the device is lost: upload it again"):
        t.numpy()
    assert there.lost
    with pytest.raises(sg.RemoteDisconnected, match="upload it again"):
        sg.tensor(X, device=there)


def test_a_session_whose_client_comes_back_as_its_time_ends_is_not_freed(
    serve: Serve, join: Join, through: Through
) -> None:
    server = serve()
    link = through(server)
    there = join(server, link.url)
    t = sg.tensor(X, device=there) + 1
    link.cut()
    np.testing.assert_array_equal(read_again(t), X + 1)
    (hosted,) = server._hosted.values()
    server._end(hosted, unless_back=True)  # as the timer does that could not be cancelled any more
    np.testing.assert_array_equal((t + 1).numpy(), X + 2)


def test_a_server_that_cannot_be_reached_is_said_each_time_until_it_is_too_late(
    serve: Serve, join: Join, through: Through
) -> None:
    server = serve(grace=0.3)
    link = through(server)
    there = join(server, link.url)
    t = sg.tensor(X, device=there)
    there.synchronize()
    link.close()
    with pytest.raises(sg.RemoteDisconnected, match=r"lost"):
        t.numpy()
    until(lambda: not server._hosted)
    texts = []
    while not there.lost:
        with pytest.raises(sg.RemoteDisconnected) as error:
            t.numpy()
        texts.append(str(error.value))
        time.sleep(0.01)
    assert all("cannot be made again yet" in text for text in texts[:-1])
    assert "so is the session" in texts[-1]


@pytest.mark.slow
def test_a_peer_that_is_silent_is_lost(
    serve: Serve, join: Join, through: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "HEARTBEAT_SECONDS", 0.3)
    server = serve()
    link = through(server)
    there = join(server, link.url)
    t = sg.tensor(X, device=there)
    there.synchronize()
    link.hold()
    with pytest.raises(sg.RemoteDisconnected, match="the connection was lost"):
        t.numpy()
    (hosted,) = server._hosted.values()
    until(lambda: hosted.link is None)


def test_a_server_that_stops_says_so(serve: Serve, join: Join) -> None:
    server = serve()
    there = join(server)
    t = sg.tensor(X, device=there)
    there.synchronize()
    server.stop("the server goes home")
    for _ in range(2):
        with pytest.raises(sg.RemoteDisconnected, match="the server goes home"):
            t.numpy()
    assert there.lost


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Tests that run in the background may ignore Ctrl-C, and so would what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are not on Windows")
def test_ctrl_c_ends_the_command_and_its_sessions_with_a_reason(interruptible: None) -> None:
    pytest.importorskip("websockets")
    command = [sys.executable, "-m", "singe", "host", "--device", "numpy", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first, second = process.stdout.readline(), process.stdout.readline()
            (url,) = re.findall(r"numpy is at (ws://127\.0\.0\.1:\d+) ", first)
            (token,) = re.findall(r"token: ([0-9a-f]{32})\n", second)
            there = sg.Remote(url, token)
            assert isinstance(there, EagerDevice)
            assert (sg.tensor(X, device=there) + 1).numpy().tolist() == [2, 2]
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            with pytest.raises(sg.RemoteDisconnected, match="stopped by Ctrl-C"):
                sg.tensor(X, device=there).numpy()
        finally:
            process.kill()


class Interrupted:
    """A link that is interrupted as Ctrl-C does it, once: before it sends or receives its frame of this number."""

    def __init__(self, url: str, what: str, at: int) -> None:
        self._link = socket.connect(url)
        self._left = {what: at}

    def _count(self, what: str) -> None:
        self._left[what] = self._left.get(what, 0) - 1
        if self._left[what] == 0:
            raise KeyboardInterrupt

    def send(self, frame: bytes) -> None:
        self._count("send")
        self._link.send(frame)

    def receive(self, timeout: float | None = None) -> bytes:
        self._count("receive")
        return self._link.receive(timeout)

    def close(self, reason: str = "") -> None:
        self._link.close(reason)


@pytest.mark.parametrize(("what", "at"), [("send", 5), ("receive", 3)])
def test_an_interrupted_call_is_done_once_and_the_next_one_goes_on(
    what: str, at: int, serve: Serve, join: Join
) -> None:
    """In the middle of a batch of several frames, or while an answer is awaited."""
    links: list[object] = []

    def opened(url: str) -> object:
        links.append(Interrupted(url, what, 0 if links else at))
        return links[-1]

    there = join(serve(), open_link=opened)
    session = counting(there)
    much = np.zeros(3 << 20, np.uint8)
    assert session(X)[0] == 1

    def lines() -> None:
        there.upload(much)
        session(X)

    with pytest.raises(KeyboardInterrupt):
        lines()
    assert session(X)[0] == (2 if what == "send" else 3)
    assert len(links) == 2


@pytest.mark.slow
def test_a_client_waits_for_a_server_that_takes_nothing(serve: Serve, join: Join) -> None:
    server = serve()
    there = join(server)
    session = counting(there)
    session(X)
    (hosted,) = server._hosted.values()
    link = there.backend.connection
    much = np.zeros(1 << 20, np.uint8)
    with hosted.turn:
        thread, errors = told(lambda: [there.upload(much) for _ in range(200)])
        until(lambda: link._frames - link._taken >= 48)
        time.sleep(0.1)
        assert link._frames - link._taken == 48
    thread.join(60)
    assert not errors
    assert session(X)[0] == 2
