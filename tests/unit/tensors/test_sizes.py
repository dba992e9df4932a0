"""An open dimension in Python code that is traced gives what its number would give, or an error that says what to write."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import NUMPY

import singe as sg
from singe.errors import SizeNeeded
from singe.shapes import Size, TracedSize

chosen = sg.op("chosen_by_a_size", lambda x, *, n: x if n == 3 else x + 1)
TABLE = sg.tensor([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])
WORKS: dict[str, Callable[[Any, Any], Any]] = {
    "T**2": lambda x, T: x + T**2,
    "abs": lambda x, T: x + abs(T - 4),
    "divmod": lambda x, T: x + divmod(T, 2)[0] * 10 + divmod(T, 2)[1],
    "rounded": lambda x, T: x + round(T) + math.ceil(T) + math.floor(T) + +T,
    "NumPy's integers": lambda x, T: x + T * np.int64(2) + np.int64(3) * T,
    "text": lambda x, T: (f"{T}", x)[1],
    "known comparisons": lambda x, T: x if T >= 0 and T > -1 and not T < 0 else x + 1,
    "one form": lambda x, T: x if (T * 2 + 2) // 2 - 1 == T and x.shape == x.exp().shape and T - T == 0 else x + 1,
    "never equal": lambda x, T: x if T != -1 and T + 1 != 0 and T not in (T + 1, -2) and T != "T" else x + 1,
    "the truth of more than none": lambda x, T: x if T + 1 else x + 1,
    "in a dict": lambda x, T: x + {T: 1, T + 1: 2}[x.shape[0]],
    "tensor": lambda x, T: sg.tensor(T),
    "tensor of floats": lambda x, T: sg.tensor(T, sg.float32).sqrt(),
    "tensor of several": lambda x, T: sg.tensor([T, 2, T // 2]),
    "where": lambda x, T: sg.where(sg.tensor(T) > 3, x, x + 1),
    "arange": lambda x, T: sg.arange(T),
    "arange with steps": lambda x, T: sg.arange(2, T + 5, 2),
    "arange backwards": lambda x, T: sg.arange(T - 1, -1, -1),
    "eye": lambda x, T: sg.eye(T),
    "eye of columns": lambda x, T: sg.eye(3, T),
    "linspace": lambda x, T: sg.linspace(0, 1, T),
    "linspace to T": lambda x, T: sg.linspace(1, T, 5),
    "zeros": lambda x, T: sg.zeros(T),
    "full": lambda x, T: sg.full((T, 2), T),
    "full_like": lambda x, T: sg.full_like(TABLE, T),
    "expand": lambda x, T: sg.tensor([1.0]).expand(T),
    "meshgrid": lambda x, T: sg.meshgrid(sg.arange(T), sg.arange(4))[0],
    "tril": lambda x, T: sg.ones(T, T).tril(),
    "one_hot": lambda x, T: sg.arange(T).one_hot(T),
    "reshape": lambda x, T: x.reshape(T, -1).reshape(-1, T),
    "size(0)": lambda x, T: x.view(x.size(0), -1) + x.size(-1),
    "size()": lambda x, T: sg.ones(*x.size()) + x.size * x,
    "x[:T // 2]": lambda x, T: x[: T // 2],
    "x[T // 2:]": lambda x, T: x[T // 2 :],
    "x[:T - 1]": lambda x, T: x[: T - 1],
    "x[T - 1]": lambda x, T: x[T - 1],
    "x[-1]": lambda x, T: x[-1],
    "x[-3:]": lambda x, T: x[-3:],
    "x[:-3]": lambda x, T: x[:-3],
    "x[2:-1]": lambda x, T: x[2:-1],
    "a tensor of numbers by T": lambda x, T: TABLE[:T] + TABLE[T - 1],
    "narrow": lambda x, T: x.narrow(0, 0, T - 1),
    "split": lambda x, T: x.split([T // 2, T - T // 2])[1],
    "tensor_split": lambda x, T: x.tensor_split(2)[0],
    "nanmedian": lambda x, T: x.nanmedian(0).values + x.nanmedian(),
    "nanquantile": lambda x, T: x.nanquantile(0.5, 0),
    "roll": lambda x, T: x.roll(1, 0),
    "roll by more": lambda x, T: x.roll(4, 0),
    "roll by T": lambda x, T: x.roll(T + 1, 0),
    "repeat": lambda x, T: x.repeat(T, 1),
    "repeat_interleave": lambda x, T: x.repeat_interleave(T, 0),
    "pad": lambda x, T: x.pad((1, T)),
    "mean": lambda x, T: x.sum() / T,
}
REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "int": (lambda x, T: int(T), "has no number until a run"),
    "range": (lambda x, T: list(range(T)), "in place of a loop"),
    "T / 2": (lambda x, T: x * (T / 2), r"take sg\.tensor\(size\)"),
    "T * 0.5": (lambda x, T: x * (T * 0.5), r"take sg\.tensor\(size\)"),
    "T ** 0.5": (lambda x, T: x * T**0.5, r"take sg\.tensor\(size\)"),
    "median": (lambda x, T: x.median(0).values, r"median: axis 0 of \(T, 4\) has no number until a run; use nanmedian"),
    "median of all": (lambda x, T: x.median(), "use nanmedian, which takes open axes"),
    "quantile": (lambda x, T: x.quantile(0.5, 0), "use nanquantile, which takes open axes"),
    "split": (lambda x, T: x.split(2)[0], r"number of pieces is open; use tensor_split\(n, 0\)"),
    "the root of T": (lambda x, T: x * np.sqrt(T), r"take sg\.tensor\(size\)"),
    "2 ** T": (lambda x, T: x * 2**T, r"take sg\.tensor\(size\)"),
    "digits": (lambda x, T: f"{T:3d}", "has no number until a run"),
    "T > 3": (lambda x, T: x if T > 3 else x + 1, r"whether T > 3 depends on the run.*sg\.where"),
    "T == 3": (lambda x, T: x if T == 3 else x + 1, r"whether T is 3 depends on the run.*sg\.where"),
    "T // 2 == 1": (lambda x, T: x if T // 2 == 1 else x + 1, r"whether \(T // 2\) is 1 depends on the run"),
    "1 + T == 3": (lambda x, T: x if 1 + T == 3 else x + 1, r"whether T \+ 1 is 3 depends on the run"),
    "divmod(T, 2)[1] == 0": (lambda x, T: x if divmod(T, 2)[1] == 0 else x + 1, "depends on the run"),
    "abs(T - 4) == 1": (lambda x, T: x if abs(T - 4) == 1 else x + 1, "depends on the run"),
    "a shape": (lambda x, T: x if x.shape == (3, 4) else x + 1, r"whether T is 3 depends on the run"),
    "in a shape": (lambda x, T: x if 3 in x.shape else x + 1, r"whether T is 3 depends on the run"),
    "of another tensor": (lambda x, T: x if x[1:].shape[0] == 3 else x + 1, "depends on the run"),
    "a count": (
        lambda x, T: x if x.numel() == 12 and x.size == 12 else x + 1,
        r"whether 4\*T is 12 depends on the run",
    ),
    "size(0)": (lambda x, T: x if x.size(0) == 3 else x + 1, r"whether T is 3 depends on the run"),
    "broadcast_shapes": (
        lambda x, T: x if sg.broadcast_shapes(x.shape, (1, 4)) == (3, 4) else x + 1,
        r"whether T is 3 depends on the run",
    ),
    "an attribute of an op": (lambda x, T: chosen(x, n=T), r"whether T is 3 depends on the run"),
    "truth": (lambda x, T: x if T else x + 1, r"whether T is 0 depends on the run.*sg\.where"),
    "min": (lambda x, T: x[: min(T, 3)], "depends on the run"),
    "chunk": (lambda x, T: x.chunk(2)[0], r"use tensor_split\(2, 0\)"),
    "loop": (lambda x, T: list(x), "no length until a run"),
    "unbind": (lambda x, T: x.unbind()[0], "methods that work along the axis"),
    "arange of floats": (lambda x, T: sg.arange(0.5, T), r"sg\.arange\(size\) \* step"),
}


def of_length(function: Callable[[Any, Any], Any], device: str = "numpy") -> sg.Model:
    """The model of a function of a tensor and its open length."""
    return sg.Model.of(lambda x: function(x, x.shape[0]), {"x": ("T", 4)}, device)


@pytest.mark.slow
@NUMPY
@pytest.mark.parametrize("name", WORKS)
def test_an_open_dimension_gives_what_its_number_gives(name: str, device_name: str) -> None:
    function = WORKS[name]
    model = of_length(function, device_name)
    for length in (5, 2, 3):
        x = np.arange(4 * length, dtype=np.float32).reshape(length, 4)
        expected = function(sg.tensor(x), length).numpy()
        got = model(x)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=f"T = {length}")


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_number_says_what_to_write(name: str) -> None:
    function, said = REFUSED[name]
    with pytest.raises((SizeNeeded, sg.InputError), match=said):
        of_length(function)(np.ones((3, 4), np.float32))


def test_graphs_have_plain_sizes() -> None:
    """What a function did with sizes leaves nothing in the Graph that would ask by `==`."""

    def function(x: Any, T: Any) -> Any:
        y = x.reshape(T * 2, -1).pad((1, T))[: T // 2, 1:]
        return y.sum(0) + sg.full((2 + T,), T) + sg.arange(T + 2).cast(sg.float32)

    graph = of_length(function).graph()
    attributes = [parts_of(list(n.attrs.values())) for n in graph.nodes]
    constants = [v for n in graph.nodes if n.value is not None and n.value.dtype == object for v in n.value.ravel()]
    shapes = [d for n in graph.nodes for shape, _ in n.results for d in shape]
    parts = [*(p for each in attributes for p in each), *constants, *shapes, *graph.checks]
    assert any(isinstance(p, Size) for p in parts)
    assert not [p for p in parts if isinstance(p, TracedSize)]


def parts_of(value: Any) -> list[Any]:
    return [p for v in value for p in parts_of(v)] if isinstance(value, (list, tuple)) else [value]


def test_a_slice_whose_end_turns_out_negative_is_refused() -> None:
    model = of_length(lambda x, T: x[: T - 3])
    assert model(np.ones((5, 4), np.float32)).shape == (2, 4)
    with pytest.raises(sg.ShapeError, match="slice"):
        model(np.ones((2, 4), np.float32))
