"""A model in a worker: the same interface, in many kinds of pages; values that cannot be passed; workers that die."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from bundles import assert_close, dtypes_case, packed, small_case
from pages import Page, Served, node, open_page, phases
from sites import until


@pytest.fixture(scope="module")
def chromium(browser: Any, bundle: Callable[[str], Path]) -> Iterator[Page]:
    bundle("dtypes")
    with open_page(browser, bundle("small").parent) as page:
        yield page


@pytest.fixture(params=["wasm", "webgpu"])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


LOAD: Final = """
const model = await load("/bundles/small", { device: given.device, worker: true });
"""


def test_the_same_interface(chromium: Page, device: str) -> None:
    cases = [small_case(n) for n in (3, 1, 200, 2, 3)]
    body = """
    const options = { device: given.device, cache: false };
    const here = await load("/bundles/small", options);
    const there = await load("/bundles/small", { ...options, worker: true });
    const keys = ["name", "image", "labels", "device", "inputs", "outputs", "threads"];
    const same = keys.filter((key) => JSON.stringify(here[key]) !== JSON.stringify(there[key]));
    await here.dispose();
    const held = { ...there.memory };
    await there.dispose();
    return { same, worker: [here.worker, there.worker], held, after: there.memory };
    """
    found = chromium.run(body, device=device)
    assert found["same"] == []
    assert found["worker"] == [False, True]
    assert found["held"]["gpu" if device == "webgpu" else "wasm"] > 0
    assert found["after"] == {"gpu": 0, "wasm": 0, "js": 0}
    run = "return answer(load, '/bundles/small', { device: given.device, worker: true }, given.cases);"
    done = chromium.run(run, device=device, cases=[packed(x) for x, _ in cases])
    for got, (_, expected) in zip(done["outputs"], cases, strict=True):
        assert_close(got, expected)
    assert phases(done["progress"]) == ["download", "compile", "ready", "run", "ready"]


def test_dtypes(chromium: Page, device: str) -> None:
    inputs, expected = dtypes_case(37)
    run = "return answer(load, '/bundles/dtypes', { device: given.device, worker: true }, given.cases);"
    assert_close(chromium.run(run, device=device, cases=[packed(inputs)])["outputs"][0], expected)


def test_inputs_stay_the_callers(chromium: Page, device: str) -> None:
    body = (
        LOAD
        + """
    const large = new Float32Array(1000).fill(1);
    const x = large.subarray(10, 16);
    const inputs = { x, k: { data: Int32Array.of(1, 2) }, keep: { data: Uint8Array.of(1, 0), shape: [2, 1] } };
    const first = model.run(inputs);
    x.fill(9);
    const { scores } = await first;
    await model.dispose();
    return [x.length, large.length, [...scores.data], scores.shape];
    """
    )
    assert chromium.run(body, device=device) == [6, 1000, [-2, 1, 4, 7, -1, -1, -1, -1], [2, 4]]


def test_large_inputs_of_runs_at_once_and_one_after_the_other(chromium: Page) -> None:
    """Their copies share memory, one after the other."""
    body = (
        LOAD
        + """
    const rows = 8192;
    const runs = (filled) => ({ x: new Float32Array(3 * rows).fill(filled), k: new Int32Array(rows), keep: new Uint8Array(rows).fill(1) });
    const found = [];
    for (const given of [[1], [2, 3], [4], [5, 6, 7]]) {
      const all = given.map(runs);
      const answers = await Promise.all(all.map((inputs) => model.run(inputs)));
      found.push(...answers.map(({ scores }, k) => [scores.data[0], scores.data.at(-4), all[k].x[0], all[k].x.length]));
    }
    await model.dispose();
    return found;
    """
    )
    found = chromium.run(body, device="wasm")
    assert [f[2:] for f in found] == [[k, 3 * 8192] for k in range(1, 8)]
    assert all(first == last for first, last, *_ in found)
    gaps = {b[0] - a[0] for a, b in pairwise(found)}
    assert len(gaps) == 1
    assert gaps != {0}


def test_arrays_whose_slice_shares_memory_stay_the_callers(chromium: Page) -> None:
    """As in classes that take node's Buffer to pages; beside them, arrays that were given away."""
    body = """
    class Shared extends Float32Array {
      slice(start, end) {
        return this.subarray(start, end);
      }
    }
    const model = await load("/bundles/small", { device: "wasm", worker: true });
    const x = Shared.of(1, 2, 3);
    const rest = { k: Int32Array.of(1), keep: Uint8Array.of(1) };
    const { scores } = await model.run({ x, ...rest });
    const gone = Float32Array.of(1, 2, 3);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    const refused = [];
    for (const x of [gone, new DataView(new ArrayBuffer(12))]) refused.push((await failure(() => model.run({ x, ...rest }))).code);
    await model.dispose();
    return [x.length, scores.shape, refused];
    """
    assert chromium.run(body) == [3, [1, 4], ["input", "input"]]


