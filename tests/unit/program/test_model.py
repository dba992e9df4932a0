"""Models: one Program serves all sizes unless the graph needs numbers, threads may share a Model, inputs are checked."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS

import singe as sg
from singe.compiler.compile import compile_graph
from singe.dtypes import float32, int64
from singe.errors import CompileError, InputError, ShapeError, SizeNeeded, ValueNeeded
from singe.graph import Builder, Graph
from singe.model.model import MAX_PROGRAMS, Model
from singe.model.program import Program as RunnableProgram
from singe.onnx.model import OnnxGraph, OnnxModel, OnnxNode, OnnxType, OnnxValue
from singe.onnx.source import OnnxSource
from singe.program.format import from_bytes, to_bytes
from singe.program.program import Host
from singe.runtime.eager import EagerDevice
from singe.shapes import deferring, size, symbols
from singe.tasks.applying import applied


def classifier() -> Graph:
    """softmax(x @ w + b) over a symbolic batch."""
    b, rng = Builder(), np.random.default_rng(0)
    x = b.input("x", (size("N"), 24), float32)
    w, shift = (b.const(rng.standard_normal(s).astype(np.float32)) for s in ((24, 10), (10,)))
    return Graph((x,), (b.softmax(b.add(b.dot(x, w), shift), axis=-1),), ("y",))


def blur() -> Graph:
    """Each element plus its two neighbours along an axis of open length."""
    b = Builder()
    x = b.input("x", (size("N"), size("L")), float32)
    padded = b.pad(x, b.const(0.0), before=(0, 1), after=(0, 1), mode="constant")
    parts = [b.slice(padded, starts=(0, i), steps=(1, 1), sizes=x.shape) for i in range(3)]
    return Graph((x,), (b.add(b.add(*parts[:2]), parts[2]),), ("y",))


def squeezed() -> OnnxSource:
    """A squeeze of open axes: which of them have length 1 is known only from numbers."""
    declared = OnnxValue("x", OnnxType("tensor", "float32", ("N", "L")))
    nodes = (OnnxNode("Squeeze", "", "", ("x",), ("y",), {}),)
    graph = OnnxGraph("g", nodes, {}, (declared,), (OnnxValue("y", None),), ())
    return OnnxSource(OnnxModel("squeezed.onnx", 8, {"": 18}, graph, (), {}))


@RUNNERS
def test_one_program_serves_every_batch_size(device_name: str) -> None:
    model, rng = Model(classifier(), device_name), np.random.default_rng(1)
    reference = Model(classifier(), "numpy")
    programs = set()
    for batch in (1, 2, 3, 7, 0):
        x = rng.standard_normal((batch, 24)).astype(np.float32)
        np.testing.assert_allclose(model(x), reference(x), rtol=1e-5, atol=1e-6)
        programs.add(model.program({"x": x.shape}))
    assert len(programs) == 1


@RUNNERS
def test_sizes_may_be_elements(device_name: str) -> None:
    """x + shape(x), the batch open: a device that cannot have it so gets a Program for each batch size."""
    b = Builder()
    x = b.input("x", (size("N"), 2), int64)
    model = Model(Graph((x,), (b.add(x, b.shape_of(x)), b.shape_of(x)), ("y", "shape")), device_name)
    for batch in (3, 4):
        found = model(np.ones((batch, 2), np.int64))
        np.testing.assert_array_equal(found["y"], [[batch + 1, 3]] * batch)
        np.testing.assert_array_equal(found["shape"], [batch, 2])


@RUNNERS
def test_one_program_serves_every_length(device_name: str) -> None:
    model = Model(blur(), device_name)
    for length in (4, 5, 1, 0):
        x = np.arange(2.0 * length, dtype=np.float32).reshape(2, length)
        wanted = x + np.pad(x, ((0, 0), (1, 0)))[:, :-1] + np.pad(x, ((0, 0), (0, 1)))[:, 1:]
        np.testing.assert_array_equal(model(x), wanted)
    assert model.program({"x": (2, 4)}) is model.program({"x": (9, 5)}) is model.program()
    assert not model.needed


def test_sizes_that_must_be_numbers_get_programs_of_their_own() -> None:
    model = Model(squeezed(), "wasm")
    assert model(np.ones((1, 3), np.float32)).shape == (3,)
    assert model(np.ones((2, 3), np.float32)).shape == (2, 3)
    assert model.program({"x": (2, 3)}) is not model.program({"x": (2, 4)})
    assert model.needed.sizes.keys() == {"N", "L"}
    assert "Squeeze" in model.needed.sizes["N"]
    assert not model.needed.inputs


def test_steps_that_cannot_be_made_for_all_sizes_are_made_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(graph: Graph, *args: Any) -> Any:
        if "N" in symbols(graph.inputs[0].shape):
            raise SizeNeeded("a dimension is too long an expression of N", frozenset({"N"}))
        return compile_graph(graph, *args)

    monkeypatch.setattr("singe.model.model.compiling.compile_graph", limited)
    model = Model(blur(), "numpy")
    for batch in (2, 3):
        assert model(np.ones((batch, 5), np.float32)).shape == (batch, 5)
    assert model.needed.sizes.keys() == {"N"}
    with pytest.raises(SizeNeeded, match="too long"):
        Model(blur(), "numpy").program()


def counted() -> OnnxSource:
    """Zeros of as many axes as `v` has elements that are not 0, as long as where these are; and x, which is left open."""
    declared = tuple(OnnxValue(name, OnnxType("tensor", "float32", (size,))) for name, size in (("x", "N"), ("v", "K")))
    nodes = (
        OnnxNode("NonZero", "", "", ("v",), ("places",), {}),
        OnnxNode("Reshape", "", "", ("places", "flat"), ("shape",), {}),
        OnnxNode("ConstantOfShape", "", "", ("shape",), ("zeros",), {}),
        OnnxNode("Neg", "", "", ("x",), ("negative",), {}),
    )
    outputs = (OnnxValue("zeros", None), OnnxValue("negative", None))
    graph = OnnxGraph("g", nodes, {"flat": np.array([-1])}, declared, outputs, ())
    return OnnxSource(OnnxModel("counted.onnx", 8, {"": 18}, graph, (), {}))


@RUNNERS
def test_what_must_be_known_is_known_before_a_run(device_name: str) -> None:
    """The values of one input decide how many axes there are; the other's size stays open."""
    model = Model(counted(), device_name)
    assert (*model.needed.sizes, *model.needed.inputs) == ("v",)
    assert "their number" in model.needed.inputs["v"]
    with pytest.raises(ValueNeeded, match="their number"):
        model.program()
    programs = set()
    for v, length in (([0, 1, 1], 2), ([0, 1, 1], 3), ([1, 0, 1, 1], 2)):
        x, given = np.arange(length, dtype=np.float32), np.array(v, np.float32)
        found = model(x, given)
        assert found["zeros"].shape == tuple(np.flatnonzero(given))
        np.testing.assert_array_equal(found["negative"], -x)
        programs.add(model.program({"x": x.shape, "v": given.shape}, {"v": given}))
    assert len(programs) == 2
    assert (*model.needed.sizes, *model.needed.inputs) == ("v",)


