"""A server that is far away costs one round trip where an answer is needed, and nothing elsewhere."""

from __future__ import annotations

import time

import numpy as np
import pytest
from remote_kinds import Join, Serve
from slow_link import SlowLink

import singe as sg
from singe import nn

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
LATENCY = 0.05
pytestmark = pytest.mark.slow
"""Seconds each way; a round trip takes two of them."""


def test_a_step_is_one_round_trip_however_many_results_it_has(serve: Serve, join: Join) -> None:
    server = serve()

    def loss(model: nn.Module, x: sg.Tensor, y: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        found = model(x)
        return nn.MSELoss()(found, y), {"prediction": found, "largest": found.max()}

    with SlowLink(server.port, LATENCY) as far:
        there = join(server, far.url)
        step = sg.train.TrainStep(nn.Linear(4, 2, rng=0), sg.optim.AdamW(1e-2), loss, device=there)
        y = np.zeros((3, 2), np.float32)
        step(X, y)
        link = there.backend.connection
        trips, start = link.trips, time.perf_counter()
        for _ in range(5):
            step(X, y)
        assert link.trips - trips == 5
        assert time.perf_counter() - start >= 10 * LATENCY


def test_a_pipeline_of_runs_takes_one_latency(serve: Serve, join: Join) -> None:
    server = serve()
    with SlowLink(server.port, LATENCY) as far:
        there = join(server, far.url)
        program = sg.Model.of(lambda x: x * 0.5 + 1, {"x": (3, 4)}, device=there).program()
        program(X)
        link = there.backend.connection
        trips, start = link.trips, time.perf_counter()
        x = there.upload(X)
        for _ in range(10):
            (x,) = program.executable.run([x])
        found = there.download(x)
        assert link.trips - trips == 1
        assert time.perf_counter() - start >= 2 * LATENCY
    expected = X
    for _ in range(10):
        expected = expected * 0.5 + 1
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_eager_lines_wait_when_something_is_read(serve: Serve, join: Join) -> None:
    there = join(serve())
    for device in (there, sg.Fusion(there), sg.Autodiff(sg.Fusion(there))):
        trips = there.backend.connection.trips
        x = sg.tensor(X, device=device)
        for _ in range(20):
            x = (x * 2).tanh() + 1
        assert there.backend.connection.trips == trips
        x.numpy()
        assert there.backend.connection.trips == trips + 1


def test_weights_that_programs_share_are_sent_once(serve: Serve, join: Join) -> None:
    there = join(serve())
    x, link = np.ones((2, 300), np.float32), there.backend.connection
    sent = [link.sent]
    first = sg.Model.of(nn.Linear(300, 300, rng=0), {"x": (2, 300)}, device=there).program()
    first(x)
    sent.append(link.sent)
    first(x)
    sent.append(link.sent)
    second = there.prepare(first.data)
    (found,) = second.run([there.upload(x)])
    np.testing.assert_array_equal(there.download(found), first(x))
    sent.append(link.sent)
    first.dispose()
    (found,) = second.run([there.upload(x)])
    there.download(found)
    of_first, again, of_second = np.diff(sent)
    assert of_first > 300 * 300 * 4
    assert again < x.nbytes + 1000
    assert of_second < 300 * 300
