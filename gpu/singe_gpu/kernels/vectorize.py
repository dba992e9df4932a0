"""Vectors of four: which expressions are computed as vectors, which stores are one vector store, and their texts.

Over an aligned four of a variable (4·q, 4·q + 1, …) an index may stay the same, or step by one from a multiple of four.
A vector is loaded where the index steps. What the dialect's `vector_words` compute from vectors and from values that stay the
same is computed as a vector, too: a weight that is unpacked, a bias that is added. An operand is a quad if all of it is
a vector. Words are the same for 16 bytes of elements as four u32, but only a load, or a choice between one and a constant. A
store can write a vector if its index steps; what none of these words computes is computed for each of the four.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from singe.extension import DType, Expr, Store, affine, divides, float32, int32, scalar

from ..code.shader import Shader
from ..code.statements import MAX_INLINE_CHARACTERS, Statements
from ..dialect import Dialect
from ..rates import VECTOR_LENGTH

VECTOR_COMPONENTS: Final = "xyzw"
VECTOR_CASTS: Final[Mapping[tuple[DType, DType], str]] = {
    (int32, float32): "vec4<f32>({0})",
    (float32, int32): "i32s_of_f32s({0})",
}
"""The casts that compute vectors of four. i32s_of_f32s is a function of each dialect's library."""


def is_quad(e: Expr, along: Expr, shader: Shader, others: Iterable[Expr]) -> bool:
    """Whether an operand is a quad along a variable. others: the shader's other expressions, which load single elements."""
    return _is_vector(e, along, VECTOR_LENGTH, others, lambda c: e in _vectors(shader.dialect, c), shader.has_vectors)


def is_words(e: Expr, along: Expr, shader: Shader, others: Iterable[Expr], kind: DType) -> bool:
    """Whether an operand of elements of this kind is words along a variable."""
    return _is_vector(
        e, along, 16 // kind.size, others, lambda c: _is_words(e, c), lambda port: shader.has_words(port, kind)
    )


def _is_vector(
    e: Expr,
    along: Expr,
    side: int,
    others: Iterable[Expr],
    suits: Callable[[Mapping[Expr, str | None]], bool],
    fits: Callable[[int], bool],
) -> bool:
    if along.word != "var" or not divides(along.value[1], side):
        return False
    strides = index_strides([e], along, side)
    if not suits(strides):
        return False
    found = loads([e])
    stepping = {x.value for x in found if strides[x.args[0]] == "step"}
    single = {x.value for x in (*loads(others), *(x for x in found if strides[x.args[0]] != "step"))}
    return bool(stepping) and not stepping & single and all(map(fits, stepping))


def _is_words(e: Expr, strides: Mapping[Expr, str | None]) -> bool:
    if e.word == "select":
        return strides[e.args[0]] == "same" and all(_is_words(x, strides) for x in e.args[1:])
    return e.word == "const" or (e.word == "load" and strides[e.args[0]] == "step")


def index_strides(
    roots: Iterable[Expr], along: Expr, side: int = VECTOR_LENGTH, known: Collection[Expr] = ()
) -> dict[Expr, str | None]:
    """How all parts of expressions, arguments first, change over an aligned four: "same", "step" by one from a multiple of
    four, or None.

    known: expressions whose four values differ though they do not depend on the variable.
    """
    found: dict[Expr, str | None] = {}
    for e in scalar.postorder(roots):
        if e is along:
            found[e] = "step"
        elif e in known:
            found[e] = None
        elif all(found[a] == "same" for a in e.args):
            found[e] = "same"
        else:
            found[e] = _index_stride(e, along, side, known, found) if e.dtype is int32 else None
    return found


