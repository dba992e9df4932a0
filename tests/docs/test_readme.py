"""The README from top to bottom, with small models in place of those that it names. Pages and modules of JavaScript are
tested as files: tests/browser/test_embedding.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from snippets import NOT_RUN, ROOT, blocks, checkout, commands, run

onnx = pytest.importorskip("onnx")
GIVEN: Final = {
    "return x * count": "x = np.ones(2, np.float32)",
    "0.9 * mean": "mean, x = np.zeros(64, np.float32), np.ones(64, np.float32)",
    "Learner(": """
from singe import nn

pixels = np.random.default_rng(0).random((64, 1, 28, 28), np.float32)
data = sg.data.Dataset.of((pixels, np.arange(64) % 10))
train, valid = sg.data.Loader(data, 16), sg.data.Loader(data, 32)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10, rng=0))
""",
}
"""What a block of Python has ↦ what its reader has already."""
ELSEWHERE: Final = ("html", "js")


def write_net(path: Path, sides: int, classes: int, channels: int, output: str) -> None:
    """A model that takes pictures: their channels' means, multiplied by a matrix."""
    helper, numpy = onnx.helper, onnx.numpy_helper
    weights = np.random.default_rng(0).normal(size=(channels, classes)).astype(np.float32)
    kinds = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["input"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["flat"]),
            helper.make_node("MatMul", ["flat", "w"], [output]),
        ],
        path.stem,
        [helper.make_tensor_value_info("input", kinds, ["N", channels, sides, sides])],
        [helper.make_tensor_value_info(output, kinds, ["N", classes])],
        [numpy.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


@pytest.mark.slow
def test_the_readme_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    folder = checkout(tmp_path)
    monkeypatch.chdir(folder)
    write_net(folder / "mnist_cnn.onnx", 28, 10, 1, "logits")
    write_net(folder / "efficientnet_lite0.onnx", 224, 1000, 3, "logits")
    (folder / "chelsea.png").symlink_to(ROOT / "demos/classify/samples/cat.jpg")
    (folder / "imagenet_labels.json").symlink_to(ROOT / "demos/classify/labels.json")
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(ROOT / "README.md"):
        if block.language == "python":
            exec("\n".join(given for part, given in GIVEN.items() if part in block.text), names)
            if "from_file" in block.text:
                shape = ["--input-shape", "input=1x1x28x28"]
                run(["singe", "export", "mnist_cnn.onnx", "-o", "model.wasm", "--freestanding", *shape], folder)
            exec(compile("\n" * block.line + block.text, "README.md", "exec", dont_inherit=True), names)
        elif block.language == "console":
            for command, _ in commands(block.text):
                if not command.startswith(tuple(NOT_RUN)):
                    done = run(["bash", "-c", command.split("  #")[0]], folder)
                    assert done.returncode == 0, f"README.md:{block.line}: {command}\n{done.stdout}{done.stderr}"
        else:
            assert block.language in ELSEWHERE, block
    assert (folder / "public/model/singe.js").is_file()
    assert (folder / "public/digits/model.json").is_file()
