"""Each optimiser makes, step by step, of the same gradients what PyTorch's makes; groups, refusals, types of weights."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from devices import EAGER, slow
from recorded import recorded_cases

import singe as sg
from singe import nn, optim
from singe.errors import InputError, ShapeError

CASES, ARRAYS = recorded_cases("optim")
LABELS = [label for label, case in CASES.items() if case["kind"] == "optimiser"]
STEPS = 22
TOLERANCE = 2e-6
Arrays = dict[str, np.ndarray]

# One case of each optimiser runs on every device; the others on numpy.
ONE_OF_EACH = ["5 SGD", "13 Adam", "15 AdamW", "23 RMSprop", "27 Adagrad", "32 Muon", "34 AdamW", "38 AdamW"]


def part(prefix: str) -> Arrays:
    return {key.removeprefix(f"{prefix}/"): x for key, x in ARRAYS.items() if key.startswith(f"{prefix}/")}


def optimiser(case: Mapping[str, Any]) -> optim.Optimizer:
    options = dict(case["options"])
    if case["schedule"]:
        name, its = case["schedule"]
        options["lr"] = getattr(optim, name)(options["lr"], **its)
    return getattr(optim, case["name"])(**options, groups=case["groups"])


def tensors(arrays: Arrays, on: sg.Device) -> dict[str, sg.Tensor]:
    return {name: sg.tensor(x, device=on) for name, x in arrays.items()}


def gradients(names: Any) -> Iterator[Arrays]:
    found = part("gradients")
    for k in range(STEPS):
        yield {name: found[name][k] for name in names}


def compare(got: sg.Tensor, expected: np.ndarray, label: str, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance, err_msg=label)


def check_recorded_cases(label: str, on: sg.Device) -> None:
    expected, opt = part(label), optimiser(CASES[label])
    model = tensors({name: x for name, x in part("weights").items() if name in expected}, on)
    state = opt.init(model)
    for k, grads in enumerate(gradients(model)):
        model, state = opt.step(model, tensors(grads, on), state)
        for name, steps in expected.items():
            compare(model[name], steps[k], f"{label}: {name} after {k + 1} steps")
    assert state["step"].item() == STEPS


@pytest.mark.slow
@pytest.mark.parametrize("label", [x for x in LABELS if x not in ONE_OF_EACH])
def test_each_step_is_that_of_pytorch(label: str) -> None:
    check_recorded_cases(label, sg.Numpy())


@EAGER
@pytest.mark.parametrize("label", [ONE_OF_EACH[0], *slow(*ONE_OF_EACH[1:])])
def test_each_device_makes_the_same_steps(label: str, on: sg.Device) -> None:
    check_recorded_cases(label, on)


# --- those that PyTorch lacks, beside NumPy in float64 ----------------------------------------------------------------


def adan_in_numpy(
    x: np.ndarray, grads: list[np.ndarray], lr: float, betas: tuple[float, float, float], eps: float, decay: float, no_prox: bool
) -> Iterator[np.ndarray]:  # fmt: skip
    m, v, n = np.zeros((3, *x.shape))
    before = grads[0]
    for t, g in enumerate(grads, 1):
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * (g - before)
        n = betas[2] * n + (1 - betas[2]) * (g + betas[1] * (g - before)) ** 2
        before = g
        first, second, third = (1 - beta**t for beta in betas)
        move = lr * (m / first + betas[1] * v / second) / (np.sqrt(n / third) + eps)
        x = x * (1 - lr * decay) - move if no_prox else (x - move) / (1 + lr * decay)
        yield x


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.02, "weight_decay": 0.1},
        *slow(
            {},
            {"lr": 0.02, "weight_decay": 0.1, "no_prox": True},
            {"lr": 0.01, "betas": (0.9, 0.8, 0.95), "eps": 1e-3},
        ),
    ],
)
def test_adan_makes_the_steps_of_its_paper(options: dict[str, Any], on: sg.Device) -> None:
    opt = optim.Adan(**options)
    model = tensors(part("weights"), on)
    expected = {
        name: list(
            adan_in_numpy(
                x.astype(np.float64), list(part("gradients")[name].astype(np.float64)), opt.rate(0), opt.betas,
                opt.eps, opt.weight_decay, opt.no_prox,
            )
        )
        for name, x in part("weights").items()
    }  # fmt: skip
    state = opt.init(model)
    for k, grads in enumerate(gradients(model)):
        model, state = opt.step(model, tensors(grads, on), state)
        for name, x in model.items():
            compare(x, expected[name][k], f"{name} after {k + 1} steps")


def muon_in_numpy(x: np.ndarray, grads: list[np.ndarray], opt: optim.Muon) -> Iterator[np.ndarray]:
    moment = np.zeros_like(x)
    a, b, c = opt.ns_coefficients
    for g in grads:
        moment = opt.momentum * moment + (1 - opt.momentum) * g
        y = opt.momentum * moment + (1 - opt.momentum) * g if opt.nesterov else moment
        y = y / max(float(np.linalg.norm(y)), opt.eps)
        for _ in range(opt.ns_steps):
            y = a * y + b * (y @ y.T @ y) + c * (y @ y.T @ y @ y.T @ y)
        x = x * (1 - opt.rate(0) * opt.weight_decay) - opt.rate(0) * max(1, x.shape[0] / x.shape[1]) ** 0.5 * y
        yield x


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 9), (9, 3), (5, 5), (1, 6), (6, 1)])
def test_muon_orthogonalises_matrices_of_every_form(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    x, grads = rng.normal(size=shape), list(rng.normal(size=(STEPS, *shape)))
    opt = optim.Muon(lr=0.03)
    model = {"w": sg.tensor(x, dtype="float32")}
    state = opt.init(model)
    for g, expected in zip(grads, muon_in_numpy(x, grads, opt), strict=True):
        model, state = opt.step(model, {"w": sg.tensor(g, dtype="float32")}, state)
        compare(model["w"], expected, str(shape), 1e-5)


@pytest.mark.slow
def test_muon_leaves_vectors_and_named_matrices_to_adamw() -> None:
    opt = optim.Muon(groups={"first.weight": {"use_muon": False}}, adamw=optim.AdamW(lr=0.01))
    model = before = tensors(part("weights"), sg.Numpy())
    state, other = opt.init(model), optim.AdamW(lr=0.01)
    assert {name.partition(".")[2] for name in state if name.startswith("moment2.")} == {"first.weight", "first.bias"}
    state_of_other = other.init(before)
    for grads in gradients(model):
        model, state = opt.step(model, tensors(grads, sg.Numpy()), state)
        before, state_of_other = other.step(before, tensors(grads, sg.Numpy()), state_of_other)
    for name in model:
        same = np.array_equal(model[name].numpy(), before[name].numpy())
        assert same == (name != "last.weight"), name


# --- models, groups, states -------------------------------------------------------------------------------------------

OPTIMISERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optim.SGD(0.1, momentum=0.9, dampening=0.1),
    "Adam": lambda: optim.Adam(amsgrad=True),
    "AdamW": optim.AdamW,
    "Adan": optim.Adan,
    "RMSprop": lambda: optim.RMSprop(momentum=0.9, centered=True),
    "Adagrad": optim.Adagrad,
    "Muon": optim.Muon,
    "Averaged": lambda: optim.Averaged(optim.SGD(0.1), 0.9),
    "ReduceLROnPlateau": lambda: optim.ReduceLROnPlateau(optim.SGD(0.1)),
    "Accumulated": lambda: optim.Accumulated(optim.AdamW(), 2),
}


class Net(nn.Module, buffers=("seen",)):
    body: nn.Linear
    norm: nn.BatchNorm1d
    heads: list[nn.Linear]
    seen: sg.Tensor

    def __init__(self) -> None:
        self.body = nn.Linear(3, 4, rng=0)
        self.norm = nn.BatchNorm1d(4)
        self.heads = [nn.Linear(4, 2, rng=1), nn.Linear(4, 2, rng=2)]
        self.seen = sg.zeros(1)


def ones(model: Any) -> dict[str, sg.Tensor]:
    return {path: sg.ones_like(p) for path, p in model.named_parameters()}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_module_moves_and_its_buffers_stay(name: str) -> None:
    opt, model = OPTIMISERS[name](), Net()
    state = opt.init(model)
    after, later = opt.step(model, ones(model), state)
    after, later = opt.step(after, ones(model), later)
    assert later.keys() == state.keys()
    assert {k: (x.shape, x.dtype) for k, x in later.items()} == {k: (x.shape, x.dtype) for k, x in state.items()}
    moved = after.state_dict()
    for path, p in model.named_parameters():
        assert (moved[path].numpy() < p.numpy()).all(), path
    assert all(moved[path] is x for path, x in model.named_buffers())
    assert repr(after) == repr(model)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_is_data(name: str) -> None:
    opt = OPTIMISERS[name]()
    assert pickle.loads(pickle.dumps(opt)) == opt == copy.deepcopy(opt)
    with pytest.raises(AttributeError):
        opt.lr = 1.0


def test_groups_give_other_options_to_the_paths_that_match() -> None:
    groups = {"*.weight": {"weight_decay": 0.5}, "heads.*": {"lr": 0.0}, "heads.1": {"lr": 1.0}}
    model = Net()
    after, _ = optim.SGD(0.25, groups=groups).step(model, ones(model), optim.SGD(0.25).init(model))
    new = after.state_dict()
    for path, x in model.named_parameters():
        rate = {"heads.0": 0.0, "heads.1": 1.0}.get(path[:7], 0.25)
        decay = 0.5 if path.endswith("weight") else 0.0
        compare(new[path], x.numpy() * (1 - rate * decay) - rate, path)


def test_a_parameter_without_a_gradient_stays_with_its_moments() -> None:
    opt, model = optim.AdamW(), Net()
    grads = ones(model)
    del grads["heads.0.weight"]
    state = opt.init(model)
    after, later = opt.step(model, grads, state)
    assert after.heads[0].weight is model.heads[0].weight
    assert later["moment1.heads.0.weight"] is state["moment1.heads.0.weight"]
    assert after.heads[1].weight is not model.heads[1].weight


def test_a_gradient_that_is_missing_in_the_last_of_several_batches_is_forgotten() -> None:
    opt, model = optim.Accumulated(optim.SGD(1.0), 2), {"a": sg.tensor([0.0]), "b": sg.tensor([0.0])}
    state, found = opt.init(model), []
    for grads in ((1, 0), (None, 0), (1, 0), (2, 0)):
        given = {name: sg.tensor([float(g)]) for name, g in zip("ab", grads, strict=True) if g is not None}
        model, state = opt.step(model, given, state)
        found.append(model["a"].item())
    assert found == [0, 0, 0, -1.5]


def test_a_variance_is_not_below_zero() -> None:
    """Of gradients that do not change it is 0, but for rounding."""
    opt, model = optim.RMSprop(1e-3, alpha=0.5, centered=True), {"a": sg.zeros(1000)}
    grads, state = {"a": sg.tensor(np.linspace(0.1, 3, 1000).astype(np.float32))}, opt.init(model)
    for _ in range(40):
        model, state = opt.step(model, grads, state)
    assert np.isfinite(model["a"].numpy()).all()


def test_a_shared_parameter_stays_shared() -> None:
    tied = nn.Linear(3, 3, rng=0)
    model = nn.Sequential(tied, nn.ReLU(), tied)
    after, _ = optim.AdamW().step(model, ones(model), optim.AdamW().init(model))
    new = after.state_dict()
    assert new["0.weight"] is new["2.weight"] is not tied.weight


def test_models_may_be_tensors_and_containers() -> None:
    x = sg.tensor([1.0, 2.0])
    opt = optim.SGD(0.5, momentum=0.1)
    after, state = opt.step(x, {"": sg.ones(2)}, opt.init(x))
    assert isinstance(after, sg.Tensor)
    assert after.tolist() == [0.5, 1.5]
    assert state["momentum"].tolist() == [1, 1]
    several = [x, {"a": x + 1}]
    after, state = opt.step(several, {"0": sg.ones(2), "1.a": sg.ones(2)}, opt.init(several))
    assert (after[0].tolist(), after[1]["a"].tolist()) == ([0.5, 1.5], [1.5, 2.5])
    assert "momentum.1.a" in state


@pytest.mark.parametrize(("kind", "moments"), [("float16", "float32"), ("bfloat16", "float32"), ("float64", "float64")])
def test_moments_are_wide(kind: str, moments: str) -> None:
    opt = optim.Adam(0.125)
    model = {"w": sg.tensor([1.0, 2.0]).cast(kind)}
    state = opt.init(model)
    for _ in range(3):
        model, state = opt.step(model, {"w": sg.tensor([1.0, 1e-4]).cast(kind)}, state)
    assert state["moment2.w"].dtype == moments
    assert model["w"].dtype == kind
    np.testing.assert_allclose(model["w"].float().numpy(), [0.625, 1.625], rtol=1e-2)


def test_the_first_updates_are_exact_in_float32() -> None:
    """1 − 0.999 in float32 has three digits fewer; the correction is computed in another way."""
    opt = optim.Adam(1.0, betas=(0.9, 0.99999))
    model, _ = opt.step({"w": sg.zeros(1)}, {"w": sg.ones(1)}, opt.init({"w": sg.zeros(1)}))
    np.testing.assert_allclose(model["w"].numpy(), [-1], rtol=3e-7)


def test_a_state_can_be_saved_and_continued(tmp_path: Any) -> None:
    opt, model = optim.AdamW(), Net()
    once, state = opt.step(model, ones(model), opt.init(model))
    read = {name: sg.tensor(x.numpy()) for name, x in state.items()}
    for given in (state, read):
        twice, _ = opt.step(once, ones(once), given)
        np.testing.assert_array_equal(
            twice.body.weight.numpy(), opt.step(once, ones(once), state)[0].body.weight.numpy()
        )


# --- with gradients that are computed ---------------------------------------------------------------------------------


def fit(model: Any, x: sg.Tensor, y: sg.Tensor) -> sg.Tensor:
    return ((model(x) - y) ** 2).mean()


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 8, rng=0), nn.Tanh(), nn.Linear(8, 2, rng=1))


def batch(on: Any) -> tuple[sg.Tensor, sg.Tensor]:
    x = np.random.default_rng(5).normal(size=(16, 3))
    return sg.tensor(x, dtype="float32", device=on), sg.tensor(np.sin(x[:, :2]), dtype="float32", device=on)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AdamW", *slow(*[name for name in OPTIMISERS if name != "AdamW"])])
def test_both_ways_to_gradients_train_alike(name: str, on: sg.Device) -> None:
    """`value_and_grad`, and `backward` on a device with Autodiff, on which parameters keep asking for their gradients."""
    opt, recording = OPTIMISERS[name](), sg.Autodiff(on)
    model, recorded_model = two_layers().to(on), two_layers().to(recording).map(sg.Tensor.require_grad)
    (x, y), (u, v) = batch(on), batch(recording)
    state, other = opt.init(model), opt.init(recorded_model)
    losses: list[float] = []
    for _ in range(6):
        loss, grads = sg.value_and_grad(fit)(model, x, y)
        model, state = opt.step(model, optim.clip_norm(grads, 0.5), state)
        grads = fit(recorded_model, u, v).backward()
        recorded_model, other = opt.step(recorded_model, optim.clip_norm(grads, 0.5), other)
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert not any(p.requires_grad for p in other.values())
    for (path, p), q in zip(model.named_parameters(), recorded_model.parameters(), strict=True):
        assert q.requires_grad
        compare(q, p.numpy(), path, 1e-5)


def test_gradients_are_averaged_in_their_kind() -> None:
    model = two_layers()
    x, y = batch("numpy")
    halves = [sg.grad(fit)(model, x[k : k + 8], y[k : k + 8]) for k in (0, 8)]
    mean, whole = optim.mean(halves), sg.grad(fit)(model, x, y)
    for name, g in whole.items():
        compare(mean[name], g.numpy(), name)
    with pytest.raises(InputError, match="different parameters"):
        optim.mean([dict(mean.items()), {"0.weight": mean["0.weight"]}])


def test_the_former_name_of_the_mean_of_gradients_stays() -> None:
    assert optim.mean_gradients is optim.mean
    assert "mean_gradients" in optim.__all__


def test_frozen_parameters_stay() -> None:
    model = two_layers()
    model = model.freeze("0.*")
    opt = optim.AdamW()
    state = opt.init(model)
    assert not [name for name in state if ".0." in name]
    after, _ = opt.step(model, sg.grad(fit)(model, *batch("numpy")), state)
    assert after.state_dict()["0.weight"] is model.state_dict()["0.weight"]
    assert after.state_dict()["2.weight"] is not model.state_dict()["2.weight"]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.SGD(-1.0), "lr=-1.0, expected at least 0"),
        (lambda: optim.SGD(nesterov=True), "nesterov=True needs a momentum"),
        (lambda: optim.Adam(betas=(0.9, 1.0)), "betas=.*less than 1"),
        (lambda: optim.Adam(groups={"*": {"learning_rate": 1}}), "learning_rate.*expected some of lr, betas"),
        (lambda: optim.Adam(groups={"*": {"eps": -1}}), "eps=-1"),
        (lambda: optim.Muon(adjust_lr_fn="best"), "expected one of original"),
        (lambda: optim.Muon(adamw=optim.AdamW(groups={"*": {}})), "give them to Muon"),
        (lambda: optim.LBFGS(line_search_fn="wolfe"), "expected 'strong_wolfe' or None"),
        (lambda: optim.Accumulated(optim.SGD(), 0), "every=0"),
        (lambda: optim.SGD(groups={"head.*": {}}).init(Net()), "'head.\\*' matches no parameter.*'body.weight'"),
        (lambda: optim.SGD().init(nn.ReLU()), "no parameters"),
        (lambda: optim.Adam().step(Net(), ones(Net()), optim.SGD().init(Net())), "no 'moment1.body.weight'"),
        (lambda: optim.SGD().step(Net(), {"bodi.weight": sg.ones(1)}, optim.SGD().init(Net())), "'bodi.weight'"),
        (lambda: optim.clip_norm({}, 1.0), "no gradients"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        make()


def test_a_gradient_of_another_shape_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"body.weight.*\(4,\), expected \(4, 3\)"):
        optim.SGD().step(Net(), {"body.weight": sg.ones(4)}, optim.SGD().init(Net()))
