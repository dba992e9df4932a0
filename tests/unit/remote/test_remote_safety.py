"""A server is safe by default: who may connect, what a client may have, and what becomes of messages that no client sends."""

from __future__ import annotations

import hmac
import http.client
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
import remote_fuzz
from remote_kinds import Join, Serve

import singe as sg
from singe import listening, nn
from singe.awaitables import resolve
from singe.compiler.array_target import ARRAYS
from singe.ops import ROWS
from singe.runtime.registry import open_backend
from singe.runtime.remote import server as servers
from singe.runtime.remote.client import RemoteBackend
from singe.runtime.remote.protocol import MAX_FRAME_BYTES, VERSION, Batch, BatchReader, RemoteMessage
from singe.runtime.remote.protocol import REPLIES as ANSWERS
from singe.runtime.remote.served_session import ServedSession, SessionLimits
from singe.runtime.remote.server import RemoteServer
from singe.runtime.remote.socket import LinkLost, SocketLink, connect

X = np.ones((2, 3), np.float32)


def say(link: SocketLink, *messages: tuple) -> None:
    batch = Batch()
    for name, *values in messages:
        batch.add(name, *values)
    for frame in batch.frames():
        link.send(frame)


def hear(link: SocketLink) -> list[tuple]:
    """The messages of the next batch."""
    reader = BatchReader(ANSWERS, lambda *_: True, "server")
    found = reader.feed(link.receive(30))
    assert found is not None
    return [(m.name, *m.values) for m in found]


@pytest.mark.parametrize("token", ["", "x", "é", "\x00", None])
def test_a_wrong_token_is_refused(token: str | None, serve: Serve) -> None:
    server = serve()
    given = server.token[:-1] + "x" if token is None else token
    with pytest.raises(sg.DeviceError, match="the token is wrong: give the one that the server printed"):
        RemoteBackend(server.url, given)


