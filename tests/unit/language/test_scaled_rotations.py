"""The rotations of a config.json that scales them are those of transformers, and what cannot be meant is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest

import singe as sg
from singe.language.decoder import RotationTable
from singe.language.description import Rotation, of_config

CONFIG: Final = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "num_hidden_layers": 1,
    "vocab_size": 96, "max_position_embeddings": 2048, "rope_theta": 10000.0,
}  # fmt: skip
YARN: Final = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
USUAL: Final = [1.0, 0.2569351, 0.0625, 0.01383497, 0.0025, 0.0007905695, 0.00025, 7.905695e-05]
"""The speeds of pairs that transformers 5.24 computes."""


def rotation(scaling: Mapping[str, Any], context: int = 64, **changes: Any) -> Rotation:
    found = of_config({**CONFIG, "rope_scaling": scaling, **changes}, context, "config.json").layers[0].rotation
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("more", "speeds", "gain"),
    [
        ({}, USUAL, 1.138629436111989),
        (
            {"beta_fast": 16.0, "beta_slow": 2.0, "truncate": False},
            [1.0, 0.3162278, 0.0756644, 0.01079611, 0.0025, 0.0007905695, 0.00025, 7.905695e-05],
            1.138629436111989,
        ),
        ({"mscale": 1.0, "mscale_all_dim": 0.5}, USUAL, 1.0648216253695715),
        ({"attention_factor": 1.25}, USUAL, 1.25),
    ],
)
def test_yarn(more: Mapping[str, Any], speeds: list[float], gain: float) -> None:
    table = RotationTable(rotation({**YARN, **more}), 4)
    angles = np.arange(4)[:, None] * np.array(speeds)
    np.testing.assert_allclose(table.cosines.numpy(), np.cos(angles) * gain, atol=1e-6)
    np.testing.assert_allclose(table.sines.numpy(), np.sin(angles) * gain, atol=1e-6)


def test_yarn_by_one_changes_nothing() -> None:
    one = rotation({**YARN, "factor": 1.0})
    assert one.gain == 1
    assert one.factors == pytest.approx([1.0] * 8)


def test_dynamic_changes_nothing_within_the_trained_length() -> None:
    assert rotation({"type": "dynamic", "factor": 2.0}, context=10**6) == rotation({})
    with pytest.raises(sg.FormatError, match="load it with context=512 or less"):
        rotation({"type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 512}, context=513)


@pytest.mark.parametrize(
    "wrong",
    [
        {"factor": 0.5}, {"factor": None}, {"beta_fast": 1e308}, {"beta_slow": 5e-324}, {"beta_fast": 1.0}, {"mscale": -20.0}, {"mscale": 1e308},
        {"original_max_position_embeddings": 0}, {"attention_factor": -1.0}, {"truncate": 3},
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_meant_are_refused(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(sg.FormatError, match=next(iter(wrong)).replace("beta_slow", "beta")):
        rotation({**YARN, **wrong})
