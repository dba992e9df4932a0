"""A device elsewhere is a device: what runs on it gives what the same device gives here."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from remote_kinds import Join, Serve

import singe as sg
from singe import nn
from singe.runtime import devices

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def trained(device: sg.Device | str, steps: int = 3) -> list[float]:
    model = nn.Sequential(nn.Linear(4, 8, rng=0), nn.Tanh(), nn.Linear(8, 2, rng=1))
    step = sg.train.TrainStep(model, sg.optim.AdamW(1e-2), nn.CrossEntropyLoss(), device=device, seed=1)
    return [step(X, np.array([0, 1, 0])) for _ in range(steps)]


@pytest.mark.slow
def test_ops_gradients_and_fusion(kind: str, serve: Serve, join: Join) -> None:
    here, there = sg.device(kind), join(serve(kind))
    found = []
    for device in (here, there):
        on = sg.Autodiff(sg.Fusion(device))
        x = sg.tensor(X, device=on, requires_grad=True)
        grads = (x @ x.T).tanh().exp().sum().backward()
        found.append([grads[x].numpy(), (sg.tensor(X, device=device) + 1).numpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize(
    "dtype", ["bool", "int64", "uint8", "float16", "float64", "complex64", "bfloat16", "int4", "string"]
)
def test_every_kind_of_element_comes_back_as_it_went(dtype: str, serve: Serve, join: Join) -> None:
    there = join(serve())
    values = np.array([["a", "é\n"], ["", "\x00"]], object) if dtype == "string" else np.array([[0, 1], [3, 2]])
    given = sg.tensor(values, dtype=dtype, device="numpy") if dtype != "string" else sg.tensor(values, device="numpy")
    for t in (given, given.reshape(-1), given[:0]):
        back = t.to(there)
        assert (back.shape, back.dtype) == (t.shape, t.dtype)
        np.testing.assert_array_equal(back.numpy(), t.numpy())


def test_memory_is_what_the_session_has(serve: Serve, join: Join) -> None:
    there = join(serve("wasm"))
    x = sg.tensor(X, device=there)
    use = there.memory()
    assert (use.in_use, use.count, use.reserved, use.by_kind) == (X.nbytes, 1, None, {})
    del x
    gc.collect()
    there.clean()
    assert there.memory().count == 0
    assert not there.counts_memory  # a step of training does not ask for it
    with pytest.raises(sg.DeviceError, match="does not take memory by itself"):
        there.configure(sg.Memory(limit="1 GiB"))


def test_sizes_found_in_mid_run(kind: str, serve: Serve, join: Join) -> None:
    there = join(serve(kind))
    found = (sg.tensor(X, device=there) > 1).nonzero()
    np.testing.assert_array_equal(found.numpy(), np.argwhere(X > 1))
    model = sg.Model.of(lambda x: (x > 1).nonzero(), {"x": ("N", 4)}, device=there)
    np.testing.assert_array_equal(model(X), np.argwhere(X > 1))


def test_models_of_any_size_share_their_weights(kind: str, serve: Serve, join: Join) -> None:
    there = join(serve(kind))
    layer = nn.Linear(4, 500, rng=0)
    model = sg.Model.of(layer, {"x": ("N", 4)}, device=there)
    model.specialise(N=1)
    for count in (1, 3, 7):
        x = np.ones((count, 4), np.float32)
        np.testing.assert_allclose(model(x), layer(sg.tensor(x)).numpy(), rtol=1e-5)


def test_sessions_keep_their_states(kind: str, serve: Serve, join: Join) -> None:
    there = join(serve(kind))
    states = {"count": np.float32(1)}
    model = sg.Model.of(lambda x, *, count: (x * count, {"count": count + 1}), {"x": (2,)}, states=states, device=there)
    one, two = model.session(), model.session()
    x = np.ones(2, np.float32)
    assert [float(one(x)[0]) for _ in range(3)] == [1, 2, 3]
    branch = one.copy()
    assert [float(s(x)[0]) for s in (two, branch, one)] == [1, 4, 4]
    one.write("count", 7)
    assert float(one.read("count")) == 7
    one.reset()
    assert float(one(x)[0]) == 1


def test_donated_inputs_are_overwritten_there(kind: str, serve: Serve, join: Join) -> None:
    there = join(serve(kind))
    model = sg.Model.of(lambda mean, x: 0.5 * mean + x, {"mean": (3,), "x": (3,)}, donate=["mean"], device=there)
    executable = model.program().executable
    mean, x = (there.upload(np.full(3, v, np.float32)) for v in (2, 1))
    (out,) = executable.run([mean, x])
    assert out is mean
    np.testing.assert_array_equal(there.download(out), np.full(3, 2, np.float32))
    with pytest.raises(sg.InputError, match="donated"):
        executable.run([mean, mean])


def test_training_is_the_same(kind: str, serve: Serve, join: Join) -> None:
    np.testing.assert_allclose(trained(join(serve(kind))), trained(kind), rtol=1e-5)


def test_a_step_of_training_is_one_round_trip(serve: Serve, join: Join) -> None:
    there = join(serve())
    link = there.backend.connection
    model = nn.Sequential(nn.Linear(4, 8, rng=0), nn.Tanh(), nn.Linear(8, 2, rng=1))
    step = sg.train.TrainStep(model, sg.optim.AdamW(1e-2), nn.CrossEntropyLoss(), device=there)
    y = np.array([0, 1, 0])
    step(X, y)
    sent, trips = link.sent, link.trips
    step(X, y)
    assert link.trips - trips == 1
    assert link.sent - sent < 1000 + X.nbytes + y.nbytes


def test_what_nobody_holds_is_freed_there(serve: Serve, join: Join) -> None:
    there = join(serve())
    before = there.describe()
    for _ in range(100):
        (sg.tensor(X, device=there) * 2).numpy()
    model = sg.Model.of(nn.Linear(4, 500, rng=0), {"x": ("N", 4)}, device=there)
    model(X)
    held = there.describe()
    assert held["session_arrays"] == before["session_arrays"]
    assert held["session_bytes"] > 4 * 500 * 4
    del model
    gc.collect()
    there.describe()  # with which the server is told
    assert there.describe()["session_bytes"] < 4 * 500 * 4


def test_an_error_comes_at_the_next_read_with_op_and_shapes(kind: str, serve: Serve, join: Join) -> None:
    def pairs(x: sg.Tensor) -> sg.Tensor:
        return (x > 1).nonzero().reshape(2, 2) + 1

    here, there = (sg.Model.of(pairs, {"x": (3, 4)}, device=d) for d in (kind, join(serve(kind))))
    with pytest.raises(sg.ShapeError) as local:
        here(X)
    with pytest.raises(sg.ShapeError) as remote:
        there(X)
    assert str(local.value) in str(remote.value)
    assert "on the server, in a run of " in str(remote.value)
    assert "float32(3, 4)" in str(remote.value)
    device = there.program().device.eager
    (out,) = there.program().executable.run([device.upload(X)])
    with pytest.raises(sg.ShapeError):
        device.synchronize()
    with pytest.raises(sg.ShapeError):
        device.fetch(out)


def test_an_error_poisons_what_depends_on_it_and_nothing_else(serve: Serve, join: Join) -> None:
    there = join(serve(limits=sg.remote.SessionLimits(bytes=1 << 20)))
    much = sg.tensor(np.zeros(1 << 20, np.float32), device=there)
    little = sg.tensor(X, device=there)
    after = (much + 1).sum() + little.sum()
    for t in (after, much):
        with pytest.raises(sg.DeviceError, match=r"4194304 bytes is too much.*the server allows 1048576"):
            t.numpy()
    np.testing.assert_array_equal((little + 1).numpy(), X + 1)
    there.synchronize()


def test_a_step_that_cannot_begin_changes_no_state_and_one_that_fails_loses_it(serve: Serve, join: Join) -> None:
    def step(x: sg.Tensor, *, count: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        return (x > 0).nonzero().reshape(2, 1) + count, {"count": count + 1}

    there = join(serve(limits=sg.remote.SessionLimits(bytes=1 << 20)))
    session = sg.Model.of(step, {"x": ("N",)}, states={"count": np.int64(1)}, device=there).session()
    good, bad, large = (np.array(x, np.float32) for x in ([1, 1, 0], [1, 1, 1], [1, 1, *[0] * (1 << 18)]))
    assert session(good).tolist() == [[1], [2]]
    with pytest.raises(sg.DeviceError, match="is too much"):
        session(large)
    assert session(good).tolist() == [[2], [3]]
    with pytest.raises(sg.ShapeError):
        session(bad)
    with pytest.raises(sg.ShapeError, match=r"the states that it changes are lost: reset\(\) the session"):
        session(good)
    session.reset()
    assert session(good).tolist() == [[1], [2]]


def test_many_clients_at_a_time_do_not_meet(serve: Serve, join: Join) -> None:
    server = serve()
    found: dict[int, np.ndarray] = {}

    def work(k: int) -> None:
        there = join(server)
        t = sg.tensor(np.full(3, k, np.float32), device=there)
        for _ in range(20):
            t = t + 1
        found[k] = t.numpy()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert {k: v.tolist() for k, v in found.items()} == {k: [k + 20.0] * 3 for k in range(4)}


def test_the_example_of_remote(serve: Serve, join: Join) -> None:
    """Burn's server is one line, and its client a device with an address, which decorators take as any other."""
    server = serve("numpy")  # burn::server::start::<NdArray>(Default::default(), 3000)
    device = sg.Autodiff(
        join(server)
    )  # type Backend = Autodiff<RemoteBackend>; RemoteDevice::new("ws://localhost:3000")
    tensor = sg.rand(3, 3, device=device).require_grad()  # Tensor::<Backend, 2>::random(…, &device)
    assert tensor.shape == (3, 3)
    np.testing.assert_allclose((tensor * tensor).sum().backward()[tensor].numpy(), 2 * tensor.numpy(), rtol=1e-6)


