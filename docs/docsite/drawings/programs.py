"""Drawings of Programs: where values are in memory, and what runners read."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import singe as sg
from singe.ops import Elementwise, View
from singe.program.plan import Plan
from singe.program.program import ProgramData
from singe.program.words import WordGroup
from singe.runtime.numpy_backend import NumpyBackend
from singe.shapes import show

from .networks import BATCH, digits_model, digits_program, step_program
from .svg import Sheet

COLUMN = 132
ROW = 44
LEFT = 110
TOP = 44


def _spans(program: ProgramData, steps: Sequence[WordGroup]) -> dict[int, tuple[int, int]]:
    """The buffers in slots ↦ the first and the last group that names each."""
    used: dict[int, list[int]] = {}
    for at, step in enumerate(steps):
        for b in (*step.reads, *step.writes):
            if program.buffers[b].place[0] == "slot":
                used.setdefault(b, []).append(at)
    return {b: (at[0], at[-1]) for b, at in sorted(used.items())}


def plan() -> str:
    """Which buffer lies in which slot of scratch memory, from the step that first uses it to the last."""
    program = digits_program("wasm")
    steps = [g for g in program.groups if g.head >= 0]
    sheet = Sheet()
    for at, g in enumerate(steps):
        sheet.text(LEFT + at * COLUMN + 4, 16, f"{at + 1}. {program.kernels[g.head].kind}")
        sheet.text(LEFT + at * COLUMN + 4, 32, program.kernels[g.head].label, quiet=True)
    for slot, size in enumerate(program.slot_bytes({})):
        sheet.text(0, TOP + slot * ROW + 18, f"slot {slot}")
        sheet.text(0, TOP + slot * ROW + 33, f"{size / 1000:.1f} kB", quiet=True)
    for b, (first, last) in _spans(program, steps).items():
        buffer = program.buffers[b]
        x, y = LEFT + first * COLUMN, TOP + buffer.place[1] * ROW
        sheet.box(x, y, (last - first + 1) * COLUMN - 6, ROW - 6, b)
        sheet.text(x + 7, y + 24, "workspace" if buffer.name == "scratch" else show(buffer.shape))
    return sheet.html("Memory plan: slots from top to bottom, steps from left to right")


def arrays() -> str:
    """The steps of the numpy backend, and the arrays that each leaves alive."""
    program = digits_program("host")
    ops = NumpyBackend().prepare(program)._ops
    steps = program.steps
    sheet = Sheet()
    sheet.text(0, 14, "step", quiet=True)
    sheet.text(110, 14, "result", quiet=True)
    sheet.text(220, 14, "its array", quiet=True)
    sheet.text(360, 14, "arrays alive, by slot", quiet=True)
    for at, op in ops.items():
        y = 24 + 26 * at
        sheet.text(0, y + 16, op.step.op)
        sheet.text(110, y + 16, show(program.buffers[op.step.outputs[0]].shape), quiet=True)
        over = isinstance(op.row, Elementwise) and op.spent
        kind = "overwrites an input" if over else "a view" if isinstance(op.row, View) else "new"
        sheet.text(220, y + 16, kind, quiet=True)
    for b, (first, last) in _spans(program, steps).items():
        slot = program.buffers[b].place[1]
        sheet.box(360 + 60 * slot, 24 + 26 * first + 2, 54, 26 * (last - first + 1) - 4, b)
    return sheet.html("The steps of the digits' network on numpy from top to bottom, and which arrays are alive")


def words() -> str:
    """The words of the Plan that a runner reads."""
    program = digits_program("wasm")
    found = Plan(program, {}).words
    sheet = Sheet()
    for x, text in ((0, "calls"), (190, "kernel"), (250, "words"), (310, "buffers")):
        sheet.text(x, 14, text, quiet=True)
    at, y = 0, 24
    while at < len(found):
        code, count = found[at], found[at + 1]
        sheet.text(0, y + 19, program.kernels[code].label)
        for k, number in enumerate(found[at : at + 2 + count]):
            x = 190 + 60 * min(k, 2) + 46 * max(k - 2, 0)
            sheet.box(x, y, 40, 28, 1 if k == 0 else 2 if k == 1 else 0)
            sheet.text(x + 20, y + 19, str(number), middle=True)
        at, y = at + 2 + count, y + 34
    return sheet.html("The words of the digits' network: a row for each call, with its kernel and its buffers")


def held() -> str:
    """The bytes of scratch that hold values at each step of training."""
    program = step_program()
    steps = [g for g in program.groups if g.head >= 0]
    bytes_at = [0.0] * len(steps)
    for b, (first, last) in _spans(program, steps).items():
        buffer = program.buffers[b]
        if buffer.name != "scratch":
            for at in range(first, last + 1):
                bytes_at[at] += int(buffer.bytes)
    labels = [program.kernels[g.head].label for g in steps]
    seed = next(at for at, label in enumerate(labels) if "_d0" in label or "_d1" in label)
    update = next(at for at, label in enumerate(labels) if "sqrt" in label and at > seed)
    most, top, tall, wide = max(bytes_at), 40, 170, 9
    sheet = Sheet()
    for at, size in enumerate(bytes_at):
        height = max(1.0, tall * size / most)
        kind = 0 if at < seed else 3 if at < update else 1
        sheet.box(wide * at, top + tall - height, wide - 2, height, kind, corner=1)
    for at, text in ((0, "forward and loss"), (seed, "gradients"), (update, "updates")):
        sheet.path(f"M{wide * at:g} 8V{top + tall}", "line")
        sheet.text(wide * at + 5, 18, text)
    peak = bytes_at.index(most)
    sheet.text(wide * peak + 12, top + 2, f"{most / 1e6:.1f} MB at most", quiet=True)
    sheet.text(0, top + tall + 18, f"{len(steps)} steps, a batch of {BATCH}", quiet=True)
    return sheet.html(
        "The scratch memory of a step of training: it grows in the forward part and shrinks with the gradients"
    )


@cache
def _bundle() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        sg.export(digits_model(), Path(folder) / "digits")
        return {p.name: p.read_bytes() for p in sorted((Path(folder) / "digits").iterdir())}


def bundle() -> str:
    """What a page fetches of a bundle for a first answer on WebAssembly, compressed as hosts do it."""
    files = _bundle()
    files["weights"] = b"".join(
        data for name, data in files.items() if name.startswith(("weights-shared", "weights-wasm"))
    )
    sheet = Sheet()
    shown = {
        "singe.js": "the runner",
        "model.json": "the manifest: inputs, kernels, buffers, words",
        "kernels-relaxed.wasm": "the kernels",
        "weights": "the weights, in two files",
    }
    sizes = {name: len(gzip.compress(files[name], mtime=0)) for name in shown}
    sheet.text(150, 14, "bytes, compressed", quiet=True)
    for row, (name, size) in enumerate(sizes.items()):
        y = 24 + 36 * row
        sheet.text(0, y + 18, name)
        width = max(2.0, 420 * size / max(sizes.values()))
        sheet.box(150, y, width, 28, row)
        sheet.text(150 + width + 8, y + 18, f"{size / 1000:.1f} kB: {shown[name]}")
    return sheet.html("What a page fetches of the digits' bundle, by size")
