"""Inputs that a caller donates: outputs are computed in their memory, with no copy, on every device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import COMPILED, RUNNERS, few

import singe as sg
from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.dtypes import float32, int64, string
from singe.errors import FormatError, InputError
from singe.graph import Builder, Graph, specialise
from singe.ops import ROWS
from singe.program.format import from_bytes, to_bytes
from singe.runtime.devices import device as open_device
from singe.shapes import size
from singe.tools import cli
from singe.tools.inspection import describe_program

IF, LOOP = ROWS["if"], ROWS["loop"]
LENGTH, WIDTH = 2048, 1024


def put(cache: sg.Tensor, row: sg.Tensor, at: sg.Tensor) -> Any:
    """A row of the cache is replaced; the cache as it was before is summed too."""
    first = sg.zeros((), dtype="int64", device=at.device)
    return {"updated": cache.update_slice(row, at, first), "total": cache.sum(0)}


def ring(device: str, donate: Sequence[str] = ("cache",), rows: int = LENGTH, width: int = WIDTH) -> sg.Model:
    shapes = {"cache": (rows, width), "row": (1, width), "at": ()}
    return sg.Model.of(put, shapes, device, dtypes={"at": "int64"}, donate=donate)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)


@contextmanager
def taken(backend: Any) -> Iterator[list[int]]:
    """The bytes of each piece of memory that a device hands out."""
    found: list[int] = []
    owner = backend.pool if hasattr(backend, "pool") else backend.engine
    original = owner.take

    def counted(count: int, *args: Any) -> Any:
        found.append(count)
        return original(count, *args)

    owner.take = counted
    try:
        yield found
    finally:
        del owner.take


@COMPILED
def test_a_row_of_a_large_input_is_replaced_with_no_copy(device_name: str) -> None:
    for donate in ((), ("cache",)):
        model = ring(device_name, donate)
        for at in range(3):
            cache, row = numbers(LENGTH, WIDTH, seed=at), numbers(1, WIDTH, seed=9)
            expected = cache.copy()
            expected[at] = row
            total = cache.sum(0)
            found = model(cache, row, np.int64(at))
            np.testing.assert_array_equal(found["updated"], expected)
            np.testing.assert_allclose(found["total"], total, rtol=1e-6)
        data = model.program().data
        assert data.donated == ({0: 0} if donate else {})
        if device_name == "numpy":
            assert np.shares_memory(found["updated"], cache) == bool(donate)
        else:
            assert data.copied({}) == (0 if donate else cache.nbytes)


@RUNNERS
def test_a_run_takes_no_memory_for_an_output_in_a_donated_input(device_name: str) -> None:
    most = {}
    for donate in ((), ("cache",)):
        program = ring(device_name, donate).program()
        cache, row, at = numbers(LENGTH, WIDTH), numbers(1, WIDTH), np.array(1)
        if device_name == "numpy":
            found = program(cache, row, at)["updated"]
            most[donate] = 0 if np.shares_memory(found, cache) else found.nbytes
            continue
        backend: Any = program.device.eager.backend  # pyright: ignore[reportAttributeAccessIssue]
        program(cache, row, at)
        with taken(backend) as bytes_:
            program(cache, row, at)
        most[donate] = sum(count for count in bytes_ if count >= cache.nbytes)
    upload = 0 if device_name == "numpy" else cache.nbytes
    assert most == {(): cache.nbytes + upload, ("cache",): upload}


# --- graphs of all kinds ------------------------------------------------------------------------------------------------


def update(b: Builder, x: Any, part: Any) -> Any:
    return b.update_slice(x, part, b.const(np.int64(1)), b.const(np.int64(0)))


def read_later(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    """What reads both the input and its successor keeps the first from being written over."""
    new = update(b, x, part)
    return [new, b.sub(b.mul(x, b.const(np.float32(3))), new)]


def read_by_a_product(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    return [b.mul(b.dot(new := update(b, x, part), x), b.const(np.float32(1))), new]


def moved(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    """An array's other side up is a view on NumPy, and must not see that the array is written over."""
    turned = b.transpose(x, perm=(1, 0))
    return [b.add(x, y), turned]


