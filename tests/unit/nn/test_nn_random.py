"""Layers that draw random numbers: from the key of `nn.drawing`, anew for each draw, in compiled functions too."""

from __future__ import annotations

import numpy as np
import pytest

import singe as sg
import singe.random
from singe import nn

X = np.random.default_rng(3).normal(size=(4, 8)).astype(np.float32)


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8, rng=0), nn.Dropout(0.4), nn.GaussianNoise(0.5), nn.RReLU()).train()


def with_key(model: nn.Module, x: sg.Tensor, key: int | sg.Tensor) -> sg.Tensor:
    with nn.drawing(key):
        return model(x)


@pytest.mark.slow
def test_equal_keys_give_equal_numbers_on_every_device(on: sg.Device) -> None:
    model = network()
    want = with_key(model, sg.tensor(X), 5).numpy()
    x = sg.tensor(X, device=on)
    np.testing.assert_allclose(with_key(model.to(on), x, 5).numpy(), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(with_key(model.to(on), x, sg.random.key(5)).numpy(), want, rtol=1e-4, atol=1e-5)
    assert not np.allclose(with_key(model.to(on), x, 6).numpy(), want)


@pytest.mark.slow
def test_a_compiled_function_draws_new_numbers_of_each_key(on: sg.Device) -> None:
    model = network()
    program = sg.compile(lambda x, key: with_key(model, x, key), sg.tensor(X), sg.random.key(0), device=on)
    for seed in (1, 2, 1):
        got = program(X, np.array([0, seed], np.uint32))
        np.testing.assert_allclose(np.asarray(got), with_key(model, sg.tensor(X), seed).numpy(), rtol=1e-4, atol=1e-5)


def test_each_draw_has_its_own_numbers_and_neighbouring_keys_share_none() -> None:
    ones = sg.ones((64,))
    layer = nn.Dropout(0.5).train()
    seen = set[bytes]()
    for key in range(8):
        with nn.drawing(key):
            seen |= {layer(ones).numpy().tobytes() for _ in range(8)}
    assert len(seen) == 64


def test_the_inner_of_two_blocks_counts_and_the_outer_goes_on() -> None:
    layer, x = nn.Dropout(0.5).train(), sg.ones((64,))
    with nn.drawing(1):
        first, second = layer(x).numpy(), layer(x).numpy()
    with nn.drawing(1):
        np.testing.assert_array_equal(layer(x).numpy(), first)
        with nn.drawing(1):
            np.testing.assert_array_equal(layer(x).numpy(), first)
        np.testing.assert_array_equal(layer(x).numpy(), second)


@pytest.mark.slow
@pytest.mark.parametrize(
    "layer", [nn.LSTM(8, 8, num_layers=2, dropout=0.5), nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5)]
)
def test_dropout_inside_other_layers_draws_of_the_key(layer: nn.Module) -> None:
    layer, x = layer.train(), sg.tensor(X).reshape(2, 2, 8)

    def run(x: sg.Tensor, key: int | sg.Tensor) -> sg.Tensor:
        y = with_key(layer, x, key)
        return y[0] if isinstance(y, tuple) else y

    want = run(x, 1).numpy()
    assert not np.allclose(run(x, 2).numpy(), want)
    np.testing.assert_array_equal(run(x, 1).numpy(), want)
    got = sg.compile(run, x, sg.random.key(0), device="numpy")(x, sg.random.key(1))
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


def test_a_layer_of_ones_own_draws_by_next_key() -> None:
    x = sg.ones((3,))
    with nn.drawing(1):
        first, second = nn.next_key(x).tolist(), nn.next_key(x).tolist()
    assert first != second
    sg.manual_seed(1)
    first, second = nn.next_key(x).tolist(), nn.next_key(x).tolist()
    assert first != second
    sg.manual_seed(1)
    assert nn.next_key(x).tolist() == first


def test_a_block_around_a_trace_is_refused() -> None:
    model, x = network(), sg.tensor(X)
    with nn.drawing(1), pytest.raises(sg.InputError, match="not an input of the function that is traced"):
        sg.compile(model, x)
    with nn.drawing(1), pytest.raises(sg.InputError, match="not an input of the function that is traced"):
        sg.compile(lambda x: x + sg.rand_like(x), x)
    sg.compile(model.eval(), x)