def met() -> Graph:
    """Two inputs whose lengths have different names but must be equal, unless one of them is 1."""
    b = Builder()
    x, y = (b.input(name, (size(length),), float32) for name, length in (("x", "L"), ("y", "M")))
    with deferring():
        return Graph((x, y), (b.add(x, y),), ("z",))


@RUNNERS
def test_what_a_program_takes_for_granted_is_checked(device_name: str) -> None:
    """Where a check does not hold, the model is compiled for these sizes alone, and may be refused then."""
    model = Model(met(), device_name)
    for count in (3, 4):
        np.testing.assert_array_equal(model(np.ones(count, np.float32), np.ones(count, np.float32)), [2] * count)
    np.testing.assert_array_equal(model(np.ones(3, np.float32), np.ones(1, np.float32)), [2] * 3)
    with pytest.raises(ShapeError, match=r"add: the shapes \(3,\), \(2,\) do not broadcast"):
        model(np.ones(3, np.float32), np.ones(2, np.float32))
    with pytest.raises(ShapeError, match="L must be M"):
        model.program().run([np.ones(3, np.float32), np.ones(2, np.float32)])


@RUNNERS
def test_a_traced_function_has_the_sizes_that_a_model_in_it_finds(device_name: str) -> None:
    b = Builder()
    x = b.input("x", (size("L"),), float32)
    graph = Graph((x,), (b.nonzero(x),), ("places",), b.size_nodes)

    def flat(x: sg.Tensor) -> sg.Tensor:
        return applied(graph, [x])["places"].reshape(-1) * 2

    model = Model.of(flat, {"x": ("N",)}, device_name)
    for given in ([0, 1, 1], [1, 0], [0]):
        found = model(np.array(given, np.float32))
        np.testing.assert_array_equal(found, 2 * np.flatnonzero(given))
    with pytest.raises(CompileError, match=r"sizes depend on data \(nonzero.0\), are called in one function"):
        Model.of(lambda x: flat(x) + flat(x * 2), {"x": ("N",)}, device_name)


