"""Frozen parameters count as buffers, in every module that is made of theirs."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import singe as sg
from singe import nn


class Heads(nn.Module):
    """Parameters in lists, beside modules in them."""

    def __init__(self) -> None:
        self.scales = [sg.ones(2), sg.ones(3)]
        self.parts = {"a": nn.Linear(2, 2, rng=0), "b": (nn.Linear(2, 3, rng=1), sg.zeros(1))}

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        return x


def network() -> nn.Sequential:
    backbone = nn.Sequential(nn.Linear(3, 4, rng=0), nn.BatchNorm1d(4), nn.Linear(4, 2, rng=1))
    return nn.Sequential({"backbone": backbone, "head": nn.Linear(2, 2, rng=2)})


def parameters(module: nn.Module) -> list[str]:
    return [path for path, _ in module.named_parameters()]


def test_frozen_parameters_are_buffers() -> None:
    model = network()
    frozen = model.freeze("backbone.*")
    assert parameters(frozen) == ["head.weight", "head.bias"]
    assert frozen.parameter_count == 6
    assert list(frozen.state_dict()) == list(model.state_dict())
    assert {p for p, _ in frozen.named_buffers()} == {p for p in model.state_dict() if p.startswith("backbone")}
    assert parameters(model) == [p for p in model.state_dict() if "running" not in p and "tracked" not in p]
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(frozen(sg.tensor(x)).numpy(), model(sg.tensor(x)).numpy())


def test_patterns() -> None:
    model = network()
    assert parameters(model.freeze("backbone")) == parameters(model.freeze("backbone.*"))
    assert parameters(model.freeze("*.bias", "head.weight")) == [
        "backbone.0.weight", "backbone.1.weight", "backbone.2.weight",
    ]  # fmt: skip
    assert parameters(model.freeze()) == []
    thawed = model.freeze().unfreeze("backbone.2")
    assert parameters(thawed) == ["backbone.2.weight", "backbone.2.bias"]
    assert parameters(thawed.unfreeze()) == parameters(model)
    assert parameters(model.freeze("head").freeze("backbone.0")) == [
        "backbone.1.weight", "backbone.1.bias", "backbone.2.weight", "backbone.2.bias",
    ]  # fmt: skip
    with pytest.raises(sg.InputError, match=r"freeze: no tensor matches 'bakbone\.\*'; there are backbone\.0\.weight"):
        model.freeze("bakbone.*")


def test_parameters_in_lists_and_dicts() -> None:
    model = Heads()
    frozen = model.freeze("scales.1", "parts.b")
    assert parameters(frozen) == ["scales.0", "parts.a.weight", "parts.a.bias"]
    assert parameters(frozen.unfreeze("parts.b.1")) == ["scales.0", "parts.a.weight", "parts.a.bias", "parts.b.1"]


def test_shared_parameters_are_frozen_together() -> None:
    first = nn.Linear(3, 3, rng=0)
    model = nn.Sequential(first, nn.Linear(3, 3, rng=1).replace(weight=first.weight))
    assert parameters(model.freeze("1.weight")) == ["0.bias", "1.bias"]
    assert parameters(model.freeze("1.weight").unfreeze("0.weight")) == ["0.weight", "0.bias", "1.bias"]


@pytest.mark.parametrize(
    "made",
    [lambda m: m.with_state({k: v.numpy() for k, v in m.state_dict().items()}), lambda m: m.to("numpy"),
     lambda m: m.half(), lambda m: m.map(lambda t: t + 1), lambda m: m.map_parameters(lambda path, t: t * 2), lambda m: m.train(),
     lambda m: m.clone(), lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.replace(layers=m.layers)],
)  # fmt: skip
def test_modules_made_of_a_frozen_one_are_frozen(made: Callable[[nn.Module], nn.Module]) -> None:
    assert parameters(made(network().freeze("backbone.*"))) == ["head.weight", "head.bias"]


def test_parameters_made_anew_leave_out_the_frozen_ones() -> None:
    frozen = network().freeze("backbone.*")
    made = frozen.map_parameters(lambda path, t: nn.init.zeros(t.shape))
    assert made.state_dict()["backbone.0.weight"] is frozen.state_dict()["backbone.0.weight"]
    assert not made.state_dict()["head.weight"].numpy().any()


def test_a_frozen_norm_still_collects_statistics_in_training() -> None:
    model = network().freeze().train()
    with nn.observing() as seen:
        model(sg.tensor(np.eye(3, dtype=np.float32)))
    after = model.with_modules(seen)
    assert after.state_dict()["backbone.1.num_batches_tracked"].item() == 1
    assert parameters(after) == []
