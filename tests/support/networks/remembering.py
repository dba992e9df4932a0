"""Models with states that tests run natively and in pages: a counter, a ring of the last rows, a training step.

Each has inputs that are used in turn, and the same model in NumPy, which gives the expected outputs and states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import singe as sg
from singe.dtypes import float32
from singe.graph import Builder, Graph, GraphState, leaf
from singe.graph.gradients import gradient

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Remembering:
    """A model for a device, inputs that are used in turn, and the same run in NumPy:
    (inputs, states) ↦ (outputs, new states)."""

    model: Callable[[str], sg.Model]
    inputs: Sequence[Arrays]
    initial: Arrays
    run: Callable[[Arrays, Arrays], tuple[Arrays, Arrays]]
    tolerance: float = 0.0

    def after(self, runs: int) -> Iterator[tuple[Arrays, Arrays]]:
        """Outputs and states after each run."""
        states: Arrays = dict(self.initial)
        for k in range(runs):
            outputs, states = self.run(self.inputs[k % len(self.inputs)], states)
            yield outputs, states

    def compare(self, got: Mapping[str, Any], expected: Arrays) -> None:
        assert got.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(got[name], value, rtol=self.tolerance, atol=self.tolerance, err_msg=name)


# --- a counter: it adds its input, and begins at 5 and 50 ------------------------------------------------------------


def _count(x: sg.Tensor, *, count: sg.Tensor) -> Any:
    return {"before": count * 2}, {"count": count + x}


COUNTED: Final = np.array([5, 50], np.int32)

COUNTER: Final = Remembering(
    lambda device: sg.Model.of(
        _count, {"x": (2,)}, device, dtypes={"x": "int32"}, states={"count": COUNTED}, name="counting"
    ),
    [{"x": np.array([1, 10], np.int32)}, {"x": np.array([-2, 3], np.int32)}],
    {"count": COUNTED},
    lambda given, states: ({"before": states["count"] * 2}, {"count": states["count"] + given["x"]}),
)

# --- a ring, as a cache of keys is: a row is written where the oldest was --------------------------------------------

LENGTH: Final = 8
WIDTH: Final = 4


def _put(row: sg.Tensor, *, at: sg.Tensor, rows: sg.Tensor) -> Any:
    rows = rows.update_slice(row, at, sg.zeros((), dtype="int64", device=at.device))
    return {"total": rows.sum(0)}, {"rows": rows, "at": sg.where(at == LENGTH - 1, 0, at + 1)}


def _put_in_numpy(given: Arrays, states: Arrays) -> tuple[Arrays, Arrays]:
    rows, at = states["rows"].copy(), states["at"]
    rows[at] = given["row"][0]
    return {"total": rows.sum(0)}, {"at": (at + 1) % LENGTH, "rows": rows}


RING: Final = Remembering(
    lambda device: sg.Model.of(
        _put,
        {"row": (1, WIDTH)},
        device,
        states={"at": ((), "int64"), "rows": ((LENGTH, WIDTH), "float32")},
        name="cache",
    ),
    [{"row": np.arange(k, k + WIDTH, dtype=np.float32)[None]} for k in range(5)],
    {"at": np.zeros((), np.int64), "rows": np.zeros((LENGTH, WIDTH), np.float32)},
    _put_in_numpy,
)

# --- a step of gradient descent with momentum: batched loss, gradients and new weights in one Program ----------------

RATE: Final = np.float32(0.05)
MOMENTUM: Final = np.float32(0.5)
_rng: Final = np.random.default_rng(0)
WEIGHTS: Final = {
    "w1": (0.3 * _rng.standard_normal((4, 8))).astype(np.float32),
    "b1": np.zeros(8, np.float32),
    "w2": (0.3 * _rng.standard_normal((8, 3))).astype(np.float32),
    "b2": np.zeros(3, np.float32),
}


def _descent(device: str) -> sg.Model:
    b = Builder()
    x, y = b.input("x", (16, 4), float32), b.input("y", (16, 3), float32)
    weights = {name: leaf(value.shape, float32, name) for name, value in WEIGHTS.items()}
    moments = {name: leaf(value.shape, float32, f"m.{name}") for name, value in WEIGHTS.items()}
    hidden = b.tanh(b.add(b.dot(x, weights["w1"]), weights["b1"]))
    miss = b.sub(b.add(b.dot(hidden, weights["w2"]), weights["b2"]), y)
    loss = b.reduce_mean(b.mul(miss, miss), axes=(0, 1))
    found = gradient(Graph((x, y), (loss,), ("loss",)), b, [b.const(1.0)], list(weights.values()))
    states: list[GraphState] = []
    for (name, w), g in zip(weights.items(), found, strict=True):
        m = b.add(b.mul(moments[name], b.const(MOMENTUM)), g)
        states.append(GraphState(w, name, WEIGHTS[name], b.sub(w, b.mul(m, b.const(RATE)))))
        states.append(GraphState(moments[name], f"m.{name}", None, m))
    return sg.Model(Graph((x, y), (loss,), ("loss",), states=tuple(states)), device, "descent")


def _descent_in_numpy(given: Arrays, states: Arrays) -> tuple[Arrays, Arrays]:
    w1, b1, w2, b2 = (states[name] for name in WEIGHTS)
    hidden = np.tanh(given["x"] @ w1 + b1)
    miss = hidden @ w2 + b2 - given["y"]
    out = 2 * miss / miss.size
    inside = (out @ w2.T) * (1 - hidden * hidden)
    found = {"w1": given["x"].T @ inside, "b1": inside.sum(0), "w2": hidden.T @ out, "b2": out.sum(0)}
    after: Arrays = {}
    for name, g in found.items():
        after[f"m.{name}"] = MOMENTUM * states[f"m.{name}"] + g
        after[name] = states[name] - RATE * after[f"m.{name}"]
    return {"loss": np.mean(miss * miss).reshape(1, 1)}, after


def _batches() -> list[Arrays]:
    made = []
    for _ in range(4):
        x = _rng.standard_normal((16, 4)).astype(np.float32)
        made.append({"x": x, "y": np.sin(x[:, :3])})
    return made


DESCENT: Final = Remembering(
    _descent, _batches(), WEIGHTS | {f"m.{k}": np.zeros_like(v) for k, v in WEIGHTS.items()}, _descent_in_numpy, 2e-3
)

REMEMBERING: Final[Mapping[str, Remembering]] = {"counting": COUNTER, "cache": RING, "descent": DESCENT}