def swapped(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    return [y, x]


def returned(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    return [b.exp(y), x]


def returned_twice_and_updated(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    return [x, update(b, x, part), x]


def crossed(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    """Both outputs are computed from both inputs."""
    return [b.add(x, y), b.sub(x, y)]


def in_a_chain(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    new = update(b, update(b, x, part), b.neg(part))
    return [new, b.relu(y)]


def each_itself(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    return [b.mul(x, x), b.tanh(y)]


def read_first(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    """An output may take the memory of an input that it has nothing to do with."""
    total = b.reduce_sum(x, axes=(0,))
    return [b.mul(y, total), b.dot(y, y)]


def in_turns(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    """A value that a loop carries, of which a row is replaced in each turn, and one that it only reads."""
    inner = Builder()
    value, turn = inner.input("v", (4, 4), float32), inner.input("t", (), int64)
    other = inner.input("w", (2, 4), float32)
    after = inner.update_slice(inner.add(value, inner.const(np.float32(1))), other, turn, inner.const(0))
    body = Graph((value, turn, other), (inner.const(True), after, inner.add(turn, inner.const(1))), tuple("cvt"))
    carried, _ = b.apply(LOOP, x, b.const(0), part, body=body, carried=2, conditional=False, count=3)
    return [carried, b.neg(y)]


def in_a_branch(b: Builder, x: Any, y: Any, part: Any) -> list[Any]:
    inner = Builder()
    value, other = inner.input("v", (4, 4), float32), inner.input("w", (4, 4), float32)
    then = Graph((value, other), (inner.add(value, other), value), tuple("ab"))
    otherwise = Graph((value, other), (inner.neg(value), inner.mul(value, other)), tuple("ab"))
    condition = b.reshape(b.greater(b.reduce_sum(part, axes=(0, 1)), b.const(np.float32(0))), shape=())
    return list(b.apply(IF, condition, x, y, then=then, otherwise=otherwise))


CASES: list[Callable[..., list[Any]]] = [
    read_later, read_by_a_product, moved, swapped, returned, returned_twice_and_updated, crossed, in_a_chain,
    each_itself, read_first,
    in_turns, in_a_branch,
]  # fmt: skip


def graph_of(case: Callable[..., list[Any]], rows: Any = 4) -> Graph:
    b = Builder()
    x, y, part = b.input("x", (rows, 4), float32), b.input("y", (rows, 4), float32), b.input("part", (2, 4), float32)
    outputs = tuple(case(b, x, y, part))
    return Graph((x, y, part), outputs, tuple(f"y{k}" for k in range(len(outputs))))


@RUNNERS
@few(2, "donate", [("x",), ("y",), ("x", "y"), ("x", "y", "part")])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_donated_or_not_the_result_is_the_same(device_name: str, case: Any, donate: tuple[str, ...]) -> None:
    graph = graph_of(case)
    given = [numbers(4, 4), numbers(4, 4, seed=1), numbers(2, 4, seed=2)]
    expected = sg.Model(graph, "numpy").program().run(given)
    program = sg.Model(graph, device_name, donate=donate).program()
    for _ in range(2):
        for value, wanted in zip(program.run([a.copy() for a in given]), expected, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5)
    device = open_device(device_name).eager
    for _ in range(2):
        arrays = [device.upload(a.copy()) for a in given]
        outputs = program.executable.run(arrays)
        for k, (value, wanted) in enumerate(zip(outputs, expected, strict=True)):
            np.testing.assert_allclose(device.download(value), wanted, rtol=1e-5, atol=1e-5)
            j = program.data.donated.get(k)
            assert [value is x for x in arrays] == [number == j for number in range(3)], "the array given is returned"


@RUNNERS
def test_updates_and_elementwise_work_in_place(device_name: str) -> None:
    """An input that is not read later is overwritten without a copy."""
    expected = {
        swapped: {0: 1, 1: 0}, returned: {0: 1, 1: 0}, each_itself: {0: 0, 1: 1}, in_turns: {0: 0, 1: 1}, in_a_branch: {0: 0, 1: 1},
    }  # fmt: skip
    for case, places in expected.items():
        program = sg.Model(graph_of(case), device_name, donate=["x", "y"]).program()
        assert program.data.donated == places, case.__name__


@pytest.mark.parametrize("kind", ["float32", "float16", "int32", "bfloat16"])
def test_numpy_returns_the_array_that_was_given(kind: str) -> None:
    """An output takes the memory of an input that is dead by then, not only of one that the last op reads."""
    cases: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (lambda x, y: 3 * x + 2 * y, lambda x, y: 3 * x + 2 * y),
        (lambda x, y: x * x, lambda x, y: x * x),
        (lambda x, y: (x * 2).clip(0) * y, lambda x, y: np.maximum(x * 2, 0) * y),
        (lambda x, y: (x.T * 2 + y).clip(0, 9), lambda x, y: np.clip(x.T * 2 + y, 0, 9)),
    ]
    for function, reference in cases:
        model = sg.Model.of(function, {"x": (4, 4), "y": (4, 4)}, "numpy", dtypes={"x": kind, "y": kind}, donate=["x"])
        for _ in range(2):
            x, y = numbers(4, 4), numbers(4, 4, seed=1)
            given = sg.tensor(x, kind).numpy()
            found = model(given, sg.tensor(y, kind).numpy())
            assert found is given or (
                kind == "bfloat16" and np.shares_memory(found, given)
            )  # a view, of ml_dtypes' type
            np.testing.assert_array_equal(sg.tensor(found).float().numpy(), reference(x, y))


@COMPILED
def test_a_thousand_runs_over_one_array_take_no_memory(device_name: str) -> None:
    """On a device, a run gives back the array that it was given, with the elements of the output."""
    program = ring(device_name, rows=8, width=4).program()
    device: Any = program.device.eager
    cache, row = device.upload(np.zeros((8, 4), np.float32)), device.upload(np.ones((1, 4), np.float32))
    expected = np.zeros((8, 4), np.float32)
    for k in range(1000):
        updated, _ = program.executable.run([cache, row, device.upload(np.array(k % 8))])
        assert updated is cache
        if k == 10:
            held = (
                dict(program.memory),
                device.backend.describe().get("used", device.backend.describe().get("pool_bytes")),
            )
    expected[:] = 1
    np.testing.assert_array_equal(device.download(cache), expected)
    assert held == (
        dict(program.memory),
        device.backend.describe().get("used", device.backend.describe().get("pool_bytes")),
    )


@RUNNERS
def test_an_array_of_a_device_that_is_two_inputs_is_not_donated(device_name: str) -> None:
    program = sg.Model(graph_of(each_itself), device_name, donate=["x", "y"]).program()
    assert program.data.donated
    device = program.device.eager
    x, part = device.upload(numbers(4, 4)), device.upload(numbers(2, 4))
    with pytest.raises(InputError, match=r"is donated, and the same array is input '[xy]': upload it twice"):
        program.executable.run([x, x, part])


@RUNNERS
def test_arrays_that_a_run_must_not_write_over_are_copied(device_name: str) -> None:
    """Read-only arrays, views, and arrays that two inputs share do not change, and the result is right."""
    program = sg.Model(graph_of(each_itself), device_name, donate=["x", "y"]).program()
    assert program.data.donated == {0: 0, 1: 1}
    part, whole = numbers(2, 4), numbers(8, 8)
    fixed = numbers(4, 4)
    fixed.flags.writeable = False
    for x, y in ((fixed, numbers(4, 4)), (whole[:4, :4], numbers(4, 4)), (whole[::2, ::2], fixed)):
        before = x.copy(), whole.copy()
        found = program(x, y.copy(), part)
        np.testing.assert_array_equal(found["y0"], before[0] * before[0])
        np.testing.assert_array_equal(x, before[0])
        np.testing.assert_array_equal(whole, before[1])
    one, rows = numbers(4, 4), numbers(6, 4)
    for x, y in ((one, one), (rows[:4], rows[2:])):
        wanted = x * x, np.tanh(y)
        found = program(x, y, part)
        for value, expected in zip(found.values(), wanted, strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-5)


@RUNNERS
def test_open_sizes_and_files_keep_what_is_donated(device_name: str, tmp_path: Path) -> None:
    """Specialised steps compute their outputs in the same inputs."""
    graph = graph_of(each_itself, size("N"))
    device = open_device(device_name)
    own = [({"N": 4}, specialise(graph, {"N": 4}))]
    data = compile_graph(graph, device.target, Options(specialised=own, donate=["x"]))
    assert [p.donated for p in data.programs] == [{0: 0}, {0: 0}]
    sg.Program(data, device).save(tmp_path / "p.singe")
    program = sg.Program.load(tmp_path / "p.singe", device)
    for rows in (4, 3, 4, 7):
        x, y, part = numbers(rows, 4), numbers(rows, 4), numbers(2, 4)
        wanted = x * x
        np.testing.assert_array_equal(program(x, y, part)["y0"], wanted)


@RUNNERS
def test_strings_are_computed_in_memory_of_their_own(device_name: str) -> None:
    """Strings lie on the host; numbers beside them are computed in the inputs that are donated."""
    b = Builder()
    words, x = b.input("words", (size("N"),), string), b.input("x", (2,), float32)
    outputs = (b.string_concat(words, words), words, b.add(x, x))
    graph = Graph((words, x), outputs, ("twice", "same", "sum"))
    model = sg.Model(graph, device_name, donate=["words", "x"])
    assert model.program().data.facts["donated"] == {"words": None, "x": "sum"}
    for texts in (["a", "ä"], ["c"], []):
        given = np.array(texts, object)
        found = model(given, np.ones(2, np.float32))
        assert found["twice"].dtype == object
        assert found["twice"].tolist() == [text * 2 for text in texts]
        assert given.tolist() == found["same"].tolist() == texts
        assert found["sum"].tolist() == [2, 2]
    device = open_device(device_name)
    on_device = [device.upload(np.array(["a", "b"])), device.upload(np.ones(2, np.float32))]
    made = model.program().executable.run(on_device)
    assert device.fetch(on_device[0]).tolist() == device.fetch(made[1]).tolist() == ["a", "b"]
    assert made[2] is on_device[1]


def test_files_whose_outputs_do_not_fit_their_inputs_are_refused() -> None:
    data = compile_graph(graph_of(each_itself), ARRAYS, Options(donate=["x", "y"]))
    first, second = (replace(data.buffers[i], place=("input", 0)) for i in data.outputs)
    buffers = list(data.buffers)
    buffers[data.outputs[0]], buffers[data.outputs[1]] = first, second
    with pytest.raises(FormatError, match="two outputs lie in the same input"):
        from_bytes(to_bytes(replace(data, buffers=tuple(buffers))))
    buffers[data.outputs[1]] = replace(second, place=("input", 2))
    with pytest.raises(FormatError, match="output 1 lies in input 2, which has another shape or type"):
        from_bytes(to_bytes(replace(data, buffers=tuple(buffers))))


def test_a_report_says_which_donated_inputs_are_used() -> None:
    model = ring("wasm", ["cache", "row"])
    assert model.program().data.facts["donated"] == {"cache": "updated", "row": None}
    text = describe_program("wasm", model.program().data, False)
    assert "updated in the memory of cache; none in that of row; 0 B copied in a run" in text


def test_the_command_line_donates_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "ring.singe")
    sg.save(ring("numpy", (), 8, 4), path)
    assert cli.main(["inspect", path, "--device", "webgpu", "--donate", "cache"]) == 0
    assert "updated in the memory of cache; 0 B copied in a run" in capsys.readouterr().out
    assert cli.main(["export", path, "-o", str(tmp_path / "out"), "--donate", "cache"]) == 0
    manifest = json.loads((tmp_path / "out" / "model.json").read_text())
    for target in manifest["targets"].values():
        program = target["program"]
        assert program["buffers"][program["outputs"][0]]["place"] == ["input", 0]
    assert cli.main(["inspect", path, "--donate", "rows"]) == 2
    assert "donate: got ['rows'], expected a list of inputs, some of cache, row, at" in capsys.readouterr().err
    compiled = str(tmp_path / "ring.program")
    assert cli.main(["compile", path, "--device", "numpy", "--donate", "cache", "-o", compiled]) == 0
    assert cli.main(["bench", compiled, "--donate", "cache"]) == 2
    assert "--donate: a program has its donated inputs already" in capsys.readouterr().err


def test_what_is_no_input_cannot_be_donated() -> None:
    shapes = {"x": (2,)}
    for wrong in (["y"], "x", ["x", "y"]):
        with pytest.raises(InputError, match="expected a list of inputs, some of x"):
            sg.Model.of(lambda x: x + 1, shapes, "numpy", donate=wrong)
    with pytest.raises(InputError, match="a model has its own already"):
        sg.compile(sg.Model.of(lambda x: x + 1, shapes, "numpy"), donate=["x"])
    program = sg.compile(lambda x: x + 1, np.zeros(2, np.float32), device="numpy", donate=["x0"])
    x = np.ones(2, np.float32)
    assert np.shares_memory(program(x), x)
    np.testing.assert_array_equal(x, [2, 2])
