"""`singe bench`: measures how fast a model runs on a device, and how fast the device is, as data and as text."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ... import __version__
from ...dtypes import DType, float32
from ...errors import DeviceError, InputError
from ...graph import Builder, Graph
from ...late_dataclass import dataclass
from ...model.arguments import TensorSpec
from ...model.model import Model
from ...model.profiling import Profile, timed_executable
from ...model.program import Program
from ...report import LEFT, RIGHT, fields, quantity, seconds, table
from ...runtime.device import Device
from ...shapes import Size, bytes_text, show
from .profiling import Peaks, describe_profile, profile_data

BUDGET: Final = 2.0
"""Seconds to run for, if the number of runs is not given."""
RUNS: Final = (5, 200)
"""The fewest and the most runs in that time."""
GEMMS: Final = (512, 4096)
"""The smallest and largest side of the matrix products that measure a device's peak."""
COPIES: Final = (1 << 26, 1 << 28)
"""The smallest and largest number of bytes of the copies that measure a device's bandwidth."""
ENOUGH: Final = 0.02
"""Once a run takes this many seconds, no larger problem is tried."""
SAMPLE: Final = 0.2
"""Seconds for which a rate is measured."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Timing:
    """A model on a device, in seconds and bytes. A run takes and returns NumPy arrays."""

    model: str
    device: str
    facts: Mapping[str, Any]
    inputs: tuple[tuple[str, str, tuple[int, ...]], ...]
    batch: int
    load: float
    compile: float
    first: float
    runs: tuple[float, ...]
    memory: Mapping[str, int]
    copied: int | None = None
    """Bytes of states that a run copies; None for a model without states."""

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, high = np.percentile(self.runs, [25, 75]).tolist()
        return low, high


def quiet(_: str) -> None:
    """Report no progress."""


def random_inputs(specs: Sequence[TensorSpec], batch: int | None) -> dict[str, np.ndarray]:
    """Random arrays for inputs of which only the first dimension may be open: floats from 0 to 1, small integers, bools."""
    rng = np.random.default_rng(0)
    found = {}
    open_first = False
    for p in specs:
        if p.shape is None or any(isinstance(d, Size) for d in p.shape[1:]):
            example = "x".join("1" if isinstance(d, Size) else str(d) for d in p.shape or (1, 3, 224, 224))
            raise InputError(f"input {p}: give its open dimensions with --input-shape {p.name}={example}")
        open_first = open_first or any(isinstance(d, Size) for d in p.shape[:1])
        shape = tuple((batch or 1) if isinstance(d, Size) else d for d in p.shape)
        kind = p.dtype.numpy
        values = rng.random(shape) if p.dtype.is_float else rng.integers(0, 2, shape)
        found[p.name] = values.astype(kind)
    if batch and not open_first:
        raise InputError(
            f"--batch {batch}: no input has an open first dimension; the inputs are {', '.join(map(str, specs))}"
        )
    return found


def time_model(
    model: Model | Program, arrays: Mapping[str, np.ndarray], load: float, name: str, repeat: int | None = None,
    progress: Progress = quiet,
) -> tuple[Timing, Program]:  # fmt: skip
    """Compile a model for these inputs and time its runs."""
    progress("compiling")
    start = time.perf_counter()
    shapes = {k: a.shape for k, a in arrays.items()}
    runnable = model if isinstance(model, Program) else model.program(shapes, arrays)
    compiled = time.perf_counter() - start
    given = [arrays[p.name] for p in runnable.inputs]
    progress("first run")
    first = _once(runnable, given)
    count = repeat or min(max(RUNS[0], round(BUDGET / max(_once(runnable, given), 1e-6))), RUNS[1])
    runs = []
    for number in range(count):
        progress(f"run {number + 1} of {count}")
        runs.append(_once(runnable, given))
    batches = {a.shape[0] for a, p in zip(given, runnable.inputs, strict=True) if a.ndim and p.shape}
    timing = Timing(
        name, runnable.device.name, runnable.device.describe(),
        tuple((p.name, p.dtype.name, a.shape) for p, a in zip(runnable.inputs, given, strict=True)),
        batches.pop() if len(batches) == 1 else 1, load, compiled, first, tuple(runs), runnable.memory,
        runnable.data.copied(runnable.data.sizes({p.name: a.shape for p, a in zip(runnable.inputs, given, strict=True)}))
        if runnable.states else None,
    )  # fmt: skip
    return timing, runnable


def _once(runnable: Program, arrays: Sequence[np.ndarray]) -> float:
    start = time.perf_counter()
    runnable.run(arrays)
    return time.perf_counter() - start


# --- the peak rates of a device ---------------------------------------------------------------------------------------


def peaks(device: Device, progress: Progress = quiet) -> Peaks:
    """The rates of a large matrix product and of an elementwise copy, in float32, with the kernels that models use."""
    rate, product = 0.0, ""
    size = GEMMS[0]
    while size <= GEMMS[1]:
        progress(f"{device.name}: product of {size}³")
        taken = kernel_seconds(device, gemm(size, size, size))
        if taken and 2 * size**3 / taken > rate:  # 0: less than the overhead of the call
            rate, product = 2 * size**3 / taken, f"a product of {size}³"
        if taken > ENOUGH:
            break
        size *= 2
    speed, copied = 0.0, 0
    wanted = COPIES[0]
    while wanted <= COPIES[1]:
        progress(f"{device.name}: copy of {bytes_text(wanted)}")
        try:
            taken = kernel_seconds(device, elementwise_copy(wanted))
        except DeviceError:  # too large for a buffer of the device: keep the last size
            if not copied:
                raise
            break
        if taken and 2 * wanted / taken > speed:
            speed, copied = 2 * wanted / taken, wanted
        if taken > ENOUGH:
            break
        wanted *= 4
    return Peaks(rate, speed, product, copied)


def gemm(m: int, k: int, n: int, kind: DType = float32) -> Graph:
    """A matrix product (m, k) · (k, n) with a constant second operand, as in models."""
    b = Builder()
    weight = b.const(np.random.default_rng(0).random((k, n), np.float32).astype(kind.numpy))
    return Graph((x := b.input("x", (m, k), kind),), (b.matmul(x, weight),), ("y",))


def elementwise_copy(count: int) -> Graph:
    """An elementwise kernel that reads the given number of bytes and writes as many."""
    b = Builder()
    return Graph((x := b.input("x", (count // 4,), float32),), (b.neg(x),), ("y",))


def kernel_seconds(device: Device, graph: Graph) -> float:
    """The shortest time of a graph's kernels over random inputs, by the clock of profiles."""
    runnable = Model(graph, device).program()
    try:
        return timed_seconds(runnable, random_arrays(runnable))
    finally:
        runnable.dispose()


