"""Several devices as one: tensors move between them exactly, gradients go back through moves, and nothing moves by itself."""

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from devices import slow

import singe as sg
from singe import nn
from singe.dtypes import ALL, own, string
from singe.errors import CompileError
from singe.graph import Graph
from singe.runtime.decorators import Decorator
from singe.runtime.device import Build, Device

RNG = np.random.default_rng(5)
X = RNG.normal(size=(16, 4)).astype(np.float32)
Y = RNG.integers(0, 3, 16)
PAIRS = [("numpy", "wasm"), ("wasm", "numpy"), *slow(("numpy", "webgpu"), ("webgpu", "wasm"))]
WRAPS: dict[str, Callable[[Device], Device]] = {
    "autodiff": sg.Autodiff,
    "autodiff of fusion": lambda router: sg.Autodiff(sg.Fusion(router)),
}


def routed(*names: str, **options: Any) -> sg.Router:
    try:
        return sg.Router(*names, **options)
    except sg.DeviceError as e:
        pytest.skip(str(e))


# --- what the seeds show ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", ["wasm", *slow("webgpu")])
def test_the_example_of_router(gpu: str) -> None:
    """Burn has two lines each: a type of all devices, and a value that chooses one."""
    device = routed(gpu, "numpy")  # type Backend = Router<(Wgpu, NdArray)>
    device_0 = device[0]  # MultiDevice::B1(…)
    device_1 = device[1]  # MultiDevice::B2(…)
    tensor_gpu = sg.rand(3, 3, device=device_0)  # Tensor::<Backend, 2>::random(…, &device_0)
    tensor_cpu = sg.rand(3, 3, device=device_1)  # … &device_1
    assert (tensor_gpu.device.name, tensor_cpu.device.name) == (gpu, "numpy")


@pytest.mark.parametrize("inner", [lambda: sg.device("wasm"), lambda: sg.Fusion("wasm")], ids=["autodiff", "fusion"])
def test_the_examples_of_autodiff_and_fusion(inner: Callable[[], Device]) -> None:
    device = sg.Autodiff(inner())  # type Backend = Autodiff<Wgpu>, and Autodiff<Fusion<Wgpu>>
    x = sg.rand(32, 32, device=device)
    y = sg.rand(32, 32, device=device).require_grad()
    tmp = (((x + y) @ x) * 0.01).exp()  # without the factor, sums of 32 products overflow float32
    grads = tmp.backward()  # of several numbers those of their sum
    y_grad = grads[y]  # y.grad(&grads)
    wanted = 0.01 * tmp.numpy() @ x.numpy().T
    np.testing.assert_allclose(y_grad.numpy(), wanted, rtol=1e-4)


# --- moves ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_every_type_moves_exactly(pair: Sequence[str]) -> None:
    """Every bit: integers beyond the floats between, codes of small floats, NaN's, packed types."""
    device = routed(*pair)
    special = {"int64": [2**53 + 1, -(2**63), 2**63 - 1], "uint64": [2**64 - 1, 2**53 + 1, 0]}
    for kind in ALL:
        if kind is string:
            data = np.array(["", "ä", "日本"], object)
        elif kind.name in special:
            data = np.array(special[kind.name], kind.numpy)
        elif kind.name == "bool":
            data = np.array([True, False, True])
        elif kind.kind == "int" and kind.bits < 8:
            data = np.arange(-(1 << kind.bits - 1), 1 << kind.bits - 1, dtype=np.int8).view(kind.numpy)
        else:
            data = RNG.integers(0, 1 << min(kind.bits, 8), (7, kind.size), np.uint8).view(kind.numpy)[:, 0]
        for place in device:
            x = sg.tensor(data, dtype=kind, device=place)
            there = device[1] if place is device[0] else device[0]
            moved = x.to(there)
            assert (moved.device, moved.dtype) == (there, kind)
            back = moved.to(place)
            for found in (moved, back):
                a, b = own(found.numpy()), own(x.numpy())
                assert a.dtype == b.dtype, kind
                assert (a.tolist() if kind is string else a.tobytes()) == (
                    b.tolist() if kind is string else b.tobytes()
                ), kind


def test_a_move_to_the_same_device_copies_nothing() -> None:
    device = sg.Router("numpy", "numpy")
    x = sg.tensor(X, device=device[0])
    assert x.to(device[1]) is x.to(device) is x.to("numpy") is x
    recorded = sg.Autodiff(device)
    y = sg.tensor(X, device=recorded[0])
    assert y.to(recorded[1]) is y


class Counted(Decorator):
    fetched = uploaded = 0

    def fetch(self, value: Any) -> Any:
        self.fetched += 1
        return super().fetch(value)

    def upload(self, array: np.ndarray) -> Any:
        self.uploaded += 1
        return super().upload(array)


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_move_is_one_copy_on_the_host(wrap: str) -> None:
    first, second = Counted("numpy"), Counted("wasm")
    device: Any = WRAPS[wrap](sg.Router(first, second))
    x = sg.tensor(X, device=device[0])
    uploaded = first.uploaded
    x.to(device[1])
    assert (first.fetched, first.uploaded, second.fetched, second.uploaded) == (1, uploaded, 0, 1)


