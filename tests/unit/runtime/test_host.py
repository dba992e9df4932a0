"""Ops that run on the host: they are reported and can be refused wherever a model is compiled;
and which of them a page can run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import runners, slow
from onnx import helper

import singe as sg
from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph
from singe.compiler.partition import JS_HOST_OPS, beyond_scripts
from singe.compiler.schedule.steps import words_of
from singe.compiler.target import find_target
from singe.dtypes import DTYPES, NUMBERS, float32, float64, int64, uint8, widened
from singe.errors import HostNeeded, InputError
from singe.files.assets import static_folder
from singe.graph import Builder, Graph
from singe.ir.arrays import convert
from singe.model.model import Model
from singe.onnx import backend
from singe.ops import ROWS, Elementwise, Opaque
from singe.program.program import Buffer, Check, Host, ProgramData
from singe.program.words import COPY, LOOP
from singe.shapes import known, size
from singe.tensors import arithmetic
from singe.tools import cli
from singe.tools.export.bundle import draft

NOT_IN_SCRIPTS = {
    "resize_tables": "scales, or a region to crop, that a run computes: pages have Resize of computed sizes alone",
    "mel_weight_matrix": "models have its numbers as constants, so that it is folded",
    "decode_image": "a page decodes pictures by itself, and without waiting it cannot",
    **dict.fromkeys(
        (
            "strings",
            "string_concat",
            "string_split",
            "string_normalize",
            "string_places",
            "string_tokens",
            "regex_full_match",
        ),
        "pages have no strings",
    ),
}
"""Opaque rows that a page cannot run without Python ↦ why."""


def test_pages_have_every_opaque_op() -> None:
    text = (static_folder() / "program" / "singe-host.js").read_text("utf-8")
    table = text[text.index("export const OPS = {") :]
    assert set(re.findall(r"^  (\w+)[:,]", table, re.MULTILINE)) == JS_HOST_OPS
    assert {name for name, row in ROWS.items() if isinstance(row, Opaque)} == {
        name for name in JS_HOST_OPS if isinstance(ROWS[name], Opaque)
    } | NOT_IN_SCRIPTS.keys()


def mixed() -> Graph:
    """exp in float32 and float64, a composite in float64 and one in float32, constants in float64, random numbers."""
    b = Builder()
    x = b.input("x", (size("N"), 4), float32)
    wide = b.cast(x, to=float64)
    folded = b.cast(b.sqrt(b.const(np.array([4.0, 9.0]))), to=float32)
    seed = b.input("seed", (), int64)
    drawn = b.random_uniform(seed, shape=(3,))
    outputs = (b.exp(x), b.exp(wide), b.softmax(wide, axis=1), b.softmax(x, axis=0), folded, drawn)
    return Graph((x, seed), outputs, tuple("abcdef"))


def test_ops_on_the_host_are_reported_with_the_reason() -> None:
    graph = mixed()
    assert "host" not in compile_graph(graph, ARRAYS).facts
    wasm = compile_graph(graph, find_target("wasm")).facts["host"]
    drawn = {"random_uniform": {"its generator draws one number after the other, from a seed on the host": 1}}
    assert wasm == drawn
    wgsl = compile_graph(graph, find_target("wgsl")).facts["host"]
    lacks = {"wgsl does not compute float64": 1}
    assert wgsl == {"cast": lacks, "exp": lacks, "softmax": lacks} | drawn


def test_ops_within_regions_are_reported() -> None:
    b = Builder()
    x = b.input("x", (4,), float32)
    inner = Builder()
    y = inner.input("y", (4,), float32)
    wide = inner.cast(inner.exp(inner.cast(y, to=float64)), to=float32)
    then, otherwise = (Graph((y,), (out,), ("z",)) for out in (wide, y))
    first = b.reshape(b.less(b.slice(x, starts=(0,), steps=(1,), sizes=(1,)), b.const(0, float32)), shape=())
    graph = Graph((x,), (b.apply(ROWS["if"], first, x, then=then, otherwise=otherwise),), ("z",))
    for name in ("wasm", "wgsl"):
        facts = compile_graph(graph, find_target(name)).facts
        assert facts["ops"]["exp"] == 1
        assert set(facts.get("host", {})) == (set() if name == "wasm" else {"cast", "exp"})


def test_all_ways_to_a_program_refuse_the_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.singe"
    sg.save(Model(mixed(), "numpy"), path)
    sg.load(path, "numpy", fail_on_host=True).program()
    with pytest.raises(HostNeeded, match=r"random_uniform \(its generator") as e:
        sg.load(path, "wasm", fail_on_host=True).program()
    assert e.value.ops == ("random_uniform",)
    with pytest.raises(HostNeeded, match="random_uniform"):
        sg.compile(mixed(), device="wasm", fail_on_host=True)
    for command in (["inspect"], ["compile", "-o", str(tmp_path / "p.singe"), "--device", "wasm"]):
        assert cli.main([command[0], str(path), *command[1:], "--fail-on-host"]) == 2
        assert "random_uniform (its generator" in capsys.readouterr().err
    assert cli.main(["inspect", str(path), "--device", "webgpu"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^ops +on the device, .* but for cast, exp, random_uniform, softmax on the host$", shown, re.M)
    assert re.search(r"^softmax +1  wgsl does not compute float64$", shown, re.M)


@pytest.mark.parametrize("device", ["CPU", "WASM", "WEBGPU"])
def test_onnx_s_backend_reports_where_ops_run(device: str) -> None:
    if not backend.supports_device(device):
        pytest.skip(f"no {device} here")
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("NonZero", ["e"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", 11, ["N"])], [value("y", 7, [1, "K"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    report = backend.prepare(model, device).report
    design = "host: the shape of its result depends on data"
    lacks = "host: wgsl does not compute float64"
    assert report == {
        "exp": {"CPU": "numpy", "WASM": "wasm", "WEBGPU": lacks}[device],
        "nonzero": "numpy" if device == "CPU" else design,
    }
    if device != "CPU":
        with pytest.raises(HostNeeded, match="nonzero"):
            backend.prepare(model, device, fail_on_host=True)


@pytest.mark.slow
@runners("wasm", "webgpu")
def test_short_sorts_run_on_the_device(device_name: str) -> None:
    """Equal elements stay in their order, NaN is the largest, and zeros keep their sign, as in NumPy."""
    rng = np.random.default_rng(0)
    longest = find_target("wasm").counted
    for length, axis in ((1, 1), (7, 1), (longest, -2), (longest + 1, 1)):
        b = Builder()
        x = b.input("x", (size("N"), length, 2), float32)
        outputs = [y for how in (False, True) for y in b.sort(x, axis=axis, descending=how)]
        outputs += [y for how in (False, True) for y in b.top_k(x, axis=axis, k=(length + 1) // 2, largest=how)]
        graph = Graph((x,), tuple(outputs), tuple("abcdefgh"))
        program, expected = Model(graph, device_name).program(), Model(graph, "numpy").program()
        assert "host" not in program.data.facts
        for count in (0, 1, 3):
            given = rng.choice(np.array([-2, -0.0, 0, 1, np.nan, np.inf], np.float32), (count, length, 2))
            for got, want in zip(program.run([given]), expected.run([given]), strict=True):
                assert (got.dtype, got.shape) == (want.dtype, want.shape)
                np.testing.assert_array_equal(got, want)
                if want.dtype.kind == "f":
                    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@runners("numpy", *slow("wasm", "webgpu"))
def test_sorts_along_long_and_open_axes(device_name: str) -> None:
    """They stay on the device, for every type that it computes and within regions too; on webgpu one kernel is a turn of
    all stages, whatever the length, and wasm has a function."""
    target = sg.device(device_name).target
    rng = np.random.default_rng(0)
    for kind in (k for k in NUMBERS if k in target.dtypes):
        b = Builder()
        x = b.input("x", (size("M"), size("N"), 2), kind)
        k = b.input("k", (), int64)
        outputs = [y for how in (False, True) for y in b.sort(x, axis=1, descending=how)]
        outputs += b.top_k(x, axis=1, k=b.size_of(k), largest=True)
        names = tuple(f"y{i}" for i in range(6))
        program = Model(Graph((x, k), tuple(outputs), names, b.size_nodes), device_name).program()
        assert device_name == "numpy" or not {"sort", "top_k"} & program.data.facts.get("host", {}).keys()
        for count, length in ((1, 0), (2, 1), (0, 5), (3, 2), (2, 100), (1, 1025)):
            given = rng.choice([-2, -0.0, 0, 1, np.nan, np.inf] if kind.is_float else np.arange(9), (count, length, 2))
            given = convert(given.astype(np.float64 if kind.is_float else np.int64), kind.numpy)
            values = widened(given)
            up = np.argsort(values, axis=1, kind="stable")
            down = length - 1 - np.flip(np.argsort(np.flip(values, 1), axis=1, kind="stable"), 1)
            best = (length + 1) // 2
            found = program.run([given, np.array(best)])
            for got, want in zip(found[1::2], (up, down, down[:, :best]), strict=True):
                np.testing.assert_array_equal(got, want, f"{kind}: {count} × {length}")
            for got, want in zip(found[::2], (up, down, down[:, :best]), strict=True):
                assert got.tobytes() == np.take_along_axis(given, want, 1).tobytes(), f"{kind}: {count} × {length}"


@pytest.mark.slow
@runners("numpy", "wasm")
def test_a_few_of_a_long_line_are_the_first_of_its_sort(device_name: str) -> None:
    """Whatever the order of the elements, and with many that are equal."""
    rng = np.random.default_rng(0)
    cases = ((float32, (2, 900), 1), (float32, (500, 3), 0), (uint8, (1, 300), 1), (int64, (1, 300), 1))
    for kind, shape, axis in cases:
        target = sg.device(device_name).target
        if kind not in target.dtypes:
            continue
        b = Builder()
        x = b.input("x", shape, kind)
        choices = [(k, largest) for k in (1, 5) for largest in (False, True)]
        outputs = [y for k, largest in choices for y in b.top_k(x, axis=axis, k=k, largest=largest)]
        program = Model(Graph((x,), tuple(outputs), tuple("abcdefgh")), device_name).program()
        drawn = rng.normal(60, 20, shape).astype(kind.numpy)
        few = rng.choice(np.array([0, 1, 2], kind.numpy), shape)
        lines = [drawn, np.sort(drawn, axis), np.flip(np.sort(drawn, axis), axis), few]
        if kind is float32:
            lines += [rng.choice(np.array([-0.0, 0, 1, np.nan], kind.numpy), shape), np.full(shape, np.nan, np.float32)]
        for given in lines:
            up = np.argsort(given, axis, kind="stable")
            down = shape[axis] - 1 - np.flip(np.argsort(np.flip(given, axis), axis, kind="stable"), axis)
            found = program.run([given])
            for (k, largest), values, places in zip(choices, found[::2], found[1::2], strict=True):
                want = np.take(down if largest else up, np.arange(k), axis)
                np.testing.assert_array_equal(places, want, f"{kind}, {shape}, {k}")
                assert values.tobytes() == np.take_along_axis(given, want, axis).tobytes()


@pytest.mark.slow
def test_a_network_s_turns_are_one_kernel() -> None:
    for length in (5000, size("N")):
        b = Builder()
        x = b.input("x", (length,), float32)
        program = compile_graph(Graph((x,), b.sort(x, axis=0), ("values", "places")), find_target("wgsl"))
        (loop,) = (g for g in program.groups if g.head == LOOP)
        turn = [g for g in program.steps if loop.at < g.at < (loop.jump or 0) and not isinstance(g.stop, Check)]
        assert [min(g.head, 0) for g in turn] == [0, 0, COPY], "the turn, its number, the places"
        assert known(program.counts[loop.rest[1]], {"N": 5000}) == 91
        assert "host" not in program.facts


def test_a_bundle_of_what_a_page_cannot_run_is_refused() -> None:
    """Wasm computes in float64, and a page has top_k of it; elsewhere all such ops are named."""
    b = Builder()
    x = b.input("x", (4,), float32)
    wide = b.cast(x, to=float64)
    model = Model(Graph((x,), (b.exp(wide), b.top_k(wide, axis=0, k=2, largest=True)[0]), ("y", "z")), "numpy")
    assert draft(model, ["wasm"]).alone().manifest["targets"].keys() == {"wasm"}
    with pytest.raises(InputError, match=r"webgpu.*cast \(wgsl does not compute float64\).*lacks cast, exp.*Python"):
        draft(model, ["webgpu"]).alone()


def test_what_a_page_lacks_is_said_without_the_compilers_facts() -> None:
    """A file of a Program may have none."""
    x, y = (Buffer(place, float32, (4,), 4, (place, 0)) for place in ("input", "output"))
    words = words_of([Host("levitate", {}, (0,), (1,))], (), ())
    program = ProgramData("wgsl", (0,), (1,), (x, y), 0, (), *words, {}, np.zeros(0, np.uint8))
    assert beyond_scripts(program).startswith("these ops run on the host: levitate; for that, singe.js lacks levitate")


@pytest.mark.parametrize("kind", ["float32", "int32", "uint8", "bool"])
def test_elementwise_functions_run_on_the_device(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str, *rest: Any) -> Any:
        raise AssertionError(f"{name} of {kind} runs on the host")

    monkeypatch.setattr(arithmetic, "numpy_fallback", refused)
    x = sg.tensor(np.ones(2, kind))
    for name, row in ROWS.items():
        if isinstance(row, Elementwise) and row.promote and DTYPES[kind].kind in row.kinds:
            arithmetic.compute(name, *[x] * row.arity)
