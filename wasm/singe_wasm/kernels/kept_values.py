"""Avoids computing an expensive value in several stages of a kernel by keeping it in the output buffer in between.

A softmax sums exponentials and then divides each of them by the sum. Storing them where the results will be lets both
later stages load them: the same bits, for a store and two loads instead of a second exponential.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from singe.extension import WORD_COSTS, Expr, Kernel, Reduce, Store, float32, scalar

COSTLY_WORDS: Final = frozenset(word for word, cost in WORD_COSTS.items() if cost >= WORD_COSTS["exp"])


def keep(kernel: Kernel) -> Kernel:
    """The kernel with an expensive value that its last two stages share stored first, if there is one."""
    if len(kernel.stages) < 2:
        return kernel
    *before, fold, store = kernel.stages
    if not (isinstance(fold, Reduce) and isinstance(store, Store) and store.inner):
        return kernel
    loads = {e.value for e in scalar.postorder(kernel.roots) if e.word == "load"}
    if kernel.ports[store.port].dtype is not float32 or store.port in loads:
        return kernel
    loops = {v for v in kernel.inner_vars if v.word == "var"}
    costly = _costly_part(store.value, set(scalar.postorder([fold.value])), loops)
    if costly is None:
        return kernel
    kept = {costly: scalar.load(store.port, store.index, float32)}
    stages = (
        *before,
        replace(store, value=costly),
        replace(fold, value=scalar.substitute(fold.value, kept)),
        replace(store, value=scalar.substitute(store.value, kept)),
    )
    return replace(kernel, stages=stages)


def _costly_part(value: Expr, others: set[Expr], loops: set[Expr]) -> Expr | None:
    """The largest part of a value that is among the others, is expensive, and varies along inner loops."""
    for e in reversed(scalar.postorder([value])):
        if e in others and e.dtype is float32:
            below = scalar.postorder([e])
            if not loops.isdisjoint(below) and any(x.word in COSTLY_WORDS for x in below):
                return e
    return None
