"""Valid ONNX files with absurd contents: refused with a SingeError that names the model and the node, in little time and
memory, or imported as a Graph without computing anything."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from singe.dtypes import strings
from singe.errors import ImportFailure, InputError, UnsupportedOp
from singe.onnx import importer
from singe.onnx.importer import import_model
from singe.onnx.model import OnnxFunction, OnnxGraph, OnnxModel, OnnxNode, OnnxRef, OnnxType, OnnxValue
from singe.onnx.source import OnnxSource

SECONDS, BYTES = 5.0, 64 << 20
HUGE = 10**9
IMAGE = (1, 4, 8, 8)


@pytest.fixture(autouse=True)
def within_bounds() -> Iterator[None]:
    """Check that an import takes little time and memory, whether it succeeds or not."""
    tracemalloc.start()
    start = time.process_time()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - start < SECONDS
    assert peak < BYTES


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def node(op: str, *inputs: str, outputs: tuple[str, ...] = ("y",), domain: str = "", **attributes: Any) -> OnnxNode:
    return OnnxNode(op, domain, "", inputs, outputs, attributes)


def model(
    *nodes: OnnxNode,
    shape: tuple[Any, ...] = IMAGE,
    dtype: str = "float32",
    constants: Mapping[str, Any] | None = None,
    opset: int = 18,
    functions: tuple[OnnxFunction, ...] = (),
    output: str = "y",
) -> OnnxModel:
    """A model of one input x."""
    x, y = OnnxValue("x", OnnxType("tensor", dtype, shape)), OnnxValue(output, None)
    return OnnxModel(
        "hostile.onnx", 8, {"": opset}, OnnxGraph("g", nodes, dict(constants or {}), (x,), (y,), ()), functions, {}
    )


@dataclass(frozen=True)
class Absurd:
    """One node over x that must be refused."""

    op: str
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)  # inputs after x, in order; None is one left out
    opset: int = 18
    shape: tuple[Any, ...] = IMAGE

    def __str__(self) -> str:
        return f"{self.op}-{'-'.join((*self.attributes, *self.constants))}"

    def model(self) -> OnnxModel:
        inputs = (name if value is not None else "" for name, value in self.constants.items())
        constants = {name: value for name, value in self.constants.items() if value is not None}
        domain, _, op = self.op.rpartition(".")
        made = node(op, "x", *inputs, domain=domain, **self.attributes)
        return model(made, shape=self.shape, constants=constants, opset=self.opset)


KERNEL = {"w": np.zeros((4, 4, 3, 3), np.float32)}
ABSURD = [
    Absurd("Conv", {"strides": (0, 0)}, KERNEL),
    Absurd("Conv", {"strides": (1,)}, KERNEL),
    Absurd("Conv", {"dilations": (-1, 1)}, KERNEL),
    Absurd("Conv", {"dilations": (2**40, 1)}, KERNEL),
    Absurd("Conv", {"pads": (HUGE,) * 4}, KERNEL),
    Absurd("Conv", {"pads": (-3, 0, 0, 0)}, KERNEL),
    Absurd("Conv", {"group": 0}, KERNEL),
    Absurd("Conv", {"group": -4}, KERNEL),
    Absurd("Conv", {"group": 3}, KERNEL),
    Absurd("Conv", {"kernel_shape": (5, 5)}, KERNEL),
    Absurd("Conv", {"auto_pad": "SAME"}, KERNEL),
    Absurd("Conv", {"auto_pad": 7}, KERNEL),
    Absurd("Conv", {}, {"w": np.zeros((4, 4), np.float32)}),
    Absurd("Conv", {}, {"w": np.zeros((4, 4, 0, 3), np.float32)}),
    Absurd("Conv", {}, {"w": np.zeros((4, 4, 3, 3), np.float16)}),
    Absurd("Conv", {}, {"w": np.zeros((4, 4, 3, 3), np.float64)}),
    Absurd("Conv"),
    Absurd("ConvTranspose", {"strides": (HUGE, HUGE)}, KERNEL),
    Absurd("ConvTranspose", {"output_shape": (-1, 8)}, KERNEL),
    Absurd("ConvTranspose", {"output_shape": (HUGE, HUGE)}, KERNEL),
    Absurd("ConvTranspose", {"output_padding": (-1, 0)}, KERNEL),
    Absurd("ConvTranspose", {"pads": (100,) * 4}, KERNEL),
    Absurd("MaxPool"),
    Absurd("MaxPool", {"kernel_shape": (-2, 2)}),
    Absurd("MaxPool", {"kernel_shape": (0, 2)}),
    Absurd("MaxPool", {"kernel_shape": (HUGE, HUGE)}),
    Absurd("MaxPool", {"kernel_shape": (2, 2), "strides": (0, 1)}),
    Absurd("MaxPool", {"kernel_shape": (2.0, 2.0)}),
    Absurd("MaxPool", {"kernel_shape": (2, 2), "pads": (1,)}),
    Absurd("MaxPool", {"kernel_shape": (2, 2), "pads": (2**31, 2**31, 0, 0)}),
    Absurd("AveragePool", {"kernel_shape": (9, 9)}),
    Absurd("AveragePool", {"kernel_shape": 2}),
    Absurd("Softmax", {"axis": 4}),
    Absurd("Softmax", {"axis": -(2**63)}),
    Absurd("Softmax", {"axis": 1.5}),
    Absurd("Transpose", {"perm": (0, 0, 1, 2)}),
    Absurd("Transpose", {"perm": (3, 2, 1, 99)}),
    Absurd("Transpose", {"perm": "0123"}),
    Absurd("Concat", {"axis": 9}),
    Absurd("Flatten", {"axis": 77}),
    Absurd("Gather", {"axis": 5}, {"i": ints(0)}),
    Absurd("Gather", {"axis": 1}, {"i": ints(4)}),
    Absurd("Gather", {"axis": 1}, {"i": np.array([0.5], np.float32)}),
    Absurd("ReduceSum", {}, {"axes": ints(4)}),
    Absurd("ReduceSum", {}, {"axes": ints(1, -3)}),
    Absurd("ReduceSum", {"axes": (0.5,)}, {}, 11),
    Absurd("Unsqueeze", {}, {"axes": ints(9)}),
    Absurd("Squeeze", {}, {"axes": ints(1)}),
    Absurd("Expand", {}, {"shape": ints(HUGE, HUGE, 1, 1, 1, 1)}),
    Absurd("Expand", {}, {"shape": ints(-1, 1, 1, 1)}),
    Absurd("Expand", {}, {"shape": ints(3, 3, 3, 3)}),
    Absurd("Expand", {}, {"shape": np.array([[1]])}),
    Absurd("Expand", {}, {"shape": np.array([1.0], np.float32)}),
    Absurd("Tile", {}, {"repeats": ints(HUGE, HUGE, 1, 1)}),
    Absurd("Tile", {}, {"repeats": ints(-1, 1, 1, 1)}),
    Absurd("Reshape", {}, {"shape": ints(-1, -1)}),
    Absurd("Reshape", {}, {"shape": ints(-5)}),
    Absurd("Reshape", {}, {"shape": ints(7, -1)}),
    Absurd("Reshape", {}, {"shape": ints(1, 1, 1, 1, 0)}),
    Absurd("Reshape", {"allowzero": 1}, {"shape": ints(0, -1)}),
    Absurd("Slice", {}, {"starts": ints(0), "ends": ints(1), "axes": ints(0), "steps": ints(0)}),
    Absurd("Slice", {}, {"starts": ints(0, 0), "ends": ints(1)}),
    Absurd("Slice", {}, {"starts": ints(0, 0), "ends": ints(1, 1), "axes": ints(1, -3)}),
    Absurd("Split", {}, {"split": ints(-1, 5)}),
    Absurd("Split", {"num_outputs": 0}),
    Absurd("Split", {"num_outputs": HUGE}),
    Absurd("Pad", {}, {"pads": ints(*(HUGE,) * 8)}),
    Absurd("Pad", {}, {"pads": ints(0, 0, -9, 0, 0, 0, 0, 0)}),
    Absurd("Pad", {"mode": "reflect"}, {"pads": ints(0, 0, 9, 0, 0, 0, 9, 0)}),
    Absurd("Pad", {"mode": "mirror"}, {"pads": ints(1, 1, 1, 1, 1, 1, 1, 1)}),
    Absurd("Pad", {}, {"pads": ints(1)}),
    Absurd("Resize", {}, {"roi": None, "scales": np.full(4, 1e9, np.float32)}),
    Absurd("Resize", {}, {"roi": None, "scales": np.array([1, 1, 0, 1], np.float32)}),
    Absurd("Resize", {}, {"roi": None, "scales": np.array([1, 1, np.nan, 1], np.float32)}),
    Absurd("Resize", {}, {"roi": None, "scales": np.array([1, 1, np.inf, 1], np.float32)}),
    Absurd("Resize", {}, {"roi": None, "scales": np.array([1, 1, -2, 1], np.float32)}),
    Absurd("Resize", {}, {"roi": None, "scales": None, "sizes": ints(1, 4, HUGE, 8)}),
    Absurd("Resize", {"mode": "cubic", "antialias": 1}, {"roi": None, "scales": None, "sizes": ints(1, 4, 2**40, 8)}),
    Absurd("Resize", {"mode": "sinc"}, {"roi": None, "scales": None, "sizes": ints(1, 4, 16, 16)}),
    Absurd("Resize", {"axes": (2, 2)}, {"roi": None, "scales": None, "sizes": ints(16, 16)}),
    Absurd("Resize", {"coordinate_transformation_mode": "tf_crop_and_resize"}, {"roi": None, "scales": None, "sizes": ints(1, 4, 16, 16)}),
    Absurd("Resize"),
    Absurd("Upsample", {"scales": (1.0, 1.0, 1e30, 1.0)}, {}, 7),
    Absurd("Cast", {"to": 99}),
    Absurd("Cast", {"to": 0}),
    Absurd("Cast", {"to": "float"}),
    Absurd("Cast", {"to": 24, "round_mode": "sideways"}, {}, 25),
    Absurd("QuantizeLinear", {"block_size": -2}, {"scale": np.ones((1, 2, 8, 8), np.float32)}, 21),
    Absurd("QuantizeLinear", {"axis": 9}, {"scale": np.ones(4, np.float32)}),
    Absurd("QuantizeLinear", {}, {"scale": np.ones(5, np.float32)}),
    Absurd("QuantizeLinear", {"block_size": 3}, {"scale": np.ones((1, 1, 8, 8), np.float32)}, 21),
    Absurd("DequantizeLinear", {"block_size": HUGE}, {"scale": np.ones((1, 2, 8, 8), np.float32)}, 21),
    Absurd("LRN", {"size": 0}),
    Absurd("LRN", {"size": 2**40}),
    Absurd("LeakyRelu", {"alpha": "steep"}),
    Absurd("LeakyRelu", {"alpha": OnnxRef("slope")}),
    Absurd("LeakyRelu", {"alpha": (0.1,)}),
    Absurd("HardSigmoid", {"gamma": 1.0}),
    Absurd("Relu", {}, {"again": np.zeros((1,), np.float32)}),
    Absurd("Add"),
    Absurd("Gemm", {}, {"b": np.zeros((8, 8), np.float32)}),
    Absurd("MatMul", {}, {"b": np.array(1, np.float32)}),
    Absurd("MatMul", {}, {"b": np.zeros((7, 7), np.float32)}),
    Absurd("DepthToSpace", {"blocksize": 0}),
    Absurd("DepthToSpace", {"blocksize": 3}),
    Absurd("LpPool", {"kernel_shape": (2, 2), "p": 0}),
    Absurd("Relu", shape=(2**40,)),
    Absurd("Relu", shape=(2**20, 2**20)),
    Absurd("BatchNormalization"),
    Absurd("BatchNormalization", {}, dict.fromkeys("abcd", np.array(1, np.float32))),
    Absurd("BatchNormalization", {"training_mode": 1}, dict.fromkeys("abcd", np.ones(4, np.float32)), shape=(4,)),
    Absurd("Constant", {"value_float": "forward"}),
    Absurd("Constant", {"value_floats": 1.0}),
    Absurd("Constant", {"value_ints": (0.5,)}),
    Absurd("Constant", {"value_string": 7}),
    Absurd("Constant", {"value_strings": "text"}),
    Absurd("Gather", {}, {"i": strings(["0"])}),
    Absurd("GridSample", {}, {"grid": np.zeros((1, 2, 2, 2), np.float32)}, shape=()),
    Absurd("ReverseSequence", {}, {"lengths": np.array(1)}),
    Absurd("TensorScatter", {}, {"part": np.zeros(IMAGE, np.float32), "starts": np.array(1)}, 24),
    Absurd("SplitToSequence", {}, {"split": np.array(1)}, shape=(HUGE,)),
    Absurd("SplitToSequence", shape=(HUGE,)),
    Absurd("TfIdfVectorizer", {"pool_int64s": (1,), "ngram_indexes": (0,), "min_gram_length": 1, "max_gram_length": 1}, shape=(4,)),
    Absurd("ai.onnx.ml.LinearRegressor", {"coefficients": (1.0,)}, shape=()),
    Absurd("ai.onnx.ml.FeatureVectorizer", shape=()),
    Absurd("ai.onnx.preview.training.Adam"),
    Absurd("InstanceNormalization", {}, {"scale": np.ones(4, np.float32), "shift": np.ones(4, np.float32)}, shape=(4,)),
]  # fmt: skip


@pytest.mark.parametrize("absurd", ABSURD, ids=str)
def test_absurd_node_is_refused(absurd: Absurd) -> None:
    with pytest.raises(ImportFailure, match=r"^hostile\.onnx: (node 0 \(|a tensor of shape)"):
        import_model(absurd.model())


@pytest.mark.parametrize(
    ("attributes", "roi"),
    [
        ({"mode": "sinc"}, None),
        ({"nearest_mode": "up"}, None),
        ({"coordinate_transformation_mode": "centre"}, None),
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, np.zeros(7, np.float32)),
    ],
)
def test_absurd_resize_by_scales_that_a_run_computes(attributes: dict[str, Any], roi: np.ndarray | None) -> None:
    resize = node("Resize", "picture", "" if roi is None else "roi", "x", **attributes)
    constants = {"picture": np.zeros(IMAGE, np.float32), **({} if roi is None else {"roi": roi})}
    with pytest.raises(ImportFailure, match="expected"):
        import_model(model(resize, shape=(4,), constants=constants))


@pytest.mark.parametrize("opset", [8, 9])
def test_a_scan_over_a_scalar_is_refused(opset: int) -> None:
    value = OnnxValue("v", None)
    body = OnnxGraph("turn", (), {}, (value,), (value,), ())
    inputs = ("", "x") if opset == 8 else ("x",)
    scan = node("Scan", *inputs, body=body, num_scan_inputs=1)
    for shape in ((),) if opset == 9 else ((), (2,)):
        with pytest.raises(ImportFailure, match="hostile"):
            import_model(model(scan, shape=shape, opset=opset))


def test_a_change_of_scores_gives_one_tensor() -> None:
    body = OnnxGraph("none", (), {}, (OnnxValue("scores", None),), (), ())
    flex = node("FlexAttention", "x", "x", "x", domain="ai.onnx.preview", prob_mod=body)
    with pytest.raises(ImportFailure, match=r"prob_mod gives \[\]"):
        import_model(model(flex))


@pytest.mark.parametrize(
    ("op", "inputs", "complaint"),
    [
        ("SequenceInsert", ("s",), "input 1 is missing"),
        ("SequenceAt", ("s", "two"), "input [12] has 2 numbers"),
        ("SequenceErase", ("s", "two"), "input [12] has 2 numbers"),
    ],
)
def test_positions_and_elements_of_lists(op: str, inputs: tuple[str, ...], complaint: str) -> None:
    nodes = node("SequenceConstruct", "x", "x", "x", outputs=("s",)), node(op, *inputs)
    with pytest.raises(ImportFailure, match=complaint):
        import_model(model(*nodes, constants={"two": ints(0, 1)}))


def test_giant_constants_are_not_made() -> None:
    """As shapes they are too long; as data they are only a promise."""
    of_shape = node("ConstantOfShape", "n", outputs=("big",))
    graph = import_model(model(of_shape, node("Add", "x", "big"), shape=(1,), constants={"n": ints(HUGE)}))
    assert graph.outputs[0].shape == (HUGE,)
    value = np.zeros(1, np.int64)
    of_ints = OnnxNode("ConstantOfShape", "", "", ("n",), ("big",), {"value": value})
    with pytest.raises(ImportFailure, match="at most"):
        import_model(model(of_ints, node("Reshape", "x", "big"), constants={"n": ints(HUGE)}))
    with pytest.raises(ImportFailure, match="at most"):
        import_model(model(of_shape, node("Relu", "big"), constants={"n": ints(HUGE, HUGE)}))


def test_sizes_of_doubling_length_are_left_to_the_run() -> None:
    """As an expression, each is more than twice as long as the one before."""
    nodes = [node("Shape", "x", outputs=("s",)), node("Split", "s", outputs=("a", "b", "p0"), num_outputs=3)]
    for k in range(30):
        nodes += [
            node("Max", f"p{k}", "a", outputs=(f"q{k}",)),
            node("Min", f"q{k}", "b", outputs=(f"r{k}",)),
            node("Add", f"r{k}", f"p{k}", outputs=(f"p{k + 1}",)),
        ]
    made = import_model(
        model(
            *nodes, node("Expand", "zero", "p30"), shape=("A", "B", "C"), constants={"zero": np.zeros((), np.float32)}
        )
    )
    assert made.own_size_nodes


def test_squares_of_sums_of_sizes_are_left_to_the_run() -> None:
    """Multiplied out, the fifth square of these is a product of a million pairs of terms."""
    names = "abcdef"
    nodes = [node("Shape", "x", outputs=("s",)), node("Split", "s", outputs=tuple(names), num_outputs=6)]
    nodes += [node("Add", f"s{k}" if k else "a", names[k + 1], outputs=(f"s{k + 1}",)) for k in range(5)]
    last = "s5"
    for k in range(8):
        nodes.append(node("Mul", last, last, outputs=(f"p{k}",)))
        last = f"p{k}"
    made = import_model(
        model(*nodes, node("Expand", "zero", last), shape=tuple("ABCDEF"), constants={"zero": np.zeros((), np.float32)})
    )
    assert made.own_size_nodes


def test_only_parts_with_names_are_made() -> None:
    split = node("Split", "x", outputs=("y", "z"), num_outputs=10**6)
    assert import_model(model(split, shape=(10**6,))).outputs[0].shape == (1,)


def test_large_results_are_not_computed_to_find_their_shape() -> None:
    ones = node("ConstantOfShape", "n", outputs=("c",), value=np.ones(1, np.int64))
    nodes = ones, node("NonZero", "c", outputs=("places",)), node("Cast", "places", to=1)
    assert import_model(model(*nodes, constants={"n": ints(1 << 27)})).own_size_nodes


@pytest.mark.parametrize(
    ("start", "limit", "delta"), [(0, 2**62, 1), (0, 1, 0), (0.0, np.inf, 1.0), (np.nan, 1.0, 1.0), (0.0, 1.0, 1e-30)]
)
def test_endless_range(start: float, limit: float, delta: float) -> None:
    constants = {
        k: np.array(v, np.int64 if isinstance(v, int) else np.float32)
        for k, v in zip("abc", (start, limit, delta), strict=True)
    }
    with pytest.raises(ImportFailure, match="range"):
        import_model(model(node("Range", "a", "b", "c"), constants=constants))


def test_all_lacking_ops_are_listed_at_once() -> None:
    nodes = (node("Foo", "x", outputs=("a",)), node("Foo", "a", outputs=("b",)), node("Bar", "b", domain="com.example"))
    with pytest.raises(UnsupportedOp, match=r"hostile\.onnx.*Foo \(2\), com\.example\.Bar \(1\)") as caught:
        import_model(model(*nodes))
    assert caught.value.ops == ("Foo", "com.example.Bar")
    with pytest.raises(UnsupportedOp):
        OnnxSource(model(*nodes))


def test_what_no_output_needs_is_not_looked_at() -> None:
    graph = import_model(model(node("Foo", "x", outputs=("unused",)), node("Relu", "x")))
    assert graph.ops() == {"relu": 1}


def test_output_may_be_an_input_or_a_constant() -> None:
    assert import_model(model(output="x")).outputs[0].is_input
    assert import_model(model(output="c", constants={"c": ints(1)})).outputs[0].is_const


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ((node("Relu", "nowhere"),), "before any node makes it"),
        ((node("Relu", "y"),), "before any node makes it"),
        ((node("Relu", "b", outputs=("y",)), node("Relu", "y", outputs=("b",))), "before any node makes it"),
        ((node("Relu", "x", outputs=("x",)), node("Relu", "x")), "defined twice"),
        ((node("Relu", "x"), node("Neg", "x")), "defined twice"),
        ((node("Relu", "x", outputs=("a", "y")),), "1 outputs"),
        ((node("Relu"),), "0 inputs"),
        ((node("Relu", ""),), "1 inputs"),
        ((node("Constant"),), "must have one of"),
        ((node("Constant", value_float=1.0, value_int=1),), "must have one of"),
        ((node("Constant", value_string="text", value_int=1),), "must have one of"),
    ],
)
def test_broken_graphs(nodes: tuple[OnnxNode, ...], complaint: str) -> None:
    with pytest.raises(ImportFailure, match=complaint):
        import_model(model(*nodes))


def _function(name: str, *nodes: OnnxNode) -> OnnxFunction:
    return OnnxFunction("f", name, ("a",), ("y",), (), {}, nodes, {"": 18})


def test_functions_that_call_themselves() -> None:
    own = _function("Loop", node("Loop", "a", domain="f"))
    with pytest.raises(ImportFailure, match="deep"):
        import_model(model(node("Loop", "x", domain="f"), functions=(own,)))


def test_functions_that_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each calls the one below it ten times."""
    monkeypatch.setattr(importer, "MAX_NODES", 2000)

    def level(i: int) -> OnnxFunction:
        names = ["a", *(f"t{k}" for k in range(9)), "y"]
        return _function(f"F{i}", *(node(f"F{i - 1}", a, outputs=(b,), domain="f") for a, b in pairwise(names)))

    functions = (_function("F0", node("Relu", "a")), *(level(i) for i in range(1, 30)))
    with pytest.raises(ImportFailure, match="more than 2000 nodes"):
        import_model(model(node("F29", "x", domain="f"), functions=functions))


