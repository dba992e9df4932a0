"""Recurrent layers, attention and transformers: as PyTorch documents them, with its names, masks and order of gates; caches
give what a causal mask gives. And what dropout and pooling do beside computing one tensor."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS, runners, slow
from rows import nn_references as ref

import singe as sg
from singe import nn

RNG = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def randomised(module: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """The module with other weights, and these."""
    state = {k: 0.5 * draw(*t.shape) for k, t in module.state_dict().items()}
    return module.with_state(state), state


def close(found: sg.Tensor, wanted: np.ndarray) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-4, atol=2e-5)


RECURRENT = {"tanh": nn.RNN, "relu": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
CELLS = {"tanh": nn.RNNCell, "relu": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}


@pytest.mark.slow
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("layers", [2, 1])
@pytest.mark.parametrize("kind", RECURRENT)
def test_recurrent_layers(kind: str, layers: int, both: bool) -> None:
    more = {"nonlinearity": kind} if RECURRENT[kind] is nn.RNN else {}
    net, state = randomised(RECURRENT[kind](3, 4, layers, bidirectional=both, batch_first=True, **more))
    ends = ("", "_reverse") if both else ("",)
    assert set(state) == {
        f"{n}_l{k}{e}" for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") for k in range(layers) for e in ends
    }
    x, h, c = draw(2, 5, 3), draw(layers * len(ends), 2, 4), draw(layers * len(ends), 2, 4)
    y, last, cells = ref.recurrent(kind, x.swapaxes(0, 1), state, layers, 4, ends, h, c)
    found, after = net(sg.tensor(x), (sg.tensor(h), sg.tensor(c)) if kind == "lstm" else sg.tensor(h))
    close(found, y.swapaxes(0, 1))
    close(after[0] if kind == "lstm" else after, last)
    if kind == "lstm":
        close(after[1], cells)
    zeros = np.zeros_like(h)
    y, last, _ = ref.recurrent(kind, x[0, :, None], state, layers, 4, ends, zeros[:, :1], zeros[:, :1])
    found, after = net(sg.tensor(x[0]))
    close(found, y[:, 0])
    close(after[0] if kind == "lstm" else after, last[:, 0])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_batch_of_no_sequences_has_results_of_its_shape(kind: str) -> None:
    layer = getattr(nn, kind)(4, 3, num_layers=2, bidirectional=True)
    steps, last = layer(sg.zeros(5, 0, 4))
    assert steps.shape == (5, 0, 6)
    assert (last[0] if isinstance(last, tuple) else last).shape == (4, 0, 3)


def test_sequences_of_several_lengths() -> None:
    """As PyTorch's packed sequences: steps beyond the end do not count, also not from behind."""
    net, state = randomised(nn.GRU(3, 4, bidirectional=True))
    x = draw(5, 2, 3)
    y, last = net(sg.tensor(x), lengths=sg.tensor([5, 3]))
    zeros = np.zeros((2, 1, 4))
    short, end, _ = ref.recurrent("gru", x[:3, 1:], state, 1, 4, ("", "_reverse"), zeros, zeros)
    close(y[:, 1], np.concatenate([short[:, 0], np.zeros((2, 8), np.float32)]))
    close(last[:, 1], end[:, 0])


