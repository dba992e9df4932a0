"""A training step as one Program: weights and moments are states, each parameter is updated by one kernel, in place, and the
Program is compiled once; clipping and averages of gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS, slow
from recorded import recorded_cases

import singe as sg
from singe import nn, optim
from singe.program.words import COPY

_, ARRAYS = recorded_cases("optim")
WEIGHTS = {key.removeprefix("weights/"): x for key, x in ARRAYS.items() if key.startswith("weights/")}
GRADIENTS = {key.removeprefix("gradients/"): x for key, x in ARRAYS.items() if key.startswith("gradients/")}
STEPS = 20
Step = Callable[..., Any]

OPTIMISERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optim.SGD(optim.CosineAnnealingLR(0.1, 15), momentum=0.9, dampening=0.1, weight_decay=0.1),
    "Adam": lambda: optim.Adam(optim.WarmUp(optim.StepLR(0.1, 5), 5), amsgrad=True),
    "AdamW": lambda: optim.AdamW(optim.NoamLR(16, 5), groups={"last.*": {"lr": 0.01}}),
    "Adan": lambda: optim.Adan(0.01, weight_decay=0.1),
    "RMSprop": lambda: optim.RMSprop(optim.LinearLR(0.01), momentum=0.9, centered=True),
    "Adagrad": lambda: optim.Adagrad(optim.ExponentialLR(0.1, 0.9), lr_decay=0.1),
    "Muon": lambda: optim.Muon(optim.CosineAnnealingWarmRestarts(0.1, 4, 2)),
    "Averaged": lambda: optim.Averaged(optim.SGD(0.1), 0.9),
    "ReduceLROnPlateau": lambda: optim.ReduceLROnPlateau(optim.SGD(0.1, groups={"last.*": {"lr": 0.01}}), min_lr=0.02),
    "Accumulated": lambda: optim.Accumulated(optim.AdamW(optim.MultiStepLR(0.1, [3, 5])), 3),
}


def tensors(arrays: dict[str, np.ndarray], device: Any = "numpy") -> dict[str, sg.Tensor]:
    return {name: sg.tensor(x, device=device) for name, x in arrays.items()}


def program_of(opt: Any, device: str, clip: float | None = None) -> sg.Program:
    """Takes the gradients, keeps the weights and the state of the optimiser, returns the number of updates."""
    model = tensors(WEIGHTS)

    def step(*grads: sg.Tensor, **states: sg.Tensor) -> Any:
        given = dict(zip(model, grads, strict=True))
        given = given if clip is None else optim.clip_norm(given, clip)
        weights = {name: states.pop(f"weight {name}") for name in model}
        weights, after = opt.step(weights, given, states)
        return after["step"] + 0, {f"weight {name}": x for name, x in weights.items()} | after

    states = {f"weight {name}": x for name, x in model.items()} | opt.init(model)
    return sg.compile(step, *(x[0] for x in GRADIENTS.values()), states=states, device=device)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AdamW", *slow(*[name for name in OPTIMISERS if name != "AdamW"])])
@RUNNERS
def test_a_step_is_one_program_with_states(name: str, device_name: str) -> None:
    opt = OPTIMISERS[name]()
    program = program_of(opt, device_name, clip=1.0)
    session = program.session()
    model = tensors(WEIGHTS)
    state = opt.init(model)
    for k in range(STEPS):
        grads = {path: x[k] for path, x in GRADIENTS.items()}
        count = session(*grads.values())
        model, state = opt.step(model, optim.clip_norm(tensors(grads), 1.0), state)
        assert count == state["step"].item()
    for path, x in model.items():
        np.testing.assert_allclose(session.read(f"weight {path}"), x.numpy(), rtol=2e-5, atol=1e-6, err_msg=path)
    for path, x in state.items():
        np.testing.assert_allclose(session.read(path), x.numpy(), rtol=1e-4, atol=1e-6, err_msg=path)


FUSED = [("wasm", name) for name in OPTIMISERS if name not in ("AdamW", "Muon")]
FUSED += [("webgpu", name) for name in ("AdamW", "SGD", "Adam", "RMSprop", "Adagrad")]
"""Adan and Accumulated read more states and factors than WebGPU lets one kernel read."""
SHARED = 5
"""The most kernels for what all parameters share: the count, the rate and the corrections of three moments, of Adan."""


@pytest.mark.parametrize(
    ("device_name", "name"),
    [("wasm", "AdamW"), *(pytest.param(*case, marks=pytest.mark.slow) for case in FUSED)],
    indirect=["device_name"],
)
def test_a_parameter_and_its_moments_are_updated_by_one_kernel_in_place(name: str, device_name: str) -> None:
    """And what all parameters share, such as the learning rate, is computed once for each group."""
    program = program_of(OPTIMISERS[name](), device_name).data
    buffers = [b.name for b in program.buffers]
    calls = [g for g in program.groups if g.head >= 0]
    updates = [[g for g in calls if buffers.index(f"weight {path}") in g.writes] for path in WEIGHTS]
    assert [len(found) for found in updates] == [1] * len(WEIGHTS)
    assert len(calls) <= len(WEIGHTS) + SHARED
    copied = [b for g in program.groups if g.head == COPY for b in (*g.reads, *g.writes)]
    assert not [buffers[b] for b in copied if buffers[b].startswith(("weight", "moment", "square"))]


@pytest.mark.slow
@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("device_name", ["wasm", *slow("webgpu")], indirect=True)
def test_layers_are_updated_by_one_kernel_for_each_parameter(clip: float | None, device_name: str) -> None:
    """Gradients come in the layout of the weights, also of Linear, whose product takes its weight transposed."""
    layers = nn.Sequential(nn.Linear(6, 5, rng=0), nn.Tanh(), nn.Linear(5, 3, rng=1))
    opt = optim.AdamW(optim.CosineAnnealingLR(0.1, 15))

    def step(x: sg.Tensor, y: sg.Tensor, **states: sg.Tensor) -> Any:
        model = layers.map(lambda t: states[names[t]])
        loss, grads = sg.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
        grads = grads if clip is None else optim.clip_norm(grads, clip)
        model, after = opt.step(model, grads, {k: x for k, x in states.items() if k not in names.values()})
        return loss, {f"weight {path}": x for path, x in model.named_parameters()} | after

    names = {t: f"weight {path}" for path, t in layers.named_parameters()}
    states = {name: t for t, name in names.items()} | opt.init(layers)
    x, y = np.ones((8, 6), np.float32), np.zeros((8, 3), np.float32)
    program = sg.compile(step, x, y, states=states, device=device_name)
    buffers = [b.name for b in program.data.buffers]
    for path, _ in layers.named_parameters():
        for name in (f"moment1.{path}", f"moment2.{path}"):
            readers = [g for g in program.data.groups if g.head >= 0 and buffers.index(name) in g.reads]
            assert len(readers) == 1, name
            assert buffers.index(f"weight {path}") in readers[0].writes
    model, state = layers, opt.init(layers)
    for _ in range(5):
        loss = program(x, y)
        value, grads = sg.value_and_grad(lambda model: ((model(sg.tensor(x)) - sg.tensor(y)) ** 2).mean())(model)
        np.testing.assert_allclose(loss, value.item(), rtol=1e-4)
        model, state = opt.step(model, grads if clip is None else optim.clip_norm(grads, clip), state)


# --- clipping, averages -----------------------------------------------------------------------------------------------


def test_clipping_is_that_of_pytorch(on: sg.Device) -> None:
    grads = tensors({name: x[0] for name, x in GRADIENTS.items()}, on)
    ways: dict[str, Callable[[], dict[str, sg.Tensor]]] = {"value 0.3": lambda: optim.clip_value(grads, 0.3)}
    for norm, limit in ((2.0, 0.5), (2.0, 1e6), (1.0, 3.0), (3.0, 0.1), (math.inf, 0.25)):
        ways[f"norm {norm} {limit}"] = lambda n=norm, m=limit: optim.clip_norm(grads, m, n)
    for way, clip in ways.items():
        for name, x in clip().items():
            np.testing.assert_allclose(x.numpy(), ARRAYS[f"clip {way}/{name}"], rtol=3e-6, err_msg=f"{way}: {name}")


def test_the_norm_is_of_all_gradients() -> None:
    grads = {"a": sg.tensor([[3.0]]), "b": sg.tensor([0.0, 4.0]).half()}
    assert optim.global_norm(grads).item() == 5
    assert optim.global_norm(grads, math.inf).item() == 4
    assert optim.clip_norm(grads, 1.0)["b"].dtype == "float16"


@pytest.mark.slow
def test_accumulated_steps_are_one_step_with_the_average(on: sg.Device) -> None:
    every, inner = 4, optim.AdamW(optim.StepLR(0.1, 2))
    opt = optim.Accumulated(inner, every)
    model = single = tensors(WEIGHTS, on)
    state, state_of_single = opt.init(model), inner.init(single)
    for k in range(STEPS):
        before = {name: x.numpy() for name, x in model.items()}
        model, state = opt.step(model, tensors({name: x[k] for name, x in GRADIENTS.items()}, on), state)
        if k % every == every - 1:
            batches = [tensors({name: x[j] for name, x in GRADIENTS.items()}, on) for j in range(k - every + 1, k + 1)]
            single, state_of_single = inner.step(single, optim.mean(batches), state_of_single)
            for name, x in model.items():
                np.testing.assert_allclose(x.numpy(), single[name].numpy(), rtol=1e-6, atol=1e-7)
        else:
            for name, x in model.items():
                np.testing.assert_array_equal(x.numpy(), before[name])
    assert state["step"].item() == STEPS // every
