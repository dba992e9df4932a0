"""Random numbers: the same on every device for the same key, well distributed, and drawn anew in every run of a model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from devices import ALL_BUT_SHADERS, NUMPY, RUNNERS, runners, slow
from rows.references import random_numbers as reference

import singe as sg
from singe.errors import ImportFailure, ShapeError
from singe.graph import Builder, Graph
from singe.shapes import size

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto
KEY = np.array([7, 0xFFFFFFFF], np.uint32)
ROWS = ("random_bits", "random_unit", "random_normal")


def test_the_reference_gives_the_published_numbers() -> None:
    """Those of Random123's file of known answers."""
    assert reference.threefry((0, 0), (0, 0)) == (0x6B200159, 0x99BA4EFE)
    assert reference.threefry((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2) == (0x1CB996FC, 0xBB002BE7)
    assert reference.threefry((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3)) == (0xC4923A9C, 0x483DF7A0)


def drawn(run_graph: Any, key: np.ndarray, shape: Any) -> list[np.ndarray]:
    b = Builder()
    k = b.input("key", (2,), sg.uint32)
    return run_graph(Graph((k,), tuple(getattr(b, row)(k, shape=shape) for row in ROWS), ROWS), [key])


@pytest.mark.slow
@ALL_BUT_SHADERS
def test_devices_draw_what_the_reference_draws(run_graph: Any) -> None:
    for shape in ((), (5,), (2, 3, 4), (0, 3)):
        bits, unit, normal = drawn(run_graph, KEY, shape)
        np.testing.assert_array_equal(bits, reference.bits(KEY, shape))
        np.testing.assert_array_equal(unit, reference.unit(KEY, shape).astype(np.float32))
        np.testing.assert_allclose(normal, reference.normal(KEY, shape), atol=1e-5)


@runners("array", "wasm", *slow("interpret", "numpy", "webgpu"))
def test_numbers_are_well_distributed(run_graph: Any) -> None:
    bits, unit, normal = (y.ravel() for y in drawn(run_graph, KEY, (100, 1000)))
    assert len(np.unique(bits)) > 99_990
    each = np.unpackbits(bits.view(np.uint8)).reshape(-1, 32).mean(0)
    assert abs(each - 0.5).max() < 0.01
    assert 0 <= unit.min() < unit.max() < 1
    assert abs(np.histogram(unit, 20, (0, 1))[0] - 5000).max() < 350
    assert abs(np.corrcoef(unit[1:], unit[:-1])[0, 1]) < 0.015
    assert abs(normal.mean()) < 0.015
    assert abs(normal.std() - 1) < 0.01
    assert abs((np.abs(normal) < 1).mean() - math.erf(math.sqrt(0.5))) < 0.006
    other = drawn(run_graph, KEY + np.uint32(1), (100, 1000))[1].ravel()
    assert abs(np.corrcoef(unit, other)[0, 1]) < 0.015


def test_a_key_has_two_numbers() -> None:
    b = Builder()
    with pytest.raises(ShapeError, match=r"the key has the shape .*3.*, expected two numbers"):
        b.random_bits(b.input("k", (3,), sg.uint32), shape=(2,))
    assert b.random_normal(b.input("k", (2,), sg.uint32), shape=(size("N"), 2)).shape == (size("N"), 2)


def model(nodes: list[Any], inputs: list[Any] | None = None, outputs: str = "y", functions: Any = ()) -> bytes:
    made = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    graph = helper.make_graph(nodes, "g", inputs or [], made)
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10).SerializeToString()


def node(op: str, inputs: str = "", outputs: str = "y", **attrs: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])


@RUNNERS
def test_a_seed_draws_the_same_numbers_in_every_run_and_on_every_device(device_name: str) -> None:
    nodes = [
        node("RandomNormalLike", "x", "a", seed=4.0, mean=5.0, scale=2.0, dtype=TensorProto.FLOAT16),
        node("RandomUniform", "", "b", seed=4.0, low=-3.0, high=-1.0, shape=[40]),
        node("RandomUniform", "", "c", seed=5.0, shape=[40]),
    ]
    loaded, other = (sg.load(model(nodes, [X], "a b c"), device=d) for d in (device_name, "numpy"))
    assert not loaded.states
    x = np.zeros((50, 3), np.float32)
    first, second, theirs = loaded(x), loaded(x), other(x)
    for name in "abc":
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_allclose(first[name], theirs[name], atol=1e-2 if name == "a" else 1e-6)
    assert first["a"].dtype == np.float16
    assert abs(first["a"].astype(np.float64).mean() - 5) < 0.5
    assert -3 <= first["b"].min() < first["b"].max() < -1
    assert abs((first["b"] + 3) / 2 - first["c"]).max() > 0.1


