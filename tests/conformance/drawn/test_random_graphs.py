"""Random Graphs agree on every device with an evaluator that neither rewrites nor fuses: one Program at many sizes.

Control flow, ops of several results, states, open sizes, sizes found in mid-run, and all dtypes that a device computes:
see tests/support/networks/random_graphs. `pytest tests/conformance/drawn/test_random_graphs.py --graphs 5000` draws more, and
`python tests/support/networks/random_graphs/drawn.py wasm 0 5000` does so without pytest.
"""

from __future__ import annotations

import pytest
from networks.random_graphs.draw_flow import draw
from networks.random_graphs.drawn import check, kinds_on

CHUNK = 25


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "start" in metafunc.fixturenames:
        metafunc.parametrize("start", range(0, metafunc.config.getoption("--graphs"), CHUNK))


@pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
def test_devices_agree_with_the_evaluator(start: int, device_name: str) -> None:
    kinds = kinds_on(device_name)
    for seed in range(start, start + CHUNK):
        check(device_name, draw(seed, kinds))
