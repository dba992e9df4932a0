"""Conditions, loops, states, and sizes found in mid-run: in node, in pages and in workers, on both devices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import STATIC, assert_close, groups_of, packed, unpacked
from flows import FLOWS, collatz_turns, found_case, nested_case
from networks.remembering import REMEMBERING
from pages import Page, Runs, node, open_page

from singe.program.format import header
from singe.program.plan import Plan
from singe.program.words import COPY
from singe.tools.export.bundle import export

WHERE: Final = ("node", "threads", "wasm", "webgpu", "worker wasm", "worker webgpu")
"""The places where tests run: node with one thread and with two, a page, and its worker."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the bundles, by name."""
    folder = tmp_path_factory.mktemp("flows")
    for name, make in FLOWS.items():
        make().write(folder / name, name)
    for name, this in REMEMBERING.items():
        export(this.model("numpy"), folder / name)
    return folder


@pytest.fixture(scope="module")
def chromium(browser: Any, root: Path) -> Iterator[Page]:
    with open_page(browser, root) as page:
        yield page


@pytest.fixture(params=WHERE)
def runs(request: pytest.FixtureRequest, root: Path) -> Runs:
    return Runs(request, request.param, root)


ANSWER: Final = """
const model = await open(given.name);
const outputs = [];
for (const tensors of given.cases) outputs.push(pack(await model.run(unpack(tensors))));
await model.dispose();
return outputs;
"""


def test_loops_by_a_condition(runs: Runs) -> None:
    """Zero turns, and an early end that data decides; an If within."""
    cases = [{"x": np.array([x], np.int32)} for x in (1, 2, 7, 27, 1)]
    for case, found in zip(cases, runs(ANSWER, name="collatz", cases=[packed(c) for c in cases]), strict=True):
        assert_close(found, {"turns": np.array([collatz_turns(int(case["x"][0]))], np.int32)})


def test_loops_by_counts(runs: Runs) -> None:
    """Loops in loops, their counts open and fixed; no turns at all."""
    rng = np.random.default_rng(0)
    cases = [
        (rng.normal(size=(n, 2)).astype(np.float32), flag) for n, flag in ((3, True), (0, True), (2, False), (3, True))
    ]
    given = [packed({"x": x, "flag": np.array([flag])}) for x, flag in cases]
    for (x, flag), found in zip(cases, runs(ANSWER, name="nested", cases=given), strict=True):
        assert_close(found, {"y": nested_case(x, flag)})


def test_sizes_found_in_mid_run(runs: Runs) -> None:
    """Sizes that grow and shrink from run to run and within one, none among them."""
    rng = np.random.default_rng(1)
    cases = [rng.integers(0, 9, n).astype(np.float32) for n in (4, 300, 5, 300, 1)]
    cases += [np.ones(7, np.float32), np.full(7, 9, np.float32)]
    for x, found in zip(cases, runs(ANSWER, name="found", cases=[packed({"x": x}) for x in cases]), strict=True):
        assert_close(found, found_case(x))


def test_a_run_that_is_recorded_goes_on_after_a_buffer_grew(runs: Runs) -> None:
    """One of calls and copies alone, over a buffer that runs of other sizes replace in mid-run."""
    few, many = np.arange(4, dtype=np.float32), np.arange(300, dtype=np.float32)
    cases = [0 * many, few, few, many, few, few]
    for x, found in zip(cases, runs(ANSWER, name="either", cases=[packed({"x": x}) for x in cases]), strict=True):
        assert_close(found, {"y": x + 1})


def test_outputs_of_found_sizes_in_arrays_of_the_callers(runs: Runs) -> None:
    body = """
    const model = await open("found");
    const places = new BigInt64Array(2);
    const inputs = { x: Float32Array.of(9, 0, 5) };
    const found = await model.run(inputs, { outputs: { places } });
    const wrong = await failure(() => model.run(inputs, { outputs: { places: new BigInt64Array(3) } }));
    return [found.places.data === places, [...places].join(), found.doubled.shape, wrong];
    """
    same, places, shape, wrong = runs(body)
    assert (same, places, shape) == (True, "0,2", [2, 2])
    assert wrong["code"] == "input"
    assert "of 2 elements" in wrong["message"]


