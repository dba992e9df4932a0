"""Shapes that depend on data: one Program serves all data, on every device, with onnxruntime's results."""

from __future__ import annotations

import numpy as np
import pytest
from networks.computed_shapes import ASKED, IMPOSSIBLE, MODELS, F, asking, best_of, model, node, onnx
from onnx_devices import DEVICES, need
from peer import session

from singe.errors import SingeError
from singe.model.files import load


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_one_program_serves_all_data(name: str, device: str) -> None:
    need(device)
    made, data = MODELS[name]()
    theirs = session(made)
    mine = load(made.SerializeToString(), DEVICES[device])
    program = mine.program()
    for given in [*data, data[0]]:
        wanted = dict(zip(mine.source.output_names, theirs.run(None, given), strict=True))
        assert mine.program({k: v.shape for k, v in given.items()}) is program
        found = mine(given)
        for key, expected in wanted.items():
            assert found[key].shape == expected.shape, (key, given)
            np.testing.assert_allclose(found[key], expected, rtol=1e-4, atol=1e-5, err_msg=key)


RESIZED = {
    "antialias": ({"mode": "linear", "antialias": 1}, 18),
    "the aspect ratio": ({"mode": "linear", "keep_aspect_ratio_policy": "not_larger"}, 18),
    "scales of version 10": ({"mode": "linear"}, 10),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("what", RESIZED)
def test_open_lengths_are_resized(what: str, device: str) -> None:
    """What is made of tables gets them in a run."""
    need(device)
    attributes, opset = RESIZED[what]
    image = {"x": (F, [1, 1, "H", "W"])}
    if opset == 10:
        made = model([node("Resize", ["x", "s"], ["y"], **attributes)], {**image, "s": (F, [4])}, ["y"], opset=10)
    elif "antialias" in attributes:
        scales = {"s": np.array([1, 1, 0.5, 0.75], np.float32)}
        made = model([node("Resize", ["x", "", "s"], ["y"], **attributes)], image, ["y"], scales)
    else:
        nodes = [node("Resize", ["x", "", "", "s"], ["y"], axes=[2, 3], **attributes)]
        made = model(nodes, image, ["y"], {"s": np.array([5, 6])})
    theirs = session(made)
    mine = load(made.SerializeToString(), DEVICES[device])
    program = mine.program()
    for height, width in ((6, 8), (9, 4)):
        given = {"x": np.random.default_rng(height).normal(size=(1, 1, height, width)).astype(np.float32)}
        if opset == 10:
            given["s"] = np.array([1, 1, 1.5, height / 8], np.float32)
        assert mine.program({k: v.shape for k, v in given.items()}) is program
        np.testing.assert_allclose(mine(given), theirs.run(None, given)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_whether_it_is_training_is_known_in_a_run(device: str) -> None:
    need(device)
    made = model(
        [node("Dropout", ["x", "ratio", "training"], ["y", "mask"], seed=3)],
        {"x": (F, ["N"]), "ratio": (F, []), "training": (onnx.TensorProto.BOOL, [])},
        ["y", "mask"],
    )
    mine = load(made.SerializeToString(), DEVICES[device])
    x = np.arange(1, 101, dtype=np.float32)
    kept = mine(x, 0.75, True)
    assert 5 < kept["mask"].sum() < 50
    np.testing.assert_allclose(kept["y"], np.where(kept["mask"], 4 * x, 0))
    for ratio, training in ((0.75, False), (0.0, True)):
        found = mine(x, ratio, training)
        assert found["mask"].all()
        np.testing.assert_array_equal(found["y"], x)
    assert mine.program({"x": (100,), "ratio": (), "training": ()}) is mine.program()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ASKED)
def test_what_cannot_be_is_refused_before_memory_is_taken(op: str, device: str) -> None:
    need(device)
    mine = load(asking(op), DEVICES[device])
    *_, value, shape = ASKED[op]
    for hostile in IMPOSSIBLE:
        assert mine(value).shape == shape
        with pytest.raises(SingeError, match=r"expected|elements|broadcast"):
            mine(hostile)
    assert mine(value).shape == shape


@pytest.mark.parametrize("device", DEVICES)
def test_a_count_beyond_the_axis_is_refused(device: str) -> None:
    need(device)
    made, (given, *_) = best_of()
    mine = load(made.SerializeToString(), DEVICES[device])
    for k in (-1, 10, 2**40):
        with pytest.raises(SingeError, match="expected numbers from 0 to 9"):
            mine({**given, "k": np.array([k])})


def test_ends_that_no_range_reaches_are_refused() -> None:
    made = model([node("Range", ["a", "b", "c"], ["y"])], dict.fromkeys("abc", (F, [])), ["y"])
    mine = load(made.SerializeToString(), "numpy")
    assert mine(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    assert mine(0, -1, 0.25).size == 0
    for step, end in ((0, 1), (np.nan, 1), (1e-30, 1), (1, np.inf)):
        with pytest.raises(SingeError, match=r"has no end|the size"):
            mine(0, end, step)
