"""A device elsewhere is one of a Router's like any other: tensors move to it and back, and gradients go back through moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from remote_kinds import Join, Serve

import singe as sg
from singe import nn

X = np.random.default_rng(5).normal(size=(8, 4)).astype(np.float32)


@pytest.mark.parametrize("lazy", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_network_trains_half_here_and_half_there(lazy: bool, serve: Serve, join: Join) -> None:
    router = sg.Router("wasm", join(serve("numpy")))
    device: Any = sg.Autodiff(sg.Fusion(router) if lazy else router)
    one = sg.Autodiff("numpy")

    def losses(first: sg.Device, second: sg.Device) -> list[float]:
        model = nn.Sequential(nn.Linear(4, 8, rng=0).to(first), nn.Linear(8, 2, rng=1).to(second)).map(
            sg.Tensor.require_grad
        )
        optimizer, found = sg.optim.SGD(0.1), []
        state = optimizer.init(model)
        for _ in range(3):
            hidden = model[0](sg.tensor(X, device=first)).tanh()
            loss = (model[1](hidden.to(second)) ** 2).mean()
            model, state = optimizer.step(model, loss.backward(), state)
            found.append(loss.item())
        return found

    np.testing.assert_allclose(losses(device[0], device[1]), losses(one, one), rtol=1e-5)


@pytest.mark.slow
def test_a_step_of_training_has_its_halves_here_and_there(serve: Serve, join: Join) -> None:
    router = sg.Router("wasm", join(serve("numpy")))

    def loss(model: Any, x: sg.Tensor) -> sg.Tensor:
        return (model[1](model[0](x).tanh().to(model[1].weight.device)) ** 2).mean()

    def trained(first: Any, second: Any, device: Any) -> tuple[list[float], nn.Module]:
        model = nn.Sequential(nn.Linear(4, 8, rng=0).to(first), nn.Linear(8, 2, rng=1).to(second))
        step = sg.train.TrainStep(model, sg.optim.Adam(0.1), loss, device=device, clip=1.0, nonfinite="stop")
        return [step(X) for _ in range(3)], step.model

    found, model = trained(router[0], router[1], router)
    wanted, one = trained("numpy", "numpy", "numpy")
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    for (path, a), (_, b) in zip(model.state_dict().items(), one.state_dict().items(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6, err_msg=path)


def test_elements_move_exactly(serve: Serve, join: Join) -> None:
    device = sg.Router("numpy", join(serve("numpy")))
    for data in ([2**53 + 1, -(2**63)], [True, False], [1 + 2j]):
        x = sg.tensor(data, device=device[0])
        assert x.to(device[1]).to(device[0]).tolist() == x.tolist() == x.to(device[1]).tolist()