def _index_stride(
    e: Expr, along: Expr, side: int, known: Collection[Expr], strides: Mapping[Expr, str | None]
) -> str | None:
    if e.word in ("div", "rem"):
        by = e.args[1]
        if strides[e.args[0]] == "step" and by.word == "const" and by.value > 0 and by.value % side == 0:
            return "same" if e.word == "div" else "step"
        return None
    if e.word in ("add", "sub", "mul"):
        terms, constant = affine.linear(e)
        if e in terms:
            return None
        more = index_strides([atom for atom in terms if atom not in strides], along, side, known)
        parts = [(strides[atom] if atom in strides else more[atom], factor) for atom, factor in terms.items()]
        steps = [factor for stride, factor in parts if stride == "step"]
        rest = [factor for stride, factor in parts if stride == "same"]
        if len(steps) + len(rest) == len(parts) and steps == [1] and all(divides(f, side) for f in (*rest, constant)):
            return "step"
    return None


def _vectors(
    dialect: Dialect, strides: Mapping[Expr, str | None], known: Collection[Expr] = (), singly: Collection[int] = ()
) -> list[Expr]:
    """The parts of expressions that are vectors, arguments first. strides: of all parts, as index_strides has them. known: the vectors
    that are there already. singly: the ports that are read element by element."""
    found = dict.fromkeys(known)
    for e, stride in strides.items():
        if e.word == "load":
            vector = strides[e.args[0]] == "step" and e.value not in singly
        elif stride == "same":
            continue
        else:
            vector = _computes(dialect, e) and all(a in found or strides[a] == "same" for a in _values(e))
            vector = vector and (e.word != "select" or strides[e.args[0]] == "same")
        if vector:
            found[e] = None
    return list(found)


def _computes(dialect: Dialect, e: Expr) -> bool:
    """Whether a word computes vectors from vectors."""
    if e.word == "cast":
        return (e.args[0].dtype, e.dtype) in VECTOR_CASTS
    return e.word == "select" or e.dtype in dialect.vector_words.get(e.word, ())


def _values(e: Expr) -> Sequence[Expr]:
    """The arguments that are vectors if the expression is."""
    return e.args[1:] if e.word == "select" else e.args


def _put_vectors(
    out: Statements, roots: Sequence[Expr], along: Expr, known: Mapping[Expr, str], singly: Collection[int] = ()
) -> dict[Expr, str]:
    """Write what computes the parts of expressions that are vectors, and return their texts. Parts that are used more than
    once, or by an expression that is not a vector, are bound to names; so are long texts, and loads of ports that are
    written."""
    strides = index_strides(roots, along, known=known)
    dialect = out.shader.dialect
    vectors = _vectors(dialect, strides, known, singly)
    uses = dict.fromkeys(vectors, 0)
    for e in (*roots, *(a for x in strides for a in x.args)):
        if e in uses:
            uses[e] += 1
    apart = {a for x in strides if x not in uses for a in x.args if a in uses}
    computed = [e for e in vectors if e not in known]
    # What vectors need besides vectors: the indices of loads, the conditions of choices, values that stay the same.
    singles = list(dict.fromkeys(a for e in computed for a in e.args if a not in uses))
    single = dict(zip(singles, out.values(singles), strict=True))
    texts = dict(known)
    for e in computed:
        if e.word == "load":
            text = out.shader.load_vector(e.value, single[e.args[0]])
        else:
            args = [texts.get(a) or f"vec4<{dialect.types[a.dtype]}>({single[a]})" for a in _values(e)]
            text = _spell(dialect, e, args, single)
        written = e.word == "load" and out.shader.ports[e.value].written
        if uses[e] > 1 or e in apart or written or (len(text) > MAX_INLINE_CHARACTERS and e not in roots):
            text = out.let(out.shader.fresh(), text)
        texts[e] = text
    return texts


def _spell(dialect: Dialect, e: Expr, args: Sequence[str], single: Mapping[Expr, str]) -> str:
    if e.word == "select":
        return f"select({args[1]}, {args[0]}, {single[e.args[0]]})"
    if e.word == "cast":
        return VECTOR_CASTS[e.args[0].dtype, e.dtype].format(*args)
    spelling = dialect.vector_words[e.word][e.dtype]
    return spelling.format(*args) if isinstance(spelling, str) else spelling(e, args)


def quad_texts(out: Statements, quads: Sequence[Expr], along: Expr) -> list[str]:
    """The vectors of quads, or of neighbours of a quad, which may be the same for all four; what several of them compute or
    load is computed and loaded once."""
    texts, types = _put_vectors(out, quads, along, {}), out.shader.dialect.types
    return [texts.get(e) or f"vec4<{types[e.dtype]}>({out.value(e)})" for e in quads]