@RUNNERS
def test_without_a_seed_every_run_and_every_node_draws_anew_and_a_seeded_session_repeats(device_name: str) -> None:
    nodes = [
        node("RandomNormalLike", "x", "a"), node("RandomUniformLike", "x", "b"), node("RandomNormal", "", "c", shape=[4]),
        node("RandomUniform", "", "d", shape=[4]), node("Bernoulli", "half", "e"),
        node("Multinomial", "row", "f", sample_size=20), node("Dropout", "half ratio on", "g"),
    ]  # fmt: skip
    constants = {"half": np.full((40,), 0.5, np.float32), "row": np.zeros((1, 9), np.float32), "on": np.array(True)}
    constants["ratio"] = np.array(0.5, np.float32)
    nodes[:0] = [node("Constant", "", k, value=onnx.numpy_helper.from_array(v)) for k, v in constants.items()]
    names = "abcdefg"
    loaded, other = (sg.load(model(nodes, [X], " ".join(names)), device=d) for d in (device_name, "numpy"))
    x = np.zeros((2, 3), np.float32)
    every = [v for _ in range(3) for v in loaded(x).values()]
    assert len({v.tobytes() for v in every}) == 3 * len(names)
    loaded.seed(5)
    wanted = [loaded(x), loaded(x)]
    for session in (loaded.session(), other.session()):
        session.seed(5)
        for found in wanted:
            got = session(x)
            for name in names:
                np.testing.assert_allclose(got[name], found[name], atol=1e-5)
    sg.manual_seed(5)
    np.testing.assert_allclose(other.session()(x)["a"], wanted[0]["a"], atol=1e-5)


def test_a_dropout_that_is_never_in_training_needs_no_key() -> None:
    off = node("Constant", "", "off", value=onnx.numpy_helper.from_array(np.array(False)))
    assert not sg.load(model([off, helper.make_node("Dropout", ["x", "", "off"], ["y"])], [X]), device="numpy").states
    given = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    loaded = sg.load(model([helper.make_node("Dropout", ["x", "", "on"], ["y"])], [X, given]), device="numpy")
    x = np.ones((20, 3), np.float32)
    np.testing.assert_array_equal(loaded(x=x, on=np.array(False)), x)
    assert not np.array_equal(loaded(x=x, on=np.array(True)), loaded(x=x, on=np.array(True)))


