"""Firefox and WebKit, as Debian has them: a bundle on one thread and on several, pages of bundles, the demos. `make nightly` runs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import assert_close, dtypes_case, packed, small_case, small_graph, weighty_graph
from firefox import firefox
from pages import HEADERS, POLICY, SEVERAL, Page, Served
from sites import served
from tabs import Tab
from webkit import webkit

from singe.model.model import Model
from singe.tools.export.bundle import export

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
ENGINES: Final[dict[str, tuple[Callable[[], AbstractContextManager[Tab]], str, bool]]] = {
    "Firefox": (firefox, "Firefox/", True),
    "WebKit": (webkit, "AppleWebKit/", False),
    "WebKit with shared memory": (partial(webkit, {"JSC_useSharedArrayBuffer": "1"}), "AppleWebKit/", True),
}
"""An engine ↦ what starts it, a part of its `navigator.userAgent`, and whether pages that are isolated have threads. WebKitGTK
gives no page SharedArrayBuffer, unless it is told to; Safari gives it to isolated pages."""
COUNT: Final = 600
"""A batch that is large enough for threads to share its runs."""
BODY: Final = """
const outputs = {};
for (const [name, { url, tensors }] of Object.entries(given.bundles)) {
  outputs[name] = (await answer(load, url, { device: "wasm" }, [tensors])).outputs[0];
}
const [threads, shared] = [[], []];
for (const count of [1, 2]) {
  const model = await load(given.weighty.url, { device: "wasm", threads: count, worker: given.worker });
  if (model.worker !== given.worker) throw new Error(`worker: ${model.worker}`);
  shared.push(pack(await model.run(unpack(given.weighty.tensors))));
  threads.push(model.threads);
  await model.dispose();
}
return { outputs, threads, shared, isolated: crossOriginIsolated };
"""
CATS: Final = ("281", "282", "283", "284", "285")
"""ImageNet's classes of house cats."""
STATUS: Final = "document.querySelector('[data-testid=status]').dataset.state"


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def tab(engine: str) -> Iterator[Tab]:
    start, agent, _ = ENGINES[engine]
    with start() as found:
        assert agent in found.execute("return navigator.userAgent;")
        yield found


@pytest.mark.parametrize("worker", [False, True], ids=["in the page", "in a worker"])
@pytest.mark.parametrize("isolated", [True, False], ids=["isolated", "plain"])
def test_bundles(engine: str, tab: Tab, isolated: bool, worker: bool, bundle: Callable[[str], Path]) -> None:
    root = bundle("small").parent
    bundle("dtypes")
    bundle("weighty")
    x = np.random.default_rng(0).normal(size=(COUNT, 5, 7, 6)).astype(np.float32)
    cases = {"small": small_case(7), "dtypes": dtypes_case(7)}
    with closing(Served(root)) as server:
        if not isolated:
            own = dict.fromkeys(("Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy"), "unsafe-none")
            server.pages["/"] = (server.pages["/"][0], {**HEADERS, **own})
        tab.goto(server.address)
        done = Page(tab, server).run(
            BODY,
            bundles={name: {"url": f"/bundles/{name}", "tensors": packed(case[0])} for name, case in cases.items()},
            weighty={"url": "/bundles/weighty", "tensors": packed({"x": x})},
            worker=worker,
        )
    assert done["isolated"] == isolated
    for name, (_, wanted) in cases.items():
        assert_close(done["outputs"][name], wanted)
    assert done["threads"] == [1, SEVERAL if isolated and ENGINES[engine][2] else 1]
    assert done["shared"][0] == done["shared"][1]
    wanted = np.asarray(Model(weighty_graph(), "numpy")(x))
    assert_close(done["shared"][0], {"y": wanted})


