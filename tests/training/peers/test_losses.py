"""Losses and their gradients equal PyTorch's, recorded by record_losses.py, on every device."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, groupby, product
from typing import Any

import numpy as np
import pytest
from devices import MORE, RUNNERS, Run, runners, slow
from loss_cases import CASES, Case
from recorded import recorded

import singe as sg
from singe import nn
from singe.dtypes import dtype
from singe.errors import DTypeError, InputError, OutOfRange, ShapeError
from singe.graph import Builder, Graph, gradient, inline
from singe.tensors.tracing import trace

TOLERANCE = {"numpy": 1e-5, "wasm": 1e-5, **dict.fromkeys(("webgpu", *MORE), 1e-4)}
"""The error allowed, relative to the largest value."""
GROUPS = {
    loss: [name for name, case in CASES.items() if case.loss == loss]
    for loss in sorted({c.loss for c in CASES.values()})
}


def loss_of(case: Case) -> Any:
    """The case's loss as a function of its inputs."""
    module = getattr(nn, case.loss)(**case.options)

    def function(first: sg.Tensor, *rest: sg.Tensor) -> sg.Tensor:
        if case.after == "log_softmax":
            first = first.log_softmax(min(1, first.ndim - 1))
        if case.after == "log_softmax of the last axis":
            first = first.log_softmax(-1)
        return module(first, *rest)

    return function


def with_gradients(function: Any, arrays: list[np.ndarray], by: tuple[int, ...]) -> Graph:
    """A graph of a function's value and of the gradients of its sum by some of its inputs."""
    specs = [(f"x{k}", a.shape, dtype(a.dtype)) for k, a in enumerate(arrays)]
    traced = trace(function, specs)
    b = Builder()
    inputs = [b.input(*spec) for spec in specs]
    (value,) = inline(traced, b, inputs)
    seed = b.expand(b.const(1.0, value.dtype), shape=value.shape)
    whole = Graph(tuple(inputs), (value,), ("value",))
    parts = gradient(whole, b, [seed], [inputs[k] for k in by])
    return Graph(tuple(inputs), (value, *parts), ("value", *(f"by{k}" for k in by)))


def close(got: np.ndarray, want: np.ndarray, tolerance: float, what: str) -> None:
    assert got.shape == want.shape, what
    scale = max(1e-6, float(np.abs(want).max(initial=0)))
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale, err_msg=what)


def compared(names: list[str], run_graph: Run, device: str) -> None:
    want = recorded("losses")
    for name in names:
        case = CASES[name]
        arrays = [np.asarray(x) for x in case.inputs]
        got = run_graph(with_gradients(loss_of(case), arrays, case.by), arrays)
        for part, value in zip(("value", *(f"by{k}" for k in case.by)), got, strict=True):
            close(value, want[f"{name}/{part}"], TOLERANCE[device], f"{name}: {part}")


@runners("numpy", *slow("wasm", "webgpu"))
@pytest.mark.parametrize("loss", GROUPS)
def test_values_and_gradients_are_pytorchs(loss: str, run_graph: Run, device_name: str) -> None:
    compared(GROUPS[loss], run_graph, device_name)


@RUNNERS
def test_one_program_serves_every_batch(device_name: str) -> None:
    """With an open number of examples, and for the losses of each kind."""
    rng = np.random.default_rng(1)
    losses = [
        (nn.CrossEntropyLoss(label_smoothing=0.1), lambda n: (rng.normal(size=(n, 5)), rng.integers(0, 5, n))),
        (nn.MSELoss(), lambda n: (rng.normal(size=(n, 3)), rng.normal(size=(n, 3)))),
        (nn.KLDivLoss(reduction="batchmean"), lambda n: (rng.normal(size=(n, 3)), rng.uniform(0.1, 1, (n, 3)))),
        (nn.TripletMarginLoss(), lambda n: [rng.normal(size=(n, 3)) for _ in range(3)]),
    ]
    for loss, drawn in losses:
        examples = {f"x{k}": a for k, a in enumerate(_narrow(drawn(2)))}
        model = sg.Model.of(
            loss,
            {name: ("N", *a.shape[1:]) for name, a in examples.items()},
            device=device_name,
            dtypes={name: a.dtype for name, a in examples.items()},
        )
        for count in (1, 4):
            given = _narrow(drawn(count))
            want = loss(*(sg.tensor(x) for x in given))
            close(np.asarray(model(*given)), want.numpy(), TOLERANCE[device_name], repr(loss))


