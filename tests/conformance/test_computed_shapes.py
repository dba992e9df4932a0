"""Shapes that hang on data: one Program serves all of it, on every device, and gives what onnxruntime gives."""

from __future__ import annotations

import numpy as np
import pytest
from computed_shapes import ASKED, IMPOSSIBLE, MODELS, F, asking, best_of, model, node
from onnx_devices import DEVICES, need

from singe.errors import SingeError
from singe.model.model import load

ort = pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_one_program_serves_all_data(name: str, device: str) -> None:
    need(device)
    made, data = MODELS[name]()
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    mine = load(made.SerializeToString(), DEVICES[device])
    program = mine.program()
    for given in [*data, data[0]]:
        wanted = dict(zip(mine.source.output_names, session.run(None, given), strict=True))
        assert mine.program({k: v.shape for k, v in given.items()}) is program
        found = mine(given)
        for key, expected in wanted.items():
            assert found[key].shape == expected.shape, (key, given)
            np.testing.assert_allclose(found[key], expected, rtol=1e-4, atol=1e-5, err_msg=key)


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