def test_errors_keep_their_codes(chromium: Page, device: str) -> None:
    body = (
        LOAD
        + """
    const good = { x: new Float32Array(3), k: new Int32Array(1), keep: new Uint8Array(1) };
    const found = [
      await failure(() => model.run({ ...good, x: new Float32Array(4) })),
      await failure(() => model.run({ ...good, x: [1, 2, '3'] })),
      await failure(() => model.run({ ...good, x: () => 1 })),
      await failure(() => model.run(null)),
      await failure(() => model.run(new Float32Array(3))),
      await failure(() => model.run([1, 2, 3])),
      await failure(() => model.step(good)),
      await failure(() => model.run(good, { outputs: "gpu" })),
    ];
    await model.dispose();
    await model.dispose();
    found.push(await failure(() => model.run(good)));
    found.push(await failure(() => load("/bundles/none", { worker: true })));
    const signal = AbortSignal.abort();
    found.push(await failure(() => load("/bundles/small", { worker: true, signal })));
    if (!found[4].message.includes("pass { x: data, k: data, keep: data }")) throw new Error(found[4].message);
    if (!found[6].message.includes("no steps of training")) throw new Error(found[6].message);
    return found.map(({ name, code }) => `${name} ${code}`);
    """
    )
    codes = ["input"] * 8 + ["disposed", "network", "aborted"]
    assert chromium.run(body, device=device) == [f"SingeError {code}" for code in codes]


@pytest.mark.parametrize("worker", [False, True])
def test_options_that_are_null(chromium: Page, worker: bool) -> None:
    body = """
    const model = await load("/bundles/small", { device: "wasm", worker: given.worker });
    const good = { x: new Float32Array(3), k: new Int32Array(1), keep: new Uint8Array(1) };
    const { scores } = await model.run(good, null);
    const wrong = { ...good, x: { data: good.x, shape: [1n, 3n] } };
    const found = [await failure(() => model.run(wrong)), await failure(() => model.profile(good, { seconds: 1n }))];
    const { runs } = await model.profile(good, null);
    await model.dispose();
    return [scores.shape, runs > 0, found.map(({ name, code }) => `${name} ${code}`)];
    """
    assert chromium.run(body, worker=worker) == [[1, 4], True, ["SingeError input"] * 2]


def test_abort_while_downloading(chromium: Page, device: str) -> None:
    body = """
    const stop = new AbortController();
    setTimeout(() => stop.abort("enough"), 500);
    const signal = stop.signal;
    return failure(() => load("/slow/small", { device: given.device, signal, cache: false, worker: true }));
    """
    assert chromium.run(body, device=device)["code"] == "aborted", "the download never ends"


def test_an_error_of_the_callers_own_ends_the_load(chromium: Page) -> None:
    body = """
    const onProgress = () => { throw new Error("no more"); };
    return (await failure(() => load("/bundles/small", { onProgress, worker: true }))).message;
    """
    assert chromium.run(body) == "no more"


def test_gpu_objects_cannot_cross(chromium: Page) -> None:
    body = """
    const here = await load("/bundles/small", { device: "webgpu" });
    const { gpuDevice } = here;
    const model = await load("/bundles/small", { device: "webgpu", worker: true });
    const x = gpuDevice.createBuffer({ size: 12, usage: GPUBufferUsage.COPY_SRC });
    const found = [
      await failure(() => load("/bundles/small", { device: "webgpu", worker: true, gpuDevice })),
      await failure(() => model.run({ x, k: new Int32Array(1), keep: new Uint8Array(1) })),
    ];
    await model.dispose();
    await here.dispose();
    return found;
    """
    for found in chromium.run(body):
        assert found["code"] == "input"
        assert "worker" in found["message"]


