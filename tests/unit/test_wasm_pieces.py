"""A map that chooses between sources along its last loop is cut there; the pieces compute what the whole means."""

from __future__ import annotations

import numpy as np
import pytest
from test_wasm_kernels import check, g

from singe import scalar as s
from singe._dtypes import float32
from singe._shape import Dim, size
from singe.kernel import Kernel, Port, Store
from singe_wasm.kernels.nest import lane_cost
from singe_wasm.kernels.pieces import pieces

N = size("N")


def _joined(*widths: int) -> s.Expr:
    """Row g0 of matrices side by side, as concatenation spells it."""
    i, j = g(0, N), g(1, sum(widths))
    value: s.Expr | None = None
    end = sum(widths)
    for port, width in reversed(list(enumerate(widths))):
        end -= width
        load = s.load(port, i * width + s.clip(j - end, 0, width - 1), float32)
        value = load if value is None else s.select(s.lt(j, end + width), load, value)
    assert value is not None
    return value


def _padded(before: int, width: int, after: int) -> s.Expr:
    i, j = g(0, N), g(1, before + width + after)
    inside = s.and_(s.le(before, j), s.not_(s.lt(before + width - 1, j)))
    return s.select(inside, s.load(0, i * width + s.clip(j - before, 0, width - 1), float32), 0.0)


CASES: dict[str, tuple[s.Expr, list[int], list[int]]] = {
    "halves": (_joined(24, 24), [24, 24], [24, 24]),
    "one and many": (_joined(1, 32), [1, 32], [1, 32]),
    "unequal": (_joined(5, 17, 9, 4), [5, 17, 9, 4], [5, 17, 9, 4]),
    "padding": (_padded(3, 17, 6), [17], [3, 17, 6]),
    "padding at one side": (_padded(0, 12, 5), [12], [12, 5]),
    "single elements": (_joined(*[1] * 8), [1] * 8, [8]),
    "more than are worth it": (_joined(*[4] * 12), [4] * 12, [48]),
}


@pytest.mark.parametrize("name", CASES)
def test_pieces(name: str) -> None:
    value, widths, expected = CASES[name]
    total = sum(expected)
    ports = (*[Port(float32)] * len(widths), Port(float32, True))
    kernel = Kernel(ports, (N, total), (), (Store(len(widths), g(0, N) * total + g(1, total), value),))
    made = pieces(kernel)
    extents: list[Dim] = [p.grid[-1] for p in made]
    assert extents == expected
    if len(made) > 1:
        assert all(lane_cost(p, p.stages, p.grid_vars[-1]) is not None for p in made if p.grid[-1] != 1)
    rng = np.random.default_rng(0)
    for rows in (0, 1, 15):
        given = [rng.standard_normal(rows * w).astype(np.float32) for w in widths]
        check(kernel, [*given, np.zeros(rows * total, np.float32)], {"N": rows})
