"""Writes recorded/optim.npz: what PyTorch's optimisers and schedules make of given weights and gradients, step by step.

    python tests/training/recording/record_optim.py

The file has "cases", a JSON text, and the arrays that it names. Gradients are given numbers, not computed, so that an error
does not grow from step to step; PyTorch computes in float64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.optim import _muon, lr_scheduler, swa_utils

STEPS = 22
SHAPES = {"first.weight": (4, 3), "first.bias": (4,), "last.weight": (2, 4)}
"""Matrices that are tall and wide, and a vector."""
UPDATES = 64
"""For how many updates a schedule alone is recorded."""

Options = dict[str, Any]

OPTIMISERS: list[tuple[str, Options]] = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"lr": 0.02, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3}),
    ("Adam", {"lr": 0.02, "betas": (0.0, 0.9)}),
    ("Adam", {"lr": 0.02, "amsgrad": True, "betas": (0.9, 0.7)}),
    ("Adam", {"lr": 0.02, "amsgrad": True, "weight_decay": 0.1, "betas": (0.5, 0.6)}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.02, "weight_decay": 0.2}),
    ("AdamW", {"lr": 0.02, "weight_decay": 0.0, "betas": (0.7, 0.9)}),
    ("AdamW", {"lr": 0.02, "amsgrad": True, "betas": (0.9, 0.7)}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.8, "eps": 1e-3}),
    ("RMSprop", {"lr": 0.02, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.02, "momentum": 0.8}),
    ("RMSprop", {"lr": 0.02, "centered": True}),
    ("RMSprop", {"lr": 0.02, "centered": True, "momentum": 0.8, "weight_decay": 0.1, "alpha": 0.9}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-3}),
    ("Muon", {}),
    ("Muon", {"lr": 0.05, "weight_decay": 0.0, "nesterov": False}),
    ("Muon", {"lr": 0.05, "momentum": 0.8, "ns_steps": 3}),
    ("Muon", {"lr": 0.05, "adjust_lr_fn": "match_rms_adamw"}),
    ("Muon", {"lr": 0.05, "adjust_lr_fn": "spectral_unclamped", "ns_coefficients": (2.0, -1.5, 0.5)}),
]
SCHEDULED: list[tuple[str, Options, str, Options]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9}, "CosineAnnealingLR", {"T_max": 15}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.1}, "StepLR", {"step_size": 4, "gamma": 0.5}),
    ("RMSprop", {"lr": 0.05}, "LinearLR", {"total_iters": 10}),
    ("Adagrad", {"lr": 0.05, "lr_decay": 0.05}, "ExponentialLR", {"gamma": 0.9}),
]
GROUPED: list[tuple[str, Options, dict[str, Options]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}, {"last.weight": {"lr": 0.01, "weight_decay": 0.0}}),
    ("AdamW", {"lr": 0.02, "weight_decay": 0.1}, {"first.bias": {"weight_decay": 0.0}, "last.weight": {"lr": 0.1, "betas": (0.5, 0.9)}}),
    ("RMSprop", {"lr": 0.02}, {"first.bias": {"momentum": 0.5, "lr": 0.001}}),
]  # fmt: skip
SCHEDULES: list[tuple[str, Options]] = [
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.2, "total_iters": 9}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 0.01, "total_iters": 20}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 50}),
    ("PolynomialLR", {}),
    ("PolynomialLR", {"total_iters": 40, "power": 2.0}),
    ("PolynomialLR", {"total_iters": 40, "power": 0.5}),
    ("ExponentialLR", {"gamma": 0.95}),
    ("StepLR", {"step_size": 7}),
    ("StepLR", {"step_size": 10, "gamma": 0.7}),
    ("MultiStepLR", {"milestones": [3, 10, 40]}),
    ("MultiStepLR", {"milestones": [30], "gamma": 0.5}),
    ("CosineAnnealingLR", {"T_max": 63}),
    ("CosineAnnealingLR", {"T_max": 10, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 8}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 1, "T_mult": 3}),
]
CYCLES: list[Options] = [
    {"total_steps": 64},
    {"total_steps": 64, "anneal_strategy": "linear", "pct_start": 0.37, "div_factor": 4.0, "final_div_factor": 50.0},
    {"total_steps": 100, "three_phase": True},
    {"total_steps": 64, "three_phase": True, "anneal_strategy": "linear", "pct_start": 0.41},
    {"total_steps": 64, "pct_start": 0.0},
    {"total_steps": 100, "pct_start": 1.0, "anneal_strategy": "linear"},
]
"""Of OneCycleLR, of the rates alone."""
SEQUENCES: list[tuple[list[tuple[str, Options]], list[int]]] = [
    ([("LinearLR", {"start_factor": 0.1, "total_iters": 5}), ("CosineAnnealingLR", {"T_max": 40, "eta_min": 0.001})], [5]),
    ([("ConstantLR", {"total_iters": 4}), ("ExponentialLR", {"gamma": 0.9}), ("StepLR", {"step_size": 5})], [6, 30]),
]  # fmt: skip
CHAINS: list[list[tuple[str, Options]]] = [
    [("ConstantLR", {"total_iters": 6}), ("ExponentialLR", {"gamma": 0.9})],
    [("LinearLR", {"total_iters": 12}), ("StepLR", {"step_size": 9}), ("MultiStepLR", {"milestones": [20, 21], "gamma": 0.5})],
]  # fmt: skip
PLATEAUS: list[Options] = [
    {"patience": 2},
    {"patience": 0, "factor": 0.5, "cooldown": 3},
    {"patience": 1, "mode": "max", "factor": 0.3, "min_lr": 0.01},
    {"patience": 1, "threshold": 0.2, "threshold_mode": "abs", "factor": 0.7},
    {"patience": 1, "mode": "max", "threshold": 0.1, "threshold_mode": "abs", "cooldown": 1, "factor": 0.7},
    {"patience": 1, "threshold": 0.1, "factor": 0.2, "eps": 0.005},
]
"""Of ReduceLROnPlateau."""
RATE = 0.3
"""The learning rate of the schedules that are recorded alone."""


def parameters(only_matrices: bool) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
    """Weights, and gradients for each step: of one sign more often than of the other, and some elements small."""
    rng = np.random.default_rng(7)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    scale = {name: 10.0 ** rng.uniform(-3, 1, shape) for name, shape in SHAPES.items()}
    grads = [
        {name: (scale[name] * (0.5 + rng.normal(size=shape))).astype(np.float32) for name, shape in SHAPES.items()}
        for _ in range(STEPS)
    ]
    wanted = [name for name, shape in SHAPES.items() if len(shape) == 2 or not only_matrices]
    return {k: weights[k] for k in wanted}, [{k: g[k] for k in wanted} for g in grads]


def descend(
    name: str, options: Options, groups: dict[str, Options], schedule: Callable[[Any], Any] | None
) -> dict[str, np.ndarray]:
    """Each parameter after each step."""
    weights, grads = parameters(name == "Muon")
    tensors = {k: torch.nn.Parameter(torch.tensor(w, dtype=torch.float64)) for k, w in weights.items()}
    own = [{"params": [x], **groups.get(k, {})} for k, x in tensors.items()]
    optimiser = getattr(torch.optim, name)(own, **options)
    rates = None if schedule is None else schedule(optimiser)
    found: dict[str, list[np.ndarray]] = {k: [] for k in tensors}
    with mock.patch.object(_muon.torch, "bfloat16", torch.float64):  # in which PyTorch's Muon would compute
        for given in grads:
            for k, x in tensors.items():
                x.grad = torch.tensor(given[k], dtype=torch.float64)
            optimiser.step()
            if rates is not None:
                rates.step()
            for k, x in tensors.items():
                found[k].append(x.detach().numpy().astype(np.float32))
    return {k: np.stack(steps) for k, steps in found.items()}


def rates_of(make: Callable[[Any], Any]) -> np.ndarray:
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=RATE)
    scheduler, found = make(optimiser), []
    for _ in range(UPDATES):
        found.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return np.array(found)


def averages(decay: float) -> dict[str, np.ndarray]:
    """The moving average of each parameter after each step of SGD."""
    weights, grads = parameters(False)
    model = torch.nn.ParameterDict(
        {k.replace(".", "/"): torch.tensor(w, dtype=torch.float64) for k, w in weights.items()}
    )
    average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(decay))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    found: dict[str, list[np.ndarray]] = {k: [] for k in weights}
    for given in grads:
        for k in weights:
            model[k.replace(".", "/")].grad = torch.tensor(given[k], dtype=torch.float64)
        optimiser.step()
        average.update_parameters(model)
        for k in weights:
            found[k].append(average.module[k.replace(".", "/")].detach().numpy().astype(np.float32))
    return {k: np.stack(steps) for k, steps in found.items()}


def plateau_values() -> np.ndarray:
    """The value of each epoch: falling, then without a trend, one not a number."""
    rng = np.random.default_rng(3)
    values = np.concatenate([np.linspace(2, 0.5, 20), rng.uniform(0.3, 1.2, UPDATES - 20)]) + rng.normal(
        0, 0.05, UPDATES
    )
    values[30] = np.nan
    return values.astype(np.float32)


def plateau_rates(options: Options) -> np.ndarray:
    """The rate after each epoch."""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=RATE)
    plateau, found = lr_scheduler.ReduceLROnPlateau(optimiser, **options), []
    for value in plateau_values():
        plateau.step(float(value))
        found.append(optimiser.param_groups[0]["lr"])
    return np.array(found)


def scheduler(name: str, options: Options) -> Callable[[Any], Any]:
    return lambda optimiser: getattr(lr_scheduler, name)(optimiser, **options)


def rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def quartic(x: torch.Tensor) -> torch.Tensor:
    """Curved differently along each axis."""
    scale = torch.arange(1, len(x) + 1, dtype=x.dtype)
    return (scale * (x - 1) ** 2).sum() + 0.1 * ((x * scale).sum() - 2) ** 4


LBFGS: list[tuple[Callable[[torch.Tensor], torch.Tensor], int, Options]] = [
    (function, steps, options)
    for function, steps in ((rosenbrock, 4), (quartic, 4))
    for options in (
        {"lr": 0.01, "max_iter": 4},
        {"lr": 1.0, "max_iter": 5, "line_search_fn": "strong_wolfe"},
        {"lr": 0.5, "max_iter": 6, "history_size": 3, "line_search_fn": "strong_wolfe"},
        {"lr": 1.0, "max_iter": 20, "max_eval": 7, "line_search_fn": "strong_wolfe"},
    )
]
START = [-0.5, 0.8, 0.3, 1.4]


def minimise(
    function: Callable[[torch.Tensor], torch.Tensor], steps: int, options: Options
) -> tuple[np.ndarray, list[int]]:
    """The place after each step, and how often the function was evaluated."""
    x = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64))
    optimiser = torch.optim.LBFGS([x], **options)
    places: list[np.ndarray] = []
    counts: list[int] = []
    calls = 0

    def closure() -> torch.Tensor:
        nonlocal calls
        calls += 1
        optimiser.zero_grad()
        loss = function(x)
        loss.backward()
        return loss

    for _ in range(steps):
        optimiser.step(closure)
        places.append(x.detach().numpy().copy())
        counts.append(calls)
    return np.stack(places), counts


def clipped() -> dict[str, np.ndarray]:
    """Gradients after clipping, by norm of several kinds and by value."""
    _, grads = parameters(False)
    ways: dict[str, Callable[[Any], Any]] = {
        f"norm {norm} {limit}": lambda ps, n=norm, m=limit: torch.nn.utils.clip_grad_norm_(ps, m, norm_type=n)
        for norm, limit in ((2.0, 0.5), (2.0, 1e6), (1.0, 3.0), (3.0, 0.1), (math.inf, 0.25))
    }
    ways["value 0.3"] = lambda ps: torch.nn.utils.clip_grad_value_(ps, 0.3)
    found: dict[str, np.ndarray] = {}
    for way, clip in ways.items():
        tensors = {k: torch.nn.Parameter(torch.zeros(SHAPES[k])) for k in SHAPES}
        for k, x in tensors.items():
            x.grad = torch.tensor(grads[0][k])
        clip(list(tensors.values()))
        for k, x in tensors.items():
            assert x.grad is not None
            found[f"clip {way}/{k}"] = x.grad.numpy()
    return found


def main() -> None:
    cases: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    weights, grads = parameters(False)
    for k, w in weights.items():
        arrays[f"weights/{k}"] = w
        arrays[f"gradients/{k}"] = np.stack([g[k] for g in grads])

    def descent(name: str, options: Options, groups: dict[str, Options], schedule: tuple[str, Options] | None) -> None:
        label = f"{len(cases)} {name}"
        cases[label] = {"kind": "optimiser", "name": name, "options": options, "groups": groups, "schedule": schedule}
        found = descend(name, options, groups, scheduler(*schedule) if schedule else None)
        arrays.update({f"{label}/{k}": x for k, x in found.items()})

    for name, options in OPTIMISERS:
        descent(name, options, {}, None)
    for name, options, way, its in SCHEDULED:
        descent(name, options, {}, (way, its))
    for name, options, groups in GROUPED:
        descent(name, options, groups, None)

    def rates(name: str, parts: Any, make: Callable[[Any], Any], milestones: list[int] | None = None) -> None:
        label = f"{len(cases)} {name}"
        cases[label] = {"kind": "schedule", "name": name, "parts": parts, "milestones": milestones, "lr": RATE}
        arrays[label] = rates_of(make)

    for name, options in SCHEDULES:
        rates(name, [(name, options)], scheduler(name, options))
    for parts, milestones in SEQUENCES:
        make = lambda o, p=parts, m=milestones: lr_scheduler.SequentialLR(o, [scheduler(*x)(o) for x in p], m)
        rates("SequentialLR", parts, make, milestones)
    for parts in CHAINS:
        make = lambda o, p=parts: lr_scheduler.ChainedScheduler([scheduler(*x)(o) for x in p], o)
        rates("ChainedScheduler", parts, make)
    for function, steps, options in LBFGS:
        label = f"{len(cases)} LBFGS {function.__name__}"
        arrays[label], counts = minimise(function, steps, options)
        cases[label] = {"kind": "lbfgs", "name": function.__name__, "options": options, "start": START, "calls": counts}
    for options in CYCLES:
        make = lambda o, own=options: lr_scheduler.OneCycleLR(o, RATE, cycle_momentum=False, **own)
        rates("OneCycleLR", [("OneCycleLR", options)], make)
    arrays["plateau values"] = plateau_values()
    for options in PLATEAUS:
        label = f"{len(cases)} ReduceLROnPlateau"
        cases[label] = {"kind": "plateau", "name": "ReduceLROnPlateau", "options": options, "lr": RATE}
        arrays[label] = plateau_rates(options)
    for decay in (0.0, 0.3, 0.9):
        label = f"{len(cases)} Averaged"
        cases[label] = {"kind": "averaged", "name": "Averaged", "options": {"lr": 0.1}, "decay": decay}
        arrays.update({f"{label}/{k}": x for k, x in averages(decay).items()})
    arrays |= clipped()
    folder = Path(__file__).parents[1] / "recorded"
    folder.mkdir(exist_ok=True)
    np.savez_compressed(folder / "optim.npz", cases=np.array(json.dumps(cases)), **arrays)
    print(f"{len(cases)} cases, {(folder / 'optim.npz').stat().st_size} bytes")


if __name__ == "__main__":
    main()
