"""Slots of scratch memory: which one a value takes."""

from __future__ import annotations

from singe.compiler.layout import LONG, Slots


def test_a_value_takes_the_smallest_free_slot_that_is_large_enough() -> None:
    slots = Slots(())
    large, small = slots.take(4096), slots.take(512)
    slots.give([large, small])
    assert slots.take(300) == small
    assert slots.take(300) == large
    assert slots.count == 2


def test_the_largest_free_slot_grows_for_a_larger_value() -> None:
    slots = Slots(())
    first = slots.take(512)
    slots.give([first])
    assert slots.take(4096) == first
    slots.give([first])
    assert slots.take(4096) == first
    assert slots.count == 1


def test_a_value_that_is_held_for_long_takes_no_slot_much_larger_than_itself() -> None:
    slots = Slots(())
    large = slots.take(4096)
    slots.give([large])
    kept = slots.take(512, held=LONG + 1)
    assert kept != large
    assert slots.take(512, held=LONG) == large