@pytest.mark.parametrize("kind", CELLS)
def test_cells(kind: str) -> None:
    more = {"nonlinearity": kind} if CELLS[kind] is nn.RNNCell else {}
    net, state = randomised(CELLS[kind](3, 4, **more))
    x, h, c = draw(2, 3), draw(2, 4), draw(2, 4)
    wanted = ref.cell(kind, x, h, c, [state[k] for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")])
    found = net(sg.tensor(x), (sg.tensor(h), sg.tensor(c)) if kind == "lstm" else sg.tensor(h))
    close(found[0] if kind == "lstm" else found, wanted[0])
    if kind == "lstm":
        close(found[1], wanted[1])
    assert net(sg.tensor(x[0]))[0].shape == ((4,) if kind == "lstm" else ())


@runners("wasm", *slow("webgpu"))
def test_recurrent_layers_are_compiled(device_name: str) -> None:
    on = sg.device(device_name)
    net, state = randomised(nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True))
    model = sg.Model.of(lambda x: net(x)[0], {"x": (2, "L", 3)}, on)
    x, zeros = draw(2, 7, 3), np.zeros((4, 2, 4))
    wanted = ref.recurrent("lstm", x.swapaxes(0, 1), state, 2, 4, ("", "_reverse"), zeros, zeros)[0]
    np.testing.assert_allclose(model(x), wanted.swapaxes(0, 1), rtol=1e-4, atol=1e-5)


# --- attention --------------------------------------------------------------------------------------------------------


def test_attention_and_its_masks() -> None:
    net, state = randomised(nn.MultiheadAttention(8, 2, batch_first=True))
    assert set(state) == {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}
    q, k, v = draw(2, 3, 8), draw(2, 5, 8), draw(2, 5, 8)
    padding = np.zeros((2, 5), bool)
    padding[1, 3:] = True
    apart = RNG.random((3, 5)) < 0.3
    added = draw(4, 3, 5)
    nothing = np.zeros((2, 2, 3, 5))
    masks: list[tuple[dict[str, Any], np.ndarray]] = [
        ({}, nothing),
        ({"key_padding_mask": padding}, np.where(padding[:, None, None], -np.inf, nothing)),
        ({"attn_mask": apart}, np.where(apart, -np.inf, nothing)),
        ({"attn_mask": added}, added.reshape(2, 2, 3, 5)),
        ({"attn_mask": added, "key_padding_mask": padding}, np.where(padding[:, None, None], -np.inf, added.reshape(2, 2, 3, 5))),
        ({"is_causal": True}, np.where(np.triu(np.ones((3, 5), bool), 1), -np.inf, nothing)),
    ]  # fmt: skip
    for options, mask in masks:
        given = {n: sg.tensor(m) if isinstance(m, np.ndarray) else m for n, m in options.items()}
        wanted, weights = ref.attention(q, k, v, state, 2, mask)
        y, told = net(*map(sg.tensor, (q, k, v)), **given)
        close(y, wanted)
        close(told, weights.mean(1))
    turned = net.replace(batch_first=False)
    y, told = turned(*(sg.tensor(x.swapaxes(0, 1)) for x in (q, k, v)), need_weights=False)
    close(y, ref.attention(q, k, v, state, 2)[0].swapaxes(0, 1))
    assert told is None
    y, _ = net(*(sg.tensor(x[0]) for x in (q, k, v)))
    close(y, ref.attention(q[:1], k[:1], v[:1], state, 2)[0][0])


def test_attention_with_keys_of_other_sizes_and_added_ones() -> None:
    net, state = randomised(nn.MultiheadAttention(8, 2, kdim=6, vdim=5, add_bias_kv=True, add_zero_attn=True, batch_first=True))  # fmt: skip
    assert set(state) == {
        "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj.weight", "out_proj.bias",
    }  # fmt: skip
    q, k, v = draw(2, 3, 8), draw(2, 4, 6), draw(2, 4, 5)
    mask = RNG.random((3, 4)) < 0.3
    y, weights = net(*map(sg.tensor, (q, k, v)), attn_mask=sg.tensor(mask), average_attn_weights=False)
    b = state["in_proj_bias"]
    parts = [
        x @ state[f"{n}_proj_weight"].T + b[8 * i : 8 * i + 8]
        for i, (n, x) in enumerate(zip("qkv", (q, k, v), strict=True))
    ]
    for i, name in ((1, "bias_k"), (2, "bias_v")):
        zero = np.zeros((2, 1, 8))
        parts[i] = np.concatenate([parts[i], np.broadcast_to(state[name], (2, 1, 8)), zero], 1)
    outer = np.where(np.pad(mask, [(0, 0), (0, 2)]), -np.inf, np.zeros((2, 2, 3, 6)))
    plain = (
        {"in_proj_weight": np.tile(np.eye(8), (3, 1)), "in_proj_bias": np.zeros(24)}
        | state
        | {"in_proj_bias": np.zeros(24)}
    )
    wanted, told = ref.attention(*parts, plain, 2, outer)  # pyright: ignore[reportArgumentType]
    close(y, wanted)
    close(weights, told)


# --- transformers -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("first", [False, True])
def test_transformers(first: bool) -> None:
    net, state = randomised(nn.Transformer(8, 2, 2, 2, 12, norm_first=first, batch_first=True))
    for name in ("encoder.layers.1.self_attn.in_proj_weight", "encoder.norm.weight", "decoder.layers.0.multihead_attn.out_proj.bias",
                 "decoder.layers.1.norm3.bias", "decoder.layers.0.linear1.weight"):  # fmt: skip
        assert name in state
    src, tgt = draw(2, 5, 8), draw(2, 4, 8)
    causal = np.where(np.triu(np.ones((4, 4), bool), 1), -np.inf, np.zeros((2, 2, 4, 4)))
    memory = src
    for k in range(2):
        memory = ref.transformer_layer(memory, state, 2, None, None, first, f"encoder.layers.{k}.")
    memory = ref.layer_norm(memory, state, "encoder.norm")
    y = tgt
    for k in range(2):
        y = ref.transformer_layer(y, state, 2, causal, memory, first, f"decoder.layers.{k}.")
    wanted = ref.layer_norm(y, state, "decoder.norm")
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    close(net(sg.tensor(src), sg.tensor(tgt), tgt_mask=mask), wanted)
    close(net(sg.tensor(src), sg.tensor(tgt), tgt_is_causal=True), wanted)
    # Step by step, over a cache: two elements at once, then one by one.
    held = net.encoder(sg.tensor(src))
    cache = net.decoder.cache(2, 6, held)
    found = []
    for start, stop in ((0, 2), (2, 3), (3, 4)):
        out, cache = net.decoder.step(sg.tensor(tgt[:, start:stop]), start, cache)
        found.append(out.numpy())
    np.testing.assert_allclose(np.concatenate(found, 1), wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
@RUNNERS
def test_a_cache_is_the_state_of_a_model(device_name: str) -> None:
    """An encoder with a causal mask, as decoders without a memory are built, compiled once for steps of one element."""
    on = sg.device(device_name)
    layer = nn.TransformerEncoderLayer(8, 2, 12, activation="gelu", batch_first=True, norm_first=True, rng=0)
    net, _ = randomised(nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)))

    def step(x: sg.Tensor, at: sg.Tensor, **cache: sg.Tensor) -> Any:
        return net.step(x, at, cache)

    states = {k: (t.shape, "float32") for k, t in net.cache(1, 6).items()}
    model = sg.Model.of(step, {"x": (1, 1, 8), "at": ()}, on, dtypes={"at": "int64"}, states=states)
    x = draw(1, 6, 8)
    wanted = net(sg.tensor(x), is_causal=True).numpy()
    session = model.session()
    for k in range(6):
        found = session(x[:, k : k + 1], np.array(k))
        np.testing.assert_allclose(found[:, 0], wanted[:, k], rtol=2e-4, atol=2e-5)


