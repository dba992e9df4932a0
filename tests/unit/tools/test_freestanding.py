"""Freestanding modules: other engines run them with nothing given, and answer as the device "wasm" does."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import wasmtime
from devices import slow
from networks.control_graphs import IF, counted, nested
from networks.remembering import REMEMBERING

import singe as sg
from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.compiler.target import find_target
from singe.dtypes import bool_, float32, int64
from singe.errors import DeviceError, InputError
from singe.graph import Builder, Graph
from singe.shapes import size
from singe.tools import cli
from singe.tools.export.freestanding import export_freestanding

ROOT = Path(__file__).parents[3]
MODELS = ROOT.parent / "shared" / "models"
EXPORTS: Final = {"memory", "metadata", "input", "output", "run", "reset", "weights"}
Runs = Sequence[Sequence[np.ndarray]]


class Instance:
    """A module in wasmtime, which gives it nothing."""

    def __init__(self, path: Path, weights: Path | None = None) -> None:
        self.store = wasmtime.Store()
        module = wasmtime.Module.from_file(self.store.engine, str(path))
        self.exports = wasmtime.Instance(self.store, module, []).exports(self.store)
        self.memory: Any = self.exports["memory"]
        self.metadata = json.loads(self.read(1 << 15, "metadata").partition(b"\0")[0])
        if weights is not None:
            self.memory.write(self.store, weights.read_bytes(), self("weights"))

    def __call__(self, name: str, *arguments: int) -> int:
        function: Any = self.exports[name]
        return (function(self.store, *arguments) or 0) % (1 << 32)

    def read(self, count: int, name: str, *arguments: int) -> bytes:
        """The bytes at an address that a function gives, `count` of them or as many as there are."""
        at = self(name, *arguments)
        return bytes(self.memory.read(self.store, at, min(at + count, self.memory.data_len(self.store))))

    def run(self, *arrays: np.ndarray) -> list[np.ndarray]:
        for k, (array, x) in enumerate(zip(arrays, self.metadata["inputs"], strict=True)):
            assert (array.dtype.name, list(array.shape), array.nbytes) == (x["dtype"], x["shape"], x["bytes"])
            self.memory.write(self.store, array.tobytes(), self("input", k))
        number = self("run")
        if number:
            raise RuntimeError(self.metadata["errors"][number])
        return [
            np.frombuffer(self.read(y["bytes"], "output", k), y["dtype"]).reshape(y["shape"])
            for k, y in enumerate(self.metadata["outputs"])
        ]


NODE: Final = """
import { readFileSync, writeFileSync } from "node:fs";
const [path, weights, given, made] = process.argv.slice(1);
const { instance } = await WebAssembly.instantiate(readFileSync(path));
const { memory, metadata, input, output, run, weights: at } = instance.exports;
const bytes = new Uint8Array(memory.buffer);
const text = bytes.subarray(metadata(), bytes.indexOf(0, metadata()));
const { inputs, outputs } = JSON.parse(new TextDecoder().decode(text));
if (weights) bytes.set(readFileSync(weights), at());
const all = readFileSync(given), parts = [];
for (let from = 0; from < all.length; ) {
  for (const [k, x] of inputs.entries()) bytes.set(all.subarray(from, (from += x.bytes)), input(k));
  if (run() !== 0) process.exit(1);
  for (const [k, y] of outputs.entries()) parts.push(bytes.slice(output(k), output(k) + y.bytes));
}
writeFileSync(made, Buffer.concat(parts));
"""


def in_wasmtime(path: Path, weights: Path | None, runs: Runs) -> list[list[np.ndarray]]:
    instance = Instance(path, weights)
    return [instance.run(*arrays) for arrays in runs]


def in_node(path: Path, weights: Path | None, runs: Runs) -> list[list[np.ndarray]]:
    if shutil.which("node") is None:
        pytest.skip("no node here")
    given, made = path.with_suffix(".given"), path.with_suffix(".made")
    given.write_bytes(b"".join(a.tobytes() for arrays in runs for a in arrays))
    files = [str(path), str(weights or ""), str(given), str(made)]
    subprocess.run(["node", "--input-type=module", "-e", NODE, *files], check=True, timeout=60)
    return split(Instance(path).metadata, made.read_bytes(), len(runs))


def split(metadata: Mapping[str, Any], data: bytes, runs: int) -> list[list[np.ndarray]]:
    """The outputs of runs, whose bytes follow each other."""
    found: list[list[np.ndarray]] = []
    for _ in range(runs):
        found.append([])
        for y in metadata["outputs"]:
            found[-1].append(np.frombuffer(data[: y["bytes"]], y["dtype"]).reshape(y["shape"]))
            data = data[y["bytes"] :]
    return found


ENGINES: Final = {"wasmtime": in_wasmtime, "node": in_node}


# --- models -----------------------------------------------------------------------------------------------------------


def mnist(device: Any) -> sg.Model:
    if not (MODELS / "mnist_cnn.onnx").exists():
        pytest.skip("needs ../shared/models")
    return sg.load(MODELS / "mnist_cnn.onnx", device, {"input": (2, 1, 28, 28)})


def transformer(device: Any) -> sg.Model:
    layer = sg.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, rng=0)
    return sg.Model.of(sg.nn.TransformerEncoder(layer, 2).eval().to(device), {"x": (2, 5, 16)}, device)


def recurrent(device: Any) -> sg.Model:
    net = sg.nn.LSTM(6, 7, num_layers=2, bidirectional=True, rng=0).to(device)
    return sg.Model.of(lambda x: net(x)[0], {"x": (5, 3, 6)}, device)


def loops(device: Any) -> sg.Model:
    b = Builder()
    x = b.input("x", (), int64)
    return sg.Model(Graph((x,), nested(b, x, 8), ("v", "t")), device)


def constant(device: Any) -> sg.Model:
    """Outputs that no kernel computes: a constant, an input, and one value twice."""
    b = Builder()
    x = b.input("x", (3,), float32)
    y = b.exp(x)
    return sg.Model(Graph((x,), (b.const(np.arange(4.0)), x, y, y), ("c", "x", "y", "z")), device)


def donating(device: Any) -> sg.Model:
    def put(cache: sg.Tensor, row: sg.Tensor) -> Any:
        return {"updated": cache.update_slice(row, 1, 0), "total": cache.sum(0)}

    return sg.Model.of(put, {"cache": (4, 3), "row": (1, 3)}, device, donate=["cache"])


CASES: Final[Mapping[str, Callable[[Any], sg.Model]]] = {
    "mnist_cnn": mnist, "transformer": transformer, "recurrent": recurrent, "loops": loops, "constant": constant,
    "donating": donating, **{name: case.model for name, case in REMEMBERING.items()},
}  # fmt: skip
"""Models whose shapes are numbers."""


def drawn(model: sg.Model, runs: int = 3) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    shapes = [(tuple(map(int, x.shape or ())), x.dtype) for x in model.inputs]
    return [
        [np.asarray(rng.normal(size=s) if d.is_float else rng.integers(0, 2, s), d.numpy) for s, d in shapes]
        for _ in range(runs)
    ]


@pytest.fixture(scope="module")
def plain() -> Iterator[sg.Device]:
    """The device "wasm" without relaxed SIMD, whose sums are then those of a freestanding module."""
    device: Any = sg.Wasm()
    engine = device.backend.engine
    features, engine.features = engine.features, frozenset()
    yield device
    engine.features = features


# --- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weights", ["separate", *slow("inside")])
@pytest.mark.parametrize("name", CASES)
def test_every_engine_answers_as_the_device_does(
    name: str, weights: str, engine: str, plain: sg.Wasm, tmp_path: Path
) -> None:
    """Three runs, bit for bit, states included."""
    model = CASES[name](plain)
    written = export_freestanding(model, tmp_path / "m.wasm", weights=weights)
    assert sorted(written) == sorted(path.name for path in tmp_path.iterdir())
    runs = drawn(model)
    beside = tmp_path / "m.weights" if weights == "separate" else None
    got = ENGINES[engine](tmp_path / "m.wasm", beside, runs)
    program = model.program()
    for arrays, outputs in zip(runs, got, strict=True):
        for mine, wanted in zip(outputs, program.run(arrays), strict=True):
            assert (mine.dtype, mine.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("weights", ["inside", "separate"])
@pytest.mark.parametrize("name", REMEMBERING)
def test_a_reset_gives_states_their_first_values(name: str, weights: str, tmp_path: Path) -> None:
    model = REMEMBERING[name].model("numpy")
    export_freestanding(model, tmp_path / "m.wasm", weights=weights)
    instance = Instance(tmp_path / "m.wasm", tmp_path / "m.weights" if weights == "separate" else None)
    assert instance.metadata["states"] == [s.name for s in model.program().states]
    runs = drawn(model)
    first = [instance.run(*arrays) for arrays in runs]
    instance("reset")
    for arrays, outputs in zip(runs, first, strict=True):
        for a, b in zip(instance.run(*arrays), outputs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_module_exports_what_is_documented_and_imports_nothing(tmp_path: Path) -> None:
    export_freestanding(transformer("numpy"), tmp_path / "a.wasm")
    export_freestanding(transformer("numpy"), tmp_path / "b.wasm")
    assert (tmp_path / "a.wasm").read_bytes() == (tmp_path / "b.wasm").read_bytes()
    module = wasmtime.Module.from_file(wasmtime.Engine(), str(tmp_path / "a.wasm"))
    assert not module.imports
    assert {e.name for e in module.exports} == EXPORTS
    section = (
        (ROOT / "static" / "README.md").read_text().partition("## The freestanding module")[2].partition("\n## ")[0]
    )
    assert set(re.findall(r"^\| `(\w+)", section, re.M)) == EXPORTS
    instance = Instance(tmp_path / "a.wasm")
    assert set(instance.metadata) == set(re.findall(r"^- `(\w+)`", section, re.M))
    assert instance("weights") == 0
    for name in ("input", "output"):
        assert instance(name, 0) % 256 == 0 < instance(name, 0)
        assert instance(name, 1) == instance(name, -1) == 0


def test_a_run_that_takes_a_branch_that_cannot_run_is_refused(tmp_path: Path) -> None:
    b = Builder()
    p, x = b.input("p", (), bool_), b.input("x", (2, 3), float32)
    inner = b.input("x", x.shape, float32)
    then = b.graph([inner], [b.exp(inner)])
    otherwise = b.graph([inner], [b.expand(b.const(0, float32), shape=x.shape)], {-1: "p must hold"})
    model = sg.Model(Graph((p, x), (b.apply(IF, p, x, then=then, otherwise=otherwise),), ("y",)), "numpy")
    export_freestanding(model, tmp_path / "a.wasm")
    instance, given = Instance(tmp_path / "a.wasm"), np.arange(6, dtype=np.float32).reshape(2, 3)
    for _ in range(2):
        np.testing.assert_allclose(instance.run(np.array(True), given)[0], np.exp(given), rtol=1e-6)
        with pytest.raises(RuntimeError, match=r"^p must hold$"):
            instance.run(np.array(False), given)


def test_weights_are_required_where_they_are_separate(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        net = sg.nn.Linear(3, 2, rng=seed)
        export_freestanding(sg.Model.of(net, {"x": (1, 3)}, "numpy"), tmp_path / f"{name}.wasm", weights="separate")
    (x,) = drawn(sg.Model.of(net, {"x": (1, 3)}, "numpy"))[0]
    for beside in (None, tmp_path / "b.weights"):
        instance = Instance(tmp_path / "a.wasm", beside)
        assert instance("run") == 1
        assert "weights are missing" in instance.metadata["errors"][1]
    instance = Instance(tmp_path / "a.wasm", tmp_path / "a.weights")
    assert instance.metadata["weights"] == (tmp_path / "a.weights").stat().st_size
    assert instance.run(x)[0].shape == (1, 2)


@pytest.mark.parametrize("gigabytes", [2.5, 5])
def test_a_memory_may_end_at_four_gigabytes(gigabytes: float, tmp_path: Path) -> None:
    """Kernels take addresses above 2 GiB, which engines show as negative numbers."""
    b = Builder()
    large, x = b.input("large", (int(gigabytes * 1e9 / 4),), float32), b.input("x", (33, 40), float32)
    model = sg.Model(Graph((large, x), (b.matmul(x, b.transpose(x, perm=(1, 0))),), ("y",)), "numpy")
    if gigabytes > 4:
        with pytest.raises(
            DeviceError, match=r"the module needs 5\.0 GB of memory or more, at most 4 GiB are possible"
        ):
            export_freestanding(model, tmp_path / "m.wasm")
        return
    export_freestanding(model, tmp_path / "m.wasm")
    instance = Instance(tmp_path / "m.wasm")
    array = np.random.default_rng(0).integers(-5, 5, (33, 40)).astype(np.float32)
    assert instance("input", 1) > 1 << 31
    instance.memory.write(instance.store, array.tobytes(), instance("input", 1))
    assert instance("run") == 0
    got = np.frombuffer(instance.read(33 * 33 * 4, "output", 0), np.float32)
    np.testing.assert_array_equal(got.reshape(33, 33), array @ array.T)


def found() -> Graph:
    b = Builder()
    x = b.input("x", (5,), bool_)
    return Graph((x,), (b.nonzero(x),), ("y",), b.size_nodes)


def texts() -> Graph:
    b = Builder()
    x = b.input("x", (2,), sg.string)
    return Graph((x,), (x,), ("y",))


def turned() -> Graph:
    """A size that an input gives in mid-run."""
    b = Builder()
    n, x = b.input("n", (), int64), b.input("x", (), float32)
    v = b.input("v", (), float32)
    made = counted(b, Graph((v,), (b.const(True), b.add(v, v)), ("c", "v")), b.size_of(n), x)
    return Graph((n, x), made, ("y",), b.size_nodes)


def open_shape() -> Graph:
    b = Builder()
    x = b.input("x", (size("N"), 3), float32)
    return Graph((x,), (b.exp(x),), ("y",))


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (found, r"no host, and these ops of the model run there: nonzero \(the shape of its result depends on data\)"),
        (texts, "has no strings|no host"),
        (turned, "fixed layout, and the model finds sizes in mid-run: "),
        (open_shape, r"open dimensions: x \(N, 3\)\. Give numbers .* --input-shape x=1x3"),
    ],
)
def test_what_a_module_cannot_hold_is_refused(graph: Callable[[], Graph], why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=why):
        export_freestanding(sg.Model(graph(), "numpy"), tmp_path / "m.wasm")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_integers_answer_as_on_the_device(plain: sg.Wasm, tmp_path: Path) -> None:
    model = mnist(plain)
    sizes = [
        sum(export_freestanding(model, tmp_path / "m.wasm", activations=kind).values()) for kind in ("float32", "int8")
    ]
    assert sizes[1] < 0.4 * sizes[0]
    (arrays,) = drawn(model, 1)
    data = compile_graph(model.graph(), find_target("wasm"), Options("int8"))
    wanted = sg.Program(data, plain).run(arrays)
    np.testing.assert_array_equal(Instance(tmp_path / "m.wasm").run(*arrays)[0], wanted[0])


def test_the_command_line_writes_a_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sg.save(sg.Model.of(sg.nn.Linear(3, 2, rng=0), {"x": ("N", 3)}, "numpy"), tmp_path / "m.singe")
    command = ["export", str(tmp_path / "m.singe"), "-o", str(tmp_path / "m.wasm"), "--freestanding"]
    numbers = ["--input-shape", "x=4x3"]
    assert cli.main([*command, *numbers, "--weights", "separate", "--activations", "int8"]) == 0
    told = capsys.readouterr().out
    for part in ("m.wasm", "m.weights", "input(0)", "x: float32(4, 3)", "output(0)", "float32(4, 2)"):
        assert part in told
    assert Instance(tmp_path / "m.wasm", tmp_path / "m.weights").run(np.ones((4, 3), np.float32))[0].shape == (4, 2)
    refused = {
        (): r"open dimensions: x \(N, 3\)",
        (*numbers, "--dtype", "int8"): "--dtype is for the folder of a page",
        (*numbers, "--mean", "1"): "--mean is for the folder of a page",
        (*numbers, "-o", str(tmp_path / "folder")): "expected the name of a file that ends with .wasm",
    }
    for options, why in refused.items():
        assert cli.main([*command, *options]) == 2
        assert re.search(why, capsys.readouterr().err)
    assert cli.main([*command[:-1], *numbers, "--weights", "separate"]) == 2
    assert "needs --freestanding" in capsys.readouterr().err


# --- the programs of demos/freestanding -------------------------------------------------------------------------------

DEMOS: Final = ROOT / "demos" / "freestanding"


HEADER: Final = """
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define WASMTIME_I32 0
typedef struct wasm_engine wasm_engine_t;
typedef struct wasm_trap wasm_trap_t;
typedef struct wasmtime_context wasmtime_context_t;
typedef struct wasmtime_error wasmtime_error_t;
typedef struct wasmtime_module wasmtime_module_t;
typedef struct wasmtime_store wasmtime_store_t;
typedef struct { uint64_t all[sizeof_func / 8]; } wasmtime_func_t;
typedef struct { uint64_t all[sizeof_memory / 8]; } wasmtime_memory_t;
typedef struct { uint64_t all[sizeof_instance / 8]; } wasmtime_instance_t;
typedef struct {
  uint8_t kind;
  union { wasmtime_func_t func; wasmtime_memory_t memory; uint64_t all[sizeof_extern / 8 - 1]; } of;
} wasmtime_extern_t;
typedef struct { uint8_t kind; union { int32_t i32; uint64_t all[sizeof_val / 8 - 1]; } of; } wasmtime_val_t;
wasm_engine_t *wasm_engine_new(void);
wasmtime_store_t *wasmtime_store_new(wasm_engine_t *, void *, void (*)(void *));
wasmtime_context_t *wasmtime_store_context(wasmtime_store_t *);
wasmtime_error_t *wasmtime_module_new(wasm_engine_t *, const uint8_t *, size_t, wasmtime_module_t **);
wasmtime_error_t *wasmtime_instance_new(
  wasmtime_context_t *, const wasmtime_module_t *, const wasmtime_extern_t *, size_t, wasmtime_instance_t *, wasm_trap_t **);
