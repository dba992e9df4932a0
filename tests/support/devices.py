"""Ways to run a Graph in tests: node by node on whole arrays, as Kernels under the slow interpreter, and compiled.

All take the graph before rewriting, with its symbolic sizes, and NumPy arrays for its inputs in order. Below them: marks
for tests that run on some devices only, or on some of them, or with some of their parameters, only in `make test`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from singe.compiler.fuse._assemble import Maker
from singe.compiler.fuse._growth import Growth
from singe.graph import Graph, Node, evaluate_node, postorder, specialise
from singe.ir import affine, scalar
from singe.ir.interpreter import interpret
from singe.ir.kernel import Kernel, Port, Reduce, Store, loop_vars
from singe.ir.scalar import Expr
from singe.model.model import Model
from singe.ops import Elementwise, Nest, Opaque, Running, Update, View
from singe.ops.movement.move import project
from singe.shapes import known

Arrays = Sequence[np.ndarray]


def sizes_of(graph: Graph, arrays: Arrays) -> dict[str, int]:
    """The graph's sizes, found from arrays for its inputs. Each size is by itself a dimension of some input."""
    pairs = [(d, n) for x, a in zip(graph.inputs, arrays, strict=True) for d, n in zip(x.shape, a.shape, strict=True)]
    return {str(d): n for d, n in pairs if not isinstance(d, int)}


def below(n: Node) -> Sequence[Node]:
    """The nodes from which a node is computed; a Composite is computed from its lowering."""
    return n.lowered or n.inputs


def walk(graph: Graph, arrays: Arrays, compute: Callable[[Node, list[np.ndarray]], np.ndarray]) -> list[np.ndarray]:
    values: dict[Node, np.ndarray] = dict(zip(graph.inputs, arrays, strict=True))
    for n in postorder(graph.outputs, below):
        if n not in values:
            given = [values[x] for x in below(n)]
            values[n] = given[0] if n.lowered else compute(n, given)
    return [values[x] for x in graph.outputs]


def constant(n: Node, sizes: Mapping[str, int]) -> np.ndarray:
    """A constant's elements, with sizes replaced by numbers."""
    assert n.value is not None
    if n.value.dtype != object:
        return n.value
    return np.array([known(v, sizes) for v in n.value.ravel()], n.dtype.numpy).reshape(n.value.shape)


def run_array(graph: Graph, arrays: Arrays) -> list[np.ndarray]:
    """Run each node over NumPy's arrays; before that, all sizes are replaced by numbers."""
    if sizes := sizes_of(graph, arrays):
        graph = specialise(graph, sizes)
    return walk(graph, arrays, lambda n, given: constant(n, {}) if n.is_const else evaluate_node(n, given))


def kernel_of(n: Node) -> Kernel:
    """The Kernel of one node, whose row must be primitive."""

    def read(k: int, place: Sequence[Expr]) -> Expr:
        x = n.inputs[k]
        return scalar.load(k, affine.flatten(place, x.shape), x.dtype)

    ports = (*(Port(x.dtype) for x in n.inputs), Port(n.dtype, written=True))
    coords = loop_vars("g", n.shape)
    folds: list[Reduce] = []
    inner = ()
    match n.row:
        case Elementwise() as row:
            value = row.value([read(k, project(coords, x.shape)) for k, x in enumerate(n.inputs)], n.dtype, n.attrs)
        case View() as row:
            value = row.value(coords, read, *n.inputs, **n.attrs)
        case Nest() as row:
            nest = row.nest(coords, read, *n.inputs, **n.attrs)
            inner = nest.inner
            for word, element in nest.folds:
                part = element(loop_vars("r", inner), [f.accumulator for f in folds])
                folds.append(Reduce(f"a{len(folds)}", word, part))
            value = nest.result([f.accumulator for f in folds])
        case _:
            raise AssertionError(f"{n.op} is no primitive")
    store = Store(len(n.inputs), affine.flatten(coords, n.shape), value)
    return Kernel(ports, n.shape, inner, (*folds, store), name=n.op)


