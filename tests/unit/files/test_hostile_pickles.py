"""Pickles whose values hold each other without end, and headers as deep, are read or refused in little time and memory."""

from __future__ import annotations

import io
import resource
import signal
import sys
import zipfile
from types import FrameType

import pytest
from devices import slow
from hostile_pickles import ROOTS, hostile_pickles

import singe as sg
from singe.weights.pytorch import read_pytorch

SECONDS = 2.0
"""Of processor time, for one file: the longest takes a tenth of it."""
MEMORY = 400 << 20
"""Bytes, for all files of a test."""


class Endless(Exception):
    pass


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no alarm that interrupts")
@pytest.mark.parametrize("count", [len(ROOTS), *slow(2000)])
def test_values_that_hold_each_other_are_read_or_refused_in_bounded_time(count: int) -> None:
    def late(number: int, frame: FrameType | None) -> None:
        raise Endless

    before, refused = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    handler = signal.signal(signal.SIGVTALRM, late)
    try:
        for file in hostile_pickles(count, seed=count):
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                read_pytorch(file.data)
            except (sg.FormatError, sg.InputError) as e:
                refused += len(str(e)) < 600
            except Endless:
                pytest.fail(f"{file.about}: {len(file.data)} bytes are not read in {SECONDS} seconds")
            except Exception as e:
                raise AssertionError(f"{file.about}: {e!r:.200}") from e
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, handler)
    assert refused > 0.8 * count  # in few words; what stands where nothing is read is no harm
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (1 if sys.platform == "darwin" else 1024)
    assert grown < MEMORY


def test_the_error_of_a_header_of_numpy_is_short() -> None:
    """NumPy's own quotes the whole header."""
    header = b"{'descr': " + b"[" * 3000 + b"]" * 3000 + b", 'fortran_order': False, 'shape': (1,)}\n"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as held:
        held.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(sg.FormatError, match="not NumPy's format") as caught:
        dict(sg.read_weights(made.getvalue()))
    assert len(str(caught.value)) < 300
