"""Tests and clamps of indices, in the form that takes the least work in a shader.

Kernels clamp the index of an element that counts only inside the bounds, as in the padding of a convolution: elsewhere
a read outside of an array could end the process. What runs kernel text makes such reads harmless, so the test alone is
enough. Only an index that steps from element to element keeps its clamp: without it, four neighbours of which some lie
outside would look like a vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Final

from singe.extension import Dim, Expr, affine, bool_, int32, scalar, uint32

ZERO: Final = scalar.const(0, int32)


def drop_unneeded_clamps(roots: Iterable[Expr]) -> list[Expr]:
    """The expressions without clamps of what counts only inside the bounds, and with one test for both bounds of an index."""
    return scalar.fold(scalar.fold(roots, _unclamped), _tested)


def _rebuilt(e: Expr, args: tuple[Expr, ...]) -> Expr:
    return e if args == e.args else scalar.make(e.word, args, e.dtype, e.value)


def _unclamped(e: Expr, args: tuple[Expr, ...]) -> Expr:
    made = _rebuilt(e, args)
    if made.word != "select":
        return made
    condition, inside, outside = made.args
    parts = list(_conjuncts(condition))
    above = {p.args[1] for p in parts if p.word == "le" and p.args[0] is ZERO}
    swap = {scalar.maximum(v, 0): v for v in above}
    for v, end in filter(None, map(_below, parts)):
        least, _ = affine.bounds(v)
        if v in above or (least is not None and affine.at_least(least, 0)):
            swap[affine.clamp(v, end)] = v

    def free(e: Expr, args: tuple[Expr, ...]) -> Expr:
        """Indices that count more than one element each lose their clamps."""
        return _rebuilt(e, tuple(swap.get(a, a) for a in args) if e.word == "mul" else args)

    return scalar.select(condition, scalar.fold([inside], free)[0], outside) if swap else made


def _tested(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """0 ≤ v and v < n become one comparison without signs."""
    made = _rebuilt(e, args)
    if made.word != "and" or made.dtype is not bool_:
        return made
    tests = dict.fromkeys(_conjuncts(made))
    count = len(tests)
    for test in list(tests):
        below = _below(test)
        low = below and (below[0] >= ZERO)
        if below and low in tests:
            del tests[low], tests[test]
            tests[scalar.cast(below[0], uint32) < scalar.cast(test.args[1], uint32)] = None
    return reduce(scalar.and_, tests) if len(tests) < count else made


def _conjuncts(e: Expr) -> Iterator[Expr]:
    if e.word == "and" and e.dtype is bool_:
        for a in e.args:
            yield from _conjuncts(a)
    else:
        yield e


def _below(e: Expr) -> tuple[Expr, Dim] | None:
    """What an expression says to be below which dimension; None if it says something else."""
    if e.word == "lt" and e.args[0].dtype is int32 and e.args[1].word in ("const", "size"):
        end = e.args[1].value
        return (e.args[0], end) if affine.at_least(end, 0) else None
    return None
