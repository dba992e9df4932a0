"""Every element type on every device: moved, converted, computed with and compared as NumPy and ml_dtypes do."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from devices import NUMPY, RUNNERS, runners, slow
from rows.references import REFERENCES
from rows.row_samples import random_values

import singe as sg
from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.compiler.target import execution_of
from singe.dtypes import (
    ALL,
    COMPLEX,
    DTYPES,
    FLOATS,
    INTS,
    NUMBERS,
    SINGLES,
    STORED,
    DType,
    dtype,
    narrowed,
    own,
    promote,
    string,
)
from singe.dtypes import widened as widen
from singe.errors import CompileError, DTypeError
from singe.graph import Builder, Graph
from singe.ir.arrays import convert
from singe.model.model import Model
from singe.ops import ROWS, Elementwise
from singe.shapes import size

STATIC = Path(__file__).parents[3] / "static"
ARITHMETIC = ("add", "sub", "mul", "div", "minimum", "maximum")
COMPARISON = ("less", "less_equal", "equal", "greater")
FUNCTIONS = (
    "exp", "log", "sin", "cos", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sqrt",
)  # fmt: skip


def twin(kind: DType) -> np.dtype[Any]:
    """The type of NumPy or ml_dtypes for an element type."""
    return np.dtype(getattr(ml_dtypes, kind.name)) if kind.held else kind.numpy


def values(kind: DType, count: int = 256) -> np.ndarray:
    """All codes of one-byte types; small and extreme numbers of others, with NaN and infinities for floats."""
    rng = np.random.default_rng(count)
    if kind is string:
        return own(np.array([f"{k % 7} é" * (k % 3) for k in range(count)]))
    if kind.held and kind.size == 1:
        codes = np.arange(count) & (1 << kind.bits) - 1
        return convert(codes, kind.numpy) if kind.coding is None else codes.astype(kind.held).view(kind.numpy)
    if kind.is_float or kind in COMPLEX:
        special = [0.0, -0.0, 1.5, -2.5, 3.0e4, -1e-3, np.inf, -np.inf, np.nan, 0.1, 255.5, -129.0]
        numbers = np.concatenate([special, rng.normal(0, 100, count - len(special))])
        return convert(numbers.astype(kind.compute.numpy), kind.numpy)
    return random_values(rng, (count,), kind, (-4, 4))


def run(device: str, arrays: list[np.ndarray], build: Any) -> list[np.ndarray]:
    """The outputs of a compiled graph over the arrays."""
    b = Builder()
    inputs = tuple(b.input(f"x{k}", a.shape, dtype(a.dtype)) for k, a in enumerate(arrays))
    outputs = build(b, *inputs)
    graph = Graph(inputs, tuple(outputs), tuple(f"y{k}" for k in range(len(outputs))))
    program = Model(graph, device).program({x.name: a.shape for x, a in zip(inputs, arrays, strict=True)})
    try:
        return [own(y) for y in program.run(arrays)]
    finally:
        program.dispose()


def same(got: np.ndarray, want: np.ndarray, kind: DType, what: str, rtol: float = 0.0, atol: float = 1e-37) -> None:
    assert got.dtype == kind.numpy, f"{what}: {got.dtype}, expected {kind}"
    mine, theirs = widen(got), widen(own(want))
    if kind.is_int or kind.name in ("bool", "string"):
        np.testing.assert_array_equal(mine, theirs, what)
    else:
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol, err_msg=what)


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [d for d in ALL if d.held and d is not string], ids=str)
def test_a_type_that_numpy_lacks_is_what_ml_dtypes_has(kind: DType) -> None:
    """Every code means the same number, and numbers are rounded to the same code."""
    theirs = twin(kind)
    assert dtype(theirs) is kind
    assert dtype(kind.numpy) is kind
    codes = np.arange(1 << kind.bits).astype(kind.held) if kind.coding else values(kind)[kind.name]
    numbers = widen(codes.view(kind.numpy))
    np.testing.assert_array_equal(numbers, codes.view(theirs).astype(kind.compute.numpy))
    np.testing.assert_array_equal(own(codes.view(theirs)), codes.view(kind.numpy))
    if kind.coding is None:
        given = np.arange(-300, 300, dtype=np.int32)
    else:
        rng = np.random.default_rng(0)
        finite = np.sort(numbers[np.isfinite(numbers)]).astype(np.float64)
        between = (finite[1:] + finite[:-1]) / 2
        noise = rng.normal(size=4000) * 2.0 ** rng.integers(-40, 40, 4000)
        given = np.concatenate([finite, between, noise, [np.inf, -np.inf, np.nan]]).astype(np.float32)
        given = given[given > 0] if not kind.coding.signed else given
    with np.errstate(all="ignore"):
        same(convert(given, kind.numpy), given.astype(theirs), kind, kind.name)


def test_types_meet_in_one_that_holds_them_all() -> None:
    """As NumPy's do, but that integers do not make float32 wider and that halves meet in float32."""
    for given in combinations_with_replacement((sg.bool_, *NUMBERS, *COMPLEX), 2):
        ints = [d for d in given if d.is_int]
        if {sg.uint64} < {*ints} and any(d.kind == "int" for d in ints):
            with pytest.raises(DTypeError, match="cast one"):
                promote(*given)
        elif sg.bfloat16 not in given and not (ints and len(ints) == 1 and any(not d.is_int for d in given)):
            assert promote(*given).numpy == np.promote_types(given[0].numpy, given[1].numpy)
        assert sg.bfloat16 not in given or promote(*given) in (sg.bfloat16, sg.float32, sg.float64, *COMPLEX)
    assert promote(sg.int8, sg.uint8, sg.float16) is sg.float16
    assert promote(sg.int16, sg.float16) is sg.float32
    assert promote(sg.int64, sg.float32) is sg.float32
    assert promote(sg.float16, sg.bfloat16) is sg.float32
    with pytest.raises(DTypeError, match="cast to one"):
        promote(sg.float8_e5m2, sg.float32)


