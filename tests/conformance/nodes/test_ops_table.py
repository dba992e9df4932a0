"""The page that says where ops run is the one that the code gives."""

from __future__ import annotations

import pytest
from ops_table import PAGE, page


@pytest.mark.slow
def test_the_table_of_ops_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python tests/conformance/nodes/ops_table.py`"
