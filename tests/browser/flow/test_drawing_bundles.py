"""Bundles that draw: new numbers in every run and at every load, and after `seed` those of Python, in node, in a page and in
its worker, on both devices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import packed
from pages import Page, Runs, node, open_page

import singe as sg

RUN = """
const x = unpack(given.x);
const drawn = async (what) => Array.from((await what.run(x)).output.data);
const times = async (count, what) => { const found = []; for (let k = 0; k < count; k++) found.push(await drawn(what)); return found; };
const model = await open("noisy");
const other = await open("noisy");
const free = [...(await times(3, model)), ...(await times(3, other)), ...(await times(3, model.session()))];
await model.seed(given.seed);
const seeded = await times(3, model);
const session = model.session();
await session.seed(BigInt(given.seed));
await drawn(session);
const copy = session.copy();
const later = [await drawn(session), await drawn(copy)];
const key = Array.from(await session.read("key"));
await session.reset();
const again = await drawn(session);
await session.reset();
await session.write("key", Uint32Array.from(key));
const written = await drawn(session);
const one = model.session();
const two = one.copy();
const both = [await drawn(one), await drawn(two)];
const refused = await model.seed(0.5).catch((error) => `${error.code}: ${error.message}`);
await Promise.all([model.dispose(), other.dispose()]);
return { free, seeded, later, again, written, both, refused };
"""
X = np.ones((4, 3), np.float32)
SEED = 2**40 + 7


def noisy(x: sg.Tensor) -> sg.Tensor:
    return x + sg.randn_like(x) * sg.rand_like(x)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawing")
    sg.export(sg.Model.of(noisy, {"x": (4, 3)}, "numpy"), folder / "noisy")
    return folder


@pytest.fixture(scope="module")
def chromium(browser: Any, root: Path) -> Iterator[Page]:
    with open_page(browser, root) as page:
        yield page


@pytest.mark.parametrize("where", ["node", "wasm", "webgpu", "worker wasm", "worker webgpu"])
def test_bundles_draw_new_numbers_and_those_of_a_seed(where: str, root: Path, request: pytest.FixtureRequest) -> None:
    found = Runs(request, where, root)(RUN, x=packed({"x": X}), seed=SEED)
    assert len({tuple(y) for y in found["free"]}) == 9
    sg.manual_seed(SEED)
    wanted = [noisy(sg.tensor(X)).numpy().ravel() for _ in range(3)]
    np.testing.assert_allclose(found["seeded"], wanted, atol=1e-4)
    np.testing.assert_allclose(found["later"], [wanted[1]] * 2, atol=1e-4)
    np.testing.assert_allclose([found["again"], found["written"]], [wanted[0], wanted[2]], atol=1e-4)
    assert found["both"][0] == found["both"][1]
    assert found["refused"] == "input: seed: got 0.5, expected an integer"


def test_a_step_without_a_seed_draws_other_numbers_at_each_load(tmp_path: Path) -> None:
    def loss(model: sg.nn.Module, x: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        return model(x).sum(), {"drawn": noisy(x)}

    step = sg.train.TrainStep(sg.nn.Linear(3, 2, rng=0), sg.optim.SGD(0.1), loss, device="numpy")
    script = """
const found = [];
for (const name of ["free", "own"]) for (let k = 0; k < 2; k++) {
  const step = await load(given.url + name + "/", { device: "wasm" });
  for (let n = 0; n < 2; n++) found.push(Array.from((await step.run(unpack(given.x))).drawn.data));
  await step.dispose();
}
return found;
"""
    sg.export(step.as_model(X, names=["x"]), tmp_path / "free")
    step.seed(SEED)
    sg.export(step.as_model(X, names=["x"]), tmp_path / "own")
    found = node(script, url=tmp_path.as_uri() + "/", x=packed({"x": X}))
    assert len({tuple(y) for y in found[:4]}) == 4
    sg.manual_seed(SEED)
    wanted = [noisy(sg.tensor(X)).numpy().ravel() for _ in range(2)]
    np.testing.assert_allclose(found[4:], wanted * 2, atol=1e-4)


def test_a_model_that_draws_nothing_says_so(tmp_path: Path) -> None:
    sg.export(sg.Model.of(lambda x: x + 1, {"x": (4, 3)}, "numpy"), tmp_path / "plain")
    script = (
        "const m = await load(given.url, {device: 'wasm'}); return m.seed(1).catch((e) => `${e.code}: ${e.message}`);"
    )
    said = node(script, url=(tmp_path / "plain").as_uri() + "/")
    assert said.startswith("input: this model draws no random numbers")