def test_documents_and_scripts_have_the_same_table() -> None:
    format_js = (STATIC / "program" / "singe-format.js").read_text()
    arrays = dict(re.findall(r"^  (\w+): (\w+Array),$", format_js, re.M))
    shipped = [d for d in ALL if d not in (*COMPLEX, string)]
    assert [*arrays] == [d.name for d in shipped]
    widths = {"Float": "float", "Int": "int", "BigInt": "int", "Uint": "uint", "BigUint": "uint"}
    for kind in shipped:
        word, bits = re.fullmatch(r"(\D+)(\d+)Array", arrays[kind.name]).groups()  # pyright: ignore[reportOptionalMemberAccess]
        own_type = np.dtype(f"{widths[word]}{bits}")
        held = np.dtype(kind.held) if kind.held else kind.numpy
        assert own_type == held or (kind.name, own_type.name) in (("bool", "uint8"), ("float16", "uint16"))
    declared = re.search(r"export type DType =(.*?);", (STATIC / "singe.d.ts").read_text(), re.S)
    assert declared
    assert re.findall(r'"(\w+)"', declared[1]) == [*arrays]
    table = (STATIC / "README.md").read_text().partition("| dtype | bytes |")[2].partition("\n\n")[0]
    documented = [name.strip() for row in table.splitlines()[2:] for name in row.split("|")[1].split(",")]
    assert documented == [d.name for d in ALL]


# --- on devices ------------------------------------------------------------------------------------------------------


@RUNNERS
def test_arrays_come_back_from_a_device_as_they_went(device_name: str) -> None:
    for kind in ALL:
        for x in (values(kind), values(kind)[:3].reshape(3, 1), values(kind)[:0]):
            back = sg.tensor(x, kind, device=device_name).numpy()
            assert back.dtype == (twin(kind) if kind is not string else object)
            assert back.shape == x.shape
            if kind is string:
                assert back.tolist() == x[string.name].tolist()
            else:
                assert back.tobytes() == x.tobytes(), kind


@pytest.mark.slow
@RUNNERS
def test_casts_between_all_types(device_name: str) -> None:
    """Casts agree with NumPy where it has them; floats beyond an integer type or a float8 saturate."""
    numbers = [d for d in ALL if d is not string]
    for source in numbers:
        x = values(source)
        outputs = [d for d in numbers if d is not source]
        for start in range(0, len(outputs), 6):
            part = outputs[start : start + 6]
            got = run(device_name, [x], lambda b, n, part=part: [b.cast(n, to=d) for d in part])
            for to, y in zip(part, got, strict=True):
                same(y, cast(x, source, to), to, f"{source} to {to}")


