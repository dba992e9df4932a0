"""A Size is an integer polynomial over named sizes ("N") and opaque atoms (floor division, remainder, max, min of Sizes),
kept in canonical form, so that two ways of computing one dimension compare equal.

Arithmetic between Sizes and ints gives an int again wherever the symbols cancel. Named sizes are never negative at run
time, but may be 0: simplification relies on this. `least` proves lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from numbers import Integral, Number
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, Union

from ..errors import ShapeError, SizeNeeded

Dim: TypeAlias = Union[int, "Size"]
T = TypeVar("T")
Atom: TypeAlias = "str | tuple[str, Dim, Dim]"
"""A named size, or (word, a, b) with one of OPAQUE's words over two dimensions."""
MAX_ATOMS: Final = 4000
"""The most parts of a Size: its terms, and those of its different opaque atoms, at any depth."""
MAX_PRODUCTS: Final = 1 << 14
"""The most products of two terms that one product of Sizes is multiplied out to."""

INSTEAD: Final = (
    ", so that Python cannot choose by it: let sg.where(sg.tensor(size) > 3, x, y) choose between tensors, or give the dimension "
    "a number"
)
"""The end of the error of a comparison that depends on the run."""
OPAQUE: Final = {
    "div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}


def _with_whole(operator: Callable[[Any, Any], Any]) -> Any:
    """An operator of a Size and an integer or a Size; what else it meets decides by itself, but for numbers."""

    @wraps(operator)
    def checked(one: Size, other: Any) -> Any:
        if isinstance(other, (int, Size)):
            return operator(one, other)
        return operator(one, int(other)) if isinstance(other, Integral) else one._lacking(other)

    return checked


class Size:
    """A symbolic dimension: a canonical sum of integer multiples of products of atoms."""

    __slots__ = ("_hash", "_text", "atoms", "names", "terms")

    def __init__(self, terms: Mapping[tuple[Atom, ...], int]) -> None:
        parts = sorted((_product(key), value) for key, value in terms.items() if value)
        inner: dict[Atom, int] = {}
        for product, _ in parts:
            inner.update(product.inner)
        self.atoms: Final = len(terms) + sum(inner.values())
        self.names: Final = frozenset[str]().union(*(product.names for product, _ in parts))
        if self.atoms > MAX_ATOMS:
            raise SizeNeeded(
                f"a dimension is an expression of {', '.join(sorted(self.names))} with more than {MAX_ATOMS} parts",
                self.names,
            )
        self.terms: Final = tuple((product.atoms, value) for product, value in parts)
        # Of texts, because the hashes of the numbers -1 and -2 are equal.
        self._hash: Final = hash(tuple((product.text, str(value)) for product, value in parts))
        self._text: str | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Whether the canonical forms are equal; `==` of a TracedSize asks something else."""
        return isinstance(other, Size) and self.terms == other.terms

    def __repr__(self) -> str:
        if self._text is None:  # cached because terms are sorted by their text
            self._text = _text(self)
        return self._text

    @property
    def plain(self) -> Size:
        """The Size itself, which `==` compares by its form."""
        return self

    @_with_whole
    def __add__(self, other: Any) -> Dim:
        return _sum(self, other)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return _scaled(self, -1)

    @_with_whole
    def __sub__(self, other: Any) -> Dim:
        return self + -other

    @_with_whole
    def __rsub__(self, other: Any) -> Dim:
        return -self + other

    @_with_whole
    def __mul__(self, other: Any) -> Dim:
        return _scaled(self, other) if isinstance(other, int) else _multiplied(self, other)

    __rmul__ = __mul__

    @_with_whole
    def __floordiv__(self, other: Any) -> Dim:
        return floordiv(self, other)

    @_with_whole
    def __rfloordiv__(self, other: Any) -> Dim:
        return floordiv(other, self)

    @_with_whole
    def __mod__(self, other: Any) -> Dim:
        return self - floordiv(self, other) * other if divides(self, other) else _opaque("mod", self, other)

    @_with_whole
    def __rmod__(self, other: Any) -> Dim:
        return _opaque("mod", other, self)

    @_with_whole
    def __divmod__(self, other: Any) -> tuple[Dim, Dim]:
        return self // other, self % other

    @_with_whole
    def __rdivmod__(self, other: Any) -> tuple[Dim, Dim]:
        return other // self, other % self

    def __pow__(self, other: Any) -> Dim:
        if not isinstance(other, int) or other < 0:
            return self._lacking(other)
        power: Dim = 1
        for _ in range(other):
            power = power * self
        return power

    def __abs__(self) -> Dim:
        return dim_max(self, -self)

    def _itself(self, *_: Any) -> Size:
        return self

    __pos__ = __round__ = __trunc__ = __floor__ = __ceil__ = _itself

    def __format__(self, form: str) -> str:
        return self._number() if form else repr(self)

    @_with_whole
    def __lt__(self, other: Any) -> bool:
        return _compared(other - self - 1, self, "<", other)

    @_with_whole
    def __le__(self, other: Any) -> bool:
        return _compared(other - self, self, "<=", other)

    @_with_whole
    def __gt__(self, other: Any) -> bool:
        return _compared(self - other - 1, self, ">", other)

    @_with_whole
    def __ge__(self, other: Any) -> bool:
        return _compared(self - other, self, ">=", other)

    def _lacking(self, other: Any) -> Any:
        """The answer to what needs a number: an error, where the other operand is one."""
        return self._number() if isinstance(other, (Number, Size)) else NotImplemented

    def _number(self) -> Any:
        raise SizeNeeded(
            f"the size {self} has no number until a run, and Python needs one here. A size may stand in shapes and slices, in "
            "sg.arange and other functions that make tensors, beside tensors as an operand, and in +, -, *, //, % and ** with "
            "integers. For other arithmetic take sg.tensor(size), which is a tensor; in place of a loop over range(size), methods "
            "that work along an axis; or give the dimension a number",
            symbols(self),
        )

    __truediv__ = __rtruediv__ = __rpow__ = _lacking
    __index__ = __int__ = __float__ = _number
    sqrt = exp = log = log2 = log10 = _number
    """What NumPy calls of an object: np.sqrt(size)."""


def _compared(gap: Dim, a: Size, sign: str, b: Dim) -> bool:
    """Whether a gap is at least 0 in all runs; what is asked is how a compares with b."""
    if at_least(gap, 0):
        return True
    if at_least(-gap, 1):
        return False
    raise SizeNeeded(f"whether {a} {sign} {b} depends on the run{INSTEAD}", symbols(gap))


def plain(value: T) -> T:
    """A dimension, or those in a tuple, without what TracedSizes add; anything else as it is."""
    if isinstance(value, tuple):
        for d in value:
            if d.__class__ is not int:
                return tuple(map(plain, value))  # pyright: ignore[reportReturnType]
        return value
    return value.plain if isinstance(value, Size) else value  # pyright: ignore[reportReturnType]


def size(name: str) -> Size:
    """The named symbolic dimension."""
    return Size({(name,): 1})


class _Product(NamedTuple):
    """A product of atoms, and what a Size says of it: once for each product, because sums have few different ones."""

    text: str
    """Unlike that of every other product; terms are sorted by it."""
    atoms: tuple[Atom, ...]
    names: frozenset[str]
    inner: Mapping[Atom, int]
    """The opaque atoms ↦ how many parts each has."""


@lru_cache(maxsize=1 << 14)
def _product(atoms: tuple[Atom, ...]) -> _Product:
    names = (frozenset((atom,)) if isinstance(atom, str) else symbols(atom[1:]) for atom in atoms)
    inner: dict[Atom, int] = {
        atom: 1 + sum(side.atoms if isinstance(side, Size) else 1 for side in atom[1:])
        for atom in atoms
        if not isinstance(atom, str)
    }
    return _Product(repr(atoms), atoms, frozenset[str]().union(*names), inner)


@lru_cache(maxsize=1 << 14)
def _sum(a: Size, b: Dim) -> Dim:
    terms = dict(a.terms)
    for key, value in _terms(b):
        terms[key] = terms.get(key, 0) + value
    return _canonical(terms)


@lru_cache(maxsize=1 << 14)
def _scaled(a: Size, factor: int) -> Dim:
    return a if factor == 1 else _canonical({key: value * factor for key, value in a.terms})


@lru_cache(maxsize=1 << 14)
def _multiplied(a: Size, b: Size) -> Dim:
    if len(a.terms) * len(b.terms) > MAX_PRODUCTS:
        raise SizeNeeded(
            f"a dimension is a product of {len(a.terms)} terms and {len(b.terms)} of {', '.join(sorted(a.names | b.names))}",
            a.names | b.names,
        )
    terms: dict[tuple[Atom, ...], int] = {}
    for k1, v1 in a.terms:
        for k2, v2 in b.terms:
            key = tuple(sorted(k1 + k2, key=repr))
            terms[key] = terms.get(key, 0) + v1 * v2
    return _canonical(terms)


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
    return Size({((word, plain(a), plain(b)),): 1})


@lru_cache(maxsize=1 << 14)
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
    a, b = plain(a), plain(b)
    if isinstance(a, int) and isinstance(b, int):
        return b != 0 and a % b == 0
    return b != 0 and _divide_terms(a, b)[1] == 0


def floordiv(a: Dim, b: Dim) -> Dim:
    """a // b, as a polynomial if the division is known to be exact; otherwise with an opaque atom."""
    a, b = plain(a), plain(b)
    if b == 0:
        raise ShapeError(f"division of the dimension {a} by zero")
    return a // b if isinstance(a, int) and isinstance(b, int) else _quotient(a, b)


@lru_cache(maxsize=1 << 14)
def _quotient(a: Dim, b: Dim) -> Dim:
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


def undivided(dim: Dim) -> Dim:
    """A dimension that is at least 0 where this one is: x // c + k is where x + k·c is."""
    return _merged(dim, 1)[0]


def remainder(a: Dim, b: Dim) -> Dim:
    """a % b, with the sign of b."""
    a, b = plain(a), plain(b)
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


def symbols(dims: Dim | Iterable[Any]) -> frozenset[str]:
    """The names of all sizes in a dimension, a shape, or a nested sequence of them."""
    if isinstance(dims, (int, float, str)):
        return frozenset()
    if isinstance(dims, Size):
        return dims.names
    return frozenset().union(*map(symbols, dims))


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


# --- what can be proved -----------------------------------------------------------------------------------------------


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
    common = math.gcd(*(factor for _, factor in dim.terms))
    if common > 1:  # bounds are rounded, so those of the parts are the better ones
        found = least(Size({key: factor // common for key, factor in dim.terms}), named, depth)
        return None if found is None else common * found
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


def equal(a: Dim, b: Dim, what: str, instead: str = "") -> bool:
    """Whether two dimensions are equal for all sizes; SizeNeeded, with what to write instead, if that depends on the sizes."""
    gap = a - b
    if isinstance(gap, int):
        return gap == 0
    if at_least(gap, 1) or at_least(-gap, 1):
        return False
    raise SizeNeeded(f"{what}: whether {a} is {b} depends on the run{instead}", symbols(gap))
