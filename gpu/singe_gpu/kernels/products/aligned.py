"""Matrix products whose rows are whole vectors in memory only if the open sizes are multiples of four.

Such a product is printed twice, for multiples of four and for all other sizes; a run's sizes select one. The text for
multiples of four uses L for a quarter of a size, so that the size is 4·L, provably a multiple of four.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from singe.extension import (
    Contraction,
    Dim,
    Printed,
    Routine,
    ceildiv,
    contraction,
    dim_min,
    evaluate,
    product,
    size,
    symbols,
)

from ...code.shader import Shader
from ...dialect import Dialect
from ..vectorize import VECTOR_LENGTH
from .operands import quads_of


@dataclass(frozen=True)
class Form:
    """A product for some of the sizes. when: 1 at these sizes, otherwise 0. whole: its sizes, as functions of a run's."""

    routine: Routine
    contraction: Contraction
    when: Dim = 1
    whole_vectors: Mapping[str, Dim] = field(default_factory=dict)

    def of_sizes(self, printed: Printed) -> Printed:
        """The printed code, with all dimensions in terms of a run's sizes."""

        def whole(dim: Dim) -> Dim:
            return evaluate(dim, self.whole_vectors)

        variants = tuple(replace(v, groups=(whole(v.groups[0]) * self.when, *v.groups[1:])) for v in printed.variants)
        return replace(
            printed, variants=variants, sizes=tuple(map(whole, printed.sizes)), when=whole(printed.when) * self.when
        )


def forms(dialect: Dialect, routine: Routine, c: Contraction) -> list[Form]:
    """The product in one form for all sizes, or in two if multiples of four allow more vector loads or stores."""
    plain = Form(routine, c)
    names = sorted(symbols([c.rows, c.columns, c.depth]))
    if not names or routine.kind != "matmul":
        return [plain]
    fours = replace(routine, kernel=routine.kernel.at({name: VECTOR_LENGTH * size(name) for name in names}))
    found = contraction(fours)
    if found is None or len(_quads(dialect, found)) <= len(_quads(dialect, c)):
        return [plain]
    when = product(1 - dim_min(size(name) % VECTOR_LENGTH, 1) for name in names)
    # Rounded up: a run of other sizes evaluates the dimensions of both forms, which may divide by a size.
    quarters = {name: ceildiv(size(name), VECTOR_LENGTH) for name in names}
    return [Form(fours, found, when, quarters), replace(plain, when=1 - when)]


def _quads(dialect: Dialect, c: Contraction) -> frozenset[str]:
    return quads_of(Shader(dialect, c.kernel.ports), c)
