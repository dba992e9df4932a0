"""How the variants of a kernel are made, ordered and required.

A kernel is printed for devices that can do nothing beyond WebGPU. What that text says it would gain by, it is printed
for as well. The best stands first, and the last runs anywhere; there are four at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress, product
from typing import Final, TypeAlias

from singe.extension import Dim, Port, Printed, Variant

from .module import ENTRY, SHADER_F16, SUBGROUP_MATRIX, SUBGROUPS, Module, Text

FEATURES: Final = (SHADER_F16, SUBGROUPS)
"""The features that a variant may require, the one that gains more first."""
Write: TypeAlias = Callable[[Module], Text]
"""What prints a kernel into a module, for what devices of that module can do."""


def variants(ports: Sequence[Port], write: Write) -> Printed:
    """A kernel in all its variants."""
    sizes: list[Dim] = []
    plain = Module(ports, frozenset(), sizes)
    last = write(plain)
    some = _abilities(plain.gains)
    texts = [*(write(Module(ports, frozenset(able), sizes)) for able in some), last]
    found = [Variant(ENTRY, able, (t.groups, 1, 1)) for able, t in zip((*some, ()), texts, strict=True)]
    return Printed(tuple(t.code for t in texts), tuple(found), tuple(sizes))


def _abilities(gains: Iterable[str]) -> list[tuple[str, ...]]:
    """What devices may have of that by which a kernel gains, the best first. Matrices need all of it."""
    features = [word for word in FEATURES if word in gains]
    some = [tuple(compress(features, chosen)) for chosen in product((True, False), repeat=len(features))]
    return [(*FEATURES, SUBGROUP_MATRIX)] * (SUBGROUP_MATRIX in gains) + some[:-1]
