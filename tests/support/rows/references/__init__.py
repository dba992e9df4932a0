"""What rows compute, once more: by the name of a row, its definition in NumPy, which shares no code with the row. It is an oracle
for tests, element by element where the definition is long, and computes in the type of its arrays, float64 in tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from . import elementwise, folds, fourier, movement, products, random_numbers, sampling

REFERENCES: Final[Mapping[str, Callable[..., Any]]] = {
    name: reference
    for module in (elementwise, folds, fourier, movement, products, random_numbers, sampling)
    for name, reference in module.REFERENCES.items()
}
