"""Training over several devices elsewhere, in processes of their own: it learns as one device does, and ends when one is lost."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import singe as sg
from singe import nn

pytestmark = pytest.mark.slow


@pytest.fixture
def hosts() -> Iterator[list[tuple[subprocess.Popen[str], str]]]:
    """Two servers, each in a process: the process, and the device's name here."""
    pytest.importorskip("websockets", reason="the extra `remote` is not installed")
    command = [sys.executable, "-m", "singe", "host", "--device", "numpy", "--port", "0"]
    with ExitStack() as stack:
        started = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            for _ in range(2)
        ]
        for process in started:
            stack.callback(process.kill)
        found = []
        for process in started:
            assert process.stdout is not None
            (url,) = re.findall(r"ws://\S+", process.stdout.readline())
            token = process.stdout.readline().split()[1]
            found.append((process, sg.Remote(url, token).name))
        yield found


def learner(device: str | list[str], run: Path | None = None) -> sg.train.Learner:
    model = nn.Sequential(nn.Linear(2, 8, rng=0), nn.Tanh(), nn.Linear(8, 2, rng=1))
    return sg.train.Learner(model, sg.optim.AdamW(1e-2), nn.CrossEntropyLoss(), device=device, run=run, seed=0)


def data() -> sg.data.Loader:
    points = np.random.default_rng(0).uniform(-1, 1, (64, 2)).astype(np.float32)
    inside = ((points**2).sum(1) < 0.5).astype(np.int64)
    return sg.data.Loader(sg.data.Dataset.of((points, inside)), 16)


def test_two_devices_elsewhere_learn_as_one_here(hosts: list[tuple[subprocess.Popen[str], str]]) -> None:
    here, there = learner("numpy"), learner([name for _, name in hosts])
    for one in (here, there):
        one.fit(data(), epochs=2)
    for (path, a), (_, b) in zip(here.model.state_dict().items(), there.model.state_dict().items(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6, err_msg=path)


def test_a_server_that_is_killed_ends_the_run_and_its_checkpoint_stays(
    hosts: list[tuple[subprocess.Popen[str], str]], tmp_path: Path
) -> None:
    names = [name for _, name in hosts]
    unbroken = learner("numpy")
    unbroken.fit(data(), epochs=2)
    learner(names, tmp_path / "run").fit(data(), epochs=1)
    kept = sorted(p.name for p in (tmp_path / "run").rglob("*") if p.is_file())
    one = learner(names, tmp_path / "run")
    hosts[1][0].kill()
    hosts[1][0].wait(30)
    with pytest.raises(sg.RemoteDisconnected):
        one.fit(data(), epochs=2, resume=True)
    assert set(kept) <= {p.name for p in (tmp_path / "run").rglob("*") if p.is_file()}
    again = learner("numpy", tmp_path / "run")
    again.fit(data(), epochs=2, resume=True)
    for a, b in zip(unbroken.model.parameters(), again.model.parameters(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)