def cast(x: np.ndarray, source: DType, to: DType) -> np.ndarray:
    """The expected cast, computed with ml_dtypes and NumPy."""
    theirs = x.view(twin(source)) if source.held else x
    with np.errstate(all="ignore"):
        wide = theirs.astype(source.compute.numpy)
        if source in COMPLEX and to not in COMPLEX and to.name != "bool":
            wide = wide.real
        if to.is_int and wide.dtype.kind == "f":
            least, most = to.compute.limits
            whole = [0 if np.isnan(v) else least if v < least else most if v > most else int(v) for v in wide.tolist()]
            return convert(np.array(whole, to.compute.numpy), to.numpy)
        if to.coding is None or to.size > 1:
            return wide.astype(to.compute.numpy).astype(twin(to))
        wide = wide.astype(np.float32)
        limit = float(ml_dtypes.finfo(twin(to)).max)
        if to.coding.signed:
            return np.clip(wide, -limit, limit).astype(twin(to))
        return np.where(wide == 0, 2.0**-127, np.where(np.abs(wide) > limit, np.copysign(limit, wide), wide)).astype(
            twin(to)
        )


@pytest.mark.slow
@RUNNERS
def test_movement_of_every_type(device_name: str) -> None:
    """Gather, concat, pad, where and transpose give the same elements back."""
    index = np.array([3, -1, 0, 5], np.int64)
    chosen = np.arange(12).reshape(3, 4) % 3 == 0
    for kind in ALL:
        x, y, fill = values(kind)[20:32].reshape(3, 4), values(kind)[40:52].reshape(3, 4), values(kind)[60].reshape(())

        def build(b: Builder, x: Any, y: Any, fill: Any, index: Any, chosen: Any) -> list[Any]:
            return [
                b.gather(b.reshape(x, shape=(12,)), index, axis=0),
                b.concat(x, y, axis=1),
                b.pad(x, fill, before=(1, 0), after=(0, 2), mode="constant"),
                b.where(chosen, x, y),
                b.transpose(x, perm=(1, 0)),
            ]

        padded = np.full((4, 6), fill, kind.numpy)
        padded[1:, :4] = x
        want = [x.reshape(12)[index], np.concatenate([x, y], 1), padded, np.where(chosen, x, y), x.T]
        for number, (got, wanted) in enumerate(
            zip(run(device_name, [x, y, fill, index, chosen], build), want, strict=True)
        ):
            same(own(got), wanted, kind, f"{kind}: movement {number}")


@NUMPY
@pytest.mark.parametrize("kinds", [INTS, FLOATS], ids=["integers", "floats"])
def test_arithmetic_comparison_and_reductions(device_name: str, kinds: tuple[DType, ...]) -> None:
    """In the type that each is computed in, wrapped or rounded once at the end."""
    for kind in kinds:
        rng = np.random.default_rng(7)
        x, y = (
            random_values(rng, (6, 40), kind, (-4, 4))
            if not kind.held
            else convert(rng.normal(0, 2, (6, 40)), kind.numpy)
            for _ in range(2)
        )
        y = np.where(widen(y) == 0, convert(np.array(3), kind.numpy), y)
        if kind.kind == "int":  # the quotient of the least number by −1 is beyond the type
            y = np.where(y == -1, kind.numpy.type(3), y)
        got = run(device_name, [x, y], lambda b, p, q: [getattr(b, r)(p, q) for r in ARITHMETIC])
        got += run(device_name, [x, y], lambda b, p, q: [getattr(b, r)(p, q) for r in COMPARISON])
        wide = [widen(a).astype(np.float64) if kind.is_float else a for a in (x, y)]
        for row, found in zip((*ARITHMETIC, *COMPARISON), got, strict=True):
            with np.errstate(all="ignore"):
                wanted = np.asarray(REFERENCES[row](*wide))
            to = sg.bool_ if wanted.dtype == bool else kind
            same(found, convert(wanted, to.numpy), to, f"{kind}: {row}", rtol=2e-2 if kind.bits == 16 else 1e-6)
        sums = run(
            device_name, [x], lambda b, p: [getattr(b, f"reduce_{r}")(p, axes=(1,)) for r in ("sum", "max", "min")]
        )
        for function, found in zip((np.sum, np.max, np.min), sums, strict=True):
            wanted = function(
                wide[0], axis=1, keepdims=True, **({"dtype": wide[0].dtype} if function is np.sum else {})
            )
            tolerance = 2e-2 if kind.bits == 16 else 1e-4 if kind.bits == 32 else 1e-9
            same(found, convert(wanted, kind.numpy), kind, f"{kind}: {function.__name__}", rtol=tolerance)


