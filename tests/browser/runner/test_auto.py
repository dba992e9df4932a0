"""`auto`: starts on WebAssembly, keeps the faster device, remembers it for bundle and adapter; works without WebGPU."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from bundles import assert_close, groups_of, packed, small_case, write_bundle
from changed import changed_graph
from pages import Page, open_page

HARDWARE: Final = """
for (const [name, value] of [["vendor", "acme"], ["architecture", given.adapter ?? "fast-1"], ["description", ""]]) {
  Object.defineProperty(GPUAdapterInfo.prototype, name, { get: () => value, configurable: true });
}
Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false, configurable: true });
"""
"""SwiftShader under another name, so that it is measured like hardware; it is slower than WebAssembly."""
SLOW_WASM: Final = """
const Instance = WebAssembly.Instance;
WebAssembly.Instance = function (...given) {
  const { exports } = new Instance(...given);
  const slow = (f) => Object.defineProperty((...given) => {
    for (const end = performance.now() + 60; performance.now() < end; );
    return f(...given);
  }, "length", { value: f.length });
  return { exports: Object.fromEntries(Object.entries(exports).map(([name, f]) => [name, slow(f)])) };
};
"""
WATCHED: Final = """
const told = [];
const model = await load(given.url ?? "/bundles/small", {
  device: "auto", worker: given.worker ?? false, onDevice: (device) => told.push(device),
});
const first = model.device;
const outputs = [pack(await model.run(unpack(given.tensors)))];
const choice = async () => {
  const cache = await caches.open("singe");
  const key = (await cache.keys()).find(({ url }) => url.endsWith("?choice"));
  return key ? (await cache.match(key)).json() : null;
};
const deadline = performance.now() + (given.patience ?? 30_000);
while (!(given.until === "told" ? told.length : await choice()) && performance.now() < deadline) {
  await new Promise((done) => setTimeout(done, 20));
}
await new Promise((done) => setTimeout(done, 100));
outputs.push(pack(await model.run(unpack(given.tensors))));
const { device, memory } = model;
await model.dispose();
return { first, device, told, outputs, memory, choice: await choice(), after: model.memory };
"""


@pytest.fixture
def page(browser: Any, bundle: Callable[[str], Path], tmp_path: Path) -> Iterator[Page]:
    shutil.copytree(bundle("small"), tmp_path / "small")
    with open_page(browser, tmp_path) as found:
        yield found


def watched(page: Page, before: str = "", **given: Any) -> dict[str, Any]:
    """What a page reports about a model with device "auto", after its outputs were checked."""
    inputs, expected = small_case(7)
    done = page.run(before + WATCHED, tensors=packed(inputs), **given)
    for outputs in done["outputs"]:
        assert_close(outputs, expected)
    assert done["after"] == {"gpu": 0, "wasm": 0, "js": 0}
    return done


def test_the_faster_is_wasm(page: Page) -> None:
    done = watched(page, HARDWARE)
    assert (done["first"], done["device"], done["told"]) == ("wasm", "wasm", [])
    assert (done["choice"]["device"], done["memory"]["gpu"]) == ("wasm", 0), "what lost is freed"
    page.page.reload()
    page.server.files()
    again = watched(page, HARDWARE, patience=1500)
    assert again["choice"] == done["choice"]
    assert page.server.files() == []


def test_the_faster_is_webgpu(page: Page) -> None:
    done = watched(page, HARDWARE + SLOW_WASM)
    assert (done["first"], done["device"], done["told"]) == ("wasm", "webgpu", ["webgpu"])
    assert done["choice"]["device"] == "webgpu"
    assert done["memory"]["wasm"] == 0, "what lost is freed"
    assert done["memory"]["gpu"] > 0
    page.page.reload()
    page.server.files()
    again = watched(page, HARDWARE + SLOW_WASM, patience=1500)
    assert (again["first"], again["device"], again["told"]) == ("webgpu", "webgpu", [])
    assert page.server.files() == [], "each byte was fetched once"


def test_a_bad_buffer_of_the_callers_does_not_change_the_device(page: Page) -> None:
    """The GPU device, and with it the caller's other buffers, stay."""
    body = """
    await (await load("/bundles/small")).dispose();
    const cache = await caches.open("singe");
    const url = new URL("/bundles/small/model.json", location.href).href;
    while (!(await cache.match(url))) await new Promise((done) => setTimeout(done, 20));
    await cache.put(url + "?choice", Response.json({ device: "webgpu" }));
    const told = [];
    const model = await load("/bundles/small", { onDevice: (device) => told.push(device) });
    const { device, gpuDevice } = model;
    const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
    const make = () => gpuDevice.createBuffer({ size: 16, usage: STORAGE | COPY_SRC | COPY_DST });
    const rest = { k: new Int32Array(1), keep: new Uint8Array(1) };
    const [x, bad] = [make(), make()];
    bad.destroy();
    const found = [
      await failure(() => model.run({ x: { data: bad, shape: [1, 3] }, ...rest })),
      await failure(() => model.run({ x: new Float32Array(3), ...rest }, { outputs: { scores: bad } })),
    ];
    const { scores } = await model.run({ x: { data: x, shape: [1, 3] }, ...rest });
    const now = [model.device, model.gpuDevice === gpuDevice];
    await model.dispose();
    return [device, found.map(({ code }) => code), scores.shape, ...now, told];
    """
    assert page.run(body) == ["webgpu", ["device", "device"], [1, 4], "webgpu", True, []]


