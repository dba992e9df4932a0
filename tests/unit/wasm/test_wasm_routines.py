"""The matmul and conv templates of the target "wasm" compute the same as the Routine's Kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from devices import slow
from wasm_checks import ONE, SAME, check, convolution, matrices

from singe.dtypes import float16, int32
from singe.ir.kernel import Routine
from singe.shapes import Dim, known, size
from singe_wasm.kernels.products import contraction, depthwise, feeds, planar, product, winograd

N = size("N")


def _buffers(routine: Routine, shapes: list[tuple[Dim, ...]], sizes: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    out = []
    for port, shape in zip(routine.ports, shapes, strict=True):
        count = int(np.prod([known(d, sizes) for d in shape], dtype=np.int64))
        out.append(
            np.zeros(count, port.dtype.numpy) if port.written else rng.standard_normal(count).astype(port.dtype.numpy)
        )
    return out


# --- matmul ----------------------------------------------------------------------------------------------------------


def check_product(*given: Any, constant: bool, at: int = 1, **options: Any) -> None:
    routine, shapes = matrices(*given, **options)
    sizes = {"N": at}
    check(routine, _buffers(routine, shapes, sizes), sizes, [1] if constant else [], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 7, 8, 9, 13, 17, 33])
def test_matmul_of_many_shapes(m: int, constant: bool) -> None:
    for number, n in enumerate((1, 2, 3, 4, 5, 7, 8, 9, 12, 17, 33)):
        check_product(m, n, (1, 2, 3, 5, 7, 8, 9, 17, 33)[(7 * m + number) % 9], constant=constant)


@pytest.mark.slow
@pytest.mark.parametrize("constant", [True, *slow(False)])
@pytest.mark.parametrize(
    "options",
    [
        {"batch": (3,)}, {"batch": (2, 3), "shared": True}, {"prologue": True}, {"transposed": True}, {"plain": True}, {"out": int32},
        {"batch": (2,), "prologue": True, "transposed": True},
    ],
    ids=str,
)  # fmt: skip
def test_matmul_with_what_surrounds_it(options: dict[str, Any], constant: bool) -> None:
    for shape in ((5, 9, 7), (12, 16, 8), (7, 12, 3), (1, 9, 5)):
        check_product(*shape, constant=constant, **options)


@pytest.mark.slow
@pytest.mark.parametrize("constant", [True, False])
def test_matmul_whose_values_are_wide_but_not_their_places(constant: bool) -> None:
    for shape in ((17, 8, 5), (7, 16, 9), (9, 4, 6), (5, 12, 3), (8, 10, 4)):
        for options in ({}, {"batch": (2,)}, {"prologue": True}, {"out": int32}):
            check_product(*shape, constant=constant, pairs=True, **options)


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 13])
def test_matmul_of_symbolic_sizes(count: int) -> None:
    for options in ({}, {"prologue": True}, {"transposed": True}, {"batch": (2,)}):
        for constant in (True, False):
            check_product(N, 9, 5, constant=constant, at=count, **options)
            check_product(N * 4, 8, 5, constant=constant, at=count, **options)
        check_product(5, 7, N, constant=False, at=count, **options)
        check_product(6, N, 5, constant=False, at=count, **options)
        check_product(5, 5, 5, constant=False, at=count, **{**options, "batch": (N,)})


@pytest.mark.slow
@pytest.mark.parametrize("columns", [8, 33, *slow(17, 24, 40, 64, 70, 100)])
def test_few_rows_of_an_open_number_take_several_panels(columns: int) -> None:
    for constant in (True, False):
        for options in ({}, {"prologue": True}, {"batch": (2,)}, {"pairs": True}):
            for count in (1, 2, 7):
                if not ("pairs" in options and columns % 2):
                    check_product(N, columns, 5, constant=constant, at=count, **options)


@pytest.mark.parametrize(
    ("extents", "panels"),
    [
        ((N, 64, 16), {1: 4, 2: 2}),
        ((N, 40, 16), {1: 3, 2: 2}),
        ((N, 9, 16), {1: 2, 2: 2}),
        ((N, 4, 16), {}),
        ((N, N, 16), {1: 4, 2: 2}),
        ((N, 64, N), {}),
        ((8 * N, 64, 16), {}),
        ((7, 64, 16), {}),
        ((1, 64, 16), {}),
    ],
)
def test_panels_across_hide_the_latency_of_additions(extents: tuple[Dim, Dim, Dim], panels: dict[int, int]) -> None:
    """Only where there may be few rows: a tile of a row and a panel is two accumulators."""
    made = contraction.schedule(matrices(*extents)[0], ())
    if made is None:
        made = contraction.schedule(matrices(*extents)[0], {1})
    assert made is not None
    assert product.panels_across(made.c, made.tile(True)) == panels


@pytest.mark.parametrize(("rows", "panels"), [(1, {1: 4}), (2, {2: 2}), (3, {3: 2})])
def test_few_rows_may_share_the_weights_of_an_open_number_of_them(rows: int, panels: dict[int, int]) -> None:
    opened, few, many = (contraction.schedule(matrices(m, 64, 16)[0], {1}) for m in (N, rows, 4))
    assert opened is not None
    assert few is not None
    assert many is not None
    assert few.sharing is not None
    assert few.columns != few.sharing.columns == many.columns == opened.columns
    assert opened.sharing is many.sharing is few.sharing.sharing is None
    assert product.panels_across(few.c, few.sharing.tile(True)) == panels


@pytest.mark.slow
@pytest.mark.parametrize("constant", [True, False])
def test_matmul_in_blocks_of_columns(constant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones, with a small cache."""
    monkeypatch.setattr(product, "CACHE_BYTES", 1 << 10)
    for shape in ((13, 40, 33), (5, 100, 17), (40, 33, 64), (N, 40, 33)):
        for options in ({}, {"prologue": True}, {"batch": (2,)}):
            check_product(*shape, constant=constant, at=13, **options)