def run_interpreted(graph: Graph, arrays: Arrays) -> list[np.ndarray]:
    """Run each node as a separate Kernel, in which sizes stay symbolic."""
    sizes = sizes_of(graph, arrays)

    def compute(n: Node, given: list[np.ndarray]) -> np.ndarray:
        if n.is_const:
            return constant(n, sizes)
        if isinstance(n.row, Opaque):  # it has no kernel: it runs on the host
            return evaluate_node(n, given)
        out = np.zeros([known(d, sizes) for d in n.shape], n.dtype.numpy)
        flat = out.reshape(-1)
        if isinstance(n.row, (Running, Update)):
            group = Maker(set(n.inputs), Growth(n)).group()
            flat[:] = given[0].reshape(-1) if group.base else flat
            at = dict(zip(n.inputs, given, strict=True))
            interpret(group.kernel, [*(np.ascontiguousarray(at[x]).reshape(-1) for x in group.inputs), flat], sizes)
            return out
        interpret(kernel_of(n), [*(np.ascontiguousarray(x).reshape(-1) for x in given), flat], sizes)
        return out

    return walk(graph, arrays, compute)


def run_model(device: str, graph: Graph, arrays: Arrays) -> list[np.ndarray]:
    """Run the whole pipeline: the graph is rewritten, fused, planned and printed for a device, and run there."""
    model = Model(graph, device)
    given = {x.name: a for x, a in zip(graph.inputs, arrays, strict=True)}
    runnable = model.program({name: a.shape for name, a in given.items()}, given)
    try:
        return runnable.run([given[p.name] for p in runnable.inputs])
    finally:
        runnable.dispose()


Run = Callable[[Graph, Arrays], list[np.ndarray]]
"""(graph, arrays) ↦ the graph's outputs."""

MORE: Sequence[str] = os.environ.get("SINGE_TEST_DEVICES", "").split()
"""Further devices for which tests loop, by name, as in SINGE_TEST_DEVICES="cuda:0": on machines that have them."""
DEVICES: dict[str, Run] = {
    "array": run_array,
    "interpret": run_interpreted,
    **{name: partial(run_model, name) for name in ("numpy", "wasm", "webgpu", *MORE)},
}


# --- what a test loops over, and what of it `make quick` takes --------------------------------------------------------


def slow(*values: Any) -> list[Any]:
    """Parameters of a test that `make quick` leaves out."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def runners(*names: Any) -> pytest.MarkDecorator:
    """A test's loop over these devices, instead of all: some may be `slow`."""
    return pytest.mark.parametrize("device_name", names, indirect=True)


def few(count: int, names: str | Sequence[str], cases: Iterable[Any], **more: Any) -> pytest.MarkDecorator:
    """`pytest.mark.parametrize`, of whose cases, which repeat a property, `make quick` takes this many, evenly spread."""
    cases = list(cases)
    quick = {k * len(cases) // count for k in range(count)}
    params = [
        pytest.param(*((case,) if isinstance(names, str) else case), marks=[] if k in quick else [pytest.mark.slow])
        for k, case in enumerate(cases)
    ]
    return pytest.mark.parametrize(names, params, **more)


EAGER = pytest.mark.parametrize(
    "on", ["numpy", *slow("fusion-numpy", "wasm", "fusion-wasm", "webgpu", "fusion-webgpu")], indirect=True
)
"""The loop of tests of functions of Tensors over the fixture `on`, of which `make quick` takes NumPy only: other tests take
the devices there."""

NUMPY = runners("numpy", *slow("wasm", "webgpu"))
"""The devices that compile, for tests of what is the same for all of them: `make quick` takes NumPy."""

ALL_BUT_SHADERS = runners("array", "interpret", "numpy", "wasm", *slow("webgpu"))
"""All devices, of which `make quick` leaves out the one whose driver takes long to compile each shader."""

COMPILED = runners("wasm", *slow("numpy", "webgpu"))
"""The devices that compile, for tests of kernels: NumPy has none."""

RUNNERS = runners("numpy", "wasm", *slow("webgpu", *MORE))
"""The devices that compile in one way; a driver without a GPU takes long to compile each shader."""
