"""Shapes: tuples of dimensions; a dimension is an int or a symbolic Size.

A Size is an integer polynomial over named sizes ("N") and opaque atoms (floor division, remainder, max, min of
Sizes), kept in canonical form, so that two ways of computing one dimension compare equal. Arithmetic between Sizes
and ints gives an int again wherever the symbols cancel. Named sizes are never negative at run time, but may be 0:
simplification relies on this. `least` proves lower bounds. Whether two dimensions are `same` may depend on the sizes:
then a run checks it, or SizeNeeded says which sizes must be numbers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from types import FrameType
from typing import Any, Final, TypeAlias, Union

from .errors import ShapeError, SizeNeeded

Dim: TypeAlias = Union[int, "Size"]
Shape: TypeAlias = tuple[Dim, ...]
Atom: TypeAlias = "str | tuple[str, Dim, Dim]"
"""A named size, or (word, a, b) with one of OPAQUE's words over two dimensions."""
MAX_ELEMENTS: Final = 2**31 - 1
"""The most elements that a tensor may have, and so the largest size: kernels count in int32."""
MAX_RANK: Final = 32
"""The most axes of a tensor in a file."""
MAX_ATOMS: Final = 4000
"""The most parts of a Size: its terms, and those of its different opaque atoms, at any depth."""