# --- what is not one tensor -------------------------------------------------------------------------------------------


def test_dropout_acts_in_training_alone() -> None:
    x = sg.ones((64, 64, 3, 3))
    for kind in (nn.Dropout, nn.Dropout2d, nn.AlphaDropout):
        layer = kind(0.25, rng=0)
        assert layer(x) is x
        y = layer.train()(x).numpy()
        assert 0.2 < (y != y.max()).mean() < 0.3
        if kind is nn.AlphaDropout:
            continue
        np.testing.assert_allclose(y.max(), 1 / 0.75, rtol=1e-6)
        assert ((y == y[:, :, :1, :1]).all() and kind is nn.Dropout2d) or (kind is nn.Dropout and y.std((2, 3)).any())
        compiled = sg.compile(kind(0.25).train(), x, device="numpy")
        assert not np.array_equal(np.asarray(compiled(x)), np.asarray(compiled(x)))
    normal = sg.tensor(draw(200, 500))
    y = nn.AlphaDropout(0.3, rng=0).train()(normal).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.std() - 1) < 0.02
    slopes = nn.RReLU(0.1, 0.3, rng=0).train()(-sg.ones(10_000)).numpy()
    assert -0.3 <= slopes.min() < -0.29 < -0.11 < slopes.max() <= -0.1


