"""Open dimensions of a file: their names, arithmetic with them before any run, and which must be numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.errors import ShapeError, SizeNeeded, ValueNeeded
from singe.graph import Graph
from singe.onnx.importer import import_model
from singe.onnx.model import OnnxGraph, OnnxModel, OnnxNode, OnnxType, OnnxValue
from singe.shapes import dim_max, dim_min, known, size

N, H = size("N"), size("H")


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def node(op: str, *inputs: str, outputs: tuple[str, ...] = ("y",), **attributes: Any) -> OnnxNode:
    return OnnxNode(op, "", "", inputs, outputs, attributes)


def graph(
    *nodes: OnnxNode,
    inputs: dict[str, tuple[Any, ...]],
    constants: dict[str, np.ndarray] | None = None,
    kind: str = "float32",
    **options: Any,
) -> Graph:
    declared = tuple(OnnxValue(name, OnnxType("tensor", kind, shape)) for name, shape in inputs.items())
    whole = OnnxGraph("g", nodes, constants or {}, declared, (OnnxValue("y", None),), ())
    return import_model(OnnxModel("open.onnx", 8, {"": 18}, whole, (), {}), **options)


def test_names() -> None:
    """A file's own names stay; nameless dimensions get a name each, since two dimensions "?" need not be equal."""
    x, y = graph(node("Relu", "x"), inputs={"x": (None, "unk__7", "?", "?", 3), "z": (None,)}).inputs
    assert x.shape == (N, size("unk__7"), size("x.2"), size("x.3"), 3)
    assert y.shape == (size("z.0"),)


def test_sizes_and_shapes_fix_dimensions() -> None:
    assert graph(node("Relu", "x"), inputs={"x": ("N", "H")}, sizes={"H": 4}).outputs[0].shape == (N, 4)
    assert graph(node("Relu", "x"), inputs={"x": ("N", None)}, input_shapes={"x": (2, "H")}).outputs[0].shape == (2, H)


def test_initialisers_among_the_inputs_are_none() -> None:
    made = graph(node("Reshape", "x", "s"), inputs={"x": (2, 3), "s": (1,)}, constants={"s": ints(6)})
    assert [x.name for x in made.inputs] == ["x"]


def test_shape_arithmetic_leaves_no_nodes() -> None:
    """Shape, Gather, Concat and Reshape, as exporters write a flattening."""
    made = graph(
        node("Shape", "x", outputs=("shape",)),
        node("Gather", "shape", "zero", outputs=("n",)),
        node("Unsqueeze", "n", "first", outputs=("row",)),
        node("Cast", "row", outputs=("narrow",), to=6),
        node("Cast", "narrow", outputs=("wide",), to=7),
        node("Concat", "wide", "open", outputs=("target",), axis=0),
        node("Reshape", "x", "target"),
        inputs={"x": ("N", 3, "H")},
        constants={"zero": np.array(0), "first": ints(0), "open": ints(-1)},
    )
    assert made.ops() == {"reshape": 1}
    assert made.outputs[0].shape == (N, 3 * H)


