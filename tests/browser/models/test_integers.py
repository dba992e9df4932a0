"""Bundles that compute in 8-bit integers: singe.js gives NumPy's bits, in node and in Chromium, on any number of threads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import packed, unpacked
from pages import CORES, Page, node, open_page

from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph, compile_with_uses
from singe.compiler.options import Options
from singe.compiler.target import find_target
from singe.files.places import MANIFEST
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.model.program import Program
from singe.program.weight_codecs import decode
from singe.runtime.devices import device as open_device
from singe.shapes import size
from singe.tools.export.bundle import export
from singe.tools.export.stored.storage import encode, output_channels

ANSWER: Final = """
const model = await load(given.url, { device: "wasm", threads: given.threads });
const outputs = [];
for (const tensors of given.cases) outputs.push(pack(await model.run(unpack(tensors))));
const { threads } = model;
await model.dispose();
return { outputs, threads };
"""


def graph() -> Graph:
    """A convolution and a product that are computed in integers; the ops after them round the same everywhere."""
    b, rng = Builder(), np.random.default_rng(9)

    def const(*shape: int) -> Any:
        return b.const((rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))

    facts = {"strides": (1, 1), "dilations": (1, 1), "before": (1, 1), "after": (1, 1)}
    x = b.input("x", (size("N"), 5, 7, 6), b.const(0.0).dtype)
    y = b.relu(b.conv(x, const(32, 5, 3, 3), const(32), group=1, **facts))
    y = b.matmul(b.reshape(y, shape=(size("N"), 32 * 42)), const(32 * 42, 41))
    return Graph((x,), (b.relu(b.add(y, const(41))),), ("y",))


def whole_graph() -> Graph:
    """Products of whole numbers: bytes less 37 by weights of 8 bits."""
    b, rng = Builder(), np.random.default_rng(10)

    def weights(*shape: int) -> Any:
        return b.const(rng.integers(-128, 128, shape, np.int8))

    facts = {"strides": (2, 1), "dilations": (1, 1), "before": (1, 1), "after": (1, 1)}
    x = b.input("x", (size("N"), 5, 7, 30), b.const(0.0).dtype)
    rows = b.reshape(x, shape=(size("N"), 5 * 7 * 30))
    made = (
        b.dot_integers(x, weights(30, 33)),
        b.dot_integers(rows, weights(1050, 41)),
        b.conv_integers(x, weights(3, 3, 30, 32), **facts),
    )
    return Graph((x,), made, ("y", "row", "window"))


def whole_case(count: int) -> dict[str, np.ndarray]:
    x = np.random.default_rng(count).integers(0, 256, (count, 5, 7, 30))
    x[0] = np.clip(x[0], 60, 200)
    return {"x": (x - 37).astype(np.float32)}


def case(count: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(count).normal(size=(count, 5, 7, 6)).astype(np.float32)}


def wanted(count: int) -> np.ndarray:
    """NumPy's result, with the weights as they are stored."""
    channels = output_channels(*compile_with_uses(graph(), find_target("wasm"), Options("int8")))
    whole = compile_graph(graph(), ARRAYS, Options("int8"))
    weights = decode(encode(whole, "int8", channels)[0], whole.weights.size)
    (y,) = Program(replace(whole, weights=weights), open_device("numpy")).run(list(case(count).values()))
    return y


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("integers")
    export(Model(graph(), "numpy"), folder / "both", dtype="int8", activations="int8")
    export(Model(graph(), "numpy"), folder / "plain", ["wasm"], dtype="int8", activations="int8")
    export(Model(whole_graph(), "numpy"), folder / "whole-both", ["wasm"])
    export(Model(whole_graph(), "numpy"), folder / "whole-plain", ["wasm"])
    for name in ("plain", "whole-plain"):
        manifest = json.loads((folder / name / MANIFEST).read_bytes())
        for kernel in manifest["targets"]["wasm"]["program"]["kernels"]:
            kernel["variants"] = [v for v in kernel["variants"] if not v["requires"]]
        (folder / name / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    return folder


@pytest.fixture(scope="module")
def chromium(browser: Any, root: Path) -> Iterator[Page]:
    with open_page(browser, root) as page:
        yield page


COUNTS: Final = (1, 600, 3)


def assert_numpy(found: dict[str, Any], threads: int) -> None:
    assert found["threads"] == threads
    for count, output in zip(COUNTS, found["outputs"], strict=True):
        np.testing.assert_array_equal(unpacked(output)["y"], wanted(count))


@pytest.mark.parametrize("level", ["both", "plain"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_chromium_gives_the_bits_of_numpy(chromium: Page, level: str, threads: int) -> None:
    if threads > 1 and CORES < 2:
        pytest.skip("one core: there are no threads")
    cases = [packed(case(n)) for n in COUNTS]
    assert_numpy(chromium.run(ANSWER, url=f"/bundles/{level}", threads=threads, cases=cases), threads)


@pytest.mark.parametrize("level", ["both", "plain"])
def test_node_gives_the_bits_of_numpy(root: Path, level: str) -> None:
    cases = [packed(case(n)) for n in COUNTS]
    assert_numpy(node(ANSWER, url=(root / level).as_uri(), threads=1, cases=cases), 1)


@pytest.mark.parametrize("level", ["both", "plain"])
def test_products_of_whole_numbers_are_exact(root: Path, chromium: Page, level: str) -> None:
    """In Chromium and in node: one of them may add four products of bytes in one instruction, and the other one not."""
    model, counts = Model(whole_graph(), "numpy"), (1, 2, 7)
    given: dict[str, Any] = {"threads": 1, "cases": [packed(whole_case(n)) for n in counts]}
    for found in (
        chromium.run(ANSWER, url=f"/bundles/whole-{level}", **given),
        node(ANSWER, url=(root / f"whole-{level}").as_uri(), **given),
    ):
        for count, output in zip(counts, found["outputs"], strict=True):
            wanted = model(whole_case(count))
            for name, array in unpacked(output).items():
                np.testing.assert_array_equal(array, wanted[name])


def test_webgpu_computes_in_floats(root: Path) -> None:
    manifest = json.loads((root / "both" / MANIFEST).read_bytes())
    labels = {name: [k["label"] for k in t["program"]["kernels"]] for name, t in manifest["targets"].items()}
    assert any("conv_int8" in label for label in labels["wasm"])
    assert any("dot_int8" in label for label in labels["wasm"])
    assert not any("int8" in label for label in labels["webgpu"])
    assert manifest["facts"]["activations"] == "int8"
    (error,) = manifest["facts"]["errors"].values()
    assert 1e-4 < error < 0.05
