"""The models that are drawn: the digits' network of the demos, a step of its training, and what the compiler makes of them."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

import singe as sg
from singe import nn
from singe.compiler.compile import compile_graph
from singe.compiler.fuse import Group, fuse
from singe.compiler.rewrite import rewrite
from singe.compiler.target import Target, find_target
from singe.graph import Graph
from singe.program.program import ProgramData

DEMOS: Final = Path(__file__).parents[3] / "demos"
BATCH: Final = 32


@cache
def digits() -> Any:
    if str(DEMOS) not in sys.path:
        sys.path.insert(0, str(DEMOS))
    return importlib.import_module("weights").digits()


@cache
def digits_model() -> sg.Model:
    """For one picture."""
    net = digits()
    return sg.Model.of(lambda input: {"logits": net(input)}, {"input": (1, 1, 28, 28)}, "numpy", name="digits")


@cache
def digits_program(target: str) -> ProgramData:
    return compile_graph(digits_model().graph(), find_target(target))


@cache
def step_program() -> ProgramData:
    """A step of training of the digits' network by AdamW, for WebAssembly."""
    loss = nn.CrossEntropyLoss()
    step = sg.train.TrainStep(digits(), sg.optim.AdamW(1e-3), lambda net, x, y: loss(net(x), y), device="numpy")
    batch = np.zeros((BATCH, 1, 28, 28), np.float32), np.zeros(BATCH, np.int64)
    return compile_graph(step.as_model(*batch).graph(), find_target("wasm"))


def groups_of(graph: Graph, target: Target) -> list[Group]:
    """The Kernels and Routines of a graph."""
    return fuse(rewrite(graph, narrow=True), target.max_ports, lambda g: target.print(g.kernel, ()) is not None)[1]
