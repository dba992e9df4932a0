"""RULES: how each row is written that is not written as the words of its body or as what it is lowered to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..rules import Rule
from . import elementwise, folds, movement, products, quantised, selection, sizes, tables

RULES: Final[Mapping[str, Sequence[Rule]]] = {
    name: tuple(
        rule
        for table in (quantised, folds, elementwise, movement, products, selection, sizes, tables)
        for rule in table.RULES.get(name, ())
    )
    for name in {
        k
        for table in (quantised, folds, elementwise, movement, products, selection, sizes, tables)
        for k in table.RULES
    }
}