@RUNNERS
def test_sizes_found_on_the_way_are_checked_there(device_name: str) -> None:
    b = Builder()
    x, y = (b.input(name, (size(length),), float32) for name, length in (("x", "L"), ("y", "M")))
    with deferring():
        places = b.add(b.nonzero(x), b.nonzero(y))
        graph = Graph((x, y), (places, b.add(x, y)), ("places", "sum"), b.size_nodes)
    model, given = Model(graph, device_name), np.array([0, 2, 1], np.float32)
    assert {str(dim) for dim, _ in model.program().data.checks} == {"L - M", "- L + M"}
    found = model(given, given[::-1].copy())
    np.testing.assert_array_equal(found["places"], [[1, 3]])
    np.testing.assert_array_equal(found["sum"], given + given[::-1])
    with pytest.raises(ShapeError, match=r"nonzero\.0 = 2, nonzero\.1 = 3"):
        model(given, given + 1)
    np.testing.assert_array_equal(model(given, given)["places"], [[2, 4]])


@RUNNERS
def test_a_program_outlives_its_place_among_the_latest(device_name: str) -> None:
    model, x = Model(squeezed(), device_name), np.ones((1, 3), np.float32)
    held = model.program({"x": x.shape})
    for length in range(4, 4 + 2 * MAX_PROGRAMS):
        model(np.ones((1, length), np.float32))
    assert model.program({"x": x.shape}) is not held
    np.testing.assert_array_equal(held(x), [1, 1, 1])


def test_a_model_is_compiled_with_its_own_options() -> None:
    """Those that `compile` is given replace them."""
    b = Builder()
    x, w = b.input("x", (4, 32), float32), b.const(np.ones((32, 32), np.float32))
    model = Model(Graph((x,), (b.dot(x, w),), ("y",)), "numpy", activations="int8", fail_on_host=True)
    assert sg.compile(model) is model.program()
    stops = sg.compile(model, activations="float32").data.stops
    assert [s.op for s in stops if isinstance(s, Host)] == ["dot"]
    assert stops != model.program().data.stops


@RUNNERS
def test_threads_share_a_model(device_name: str) -> None:
    model, reference = Model(classifier(), device_name), Model(classifier(), "numpy")
    inputs = [np.random.default_rng(k).standard_normal((k % 5 + 1, 24)).astype(np.float32) for k in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(model, inputs))
    for x, answer in zip(inputs, answers, strict=True):
        np.testing.assert_allclose(answer, reference(x), rtol=1e-5, atol=1e-6)


