"""The op that is drawn, with random numbers, shapes, axes and arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

FLOATS: Final = ("float32", "float32", "float32", "float16", "float64")
INTS: Final = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
NUMBERS: Final = (*FLOATS, "int32", "int64", "int8", "uint8")
ANY: Final = (*NUMBERS, "bool", "int16", "uint16", "uint32", "uint64")
OPSETS: Final = (11, 13, 17, 18, 21)


@dataclass
class Node:
    """The op that is drawn. inputs: arrays, None for one that is left out; constant: the numbers of those that must be
    constants; exact: the numbers of outputs whose values are compared without a tolerance."""

    rng: np.random.Generator
    op: str
    opset: int
    inputs: list[np.ndarray | None] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    constant: set[int] = field(default_factory=set)

    def whole(self, low: int, high: int) -> int:
        """A random integer from low to high, inclusive."""
        return int(self.rng.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:
        return choices[self.whole(0, len(choices) - 1)]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def shape(self, low: int = 0, high: int = 4, least: int = 0) -> tuple[int, ...]:
        """A shape of a rank from low to high; one in thirty dimensions is 0 unless `least` says more."""
        rank = self.whole(low, high)
        return tuple(0 if least == 0 and self.chance(0.03) else self.whole(max(least, 1), 5) for _ in range(rank))

    def array(self, shape: Sequence[int], kind: str, low: float = -4, high: float = 4) -> np.ndarray:
        if kind == "bool":
            return self.rng.random(shape) < 0.5
        if kind.startswith("float"):
            return (self.rng.random(shape) * (high - low) + low).astype(kind)
        return self.rng.integers(0 if kind[0] == "u" else int(low), int(high) + 1, shape).astype(kind)

    def give(self, shape: Sequence[int], kind: str, low: float = -4, high: float = 4) -> np.ndarray:
        self.inputs.append(self.array(shape, kind, low, high))
        return self.inputs[-1]  # pyright: ignore[reportReturnType]

    def const(self, values: Any, kind: str = "int64", *, always: bool = False) -> None:
        """An input of these values, which may be a constant or must be."""
        if always or self.chance(0.7):
            self.constant.add(len(self.inputs))
        self.inputs.append(np.array(values, kind))

    def maybe(self, name: str, value: Any, p: float = 0.6) -> None:
        if self.chance(p):
            self.attributes[name] = value

    def axis(self, rank: int) -> int:
        return self.whole(-rank, rank - 1)

    def axes(self, rank: int) -> list[int]:
        """Some axes, counted from either end."""
        some = self.rng.permutation(rank)[: self.whole(1, rank)]
        return [int(a) - (rank if self.chance(0.3) else 0) for a in some]


Draw = Callable[[Node], None]
