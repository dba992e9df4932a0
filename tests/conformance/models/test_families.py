"""Families of models that people run agree with onnxruntime on every device, at each of their sizes from one compilation."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from models_table import PAGE, page
from networks.families import FAMILIES, Feeds, check_family, expected, file_of
from onnx_devices import DEVICES, need

import singe as sg

pytestmark = pytest.mark.slow


@cache
def cases(name: str) -> list[tuple[Feeds, Feeds]]:
    return expected(name)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("device", DEVICES)
def test_families(device: str, name: str) -> None:
    need(device)
    model = sg.load(file_of(name), device=DEVICES[device])
    for feeds, wanted in cases(name):
        found: Any = model(feeds)
        check_family(name, found if isinstance(found, dict) else {model.outputs[0].name: found}, wanted)
    if not FAMILIES[name].numbers:
        assert not model.needed, "one compilation serves all sizes"


def test_no_family_is_trivial() -> None:
    """Outputs are finite, and differ between cases."""
    for name in FAMILIES:
        (_, first), *_, (_, last) = cases(name)
        for key, value in first.items():
            assert np.isfinite(value).all(), f"{name}: {key}"
        assert any(not np.array_equal(first[k], last[k]) for k in first), name


def test_the_page_of_families_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python tests/conformance/models_table.py`"
