"""Bundles with open sizes: an encoder of any length up to its bound, and a convolutional net of any height and width."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import assert_close, packed
from networks.open_networks import convolutional, encoder
from pages import Page, node, open_page

from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph
from singe.graph import specialise
from singe.model.model import Model
from singe.model.program import Program
from singe.runtime.devices import device as open_device
from singe.tools.export.bundle import export

LENGTHS: Final = (1, 2, 7, 64, 128, 511, 512)
SIDES: Final = ((160, 160), (224, 160), (320, 320), (640, 640))
WHERE: Final = ("node", "threads", "wasm", "webgpu")
RUN: Final = """
    const model = await load(given.url, given.options);
    const memory = [];
    const outputs = [];
    for (const inputs of given.cases) {
      outputs.push(pack(await model.run(unpack(inputs))));
      memory.push(model.memory.gpu + model.memory.wasm);
    }
    const beyond = given.beyond && (await failure(() => model.run(unpack(given.beyond))));
    await model.dispose();
    return { outputs, memory, beyond, after: model.memory };
"""


def models() -> dict[str, Model]:
    """The models: the encoder has a bound and is specialised for two sets of sizes,
    the net for one size of pictures."""
    made = {
        "encoder": Model(encoder(2, 16, 2), "numpy", bounds={"N": 3, "L": 512}),
        "net": Model(convolutional(4), "numpy"),
    }
    made["encoder"].specialise(N=1, L=7)
    made["encoder"].specialise(L=128)
    made["net"].specialise(H=320, W=320)
    return made


def words(count: int, length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(length)
    return {"words": rng.integers(0, 100, (count, length)), "mask": np.ones((count, length), np.float32)}


def picture(height: int, width: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(height).standard_normal((1, 3, height, width)).astype(np.float32)}


CASES: Final = {
    "encoder": [words(n, length) for length in LENGTHS for n in (1, 3)],
    "net": [picture(*side) for side in SIDES],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("open")
    for name, model in models().items():
        export(model, folder / name)
    return folder


@pytest.fixture(scope="module")
def chromium(browser: Any, root: Path) -> Iterator[Page]:
    with open_page(browser, root) as page:
        yield page


@pytest.fixture(scope="module")
def expected() -> dict[str, list[dict[str, np.ndarray]]]:
    """The outputs of Programs that are compiled for each size alone."""
    found: dict[str, list[dict[str, np.ndarray]]] = {}
    for name, model in models().items():
        graph = model.graph()
        for inputs in CASES[name]:
            given = [inputs[x.name] for x in graph.inputs]
            sizes = {
                str(d): n
                for x, a in zip(graph.inputs, given, strict=True)
                for d, n in zip(x.shape, a.shape, strict=True)
            }
            alone = compile_graph(specialise(graph, {k: n for k, n in sizes.items() if k in graph.symbols}), ARRAYS)
            found.setdefault(name, []).append({"y": Program(alone, open_device("numpy")).run(given)[0]})
    return found


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", CASES)
def test_one_bundle_serves_all_sizes(
    request: pytest.FixtureRequest, root: Path, expected: dict[str, Any], name: str, where: str
) -> None:
    in_node = where in ("node", "threads")
    options = {"device": "wasm" if in_node else where, "threads": 2 if where == "threads" else 1}
    page = None if in_node else request.getfixturevalue("chromium")
    run = node if page is None else page.run
    url = (root / name).as_uri() if page is None else f"/bundles/{name}"
    if page is not None:
        page.asked.clear()
    beyond = packed(words(1, 513)) if name == "encoder" else None
    done = run(RUN, url=url, options=options, cases=[packed(c) for c in CASES[name]], beyond=beyond)
    for found, wanted in zip(done["outputs"], expected[name], strict=True):
        assert_close(found, wanted)
    assert done["after"] == {"gpu": 0, "wasm": 0, "js": 0}
    if page is not None:
        fetched = [path for path in page.asked if path.startswith("/bundles/")]
        assert sorted(set(fetched)) == sorted(fetched), "weights and kernels are fetched once"
    if name == "encoder":
        assert done["beyond"]["code"] == "input"
        assert done["beyond"]["message"].startswith("L must be at most 512, its bound")
        assert max(done["memory"]) < 1.02 * min(done["memory"]), "memory for the bound is taken once"


@pytest.mark.parametrize("where", ["wasm", "webgpu"])
def test_memory_is_that_of_the_largest_run(chromium: Page, where: str) -> None:
    """Runs share their buffers, and go on after one that was too large for the device."""
    script = """
        const model = await load(given.url, given.options);
        const memory = [];
        for (const inputs of given.cases) {
          await model.run(unpack(inputs));
          memory.push(model.memory.gpu + model.memory.wasm);
        }
        const data = new Float32Array(3 * 2 ** 20);
        const many = await failure(() => model.run({ x: { data, shape: [2 ** 20, 3, 1, 1] } }));
        const { y } = await model.run(unpack(given.cases[0]));
        await model.dispose();
        return { memory, many, again: pack({ y }) };
    """
    sides = ((320, 320), (160, 160), (224, 160), (160, 224), (320, 320), (96, 96))
    done = chromium.run(
        script, url="/bundles/net", options={"device": where, "threads": 1}, cases=[packed(picture(*s)) for s in sides]
    )
    assert max(done["memory"]) < 1.02 * done["memory"][0]
    assert done["many"]["code"] != "none"
