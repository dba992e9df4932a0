"""The link of a page to a device elsewhere: runs do not wait for each other's answers, and what waits goes on after a link was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pytest
from pages import Page, open_page, stopped_by
from slow_link import SlowLink

import singe as sg
from singe.runtime.remote import server as servers
from singe.runtime.remote.protocol import RemoteMessage
from singe.tools.export.bundle import export

pytest.importorskip("websockets", reason="the extra `remote` is not installed")
pytestmark = pytest.mark.slow

OPEN: Final = """
const model = await load("/bundles/counting", { device: "remote", remote: { url: given.url, token: given.token } });
const run = async (runs = model) => (await runs.run({ x: Float32Array.of(1, 10) })).y.data[1];
await run();
"""
"""A model that multiplies by the number of its runs: the first has been made."""
WIDTH: Final = 500_000
"""Elements of an input that takes several frames."""


@pytest.fixture(scope="module")
def chromium(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    def step(x: sg.Tensor, *, count: sg.Tensor) -> tuple[dict[str, sg.Tensor], dict[str, sg.Tensor]]:
        return {"y": x * count}, {"count": count + 1}

    root = tmp_path_factory.mktemp("counting")
    model = sg.Model.of(step, {"x": (2,)}, states={"count": np.float32(1)}, device="numpy")
    export(model, root / "counting", ["wasm"])
    model = sg.Model.of(
        lambda x, *, total: ({"y": x.sum()}, {"total": total + x.sum()}),
        {"x": (WIDTH,)},
        states={"total": np.float32(0)},
        device="numpy",
    )
    export(model, root / "adding", ["wasm"])
    with open_page(browser, root) as page:
        yield page


class Served:
    """A server, a proxy to it, and what a page that fetches `stop` has called."""

    def __init__(self, chromium: Page, server: sg.remote.RemoteServer, link: SlowLink) -> None:
        self.page, self.server, self.link = chromium, server, link

    def run(self, body: str, stop: Callable[[], None]) -> Any:
        with stopped_by(lambda _: stop()) as address:
            return self.page.run(OPEN + body, url=self.link.url, token=self.server.token, stop=address)

    def after_a_batch(self, then: Callable[[], None]) -> None:
        """Have this called, once, when the only session has done its next batch, and before that is answered."""
        (hosted,) = self.server._hosted.values()
        perform = hosted.session.perform

        def performed(batch: Sequence[RemoteMessage]) -> Any:
            hosted.session.perform = perform  # pyright: ignore[reportAttributeAccessIssue]
            found = perform(batch)
            then()
            return found

        hosted.session.perform = performed  # pyright: ignore[reportAttributeAccessIssue]


@pytest.fixture
def served(chromium: Page, request: pytest.FixtureRequest) -> Iterator[Served]:
    options = getattr(request, "param", {})
    with sg.remote.RemoteServer("wasm", port=0, **options) as server, SlowLink(server.port) as link:
        yield Served(chromium, server, link)


def test_ten_runs_take_about_one_latency(served: Served) -> None:
    """Their answers are those of runs in the order of the calls."""
    body = """
    await fetch(given.stop);
    const start = performance.now();
    const found = await Promise.all(Array.from({ length: 10 }, () => run()));
    return { found, seconds: (performance.now() - start) / 1000 };
    """

    def slow_down() -> None:
        served.link.latency = 0.3

    done = served.run(body, slow_down)
    assert done["found"] == [10 * (k + 2) for k in range(10)]
    assert done["seconds"] < 10 * 0.6 / 2
    print(f"{done['seconds']:.2f} s for ten runs over 0.6 s there and back")


def test_a_run_after_the_link_was_lost_goes_on(served: Served) -> None:
    """With the states that the session had."""
    body = "await fetch(given.stop); return [await run(), await run()];"
    assert served.run(body, served.link.cut) == [20, 30]


def test_runs_that_did_not_arrive_are_sent_again(served: Served) -> None:
    body = """
    await fetch(given.stop);
    const runs = [run(), run(), run()];
    await new Promise((done) => setTimeout(done, 50));
    await fetch(given.stop);
    return [...(await Promise.all(runs)), await run()];
    """
    steps = iter((served.link.hold, served.link.cut))

    def step() -> None:
        next(steps)()

    assert served.run(body, step) == [20, 30, 40, 50]


def test_answers_that_were_lost_are_asked_for_again(served: Served) -> None:
    """The runs themselves are done once."""
    body = """
    await fetch(given.stop);
    return [...(await Promise.all([run(), run(), run()])), await run()];
    """
    lost: list[int] = []

    def cut() -> None:
        served.link.cut()
        lost.append(1)

    assert served.run(body, lambda: served.after_a_batch(cut)) == [20, 30, 40, 50]
    assert lost


def test_sessions_and_states_outlive_a_link(served: Served) -> None:
    body = """
    const session = model.session();
    await run(session);
    await session.write("count", Float32Array.of(7));
    await fetch(given.stop);
    const copy = session.copy();
    return [await run(session), (await copy.read("count"))[0], await run(copy), await run()];
    """
    assert served.run(body, served.link.cut) == [70, 7, 70, 20]


def test_a_page_that_is_refused_does_not_ask_again(chromium: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    with sg.remote.RemoteServer("wasm", port=0) as server:
        asked: list[object] = []
        welcome = server._welcome
        monkeypatch.setattr(server, "_welcome", lambda link: asked.append(link) or welcome(link))
        body = OPEN.replace("token: given.token", "token: 'none'").replace("await run();", "")
        error = chromium.failed(body, url=server.url)
        assert "the token is wrong" in error["message"]
        chromium.run("await new Promise((done) => setTimeout(done, 200));")
        assert len(asked) == 1


WRONG: Final[dict[str, Callable[[tuple[Any, ...], bytes], tuple[str, tuple[Any, ...], bytes]]]] = {
    "a larger shape": lambda v, raw: ("value", (v[0], "float32", [3], 12), bytes(12)),
    "another type": lambda v, raw: ("value", (v[0], "int32", [2], 8), raw),
    "a shape beyond memory": lambda v, raw: ("value", (v[0], "float32", [1 << 40], 1 << 42), raw),
    "fewer bytes": lambda v, raw: ("value", (v[0], "float32", [2], 4), raw[:4]),
    "no question": lambda v, raw: ("value", (1 << 40, "float32", [2], 8), raw),
    "no array": lambda v, raw: ("done", (v[0],), b""),
}
"""Answers to a read: what is wrong ↦ the answer, made of the right one."""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_ends_the_session(what: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before memory is taken for it."""
    reply = servers._reply

    def changed(link: Any, answers: Any, *counts: int) -> None:
        reply(
            link,
            [WRONG[what](v, bytes(raw)) if name == "value" else (name, v, raw) for name, v, raw in answers],
            *counts,
        )

    def begin() -> None:
        monkeypatch.setattr(servers, "_reply", changed)

    body = "await fetch(given.stop); const { code, message } = await failure(() => run()); return { code, message };"
    found = served.run(body, begin)
    assert found["code"] == "lost"
    assert found["message"].startswith("remote: ")


