"""The protocol of a Target, a code generator: Kernels and Routines in, text or bytes out.

A Target needs no device. It is found through the entry-point group `singe.targets`, so that this package imports no code
generator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from ..dtypes import DType
from ..ir.kernel import Kernel, Routine
from ..plugins import load, names
from ..program.program import Variant
from ..shapes import Dim, Shape

GROUP: Final = "singe.targets"
HOST: Final = "host"
"""The target's name in Programs of host steps, which need no code generator."""
Packer: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""An array of weights (or of their channel numbers) ↦ its elements in the order in which a kernel reads them."""


@dataclass(frozen=True)
class Printed:
    """What a Target makes of one Kernel or Routine.

    code is the target's own (text, a function's body); equal code is kept once. packers gives, for ports whose buffer is
    a constant, the function that lays its elements out as the code reads them. scratch is the bytes of a workspace that
    the code takes as one more port, after the others. Code may depend on how large open sizes are: `others` is then code
    for the same ports, to be dispatched after this; at each of all sizes one of them does the work, where its `when` is
    1. Where that is 0, code has no workgroups.
    """

    code: Any
    variants: tuple[Variant, ...]
    sizes: tuple[Dim, ...]
    packers: Mapping[int, Packer] = field(default_factory=dict)
    scratch: Dim = 0
    when: Dim = 1
    others: tuple[Printed, ...] = ()


class Target(Protocol):
    """A code generator: Kernels and Routines in, text or bytes out."""

    name: str
    max_ports: int  # buffers that one kernel may name (the scratch port included)
    integers: bool  # whether it has kernels for products and convolutions in 8-bit integers that beat those in float32
    counted: int  # the longest axis that is sorted by counting (order.py), the square of its length in comparisons
    networks: bool  # whether sorting networks (order.py) beat reading the elements back and sorting them on the host
    repeated: int  # up to so many operations on coordinates and open sizes, for each element, beat one more kernel
    dtypes: frozenset[DType]  # element types that its kernels read, compute and write

    def element_size(self, dtype: DType) -> int:
        """Bytes of one element in device memory (WGSL has no bytes, so a bool has four)."""
        ...

    def print(self, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
        """The code for a kernel; `constants` are the ports whose contents are known, so that they can be packed. None for
        a Routine for which it has no template: the compiler then prints the Kernel, and does not fuse a pooling into it."""
        ...

    def print_opaque(
        self,
        op: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[tuple[Shape, DType]],
        results: Sequence[tuple[Shape, DType]],
    ) -> Printed | None:
        """The target's own function for an op that is no loop nest; its ports are the inputs, then the results. None if
        it has no function: the op is then a step on the host."""
        ...

    def link(self, printed: Sequence[Printed]) -> tuple[Mapping[str, str | bytes], Sequence[Sequence[Variant]]]:
        """The code of a whole Program as named modules, and each kernel's variants, with their entries in the
        modules."""
        ...


def target_names() -> tuple[str, ...]:
    return names(GROUP)


def find_target(name: str) -> Target:
    """The code generator with this name."""
    return load(GROUP, name, "target")()


def name_of(target: Target | None) -> str:
    """The target's name in its Programs; HOST for Programs that need no target."""
    return HOST if target is None else target.name
