"""Small valid ONNX models with a few changes: each is refused with an error of Singe's, or runs; in little time and memory.

The models are ONNX's node cases, those of tests beside this one, and TEXTS; see onnx_changes.py for what is changed. A run
of pytest tries some of each device;

    nice python tests/conformance/drawn/test_changed_models.py numpy 0 20000

tries these seeds, and prints each kind of failure once, with the seeds; `--beside` also compares results with onnxruntime's.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "support")]
sys.path.append(str(Path(__file__).parents[1] / "nodes"))  # their cases are changed here, too

import numpy as np
import op_draws
import pytest
from forked import forked
from onnx import ModelProto, helper, parser
from onnx_cases import every_case
from onnx_changes import change
from onnx_devices import array_of
from onnx_subject import Subject, nodes
from peer import session
from test_microsoft import CASES, FORMS
from test_onnx_ml import NODES
from test_onnx_ml import model as ml_model

import singe as sg
from singe.errors import SingeError
from singe.runtime.devices import device as open_device
from singe.shapes import known, product, symbols

SECONDS: Final = 2.0
"""The most time that the processor may take for a case."""
MOST_BYTES: Final = 500 << 20
"""The most memory that a case may take."""
LARGE: Final = 64 << 20
"""A Program of more bytes is compiled and not run: what it takes is what the model asks for."""
DRAWN: Final = 300
"""How many models op_draws draws."""

HEAD: Final = '<ir_version: 8, opset_import: ["" : 18, "own" : 1]>\n'
TEXTS: Final = [
    """agraph (float[N, 3] x, bool c) => (y) {
        s = Shape (x)
        y = If (c) <then_branch = a () => (float[N, 3] t) { t = Add (x, x) },
                    else_branch = b () => (float[N, 3] e) { z = ConstantOfShape (s) e = Sub (z, x) }>
    }""",
    """agraph (float[2] x, int64 m, bool c) => (last, all) {
        last, all = Loop (m, c, x) <body = turn (int64 i, bool d, float[2] v) => (bool again, float[2] w, float[2] shown) {
            again = Identity (d) w = Add (v, x) number = Cast <to = 1> (i) shown = Mul (w, number) }>
    }""",
    """agraph (float[N, 2] x, int64 m) => (y) {
        y = Loop (m, , x) <body = turn (int64 i, bool d, float[K, 2] v) => (bool again, float[L, 2] w) {
            again = Identity (d) w = Concat <axis = 0> (v, x) }>
    }""",
    """agraph (float[2] h, float[T, 2] x) => (last, all) {
        last, all = Scan <num_scan_inputs = 1, body = turn (float[2] v, float[2] e) => (float[2] w, float[2] o) {
            w = Add (v, e) o = Tanh (w) }> (h, x)
    }""",
    """agraph (float[N, 4] x) => (y, n) {
        zero = Constant <value = int64 {0}> ()
        s = SplitToSequence <axis = 1> (x)
        n = SequenceLength (s)
        e = SequenceAt (s, zero)
        t = SequenceInsert (s, e)
        u = SequenceErase (t, zero)
        y = ConcatFromSequence <axis = 1> (u)
    }""",
    """agraph (seq(float[N]) s) => (y) {
        y = SequenceMap (s) <body = each (float[N] a) => (float[N] b) { b = Relu (a) }>
    }""",
    """agraph (float[N, 3] x) => (y) {
        o = Optional (x)
        h = OptionalHasElement (o)
        y = If (h) <then_branch = a () => (float[N, 3] t) { t = OptionalGetElement (o) },
                    else_branch = b () => (float[N, 3] e) { e = Neg (x) }>
    }""",
    """agraph (float[N, 3] x) => (y) { a = own.outer <alpha = 0.5> (x) y = own.leaf (a, x) }
    <domain: "own", opset_import: ["" : 18, "own" : 1]> outer <alpha> (a) => (b) {
        t = LeakyRelu <alpha: float = @alpha> (a)
        b = own.leaf (t, a)
    }
    <domain: "own", opset_import: ["" : 18]> leaf (a, b) => (c) { t = MatMul (a, k) k = Transpose (b) c = Relu (t) }""",
    """agraph (float[N, 3] x) => (y) <float s = {0.1}, uint8 z = {3}, int8[3, 2] w = {1, -2, 3, 4, -5, 6}, float[2] ws = {0.5, 2.0}> {
        q = QuantizeLinear (x, s, z)
        d = DequantizeLinear (q, s, z)
        v = DequantizeLinear <axis = 1> (w, ws)
        m = MatMul (d, v)
        r = QuantizeLinear (m, s, z)
        y = DequantizeLinear (r, s, z)
    }""",
    """agraph (float[1, C, H, W] x) => (y) <int64[1] one = {1}, int64[1] two = {2}, int64[1] zero = {0}, int64[1] most = {4}> {
        s = Shape (x)
        h = Slice (s, zero, two)
        w = Slice (s, two, most)
        d = Mul (w, two)
        z = Concat <axis = 0> (h, d)
        r = Resize <mode = "linear"> (x, , , z)
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
        f = Flatten (p)
        y, i = TopK (f, one)
    }""",
    """agraph (float[N] x) => (y) {
        n = NonZero (x)
        t = Transpose (n)
        g = GatherND (x, t)
        u, i, v, c = Unique <sorted = 1> (g)
        y = ScatterElements <axis = 0> (x, i, g)
    }""",
]  # fmt: skip
"""Graphs that own graphs, functions, lists, optionals, quantised products and computed shapes, in the language of onnx.parser."""


@cache
def corpus() -> list[tuple[ModelProto, Mapping[str, Any]]]:
    """Valid models with values for their inputs (a text's are drawn)."""
    found: list[tuple[ModelProto, Mapping[str, Any]]] = []
    for case in every_case():
        values = [array_of(a) for a in case.data_sets[0][0]]
        found.append((case.model, {v.name: x for v, x in zip(case.model.graph.input, values, strict=False)}))
    found += [(c.model(), c.given()) for c in (*CASES.values(), *(c for pair in FORMS.values() for c in pair))]
    for op, xs, attributes in NODES:
        model = ModelProto.FromString(ml_model(op, xs, **attributes))
        found.append((model, {f"x{k}": x for k, x in enumerate(xs)}))
    drawn = (op_draws.draw(seed) for seed in range(DRAWN))
    found += [(case.model, case.feed) for case in drawn]
    texts = [(parser.parse_model(HEAD + text), {}) for text in TEXTS]
    return found + texts * 20


def case(seed: int) -> tuple[Subject, str]:
    """A changed model, and what was changed."""
    rng, models = random.Random(seed), corpus()
    model, feed = models[rng.randrange(len(models))]
    own = ModelProto()
    own.CopyFrom(model)
    subject = Subject(rng, own, dict(feed), lambda: models[rng.randrange(len(models))][0])
    made = change(subject)
    return subject, f"{model.graph.name}: {made}"


def given(subject: Subject) -> dict[str, Any]:
    """Values for a model's inputs: those of the model that was changed, or drawn ones of the type that is declared."""
    rng, values = subject.rng, {}
    generator, lengths = np.random.default_rng(rng.randrange(1 << 30)), {}
    constants = {t.name for t in subject.model.graph.initializer}
    for v in subject.model.graph.input:
        if v.name in constants:
            continue
        t = v.type.tensor_type
        dims = [
            d.dim_value
            if d.HasField("dim_value")
            else lengths.setdefault(d.dim_param or id(d), rng.choice((2, 3, 1, 0)))
            for d in t.shape.dim
        ]
        try:
            kind = helper.tensor_dtype_to_np_dtype(t.elem_type)
        except KeyError:
            kind = np.dtype("float32")
        value = subject.feed.get(v.name)
        if isinstance(value, np.ndarray) and rng.random() < 0.5 and kind.kind in "fiub" and value.dtype.kind in "fiub":
            with warnings.catch_warnings(action="ignore"):
                value = value.astype(kind)
        if value is None:
            if any(d < 0 for d in dims) or np.prod(dims, dtype=float) > 1 << 16:
                dims = [1] * len(dims)
            value = generator.integers(0, 4, dims)
            value = value.astype(str).astype(object) if kind.kind == "O" else value.astype(kind)
            if v.type.HasField("sequence_type"):
                value = [np.zeros(3, np.float32)] * rng.randrange(4)
        values[v.name] = value
    return values


class TooLong(BaseException):
    """A case takes too much of the processor's time."""


def _too_long(_: int, __: FrameType | None) -> None:
    raise TooLong


def attempt(device_name: str, subject: Subject) -> tuple[str, list[Any]]:
    """Load, compile and run a model: "refused" (also in the run), "large" (compiled, not run), "endless" (a loop that goes on
    for longer than the time), or "run" with the results."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in subject.files.items():
            Path(folder, name).write_bytes(data)
        try:
            data = subject.model.SerializeToString()
            if subject.files:
                Path(folder, "model.onnx").write_bytes(data)
            model = sg.load(Path(folder, "model.onnx") if subject.files else data, device=device_name)
            values = given(subject)
            own, arrays = model.bound((values,), {})
            program = own.program({name: x.shape for name, x in arrays.items()}, arrays)
            if bytes_of(program, arrays) > LARGE:
                return "large", []
            try:
                return "run", own.results(program, program.run([arrays[p.name] for p in program.inputs]))
            except TooLong:
                if has_loops(subject):
                    return "endless", []
                raise
        except SingeError:
            return "refused", []


def has_loops(subject: Subject) -> bool:
    return any(n.op_type in ("Loop", "Scan") for n in nodes(subject.model))


def bytes_of(program: sg.Program, arrays: Mapping[str, np.ndarray]) -> int:
    """The bytes of all values of a Program in a run over these arrays, without those whose sizes the run finds."""
    sizes = program.data.sizes({p.name: arrays[p.name].shape for p in program.inputs})
    counts = ((b, product(b.shape)) for b in program.data.buffers)
    return sum(known(n, sizes) * b.dtype.numpy.itemsize for b, n in counts if symbols(n) <= sizes.keys())


def failure(device_name: str, seed: int, beside: bool) -> tuple[str, str]:
    """What a case came to, and what is wrong with it: "" if nothing is. In a process of its own, which it may end."""
    warnings.simplefilter("ignore")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    subject, _ = case(seed)
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (2 * int(SECONDS) + 1,) * 2)  # compiled code ends so, not by the timer
    try:
        outcome, results = attempt(device_name, subject)
    except BaseException as e:
        return "failed", place_of(e) + "\n" + "".join(traceback.format_exception(e, limit=-6))
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if taken > MOST_BYTES:
        return "failed", f"memory: {outcome} with {taken >> 20} MB"
    signal.setitimer(signal.ITIMER_PROF, 0)
    if beside and outcome == "run":
        subject = case(seed)[0]
        return outcome, differs(subject, results)
    return outcome, ""


def place_of(e: BaseException) -> str:
    """An error's type, and the last place in Singe that it went through."""
    frames = [f for f in traceback.extract_tb(e.__traceback__) if "/singe" in f.filename]
    where = (
        f"{frames[-1].filename.partition('/singe')[2]}:{frames[-1].lineno} {frames[-1].name}" if frames else "outside"
    )
    return f"{type(e).__name__} at {where}"


def differs(subject: Subject, results: list[Any]) -> str:
    """How onnxruntime's results are others; "" if they are not, or if it refuses the model."""
    try:
        wanted = session(subject.model, as_written=True).run(None, given(subject))
    except Exception:  # onnxruntime's errors have no common class
        return ""
    for got, want in zip(results, wanted, strict=True):
        if not isinstance(got, np.ndarray) or not isinstance(want, np.ndarray) or want.dtype == object:
            continue
        if (got.dtype, got.shape) != (want.dtype, want.shape):
            return f"beside onnxruntime: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
        if got.dtype.kind in "fiub" and not np.allclose(
            got.astype(float), want.astype(float), 1e-2, 1e-2, equal_nan=True
        ):
            return f"beside onnxruntime: {got.ravel()[:5]}, expected {want.ravel()[:5]}"
    return ""


def outcome_text(device_name: str, seed: int, beside: bool) -> str:
    """What `failure` finds, as one text."""
    try:
        return "\0".join(failure(device_name, seed, beside))
    except BaseException as e:
        return "failed\0" + place_of(e)


def outcomes(device_name: str, seeds: range, beside: bool = False) -> Iterator[tuple[int, str, str]]:
    """Each seed, what its case came to, and what is wrong with it. Each case has a process of its own."""
    open_device(device_name)
    corpus()
    for seed in seeds:
        found, ended, _ = forked(partial(outcome_text, device_name, seed, beside), 60)
        outcome, _, text = found.partition("\0")
        if ended:
            endless = ended in (signal.SIGKILL, signal.SIGXCPU) and has_loops(case(seed)[0])
            outcome, text = ("endless", "") if endless else ("failed", f"ended by signal {ended}")
        yield seed, outcome, text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device_name", "first"),
    [(name, first) for name, start in (("numpy", 0), ("wasm", 75)) for first in range(start, start + 75, 25)],
    indirect=["device_name"],
)
def test_changed_models_are_refused_or_run(device_name: str, first: int) -> None:
    """In a process of its own: it forks, which processes with threads of wgpu and wasmtime must not."""
    done = subprocess.run(
        [sys.executable, __file__, device_name, str(first), str(first + 25)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description="Load and run changed ONNX models.")
    parser.add_argument("device")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--beside", action="store_true", help="compare results with onnxruntime's")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong: dict[str, list[int]] = {}
    for seed, outcome, text in outcomes(options.device, range(options.first, options.end), options.beside):
        counts[outcome] += 1
        if counts.total() % 1000 == 0:
            print(f"after {counts.total()}: {dict(counts)}", flush=True)
        if text:
            first = text.partition("\n")[0]
            if first not in wrong:
                print(f"--- seed {seed} on {options.device} ({case(seed)[1]}): {text}", flush=True)
            wrong.setdefault(first, []).append(seed)
    for first, seeds in wrong.items():
        print(f"{first}: {len(seeds)}: {', '.join(map(str, seeds[:8]))}")
    failed = sum(map(len, wrong.values()))
    print(f"{failed} failed of {counts.total()} on {options.device}: {dict(counts)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