bool wasmtime_instance_export_get(
  wasmtime_context_t *, const wasmtime_instance_t *, const char *, size_t, wasmtime_extern_t *);
wasmtime_error_t *wasmtime_func_call(
  wasmtime_context_t *, const wasmtime_func_t *, const wasmtime_val_t *, size_t, wasmtime_val_t *, size_t, wasm_trap_t **);
uint8_t *wasmtime_memory_data(const wasmtime_context_t *, const wasmtime_memory_t *);
"""
"""What run.c uses of wasmtime.h. wasmtime's Python package has the library and no headers; the sizes of structures are
those of its bindings."""


def compiled(folder: Path) -> list[str]:
    """run.c, compiled against the library in wasmtime's Python package."""
    library = next(iter(Path(wasmtime.__file__).parent.glob("*/_libwasmtime.so")), None)
    if shutil.which("cc") is None or library is None:
        pytest.skip("no C compiler, or no libwasmtime, here")
    (folder / "wasmtime.h").write_text(HEADER)
    made = str(folder / "run")
    kinds = ("func", "memory", "instance", "extern", "val")
    sizes = [f"-Dsizeof_{kind}={ctypes.sizeof(getattr(wasmtime._bindings, f'wasmtime_{kind}_t'))}" for kind in kinds]
    command = ["cc", "-Wall", "-Werror", *sizes, f"-I{folder}", str(DEMOS / "run.c"), str(library), "-o", made]
    subprocess.run([*command, f"-Wl,-rpath,{library.parent}"], check=True, timeout=60)
    return [made]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "node", "c"])
