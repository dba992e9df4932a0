"""Servers of devices, and clients of them, in one process over sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from remote_kinds import Join, Serve

import singe as sg
from singe.runtime import devices
from singe.runtime.eager import EagerDevice
from singe.runtime.remote.client import RemoteBackend


@pytest.fixture(autouse=True, scope="session")
def needs_websockets() -> None:
    pytest.importorskip("websockets", reason="the extra `remote` is not installed")


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Begins a server on a free port; it stops after the test."""
    monkeypatch.delenv("SINGE_REMOTE_TOKEN", raising=False)
    with ExitStack() as stack:
        yield lambda device="numpy", **options: stack.enter_context(sg.remote.RemoteServer(device, port=0, **options))


@pytest.fixture
def join() -> Iterator[Join]:
    """A new client of a server; it leaves after the test."""
    with ExitStack() as stack:

        def joined(server: sg.remote.RemoteServer, url: str = "", **options: Any) -> EagerDevice:
            backend = RemoteBackend(url or server.url, server.token, **options)
            stack.callback(backend.dispose)
            return EagerDevice(backend)

        yield joined


@pytest.fixture(
    params=["numpy", pytest.param("wasm", marks=pytest.mark.slow), pytest.param("webgpu", marks=pytest.mark.slow)]
)
def kind(request: pytest.FixtureRequest) -> str:
    """The name of the server's device, of each in turn."""
    found = devices.devices()[request.param]
    if isinstance(found, sg.DeviceError):
        pytest.skip(f"no {request.param} here: {found}")
    return request.param
