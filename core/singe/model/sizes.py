"""The open sizes of a Model: their bounds, and sets of sizes for which its Program has separate steps.

A bound is written where a shape names a size: `"L<=512"` in place of `"L"`. `without_bounds` is the one place that reads
what callers write in shapes. Names that come from files need not be such as it takes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError, ShapeError

MAX_SPECIAL_SIZES: Final = 4
"""The most sets of sizes that get separate steps because they fail a check of the open steps; the latest are kept."""
_OPEN: Final = r"\s*([^\W\d][\w.:]*)\s*(?:<=\s*([0-9]+)\s*)?"
"""A name, such as those that files give ("unk__12", "input.1"), and perhaps a bound."""

InputShapes = Mapping[str, Sequence["int | str"]]


def without_bounds(shapes: InputShapes | None) -> tuple[dict[str, tuple[int | str, ...]], dict[str, int]]:
    """Shapes by input with plain names for sizes, and the bounds that followed the names."""
    bounds: dict[str, int] = {}

    def dimension(name: str, d: Any) -> int | str:
        if isinstance(d, (int, np.integer)) and not isinstance(d, bool) and d >= 0:
            return int(d)
        found = re.fullmatch(_OPEN, d) if isinstance(d, str) else None
        if found is None:
            raise InputError(
                f"the shape of {name!r} has the dimension {d!r}, expected a number, a name, or a name with a bound such as "
                "'L<=512'"
            )
        if found[2] is None:
            return found[1]
        if bounds.setdefault(found[1], int(found[2])) != int(found[2]):
            raise InputError(f"{found[1]} has the bounds {bounds[found[1]]} and {found[2]}, expected one")
        return found[1]

    if shapes is not None and not isinstance(shapes, Mapping):
        raise InputError(
            f"input_shapes: got {shapes!r:.80}, expected a dict of an input's name to its shape, such as {{'x': ('N', 3)}}"
        )
    named: dict[str, tuple[int | str, ...]] = {}
    for k, shape in (shapes or {}).items():
        if isinstance(shape, str) or not isinstance(shape, Sequence):
            raise InputError(
                f"the shape of {k!r} is {shape!r}, expected a tuple of numbers and names, such as ('N', 3)"
            )
        named[k] = tuple(dimension(k, d) for d in shape)
    return named, bounds


class OpenSizes:
    """See the module's docstring. `names` are the open sizes of a Model's inputs."""

    def __init__(self, names: Iterable[str], bounds: Mapping[str, int]) -> None:
        self.names: Final = tuple(dict.fromkeys(names))
        self.bounds: Final = dict(bounds)
        self._asked: Final[list[dict[str, int]]] = []
        self._met: Final[deque[dict[str, int]]] = deque(maxlen=MAX_SPECIAL_SIZES)
        for name in self.bounds:
            self._check_name(name, "a bound is given for")

    def _check_name(self, name: str, what: str) -> None:
        if name not in self.names:
            raise InputError(f"{what} {name}: the open sizes are {', '.join(self.names) or 'none'}; name one of these")

    def check(self, sizes: Mapping[str, int]) -> None:
        """Refuse sizes beyond their bounds."""
        for name, n in sizes.items():
            if n > self.bounds.get(name, n):
                raise ShapeError(f"{name} is {n}, and must be at most {self.bounds[name]}, its bound")

    def specialise(self, sizes: Mapping[str, int]) -> None:
        """Ask for separate steps for these sizes, as the caller wants."""
        if not sizes:
            raise InputError(f"specialise: got no sizes, expected some of {', '.join(self.names) or 'none'}")
        for name, n in sizes.items():
            self._check_name(name, "specialise:")
            if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 0:
                raise InputError(f"specialise: {name} is {n!r}, expected a number, 0 or more")
        self.check(sizes)
        asked = {name: int(n) for name, n in sizes.items()}
        if asked not in self._asked:
            self._asked.append(asked)

    def meet(self, sizes: Mapping[str, int]) -> None:
        """Ask for separate steps for these sizes, which fail a check of the open steps."""
        self._met.append(dict(sizes))

    def forget(self, sizes: Mapping[str, int]) -> None:
        """Undo `meet`."""
        self._met.remove(dict(sizes))

    def specialised(self, fixed: Iterable[str] = ()) -> list[dict[str, int]]:
        """The sets of sizes that get separate steps, in a Program in which the sizes `fixed` are numbers."""
        fixed = set(fixed)
        return [s for s in (*self._asked, *self._met) if not fixed & s.keys()]