def test_a_move_may_be_awaited() -> None:
    device = sg.Router("numpy", "wasm")
    x = asyncio.run(sg.tensor(X, device=device[0]).to_async(device[1], sg.float16))
    assert (x.device, x.dtype) == (device[1], sg.float16)


def test_a_router_where_one_device_is_expected_is_its_first() -> None:
    device = sg.Router("wasm", "numpy")
    assert sg.tensor(X, device=device).device is sg.rand(2, device=device).device is device[0] is sg.device("wasm")
    assert sg.Model.of(nn.Linear(4, 2), {"x": ("N", 4)}, device).device is device[0]
    assert [one.name for one in device] == ["wasm", "numpy"]
    assert repr(pickle.loads(pickle.dumps(sg.Autodiff(device)))) == repr(sg.Autodiff(device))
    assert [one.name for one in sg.Router(sg.Router("wasm", "numpy"), "numpy")] == ["wasm", "numpy", "numpy"]
    assert set(device.describe()) == {"0 wasm", "1 numpy"}


# --- training ---------------------------------------------------------------------------------------------------------


class Halves(nn.Module):
    """A network of which each half computes where its weights are."""

    def __init__(self) -> None:
        self.body = nn.Linear(4, 8, rng=np.random.default_rng(0))
        self.head = nn.Linear(8, 3, rng=np.random.default_rng(1))

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        hidden = self.body(x).tanh()
        kept = hidden.to(self.head.weight.device)
        return self.head(kept) + (kept * kept).mean(1, keepdim=True)  # two gradients go back by one move


def losses(first: Device, second: Device, optimizer: sg.optim.Optimizer) -> list[float]:
    model = Halves()
    model = model.replace(body=model.body.to(first), head=model.head.to(second)).map(sg.Tensor.require_grad)
    state, found = optimizer.init(model), []
    for _ in range(4):
        loss = nn.CrossEntropyLoss()(model(sg.tensor(X, device=first)), sg.tensor(Y, device=second))
        grads = sg.optim.clip_norm(loss.backward(), 0.5)
        for x in model.body.parameters():
            assert grads[x].device == first
        model, state = optimizer.step(model, grads, state)
        found.append(loss.item())
    return found


@pytest.mark.parametrize("wrap", ["autodiff of fusion", *slow("autodiff")])
@pytest.mark.parametrize("pair", [("numpy", "wasm"), *slow(("wasm", "numpy"), ("numpy", "webgpu"))], ids="+".join)
def test_a_network_trains_on_two_devices_as_on_one(pair: Sequence[str], wrap: str) -> None:
    device: Any = WRAPS[wrap](routed(*pair))
    optimizer = sg.optim.Adam(sg.optim.CosineAnnealingLR(0.05, 10))
    one = sg.Autodiff("numpy")
    wanted = losses(one, one, optimizer)
    np.testing.assert_allclose(losses(device[0], device[1], optimizer), wanted, rtol=1e-5)
    assert wanted[-1] < wanted[0]


def test_gradients_go_back_through_moves_to_each_device_and_can_be_differentiated() -> None:
    device: Any = sg.Autodiff(sg.Router("numpy", "wasm"))
    x = sg.tensor([2.0, 3.0], device=device[0], requires_grad=True)
    w = sg.tensor([5.0, 7.0], device=device[1], requires_grad=True)
    there = x.to(device[1])
    loss = ((there**3 * w).to(device[0]) * x).sum()  # x⁴ w: there and back, and x by two ways
    grads = loss.backward(create_graph=True)
    assert (grads[x].device, grads[w].device) == (device[0], device[1])
    assert grads[x].tolist() == [4 * 8 * 5, 4 * 27 * 7]
    assert grads[w].tolist() == [16, 81]
    assert grads[x].sum().backward()[x].tolist() == [12 * 4 * 5, 12 * 9 * 7]
    assert x.detach().to(device[1]).requires_grad is False
    assert x.to("wasm").device is sg.device("wasm")