def test_sessions_are_apart(runs: Runs) -> None:
    body = """
    const model = await open("counter");
    const [a, b] = [model.session(), model.session()];
    const one = async (who, ...x) => [...(await who.run({ x: Int32Array.from(x) })).counted.data];
    const found = { own: [await one(model, 1, 1)], a: [], b: [] };
    for (let k = 1; k < 4; k++) {
      found.a.push(await one(a, k, -k));
      found.b.push(await one(b, 10, 0));
    }
    const copy = a.copy();
    found.a.push(await one(a, 100, 100));
    found.copy = [await one(copy, 0, 0), [...(await copy.read("largest"))]];
    await a.write("count", Int32Array.of(-1, -2));
    found.written = [await one(a, 1, 1), [...(await a.read("count"))]];
    await a.reset();
    found.reset = [[...(await a.read("count"))], [...(await a.read("largest"))], await one(a, 0, 0)];
    found.own.push(await one(model, 1, 1));
    found.states = [model.states, a.states];
    await copy.dispose();
    found.disposed = [await failure(() => one(copy, 0, 0)), await one(b, 1, 1)];
    found.wrong = [
      await failure(() => a.read("nothing")),
      await failure(() => a.write("count", Int32Array.of(1))),
      await failure(() => a.write("count", Float32Array.of(1, 2))),
    ];
    await model.dispose();
    found.after = [await failure(() => one(b, 1, 1)), model.memory];
    return found;
    """
    found = runs(body)
    assert found["own"] == [[6, 51], [7, 52]]
    assert found["a"] == [[6, 49], [8, 47], [11, 44], [111, 144]]
    assert found["b"] == [[15, 50], [25, 50], [35, 50]]
    assert found["copy"] == [[11, 44], [3, 0]]
    assert found["written"] == [[0, -1], [0, -1]]
    assert found["reset"] == [[5, 50], [0, 0], [5, 50]]
    states = [{"name": n, "dtype": "int32", "shape": [2]} for n in ("count", "largest")]
    assert found["states"] == [states, states]
    assert found["disposed"][0]["code"] == "disposed"
    assert found["disposed"][1] == [36, 51]
    assert [w["code"] for w in found["wrong"]] == ["input"] * 3
    assert "this model has count, largest" in found["wrong"][0]["message"]
    assert "expected Int32Array (int32) of 2 elements" in found["wrong"][1]["message"]
    assert found["after"] == [{**found["after"][0], "code": "disposed"}, {"gpu": 0, "wasm": 0, "js": 0}]


def test_a_run_whose_outputs_are_refused_leaves_the_states(runs: Runs) -> None:
    body = """
    const model = await open("counter");
    const session = model.session();
    const x = Int32Array.of(1, 1);
    await session.run({ x });
    const codes = [];
    for (const outputs of [
      { counted: new Int32Array(5) },
      { counted: new Float32Array(2) },
      { nothing: new Int32Array(2) },
      { counted: null },
      null,
      "gpus",
      ...(given.worker ? ["gpu"] : []),
    ]) {
      for (const who of [session, model]) codes.push((await failure(() => who.run({ x }, { outputs }))).code);
    }
    const counted = new Int32Array(2);
    const [first, second] = [session.run({ x }, { outputs: { counted } }), session.run({ x })];
    const found = [(await first).counted.data === counted, [...counted], [...(await second).counted.data]];
    found.push([...(await model.run({ x })).counted.data]);
    await model.dispose();
    return [codes, ...found];
    """
    codes, *found = runs(body, worker="worker" in runs.where)
    assert set(codes) == {"input"}
    assert found == [True, [7, 52], [8, 53], [6, 51]]


def test_overlapping_calls_of_a_session_follow_each_other(runs: Runs) -> None:
    body = """
    const model = await open("counter");
    const session = model.session();
    const x = Int32Array.of(1, 2);
    const all = [session.run({ x }), session.run({ x }), session.reset(), session.run({ x }), session.read("count")];
    const found = await Promise.all(all);
    await model.dispose();
    return [0, 1, 3].map((k) => [...found[k].counted.data]).concat([[...found[4]]]);
    """
    assert runs(body) == [[6, 52], [7, 54], [6, 52], [6, 52]]


def test_a_thousand_runs_take_no_more_memory(runs: Runs) -> None:
    """A counter and a ring, each in two sessions: right at the end, and as large as after the first runs."""
    body = """
    const counter = await open("counter");
    const ring = await open("ring");
    const counts = [counter.session(), counter.session()];
    const rings = [ring.session(), ring.session()];
    const held = () => JSON.stringify([counter.memory, ring.memory]);
    let before, total;
    for (let k = 0; k < given.runs; k++) {
      for (const s of [0, 1]) {
        await counts[s].run({ x: Int32Array.of(s, 1) });
        total = await rings[s].run({ row: Float32Array.of(k, s, 0, 1) });
      }
      if (k === 3) before = held();
    }
    const after = held();
    const last = await Promise.all(counts.map(async (s) => [...(await s.read("count"))]));
    await counter.dispose();
    await ring.dispose();
    return [before === after, before, after, last, [...total.total.data]];
    """
    count = 1000 if runs.where in ("node", "wasm", "worker wasm") else 100
    same, before, after, last, total = runs(body, runs=count)
    assert same, (before, after)
    assert last == [[5, 50 + count], [5 + count, 50 + count]]
    assert total == [sum(range(count - 8, count)), 8, 0, 8]


