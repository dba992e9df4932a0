"""Every row that claims to be portable computes what its reference says over the arrays of a library that has the functions of the array
API standard and nothing else. So another library needs an adapter, and its rows need nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pytest
from devices import constant, sizes_of, walk
from rows.row_samples import DEAR, KINDS, SAMPLED, graph_of, sampled, samples_of
from rows.samples import Sample
from test_rows import SPECIAL, assert_close, expected, seed_of

from singe.dtypes import DType, float32, int32, int64, uint32
from singe.errors import DTypeError
from singe.graph import Graph
from singe.graph.transform import specialise
from singe.ir.arrays.adapter import ArrayAdapter
from singe.ir.arrays.numpy import NUMPY_ARRAYS
from singe.ops import ROWS, Elementwise, Region, Result, Row

pytest.importorskip("array_api_strict")
from array_api_strict import ArrayAPIStrictFlags
from strict_arrays import FUNCTIONS, STRICT

NOT_RUN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("lstm", "gru", "rnn", "path_sums"), "loops over other rows, which a runner turns"),
    "checks": "composed of others, with two results",
}
"""Portable rows that are not run here, each with the reason."""
ON_HOST: Final = {
    "axes_sizes", "compress", "decode_image", "expanded_sizes", "mel_weight_matrix", "moved_last", "non_max_suppression", "nonzero",
    "random_uniform", "range_size", "regex_full_match", "reshaped_sizes", "resize_tables", "signed_sizes", "sizes", "slice_places",
    "string_concat", "string_normalize", "string_places", "string_split", "string_tokens", "strings", "unique",
}  # fmt: skip
"""Rows that stay on the host by design."""

ROW_CASES: list[Any] = [
    pytest.param(
        row, kind, id=f"{row.name}-{kind}", marks=[pytest.mark.slow] * (kind is not kinds[-1] or row.name in DEAR)
    )
    for row in SAMPLED
    for kinds in [[kind for kind in (uint32, *KINDS) if kind in row.dtypes and kind in STRICT.dtypes]]
    for kind in kinds
]


def run_strict(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Each node in arrays of the strict namespace; composites as what they are lowered to."""
    if sizes := sizes_of(graph, arrays):
        graph = specialise(graph, sizes)

    def compute(n: Any, given: Sequence[Any]) -> Any:
        return STRICT.asarray(constant(n, {})) if n.is_const else run_row(n.row, given, n.attrs)

    return [STRICT.host(y) for y in walk(graph, [STRICT.asarray(a) for a in arrays], compute)]


