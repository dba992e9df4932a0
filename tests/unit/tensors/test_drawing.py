"""What is drawn without a key: new numbers in every run, those of the same seed eagerly and compiled, in each way to run a
function and on every device; and `manual_seed` decides all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS

import singe as sg
from singe import nn
from singe.runtime import random_keys

X = np.linspace(0.1, 0.9, 24, dtype=np.float32).reshape(2, 3, 4)
RUNS = 3


def layer(made: nn.Module) -> Callable[[sg.Tensor], Any]:
    return made.train()


def in_block(x: sg.Tensor) -> sg.Tensor:
    """A block's key is drawn, too."""
    with nn.drawing(nn.next_key(x)):
        return nn.Dropout(0.5).train()(x) + sg.randn_like(x)


ENCODER = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5)
DRAWING: dict[str, Callable[[sg.Tensor], Any]] = {
    "rand": lambda x: x + sg.rand(3, 4),
    "randn": lambda x: x + sg.randn((2, 3, 4)),
    "rand_like": lambda x: x + sg.rand_like(x),
    "randn_like": lambda x: x + sg.randn_like(x),
    "randint": lambda x: x + sg.randint(0, 1000, (2, 3, 4)),
    "randint_like": lambda x: sg.randint_like(x, 1000),
    "randperm": lambda x: x.reshape(24)[sg.randperm(24)],
    "multinomial": lambda x: sg.multinomial(x.reshape(6, 4), 20, True).cast(sg.float32),
    "multinomial without replacement": lambda x: sg.multinomial(x.reshape(1, 24), 12).cast(sg.float32),
    "normal": lambda x: x + sg.normal(2.0, 0.5, (3, 4)),
    "normal of tensors": lambda x: sg.normal(x, x.abs()),
    "bernoulli": lambda x: sg.bernoulli(x) + x.bernoulli(0.3),
    "several": lambda x: sg.randn_like(x) * sg.rand_like(x) + sg.rand_like(x),
    "in a gradient": lambda x: sg.grad(lambda y: (y * sg.randn_like(y)).sum())(x)[""],
    "checkpointed": sg.checkpoint(layer(nn.Dropout(0.5))),
    "next_key": lambda x: sg.random.normal(nn.next_key(x), x.shape) + x,
    "block": in_block,
    "Dropout": layer(nn.Dropout(0.5)),
    "Dropout1d": layer(nn.Sequential(nn.Dropout1d(0.5), nn.Dropout1d(0.3), nn.Dropout1d(0.2))),
    "AlphaDropout": layer(nn.AlphaDropout(0.5)),
    "RReLU": lambda x: layer(nn.RReLU())(-x),
    "GaussianNoise": layer(nn.GaussianNoise(1.0)),
    "FractionalMaxPool2d": lambda x: nn.FractionalMaxPool2d(1, output_size=(1, 15))(x.reshape(1, 1, 24)),
    "LSTM": lambda x: LSTM(x)[0],
    "TransformerEncoderLayer": layer(ENCODER),
}
LSTM = nn.LSTM(4, 4, 2, dropout=0.5).train()


def eagerly(function: Callable[[sg.Tensor], Any], seed: int) -> list[np.ndarray]:
    sg.manual_seed(seed)
    return [function(sg.tensor(X)).numpy() for _ in range(RUNS)]


def ways(
    function: Callable[[sg.Tensor], Any], device: str, folder: Path
) -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """How a function may run, and what takes a seed."""
    program = sg.compile(function, X, device=device)
    yield "compile", program, program
    program.save(folder / "drawing.singe")
    loaded = sg.Program.load(folder / "drawing.singe", device)
    yield "Program.load", loaded, loaded
    model = sg.Model.of(function, {"x": X.shape}, device)
    yield "Model.of", model, model
    session = model.session()
    yield "session", session, session
    if function is DRAWING["checkpointed"]:  # a record has no row for it
        return
    sg.save(model, folder / "drawing.model")
    record = sg.load(folder / "drawing.model", device=device)
    yield "record", record, record


@pytest.mark.slow
@RUNNERS
@pytest.mark.parametrize("name", DRAWING)
def test_every_run_draws_the_next_numbers_of_the_shared_sequence(name: str, device_name: str, tmp_path: Path) -> None:
    function = DRAWING[name]
    want, other = eagerly(function, 7), eagerly(function, 8)
    assert len({y.tobytes() for y in (*want, *other)}) >= RUNS
    for what, run, seeded in ways(function, device_name, tmp_path):
        sg.manual_seed(7)
        for wanted in want:
            np.testing.assert_allclose(np.asarray(run(X)), wanted, rtol=2e-4, atol=2e-5, err_msg=what)
        seeded.seed(8)
        sg.manual_seed(7)
        for wanted in other:
            np.testing.assert_allclose(np.asarray(run(X)), wanted, rtol=2e-4, atol=2e-5, err_msg=what)
        assert random_keys.shared() == random_keys.begun(7), "a run of what was seeded takes no key"


