"""The figures of the native runners, each a ratio to a peer in the same run, on the models of a folder.

    python tests/bench/races/spine.py [FOLDER] [--models efficientnet_lite0,…] [--rounds 30]

Prints Markdown: compile time, dispatches and memory of each model; the numpy backend beside onnxruntime and the wasm
backend beside onnxruntime-web in Chromium, one thread each, taking turns; and the time that `import singe` takes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import onnxruntime

import singe as sg

sys.path.insert(0, str(Path(__file__).parents[1]))

from inputs.packaged import folder_of
from inputs.recordings import first_items
from ort_web import OrtWeb


def timed(run: Callable[[], object]) -> Callable[[], float]:
    """Milliseconds of one run."""

    def once() -> float:
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e3

    return once


def race(rounds: int, *runners: Callable[[], float]) -> list[list[float]]:
    """Every runner's times, taking turns, after two warm-up turns."""
    turns = [[run() for run in runners] for _ in range(rounds + 2)][2:]
    return [list(times) for times in zip(*turns, strict=True)]


def row(name: str, ours: list[float], theirs: list[float]) -> str:
    mine, peer = statistics.median(ours), statistics.median(theirs)
    return f"| {name} | {mine:.2f} ({min(ours):.2f}) | {peer:.2f} ({min(theirs):.2f}) | {mine / peer:.2f} |"


def compiled(folder: Path, name: str) -> str:
    """The compile time, dispatches and memory of a model, for each target."""
    inputs = first_items(folder / f"{name}.onnx")
    cells = []
    for device in ("wasm", "webgpu"):
        try:
            program = sg.load(folder / f"{name}.onnx", device).program({k: a.shape for k, a in inputs.items()}).data
        except sg.DeviceError as e:
            cells.append(f"{e} | | |")
            continue
        peak = program.peak(dict.fromkeys(program.symbols, 1))
        cells.append(f"{program.seconds:.2f} | {len(program.steps)} | {peak / 1e6:.2f}")
    return f"| {name} | {' | '.join(cells)} |"


def numpy_race(folder: Path, name: str, rounds: int) -> str:
    inputs = first_items(folder / f"{name}.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
    model = sg.load(folder / f"{name}.onnx", "numpy")
    return row(name, *race(rounds, timed(lambda: model(inputs)), timed(lambda: session.run(None, inputs))))


def wasm_race(folder: Path, name: str, rounds: int) -> str:
    inputs = first_items(folder / f"{name}.onnx")
    model = sg.load(folder / f"{name}.onnx", sg.Wasm(threads=1))  # as the peer
    with OrtWeb(folder / f"{name}.onnx", inputs) as peer:
        return row(name, *race(rounds, timed(lambda: model(inputs)), peer.once))


def import_times(runs: int = 7) -> str:
    """Milliseconds of `import singe` after `import numpy`, in fresh processes."""
    code = "import numpy, time; t = time.perf_counter(); import singe; print((time.perf_counter() - t) * 1e3)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(runs)
    ]
    return f"`import singe` beyond NumPy: {statistics.median(times):.0f} ms (best of {runs}: {min(times):.0f} ms)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="models with recordings (default: those of packaged.py)")
    parser.add_argument("--models", help="names, with commas between them (default: all that have recordings)")
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    folder = folder_of(args.folder)
    found = sorted(p.stem for p in folder.glob("*.onnx") if p.with_suffix(".npz").is_file())
    names = args.models.split(",") if args.models else found
    print(import_times(), end="\n\n")
    print(
        "| model | wasm: compile s | dispatches | scratch MB | webgpu: compile s | dispatches | scratch MB |\n|---|---|---|---|---|---|---|"
    )
    print(*(compiled(folder, n) for n in names), sep="\n", end="\n\n")
    print(
        f"| batch 1, one thread | numpy backend ms | onnxruntime {onnxruntime.__version__} ms | ratio |\n|---|---|---|---|"
    )
    print(*(numpy_race(folder, n, args.rounds) for n in names), sep="\n", end="\n\n")
    print(
        "| batch 1, one thread | wasm backend (wasmtime) ms | onnxruntime-web in Chromium ms | ratio |\n|---|---|---|---|"
    )
    print(*(wasm_race(folder, n, args.rounds) for n in names), sep="\n")


if __name__ == "__main__":
    main()
