"""Many clients at a time: nothing is lost, and every answer is that of its request. tests/bench/host.py has more of them, for longer."""

from __future__ import annotations

import json

import numpy as np
import pytest
from host_load import load, post

import singe as sg
from singe import nn

CLIENTS = 50
SECONDS = 3


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("batch", [1, 8])
def test_nothing_is_lost_under_load(batch: int) -> None:
    pytest.importorskip("uvicorn")
    model = sg.Model.of(nn.Linear(64, 10, rng=0), {"x": ("N", 64)}, device="numpy", name="m")
    inputs = np.random.default_rng(0).normal(size=(CLIENTS, 1, 64)).astype(np.float32)
    requests = []
    for x in inputs:
        entry = {"name": "x", "datatype": "FP32", "shape": [1, 64], "parameters": {"binary_data_size": x.nbytes}}
        text = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
        headers = {"Inference_Header_Content_Length": str(len(text))}
        requests.append(post("/v2/models/m/infer", text + x.tobytes(), "secret", **headers))
    with sg.host.ModelServer(model, port=0, token="secret", batch=batch) as server:
        found = load(server.port, requests, [model(x) for x in inputs], SECONDS)
        assert found.wrong == []
        assert found.lost == 0
        assert found.asked >= CLIENTS
        counts = server.application.models["m"].counts
        assert (counts.requests, counts.errors.total()) == (found.asked, 0)