@pytest.mark.parametrize(
    ("extents", "columns"),
    [
        ((256, 256, 256), None),
        ((9, 1024, 1024), 256),
        ((9, 1000, 1024), 256),
        ((9, 64, 1 << 20), 8),
        ((9, 2048, N), None),
    ],
)
def test_blocks_fit_the_cache(extents: tuple[Dim, Dim, Dim], columns: int | None) -> None:
    routine, _ = matrices(*extents)
    made = contraction.schedule(routine, ())
    assert made is not None
    assert product.block_columns(made.c, product.RELAXED) == columns


def test_the_template_takes_what_it_should() -> None:
    made = contraction.schedule(matrices(12, 16, 8)[0], {1})
    assert made is not None
    assert made.packed
    batched = contraction.schedule(matrices(12, 16, 8, batch=(3,))[0], {1})
    assert batched is not None
    assert batched.packed
    assert contraction.schedule(matrices(5, 16, 8)[0], ()) is not None
    assert contraction.schedule(matrices(3, 16, 8)[0], ()) is None
    assert contraction.schedule(matrices(12, 1, 8)[0], {1}) is None


# --- conv ------------------------------------------------------------------------------------------------------------


CASES: dict[str, tuple[Any, ...]] = {
    "1-d, strided": ((11,), 3, 7, (5,), (2,), (1,), ((2, 3),)),
    "first layer": ((9, 8), 3, 16, (3, 3), (2, 2), (1, 1), (SAME, SAME)),
    "pointwise": ((5, 6), 4, 5, (1, 1)),
    "pointwise, strided": ((5, 6), 4, 8, (1, 1), (2, 2)),
    "one position": ((1, 1), 8, 12, (1, 1)),
    "window as large as the input": ((3, 3), 8, 12, (3, 3)),
    "window beyond the input, one output": ((2, 2), 3, 1, (5, 5), (1, 1), (1, 1), ((2, 2), (2, 2))),
    "dilated, asymmetric": ((7, 9), 6, 12, (3, 2), (1, 2), (2, 3), ((1, 0), (0, 2))),
    "grouped": ((7, 7), 8, 8, (3, 3), (1, 1), (1, 1), (SAME, SAME), 2),
    "grouped, dilated": ((7, 9), 6, 12, (3, 2), (1, 2), (2, 3), ((1, 0), (0, 2)), 3),
    "one output a group": ((4, 4), 8, 4, (3, 3), (1, 1), (1, 1), (SAME, SAME), 4),
    "several outputs a channel": ((4, 4), 4, 8, (3, 3), (1, 1), (1, 1), (SAME, SAME), 4),
    "3-d": ((4, 5, 6), 3, 9, (2, 3, 3), (1, 2, 1), (1, 1, 2), ((0, 1), SAME, (2, 0))),
    "few outputs": ((7, 23), 5, 1, (3, 3), (1, 1), (1, 1), (SAME, SAME)),
    "few outputs, one channel, 1-d, strided": ((150,), 1, 1, (21,), (2,), (1,), ((3, 0),)),
    "few outputs, 1-d, many positions": ((700,), 2, 1, (6,), (3,), (1,), ((0, 9),)),
    "few outputs, strided, whole vectors": ((9, 48), 8, 2, (7, 3), (2, 3), (1, 1), ((3, 3), ONE)),
    "few outputs, strides beyond the window": ((13, 40), 3, 3, (1, 3), (4, 5), (1, 1), (ONE, SAME)),
    "few outputs, dilated": ((12, 31), 4, 4, (3, 3), (1, 2), (2, 3), ((2, 1), (4, 3))),
    "few outputs, stride and dilation alike": ((5, 64), 1, 2, (2, 5), (1, 2), (1, 2), (ONE, (4, 4))),
    "depthwise": ((7, 7), 8, 8, (3, 3), (1, 1), (1, 1), (SAME, SAME), 8),
    "depthwise, strided, odd channels": ((14, 15), 10, 10, (5, 5), (2, 2), (1, 1), ((1, 2), (2, 2)), 10),
    "depthwise, dilated": ((9, 23), 9, 9, (3, 3), (1, 1), (2, 2), ((2, 2), (2, 2)), 9),
    "depthwise, 1-d": ((13,), 5, 5, (3,), (1,), (2,), ((4, 0),), 5),
    "depthwise, a long window": ((5, 31), 8, 8, (1, 17), (1, 1), (1, 1), (ONE, (8, 8)), 8),
    "depthwise, 3-d": ((4, 5, 9), 4, 4, (2, 3, 3), (1, 2, 1), (1, 1, 2), ((0, 1), SAME, (2, 0)), 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("count", [None, 0, 3])
@pytest.mark.parametrize("case", CASES)
def test_conv(case: str, count: int | None, constant: bool) -> None:
    """count: of images as a symbolic size; None: one, known."""
    for scaled in (False, True):
        routine, shapes = convolution(1 if count is None else N, *CASES[case], scaled=scaled)
        sizes = {} if count is None else {"N": count}
        check(routine, _buffers(routine, shapes, sizes), sizes, [1] if constant else [], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["1-d, strided", "grouped, dilated", "3-d", "pointwise"])
def test_a_convolution_of_halves_is_a_product_too(case: str) -> None:
    routine, shapes = convolution(N, *CASES[case], kind=float16)
    assert contraction.schedule(routine, ()) is not None
    check(routine, _buffers(routine, shapes, {"N": 2}), {"N": 2}, [], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("outputs", [24, 27])
def test_shuffled_groups(outputs: int) -> None:
    """A group's index is simple, and stored by vectors, though that of all outputs is not."""
    for count in (None, 0, 3):
        routine, shapes = convolution(1 if count is None else N, (5, 6), 12, outputs, (1, 1), group=3, shuffled=True)
        made = contraction.schedule(routine, ())
        assert made is not None
        assert made.wide
        sizes = {} if count is None else {"N": count}
        check(routine, _buffers(routine, shapes, sizes), sizes, [1], rtol=1e-4, atol=1e-4)


def test_conv_templates_take_what_they_should() -> None:
    for case, given in CASES.items():
        routine, _ = convolution(N, *given)
        assert depthwise.takes(routine) == case.startswith("depthwise"), case
        assert (planar.schedule(routine) is not None) == case.startswith("few outputs"), case
    feed_of: dict[str, type[feeds.Feed]] = {}
    for case, given in CASES.items():
        made = contraction.schedule(convolution(N, *given)[0], {1})
        if made is not None:
            feed_of[case] = type(made.feed)
    assert {c for c, f in feed_of.items() if f is feeds.InPlace} >= {
        "pointwise",
        "one position",
        "window as large as the input",
    }
    assert {c for c, f in feed_of.items() if f is feeds.InputLines} >= {
        "1-d, strided",
        "first layer",
        "pointwise, strided",
    }
    assert {c for c, f in feed_of.items() if f is feeds.Gathered} >= {"dilated, asymmetric", "grouped", "3-d"}


H, W = size("H"), size("W")
OPEN = {
    case: given
    for case, given in CASES.items()
    if case not in ("one position", "window as large as the input", "window beyond the input, one output")
}


@pytest.mark.slow
@pytest.mark.parametrize("which", ["all", "last", "padding"])
@pytest.mark.parametrize("case", OPEN)
def test_conv_of_open_space(case: str, which: str) -> None:
    """One function for every length, and for every padding: borders and counts are known at run time."""
    space, *rest = OPEN[case]
    names = {d: size(f"D{i}") for i, d in enumerate(dict.fromkeys(space))}
    symbolic = tuple(names[d] if which != "last" or i == len(space) - 1 else d for i, d in enumerate(space))
    routine, shapes = convolution(2, symbolic, *(padded(*rest) if which == "padding" else rest))
    window, dilations = rest[2], rest[4] if len(rest) > 4 and rest[4] else (1,) * len(space)
    pads = rest[5] if len(rest) > 5 else (ONE,) * len(space)
    least = max(d * (w - 1) + 1 - a - b for w, d, (a, b) in zip(window, dilations, pads, strict=True))
    for by in (0, 1, 2, 3, 5, 8, 13, 70):
        sizes = {str(n): max(d - 9, least, 1) + by for d, n in names.items()}
        sizes |= {f"{end}{i}": p + by % 3 for i, pair in enumerate(pads) for end, p in zip("AB", pair, strict=True)}
        if math.prod(sizes.values()) < 1 << 15:
            check(routine, _buffers(routine, shapes, sizes), sizes, [1], rtol=1e-4, atol=1e-4)


def padded(
    channels: int, outputs: int, window: tuple[int, ...], strides: tuple[int, ...] = (), dilations: tuple[int, ...] = (),
    _: object = (), group: int = 1,
) -> tuple[Any, ...]:  # fmt: skip
    """What `convolution` takes, with open padding A0 and B0, A1 and B1, …"""
    pads = tuple((size(f"A{i}"), size(f"B{i}")) for i in range(len(window)))
    return channels, outputs, window, strides, dilations, pads, group


def test_open_space_takes_the_fast_templates() -> None:
    """The same templates and feeds as for fixed lengths, and for fixed padding where there is any."""
    for case, (space, *rest) in OPEN.items():
        symbolic = tuple(size(f"D{i}") for i in range(len(space)))
        given = [(space, *rest), (symbolic, *rest), *([(symbolic, *padded(*rest))] if len(rest) > 5 else [])]
        first, *others = (convolution(2, *g)[0] for g in given)
        for routine in others:
            assert depthwise.takes(routine) == depthwise.takes(first), case
            assert (planar.schedule(routine) is None) == (planar.schedule(first) is None), case
            if planar.schedule(first) is None:
                feed, other = (getattr(contraction.schedule(r, {1}), "feed", None) for r in (first, routine))
                assert type(feed) is type(other), case
    assert winograd.schedule(convolution(1, (H, W), 64, 64, (3, 3), pads=(SAME, SAME))[0]) is not None


WINOGRAD: dict[str, tuple[Any, ...]] = {
    "whole tiles": ((8, 12), 4, 8, (3, 3), (), (), (SAME, SAME)),
    "tiles that stick out": ((9, 15), 8, 12, (3, 3), (), (), (SAME, SAME)),
    "no padding": ((14, 13), 12, 20, (3, 3)),
    "uneven padding": ((7, 9), 16, 8, (3, 3), (), (), ((0, 2), (2, 1))),
    "padding beyond": ((6, 5), 4, 4, (3, 3), (), (), ((1, 6), (2, 5))),
    "one output": ((1, 1), 8, 8, (3, 3), (), (), (SAME, SAME)),
    "one line": ((2, 40), 8, 4, (3, 3), (), (), ((1, 0), (1, 1))),
    "a band and a turn": ((28, 28), 128, 8, (3, 3), (), (), (SAME, SAME)),
    "bands": ((40, 41), 132, 4, (3, 3), (), (), (SAME, SAME)),
}


@pytest.mark.slow
@pytest.mark.parametrize("count", [None, 0, 3])
@pytest.mark.parametrize("case", WINOGRAD)
def test_winograd(case: str, count: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """count: as above. Results differ from sums of products by some units of the largest term's last place."""
    monkeypatch.setattr(winograd, "MIN_SAVING", 0)
    for scaled in (False, True):
        routine, shapes = convolution(1 if count is None else N, *WINOGRAD[case], scaled=scaled)
        assert winograd.schedule(routine) is not None
        sizes = {} if count is None else {"N": count}
        check(routine, _buffers(routine, shapes, sizes), sizes, [1], rtol=1e-4, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("case", WINOGRAD)
def test_winograd_of_open_space(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "MIN_SAVING", 0)
    (high, wide), *rest = WINOGRAD[case]
    routine, shapes = convolution(2, (H, W), *rest)
    assert winograd.schedule(routine) is not None
    for by in (0, 1, 2, 3, 7):
        sizes = {"H": high + by, "W": wide + 2 * by}
        check(routine, _buffers(routine, shapes, sizes), sizes, [1], rtol=1e-4, atol=1e-3)


WINOGRAD_LINES: dict[str, tuple[Any, ...]] = {
    "whole tiles": ((24,), 4, 8, (3,), (), (), (SAME,)),
    "tiles that stick out": ((41,), 8, 12, (3,), (), (), (SAME,)),
    "a group of two weights": ((30,), 12, 20, (5,), (), (), ((2, 2),)),
    "a group of one weight, dilation": ((50,), 8, 8, (7,), (), (3,), ((9, 9),)),
    "groups of four": ((37,), 8, 12, (8,), (), (2,), ((7, 7),)),
    "far padding": ((9,), 4, 4, (3,), (), (5,), ((11, 6),)),
    "fewer outputs than dilation": ((13,), 4, 4, (3,), (), (6,)),
    "one output": ((1,), 8, 8, (3,), (), (), (SAME,)),
    "bands": ((700,), 516, 4, (4,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", winograd.LINE_FORMS)
@pytest.mark.parametrize("case", WINOGRAD_LINES)
def test_winograd_along_one_axis(case: str, form: winograd.LineForm, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several images, of known and open length."""
    monkeypatch.setattr(winograd, "MIN_SAVING", 0)
    monkeypatch.setattr(winograd, "LINE_FORMS", (form,))
    (length,), *rest = WINOGRAD_LINES[case]
    for scaled, extent, lengths in ((True, length, (length,)), (False, N, (length, length + 1, length + 14))):
        routine, shapes = convolution(2, (extent,), *rest, scaled=scaled)
        assert isinstance(winograd.schedule(routine), winograd.LineSchedule)
        for at in lengths:
            check(routine, _buffers(routine, shapes, {"N": at}), {"N": at}, [1], rtol=1e-4, atol=1e-3)


def test_winograd_is_taken_where_it_is_less_work() -> None:
    def planned(*given: Any, **options: Any) -> bool:
        return winograd.schedule(convolution(1, *given, **options)[0]) is not None

    same = (SAME, SAME)
    assert all(planned((s, s), c, o, (3, 3), pads=same) for s, c, o in ((56, 64, 64), (14, 32, 64), (7, 64, 128)))
    assert not any(planned((s, s), c, o, (3, 3), pads=same) for s, c, o in ((6, 16, 16), (4, 512, 512), (56, 4, 4)))
    for other in ({"strides": (2, 1)}, {"dilations": (1, 2)}, {"group": 2}):
        assert not planned((56, 56), 64, 64, (3, 3), pads=same, **other)
    assert not planned((56, 56), 62, 64, (3, 3), pads=same)
    assert not planned((56, 56), 64, 62, (3, 3), pads=same)
    assert not planned((56, 56), 64, 64, (3, 1), pads=same)
    assert not planned((56, 56), 1024, 1024, (3, 3), pads=same), "scratch"
    for window, dilation in ((2, 1), (3, 1), (5, 2), (7, 3), (11, 5)):
        assert planned((N,), 64, 64, (window,), dilations=(dilation,))
    assert not planned((N,), 16, 64, (2,))
    assert not planned((4,), 64, 64, (3,))
    assert not planned((N,), 64, 64, (3,), strides=(2,))


def test_blocks_of_a_row_share_code_between_the_borders() -> None:
    first, middle, last = depthwise.stretches(112, 112, 3, 1, 1, 1)
    assert (first.count, middle.count, middle.start, middle.stop, last.count) == (8, 8, 8, 104, 8)
    assert len(middle.taps) == 24
    assert len(first.taps) == len(last.taps) == 23
