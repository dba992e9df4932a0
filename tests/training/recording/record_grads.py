"""Writes recorded/grads.npz: PyTorch's gradients of layers, by inputs and parameters, computed in float64.

Run it with a Python that has torch: `python tests/training/recording/record_grads.py`.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from grad_cases import CASES, Case, seed, values, weights


def flat(tree: Any) -> list[torch.Tensor]:
    return [t for part in tree for t in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


def tensors(given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple(map(tensors, given))
    t = torch.tensor(given)
    return t.double().requires_grad_() if t.is_floating_point() else t


def recorded(case: Case) -> dict[str, np.ndarray]:
    layer = getattr(torch.nn, case.layer)(*case.arguments, **case.options).double().train(case.training)
    given = weights({name: tuple(t.shape) for name, t in layer.named_parameters()})
    layer.load_state_dict({k: torch.tensor(v).double() for k, v in given.items()}, strict=False)
    inputs = tensors(values(case))
    results = [y for y in flat(layer(*inputs)) if y is not None]
    loss = sum((torch.tensor(seed(tuple(y.shape))) * y).sum() for y in results)
    leaves = {f"input {k}": x for k, x in enumerate(flat(inputs)) if x.is_floating_point()}
    leaves |= dict(layer.named_parameters())
    grads = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)  # pyright: ignore[reportArgumentType]
    return {k: np.zeros(x.shape) if g is None else g.numpy() for (k, x), g in zip(leaves.items(), grads, strict=True)}


found = {f"{name}/{key}": array for name, case in CASES.items() for key, array in recorded(case).items()}
# One array of all numbers: many small ones take a third more room.
names, arrays = list(found), [a.astype(np.float32) for a in found.values()]
np.savez_compressed(
    Path(__file__).parents[1] / "recorded" / "grads.npz",
    names=np.array(names),
    sizes=np.array([a.size for a in arrays]),
    values=np.concatenate([a.ravel() for a in arrays]),
)
