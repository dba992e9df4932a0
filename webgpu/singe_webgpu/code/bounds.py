"""Tests and clamps of indices, in the form that takes the least work in a shader.

Kernels clamp the index of an element that counts only inside the bounds, as in the padding of a convolution: a read
outside of an array could end a process. WebGPU makes such reads harmless, so there the test alone is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from singe.extension import Dim, Expr, bool_, dim_max, int32, scalar, uint32


def lean(roots: Iterable[Expr]) -> list[Expr]:
    """The expressions without clamps of what counts only inside the bounds, and with one test for both bounds of an index."""
    return scalar.fold(scalar.fold(roots, _unclamped), _tested)


def _unclamped(e: Expr, args: tuple[Expr, ...]) -> Expr:
    made = e if args == e.args else scalar.make(e.word, args, e.dtype, e.value)
    if made.word != "select":
        return made
    condition, inside, outside = made.args
    parts = list(_conjuncts(condition))
    zero = scalar.const(0, int32)
    above = {p.args[1] for p in parts if p.word == "le" and p.args[0] is zero}
    swap = {scalar.maximum(v, 0): v for v in above}
    for v, end in filter(None, map(_below, parts)):
        last = scalar.size(dim_max(end - 1, 0))
        swap[scalar.minimum(v, last)] = v
        if v in above:
            swap[scalar.minimum(scalar.maximum(v, 0), last)] = v
    return scalar.select(condition, scalar.substitute(inside, swap), outside) if swap else made


def _tested(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """0 ≤ v and v < n become one comparison without signs."""
    made = e if args == e.args else scalar.make(e.word, args, e.dtype, e.value)
    if made.word != "and" or made.dtype is not bool_:
        return made
    tests = list(_conjuncts(made))
    for test in tests[:]:
        below = _below(test)
        low = below and (scalar.const(0, int32) <= below[0])
        if below and low in tests:
            tests[tests.index(low)] = scalar.cast(below[0], uint32) < scalar.cast(test.args[1], uint32)
            tests.remove(test)
    return made if len(tests) == len(list(_conjuncts(made))) else reduce(scalar.and_, tests)


def _conjuncts(e: Expr) -> Iterator[Expr]:
    if e.word == "and" and e.dtype is bool_:
        for a in e.args:
            yield from _conjuncts(a)
    else:
        yield e


def _below(e: Expr) -> tuple[Expr, Dim] | None:
    """What an expression says to be below which dimension."""
    if e.word == "lt" and e.args[0].dtype is int32 and e.args[1].word in ("const", "size"):
        return e.args[0], e.args[1].value
    return None
