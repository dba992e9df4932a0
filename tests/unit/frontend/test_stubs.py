"""The stub that lists Tensor's methods for editors is the one that the methods give."""

from __future__ import annotations

from stubs import STUB, stub


def test_the_stub_is_current() -> None:
    assert STUB.read_text() == stub(), "run `python tests/stubs.py`"
