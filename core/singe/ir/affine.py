"""Index arithmetic: int32 expressions as sums of coefficient · atom, with coefficients that may be Sizes.

Coordinates become flat indices (`flatten`) and back (`unflatten`). Terms that divide evenly are moved out of divisions,
split indices are recombined, and a remainder of a value provably below its divisor is dropped. Proofs rely on two facts:
loop variables and named sizes are never negative, and a loop over no elements never runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..dtypes import int32
from ..shapes import Dim, Shape, dim_max, divides
from ..shapes import at_least as at_least  # noqa: PLC0414 (others take it from here)
from .scalar import Expr, add, const, div, fold, make, maximum, minimum, mul, rem, size, text


@lru_cache(maxsize=1 << 14)
def linear(e: Expr) -> tuple[Mapping[Expr, Dim], Dim]:
    """An int32 expression as (terms, constant): the sum of coefficient · atom, plus the constant."""
    if e.word == "const":
        return {}, e.value
    if e.word == "size":
        return {}, e.value
    if e.word in ("add", "sub"):
        terms, constant = linear(e.args[0])
        more, other = linear(e.args[1])
        sign = 1 if e.word == "add" else -1
        terms = dict(terms)
        for k, v in more.items():
            terms[k] = terms.get(k, 0) + sign * v
        return {k: v for k, v in terms.items() if v != 0}, constant + sign * other
    if e.word == "mul":
        (left, c1), (right, c2) = linear(e.args[0]), linear(e.args[1])
        if not right:
            return ({k: v * c2 for k, v in left.items()}, c1 * c2) if c2 != 0 else ({}, 0)
        if not left:
            return ({k: v * c1 for k, v in right.items()}, c1 * c2) if c1 != 0 else ({}, 0)
    return {e: 1}, 0


def from_linear(terms: Mapping[Expr, Dim], constant: Dim) -> Expr:
    """The sum as an expression, constant last."""
    total: Expr | None = None
    for atom, factor in terms.items():
        part = mul(atom, size(factor))
        total = part if total is None else add(total, part)
    if total is None:
        return size(constant)
    return total if constant == 0 else add(total, size(constant))


@lru_cache(maxsize=1 << 14)
def bounds(e: Expr) -> tuple[Dim | None, Dim | None]:
    """The least and the largest value of an int32 expression where known. A named size counts as at least 1 here."""
    if e.word == "const" or e.word == "size":
        return e.value, e.value
    if e.word == "var" and e.value[1] is not None:
        return 0, e.value[1] - 1
    if e.word in ("add", "sub", "mul"):
        terms, constant = linear(e)
        if terms.keys() == {e}:
            return None, None
        low: Dim | None = constant
        high: Dim | None = constant
        for atom, factor in terms.items():
            least, most = bounds(atom)
            if at_least(-factor, 0):
                least, most = most, least
            elif not at_least(factor, 0):
                return None, None
            low = None if low is None or least is None else low + least * factor
            high = None if high is None or most is None else high + most * factor
        return low, high
    if e.word == "rem" and e.args[1].word in ("const", "size"):
        low, high = bounds(e.args[0])
        return (0, e.args[1].value - 1) if low is not None and at_least(low, 0) else (None, None)
    if e.word == "div" and e.args[1].word in ("const", "size"):
        low, high = bounds(e.args[0])
        if low is not None and at_least(low, 0):
            return 0, None if high is None else high // e.args[1].value
    if e.word in ("min", "max"):
        (l1, h1), (l2, h2) = bounds(e.args[0]), bounds(e.args[1])
        if e.word == "min":  # at least the smaller low, at most either high
            low = (
                l1
                if l1 == l2
                else 0
                if l1 is not None and l2 is not None and at_least(l1, 0) and at_least(l2, 0)
                else None
            )
            return low, h2 if h2 is not None else h1
        low = l2 if l2 is not None else l1
        high = h1 if h1 == h2 else h1 if h1 is not None and isinstance(h2, int) and at_least(h1, h2) else None
        return low, high
    return None, None


def below(e: Expr, limit: Dim) -> bool:
    """Whether 0 ≤ e < limit can be proved."""
    low, high = bounds(e)
    if low is None or high is None or not at_least(low, 0):
        return False
    # A loop over no elements never runs, so a size inside may count as at least 1.
    return at_least(limit - 1 - high, 0, named=1)


def index_div(e: Expr, by: Dim) -> Expr:
    """e // by for e ≥ 0 and by ≥ 1; terms that divide evenly are moved out of the division."""
    return _split(e, by)[0]


def index_rem(e: Expr, by: Dim) -> Expr:
    """e % by for e ≥ 0 and by ≥ 1."""
    return _split(e, by)[1]