def test_the_page_of_a_bundle(tab: Tab, tmp_path: Path) -> None:
    export(Model(small_graph(), "numpy", "small"), tmp_path / "small")
    fill = """
    const [name, text] = arguments;
    const set = (id, kind, value) => {
      const item = document.querySelector(`[data-testid="${id}-${name}"]`);
      item.value = value;
      item.dispatchEvent(new Event(kind, { bubbles: true }));
    };
    set("fill", "change", "JSON");
    set("json", "input", text);
    """
    with served(tmp_path) as address:
        tab.goto(f"{address}small/")
        tab.until(f"{STATUS} === 'ready'")
        for name, text in {"x": "[[1, 2, 3], [0, 0, 1]]", "k": "[[5], [7]]", "keep": "[[true], [0]]"}.items():
            tab.execute(fill, name, text)
        tab.execute("document.querySelector('[data-testid=backend]').value = 'wasm';")
        tab.execute("document.querySelector('[data-testid=run]').click();")
        tab.until("document.querySelector('[data-testid=status]').textContent.includes('Done on wasm')")
        rows = tab.execute(
            "return JSON.stringify([...document.querySelectorAll('[data-testid=outputs] tr')].map((row) => [...row.cells].map((cell) => cell.innerText)));"
        )
    found: dict[str, Any] = {row[0]: row[-1] for row in json.loads(rows)}
    w = np.arange(12).reshape(3, 4) - 5
    scores = np.array([np.array([1, 2, 3]) @ w + 5, [-1] * 4])
    assert found["scores"] == ", ".join(map(str, scores.reshape(-1)))
    assert found["twice"] == "10, 14"


def test_the_page_of_digits_reads_what_is_drawn(tab: Tab, address: str) -> None:
    tab.goto(f"{address}mnist/")
    tab.until(f"['ready', 'error', 'unsupported'].includes({STATUS})")
    tab.draw("[data-testid=canvas]", [(0.5, 0.15 + 0.07 * k) for k in range(11)])
    value = "document.querySelector('[data-testid=prediction]').dataset.value"
    assert tab.until(f"{STATUS} === 'ready' && {value}") == "1"
    assert tab.execute("return document.querySelector('[data-testid=backend]').value;") in ("auto", "wasm")


def test_an_element_runs_under_a_strict_policy(tab: Tab, bundle: Callable[[str], Path]) -> None:
    root = bundle("small").parent
    (root / "element.js").write_text(
        """import { pack, unpack } from "/tests/browser/harness.js";
        import "/static/singe-element.js";
        const element = document.querySelector("singe-model");
        const given = await (await fetch("/bundles/element.json")).json();
        document.documentElement.dataset.outputs = JSON.stringify(pack(await element.run(unpack(given))));"""
    )
    inputs, wanted = small_case(2)
    (root / "element.json").write_text(json.dumps(packed(inputs)))
    with closing(Served(root)) as server:
        markup = (
            '<!doctype html><meta charset="utf-8"><singe-model src="/bundles/small" device="wasm"></singe-model>'
            '<script type="module" src="/bundles/element.js"></script>'
        )
        server.pages["/element"] = (markup, {"Content-Security-Policy": POLICY})
        tab.goto(server.address + "element")
        found = json.loads(tab.until("document.documentElement.dataset.outputs"))
    assert_close(found, wanted)


def test_the_page_of_training_learns(tab: Tab, address: str) -> None:
    tab.goto(f"{address}train/")
    tab.until(f"{STATUS} === 'ready'")
    tab.execute("document.querySelector('[data-testid=train]').click();")
    loss = "Number(document.querySelector('[data-testid=loss]').dataset.value)"
    assert 0 < tab.until(f"Number(document.querySelector('[data-testid=steps]').dataset.value) >= 60 && {loss}") < 2


def test_the_page_of_photos_names_a_sample(tab: Tab, address: str) -> None:
    tab.goto(f"{address}classify/")
    tab.until(f"{STATUS} === 'ready'")
    tab.execute("document.querySelector('[data-testid=sample-0]').click();")
    assert tab.until("document.querySelector('[data-testid=top-1]').dataset.value") in CATS
