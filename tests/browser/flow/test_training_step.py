"""A step of training as a bundle: the losses and weights of `model.step` in node, in a page and in its worker are the native ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from bundles import packed
from pages import Page, Runs, node, open_page

import singe as sg
from singe import nn
from singe.tools import cli
from singe.train import TrainStep

STEPS = """
const model = await open("step");
const session = model.session();
const losses = [];
for (const batch of given.batches) losses.push((await session.step(unpack(batch))).loss.data[0]);
const own = (await model.step(unpack(given.batches[0]))).loss.data[0];
const weight = Array.from(await session.read("model.0.weight"));
await model.dispose();
return { losses, own, weight };
"""


def loss(model: Any, x: Any, y: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x), y)


def made() -> TrainStep:
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, rng=rng),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(16, 3, rng=rng),
    )
    return TrainStep(model.train(), sg.optim.AdamW(lr=0.01), loss, device="numpy", seed=5)


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [(rng.standard_normal((6, 1, 6, 6)).astype(np.float32), rng.integers(0, 3, 6)) for _ in range(5)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    sg.export(made().as_model(*batches()[0]), folder / "step")
    return folder


@pytest.fixture(scope="module")
def chromium(browser: Any, root: Path) -> Iterator[Page]:
    with open_page(browser, root) as page:
        yield page


@pytest.mark.parametrize("where", ["node", "wasm", "webgpu", "worker wasm", "worker webgpu"])
def test_steps_in_a_page_are_the_native_ones(where: str, root: Path, request: pytest.FixtureRequest) -> None:
    step = made()
    wanted = [step(*batch) for batch in batches()]
    given = [packed({"x": x, "y": y}) for x, y in batches()]
    found = Runs(request, where, root)(STEPS, batches=given)
    np.testing.assert_allclose(found["losses"], wanted, rtol=1e-3)
    np.testing.assert_allclose(found["own"], wanted[0], rtol=1e-4)  # the model's own session begins at the start
    np.testing.assert_allclose(found["weight"], step.state()["model.0.weight"].ravel(), rtol=1e-2, atol=1e-4)


LEARN = """
const [step, read] = await Promise.all([load(given.step, given.options), load(given.read, given.options)]);
const training = step.session(), reading = read.session();
const losses = [];
for (const batch of given.batches) losses.push((await training.step(unpack(batch))).loss.data[0]);
for (const { name } of reading.states) await reading.write(name, await training.read(name));
const out = await reading.run(unpack(given.input));
await Promise.all([step.dispose(), read.dispose()]);
return { losses, out: Array.from(out.out.data), states: reading.states.map((s) => s.name) };
"""


def classifier(path: Path) -> None:
    """A file as PyTorch exports it: an input with a dot in its name, and probabilities as the output."""
    rng = np.random.default_rng(0)
    kernel, weight = rng.standard_normal((4, 1, 3, 3)), rng.standard_normal((3, 4)) / 2
    arrays = {"conv.weight": kernel, "conv.bias": np.zeros(4), "fc.weight": weight, "fc.bias": np.zeros(3)}
    nodes = [
        onnx.helper.make_node("Conv", ["x.1", "conv.weight", "conv.bias"], ["a"]),
        onnx.helper.make_node("Relu", ["a"], ["b"]),
        onnx.helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        onnx.helper.make_node("Flatten", ["c"], ["d"]),
        onnx.helper.make_node("Gemm", ["d", "fc.weight", "fc.bias"], ["e"], transB=1),
        onnx.helper.make_node("Softmax", ["e"], ["out"]),
    ]
    graph = onnx.helper.make_graph(
        nodes, "net", [onnx.helper.make_tensor_value_info("x.1", onnx.TensorProto.FLOAT, ["N", 1, 6, 6])],
        [onnx.helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, ["N", 3])],
        [onnx.numpy_helper.from_array(a.astype(np.float32), name) for name, a in arrays.items()],
    )  # fmt: skip
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)


def test_an_onnx_model_learns_in_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classifier(tmp_path / "net.onnx")
    out = tmp_path / "out"
    options = ["--train", "cross-entropy", "--batch", "6", "--lr", "0.01", "--learn", "fc.*"]
    assert cli.main(["export", str(tmp_path / "net.onnx"), "-o", str(out), *options]) == 0
    shown = capsys.readouterr().out
    assert 'training.step({ "x.1": …, "target": … })' in shown
    assert "for (const { name } of reading.states) await reading.write(name, await training.read(name));" in shown

    module = sg.load_module(tmp_path / "net.onnx").freeze("*").unfreeze("fc.*")
    step = TrainStep(module, sg.optim.AdamW(0.01), lambda m, x, y: nn.CrossEntropyLoss()(m(x).log(), y), device="numpy")
    wanted = [step(*batch) for batch in batches()]
    x = batches()[0][0][:2]
    found = node(
        LEARN, step=(out / "step").as_uri() + "/", read=(out / "read").as_uri() + "/",
        options={"device": "wasm", "threads": 1}, batches=[packed({"x.1": x, "target": y.astype(np.int32)}) for x, y in batches()],
        input=packed({"x.1": x}),
    )  # fmt: skip
    assert set(found["states"]) == {f"model.{name}" for name in module.state_dict()}
    np.testing.assert_allclose(found["losses"], wanted, rtol=1e-4)
    np.testing.assert_allclose(found["out"], step.model(sg.tensor(x)).numpy().ravel(), rtol=1e-3)
    np.testing.assert_array_equal(
        step.model.state_dict()["conv.weight"].numpy(), module.state_dict()["conv.weight"].numpy()
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--train", "hinge"], "expected one of cross-entropy"),
        (["--train", "mse", "--dtype", "int8"], "--dtype cannot be given with --train"),
        (["--train", "mse", "--learn", "head.*"], "no tensor matches 'head.*'; there are conv.weight"),
        (["--train", "mse", "--activations", "int8"], "--activations cannot be given with --train"),
        (["--train", "mse", "--freestanding"], "--train"),
        (["--learn", "conv.*"], "--learn needs --train"),
        (["--batch", "4"], "--batch needs --train"),
        (["--lr", "0.1", "--freestanding"], "--lr needs --train"),
    ],
)
def test_wrong_options_of_training_are_refused(
    options: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classifier(tmp_path / "net.onnx")
    assert cli.main(["export", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "out"), *options]) == 2
    assert text in capsys.readouterr().err
