"""Slots of scratch memory: which one a value takes."""

from __future__ import annotations

from singe.compiler.schedule.buffers import LONG_HELD_ITEMS, Slots


def test_a_value_takes_the_smallest_free_slot_that_is_large_enough() -> None:
    slots = Slots(())
    large, small = slots.acquire(4096), slots.acquire(512)
    slots.release([large, small])
    assert slots.acquire(300) == small
    assert slots.acquire(300) == large
    assert slots.count == 2


def test_the_largest_free_slot_grows_for_a_larger_value() -> None:
    slots = Slots(())
    first = slots.acquire(512)
    slots.release([first])
    assert slots.acquire(4096) == first
    slots.release([first])
    assert slots.acquire(4096) == first
    assert slots.count == 1


def test_a_value_that_is_held_for_long_takes_no_slot_much_larger_than_itself() -> None:
    slots = Slots(())
    large = slots.acquire(4096)
    slots.release([large])
    kept = slots.acquire(512, held=LONG_HELD_ITEMS + 1)
    assert kept != large
    assert slots.acquire(512, held=LONG_HELD_ITEMS) == large
