"""The README of ops adds four rows; a copy of the package has its blocks in the files that it names, word for word."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import singe

CHECKS = """
import numpy as np
import singe as sg
import singe.array_api as xp
from onnx import TensorProto, helper

assert sg.__file__.startswith(FOLDER), sg.__file__
A = np.array([[1.0, 8.0, 3.0], [0.5, 2.0, 27.0]], np.float32)


def gradient(function):
    x = sg.tensor(A, device=sg.Autodiff("numpy"), requires_grad=True)
    return function(x).sum().backward()[x].numpy()


def slope(function, step=1e-4):
    parts = []
    for place in np.ndindex(A.shape):
        moved = np.zeros(A.shape)
        moved[place] = step
        parts.append((function(A + moved).sum() - function(A - moved).sum()) / (2 * step))
    return np.reshape(parts, A.shape)


def check(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def mean_and_variance(a, axis):
    return a.mean(axis, keepdims=True), a.var(axis, keepdims=True)


def unit_length(a, axis=-1):
    return a / np.sqrt((a * a).sum(axis, keepdims=True))


for device in ("numpy", "wasm"):
    x = sg.tensor(A, device=device)
    check(x.cbrt().numpy(), np.cbrt(A))
    check(x.cube_root().numpy(), np.cbrt(A))
    check(sg.cbrt(-x).numpy(), np.cbrt(-A))
    check(sg.tensor([27, 8], device=device).cbrt().numpy(), [3, 2])
    check(xp.cbrt(x).numpy(), np.cbrt(A))
    check(x.sum_of_squares().numpy(), (A * A).sum())
    check(x.sum_of_squares(dim=0, keepdim=True).numpy(), (A * A).sum(0, keepdims=True))
    check(sg.sum_of_squares(x, (0, 1)).numpy(), (A * A).sum())
    check(sg.tensor([3, 4], device=device).sum_of_squares(0).numpy(), 25)
    check(sg.tensor(3.0, device=device).sum_of_squares(0).numpy(), 9)
    check(x.unit_length().numpy(), unit_length(A))
    check(sg.unit_length(x, dim=0).numpy(), unit_length(A, 0))
    for got, want in zip(x.mean_and_variance(dim=0), mean_and_variance(A, 0), strict=True):
        check(got.numpy(), want)
    mean, variance = sg.mean_and_variance(x, 1)
    check(variance.numpy(), A.var(1, keepdims=True))

check(gradient(sg.cbrt), slope(np.cbrt))
check(gradient(sg.sum_of_squares), slope(lambda a: (a * a).sum()))
check(gradient(lambda x: sg.unit_length(x)[:, 0]), slope(lambda a: unit_length(a)[:, 0]))
check(gradient(lambda x: x.mean_and_variance()[1]), slope(lambda a: a.var(1)))

try:
    np.cbrt(x)
except sg.InputError as e:
    assert "write x.cbrt(), or np.cbrt of x.numpy()" in str(e), e
else:
    raise AssertionError("np.cbrt took a Tensor")


def imported(op, count, **attributes):
    ports = [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, None) for k in range(count)]
    node = helper.make_node(op, ["x"], [f"y{k}" for k in range(count)], domain="com.example", **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.example", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], ports), opset_imports=opsets, ir_version=10)
    with open("model.onnx", "wb") as file:
        file.write(model.SerializeToString())
    return sg.load("model.onnx", device="numpy")(A)


check(imported("CubeRoot", 1), np.cbrt(A))
check(imported("SumOfSquares", 1, axes=[1]), (A * A).sum(1, keepdims=True))
check(imported("UnitLength", 1, axis=0), unit_length(A, 0))
found = imported("MeanAndVariance", 2, axis=1)
check(found["y0"], A.mean(1, keepdims=True))
check(found["y1"], A.var(1, keepdims=True))
assert {"cbrt", "cube_root", "sum_of_squares", "unit_length", "mean_and_variance"} <= {*dir(sg)}
assert sg.cbrt.__doc__ == sg.cube_root.__doc__ == "the cube root"
print("all was made")
"""


@pytest.mark.slow
def test_the_ops_of_the_readme_are_added_by_its_blocks_alone(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    package = tmp_path / "singe"
    shutil.copytree(Path(singe.__file__).parent, package)
    blocks = re.findall(
        r"^```python (\S+)\n(.*?)^```$", (package / "ops" / "README.md").read_text("utf-8"), re.M | re.S
    )
    assert len(blocks) == 4
    for name, text in blocks:
        with (package / "ops" / name).open("a", encoding="utf-8") as file:
            file.write(f"\n\n{text}")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", f"FOLDER = {str(package)!r}\n{CHECKS}"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("all was made\n"), done.stderr
