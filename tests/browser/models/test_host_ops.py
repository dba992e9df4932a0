"""The ops that `singe.js` computes on the host, compared with NumPy's."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from bundles import STATIC, packed, unpacked
from pages import node

from singe.dtypes import bfloat16, dtype, widened
from singe.errors import SingeError
from singe.ir.arrays import convert
from singe.ir.arrays.numpy import NUMPY_ARRAYS
from singe.ops import ROWS


def host_cases() -> dict[str, tuple[str, list[np.ndarray], dict[str, Any], list[np.ndarray]]]:
    """A case's name ↦ the op, its inputs and attributes, and NumPy's results."""
    rng = np.random.default_rng(0)
    floats = rng.integers(-3, 4, (3, 5, 2)).astype(np.float32)
    floats[0, 1, 0] = np.nan
    halves, longs = floats.astype(np.float16), rng.integers(-(2**60), 2**60, (3, 5, 2))
    longs[1] = longs[0]
    x = rng.normal(size=(4, 5)).astype(np.float32)
    part, at = rng.normal(size=(2, 5)).astype(np.float32), rng.integers(-4, 4, (2, 5))
    rows = np.array([[3], [-4], [3]])
    blocks = rng.normal(size=(3, 5)).astype(np.float32)

    def order(x: np.ndarray, axis: int, descending: bool = False) -> np.ndarray:
        if not descending:
            return np.argsort(x, axis=axis, kind="stable")
        return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)

    def added(x: np.ndarray, index: Any, part: np.ndarray, how: Any = np.add) -> np.ndarray:
        out = x.copy()
        how.at(out, index, part)
        return out

    found: dict[str, tuple[str, list[np.ndarray], dict[str, Any], list[np.ndarray]]] = {}
    for kind, values in {"float32": floats, "float16": halves, "int64": longs, "int32": longs.astype(np.int32)}.items():
        for axis in (0, 1, -1):
            for down in (False, True):
                places = order(values, axis, down)
                both = [np.take_along_axis(values, places, axis), places]
                found[f"sort {kind} {axis} {down}"] = ("sort", [values], {"axis": axis, "descending": down}, both)
                least = [np.take(b, [0, 1], axis) for b in both]
                found[f"top_k {kind} {axis} {down}"] = (
                    "top_k",
                    [values],
                    {"axis": axis, "k": 2, "largest": down},
                    least,
                )
            some = np.arange(values.shape[axis]) % 2 == 1
            chosen = [np.compress(some, values, axis=axis)]
            found[f"compress {kind} {axis}"] = ("compress", [values, some], {"axis": axis}, chosen)
        found[f"nonzero {kind}"] = ("nonzero", [values], {}, [np.array(np.nonzero(values))])
        values_, first, back, counts = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
        found[f"unique {kind}"] = ("unique", [values], {}, [values_, first, back.reshape(-1), counts])
        for axis in (0, 2):
            whole = values.copy()
            whole[np.isnan(whole)] = 1
            for op, how in {"running_sum": np.add, "running_max": np.maximum}.items():
                wide = whole.astype(np.float32) if kind == "float16" else whole
                ends = [np.flip(how.accumulate(np.flip(wide, axis), axis=axis), axis).astype(values.dtype)]
                found[f"{op} {kind} {axis}"] = (op, [whole], {"axis": axis, "reverse": True}, ends)
    line = rng.integers(0, 30, (100, 2)).astype(np.float32)
    for down in (False, True):
        places = order(line, 0, down)[:3]
        best = [np.take_along_axis(line, places, 0), places]
        found[f"top_k of many {down}"] = ("top_k", [line], {"axis": 0, "k": 3, "largest": down}, best)
    for seed in (0, 7, -1):
        drawn = np.random.RandomState(seed & 0xFFFFFFFF).random_sample((7, 100)).astype(np.float32)
        found[f"random_uniform {seed}"] = ("random_uniform", [np.int64(seed)], {"shape": [7, 100]}, [drawn])
    upper = np.array([3, -0.0, -1, np.nan, 2, -5, 1, 4], np.float32)
    places = np.argsort(upper, kind="stable")
    found["sort bfloat16"] = (
        "sort", [convert(upper, bfloat16.numpy)], {"axis": 0, "descending": False}, [convert(upper[places], bfloat16.numpy), places])  # fmt: skip
    sums = np.array([1, 1.0078125, 256, -3], np.float32)
    found["running_sum bfloat16"] = (
        "running_sum", [convert(sums, bfloat16.numpy)], {"axis": 0, "reverse": False}, [convert(np.cumsum(sums), bfloat16.numpy)])  # fmt: skip
    grid = np.where(at < 0, at + 4, at), np.arange(5)
    found["scatter_elements_reduce"] = (
        "scatter_elements_reduce", [x, part, at], {"axis": 0, "reduction": "add"}, [added(x, grid, part)])  # fmt: skip
    found["scatter_nd_reduce"] = (
        "scatter_nd_reduce", [x, blocks, rows], {"reduction": "max"}, [added(x, ([3, 0, 3],), blocks, np.maximum)])  # fmt: skip
    found |= size_cases()
    moved = x.copy()
    moved[2:, 1:3] = part[:, :2]
    found["update_slice"] = ("update_slice", [x, part[:, :2].copy(), np.int64(9), np.int64(1)], {}, [moved])
    boxes = np.array(
        [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]]
    )
    scores = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]]], np.float32)
    limits = [np.array([3]), np.array([0.5], np.float32), np.array([0], np.float32)]
    found["non_max_suppression"] = (
        "non_max_suppression", [boxes.astype(np.float32), scores, *limits], {}, [np.array([[0, 0, 3], [0, 0, 0], [0, 0, 5]])])  # fmt: skip
    corners = rng.uniform(0, 9, (2, 60, 2))
    crowd = np.concatenate([corners, corners + rng.uniform(0, 3, corners.shape)], -1).astype(np.float32)
    scores = np.round(rng.normal(size=(2, 3, 60))).astype(np.float32)  # many are equal; 0 and -0 among them
    scores[0, 0, ::7] = np.nan
    scores[0, 1, ::7] = np.inf
    for most, least in ((5, -np.inf), (60, -1), (0, 0), (-1, 0), (2**40, 0.5)):
        given = [crowd, scores, np.array([most]), np.array([0.3], np.float32), np.array([least], np.float32)]
        kept = ROWS["non_max_suppression"].on_host(*given)  # pyright: ignore[reportAttributeAccessIssue]
        found[f"non_max_suppression {most} {least}"] = ("non_max_suppression", given, {"center": False}, [kept])
    return found


def size_cases() -> dict[str, Any]:
    """Ops that find sizes, which are the lengths of empty arrays."""

    def ints(*values: int) -> np.ndarray:
        return np.array(values, np.int64)

    def sizes(*values: int) -> list[np.ndarray]:
        return [np.zeros((n, 0), np.bool_) for n in values]

    there = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)
    back = np.empty(24, np.int64)
    back[there.ravel()] = np.arange(24)
    slices = [ints(3, 1, 9), ints(-(2**40), -1, 2**40), ints(0, -2, 2), ints(-2, 1, 3)]
    floats = [np.float32(v) for v in (1, 2, 0.3)]
    found = {
        "sizes": ([ints(3, 0)], {"total": 3, "most": 3}, sizes(3, 0)),
        "signed_sizes": ([ints(3, -2)], {}, sizes(3, 0, 0, 2)),
        "reshaped_sizes": ([ints(0, -1, 2)], {"shape": [3, 4], "allow_zero": False}, sizes(3, 2, 2)),
        "reshaped_sizes zero": ([ints(0, 5)], {"shape": [3, 0], "allow_zero": True}, sizes(0, 5)),
        "expanded_sizes": ([ints(4, 1, 3)], {"shape": [2, 1]}, sizes(4, 2, 3)),
        "range_size": ([ints(5), ints(-4), ints(-2)], {}, sizes(5)),
        "range_size float": (floats, {}, sizes(4)),
        "axes_sizes dropped": ([ints(-1)], {"shape": [2, 1], "change": "dropped"}, sizes(2)),
        "axes_sizes added": ([ints(-1, 0)], {"shape": [2, 3], "change": "added"}, sizes(1, 2, 3, 1)),
        "axes_sizes kept": ([ints(0)], {"shape": [2, 3], "change": "kept"}, sizes(1, 3)),
        "moved_last": ([ints(0, 1)], {"shape": [2, 3, 4]}, [there, back.reshape(2, 3, 4)]),
        "slice_places": (slices, {"shape": [6, 5, 9], "cuts": [0, 1, 2]}, [ints(3, 1), ints(1, 2, 3), ints()]),
    }
    return {
        name: (name.split()[0], inputs, {"what": name, **attrs}, wanted)
        for name, (inputs, attrs, wanted) in found.items()
    }


WRONG = {
    "sizes": ([[-1]], {}, "no number below 0"),
    "sizes above": ([[9]], {"most": 8}, "from 0 to 8"),
    "sizes apart": ([[1, 2]], {"total": 4}, "make 3, expected 4"),
    "reshaped_sizes": ([[4, -1]], {"shape": [3, 2], "allow_zero": False}, "has 6 elements"),
    "reshaped_sizes twice": ([[-1, -1]], {"shape": [3, 2], "allow_zero": False}, "has 6 elements"),
    "expanded_sizes": ([[4]], {"shape": [3]}, "does not broadcast"),
    "range_size": ([[0], [1], [0]], {}, "has no end"),
    "axes_sizes": ([[0]], {"shape": [2], "change": "dropped"}, "not all of length 1"),
    "moved_last": ([[0, -2]], {"shape": [2, 2]}, "one axis twice"),
    "slice_places": ([[0], [1], [0], [0]], {"shape": [2], "cuts": [0]}, "a step is 0"),
}
"""An op that finds sizes ↦ invalid numbers, and the error's text, which is the same in NumPy."""