@pytest.mark.parametrize("how", ["terminate", "close"])
def test_a_worker_that_dies_loses_its_runs(chromium: Page, device: str, how: str) -> None:
    started = """
    const Native = Worker;
    globalThis.Worker = class extends Native { constructor(...given) { super(...given); globalThis.last = this; } };
    """
    body = (
        started
        + LOAD
        + """
    const inputs = unpack(given.tensors);
    await model.run(inputs);
    globalThis.Worker = Native;
    if (given.how === "close") globalThis.kill = model;
    else globalThis.last.terminate();
    const pending = failure(() => model.run(inputs));
    if (given.how === "close") return "later";
    const codes = [(await pending).code, (await failure(() => model.run(inputs))).code];
    await model.dispose();
    return [...codes, model.memory];
    """
    )
    found = chromium.run(body, device=device, tensors=packed(small_case(3)[0]), how=how)
    if how == "close":
        chromium.page.workers[-1].evaluate("close()")
        after = """
        const codes = [];
        for (let k = 0; k < 2; k++) codes.push((await failure(() => globalThis.kill.run(unpack(given.tensors)))).code);
        await globalThis.kill.dispose();
        return [...codes, globalThis.kill.memory];
        """
        found = chromium.run(after, tensors=packed(small_case(3)[0]))
    assert found == ["lost", "lost", {"gpu": 0, "wasm": 0, "js": 0}]


def test_the_worker_ends_with_the_model(chromium: Page, device: str) -> None:
    chromium.page.wait_for_timeout(200)  # those of other tests end
    before = len(chromium.page.workers)
    chromium.run(LOAD + "globalThis.kept = model;", device=device)
    assert len(chromium.page.workers) == before + 1
    chromium.run("await globalThis.kept.dispose();")
    chromium.page.wait_for_timeout(200)
    assert len(chromium.page.workers) == before
    chromium.failed("await load('/bundles/none', { worker: true });")
    chromium.page.wait_for_timeout(200)
    assert len(chromium.page.workers) == before


def embedded(page: Page, url: str, script: str) -> str:
    """The text of a document's title, once its script has set it."""
    tab = page.page.context.browser.new_page()
    try:
        tab.goto(url + script)
        until(tab, "document.title")
        return tab.title()
    finally:
        tab.close()


def test_a_page_of_another_origin(chromium: Page, bundle: Callable[[str], Path]) -> None:
    """The runner and the bundle are on one server, the page on another: the worker starts by a script that imports."""
    other = Served(bundle("small").parent)
    try:
        other.pages["/page"] = (
            f"""<!doctype html><script type=module>
            import {{ load }} from "{chromium.server.address}static/singe.js";
            const model = await load("{chromium.server.address}bundles/small", {{ worker: true, device: "wasm" }});
            document.title = `${{model.device}} ${{model.worker}}`;
            </script>""",
            {},
        )
        assert embedded(chromium, other.address, "page") == "wasm true"
    finally:
        other.close()


def test_a_policy_without_workers(chromium: Page, device: str) -> None:
    policy = "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; worker-src 'none'"
    chromium.server.pages["/strict"] = (
        f"""<!doctype html><script type=module>
        import {{ load }} from "/static/singe.js";
        const model = await load("/bundles/small", {{ worker: true, device: "{device}" }});
        const {{ scores }} = await model.run({{ x: new Float32Array(3), k: new Int32Array(1), keep: new Uint8Array(1) }});
        document.title = `${{model.device}} ${{model.worker}} ${{scores.shape}}`;
        </script>""",
        {"Content-Security-Policy": policy},
    )
    assert embedded(chromium, chromium.server.address, "strict") == f"{device} false 1,4"


def test_node_has_no_workers_of_this_kind(bundle: Callable[[str], Path]) -> None:
    body = "const model = await load(given.url, { worker: true }); return [model.worker, model.device];"
    assert node(body, url=bundle("small").as_uri()) == [False, "wasm"]