@runners(*slow("numpy", "wasm", "webgpu"))
@pytest.mark.parametrize("loss", GROUPS)
def test_every_loss_takes_open_batches(loss: str, device_name: str) -> None:
    name = GROUPS[loss][0]
    arrays = {f"x{k}": np.asarray(x) for k, x in enumerate(CASES[name].inputs)}
    axes = [int(loss == "CTCLoss"), *[0] * (len(arrays) - 1)]
    count = arrays["x0"].shape[axes[0]]
    found = {
        k: tuple("N" if i == axis and d == count else d for i, d in enumerate(x.shape))
        for (k, x), axis in zip(arrays.items(), axes, strict=True)
    }
    dtypes = {k: x.dtype for k, x in arrays.items()}
    model = sg.Model.of(loss_of(CASES[name]), found, device=device_name, dtypes=dtypes)
    close(np.asarray(model(arrays)), recorded("losses")[f"{name}/value"], TOLERANCE[device_name], name)


@pytest.mark.parametrize("loss", ["CrossEntropyLoss", "BCEWithLogitsLoss", "CTCLoss", "RNNTLoss"])
@pytest.mark.parametrize("device", ["numpy", "wasm"])
def test_gradients_of_tensors_are_the_same(loss: str, device: str) -> None:
    """By value_and_grad, and by backward on a device that records."""
    want = recorded("losses")
    name = next(n for n in GROUPS[loss] if CASES[n].options["reduction"] == "mean")
    function, (first, *rest) = loss_of(CASES[name]), CASES[name].inputs
    x = sg.tensor(first, device=device)
    value, gradients = sg.value_and_grad(lambda x: function(x, *rest))(x)
    close(value.numpy(), want[f"{name}/value"], 1e-5, name)
    close(gradients[x].numpy(), want[f"{name}/by0"], 1e-5, name)
    x = sg.tensor(first, device=sg.Autodiff(sg.device(device)), requires_grad=True)
    close(function(x, *rest).backward()[x].numpy(), want[f"{name}/by0"], 1e-5, f"{name}: backward")


def _narrow(arrays: Any) -> list[np.ndarray]:
    return [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]


def test_ctc_is_the_sum_over_all_ways_to_write_the_target() -> None:
    logs = _narrow([np.log(np.random.default_rng(3).dirichlet(np.ones(3), 5))])[0]
    for target in ([1, 2], [1, 1], [2], []):
        total = 0.0
        for path in product(range(3), repeat=len(logs)):
            if [c for c, _ in groupby(path) if c] == target:
                total += math.exp(sum(logs[t, c] for t, c in enumerate(path)))
        loss = nn.CTCLoss(reduction="none")(sg.tensor(logs), np.array(target, int), [5], [len(target)])
        assert loss.item() == pytest.approx(-math.log(total), rel=1e-5)


def test_rnnt_is_the_sum_over_all_paths() -> None:
    """Each path writes the target's classes at some time steps, and ends each step with a blank."""
    logs = _narrow([np.log(np.random.default_rng(4).dirichlet(np.ones(4), (4, 3)))])[0]
    target, blank = [2, 0], 3
    total = 0.0
    for writes in combinations_with_replacement(range(4), len(target)):  # the time at which each class is written
        path = [logs[t, u, target[u]] for u, t in enumerate(writes)]
        path += [logs[t, sum(w <= t for w in writes), blank] for t in range(4)]
        total += math.exp(sum(path))
    loss = nn.RNNTLoss(fused_log_softmax=False)(sg.tensor(logs[None]), np.array([target]), [4], [2])
    assert loss.item() == pytest.approx(-math.log(total), rel=1e-5)


@RUNNERS
def test_alignments_serve_every_length(device_name: str) -> None:
    rng = np.random.default_rng(5)
    ctc, rnnt = nn.CTCLoss(), nn.RNNTLoss()
    lengths = {"a": ("N",), "b": ("N",)}
    kinds = {"dtypes": dict.fromkeys(("t", "a", "b"), "int64"), "device": device_name}
    first = sg.Model.of(ctc, {"x": ("T", "N", 5), "t": ("N", "S"), **lengths}, **kinds)
    second = sg.Model.of(rnnt, {"x": ("N", "T", "U", 5), "t": ("N", "S"), **lengths}, **kinds)
    for count, time, longest in ((1, 4, 2), (3, 6, 3)):
        targets = rng.integers(1, 4, (count, longest))
        both = [rng.integers(most - 1, most + 1, count) for most in (time, longest)]
        for model, loss, shape in (
            (first, ctc, (time, count, 5)),
            (second, rnnt, (count, time, longest + 1, 5)),
        ):
            x = np.log(rng.dirichlet(np.ones(5), shape[:-1])).astype(np.float32)
            want = loss(sg.tensor(x), targets, *both).numpy()
            close(np.asarray(model(x, targets, *both)), want, TOLERANCE[device_name], repr(loss))


def test_targets_that_do_not_fit_are_infinite_and_probabilities_of_zero_are_no_nan() -> None:
    logs = sg.full((3, 1, 4), math.log(0.25))
    assert nn.CTCLoss()(logs, np.array([[1, 1]]), [2], [2]).item() == math.inf
    assert nn.CTCLoss(zero_infinity=True)(logs, np.array([[1, 1]]), [2], [2]).item() == 0
    never = sg.tensor(np.array([[[math.log(0.5), math.log(0.5), -math.inf]]] * 3, np.float32))
    assert nn.CTCLoss()(never, np.array([[2]]), [3], [1]).item() == math.inf
    assert nn.CTCLoss()(never, np.array([[1]]), [3], [1]).item() < 2


