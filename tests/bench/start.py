"""How long it takes from a file to the first answer, natively, beside onnxruntime: in a process that compiles, and in the next one.

    python tests/bench/start.py [MODEL.onnx …] [--repeat N] [--device wasm] [--csv FILE]

The models come from packages (inputs/packaged.py), or are given, each with an .npz of inputs beside it. Every process imports its runtime,
loads one model and runs it once; they take turns. "Load and first run" begins after `import singe` or `import onnxruntime`, so that it has
what Singe imports only then. "The whole process" is what its caller waits for, Python and NumPy included. The first process of Singe finds
an empty cache folder, the next one what that has left (`singe cache`).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from inputs.packaged import folder_of

RUN: Final = """
import json, sys, time
import numpy as np
which, path, device = sys.argv[1:]
with np.load(path[:-5] + ".npz") as file:
    feeds = {name[3:]: file[name] for name in file.files if name.startswith("in:")}
start = time.perf_counter()
if which == "onnxruntime":
    import onnxruntime
    imported = time.perf_counter()
    onnxruntime.InferenceSession(path).run(None, feeds)
else:
    import singe
    imported = time.perf_counter()
    singe.load(path, device)(feeds)
end = time.perf_counter()
print(json.dumps([imported - start, end - imported]))
"""
COLUMNS: Final = (
    "model",
    "MB",
    "onnxruntime ms",
    "Singe, first process ms",
    "Singe, next process ms",
    "next over onnxruntime",
    "onnxruntime, whole process ms",
    "Singe, next whole process ms",
)


def measured(which: str, path: Path, device: str, cache: str) -> tuple[float, float]:
    """Seconds of loading and the first run, and of the whole process."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", RUN, which, str(path), device],
        env={**os.environ, "SINGE_CACHE": cache}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    whole = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{which} of {path}: {done.stderr.strip()}")
    return json.loads(done.stdout)[1], whole


def race(path: Path, device: str, repeat: int) -> list[Any]:
    """A row of COLUMNS."""
    taken: dict[str, list[tuple[float, float]]] = {"onnxruntime": [], "first": [], "next": []}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            taken["onnxruntime"].append(measured("onnxruntime", path, device, cache))
            taken["first"].append(measured("singe", path, device, cache))
            taken["next"].append(measured("singe", path, device, cache))
    load = {who: statistics.median(one for one, _ in pairs) * 1e3 for who, pairs in taken.items()}
    whole = {who: statistics.median(all_ for _, all_ in pairs) * 1e3 for who, pairs in taken.items()}
    return [
        path.stem, f"{path.stat().st_size / 1e6:.1f}", *(f"{load[who]:.0f}" for who in taken),
        f"{load['next'] / load['onnxruntime']:.2f}", f"{whole['onnxruntime']:.0f}", f"{whole['next']:.0f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--device", default="wasm")
    parser.add_argument("--csv", type=Path, help="write the table to this file")
    args = parser.parse_args()
    models = args.models or sorted(p for p in folder_of(None).glob("*.onnx") if p.with_suffix(".npz").exists())
    rows = []
    for path in models:
        rows.append(race(path, args.device, args.repeat))
        print(*(f"{name}: {value};" for name, value in zip(COLUMNS, rows[-1], strict=True)), flush=True)
    if args.csv:
        with args.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