def test_the_demos_run_a_model(language: str, plain: sg.Wasm, tmp_path: Path) -> None:
    def digits(x: sg.Tensor) -> Any:
        return {"logits": net(x.reshape(1, 28 * 28))}

    net = sg.nn.Linear(28 * 28, 10, rng=0).to(plain)
    model = sg.Model.of(digits, {"input": (1, 1, 28, 28)}, plain)
    export_freestanding(model, tmp_path / "m.wasm")
    if language == "node" and shutil.which("node") is None:
        pytest.skip("no node here")
    commands = {"python": [sys.executable, str(DEMOS / "run.py")], "node": ["node", str(DEMOS / "run.mjs")]}
    command = compiled(tmp_path) if language == "c" else commands[language]
    told = subprocess.run(
        [*command, str(tmp_path / "m.wasm")], check=True, timeout=60, capture_output=True, text=True
    ).stdout.split()
    (wanted,) = model.program().run([np.full((1, 1, 28, 28), 0.5, np.float32)])
    assert told[0] == "logits"
    np.testing.assert_array_equal(np.array(told[1:], np.float32), wanted[0])


def test_the_example_of_the_readme_runs(plain: sg.Wasm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = (ROOT / "README.md").read_text().partition("## In any WebAssembly engine")[2]
    code = re.findall(r"```python\n(.*?)```", section, re.S)[0]
    net = sg.nn.Linear(28 * 28, 10, rng=0).to(plain)
    model = sg.Model.of(lambda x: net(x.reshape(1, 28 * 28)), {"input": (1, 1, 28, 28)}, plain)
    monkeypatch.chdir(tmp_path)
    sg.export_freestanding(model, "model.wasm")
    made: dict[str, Any] = {}
    exec(code, made)
    (wanted,) = model.program().run([np.full((1, 1, 28, 28), 0.5, np.float32)])
    np.testing.assert_array_equal(made["logits"], wanted[0])