X = sg.zeros((4, 3))
LOGITS = sg.zeros((2, 3, 4, 5))
TWO = np.array([2, 2])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: nn.MSELoss(reduction="avg"), InputError, "reduction is 'avg', expected one of 'none', 'mean', 'sum'"),
        (lambda: nn.MSELoss()(X, sg.zeros((4, 1))), ShapeError, r"the target is \(4, 1\), expected \(4, 3\)"),
        (lambda: nn.L1Loss()(X.cast("int32"), X), DTypeError, "input is int32, expected floats"),
        (lambda: nn.CrossEntropyLoss()(X, sg.zeros((4,))), DTypeError, "float32 of shape .4,., expected the numbers of classes as int"),
        (lambda: nn.CrossEntropyLoss()(X, np.zeros((3,), int)), ShapeError, r"the target is \(3,\), expected \(4,\)"),
        (lambda: nn.CrossEntropyLoss([1, 2])(X, np.zeros(4, int)), ShapeError, r"weight is \(2,\), expected \(3,\)"),
        (lambda: nn.CrossEntropyLoss(label_smoothing=2), InputError, "label_smoothing is 2, expected a number from 0 to 1"),
        (lambda: nn.NLLLoss()(X, sg.zeros((4,))), DTypeError, "the target is float32, expected the numbers of classes"),
        (lambda: nn.CrossEntropyLoss()(np.zeros((4, 3)), np.zeros(4, int)), InputError, "CrossEntropyLoss: got a NumPy array .* as input, expected a T"),
        (lambda: nn.MultiMarginLoss(p=3), InputError, "p is 3, expected 1 or 2"),
        (lambda: nn.HuberLoss(delta=0), InputError, "delta is 0, expected a number above 0"),
        (lambda: nn.GaussianNLLLoss()(X, X, sg.zeros((3,))), ShapeError, r"var is \(3,\), expected \(4, 3\)"),
        (lambda: nn.CosineEmbeddingLoss()(X, X, X), ShapeError, r"the target is \(4, 3\), expected \(4,\)"),
        (lambda: nn.CTCLoss()(X, np.array([1]), 5, 1), InputError, "input_lengths are 5, expected numbers from 0 to 4"),
        (lambda: nn.CTCLoss(blank=3)(X, np.array([1]), 4, 1), InputError, "blank is 3, expected a class from 0 to 2"),
        (lambda: nn.CTCLoss()(X, np.array([1.0]), 4, 1), DTypeError, "targets are float64|targets are float32"),
        (lambda: nn.CTCLoss()(sg.zeros((4, 2, 3)), np.array([1]), TWO, [1, 1]), ShapeError, "1 targets, expected 2"),
        (lambda: nn.RNNTLoss()(X, X, TWO, TWO), ShapeError, r"logits are \(4, 3\), expected \(batch, time"),
        (lambda: nn.RNNTLoss()(LOGITS, np.zeros((2, 4), int), TWO, TWO), ShapeError, r"\(2, 4\), expected \(2, 3\)"),
        (lambda: nn.GramMatrixLoss(layer_weights=[1, 1])(X, X), InputError, "1 and 1 layers of features and 2 weights"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


@RUNNERS
def test_a_target_that_is_no_class_is_seen(device_name: str) -> None:
    """It is refused where the host has the numbers, and makes the loss NaN where only the device has them."""
    x = sg.zeros((3, 4), device=device_name)
    for loss in (
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(label_smoothing=0.1),
        nn.CrossEntropyLoss([1, 1, 1, 1]).to(device_name),
    ):
        zeros = np.zeros(3, np.int64)
        program = sg.compile(lambda x, y, loss=loss: loss(x, y), x.numpy(), zeros, device=device_name)
        computed = sg.compile(lambda x, y, z, loss=loss: loss(x, y + z), x.numpy(), zeros, zeros, device=device_name)
        for no_class in (4, -1):
            y = np.array([0, 1, no_class])
            for refusing in (lambda y=y, loss=loss: loss(x, y), lambda y=y, program=program: program(x.numpy(), y)):
                with pytest.raises(OutOfRange, match=f"got {no_class}, expected from 0 to 3"):
                    refusing()
            assert math.isnan(computed(x.numpy(), y, zeros))
        assert not math.isnan(loss(x, np.array([0, -100, 3])).item())


def test_weights_are_buffers_and_not_learned() -> None:
    loss = nn.BCEWithLogitsLoss(weight=[1, 2], pos_weight=[3, 4])
    assert [name for name, _ in loss.named_parameters()] == []
    assert [name for name, _ in loss.named_buffers()] == ["weight", "pos_weight"]
