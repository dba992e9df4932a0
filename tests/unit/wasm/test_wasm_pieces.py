"""A kernel that selects between sources along its last loop is split there; the pieces compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from devices import few
from wasm_checks import check, g

import singe as sg
from singe.dtypes import float32, int32
from singe.ir import scalar as s
from singe.ir.kernel import Kernel, Port, Reduce, Store
from singe.model.model import Model
from singe.shapes import Dim, size
from singe_wasm.kernels.lanes import choose_lane, lane_cost
from singe_wasm.kernels.split_loops import column_pieces, kernel_pieces

N = size("N")


def _joined(*widths: int) -> s.Expr:
    """Row g0 of matrices side by side, in the form of a concatenation."""
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


WINDOWS: dict[str, tuple[int, int, int, int, list[int]]] = {
    "over channels": (64, 5, 1, 2, [2, 60, 2]),
    "at one side": (33, 3, 1, 0, [31, 2]),
    "as wide as all": (9, 9, 1, 4, [9]),
    "even": (16, 4, 1, 1, [1, 13, 2]),
    "two apart": (64, 3, 2, 1, [1, 31]),
    "two apart, of an odd number": (63, 3, 2, 1, [1, 30, 1]),
    "three apart": (90, 3, 3, 2, [1, 29, 1]),
    "from the right": (64, 3, -2, 1, [32]),
}
"""The channels, the window over them, the distance of windows, the padding before, and the expected pieces."""


@few(4, "name", WINDOWS)
def test_windows_over_the_last_axis(name: str) -> None:
    channels, window, apart, before, expected = WINDOWS[name]
    width = sum(expected)
    i, j, r = g(0, N), g(1, width), s.var("r0", int32, window)
    place = j * apart + r - before if apart > 0 else channels + before - 1 + j * apart - r
    inside = (place >= 0) & (place < channels)
    value = s.select(inside, s.load(0, i * channels + s.clip(place, 0, channels - 1), float32), 0.0)
    total = Reduce("a0", "add", value)
    ports = (Port(float32), Port(float32, True))
    stages = (total, Store(1, i * width + j, s.exp(total.accumulator * -0.1)))
    kernel = Kernel(ports, (N, width), (window,), stages)
    made = kernel_pieces(kernel)
    assert [p.grid[-1] for p in made] == expected
    longest = made[expected.index(max(expected))]
    assert len(made) == 1 or choose_lane(longest) == (longest.grid_vars[-1], False)
    rng = np.random.default_rng(0)
    for rows in (0, 1, 15):
        x = rng.standard_normal(rows * channels).astype(np.float32)
        check(kernel, [x, np.zeros(rows * width, np.float32)], {"N": rows})


@pytest.mark.parametrize("name", CASES)
def test_pieces(name: str) -> None:
    value, widths, expected = CASES[name]
    total = sum(expected)
    ports = (*[Port(float32)] * len(widths), Port(float32, True))
    kernel = Kernel(ports, (N, total), (), (Store(len(widths), g(0, N) * total + g(1, total), value),))
    made = kernel_pieces(kernel)
    extents: list[Dim] = [p.grid[-1] for p in made]
    assert extents == expected
    if len(made) > 1:
        assert all(lane_cost(p, p.stages, p.grid_vars[-1]) is not None for p in made if p.grid[-1] != 1)
    rng = np.random.default_rng(0)
    for rows in (0, 1, 15):
        given = [rng.standard_normal(rows * w).astype(np.float32) for w in widths]
        check(kernel, [*given, np.zeros(rows * total, np.float32)], {"N": rows})


@pytest.mark.slow
@few(2, "widths", [(24, 28), (36, 42), (17, 33), (3, 16), (40, 44)])
@pytest.mark.parametrize("rows", [1, 13, "rows"])
def test_products_that_are_added_to_what_stands_side_by_side(widths: tuple[int, int], rows: int | str) -> None:
    before, columns = widths
    rng = np.random.default_rng(before)
    weights = rng.standard_normal((9, columns)).astype(np.float32)

    def net(x: sg.Tensor, left: sg.Tensor, right: sg.Tensor) -> dict[str, sg.Tensor]:
        return {"y": (x @ sg.tensor(weights) + sg.concatenate([left, right], axis=1)).maximum(0.0)}

    shapes = {"x": (rows, 9), "left": (rows, before), "right": (rows, columns - before)}
    model = Model.of(net, shapes, "wasm")
    count = rows if isinstance(rows, int) else 13
    x, left, right = (rng.standard_normal((count, width)).astype(np.float32) for width in (9, before, columns - before))
    wanted = np.maximum(x @ weights + np.concatenate([left, right], 1), 0)
    np.testing.assert_allclose(model(x, left, right), wanted, rtol=1e-5, atol=1e-5)


def test_the_pieces_of_what_a_product_stores() -> None:
    m, n = s.var("m", int32, N), s.var("n", int32, 42)
    value = s.select(
        s.lt(n, 36), s.load(0, m * 36 + s.clip(n, 0, 35), float32), s.load(1, m * 6 + s.clip(n - 36, 0, 5), float32)
    )
    kernel = Kernel((Port(float32), Port(float32), Port(float32, True)), (N, 42), (), ())
    assert [p.stop for p in column_pieces(kernel, Store(2, m * 42 + n, value), n, 42)] == [36, 42]
