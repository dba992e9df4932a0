"""Drawings of how targets divide a product."""

from __future__ import annotations

import singe as sg
from singe.compiler.target import find_target
from singe.extension import contraction
from singe.ir.kernel import Routine
from singe_gpu.kernels.products.cuts import choose
from singe_gpu.kernels.products.gemm import Tile
from singe_wasm.kernels.products.contraction import schedule
from singe_webgpu.code.dialect import WGSL

from .networks import digits_model, groups_of
from .svg import Sheet

SIDE = 512
"""The sides of the product that is divided among workgroups: that of the front page's benchmark."""


def _grid(sheet: Sheet, wide: float, tall: float, across: int, down: int) -> None:
    """Tiles side by side, the first in another colour."""
    sheet.box(0, 24, wide * across, tall * down, corner=0)
    sheet.box(0, 24, wide, tall, 1, corner=0)
    lines = [f"M{wide * j:g} 24v{tall * down:g}" for j in range(1, across)]
    lines += [f"M0 {24 + tall * i:g}h{wide * across:g}" for i in range(1, down)]
    sheet.path("".join(lines), "grid")


def registers() -> str:
    """The register tile of the first convolution of the digits' network, which is computed as a product."""
    graph = digits_model().graph()
    groups = groups_of(graph, find_target("wasm"))
    routine = next(g.kernel for g in groups if isinstance(g.kernel, Routine) and g.kernel.kind == "conv")
    made = schedule(routine, [1])
    assert made is not None
    rows, columns = int(made.c.rows), int(made.c.columns)
    tile = made.tile(True)
    sheet = Sheet()
    high, cell = 220, 14
    across, down = -(-columns // tile.columns), -(-rows // tile.rows)
    tall, wide = high / down, 70
    _grid(sheet, wide, tall, across, down)
    sheet.text(0, 14, f"{rows} × {columns} outputs", quiet=True)
    sheet.text(0, 24 + high + 16, f"{down} × {across} tiles", quiet=True)
    left = across * wide + 60
    sheet.text(left, 14, f"one tile: {tile.rows} × {tile.columns}", quiet=True)
    for i in range(tile.rows):
        for v in range(tile.columns // 4):
            x, y = left + v * (4 * cell * 2 + 10), 24 + i * 34
            sheet.box(x, y, 8 * cell, 28, "outline", corner=6)
            for lane in range(4):
                sheet.box(x + 2 * cell * lane + 3, y + 4, 2 * cell - 6, 20, 1, corner=2)
    edge = left + tile.columns // 4 * (8 * cell + 10) + 10
    lines = [
        f"{tile.rows * tile.columns // 4} accumulators of four floats",
        f"Each of the {made.c.depth} turns of the sum loads",
        f"{tile.columns // 4} vectors of weights and {tile.rows} inputs,",
        f"for {tile.rows * tile.columns} multiplications",
    ]
    for k, line in enumerate(lines):
        sheet.text(edge, 44 + 20 * k, line)
    return sheet.html("The outputs of a convolution in tiles, and one tile of accumulators in registers")


def workgroups() -> str:
    """The cut of a matrix product on a GPU."""
    model = sg.Model.of(lambda a, b: {"y": a @ b}, {"a": (SIDE, SIDE), "b": (SIDE, SIDE)}, "numpy")
    routine = groups_of(model.graph(), find_target("wgsl"))[0].kernel
    assert isinstance(routine, Routine)
    found = contraction(routine)
    ((_, cut),) = choose(WGSL, routine, found)
    assert isinstance(cut, Tile)
    sheet = Sheet()
    wide, tall = 240 / (SIDE / cut.columns), 240 / (SIDE / cut.rows)
    _grid(sheet, wide, tall, SIDE // cut.columns, SIDE // cut.rows)
    sheet.text(0, 14, f"{SIDE} × {SIDE} outputs", quiet=True)
    sheet.text(0, 284, f"{SIDE // cut.rows} × {SIDE // cut.columns} workgroups", quiet=True)
    left, cell = 300, 9
    sheet.text(left, 14, f"a workgroup: {cut.rows} × {cut.columns}", quiet=True)
    for i in range(cut.rows // cut.thread_rows):
        for j in range(cut.columns // cut.thread_columns):
            x, y = left + j * cell * cut.thread_columns, 24 + i * cell * cut.thread_rows
            sheet.box(
                x, y, cell * cut.thread_columns - 3, cell * cut.thread_rows - 3, 1 if i == j == 0 else 0, corner=2
            )
    y = 24 + cell * cut.rows + 24
    lines = [
        f"An invocation holds {cut.thread_rows} × {cut.thread_columns} outputs in registers: {cut.team} of them make the tile.",
        f"{cut.slices} such teams share the depth, {cut.threads} invocations in all,",
        f"and take turns of {cut.depth * cut.slices} steps of the sum from workgroup memory.",
    ]
    for k, line in enumerate(lines):
        sheet.text(left, y + 20 * k, line)
    return sheet.html("A matrix product divided among workgroups, and a workgroup's tile among invocations")
