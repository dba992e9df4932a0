"""Weights of PyTorch, fine-tuned three ways: only the last layer, by differences of low rank (LoRA), and all of them.

shapes.pt is a file that `torch.save(model.state_dict(), …)` wrote (by pretrain_torch.py): a network that tells four shapes,
bright on dark, in pictures of 16 × 16. `load_weights` reads it without PyTorch; layers that have PyTorch's names take it as it
is. The new task: the same shapes under five times the noise, of which there are 64 pictures only. Beside the three ways, the
same network is trained on them from the start.

    python demos/training/fine_tuning.py [--device wasm] [--quick]
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from command import run
from pictures import SHAPES, pictures

import singe as sg
from singe import data, nn, optim, train

NOISE = 0.5
WEIGHTS = Path(__file__).with_name("shapes.pt")


def network(seed: int = 0) -> nn.Sequential:
    """What pretrain_torch.py writes in PyTorch's words."""
    rng = np.random.default_rng(seed)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, rng=rng), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1, rng=rng), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 32, rng=rng), nn.ReLU(), nn.Linear(32, len(SHAPES), rng=rng),
    )  # fmt: skip


def right(model: nn.Module, noise: float) -> float:
    """Which part of new pictures is told right."""
    x, y = pictures(1000, seed=10**6, noise=noise)
    return float((model.to("numpy")(sg.tensor(x)).numpy().argmax(1) == y).mean())


def main(device: str, quick: bool) -> dict[str, float]:
    trained = sg.load_weights(network(), WEIGHTS)
    found = {"shapes": right(trained, 0.1), "new task": right(trained, NOISE)}
    print(f"as PyTorch trained it: {found['shapes']:.1%} right, under more noise {found['new task']:.1%}")
    ways = {
        "last layer": trained.freeze("*").unfreeze("9.*"),
        "LoRA": nn.lora(trained, rank=4, patterns=["*.weight"], rng=0),
        "all weights": trained,
        "from the start": network(1),
    }
    loader = data.Loader(pictures(64, seed=1, noise=NOISE), 32, shuffle=True)
    for name, model in ways.items():
        start = time.perf_counter()
        step = train.TrainStep(model, optim.AdamW(3e-3), nn.CrossEntropyLoss(), device=device)
        for _ in range(5 if quick else 50):
            for x, y in loader:
                step(x, y)
        tuned = nn.merged(step.model)  # plain layers again, to save or to export
        seconds = time.perf_counter() - start
        count = sum(p.size for p in model.parameters())
        found[name] = right(tuned, NOISE)
        print(f"{name:15} {count:6} weights learned, {found[name]:.1%} right, {seconds:.1f} s")
    return found


if __name__ == "__main__":
    run(main, __doc__)
