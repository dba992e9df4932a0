"""Names of dimensions: which are allowed, which axes they mean, and operands in one order of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ...errors import InputError, ShapeError
from ...shapes import Size, show
from ..tensor import Tensor

Names: TypeAlias = tuple[str, ...]
Labelled: TypeAlias = tuple[Names, Tensor]
"""A tensor, and the names of its axes."""


def shown(names: Sequence[str]) -> str:
    """Names, for errors."""
    return f"({', '.join(map(repr, names))})"


def checked_names(what: str, names: Sequence[Any], shape: Sequence[Any]) -> Names:
    """Names for the axes of this shape: identifiers, each once."""
    wrong = next((name for name in names if not isinstance(name, str) or not name.isidentifier()), None)
    if wrong is not None:
        raise InputError(f"{what}: got {wrong!r:.80} as a name, expected an identifier, as in 'channels'")
    if len({*names}) < len(names):
        raise InputError(f"{what}: got the names {shown(names)}, expected different ones; rename one of them")
    if len(names) != len(shape):
        raise ShapeError(
            f"{what}: got {len(names)} names, {shown(names)}, for the shape {show(tuple(shape))}; expected a name for each axis"
        )
    return tuple(names)


def axis_named(what: str, name: Any, names: Names) -> int:
    """The axis of this name."""
    if not isinstance(name, str) or name not in names:
        raise InputError(
            f"{what}: got {name!r:.80} as a dimension, expected one of {shown(names)}; x.tensor has axes by number"
        )
    return names.index(name)


def axes_named(what: str, chosen: Any, names: Names) -> tuple[int, ...]:
    """The axes of one name, or of several."""
    several = chosen if isinstance(chosen, (tuple, list)) else (chosen,)
    axes = tuple(axis_named(what, name, names) for name in several)
    if len({*axes}) < len(axes):
        raise InputError(f"{what}: got the dimensions {shown(several)}, expected each once")
    return axes


def aligned(what: str, operands: Sequence[Labelled]) -> tuple[Names, list[Tensor]]:
    """The names of the operand that has most of them (the first of these), and all operands in their order: what an operand lacks
    is an axis of 1."""
    longest = max((names for names, _ in operands), key=len)
    for names, _ in operands:
        foreign = [name for name in names if name not in longest]
        if foreign:
            raise InputError(
                f"{what}: got the names {shown(longest)} and {shown(names)}, expected the second to be among the first; "
                f"rename {shown(foreign)}, or remove it"
            )
    check_sizes(what, operands, longest, broadcast=True)
    return longest, [_in_order(names, x, longest) for names, x in operands]


def check_sizes(what: str, operands: Sequence[Labelled], names: Sequence[str], *, broadcast: bool) -> None:
    """Refuse dimensions of these names whose sizes differ between operands; with broadcast, 1 fits all. Open sizes are compared
    where the tensors are."""
    for name in names:
        sizes = [x.shape[own.index(name)] for own, x in operands if name in own]
        known = {d for d in sizes if not isinstance(d, Size) and not (broadcast and d == 1)}
        if len(known) > 1:
            each = " and ".join(described(own, x) for own, x in operands)
            raise ShapeError(f"{what}: got {each}, expected equal sizes of {name!r}{' or 1' if broadcast else ''}")


def described(names: Names, x: Tensor) -> str:
    """Names and sizes, for errors."""
    return f"({', '.join(f'{name}={size}' for name, size in zip(names, x.shape, strict=True))})"


def _in_order(own: Names, x: Tensor, names: Names) -> Tensor:
    order = [own.index(name) for name in names if name in own]
    y: Any = x if order == sorted(order) else x.permute(*order)
    for axis, name in enumerate(names):
        if name not in own:
            y = y.unsqueeze(axis)
    return y


def product_equation(what: str, x: Labelled, y: Labelled) -> tuple[str, Names]:
    """The product of matrices along the last name of x, which y has, too, as an equation of einsum, and the names of its result.

    Other names that both have are matched; those of y alone follow those of x. The last of y, beside the inner one, is its own:
    otherwise it would be unclear whether it is matched.
    """
    own, other = x[0], y[0]
    both = f"{what}: got the names {shown(own)} and {shown(other)}"
    if not own or own[-1] not in other:
        inner = f"{own[-1]!r}, the last name of the first operand," if own else "a name"
        raise InputError(f"{both}, expected {inner} in both; permute or rename the dimensions")
    inner = own[-1]
    rest = [name for name in other if name != inner]
    if rest and rest[-1] in own:
        raise InputError(
            f"{both}, expected the last of the second beside {inner!r} not to be in the first; rename {rest[-1]!r} in one of them, or "
            f"write (x * y).sum({inner!r}) to match both"
        )
    check_sizes(what, (x, y), own, broadcast=False)
    result = (*own[:-1], *(name for name in rest if name not in own))
    letters: Mapping[str, str] = {name: chr(ord("a") + k) for k, name in enumerate((*result, inner))}
    terms = ["".join(letters[name] for name in names) for names in (own, other, result)]
    return f"{terms[0]},{terms[1]}->{terms[2]}", result
