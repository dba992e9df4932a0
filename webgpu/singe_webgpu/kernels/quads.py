"""Vectors of four: which expressions are one vector load, which stores are one vector store, and their texts.

Over an aligned four of a variable (4·q, 4·q + 1, …) an index may stay the same, or step by one from a multiple of four.
An expression is a quad if it is computed, by WORDS, from loads whose indices step and from values that stay the same: a
weight that is unpacked, say. An octet is the same for eight, aligned to eight, but only a load, or a choice between one
and a constant. A store can write a vector if its index steps: its value is computed for each of the four, with vector
loads where it loads neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from singe.extension import DType, Expr, Store, affine, divides, float32, int32, scalar

from ..code.shader import Shader
from ..code.wgsl import TYPES, Statements

SIDE: Final = 4
PARTS: Final = "xyzw"
WORDS: Final[Mapping[str, str]] = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})", "and": "({0} & {1})", "shr": "({0} >> bitcast<vec4<u32>>({1}))",
}  # fmt: skip
"""The words of quads, besides choices and casts: word ↦ its spelling for vectors."""
CASTS: Final[Mapping[tuple[DType, DType], str]] = {
    (int32, float32): "vec4<f32>({0})",
    (float32, int32): "i32s_of_f32s({0})",
}
_VECTORS: Final = (int32, float32)
"""The types of quads that are computed."""


def is_quad(e: Expr, along: Expr, shader: Shader, others: Iterable[Expr], side: int = SIDE) -> bool:
    """Whether an operand is a quad along a variable. others: the shader's other expressions, which load single elements."""
    if along.word != "var" or not divides(along.value[1], side) or not _is_quad(e, along, side):
        return False
    found = loads([e])
    stepping = {x.value for x in found if _course(x.args[0], along, side) == "step"}
    single = {x.value for x in (*loads(others), *(x for x in found if _course(x.args[0], along, side) != "step"))}
    return bool(stepping) and not stepping & single and all(map(shader.has_vectors, stepping))


def _is_quad(e: Expr, along: Expr, side: int) -> bool:
    if e.word == "load":
        course = _course(e.args[0], along, side)
        return course == "step" or (course == "same" and side == SIDE)
    if e.word == "const":
        return True
    if e.word == "select":
        condition, *values = e.args
        return _course(condition, along, side) == "same" and all(_is_quad(x, along, side) for x in values)
    if side != SIDE:
        return False
    if _course(e, along, side) == "same":
        return True
    if e.word == "cast":
        return (e.args[0].dtype, e.dtype) in CASTS and _is_quad(e.args[0], along, side)
    return e.word in WORDS and e.dtype in _VECTORS and all(_is_quad(x, along, side) for x in e.args)


def _course(e: Expr, along: Expr, side: int = SIDE) -> str | None:
    """How an expression changes over an aligned four: "same", or "step" by one from a multiple of four."""
    if e is along:
        return "step"
    if not e.args:
        return "same"
    courses = [_course(a, along, side) for a in e.args]
    if all(c == "same" for c in courses):
        return "same"
    if e.word in ("div", "rem"):
        by = e.args[1]
        if courses[0] == "step" and by.word == "const" and by.value > 0 and by.value % side == 0:
            return "same" if e.word == "div" else "step"
        return None
    if e.word in ("add", "sub", "mul"):
        terms, constant = affine.linear(e)
        if e in terms:
            return None
        parts = [(_course(atom, along, side), factor) for atom, factor in terms.items()]
        steps = [factor for course, factor in parts if course == "step"]
        rest = [factor for course, factor in parts if course == "same"]
        if len(steps) + len(rest) == len(parts) and steps == [1] and all(divides(f, side) for f in (*rest, constant)):
            return "step"
    return None


