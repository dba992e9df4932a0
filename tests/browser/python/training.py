"""Training of a small network in each of three ways: tests call these natively and in a page, and compare the losses.

Each function gives the losses of its steps or epochs on a device.
"""

import numpy as np

import singe as sg
from singe import data, metrics, nn, optim

STEPS = 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(48, 1, 8, 8)).astype(np.float32)
Y = (X[:, 0, :4].mean((1, 2)) > X[:, 0, 4:].mean((1, 2))).astype(np.int32)


def network() -> nn.Module:
    """With weights, running statistics, and a layer that draws."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, rng=0), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(36, 2, rng=1)
    ).train()  # fmt: skip


def loss_of(model: nn.Module, x: sg.Tensor, y: sg.Tensor) -> sg.Tensor:
    return nn.CrossEntropyLoss()(model(x), y)


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    return [(X[at : at + 16], Y[at : at + 16]) for at in np.arange(STEPS) % 3 * 16]


async def by_gradients(device: str) -> list[float]:
    """value_and_grad and an optimiser."""
    on = sg.Fusion(await sg.device_async(device))
    model, optimizer, losses = network().eval().to(on), optim.AdamW(0.02), []
    state = optimizer.init(model)
    for x, y in batches():
        loss, gradients = sg.value_and_grad(loss_of)(model, sg.tensor(x, device=on), sg.tensor(y, device=on))
        model, state = optimizer.step(model, optim.clip_norm(gradients, 1.0), state)
        losses.append(float(await loss.numpy_async()))
    return losses


async def by_steps(device: str) -> list[float]:
    """TrainStep."""
    step = sg.train.TrainStep(
        network(), optim.AdamW(0.02), loss_of, device=await sg.device_async(device), clip=1.0, seed=3
    )
    return [await step.run_async(x, y) for x, y in batches()]


async def by_learner(device: str) -> list[float]:
    """Learner: the losses of training and of validation after each epoch."""
    await sg.device_async(device)
    learner = sg.train.Learner(
        network(), optim.SGD(0.05, momentum=0.9), nn.CrossEntropyLoss(), [metrics.Accuracy()], device=device, dashboard=None,
        seed=0,
    )  # fmt: skip
    train, valid = data.Loader((X[:32], Y[:32]), 8, shuffle=True, seed=1, workers=2), data.Loader((X[32:], Y[32:]), 8)
    summary = learner.fit(train, valid, epochs=3)
    return [row.values[phase]["loss"] for row in summary.rows for phase in ("train", "valid")]