def random_arrays(runnable: Program) -> list[np.ndarray]:
    """Random arrays for a Program's inputs, whose shapes have no open sizes."""
    found = random_inputs(runnable.inputs, None)
    return [found[p.name] for p in runnable.inputs]


def timed_seconds(runnable: Program, arrays: Sequence[np.ndarray]) -> float:
    """The shortest time of a run's steps, among runs for SAMPLE seconds."""
    executable = timed_executable(runnable)
    given = [runnable.device.eager.upload(a) for a in arrays]
    executable.profile(given)
    best = float("inf")
    until = time.perf_counter() + SAMPLE
    while best == float("inf") or time.perf_counter() < until:
        best = min(best, sum(s.seconds for s in executable.profile(given).spans))
    return best


def kept_seconds(runnable: Program, arrays: Sequence[np.ndarray]) -> float:
    """Seconds per run with inputs on the device and outputs unread; many runs are submitted before one wait."""
    device = runnable.device
    given = [device.eager.upload(a) for a in arrays]

    def timed(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            runnable.executable.run(given)
        device.synchronize()
        return (time.perf_counter() - start) / count

    timed(1)
    count = min(max(1, round(SAMPLE / max(timed(1), 1e-6))), 1000)
    return min(timed(count) for _ in range(3))


# --- as text and JSON -------------------------------------------------------------------------------------------------


def describe_timing(t: Timing, device: str) -> str:
    low, high = t.quartiles
    shapes = ", ".join(f"{name} {kind}{show(shape)}" for name, kind, shape in t.inputs)
    return fields([
        ("model", t.model),
        ("inputs", shapes),
        ("device", device),
        ("load", seconds(t.load)),
        ("compile", seconds(t.compile)),
        ("first run", seconds(t.first)),
        ("run", f"{seconds(t.median)} (median of {len(t.runs)}; least {seconds(min(t.runs))}; quartiles {seconds(low)}, {seconds(high)})"),
        ("throughput", f"{t.batch / t.median:.1f} items/s (batch {t.batch})"),
        ("memory", ", ".join(f"{what} {bytes_text(count)}" for what, count in t.memory.items())),
        *([] if t.copied is None else [("states", f"{bytes_text(t.copied)} copied in a run")]),
    ])  # fmt: skip


def describe_peaks(peaks_of: Mapping[str, Peaks | DeviceError], lines: Mapping[str, str]) -> str:
    """A table with a row per device; `lines` are printed above it."""
    rows = []
    for name, p in peaks_of.items():
        if isinstance(p, DeviceError):
            rows.append((name, "absent", "", "", "", str(p)))
        else:
            rows.append((
                name, quantity(p.flops, "FLOP/s"), p.gemm, quantity(p.bytes, "B/s"), bytes_text(p.copied), lines[name],
            ))  # fmt: skip
    columns = [("device", LEFT), ("GEMM", RIGHT), ("of", LEFT), ("copy", RIGHT), ("of", RIGHT), ("", LEFT)]
    return table(columns, rows)


def machine() -> dict[str, Any]:
    """Facts about this machine, for later readers of the figures."""
    return {
        "singe": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    """The processor's name, if the system provides it."""
    if sys.platform == "linux":
        try:
            with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
                for line in file:
                    if line.startswith("model name"):
                        return line.partition(":")[2].strip()
        except OSError:
            pass
    return platform.processor()


def peaks_data(p: Peaks) -> dict[str, Any]:
    return {"flops": p.flops, "gemm": p.gemm, "bytes": p.bytes, "copied": p.copied}


def timing_data(t: Timing, profile: Profile | None, limit: Peaks | None) -> dict[str, Any]:
    """The measurements as JSON data; times in seconds."""
    low, high = t.quartiles
    data: dict[str, Any] = {
        "machine": machine(),
        "model": t.model,
        "device": t.device,
        "facts": dict(t.facts),
        "inputs": [{"name": name, "dtype": kind, "shape": list(shape)} for name, kind, shape in t.inputs],
        "batch": t.batch,
        "load": t.load,
        "compile": t.compile,
        "first": t.first,
        "runs": list(t.runs),
        "median": t.median,
        "least": min(t.runs),
        "quartiles": [low, high],
        "items_per_second": t.batch / t.median,
        "memory": dict(t.memory),
        **({} if t.copied is None else {"copied": t.copied}),
    }
    if profile is not None and limit is not None:
        data |= {"peaks": peaks_data(limit), "profile": profile_data(profile, limit)}
    return data


def describe_bench(t: Timing, device: str, profile: Profile | None, limit: Peaks | None, most: int | None) -> str:
    """The timing, followed by the profile if there is one."""
    text = describe_timing(t, device)
    return text if profile is None or limit is None else f"{text}\n\n{describe_profile(profile, limit, most)}"
