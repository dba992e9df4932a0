"""Modules: plain data that computes what NumPy does, under PyTorch's names, and that can be shared, copied and traced."""

from __future__ import annotations

import inspect
import math
import pickle
import pydoc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from devices import ALL_BUT_SHADERS

import singe as sg
from singe import nn
from singe.errors import OutOfRange
from singe.shapes import size
from singe.tensors.tracing import trace

X = np.random.default_rng(7).normal(size=(2, 3, 8, 8)).astype(np.float32)


class Block(nn.Module):
    """A module with a tensor, modules in a list, and a plain field."""

    def __init__(self, channels: int, rng: np.random.Generator) -> None:
        self.scale = sg.ones(1)
        self.convs = [
            nn.Conv2d(channels, channels, 3, padding=1, rng=rng),
            nn.Conv2d(channels, channels, 1, bias=False, rng=rng),
        ]
        self.norm = nn.BatchNorm2d(channels)
        self.residual = True

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        y = x
        for conv in self.convs:
            y = conv(y).relu()
        y = self.norm(y) * self.scale
        return x + y if self.residual else y


def network() -> nn.Sequential:
    rng = np.random.default_rng(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, rng=rng), nn.BatchNorm2d(4), nn.ReLU6(), Block(4, rng), nn.MaxPool2d(3, 2),
        nn.Flatten(), nn.Linear(4, 5, rng=rng), nn.Softmax(),
    )  # fmt: skip


def test_a_network_runs_where_its_tensors_are(on: sg.Device) -> None:
    model = network()
    want = model(sg.tensor(X)).numpy()
    assert want.shape == (2, 5)
    y = model.to(on)(sg.tensor(X, device=on))
    assert y.device is on
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-5)


def test_linear() -> None:
    layer = nn.Linear(8, 5, rng=0)
    np.testing.assert_allclose(
        layer(sg.tensor(X)).numpy(), X @ layer.weight.numpy().T + np.asarray(layer.bias), rtol=1e-4, atol=1e-5
    )
    assert nn.Linear(8, 5, bias=False)(sg.tensor(X[0, 0, 0])).shape == (5,)


def test_conv_shapes() -> None:
    x = sg.tensor(X)
    assert nn.Conv2d(3, 6, (3, 5), stride=(2, 1), padding=(1, 2), groups=3)(x).shape == (2, 6, 4, 8)
    assert nn.Conv2d(3, 4, 3, padding="same", dilation=2)(x).shape == (2, 4, 8, 8)
    assert nn.AvgPool2d(2)(x).shape == (2, 3, 4, 4)
    assert nn.AdaptiveAvgPool2d(1)(x).shape == (2, 3, 1, 1)
    with pytest.raises(sg.ShapeError, match="cannot be divided into 2 groups"):
        nn.Conv2d(3, 4, 3, groups=2)


def test_batch_norm_by_running_statistics() -> None:
    rng = np.random.default_rng(3)
    state = {k: rng.uniform(0.5, 2, 3).astype(np.float32) for k in ("weight", "bias", "running_mean", "running_var")}
    layer = nn.BatchNorm2d(3).with_state(state | {"num_batches_tracked": np.array(4)})
    w, b, mean, var = (v[:, None, None] for v in state.values())
    np.testing.assert_allclose(
        layer(sg.tensor(X)).numpy(), (X - mean) / np.sqrt(var + 1e-5) * w + b, rtol=1e-4, atol=1e-5
    )


def test_batch_norm_in_training_collects_what_it_sees() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()).train()
    mean, var = X.mean((0, 2, 3)), X.var((0, 2, 3))
    with nn.observing() as seen:
        y = model(sg.tensor(X))
    want = (X - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)
    np.testing.assert_allclose(y.numpy(), np.maximum(want, 0), rtol=1e-4, atol=1e-5)
    state = model.with_modules(seen).state_dict()
    np.testing.assert_allclose(state["0.running_mean"].numpy(), 0.1 * mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state["0.running_var"].numpy(), 0.9 + 0.1 * X.var((0, 2, 3), ddof=1), rtol=1e-4)
    assert state["0.num_batches_tracked"].item() == 1
    assert model.state_dict()["0.num_batches_tracked"].item() == 0