def test_another_adapter_is_measured_anew(page: Page) -> None:
    assert watched(page, HARDWARE + SLOW_WASM)["device"] == "webgpu"
    page.page.reload()
    done = watched(page, HARDWARE, adapter="slow-2", until="told")
    assert (done["first"], done["device"], done["told"]) == ("webgpu", "wasm", ["wasm"])
    assert "slow-2" in done["choice"]["adapter"]


def test_another_bundle_is_measured_anew(page: Page) -> None:
    assert watched(page, HARDWARE + SLOW_WASM)["device"] == "webgpu"
    page.page.reload()
    shutil.rmtree(page.root / "small")
    write_bundle(changed_graph(), page.root / "small", "small")
    body = "const model = await load('/bundles/small'); const { device } = model; await model.dispose(); return device;"
    assert page.run(HARDWARE + body) == "wasm"


def test_in_a_worker(page: Page) -> None:
    done = watched(page, worker=True, patience=2000)
    assert (done["first"], done["device"], done["choice"]) == ("wasm", "wasm", None)


def test_webgpu_that_is_remembered_and_gone(page: Page) -> None:
    assert watched(page, HARDWARE + SLOW_WASM)["device"] == "webgpu"
    page.page.reload()
    gone = "GPU.prototype.requestAdapter = async () => null;"
    done = watched(page, gone, patience=500)
    assert (done["first"], done["device"]) == ("wasm", "wasm")


def test_webgpu_that_fails_later(page: Page) -> None:
    assert watched(page, HARDWARE + SLOW_WASM)["device"] == "webgpu"
    page.page.reload()
    inputs, expected = small_case(7)
    body = """
    const told = [];
    const model = await load("/bundles/small", { onDevice: (device) => told.push(device) });
    const first = model.device;
    GPU.prototype.requestAdapter = async () => null;
    model.gpuDevice.destroy();
    const outputs = pack(await model.run(unpack(given.tensors)));
    await new Promise((done) => setTimeout(done));
    return { first, device: model.device, told, outputs };
    """
    done = page.run(HARDWARE + body, tensors=packed(inputs))
    assert (done["first"], done["device"], done["told"]) == ("webgpu", "wasm", ["wasm"])
    assert_close(done["outputs"], expected)


@pytest.mark.parametrize("kind", ["software", "no adapter", "no WebGPU"])
def test_nothing_is_spent_where_there_is_no_gpu(page: Page, kind: str) -> None:
    count = "let asked = 0; const ask = GPUAdapter.prototype.requestDevice;"
    count += "GPUAdapter.prototype.requestDevice = function (...given) { asked++; return ask.apply(this, given); };"
    fault = {
        "software": "",
        "no adapter": "GPU.prototype.requestAdapter = async () => null;",
        "no WebGPU": "Object.defineProperty(navigator, 'gpu', { value: undefined });",
    }[kind]
    done = watched(page, count + fault + "globalThis.count = () => asked;", patience=1500)
    assert (done["device"], done["told"], done["choice"]) == ("wasm", [], None)
    assert page.page.evaluate("count()") == 0
    assert not [path for path in page.server.files() if "webgpu" in path]


def test_a_run_waits_for_one_measured_run_at_most(page: Page) -> None:
    """Runs asked for while it measures; a measured run here takes 60 ms on one side, and the other's some."""
    body = """
    const model = await load("/bundles/small");
    const inputs = unpack(given.tensors);
    await model.run(inputs);
    const waits = [];
    while (model.device === "wasm" && waits.length < 200) {
      const asked = performance.now();
      await model.run(inputs);
      waits.push(performance.now() - asked);
      await new Promise((done) => setTimeout(done, 5));
    }
    const { device } = model;
    await model.dispose();
    return { device, most: Math.max(...waits), count: waits.length };
    """
    done = page.run(HARDWARE + SLOW_WASM + body, tensors=packed(small_case(7)[0]))
    assert done["device"] == "webgpu"
    manifest = page.run("return (await fetch('/bundles/small/model.json')).json();")
    groups = len(groups_of(manifest["targets"]["wasm"]["program"]))
    assert done["most"] < 2.5 * 60 * groups + 500, done


def test_disposed_while_it_measures(page: Page) -> None:
    body = """
    const model = await load("/bundles/small");
    await model.run(unpack(given.tensors));
    while (!model.memory.gpu) await new Promise((done) => setTimeout(done, 1));
    await model.dispose();
    await new Promise((done) => setTimeout(done, 500));
    return model.memory;
    """
    held = page.run(HARDWARE + body, tensors=packed(small_case(7)[0]))
    assert held == {"gpu": 0, "wasm": 0, "js": 0}
