"""Writes recorded/functions.npz: what PyTorch's special functions, scans and scatters give.

Run it where PyTorch is installed: `python tests/training/recording/record_functions.py`. tests/training/peers/test_functions.py compares.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from function_cases import CASES, GRADIENTS, arguments


def main() -> None:
    kept: dict[str, Any] = {}
    for name, case in CASES.items():
        given = [torch.tensor(a) for a in arguments(case)]
        result = case.call(*given)
        for k, part in enumerate(result if isinstance(result, tuple) else (result,)):
            kept[f"{name}/{k}"] = part.numpy()
    for name in GRADIENTS:
        case = CASES[name]
        given = [torch.tensor(a) for a in arguments(case)]
        given[0].requires_grad_()
        result = case.call(*given)
        (result[0] if isinstance(result, tuple) else result).sum().backward()
        kept[f"{name}/gradient"] = given[0].grad.numpy()  # pyright: ignore[reportOptionalMemberAccess]
    np.savez_compressed(Path(__file__).parents[1] / "recorded" / "functions.npz", **kept)


if __name__ == "__main__":
    main()