@pytest.mark.parametrize("name", REMEMBERING)
def test_exported_models_with_states_run_a_thousand_times(runs: Runs, name: str) -> None:
    """No memory is taken and no state copied; outputs and states are NumPy's; another session, begun before, is apart."""
    body = """
    const model = await open(given.name);
    const [a, b] = [model.session(), model.session()];
    const cases = given.cases.map(unpack);
    const first = pack(await b.run(cases[0]));
    let outputs, before;
    for (let k = 0; k < given.runs; k++) {
      outputs = await a.run(cases[k % cases.length]);
      if (k === 3) before = JSON.stringify(model.memory);
    }
    const after = JSON.stringify(model.memory);
    const read = async (session) => {
      const found = {};
      for (const { name, dtype, shape } of model.states) found[name] = { data: await session.read(name), dtype, shape };
      return pack(found);
    };
    const last = [pack(outputs), await read(a), first, await read(b)];
    await model.dispose();
    return [before === after, before, after, last];
    """
    this = REMEMBERING[name]
    manifest = json.loads((runs.root / name / "model.json").read_text())
    for target in manifest["targets"].values():
        places = [b["place"][0] for b in target["program"]["buffers"]]
        copies = [rest for _, head, rest in groups_of(target["program"]) if head == COPY]
        assert not [rest for rest in copies if "state" in (places[rest[0]], places[rest[1]])]
    slow = name == "descent" and "webgpu" in runs.where  # a software adapter takes 50 ms for a run of 18 dispatches
    count = 200 if slow else 1000
    same, before, after, last = runs(body, name=name, cases=[packed(c) for c in this.inputs], runs=count)
    assert same, (before, after)
    *_, expected = this.after(count)
    for got, wanted in zip(map(unpacked, last), (*expected, *next(this.after(1))), strict=True):
        this.compare(got, wanted)


def test_buffers_without_the_usages_of_a_run_are_refused(chromium: Page) -> None:
    body = """
    const model = await load("/bundles/counter", { device: "webgpu" });
    const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
    const make = (usage, size = 16) => model.gpuDevice.createBuffer({ size, usage });
    const x = Int32Array.of(1, 1);
    const found = [
      await failure(() => model.run({ x: { data: make(STORAGE | COPY_DST), shape: [2] } })),
      await failure(() => model.run({ x }, { outputs: { counted: make(STORAGE | COPY_SRC) } })),
      await failure(() => model.run({ x }, { outputs: { counted: make(COPY_DST) } })),
    ];
    const own = make(COPY_SRC | COPY_DST);
    model.gpuDevice.queue.writeBuffer(own, 0, x);
    const kept = await model.run({ x: { data: own, shape: [2] } }, { outputs: { counted: make(STORAGE | COPY_DST) } });
    const { counted } = await model.run({ x: { data: own, shape: [2] } });
    await model.dispose();
    return [found, kept.counted.data instanceof GPUBuffer, [...counted.data]];
    """
    found, is_buffer, counted = chromium.run(body)
    for answer, usage in zip(found, ("COPY_SRC", "COPY_DST", "STORAGE"), strict=True):
        assert answer["code"] == "input", answer
        assert f"GPUBufferUsage.{usage}" in answer["message"]
    assert is_buffer
    assert counted == [7, 52]


def test_a_disposed_model_has_no_sessions(runs: Runs) -> None:
    """Its sessions may be disposed of afterwards."""
    body = """
    const model = await open("counter");
    const session = model.session();
    await session.run({ x: Int32Array.of(1, 1) });
    const done = model.dispose();
    await session.dispose();
    await done;
    await session.dispose();
    return [await failure(() => model.session()), await failure(() => session.read("count"))];
    """
    assert [answer["code"] for answer in runs(body)] == ["disposed", "disposed"]


def test_a_disposed_model_frees_its_memory(root: Path) -> None:
    body = """
    const Memory = WebAssembly.Memory;
    let held;
    WebAssembly.Memory = function (...given) {
      const memory = new Memory(...given);
      held = new WeakRef(memory);
      return memory;
    };
    const model = await load(given.url, { threads: 1 });
    await model.run({ x: Int32Array.of(1, 1) });
    await model.dispose();
    for (let k = 0; k < 5; k++) {
      await new Promise((done) => setTimeout(done, 1));
      gc();
    }
    return [held.deref() === undefined, model.memory.wasm];
    """
    assert node(body, arguments=("--expose-gc",), url=(root / "counter").as_uri()) == [True, 0]


def test_a_model_without_states_has_no_sessions(runs: Runs) -> None:
    body = """
    const model = await open("collatz");
    return [model.states, await failure(() => model.session())];
    """
    states, wrong = runs(body)
    assert states == []
    assert wrong["code"] == "input"


