"""A run that is killed (-9) at random moments goes on from a valid checkpoint, to the bit.

SINGE_KILLS says how many kills there are (by default a few): SINGE_KILLS=50 pytest -n 0 tests/training/runs/test_killed.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from singe.train.saving.checkpoints import read_arrays

RUN = Path(__file__).with_name("killed_run.py")
KILLS = int(os.environ.get("SINGE_KILLS", "2"))
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
PATIENCE = 120.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120 + 60 * KILLS),
    pytest.mark.skipif(os.name != "posix", reason="kills processes as POSIX does"),
]


def start(device: str, folder: Path, losses: Path, *given: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, RUN, device, folder, losses, *given]
    return subprocess.Popen([str(part) for part in command], env=ENVIRONMENT, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors.decode()


def losses_of(files: Iterable[Path]) -> dict[int, str]:
    """The loss of each step; a step that was done again must have had the same one. A last line may be torn by a kill."""
    found: dict[int, str] = {}
    for path in files:
        for line in path.read_text().split("\n")[:-1]:
            step, loss = line.split()
            assert found.setdefault(int(step), loss) == loss, f"step {step}"
    return found


@pytest.fixture(scope="module", params=["numpy", "wasm"])
def device(request: pytest.FixtureRequest) -> str:
    """Those that go on to the bit."""
    return request.param


@pytest.fixture(scope="module")
def whole(device: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[int, str], dict[str, np.ndarray], float]:
    """A run that nothing interrupts: its losses, its last weights, and how long it took after its first step."""
    folder = tmp_path_factory.mktemp("whole")
    process = start(device, folder / "run", folder / "losses")
    await_first(process, folder / "losses")
    begun = time.monotonic()
    finish(process)
    return losses_of([folder / "losses"]), dict(np.load(folder / "run" / "last.npz")), time.monotonic() - begun


def await_first(process: subprocess.Popen[bytes], losses: Path) -> None:
    """Wait until the process has done a step."""
    deadline = time.monotonic() + PATIENCE
    while not losses.is_file() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_killed_run_goes_on_to_the_bit(
    device: str, whole: tuple[dict[int, str], dict[str, np.ndarray], float], tmp_path: Path
) -> None:
    losses, last, seconds = whole
    rng = np.random.default_rng(int(os.environ.get("SINGE_SEED", "0")))
    killed = torn = full = 0
    runs = 0
    while killed < KILLS:
        runs += 1
        folder = tmp_path / f"run{runs}"
        told: list[Path] = []
        ended = False
        while killed < KILLS and not ended:
            told.append(tmp_path / f"losses{runs}.{len(told)}")
            fills = killed % 4 == 1
            process = start(device, folder, told[-1], *(["full", int(rng.integers(1, 10))] if fills else []))
            await_first(process, told[-1])
            time.sleep(rng.uniform(0, seconds / 3))
            process.kill()
            _, errors = process.communicate(timeout=PATIENCE)
            assert process.returncode in (-9, 0), errors.decode()
            ended = process.returncode == 0
            killed, full = killed + (not ended), full + (fills and not ended)
            torn += bool(list((folder / "checkpoints").glob("*.part")))
            for path in (folder / "checkpoints").glob("step-*.safetensors"):
                read_arrays(path)  # a file under its final name is whole
        told.append(tmp_path / f"losses{runs}.last")
        told[-1].touch()
        finish(start(device, folder, told[-1]))
        assert losses_of(path for path in told if path.is_file()) == losses
        for name, array in np.load(folder / "last.npz").items():
            np.testing.assert_array_equal(array, last[name], err_msg=name)
    print(f"\n{killed} kills in {runs} runs, {torn} in the middle of a write, {full} with a full disk: all equal")
