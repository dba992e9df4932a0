"""Initial weights have the distributions and the structure that PyTorch gives them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.nn import init

SHAPE = (64, 32, 3, 3)
INPUTS, OUTPUTS = 32 * 9, 64 * 9

UNIFORM: dict[str, tuple[Callable[[int], sg.Tensor], float]] = {
    "uniform": (lambda rng: init.uniform(SHAPE, -2, 2, rng=rng), 2),
    "xavier_uniform": (lambda rng: init.xavier_uniform(SHAPE, 2.0, rng=rng), 2 * math.sqrt(6 / (INPUTS + OUTPUTS))),
    "kaiming_uniform": (lambda rng: init.kaiming_uniform(SHAPE, rng=rng), math.sqrt(6 / INPUTS)),
    "kaiming_uniform by outputs": (
        lambda rng: init.kaiming_uniform(SHAPE, 0.5, "fan_out", rng=rng),
        math.sqrt(6 / 1.25 / OUTPUTS),
    ),
    "the default of layers": (lambda rng: nn.Conv2d(32, 64, 3, rng=rng).weight, INPUTS**-0.5),
}
NORMAL: dict[str, tuple[Callable[[int], sg.Tensor], float, float]] = {
    "normal": (lambda rng: init.normal(SHAPE, 1.0, 0.3, rng=rng), 1.0, 0.3),
    "xavier_normal": (lambda rng: init.xavier_normal(SHAPE, rng=rng), 0.0, math.sqrt(2 / (INPUTS + OUTPUTS))),
    "kaiming_normal": (
        lambda rng: init.kaiming_normal(SHAPE, nonlinearity="relu", rng=rng), 0.0, math.sqrt(2 / INPUTS),
    ),
    "kaiming_normal for tanh": (
        lambda rng: init.kaiming_normal(SHAPE, mode="fan_out", nonlinearity="tanh", rng=rng), 0.0, 5 / 3 / math.sqrt(OUTPUTS),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_weights(name: str) -> None:
    make, bound = UNIFORM[name]
    found = make(0).numpy()
    assert found.shape == SHAPE
    assert found.dtype == np.float32
    assert np.abs(found).max() <= bound * (1 + 1e-6)
    assert abs(found.std() / (bound / math.sqrt(3)) - 1) < 0.02
    assert abs(found.mean()) < 0.02 * bound
    np.testing.assert_array_equal(make(0).numpy(), found)
    assert not np.array_equal(make(1).numpy(), found)


@pytest.mark.parametrize("name", NORMAL)
def test_normal_weights(name: str) -> None:
    make, mean, std = NORMAL[name]
    found = make(0).numpy()
    assert found.shape == SHAPE
    assert abs(found.std() / std - 1) < 0.02
    assert abs(found.mean() - mean) < 0.02 * std
    assert abs(((found - mean) ** 4).mean() / std**4 - 3) < 0.2  # of a normal distribution
    np.testing.assert_array_equal(make(0).numpy(), found)


@pytest.mark.parametrize(
    ("a", "b"), [(-2.0, 2.0), (-0.1, 0.2), (0.5, 9.0), (3.0, 100.0), (-100.0, -3.0), (-math.inf, 0.0), (8.0, 8.1)]
)
def test_truncated_normal_weights(a: float, b: float) -> None:
    mean, std = 0.5, 1.5
    found = init.trunc_normal((40, 500), mean, std, a, b, rng=0).numpy()
    assert a <= found.min()
    assert found.max() <= b
    grid = np.linspace(max(a, -12), min(b, 12), 200_001)
    density = np.exp(-(((grid - mean) / std) ** 2) / 2)
    want = np.average(grid, weights=density)
    spread = math.sqrt(np.average((grid - want) ** 2, weights=density))
    assert abs(found.mean() - want) < 0.03 * spread
    assert abs(found.std() / spread - 1) < 0.03


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (6, 6), (8, 2, 3, 3), (40, 2, 3)])
def test_orthogonal_weights(shape: tuple[int, ...]) -> None:
    found = init.orthogonal(shape, 2.0, rng=0).numpy()
    assert found.shape == shape
    flat = found.reshape(shape[0], -1)
    product = flat @ flat.T if flat.shape[0] <= flat.shape[1] else flat.T @ flat
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


@pytest.mark.parametrize(("channels", "groups"), [((4, 4), 1), ((3, 5), 1), ((6, 2), 1), ((4, 4), 2)])
def test_convolution_by_dirac_gives_its_input(channels: tuple[int, int], groups: int) -> None:
    outputs, inputs = channels
    layer = nn.Conv2d(inputs, outputs, 3, padding=1, groups=groups, bias=False)
    layer = layer.replace(weight=init.dirac(layer.weight.shape, groups))
    x = np.random.default_rng(0).normal(size=(1, inputs, 5, 5)).astype(np.float32)
    want = np.zeros((1, outputs, 5, 5), np.float32)
    for group in range(groups):
        of, to = inputs // groups, outputs // groups
        count = min(of, to)
        want[:, group * to : group * to + count] = x[:, group * of : group * of + count]
    np.testing.assert_allclose(layer(sg.tensor(x)).numpy(), want, atol=1e-6)


def test_plain_and_sparse_weights() -> None:
    assert init.zeros((2, 1)).tolist() == [[0], [0]]
    assert init.ones((2,)).tolist() == [1, 1]
    assert init.constant((2,), 0.5).tolist() == [0.5, 0.5]
    assert init.eye((2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    found = init.sparse((10, 50), 0.25, std=0.1, rng=0).numpy()
    assert ((found == 0).sum(0) == 3).all()
    assert abs(found[found != 0].std() - 0.1) < 0.02


@pytest.mark.parametrize(
    ("name", "param", "want"),
    [("linear", None, 1), ("sigmoid", None, 1), ("tanh", None, 5 / 3), ("relu", None, 2**0.5), ("selu", None, 0.75),
     ("conv_transpose2d", None, 1), ("leaky_relu", None, (2 / 1.0001) ** 0.5), ("leaky_relu", 1.0, 1)],
)  # fmt: skip
def test_gains(name: str, param: float | None, want: float) -> None:
    assert init.calculate_gain(name, param) == pytest.approx(want)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("calculate_gain", lambda: init.calculate_gain("gelu")), ("fans", lambda: init.fans((3,))),
     ("xavier_uniform", lambda: init.xavier_uniform((3,))), ("xavier_normal", lambda: init.xavier_normal((3,))),
     ("kaiming_normal", lambda: init.kaiming_normal((3, 3), mode="in")),
     ("kaiming_uniform", lambda: init.kaiming_uniform((3, 3), mode="in")), ("kaiming_uniform", lambda: init.kaiming_uniform((3,))),
     ("eye", lambda: init.eye((3,))), ("dirac", lambda: init.dirac((3, 3))), ("dirac", lambda: init.dirac((3, 3, 1), 2)),
     ("sparse", lambda: init.sparse((3,), 0.1)), ("sparse", lambda: init.sparse((3, 3), 2)),
     ("trunc_normal", lambda: init.trunc_normal((3,), a=1, b=0)), ("orthogonal", lambda: init.orthogonal((3,)))],
)  # fmt: skip
def test_what_has_no_meaning_is_refused_by_the_name_of_the_function(name: str, wrong: Callable[[], object]) -> None:
    with pytest.raises((sg.InputError, sg.ShapeError), match=rf"^nn\.init\.{name}: .*expected"):
        wrong()


@pytest.mark.parametrize(
    "name", ["uniform", "normal", "trunc_normal", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "orthogonal"]
)  # fmt: skip
def test_draws_in_a_function_that_is_traced_are_refused_by_the_name_of_the_function(name: str) -> None:
    with pytest.raises(sg.InputError, match=rf"^nn\.init\.{name}: it draws on the host"):
        sg.compile(lambda x: x + getattr(init, name)((4, 4)), np.zeros((4, 4), np.float32), device="numpy")


def test_parameters_are_made_anew_by_their_paths() -> None:
    tied = nn.Linear(4, 4).half()
    model = nn.Sequential(tied, nn.BatchNorm1d(4), nn.Linear(4, 4).replace(weight=tied.weight))
    rng = np.random.default_rng(0)
    seen: list[str] = []

    def rule(path: str, t: sg.Tensor) -> sg.Tensor | np.ndarray:
        seen.append(path)
        return init.orthogonal(t.shape, rng=rng) if t.ndim > 1 else np.full(t.shape, 3.0)

    made = model.map_parameters(rule)
    assert seen == ["0.weight", "0.bias", "1.weight", "1.bias", "2.bias"]
    state = made.state_dict()
    assert state["0.weight"].dtype is sg.float16
    assert state["0.weight"] is state["2.weight"]
    assert state["1.weight"].tolist() == [3] * 4
    assert state["1.running_var"] is model.state_dict()["1.running_var"]
    with pytest.raises(sg.ShapeError, match=r"0\.weight became \(2,\), expected \(4, 4\)"):
        model.map_parameters(lambda path, t: np.zeros(2))
