"""Kernels of open sizes are printed for several ranges of them; the sizes of a run select one. They need no device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from itertools import product as cartesian

import numpy as np
import pytest
from devices import few, slow
from networks.open_networks import convolutional, encoder

from singe.compiler.compile import compile_graph
from singe.compiler.target import Printed
from singe.dtypes import float32
from singe.graph import Builder, Graph, specialise
from singe.ir.contraction import Contraction, contraction
from singe.ir.kernel import Kernel, Routine
from singe.shapes import Shape, known, size
from singe_gpu.device.tune import _parsed, _text
from singe_gpu.kernels.products.cut_choice import costs, possible
from singe_gpu.kernels.products.cuts import MAX_CUTS, Cuts, choose, divided, outputs
from singe_gpu.rates import RATES
from singe_webgpu.code.dialect import WGSL
from singe_webgpu.target import WgslTarget

N, L = size("N"), size("L")
SIZES = [{"N": n, "L": k, "H": k, "W": w} for n in (1, 3, 64) for k in (1, 2, 4, 31, 128, 1000) for w in (1, 36, 640)]


class Collector(WgslTarget):
    """The target, and what it printed for each kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.printed: list[tuple[Kernel | Routine, Printed]] = []

    def print(self, kernel: Kernel | Routine, constants: object) -> Printed | None:
        found = super().print(kernel, ())
        if found is not None:
            self.printed.append((kernel, found))
        return found


def printed_for(graph: Graph) -> list[tuple[Kernel | Routine, Printed]]:
    target = Collector()
    compile_graph(graph, target)
    return target.printed


def product(rows: int) -> Graph:
    b = Builder()
    x = b.input("x", (N, L, rows), float32)
    return Graph((x,), (b.matmul(x, b.const(np.ones((rows, 96), np.float32))),), ("y",))


def scores() -> Graph:
    """A product whose depth is open."""
    b = Builder()
    x, y = b.input("x", (N, L, L), float32), b.input("y", (N, L, 16), float32)
    return Graph((x, y), (b.matmul(x, y),), ("z",))


GRAPHS = {"encoder": encoder(1, 32, 2), "convolutional": convolutional(8), "product": product(192), "scores": scores()}


def running(printed: Printed, sizes: Mapping[str, int]) -> list[Printed]:
    """What has workgroups at these sizes."""
    return [p for p in (printed, *printed.others) if known(p.variants[-1].groups[0], sizes) > 0]


@pytest.mark.parametrize("name", ["encoder", "product", "scores", *slow("convolutional")])
def test_one_text_runs_at_each_size(name: str) -> None:
    for kernel, printed in printed_for(GRAPHS[name]):
        for sizes in SIZES:
            chosen = [p for p in (printed, *printed.others) if known(p.when, sizes)]
            assert len(chosen) == 1, (kernel.name, sizes)
            assert running(printed, sizes) in (chosen, []), (kernel.name, sizes)  # none where there are no outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("graph", "sizes"),
    [(encoder(2, 32, 2), {"N": 1, "L": n}) for n in (7, 16, 512)]
    + [(convolutional(8), {"N": 1, "H": h, "W": w}) for h, w in ((160, 160), (45, 320))],
)
def test_open_sizes_take_no_more_dispatches_than_known_ones(graph: Graph, sizes: Mapping[str, int]) -> None:
    def dispatches(graph: Graph) -> int:
        program = compile_graph(graph, WgslTarget())
        kernels = [program.kernels[g.head] for g in program.groups if g.head >= 0]
        return sum(known(k.variants[-1].groups[0], sizes) > 0 for k in kernels)

    assert dispatches(graph) <= dispatches(specialise(graph, sizes))


def test_the_cut_that_runs_is_near_the_best_at_small_and_at_large_sizes() -> None:
    ((routine, _),) = printed_for(product(192))
    assert isinstance(routine, Routine)
    c = contraction(routine)
    assert c is not None
    cuts = choose(WGSL, routine, c)
    assert 1 < len(cuts) <= MAX_CUTS
    for sizes in SIZES:
        count = outputs(c, sizes)
        cut = next(cut for first, cut in reversed(cuts) if first <= count)
        times = costs(c, RATES, sizes)
        assert times[cut] <= 1.6 * min(times[other] for other in possible(WGSL, routine, c)), (sizes, cut)


@few(1, ("width", "heads"), [(64, 2), (64, 4), (384, 12)])
def test_cuts_are_near_the_best_for_one_text_of_any_length(width: int, heads: int) -> None:
    found: list[tuple[Routine, Contraction, Cuts]] = []

    def noted(routine: Routine, c: Contraction) -> Cuts:
        found.append((routine, c, choose(WGSL, routine, c)))
        return found[-1][2]

    compile_graph(encoder(1, width, heads), WgslTarget(noted))
    for length in (1, 2, 8, 16, 64, 128, 256, 512):
        sizes = {"N": 1, "L": length}
        taken = least = 0.0
        for routine, c, cuts in found:
            times = costs(c, RATES, sizes)
            taken += times[next(cut for first, cut in reversed(cuts) if first <= outputs(c, sizes))]
            least += min(times[cut] for cut in possible(WGSL, routine, c))
        assert taken <= 1.15 * least, length


