"""A training loop of one's own, three ways, from the one in which each step is visible to the fastest.

The task: points of two spirals, and which of the two each belongs to. All three ways begin with the same weights and the same
batches, so their losses agree; what differs is how much of a step is one compiled Program.

    python demos/training/custom_loop.py [--device wasm] [--quick]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from command import run

import singe as sg
from singe import nn, optim


def spirals(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (count, 2) of two spirals, with a little noise, and the spiral of each."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, count)
    along = rng.uniform(0.1, 1.0, count)
    angle = 3 * np.pi * along + np.pi * label
    points = along[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1) + rng.normal(0, 0.02, (count, 2))
    return points.astype(np.float32), label


def network() -> nn.Module:
    rng = np.random.default_rng(0)
    return nn.Sequential(
        nn.Linear(2, 64, rng=rng), nn.Tanh(), nn.Linear(64, 64, rng=rng), nn.Tanh(), nn.Linear(64, 2, rng=rng)
    )


def loss_of(model: nn.Module, x: sg.Tensor, y: sg.Tensor) -> sg.Tensor:
    return nn.CrossEntropyLoss()(model(x), y)


def batches(steps: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    return (spirals(128, seed) for seed in range(steps))


def with_gradients(device: str, steps: int) -> tuple[nn.Module, list[float]]:
    """value_and_grad: gradients are values. Look at them, change them, give them to an optimiser or not. The model is on a
    device with Fusion, which computes a chain of operations when a value is asked for."""
    model, optimizer, losses = network().to(sg.Fusion(sg.device(device))), optim.AdamW(0.01), []
    state = optimizer.init(model)
    for x, y in batches(steps):
        loss, gradients = sg.value_and_grad(loss_of)(model, x, y)
        model, state = optimizer.step(model, optim.clip_norm(gradients, 1.0), state)
        losses.append(loss.item())
    return model, losses


def with_backward(device: str, steps: int) -> tuple[nn.Module, list[float]]:
    """Autodiff: a device that records what is computed, so that backward() can be called on any number."""
    on = sg.Autodiff(sg.Fusion(sg.device(device)))
    model, optimizer, losses = network().to(on).map(sg.Tensor.require_grad), optim.AdamW(0.01), []
    state = optimizer.init(model)
    for x, y in batches(steps):
        loss = loss_of(model, sg.tensor(x, device=on), sg.tensor(y, device=on))
        model, state = optimizer.step(model, optim.clip_norm(loss.backward(), 1.0), state)
        losses.append(loss.item())
    return model, losses


def with_step(device: str, steps: int) -> tuple[nn.Module, list[float]]:
    """TrainStep: the whole step is one Program, which changes weights and moments in place."""
    step = sg.train.TrainStep(network(), optim.AdamW(0.01), loss_of, device=device, clip=1.0)
    losses = [step(x, y) for x, y in batches(steps)]
    return step.model, losses


WAYS: dict[str, Callable[[str, int], tuple[nn.Module, list[float]]]] = {
    "value_and_grad": with_gradients, "backward": with_backward, "TrainStep": with_step,
}  # fmt: skip


def main(device: str, quick: bool) -> dict[str, float]:
    steps = 20 if quick else 1000
    x, y = spirals(1000, seed=10**6)
    found = {}
    for name, way in WAYS.items():
        start = time.perf_counter()
        model, losses = way(device, steps)
        seconds = time.perf_counter() - start
        right = float((model.to("numpy")(sg.tensor(x)).numpy().argmax(1) == y).mean())
        print(f"{name:15} loss {losses[-1]:.4f}, {right:.1%} of new points right, {steps} steps in {seconds:.1f} s")
        found |= {f"{name}.loss": losses[-1], f"{name}.first": losses[0], f"{name}.accuracy": right}
    return found


if __name__ == "__main__":
    run(main, __doc__)