@pytest.mark.parametrize("served", [{"grace": 0}], indirect=True)
def test_after_the_time_of_grace_it_is_lost_at_once(served: Served) -> None:
    """The first run that reaches the server says that the states are lost, the next one begins anew."""
    body = """
    await fetch(given.stop);
    const errors = [await failure(() => run())];
    while (!errors.at(-1).message.endsWith("so is the session there")) errors.push(await failure(() => run()));
    await fetch(given.stop);
    errors.push(await failure(() => run()));
    return { codes: errors.map(({ code }) => code), next: await run() };
    """

    def toggle() -> None:
        served.link.refuses = not served.link.refuses
        if served.link.refuses:
            served.link.cut()

    done = served.run(body, toggle)
    assert set(done["codes"]) == {"lost"}
    assert done["next"] == 10


def test_without_a_server_who_waits_is_told_at_once_and_the_session_is_kept(served: Served) -> None:
    """A run that was refused meanwhile is done when the link is there again, once."""
    body = """
    await fetch(given.stop);
    const errors = await Promise.all([failure(() => run()), failure(() => run())]);
    await fetch(given.stop);
    return { errors, next: await run() };
    """
    refusing = [True, False]

    def toggle() -> None:
        served.link.refuses = refusing.pop(0)
        served.link.cut()

    done = served.run(body, toggle)
    assert [e["code"] for e in done["errors"]] == ["lost", "lost"]
    assert "the next call connects again, for 60 s" in done["errors"][0]["message"]
    assert done["next"] == 40


def test_a_caller_may_change_its_input_when_the_run_was_refused(served: Served) -> None:
    """What is done later is what was given."""
    body = """
    const adding = await load("/bundles/adding", { device: "remote", remote: { url: given.url, token: given.token } });
    const session = adding.session();
    const x = new Float32Array(500_000);
    await session.run({ x });
    await fetch(given.stop);
    const { code } = await failure(() => session.run({ x: x.fill(1) }));
    x.fill(3);
    await fetch(given.stop);
    return [code, (await session.read("total"))[0]];
    """
    refusing = [True, False]

    def toggle() -> None:
        served.link.refuses = refusing.pop(0)
        served.link.cut()

    assert served.run(body, toggle) == ["lost", WIDTH]
