"""A table of tokens that is tied to the scores is held once: a run gathers rows of the matrix with which it multiplies."""

from __future__ import annotations

import numpy as np
import pytest

import singe as sg
from singe.language.layers import embeddings
from singe.runtime.devices import device
from singe.weights.rounding import rounded
from singe.weights.stored import present

WIDTH, TOKENS = 64, 8195


@pytest.mark.slow
@pytest.mark.parametrize("device_name", ["wasm", pytest.param("webgpu", marks=pytest.mark.full)])
@pytest.mark.parametrize("form", ["float32", "q8_0", "q4_1"])
def test_a_tied_table_is_held_once(form: str, device_name: str) -> None:
    values = np.random.default_rng(0).standard_normal((TOKENS, WIDTH)).astype(np.float32)
    stored = present(values) if form == "float32" else rounded(present(values), form)
    rows, scores = embeddings(stored)

    def program(ids: sg.Tensor) -> sg.Tensor:
        return scores(rows(ids) * 2.0)

    ids = np.array([0, TOKENS - 1, 9, -1, 9], np.int32)
    model = sg.Model.of(program, {"ids": ("T",)}, device(device_name), dtypes={"ids": "int32"})
    table = np.asarray(rows(sg.tensor(np.arange(TOKENS, dtype=np.int32))).numpy())
    np.testing.assert_allclose(model(ids), table[ids] * 2 @ table.T, rtol=1e-3, atol=1e-3)
    held = {"float32": 4.0, "q8_0": 1.125, "q4_1": 0.75}[form] * TOKENS * WIDTH
    assert model.program().data.weights.size < 1.2 * held + 1024
