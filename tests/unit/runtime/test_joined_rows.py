"""Elementwise rows that are computed in one pass: which they are, and the text of the kernel that does it."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.dtypes import DTYPES, DType, dtype
from singe.ir.arrays.adapter import Array, ArrayAdapter
from singe.ir.arrays.c_elements import Member, fits, kernel_text, layout_of, width_of
from singe.ir.arrays.numpy import NUMPY_ARRAYS
from singe.ops import ROWS, Elementwise
from singe.runtime.arrays.backend import ArrayBackend
from singe.runtime.eager import EagerDevice
from singe.train import TrainStep
from singe.train.examples.gpt import GPT, GptConfig


class Joining(ArrayAdapter):
    """NumPy's arrays, with joined rows computed one after another."""

    def __init__(self) -> None:
        super().__init__(np)
        self.scope, self.in_place = NUMPY_ARRAYS.scope, self
        self.kernels: list[tuple[int, int]] = []
        self.joined = self._joined

    def _types(self) -> dict[Any, DType]:
        return {np.dtype(getattr(np, name)): kind for name, kind in DTYPES.items() if hasattr(np, name)}

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def copy(self, x: Array) -> Array:
        return np.array(x)

    def shares(self, x: Array, y: Array) -> bool:
        return bool(np.shares_memory(x, y))

    def _joined(
        self, shape: tuple[int, ...], members: Sequence[Member], stored: Sequence[int], inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:  # fmt: skip
        self.kernels.append((len(members), len(stored)))
        values = [np.broadcast_to(x.reshape(()) if x.size == 1 else x, shape) for x in inputs]
        with NUMPY_ARRAYS.scope():
            for m in members:
                values.append(NUMPY_ARRAYS.elementwise(m.row, [values[i] for i in m.args], m.attrs))
        for k, out in zip(stored, outputs, strict=True):
            assert out.shape == shape
            out[...] = values[len(inputs) + k]


def step_on(device: Any, precision: Any = "float32") -> TrainStep:
    config = GptConfig(length=6, width=8, layers=1, heads=2, dropout=0.0)
    model = GPT(11, config).train()

    def loss(model: Any, x: sg.Tensor, y: sg.Tensor) -> sg.Tensor:
        return nn.CrossEntropyLoss()(model(x).reshape(-1, 11), y.reshape(-1))

    return TrainStep(model, sg.optim.AdamW(lr=1e-2, eps=1e-3), loss, device=device, precision=precision, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_step_with_joined_rows_learns_the_same(precision: str) -> None:
    adapter = Joining()
    device = EagerDevice(ArrayBackend("joining", adapter, {}, on_host=False))
    rng = np.random.default_rng(0)
    batches = [rng.integers(0, 11, (2, 2, 6)) for _ in range(2)]
    ours, theirs = step_on(device, precision), step_on("numpy", precision)
    for x, y in batches:
        assert ours(x, y) == pytest.approx(theirs(x, y), rel=1e-5 if precision == "float32" else 2e-3)
    assert max(members for members, _ in adapter.kernels) > 8
    wanted = theirs.state()
    for name, got in ours.state().items():
        np.testing.assert_allclose(
            got, wanted[name], rtol=1e-3, atol=1e-5 if precision == "float32" else 2e-2, err_msg=name
        )


# --- runs as one call --------------------------------------------------------------------------------------------------


class Counting(Joining):
    """Counts the runs that are one call."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            self.runs += 1
            return function(*arguments)

        return called


def test_runs_of_open_sizes_that_recur_are_one_call() -> None:
    """Of the first few sizes: a library keeps what it compiled for each."""
    adapter = Counting()
    device = EagerDevice(ArrayBackend("counting", adapter, {}, on_host=False))
    layers = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Flatten(), nn.Linear(6, 2))
    model, wanted = (sg.Model.of(layers, {"x": ("N", 4)}, device=d) for d in (device, "numpy"))
    one_call = []
    for n in (3, 3, 5, 3, 5, 5, *(n for n in range(6, 12) for _ in range(3))):
        before = adapter.runs
        x = np.random.default_rng(n).random((n, 4), np.float32)
        np.testing.assert_allclose(model(x), wanted(x), rtol=1e-5)
        one_call.append(adapter.runs - before)
    assert one_call == [0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, *([0] * 12)]


# --- the kernel's text, compiled for this CPU -------------------------------------------------------------------------

SHIM: Final = """\
struct Place { unsigned x; };
static Place blockIdx, threadIdx, blockDim = {1};
#define __global__
"""
TOLERANCES: Final = {"float16": 2e-3, "bfloat16": 1e-2}
CALLED: Final = """\
extern "C" void call(unsigned count, void **p) { for (blockIdx.x = 0; blockIdx.x < count; blockIdx.x++) joined(%s, count); }
"""


def called(texts: Sequence[str], folder: Path) -> Any:
    """A library of the functions call0, call1, …: of how many threads there are, and pointers to the arrays of a text."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here, to compile kernels' text as C++")
    first, parts = texts[0].index("typedef unsigned I;"), [SHIM]
    for k, text in enumerate(texts):
        pointers = re.findall(r"(?:const )?([\w ]+) \*[ab]\d+(?=[,)])", text)
        args = ", ".join(f"({kind} *)p[{i}]" for i, kind in enumerate(pointers))
        parts += [text[0 if k == 0 else first :], CALLED % args]
        parts[-2:] = [re.sub(r"\b(joined|call)\(", rf"\g<1>{k}(", part) for part in parts[-2:]]
    # A path of its own: for one that was loaded before, the process gets the library that it has.
    source = Path(tempfile.mkdtemp(dir=folder)) / "joined.cpp"
    made = source.with_suffix(".so")
    source.write_text("\n".join(parts), "utf-8")
    flags = ["-std=c++17", "-O0", "-w", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", str(made), str(source)], check=True, capture_output=True)
    return ctypes.CDLL(str(made))


def numbers(kind: DType, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    if kind.name == "bool":
        return rng.random(shape) < 0.5
    if kind.is_int:
        return rng.integers(-9, 10, shape).astype(kind.numpy)
    found = rng.normal(size=shape) * 3
    found.flat[:3] = np.nan, np.inf, -0.0
    return sg.tensor(found).cast(kind).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bool", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_a_kernel_computes_each_row_as_numpy_does(name: str, tmp_path: Path) -> None:
    kind, rng, cases = dtype(name), np.random.default_rng(0), []
    for row in ROWS.values():
        if not isinstance(row, Elementwise) or row.argument_types:
            continue
        if kind not in row.dtypes or type in map(type, row.defaults.values()):
            continue
        gives = row.result([kind] * row.arity, row.defaults)
        if fits(row, [kind] * row.arity, gives, row.defaults):
            cases.append((row, kind, gives))
    assert len(cases) > 3
    texts, arrays = [], []
    for row, kind, gives in cases:
        shapes = [((3, 8), (8,), (3, 1))[i % 3] for i in range(row.arity)]
        inputs = [numbers(kind, rng, s) for s in shapes]
        out = np.zeros((3, 8), gives.numpy)
        steps = [[s // x.itemsize for s in np.broadcast_to(x, (3, 8)).strides] for x in (*inputs, out)]
        layout = layout_of((3, 8), steps)
        member = Member(row, row.defaults, (kind,) * row.arity, gives, tuple(range(row.arity)))
        texts.append(kernel_text([kind] * row.arity, [member], [0], layout, width_of(layout)))
        arrays.append((inputs, out, 24 // width_of(layout)))
    library = called(texts, tmp_path)
    for k, ((row, kind, _), (inputs, out, count)) in enumerate(zip(cases, arrays, strict=True)):
        pointers = [x.ctypes.data for x in (*inputs, out)]
        getattr(library, f"call{k}")(count, (ctypes.c_void_p * len(pointers))(*pointers))
        with NUMPY_ARRAYS.scope():
            wanted = NUMPY_ARRAYS.elementwise(row, [np.broadcast_to(x, (3, 8)) for x in inputs], row.defaults)
        got, wanted = sg.tensor(out).cast("float64").numpy(), sg.tensor(wanted).cast("float64").numpy()
        np.testing.assert_allclose(
            got, wanted, rtol=TOLERANCES.get(name, 1e-6), atol=1e-6, err_msg=f"{row.name} {kind}"
        )
