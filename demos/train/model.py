"""The networks of the training page, a step of training of each, and the same network for reading; and how the digit page's
network is taught a hand.

Names of weights are those of `state_dict`. "strong" is the network of `singe train mnist`: the page reads the file that this
command writes, and the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import singe as sg
from singe import nn
from singe.train.examples.mnist import MEAN, STD, Digits

BATCH: Final = 64
STEPS: Final = 1500
"""After so many steps the learning rate has fallen to its last value, at which training can go on."""
RISE: Final = 150
IMAGE: Final = (1, 28, 28)


class Normal(nn.Module):
    """Pixels from 0 to 1 ↦ pixels with the mean 0 and the deviation 1."""

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        return (x - MEAN) / STD


def plain() -> nn.Module:
    """Two linear layers."""
    rng = np.random.default_rng(0)
    return nn.Sequential(Normal(), nn.Flatten(), nn.Linear(784, 64, rng=rng), nn.ReLU(), nn.Linear(64, 10, rng=rng))


def small() -> nn.Module:
    """Two convolutions with strides, and a linear layer."""
    rng = np.random.default_rng(0)
    return nn.Sequential(
        Normal(),
        nn.Conv2d(1, 12, 5, stride=2, padding=2, rng=rng),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1, rng=rng),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 49, 10, rng=rng),
    )


def strong() -> nn.Module:
    """Four convolutions with batch norm: the network of `singe train mnist`."""
    return Digits(np.random.default_rng(0))


NETWORKS: Final[dict[str, tuple[Callable[[], nn.Module], float]]] = {
    "plain": (plain, 0.002),
    "small": (small, 0.004),
    "strong": (strong, 0.006),
}
"""A network's name ↦ how it is made, and its largest learning rate."""


def loss(model: Any, x: sg.Tensor, y: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
    logits = model(x)
    return nn.CrossEntropyLoss()(logits, y), {"logits": logits}


def step(network: str, device: str = "numpy") -> sg.train.TrainStep:
    """A step of training: AdamW, whose rate rises, then falls as a cosine does to a tenth."""
    make, rate = NETWORKS[network]
    rise = sg.optim.LinearLR(rate, 0.1, 1.0, RISE)
    fall = sg.optim.CosineAnnealingLR(rate, STEPS - RISE, rate / 10)
    schedule = sg.optim.SequentialLR([rise, fall, rate / 10], [RISE, STEPS])
    optimizer = sg.optim.AdamW(schedule, betas=(0.9, 0.99), weight_decay=0.02)
    return sg.train.TrainStep(make(), optimizer, loss, device=device)


def teaching(trained: nn.Module) -> sg.train.TrainStep:
    """A step that changes the last convolution of a trained "strong" and what follows it. Running statistics stay: a few
    drawings say little about them."""
    last = trained.eval().freeze("*").unfreeze("blocks.3.*", "head.*")
    return sg.train.TrainStep(last, sg.optim.AdamW(0.001, betas=(0.9, 0.99), weight_decay=0.02), loss, device="numpy")


def batch() -> tuple[np.ndarray, np.ndarray]:
    """An empty batch: the shapes and types that a step takes."""
    return np.zeros((BATCH, *IMAGE), np.float32), np.zeros(BATCH, np.int32)


def reader(network: nn.Module, name: str, device: str = "numpy") -> sg.Model:
    """A network for any number of images, with its weights as states, which are called as those of the step."""
    made = network.eval()
    states = {f"model.{path}": t.numpy() for path, t in made.state_dict().items()}

    def read(x: sg.Tensor, **weights: sg.Tensor) -> tuple[dict[str, sg.Tensor], dict[str, sg.Tensor]]:
        found = made.with_state({path.removeprefix("model."): w for path, w in weights.items()})
        return {"logits": found(x)}, weights

    return sg.Model.of(read, {"x": ("N", *IMAGE)}, device, states=states, name=name)