def quad_texts(out: Statements, quads: Sequence[Expr], along: Expr) -> list[str]:
    """The vectors of quads; what several of them compute or load is computed and loaded once."""
    found = [x for e in quads for x in loads([e])]
    singles = [x for e in quads for x in _singles(e, along)]
    single = dict(zip(singles, out.values(singles), strict=True))
    names: dict[Expr, str] = {}

    def text(e: Expr) -> str:
        if e in names:
            return names[e]
        if e.word == "load" and _course(e.args[0], along) == "step":
            loaded = out.shader.load_vector(e.value, single[e.args[0]])
            if found.count(e) > 1:
                loaded = names[e] = out.let(out.shader.fresh(), loaded)
            return loaded
        if e in single:
            return f"vec4<{TYPES[e.dtype]}>({single[e]})"
        if e.word == "select":
            return f"select({text(e.args[2])}, {text(e.args[1])}, {single[e.args[0]]})"
        spelling = CASTS[e.args[0].dtype, e.dtype] if e.word == "cast" else WORDS[e.word]
        return spelling.format(*map(text, e.args))

    return [text(e) for e in quads]


def _singles(e: Expr, along: Expr) -> Iterator[Expr]:
    """What a quad needs besides vectors: the indices of its loads, the conditions of choices, values that stay the same."""
    if e.word == "load" and _course(e.args[0], along) == "step":
        yield e.args[0]
    elif _course(e, along) == "same":
        yield e
    else:
        condition, values = (e.args[:1], e.args[1:]) if e.word == "select" else ((), e.args)
        yield from condition
        for value in values:
            yield from _singles(value, along)


def octet_text(out: Statements, e: Expr, along: Expr) -> str:
    """The vec4<u32> of an octet of float16."""
    if e.word == "load":
        return out.shader.load_octet(e.value, out.value(e.args[0]))
    if e.word == "select":
        no, yes = (octet_text(out, x, along) for x in (e.args[2], e.args[1]))
        return f"select({no}, {yes}, {out.value(e.args[0])})"
    return f"vec4<u32>({int(np.float16(e.value).view(np.uint16)) * 0x10001}u)"


def in_fours(stores: Sequence[Store], along: Expr, shader: Shader, others: Iterable[Expr] = ()) -> bool:
    """Whether stores can write four neighbours of a variable at once. others: the shader's other expressions."""
    if along.word != "var" or not divides(along.value[1], SIDE):
        return False
    # A port that is updated in place is read before it is written, at the same four elements.
    singly = _singly(stores, along, shader, others)
    return all(
        _course(s.index, along) == "step" and shader.stores_vectors(s.port) and s.port not in singly for s in stores
    )


def put_four(
    out: Statements, stores: Sequence[Store], along: Expr, vectors: Mapping[Expr, str], others: Iterable[Expr] = ()
) -> None:
    """Write stores for four neighbours; `along` is bound to the first of them, a multiple of four.

    vectors: expressions whose four values are in a vector already ↦ the vector's name.
    """
    singly = _singly(stores, along, out.shader, others)
    named = dict(vectors)
    for x in loads(s.value for s in stores):
        if x.value not in singly:
            named[x] = out.let(out.shader.fresh(), out.shader.load_vector(x.value, out.value(x.args[0])))
    values = []
    for number, part in enumerate(PARTS):
        place = {e: scalar.var(f"{name}.{part}", e.dtype) for e, name in named.items()}
        out.names.update((v, v.value[0]) for v in place.values())
        swap = {**place, along: along + scalar.const(number, int32)}
        values.append([scalar.substitute(s.value, swap) for s in stores])
    roots = [e for k, s in enumerate(stores) for e in (s.index, *(four[k] for four in values))]
    texts = iter(out.values(roots))
    for s in stores:
        index, *four = (next(texts) for _ in range(1 + SIDE))
        out.put(out.shader.store_vector(s.port, index, four))


def loads(roots: Iterable[Expr]) -> list[Expr]:
    """All loads below the expressions."""
    return [x for x in scalar.postorder(list(roots)) if x.word == "load"]


def _singly(stores: Sequence[Store], along: Expr, shader: Shader, others: Iterable[Expr]) -> set[int]:
    """The ports that are read element by element: by other expressions, or not contiguously, or without vectors."""
    mine = loads(s.value for s in stores)
    strays = [x for x in mine if _course(x.args[0], along) != "step" or not shader.stored_vectors(x.value)]
    return {x.value for x in (*loads(others), *strays)}
