"""DLPack: tensors and the arrays of other libraries share memory where both sides are on one device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import singe as sg

CPU = 1
"""DLPack's kind of the host's memory."""
A = np.arange(6, dtype=np.float32).reshape(2, 3)


def opened(name: str) -> sg.Device:
    try:
        return sg.device(name)
    except sg.DeviceError as e:
        pytest.skip(f"no {name} here: {e}")


@pytest.mark.parametrize("name", ["numpy", "fusion", "autodiff"])
def test_numpys_memory_is_shared_both_ways(name: str) -> None:
    on = {"numpy": sg.Numpy(), "fusion": sg.Fusion(sg.Numpy()), "autodiff": sg.Autodiff(sg.Fusion(sg.Numpy()))}[name]
    array = A.copy()
    x = sg.from_dlpack(array, device=on)
    assert x.device is on
    assert np.shares_memory(np.from_dlpack(x), array)
    np.testing.assert_array_equal((x + 1).numpy(), A + 1)


def test_a_pending_value_is_computed_before_it_is_exported() -> None:
    x = sg.tensor(A, device=sg.Fusion("numpy"))
    np.testing.assert_array_equal(np.from_dlpack(x * 2), A * 2)


def test_a_copy_is_made_if_it_is_asked_for() -> None:
    array = A.copy()
    x = sg.from_dlpack(array, copy=True)
    array[0, 0] = 7
    assert x.numpy()[0, 0] == 0
    assert not np.shares_memory(np.from_dlpack(x, copy=True), np.from_dlpack(x))


@pytest.mark.parametrize("name", ["wasm", pytest.param("webgpu", marks=pytest.mark.slow)])
def test_other_devices_copy_and_say_so(name: str) -> None:
    x = sg.from_dlpack(A, device=opened(name))
    assert x.device is sg.device(name)
    np.testing.assert_array_equal(np.from_dlpack(x), A)
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="are exported as a copy; leave copy out"):
        x.__dlpack__(copy=False)


def test_a_tensor_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    on = opened("wasm")
    x = sg.tensor(A, device=on)
    copies: list[Any] = []
    fetch = type(on).fetch
    monkeypatch.setattr(type(on), "fetch", lambda self, value: (copies.append(value), fetch(self, value))[1])
    np.from_dlpack(x)
    assert len(copies) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch:cpu", "jax"])
def test_the_arrays_of_a_library_are_shared_with_its_device(name: str) -> None:
    on = opened(name)
    x = sg.tensor(A, device=on)
    if name == "jax":
        from jax.dlpack import from_dlpack  # noqa: PLC0415
    else:
        from torch.utils.dlpack import from_dlpack  # pyright: ignore[reportMissingImports]  # noqa: PLC0415
    theirs: Any = from_dlpack(x)
    again = sg.from_dlpack(theirs, device=on)
    assert again.device is on
    np.testing.assert_array_equal((again + x).numpy(), A * 2)
    if x.__dlpack_device__()[0] == CPU:  # NumPy takes no other memory
        assert np.shares_memory(np.from_dlpack(again), np.from_dlpack(x))
    numpys = sg.from_dlpack(theirs)
    assert numpys.device is sg.Numpy()
    np.testing.assert_array_equal(numpys.numpy(), A)


class Elsewhere:
    """An object with DLPack whose memory is on a device that nobody has."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("not here")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 17, 0


def test_what_has_no_dlpack_or_lies_elsewhere_is_refused() -> None:
    with pytest.raises(sg.InputError, match=r"from_dlpack: got \[1\], a list, as x, expected an array that has DLPack"):
        sg.from_dlpack([1])
    with pytest.raises(
        sg.DeviceError, match=r"no device here uses the memory of x \(DLPack's kind 17\): move it to the CPU"
    ):
        sg.from_dlpack(Elsewhere())
    with pytest.raises(sg.InputError, match=r"cannot be had on <device numpy>: not here; move it to the CPU before"):
        sg.from_dlpack(Elsewhere(), device="numpy")
