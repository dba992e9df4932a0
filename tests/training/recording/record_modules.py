"""Writes recorded/modules.npz: PyTorch's gradients of layers by their inputs and parameters, or results, computed in float64.

Run it with a Python that has torch: `python tests/training/recording/record_modules.py`.
"""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from module_cases import CASES, Case, factors, inputs, weights


def recorded(case: Case) -> dict[str, np.ndarray]:
    layer = case.build(torch.nn)
    given = weights({name: tuple(t.shape) for name, t in layer.named_parameters()})
    layer.load_state_dict({k: torch.tensor(v) for k, v in given.items()}, strict=False)
    layer = layer.double()
    floats = case.integers is None
    arrays = [
        torch.tensor(a).double().requires_grad_() if a.dtype.kind == "f" else torch.tensor(a) for a in inputs(case)
    ]
    y = layer(*arrays)
    y = y[0] if isinstance(y, tuple) else y
    if case.result:
        return {"result": y.detach().numpy().astype(np.float32)}
    (y * torch.tensor(factors(tuple(y.shape)))).sum().backward()
    by = {f"input{k}": x.grad for k, x in enumerate(arrays)} if floats else {}
    by |= {name: t.grad for name, t in layer.named_parameters()}
    return {name: g.numpy().astype(np.float32) for name, g in by.items() if g is not None}


whole = {f"{name}/{key}": array for name, case in CASES.items() for key, array in recorded(case).items()}
np.savez_compressed(Path(__file__).parents[1] / "recorded" / "modules.npz", **whole)  # pyright: ignore[reportArgumentType]
