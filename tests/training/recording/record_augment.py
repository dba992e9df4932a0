"""Writes recorded/augment.npz: images after torchvision's affine maps, and statistics of its random transforms.

Run it with a Python that has torch and torchvision: `python tests/training/recording/record_augment.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

CASES = (  # angle, right, down, scale, shear in x and y
    (0, 0, 0, 1.0, 0, 0), (30, 0, 0, 1.0, 0, 0), (-75, 0, 0, 1.0, 0, 0), (0, 2, -3, 1.0, 0, 0), (0, 0, 0, 1.3, 0, 0),
    (0, 0, 0, 0.6, 0, 0), (0, 0, 0, 1.0, 20, 0), (0, 0, 0, 1.0, 0, -15), (12, 1, 2, 1.1, 8, 5), (170, -4, 1, 0.8, -10, 10),
)  # fmt: skip


def fields(alpha: float, sigma: float, size: int, count: int) -> np.ndarray:
    """Displacements in pixels."""
    transform = v2.ElasticTransform(alpha, sigma)
    drawn = [transform.make_params([torch.zeros(1, size, size)])["displacement"] for _ in range(count)]
    return (torch.cat(drawn) * size / 2).numpy()


def main() -> None:
    torch.manual_seed(0)
    images = torch.rand(3, 2, 11, 14, generator=torch.Generator().manual_seed(1)) * 10
    out: dict[str, np.ndarray] = {"images": images.numpy(), "cases": np.array(CASES, np.float32)}
    for i, (angle, right, down, scale, sx, sy) in enumerate(CASES):
        bilinear = v2.InterpolationMode.BILINEAR
        out[f"affine{i}"] = functional.affine(images, angle, [right, down], scale, [sx, sy], bilinear).numpy()
    for sigma in (3.0, 5.0):
        found = fields(40.0, sigma, 28, 2000)[:, 10:18, 10:18].astype(np.float64)  # far from the reflected edge
        pairs = [(found[:, :, lag:] * found[:, :, : 8 - lag]).mean() for lag in range(8)]
        out[f"elastic{sigma:g}"] = np.array(pairs)
    parts = []
    for _ in range(4000):
        erased = v2.RandomErasing(p=1.0)(torch.ones(1, 28, 28))[0] == 0
        parts.append((erased.float().mean().item(), erased.any(0).sum().item(), erased.any(1).sum().item()))
    out["erased"] = np.array(parts).mean(0)
    np.savez_compressed(Path(__file__).parents[1] / "recorded" / "augment.npz", allow_pickle=False, **out)


if __name__ == "__main__":
    main()
