"""Devices of array libraries: NumPy is the reference, and where a library is absent the test is skipped with the reason."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import pytest
from devices import run_model
from rows.row_samples import KINDS, SAMPLED, graph_of, sampled, samples_of
from test_rows import assert_close, expected, seed_of

import singe as sg
from singe import nn
from singe.compiler.array_target import ArrayTarget
from singe.compiler.compile import compile_graph
from singe.dtypes import DTYPES, DType, float32
from singe.graph import Builder, Graph
from singe.ops import Row
from singe.runtime.devices import device as open_device

LIBRARIES: Final = ("torch:cpu", "jax", "cupy")
TYPES: Final = (
    "bool",
    "int4",
    "uint8",
    "uint16",
    "int32",
    "uint64",
    "float8_e4m3fn",
    "bfloat16",
    "float16",
    "float64",
    "complex64",
)


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> sg.Device:
    """Each library's device in turn."""
    try:
        return open_device(request.param)
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_comes_and_goes_and_becomes_another(library: sg.Device, kind: str) -> None:
    values = sg.tensor(np.arange(1, 7).reshape(2, 3)).cast(kind)
    here = values.to(library)
    assert here.device is library
    np.testing.assert_array_equal(here.numpy(), values.numpy())
    turned = here.reshape(3, 2)
    np.testing.assert_array_equal(turned.cast("float32").numpy(), values.cast("float32").reshape(3, 2).numpy())


@pytest.mark.slow
def test_what_a_library_lacks_is_numpys_and_the_report_says_so(library: sg.Device) -> None:
    x, most = sg.tensor(np.array([7, 2**64 - 1], np.uint64), device=library), 2**64 - 1
    assert (x // 7).numpy().tolist() == [1, most // 7]
    target = library.target
    assert isinstance(target, ArrayTarget)
    b = Builder()
    given = b.input("x", (2,), DTYPES["uint64"])
    hosted = compile_graph(Graph((given,), (b.mul(given, given),), ("y",)), target).facts["host"]
    lacks = DTYPES["uint64"] not in target.arrays.dtypes
    assert hosted == ({"mul": {f"{target.arrays.library} does not compute uint64": 1}} if lacks else {})


@pytest.mark.slow
def test_gradients_and_fusion_are_those_of_numpy(library: sg.Device) -> None:
    def slope(on: sg.Device) -> np.ndarray:
        x = sg.tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), device=on, requires_grad=True)
        return (x.softmax(1) * x.exp()).sum().backward()[x].numpy()

    want = slope(sg.Autodiff("numpy"))
    for on in (sg.Autodiff(library), sg.Autodiff(sg.Fusion(library))):
        np.testing.assert_allclose(slope(on), want, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_training_keeps_its_states_on_the_device(library: sg.Device) -> None:
    def losses(on: Any) -> list[float]:
        sg.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        step = sg.train.TrainStep(model, sg.optim.AdamW(1e-2), nn.CrossEntropyLoss(), device=on)
        rng = np.random.default_rng(2)
        x, y = rng.normal(size=(16, 4)).astype(np.float32), rng.integers(0, 3, 16)
        return [float(step(x, y)) for _ in range(5)]

    np.testing.assert_allclose(losses(library), losses("numpy"), rtol=1e-4)


@pytest.mark.slow
def test_a_result_shares_no_memory_with_what_is_overwritten(library: sg.Device) -> None:
    x = sg.tensor(np.zeros((2, 3), np.float32), device=library)
    view = x.reshape(3, 2)
    y = view + 1
    np.testing.assert_array_equal(x.numpy(), np.zeros((2, 3)))
    np.testing.assert_array_equal(view.numpy(), np.zeros((3, 2)))
    np.testing.assert_array_equal(y.numpy(), np.ones((3, 2)))


@pytest.mark.parametrize("extra", ["cupy", "jax", "torch"])
def test_an_absent_library_is_named_with_its_extra(extra: str) -> None:
    if find_spec(extra) is not None:
        pytest.skip(f"{extra} is here")
    with pytest.raises(sg.DeviceError, match=extra):
        open_device(extra)


@pytest.mark.slow
def test_a_device_that_a_library_lacks_is_refused(library: sg.Device) -> None:
    name = library.name.partition(":")[0]
    with pytest.raises(sg.DeviceError, match=f"no device '{name}:"):
        open_device(f"{name}:99x")


def every_row() -> list[Any]:
    """Each row in float32 or its last type; `make test` takes every twelfth, as JAX compiles for long."""
    cases = []
    for k, row in enumerate(SAMPLED):
        for kind in (kind for kind in KINDS if kind in row.dtypes):
            own = k % 12 == 0 and kind is (float32 if float32 in row.dtypes else row.dtypes[-1])
            cases.append(
                pytest.param(
                    row, kind, id=f"{row.name}-{kind}", marks=[pytest.mark.slow, *[pytest.mark.full] * (not own)]
                )
            )
    return cases


@pytest.mark.parametrize(("row", "kind"), every_row())
def test_rows_compute_what_their_references_say(library: sg.Device, row: Row, kind: DType) -> None:
    rng = seed_of(row, kind)
    samples = [s for s in samples_of(row) if not s.floats_only or kind.is_float]
    for sample in samples if library.name.startswith("torch") else samples[:1]:
        arrays = sampled(row, sample, rng, kind)
        graph = graph_of(row, sample, arrays)
        (got,) = run_model(library.name, graph, arrays)
        assert_close(got, expected(row, sample, arrays, graph.outputs[0].dtype), row, f"{row.name} {sample}")