def test_lengths_of_what_exists_are_not_minus_one() -> None:
    """PyTorch's expand keeps an axis where the target is -1: it compares lengths with that, also those of windows."""
    made = graph(
        node("MaxPool", "x", outputs=("pooled",), kernel_shape=(5,), strides=(2,)),
        node("Shape", "pooled", outputs=("shape",)),
        node("Concat", "shape", "keep", outputs=("target",), axis=0),
        node("Equal", "target", "minus", outputs=("kept",)),
        node("Where", "kept", "ones", "target", outputs=("lengths",)),
        node("Expand", "x1", "lengths"),
        inputs={"x": ("N", 3, "H"), "x1": (1, 3, 1, 4)},
        constants={"keep": ints(-1), "minus": ints(-1, -1, -1, -1), "ones": ints(1, 1, 1, 1)},
    )
    assert made.ops() == {"expand": 1}
    assert made.outputs[0].shape == (N, 3, (H - 5) // 2 + 1, 4)


def test_what_a_branch_requires_holds_within_it() -> None:
    """The branch needs a length of at least 5; a comparison after the If is still that of any length."""

    def branch(*nodes: OnnxNode) -> OnnxGraph:
        return OnnxGraph("b", nodes, {}, (), (OnnxValue(nodes[-1].outputs[0], None),), ())

    pooled = node("MaxPool", "x", outputs=("pooled",), kernel_shape=(5,))
    then = branch(pooled, node("Shape", "pooled", outputs=("then",)))
    made = graph(
        node("Cast", "c", outputs=("holds",), to=9),
        node(
            "If", "holds", outputs=("a",), then_branch=then, else_branch=branch(node("Shape", "x", outputs=("else",)))
        ),
        node("Shape", "x", outputs=("shape",)),
        node("Gather", "shape", "two", outputs=("length",)),
        node("Sub", "length", "four", outputs=("rest",)),
        node("Equal", "rest", "minus", outputs=("short",)),
        node(
            "If",
            "short",
            then_branch=branch(node("Neg", "a", outputs=("u",))),
            else_branch=branch(node("Abs", "a", outputs=("v",))),
        ),
        inputs={"x": (1, 3, "H"), "c": ()},
        constants={"two": np.array(2), "four": np.array(4), "minus": np.array(-1)},
    )
    assert "equal" in made.ops()


def test_a_quotient_as_pytorch_rounds_it_down_leaves_no_nodes() -> None:
    """The quotient toward zero, less one where the signs differ and something is left."""
    made = graph(
        node("Shape", "x", outputs=("shape",)),
        node("Gather", "shape", "zero", outputs=("n",)),
        node("Div", "n", "by", outputs=("quotient",)),
        node("Less", "n", "zero", outputs=("below",)),
        node("Less", "by", "zero", outputs=("by_below",)),
        node("Xor", "below", "by_below", outputs=("differ",)),
        node("Mod", "n", "by", outputs=("left",)),
        node("Equal", "left", "zero", outputs=("even",)),
        node("Not", "even", outputs=("odd",)),
        node("And", "differ", "odd", outputs=("fix",)),
        node("Cast", "fix", outputs=("one",), to=7),
        node("Sub", "quotient", "one", outputs=("rounded",)),
        node("Unsqueeze", "rounded", "first", outputs=("target",)),
        node("Abs", "target", outputs=("size",)),
        node("Expand", "y0", "size"),
        inputs={"x": ("N",), "y0": (1,)},
        constants={"zero": np.array(0), "by": np.array(4), "first": ints(0)},
    )
    assert made.ops() == {"expand": 1}
    assert made.outputs[0].shape == (N // 4,)


def _strided(halved: int, op: str = "Slice") -> Graph:
    """Two convolutions with stride 2, or slices of the same lengths, and heads cut from what is left; its length is computed by quotients
    toward zero, of which the second is by `halved`."""
    given, attrs = (("w",), {"strides": (2,)}) if op == "Conv" else (("zero", "end", "last", "two"), {})
    return graph(
        node("Shape", "x", outputs=("n",), start=2),
        node("Add", "n", "less", outputs=("before",)),
        node("Div", "before", "two", outputs=("half",)),
        node("Add", "half", "less", outputs=("first",)),
        node("Div", "first", "halved", outputs=("quarter",)),
        node("Concat", "one", "quarter", "open", "two", outputs=("target",), axis=0),
        node(op, "x", *given, outputs=("once",), **attrs),
        node(op, "once", *given, outputs=("twice",), **attrs),
        node("Reshape", "twice", "target"),
        inputs={"x": (1, 4, "N")},
        constants={
            "one": ints(1), "two": ints(2), "less": ints(-1), "halved": ints(halved), "open": ints(-1),
            "zero": ints(0), "end": ints(-2), "last": ints(2), "w": np.ones((4, 4, 3), np.float32),
        },
    )  # fmt: skip


def test_a_length_that_a_file_computes_in_its_own_way_is_that_of_the_data() -> None:
    """As PyTorch's newer exporter writes what precedes a transformer for sounds. A run checks that both are one."""
    made = _strided(2)
    heads, length = made.outputs[0].shape[2], made.outputs[0].shape[1]
    assert heads == 2
    assert [known(length, {"N": n}) for n in (7, 10, 100)] == [1, 1, 24]
    assert {known(check, {"N": 100}) for check in made.checks} == {0}
    assert _strided(3).outputs[0].shape[2] != 2


def test_quotients_of_lengths_rely_on_the_windows_that_fit() -> None:
    """The length that convolutions leave is then that of the data, also where nothing reads them."""
    made = _strided(2, "Conv")
    assert made.outputs[0].shape[2] == 2
    assert [min(known(check, {"N": n}) for check in made.checks) >= 0 for n in (2, 3, 100)] == [False, True, True]
    unread = graph(
        node("Conv", "x", "w", outputs=("made",), strides=(64,)),
        node("Shape", "x", outputs=("n",), start=2),
        node("Sub", "n", "length", outputs=("over",)),
        node("Div", "over", "step", outputs=("count",)),
        node("Shape", "made", outputs=("shape",)),
        node("Concat", "shape", "count", outputs=("counts",), axis=0),
        node("Expand", "one", "counts"),
        inputs={"x": (1, 1, "N"), "one": (1,)},
        constants={"w": np.ones((2, 1, 127), np.float32), "length": ints(127), "step": ints(64)},
    )
    assert "conv" not in unread.ops()
    assert unread.outputs[0].shape == (1, 2, (N - 127) // 64 + 1, (N - 127) // 64)
    model = sg.Model(unread, "numpy")
    assert model(x=np.zeros((1, 1, 200), np.float32), one=np.ones(1, np.float32)).shape == (1, 2, 2, 1)
    with pytest.raises(ShapeError, match=r"the window \(127,\) is larger"):
        model(x=np.zeros((1, 1, 100), np.float32), one=np.ones(1, np.float32))


def test_padding_to_a_multiple_is_known_to_be_one() -> None:
    """(w − n mod w) mod w more rows can be cut into windows of w, and those be counted."""
    made = graph(
        node("Shape", "x", outputs=("shape",)),
        node("Mod", "shape", "w", outputs=("over",)),
        node("Sub", "w", "over", outputs=("under",)),
        node("Mod", "under", "w", outputs=("more",)),
        node("Concat", "none", "more", outputs=("pads",), axis=0),
        node("Pad", "x", "pads", outputs=("whole",)),
        node("Concat", "open", "w", outputs=("target",), axis=0),
        node("Reshape", "whole", "target", outputs=("windows",)),
        node("Reshape", "windows", "flat"),
        inputs={"x": ("N",)},
        constants={"w": ints(4), "none": ints(0), "open": ints(-1), "flat": ints(-1)},
    )
    assert made.ops() == {"pad": 1, "reshape": 2}
    assert made.outputs[0].shape == (4 * N - 4 * (3 * N // 4),)
    assert [known(made.outputs[0].shape[0], {"N": n}) for n in range(9)] == [0, 4, 4, 4, 4, 8, 8, 8, 8]


@pytest.mark.parametrize(
    ("start", "end", "step", "length"),
    [
        (0, 2**63 - 1, 1, N),
        (1, 10**9, 1, dim_max(N - 1, 0)),
        (0, -1, 1, dim_max(N - 1, 0)),
        (-1, 2**31 - 1, 1, dim_min(N, 1)),
        (-1, -(2**63), -1, N),
        (0, 2**31 - 1, 2, (N + 1) // 2),
    ],
)
def test_slices(start: int, end: int, step: int, length: Any) -> None:
    made = graph(
        node("Slice", "x", "start", "end", "axis", "step"),
        inputs={"x": ("N", 3)},
        constants={"start": ints(start), "end": ints(end), "axis": ints(0), "step": ints(step)},
    )
    assert made.outputs[0].shape == (length, 3)


def test_sizes_of_windows_and_scales() -> None:
    kernel = np.zeros((4, 3, 3, 3), np.float32)
    conv = graph(
        node("Conv", "x", "w", strides=(2, 1), pads=(1, 1, 1, 1)),
        inputs={"x": ("N", 3, "H", "W")},
        constants={"w": kernel},
    )
    assert conv.outputs[0].shape == (N, 4, (H - 1) // 2 + 1, size("W"))
    scales = np.array([1, 1, 2, 3], np.float32)
    resize = graph(node("Resize", "x", "", "s", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
                   inputs={"x": ("N", 3, "H", "W")}, constants={"s": scales})  # fmt: skip
    assert resize.outputs[0].shape == (N, 3, 2 * H, 3 * size("W"))


@pytest.mark.parametrize(
    ("made", "inputs"),
    [
        (node("Squeeze", "x"), {"x": (1, 3, "H")}),
        (node("Conv", "x", "w"), {"x": (1, 3, 9), "w": (4, 3, "H")}),
        (node("ConstantOfShape", "x"), {"x": ("H",)}),
    ],
    ids=lambda v: v.op_type if isinstance(v, OnnxNode) else "",
)
def test_what_needs_a_number_says_which(made: OnnxNode, inputs: dict[str, tuple[Any, ...]]) -> None:
    """How many axes there are, and the window of a convolution."""
    kind = "int64" if made.op_type == "ConstantOfShape" else "float32"
    with pytest.raises(SizeNeeded, match=r"^open\.onnx: node 0 .*H") as e:
        graph(made, inputs=inputs, kind=kind)
    assert e.value.sizes == {"H"}


def test_what_needs_values_says_whose() -> None:
    """How many elements of `v` are not 0 says how many axes the output has."""
    with pytest.raises(ValueNeeded, match=r"^open\.onnx: node 2 .*their number") as e:
        graph(
            node("NonZero", "v", outputs=("places",)),
            node("Reshape", "places", "flat", outputs=("shape",)),
            node("ConstantOfShape", "shape"),
            inputs={"x": ("N",), "v": ("K",)},
            constants={"flat": ints(-1)},
        )
    assert e.value.inputs == ("v",)
