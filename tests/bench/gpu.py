"""Comparisons with peers that need a GPU: prepared on a machine with a network, run on one with a GPU.

    python tests/bench/gpu.py prepare DIR [--models FOLDER] [--python 3.12] [--platform manylinux_2_28_x86_64]
    python DIR/gpu.py run [--out results.json] [--quick] [--profile]
    python DIR/gpu.py page [--browser PATH] [--flags "…"] [--out results.json] [--quick]
    python DIR/gpu.py start [--browser PATH] [--flags "…"] [--out results.json] [--turns 5]
    python DIR/gpu.py train [--device cuda:0] [--out results.json]
    python DIR/gpu.py infer [--device cuda:0] [--out results.json]
    python DIR/gpu.py tune [--out times.json] [--times times.json]
    python DIR/gpu.py matrices [--browser PATH] [--flags "…"] [--out times.json] [--times times.json]

`prepare` fills DIR with this file, the scripts of gpu/, the models, and the wheels that Singe needs besides NumPy. `run` compares
natively (gpu_race.py), `page` in a browser (gpu_page.py), and `start` times the first answer of a page (gpu_start.py). `train`
compares steps of training (gpu_training.py), and `infer` networks that answer (gpu_infer.py). `tune` times products in all cuts,
and prints the table by which Singe chooses one (gpu_tune.py); `matrices` does that for subgroup matrices in a browser
(gpu_matrices.py). They need Python, NumPy, a GPU's driver and its loader (libvulkan.so.1 on Linux; none for CUDA), but no network.
They print Markdown, and write all figures as JSON. In a checkout they use the installed Singe. PyTorch and timm are compared if
they are installed.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
SCRIPTS: Final = {
    "run": "gpu_race",
    "page": "gpu_page",
    "start": "gpu_start",
    "train": "gpu_training",
    "infer": "gpu_infer",
    "tune": "gpu_tune",
    "matrices": "gpu_matrices",
}
NEEDED: Final = ("wgpu>=0.32,<0.33", "cffi", "pycparser", "rendercanvas")
"""The packages that Singe needs for WebGPU besides NumPy: wgpu and its dependencies."""


def prepare(folder: Path, models: Path, python: str, platforms: list[str]) -> None:
    """Fill a folder with everything that `run` needs."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    for old in wheels.glob("*.whl"):
        old.unlink()
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", str(wheels), str(ROOT)], check=True)
    wanted = ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    for platform in platforms:
        wanted += ["--platform", platform]
    subprocess.run([*pip, "download", "-q", "--no-deps", *wanted, "-d", str(wheels), *NEEDED], check=True)
    (folder / "gpu").mkdir(exist_ok=True)
    for name in ("gpu.py", *(f"gpu/{script}.py" for script in SCRIPTS.values())):
        shutil.copy(HERE / name, folder / name)
    (folder / "models").mkdir(exist_ok=True)
    for path in (*models.glob("*.onnx"), *models.glob("*.npz")):
        shutil.copyfile(path, folder / "models" / path.name)
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB; there: python {folder.name}/gpu.py run")


def run(script: str, rest: list[str]) -> None:
    """Run a script's races, with the wheels beside this file if there are any."""
    with tempfile.TemporaryDirectory(prefix="singe-gpu-") as site:
        for wheel in (HERE / "wheels").glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(site)
        sys.path[:0] = [site, str(HERE / "gpu")]
        # It imports what was unpacked just now.
        models = HERE / "models" if (HERE / "models").is_dir() else ROOT / "tests" / ".cache" / "models"
        importlib.import_module(script).main(rest, models)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("prepare")
    making.add_argument("folder", type=Path)
    making.add_argument("--models", type=Path, help="models with recordings (default: those of packaged.py)")
    making.add_argument("--python", default="3.12")
    making.add_argument("--platform", action="append", default=[])
    for name in SCRIPTS:
        commands.add_parser(name, add_help=False)
    args, rest = parser.parse_known_args()
    if args.command in SCRIPTS:
        run(SCRIPTS[args.command], rest)
    elif rest:
        parser.error(f"unknown arguments: {' '.join(rest)}")
    else:
        platforms = args.platform or ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"]
        packaged = importlib.import_module("inputs.packaged")  # which the machine with the GPU lacks
        prepare(args.folder, packaged.folder_of(args.models), args.python, platforms)


if __name__ == "__main__":
    main()