def test_profiles_count_the_turns_of_loops(runs: Runs) -> None:
    """27 takes 111 turns, and each one calls the test of a turn. A session's states do not change."""
    body = """
    const model = await open("collatz");
    const found = await model.profile({ x: Int32Array.of(27) }, { seconds: 0.2 });
    const idle = await model.profile({ x: Int32Array.of(27) }, { seconds: 0 });
    const counter = await open("counter");
    await counter.run({ x: Int32Array.of(1, 1) });
    await counter.profile({ x: Int32Array.of(1, 1) }, { seconds: 0.1 });
    const after = await counter.run({ x: Int32Array.of(1, 1) });
    const late = await (await open("found")).profile({ x: Float32Array.of(9, 0, 5) }, { seconds: 0.1 });
    return [found, idle.kernels.length, [...after.counted.data], late.runs];
    """
    found, kernels, after, late = runs(body)
    assert kernels == len(found["kernels"]) > 3
    assert any(k["calls"] in (111, 112) for k in found["kernels"] if k["label"] != "copy"), found["kernels"]
    total = sum(k["seconds"] for k in found["kernels"]) + sum(found["rest"].values())
    assert found["seconds"] == pytest.approx(total)
    assert found["runs"] > 0
    assert late > 0
    assert after == [7, 52]


def test_states_that_were_lost_with_their_device(chromium: Page) -> None:
    """The model is there again; a session says that its states are gone until it is reset, the model's own says so once."""
    body = """
    const model = await load("/bundles/counter", { device: "webgpu" });
    const x = Int32Array.of(1, 1);
    const session = model.session();
    const idle = model.session();
    await model.run({ x });
    await session.run({ x });
    model.gpuDevice.destroy();
    const codes = [];
    const attempt = async (who) => codes.push((await failure(() => who.run({ x }))).code);
    for (const who of [session, session, model, model, idle]) await attempt(who);
    await session.reset();
    const counted = async (who) => (await who.run({ x })).counted.data[0];
    const found = [await counted(session), await counted(model), await counted(idle)];
    await model.dispose();
    return [codes, found, model.memory.gpu];
    """
    codes, found, held = chromium.run(body)
    assert codes == ["lost", "lost", "lost", "none", "none"]
    assert found == [6, 7, 7]
    assert held == 0


def test_every_call_of_a_session_notices_that_the_device_was_lost(chromium: Page) -> None:
    """What a session writes, copies or reads then fails; after a reset it is there again, whether or not the model ran."""
    body = """
    const model = await load("/bundles/counter", { device: "webgpu" });
    const x = Int32Array.of(1, 1);
    const calls = {
      read: (session) => session.read("count"),
      write: (session) => session.write("count", x),
      copy: (session) => session.copy().read("count"),
      reset: (session) => session.reset(),
    };
    const found = {};
    for (const [name, call] of Object.entries(calls)) {
      const [session, other] = [model.session(), model.session()];
      for (const who of [session, other]) await who.run({ x });
      model.gpuDevice.destroy();
      const codes = [];
      for (const attempt of [() => call(session), () => session.read("count"), () => other.read("count")]) {
        codes.push((await failure(attempt)).code);
      }
      const values = [];
      for (const who of [session, other]) {
        await who.reset();
        values.push((await who.read("count"))[0]);
        await who.write("count", Int32Array.of(8, 8));
        values.push((await who.run({ x })).counted.data[0]);
        await who.dispose();
      }
      found[name] = [codes, values];
    }
    await model.dispose();
    return [found, model.memory.gpu];
    """
    found, held = chromium.run(body)
    for name, (codes, values) in found.items():
        assert codes == (["none", "none", "lost"] if name == "reset" else ["lost"] * 3), name
        assert values == [5, 9, 5, 9], name
    assert held == 0


def test_auto_stays_on_its_device_where_there_are_states(chromium: Page) -> None:
    body = """
    const changed = [];
    const model = await load("/bundles/counter", { onDevice: (device) => changed.push(device) });
    for (let k = 0; k < 20; k++) await model.run({ x: Int32Array.of(1, 1) });
    await new Promise((done) => setTimeout(done, 300));
    const { counted } = await model.run({ x: Int32Array.of(1, 1) });
    return [model.device, changed, counted.data[0]];
    """
    assert chromium.run(body) == ["wasm", [], 26]


@pytest.mark.parametrize("name", FLOWS)
def test_words_are_the_same_in_both_languages(name: str) -> None:
    program = FLOWS[name]().program("wasm")
    sizes = dict.fromkeys(program.symbols, 3)
    body = f"""
    const {{ Plan }} = await import({json.dumps((STATIC / "program" / "singe-plan.js").as_uri())});
    return new Plan(given.program, given.sizes).words;
    """
    assert node(body, program=header(program), sizes=sizes) == list(Plan(program, sizes).words)