def test_bags_of_several_lengths() -> None:
    bags = nn.EmbeddingBag(10, 4, "sum", rng=0)
    w = bags.weight.numpy()
    x, offsets = sg.tensor([1, 2, 3, 4, 5]), sg.tensor([0, 2, 2])
    close(bags(x, offsets), np.stack([w[1] + w[2], np.zeros(4, np.float32), w[3] + w[4] + w[5]]))
    close(bags.replace(mode="mean")(x, offsets), np.stack([(w[1] + w[2]) / 2, np.zeros(4, np.float32), w[3:6].mean(0)]))
    close(bags.replace(mode="max")(x, offsets), np.stack([w[1:3].max(0), np.zeros(4, np.float32), w[3:6].max(0)]))
    scaled = bags(x, offsets, sg.tensor([1.0, 2, 3, 4, 5]))
    close(scaled, np.stack([w[1] + 2 * w[2], np.zeros(4, np.float32), 3 * w[3] + 4 * w[4] + 5 * w[5]]))
    last = bags.replace(include_last_offset=True)(x, sg.tensor([0, 2, 4]))
    close(last, np.stack([w[1] + w[2], w[3] + w[4]]))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_nothing_are_zeros(mode: str) -> None:
    bags, nothing = nn.EmbeddingBag(10, 4, mode, rng=0), sg.zeros(0, dtype="int64")
    close(bags(nothing.reshape(2, 0)), np.zeros((2, 4), np.float32))
    close(bags(nothing, sg.tensor([0, 0])), np.zeros((2, 4), np.float32))
    close(bags.replace(include_last_offset=True)(nothing, sg.tensor([0, 0])), np.zeros((1, 4), np.float32))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pooled_values_go_back_to_their_places(rank: int) -> None:
    pool = getattr(nn, f"MaxPool{rank}d")(2, return_indices=True)
    back = getattr(nn, f"MaxUnpool{rank}d")(2)
    x = draw(2, 3, *(4, 6, 2)[:rank])
    y, places = pool(sg.tensor(x))
    flat = x.reshape(2, 3, -1)
    np.testing.assert_array_equal(
        np.take_along_axis(flat, places.numpy().reshape(2, 3, -1), 2), y.numpy().reshape(2, 3, -1)
    )
    found = back(y, places).numpy()
    assert found.shape == x.shape
    np.testing.assert_array_equal(found[found != 0], x[found != 0])
    assert (found != 0).sum() == y.size


def test_transposed_convolution_to_a_size() -> None:
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, rng=0)
    x = sg.tensor(draw(1, 2, 4, 5))
    assert layer(x).shape == (1, 3, 7, 9)
    assert layer(x, output_size=(8, 9)).shape == (1, 3, 8, 9)
    with pytest.raises(sg.ShapeError, match=r"output_size \(9, 9\), expected from \(7, 9\) to \(8, 10\)"):
        layer(x, output_size=(9, 9))


def test_lists_and_dicts_of_modules_are_fields() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.layers = nn.ModuleList([nn.Linear(2, 2, rng=0)])
            self.layers.append(nn.Linear(2, 2, rng=1))
            self.heads = nn.ModuleDict({"a": nn.Linear(2, 3, rng=2)})

        def forward(self, x: sg.Tensor) -> sg.Tensor:
            for layer in self.layers:
                x = layer(x)
            return self.heads["a"](x)

    net = Net()
    assert list(net.state_dict()) == [
        f"{k}.{n}" for k in ("layers.0", "layers.1", "heads.a") for n in ("weight", "bias")
    ]
    moved = net.cast("float16")
    assert type(moved.layers) is nn.ModuleList
    assert type(moved.heads) is nn.ModuleDict
    assert moved(sg.ones((1, 2), "float16")).dtype is sg.float16


def test_copied_layers_learn_apart_and_shared_ones_together() -> None:
    layer = nn.Linear(2, 2, rng=0)
    for stack, alike in ((nn.Sequential(layer, copy.deepcopy(layer)), False), (nn.Sequential(layer, layer), True)):
        step = sg.train.TrainStep(
            stack, sg.optim.SGD(lr=0.1), lambda m, x, y: nn.MSELoss()(m(x), y), device="numpy", seed=0
        )
        x = np.random.default_rng(0).random((3, 2), np.float32)
        step(x, x)
        first, second = (part.weight.numpy() for part in step.model)  # pyright: ignore[reportAttributeAccessIssue, reportGeneralTypeIssues]
        assert np.array_equal(first, second) is alike


def test_layers_of_a_stack_learn_apart() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 4, dropout=0.0, batch_first=True, rng=0)
    stack = nn.TransformerEncoder(layer, 2).train()
    step = sg.train.TrainStep(
        stack, sg.optim.SGD(lr=0.1), lambda m, x, y: nn.MSELoss()(m(x), y), device="numpy", seed=0
    )
    x = np.random.default_rng(0).random((2, 3, 4), np.float32)
    step(x, x)
    first, second = (part.linear1.weight.numpy() for part in step.model.layers)  # pyright: ignore[reportAttributeAccessIssue]
    assert (first != second).any()
    np.testing.assert_array_equal(*(part.linear1.weight.numpy() for part in stack.layers))