ACTIVATIONS: dict[str, tuple[nn.Module, Callable[[np.ndarray], np.ndarray]]] = {
    "Identity": (nn.Identity(), lambda x: x),
    "Flatten": (nn.Flatten(), lambda x: x.reshape(2, -1)),
    "ReLU": (nn.ReLU(), lambda x: np.maximum(x, 0)),
    "ReLU6": (nn.ReLU6(), lambda x: np.clip(x, 0, 6)),
    "LeakyReLU": (nn.LeakyReLU(0.2), lambda x: np.where(x < 0, 0.2 * x, x)),
    "ELU": (nn.ELU(alpha=0.5), lambda x: np.where(x < 0, 0.5 * np.expm1(x), x)),
    "Sigmoid": (nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    "Hardsigmoid": (nn.Hardsigmoid(), lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "Tanh": (nn.Tanh(), np.tanh),
    "SiLU": (nn.SiLU(), lambda x: x / (1 + np.exp(-x))),
    "Hardswish": (nn.Hardswish(), lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "GELU": (nn.GELU(), lambda x: x * (0.5 + 0.5 * np.vectorize(math.erf)(x * 0.5**0.5))),
    "Softplus": (nn.Softplus(), lambda x: np.log1p(np.exp(x))),
    "CELU": (nn.CELU(0.7), lambda x: np.maximum(x, 0) + np.minimum(0, 0.7 * np.expm1(x / 0.7))),
    "SELU": (nn.SELU(), lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "LogSigmoid": (nn.LogSigmoid(), lambda x: -np.log1p(np.exp(-x))),
    "Hardtanh": (nn.Hardtanh(-0.5, 2), lambda x: np.clip(x, -0.5, 2)),
    "Tanhshrink": (nn.Tanhshrink(), lambda x: x - np.tanh(x)),
    "Mish": (nn.Mish(inplace=True), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "Softsign": (nn.Softsign(), lambda x: x / (1 + np.abs(x))),
    "Hardshrink": (nn.Hardshrink(0.3), lambda x: np.where(np.abs(x) > 0.3, x, 0)),
    "Softshrink": (nn.Softshrink(0.3), lambda x: np.where(x > 0.3, x - 0.3, np.where(x < -0.3, x + 0.3, 0))),
    "Threshold": (nn.Threshold(0.1, 20.0), lambda x: np.where(x > 0.1, x, 20)),
    "GLU": (nn.GLU(), lambda x: x[..., :4] / (1 + np.exp(-x[..., 4:]))),
    "Softmax2d": (nn.Softmax2d(), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "Softmin": (nn.Softmin(), lambda x: np.exp(-x) / np.exp(-x).sum(-1, keepdims=True)),
    "Softmax": (nn.Softmax(dim=1), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "LogSoftmax": (nn.LogSoftmax(), lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True))),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name: str) -> None:
    layer, reference = ACTIVATIONS[name]
    assert type(layer).__name__ == name
    np.testing.assert_allclose(layer(sg.tensor(X * 4)).numpy(), reference(X * 4), rtol=1e-5, atol=1e-5)


def test_every_activation_is_tested() -> None:
    assert {c.__name__ for c in nn.ReLU.__base__.__subclasses__()} == set(ACTIVATIONS)  # pyright: ignore[reportOptionalMemberAccess]


def test_activations_refuse_what_they_do_not_take() -> None:
    with pytest.raises(sg.InputError, match="LeakyReLU takes negative_slope"):
        nn.LeakyReLU(slope=0.1)
    with pytest.raises(sg.InputError, match="ReLU takes no arguments"):
        nn.ReLU(1)


# --- names and state -------------------------------------------------------------------------------------------------


def test_names_are_those_of_pytorch() -> None:
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    assert list(network().state_dict()) == [
        "0.weight", "0.bias", *(f"1.{k}" for k in norm), "3.scale", "3.convs.0.weight", "3.convs.0.bias", "3.convs.1.weight",
        *(f"3.norm.{k}" for k in norm), "6.weight", "6.bias",
    ]  # fmt: skip
    assert [k for k, _ in network().named_buffers()] == [f"{m}.{k}" for m in ("1", "3.norm") for k in norm[2:]]
    assert [k for k, _ in nn.Sequential({"body": nn.Linear(1, 1), "act": nn.ReLU()}).named_parameters()] == [
        "body.weight",
        "body.bias",
    ]
    named = nn.Sequential({"body": nn.Linear(1, 1), "act": nn.ReLU()})
    assert list(named[:1].state_dict()) == ["body.weight", "body.bias"]
    assert list(network()[1:3].state_dict()) == [f"0.{k}" for k in norm]
    assert network().parameter_count == sum(p.size for p in network().parameters()) == 318


def test_weights_are_pytorchs_defaults_and_follow_the_seed() -> None:
    layer = nn.Conv2d(8, 64, 3, groups=2, rng=1)
    bound = (4 * 9) ** -0.5
    for t in (layer.weight, layer.bias):
        assert t is not None
        assert 0.9 * bound < abs(t.numpy()).max() <= bound
    assert all(
        (a.numpy() == b.numpy()).all() for a, b in zip(network().parameters(), network().parameters(), strict=True)
    )
    assert (nn.Linear(3, 3, rng=1).weight.numpy() != nn.Linear(3, 3, rng=2).weight.numpy()).any()


def test_with_state_gives_a_new_module() -> None:
    model = network()
    state = {k: np.full(t.shape, 2, np.float64) for k, t in model.state_dict().items()}
    loaded = model.with_state(state)
    assert all((t.numpy() == 2).all() for t in loaded.state_dict().values())
    assert {k: t.dtype for k, t in loaded.state_dict().items()} == {k: t.dtype for k, t in model.state_dict().items()}
    assert not (model.state_dict()["0.weight"].numpy() == 2).any()
    again = model.with_state(loaded.state_dict())
    np.testing.assert_array_equal(again(sg.tensor(X)).numpy(), loaded(sg.tensor(X)).numpy())


def test_with_state_refuses_what_does_not_fit() -> None:
    layer = nn.Linear(3, 2)
    with pytest.raises(sg.InputError, match=r"missing: bias; unknown: bais"):
        layer.with_state({"weight": np.ones((2, 3)), "bais": np.ones(2)})
    with pytest.raises(sg.ShapeError, match=r"weight is \(3, 2\), expected \(2, 3\)"):
        layer.with_state({"weight": np.ones((3, 2)), "bias": np.ones(2)})
    partly = layer.with_state({"bias": np.ones(2), "other": np.ones(1)}, strict=False)
    assert partly.weight is layer.weight
    assert partly.bias is not None
    assert partly.bias.tolist() == [1, 1]


# --- plain data ------------------------------------------------------------------------------------------------------


def test_a_module_cannot_be_changed() -> None:
    layer = nn.Linear(3, 2)
    with pytest.raises(AttributeError, match=r"module\.replace\(bias=…\)"):
        layer.bias = None
    assert layer.replace(bias=None).bias is None
    assert layer.bias is not None
    with pytest.raises(sg.InputError, match="no field wieght; it has weight, bias"):
        layer.replace(wieght=None)


@pytest.mark.parametrize(
    "copy", [lambda m: m.clone(), lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.map(lambda t: t)]
)
def test_copies_compute_the_same(copy: Any) -> None:
    model = network()
    other = copy(model)
    assert other is not model
    assert other[3] is not model[3]
    assert repr(other) == repr(model)
    np.testing.assert_array_equal(other(sg.tensor(X)).numpy(), model(sg.tensor(X)).numpy())
    with pytest.raises(AttributeError, match="cannot be changed"):
        other.layers = ()


def test_shared_tensors_stay_shared() -> None:
    layer = nn.Linear(3, 3)
    tied = nn.Sequential(layer, layer, nn.Linear(3, 3).replace(weight=layer.weight))
    half = tied.cast("float16")
    assert len(list(tied.parameters())) == len(list(half.parameters())) == 3
    assert half[0].weight.dtype is sg.float16  # pyright: ignore[reportAttributeAccessIssue]


def test_training_is_a_field() -> None:
    model = network()
    trained = model.train()
    flags = [m.training for _, m in trained.named_modules() if isinstance(m, nn.BatchNorm2d)]
    assert flags == [True, True]
    assert "training=True" not in repr(model)
    assert repr(trained.eval()) == repr(model)


def test_repr_is_a_tree() -> None:
    assert repr(nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.ReLU(), nn.LeakyReLU()))) == (
        "Sequential(\n  (0): Linear(weight=(2, 3), bias=(2,))\n  (1): Sequential(\n    (0): ReLU()\n    (1): LeakyReLU(negative_slope=0.01)\n  )\n)"
    )
    assert "(convs.1): Conv2d(weight=(4, 4, 1, 1)" in repr(network())


def test_threads_share_a_module(on: sg.Device) -> None:
    model = network().to(on)
    want = [network()(sg.tensor(X * k)).numpy() for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda k: model(sg.tensor(X * k, device=on)).numpy(), range(8)))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


# --- tracing ---------------------------------------------------------------------------------------------------------


def test_a_traced_network_computes_the_same(run_graph: Any) -> None:
    graph = trace(network(), [("x", X.shape, sg.float32)])
    assert [x.name for x in graph.inputs] == ["x"]
    assert graph.output_names == ("output",)
    (got,) = run_graph(graph, [X])
    np.testing.assert_allclose(got, network()(sg.tensor(X)).numpy(), rtol=1e-4, atol=1e-5)


@ALL_BUT_SHADERS
def test_traced_with_a_symbolic_batch(run_graph: Any) -> None:
    graph = trace(network(), [("x", (size("N"), 3, 8, 8), sg.float32)])
    assert graph.outputs[0].shape == (size("N"), 5)
    (got,) = run_graph(graph, [X])
    np.testing.assert_allclose(got, network()(sg.tensor(X)).numpy(), rtol=1e-4, atol=1e-5)


def test_parameters_of_any_device_become_constants_once(on: sg.Device) -> None:
    weight = sg.tensor(np.eye(3), device=on)
    graph = trace(
        lambda x, y: {"a": x @ weight, "b": y @ weight, "c": weight},
        [("x", (2, 3), sg.float32), ("y", (size("N"), 3), sg.float32)],
    )
    assert graph.output_names == ("a", "b", "c")
    assert sum(n.is_const for n in graph.nodes) == 1


def test_compile_a_module() -> None:
    program = sg.compile(network(), X, device="numpy")
    np.testing.assert_allclose(program(X), network()(sg.tensor(X)).numpy(), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_traced_says_so() -> None:
    spec = [("x", (2, 3), sg.float32)]
    with pytest.raises(sg.DeviceError, match="in place of `if`"):
        trace(lambda x: x if x.max() > 0 else -x, spec)
    with pytest.raises(sg.InputError, match="expected a Tensor"):
        trace(lambda x: 3, spec)
    assert trace(lambda x: x * float(sg.tensor(2.0) + 1), spec).ops() == {"mul": 1}
    leaked: list[sg.Tensor] = []
    with pytest.raises(sg.InputError, match=r"keeps a Tensor in leaked\[0\]"):
        trace(lambda x: leaked.append(x) or x, spec)
    assert not leaked
    shown: list[str] = []
    trace(lambda x: shown.append(repr(x)) or x, spec)
    assert shown[0] == "tensor(…, shape=(2, 3), dtype=float32, device=tracing)"
    with pytest.raises(sg.DeviceError, match="trace of another function"):
        trace(lambda x: trace(lambda y: x + y, spec) and x, spec)


class Forgetful(nn.Linear):
    def __init__(self) -> None:
        self.extra = 1


class Trained(nn.Module):
    def forward(self, x: sg.Tensor) -> sg.Tensor:
        return x if self.training else -x  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Forgetful(), r"Forgetful has no 'weight', a field of Linear; does __init__ call super\(\).__init__"),
        (Trained(), "Trained has no 'training'; set self.training = False in __init__"),
    ],
)
def test_a_field_that_is_not_set_says_what_to_do(module: nn.Module, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        module(sg.ones((2, 3)))


@pytest.mark.parametrize("given", [X, X.tolist()], ids=["an array", "a list"])
def test_a_layer_that_gets_no_tensor_says_what_to_write(given: Any) -> None:
    for layer in (nn.Conv2d(3, 4, 3), nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), nn.ReLU()):
        with pytest.raises(sg.InputError, match=r"expected a Tensor; pass sg.tensor\(x\)"):
            layer(given)