def _split(e: Expr, by: Dim) -> tuple[Expr, Expr]:
    if by == 1:
        return e, const(0, int32)
    if by == 0:  # an empty axis: no element runs, but the kernel must be printable
        return const(0, int32), const(0, int32)
    terms, constant = linear(e)
    out: dict[Expr, Dim] = {}
    rest: dict[Expr, Dim] = {}
    for atom, factor in terms.items():
        if divides(factor, by):
            out[atom] = factor // by
        else:
            rest[atom] = factor
    whole, part = (
        divmod(constant, by)
        if isinstance(constant, int) and isinstance(by, int)
        else ((constant // by, 0) if divides(constant, by) else (0, constant))
    )
    left = from_linear(rest, part)
    low = bounds(left)[0]
    if below(left, by):
        return from_linear(out, whole), left
    if low is None or not at_least(
        low, 0
    ):  # the remaining terms alone may be negative, where rounding toward zero differs
        return div(e, size(by)), rem(e, size(by))
    common = math.gcd(*(d if isinstance(d, int) else 1 for d in (by, *rest.values())))
    if common > 1 and isinstance(by, int) and isinstance(part, int):  # (4·x + 3) // 8 is x // 2
        fewer = {atom: factor // common for atom, factor in rest.items()}
        quotient, left = _split(from_linear(fewer, part // common), by // common)
        return add(from_linear(out, whole), quotient), add(mul(left, size(common)), const(part % common, int32))
    quotient = _nested_div(left, by)
    return add(from_linear(out, whole), quotient), rem(left, size(by))


def substitute(e: Expr, swap: Mapping[Expr, Expr]) -> Expr:
    """An expression with some of its parts replaced, and index divisions simplified again."""

    def step(x: Expr, args: tuple[Expr, ...]) -> Expr:
        if x in swap:
            return swap[x]
        if x.word in ("div", "rem") and x.dtype is int32 and args[1].word in ("const", "size"):
            least = bounds(args[0])[0]
            if least is not None and at_least(least, 0):
                return (index_div if x.word == "div" else index_rem)(args[0], args[1].value)
        return x if args == x.args else make(x.word, args, x.dtype, x.value)

    return fold([e], step)[0]


def _nested_div(e: Expr, by: Dim) -> Expr:
    """(x // a) // b is x // (a·b)."""
    if e.word == "div" and e.args[1].word in ("const", "size"):
        return div(e.args[0], size(e.args[1].value * by))
    return div(e, size(by))


def flatten(coords: Iterable[Expr], shape: Shape) -> Expr:
    """The row-major flat index of coordinates in a shape."""
    terms: dict[Expr, Dim] = {}
    constant: Dim = 0
    step: Dim = 1
    for c, d in reversed(list(zip(coords, shape, strict=True))):
        if d != 1:
            more, extra = linear(c)
            for atom, factor in more.items():
                terms[atom] = terms.get(atom, 0) + factor * step
            constant = constant + extra * step
        step = step * d
    return _recombine({k: v for k, v in terms.items() if v != 0}, constant)


def _recombine(terms: dict[Expr, Dim], constant: Dim) -> Expr:
    """Undo splits: c·a·(x // a) + c·(x % a) is c·x."""
    changed = True
    while changed:
        changed = False
        for e, factor in list(terms.items()):
            if e.word == "rem" and e.args[1].word in ("const", "size"):
                by = e.args[1].value
                x = e.args[0]
                quotient = _nested_div(x, by) if x.word == "div" else div(x, size(by))
                if terms.get(quotient) == factor * by:
                    del terms[e], terms[quotient]
                    more, extra = linear(x)
                    for atom, scale in more.items():
                        terms[atom] = terms.get(atom, 0) + scale * factor
                    constant = constant + extra * factor
                    terms = {k: v for k, v in terms.items() if v != 0}
                    changed = True
                    break
    return from_linear(dict(sorted(terms.items(), key=_term_order)) if len(terms) > 1 else terms, constant)


def _term_order(term: tuple[Expr, Dim]) -> tuple[int, float, str]:
    """Largest steps first, loop variables before other atoms, so that equal sums have equal order."""
    atom, factor = term
    return (0 if atom.word == "var" else 1, -factor if isinstance(factor, int) else -math.inf, text(atom))


def clamp(index: Expr, extent: Dim) -> Expr:
    """An index clamped to 0 … extent − 1, and to 0 if the extent is 0; a bound that provably holds is left out."""
    least, most = bounds(index)
    if least is None or not at_least(least, 0):
        index = maximum(index, 0)
    inside = most is not None and at_least(extent - 1 - most, 0)
    return index if inside else minimum(index, size(dim_max(extent - 1, 0)))


def unflatten(index: Expr, shape: Shape) -> tuple[Expr, ...]:
    """The coordinates of a flat index in a shape."""
    out: list[Expr] = []
    for d in reversed(shape[1:]):
        index, coordinate = _split(index, d)
        out.append(coordinate)
    if shape:
        out.append(index)
    return tuple(reversed(out))