def test_it_has_a_name(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    monkeypatch.setattr(devices, "_devices", dict(devices._devices))
    there = sg.Remote(server.url, server.token)
    try:
        assert there.name == f"remote:{server.url}"
        assert sg.device(there.name) is there
        assert (sg.tensor(X, device=there.name) + 1).device is there
        assert sg.tensor(X).to(there.name).device is there
        assert "remote" not in sg.devices()
    finally:
        there.eager.backend.dispose()  # pyright: ignore[reportAttributeAccessIssue]
    again = sg.device(there.name)
    assert again is not there
    again.eager.backend.dispose()  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setenv("SINGE_REMOTE_TOKEN", server.token)
    monkeypatch.setattr("singe.runtime.remote.client._tokens", {})
    third = sg.device(there.name)
    third.eager.backend.dispose()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("name", "match"),
    {
        "remote": "needs its address: remote:ws://127.0.0.1:3000",
        "remote:": "expected after the colon the address of a server",
        "remote:http://127.0.0.1:3000": "is no address of a device elsewhere, expected one as in remote:ws",
        "remote:ws://[::": "is no address",
        "remote:ws://a:b@127.0.0.1:3000": "is no address",
        "remote:ws://127.0.0.1:1": "no server answers at ws://127.0.0.1:1: .*; start one there: singe host",
    }.items(),
)  # fmt: skip
def test_a_name_that_leads_nowhere(name: str, match: str) -> None:
    with pytest.raises((sg.DeviceError, sg.InputError), match=match):
        sg.device(name)