@pytest.mark.parametrize("key", ["1", 1.5, True, sg.ones(2), sg.random.key(1).reshape(1, 2)])
def test_other_keys_are_refused(key: object) -> None:
    with pytest.raises(sg.InputError, match=r"expected .*two uint32 numbers"), nn.drawing(key):  # pyright: ignore[reportArgumentType]
        pass


def test_gaussian_noise_has_its_deviation_and_is_still_out_of_training() -> None:
    x = sg.zeros((100, 100))
    y = nn.GaussianNoise(0.3, rng=0).train()(x).numpy()
    assert abs(y.mean()) < 0.01
    assert abs(y.std() - 0.3) < 0.01
    assert nn.GaussianNoise(0.3)(x) is x
    with pytest.raises(sg.InputError, match="expected no negative number"):
        nn.GaussianNoise(-1)


# --- with gradients --------------------------------------------------------------------------------------------------


def mean_of(model: nn.Module, x: sg.Tensor, key: sg.Tensor) -> sg.Tensor:
    return with_key(model, x, key).square().mean()


@pytest.mark.slow
def test_gradients_are_of_what_was_drawn(on: sg.Device) -> None:
    """A key outside of the function, a number inside of it, and one that is its argument draw the same."""
    model, x = nn.Sequential(nn.Linear(8, 4, rng=0), nn.Dropout(0.5)).train().to(on), sg.tensor(X, device=on)
    kept = with_key(nn.Dropout(0.5).train(), sg.ones((4, 4), device=on), 3).numpy()
    y = X @ model.state_dict()["0.weight"].numpy().T + model.state_dict()["0.bias"].numpy()
    want = (2 * y * kept**2).T @ X / y.size
    with nn.drawing(3):
        first = sg.grad(lambda m: m(x).square().mean())(model)
    second = sg.grad(lambda m: with_key(m, x, 3).square().mean())(model)
    third = sg.grad(mean_of)(model, x, sg.random.key(3, on))
    for gradients in (first, second, third):
        np.testing.assert_allclose(gradients["0.weight"].numpy(), want, rtol=1e-4, atol=1e-5)


def test_without_a_key_each_call_draws_anew() -> None:
    model, x = nn.Sequential(nn.Linear(8, 4, rng=0), nn.Dropout(0.5, rng=0)).train(), sg.tensor(X)
    step = sg.value_and_grad(lambda m, x: m(x).sum())
    assert len({float(step(model, x)[0]) for _ in range(4)}) == 4


def test_copies_of_a_layer_draw_other_numbers() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, rng=0)
    stack, x = nn.TransformerEncoder(layer, 3).train(), sg.ones((4, 8))
    assert len({part.dropout(x).numpy().tobytes() for part in stack.layers}) == 3


def test_a_compiled_step_with_gradients_draws_of_its_key() -> None:
    model, x = network(), sg.tensor(X)

    def outer(x: sg.Tensor, key: sg.Tensor) -> sg.Tensor:
        return sg.value_and_grad(mean_of)(model, x, key)[0]

    def around(x: sg.Tensor, key: sg.Tensor) -> sg.Tensor:
        with nn.drawing(key):
            return sg.value_and_grad(lambda m, x: sg.checkpoint(m)(x).square().mean())(model, x)[0]

    for function in (outer, around):
        program = sg.compile(function, x, sg.random.key(0), device="numpy")
        for k in (1, 2):
            got = np.asarray(program(X, np.array([0, k], np.uint32)))
            np.testing.assert_allclose(got, mean_of(model, x, sg.random.key(k)).numpy(), rtol=1e-5)
    with nn.drawing(1), pytest.raises(sg.InputError, match="not an input of the function that is traced"):
        sg.compile(lambda x: sg.value_and_grad(lambda m, x: m(x).sum())(model, x)[0], x)


def test_gradients_of_backward_draw_too() -> None:
    device = sg.Autodiff(sg.Fusion(sg.Numpy()))
    model, x = network().to(device).map_parameters(lambda path, t: t.require_grad()), sg.tensor(X, device=device)
    want = sg.grad(mean_of)(network(), sg.tensor(X), sg.random.key(3))
    found = mean_of(model, x, sg.random.key(3)).backward()
    for name, t in model.named_parameters():
        np.testing.assert_allclose(found[t].numpy(), want[name].numpy(), rtol=1e-4, atol=1e-6)
