"""Data that several tests of training read, and a cluster on which they train."""

from __future__ import annotations

import gc
import gzip
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import ENVIRONMENT
from idx_files import idx_bytes


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C and SIGTERM are Python's, also where the tests run in the background of a shell, which lets its jobs ignore
    Ctrl-C, and after tests of Ray, which leaves a handler of SIGTERM."""
    plain = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in plain.items()}
    yield
    for number, handler in before.items():
        if handler is not None:  # one that was not set by Python cannot be given back
            signal.signal(number, handler)


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A folder with MNIST's files, of a few images: those of digit d have a bar in row 2 d."""
    folder = tmp_path / "digits"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for part, count in (("train", 96), ("t10k", 40)):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = rng.integers(0, 50, (count, 28, 28), dtype=np.uint8)
        images[np.arange(count), 4 + 2 * labels, 4:24] = 255
        for name, array in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx_bytes(array)))
    return folder


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A local cluster of two workers."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        ray = pytest.importorskip("ray", reason="no package ray: pip install 'singe[cluster]'")
        ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
        yield ray
        ray.shutdown()


@pytest.fixture
def collected() -> Iterator[None]:
    """Workers end when nothing refers to them."""
    yield
    gc.collect()