@runners("numpy", *slow("wasm", "webgpu"))
def test_order_selection_and_scattered_sums(device_name: str) -> None:
    """Every ordered type is sorted by the values of its elements, not by their bits."""
    at = np.array([0, 3, 3, -1], np.int64)
    for kind in NUMBERS:
        numbers = np.array([3, 0, 1, 3, 2, 5, 1, 4] if kind.kind == "uint" else [3, -0.0, -1, 3, 2, -5, -1, 4])
        x = convert(numbers, kind.numpy)

        def build(b: Builder, x: Any, at: Any) -> list[Any]:
            best, places = b.top_k(x, axis=0, k=3, largest=True)
            part = b.slice(x, starts=(0,), steps=(1,), sizes=(4,))
            added = b.scatter_elements_reduce(x, part, at, axis=0, reduction="add")
            return [best, places, *b.sort(x, axis=0), b.nonzero(x), b.unique(x)[0], added]

        order = np.argsort(numbers, kind="stable")
        last = np.argsort(-numbers, kind="stable")[:3]
        added = numbers.copy()
        np.add.at(added, at, numbers[:4])
        want = [numbers[last], last, numbers[order], order, numbers.nonzero()[0][None], np.unique(numbers), added]
        for number, (got, wanted) in enumerate(zip(run(device_name, [x, at], build), want, strict=True)):
            to = sg.int64 if number in (1, 3, 4) else kind
            same(got, convert(np.asarray(wanted), to.numpy), to, f"{kind}: result {number}")


@RUNNERS
def test_functions_of_every_float(device_name: str) -> None:
    rows = [row for row in map(ROWS.get, FUNCTIONS) if isinstance(row, Elementwise)]
    for kind in FLOATS:
        rng = np.random.default_rng(3)
        xs = [
            convert(rng.uniform(max(0.1, low), min(3, high), 100), kind.numpy)
            for low, high in (row.domain for row in rows)
        ]
        every = run(device_name, xs, lambda b, *ns: [b.apply(row, n) for row, n in zip(rows, ns, strict=True)])
        for row, x, found in zip(rows, xs, every, strict=True):
            wanted = REFERENCES[row.name](widen(x).astype(np.float64))
            accuracy = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6, "float64": 1e-14}[kind.name]
            # WGSL promises of a logarithm near 1 no more than an absolute error of 2^-21.
            least = 2**-21 if (device_name, row.name) == ("webgpu", "log") else 1e-37
            same(found, convert(wanted, kind.numpy), kind, f"{kind}: {row.name}", rtol=accuracy, atol=least)


@RUNNERS
def test_integers_do_not_shrink_by_what_is_no_number(device_name: str) -> None:
    x = np.arange(3, dtype=np.int32)
    with pytest.raises(DTypeError, match=r"shrink: lambd nan and bias 0\.0 for integers; expected finite numbers"):
        run(device_name, [x], lambda b, n: [b.shrink(n, lambd=float("nan"))])


