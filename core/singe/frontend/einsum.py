"""`einsum`: products of tensors, summed over the axes that an equation names."""

from __future__ import annotations

import re
from typing import Any, Final

from ..errors import InputError, ShapeError
from ..ops import ROWS
from .calls import call_row
from .meet import as_type, common_type
from .reductions import reduced
from .tensor import Tensor, TensorLike, apply

_TERM: Final = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def einsum(equation: str, *tensors: TensorLike) -> Tensor:
    """The sum of products that an equation such as "bij,bjk->bik" describes: a letter names an axis, `...` axes that
    broadcast; letters that the result lacks are summed over. Without `->`, the result has the letters that occur once."""
    terms, result = _parsed(equation, len(tensors))
    if "einsum" in ROWS:
        return call_row(ROWS["einsum"], tensors, equation=f"{','.join(terms)}->{result}")
    return apply(lambda b, *nodes: _sum_of_products(b, nodes, terms, result), *tensors)


def _parsed(equation: str, count: int) -> tuple[list[str], str]:
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if any(not _TERM.fullmatch(term) for term in (*terms, result)):
        raise InputError(f"einsum: {equation!r} is no equation such as 'ij,jk->ik'")
    if len(terms) != count:
        raise InputError(f"einsum: {equation!r} has {len(terms)} terms, got {count} tensors")
    if not arrow:
        letters = "".join(terms).replace("...", "")
        once = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
        result = ("..." if "..." in left else "") + once
    letters = result.replace("...", "")
    if len(set(letters)) != len(letters) or not set(letters) <= set(left):
        raise InputError(f"einsum: the result {result!r} of {equation!r} has a letter twice, or one that no term has")
    return terms, result


def _sum_of_products(b: Any, nodes: Any, terms: list[str], result: str) -> Any:
    kind = common_type(nodes)
    wide = max(
        (len(n.shape) - len(t.replace("...", "")) for n, t in zip(nodes, terms, strict=True) if "..." in t), default=0
    )
    dots = [f".{i}" for i in range(wide)]  # the axes of `...`, by names that are no letters
    named = [_axes(t, len(n.shape), dots) for n, t in zip(nodes, terms, strict=True)]
    kept = _axes(result, len(result.replace("...", "")) + wide * ("..." in result), dots)
    order = [*kept, *dict.fromkeys(a for axes in named for a in axes if a not in kept)]
    total = None
    for n, axes in zip(nodes, named, strict=True):
        x = as_type(b, n, kind)
        x, axes = _diagonals(b, x, axes)
        x = b.transpose(x, perm=tuple(sorted(range(len(axes)), key=lambda i: order.index(axes[i]))))
        there = iter(x.shape)
        x = b.reshape(x, shape=tuple(next(there) if a in axes else 1 for a in order))
        total = x if total is None else b.mul(total, x)
    summed = tuple(range(len(kept), len(order)))
    return reduced(b, total, "reduce_sum", summed, keepdims=False) if summed else total


def _axes(term: str, rank: int, dots: list[str]) -> list[str]:
    """The names of the axes of a term of this rank: letters, and those of `...`, which are the last of `dots`."""
    before, found, after = term.partition("...")
    count = rank - len(before) - len(after)
    if count < 0 or (count and not found):
        raise ShapeError(f"einsum: the term {term!r} for {rank} axes: expected a letter for each, or `...` for some")
    return [*before, *dots[len(dots) - count :], *after]


def _diagonals(b: Any, x: Any, axes: list[str]) -> tuple[Any, list[str]]:
    """The node with one axis in place of several of one name: the diagonal of these."""
    for name in [a for a in dict.fromkeys(axes) if axes.count(a) > 1]:
        while axes.count(name) > 1:
            first, second = [i for i, a in enumerate(axes) if a == name][:2]
            d = x.shape[first]
            at = b.arange(b.const(0), b.const(1), count=d)
            rank = len(axes)
            rows = b.reshape(at, shape=tuple(d if i == first else 1 for i in range(rank)))
            columns = b.reshape(at, shape=tuple(d if i == second else 1 for i in range(rank)))
            x = b.where(b.equal(rows, columns), x, b.const(0, x.dtype))
            x = reduced(b, x, "reduce_sum", (second,), keepdims=False)
            axes = axes[:second] + axes[second + 1 :]
    return x, axes
