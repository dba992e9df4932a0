"""The variants of a kernel: which are made, in which order, and what each requires.

A kernel is first printed for plain WebGPU. That text names the features that would make it faster; the kernel is then
printed for those too. The fastest variant comes first, the last runs anywhere; there are at most four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import compress, product
from typing import Final, TypeAlias

from singe.extension import Dim, Port, Printed, Variant

from .shader import ENTRY, PACKED_DOTS, SHADER_F16, SUBGROUP_MATRIX, SUBGROUPS, Shader, Text

FEATURES: Final = (SHADER_F16, SUBGROUPS)
"""The features of devices that a variant may require, the more useful one first."""
Print: TypeAlias = Callable[[Shader], Text]
"""Prints a kernel into a shader, with the features of that shader."""


def variants(ports: Sequence[Port], write: Print, when: Dim = 1, scratch: Dim = 0) -> Printed:
    """A kernel in all its variants. when: a dimension that is 1 at the sizes at which a run uses it, otherwise 0. scratch:
    the bytes of a workspace, which is the last port."""
    sizes: list[Dim] = []
    plain = Shader(ports, frozenset(), sizes)
    last = write(plain)
    some = _abilities(plain.wanted_features)
    texts = [*(write(Shader(ports, frozenset(able), sizes)) for able in some), last]
    found = [Variant(ENTRY, able, (t.groups * when, 1, 1)) for able, t in zip((*some, ()), texts, strict=True)]
    return Printed(tuple(t.code for t in texts), tuple(found), tuple(sizes), scratch=scratch, when=when)


def for_all_sizes(printed: Iterable[Printed]) -> Printed:
    """Joins code that serves some sizes each into code for all sizes."""
    first, *others = printed
    return replace(first, others=tuple(others))


def _abilities(gains: Iterable[str]) -> list[tuple[str, ...]]:
    """The sets of features to print for, the best first. Matrices need all features."""
    features = [word for word in (PACKED_DOTS, *FEATURES) if word in gains]
    some = [tuple(compress(features, chosen)) for chosen in product((True, False), repeat=len(features))]
    return [(*FEATURES, SUBGROUP_MATRIX)] * (SUBGROUP_MATRIX in gains) + some[:-1]