def run_row(row: Row, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """A row in arrays of the strict namespace, none of which becomes NumPy's on the way out, without shapes that depend on data."""
    with np.errstate(all="ignore"), ArrayAPIStrictFlags(boolean_indexing=False, data_dependent_shapes=False):
        found = row.run(STRICT, arrays, attrs)
    for y in found if isinstance(found, tuple) else (found,):
        assert isinstance(y, type(STRICT.asarray(0))), f"{row.name} gives {type(y)}"
    return found


@pytest.mark.parametrize(("row", "kind"), ROW_CASES)
def test_a_portable_row_needs_the_standard_only(row: Row, kind: DType) -> None:
    rng = seed_of(row, kind)
    for sample in samples_of(row):
        if sample.floats_only and not kind.is_float:
            continue
        arrays = sampled(row, sample, rng, kind)
        graph = graph_of(row, sample, arrays)
        if graph.outputs[0].dtype not in STRICT.dtypes:
            continue
        (got,) = run_strict(graph, arrays)
        assert_close(got, expected(row, sample, arrays, graph.outputs[0].dtype), row, f"{row.name} {sample}")


@pytest.mark.parametrize(
    "row", [row for row in SAMPLED if isinstance(row, Elementwise) and float32 in row.dtypes], ids=lambda row: row.name
)
def test_special_values_are_those_of_the_words(row: Elementwise) -> None:
    grid = [np.ascontiguousarray(g.ravel()) for g in np.meshgrid(*[np.array(SPECIAL, np.float32)] * row.arity)]
    arrays = [g != 0 if k == "bool" else g for g, k in zip(grid, row.argument_types or ["T"] * row.arity, strict=True)]
    for attrs in (sample.attrs for sample in samples_of(row)[::5]):
        sample = Sample(tuple(a.shape for a in arrays), attrs)
        graph = graph_of(row, sample, arrays)
        kind = graph.outputs[0].dtype
        if kind in STRICT.dtypes:
            (got,) = run_strict(graph, arrays)
            assert_close(got, expected(row, sample, arrays, kind), row, f"{row.name} {attrs}")


RNG = np.random.default_rng(5)
X = np.round(RNG.normal(size=(6, 7)), 1).astype(np.float32)
PLACES = RNG.integers(-6, 6, (6, 4))
OTHERS: Final[Mapping[str, tuple[Sequence[np.ndarray], Mapping[str, Any]]]] = {
    "top_k": ([X], {"axis": 1, "k": 3, "largest": True}),
    "top_k of the smallest": ([X.astype(np.int32)], {"axis": 0, "k": 2, "largest": False}),
    "sort": ([X], {"axis": -1}),
    "sort down": ([X], {"axis": 0, "descending": True}),
    "dimensions": ([], {"values": (3, 4), "kind": int64}),
    "bit_cast": ([X], {"to": int32}),
    "bit_cast back": ([X.view(np.int32)], {"to": float32}),
    **{
        f"scatter_elements_reduce by {word}": ([X, X[:, :4], PLACES], {"axis": 1, "reduction": word})
        for word in ("add", "mul", "max", "min")
    },
    **{
        f"scatter_nd_reduce by {word}": ([X, X[:4], PLACES[0][:, None]], {"reduction": word})
        for word in ("add", "mul", "max", "min")
    },
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_a_row_without_samples_gives_what_numpy_gives(case: str) -> None:
    row, (arrays, attrs) = ROWS[case.split(" ", maxsplit=1)[0]], OTHERS[case]
    want = row.run(NUMPY_ARRAYS, arrays, attrs)
    got = run_row(row, [STRICT.asarray(a) for a in arrays], attrs)
    for x, y in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, want)), strict=True):
        np.testing.assert_array_equal(STRICT.host(x), y)
        assert STRICT.dtype(x) is NUMPY_ARRAYS.dtype(y)


def test_rows_that_stay_on_the_host_are_these() -> None:
    assert {row.name for row in ROWS.values() if not (row.portable or row.outside)} == ON_HOST


def test_every_portable_row_is_run_or_has_a_reason() -> None:
    own = [row for row in ROWS.values() if row.dtypes and not row.outside]  # other tests add rows of functions
    portable = {row.name for row in own if row.portable and not isinstance(row, (Region, Result))}
    run = {case.values[0].name for case in ROW_CASES} | {case.split(" ")[0] for case in OTHERS}
    assert portable - run == NOT_RUN.keys()


def test_an_adapter_says_what_its_library_lacks() -> None:
    class Sealed:
        dtype = "f4"

    class Few:
        asarray, float32 = staticmethod(lambda values, dtype: Sealed()), "f4"

    with pytest.raises(AttributeError, match="Few has no 'add', a function of the array API standard: add it there"):
        ArrayAdapter(Few)
    for name in FUNCTIONS:
        if not hasattr(Few, name):
            setattr(Few, name, None)
    few = ArrayAdapter(Few)
    x = few.asarray(1, float32)
    assert few.dtype(x) is float32
    with pytest.raises(DTypeError, match="NumPy reads no elements from Sealed: override the adapter's `host`"):
        few.host(x)
    with pytest.raises(DTypeError, match="Few has no element type 'int64': add it there, or override"):
        few.arange(3)
    x.dtype = "f8"
    with pytest.raises(DTypeError, match=r"the type 'f8', expected one of \['f4'\], the types of Few"):
        few.dtype(x)
    with pytest.raises(NotImplementedError, match="softmax is no function of arrays: run the rows to which its node"):
        ROWS["softmax"].run(STRICT, [STRICT.asarray(X)], {"axis": 1})


def test_numpy_has_native_functions_of_rows_only() -> None:
    assert NUMPY_ARRAYS.native.keys() <= ROWS.keys()
