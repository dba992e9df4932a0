"""Writes recorded/calls.npz: what PyTorch gives for the calls of call_cases.py and function_calls.py.

Run it with a Python that has torch: `python tests/training/record_calls.py`.
"""

from pathlib import Path

import function_calls
import numpy as np
import torch
from call_cases import CALLS, OPERANDS, parts

names = {name: torch.tensor(array) for name, array in {**OPERANDS, **function_calls.OPERANDS}.items()}
names |= {"torch": torch, "F": torch.nn.functional, "inf": float("inf")}
whole = {
    f"{number}/{k}": np.asarray(part)
    for number, text in enumerate(CALLS + function_calls.CALLS)
    for k, part in enumerate(parts(eval(text, dict(names))))
}
np.savez_compressed(Path(__file__).parent / "recorded" / "calls.npz", **whole)  # pyright: ignore[reportArgumentType]
