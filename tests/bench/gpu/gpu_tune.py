"""gpu.py tune: times many products of float32 in all cuts on this device, and fits the rates of its dialect.

It prints the tables of gpu/singe_gpu/rates.py, and how far the choices by the current and by the fitted tables are from the fastest
cut. Where matrices multiply float32, their cuts are timed and fitted with the others. To try a new cut, add it to the table with any rate.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

import singe as sg
from singe.compiler.compile import compile_graph
from singe.compiler.target import Printed
from singe.dtypes import float32
from singe.errors import DeviceError
from singe.graph import Graph
from singe.ir.contraction import Contraction, contraction
from singe.ir.kernel import Kernel, Routine
from singe.model.files import load
from singe.shapes import known, product
from singe.tools.measuring.bench import gemm, machine
from singe_cuda.code.dialect import CUDA
from singe_gpu.code.shader import Shader, Text
from singe_gpu.code.variants import variants
from singe_gpu.device.timing import text_seconds
from singe_gpu.dialect import SUBGROUP_MATRIX, WIDE_MATRIX, Dialect
from singe_gpu.kernels.products.cut_choice import print_cut, ranked, work
from singe_gpu.kernels.products.matrix import elements, fitting, print_matrix
from singe_gpu.kernels.products.operands import quads_of
from singe_gpu.rates import RATES, Cut, MatrixCut, Rate, Thin, Tile
from singe_gpu.target import GpuTarget
from singe_webgpu.code.dialect import WGSL

SIZES: Final = (
    (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096),
    (33, 47, 129), (1, 1000, 1280), (1, 4096, 4096), (4, 4096, 4096), (16, 4096, 4096), (64, 1024, 1024),
    (77, 512, 2048), (197, 768, 768), (197, 768, 3072), (197, 3072, 768), (1500, 384, 1536), (8192, 64, 64),
    (12544, 96, 16), (196, 672, 112), (49, 1152, 320), (100000, 32, 32), (65536, 256, 8), (1024, 384, 384), (1024, 1536, 384), (4096, 512, 512),
)  # fmt: skip
"""(m, k, n) of typical products, timed in addition to those of the given models."""
BATCHES: Final = (1, 64)
WASTE: Final = 5.0
"""A cut is not timed if its tiles have this many times the elements of the best cut's."""
HUGE: Final = 1e10
"""From this number of multiply-adds, small tiles are not timed."""
PLAIN: Final = 3e8
"""From this number, the plain kernel is not timed."""
SMALL: Final = 3e8
"""From this number, cuts without tiles in workgroup memory are not timed."""
LEAST_ON_MATRICES: Final = 1e7
"""From this number, cuts on matrices of float32 are timed."""
PLAIN_TILE: Final = Tile(64, 64, 16, 8, unroll=16)
"""What stands for a cut on matrices where there are none."""
FAR: Final = 4.0
"""Cuts that take this many times as long as the best do not count in the fit."""
STEPS: Final = 1500

Row = dict[str, Any]
C = TypeVar("C", bound="Cut | MatrixCut")


