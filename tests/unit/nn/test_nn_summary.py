"""A summary names each layer with its output, parameters, memory, and what is frozen."""

from __future__ import annotations

import numpy as np
import pytest

import singe as sg
from singe import nn


def network() -> nn.Sequential:
    backbone = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.Dropout(), nn.MaxPool2d(2))
    return nn.Sequential({"backbone": backbone, "flat": nn.Flatten(), "head": nn.Linear(3600, 10)})


WANT = """
layer                   output           parameters    memory
─────────────────────────────────────────────────────────────────────────
Sequential              (N, 10)              36,490  146.1 kB  480 frozen
  backbone: Sequential  (N, 16, 15, 15)         480    2.1 kB  frozen
    0: Conv2d           (N, 16, 30, 30)         448    1.8 kB  frozen
    1: BatchNorm2d      (N, 16, 30, 30)          32     264 B  frozen
    2: Dropout          (N, 16, 30, 30)
    3: MaxPool2d        (N, 16, 15, 15)
  flat: Flatten         (N, 3600)
  head: Linear          (N, 10)              36,010  144.0 kB
─────────────────────────────────────────────────────────────────────────
36,490 parameters, of which 36,010 are learned; 146.1 kB"""


def test_a_summary_is_a_tree() -> None:
    model = network().train().freeze("backbone")
    assert str(model.summary(("N", 3, 32, 32))) == WANT[1:]
    assert "output" not in str(model.summary())


def test_what_examples_are() -> None:
    rows = {row.path: row for row in network().summary(np.zeros((2, 3, 32, 32), np.float32)).rows}
    assert rows["backbone.0"].outputs == ((2, 16, 30, 30),)
    assert (rows[""].depth, rows["backbone"].depth, rows["backbone.0"].depth) == (0, 1, 2)
    lstm = nn.LSTM(3, 4).summary(sg.zeros((5, 2, 3)))
    assert lstm.rows[0].outputs == ((5, 2, 4), (1, 2, 4), (1, 2, 4))
    embedding = nn.Embedding(10, 4).summary(np.zeros((2, 3), np.int64))
    assert embedding.rows[0].outputs == ((2, 3, 4),)
    with pytest.raises(sg.ShapeError):
        network().summary((2, 4, 32, 32))


def test_shared_parameters_count_once_and_lists_are_named() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            first = nn.Linear(4, 4)
            self.convs = [first, nn.Linear(4, 4, bias=False).replace(weight=first.weight).half()]
            self.tied = [first, first]

        def forward(self, x: sg.Tensor) -> sg.Tensor:
            return self.tied[1](self.tied[0](x))

    summary = Twice().summary((2, 4))
    assert [row.name for row in summary.rows] == ["", "convs.0", "convs.1", "tied.0", "tied.1"]
    assert summary.rows[0].parameters == 4 * 4 + 4 + 4 * 4
    assert summary.rows[0].bytes == 80 + 32
    assert summary.rows[1].outputs == ()