def test_an_open_device_is_shared_by_those_who_have_its_token(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    monkeypatch.setattr("singe.runtime.devices._devices", {})
    there = sg.Remote(server.url, server.token)
    try:
        with pytest.raises(sg.DeviceError, match="the token is wrong: give the one that the server printed"):
            sg.Remote(server.url, server.token[:-1] + "x")
        assert sg.Remote(server.url, server.token) is there
        assert sg.Remote(server.url) is there
    finally:
        there.eager.backend.dispose()  # pyright: ignore[reportAttributeAccessIssue]
    again = sg.Remote(server.url)
    again.eager.backend.dispose()  # pyright: ignore[reportAttributeAccessIssue]


def test_tokens_are_long_new_and_compared_in_constant_time(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    one, two = serve(), serve()
    assert len(bytes.fromhex(one.token)) == 16
    assert one.token != two.token

    def digest(a: bytes, b: bytes) -> bool:
        compared.append(b)
        return hmac.compare_digest(a, b)

    monkeypatch.setattr(listening, "hmac", type("watched", (), {"compare_digest": staticmethod(digest)}))
    RemoteBackend(one.url, one.token).dispose()
    assert compared == [one.token.encode()]


def test_without_a_token_only_where_that_is_asked_for(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(token="")
    RemoteBackend(server.url, "").dispose()
    with pytest.raises(sg.InputError, match=r"anyone who reaches 0\.0\.0\.0 could use this device: give a token"):
        RemoteServer("numpy", host="0.0.0.0", port=0, token="")
    monkeypatch.setenv("SINGE_REMOTE_TOKEN", "from outside")
    assert serve().token == "from outside"


def test_other_addresses_say_that_tls_belongs_in_front(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("websockets")
    monkeypatch.setattr(RemoteServer, "wait", lambda self: self.stop("end"))
    monkeypatch.delenv("SINGE_REMOTE_TOKEN", raising=False)
    sg.remote.serve("numpy", port=0, host="0.0.0.0")
    out = capsys.readouterr().out
    assert "without TLS in front, token and data can be read on the way" in out
    assert len(out.split("token: ")[1].split("\n")[0]) == 32
    sg.remote.serve("numpy", port=0)
    assert "TLS" not in capsys.readouterr().out


def test_a_client_that_gives_no_token_is_sent_away(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "TOKEN_SECONDS", 0.2)
    link = connect(serve().url)
    assert hear(link) == [("bye", "DeviceError", "no token came within 0.2 s")]
    with pytest.raises(LinkLost):
        link.receive(30)


@pytest.mark.parametrize(
    "message",
    [
        ("read", 1, 1),
        ("hello", VERSION),
        ("hello", VERSION, 5, ""),
        ("upload", 1, "float32", [1 << 30], 1 << 32),
    ],
)
def test_before_the_token_nothing_is_taken(message: tuple, serve: Serve) -> None:
    link = connect(serve().url)
    say(link, message)
    ((name, kind, text),) = hear(link)
    assert (name, kind) == ("bye", "FormatError")
    assert text.startswith("remote: what the client sent")


def test_another_version_is_refused(serve: Serve) -> None:
    server = serve()
    link = connect(server.url)
    say(link, ("hello", "singe-remote/0\x1b[2J", server.token, ""))
    ((_, kind, text),) = hear(link)
    assert kind == "DeviceError"
    assert "install one version of Singe on both" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({}, True),
        ({"Origin": "http://localhost:8000"}, True),
        ({"Origin": "http://127.0.0.1:5173"}, True),
        ({"Origin": "https://good.example"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "https://localhost.evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://[::"}, False),
        ({"Host": "evil.example:3000"}, False),
        ({"Host": "127.0.0.1.evil.example"}, False),
        ({"Host": "gpu.example:3000"}, True),
        ({"Host": "192.168.1.2:3000"}, True),
    ],
)
def test_pages_and_names_of_others_are_refused(headers: dict[str, str], passes: bool, serve: Serve) -> None:
    server = serve(origins=["https://good.example"], names=["gpu.example"])
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest("GET", "/", skip_host=True)
    wanted = {
        "Host": f"127.0.0.1:{server.port}", "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", **headers,
    }  # fmt: skip
    for name, value in wanted.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == (101 if passes else 403)
    connection.close()


def test_sessions_are_counted(serve: Serve, join: Join) -> None:
    server = serve(sessions=2)
    join(server)
    two = join(server)
    with pytest.raises(sg.DeviceError, match="the server has 2 sessions already, and allows no more"):
        join(server)
    two.backend.dispose()
    for _ in range(1000):
        try:
            join(server)
            return
        except sg.DeviceError:
            continue
    raise AssertionError("a session that ended still counts")


def use_ids(on: sg.Device) -> None:
    held = [sg.tensor(X, device=on) for _ in range(100)]
    held[-1].numpy()


def use_programs(on: sg.Device) -> None:
    for k in range(100):
        (sg.tensor(np.ones(k, np.float32), device=on) + 1).numpy()


def use_time(on: sg.Device) -> None:
    for _ in range(1000):
        (sg.tensor(X, device=on) + 1).numpy()


@pytest.mark.parametrize(
    ("limits", "use", "match"),
    [
        ({"ids": 50}, use_ids, "the session has 50 arrays, and the server allows 50"),
        ({"programs": 20}, use_programs, "the session has 20 programs, and the server allows 20"),
        ({"seconds": 0.01}, use_time, "computed for as long as the server allows, 0.01 s"),
    ],
)
def test_a_session_that_takes_too_much_ends(
    limits: dict, use: Callable[[sg.Device], None], match: str, serve: Serve, join: Join
) -> None:
    server = serve(limits=sg.remote.SessionLimits(**limits))
    there, other = join(server), join(server)
    with pytest.raises(sg.RemoteDisconnected, match=match):
        use(there)
    np.testing.assert_array_equal((sg.tensor(X, device=other) + 1).numpy(), X + 1)


@pytest.mark.parametrize("what", ["weights", "states", "scratch"])
def test_bytes_are_counted_before_they_are_taken(what: str, serve: Serve, join: Join) -> None:
    there = join(serve(limits=sg.remote.SessionLimits(bytes=1 << 16)))
    layer = nn.Linear(200, 200, rng=0)
    uses: dict[str, Callable[[], object]] = {
        "weights": lambda: sg.Model.of(layer, {"x": (1, 200)}, device=there)(np.ones((1, 200), np.float32)),
        "states": lambda: sg.Model.of(lambda x, *, s: (x, {"s": s + 1}), {"x": (1,)}, states={"s": ((1 << 16,), "float32")}, device=there)(
            X[0, :1]
        ),
        "scratch": lambda: sg.tensor(np.ones((1000, 1), np.float32), device=there).expand(1000, 1000).exp().sum().numpy(),
    }  # fmt: skip
    with pytest.raises(sg.DeviceError, match=r"is too much: the session has .*, and the server allows 65536"):
        uses[what]()
    np.testing.assert_array_equal((sg.tensor(X, device=there) + 1).numpy(), X + 1)


def test_native_code_is_not_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(ARRAYS), "confined", "")
    with pytest.raises(
        sg.DeviceError, match="programs for 'host' are native code, with which a client could do anything"
    ):
        RemoteServer("numpy", port=0)


def test_ops_of_the_servers_own_code_are_not_lent(serve: Serve, join: Join) -> None:
    def shapes(x: sg.Tensor) -> list[tuple]:
        return [(x.shape, x.dtype)]

    own = sg.op("remote_test_own", numpy=lambda x: x + 1, shapes=shapes)
    try:
        there = join(serve())
        with pytest.raises(sg.DeviceError, match="'remote_test_own', an op that code of the server's process declares"):
            own(sg.tensor(X, device=there)).numpy()
    finally:
        del ROWS["remote_test_own"]
    np.testing.assert_array_equal((sg.tensor(X, device=there) + 1).numpy(), X + 1)


def test_ops_that_no_limit_bounds_are_not_lent(serve: Serve, join: Join) -> None:
    there = join(serve())
    x = sg.tensor(np.array(["a"], object), device=there)
    with pytest.raises(sg.DeviceError, match="'regex_full_match': a pattern may take for ever"):
        sg.regex_full_match(x, pattern="(a+)+b").numpy()
    with pytest.raises(sg.DeviceError, match="'string_concat': strings that are joined to themselves grow"):
        sg.string_concat(x, x).numpy()


def test_strings_count_with_their_characters(serve: Serve, join: Join) -> None:
    server = serve(limits=sg.remote.SessionLimits(bytes=1 << 16))
    there = join(server)
    (hosted,) = server._hosted.values()
    for length in (1 << 12, 1 << 15):
        x = sg.tensor(np.array(["a" * length], object), device=there)
        there.synchronize()
        assert hosted.session.bytes >= length
        del x
    held = [sg.tensor(np.array(["a" * (1 << 12)], object), device=there) for _ in range(9)]
    with pytest.raises(sg.DeviceError, match="is too much"):
        held[-1].numpy()


def test_too_large_frames_end_the_connection(serve: Serve) -> None:
    link = connect(serve().url)
    with suppress(LinkLost):
        link.send(bytes(MAX_FRAME_BYTES + 1))
    with pytest.raises(LinkLost):
        link.receive(30)


@pytest.mark.slow
def test_mutated_sessions_are_refused_with_an_error_of_singes() -> None:
    """`python tests/support/remote_fuzz.py` holds 20,000."""
    found = remote_fuzz.fuzz("numpy", sessions=120, stateful=80, seed=7)
    assert not found.faults, found.faults[0]
    assert found.ends["FormatError"] > 60


@pytest.mark.slow
@pytest.mark.parametrize("device", ["numpy", "wasm", "webgpu"])
def test_many_mutated_sessions(device: str) -> None:
    if isinstance(sg.devices()[device], sg.DeviceError):
        pytest.skip(f"no {device} here")
    memory = []
    for seed in (8, 9):
        found = remote_fuzz.fuzz(device, *((1000, 150) if device == "numpy" else (150, 30)), seed=seed)
        assert not found.faults, found.faults[0]
        memory.append(remote_fuzz.resident())
    if device != "webgpu":  # whose driver keeps memory of the first hundred devices that it opens
        assert memory[1] - memory[0] < 50e6


def test_weights_that_a_server_has_count_for_a_session_as_those_that_are_sent() -> None:
    held = {"small": np.zeros(600, np.uint8), "large": np.zeros(2000, np.uint8)}
    session = ServedSession(resolve(open_backend("numpy"), ""), SessionLimits(bytes=1000), held)

    def ask(block: int, key: str) -> int:
        ((_, (_, facts), _),) = session.perform([RemoteMessage("weights", (1, block, key))])
        return facts["bytes"]

    assert [ask(1, "none"), ask(1, "large"), ask(1, "small"), ask(2, "small")] == [0, 0, 600, 0]
    with pytest.raises(sg.FormatError, match="there is a block 1 already"):
        ask(1, "small")
    session.close()
