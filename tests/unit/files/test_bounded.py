"""Small files that others wrote are read whole only where their size is known and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from singe.errors import FormatError, InputError
from singe.files.bounded import read_bounded


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device that is a file without an end")
def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(InputError, match="/dev/zero: cannot be read: it is not a regular file"):
        read_bounded(Path("/dev/zero"))


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(FormatError, match="5 bytes, at most 4 are read"):
        read_bounded(path, 4)