def test_numbers_that_are_no_sizes() -> None:
    body = f"""
    const {{ runOp }} = await import({json.dumps((STATIC / "program" / "singe-host.js").as_uri())});
    return Promise.all(given.cases.map(([op, lists, attrs]) => failure(async () => {{
      const inputs = lists.map((list) => ({{ data: BigInt64Array.from(list, BigInt), shape: [list.length], dtype: "int64" }}));
      runOp({{ op, attrs: {{ what: "Op", ...attrs }} }}, inputs, {{}});
    }})));
    """
    cases = [[name.split()[0], lists, attrs] for name, (lists, attrs, _) in WRONG.items()]
    for (name, (lists, attrs, text)), answer in zip(WRONG.items(), node(body, cases=cases), strict=True):
        assert text in answer["message"], (name, answer)
        arrays = [np.array(values, np.int64) for values in lists]
        with pytest.raises(SingeError, match=text):
            ROWS[name.split()[0]].run(NUMPY_ARRAYS, arrays, {"what": "Op", **attrs})


def test_host_ops() -> None:
    cases = host_cases()
    body = f"""
    const {{ runOp }} = await import({json.dumps((STATIC / "program" / "singe-host.js").as_uri())});
    return given.cases.map(({{ op, inputs, attrs, kinds }}) => {{
      const tensors = Object.entries(unpack(inputs)).map(([name, x]) => ({{ ...x, dtype: inputs[name].dtype }}));
      const results = runOp({{ op, attrs }}, tensors, {{}});
      return pack(Object.fromEntries(results.map((x, k) => [k, {{ ...x, dtype: kinds[k] }}])));
    }});
    """

    def given(op: str, inputs: list[Any], attrs: dict[str, Any], wanted: list[np.ndarray]) -> dict[str, Any]:
        named = packed({f"i{k}": np.asarray(x) for k, x in enumerate(inputs)})
        return {"op": op, "inputs": named, "attrs": attrs, "kinds": [dtype(w.dtype).name for w in wanted]}

    found = node(body, cases=[given(*case) for case in cases.values()])
    for (name, (*_, wanted)), results in zip(cases.items(), found, strict=True):
        got = unpacked(results)
        assert len(got) == len(wanted), name
        for k, expected in enumerate(wanted):
            assert got[str(k)].dtype == expected.dtype, name
            mine, theirs = widened(got[str(k)]), widened(expected)
            assert np.array_equal(mine, theirs, equal_nan=theirs.dtype.kind == "f"), name
