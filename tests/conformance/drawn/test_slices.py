"""Slices of an axis of open length, for all small sizes: the bounds are constants, inputs, or computed from the size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pytest

import singe as sg
from singe.onnx.importer import import_model
from singe.onnx.model import OnnxGraph, OnnxModel, OnnxNode, OnnxType, OnnxValue
from singe.runtime.devices import device as open_device

FAR: Final = 2**31 - 1
SIZES: Final = range(6)
GIVEN: Final = (-6, -2, -1, 0, 1, 3, 7)
"""What inputs give as bounds."""


@dataclass(frozen=True)
class Bound:
    """A start or end: its name, the nodes that compute it from x and constants, and its value at a size."""

    text: str
    nodes: Callable[[str], Sequence[OnnxNode]]
    value: Callable[[int], int | None]
    constants: tuple[int, ...] = ()


def node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> OnnxNode:
    return OnnxNode(op, "", "", tuple(inputs), (output,), attributes)


def constant(v: int) -> Bound:
    return Bound(str(v), lambda name: (), lambda n: v, (v,))


def less(offset: int) -> Bound:
    """The size less a number."""

    def nodes(name: str) -> Sequence[OnnxNode]:
        return (node("Shape", "x", f"{name}s", start=0, end=1), node("Sub", (f"{name}s", f"{name}0"), name))

    return Bound(f"N-{offset}", nodes, lambda n: n - offset, (offset,))


def half(offset: int) -> Bound:
    """Half of the size less a number, rounded towards zero."""

    def nodes(name: str) -> Sequence[OnnxNode]:
        shape, rest = node("Shape", "x", f"{name}s", start=0, end=1), node("Sub", (f"{name}s", f"{name}0"), f"{name}r")
        return shape, rest, node("Div", (f"{name}r", f"{name}1"), name)

    return Bound(f"(N-{offset})/2", nodes, lambda n: int((n - offset) / 2), (offset, 2))


def negative(offset: int) -> Bound:
    """A number less the size."""

    def nodes(name: str) -> Sequence[OnnxNode]:
        return (node("Shape", "x", f"{name}s", start=0, end=1), node("Sub", (f"{name}0", f"{name}s"), name))

    return Bound(f"{offset}-N", nodes, lambda n: offset - n, (offset,))


INPUT: Final = Bound("input", lambda name: (), lambda n: None)
BOUNDS: Final = (
    *map(constant, (-FAR, -3, -1, 0, 1, 2, 4, FAR)), *map(less, (0, 1, 3)), *map(half, (0, 1, 3)), *map(negative, (0, 2)), INPUT,
)  # fmt: skip


def expected(x: np.ndarray, start: int, end: int, step: int) -> np.ndarray:
    """ONNX's rule: negative bounds count from the end, and then all are clamped to the axis."""
    d = len(x)
    start, end = (v + d if v < 0 else v for v in (start, end))
    low, high = (0, d) if step > 0 else (-1, d - 1)
    first = min(max(start, 0), high)
    return x[list(range(first, min(max(end, low), high), step))] if d else x


@pytest.mark.parametrize("step", [1, 2, -1, -2])
@pytest.mark.parametrize("device_name", ["numpy"], indirect=True)
def test_every_slice_of_every_small_size(device_name: str, step: int) -> None:
    for start in BOUNDS:
        for end in BOUNDS:
            compare(device_name, start, end, step)


@pytest.mark.parametrize("device_name", ["wasm", "webgpu"], indirect=True)
def test_some_slices_of_every_small_size(device_name: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(12):
        start, end = (BOUNDS[int(rng.integers(len(BOUNDS)))] for _ in range(2))
        compare(device_name, start, end, int(rng.choice((1, 2, -1, -2))))


def compare(device_name: str, start: Bound, end: Bound, step: int) -> None:
    values = {"a": start, "b": end}
    constants = {"axes": np.array([0]), "steps": np.array([step])}
    for name, bound in values.items():
        if bound is not INPUT and not bound.nodes(name):
            constants[name] = np.array(bound.constants)
        constants |= {f"{name}{k}": np.array([v]) for k, v in enumerate(bound.constants)}
    inputs = [OnnxValue("x", OnnxType("tensor", "float32", ("N", 2)))]
    inputs += [OnnxValue(k, OnnxType("tensor", "int64", (1,))) for k, bound in values.items() if bound is INPUT]
    nodes = (*start.nodes("a"), *end.nodes("b"), node("Slice", ("x", "a", "b", "axes", "steps"), "y"))
    graph = OnnxGraph("g", nodes, constants, tuple(inputs), (OnnxValue("y", None),), ())
    model = sg.Model(import_model(OnnxModel("slice.onnx", 8, {"": 18}, graph, (), {})), device=open_device(device_name))
    for n in SIZES:
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        for first in GIVEN if start is INPUT else (start.value(n),):
            for last in GIVEN if end is INPUT else (end.value(n),):
                assert first is not None
                assert last is not None
                feed = {"a": first, "b": last}
                given = [np.array([feed[k]]) for k, bound in values.items() if bound is INPUT]
                found = model(x, *given)
                wanted = expected(x, first, last, step)
                what = f"x[{start.text}:{end.text}:{step}] of {n} with {first}, {last}"
                assert found.shape == wanted.shape, what
                np.testing.assert_array_equal(found, wanted, what)