def noise(x: sg.Tensor) -> sg.Tensor:
    return x + sg.randn_like(x) * sg.rand_like(x)


@RUNNERS
def test_compiled_and_eager_draws_take_turns_and_a_trace_takes_none(device_name: str) -> None:
    x = sg.tensor(X)
    sg.manual_seed(3)
    want = [noise(x).numpy() for _ in range(6)]
    program = sg.compile(noise, X, device=device_name)
    sg.manual_seed(3)
    found = [noise(x).numpy(), program(X)]
    other = sg.Model.of(noise, {"x": ("N", 3, 4)}, device_name)
    found += [other(X), noise(x).numpy(), other.session()(X), program(X)]
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    sg.manual_seed(3)
    np.testing.assert_allclose(program(X), want[0], rtol=1e-4, atol=1e-5)


@RUNNERS
def test_a_session_that_was_seeded_goes_on_by_itself(device_name: str) -> None:
    model = sg.Model.of(noise, {"x": X.shape}, device_name)
    session = model.session()
    session.seed(5)
    want = [session(X) for _ in range(4)]
    session.reset()
    np.testing.assert_array_equal([session(X), session(X)], want[:2])
    copy, kept = session.copy(), session.read("key")
    np.testing.assert_array_equal([copy(X), session(X), copy(X)], [want[2], want[2], want[3]])
    other = model.session()
    other.write("key", kept)
    np.testing.assert_array_equal([other(X), other(X)], want[2:])
    np.testing.assert_array_equal(kept, random_keys.after(random_keys.begun(5), 4))
    follower = model.session()
    sg.manual_seed(9)
    np.testing.assert_array_equal(follower.read("key"), random_keys.begun(9))


@pytest.mark.slow
def test_a_block_around_runs_decides_what_they_draw_unless_they_were_seeded(tmp_path: Path) -> None:
    x, scale = sg.tensor(X), 1.0
    with nn.drawing(7):
        want = [noise(x).numpy() for _ in range(4)]

    def function(x: sg.Tensor) -> sg.Tensor:
        return noise(x) * scale

    for what, run, seeded in ways(function, "numpy", tmp_path):
        before = random_keys.shared()
        for key in (7, sg.random.key(7)):
            with nn.drawing(key):
                found = [run(X), noise(x).numpy(), run(X), noise(x).numpy()]
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5, err_msg=what)
        assert random_keys.shared() == before, what
        seeded.seed(3)
        own = run(X)
        seeded.seed(3)
        with nn.drawing(7):
            np.testing.assert_array_equal(run(X), own, err_msg=what)
    program = sg.compile(function, X, device="numpy")
    scale = 2.0  # so that it is traced again in the block
    with nn.drawing(7):
        np.testing.assert_allclose(program(X), want[0] * 2, rtol=1e-4, atol=1e-5)


def test_programs_without_draws_have_no_key() -> None:
    program = sg.compile(lambda x: x + 1, X, device="numpy")
    assert not program.states
    with pytest.raises(sg.InputError, match="draws no random numbers"):
        program.seed(1)
    with pytest.raises(sg.InputError, match="draws no random numbers"):
        sg.Model.of(lambda x: x + 1, {"x": (2,)}, "numpy").seed(1)
    counting = sg.Model.of(lambda x, *, n: (x + n, {"n": n + 1}), {"x": (2,)}, "numpy", states={"n": ((2,), "float32")})
    with pytest.raises(sg.InputError, match="draws no random numbers"):
        counting.session().seed(1)
    with pytest.raises(sg.InputError, match="expected an integer"):
        sg.compile(noise, X, device="numpy").seed(1.5)  # pyright: ignore[reportArgumentType]


def test_the_state_has_a_name_of_its_own() -> None:
    def step(key: sg.Tensor, *, key2: sg.Tensor) -> Any:
        return key + sg.rand_like(key), {"key2": key2 + 1}

    model = sg.Model.of(step, {"key": (2,)}, "numpy", states={"key2": ((2,), "float32")})
    assert [s.name for s in model.states] == ["key2", "key3"]


def test_what_the_host_draws_is_refused_while_a_function_is_traced() -> None:
    refused: tuple[Callable[[sg.Tensor], Any], ...] = (
        lambda x: sg.poisson(sg.tensor(X)),
        lambda x: x @ nn.Linear(4, 4).weight,
        lambda x: x + nn.init.normal((4,)),
    )
    for function in refused:
        with pytest.raises(sg.InputError, match="draws on the host"):
            sg.compile(function, X)
    sg.compile(lambda x: x @ nn.Linear(4, 4, rng=0).weight, X, device="numpy")


