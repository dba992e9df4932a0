"""`Recent` keeps the values that were requested last."""

from __future__ import annotations

import pytest

from singe.runtime.recent_values import Recent


def test_the_one_unused_for_longest_goes_first() -> None:
    made: list[str] = []
    gone: list[str] = []
    kept: Recent[str] = Recent(2, gone.append)

    def at(key: str) -> str:
        return kept.at(key, lambda: made.append(key) or key)

    assert [at(key) for key in "abacab"] == list("abacab")
    assert made == list("abcb")
    assert gone == list("bc")
    assert set(kept) == {"a", "b"}
    kept.clear()
    assert sorted(gone) == list("abbc")
    assert len(kept) == 0


def test_what_fails_to_be_made_is_asked_for_again() -> None:
    kept: Recent[int] = Recent(2)
    with pytest.raises(ZeroDivisionError):
        kept.at("a", lambda: 1 // 0)
    assert kept.at("a", lambda: 7) == 7


def test_what_fails_to_be_made_costs_nothing_that_is_kept() -> None:
    gone: list[int] = []
    kept: Recent[int] = Recent(1, gone.append)
    kept.at("a", lambda: 7)
    with pytest.raises(ZeroDivisionError):
        kept.at("b", lambda: 1 // 0)
    assert (list(kept), gone) == ([7], [])
