"""What the structure shall not have again, as counts.py counts it."""

from __future__ import annotations

import pytest
from counts import FACTS, ROOT, Checkout

NONE: tuple[str, ...] = (
    "tables of elementwise functions beside the rows",
    "class names that several classes share",
    "`target is None` and `is not None`",
    "`Target | None` in signatures",
)


@pytest.mark.parametrize("fact", NONE)
def test_there_are_none(fact: str) -> None:
    assert FACTS[fact](Checkout(ROOT)) == 0


def test_all_that_is_counted_can_be_counted() -> None:
    checkout = Checkout(ROOT)
    assert all(int(count(checkout)) >= 0 for count in FACTS.values())
    assert min(checkout.rooms().values()) > 0
    assert min(checkout.tests().values()) > 0
