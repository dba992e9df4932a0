"""The page that computes elsewhere, in Chromium, with a server of this machine: it reads a digit, and says what that took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from desk import LOOKS, Desk
from digits import HANDS
from test_mnist_page import draw

import singe as sg

pytest.importorskip("websockets", reason="the extra `remote` is not installed")


@pytest.fixture
def server() -> Iterator[sg.remote.RemoteServer]:
    with sg.remote.RemoteServer("wasm", port=0) as found:
        yield found


@pytest.fixture(params=["light", *(pytest.param(look, marks=pytest.mark.full) for look in ("dark", "phone"))])
def look(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def page(browser: Any, address: str, look: str) -> Iterator[Desk]:
    context = browser.new_context(**{"service_workers": "block", **LOOKS[look]})
    found = Desk(context.new_page())
    found.page.goto(f"{address}remote/")
    yield found
    context.close()


def connect(page: Desk, url: str, token: str) -> str:
    """The state after the form was sent."""
    page.item("url").fill(url)
    page.item("token").fill(token)
    page.item("connect").click()
    page.await_state("ready", "error")
    return page.item("status").inner_text()


@pytest.mark.slow
def test_a_digit_is_read_elsewhere(page: Desk, look: str, server: sg.remote.RemoteServer) -> None:
    assert page.item("command").inner_text().startswith("singe host --device wasm")
    assert "no server answers" in connect(page, "ws://127.0.0.1:9", "")
    assert "the token is wrong" in connect(page, server.url, "no")
    assert connect(page, server.url, server.token) == f"Every op runs on wasm at {server.url}."
    draw(page, next(iter(HANDS.values())).strokes(3))
    assert page.value("prediction") == "3"
    assert page.value("trips") == "1"
    assert 28 * 28 * 4 < int(page.value("sent")) < 28 * 28 * 4 + 1000
    assert 40 < int(page.value("received")) < 1000
    assert float(page.value("time")) > 0
    assert page.fits()
    assert page.small_targets() == []
    page.screenshot(f"remote-{look}")
    server.stop("it is late")
    page.item("undo").click()
    canvas = page.item("canvas")
    canvas.focus()
    canvas.press("Space")
    page.await_state("error")
    assert "it is late" in page.item("status").inner_text()
