"""Ops that a user declares with `sg.op`: they run, fuse, compile, import, differentiate and export as Singe's own do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.extension import size
from singe.graph import Builder, Graph, gradient
from singe.onnx.importer import BY_ONNX
from singe.ops import ROWS

DOCUMENT = Path(__file__).parents[3] / "docs" / "own-kernels.md"
DEVICES = ("numpy", "wasm", "webgpu")
DOUBLE = """
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let i = i32((group.x + group.y * groups.x) * 64u + lane);
  if (i < sizes.n) { out[i] = x[i] * 2.0; }
}
"""


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tables of rows, which are as before after the test."""
    before = dict(ROWS), dict(BY_ONNX)
    yield
    for table, kept in zip((ROWS, BY_ONNX), before, strict=True):
        table.clear()
        table.update(kept)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def documented(rows: None) -> dict[str, Any]:
    """The names that the examples of docs/own-kernels.md define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.S):
        exec(compile(block, str(DOCUMENT), "exec"), names)
    return names


def opened(name: str) -> sg.Device:
    try:
        return sg.device(name)
    except sg.DeviceError as e:
        pytest.skip(f"no {name} here: {e}")


def arrays(rows: int = 33) -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((rows, 20), (20, 18), (18,))]


def expected(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return np.maximum(x.astype(np.float64) @ w + bias, 0)


def doubled(x: Any) -> sg.Wgsl:
    n = 1
    for d in x.shape:
        n = n * d
    return sg.Wgsl(DOUBLE, (-(-n // 64),), {"n": n})


def test_the_documented_op_runs_on_tensors(documented: dict[str, Any], on: sg.Device) -> None:
    """As a function, as a method, and of what other ops gave."""
    x, w, bias = (sg.tensor(a, device=on) for a in arrays())
    method: Any = x
    ways = (
        documented["matmul_add_relu"](x, w, bias),
        method.matmul_add_relu(w, bias),
        documented["matmul_add_relu"](x * 1, w, bias),
    )
    for got in ways:
        np.testing.assert_allclose(got.numpy(), expected(*arrays()), atol=1e-4)


@pytest.mark.parametrize("name", DEVICES)
def test_the_documented_op_compiles_to_its_shader(documented: dict[str, Any], name: str) -> None:
    """One dispatch of the shader on webgpu, also with open sizes and in a branch; a product with what follows on wasm."""
    on = opened(name)
    _, w, bias = arrays()
    b = Builder()
    x = b.input("x", (size("N"), 20), sg.float32)
    graph = Graph((x,), (b.neg(b.matmul_add_relu(x, b.const(w), b.const(bias))),), ("y",))
    program = sg.compile(graph, device=on)
    for rows in (1, 33, 0, 70):
        given = arrays(rows)[0]
        np.testing.assert_allclose(program.run([given])[0], -expected(given, w, bias), atol=1e-4)
    kinds = [k.kind for k in program.data.kernels]
    assert kinds.count("opaque") == (name == "webgpu")
    if name == "wasm":
        assert not program.data.facts.get("host")


def test_a_shader_is_used_within_regions(documented: dict[str, Any]) -> None:
    on = opened("webgpu")
    b = Builder()
    x, c = b.input("x", (3, 4), sg.float32), b.input("c", (), sg.bool_)
    inner = b.input("inner", (3, 4), sg.float32)
    w, bias = b.const(np.ones((4, 4), np.float32)), b.const(np.zeros(4, np.float32))
    then = Graph((inner,), (b.matmul_add_relu(inner, w, bias),), ("",))
    otherwise = Graph((inner,), (b.neg(inner),), ("",))
    y = b.node(ROWS["if"], c, x, then=then, otherwise=otherwise)
    program = sg.compile(Graph((x, c), (y,), ("y",)), device=on)
    assert "opaque" in [k.kind for k in program.data.kernels]
    np.testing.assert_array_equal(program.run([np.ones((3, 4), np.float32), np.array(True)])[0], np.full((3, 4), 4))
    np.testing.assert_array_equal(program.run([np.ones((3, 4), np.float32), np.array(False)])[0], np.full((3, 4), -1))


@pytest.mark.parametrize("name", DEVICES)
def test_a_file_with_the_domain_imports(documented: dict[str, Any], name: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    on, (_, w, bias), make = opened(name), arrays(), onnx.helper
    nodes = [
        make.make_node("MatMulAddRelu", ["x", "w", "bias"], ["a"], domain="acme"),
        make.make_node("ScaledDown", ["a"], ["y"], domain="acme", by=4.0),
    ]
    info = [make.make_tensor_value_info(n, 1, ["N", k]) for n, k in (("x", 20), ("y", 18))]
    held = [onnx.numpy_helper.from_array(a, n) for a, n in ((w, "w"), (bias, "bias"))]
    opsets = [make.make_opsetid("", 20), make.make_opsetid("acme", 1)]
    model = make.make_model(make.make_graph(nodes, "g", info[:1], info[1:], held), opset_imports=opsets, ir_version=9)
    (tmp_path / "own.onnx").write_bytes(model.SerializeToString())
    loaded = sg.load(tmp_path / "own.onnx", device=on)
    np.testing.assert_allclose(loaded(arrays()[0]), expected(*arrays()) / 4, atol=1e-4)
    sg.save(loaded, tmp_path / "own.singe")
    again = sg.load(tmp_path / "own.singe", device=on)
    np.testing.assert_allclose(again(arrays()[0]), expected(*arrays()) / 4, atol=1e-4)


def test_a_saved_program_needs_no_declaration(documented: dict[str, Any], tmp_path: Path) -> None:
    """The shader is in the Program. A step on the host needs the op: a run without it is a DeviceError."""
    on, (x, w, bias) = opened("webgpu"), arrays()
    program = sg.compile(lambda x: documented["matmul_add_relu"](x, w, bias), x, device=on)
    program.save(tmp_path / "shader.singe")
    sg.compile(lambda x: documented["scaled"](x, by=2.0), x, device="numpy").save(tmp_path / "host.singe")
    del ROWS["matmul_add_relu"], ROWS["scaled_down"]
    loaded = sg.Program.load(tmp_path / "shader.singe", on)
    np.testing.assert_allclose(loaded.run([x])[0], expected(x, w, bias), atol=1e-4)
    with pytest.raises(sg.DeviceError, match="scaled_down"):
        sg.Program.load(tmp_path / "host.singe", "numpy").run([x])


@pytest.mark.parametrize("name", DEVICES)
def test_gradients_are_derived_or_given(documented: dict[str, Any], name: str) -> None:
    on = opened(name)
    b = Builder()
    x, w, bias = (b.input(f"x{k}", a.shape, sg.float32) for k, a in enumerate(arrays()))
    y = b.scaled_down(b.matmul_add_relu(x, w, bias), by=2.0)
    found = gradient(Graph((x, w, bias), (y,), ("y",)), b, [b.expand(b.const(1.0), shape=y.shape)], [x, w, bias])
    got = sg.compile(Graph((x, w, bias), tuple(found), ("dx", "dw", "db")), device=on).run(arrays())
    ax, aw, _ = arrays()
    g = (expected(*arrays()) > 0) * 0.5
    for value, want in zip(got, (g @ aw.T, ax.T @ g, g.sum(0)), strict=True):
        np.testing.assert_allclose(value, want, atol=1e-3)


def test_a_gradient_is_given_results_and_attributes(rows: None) -> None:
    split = sg.op(
        "low_high",
        numpy=lambda x, *, at: (np.minimum(x, x.dtype.type(at)), np.maximum(x, x.dtype.type(at))),
        shapes=lambda x, *, at: [(x.shape, x.dtype)] * 2,
        gradient=lambda g, y, x, *, at: ((g[0] * (y[0] < at)),) if g[1] is None else (g[0] + g[1],),
    )
    low, high = split(np.array([1, 5], np.float32), at=3)
    assert (low.numpy().tolist(), high.numpy().tolist()) == ([1, 3], [3, 5])
    b = Builder()
    x = b.input("x", (2,), sg.float32)
    (dx,) = gradient(Graph((x,), (b.low_high(x, at=3)[0],), ("y",)), b, [b.const(np.ones(2, np.float32))], [x])
    assert sg.compile(Graph((x,), (dx,), ("dx",)), device="numpy").run([np.array([1, 5], np.float32)])[0].tolist() == [
        1,
        0,
    ]


@pytest.mark.parametrize("name", DEVICES)
def test_a_host_op_has_a_shader_too(rows: None, name: str) -> None:
    """What is no composition of ops: on webgpu by its shader, elsewhere, and for other types, on the host."""
    on = opened(name)
    own = sg.op("doubled", numpy=lambda x: x * x.dtype.type(2), shapes=lambda x: [(x.shape, x.dtype)],
                wgsl=lambda x: doubled(x) if x.dtype is sg.float32 else None)  # fmt: skip
    for kind in ("float32", "float16", "int32"):
        x = np.arange(130).astype(kind)
        program = sg.compile(own, x, device=on)
        np.testing.assert_array_equal(program.run([x])[0], x * 2)
        on_device = name == "webgpu" and kind == "float32"
        assert [k.kind for k in program.data.kernels] == ["opaque"] * on_device


@pytest.mark.slow
def test_many_workgroups_are_spread(rows: None) -> None:
    on = opened("webgpu")
    own = sg.op("doubled", lambda x: x * 2, wgsl=doubled)
    x = np.arange(70_000 * 64, dtype=np.float32)
    np.testing.assert_array_equal(own(sg.tensor(x, device=on)).numpy(), x * 2)


def test_constants_are_folded_through_the_definition(rows: None) -> None:
    """An own op over constants, some of which become constants only when the graph is simplified, is a constant."""
    on = opened("webgpu")
    own = sg.op("doubled", lambda x: (x * 2, x + 1), wgsl=lambda x: None)
    one = sg.op("doubled_one", lambda x: own(x)[0], wgsl=doubled)
    x = np.arange(3, dtype=np.float32)
    program = sg.compile(lambda y: one(sg.tensor(x) * 0 + sg.tensor(x)) + y, x, device=on)
    assert [k.kind for k in program.data.kernels] == ["elementwise"]
    np.testing.assert_array_equal(program.run([x])[0], x * 3)


@pytest.mark.parametrize(
    ("wgsl", "says"),
    [
        (lambda x: "fn main() {}", "expected a Wgsl"),
        (lambda x: sg.Wgsl("@group(0) @binding(0) var<storage> a: f32;", (1,)), "leave them out"),
        (lambda x: sg.Wgsl("fn other() {}", (1,)), "no entry point"),
        (lambda x: sg.Wgsl(DOUBLE, ()), "expected 1 to 3"),
        (lambda x: sg.Wgsl(DOUBLE, (1.5,)), "expected a dimension"),  # pyright: ignore[reportArgumentType]
        (lambda x: sg.Wgsl(DOUBLE, (1,), {"a b": 1}), "'a b'"),
        (lambda *x: sg.Wgsl(DOUBLE, (1,)), "must name"),
    ],
)  # fmt: skip
def test_a_wrong_shader_is_refused(rows: None, wgsl: Any, says: str) -> None:
    on = opened("webgpu")
    own = sg.op("doubled", lambda x: x * 2, wgsl=wgsl)
    with pytest.raises(sg.CompileError, match=re.escape(says)):
        sg.compile(own, np.ones(3, np.float32), device=on)


def test_a_shader_that_does_not_compile_is_named(rows: None) -> None:
    on = opened("webgpu")
    own = sg.op("doubled", lambda x: x * 2, wgsl=lambda x: sg.Wgsl(DOUBLE.replace("lane", "line", 1), (1,), {"n": 3}))
    with pytest.raises(sg.DeviceError, match="WGSL does not compile"):
        own(sg.tensor(np.ones(3, np.float32), device=on)).numpy()


def test_a_wrong_declaration_is_refused(rows: None) -> None:
    def shapes(x: Any) -> Any:
        return [(x.shape, x.dtype)]

    for name in ("exp", "numpy", "two words"):
        with pytest.raises(sg.InputError, match="choose another"):
            sg.op(name, lambda x: x)
    wrong: tuple[dict[str, Any], ...] = (
        {}, {"define": abs, "numpy": np.abs, "shapes": shapes}, {"numpy": np.abs}, {"define": abs, "shapes": shapes},
    )  # fmt: skip
    for given in wrong:
        with pytest.raises(sg.InputError, match="give either"):
            sg.op("unclear", **given)
    with pytest.raises(sg.InputError, match="domain"):
        sg.op("unclear", abs, onnx="Abs")
    own = sg.op("longer", numpy=lambda x: np.append(x, x), shapes=shapes)
    with pytest.raises(sg.ShapeError, match=r"float32\(6\).*expected float32\(3\)|as shapes says"):
        own(np.ones(3, np.float32)).numpy()
    own = sg.op("shapeless", numpy=np.abs, shapes=lambda x: x.shape)
    with pytest.raises(sg.InputError, match="a list of a shape and a dtype"):
        own(np.ones(3, np.float32)).numpy()
    own = sg.op("untensored", lambda x: 3)
    with pytest.raises(sg.InputError, match="expected a Tensor"):
        own(np.ones(3, np.float32)).numpy()
