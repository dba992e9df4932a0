"""Packages that are written for onnxruntime: what pip installs of each, and the answers of its program.

They are installed without their dependencies, which would bring onnxruntime itself, and with those that their programs need, into
tests/.cache/packages, once for each list.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import singe

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = ROOT / "tests" / "conformance" / "dropin" / "programs.py"
CACHE: Final = ROOT / "tests" / ".cache" / "packages"
HUB: Final = (
    "huggingface_hub==2.4.0", "httpx2==2.16.2", "httpcore2==2.16.2", "anyio==4.14.2", "h11==0.16.0", "idna", "truststore", "fsspec", "filelock",
    "typing_extensions", "click", "packaging",
)  # fmt: skip
REQUIREMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "arabic_name_romanizer": ("arabic-name-romanizer==0.2.0",),
    "captcha_whisperer": ("captcha-whisperer==0.1.0",),
    "ddddocr": ("ddddocr==1.6.1", "opencv-python-headless"),
    "fastembed": ("fastembed==0.9.1", "tokenizers==0.23.3", "loguru", "mmh3", "py_rust_stemmers", *HUB),
    "khmersm": ("khmersm==1.4.2",),
    "luscinia": ("luscinia==1.0.0",),
    "magika": ("magika==1.0.3", "python-dotenv"),
    "nudenet": ("nudenet==3.4.2", "opencv-python-headless"),
    "onnx_asr": ("onnx-asr==0.12.0", "silero-vad==6.2.3"),
    "openwakeword": ("openwakeword==0.5.1", "scikit-learn", "joblib", "threadpoolctl", "cloudpickle", "narwhals"),
    "rapidocr_onnxruntime": (
        "rapidocr_onnxruntime==1.4.4", "opencv-python-headless", "pyclipper", "shapely", "six",
    ),
    "silero_vad": ("silero-vad==6.2.3", "packaging"),
    "text2tashkeel": ("text2tashkeel==0.1.0",),
}  # fmt: skip
"""A program ↦ what it needs that the environment of the tests does not have."""


@cache
def site_of(name: str) -> Path:
    """The folder with the packages of a program; the test is skipped if an index does not have them."""
    needed = REQUIREMENTS[name]
    folder = CACHE / f"{name}-{hashlib.sha256(repr((needed, sys.version_info[:2])).encode()).hexdigest()[:12]}"
    if not folder.exists():
        half = folder.with_suffix(f".{os.getpid()}")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "-t",
            str(half),
            *needed,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        if done.returncode:
            shutil.rmtree(half, ignore_errors=True)
            pytest.skip(f"{name} cannot be installed: {(done.stderr.strip() or 'pip gave no reason').splitlines()[-1]}")
        try:
            half.rename(folder)
        except OSError:  # another worker was faster
            shutil.rmtree(half, ignore_errors=True)
    return folder


def answers(name: str, runtime: str, folder: Path) -> dict[str, np.ndarray]:
    """What a program answers over onnxruntime, or on a device of Singe over singe.ort, in a process of its own."""
    site = site_of(name)
    paths = [Path(singe.__file__).parents[1], *(ROOT / room for room in ("webgpu", "wasm", "gpu", "cuda")), site]
    out = folder / f"{runtime}.npz"
    work = folder / f"{runtime}-files"
    work.mkdir()
    environment: dict[str, Any] = {k: v for k, v in os.environ.items() if k != "SINGE_DEVICE"}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, paths)), "HF_HUB_OFFLINE": "1", "HOME": str(work)}
    vad = site / "silero_vad" / "data" / "silero_vad.onnx"
    if vad.exists():
        environment["SILERO_VAD_MODEL"] = str(vad)
    command = [sys.executable, str(PROGRAMS), name, runtime, str(work), str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert not done.returncode, done.stderr[-3000:]
    with np.load(out) as found:
        return dict(found)