OPAQUE: Final = {
    "div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}


class Size:
    """A symbolic dimension: a canonical sum of integer multiples of products of atoms."""

    __slots__ = ("_hash", "_text", "atoms", "names", "terms")

    def __init__(self, terms: Mapping[tuple[Atom, ...], int]) -> None:
        inner = {atom for key in terms for atom in key if not isinstance(atom, str)}
        self.atoms: Final = len(terms) + sum(map(_atoms, inner))
        self.names: Final = frozenset(name for key in terms for atom in key for name in _names(atom))
        if self.atoms > MAX_ATOMS:
            raise SizeNeeded(
                f"a dimension is an expression of {', '.join(sorted(self.names))} with more than {MAX_ATOMS} parts",
                self.names,
            )
        shown = sorted(((repr(term), term) for term in terms.items() if term[1]), key=lambda pair: pair[0])
        self.terms: Final = tuple(term for _, term in shown)
        self._hash: Final = hash(tuple(text for text, _ in shown))  # those of the numbers -1 and -2 are equal
        self._text: str | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Whether the canonical forms are equal; see `asking` for who asks something else by `==`."""
        if isinstance(other, Size) and self.terms == other.terms:
            return True
        if not _ASKING.get() or not isinstance(other, (int, Size)) or _is_ours(sys._getframe(1)):
            return False
        return equal(self, other, "comparison of sizes")

    def __repr__(self) -> str:
        if self._text is None:  # cached because terms are sorted by their text
            self._text = _text(self)
        return self._text

    def __add__(self, other: Any) -> Dim:
        if not isinstance(other, (int, Size)):
            return self._lacking(other)
        terms = dict(self.terms)
        for key, value in _terms(other):
            terms[key] = terms.get(key, 0) + value
        return _canonical(terms)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return Size({k: -v for k, v in self.terms})

    def __sub__(self, other: Any) -> Dim:
        return self + -other if isinstance(other, (int, Size)) else self._lacking(other)

    def __rsub__(self, other: Any) -> Dim:
        return -self + other if isinstance(other, (int, Size)) else self._lacking(other)

    def __mul__(self, other: Any) -> Dim:
        if not isinstance(other, (int, Size)):
            return self._lacking(other)
        terms: dict[tuple[Atom, ...], int] = {}
        for k1, v1 in self.terms:
            for k2, v2 in _terms(other):
                key = tuple(sorted(k1 + k2, key=repr))
                terms[key] = terms.get(key, 0) + v1 * v2
        return _canonical(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Dim:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Any) -> Dim:
        return floordiv(other, self)

    def __mod__(self, other: Any) -> Dim:
        return self - floordiv(self, other) * other if divides(self, other) else _opaque("mod", self, other)

    def __rmod__(self, other: Any) -> Dim:
        return _opaque("mod", other, self)

    def _lacking(self, other: Any) -> Any:
        """The answer to what needs a number: an error, where the other operand is one."""
        return self._number() if isinstance(other, (int, float, Size)) else NotImplemented

    def _number(self) -> Any:
        raise SizeNeeded(
            f"the size {self} has no number until a run. It may stand in shapes, in arange, beside tensors as an operand, and "
            "in +, -, *, // and % with integers; a shape with numbers decides what else depends on it",
            symbols(self),
        )

    __truediv__ = __rtruediv__ = __lt__ = __le__ = __gt__ = __ge__ = _lacking
    __index__ = __int__ = __float__ = _number


_ASKING: Final[ContextVar[bool]] = ContextVar("asking", default=False)


@contextmanager
def asking() -> Iterator[None]:
    """A context in which Python code other than Singe's asks by `==` whether dimensions are equal in all runs, and gets an
    error if that depends on the run: `x.shape[0] == 3` in a function that is traced must not be silently False.

    Singe itself asks whether two forms are the same. Both questions may come in one call (the function calls a layer, which
    compares shapes), and by way of tuples, `in` and NumPy, so it is the module of the comparing Python code that tells them
    apart. Dicts and sets compare the forms, because unequal ones have other hashes.
    """
    token = _ASKING.set(True)
    try:
        yield
    finally:
        _ASKING.reset(token)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in _OURS


_OURS: Final = frozenset({"singe", "singe_webgpu", "singe_wasm"})


def size(name: str) -> Size:
    """The named symbolic dimension."""
    return Size({(name,): 1})


def _atoms(atom: Atom) -> int:
    """How many parts an atom has."""
    return 1 if isinstance(atom, str) else 1 + sum(side.atoms if isinstance(side, Size) else 1 for side in atom[1:])


def _names(atom: Atom) -> frozenset[str]:
    return frozenset((atom,)) if isinstance(atom, str) else symbols(atom[1:])


def _terms(dim: Dim) -> Iterable[tuple[tuple[Atom, ...], int]]:
    return dim.terms if isinstance(dim, Size) else (((), dim),)


def _canonical(terms: Mapping[tuple[Atom, ...], int]) -> Dim:
    kept = {k: v for k, v in terms.items() if v}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Size(kept)


def _opaque(word: str, a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return OPAQUE[word](a, b)
    return Size({((word, a, b),): 1})


def _divide_terms(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """Split a into (the quotient of those terms that b divides; the other terms). A b of several terms divides all or
    none."""
    if not isinstance(b, int) and len(b.terms) != 1:
        whole = _long_division(a, b)
        return (0, a) if whole is None else (whole, 0)
    ((divisor, scale),) = _terms(b)
    quotient: dict[tuple[Atom, ...], int] = {}
    rest: dict[tuple[Atom, ...], int] = {}
    for key, value in _terms(a):
        left = list(key)
        try:
            for atom in divisor:
                left.remove(atom)
        except ValueError:
            rest[key] = value
            continue
        if value % scale:
            rest[key] = value
        else:
            quotient[tuple(left)] = value // scale
    return _canonical(quotient), _canonical(rest)


def _long_division(a: Dim, b: Size) -> Dim | None:
    """The polynomial q with a = q · b, if there is one of no more terms than a."""
    left, total, steps = a, _canonical({}), len(a.terms) if isinstance(a, Size) else 0
    first = max(b.terms, key=_order)
    while isinstance(left, Size) and steps:
        lead = max(left.terms, key=_order)
        part, rest = _divide_terms(_canonical(dict([lead])), _canonical(dict([first])))
        if rest != 0:
            return None
        total, left, steps = total + part, left - part * b, steps - 1
    return total if left == 0 else None


def _order(term: tuple[tuple[Atom, ...], int]) -> tuple[int, list[str]]:
    """Orders terms by their degree, then by their atoms, so that products with one term keep the order."""
    return len(term[0]), sorted(map(repr, term[0]))


def divides(a: Dim, b: Dim) -> bool:
    """Whether a is known to be a multiple of b."""
    if isinstance(a, int) and isinstance(b, int):
        return b != 0 and a % b == 0
    return b != 0 and _divide_terms(a, b)[1] == 0


def floordiv(a: Dim, b: Dim) -> Dim:
    """a // b, as a polynomial if the division is known to be exact; otherwise with an opaque atom."""
    if b == 0:
        raise ShapeError(f"division of the dimension {a} by zero")
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    quotient, rest = _divide_terms(a, b)
    if rest == 0:
        return quotient
    # (q·b + r) // b = q + r // b holds for every integer q.
    if not isinstance(b, int) or b < 0:
        return quotient + _opaque("div", rest, b)
    whole, left = _whole_part(rest, b)
    return quotient + whole + (_opaque("div", *_merged(left, b)) if isinstance(left, Size) else left // b)


def _whole_part(a: Dim, b: int) -> tuple[Dim, Dim]:
    """(q, r) with a = q·b + r, where all coefficients of r are from 0 to b − 1. So equal quotients get equal forms."""
    parts = [(k, divmod(v, b)) for k, v in _terms(a)]
    return _canonical({k: q for k, (q, _) in parts}), _canonical({k: r for k, (_, r) in parts})


def _merged(a: Dim, b: int) -> tuple[Dim, int]:
    """(numerator, divisor) of a // b: (x // c + k) // b is (x + k·c) // (b·c)."""
    terms = dict(a.terms) if isinstance(a, Size) else {}
    constant = terms.pop((), 0)
    if len(terms) == 1:
        ((key, factor),) = terms.items()
        atom = key[0]
        if factor == 1 and len(key) == 1 and not isinstance(atom, str) and atom[0] == "div":
            x, c = atom[1:]
            if isinstance(c, int) and c > 0:
                return x + constant * c, b * c
    return a, b


def remainder(a: Dim, b: Dim) -> Dim:
    """a % b, with the sign of b."""
    if b == 0:
        raise ShapeError(f"division of the dimension {a} by zero")
    return a % b


def ceildiv(a: Dim, b: Dim) -> Dim:
    return floordiv(a + b - 1, b)


def dim_max(a: Dim, b: Dim) -> Dim:
    """The larger of a and b, in the form b + max(a - b, 0), so that terms cancel in sums of parts."""
    return b + _positive(a - b)


def dim_min(a: Dim, b: Dim) -> Dim:
    return a - _positive(a - b)


def _positive(a: Dim) -> Dim:
    """max(a, 0)."""
    if isinstance(a, int):
        return max(a, 0)
    if at_least(a, 0):
        return a
    if at_least(-a, 0):
        return 0
    # max(a, 0) equals a + max(-a, 0). The canonical form is the one whose last term within max is positive.
    return _opaque("max", a, 0) if a.terms[-1][1] > 0 else a + _opaque("max", -a, 0)


# --- what can be proved ----------------------------------------------------------------------------------------------


def at_least(dim: Dim, low: int, named: int = 0) -> bool:
    """Whether a dimension is provably at least `low`, if every named size is at least `named`."""
    if isinstance(dim, int):
        return dim >= low
    found = least(dim, named)
    return found is not None and found >= low


@lru_cache(maxsize=1 << 14)
def least(dim: Dim, named: int = 0, depth: int = 0) -> int | None:
    """A lower bound of a dimension, if every named size is at least `named`; None if none was found.

    Opaque atoms are replaced one by one by their bounds, so that terms which these share with the rest cancel.
    """
    if isinstance(dim, int):
        return dim
    terms = dict(dim.terms)
    for key, factor in dim.terms:
        if len(key) != 1 or isinstance(key[0], str):
            continue
        word, a, b = key[0]
        rest = dim - Size({key: factor})
        if word in ("max", "min"):
            if depth >= MAX_PROOF:
                return None
            both = [least(rest + factor * side, named, depth + 1) for side in (a, b)]
            known_ = [v for v in both if v is not None]
            if (word == "max") == (factor > 0):  # the term is at least each of the two
                return max(known_, default=None)
            return min(known_) if len(known_) == 2 else None
        if isinstance(b, int) and b > 0 and depth < MAX_PROOF:
            if word == "mod":
                return least(rest + (0 if factor > 0 else factor * (b - 1)), named, depth + 1)
            bound = a - (b - 1) if factor > 0 else a  # a - b + 1 ≤ b · (a // b) ≤ a
            found = least(rest * b + bound * factor, named, depth + 1)
            own = _least_atom(key[0], named, depth) if factor > 0 else None
            plain = None if own is None else least(rest + factor * own, named, depth + 1)
            return max((v for v in (None if found is None else -(-found // b), plain) if v is not None), default=None)
    total = terms.pop((), 0)
    for key, factor in terms.items():
        lows = [_least_atom(x, named, depth) for x in key]
        if factor < 0 or depth > MAX_PROOF or any(v is None or v < 0 for v in lows):
            return None
        total += factor * math.prod(v for v in lows if v is not None)
    return total


def _least_atom(atom: Atom, named: int, depth: int) -> int | None:
    if isinstance(atom, str):
        return named
    word, a, b = atom
    low, other = (least(d, named, depth + 1) if depth < MAX_PROOF else None for d in (a, b))
    if word == "mod":
        return None if other is None or other < 0 else 0
    if word == "div":
        if low is None or other is None or other < 0:
            return None
        return low // b if isinstance(b, int) else 0 if low >= 0 else None
    if word == "max":
        return max((v for v in (low, other) if v is not None), default=None)
    return None if low is None or other is None else min(low, other)


MAX_PROOF: Final = 8
"""How deep a proof follows opaque atoms within opaque atoms."""


Checks: TypeAlias = "dict[Dim, str]"
"""Dimensions that must be at least 0 when a run's sizes are known ↦ the error's text if one is not."""
_CHECKS: Final[ContextVar[Checks | None]] = ContextVar("checks", default=None)
_TURNS: Final[ContextVar[tuple[Dim, ...]]] = ContextVar("turns", default=())
"""The numbers of turns of the loops whose bodies are built, where they may be 0."""


@contextmanager
def repeating(count: Dim | None) -> Iterator[None]:
    """A context in which the body of a loop of so many turns (None: not known) is built: its conditions must hold only if
    it makes a turn."""
    more = () if count is None or at_least(count, 1) else (count,)
    token = _TURNS.set((*_TURNS.get(), *more))
    try:
        yield
    finally:
        _TURNS.reset(token)


def repetitions() -> tuple[Dim, ...]:
    """The numbers of turns on which the conditions required here depend."""
    return _TURNS.get()


@contextmanager
def deferring() -> Iterator[Checks]:
    """A context in which conditions that depend on the sizes of a run are assumed to hold. They are collected in the
    Checks that it gives, and the run must check them."""
    found: Checks = {}
    token = _CHECKS.set(found)
    try:
        yield found
    finally:
        _CHECKS.reset(token)


def equal(a: Dim, b: Dim, what: str) -> bool:
    """Whether two dimensions are equal for all sizes; SizeNeeded if that depends on the sizes."""
    gap = a - b
    if isinstance(gap, int):
        return gap == 0
    if at_least(gap, 1) or at_least(-gap, 1):
        return False
    raise SizeNeeded(f"{what}: whether {a} is {b} depends on the run", symbols(gap))


def same(a: Dim, b: Dim, what: str) -> bool:
    """Like `equal`, for dimensions that must be equal:
    if that depends on the sizes, the run may check it (`deferring`)."""
    gap = a - b
    checks = _CHECKS.get()
    if checks is None or not isinstance(gap, Size) or at_least(gap, 1) or at_least(-gap, 1):
        return equal(a, b, what)
    require(gap, f"{what}: {a} must be {b}")
    require(-gap, f"{what}: {a} must be {b}")
    return True


def require(dim: Dim, text: str) -> None:
    """Require a dimension of at least 0: ShapeError(text) if it never is;
    if that depends on sizes, the run checks it. In a loop's body it is required only if the loop makes a turn."""
    if at_least(dim, 0):
        return
    for count in _TURNS.get():
        # Either no turn is made, or that one is made (count ≥ 1) implies the condition.
        if at_least(-count, 0) or at_least(dim - count + 1, 0):
            return
    if at_least(-dim, 1):
        raise ShapeError(text)
    checks = _CHECKS.get()
    if checks is not None:
        checks.setdefault(dim, text)


def product(dims: Iterable[Dim]) -> Dim:
    total: Dim = 1
    for d in dims:
        total = total * d
    return total


def symbols(dims: Dim | Iterable[Any]) -> frozenset[str]:
    """The names of all sizes in a dimension, a shape, or a nested sequence of them."""
    if isinstance(dims, (int, float, str)):
        return frozenset()
    if isinstance(dims, Size):
        return dims.names
    return frozenset().union(*map(symbols, dims))


def show_sizes(sizes: Mapping[str, Dim]) -> str:
    """Sizes as text for an error: "N = 1, L = 129"."""
    return ", ".join(f"{name} = {number}" for name, number in sizes.items())


def size_name(dim: Dim) -> str | None:
    """The name of the size that a dimension is; None if it is a number or computed."""
    if isinstance(dim, Size) and len(dim.terms) == 1:
        atoms, factor = dim.terms[0]
        if factor == 1 and len(atoms) == 1 and isinstance(atoms[0], str):
            return atoms[0]
    return None


def evaluate(dim: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """The dimension with these sizes in place of their names; other names stay."""
    return _evaluated(dim, sizes, {})


def _evaluated(dim: Dim, sizes: Mapping[str, Dim], known: dict[Atom, Dim]) -> Dim:
    """`evaluate`, which computes an atom once however many others have it as a part."""
    if isinstance(dim, int):
        return dim
    total: Dim = 0
    for key, value in dim.terms:
        term: Dim = value
        for atom in key:
            if isinstance(atom, str):
                term = term * (sizes[atom] if atom in sizes else size(atom))
                continue
            if atom not in known:
                word, a, b = atom
                known[atom] = COMBINED[word](_evaluated(a, sizes, known), _evaluated(b, sizes, known))
            term = term * known[atom]
        total = total + term
    return total


COMBINED: Final = {"div": floordiv, "mod": remainder, "max": dim_max, "min": dim_min}
"""An opaque atom's word ↦ what it computes of two dimensions."""


def known(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The dimension as a number: every name must be given."""
    value = evaluate(dim, sizes)
    if isinstance(value, int):
        return value
    raise ShapeError(f"the dimension {dim} depends on {', '.join(sorted(symbols(value)))}, which no input gives")


def guessed(dim: Dim, sizes: int | Mapping[str, int]) -> int:
    """A dimension as a number of which only the magnitude matters, with these sizes, or one number for all, in place of
    open ones. They are taken larger where short ones leave nothing that the dimension could be divided by."""
    sizes = dict.fromkeys(symbols(dim), sizes) if isinstance(sizes, int) else sizes
    for more in (0, 7, 17):
        with suppress(ShapeError):
            return known(dim, {name: number << more for name, number in sizes.items()})
    return 0


def _text(dim: Size) -> str:
    parts = []
    for key, value in dim.terms:
        names = ["*".join(map(_atom_text, key))] if key else []
        head = [] if abs(value) == 1 and key else [str(abs(value))]
        parts.append(("-" if value < 0 else "+", "*".join(head + names)))
    text = " ".join(f"{sign} {part}" for sign, part in parts)
    return text[2:] if text.startswith("+ ") else text


def _atom_text(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    word, *sides = atom
    a, b = (f"({d})" if isinstance(d, Size) and len(d.terms) > 1 else str(d) for d in sides)
    return f"({a} {_SIGNS[word]} {b})"


_SIGNS: Final = {"div": "//", "mod": "%", "max": "max", "min": "min"}


def broadcast(shapes: Sequence[Shape], what: str = "broadcast") -> Shape:
    """The common shape by NumPy's rule. Open dimensions are taken to be longer than 1 where they may be, and so must equal
    the others; those that are `at_most_one` serve all the others."""
    rank = max(map(len, shapes), default=0)
    out: list[Dim] = []
    for axis in range(rank):
        dims = {s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0} - {1}
        if len(dims) > 1:
            text = f"{what}: the shapes {', '.join(map(show, shapes))} do not broadcast: axis {axis} is {' and '.join(map(str, sorted(dims, key=str)))}"
            long = {d for d in dims if not at_most_one(d)} or dims
            first, *others = sorted(long, key=lambda d: (isinstance(d, Size), str(d)))
            if not all(same(first, d, text) for d in others) or not all(_serves(d, first, text) for d in dims - long):
                raise ShapeError(text)
            dims = {first}
        out.append(dims.pop() if dims else 1)
    return tuple(out)


@lru_cache(maxsize=1 << 14)
def at_most_one(dim: Dim) -> bool:
    """Whether a dimension is 1, or open and never more than 1, as the length of x[:1]: an axis of which a broadcast reads
    element 0 only."""
    return dim == 1 or (isinstance(dim, Size) and at_least(1 - dim, 0))


def _serves(short: Dim, long: Dim, text: str) -> bool:
    """Whether a dimension that is `at_most_one` broadcasts to another: it is 1, or nothing is wanted of it."""
    gap = short - dim_min(long, 1)
    if isinstance(gap, int) or at_least(gap, 0) or at_least(-gap, 1):
        return at_least(gap, 0)
    if _CHECKS.get() is None:
        raise SizeNeeded(f"{text}: whether {short} is 1 depends on the run", symbols(gap))
    require(gap, text)
    return True


def axis_of(axis: int, rank: int, what: str) -> int:
    """A possibly negative axis as an index below rank."""
    if not -rank <= axis < rank:
        raise ShapeError(f"{what}: axis {axis} is out of range for rank {rank}; give one from {-rank} to {rank - 1}")
    return axis % rank


def axes_of(axes: Iterable[int], rank: int, what: str) -> tuple[int, ...]:
    """Axes as sorted indices, each once."""
    found = [axis_of(a, rank, what) for a in axes]
    if len(set(found)) != len(found):
        raise ShapeError(f"{what}: the axes {tuple(axes)} name one axis twice")
    return tuple(sorted(found))


@lru_cache(maxsize=4096)
def strides(shape: Shape) -> Shape:
    """Row-major strides in elements."""
    out: list[Dim] = []
    step: Dim = 1
    for d in reversed(shape):
        out.append(step)
        step = step * d
    return tuple(reversed(out))


def show(shape: Sequence[Dim]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def bytes_text(count: int) -> str:
    """A number of bytes for people: 18.6 MB."""
    if count < 1000:
        return f"{count} B"
    power = min(4, int(math.log10(count) // 3))
    return f"{count / 1000**power:.1f} {'kMGT'[power - 1]}B"