@pytest.mark.slow
def test_no_other_spans_lose_less() -> None:
    cuts, counts = list(RATES)[:4], [1 << k for k in range(7)]
    times = 1 + np.random.default_rng(0).random((7, 4))

    def loss(found: Cuts) -> float:
        chosen = [next(cuts.index(cut) for first, cut in reversed(found) if first <= n) for n in counts]
        return sum(np.log(times[k, cut] / times[k].min()) for k, cut in enumerate(chosen))

    found = divided(counts, cuts, times)
    assert len(found) == MAX_CUTS
    starts = ((0, *more) for more in combinations(counts[1:], MAX_CUTS - 1))
    others = (list(zip(at, some, strict=True)) for at in starts for some in cartesian(cuts, repeat=MAX_CUTS))
    assert loss(found) == pytest.approx(min(map(loss, others)))


def test_products_of_known_sizes_are_printed_once() -> None:
    for _, printed in printed_for(specialise(encoder(1, 32, 2), {"N": 2, "L": 12})):
        assert not printed.others


def test_a_row_of_open_length_is_read_as_vectors_where_it_is_a_multiple_of_four() -> None:
    ((_, printed),) = printed_for(scores())

    def reads_vectors(sizes: Mapping[str, int]) -> bool:
        (active,) = running(printed, sizes)
        return "fn load_a(t0: i32, m: i32, k: i32) -> vec4<f32>" in active.code[-1]

    for length in (4, 64, 128, 512):
        assert reads_vectors({"N": 1, "L": length})
    for length in (1, 7, 127, 510):
        assert not reads_vectors({"N": 1, "L": length})


def test_a_convolution_divides_its_rows_once_for_all_of_the_depth() -> None:
    for kernel, printed in printed_for(convolutional(8)):
        for one in (printed, *printed.others):
            load = re.search(r"fn load_a.*?\n}", str(one.code[-1]), re.DOTALL)
            if isinstance(kernel, Routine) and load:
                assert not re.search(r"[/%] sizes", load[0])


@pytest.mark.parametrize("shape", [(N, 3, L, size("W")), (N, 8, L, 24), (N, 8, 24, L)], ids=str)
@pytest.mark.parametrize("pooled", [False, True])
def test_a_convolution_divides_once_for_four_rows(shape: Shape, pooled: bool) -> None:
    b = Builder()
    x = b.input("x", shape, float32)
    w, none, one = b.const(np.ones((8, shape[1], 3, 3), np.float32)), (0, 0), (1, 1)
    y = b.conv(x, w, b.const(np.ones(8, np.float32)), strides=one, dilations=one, before=none, after=none, group=1)
    if pooled:
        windows = {"window": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "dilations": (1,) * 4}
        y = b.max_pool(y, **windows, before=(0,) * 4, after=(0,) * 4)
    found = [p for kernel, p in printed_for(Graph((x,), (y,), ("y",))) if isinstance(kernel, Routine)]
    for one in (p for printed in found for p in (printed, *printed.others)):
        row = re.search(r"struct Row {.*}", one.code[-1])
        rows = re.search(r"fn rows_a.*?\n}", one.code[-1], re.DOTALL)
        assert row is not None, one.code[-1]
        assert rows is not None, one.code[-1]
        assert rows[0].count(" / ") < row[0].count("i32")


def test_open_reductions_run_in_the_style_of_known_ones() -> None:
    b = Builder()
    x = b.input("x", (N, L, 48), float32)
    graph = Graph((x,), (b.reduce_sum(x, axes=(1,)),), ("y",))
    ((_, opened),) = printed_for(graph)
    for sizes in (
        {"N": 3, "L": 16},
        {"N": 1, "L": 1000},
        {"N": 64, "L": 1000},
        {"N": 3000, "L": 33},
        {"N": 30, "L": 33},
    ):
        ((_, fixed),) = printed_for(specialise(graph, sizes))
        (active,) = running(opened, sizes)
        assert ("var<workgroup>" in active.code[-1]) == ("var<workgroup>" in fixed.code[-1]), sizes


def test_open_points_take_a_bounded_number_of_workgroups() -> None:
    b = Builder()
    x = b.input("x", (N, 3), float32)
    ((_, printed),) = printed_for(Graph((x,), (b.exp(x),), ("y",)))
    counts = [known(printed.variants[-1].groups[0], {"N": n}) for n in (0, 1, 1000, 1 << 28)]
    assert counts == [0, 1, 47, 1 << 15]


def test_chosen_cuts_are_remembered_as_text() -> None:
    cuts = list(RATES)[:3]
    for found in ([(0, cuts[0])], [(0, cuts[1]), (96, cuts[0]), (4096, cuts[2])]):
        assert _parsed(_text(found), cuts) == found
    for text in (None, "", "9: " + str(cuts[0]), "0: a tile", f"0: {cuts[0]}; 0: {cuts[1]}", f"x: {cuts[0]}", "; "):
        assert _parsed(text, cuts) == []