def test_a_traced_function_does_not_begin_the_sequence() -> None:
    def function(x: sg.Tensor) -> sg.Tensor:
        sg.manual_seed(3)
        return x + sg.rand_like(x)

    before = random_keys.shared()
    for make in (sg.compile, lambda f, x: sg.Model.of(f, {"x": x.shape})):
        with pytest.raises(sg.InputError, match="manual_seed: a compiled function would seed only when it is traced"):
            make(function, X)
    assert random_keys.shared() == before
    np.testing.assert_array_equal(sg.grad(lambda x: function(x).sum())(sg.tensor(X))[""].numpy(), np.ones_like(X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "made", [nn.Dropout(0.5, rng=0), nn.GaussianNoise(rng=0), nn.RReLU(rng=0), nn.FractionalMaxPool2d(1, (1, 7), rng=0)]
)
def test_a_generator_of_a_layers_own_is_refused_by_name_in_what_runs_again(made: nn.Module) -> None:
    x, message = sg.tensor(-X.reshape(1, 2, 1, 12)), f"{type(made).__name__}: it draws from a generator of its own"
    model = made.train()
    with pytest.raises(sg.InputError, match=message):
        sg.compile(model, x)
    with pytest.raises(sg.InputError, match=message):
        sg.train.TrainStep(
            nn.Sequential(nn.BatchNorm2d(2), model), sg.optim.SGD(0.1), lambda m, x: m(x).sum(), device="numpy"
        )(x)

    def in_own_block(x: sg.Tensor, key: sg.Tensor) -> sg.Tensor:
        with nn.drawing(key):
            return model(x)

    found = sg.compile(in_own_block, x, sg.random.key(1), device="numpy")(x, sg.random.key(1))
    np.testing.assert_allclose(found, in_own_block(x, sg.random.key(1)).numpy(), rtol=1e-5, atol=1e-6)
    loss = sg.value_and_grad(lambda y: model(y).sum())
    assert len({float(loss(x)[0]) for _ in range(8)}) > 1, "eagerly its generator goes on"


def test_an_op_of_ones_own_draws_of_a_key_that_it_gets() -> None:
    noisy = sg.op("noisy_for_the_test", lambda x: x + sg.randn_like(x))
    with pytest.raises(sg.InputError, match="in the function of an op"):
        sg.compile(noisy, X)


@pytest.mark.parametrize("run", [0, 1])
def test_manual_seed_decides_first_weights(run: int) -> None:
    layers: tuple[Callable[[], nn.Module], ...] = (
        lambda: nn.Linear(3, 3), lambda: nn.Conv2d(1, 2, 3), lambda: nn.Embedding(3, 4), lambda: nn.LSTM(2, 2),
        lambda: nn.TransformerEncoderLayer(4, 2, 4), lambda: nn.MultiheadAttention(4, 2), lambda: nn.Bilinear(2, 2, 2),
        lambda: nn.lora(nn.Linear(3, 3)), lambda: nn.spectral_norm(nn.Linear(3, 3)), lambda: nn.GRUCell(2, 2),
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2]),
    )  # fmt: skip
    made: list[list[np.ndarray]] = []
    for seed in (run, run, run + 1):
        sg.manual_seed(seed)
        made.append([t.numpy() for make in layers for t in make().state_dict().values()])
    first, same, other = made
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    differing = [not np.array_equal(a, b) for a, b in zip(first, other, strict=True) if a.std() > 0]
    assert all(differing)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("counts", [True, False])
def test_a_function_that_is_traced_again_may_begin_or_cease_to_draw(first: bool, counts: bool) -> None:
    noisy = first

    def function(x: sg.Tensor, *, n: sg.Tensor | None = None) -> Any:
        y = x + sg.randn_like(x) if noisy else x * 2
        return y if n is None else (y, {"n": n + 1})

    states = {"n": ((), "float32")} if counts else None
    model = sg.Model.of(function, {"x": X.shape}, "numpy", states=states)
    for _ in range(2):
        sg.manual_seed(1)
        want = [sg.randn_like(sg.tensor(X)).numpy() + X for _ in range(2)] if noisy else [X * 2, X * 2]
        sg.manual_seed(1)
        np.testing.assert_allclose([model(X), model(X)], want, rtol=1e-5)
        noisy = not noisy
    if counts:
        assert float(model._own.read("n")) == 4


def test_a_freestanding_module_takes_a_key(tmp_path: Path) -> None:
    with pytest.raises(sg.InputError, match="let it take a key as an input"):
        sg.export_freestanding(sg.Model.of(noise, {"x": X.shape}, "numpy"), tmp_path / "noise.wasm")
