"""Outputs in the caller's arrays: filled exactly, on every device, in a worker and on several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import assert_close, dtypes_case, packed, small_case
from pages import Page, open_page, several_cores

PLACES: Final[dict[str, dict[str, Any]]] = {
    "wasm": {"device": "wasm"},
    "webgpu": {"device": "webgpu"},
    "wasm in a worker": {"device": "wasm", "worker": True},
}


@pytest.fixture(scope="module")
def chromium(browser: Any, bundle: Callable[[str], Path]) -> Iterator[Page]:
    bundle("weighty")
    with open_page(browser, bundle("small").parent) as page:
        yield page


@pytest.fixture(params=PLACES)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return PLACES[request.param]


INTO: Final = """
const model = await load(given.url, given.options);
const before = 9;
const marks = (array) => (array instanceof BigInt64Array ? BigInt(before) : before);
/** Arrays as the outputs need them, each within one that reaches further on both sides. */
const inner = (outputs) =>
  Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => {
    const all = new data.constructor(data.length + 9000);
    return [name, all.fill(marks(all)).subarray(4000, 4000 + data.length)];
  }));
const untouched = (array) => {
  const all = new array.constructor(array.buffer);
  const mark = marks(all);
  return [all.subarray(0, 4000), all.subarray(4000 + array.length)].every((side) => side.every((x) => x === mark));
};
const found = [];
for (const tensors of given.cases) {
  const arrays = inner(await model.run(unpack(tensors)));
  for (let k = 0; k < 2; k++) {
    const done = await model.run(unpack(tensors), { outputs: arrays });
    const names = Object.keys(done);
    const own = names.every((name) => done[name].data === arrays[name] && untouched(arrays[name]));
    const [first] = names;
    const some = await model.run(unpack(tensors), { outputs: { [first]: arrays[first] } });
    const rest = names.every((name) => (some[name].data === arrays[name]) === (name === first));
    found.push([own, rest, pack(done), pack(some)]);
  }
}
const { threads } = model;
await model.dispose();
return { found, threads };
"""


def assert_filled(done: dict[str, Any], expected: list[dict[str, np.ndarray]]) -> None:
    assert len(done["found"]) == 2 * len(expected)
    for k, (own, rest, filled, some) in enumerate(done["found"]):
        assert own, "what comes back is the caller's own array, and what lies around it stays"
        assert rest, "what was not named comes in a new array"
        assert_close(filled, expected[k // 2])
        assert_close(some, expected[k // 2])


def test_arrays_are_filled(chromium: Page, options: dict[str, Any]) -> None:
    cases = [small_case(n) for n in (6, 1, 6)]
    done = chromium.run(INTO, url="/bundles/small", options=options, cases=[packed(x) for x, _ in cases])
    assert_filled(done, [expected for _, expected in cases])


def test_arrays_of_every_dtype(chromium: Page, bundle: Callable[[str], Path], options: dict[str, Any]) -> None:
    bundle("dtypes")
    inputs, expected = dtypes_case(37)
    done = chromium.run(INTO, url="/bundles/dtypes", options=options, cases=[packed(inputs)])
    assert_filled(done, [expected])


@several_cores
def test_arrays_are_filled_by_threads(chromium: Page) -> None:
    x = np.random.default_rng(0).normal(size=(6001, 5, 7, 6)).astype(np.float32)
    given: dict[str, Any] = {"url": "/bundles/weighty", "cases": [packed({"x": x})]}
    one, two = (chromium.run(INTO, options={"device": "wasm", "threads": n}, **given) for n in (1, 2))
    assert two["threads"] == 2
    assert [own and rest for own, rest, *_ in two["found"]] == [True, True]
    assert two["found"] == one["found"]


WRONG: Final = {
    "{ score: new Float32Array(4) }": 'unknown output "score": did you mean scores?',
    "{ scores: new Float32Array(3) }": 'output "scores": got Float32Array of 3, expected Float32Array (float32) of 4 elements',
    "{ scores: new Int32Array(4) }": "got Int32Array of 4, expected Float32Array",
    "{ scores: new Float32Array(4), twice: [0] }": 'output "twice": got Array, expected Int32Array (int32)',
    "{ scores: new Float32Array(4), twice: null }": 'output "twice": got null, expected Int32Array',
    '"gpus"': 'outputs: got "gpus", expected "data"',
    "1n": 'outputs: got "1n", expected "data"',
    "null": 'outputs: got null, expected "data"',
    '["scores"]': 'outputs: got an array, expected "data"',
}


def test_wrong_arrays_are_refused(chromium: Page, options: dict[str, Any]) -> None:
    cases = ", ".join(f"() => model.run(good, {{ outputs: {outputs} }})" for outputs in WRONG)
    body = f"""
    const model = await load("/bundles/small", given.options);
    const good = {{ x: new Float32Array(3), k: new Int32Array(1), keep: new Uint8Array(1) }};
    const found = [];
    for (const run of [{cases}]) found.push(await failure(run));
    const after = await model.run(good);
    await model.dispose();
    return [found, [...after.scores.data]];
    """
    found, after = chromium.run(body, options=options)
    for answer, message in zip(found, WRONG.values(), strict=True):
        assert answer["code"] == "input", answer
        assert message in answer["message"]
    assert len(after) == 4


def test_what_stays_on_the_gpu_is_for_webgpu(chromium: Page) -> None:
    for options in (PLACES["wasm"], PLACES["wasm in a worker"], {"device": "webgpu", "worker": True}):
        body = """
        const model = await load("/bundles/small", given.options);
        const good = { x: new Float32Array(3), k: new Int32Array(1), keep: new Uint8Array(1) };
        const found = await failure(() => model.run(good, { outputs: "gpu" }));
        await model.dispose();
        return found;
        """
        found = chromium.run(body, options=options)
        assert found["code"] == "input"
        assert 'GPU buffers are for "webgpu", not in a worker' in found["message"]