class Collector(GpuTarget):
    """A target that collects the Routines that it prints."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self.routines: list[Routine] = []

    def print(self, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
        printed = super().print(kernel, constants)
        if isinstance(kernel, Routine) and printed is not None:
            self.routines.append(kernel)
        return printed


def graphs(folder: Path) -> Iterator[tuple[str, Graph]]:
    for m, k, n in SIZES:
        yield f"{m} × {k} · {n}", gemm(m, k, n)
    for path in sorted(folder.glob("*.onnx")):
        model = load(path, "numpy")
        recorded = np.load(path.with_suffix(".npz"))
        for batch in BATCHES:
            named = {str(d): batch for p in model.inputs for d in (p.shape or ())[:1] if not isinstance(d, int)}
            shapes = {p.name: recorded[f"in:{p.name}"].shape for p in model.inputs}
            for p in model.inputs:
                rest = zip((p.shape or ())[1:], shapes[p.name][1:], strict=True)
                named |= {str(d): n for d, n in rest if not isinstance(d, int)}
            graph = model.source.graph(named, {})
            assert isinstance(graph, Graph)
            yield f"{path.stem}, batch {batch}", graph


def products(folder: Path, dialect: Dialect) -> list[tuple[Routine, Contraction, Row]]:
    """The products of all graphs, each once, with its facts."""
    seen: dict[Any, Row] = {}
    found: list[tuple[Routine, Contraction, Row]] = []
    for where, graph in graphs(folder):
        collector = Collector(dialect)
        compile_graph(graph, collector)
        for r in collector.routines:
            c = contraction(r)
            if c is None or c.columns == 1:
                continue
            batch, rows, columns, depth = (known(d, {}) for d in (product(c.batch), c.rows, c.columns, c.depth))
            quads = "".join(sorted(quads_of(Shader(dialect, c.kernel.ports), c)))
            row = {
                "kind": r.kind, "batch": batch, "rows": rows, "columns": columns, "depth": depth, "a_deep": c.a_deep,
                "b_deep": c.b_deep, "quads": quads, "window": c.window, "ports": len(c.kernel.ports), "strides": str(r.facts.get("strides")),
            }  # fmt: skip
            key = tuple(row.values())
            if key in seen:
                seen[key]["count"] += 1
            else:
                seen[key] = row | {"where": where, "count": 1}
                found.append((r, c, seen[key]))
    return found


def plausible(row: Row) -> list[Cut]:
    """The cuts that are worth timing, including some that Singe would not choose from."""
    rows, columns = row["rows"], row["columns"]
    size = row["batch"] * rows * columns * row["depth"]

    def held(cut: Cut) -> int:
        sides = (1, 1) if cut is None else (cut.rows, cut.columns)
        return -(-rows // sides[0]) * sides[0] * -(-columns // sides[1]) * sides[1]

    least = min(held(cut) for cut in RATES if isinstance(cut, Tile))

    def worth(cut: Cut) -> bool:
        if cut is None:
            return size <= PLAIN and row["kind"] == "matmul"
        if cut.rows % row["window"]:
            return False
        if isinstance(cut, Thin) and (size > SMALL or (cut.rows > 1 and not {*"ab"} <= {*row["quads"]})):
            return False
        return held(cut) <= WASTE * least and (size <= HUGE or cut.rows * cut.columns >= 1024)

    return [cut for cut in RATES if worth(cut)]


def matrix_cuts(dialect: Dialect, c: Contraction) -> list[MatrixCut]:
    """Those on matrices of float32 that are worth timing."""
    if elements(dialect, c) is not float32:
        return []
    batch, rows, columns, depth = (known(d, {}) for d in (product(c.batch), c.rows, c.columns, c.depth))
    least = LEAST_ON_MATRICES if batch * rows * columns * depth >= LEAST_ON_MATRICES else math.inf
    held = {
        cut: -(-rows // cut.rows) * cut.rows * -(-columns // cut.columns) * cut.columns
        for cut in dialect.matrices.rates[float32]
    }
    return [cut for cut in fitting(dialect, c, held) if held[cut] <= WASTE * min(held.values()) and least < math.inf]


def written(r: Routine, c: Contraction, cut: Cut | MatrixCut, shader: Shader) -> Text:
    """A product in a given cut, for the features that it needs."""
    if not isinstance(cut, MatrixCut):
        return print_cut(r, c, cut, shader)
    needed = WIDE_MATRIX if cut.wide else SUBGROUP_MATRIX
    if needed in shader.features:
        return print_matrix(c, cut, shader)
    shader.wanted_features.add(needed)
    return print_cut(r, c, PLAIN_TILE, shader)


def survey(backend: Any, folder: Path, limit: float) -> list[Row]:
    """The seconds of each product in each cut."""
    found, dialect = [], backend.target.dialect
    start = time.perf_counter()
    todo = products(folder, dialect)
    for number, (r, c, row) in enumerate(todo):
        if time.perf_counter() - start > limit:
            print(f"{limit:.0f} seconds are over: {number} of {len(todo)} products")
            break
        cuts = [*plausible(row), *matrix_cuts(dialect, c)]
        printed = [variants(dialect, r.kernel.ports, partial(written, r, c, cut)) for cut in cuts]
        try:
            times = text_seconds(backend.gpu, dialect, r.kernel, printed, {})
        except DeviceError as e:
            print(f"{row['where']}: {e}")
            continue
        found.append(
            row
            | {
                "times": {str(cut): t for cut, t in zip(cuts, times, strict=True)},
                "chosen": str(ranked(dialect, r, c, {})[0]),
            }
        )
    return found


# --- the fit ----------------------------------------------------------------------------------------------------------


def fit(rows: list[Row], table: Mapping[C, Rate]) -> dict[C, Rate]:
    """The rates under which the estimates follow the times: least squares of logarithms, each product up to a factor.

    Long products count more, and so do the best cuts of each product. The factor is free because an idle
    GPU's clock is not that of a busy one, and because only ratios count.
    """
    names = {str(cut): k for k, cut in enumerate(table)}
    cuts = list(table)
    entries = [
        (s, names[name], *work(cuts[names[name]], row["batch"], row["rows"], row["columns"], row["depth"]), math.log(t / best))
        for s, row in enumerate(rows)
        for best in [min(t for name, t in row["times"].items() if name in names)]
        for name, t in row["times"].items()
        if name in names and t <= FAR * best
    ]  # fmt: skip
    which, cut, turns, groups, slower = (np.array(column) for column in zip(*entries, strict=True))
    long = np.array([min(row["times"].values()) for row in rows])
    weight = np.exp(-slower) * (long / long.mean())[which]
    together = np.bincount(which, weight)

    def apart(x: np.ndarray) -> float:
        alone, full, ends = np.exp(x.reshape(3, -1))[:, cut]
        off = np.log((turns + ends) * (alone + groups * full)) - slower
        off = off - (np.bincount(which, weight * off) / together)[which]
        return float(weight @ (off * off)) / len(off) + 1e-4 * float(np.mean((x - first) ** 2))

    first = np.repeat(np.log([1.0, 1e-2, 2.0]), len(cuts))
    x, mean, square = first.copy(), np.zeros_like(first), np.zeros_like(first)
    for step in range(1, STEPS + 1):
        here = apart(x)
        slope = np.array([apart(x + move) - here for move in 1e-4 * np.eye(len(x))]) / 1e-4
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        x = x - 0.03 * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
    values = np.exp(x.reshape(3, -1))
    return {c: Rate(*(float(f"{v:.3g}") for v in values[:, k])) for k, c in enumerate(cuts)}


def told(rows: list[Row], rates: Mapping[C, Rate]) -> str:
    """A text that compares the table's choices with the best cut of each product:
    the geometric mean, and the total time."""

    def estimate(cut: C, row: Row) -> float:
        return rates[cut].cost(*work(cut, row["batch"], row["rows"], row["columns"], row["depth"]))

    logs, taken, least = [], 0.0, 0.0
    for row in rows:
        cuts = [cut for cut in rates if str(cut) in row["times"]]
        seconds = row["times"][str(min(cuts, key=lambda cut: estimate(cut, row)))]
        best = min(row["times"].values())
        logs.append(math.log(seconds / best))
        taken, least = taken + seconds * row["count"], least + best * row["count"]
    return f"{math.exp(sum(logs) / len(logs)):.3f} times the best cut in the mean; {taken * 1e3:.2f} ms, {least * 1e3:.2f} by the best"


def table(rates: Mapping[C, Rate]) -> str:
    lines = []
    for cut, r in rates.items():
        plain = {} if cut is None else {f.name: (getattr(cut, f.name), f.default) for f in fields(cut)}
        given = ", ".join(
            f"{k}={v}" if k == "wide" or (k in ("slices", "unroll") and isinstance(cut, Tile)) else str(v)
            for k, (v, d) in plain.items()
            if v != d
        )
        name = "None" if cut is None else f"{type(cut).__name__}({given})"
        lines.append(f"    {name}: Rate({r.alone:g}, {r.full:g}, {r.ends:g}),")
    return "\n".join(lines)


def main(arguments: list[str], folder: Path) -> None:
    parser = argparse.ArgumentParser(prog="gpu.py tune", description=__doc__)
    parser.add_argument("--device", default="webgpu", help="the device, such as cuda:0")
    parser.add_argument("--out", type=Path, help="write all times as JSON")
    parser.add_argument("--times", type=Path, help="fit times that --out wrote instead of taking them")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which no more is timed")
    parser.add_argument("--models", type=Path, default=folder, help=f"ONNX models with recordings (default: {folder})")
    args = parser.parse_args(arguments)
    dialect = CUDA if args.device.startswith("cuda") else WGSL
    if args.times:
        rows = json.loads(args.times.read_text("utf-8"))["products"]
    else:
        backend: Any = getattr(sg.device(args.device).eager, "backend")  # noqa: B009
        rows = survey(backend, args.models, args.limit)
        if args.out:
            data = {"machine": machine(), "device": backend.describe(), "products": rows}
            args.out.write_text(json.dumps(data, indent=1, default=str), "utf-8")
    print(f"{len(rows)} products")
    present: dict[Cut | MatrixCut, Rate] = {**dialect.rates, **dialect.matrices.rates.get(float32, {})}
    print(f"by the present rates: {told(rows, present)}")
    rates = fit(rows, present)
    print(f"as fitted: {told(rows, rates)}\n\n{table(rates)}")
