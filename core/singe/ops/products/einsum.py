"""The row einsum: sums of products of elements, in the notation of NumPy ("bij,bjk->bik"), lowered to matrix products.

Operands are joined from the left, two at a time. Letters that both have and nothing later needs are summed by `dot`; if
there are none, it is an elementwise product. A letter that occurs twice in an operand reads its diagonal. Axes of
length 1 broadcast. A label is a letter, or for an axis of the ellipsis its number from the end, −1, −2, …
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from ...dtypes import COMPLEX, NUMBERS
from ...errors import ShapeError
from ...late_dataclass import dataclass
from ...shapes import Dim, product, same, show
from ..kinds import Composite, register

Label: TypeAlias = str | int


@dataclass(frozen=True)
class _Term:
    """An operand and the labels of its axes."""

    x: Any
    labels: tuple[Label, ...]

    def dims(self, labels: Sequence[Label]) -> list[Dim]:
        return [self.x.shape[self.labels.index(k)] for k in labels]


def _labels(text: str, axes: int, equation: str) -> tuple[Label, ...]:
    """The labels of an operand; an ellipsis stands for the axes that no letter names."""
    before, dots, after = text.partition("...")
    letters = before + after
    if not all(c.isascii() and c.isalpha() for c in letters):
        raise ShapeError(f"einsum: {equation!r} has the term {text!r}, expected letters, and at most one ellipsis")
    more = axes - len(letters)
    if more < 0 or (more > 0 and not dots):
        raise ShapeError(f"einsum: {equation!r} has the term {text!r} for {axes} axes")
    return (*before, *range(-more, 0), *after)


def parse(equation: str, shapes: Sequence[Sequence[Dim]]) -> tuple[list[tuple[Label, ...]], tuple[Label, ...]]:
    """The labels of each operand, and those of the result. Unless the equation names them, these are the ellipsis, then
    all letters that occur once, in alphabetical order."""
    given, arrow, result = "".join(equation.split()).partition("->")
    terms = given.split(",")
    if len(terms) != len(shapes):
        raise ShapeError(f"einsum: {equation!r} has {len(terms)} terms, got {len(shapes)} operands")
    labels = [_labels(text, len(shape), equation) for text, shape in zip(terms, shapes, strict=True)]
    every = [k for term in labels for k in term]
    dots = tuple(sorted({k for k in every if isinstance(k, int)}))
    if not arrow:
        once = sorted(k for k in every if isinstance(k, str) and every.count(k) == 1)
        return labels, (*dots, *once)
    wanted = _labels(result, len(result.replace("...", "")) + (len(dots) if "..." in result else 0), equation)
    unknown = [k for k in wanted if k not in every or wanted.count(k) > 1]
    if unknown:
        raise ShapeError(
            f"einsum: {equation!r}: the result names {unknown[0]!r} twice, or it is a letter that no term has"
        )
    return labels, wanted


def _lengths(terms: Sequence[_Term], equation: str) -> dict[Label, Dim]:
    """The length of each label's axes. Where some have length 1 and others do not, it is that of the others."""
    found: dict[Label, Dim] = {}
    for term in terms:
        for k, d in zip(term.labels, term.x.shape, strict=True):
            if found.setdefault(k, d) == 1:
                found[k] = d
            elif d != 1 and not same(d, found[k], "einsum"):
                raise ShapeError(f"einsum: {equation!r}: {k!r} has the lengths {found[k]} and {d}")
    return found


def _distinct(b: Any, term: _Term, lengths: dict[Label, Dim]) -> _Term:
    """The operand with each label once, and without axes that broadcast."""
    x, labels = term.x, list(term.labels)
    for k in dict.fromkeys(term.labels):
        while labels.count(k) > 1:
            first = labels.index(k)
            second = labels.index(k, first + 1)
            if not same(x.shape[first], x.shape[second], "einsum"):
                raise ShapeError(f"einsum: the axes {k!r} of {show(term.x.shape)} have different lengths")
            x = b.diagonal(x, axis1=first, axis2=second)
            labels = [*(v for i, v in enumerate(labels) if i not in (first, second)), k]
    whole = [i for i, k in enumerate(labels) if x.shape[i] != 1 or lengths[k] == 1]
    return _Term(b.reshape(x, shape=tuple(x.shape[i] for i in whole)), tuple(labels[i] for i in whole))


def _summed(b: Any, term: _Term, kept: Collection[Label]) -> _Term:
    """The operand, summed over the labels that nothing else needs."""
    axes = tuple(i for i, k in enumerate(term.labels) if k not in kept)
    if not axes:
        return term
    left = [i for i in range(len(term.labels)) if i not in axes]
    x = b.reshape(b.reduce_sum(term.x, axes=axes), shape=tuple(term.x.shape[i] for i in left))
    return _Term(x, tuple(term.labels[i] for i in left))


def _ordered(b: Any, term: _Term, labels: Sequence[Label]) -> Any:
    perm = tuple(term.labels.index(k) for k in labels)
    return term.x if perm == tuple(range(len(perm))) else b.transpose(term.x, perm=perm)


def _joined(b: Any, one: _Term, two: _Term, kept: Collection[Label]) -> _Term:
    """The product of two operands, summed over the labels that both have and nothing else needs."""
    batch = [k for k in one.labels if k in two.labels and k in kept]
    summed = [k for k in one.labels if k in two.labels and k not in kept]
    left = [k for k in one.labels if k not in two.labels]
    right = [k for k in two.labels if k not in one.labels]
    rows, columns, shared = one.dims(left), two.dims(right), one.dims(batch)
    first, second = _ordered(b, one, [*batch, *left, *summed]), _ordered(b, two, [*batch, *summed, *right])
    if summed:
        depth = product(one.dims(summed))
        first = b.reshape(first, shape=(*shared, product(rows), depth))
        second = b.reshape(second, shape=(*shared, depth, product(columns)))
        x = b.dot(first, second)
    else:
        first = b.reshape(first, shape=(*shared, *rows, *(1,) * len(right)))
        second = b.reshape(second, shape=(*shared, *(1,) * len(left), *columns))
        x = b.mul(first, second)
    return _Term(b.reshape(x, shape=(*shared, *rows, *columns)), (*batch, *left, *right))


def _einsum(b: Any, *xs: Any, equation: str) -> Any:
    every, wanted = parse(equation, [x.shape for x in xs])
    terms = [_Term(x, labels) for x, labels in zip(xs, every, strict=True)]
    lengths = _lengths(terms, equation)
    terms = [_distinct(b, term, lengths) for term in terms]
    for n, term in enumerate(terms):
        others = {k for m, other in enumerate(terms) if m != n for k in other.labels}
        terms[n] = _summed(b, term, others | set(wanted))
    total = terms[0]
    for n, term in enumerate(terms[1:], 1):
        later = {k for other in terms[n + 1 :] for k in other.labels}
        total = _joined(b, total, term, later | set(wanted))
    return _ordered(b, total, wanted)


register(
    Composite(name="einsum", public=False, doc='sums of products of elements, in the notation of NumPy: equation="ij,jk->ik" is a product of matrices',
              dtypes=(*NUMBERS, *COMPLEX), lower=_einsum, tolerance=64, floor=1e-5),
)  # fmt: skip
