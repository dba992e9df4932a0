"""Handwritten digits: 99.4% of MNIST's test images read by a network of 48,000 parameters, which takes minutes on one core.

Each epoch shows the network every image a little turned, scaled, sheared and shifted, so that it also reads digits that are
drawn on a screen. The test images are looked at after each epoch, and nothing is chosen by them: the weights in
mnist.safetensors are those of the last epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np

from ... import data, metrics, nn, optim
from ...late_dataclass import dataclass
from ...model.files import save
from ...tensors.tensor import Tensor
from ..config import precision_setting, setting
from ..learner import Learner
from ..monitor.summary import Summary
from ..saving.checkpoints import Checkpoints
from . import Example

MEAN, STD = 0.1307, 0.3081
"""Of the pixels of the training images, from 0 to 1."""


@dataclass(frozen=True)
class MnistConfig:
    """The settings of a run."""

    epochs: int = setting(10, "how often each image is shown", 1)
    seed: int = setting(0, "of the first weights, the order of the images and how they are changed", 0)
    batch_size: int = setting(128, "images in a step", 1)
    lr: float = setting(0.006, "the largest learning rate; it rises for a fifth of the steps, then falls to nothing", 0)
    precision: Literal["float32", "float16", "bfloat16"] = precision_setting()
    weight_decay: float = setting(0.02, "how much weights shrink in a step, times the learning rate", 0)
    degrees: float = setting(12.0, "by how much images are turned, at most", 0)
    shift: float = setting(0.1, "by which part of their size they are shifted, at most", 0, 1)
    scale: float = setting(0.15, "by which part of their size they grow or shrink, at most", 0, 1)
    shear: float = setting(8.0, "by how many degrees they are sheared, at most", 0)
    items: int | None = setting(None, "use only so many training images, and so many test images", 1)
    data: str | None = setting(None, "a folder with MNIST's four files; without it they are fetched")
    workers: int = setting(1, "threads that prepare images", 0)


SETTINGS: Final = MnistConfig
QUICK: Final[Mapping[str, Any]] = {"epochs": 1, "items": 1000}


class ConvBlock(nn.Module):
    """A convolution, normalised and rectified."""

    conv: nn.Conv2d
    norm: nn.BatchNorm2d

    def __init__(
        self, inputs: int, outputs: int, size: int, stride: int, padding: int, rng: np.random.Generator
    ) -> None:
        self.conv = nn.Conv2d(inputs, outputs, size, stride, padding, bias=False, rng=rng)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x)).relu()


class Digits(nn.Module):
    """Images (batch, 1, 28, 28) of pixels from 0 to 1, white on black ↦ logits (batch, 10)."""

    blocks: nn.Sequential
    head: nn.Linear

    def __init__(self, rng: np.random.Generator) -> None:
        self.blocks = nn.Sequential(
            ConvBlock(1, 16, 5, 2, 2, rng),
            ConvBlock(16, 32, 3, 1, 1, rng),
            ConvBlock(32, 48, 3, 2, 1, rng),
            ConvBlock(48, 64, 3, 1, 0, rng),
        )
        self.head = nn.Linear(64, 10, rng=rng)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks((x - MEAN) / STD).mean((2, 3)))


def train(config: MnistConfig, run: Example) -> tuple[Learner, Summary]:
    """Train on MNIST."""
    images, unseen = (data.MNIST(config.data, train=part) for part in (True, False))
    if config.items is not None:
        images, unseen = (part.partial(0, min(config.items, len(part))) for part in (images, unseen))
    turned = data.RandomAffine(
        config.degrees, (config.shift, config.shift), (1 - config.scale, 1 + config.scale), config.shear
    )
    to_unit = data.Normalize(0.0, 255.0)
    batches = data.Loader(
        images, config.batch_size, shuffle=True, seed=config.seed, drop_last=len(images) >= config.batch_size,
        workers=config.workers, transform=data.Augment(turned, to_unit),
    )  # fmt: skip
    test = data.Loader(unseen, 500, workers=config.workers, transform=data.Augment(to_unit))
    steps = config.epochs * len(batches)
    rise = max(1, steps // 5)
    rate = optim.SequentialLR(
        [optim.LinearLR(config.lr, 0.1, 1.0, rise), optim.CosineAnnealingLR(config.lr, max(1, steps - rise))], [rise]
    )
    learner = Learner(
        Digits(np.random.default_rng(config.seed)),
        optim.AdamW(rate, betas=(0.9, 0.99), weight_decay=config.weight_decay),
        nn.CrossEntropyLoss(),
        [metrics.Accuracy()],
        device=run.device,
        run=run.folder,
        checkpoints=Checkpoints(best="train.loss"),
        seed=config.seed,
        precision=config.precision,
        config=config,
        dashboard=run.dashboard,
    )
    summary = learner.fit(batches, test, config.epochs, resume=run.resume)
    save(learner.model, run.folder / "mnist.safetensors")
    return learner, summary
