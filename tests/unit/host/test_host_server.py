"""A server of models on a real socket: clients of the protocol, slow and rude ones, and its end."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run
from kserve import Client, request

import singe as sg
from singe.host import ModelServer, server, web_server
from singe.tensors.tensor import Tensor

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Host = Callable[..., ModelServer]


def model(name: str = "m") -> sg.Model:
    def two(x: Tensor) -> dict[str, Tensor]:
        return {"double": x * 2, "sum": x.sum(axis=1)}

    return sg.Model.of(two, {"x": ("N", 3)}, device="numpy", name=name)


@pytest.fixture
def host() -> Iterator[Host]:
    """Starts servers, which end with the test."""
    pytest.importorskip("uvicorn")
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(ModelServer(*(args or (model(),)), port=0, **options))


@pytest.fixture
def many() -> Iterator[Callable[..., list[Any]]]:
    """Calls a function in many threads at a time."""
    with ThreadPoolExecutor(20) as pool:
        yield lambda work, count: list(pool.map(work, range(count)))


@pytest.mark.slow
def test_clients_at_a_time_get_what_is_theirs(host: Host, many: Callable[..., list[Any]]) -> None:
    there = host(batch=8, wait=0.005)

    def work(k: int) -> bool:
        with closing(Client(there.url, there.token)) as client:
            for binary in (False, True) * 3:
                found = client.infer("m", {"x": X + k}, binary)
                assert np.array_equal(found["double"], 2 * (X + k))
                assert np.array_equal(found["sum"], (X + k).sum(axis=1))
        return True

    assert all(many(work, 40))
    counts = there.application.models["m"].counts
    assert counts.requests == 240
    assert sum(counts.rows._counts) < 240
    assert not counts.errors


@pytest.mark.slow
def test_large_tensors_come_and_go(host: Host) -> None:
    there = host()
    much = np.random.default_rng(0).normal(size=(200_000, 3)).astype(np.float32)
    with closing(Client(there.url, there.token)) as client:
        assert np.array_equal(client.infer("m", {"x": much}, binary=True)["double"], much * 2)
        assert np.array_equal(client.infer("m", {"x": much[:20_000]})["double"], much[:20_000] * 2)


@pytest.mark.slow
def test_who_is_refused_is_told_also_after_a_large_body(host: Host) -> None:
    there = host(body=1 << 20)
    much = bytes(900_000)
    for token, body, status in (("wrong", much, 401), (there.token, bytes(1 << 21), 413), (there.token, much, 400)):
        with closing(Client(there.url, token)) as client:
            answer = client.ask("/v2/models/m/infer", body)
            assert answer.status == status
            assert answer.json["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /v2 HTTP/1.1\r\nHost: lo",
        b"POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v2",
    ],
)
def test_who_is_slow_is_not_waited_for(sent: bytes, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 0.1)
    monkeypatch.setattr(web_server, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr("singe.host.bodies.BODY_SECONDS", 0.1)
    there = host(token="")
    with socket.create_connection(("127.0.0.1", there.port), timeout=30) as slow:
        slow.sendall(sent)
        came = b"".join(iter(lambda: slow.recv(4096), b""))  # until the server closes
    assert (b" 408 " in came) is sent.startswith(b"POST")


@pytest.mark.slow
def test_who_takes_no_answer_is_left(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "SEND_SECONDS", 0.2)
    there = host(token="")
    much = np.zeros((1_000_000, 3), np.float32)
    body, headers = request({"x": much}, binary=True)
    lines = [f"{k}: {v}" for k, v in {"Host": "localhost", "Content-Length": str(len(body)), **headers}.items()]
    head = "\r\n".join(("POST /v2/models/m/infer HTTP/1.1", *lines, "", "")).encode()
    with socket.create_connection(("127.0.0.1", there.port), timeout=30) as deaf:
        deaf.sendall(head + body)
        connections = there._web._server.server_state.connections
        while not connections:
            time.sleep(0.01)
        while connections:  # until the server has ended it
            time.sleep(0.01)
        while there.application._held.size:
            time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent", [b"\x00\xff" * 100, b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"x" * 200_000, b"GET /v2 HTTP/1.1\r\n\r\n"]
)
def test_what_is_no_http_is_refused(sent: bytes, host: Host, capfd: pytest.CaptureFixture[str]) -> None:
    there = host()
    with socket.create_connection(("127.0.0.1", there.port), timeout=30) as rude:
        came = b""
        with suppress(OSError):  # the server may end the connection while it is being written to
            rude.sendall(sent)
            rude.shutdown(socket.SHUT_WR)
            came = rude.recv(100)
    assert not came or came.startswith(b"HTTP/1.1 4")
    with closing(Client(there.url, there.token)) as client:
        assert client.infer("m", {"x": X})["sum"].tolist() == [6, 15]
    assert capfd.readouterr().err == ""


def test_addresses_that_cannot_be_used_are_refused(host: Host) -> None:
    there = host()
    with pytest.raises(sg.InputError, match=r"cannot listen on 127\.0\.0\.1, port .* give another port"):
        ModelServer(model(), port=there.port)
    with pytest.raises(sg.InputError, match="port 70000: expected"):
        ModelServer(model(), port=70_000)
    with pytest.raises(sg.InputError, match=r"anyone who reaches 0\.0\.0\.0 could use these models: give a token"):
        ModelServer(model(), port=0, host="0.0.0.0", token="")


def test_the_token_is_made_or_that_of_the_environment(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = host(), host()
    assert len(bytes.fromhex(one.token)) == 16
    assert one.token != two.token
    monkeypatch.setenv("SINGE_REMOTE_TOKEN", "own")
    assert host().token == "own"


def test_without_uvicorn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(sg.DeviceError, match=re.escape("pip install 'singe[host]'")):
        ModelServer(model())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--batch", "8"], "--batch needs a MODEL"),
        (["--cache-dtype", "float16"], "--cache-dtype needs a MODEL"),
        (["m.onnx", "--grace", "3"], "--grace is for a device that is lent"),
        (["m.onnx", "m.onnx"], "two models are called 'm'"),
        (["m.onnx", "--wait", "2"], "expected a time such as 2ms or 0.5s"),
    ],
)
def test_the_command_refuses_what_does_not_go_together(
    options: list[str], match: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, error = run(capsys, "host", *options)
    assert code == 2
    assert match in error


def test_what_is_served_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("uvicorn")
    monkeypatch.setattr(ModelServer, "wait", lambda self: self.stop("end"))
    server.serve({"m": model(), "big": model()}, port=0, batch=4, host="0.0.0.0")
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"m, big: at http://0\.0\.0\.0:\d+ \(Ctrl-C ends\)", first)
    assert re.fullmatch("token: [0-9a-f]{32}", second)
    assert rest[:2] == [f"{name}: requests that agree are run together" for name in ("m", "big")]
    assert rest[2].startswith("try: curl ")
    assert "put" in rest[3] or "TLS" in rest[3]
    assert rest[-1] == "ended: 0 requests were answered, 0 of them with 503 as it ended"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Tests that run in the background may ignore Ctrl-C, and so would what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are not on Windows")
@pytest.mark.parametrize("sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_ctrl_c_ends_the_command_in_order(sent: int, tmp_path: Path, interruptible: None) -> None:
    pytest.importorskip("uvicorn")
    sg.save(model(), tmp_path / "m.singe")
    command = [sys.executable, "-m", "singe", "host", str(tmp_path / "m.singe"), "--port", "0", "--device", "numpy"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            first, second, example = (process.stdout.readline() for _ in range(3))
            (url,) = re.findall(r"m: at (http://127\.0\.0\.1:\d+) ", first)
            (token,) = re.findall(r"token: ([0-9a-f]{32})\n", second)
            with closing(Client(url, token)) as client:
                path, data = re.findall(r"curl .* http://[^/]*(\S+) -d '(.*)'", example)[0]
                assert client.ask(path, data.encode()).outputs["sum"].tolist() == [3]
                assert client.infer("m", {"x": X}, binary=True)["sum"].tolist() == [6, 15]
                process.send_signal(sent)
                assert process.wait(30) == 0
            assert process.stdout.read() == "ended: 2 requests were answered, 0 of them with 503 as it ended\n"
            assert all(line.startswith("loading …") for line in process.stderr.read().splitlines())
        finally:
            process.kill()


@pytest.mark.slow
def test_a_connection_that_is_open_does_not_hinder_the_end(host: Host) -> None:
    there = host()
    with closing(http.client.HTTPConnection("127.0.0.1", there.port, timeout=30)) as idle:
        idle.request("GET", "/v2/health/ready")
        assert json.loads(idle.getresponse().read()) == {"ready": True}
        there.stop("the end")
    assert not there._thread.is_alive()
    body, _ = request({"x": X})
    with pytest.raises(OSError), closing(Client(there.url, there.token)) as client:  # noqa: PT011
        client.ask("/v2/models/m/infer", body)
