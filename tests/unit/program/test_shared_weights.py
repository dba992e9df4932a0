"""A Program holds its weights once, whatever sizes it has steps of its own for; so do the bundles made of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from devices import RUNNERS, slow

from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.compiler.target import find_target
from singe.dtypes import float32, int64
from singe.graph import Builder, Graph, Node, specialise
from singe.model.model import Model
from singe.model.program import Program
from singe.program.program import ProgramData
from singe.runtime.devices import device as open_device
from singe.shapes import Dim, size
from singe.tools.export.bundle import draft
from singe.tools.export.stored import weights

TARGETS = pytest.mark.parametrize("target", ["wasm", "wgsl"])
ACTIVATIONS = pytest.mark.parametrize("activations", ["float32", "int8"])
SIZES = (0, 1, 2, 3, 4, 5, 17)
L = size("L")


def perceptron(rows: Dim = L, summed: bool = False) -> Graph:
    """Three products of (rows, 48), of 72, 41 and 24 columns; summed: of the sum of all rows, from the second on."""
    b, rng = Builder(), np.random.default_rng(0)
    x = b.input("x", (rows, 48), float32)

    def linear(y: Node, inputs: int, outputs: int) -> Node:
        w = b.const((rng.standard_normal((inputs, outputs)) / np.sqrt(inputs)).astype(np.float32))
        return b.add(b.dot(y, w), b.const(rng.standard_normal(outputs).astype(np.float32)))

    y = b.relu(linear(x, 48, 72))
    if summed:
        y = b.reduce_sum(y, axes=(0,))
    return Graph((x,), (linear(b.relu(linear(y, 72, 41)), 41, 24),), ("y",))


def compiled(graph: Graph, target: str, activations: str, sizes: Sequence[int] = ()) -> ProgramData:
    own = [({"L": n}, specialise(graph, {"L": n})) for n in sizes]
    return compile_graph(graph, find_target(target), Options(activations, specialised=own))


@pytest.mark.slow
@TARGETS
@ACTIVATIONS
@pytest.mark.parametrize("summed", [False, *slow(True)])
def test_steps_for_any_sizes_read_the_weights_of_the_open_ones(target: str, activations: str, summed: bool) -> None:
    graph = perceptron(summed=summed)
    opened = compiled(graph, target, activations)
    for sizes in ((1,), (3, 2), SIZES):
        np.testing.assert_array_equal(compiled(graph, target, activations, sizes).weights, opened.weights)


@TARGETS
@ACTIVATIONS
@pytest.mark.parametrize("rows", [1, 3, *slow(2)])
def test_a_program_for_few_rows_alone_packs_its_weights_for_them(target: str, activations: str, rows: int) -> None:
    """As if it had been written for these: sharing is for Programs that have open steps too."""
    graph = perceptron()
    alone = compiled(specialise(graph, {"L": rows}), target, activations)
    assert alone.modules == compiled(perceptron(rows), target, activations).modules
    shared = activations == "int8"  # these are packed in one way
    if target == "wasm":
        opened = {b.shape for b in compiled(graph, target, activations).buffers if len(b.shape) > 1}
        assert (
            opened.issuperset({b.shape for b in alone.buffers if b.place[0] == "weights" and len(b.shape) > 1})
            == shared
        )


@pytest.mark.slow
@RUNNERS
@ACTIVATIONS
def test_all_steps_give_the_same(device_name: str, activations: str) -> None:
    """On NumPy and WebAssembly to the bit: there a sum is one accumulator's, in order."""
    device, graph = open_device(device_name), perceptron()
    own = [({"L": n}, specialise(graph, {"L": n})) for n in SIZES]
    opened = Program(compile_graph(graph, device.target, Options(activations)), device)
    shared = Program(compile_graph(graph, device.target, Options(activations, specialised=own)), device)
    for n, (sizes, closed) in zip(SIZES, own, strict=True):
        alone = Program(compile_graph(closed, device.target, Options(activations)), device)
        x = np.random.default_rng(n).standard_normal((n, 48)).astype(np.float32)
        wanted = Program(compile_graph(closed, ARRAYS, Options(activations)), open_device("numpy")).run([x])[0]
        found = [program.run([x])[0] for program in (opened, shared, alone)]
        assert len(shared.data.at(sizes).groups) == len(alone.data.groups)
        for y in found:
            np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)
            if device_name == "wasm":
                np.testing.assert_array_equal(y, found[0])
    assert shared.memory["weights"] == opened.memory["weights"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "activations"), [("float32", "float32"), ("float16", "float32"), ("int8", "float32"), ("int8", "int8")]
)
def test_a_bundle_weighs_the_same_with_steps_for_some_sizes(dtype: str, activations: str) -> None:
    model = Model(perceptron(), "numpy")
    bundles = [draft(model, dtype=dtype, activations=activations).alone()]
    for n in SIZES:
        model.specialise(L=n)
    bundles.append(draft(model, dtype=dtype, activations=activations).alone())
    plain, shared = (
        {name: [w["sha256"] for w in target["weights"]] for name, target in bundle.manifest["targets"].items()}
        for bundle in bundles
    )
    assert plain == shared
    assert len(bundles[1].manifest["targets"]["wasm"]["program"]["specialised"]) == len(SIZES)


@pytest.mark.slow
@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_table_that_a_product_reads_turned_is_stored_once(
    dtype: str, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In what a page of one target fetches; and, where floats are not just copied, for all targets."""
    monkeypatch.setattr(weights, "COPIED", (1 << 25) * copied)
    b, rng = Builder(), np.random.default_rng(1)
    table = b.const(rng.standard_normal((531, 192)).astype(np.float32))
    inner = b.const(rng.standard_normal((192, 192)).astype(np.float32))
    tokens = b.input("tokens", (L,), int64)
    y = b.matmul(b.matmul(b.gather(table, tokens, axis=0), inner), b.transpose(table, perm=(1, 0)))
    bundle = draft(Model(Graph((tokens,), (y,), ("y",))), dtype=dtype, device="numpy").alone()
    each = 4 if dtype == "float32" else 2
    files = {name: len(data) for name, data in bundle.files.items() if name.endswith(".bin")}
    fetched = [{w["file"] for w in t["weights"]} for t in bundle.manifest["targets"].values()]
    assert [sum(map(files.__getitem__, names)) for names in fetched] == [each * (531 + 192) * 192] * 2
    assert sum(files.values()) == each * (531 + (2 if copied else 1) * 192) * 192
