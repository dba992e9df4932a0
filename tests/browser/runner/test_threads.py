"""Threads of the device "wasm": the same bits on any number, in pages, workers and node; one thread where no more are possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import dtypes_case, model_case, packed, small_case, unpacked
from pages import Page, node, open_page, several_cores

from singe import nn
from singe.model.model import Model
from singe.tools.export.bundle import export

pytestmark = several_cores

ANSWER: Final = """
const model = await load(given.url, { device: "wasm", threads: given.threads, ...given.options });
const outputs = [];
for (const tensors of given.cases) {
  const inputs = unpack(tensors);
  for (let k = 1; k < (given.times ?? 1); k++) await model.run(inputs);
  outputs.push(pack(await model.run(inputs)));
}
const { threads, memory } = model;
await model.dispose();
return { outputs, threads, memory, after: model.memory };
"""


@pytest.fixture(scope="module")
def chromium(browser: Any, bundle: Callable[[str], Path]) -> Iterator[Page]:
    root = bundle("small").parent
    bundle("weighty")
    with open_page(browser, root) as page:
        yield page


SHARED: Final = 600
"""A batch of the graph "weighty" that is large enough for threads to share its runs."""
CUT: Final = 10 * SHARED
"""A batch so large that steps are split into more parts than there are threads."""


def weighty_case(count: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(count).normal(size=(count, 5, 7, 6)).astype(np.float32)}


CASES: Final[dict[str, Callable[[], list[dict[str, np.ndarray]]]]] = {
    "small": lambda: [small_case(n)[0] for n in (40_000, 3, 40_001)],
    "dtypes": lambda: [dtypes_case(n)[0] for n in (37, 100_003)],
    "weighty": lambda: [weighty_case(n) for n in (1, SHARED, 7, SHARED + 1, CUT + 1)],
    "mnist_cnn": lambda: [model_case("mnist_cnn")[0]],
    "ppocr_cls": lambda: [model_case("ppocr_cls")[0]],
    "magika": lambda: [model_case("magika")[0]],
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_on_any_number_of_threads(chromium: Page, bundle: Callable[[str], Path], name: str) -> None:
    if name != "weighty":
        bundle(name)
    cases = [packed(case) for case in CASES[name]() for _ in range(2)]
    done = {n: chromium.run(ANSWER, url=f"/bundles/{name}", threads=n, cases=cases, options={}) for n in (1, 2, 3)}
    for n, found in done.items():
        assert found["threads"] == n
        assert found["after"] == {"gpu": 0, "wasm": 0, "js": 0}
        assert found["outputs"] == done[1]["outputs"]


@pytest.mark.parametrize("where", ["worker", "node"])
def test_the_same_bits_elsewhere(chromium: Page, where: str) -> None:
    given: dict[str, Any] = {"cases": [packed(weighty_case(n)) for n in (SHARED, 7, SHARED)]}
    if where == "node":
        url = (chromium.root / "weighty").as_uri()
        done = [node(ANSWER, url=url, threads=n, options={}, **given) for n in (1, 2)]
    else:
        run = ANSWER.replace("const { threads", "if (!model.worker) throw new Error('no worker'); const { threads")
        done = [chromium.run(run, url="/bundles/weighty", threads=n, options={"worker": True}, **given) for n in (1, 2)]
    assert [found["threads"] for found in done] == [1, 2]
    assert done[0]["outputs"] == done[1]["outputs"]


BESIDE_OTHERS: Final = """
const text = "const end = performance.now() + 20000; while (performance.now() < end);";
const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
const others = Array.from({ length: navigator.hardwareConcurrency }, () => new Worker(url));
try {
  ANSWER
} finally {
  for (const other of others) other.terminate();
  URL.revokeObjectURL(url);
}
"""


def test_the_same_bits_where_others_want_the_cores(chromium: Page) -> None:
    """Then workers are stopped within parts, and give way between them."""
    cases = [packed(weighty_case(SHARED))] * 8
    given: dict[str, Any] = {"url": "/bundles/weighty", "cases": cases, "options": {}}
    alone = chromium.run(ANSWER, threads=1, **given)
    beside = chromium.run(BESIDE_OTHERS.replace("ANSWER", ANSWER), threads=2, **given)
    assert beside["threads"] == 2
    assert beside["outputs"] == alone["outputs"]


HEADERS: Final = {
    "without isolation": {
        "Cross-Origin-Opener-Policy": "unsafe-none",
        "Cross-Origin-Embedder-Policy": "unsafe-none",
    },
    "without workers": {"Content-Security-Policy": "worker-src 'none'"},
}


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("kind", HEADERS)
def test_where_there_is_one_only(chromium: Page, kind: str, threads: int) -> None:
    chromium.server.pages["/plain"] = ("<!doctype html><title>plain</title>", HEADERS[kind])
    tab = chromium.page.context.browser.new_page()
    try:
        tab.goto(chromium.server.address + "plain")
        assert tab.evaluate("crossOriginIsolated") == (kind == "without workers")
        page = Page(tab, chromium.server)
        cases = [packed(weighty_case(2000))] * 2
        done = page.run(ANSWER, url="/bundles/weighty", threads=threads, cases=cases, times=50, options={})
        assert done["threads"] == 1
        loaded = tab.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
        assert any(name.endswith("singe-threads.js") for name in loaded) == (kind == "without workers"), "it was tried"
        alone = page.run(ANSWER, url="/bundles/weighty", threads=1, cases=cases, options={})
        assert done["outputs"] == alone["outputs"]
        assert not tab.workers
    finally:
        tab.close()


COUNTED: Final = """
const own = globalThis.Worker;
const alive = new Set();
globalThis.Worker = class extends own {
  constructor(...given) {
    super(...given);
    alive.add(this);
  }
  terminate() {
    alive.delete(this);
    super.terminate();
  }
};
try {
  BODY
} finally {
  globalThis.Worker = own;
}
"""


TAUGHT: Final = """
    const post = Worker.prototype.postMessage;
    let plans = 0;
    Worker.prototype.postMessage = function (message, ...rest) {
      plans += message.calls ? 1 : 0;
      return post.call(this, message, ...rest);
    };
    const model = await load(given.url, { device: "wasm", threads: given.threads });
    const outputs = [];
    for (const tensors of given.cases) outputs.push(pack(await model.run(unpack(tensors))));
    await model.dispose();
    Worker.prototype.postMessage = post;
    return { outputs, plans };