def words_text(out: Statements, e: Expr, word: Callable[[float], int]) -> str:
    """The vec4<u32> of words. word: that of a constant."""
    if e.word == "load":
        return out.shader.load_words(e.value, out.value(e.args[0]))
    if e.word == "select":
        no, yes = (words_text(out, x, word) for x in (e.args[2], e.args[1]))
        return f"select({no}, {yes}, {out.value(e.args[0])})"
    return f"vec4<u32>({word(e.value)}u)"


def put_copy_of_words(out: Statements, e: Expr, word: Callable[[float], int], place: str) -> None:
    """Write what copies words to a place in workgroup memory, ahead where they are a load."""
    if e.word == "load":
        out.put(out.shader.copy_words(e.value, out.value(e.args[0]), place))
    elif e.word == "select":
        with out.scope(f"if ({out.value(e.args[0])})") as yes:
            put_copy_of_words(yes, e.args[1], word, place)
        with out.scope("else") as no:
            put_copy_of_words(no, e.args[2], word, place)
    else:
        out.put(f"{place} = {words_text(out, e, word)};")


def in_fours(stores: Sequence[Store], along: Expr, shader: Shader, others: Iterable[Expr] = ()) -> bool:
    """Whether stores can write four neighbours of a variable at once. others: the shader's other expressions."""
    if along.word != "var" or not divides(along.value[1], VECTOR_LENGTH):
        return False
    # A port that is updated in place is read before it is written, at the same four elements.
    singly = _singly(stores, along, shader, others)
    strides = index_strides([s.index for s in stores], along)
    return all(strides[s.index] == "step" and shader.stores_vectors(s.port) and s.port not in singly for s in stores)


def put_four(
    out: Statements, stores: Sequence[Store], along: Expr, vectors: Mapping[Expr, str], others: Iterable[Expr] = ()
) -> None:
    """Write stores for four neighbours; `along` is bound to the first of them, a multiple of four.

    vectors: expressions whose four values are in a vector already ↦ the vector's name.
    """
    singly = _singly(stores, along, out.shader, others)
    texts = _put_vectors(out, [s.value for s in stores], along, vectors, singly)
    apart = [s.value for s in stores if s.value not in texts]
    found = {a: texts[a] for x in scalar.postorder(apart) if x not in texts for a in x.args if a in texts}
    swaps: list[dict[Expr, Expr]] = []
    for number, part in enumerate(VECTOR_COMPONENTS):
        place = {e: scalar.var(f"{name}.{part}", e.dtype) for e, name in found.items()}
        out.names.update((v, v.value[0]) for v in place.values())
        swaps.append({**place, along: along + scalar.const(number, int32)})
    indices = out.values([s.index for s in stores])
    single = iter(out.values([scalar.substitute(e, swap) for e in apart for swap in swaps]))
    for s, index in zip(stores, indices, strict=True):
        if s.value not in texts:
            values = [next(single) for _ in VECTOR_COMPONENTS]
        elif out.shader.takes_vectors(s.port):
            values = texts[s.value]
        else:
            name = out.let(out.shader.fresh(), texts[s.value])
            values = [f"{name}.{part}" for part in VECTOR_COMPONENTS]
        out.put(out.shader.store_vector(s.port, index, values))


def loads(roots: Iterable[Expr]) -> list[Expr]:
    """All loads below the expressions."""
    return [x for x in scalar.postorder(list(roots)) if x.word == "load"]


def _singly(stores: Sequence[Store], along: Expr, shader: Shader, others: Iterable[Expr]) -> set[int]:
    """The ports that are read element by element: by other expressions, or not contiguously, or without vectors."""
    mine = loads(s.value for s in stores)
    strides = index_strides([s.value for s in stores], along)
    strays = [x for x in mine if strides[x.args[0]] != "step" or not shader.stored_vectors(x.value)]
    return {x.value for x in (*loads(others), *strays)}
