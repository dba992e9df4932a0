"""Norms in training equal PyTorch's over 20 batches, running statistics included, eager and as one Program with states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from norm_cases import CASES, STEPS, Case, batches, weights
from recorded import recorded

import singe as sg
import singe.random
from singe import nn

TOLERANCE = {"numpy": 1e-5, "wasm": 1e-5, "webgpu": 1e-4}
"""The error allowed, relative to the largest value."""


@pytest.fixture(params=TOLERANCE)
def device(request: pytest.FixtureRequest) -> sg.Device:
    try:
        return sg.device(request.param)
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")


def layer_of(case: Case) -> nn.Module:
    layer = getattr(nn, case.layer)(*case.arguments, **case.options)
    return layer.with_state(weights({name: t.shape for name, t in layer.named_parameters()}), strict=False).train()


def close(device: sg.Device, name: str, got: Any, key: str) -> None:
    want = recorded("norms")[f"{name}/{key}"]
    limit = TOLERANCE[device.name] * np.abs(want).max()
    assert np.asarray(got).shape == want.shape
    assert np.abs(np.asarray(got) - want).max() <= limit, key


def counts(name: str, key: str) -> bool:
    """PyTorch does not count the batches of instance norms."""
    return key != "num_batches_tracked" or name.startswith("batch")


@pytest.mark.parametrize("name", CASES)
def test_norms_are_trained_as_pytorchs(device: sg.Device, name: str) -> None:
    case = CASES[name]
    layer = layer_of(case).to(device)
    x = y = sg.zeros(())
    for batch in batches(case):
        x = sg.tensor(batch, device=device)
        with nn.observing() as seen:
            y = layer(x)
        layer = layer.with_modules(seen)
    close(device, name, y, "trained")
    close(device, name, layer.eval()(x), "after")
    for key, t in layer.named_buffers():
        if counts(name, key):
            close(device, name, t, key)


def step_of(model: nn.Module) -> Any:
    """A step that takes the statistics as states, and returns the next ones."""

    def step(x: sg.Tensor, key: sg.Tensor, **statistics: sg.Tensor) -> Any:
        given = model.with_state(statistics, strict=False)
        with nn.observing() as seen, nn.drawing(key):
            y = given(x)
        return y, dict(given.with_modules(seen).named_buffers())

    return step


@pytest.mark.parametrize("name", [n for n in CASES if f"{n}/running_mean" in recorded("norms")])
def test_statistics_are_states_of_a_compiled_step(device: sg.Device, name: str) -> None:
    case = CASES[name]
    layer = layer_of(case)
    x = np.zeros(case.shape, np.float32)
    program = sg.compile(step_of(layer), x, sg.random.key(0), states=dict(layer.named_buffers()), device=device)
    session, y = program.session(), None
    for k, batch in enumerate(batches(case)):
        y = session(batch, np.array([0, k], np.uint32))
    close(device, name, y, "trained")
    for key in session.names:
        if counts(name, key):
            close(device, name, session.read(key), key)


def test_statistics_of_an_open_batch() -> None:
    case = CASES["batch 2d"]
    layer = layer_of(case)
    states = dict(layer.named_buffers())
    shapes = {"x": ("N", *case.shape[1:]), "key": (2,)}
    model = sg.Model.of(step_of(layer), shapes, dtypes={"key": "uint32"}, states=states)
    session = model.session()
    for k, batch in enumerate(batches(case)):
        session(batch, np.array([0, k], np.uint32))
    close(sg.device("numpy"), "batch 2d", session.read("running_var"), "running_var")
    assert session.read("num_batches_tracked") == STEPS


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(3), nn.InstanceNorm1d(3, track_running_stats=True)])
def test_one_element_has_no_variance_to_learn_from(layer: nn.Module) -> None:
    x = sg.zeros((1, 3, 1))
    layer(x)
    with pytest.raises(sg.ShapeError, match="two elements or more of each channel"):
        layer.train()(x)


BLOCKS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "convolutions": (
        nn.Sequential(nn.Conv2d(2, 4, 3, rng=0), nn.BatchNorm2d(4, momentum=None), nn.RReLU(), nn.Dropout2d(0.3)), (2, 2, 5, 5),
    ),
    "alpha": (nn.Sequential(nn.Conv3d(2, 3, 2, rng=0), nn.BatchNorm3d(3), nn.FeatureAlphaDropout(0.4)), (2, 2, 3, 3, 3)),
    "lstm": (nn.LSTM(3, 4, num_layers=2, dropout=0.5, bidirectional=True, rng=0), (4, 2, 3)),
    "gru": (nn.GRU(3, 4, num_layers=3, dropout=0.5, batch_first=True, rng=0), (2, 4, 3)),
    "rnn": (nn.RNN(3, 4, num_layers=2, dropout=0.5, bidirectional=True, rng=0), (4, 2, 3)),
    "attention": (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.4, batch_first=True, rng=0), (2, 5, 4)),
    "noise": (nn.Sequential(nn.GaussianNoise(0.2), nn.Linear(3, 4, rng=0), nn.BatchNorm1d(4), nn.AlphaDropout(0.3)), (5, 3)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
def test_random_layers_and_norms_are_compiled_together(device: sg.Device, name: str) -> None:
    """A compiled step in training gives what the layers give one by one with the same keys, and the same statistics."""
    model, shape = BLOCKS[name][0].train(), BLOCKS[name][1]

    def outputs(given: nn.Module, x: sg.Tensor, key: sg.Tensor) -> Any:
        with nn.observing() as seen, nn.drawing(key):
            y = given(x)
        return y[0] if isinstance(y, tuple) else y, given.with_modules(seen)

    def step(x: sg.Tensor, key: sg.Tensor, **statistics: sg.Tensor) -> Any:
        y, after = outputs(model.with_state(statistics, strict=False), x, key)
        return (y, dict(after.named_buffers())) if statistics else y

    rng = np.random.default_rng(0)
    states = dict(model.named_buffers()) or None
    program = sg.compile(step, np.zeros(shape, np.float32), sg.random.key(0), states=states, device=device)
    run = program.session() if states else program
    eager, seen = model.to(device), list[np.ndarray]()
    for k in range(3):
        x, key = rng.normal(size=shape).astype(np.float32), np.array([0, k], np.uint32)
        want, eager = outputs(eager, sg.tensor(x, device=device), sg.tensor(key))
        seen.append(np.asarray(run(x, key)))
        np.testing.assert_allclose(seen[-1], want.numpy(), rtol=1e-4, atol=1e-4)
    for path, t in eager.named_buffers():
        np.testing.assert_allclose(run.read(path), t.numpy(), rtol=1e-4, atol=1e-5)  # pyright: ignore[reportAttributeAccessIssue]
