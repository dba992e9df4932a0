"""The async twins return the same as the plain forms; all waiting is in one place."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import helper

import singe as sg
from singe import device as device_function
from singe.awaitables import finished, map_result, resolve, resolve_async, together
from singe.files.urls import fetch, is_url, stem_of
from singe.runtime.eager import EagerDevice
from singe.runtime.numpy_backend import NumpyBackend

TWIN = "await something_async()"


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


class LateBackend(NumpyBackend):
    """A backend like those in a page: reading elements must be awaited, and executables take no NumPy arrays."""

    def prepare(self, program: Any) -> Any:
        made = super().prepare(program)
        return SimpleNamespace(
            program=program, run=made.run, new_states=made.new_states, memory=made.memory, dispose=made.dispose
        )

    def download(self, array: Any) -> Any:
        return later(np.array(array.data))

    def synchronize(self) -> Any:
        return later(None)


@pytest.fixture
def late() -> EagerDevice:
    return EagerDevice(LateBackend())


def test_what_is_there_is_not_waited_for() -> None:
    assert resolve(3, TWIN) == 3
    assert map_result(3, lambda x: x + 1) == 4
    assert together([1, 2]) == [1, 2]
    assert together([]) == []
    assert finished(resolve_async(5)) == 5


def test_what_is_not_there_is_waited_for() -> None:
    async def all_of_it() -> list[Any]:
        return [
            await resolve_async(later(3)),
            await resolve_async(map_result(later(3), lambda x: x + 1)),
            await resolve_async(together([1, later(2), later(3)])),
        ]

    assert asyncio.run(all_of_it()) == [3, 4, [1, 2, 3]]


def test_a_plain_form_that_would_have_to_wait_names_its_twin() -> None:
    with pytest.raises(sg.DeviceError, match=r"await something_async\(\)"):
        resolve(later(3), TWIN)
    with pytest.raises(sg.DeviceError, match="something_async"):
        resolve(map_result(together([later(1)]), len), TWIN)


def test_errors_come_through() -> None:
    async def fails() -> int:
        raise sg.ShapeError("no")

    with pytest.raises(sg.ShapeError):
        asyncio.run(resolve_async(map_result(fails(), lambda x: x)))
    with pytest.raises(sg.ShapeError):
        finished(fails())


def test_tensors(late: EagerDevice) -> None:
    x = sg.tensor([[1.0, 2.0], [3.0, 4.0]], device=late)
    y = (x @ x).exp() * 0 + 2
    assert np.array_equal(asyncio.run(y.numpy_async()), np.full((2, 2), 2, np.float32))
    for read in (y.numpy, y.item if y.size == 1 else y.tolist, lambda: np.asarray(y)):
        with pytest.raises(sg.DeviceError, match=r"await tensor\.numpy_async\(\)"):
            read()
    with pytest.raises(sg.DeviceError, match=r"await tensor\.to_async\(device\)"):
        y.to("numpy")
    assert asyncio.run(y.to_async("numpy")).tolist() == [[2, 2], [2, 2]]
    assert "…" in repr(y)
    with pytest.raises(sg.DeviceError, match="numpy_async"):
        late.synchronize()


def test_gradients_go_back_through_awaited_moves_onto_a_device_but_not_off_it(late: EagerDevice) -> None:
    here, there = sg.Autodiff("numpy"), sg.Autodiff(sg.Fusion(late))
    x = sg.tensor([1.0, 2.0], device=there, requires_grad=True)
    loss = (asyncio.run((x * x).to_async(here)) * 3).sum()
    assert asyncio.run(loss.backward()[x].numpy_async()).tolist() == [6, 12]
    y = sg.tensor([1.0, 2.0], device=here, requires_grad=True)
    with pytest.raises(sg.DeviceError, match=r"nothing can wait here without await: write sg\.value_and_grad"):
        (y.to(there) * 3).sum().backward()


def test_fused_tensors(late: EagerDevice) -> None:
    x = sg.tensor([1.0, 2.0], device=sg.Fusion(late))
    assert asyncio.run((x * 2 + 1).numpy_async()).tolist() == [3, 5]


def test_models(late: EagerDevice) -> None:
    program = sg.compile(lambda x: (x + 1, x * 2), np.zeros(3, np.float32), device=late)
    x = np.arange(3, dtype=np.float32)
    found = asyncio.run(program.run_async(x))
    assert {k: v.tolist() for k, v in found.items()} == {"output0": [1, 2, 3], "output1": [0, 2, 4]}
    with pytest.raises(sg.DeviceError, match=r"await program\.run_async\(…\)"):
        program(x)
    with pytest.raises(sg.InputError, match="unknown: 'y'"):
        asyncio.run(program.run_async(y=x))


class DirectBackend(NumpyBackend):
    """A backend like those in a page whose executables take NumPy arrays directly."""

    def prepare(self, program: Any) -> Any:
        executable: Any = super().prepare(program)
        plain = executable.call
        executable.call = lambda *given: later(plain(*given))
        return executable

    def upload(self, array: np.ndarray) -> Any:
        raise AssertionError("the direct way is there")

    def download(self, array: Any) -> Any:
        raise AssertionError("the direct way is there")


def test_an_executable_with_a_way_of_its_own() -> None:
    program = sg.compile(lambda x: x + 1, np.zeros(2, np.float32), device=EagerDevice(DirectBackend()))
    assert asyncio.run(program.run_async(np.ones(2, np.float32))).tolist() == [2, 2]


@pytest.mark.parametrize("name", ["numpy", "auto"])
def test_devices_are_shared_between_both_forms(name: str) -> None:
    async def twice() -> tuple[EagerDevice, EagerDevice]:
        first, second = await asyncio.gather(sg.device_async(name), sg.device_async(name))
        return first, second

    first, second = asyncio.run(twice())
    assert first is second is device_function(name)
    assert asyncio.run(sg.device_async(first)) is first


def test_two_who_wait_for_one_device_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """If two backends are opened at once, the one that is not used is disposed of."""
    made: list[Any] = []

    class Slow(NumpyBackend):
        disposed = False

        def dispose(self) -> None:
            self.disposed = True

    def slow(name: str) -> Any:
        made.append(Slow())
        return later(made[-1])

    monkeypatch.setattr(sys.modules["singe.runtime.devices"], "open_backend", slow)
    monkeypatch.setattr(sys.modules["singe.runtime.devices"], "_devices", {})

    async def both() -> tuple[EagerDevice, EagerDevice]:
        first, second = await asyncio.gather(sg.device_async("slow"), sg.device_async("slow"))
        return first, second

    with pytest.raises(sg.DeviceError, match=r'await singe\.device_async\("slow"\)'):
        sg.device("slow")
    first, second = asyncio.run(both())
    assert first is second
    used = [b for b in made if b is first.backend]
    assert len(used) == 1
    assert sorted(b.disposed for b in made[1:]) == [False, True]
    assert not used[0].disposed


def test_an_absent_device_is_the_same_error_in_both_forms() -> None:
    with pytest.raises(sg.DeviceError, match="no backend 'abacus'"):
        asyncio.run(sg.device_async("abacus"))


def test_addresses() -> None:
    assert is_url("https://example.org/a/model.onnx")
    assert is_url("blob:https://example.org/1234")
    assert not is_url("model.onnx")
    assert not is_url("./folder/model.onnx")
    assert not is_url(Path("model.onnx"))
    assert stem_of("https://example.org/a/my%20model.onnx?v=2") == "my model"
    assert stem_of("https://example.org/") == "model"


@pytest.mark.parametrize("url", ["models/net.onnx", "blob:https://example.org/12", "data:application/octet-stream;base64,AA==",
                                 "https://example.org/net.onnx?v=1", "hf://o/r/net.onnx"])  # fmt: skip
def test_a_page_loads_from_every_url_that_it_can_fetch(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page resolves them, but for those of the hub. A hash in the fragment is compared with what comes."""
    data = helper.make_model(
        helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g",
                          [helper.make_tensor_value_info("x", 1, [2])], [helper.make_tensor_value_info("y", 1, [2])]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
    ).SerializeToString()  # fmt: skip
    asked: list[str] = []

    async def buffer() -> Any:
        return SimpleNamespace(to_bytes=lambda: data)

    async def answer(url: str) -> Any:
        asked.append(url)
        return SimpleNamespace(ok=True, arrayBuffer=buffer)

    monkeypatch.setitem(sys.modules, "js", SimpleNamespace(fetch=answer))
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    for module in ("files.urls", "files.download", "model.files"):
        monkeypatch.setattr(import_module(f"singe.{module}"), "IN_PAGE", True)
    model = asyncio.run(sg.load_async(url, device="numpy"))
    assert asked == ["https://huggingface.co/o/r/resolve/main/net.onnx" if url.startswith("hf:") else url]
    assert model.name == ("net" if "net" in url else "12" if "12" in url else "model")
    pinned = f"{url}#sha256={hashlib.sha256(data).hexdigest()}"
    np.testing.assert_array_equal(asyncio.run(sg.load_async(pinned, device="numpy"))(np.ones(2, np.float32)), [-1, -1])
    with pytest.raises(sg.InputError, match=rf"its sha256 is \w+, expected {'0' * 64}"):
        asyncio.run(sg.load_async(f"{url}#sha256={'0' * 64}", device="numpy"))


def test_browsers_fetch_in_pages_alone() -> None:
    with pytest.raises(sg.InputError, match=r"here, `singe\.load\(url\)` keeps the file"):
        asyncio.run(fetch("https://example.org/model.onnx"))
    with pytest.raises(sg.InputError, match=r"got a URL of ftp, expected https://, http:// or hf://"):
        asyncio.run(sg.load_async("ftp://example.org/model.onnx", device="numpy"))


def test_a_missing_file_is_the_same_error_in_both_forms(tmp_path: Path) -> None:
    with pytest.raises(sg.SingeError) as plain:
        sg.load(tmp_path / "none.onnx", device="numpy")
    with pytest.raises(type(plain.value), match="none"):
        asyncio.run(sg.load_async(tmp_path / "none.onnx", device="numpy"))
