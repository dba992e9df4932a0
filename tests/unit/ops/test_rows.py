"""Every row computes what its reference says, in every dtype it takes, on every device."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from devices import ALL_BUT_SHADERS, DEVICES, runners, slow
from rows.references import REFERENCES
from rows.row_samples import DEAR, KINDS, SAMPLED, SAMPLES, arrays_of, graph_of, numbers, sampled, samples_of
from rows.samples import Sample

import singe as sg
from singe.dtypes import DTYPES, DType, float16, float32, uint8
from singe.errors import DTypeError, ShapeError
from singe.graph import Builder, Graph, Node
from singe.graph.structure import structure
from singe.ops import ROWS, Composite, Elementwise, Row, find_row
from singe.shapes import size

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.2e-38, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 100.0, -100.0)


def row_cases() -> list[Any]:
    """Each row in each dtype on each device; `make quick` runs it in its last dtype, float32 for most; on devices other than
    numpy only the cheap rows that are not composed of others, nor computed there on special values. Of rows that
    are not cheap, and on devices that compile for long, it takes every third sample."""
    cases = []
    for device, row in product(DEVICES, SAMPLED):
        kinds = [kind for kind in KINDS if kind in row.dtypes]
        for kind in kinds:
            repeated = (
                row.name in DEAR or isinstance(row, Composite) or (isinstance(row, Elementwise) and kind is float32)
            )
            quick = kind is kinds[-1] and (device == "numpy" or not repeated)
            marks = [] if quick else [pytest.mark.slow]
            name, samples = f"{device}-{row.name}-{kind}", samples_of(row)
            every = 3 if quick and (row.name in DEAR or device in ("wasm", "webgpu")) else 1
            cases.append(pytest.param(row, kind, samples[::every], device, marks=marks, id=name))
            if others := [sample for k, sample in enumerate(samples) if k % every]:
                cases.append(pytest.param(row, kind, others, device, marks=pytest.mark.slow, id=f"{name}-others"))
    return cases


NORMAL = tuple(v for v in SPECIAL if not 0 < abs(v) < np.finfo(np.float32).tiny)
"""The values for WebGPU, which may treat subnormal numbers as zeros: a GPU does, a software driver does not."""
FLOAT_CASES = [
    pytest.param(row, kind, id=f"{row.name}-{kind}", marks=[pytest.mark.slow] * (kind is not float32))
    for row in SAMPLED
    for kind in KINDS
    if kind.is_float and kind in row.dtypes and isinstance(row, Elementwise)
]


def expected(row: Row, sample: Sample, arrays: Sequence[np.ndarray], kind: DType, **attrs: Any) -> np.ndarray:
    """The reference's answer, computed in float64 and rounded once to the result's dtype."""
    assert row.name in REFERENCES, (
        f"{row.name} has no reference: add a function of NumPy's arrays in tests/support/rows/references"
    )
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    with np.errstate(all="ignore"):
        return np.asarray(
            REFERENCES[row.name](*wide, **{k: numbers(v) for k, v in {**sample.attrs, **attrs}.items()})
        ).astype(kind.numpy)


def assert_close(got: np.ndarray, want: np.ndarray, row: Row, what: str) -> None:
    """Equal within the row's tolerance, in units in the last place of the dtype, with its absolute floor.

    If a row is composed of several steps, float16 is rounded after each, so the floor is larger for float16.
    """
    assert got.dtype == want.dtype, f"{what}: {got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"{what}: {got.shape}, expected {want.shape}"
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, what)
        return
    with np.errstate(all="ignore"):
        exact = (got == want) | np.isnan(got) & np.isnan(want)
        both = np.isfinite(got) & np.isfinite(want)
        error = np.abs(got.astype(np.float64) - want.astype(np.float64))
        coarse = np.finfo(got.dtype).eps / np.finfo(np.float32).eps if isinstance(row, Composite) else 1
        allowed = np.maximum(row.tolerance * np.spacing(np.abs(want)).astype(np.float64), row.floor * coarse)
        wrong = ~(exact | both & (error <= allowed))
    assert not wrong.any(), (
        f"{what}: got {got[wrong][:5]}, expected {want[wrong][:5]} at {np.argwhere(wrong)[:5].tolist()}"
    )


def seed_of(row: Row, kind: DType) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(f"{row.name} {kind}".encode()))


@pytest.mark.parametrize(("row", "kind", "samples", "device_name"), row_cases(), indirect=["device_name"])
def test_row(row: Row, kind: DType, samples: Sequence[Sample], run_graph: Any) -> None:
    rng = seed_of(row, kind)
    for sample in samples:
        if sample.floats_only and not kind.is_float:
            continue
        arrays = sampled(row, sample, rng, kind)
        graph = graph_of(row, sample, arrays)
        (got,) = run_graph(graph, arrays)
        assert_close(got, expected(row, sample, arrays, graph.outputs[0].dtype), row, f"{row.name} {sample}")


ODD = (
    "asin",
    "asinh",
    "atan",
    "atanh",
    "copysign",
    "erf",
    "log1p",
    "neg",
    "round",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
)
"""Rows that keep the sign of zero, or turn it as their references do."""


@pytest.mark.parametrize("name", ODD)
def test_zeros_keep_their_signs(name: str, run_graph: Any) -> None:
    row = ROWS[name]
    zeros = [np.array([0.0, -0.0], np.float32)] * (row.arity if isinstance(row, Elementwise) else 1)
    (got,) = run_graph(graph_of(row, Sample(tuple(a.shape for a in zeros), {}), zeros), zeros)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(REFERENCES[name](*zeros)))


@pytest.mark.parametrize("divisor", [0.0, -0.0])
def test_a_quotient_by_a_constant_zero(divisor: float, run_graph: Any) -> None:
    b = Builder()
    x = b.input("x", (6,), float32)
    values = np.array([2.0, -2.0, 0.0, np.nan, np.inf, -np.inf], np.float32)
    (got,) = run_graph(Graph((x,), (b.div(x, b.const(divisor, float32)),), ("y",)), [values])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, values / np.float32(divisor))


@runners("interpret", "numpy", "wasm", *slow("array", "webgpu"))
@pytest.mark.parametrize(("row", "kind"), FLOAT_CASES)
def test_special_values(row: Elementwise, kind: DType, run_graph: Any, device_name: str) -> None:
    """NaN, infinities, zeros of both signs and denormals, each met with each."""
    with np.errstate(over="ignore"):
        values = np.array(NORMAL if device_name == "webgpu" else SPECIAL).astype(kind.numpy)
    grid = [np.ascontiguousarray(g.ravel()) for g in np.meshgrid(*[values] * row.arity, indexing="ij")]
    arrays = [g != 0 if k == "bool" else g for g, k in zip(grid, row.argument_types or ["T"] * row.arity, strict=True)]
    for sample in samples_of(row)[::5]:
        given = Sample(tuple(a.shape for a in arrays), sample.attrs)
        graph = graph_of(row, given, arrays)
        (got,) = run_graph(graph, arrays)
        want = expected(row, given, arrays, graph.outputs[0].dtype)
        if device_name == "webgpu" and want.dtype == np.float32:  # what is hardly a normal number may become zero
            got, want = (np.where(np.abs(y) <= 1.2e-38, np.float32(0), y) for y in (got, want))
        assert_close(got, want, row, f"{row.name} {sample.attrs}")


@ALL_BUT_SHADERS
@pytest.mark.parametrize(
    "name",
    [
        "reduce_sum",
        "reduce_max",
        "reduce_min",
        "max_pool",
        "softmax",
        "reshape",
        "slice",
        "pad",
        "concat",
        "transpose",
        "expand",
    ],
)
def test_special_values_pass_through(name: str, run_graph: Any, device_name: str) -> None:
    row, rng = ROWS[name], np.random.default_rng(3)
    values = np.array(NORMAL if device_name == "webgpu" else SPECIAL, np.float32)
    for sample in SAMPLES[name]:
        arrays = [rng.choice(values, a.shape) for a in arrays_of(sample, rng, float32, row)]
        (got,) = run_graph(graph_of(row, sample, arrays), arrays)
        assert_close(got, expected(row, sample, arrays, float32), row, f"{name} {sample}")


def test_the_place_of_an_extreme_is_that_of_nan_if_there_is_one(run_graph: Any) -> None:
    x = np.array([[1, np.nan, 3, np.nan], [-np.inf, 2, np.inf, np.inf], [-np.inf] * 4, [np.nan] * 4], np.float32)
    for name, first, last in (("argmax", [1, 2, 0, 0], [3, 3, 3, 3]), ("argmin", [1, 0, 0, 0], [3, 0, 3, 3])):
        for attrs, want in (({}, first), ({"last": True}, last)):
            (got,) = run_graph(graph_of(ROWS[name], Sample((x.shape,), {"axis": 1, **attrs}), [x]), [x])
            assert got[:, 0].tolist() == want, (name, attrs)


def test_row_is_complete() -> None:
    """Every row has an oracle, samples, and either a meaning as a loop nest or a lowering."""
    for row in SAMPLED:
        assert row.name in REFERENCES, f"{row.name}: give its definition in tests/support/rows/references"
        assert samples_of(row), row.name
        assert row.tolerance > 0, row.name
        assert isinstance(row, Elementwise) or row.doc, row.name


def test_samples_name_rows_only() -> None:
    assert SAMPLES.keys() <= ROWS.keys()


def test_dtypes_and_shapes_that_do_not_fit_are_refused() -> None:
    b = Builder()
    f, i, u = b.input("f", (2, 3), float32), b.input("i", (2, 3), DTYPES["int32"]), b.input("u", (3, 2), uint8)
    n = b.input("n", (size("N"), 3), float32)
    with pytest.raises(DTypeError, match="add: the dtypes float32, int32 differ"):
        b.add(f, i)
    with pytest.raises(DTypeError, match="exp: got int32"):
        b.exp(i)
    with pytest.raises(DTypeError, match="elu has no attribute beta"):
        b.elu(f, beta=1.0)
    with pytest.raises(ShapeError, match="do not broadcast"):
        b.add(i, b.cast(u, to=i.dtype))
    with pytest.raises(ShapeError, match="do not broadcast"):
        b.add(n, b.input("m", (size("M"), 3), float32))
    refused: list[tuple[str, list[Node], dict[str, Any]]] = [
        ("reshape", [f], {"shape": (4, 2)}),
        ("reshape", [n], {"shape": (7,)}),
        ("transpose", [f], {"perm": (0, 0)}),
        ("expand", [f], {"shape": (3, 3)}),
        ("slice", [f], {"starts": (0, 2), "steps": (1, 1), "sizes": (2, 2)}),
        ("pad", [f, b.const(0.0)], {"before": (-1, 0), "after": (0, 0), "mode": "constant"}),
        ("pad", [f, b.const(0.0)], {"before": (2, 0), "after": (0, 0), "mode": "reflect"}),
        ("concat", [f, n], {"axis": 1}),
        ("gather", [b.input("e", (0, 2), float32), b.const(np.array([0]))], {"axis": 0}),
        ("reduce_sum", [f], {"axes": (2,)}),
        ("tril", [b.input("vector", (3,), float32)], {}),
        ("nll_loss", [f, b.input("classes", (3,), DTYPES["int64"])], {}),
        ("nll_loss", [f, b.input("t", (2,), DTYPES["int64"]), b.input("w", (2,), float32)], {}),
        ("cross_entropy", [f, b.input("t", (2,), DTYPES["int64"])], {"reduction": "median"}),
        ("argmax", [b.input("none", (2, 0), float32)], {"axis": 1}),
        ("reduce_sum", [f], {"axes": (0, -2)}),
        ("dot", [f, f], {}),
        ("matmul", [f, b.const(1.0)], {}),
        (
            "max_pool",
            [f],
            {"window": (3, 1), "strides": (1, 1), "dilations": (1, 1), "before": (0, 0), "after": (0, 0)},
        ),
        ("resize", [f], {"sizes": (2, 3), "scales": (1.0,)}),
        ("resize", [f], {"sizes": (2, 6), "scales": (1.0, 2.0), "mode": "bicubic"}),
    ]
    for name, inputs, attrs in refused:
        with pytest.raises(ShapeError):
            b.apply(ROWS[name], *inputs, **attrs)


def test_interpolated_bytes_are_cut_toward_zero_and_saturate(run_graph: Any) -> None:
    row, x = ROWS["resize"], np.array([0, 255, 255, 0, 7], np.uint8)
    for mode in ("linear", "cubic"):
        sample = Sample((x.shape,), {"sizes": (10,), "scales": (2.0,), "mode": mode})
        (got,) = run_graph(graph_of(row, sample, [x]), [x])
        np.testing.assert_array_equal(got, expected(row, sample, [x], uint8))


def test_running_leaves_the_inputs_alone(run_graph: Any) -> None:
    """Not even where an op gives back its input and the next one could write over that."""
    b = Builder()
    x = b.input("x", (4,), float32)
    same = b.apply(find_row("add_d0"), x, x, x)  # the gradient of a sum: what it is given
    value = np.arange(4, dtype=np.float32)
    (got,) = run_graph(Graph((x,), (b.mul(b.apply(find_row("sub_d1"), x, x, same), b.const(3.0)),), ("y",)), [value])
    np.testing.assert_array_equal(got, [0, -3, -6, -9])
    np.testing.assert_array_equal(value, [0, 1, 2, 3])
    assert not np.shares_memory(got, value)


def test_float16_means_and_softmaxes_do_not_overflow(run_graph: Any) -> None:
    x = np.full((2, 4096), 100, np.float16)
    for name, attrs in (("reduce_mean", {"axes": (1,)}), ("softmax", {})):
        row, sample = ROWS[name], Sample((x.shape,), attrs)
        assert isinstance(row, Composite)
        (got,) = run_graph(graph_of(row, sample, [x]), [x])
        assert_close(got, expected(row, sample, [x], float16), row, name)


def test_attributes_that_are_zeros_keep_their_signs(run_graph: Any, device_name: str) -> None:
    """−1 · 0.0 is −0.0 and −1 · −0.0 is 0.0: in one graph, and in graphs that run one after the other."""
    b = Builder()
    x = b.input("x", (4,), float32)
    both = [b.leaky_relu(x, alpha=alpha) for alpha in (0.0, -0.0)]
    graphs = [Graph((x,), (y,), ("y",)) for y in both]
    value = np.full(4, -1, np.float32)
    got = [*run_graph(Graph((x,), tuple(both), ("a", "b")), [value]), *(run_graph(g, [value])[0] for g in graphs)]
    if device_name != "webgpu":  # WGSL leaves it open whether zeros have signs
        assert [np.signbit(y).all() for y in got] == [True, False] * 2
    assert structure(graphs[0]) != structure(graphs[1])


@pytest.mark.parametrize("device_name", ["numpy", "wasm"], indirect=True)
def test_a_zero_of_floor_divide_has_the_sign_of_the_quotient(device_name: str) -> None:
    """On webgpu, shaders need not keep the sign of a zero."""
    x, y = np.array([-0.0, 0, -0.0, 0, 0.3, -5, 5], np.float32), np.array([1, 1, -1, -1, 1, np.inf, np.inf], np.float32)
    found = sg.floor_divide(sg.tensor(x, device=device_name), sg.tensor(y, device=device_name)).numpy()
    wanted = np.floor_divide(x, y)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
