"""Handwritten digits drawn by a network: a Wasserstein GAN with gradient penalty, of two networks that learn in turns.

The critic learns to give real digits higher numbers than drawn ones; the generator learns to draw what the critic gives high
numbers. The penalty holds the critic's slope near 1 and is differentiated again: a gradient of a gradient, in one Program with
the rest of the step. Each of the two is a part of the other's batch.

After each epoch the same 64 draws are saved as a picture, and the network of `singe train mnist` reads 500 others: of how many
is it sure, and how often does it find the rarest digit?

    python demos/training/wgan.py [--device wasm] [--quick] [--data FOLDER] [--out wgan-samples]
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
from command import run
from PIL import Image

import singe as sg
from singe import data, nn, optim, train
from singe.train.examples.mnist import Digits

NOISE = 64
BATCH = 64
CRITIC_STEPS = 3
"""How many the critic makes for one of the generator."""
PENALTY = 10.0
PART = Path(__file__).parents[1] / "train" / "small.bin"
"""A part of MNIST, as demos/train/data.py packs it."""
READER = Path(__file__).parents[1] / "trained" / "mnist.safetensors"


def generator(rng: np.random.Generator) -> nn.Module:
    """Noise (batch, 64) ↦ pictures (batch, 1, 28, 28) from 0 to 1."""
    return nn.Sequential(
        nn.Linear(NOISE, 32 * 7 * 7, rng=rng), nn.Unflatten(1, (32, 7, 7)), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1, rng=rng), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1, rng=rng), nn.Sigmoid(),
    )  # fmt: skip


def critic(rng: np.random.Generator) -> nn.Module:
    """Pictures ↦ (batch, 1), higher for those that look real. Without batch norm: the penalty is about single pictures."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 4, 2, 1, rng=rng), nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, 2, 1, rng=rng), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 1, rng=rng),
    )  # fmt: skip


def critic_loss(
    critic: nn.Module, real: sg.Tensor, noise: sg.Tensor, part: sg.Tensor, generator: nn.Module
) -> sg.Tensor:
    """part: (batch, 1, 1, 1) from 0 to 1, where between a real and a drawn picture the slope is looked at."""
    drawn = generator(noise)
    between = real * part + drawn * (1 - part)
    slope = sg.grad(lambda x: critic(x).sum())(between)[between]
    lengths = ((slope * slope).sum((1, 2, 3)) + 1e-12).sqrt()
    return critic(drawn).mean() - critic(real).mean() + PENALTY * ((lengths - 1) ** 2).mean()


def generator_loss(generator: nn.Module, noise: sg.Tensor, critic: nn.Module) -> sg.Tensor:
    return -critic(generator(noise)).mean()


def grid(pictures: np.ndarray, columns: int = 8) -> Image.Image:
    """Pictures (count, 1, height, width) from 0 to 1 beside and below each other."""
    count, _, height, width = pictures.shape
    rows = pictures.reshape(count // columns, columns, height, width).transpose(0, 2, 1, 3)
    return Image.fromarray((rows.reshape(count // columns * height, columns * width) * 255).astype(np.uint8))


def read(pictures: np.ndarray, reader: nn.Module) -> tuple[float, float]:
    """(which part the reader is sure of, by 90% or more; which part of these is of the rarest digit, where 0.1 is the most)."""
    chances = reader(sg.tensor(pictures)).softmax(1).numpy()
    sure = chances.max(1) >= 0.9
    found = np.bincount(chances.argmax(1)[sure], minlength=10)
    return float(sure.mean()), float(found.min() / max(1, found.sum()))


def few() -> data.Dataset:
    """The training images of the part of MNIST that is here."""
    packed = gzip.decompress(PART.read_bytes())
    count, others = np.frombuffer(packed, "<u4", 2)
    labels = np.frombuffer(packed, np.uint8, count, 8)
    images = np.frombuffer(packed, np.uint8, 784 * count, 8 + count + others)
    return data.Dataset.of((images.reshape(-1, 1, 28, 28), labels))


def main(device: str, quick: bool, source: str | None = None, out: str | None = None) -> dict[str, float]:
    images = few() if quick and source is None else data.MNIST(source)
    loader = data.Loader(
        images.partial(0, 96) if quick else images, 16 if quick else BATCH, shuffle=True, drop_last=True,
        transform=data.Augment(data.Normalize(0.0, 255.0)),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    folder = Path(out or "wgan-samples")
    folder.mkdir(parents=True, exist_ok=True)
    shown, others = (rng.standard_normal((count, NOISE), np.float32) for count in (64, 500))
    adam = optim.Adam(5e-4, betas=(0.5, 0.9))
    critic_step = train.TrainStep(critic(rng), adam, critic_loss, device=device)
    generator_step = train.TrainStep(generator(rng), adam, generator_loss, device=device)
    reader = sg.load_weights(Digits(rng), READER)
    found: dict[str, float] = {}
    for epoch in range(1, 2 if quick else 7):
        start, losses = time.perf_counter(), []
        drawer = generator_step.model.train()
        for k, (real, _) in enumerate(loader, 1):
            noise = rng.standard_normal((len(real), NOISE), np.float32)
            part = rng.random((len(real), 1, 1, 1), np.float32)
            losses.append(critic_step(real, noise, part, drawer))
            if k % CRITIC_STEPS == 0:
                generator_step(noise, critic_step.model)
                drawer = generator_step.model.train()
        drawer = generator_step.model
        picture = folder / f"epoch-{epoch}.png"
        grid(drawer(sg.tensor(shown)).numpy()).save(picture)
        sure, rarest = read(drawer(sg.tensor(others)).numpy(), reader)
        seconds = time.perf_counter() - start
        distance = -float(np.mean(losses[-100:]))
        print(f"epoch {epoch}  distance {distance:.3f}  read for sure {sure:.0%}  the rarest digit {rarest:.1%}  "
              f"{seconds:.0f} s  {picture}")  # fmt: skip
        found = {"distance": distance, "sure": sure, "rarest": rarest, "first": -losses[0]}
    return found


if __name__ == "__main__":
    run(
        main, __doc__, data="MNIST's four files; without it they are fetched, or for --quick a part of them is at hand",
        out="for the pictures (default: wgan-samples)",
    )  # fmt: skip
