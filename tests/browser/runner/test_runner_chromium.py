"""singe.js in Chromium, on both devices: bundles over loopback, and errors."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import BOUND, BOUNDS, MODEL_NAMES, assert_close, dtypes_case, groups_of, model_case, packed, small_case
from pages import Page, open_page, phases

import singe as sg


@pytest.fixture(scope="module")
def chromium(browser: Any, bundle: Callable[[str], Path]) -> Iterator[Page]:
    with open_page(browser, bundle("small").parent) as page:
        yield page


@pytest.fixture(params=["wasm", "webgpu"])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


ANSWER: Final = "return answer(load, given.url, { device: given.device }, given.cases);"


def test_mnist(chromium: Page, bundle: Callable[[str], Path], device: str) -> None:
    bundle("mnist_cnn")
    inputs, outputs = model_case("mnist_cnn")
    chromium.asked.clear()
    done = chromium.run(ANSWER, url="/bundles/mnist_cnn", device=device, cases=[packed(inputs)])
    assert_close(done["outputs"][0], outputs)
    assert done["device"] == device
    fetched = [path for path in chromium.asked if path.startswith("/bundles/")]
    assert sorted(set(fetched)) == sorted(fetched), "each file is fetched once"
    progress = done["progress"]
    assert phases(progress) == ["download", "compile", "ready", "run", "ready"]
    assert progress[-1]["loaded"] == progress[-1]["total"] > 1_500_000
    assert progress[-1]["compiled"] == progress[-1]["kernels"] > 0
    compiled = [p["compiled"] for p in progress if p["phase"] == "run"]
    assert len(compiled) == 1 if device == "wasm" else compiled[0] < compiled[-1], (
        "32 pictures need kernels of their own"
    )
    print(f"mnist_cnn on {device}: {done['seconds']:.3f} s for 32 pictures, {done['memory']}")


def test_files_come_while_the_gpu_is_opened(chromium: Page, bundle: Callable[[str], Path]) -> None:
    bundle("small")
    body = """
    const open = GPUAdapter.prototype.requestDevice, entries = () => performance.getEntriesByType("resource").map(({ name }) => name);
    const before = entries().length;
    const isThere = (part) => found?.some((name) => name.includes(part));
    let found;
    GPUAdapter.prototype.requestDevice = async function (...options) {
      for (const end = performance.now() + 5000; performance.now() < end && !given.parts.every(isThere);) {
        await new Promise((done) => setTimeout(done, 10));
        found = entries().slice(before);
      }
      return open.apply(this, options);
    };
    try {
      const { outputs } = await answer(load, given.url, { device: "webgpu", cache: false }, given.cases);
      return { found, outputs };
    } finally {
      GPUAdapter.prototype.requestDevice = open;
    }
    """
    inputs, outputs = small_case(5)
    parts = ("kernels-webgpu", "weights-webgpu")
    done = chromium.run(body, url="/bundles/small", cases=[packed(inputs)], parts=parts)
    assert_close(done["outputs"][0], outputs)
    for part in parts:
        assert any(part in name for name in done["found"]), part


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODEL_NAMES if name != "mnist_cnn"])
def test_models(chromium: Page, bundle: Callable[[str], Path], name: str, device: str) -> None:
    """The first item of each batch: WebGPU runs in software here."""
    bundle(name)
    inputs, outputs = ({k: v[:1] for k, v in side.items()} for side in model_case(name))
    done = chromium.run(ANSWER, url=f"/bundles/{name}", device=device, cases=[packed(inputs)])
    assert_close(done["outputs"][0], outputs, BOUNDS.get(name, BOUND))
    assert done["device"] == device
    print(f"{name} on {device}: {done['seconds']:.3f} s, {done['memory']}")


def test_small_graph_of_several_sizes(chromium: Page, device: str) -> None:
    cases = [small_case(n) for n in (3, 1, 200, 2, 3, 5, 7, 3)]
    done = chromium.run(ANSWER, url="/bundles/small", device=device, cases=[packed(x) for x, _ in cases])
    for found, (_, expected) in zip(done["outputs"], cases, strict=True):
        assert_close(found, expected)
    assert done["memory"]["gpu" if device == "webgpu" else "wasm"] > 0
    assert done["after"] == {"gpu": 0, "wasm": 0, "js": 0}


def test_dtypes(chromium: Page, bundle: Callable[[str], Path], device: str) -> None:
    bundle("dtypes")
    inputs, expected = dtypes_case(37)
    done = chromium.run(ANSWER, url="/bundles/dtypes", device=device, cases=[packed(inputs)])
    assert_close(done["outputs"][0], expected)


def test_the_bundles_own_page(chromium: Page) -> None:
    page = chromium.page.context.browser.new_page()
    try:
        page.goto(chromium.page.url + "bundles/small/index.html")
        page.get_by_test_id("run").click()
        page.get_by_test_id("status").filter(has_text="Done on wasm").wait_for()
        assert page.get_by_test_id("outputs").locator("tr").count() == 3
    finally:
        page.close()


def test_no_rows(chromium: Page, device: str) -> None:
    body = """
    const model = await load("/bundles/small", { device: given.device });
    const { scores } = await model.run({ x: new Float32Array(0), k: new Int32Array(0), keep: new Uint8Array(0) });
    await model.dispose();
    return [scores.shape, scores.data.length];
    """
    assert chromium.run(body, device=device) == [[0, 4], 0]


GPU_BUFFERS: Final = """
const first = await load("/bundles/small", { device: "webgpu" });
const gpuDevice = first.gpuDevice;
const model = await load("/bundles/small", { device: "webgpu", gpuDevice });
const inputs = unpack(given.tensors);
const x = gpuDevice.createBuffer({ size: inputs.x.data.byteLength, usage: GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
gpuDevice.queue.writeBuffer(x, 0, inputs.x.data);
const held = await model.run({ ...inputs, x: { data: x, shape: inputs.x.shape } }, { outputs: "gpu" });
const again = await model.run({ ...inputs, x, k: { data: held.twice.data, shape: held.twice.shape } });
await model.dispose();
const more = await first.run(inputs);
await first.dispose();
return { again: pack(again), more: pack(more), size: held.scores.data.size, shape: held.scores.shape };
"""


def test_gpu_buffers_and_a_device_of_the_callers(chromium: Page) -> None:
    inputs, expected = small_case(6)
    done = chromium.run(GPU_BUFFERS, tensors=packed(inputs))
    assert_close(done["more"], expected)
    kept = inputs["keep"]
    scores = np.where(kept, expected["scores"] + inputs["k"], np.float32(-1)).astype(np.float32)
    assert_close(done["again"], {"scores": scores, "negated": ~kept, "twice": 4 * inputs["k"]})
    assert (done["size"], done["shape"]) == (96, [6, 4])


BUFFERS_OF_THE_CALLERS: Final = """
const model = await load("/bundles/small", { device: "webgpu" });
const { gpuDevice } = model;
const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
const make = (size, usage = STORAGE | COPY_SRC | COPY_DST) => gpuDevice.createBuffer({ size, usage });
const cases = given.tensors.map(unpack);
const x = make(4 * given.count); // more than it takes
const scores = make(4 * given.count);
const read = async (buffer) => {
  const staging = make(4 * given.count, MAP_READ | COPY_DST);
  const commands = gpuDevice.createCommandEncoder();
  commands.copyBufferToBuffer(buffer, 0, staging, 0, 4 * given.count);
  gpuDevice.queue.submit([commands.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  return [...new Float32Array(staging.getMappedRange())];
};
const found = [];
for (const inputs of cases) {
  gpuDevice.queue.writeBuffer(x, 0, inputs.x.data);
  const onGpu = { ...inputs, x: { data: x, shape: inputs.x.shape } };
  const done = await model.run(onGpu, { outputs: { scores } });
  const others = [done.negated.data, done.twice.data].every((buffer) => buffer instanceof GPUBuffer);
  found.push([done.scores.data === scores, others, await read(scores), pack(await model.run(onGpu))]);
}
const failed = [];
for (const outputs of [{ score: scores }, { scores: make(16) }, { scores: make(4 * given.count, COPY_SRC) }, { scores: null }, "gpus", null, { scores: x }]) {
  failed.push(await failure(() => model.run({ ...cases[0], x: { data: x, shape: cases[0].x.shape } }, { outputs })));
}
const after = pack(await model.run(cases[1]));
await model.dispose();
return { found, failed, after };
"""


def test_kernels_read_and_write_the_callers_buffers(chromium: Page) -> None:
    cases = [small_case(6), small_case(6, seed=1)]
    done = chromium.run(BUFFERS_OF_THE_CALLERS, tensors=[packed(inputs) for inputs, _ in cases], count=24)
    for (same, others, scores, answered), (_, expected) in zip(done["found"], cases, strict=True):
        assert same
        assert others
        np.testing.assert_allclose(scores, expected["scores"].ravel(), rtol=1e-5, atol=1e-6)
        assert_close(answered, expected)
    assert [f["code"] for f in done["failed"]] == ["input"] * 6 + ["device"]
    told = [f["message"] for f in done["failed"]]
    assert told[0] == 'unknown output "score": did you mean scores?'
    assert "a GPUBuffer of 16 bytes, expected 96 bytes" in told[1]
    assert "GPUBufferUsage.STORAGE" in told[2]
    assert "no GPUBuffer" in told[3]
    assert all("expected" in message for message in told[4:6])
    assert_close(done["after"], cases[1][1])


RUNS_OF_ALL_KINDS: Final = """
const model = await load("/bundles/small", { device: "webgpu" });
const { gpuDevice } = model;
const [one, two] = given.tensors.map(unpack);
const x = gpuDevice.createBuffer({ size: two.x.data.byteLength, usage: GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
gpuDevice.queue.writeBuffer(x, 0, two.x.data);
const onGpu = { ...two, x: { data: x, shape: two.x.shape } };
const answers = [];
for (const inputs of [one, two, onGpu]) answers.push(pack(await model.run(inputs)));
for (const inputs of [one, onGpu]) Object.values(await model.run(inputs, { outputs: "gpu" })).forEach(({ data }) => data.destroy());
answers.push(pack(await model.run(one)));
x.destroy();
const code = await model.run(onGpu).catch((error) => error.code);
answers.push(pack(await model.run(one)));
await model.dispose();
return { answers, code };
"""


def test_runs_of_all_kinds_after_each_other(chromium: Page) -> None:
    one, two = small_case(6), small_case(6, seed=1)
    done = chromium.run(RUNS_OF_ALL_KINDS, tensors=[packed(one[0]), packed(two[0])])
    for found, (_, expected) in zip(done["answers"], (one, two, two, one, one), strict=True):
        assert_close(found, expected)
    assert done["code"] == "device"


def test_a_lost_device_is_opened_anew(chromium: Page) -> None:
    inputs, expected = small_case(4)
    body = """
    const model = await load("/bundles/small", { device: "webgpu" });
    await model.run(unpack(given.tensors));
    const before = model.gpuDevice;
    before.destroy();
    const outputs = await model.run(unpack(given.tensors));
    const fresh = model.gpuDevice !== before;
    await model.dispose();
    return { outputs: pack(outputs), fresh };
    """
    done = chromium.run(body, tensors=packed(inputs))
    assert done["fresh"]
    assert_close(done["outputs"], expected)


def test_a_lost_device_of_the_callers_is_an_error(chromium: Page) -> None:
    body = """
    const gpuDevice = await (await navigator.gpu.requestAdapter()).requestDevice();
    const model = await load("/bundles/small", { device: "webgpu", gpuDevice });
    gpuDevice.destroy();
    await model.run(unpack(given.tensors));
    """
    assert chromium.failed(body, tensors=packed(small_case(4)[0]))["code"] == "lost"


LOAD: Final = "await load(given.url, { device: given.device, cache: false });"


def spoilt(page: Page, name: str, spoil: Callable[[Path], object]) -> str:
    """The address of a copy of the small bundle, changed by `spoil`."""
    folder = page.root / name
    shutil.copytree(page.root / "small", folder, dirs_exist_ok=True)
    spoil(folder)
    return f"/bundles/{name}/"


def test_a_wrong_hash(chromium: Page, device: str) -> None:
    def change(folder: Path) -> None:
        for path in folder.glob("weights*"):
            path.write_bytes(bytes(path.stat().st_size))

    found = chromium.failed(LOAD, url=spoilt(chromium, "changed", change), device=device)
    assert found["code"] == "format"
    assert "sha256" in found["message"]


def test_a_missing_file(chromium: Page, device: str) -> None:
    def remove(folder: Path) -> None:
        for path in folder.glob("kernels*"):
            path.unlink()

    url = spoilt(chromium, "missing", remove)
    found = chromium.failed(LOAD, url=url, device=device)
    assert found["code"] == "network"
    assert "404" in found["message"]


def test_kernels_that_do_not_compile(chromium: Page) -> None:
    def change(folder: Path) -> None:
        path = folder / "kernels-webgpu.json"
        text = path.read_text().replace("fn main(", "fn main((").encode()
        path.write_bytes(text)
        manifest = json.loads((folder / "model.json").read_text())
        manifest["targets"]["webgpu"]["modules"].update(bytes=len(text), sha256=hashlib.sha256(text).hexdigest())
        (folder / "model.json").write_text(json.dumps(manifest))

    found = chromium.failed(LOAD, url=spoilt(chromium, "broken", change), device="webgpu")
    assert found["code"] == "device"


def test_abort_while_downloading(chromium: Page, device: str) -> None:
    body = """
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 300);
    await load("/slow/small", { device: given.device, signal: stop.signal, cache: false });
    """
    assert chromium.failed(body, device=device)["code"] == "aborted", "the download never ends"


def test_many_loads_hold_nothing(chromium: Page, device: str) -> None:
    body = """
    for (let k = 0; k < given.times; k++) {
      const model = await load("/bundles/small", { device: given.device });
      await model.run(unpack(given.tensors));
      await model.dispose();
      if (Object.values(model.memory).some((bytes) => bytes)) return model.memory;
    }
    return "nothing";
    """
    times = {"wasm": 40, "webgpu": 5}[device]  # a pipeline takes 28 to 70 ms on SwiftShader
    assert chromium.run(body, device=device, times=times, tensors=packed(small_case(3)[0])) == "nothing"


def test_a_slow_adapter_in_software_is_announced_with_the_time_to_expect(chromium: Page) -> None:
    shutil.copytree(chromium.root / "small", chromium.root / "slow")
    path = chromium.root / "slow" / "model.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["targets"]["webgpu"]["program"]["kernels"][0]["flops"] = 14e9
    path.write_text(json.dumps(manifest), "utf-8")
    expected = re.compile(r'in software .* expect .* to load this model and at least 20 s for a run.*"wasm"')
    with chromium.page.expect_console_message(lambda said: bool(expected.search(said.text))):  # others may come late
        chromium.run(ANSWER, url="/bundles/slow", device="webgpu", cases=[packed(small_case(3)[0])])


@pytest.mark.parametrize(
    ("compiled", "left", "expected"),
    [
        (0, [100] * 36, "at least 36 s"),
        (0, [700, 300, *[50] * 34], "at least 5 s"),
        (500, [100] * 31, "about 12 s"),
        (3600, [], None),
    ],
    ids=["none compiled", "the longest first", "some compiled", "all compiled"],
)
def test_the_time_to_expect_of_software_follows_from_what_is_compiled(
    chromium: Page, compiled: int, left: list[int], expected: str | None
) -> None:
    body = """
    const { warn } = await import("/static/webgpu/singe-software.js");
    Object.defineProperty(navigator, "hardwareConcurrency", { value: 2, configurable: true });
    const said = [], { warn: before } = console, later = globalThis.setTimeout;
    console.warn = (text) => said.push(text);
    globalThis.setTimeout = (done) => later(done, 0);
    await warn({ vendor: "google" }, { kernels: [], words: [] }, {}, { compiled: given.compiled, left: new Map(given.left.entries()) });
    Object.assign(globalThis, { setTimeout: later });
    console.warn = before;
    delete navigator.hardwareConcurrency;
    return said;
    """
    said = chromium.run(body, compiled=compiled, left=left)
    assert [re.findall(r"expect (.*?) to load", text) for text in said] == ([[expected]] if expected else [])


def test_a_kernel_of_several_steps_is_compiled_and_counted_once(chromium: Page) -> None:
    weights = np.full((8, 8), 0.5, np.float32)
    model = sg.Model.of(lambda x: ((x @ weights).relu() @ weights).relu(), {"x": (4, 8)})
    sg.export(model, chromium.root / "twice")
    program = json.loads((chromium.root / "twice" / "model.json").read_text())["targets"]["webgpu"]["program"]
    used = [head for _, head, _ in groups_of(program)]
    assert len(set(used)) < len(used)
    body = """
    let said;
    const model = await load("/bundles/twice", { device: "webgpu", onProgress: (progress) => { said = progress; } });
    await model.dispose();
    return [said.compiled, said.kernels];
    """
    assert chromium.run(body) == [len(set(used))] * 2


def test_kernels_for_other_sizes_are_created_when_a_run_needs_them(
    chromium: Page, bundle: Callable[[str], Path]
) -> None:
    """mnist_cnn has other kernels for large batches than for one picture."""
    bundle("mnist_cnn")
    body = """
      const create = GPUDevice.prototype.createComputePipelineAsync;
      let created = 0;
      GPUDevice.prototype.createComputePipelineAsync = function (...given) { created++; return create.apply(this, given); };
      try {
        const model = await load(given.url, { device: "webgpu" });
        const counts = [created];
        for (const count of [1, 128, 1]) {
          await model.run({ input: new Float32Array(count * 784) });
          counts.push(created);
        }
        model.dispose();
        return counts;
      } finally {
        GPUDevice.prototype.createComputePipelineAsync = create;
      }
    """
    loaded, first, later, again = chromium.run(body, url="/bundles/mnist_cnn")
    assert 0 < loaded == first < later == again
