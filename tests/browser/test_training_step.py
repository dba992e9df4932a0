"""A step of training as a bundle: the losses and weights of `model.step` in node, in a page and in its worker are the native ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import packed
from pages import Page, node, open_page

import singe as sg
from singe import nn
from singe.train import TrainStep

STEPS = """
const model = await load(given.url, { ...given.options });
const session = model.session();
const losses = [];
for (const batch of given.batches) losses.push((await session.step(unpack(batch))).loss.data[0]);
const own = (await model.step(unpack(given.batches[0]))).loss.data[0];
const weight = Array.from(await session.read("model.0.weight"));
await model.dispose();
return { losses, own, weight };
"""


def loss(model: Any, x: Any, y: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x), y)


def made() -> TrainStep:
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, rng=rng),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(16, 3, rng=rng),
    )
    return TrainStep(model.train(), sg.optim.AdamW(lr=0.01), loss, device="numpy", seed=5)


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [(rng.standard_normal((6, 1, 6, 6)).astype(np.float32), rng.integers(0, 3, 6)) for _ in range(5)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    sg.export(made().as_model(*batches()[0]), folder / "step")
    return folder


@pytest.fixture(scope="module")
def chromium(root: Path) -> Iterator[Page]:
    with open_page(root) as page:
        yield page


@pytest.mark.parametrize("where", ["node", "wasm", "webgpu", "worker wasm", "worker webgpu"])
def test_steps_in_a_page_are_the_native_ones(where: str, root: Path, request: pytest.FixtureRequest) -> None:
    step = made()
    wanted = [step(*batch) for batch in batches()]
    given = [packed({"x": x, "y": y}) for x, y in batches()]
    *worker, device = where.split()
    if device == "node":
        url = (root / "step").as_uri() + "/"
        found = node(STEPS, url=url, options={"device": "wasm", "threads": 1}, batches=given)
    else:
        page = request.getfixturevalue("chromium")
        found = page.run(STEPS, url="/bundles/step/", options={"device": device, "worker": bool(worker)}, batches=given)
    np.testing.assert_allclose(found["losses"], wanted, rtol=1e-3)
    np.testing.assert_allclose(found["own"], wanted[0], rtol=1e-4)  # the model's own session begins at the start
    np.testing.assert_allclose(found["weight"], step.state()["model.0.weight"].ravel(), rtol=1e-2, atol=1e-4)
