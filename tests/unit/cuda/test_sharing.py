"""Arrays of a card for other libraries, and theirs: what DLPack is told, with the host's memory in place of a card's."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

from singe.dtypes import bfloat16, dtype
from singe_cuda.device import sharing
from singe_cuda.device.sharing import Shared, Taken

KINDS: Final = ("bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64")


@pytest.fixture(autouse=True)
def _on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "KIND", 1)
    monkeypatch.setattr(sharing, "LEGACY_STREAM", None)


def shared(array: np.ndarray, waits: list[int]) -> Any:
    piece = SimpleNamespace(buffer=SimpleNamespace(address=array.ctypes.data - 16), offset=16)
    held: Any = SimpleNamespace(shape=array.shape, dtype=dtype(array.dtype), piece=piece, keeps=array)
    return Shared(held, 0, lambda: waits.append(1), array.copy)


@pytest.mark.parametrize("kind", KINDS)
def test_another_library_reads_the_memory_itself(kind: str) -> None:
    array, waits = np.arange(12).reshape(3, 4).astype(kind), []
    found = np.from_dlpack(shared(array, waits))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
    assert found.ctypes.data == array.ctypes.data
    assert len(waits) == 1
    del found
    gc.collect()
    assert len(waits) == 2  # before the memory is used again


def test_what_no_library_takes_is_given_back() -> None:
    waits: list[int] = []
    capsule = shared(np.zeros(3), waits).__dlpack__()
    held = len(sharing._lent)
    del capsule
    assert len(sharing._lent) == held - 1
    assert len(waits) == 2


def test_types_that_dlpack_lacks_are_refused() -> None:
    held: Any = SimpleNamespace(shape=(1,), dtype=dtype("float8_e4m3fn"), piece=None)
    with pytest.raises(BufferError, match="float8_e4m3fn"):
        Shared(held, 0, list[int]().clear, int).__dlpack__()
    held.dtype, held.piece = bfloat16, SimpleNamespace(buffer=SimpleNamespace(address=0), offset=0)
    assert Shared(held, 0, list[int]().clear, int).__dlpack__() is not None


def test_another_librarys_memory_is_taken_until_it_is_closed() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    taken = Taken(array, 0)
    assert (taken.address, taken.shape, taken.dtype, taken.contiguous) == (
        array.ctypes.data,
        (2, 3),
        dtype("int16"),
        True,
    )
    taken.close()
    turned = Taken(array.T, 0)
    assert not turned.contiguous
    turned.close()


def test_memory_of_another_device_is_refused() -> None:
    with pytest.raises(BufferError, match="not of cuda:3"):
        Taken(np.zeros(1), 3)
