"""Four neighbours at once: which expressions are one load of a vector, and that load's text.

Over an aligned four of a variable (4·q, 4·q + 1, …) an index may be the same, or go up by one from a multiple of four.
An expression is a quad if it is a load whose index does the latter, or a choice between such and a constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from singe import affine, scalar
from singe._shape import divides
from singe.scalar import Expr

from ..module import Module
from ..wgsl import TYPES, Block, literal

SIDE: Final = 4


def is_quad(e: Expr, along: Expr, module: Module, others: Iterable[Expr]) -> bool:
    """Whether an operand is a quad along a variable. others: what else the module computes; it loads elements singly."""
    loads = [x for x in scalar.postorder([e]) if x.word == "load"]
    if along.word != "var" or not divides(along.value[1], SIDE) or len(loads) != 1:
        return False
    (port,) = (x.value for x in loads)
    single = any(x.word == "load" and x.value == port for x in scalar.postorder(list(others)))
    return not single and module.has_vectors(port) and _is_quad(e, along)


def _is_quad(e: Expr, along: Expr) -> bool:
    if e.word == "load":
        return _course(e.args[0], along) == "step"
    if e.word == "select":
        condition, *values = e.args
        return _course(condition, along) == "same" and all(x.word == "const" or _is_quad(x, along) for x in values)
    return False


def _course(e: Expr, along: Expr) -> str | None:
    """How an expression goes over an aligned four: "same", or "step"s of one from a multiple of four."""
    if e is along:
        return "step"
    if not e.args:
        return "same"
    courses = [_course(a, along) for a in e.args]
    if all(c == "same" for c in courses):
        return "same"
    if e.word in ("div", "rem"):
        by = e.args[1]
        if courses[0] == "step" and by.word == "const" and by.value > 0 and by.value % SIDE == 0:
            return "same" if e.word == "div" else "step"
        return None
    if e.word in ("add", "sub", "mul"):
        terms, constant = affine.linear(e)
        if e in terms:
            return None
        parts = [(_course(atom, along), factor) for atom, factor in terms.items()]
        steps = [factor for course, factor in parts if course == "step"]
        rest = [factor for course, factor in parts if course == "same"]
        if len(steps) + len(rest) == len(parts) and steps == [1] and all(divides(f, SIDE) for f in (*rest, constant)):
            return "step"
    return None


def quad_text(block: Block, e: Expr) -> str:
    """The vector of a quad."""
    if e.word == "load":
        return block.module.load_vector(e.value, block.value(e.args[0]))
    if e.word == "select":
        condition, yes, no = e.args
        return f"select({quad_text(block, no)}, {quad_text(block, yes)}, {block.value(condition)})"
    return f"vec4<{TYPES[e.dtype]}>({literal(e.value, e.dtype)})"
