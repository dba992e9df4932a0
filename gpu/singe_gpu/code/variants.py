"""The variants of a kernel: which are made, in which order, and what each requires.

A kernel is first printed without features. That text names the features that would make it faster; the kernel is then
printed for those too. The fastest variant comes first, the last runs anywhere; there are at most five.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import compress, product
from typing import Final, TypeAlias

from singe.extension import Dim, Port, Printed, Variant

from ..dialect import ENTRY, INTEGER_MATRIX, PACKED_MATRIX, SHADER_F16, SUBGROUP_MATRIX, SUBGROUPS, WIDE_MATRIX, Dialect
from .shader import Shader, Text

MATRIX_FEATURES: Final = (SHADER_F16, SUBGROUPS, SUBGROUP_MATRIX)
"""The features that a text with subgroup matrices requires."""
WIDE_FEATURES: Final = (*MATRIX_FEATURES, WIDE_MATRIX)
"""Those of a text in a wide cut."""
_ON_MATRICES: Final = {
    WIDE_MATRIX: WIDE_FEATURES,
    SUBGROUP_MATRIX: MATRIX_FEATURES,
    INTEGER_MATRIX: (SUBGROUPS, INTEGER_MATRIX),
    PACKED_MATRIX: (SUBGROUPS, PACKED_MATRIX),
}
Print: TypeAlias = Callable[[Shader], Text]
"""Prints a kernel into a shader, with the features of that shader."""


def variants(dialect: Dialect, ports: Sequence[Port], write: Print, when: Dim = 1, scratch: Dim = 0) -> Printed:
    """A kernel in all its variants. when: a dimension that is 1 at the sizes at which a run uses it, otherwise 0. scratch:
    the bytes of a workspace, which is the last port."""
    sizes: list[Dim] = []
    plain = Shader(dialect, ports, frozenset(), sizes)
    last = write(plain)
    some = _feature_sets(dialect, plain.wanted_features)
    texts = [*(write(Shader(dialect, ports, frozenset(able), sizes)) for able in some), last]
    found = [Variant(ENTRY, able, (t.groups * when, 1, 1)) for able, t in zip((*some, ()), texts, strict=True)]
    return Printed(tuple(t.code for t in texts), tuple(found), tuple(sizes), scratch=scratch, when=when)


def for_all_sizes(printed: Iterable[Printed]) -> Printed:
    """Joins code that serves some sizes each into code for all sizes."""
    first, *others = printed
    return replace(first, others=tuple(others))


def _feature_sets(dialect: Dialect, wanted: Collection[str]) -> list[tuple[str, ...]]:
    """The sets of features to print for, the best first."""
    features = [word for word in dialect.features if word in wanted]
    others = [word for word in features if word not in _ON_MATRICES]
    some = [tuple(compress(others, chosen)) for chosen in product((True, False), repeat=len(others))]
    return [needed for word, needed in _ON_MATRICES.items() if word in features] + some[:-1]
