"""The drawings of the book, made from real models by the code itself, as SVG in the colours of the page."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Final

import singe as sg
from singe.compiler.build import compile_graph
from singe.compiler.target import find_target
from singe.program.program import Dispatch, ProgramData, walk
from singe.shapes import show

DEMOS: Final = Path(__file__).parents[2] / "demos"
COLUMN: Final = 132
ROW: Final = 44
LEFT: Final = 110
TOP: Final = 44


def digits_program() -> ProgramData:
    """The Program of the digits' network for WebAssembly, of one picture."""
    if str(DEMOS) not in sys.path:
        sys.path.insert(0, str(DEMOS))
    import weights  # noqa: PLC0415 (a script beside the demos)

    net = weights.digits()
    model = sg.Model.of(lambda input: {"logits": net(input)}, {"input": (1, 1, 28, 28)}, "numpy", name="digits")
    return compile_graph(model.graph(), find_target("wasm"))


def plan() -> str:
    """Which buffer lies in which slot of scratch memory, from the step that first uses it to the last."""
    program = digits_program()
    steps = [s for s in walk(program.steps) if isinstance(s, Dispatch)]
    used: dict[int, list[int]] = {}
    for at, step in enumerate(steps):
        for b in step.buffers:
            used.setdefault(b, []).append(at)
    sizes = program.slot_bytes({})
    parts = [
        f'<text x="{LEFT + at * COLUMN + 4}" y="16">{at + 1}. {escape(program.kernels[s.kernel].kind)}</text>'
        f'<text class="quiet" x="{LEFT + at * COLUMN + 4}" y="32">{escape(program.kernels[s.kernel].label)}</text>'
        for at, s in enumerate(steps)
    ]
    for slot, size in enumerate(sizes):
        y = TOP + slot * ROW
        parts.append(
            f'<text x="0" y="{y + 18}">slot {slot}</text><text class="quiet" x="0" y="{y + 33}">{size / 1000:.1f} kB</text>'
        )
    for b, at in sorted(used.items()):
        buffer = program.buffers[b]
        place, slot = buffer.place
        if place != "slot":
            continue
        x, width = LEFT + at[0] * COLUMN, (at[-1] - at[0] + 1) * COLUMN - 6
        y = TOP + slot * ROW
        parts.append(
            f'<rect class="c{b % 4}" x="{x}" y="{y}" width="{width}" height="{ROW - 6}" rx="4"/>'
            f'<text x="{x + 7}" y="{y + 24}">{"workspace" if buffer.name == "scratch" else escape(show(buffer.shape))}</text>'
        )
    width, height = LEFT + len(steps) * COLUMN, TOP + len(sizes) * ROW
    title = "Memory plan: slots from top to bottom, steps from left to right"
    return f'<div class="scroll" tabindex="0"><svg role="img" aria-label="{title}" viewBox="0 0 {width} {height}" width="{width}" height="{height}">{"".join(parts)}</svg></div>'  # noqa: E501


DRAWINGS: Final[dict[str, Callable[[], str]]] = {"plan": plan}
"""A drawing's name in a page ↦ what makes it."""
