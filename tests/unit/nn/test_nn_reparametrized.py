"""Layers whose weights are computed from others: they begin as the layers that they were, and end as plain ones."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from devices import EAGER, slow

import singe as sg
from singe import nn

RNG = np.random.default_rng(2)
X = RNG.normal(size=(3, 2, 8)).astype(np.float32)


def encoder() -> nn.TransformerEncoder:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, rng=0), 2)


def learned(model: nn.Module) -> list[str]:
    return [path for path, _ in model.named_parameters()]


def moved(model: Any) -> Any:
    """The module with other parameters."""
    rng = np.random.default_rng(1)
    return model.map_parameters(lambda path, t: t.numpy() + rng.normal(size=t.shape) * 0.3)


def same(got: sg.Tensor, want: sg.Tensor) -> None:
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


@EAGER
def test_lora_learns_differences_of_low_rank_only(on: sg.Device) -> None:
    model, x = encoder(), sg.tensor(X, device=on)
    tuned = nn.lora(model, rank=2, alpha=4, rng=0).to(on)
    assert learned(tuned)[:2] == [
        "layers.0.self_attn.out_proj.lora_A.weight",
        "layers.0.self_attn.out_proj.lora_B.weight",
    ]
    assert len(learned(tuned)) == 2 * 2 * 3
    assert tuned.parameter_count == 2 * (2 * (8 + 8) + 2 * 2 * (8 + 16))
    same(tuned(x), model.to(on)(x))
    after = moved(tuned)
    assert not np.allclose(after(x).numpy(), tuned(x).numpy(), atol=1e-2)
    plain = nn.merged(after)
    assert list(plain.state_dict()) == list(model.state_dict())
    same(plain(x), after(x))
    one = after.state_dict()
    path = "layers.1.linear1"
    want = one[f"{path}.base.weight"] + 2 * one[f"{path}.lora_B.weight"] @ one[f"{path}.lora_A.weight"]
    same(plain.state_dict()[f"{path}.weight"], want)


@pytest.mark.parametrize(
    ("model", "shape", "pattern"),
    [
        (nn.Conv2d(4, 6, 3, padding=1, rng=0), (2, 4, 5, 5), "weight"),
        (nn.Conv1d(4, 6, 3, groups=2, rng=0), (2, 4, 5), "*"),
        (nn.ConvTranspose2d(4, 6, 2, rng=0), (2, 4, 3, 3), "weight"),
        pytest.param(
            nn.Sequential(nn.Linear(4, 3, rng=0), nn.LSTM(3, 5, bidirectional=True, rng=0)),
            (6, 2, 4),
            "1.weight_*",
            marks=pytest.mark.slow,
        ),
        pytest.param(encoder(), (2, 3, 8), "*.self_attn", marks=pytest.mark.slow),
        (nn.Linear(4, 3, rng=0), (2, 4), "weight"),
    ],
)
def test_lora_of_other_weights(model: nn.Module, shape: tuple[int, ...], pattern: str) -> None:
    def first(y: sg.Tensor | tuple[sg.Tensor, object]) -> sg.Tensor:
        return y[0] if isinstance(y, tuple) else y

    x = sg.tensor(RNG.normal(size=shape).astype(np.float32))
    tuned = nn.lora(model, 2, patterns=[pattern], rng=0)
    assert all("lora" in path for path in learned(tuned))
    same(first(tuned(x)), first(model(x)))
    after = moved(tuned)
    assert not np.allclose(first(after(x)).numpy(), first(tuned(x)).numpy(), atol=1e-3)
    same(first(nn.merged(after)(x)), first(after(x)))
    same(first(pickle.loads(pickle.dumps(after)).clone()(x)), first(after(x)))


def test_embeddings_are_tuned_too() -> None:
    model = nn.Sequential(nn.Embedding(10, 4, rng=0), nn.Linear(4, 2, rng=0))
    tuned = moved(nn.lora(model, 2, patterns=["0.weight", "1"], rng=0))
    numbers = sg.tensor([[1, 2], [9, 0]])
    same(nn.merged(tuned)(numbers), tuned(numbers))


def test_other_methods_of_a_layer_see_its_computed_weights() -> None:
    tuned = moved(nn.lora(nn.MultiheadAttention(8, 2, batch_first=True, rng=0), 2, patterns=["*"], rng=0))
    x = sg.tensor(X)
    got, want = tuned.keys_values(x, x), nn.merged(tuned).keys_values(x, x)
    same(got[0], want[0])
    with pytest.raises(AttributeError, match="no 'key_values'"):
        tuned.key_values  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue]


def test_more_can_be_learned_beside_the_differences() -> None:
    model = nn.Sequential(nn.Linear(4, 4, rng=0), nn.LayerNorm(4), nn.Linear(4, 2, rng=0))
    tuned = nn.lora(model, 2, patterns=["0"]).unfreeze("2")
    assert learned(tuned) == ["0.lora_A.weight", "0.lora_B.weight", "2.weight", "2.bias"]


def test_what_lora_cannot_do_is_refused() -> None:
    with pytest.raises(sg.InputError, match="lora: got 'x', expected a Module"):
        nn.lora("x")  # pyright: ignore[reportArgumentType, reportUnknownMemberType]
    with pytest.raises(sg.InputError, match="the rank is 0"):
        nn.lora(encoder(), 0)
    with pytest.raises(sg.InputError, match="in a Linear layer; choose others by patterns="):
        nn.lora(nn.Conv1d(2, 2, 3))
    with pytest.raises(sg.InputError, match=r"with two axes or more that matches \*\.bias"):
        nn.lora(encoder(), patterns=["*.bias"])
    with pytest.raises(sg.InputError, match="lora: no tensor matches 'encoder'"):
        nn.lora(encoder(), patterns=["encoder"])


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm_learns_directions_and_lengths_apart(dim: int | None) -> None:
    layer, x = nn.Linear(4, 3, rng=0), sg.tensor(RNG.normal(size=(2, 4)).astype(np.float32))
    made = nn.weight_norm(layer, dim=dim)
    assert learned(made) == ["base.weight", "base.bias", "length"]
    same(made(x), layer(x))
    after = moved(made)
    v, length = (after.state_dict()[name].numpy() for name in ("base.weight", "length"))
    axes = {0: 1, 1: 0, -1: 0, None: None}[dim]
    want = v / np.sqrt((v * v).sum(axes, keepdims=True)) * length
    np.testing.assert_allclose(nn.merged(after).state_dict()["weight"].numpy(), want, rtol=1e-5)
    same(nn.merged(after)(x), after(x))
    with pytest.raises(sg.InputError, match="Linear has no weight 'wieght'; it has weight, bias"):
        nn.weight_norm(layer, "wieght")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "dim"),
    [(nn.Linear(4, 3, rng=0), 0), (nn.Conv2d(2, 3, 3, rng=0), 0), (nn.ConvTranspose1d(2, 3, 4, rng=0), 1)],
)
def test_spectral_norm_divides_by_the_largest_singular_value(layer: Any, dim: int) -> None:
    weight = layer.weight.numpy()
    matrix = np.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)
    model = nn.spectral_norm(layer, n_power_iterations=3, rng=0).train()
    assert learned(model) == ["base.weight", "base.bias"]
    x = sg.tensor(
        RNG.normal(size=(2, *(() if isinstance(layer, nn.Linear) else (2,)), *(4,) * (weight.ndim - 2 or 1))).astype(
            np.float32
        )
    )
    u, v = model.u.numpy(), model.v.numpy()
    for _ in range(30):
        for _ in range(3):  # as PyTorch
            u = matrix @ v / np.linalg.norm(matrix @ v)
            v = u @ matrix / np.linalg.norm(u @ matrix)
        with nn.observing() as seen:
            y = model(x)
        model = model.with_modules(seen)
        same(y, layer.replace(weight=layer.weight / float(u @ matrix @ v))(x))
    found = nn.merged(model.eval()).state_dict()["weight"].numpy()
    np.testing.assert_allclose(found, weight / np.linalg.norm(matrix, 2), rtol=1e-4, atol=1e-6)
    same(model.eval()(x), nn.merged(model)(x))


def test_the_gradient_of_a_spectral_norm_is_by_the_weight_alone() -> None:
    """As in PyTorch, the vectors of the power method count as constants."""
    layer = nn.Linear(4, 3, bias=False, rng=0)
    model, x = nn.spectral_norm(layer, rng=0).train(), sg.tensor(RNG.normal(size=(2, 4)).astype(np.float32))
    with nn.observing() as seen:
        model(x)
    after: Any = seen[model]
    u, v, w = after.u.numpy(), after.v.numpy(), layer.weight.numpy()
    sigma, upper = u @ w @ v, np.ones((2, 3)).T @ x.numpy()
    want = upper / sigma - (upper * w).sum() / sigma**2 * np.outer(u, v)
    got = sg.grad(lambda m: m(x).sum())(model)["base.weight"].numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["frozen", *slow("lora", "spectral_norm")])
def test_a_step_of_training_moves_what_is_learned(kind: str) -> None:
    first, last = nn.Linear(6, 8, rng=0), nn.Linear(8, 3, rng=1)
    plain = nn.Sequential(first, nn.BatchNorm1d(8), nn.Dropout(0.2), nn.ReLU(), last)
    model = {
        "frozen": plain.freeze("0", "1.weight"),
        "lora": nn.lora(plain, 2, rng=0),
        "spectral_norm": plain.with_modules({first: nn.spectral_norm(first, rng=0)}),
    }[kind]
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(16, 6)).astype(np.float32), rng.integers(3, size=16)

    def loss(model: nn.Module, x: sg.Tensor, y: sg.Tensor) -> sg.Tensor:
        return nn.CrossEntropyLoss()(model(x), y)

    step = sg.train.TrainStep(model.train(), sg.optim.SGD(0.5), loss, device="numpy")
    values = [float(step(x, y)) for _ in range(30)]
    assert np.mean(values[-5:]) < 0.9 * values[0]
    before, after = model.state_dict(), step.model.state_dict()
    still = [name for name in before if np.array_equal(before[name].numpy(), after[name].numpy())]
    statistics = ("running_mean", "running_var", "num_batches_tracked", "u", "v")
    held = [name for name, _ in model.named_buffers() if name.rpartition(".")[2] not in statistics]
    assert still == held
    assert learned(step.model) == learned(model)


@EAGER
@pytest.mark.parametrize("groups", [1, 2])
def test_deformable_convolution_without_offsets_is_convolution(on: sg.Device, groups: int) -> None:
    layer = nn.DeformConv2d(4, 6, 3, stride=2, padding=1, groups=groups, rng=0).to(on)
    x = RNG.normal(size=(2, 4, 7, 6)).astype(np.float32)
    want = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=groups, rng=0)
    offset = np.zeros((2, 2 * 2 * 9, 4, 3), np.float32)
    given = [sg.tensor(a, device=on) for a in (x, offset, np.full((2, 2 * 9, 4, 3), 0.5, np.float32))]
    same(layer(*given[:2]), want(sg.tensor(x)))
    same(layer.replace(bias=None)(*given), want.replace(bias=None)(sg.tensor(x * 0.5)))
    offset[:, 0::2] = 1  # each read one row below
    below = np.concatenate([x[:, :, 1:], np.zeros((2, 4, 1, 6), np.float32)], 2)
    got, moved_x = layer(given[0], sg.tensor(offset, device=on)).numpy(), want(sg.tensor(below)).numpy()
    np.testing.assert_allclose(got[:, :, 1:], moved_x[:, :, 1:], rtol=1e-4, atol=1e-5)