@RUNNERS
def test_a_device_does_one_thing_at_a_time(device_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a backend or an executable is told, it is told under the device's lock."""
    on = sg.device(device_name)
    assert isinstance(on, EagerDevice)
    locked: dict[str, bool] = {}

    def watch(what: Any, *names: str) -> None:
        for name in names:
            method = getattr(what, name)

            def called(*given: Any, name: str = name, method: Any = method) -> Any:
                locked[name] = locked.get(name, True) and on.lock._lock._is_owned()  # pyright: ignore
                return method(*given)

            monkeypatch.setattr(what, name, called)

    watch(on.backend, "upload", "download", "prepare", "synchronize", "describe")
    model = Model.of(lambda x, *, s: (x + s, {"s": s + x}), {"x": (4,)}, on, states={"s": ((4,), "float32")})
    program = RunnableProgram(model.program().data, on)
    watch(type(program.executable), "run", "new_states", "memory", "dispose")
    session, x = program.session(), np.ones(4, np.float32)
    session.read("s")
    session.write("s", x)
    np.testing.assert_array_equal(session(x), x + x)
    assert program.memory["states"]
    on.synchronize()
    on.describe()
    program.dispose()
    assert set(locked.values()) == {True}
    assert {"prepare", "synchronize", "describe", "new_states", "memory", "dispose"} <= locked.keys()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ((), InputError, "missing: 'x'"),
        ((np.zeros((1, 24), np.int32),), InputError, r"got int32, expected float32.*astype\('float32'\)"),
        ((np.zeros((1, 23), np.float32),), ShapeError, r"got shape \(1, 23\), expected \(N, 24\)"),
        (({"z": np.zeros(1)},), InputError, "unknown: 'z'"),
        (([[1, 2], [3]],), InputError, "input 'x': got lists of different lengths"),
        ((None,), InputError, "input 'x': got None, expected numbers of the type float32"),
        (("a",), InputError, "input 'x': got 'a', expected numbers of the type float32"),
        ((np.zeros((1, 24), np.float32),) * 2, InputError, "got 2 inputs, expected 1: x"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(given: tuple, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Model(classifier(), "numpy")(*given)


@RUNNERS
def test_what_a_run_takes_is_a_list_of_arrays(device_name: str) -> None:
    program = sg.compile(lambda a: a * 2, np.ones(3, np.float32), device=device_name)
    np.testing.assert_array_equal(program.run([np.ones(3, np.float32)])[0], [2, 2, 2])
    assert sg.compile(lambda a: a * 2, np.float32(3), device=device_name).run([np.float32(3)])[0] == 6
    refused = (
        (np.ones(3, np.float32), "one ndarray"),
        ([], r"\[\]"),
        ([[1, 2, 3]], r"\[list\]"),
        ([None], r"\[NoneType\]"),
        (5, "one int"),
        ({"x": np.ones(3, np.float32)}, "one dict"),
    )
    for given, said in refused:
        with pytest.raises(InputError, match=rf"run: got {said}, expected a list of 1 arrays, .*program\(x\)"):
            program.run(given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("given", [5, ["x"], {"y": (3,)}, "x"])
def test_a_program_is_asked_for_by_the_shapes_of_inputs_by_name(given: Any) -> None:
    model = Model.of(lambda x: x, {"x": ("N",)}, "numpy")
    with pytest.raises(
        InputError, match=r"program: got .*, expected the shape of each input by name, as in .*x: float32"
    ):
        model.program(given)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"input_shapes": ["x"]}, r"input_shapes: got \['x'\], expected a dict"),
        ({"dtypes": "int64"}, "dtypes: got 'int64', expected a dict"),
        ({"donate": 5}, "donate: got 5, expected a list of inputs, some of x"),
        ({"donate": [["x"]]}, "donate: got .*, expected a list of inputs"),
        ({"device": 5}, "device: got 5, expected a name, such as 'numpy' or 'auto', or a Device"),
        ({"device": None}, "device: got None, expected a name"),
    ],
)
def test_arguments_of_the_wrong_kinds_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Model.of(lambda x: x, **{"input_shapes": {"x": ("N",)}, **arguments})


@pytest.mark.parametrize(("kind", "most"), [("int32", 2**31 - 1), ("uint8", 255), ("int4", 7)])
def test_integers_beyond_the_type_of_an_input_are_refused(kind: str, most: int) -> None:
    model = Model.of(lambda x: x.reshape(2), {"x": (2,)}, "numpy", dtypes={"x": kind})
    assert sg.tensor(model([0, most])).tolist() == [0, most]
    for wrong in ([0, most + 1], [-(2**40), 0]):
        with pytest.raises(InputError, match=f"input 'x': -?[0-9]+ does not fit {kind}"):
            model(wrong)


