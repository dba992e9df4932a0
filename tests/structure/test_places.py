"""The drawing of which device runs where says what its table does, and the table names devices and tests that there are."""

from __future__ import annotations

import tomllib

from structure.places import DEVICES, DRAWING, PLACES, ROOT, drawing


def test_the_drawing_is_current() -> None:
    assert DRAWING.read_text("utf-8") == drawing(), "python tests/structure/places.py writes it anew"


def test_every_device_has_a_column() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    assert set(DEVICES) == set(points["singe.backends"])


def test_each_device_and_test_of_the_table_is_there() -> None:
    for places in PLACES.values():
        for place, found in places.items():
            assert set(found) <= set(DEVICES), place
            for test in filter(None, found.values()):
                assert (ROOT / test).is_file(), f"{place}: {test}"
