"""Nodes as exporters of PyTorch's models write them: every device gives onnxruntime's results, at several sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from networks.computed_shapes import F, model, node
from onnx_devices import DEVICES, need
from peer import session

import singe as sg
from singe.errors import SizeNeeded
from singe.model.model import Model
from singe.onnx import source
from singe.onnx.model import read_model
from singe.onnx.source import OnnxSource
from singe.shapes import Needed


def unshuffled() -> onnx.ModelProto:
    """A pixel_unshuffle by 2 at open sizes: short pictures have no pixel left."""
    shapes = {
        "third": np.array([3]),
        "high": np.array([0, 0, -1, 2, 0]),
        "wide": np.array([0, 0, 0, 0, -1, 2]),
        "flat": np.array([0, -1, 1, 1, 0, 0]),
        "axes": np.array([2, 3]),
        "weight": np.random.default_rng(0).standard_normal((16, 12, 3, 3)).astype(np.float32),
    }
    nodes = [
        node("Unsqueeze", ["x", "third"], ["rows"]),
        node("Reshape", ["rows", "high"], ["a"]),
        node("Reshape", ["a", "wide"], ["b"]),
        node("Transpose", ["b"], ["c"], perm=[0, 1, 3, 5, 2, 4]),
        node("Reshape", ["c", "flat"], ["d"]),
        node("Squeeze", ["d", "axes"], ["e"]),
        node("Conv", ["e", "weight"], ["f"], pads=[1] * 4),
        node("LeakyRelu", ["f"], ["y"]),
    ]
    return model(nodes, {"x": (F, ["N", 3, "H", "W"])}, ["y"], shapes)


def rooted() -> onnx.ModelProto:
    """The side of a grid of places, as the whole part of the root of their number."""
    constants = {
        "places": np.float32(49),
        "half": np.float32(0.5),
        "first": np.array([0]),
        "one": np.array([1]),
        "width": np.array([3]),
    }
    nodes = [
        node("Pow", ["places", "half"], ["root"]),
        node("Cast", ["root"], ["side"], to=onnx.TensorProto.INT64),
        node("Unsqueeze", ["side", "first"], ["s"]),
        node("Concat", ["one", "s", "s", "width"], ["shape"], axis=0),
        node("Reshape", ["x", "shape"], ["y"]),
    ]
    return model(nodes, {"x": (F, ["N", 49, 3])}, ["y"], constants)


def scaled() -> onnx.ModelProto:
    """Slices that end at the whole part of a scaled size, less 1, 2, 3 and 4."""
    constants = {"scale": np.float32(0.75), "at": np.array([2]), "zero": np.array([0]), "one": np.array([1])}
    nodes = [
        node("Shape", ["x"], ["all"]),
        node("Gather", ["all", "at"], ["height"]),
        node("Cast", ["height"], ["real"], to=F),
        node("Mul", ["real", "scale"], ["part"]),
        node("Floor", ["part"], ["whole"]),
        node("Cast", ["whole"], ["n0"], to=onnx.TensorProto.INT64),
    ]
    for k in range(4):
        nodes.append(node("Sub", [f"n{k}", "one"], [f"n{k + 1}"]))
        nodes.append(
            node("Slice", ["x" if k == 0 else f"x{k}", "zero", f"n{k + 1}", "at"], ["y" if k == 3 else f"x{k + 1}"])
        )
    return model(nodes, {"x": (F, [1, 1, "H", "W"])}, ["y"], constants)


CASES = {
    "pixel_unshuffle": (unshuffled, [(1, 3, 4, 6), (2, 3, 8, 2), (1, 3, 32, 16)]),
    "a root": (rooted, [(1, 49, 3)]),
    "a scaled size": (scaled, [(1, 1, 20, 3), (1, 1, 16, 2), (1, 1, 4, 2)]),
}


def check(made: onnx.ModelProto, mine: Model, shapes: Sequence[tuple[int, ...]]) -> None:
    theirs = session(made)
    rng = np.random.default_rng(0)
    for shape in shapes:
        x = rng.standard_normal(shape).astype(np.float32)
        (wanted,) = theirs.run(None, {"x": x})
        found = np.asarray(mine(x))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def case(name: str) -> tuple[onnx.ModelProto, Sequence[tuple[int, ...]]]:
    make, shapes = CASES[name]
    made = make()
    made.graph.output[0].type.tensor_type.elem_type = F
    return made, shapes


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_nodes_of_exporters(name: str, device: str) -> None:
    need(device)
    made, shapes = case(name)
    check(made, sg.load(made.SerializeToString(), DEVICES[device]), shapes)


def test_sizes_found_in_a_run_are_asked_for_by_those_of_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A detector's places and boxes depend on the whole parts of many scaled sizes, which are known where height and width
    are numbers."""

    def refused(*_: object, **__: object) -> object:
        raise SizeNeeded("too long", frozenset({"found.1"}))

    made, _ = case("a scaled size")
    whole = OnnxSource(read_model(made.SerializeToString()))
    monkeypatch.setattr(source, "import_model", refused)
    first, second = whole.graph({}, {}), whole.graph({"H": 8, "W": 2}, {})
    assert isinstance(first, Needed)
    assert first.sizes.keys() == {"found.1", "H", "W"}
    assert isinstance(second, Needed)
    assert second.sizes.keys() == {"found.1"}