@RUNNERS
def test_a_bit_cast_keeps_all_bits(device_name: str) -> None:
    row = ROWS["bit_cast"]
    for kind in row.dtypes:
        x = values(kind)
        others = [d for d in row.dtypes if d.bits == kind.bits and (d is not sg.bool_ or kind is sg.bool_)]
        every = run(device_name, [x], lambda b, n, others=others: [b.bit_cast(n, to=d) for d in others])
        for to, got in zip(others, every, strict=True):
            assert got.dtype == to.numpy
            want = narrowed(x[kind.name], to) if kind.held else x.view(to.numpy)
            assert got.tobytes() == want.tobytes(), f"{kind} to {to}"
    b = Builder()
    with pytest.raises(DTypeError, match="from float32 to int64; expected one of int32, uint32, float32"):
        b.bit_cast(b.input("x", (2,), sg.float32), to=sg.int64)
    with pytest.raises(DTypeError, match="bit_cast: got float16"):
        b.bit_cast(b.input("x", (2,), sg.float16), to=sg.int16)


@RUNNERS
def test_a_float8_between_casts_is_rounded(device_name: str) -> None:
    """It is rounded even if one kernel could compute both casts: the values are as if stored in memory."""
    x = np.linspace(-500, 500, 101).astype(np.float32)
    for kind in (d for d in STORED if d.is_float):
        (got,) = run(device_name, [x], lambda b, n, kind=kind: [b.add(b.cast(b.cast(n, to=kind), to=sg.float32), n)])
        wanted = widen(own(cast(x, sg.float32, kind))) + x
        # float8_e8m0fnu has no zero, and its least number is subnormal in float32: a GPU may take it for zero.
        np.testing.assert_allclose(got, wanted, rtol=0, atol=6e-39, err_msg=kind.name)


@RUNNERS
def test_what_a_target_does_not_compute_runs_on_the_host_and_says_so(device_name: str) -> None:
    """The rest of the graph stays on the device, and a graph may insist that all of it does."""
    target = sg.device(device_name).target
    lacking = [d for d in ALL if d not in target.dtypes]
    assert bool(lacking) is execution_of(target).falls_back
    x = np.array([[0.5, -1.5], [2.0, 3.0]], np.float32)
    for kind in (d for d in lacking if d is not string):
        b = Builder()
        n = b.input("x", (size("N"), 2), sg.float32)
        wide = b.mul(b.cast(b.exp(n), to=kind), b.const(2, kind))
        graph = Graph((n,), (b.reshape(wide, shape=(n.shape[0] * 2,)), b.relu(b.cast(wide, to=sg.float32))), ("w", "y"))
        program = Model(graph, device_name).program()
        assert program.data.facts["host"].keys() == {"cast", "mul"}
        assert kind.name in str(program.data.facts["host"])
        assert any(g.head >= 0 for g in program.data.groups)
        for given in (x, x[:1], x[:0]):
            w, y = program.run([given])
            np.testing.assert_allclose(y, 2 * np.exp(given), rtol=1e-5)
            np.testing.assert_allclose(w, 2 * np.exp(given).ravel(), rtol=1e-5)
            assert w.dtype == kind.numpy
        with pytest.raises(CompileError, match=rf"host: cast \(.*{kind}.*mul"):
            compile_graph(graph, target, Options(fail_on_host=True))