@pytest.mark.slow
def test_threads_train_in_both_directions_at_once() -> None:
    """Who waits for one device does not hold another."""
    device: Any = sg.Autodiff(sg.Fusion(sg.Router("numpy", "wasm")))
    optimizer = sg.optim.SGD(0.1)
    found: list[list[float]] = []
    work = [
        threading.Thread(target=lambda a=a, b=b: found.append(losses(device[a], device[b], optimizer)), daemon=True)
        for a, b in ((0, 1), (1, 0), (0, 1), (1, 0))
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join(120)
    assert len(found) == 4
    for one in found[1:]:
        np.testing.assert_allclose(one, found[0], rtol=1e-5)


def test_a_learner_shares_its_batches_among_a_routers_devices() -> None:
    learner = sg.train.Learner(
        nn.Linear(4, 3), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device=sg.Router("numpy", "wasm"), dashboard=None
    )
    assert [one.name for one in learner.devices] == ["numpy", "wasm"]


# --- errors -----------------------------------------------------------------------------------------------------------


def test_operands_on_two_devices_are_an_error_that_says_how_to_move_them() -> None:
    device = sg.Router("numpy", "wasm")
    x, y = (sg.tensor(X, device=one) for one in device)
    with pytest.raises(
        sg.DeviceError, match=r'<device wasm> meets one of <device numpy>; .*\.to\("numpy"\) or \.to\("wasm"\)'
    ):
        x.add(y)
    assert x.add(y.to("numpy")).device is device[0]
    recorded: Any = sg.Autodiff(device)
    with pytest.raises(sg.DeviceError, match=r"<device autodiff\(wasm\)> meets one of <device autodiff\(numpy\)>"):
        sg.tensor(X, device=recorded[0]).add(sg.tensor(X, device=recorded[1]))


def test_wrong_devices_and_numbers_are_refused() -> None:
    with pytest.raises(sg.InputError, match="got no devices, expected some"):
        sg.Router()
    with pytest.raises(sg.InputError, match=r"got the number 2 of a device; there are \[0\] <device numpy>, \[1\]"):
        sg.Router("numpy", "wasm")[2]
    with pytest.raises(sg.DeviceError, match="no backend 'wasn'"):
        sg.Router("numpy", "wasn")
    device: Any = sg.Router("numpy", "wasm")
    with pytest.raises(
        sg.DeviceError, match=r"while a function is traced.*Gradients go back through moves by backward"
    ):
        sg.grad(lambda x: x.to(device[1]).sum())(sg.tensor(X, device=device[0]))


# --- what a device cannot do ------------------------------------------------------------------------------------------


class Limited(Decorator):
    """A device without `exp`."""

    def apply(self, build: Build, values: Sequence[Any]) -> tuple[Any, ...]:
        nodes: list[str] = []

        def seen(builder: Any, *inputs: Any) -> Any:
            made = build(builder, *inputs)
            nodes.extend(n.op for n in builder.made_since(0))
            return made

        if "exp" in nodes or (super().apply(seen, values) and "exp" in nodes):
            raise CompileError("this device has no exp")
        return super().apply(build, values)

    def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        if any(n.op == "exp" for n in graph.nodes):
            raise CompileError("this device has no exp")
        return super().run(graph, values)


@pytest.mark.parametrize("wrap", [None, *WRAPS])
def test_an_op_falls_to_the_next_device_that_can_do_it(wrap: str | None, caplog: pytest.LogCaptureFixture) -> None:
    router = sg.Router(Limited("wasm"), Limited("numpy"), "numpy", fallback=True)
    device: Any = router if wrap is None else WRAPS[wrap](router)
    x = sg.tensor(X, device=device[0])
    x = x if wrap is None else x.require_grad()
    with caplog.at_level(logging.WARNING, "singe"):
        y = (x + 1).exp() * 2
        np.testing.assert_allclose(y.numpy(), np.exp(X + 1) * 2, rtol=1e-5)
    assert y.device == device[0], "the result is where its operands are"
    assert "exp" in router.describe()["0 wasm"]["fallback"]
    assert router[0].describe()["fallback"]["exp"] == "numpy"
    assert any("limited(wasm) cannot do" in r.message and "this device has no exp" in r.message for r in caplog.records)
    if wrap is not None:
        np.testing.assert_allclose(y.sum().backward()[x].numpy(), np.exp(X + 1) * 2, rtol=1e-5)


def test_without_fallback_and_with_none_that_can_the_error_is_the_devices() -> None:
    with pytest.raises(CompileError, match="no exp"):
        sg.tensor(X, device=sg.Router(Limited("wasm"), "numpy")[0]).exp()
    with pytest.raises(CompileError, match="no exp"):
        sg.tensor(X, device=sg.Router(Limited("wasm"), Limited("numpy"), fallback=True)[0]).exp()
    with pytest.raises(CompileError, match="no exp"):  # there is none after the last
        sg.tensor(X, device=sg.Router("numpy", Limited("wasm"), fallback=True)[1]).exp()


def test_a_callers_mistake_is_not_tried_on_every_device() -> None:
    second = Counted("numpy")
    device = sg.Router("wasm", second, fallback=True)
    with pytest.raises(sg.ShapeError):
        sg.tensor(X, device=device[0]).matmul(sg.tensor(X, device=device[0]))
    assert (second.fetched, second.uploaded) == (0, 0)


def test_a_device_of_a_router_with_fallback_takes_the_tensors_of_its_own_device() -> None:
    device = sg.Router("numpy", "wasm", fallback=True)
    x = sg.tensor(X, device=device[0])
    assert (x + sg.tensor(X, device="numpy")).device is device[0]
    assert repr(device[0]) == "<device numpy else wasm>"
    assert repr(pickle.loads(pickle.dumps(device))) == repr(device)
