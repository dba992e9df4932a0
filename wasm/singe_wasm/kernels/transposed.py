"""Kernels that write along one loop and read along another one, as a transpose does: they are computed in blocks.

Where four lanes would gather elements that are far apart, but the next turns of another loop need these elements'
neighbours, a block of four by four elements is loaded as four vectors along the other loop, and transposed in registers.
"""

from __future__ import annotations

from typing import Final

from singe.extension import Expr, Kernel, Store, affine, scalar

from .memory import VECTOR_STORAGE, is_near

BLOCKS: Final = (16, 8, 4)
"""Turns of the other loop that may be computed at once: a cache line of float32 at best."""


def other_loop(kernel: Kernel, lane: Expr | None) -> Expr | None:
    """The loop along which the elements that the lanes of `lane` gather have neighbours; None if there is none."""
    if lane is None or not all(isinstance(s, Store) for s in kernel.stages):
        return None
    gathered = [e for e in scalar.postorder(kernel.roots) if e.word == "load" and _is_gathered(kernel, e, lane)]
    for variable, extent in zip(kernel.grid_vars, kernel.grid, strict=True):
        fits = variable is not lane and variable.word == "var" and isinstance(extent, int) and extent >= BLOCKS[-1]
        if fits and gathered and all(_is_along(kernel, e, lane, variable) for e in gathered):
            return variable
    return None


def blocks(kernel: Kernel, lane: Expr | None, most: int) -> tuple[Expr | None, int]:
    """That loop and the turns of it that are computed at once; None and 1 if it is not one of whole blocks."""
    variable = other_loop(kernel, lane)
    if variable is not None:
        extent = kernel.grid[kernel.grid_vars.index(variable)]
        for count in BLOCKS:
            if count <= most and extent % count == 0:
                return variable, count
    return None, 1


def _is_gathered(kernel: Kernel, load: Expr, lane: Expr) -> bool:
    if lane not in scalar.postorder([load]):
        return False
    step = affine.linear(load.args[0])[0].get(lane)
    return not (isinstance(step, int) and is_near(kernel.ports[load.value].dtype, step))


def _is_along(kernel: Kernel, load: Expr, lane: Expr, variable: Expr) -> bool:
    """Whether the load's index is linear in both loops, and its elements are neighbours along `variable`."""
    terms, _ = affine.linear(load.args[0])
    composed = [atom for atom in terms if atom.word != "var"]
    return (
        kernel.ports[load.value].dtype in VECTOR_STORAGE
        and terms.get(variable) == 1
        and isinstance(terms.get(lane), int)
        and not {lane, variable} & set(scalar.postorder(composed))
    )