def looped(inner: list[Any], name: str, turns: str, shape: list[int] | None) -> Any:
    """A Loop of which the body gives `r`."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Identity", "c", "c2"), *inner], "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, [])],
        [value("c2", TensorProto.BOOL, []), value("r", TensorProto.FLOAT, shape)],
    )  # fmt: skip
    return helper.make_node("Loop", [turns, ""], [name], body=body)


@RUNNERS
def test_every_turn_of_every_loop_draws_other_numbers(device_name: str) -> None:
    drawn = node("RandomUniform", "", "r", shape=[2])
    inside = [
        looped([node("RandomUniform", "", "r", shape=[2])], "inner", "three", [2]),
        node("Reshape", "inner flat", "r"),
    ]
    flat = node("Constant", "", "flat", value=onnx.numpy_helper.from_array(np.array([-1])))
    three = node("Constant", "", "three", value=onnx.numpy_helper.from_array(np.array(3)))
    scanned = helper.make_graph(
        [node("RandomUniform", "", "r", shape=[2])], "body", [helper.make_tensor_value_info("e", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    nodes = [
        flat, three, looped([drawn], "a", "n", [2]), looped([drawn], "b", "n", [2]), looped(inside, "nested", "n", None),
        helper.make_node("Scan", ["x"], ["s"], body=scanned, num_scan_inputs=1),
    ]  # fmt: skip
    turns = helper.make_tensor_value_info("n", TensorProto.INT64, [])
    loaded = sg.load(model(nodes, [X, turns], "a b nested s"), device=device_name)
    found = [loaded(x=np.ones((5, 3), np.float32), n=np.array(3)) for _ in range(2)]
    numbers = [float(v) for y in found for array in y.values() for v in np.asarray(array).ravel()]
    assert len(numbers) == 2 * (6 + 6 + 18 + 10)
    assert len(set(numbers)) == len(numbers)


def test_branches_of_the_same_names_draw_apart() -> None:
    def branch(name: str) -> Any:
        inner = helper.make_graph(
            [node("RandomUniform", "", "in", shape=[3])], "g", [], [helper.make_empty_tensor_value_info("in")]
        )
        return helper.make_node("If", ["c"], [name], then_branch=inner, else_branch=inner)

    given = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    found = sg.load(model([branch("y"), branch("z")], [given], "y z"), device="numpy")(c=np.array(True))
    assert not np.array_equal(found["y"], found["z"])


@RUNNERS
def test_branches_and_functions_draw_anew(device_name: str) -> None:
    inner = helper.make_graph(
        [node("RandomUniform", "", "in", shape=[3])], "then", [], [helper.make_empty_tensor_value_info("in")]
    )
    other = helper.make_graph([node("Neg", "x", "out")], "else", [], [helper.make_empty_tensor_value_info("out")])
    call = helper.make_function(
        "local",
        "Noise",
        ["c", "x"],
        ["y"],
        [
            helper.make_node(
                "If",
                ["c"],
                ["y"],
                then_branch=inner,
                else_branch=helper.make_graph(
                    [node("RandomUniform", "", "out", shape=[3])],
                    "else",
                    [],
                    [helper.make_empty_tensor_value_info("out")],
                ),
            )
        ],
        [helper.make_opsetid("", 21)],
    )
    condition, x = (
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
    )
    branched = [helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=other)]
    called = [helper.make_node("Noise", ["c", "x"], ["y"], domain="local")]
    for nodes, functions in ((branched, ()), (called, (call,))):
        loaded = sg.load(model(nodes, [condition, x], functions=functions), device=device_name)
        drawn = [loaded(c=np.array(True), x=np.ones(3, np.float32)) for _ in range(3)]
        assert len({v.tobytes() for v in drawn}) == 3
        assert all(((v >= 0) & (v < 1)).all() for v in drawn)


@RUNNERS
def test_bernoulli_and_multinomial_draw_with_these_probabilities(device_name: str) -> None:
    nodes = [
        node("Bernoulli", "x", "coins", dtype=TensorProto.INT32),
        node("Multinomial", "logits", "classes", sample_size=4000, dtype=TensorProto.INT64),
    ]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [2, 4])
    chances = np.array([[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0]])
    with np.errstate(divide="ignore"):
        given = np.log(chances).astype(np.float32) + np.float32(3)
    loaded = sg.load(model(nodes, [X, logits], "coins classes"), device=device_name)
    found = loaded(x=np.tile(np.array([0, 0.25, 1], np.float32), (4000, 1)), logits=given)
    assert found["coins"].dtype == np.int32
    np.testing.assert_allclose(found["coins"].mean(0), [0, 0.25, 1], atol=0.03)
    counts = [np.bincount(row, minlength=4) / 4000 for row in found["classes"]]
    np.testing.assert_allclose(counts, chances, atol=0.03)
    with pytest.raises(ImportFailure, match="expected int32 or int64"):
        sg.load(model([node("Multinomial", "logits", "y", dtype=TensorProto.FLOAT)], [logits])).graph()


def test_calls_of_a_function_draw_different_numbers() -> None:
    noise = helper.make_function(
        "local", "Noise", ["x"], ["y"], [helper.make_node("RandomUniform", [], ["y"], shape=[3])],
        [helper.make_opsetid("", 21)],
    )  # fmt: skip
    twice = helper.make_function(
        "local", "Twice", ["x"], ["y", "z"], [helper.make_node("Noise", ["x"], [k], domain="local") for k in "yz"],
        [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)],
    )  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    calls = [helper.make_node("Twice", ["x"], list(names), domain="local") for names in ("ab", "cd")]
    calls.append(helper.make_node("Concat", list("abcd"), ["y"], axis=0))
    drawn = sg.load(model(calls, [x], functions=(noise, twice)), device="numpy")(x=np.ones(3, np.float32))
    assert len(set(np.asarray(drawn).tolist())) == 12


@NUMPY
@pytest.mark.parametrize("kind", [sg.float16, sg.bfloat16, sg.float32, sg.float64])
def test_uniform_numbers_stay_below_high(kind: Any, device_name: str) -> None:
    for low, high in ((0.0, 1.0), (1, 2), (-2, -1), (-1, 0), (0.0, 0.3), (1000, 1001)):
        y = sg.random.uniform(5, (100_000,), low, high, dtype=kind, device=device_name).cast(sg.float64).numpy()
        assert y.dtype == np.float64
        assert (y < high).all()
        assert len(np.unique(y)) > 0
        assert y.mean() < high


def test_seeds_keys_and_shapes() -> None:
    firsts = []
    for seed in (1, 1 + 2**32, np.int64(1)):
        sg.random.manual_seed(seed)
        firsts.append(sg.random.randn((2, 3)).numpy())
    np.testing.assert_array_equal(firsts[0], firsts[2])
    assert (firsts[0] != firsts[1]).all()
    assert firsts[0].shape == (2, 3)
    np.testing.assert_array_equal(sg.random.normal(np.int64(7), (4,)).numpy(), sg.random.normal(7, (4,)).numpy())
    assert sg.random.rand([2, 3]).shape == sg.random.rand(2, 3).shape == (2, 3)