def test_a_function_without_its_attribute() -> None:
    own = _function("Leaky", node("LeakyRelu", "a", alpha=OnnxRef("slope")))
    graph = import_model(model(node("Leaky", "x", domain="f"), functions=(own,)))
    assert graph.outputs[0].attrs == {}
    graph = import_model(model(node("Leaky", "x", domain="f", slope=0.5), functions=(own,)))
    assert graph.outputs[0].attrs == {"alpha": 0.5}


def test_inputs_that_cannot_be() -> None:
    with pytest.raises(ImportFailure, match="string"):
        import_model(model(node("Relu", "x"), dtype="string"))
    unknown = OnnxModel(
        "hostile.onnx",
        8,
        {"": 18},
        OnnxGraph("g", (), {}, (OnnxValue("x", OnnxType("tensor", "float32")),), (), ()),
        (),
        {},
    )
    with pytest.raises(ImportFailure, match="no known rank"):
        import_model(unknown)
    sequence = OnnxModel(
        "hostile.onnx", 8, {"": 18}, OnnxGraph("g", (), {}, (OnnxValue("x", OnnxType("sequence")),), (), ()), (), {}
    )
    with pytest.raises(ImportFailure, match="sequence"):
        import_model(sequence)
    for options in (
        {"sizes": {"M": 1}},
        {"input_shapes": {"z": (1,)}},
        {"input_shapes": {"x": (1, 4, 8)}},
        {"input_shapes": {"x": (1, 4, 8, -8)}},
    ):
        with pytest.raises(InputError):
            import_model(model(node("Relu", "x")), **options)  # pyright: ignore[reportArgumentType]
