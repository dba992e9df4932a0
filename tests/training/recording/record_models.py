"""Writes recorded/models.npz: the first weights of models of PyTorch, and losses, gradients and statistics of steps of SGD.

Run it with a Python that has torch: `python tests/training/recording/record_models.py`.
"""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from model_cases import CASES, RATE, STEPS, Case, batches


def recorded(case: Case) -> dict[str, np.ndarray]:
    torch.manual_seed(0)
    model = case.build(torch.nn)
    found = {f"first/{name}": t.numpy().copy() for name, t in model.state_dict().items()}
    model = model.double().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for step, batch in enumerate(batches(case)):
        *inputs, target = (torch.tensor(a.astype(np.float64) if a.dtype == np.float32 else a) for a in batch)
        loss = torch.nn.functional.cross_entropy(model(*inputs), target)
        optimizer.zero_grad()
        loss.backward()
        found[f"{step}/loss"] = loss.detach().numpy()
        if step in (0, STEPS - 1):
            found |= {f"{step}/{name}": t.grad.numpy().copy() for name, t in model.named_parameters()}
        optimizer.step()
    return found | {f"last/{name}": t.numpy() for name, t in model.state_dict().items()}


whole = {f"{name}/{key}": array for name, case in CASES.items() for key, array in recorded(case).items()}
small = {k: a.astype(np.float32) if a.dtype == np.float64 else a for k, a in whole.items()}
np.savez_compressed(Path(__file__).parents[1] / "recorded" / "models.npz", **small)  # pyright: ignore[reportArgumentType]