def test_the_way_to_convert_an_input_works() -> None:
    for kind in ("bfloat16", "int4", "float8_e5m2", "float16", "int64"):
        model = Model.of(lambda x: x.reshape(2), {"x": (2,)}, "numpy", dtypes={"x": kind})
        x = np.ones(2, np.uint32)
        with pytest.raises(InputError, match="convert it with") as e:
            model(x)
        way = str(e.value).split("convert it with ")[1]
        given = eval(f"x{way}" if way.startswith(".") else way, {"sg": sg, "x": x})
        assert sg.tensor(model(given)).float().tolist() == [1, 1]


def resting(side: int) -> OnnxSource:
    """A chain of products with large weights, and a Squeeze that must know which lengths are 1."""
    rng = np.random.default_rng(0)
    weights = {f"w{k}": rng.standard_normal((side, side)).astype(np.float32) / side for k in range(3)}
    declared = (OnnxValue("x", OnnxType("tensor", "float32", ("N", "L", side))),)
    nodes = (
        *(OnnxNode("MatMul", "", "", (f"x{k}" if k else "x", f"w{k}"), (f"x{k + 1}",), {}) for k in range(3)),
        OnnxNode("Squeeze", "", "", ("x3",), ("y",), {}),
    )
    graph = OnnxGraph("g", nodes, weights, declared, (OnnxValue("y", None),), ())
    return OnnxSource(OnnxModel("resting.onnx", 8, {"": 18}, graph, (), {}))


def on_the_device(model: Model) -> int:
    """The bytes of weights that a device holds, counted by the device itself."""
    programs = list(model._programs)
    backend = model.device.backend  # pyright: ignore[reportAttributeAccessIssue]
    if model.device.name == "numpy":
        return sum({id(b): b.nbytes for p in programs for b in p.data.blocks.values()}.values())
    if model.device.name == "wasm":
        sizes = {at: p.data.blocks[start].size for p in programs for start, at in p.executable._weights.items()}
        assert backend._users.keys() >= sizes.keys()
        return sum(sizes.values())
    return sum(end - begin for _, begin, end in backend.uploads._held)


@RUNNERS
def test_programs_of_one_model_share_their_weights(device_name: str) -> None:
    """Each set of needed numbers adds less than a tenth of the weights; a Program that is saved has all that it reads.

    (On wasm, products with few rows use another tile, and so need separate panels.)
    """
    side = 256
    shapes = (1, 24, side), (2, 24, side), (1, 40, side)
    model, reference = Model(resting(side), device_name), Model(resting(side), "numpy")
    held = []
    for shape in shapes:
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(model(x), reference(x), rtol=1e-4, atol=1e-5)
        held.append(on_the_device(model))
    assert model.needed.sizes
    assert held[0] >= 3 * side * side * 4
    assert held[-1] < 1.1 * held[0]
    first, *others = (model.program({"x": shape}) for shape in shapes)
    assert all(p.memory["weights"] < 0.1 * first.memory["weights"] < p.memory["shared"] for p in others)
    x = np.ones((2, 24, side), np.float32)
    expected = reference(x)
    first.dispose()
    np.testing.assert_allclose(others[0](x), expected, rtol=1e-4, atol=1e-5)
    again = from_bytes(to_bytes(others[0].data))
    assert not again.shared
    assert again.weights.size < 1.1 * held[0]
    np.testing.assert_allclose(RunnableProgram(again, model.device)(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@RUNNERS
def test_shared_weights_are_freed_with_the_last_program(device_name: str) -> None:
    model = Model(resting(64), device_name)
    backend = model.device.backend  # pyright: ignore[reportAttributeAccessIssue]
    gc.collect()
    before = backend.describe().get("used", 0), len(backend.uploads._held) if device_name == "webgpu" else 0
    for rows in (1, 2):
        model(np.ones((rows, 3, 64), np.float32))
    kept = weakref.ref(model.program({"x": (1, 3, 64)}).data.weights)
    assert kept() is not None
    del model
    gc.collect()
    assert kept() is None
    after = backend.describe().get("used", 0), len(backend.uploads._held) if device_name == "webgpu" else 0
    assert after[1] == before[1]
    assert after[0] <= before[0] + (1 << 12)  # the words of the last run
