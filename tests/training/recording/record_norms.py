"""Writes recorded/norms.npz: what PyTorch's norms give in training and after it, and their running statistics.

Run it with a Python that has torch: `python tests/training/recording/record_norms.py`.
"""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from norm_cases import CASES, Case, batches, weights


def recorded(case: Case) -> dict[str, np.ndarray]:
    layer = getattr(torch.nn, case.layer)(*case.arguments, **case.options)
    given = weights({name: tuple(t.shape) for name, t in layer.named_parameters()})
    layer.load_state_dict({k: torch.tensor(v) for k, v in given.items()}, strict=False)
    layer = layer.double().train()
    x = y = torch.zeros(())
    for batch in batches(case):
        x = torch.tensor(batch).double()
        y = layer(x)
    buffers = {name: t.numpy() for name, t in layer.named_buffers()}
    return {"trained": y.detach().numpy(), "after": layer.eval()(x).detach().numpy(), **buffers}


found = {f"{name}/{key}": array for name, case in CASES.items() for key, array in recorded(case).items()}
small = {k: a.astype(np.float32) if a.dtype == np.float64 else a for k, a in found.items()}
np.savez_compressed(Path(__file__).parents[1] / "recorded" / "norms.npz", **small)  # pyright: ignore[reportArgumentType]
