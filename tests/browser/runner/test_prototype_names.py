"""Names that every JavaScript object has (`constructor`, `__proto__` …) work like any other in a manifest, everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from flows import Flow
from pages import Page, node, open_page

from singe.dtypes import float32, int32
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.program.program import Bind, Check
from singe.shapes import size
from singe.tools.export.bundle import export

NAMES: Final = ("constructor", "toString", "__proto__", "hasOwnProperty", "valueOf")
RUN: Final = """
const { options, names, lengths } = JSON.parse(given.text);
const model = await load(given.url, options);
const found = [];
for (const shaped of [true, false]) {
  const inputs = Object.create(null);
  names.forEach((name, k) => {
    const data = Float32Array.from({ length: 2 * lengths[k] }, (_, i) => i + k);
    inputs[name] = shaped ? { data, shape: [lengths[k], 2] } : data;
  });
  const outputs = await model.run(inputs);
  found.push(Object.entries(outputs).map(([name, { data, shape }]) => [name, Array.from(data), shape]));
}
const missing = await failure(() => model.run(Object.fromEntries(names.slice(1).map((name) => [name, new Float32Array(2)]))));
await model.dispose();
return JSON.stringify([found, missing.code]);
"""
STATES: Final = """
const model = await load(given.url, JSON.parse(given.text).options);
const found = [];
for (const name of given.names) {
  await model.session().write(name, Int32Array.of(5));
  const session = model.session();
  await session.write(name, Int32Array.of(7));
  found.push(Array.from((await session.read(name)).data ?? (await session.read(name))));
}
const { out } = await model.run({ x: Int32Array.of(1, 2, 3) });
found.push(Array.from(out.data), out.shape);
await model.dispose();
return JSON.stringify(found);
"""


def graph() -> Graph:
    """An input, an output and an open size of each name."""
    b = Builder()
    inputs = [b.input(name, (size(other), 2), float32) for name, other in zip(NAMES, NAMES[::-1], strict=True)]
    return Graph(tuple(inputs), tuple(b.add(x, x) for x in inputs), NAMES)


def states() -> Flow:
    """A state of each name, and a size of each that is found in mid-run."""
    flow = Flow()
    n = size("N")
    x = flow.input("x", int32, n)
    for name in NAMES:
        flow.state(name, int32, 1)
        flow.steps.append(Bind(name, None, n + 1))
    total = sum((size(name) for name in NAMES[1:]), size(NAMES[0]))
    flow.steps += [Check(sign * (total - len(NAMES) * (n + 1)), "the sizes are others") for sign in (1, -1)]
    out = flow.output("out", int32, n)
    flow.steps.append(flow.call(lambda b, x: b.add(x, x), x, to=out))
    return flow


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prototypes")
    export(Model(graph(), "numpy"), folder / "plain")
    states().write(folder / "states", "states")
    return folder


def check(text: str) -> None:
    lengths = range(1, len(NAMES) + 1)
    wanted = [
        [name, [2.0 * (i + k) for i in range(2 * n)], [n, 2]]
        for k, (name, n) in enumerate(zip(NAMES, lengths, strict=True))
    ]
    assert json.loads(text) == [[wanted, wanted], "input"]


def given(root: Path, name: str, address: str, **options: Any) -> dict[str, Any]:
    lengths = list(range(1, len(NAMES) + 1))
    text = json.dumps({"options": options, "names": NAMES, "lengths": lengths})
    return {"url": address + name, "text": text, "names": list(NAMES)}


def test_in_node(root: Path) -> None:
    check(node(RUN, **given(root, "plain", root.as_uri() + "/", device="wasm")))


def test_states_in_node(root: Path) -> None:
    found = json.loads(node(STATES, **given(root, "states", root.as_uri() + "/", device="wasm")))
    assert found == [*([[7]] * len(NAMES)), [2, 4, 6], [3]]


@pytest.mark.slow
@pytest.mark.parametrize("device", ["wasm", "webgpu"])
def test_in_a_page(browser: Any, root: Path, device: str) -> None:
    with open_page(browser, root) as page:
        in_page(page, root, device)


def in_page(page: Page, root: Path, device: str) -> None:
    for worker in (False, True):
        check(page.run(RUN, **given(root, "plain", "/bundles/", device=device, worker=worker)))
        found = json.loads(page.run(STATES, **given(root, "states", "/bundles/", device=device, worker=worker)))
        assert found == [*([[7]] * len(NAMES)), [2, 4, 6], [3]]
