"""Memory of the runner: the peak while loading, and no growth over hundreds of loads and disposals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import dtypes_case, packed, small_case, write_bundle
from pages import Page, node, open_page

from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.shapes import size

MOST: Final = 1.2
TIMES: Final = 200
COUNTED: Final = """
const counted = { now: 0, most: 0 };
const add = (bytes) => (counted.most = Math.max(counted.most, (counted.now += bytes)));
const Memory = WebAssembly.Memory;
WebAssembly.Memory = class extends Memory {
  constructor(given) { super(given); add(this.buffer.byteLength); }
  grow(pages) { add(pages * 65536); return super.grow(pages); }
};
const create = GPUDevice.prototype.createBuffer;
const destroy = GPUBuffer.prototype.destroy;
GPUDevice.prototype.createBuffer = function (given) { add(given.size); return create.call(this, given); };
GPUBuffer.prototype.destroy = function () { add(-this.size); return destroy.call(this); };
const read = ReadableStreamDefaultReader.prototype.read;
ReadableStreamDefaultReader.prototype.read = async function () {
  const part = await read.call(this);
  add(part.value?.byteLength ?? 0);
  return part;
};
const clone = Response.prototype.clone;
Response.prototype.clone = function () { add(Number(this.headers.get("content-length"))); return clone.call(this); };
globalThis.counted = counted;
"""
"""Counts the bytes of WebAssembly memories, which live to the end of the load, and of GPU buffers; of what the engine keeps outside of
its own count until it collects garbage: chunks that a stream gives in memory of its own, and what a clone of a response holds."""


def large() -> Graph:
    """Two matrices of 16 MiB each."""
    b = Builder()
    x = b.input("x", (size("N"), 2048), float32)
    rng = np.random.default_rng(0)
    first, second = (b.const(rng.normal(size=(2048, 2048)).astype(np.float32)) for _ in range(2))
    return Graph((x,), (b.matmul(b.relu(b.matmul(x, first)), second),), ("y",))


@pytest.fixture(scope="module")
def chromium(browser: Any, bundle: Callable[[str], Path]) -> Iterator[Page]:
    root = bundle("dtypes").parent
    bundle("small")
    if not (root / "large").exists():
        write_bundle(large(), root / "large", "large")
    with open_page(browser, root) as page:
        yield page


WAYS: Final = {
    "wasm": {"device": "wasm"},
    "wasm on 2 threads": {"device": "wasm", "threads": 2},
    "webgpu": {"device": "webgpu"},
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("cache", [False, True])
def test_the_peak_while_loading(chromium: Page, way: str, cache: bool) -> None:
    """WebAssembly memory and GPU buffers counted as they are made, array buffers by the engine while it loads.

    The engine's count does not include WebAssembly memory, but includes chunks that are not yet garbage-collected.
    """
    chromium.page.reload()
    session = chromium.page.context.new_cdp_session(chromium.page)
    script = f"""
    {COUNTED}
    globalThis.done = undefined;
    load("/bundles/large", given).then(
      async (model) => {{ globalThis.held = model.memory; globalThis.done = "ok"; globalThis.model = model; }},
      (error) => (globalThis.done = error.message));
    """
    session.send("HeapProfiler.collectGarbage")
    before = session.send("Runtime.getHeapUsage").get("backingStorageSize")
    assert before is not None, "this Chromium does not tell the bytes of array buffers"
    chromium.run(script, **WAYS[way], cache=cache)
    engine = 0.0
    while not chromium.page.evaluate("globalThis.done"):
        engine = max(engine, session.send("Runtime.getHeapUsage")["backingStorageSize"] - before)
    assert chromium.page.evaluate("globalThis.done") == "ok"
    held, counted = chromium.page.evaluate("[held, counted]")
    chromium.page.evaluate("globalThis.model.dispose()")
    program = sum(held.values())
    assert program >= 32 << 20
    peak = engine + counted["most"]
    print(f"{way}, cache {cache}: peak {peak / 2**20:.1f} MiB, {peak / program:.3f} of the Program's")
    assert peak <= MOST * program


CYCLES: Final = """
const live = new Set();
const create = GPUDevice.prototype.createBuffer;
const destroy = GPUBuffer.prototype.destroy;
GPUDevice.prototype.createBuffer = function (given) { const b = create.call(this, given); live.add(b); return b; };
GPUBuffer.prototype.destroy = function () { live.delete(this); return destroy.call(this); };
const inputs = unpack(given.tensors);
for (let k = 0; k < given.times; k++) {
  const model = await load("/bundles/dtypes", given.options);
  await model.run(inputs);
  await model.dispose();
}
GPUDevice.prototype.createBuffer = create;
GPUBuffer.prototype.destroy = destroy;
return live.size;
"""


@pytest.mark.slow
def test_many_loads_leave_nothing(chromium: Page, way: str) -> None:
    chromium.page.reload()
    session = chromium.page.context.new_cdp_session(chromium.page)
    tensors = packed(dtypes_case(3)[0])  # its kernels are soon compiled, for a GPU in software as well

    def used() -> tuple[float, float]:
        session.send("HeapProfiler.collectGarbage")
        usage = session.send("Runtime.getHeapUsage")
        return usage["usedSize"], usage["backingStorageSize"]

    def cycle(times: int) -> None:
        for done in range(0, times, 20):
            assert chromium.run(CYCLES, options=WAYS[way], times=min(20, times - done), tensors=tensors) == 0

    cycle(20)
    before = used()
    cycle(TIMES)
    after = used()
    grown = [(a - b) / 2**20 for a, b in zip(after, before, strict=True)]
    print(f"{way}: after {TIMES} loads {grown[0]:.2f} MiB more of heap, {grown[1]:.2f} MiB of buffers")
    assert grown[0] < 1
    assert grown[1] < 1
    assert chromium.page.workers == []


@pytest.mark.parametrize("threads", [1, 2])
def test_many_loads_leave_nothing_in_node(bundle: Callable[[str], Path], threads: int) -> None:
    body = """
    const inputs = unpack(given.tensors);
    const cycle = async (times) => {
      for (let k = 0; k < times; k++) {
        const model = await load(given.url, { device: "wasm", threads: given.threads });
        await model.run(inputs);
        await model.dispose();
      }
      for (let k = 0; k < 3; k++) {
        await new Promise((done) => setTimeout(done, 20));
        gc();
      }
      const { heapUsed, external, arrayBuffers } = process.memoryUsage();
      return [heapUsed, external, arrayBuffers];
    };
    const before = await cycle(30);
    const after = await cycle(given.times);
    return after.map((bytes, k) => (bytes - before[k]) / 2 ** 20);
    """
    tensors = packed(small_case(3)[0])
    given = {"url": bundle("small").as_uri(), "threads": threads, "times": TIMES, "tensors": tensors}
    grown = node(body, **given, arguments=("--expose-gc",))
    print(f"node, {threads} threads: after {TIMES} loads {grown} MiB more of heap, external memory and buffers")
    assert max(grown) < 1
