"""Models that are served by replicas of Ray Serve: `singe host MODEL --ray`."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from kserve import Client

import singe as sg
from singe import nn
from singe.host.deployment import NAME, SCALING

PATIENCE: Final = 200.0
"""Seconds for the start of a replica, which takes a few, on a machine that does much else."""


def replicas() -> list[int]:
    """The processes of all replicas, by the titles that Ray gives them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            title = path.read_bytes()
        except OSError:  # it has ended
            continue
        if title.startswith(b"ray::ServeReplica:singe-host"):
            found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.full
def test_a_replica_that_is_killed_under_load_costs_no_answer(ray: Any, tmp_path: Path) -> None:
    pytest.importorskip("ray.serve", reason="no Ray Serve: pip install 'singe[serve]'")
    pytest.importorskip("uvicorn", reason="no package uvicorn: pip install 'singe[host]'")
    model = sg.Model.of(nn.Sequential(nn.Linear(8, 4, rng=0)).eval(), {"x": ("N", 8)}, device="numpy")
    sg.save(model, tmp_path / "net.singe")
    x = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    wanted = model(x)
    found: list[Any] = []
    killed = threading.Event()
    with sg.host.ModelServer(tmp_path / "net.singe", port=0, device="numpy", replicas=(2, 2)) as server:
        served = server.application.models["net"]
        assert [p.name for p in served.inputs] == ["x"]

        def load() -> None:
            client = Client(server.url, server.token)
            for k in range(60):
                try:
                    found.append(next(iter(client.infer("net", {"x": x}).values())))
                except BaseException as e:
                    found.append(e)
                if k == 10 and not killed.is_set():
                    killed.set()
                    os.kill(replicas()[0], signal.SIGKILL)
            client.close()

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        client = Client(server.url, server.token)
        wrong = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 7], "data": [0] * 7}]}
        assert client.ask("/v2/models/net/infer", str(wrong).replace("'", '"').encode()).status == 400
        client.close()
    assert killed.is_set()
    assert [x for x in found if isinstance(x, BaseException)] == []
    assert len(found) == 240
    for y in found:
        np.testing.assert_allclose(y, wanted, rtol=1e-5)


def running() -> int:
    """How many replicas serve."""
    from ray.serve import status  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    states = status().applications[NAME].deployments[NAME].replica_states
    return sum(count for state, count in states.items() if state == "RUNNING")


def reached(count: int, seconds: float) -> bool:
    """Whether so many replicas serve before the time is over."""
    end = time.monotonic() + seconds
    while (there := running()) != count and time.monotonic() < end:
        time.sleep(0.2)
    return there == count


@pytest.mark.slow
@pytest.mark.full
def test_replicas_come_with_load_and_go_without_it_and_no_request_is_lost(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray.serve", reason="no Ray Serve: pip install 'singe[serve]'")
    pytest.importorskip("uvicorn", reason="no package uvicorn: pip install 'singe[host]'")
    model = sg.Model.of(lambda x: x + (sg.arange(500_000) * x.sum()).sin().mean(), {"x": (4,)}, device="numpy")
    sg.save(model, tmp_path / "waves.singe")
    x = np.arange(4, dtype=np.float32)
    wanted = model(x)
    found: list[Any] = []
    for name in ("upscale_delay_s", "downscale_delay_s"):
        monkeypatch.setitem(SCALING, name, 1.0)
    busy, ended = threading.Event(), threading.Event()
    with sg.host.ModelServer(tmp_path / "waves.singe", port=0, device="numpy", replicas=(1, 2)) as server:

        def load(always: bool) -> None:
            client = Client(server.url, server.token)
            while busy.is_set() or (always and not ended.is_set()):
                try:
                    found.append(next(iter(client.infer("waves", {"x": x}).values())))
                except BaseException as e:
                    found.append(e)
                if not busy.is_set():
                    time.sleep(0.1)
            client.close()

        assert reached(1, PATIENCE)
        busy.set()
        threads = [threading.Thread(target=load, args=(k == 0,)) for k in range(16)]
        try:
            for thread in threads:
                thread.start()
            grown = reached(2, PATIENCE)
            busy.clear()
            shrunk = reached(1, PATIENCE)
        finally:
            busy.clear()
            ended.set()
            for thread in threads:
                thread.join(60)
    assert grown, "one replica stayed alone under load"
    assert shrunk, "two replicas stayed without load"
    assert [y for y in found if isinstance(y, BaseException)] == []
    for y in found:
        np.testing.assert_allclose(y, wanted, rtol=1e-5)


def test_replicas_take_files_only() -> None:
    from singe.host.deployment import deployed  # noqa: PLC0415

    model = sg.Model.of(lambda x: x, {"x": (1,)}, device="numpy")
    with pytest.raises(sg.InputError, match="the path of the model's file"):
        deployed({"m": model}, "numpy", (1, 1), 256, {})
    with pytest.raises(sg.InputError, match="expected the least, from 1 on, and the most"):
        deployed({"m": "m.singe"}, "numpy", (3, 2), 256, {})