def test_arrays_are_passed_to_modules_that_take_them() -> None:
    class Sum(nn.Module):
        def forward(self, x: Any) -> Any:
            return sum(x)

    assert Sum()([1, 2]) == 3
    with pytest.raises(TypeError, match="unsupported operand"):
        Sum()([1, "2"])


SIZES: dict[str, tuple[Any, str]] = {
    "in": (lambda: nn.Linear(-1, 2), "Linear: in_features is -1, expected an integer of at least 0"),
    "out": (lambda: nn.Linear(2, "a"), "Linear: out_features is 'a', expected an integer"),  # pyright: ignore
    "a quotient": (lambda: nn.Conv2d(3, 8 / 2, 3), "Conv2d: out_channels is 4.0"),  # pyright: ignore
    "a window": (lambda: nn.Conv2d(3, 8, (3, -3)), r"Conv2d: kernel_size\[1\] is -3"),
    "padding": (
        lambda: nn.Conv2d(3, 8, 3, padding="smae"),
        "padding is 'smae', expected numbers, or one of same, valid",
    ),
    "channels": (lambda: nn.BatchNorm2d(-1), "BatchNorm2d: num_features is -1"),
    "rows": (lambda: nn.Embedding(-1, 2), "Embedding: num_embeddings is -1"),
    "hidden": (lambda: nn.LSTM(2, -2), "LSTM: hidden_size is -2"),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_of_layers_are_checked(name: str) -> None:
    make, text = SIZES[name]
    with pytest.raises(sg.InputError, match=text):
        make()


LABELS: dict[str, tuple[nn.Module, int, int]] = {
    "above": (nn.CrossEntropyLoss(), 3, -100),
    "below": (nn.CrossEntropyLoss(), -1, -100),
    "smoothed": (nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=0), -100, 0),
    "of logarithms": (nn.NLLLoss(ignore_index=-1), 7, -1),
    "margins": (nn.MultiMarginLoss(), 3, 2),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_that_are_no_classes_are_refused(name: str) -> None:
    """But for the one that is ignored."""
    loss, wrong, taken = LABELS[name]
    x = sg.ones(2, 3)
    with pytest.raises(OutOfRange, match=f"{type(loss).__name__}: the target: got {wrong}, expected from 0 to 2"):
        loss(x, sg.tensor([1, wrong]))
    assert np.isfinite(loss(x, sg.tensor([1, taken])).item())


def test_layers_can_be_derived_from() -> None:
    x = sg.tensor([[-1.0, 2.0, 3.0]])
    for layer in (nn.LeakyReLU, nn.BatchNorm1d, nn.GRU, nn.MaxPool1d, nn.MaxUnpool1d, nn.TransformerEncoderLayer):
        assert type("Derived", (layer,), {}).__name__ == "Derived"
    np.testing.assert_array_equal(type("Derived", (nn.LeakyReLU,), {})(0.5)(x).numpy(), [[-0.5, 2, 3]])


LAYERS = [c for c in (getattr(nn, name) for name in nn.__all__) if isinstance(c, type) and issubclass(c, nn.Module)]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda c: c.__name__)
def test_the_signature_of_a_layer_is_that_of_its_init(layer: type[nn.Module]) -> None:
    """Help and editors show it; `*layers` of a Sequential is all that takes any number of arguments."""
    shown = inspect.signature(layer).parameters
    names = [name for name in inspect.signature(layer.__init__).parameters if name != "self"]
    assert not {"args", "kwargs"} & shown.keys()
    if {"values", "named"} <= set(names):  # an Activation
        assert list(shown) == [*layer._defaults, "inplace"]  # pyright: ignore[reportAttributeAccessIssue]
    else:
        assert list(shown) == ([] if names == ["args", "kwargs"] else names)
    made_of_any = [name for name, p in shown.items() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    assert made_of_any == (["layers"] if layer is nn.Sequential else [])


def test_help_shows_the_arguments_of_layers() -> None:
    assert "Conv2d(in_channels: " in pydoc.plain(pydoc.render_doc(nn.Conv2d))
    assert str(inspect.signature(nn.LeakyReLU)) == "(negative_slope=0.01, *, inplace: 'bool' = False)"
    assert list(inspect.signature(Block).parameters) == ["channels", "rng"]
    assert list(inspect.signature(Derived).parameters) == ["factor"]


class Derived(nn.LeakyReLU):
    def __init__(self, factor: float) -> None:
        super().__init__(negative_slope=factor)


def test_to_takes_devices_and_dtypes() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    for half in (net.to(sg.float16), net.to("float16"), net.to("numpy", sg.float16), net.half()):
        kinds = {name: t.dtype.name for name, t in half.state_dict().items()}
        assert kinds["0.weight"] == "float16"
        assert kinds["1.num_batches_tracked"] == "int64"
    assert net.half().float()(sg.ones((1, 3))).dtype == "float32"


@pytest.mark.parametrize(
    ("layer", "shape"),
    [(nn.Dropout1d, (4,)), (nn.Dropout2d, (3, 4)), (nn.Dropout3d, (2, 3, 4)), (nn.FeatureAlphaDropout, (2, 3, 4))],
)
def test_dropout_of_channels_refuses_inputs_without_channels(layer: type[nn.Dropout2d], shape: tuple[int, ...]) -> None:
    with pytest.raises(sg.ShapeError, match="expected \\(batch, channels, …\\)"):
        layer().train()(sg.ones(shape))
    assert layer().train()(sg.ones((2, *shape))).shape == (2, *shape)
