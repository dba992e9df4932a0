"""Inputs that a caller donates, in node, in pages and in workers: outputs come from their memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import assert_close, groups_of, packed
from pages import Page, Runs, open_page

import singe as sg
from singe.dtypes import float32, int64
from singe.graph import Builder, Graph
from singe.ops import ROWS
from singe.program.words import COPY
from singe.tools.export.bundle import export

WHERE: Final = ("node", "threads", "wasm", "webgpu", "worker wasm", "worker webgpu")
ROW: Final = np.array([[1, 2, 3, 4]], np.float32)


def straight() -> Graph:
    """A row of the cache is replaced; the other output is the sum of the old cache."""
    b = Builder()
    cache, row, at = b.input("cache", (8, 4), float32), b.input("row", (1, 4), float32), b.input("at", (), int64)
    outputs = (b.reduce_sum(cache, axes=(0,)), b.update_slice(cache, row, at, b.const(np.int64(0))))
    return Graph((cache, row, at), outputs, ("total", "updated"))


def in_turns() -> Graph:
    """The same by a loop of one turn for each of three rows."""
    b = Builder()
    cache, row, at = b.input("cache", (8, 4), float32), b.input("row", (1, 4), float32), b.input("at", (), int64)
    v, t, r = b.input("v", (8, 4), float32), b.input("t", (), int64), b.input("r", (1, 4), float32)
    after = b.update_slice(v, b.mul(r, b.cast(t, to=float32)), t, b.const(np.int64(0)))
    body = Graph((v, t, r), (b.const(True), after, b.add(t, b.const(1))), tuple("cvt"))
    updated, _ = b.apply(ROWS["loop"], cache, at, row, body=body, carried=2, conditional=False, count=3)
    return Graph((cache, row, at), (b.reduce_sum(cache, axes=(0,)), updated), ("total", "updated"))


def expected(name: str, cache: np.ndarray, at: int) -> dict[str, np.ndarray]:
    updated = cache.copy()
    if name == "straight":
        updated[at] = ROW
    else:
        for k in range(at, at + 3):
            updated[k] = ROW * k
    return {"total": cache.sum(0, keepdims=True), "updated": updated}


def pair() -> Graph:
    b = Builder()
    x, y = b.input("x", (8,), float32), b.input("y", (8,), float32)
    return Graph((x, y), (b.neg(x), b.abs(y)), ("negated", "positive"))


GRAPHS: Final = {"straight": straight, "in_turns": in_turns}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("donated")
    for name, make in GRAPHS.items():
        model = sg.Model(make(), "numpy", name, donate=["cache"])
        for target in export(model, folder / name).manifest["targets"].values():
            program = target["program"]
            assert [program["buffers"][i]["place"] for i in program["outputs"]] == [["output", 0], ["input", 0]]
            assert not any(head == COPY for _, head, _ in groups_of(program)) or name == "in_turns"
    export(sg.Model(pair(), "numpy", "pair", donate=["x", "y"]), folder / "pair")
    return folder


@pytest.fixture(scope="module")
def chromium(browser: Any, root: Path) -> Iterator[Page]:
    with open_page(browser, root) as page:
        yield page


RUN: Final = """
const model = await open(given.name);
const found = [];
for (const tensors of given.cases) found.push(pack(await model.run(unpack(tensors))));
await model.dispose();
return found;
"""


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("where", WHERE)
def test_arrays(request: pytest.FixtureRequest, root: Path, where: str, name: str) -> None:
    """The result is right in each run, and the caller's array does not change, since it is uploaded."""
    caches = [np.random.default_rng(k).integers(-9, 9, (8, 4)).astype(np.float32) for k in range(3)]
    cases = [packed({"cache": cache, "row": ROW, "at": np.array(k, np.int64)}) for k, cache in enumerate(caches)]
    found = Runs(request, where, root)(RUN, name=name, cases=cases)
    for k, (cache, got) in enumerate(zip(caches, found, strict=True)):
        assert_close(got, expected(name, cache, k))


KEPT: Final = """
const model = await load("/bundles/" + given.name, { device: "webgpu" });
const { gpuDevice } = model;
const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
const inputs = unpack(given.tensors);
const make = (usage) => {
  const buffer = gpuDevice.createBuffer({ size: inputs.cache.data.byteLength, usage });
  gpuDevice.queue.writeBuffer(buffer, 0, inputs.cache.data);
  return { data: buffer, shape: inputs.cache.shape };
};
const put = async (cache, outputs) => (await model.run({ ...inputs, cache }, { outputs })).updated.data;
const read = async (data) => pack(await model.run({ ...inputs, cache: { data, shape: inputs.cache.shape } }));

const resident = make(STORAGE | COPY_SRC | COPY_DST);
const first = await put(resident, "gpu");
const second = await put(resident, "gpu");
const same = first === resident.data && second === first;
const answers = [await read(second)];

const plain = make(COPY_SRC | COPY_DST);
const fresh = await put(plain, "gpu");
answers.push(await read(fresh), await read(plain.data));

const target = make(STORAGE | COPY_SRC | COPY_DST).data;
answers.push(await read(await put(make(STORAGE | COPY_SRC | COPY_DST), { updated: target })));
answers.push(await read(await put(inputs.cache, "gpu")), await read(await put(inputs.cache, "gpu")));
answers.push(pack(await model.run({ ...inputs, cache: make(STORAGE | COPY_SRC | COPY_DST) })));
const other = fresh !== plain.data;
await model.dispose();
return { same, other, answers };
"""


@pytest.mark.parametrize("name", GRAPHS)
def test_buffers_on_the_gpu(chromium: Page, name: str) -> None:
    """A buffer that kernels can write comes back as the output; others, and typed arrays, get a new one."""
    cache = np.random.default_rng(5).integers(-9, 9, (8, 4)).astype(np.float32)
    tensors = packed({"cache": cache, "row": ROW, "at": np.array(2, np.int64)})
    done = chromium.run(KEPT, name=name, tensors=tensors)
    assert done["same"]
    assert done["other"]
    once = expected(name, cache, 2)
    twice = expected(name, once["updated"], 2)
    for found, want in zip(done["answers"], [twice, twice, once, twice, twice, twice, once], strict=True):
        assert_close(found, want)


SHARED: Final = """
const model = await load("/bundles/pair", { device: "webgpu" });
const { gpuDevice } = model;
const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
const x = gpuDevice.createBuffer({ size: 32, usage: STORAGE | COPY_SRC | COPY_DST });
gpuDevice.queue.writeBuffer(x, 0, Float32Array.from({ length: 8 }, (_, k) => k - 4));
const answers = [pack(await model.run({ x, y: x }))];
const { negated, positive } = await model.run({ x, y: x }, { outputs: "gpu" });
const apart = new Set([x, negated.data, positive.data]).size;
answers.push(pack(await model.run({ x: negated.data, y: positive.data })));
await model.dispose();
return { apart, answers };
"""


def test_a_buffer_that_is_two_donated_inputs(chromium: Page) -> None:
    done = chromium.run(SHARED)
    x = np.arange(8, dtype=np.float32) - 4
    assert done["apart"] == 3
    assert_close(done["answers"][0], {"negated": -x, "positive": abs(x)})
    assert_close(done["answers"][1], {"negated": x, "positive": abs(x)})