@RUNNERS
def test_complex_numbers(device_name: str) -> None:
    for kind in COMPLEX:
        x, y = (np.array(v, kind.numpy) for v in ([1 + 2j, -3j, 0.5], [2, 1j, 4 - 1j]))
        rows = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "equal": x == y, "matmul": x @ y}
        folds = {"reduce_sum": x.sum(), "reduce_mean": x.mean(), "reduce_prod": x.prod()}

        def build(b: Builder, p: Any, q: Any) -> list[Any]:
            found = [b.neg(p), *(getattr(b, name)(p, q) for name in rows)]  # noqa: B023
            return found + [b.reshape(getattr(b, name)(p, axes=(0,)), shape=()) for name in folds]  # noqa: B023

        wanted = [-x, *rows.values(), *folds.values()]
        for got, want in zip(run(device_name, [x, y], build), wanted, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_public_names_are_the_table() -> None:
    for name in DTYPES:
        assert getattr(sg, "bool_" if name == "bool" else name) is DTYPES[name]
    assert {*SINGLES} < {*FLOATS}


def test_a_dtype_equals_what_stands_for_it() -> None:
    kind = sg.ones((2,)).dtype
    for same in ("float32", "f4", np.float32, np.dtype("float32"), sg.float32):
        assert kind == same
        assert same == kind
    for other in ("float16", "no dtype", np.float64, float, None, sg.float64):
        assert kind != other
    for wide, of in ((sg.int64, int), (sg.bool_, bool), (sg.string, str)):
        assert wide == of
    assert {sg.float32: 1}[kind] == 1


@pytest.mark.parametrize("kind", ALL, ids=str)
def test_dtypes_speak_numpy_s_protocol(kind: DType) -> None:
    """NumPy makes its own of them; what is equal has one hash, so that each finds the other's entries."""
    theirs = twin(kind) if kind is not string else np.dtype(object)
    assert np.dtype(kind) == kind.dtype == theirs
    assert np.zeros(2, kind).dtype == np.asarray([], kind).dtype == theirs
    assert kind == theirs
    assert theirs == kind
    assert kind == theirs.type or kind is string
    assert hash(kind) == hash(theirs)
    assert {theirs: "found"}[kind] == {kind: "found"}[theirs] == "found"
    assert {kind, theirs} == {theirs}
    assert [d for d in ALL if d == theirs] == [kind]
    swapped = theirs.newbyteorder()
    assert (swapped == kind) is (swapped == theirs)


def test_pyarrow_takes_dtypes() -> None:
    arrow = pytest.importorskip("pyarrow")
    short = {"float16": "halffloat", "float32": "float", "float64": "double"}
    for kind in (sg.bool_, *NUMBERS):
        if kind is not sg.bfloat16:
            assert str(arrow.from_numpy_dtype(kind)) == short.get(kind.name, kind.name)


@pytest.mark.slow
def test_pandas_takes_dtypes() -> None:
    pandas = pytest.importorskip("pandas")
    for kind in (sg.bool_, *INTS, sg.float32, sg.float64):
        assert pandas.Series([0, 1], dtype=kind).dtype == kind
        assert pandas.DataFrame({"x": [0, 1]}).astype({"x": kind}).dtypes["x"] == kind


@RUNNERS
def test_arrays_of_what_numpy_lacks_are_those_of_ml_dtypes(device_name: str, tmp_path: Path) -> None:
    """In and out: of tensors, models, compiled functions and files."""
    for kind in (d for d in ALL if d.held and d is not string):
        x = np.array([1, 0, 1], twin(kind))
        t = sg.tensor(x, device=device_name)
        assert t.dtype is kind
        model = Model.of(lambda x: x.reshape(3, 1), {"x": (3,)}, device_name, dtypes={"x": kind.name})
        for back in (t.numpy(), np.asarray(t), model(x).ravel(), model.program().run([x])[0].ravel()):
            assert back.dtype == twin(kind)
            assert back.tobytes() == x.tobytes()
    layer = sg.nn.Linear(2, 2, rng=0).to(sg.bfloat16)
    sg.save(layer, tmp_path / "w.safetensors")
    read = sg.read_weights(tmp_path / "w.safetensors")["weight"]
    assert read.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(read, layer.weight.numpy())


WITHOUT = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np, singe as sg
x = sg.tensor([1.5, -2.0], sg.bfloat16)
assert x.numpy().dtype == np.dtype([("bfloat16", np.uint16)]) == np.dtype(sg.bfloat16) == sg.bfloat16
assert hash(sg.bfloat16) == hash(np.dtype(sg.bfloat16)) and x.tolist() == [1.5, -2]
assert sg.tensor(x.numpy()).dtype is sg.bfloat16
"""
LAZY = """
import sys
import singe as sg
x = sg.tensor([1.5, -2.0])
(x * 2).numpy()
assert "ml_dtypes" not in sys.modules
sg.tensor([1.5], sg.bfloat16).numpy()
assert "ml_dtypes" in sys.modules
"""


@pytest.mark.slow
@pytest.mark.parametrize("script", [WITHOUT, LAZY], ids=["not installed", "not needed"])
def test_ml_dtypes_is_needed_only_for_its_arrays(script: str) -> None:
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_text_that_names_no_dtype_equals_none() -> None:
    """NumPy reads a text with commas as a list of fields, and raises a ValueError."""
    text = "If x, the result is y"
    assert all(d != text for d in DTYPES.values())
    with pytest.raises(DTypeError, match="is not supported"):
        dtype(text)