"""
"""The outputs of some cases, and how many plans workers were taught."""


def test_a_plan_serves_all_of_a_bounded_size(chromium: Page) -> None:
    """So the tokens of a text share one, though each is another number of tokens."""
    sizes = (600, 601, 599, 700, 3, 600)
    if not (chromium.root / "bounded").exists():
        model = Model.of(lambda x: (x @ x.T).softmax(-1) @ x, {"x": ("n<=700", 128)}, device="numpy")
        export(model, chromium.root / "bounded")
    given = [np.random.default_rng(n).normal(size=(n, 128)).astype(np.float32) for n in sizes]
    cases = [packed({"x": x}) for x in given]
    done = {n: chromium.run(TAUGHT, url="/bundles/bounded", threads=n, cases=cases) for n in (1, 2)}
    assert done[2]["outputs"] == done[1]["outputs"]
    assert done[2]["plans"] == 1
    for x, outputs in zip(given, done[1]["outputs"], strict=True):
        (found,) = unpacked(outputs).values()
        scores = np.exp(x @ x.T - (x @ x.T).max(1, keepdims=True))
        np.testing.assert_allclose(found, scores / scores.sum(1, keepdims=True) @ x, atol=1e-4)


def test_calls_of_sizes_that_a_run_finds_are_shared(chromium: Page) -> None:
    """Workers are taught again where such calls take more than twice as long, or less than half."""
    if not (chromium.root / "found").exists():
        layer = nn.Conv1d(128, 64, 5, padding=2)
        kept = Model.of(lambda x: layer(x[x[:, 0] > 0].T[None]), {"x": (1600, 128)}, device="numpy")
        export(kept, chromium.root / "found")
    x = np.random.default_rng(0).normal(size=(1600, 128)).astype(np.float32)
    given = [
        np.where(np.arange(1600)[:, None] < count, np.abs(x), -np.abs(x)) for count in (800, 801, 1500, 0, 900, 1600)
    ]
    cases = [packed({"x": some}) for some in given]
    done = {n: chromium.run(TAUGHT, url="/bundles/found", threads=n, cases=cases) for n in (1, 2, 3)}
    assert done[2]["outputs"] == done[3]["outputs"] == done[1]["outputs"]
    assert [found.shape[-1] for outputs in done[1]["outputs"] for found in unpacked(outputs).values()] == [
        800,
        801,
        1500,
        0,
        900,
        1600,
    ]
    assert 0 < done[2]["plans"] < len(cases)


def test_the_turns_of_a_loop_are_shared_where_together_they_are_long(chromium: Page) -> None:
    """One turn of a recurrent layer is too short to wake a thread. Workers are taught a plan as soon as it is shared."""
    layer = nn.GRU(8, 256)
    for name, steps in (("turns", 100), ("few", 2)):
        if not (chromium.root / name).exists():
            export(Model.of(lambda x: layer(x)[0], {"x": (steps, 1, 8)}, device="numpy"), chromium.root / name)
    done = {}
    for name, steps in (("turns", 100), ("few", 2)):
        x = np.random.default_rng(0).normal(size=(3, steps, 1, 8)).astype(np.float32)
        cases = [packed({"x": case}) for case in (*x, x[0])]
        for threads in (1, 2):
            done[name, threads] = chromium.run(TAUGHT, url=f"/bundles/{name}", threads=threads, cases=cases)
        assert done[name, 2]["outputs"] == done[name, 1]["outputs"]
    plans = {key: found["plans"] for key, found in done.items()}
    assert plans == {("turns", 1): 0, ("turns", 2): 1, ("few", 1): 0, ("few", 2): 0}


def test_dispose_ends_the_workers(chromium: Page) -> None:
    body = """
    const model = await load("/bundles/weighty", { device: "wasm", threads: 3 });
    await model.run(unpack(given.tensors));
    const during = alive.size;
    await model.dispose();
    return { during, after: alive.size, memory: model.memory.wasm };
    """
    done = in_fresh_page(chromium, COUNTED.replace("BODY", body), tensors=packed(weighty_case(3)))
    assert done == {"during": 2, "after": 0, "memory": 0}


def in_fresh_page(chromium: Page, body: str, **given: Any) -> Any:
    """The result of a script in a page that has loaded nothing yet."""
    tab = chromium.page.context.browser.new_page()
    try:
        tab.goto(chromium.server.address)
        return Page(tab, chromium.server).run(body, **given)
    finally:
        tab.close()


def test_nothing_is_loaded_for_short_runs(chromium: Page) -> None:
    body = """
    const model = await load("/bundles/small", { device: "wasm" });
    for (let k = 0; k < 50; k++) await model.run(unpack(given.tensors));
    await new Promise((done) => setTimeout(done, 500));
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
    const found = { threads: model.threads, memory: model.memory.wasm, loaded };
    await model.dispose();
    return found;
    """
    done = in_fresh_page(chromium, body, tensors=packed(small_case(3)[0]))
    assert done["threads"] == 1
    assert any("singe-wasm" in name for name in done["loaded"])
    assert not [name for name in done["loaded"] if "thread" in name]


def test_as_many_as_pay_off(chromium: Page) -> None:
    """Once runs are long it decides, and only the workers that it needs remain."""
    body = """
    const model = await load("/bundles/weighty", { device: "wasm" });
    const outputs = new Set();
    const started = performance.now();
    let most = 0;
    while (performance.now() - started < 60000 && !(most && (alive.size === 0 || model.threads > 1))) {
      outputs.add(JSON.stringify(pack(await model.run(unpack(given.tensors)))));
      await new Promise((done) => setTimeout(done, 5));
      most = Math.max(most, alive.size);
    }
    const found = { most, alive: alive.size, threads: model.threads, outputs: outputs.size };
    await model.dispose();
    return { ...found, after: alive.size };
    """
    done = in_fresh_page(chromium, COUNTED.replace("BODY", body), tensors=packed(weighty_case(2000)))
    assert done["most"] > 0
    assert done["alive"] == done["threads"] - 1, "it has decided"
    assert (done["outputs"], done["after"]) == (1, 0)


def test_a_worker_that_dies(chromium: Page) -> None:
    """Runs still succeed: the remaining threads do the dead worker's parts."""
    body = """
    const model = await load("/bundles/weighty", { device: "wasm", threads: 2 });
    const first = pack(await model.run(unpack(given.tensors)));
    const before = model.threads;
    for (const worker of alive) own.prototype.terminate.call(worker);
    await new Promise((done) => setTimeout(done, 4000)); // Chromium lets a worker that waits live for 2 s more
    const second = pack(await model.run(unpack(given.tensors)));
    const third = pack(await model.run(unpack(given.tensors)));
    await model.dispose();
    return { before, same: [second, third].every((x) => JSON.stringify(x) === JSON.stringify(first)) };
    """
    done = in_fresh_page(chromium, COUNTED.replace("BODY", body), tensors=packed(weighty_case(SHARED)))
    assert done == {"before": 2, "same": True}
