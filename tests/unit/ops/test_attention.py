"""Attention on all devices, against its formula in float64: tiles of every height, masks, groups, open lengths."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from devices import ALL_BUT_SHADERS, runners, slow
from wasm_checks import TARGET, execute_printed

from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.compiler.target import find_target
from singe.dtypes import DType, bool_, float16, float32, int32
from singe.graph import Builder, Graph, Node, gradient
from singe.ir.attention import attention
from singe.ops.products.attention import seen_keys
from singe.program.words import COPY
from singe.shapes import Dim, deferring, evaluate, known, size
from singe_gpu.kernels.attention.choice import Cut, chosen
from singe_wasm.levels import LEVELS

L, S, N = (size(name) for name in "LSN")


class Case(NamedTuple):
    """The axes of q, k and v, whether the batch and the lengths are open, those of a mask, and the attributes."""

    q: tuple[int, ...]
    k: tuple[int, ...]
    width: int
    mask: tuple[int, ...] | None = None
    attrs: dict[str, Any] = {}  # noqa: RUF012  (never written)
    open: bool = False


CASES = [
    Case((1, 4, 70, 64), (1, 4, 70, 64), 64),
    Case((1, 4, 70, 64), (1, 2, 90, 64), 48, (70, 90), {"scale": 0.2}),
    Case((2, 4, 70, 32), (2, 2, 90, 32), 40, (2, 1, 70, 90)),
    Case((2, 4, 37, 30), (2, 2, 90, 30), 17, (2, 1, 1, 90), {"softcap": 2.0}),
    Case((2, 4, 70, 128), (2, 2, 90, 128), 128, (4, 70, 90), {"causal": True, "past": 20}),
    Case((2, 4, 330, 72), (2, 2, 330, 72), 72, None, {"causal": True}),
    Case((1, 2, 20, 200), (1, 2, 90, 200), 200, (20, 90)),
    Case((3, 8, 3), (3, 9, 3), 5, None, {"causal": True}),
    Case((8, 3), (9, 3), 5, (8, 9)),
    Case((2, 4, 30, 16), (2, 2, 90, 16), 16, (30, 61), {"keys": 61, "causal": True, "past": 31}),
    Case((2, 4, 1, 16), (2, 2, 90, 16), 16, None, {"keys": 61}),
    Case((1, 16, 600, 16), (1, 16, 100, 16), 16),
    Case((1, 8, 1, 64), (1, 2, 1000, 64), 64),
    Case((2, 8, 3, 64), (2, 2, 700, 64), 64, (2, 1, 3, 700), {"causal": True, "past": 697}),
    Case((5, 4, 70, 32), (5, 2, 90, 32), 32, (5, 1, 70, 90), {"causal": True, "past": 20}, open=True),
    Case((1, 8, 1, 64), (1, 2, 333, 64), 64, (1, 333), {}, open=True),
    Case((3, 8, 200, 64), (3, 8, 200, 64), 64, None, {"causal": True}, open=True),
]


def formula(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None, *,
    scale: float = 0.0, causal: bool = False, past: int = 0, softcap: float = 0.0, keys: int | None = None,
) -> np.ndarray:  # fmt: skip
    k, v = k[..., :keys, :], v[..., :keys, :]
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    if q.ndim > 2:
        k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], -3) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    scores = np.tanh(scores / softcap) * softcap if softcap else scores
    seen = np.tri(scores.shape[-2], scores.shape[-1], past, dtype=bool) if causal else np.ones(scores.shape[-2:], bool)
    if mask is not None and mask.dtype == bool:
        seen = seen & mask
    elif mask is not None:
        scores = scores + mask
    scores = np.where(seen, scores, -np.inf)
    e = np.exp(scores - np.maximum(scores.max(-1, keepdims=True, initial=-np.inf), -1e300))
    return e @ v / np.maximum(e.sum(-1, keepdims=True), 1e-300)


def graph_of(case: Case, arrays: list[np.ndarray], kind: DType) -> Graph:
    """kind: of the queries and a mask of floats; keys and values have that of their arrays."""
    b = Builder()
    names = {case.q[-2]: L, case.k[-2]: S} if case.open else {}
    names |= {case.q[0]: N} if case.open and case.q[0] > 1 else {}
    inputs: list[Node] = []
    for a in arrays:
        # A head's size may be as large as a length: it stays.
        kept = a.shape[-1:] if len(inputs) < 3 else ()
        shape = [names.get(d, d) for d in a.shape[: a.ndim - len(kept)]]
        own = {np.bool_: bool_, np.float16: float16, np.int32: int32}.get(a.dtype.type, kind)
        inputs.append(b.input(f"x{len(inputs)}", (*shape, *kept), own))
    return Graph(tuple(inputs), (b.attention(*inputs, **case.attrs),), ("y",))


@runners("interpret", *slow("array", "numpy", "wasm", "webgpu"))
@pytest.mark.parametrize(("kind", "held"), [(float32, float32), (float16, float16), (float32, float16)], ids=str)
@pytest.mark.parametrize("masked", ["added", "bools"])
def test_attention_is_its_formula(masked: str, kind: DType, held: DType, run_graph: Any, device_name: str) -> None:
    """held: the type in which keys and values are stored."""
    rng = np.random.default_rng(0)
    cases = CASES[7:9] if device_name == "interpret" else CASES
    if device_name == "webgpu" and held is float16:
        cases = CASES[1::4]  # compiling takes a second for each
    for case in cases:
        if case.mask is None and masked == "bools":
            continue
        shapes = (case.q, case.k, (*case.k[:-1], case.width))
        arrays = [rng.standard_normal(s).astype(d.numpy) for s, d in zip(shapes, (kind, held, held), strict=True)]
        if case.mask is not None:
            mask = rng.standard_normal(case.mask)
            arrays.append(mask > 0 if masked == "bools" else np.where(mask > 1, -np.inf, mask).astype(kind.numpy))
            if case.mask[-2] > 1:  # the first query sees nothing
                arrays[-1][..., 0, :] = False if masked == "bools" else -np.inf
        (got,) = run_graph(graph_of(case, arrays, kind), arrays)
        assert got.dtype == arrays[0].dtype
        want = formula(*arrays, **case.attrs)
        np.testing.assert_allclose(got, want, 0, 1e-5 if kind is float32 else 4e-3, err_msg=str(case))


IN_EIGHT_BITS = [
    Case((1, 6, 1, 64), (1, 2, 300, 64), 64, None, {"causal": True, "past": 260, "keys": 261}),
    Case((2, 4, 9, 32), (2, 2, 300, 32), 96, (9, 300)),
    Case((3, 8, 7, 32), (3, 2, 90, 32), 64, None, {"causal": True, "past": 20}, open=True),
]


@runners("interpret", *slow("array", "numpy", "wasm", "webgpu"))
def test_keys_and_values_may_be_rows_in_eight_bits(run_graph: Any, device_name: str) -> None:
    rng = np.random.default_rng(2)
    for case in IN_EIGHT_BITS[1:2] if device_name == "interpret" else IN_EIGHT_BITS:
        given, floats = list[np.ndarray](), list[np.ndarray]()
        for shape in (case.k, (*case.k[:-1], case.width)):
            numbers = rng.integers(-127, 128, (*shape[:-1], shape[-1] // 32, 32), np.int8)
            scales = rng.uniform(0.001, 0.02, (*numbers.shape[:-1], 1)).astype(np.float32)
            words = np.concatenate([numbers.view(np.int32), scales.view(np.int32)], -1)
            given.append(words.reshape(*shape[:-1], -1))
            floats.append((numbers * scales).reshape(shape))
        q = rng.standard_normal(case.q).astype(np.float32)
        mask = [] if case.mask is None else [rng.standard_normal(case.mask).astype(np.float32)]
        (got,) = run_graph(graph_of(case, [q, *given, *mask], float32), [q, *given, *mask])
        want = formula(q, *floats, *mask, **case.attrs)
        np.testing.assert_allclose(got, want, 0, 1e-5, err_msg=str(case))


@pytest.mark.slow
def test_every_float16_is_read_as_its_value(run_graph: Any) -> None:
    """A query that sees one key gets its value, where few are read as they are stored, and where many are packed."""
    with np.errstate(invalid="ignore"):
        v = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(1, 1024, 1, 64)
        for queries in (1, 9):
            q, k = np.ones((1, 1024, queries, 4), np.float32), np.ones((1, 1024, 1, 4), np.float16)
            (got,) = run_graph(graph_of(Case(q.shape, k.shape, 64), [q, k, v], float32), [q, k, v])
            np.testing.assert_array_equal(got, np.broadcast_to(v.astype(np.float32), got.shape))


def test_large_scores_and_infinite_values_stay_exact(run_graph: Any) -> None:
    """A later block of keys may have much larger scores than those before it, which then count for nothing."""
    q = np.full((1, 1, 40, 8), 10, np.float32)
    k = np.repeat(np.linspace(-9, 9, 200, dtype=np.float32)[None, None, :, None], 8, -1)
    v = np.random.default_rng(1).standard_normal((1, 1, 200, 8)).astype(np.float32)
    case = Case(q.shape, k.shape, 8)
    for keys in (k, np.ascontiguousarray(k[:, :, ::-1])):
        (got,) = run_graph(graph_of(case, [q, keys, v], float32), [q, keys, v])
        np.testing.assert_allclose(got, formula(q, keys, v), 1e-4, 1e-5)


def test_a_gradient_computes_the_weights_once(run_graph: Any) -> None:
    """What a gradient reads is lowered; its values are those of finite differences."""
    b = Builder()
    q, k, v = (b.input(name, (1, 2, 40, 8), float32) for name in "qkv")
    y = b.attention(q, k, v)
    graph = Graph((q, k, v), (y,), ("y",))
    seed = b.input("seed", y.shape, float32)
    grads = gradient(graph, b, [seed], [q])
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal((1, 2, 40, 8)).astype(np.float32) for _ in range(4)]
    whole, slope = run_graph(Graph((q, k, v, seed), (y, *grads), ("y", "g")), arrays)
    np.testing.assert_allclose(whole, formula(*arrays[:3]), 0, 1e-5)
    step = np.zeros((1, 2, 40, 8))
    step[0, 1, 7, 3] = 1e-4
    rise = [(formula(arrays[0] + s * step, *arrays[1:3]) * arrays[3]).sum() for s in (1, -1)]
    assert abs((rise[0] - rise[1]) / 2e-4 - slope[0, 1, 7, 3]) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_strips_on_wasm_are_shared_by_any_number_of_parts(level: str) -> None:
    """And nothing is written outside of the result and a part's own workspace."""
    rng = np.random.default_rng(3)
    for case in CASES:
        arrays = [rng.standard_normal(s).astype(np.float32) for s in (case.q, case.k, (*case.k[:-1], case.width))]
        arrays += [rng.standard_normal(case.mask) > 0] if case.mask is not None else []
        given = [(a.shape, bool_ if a.dtype == bool else float32) for a in arrays]
        result = (*case.q[:-1], case.width)
        printed = TARGET.print_opaque("attention", case.attrs, given, [(result, float32)])
        if printed is not None:
            *_, got = execute_printed(printed, [*arrays, np.zeros(result, np.float32)], {}, level)
            np.testing.assert_allclose(got.reshape(result), formula(*arrays, **case.attrs), 0, 1e-5)


def test_at_any_lengths_one_shader_is_chosen() -> None:
    """The same as where the lengths are known; none of its workgroups is without keys."""
    shapes = (N, 8, L, 64), (N, 2, S, 64), (N, 2, S, 64)
    facts = attention({}, [(shape, float32) for shape in shapes])
    assert facts is not None
    cuts = chosen(facts)
    assert len(cuts) == 3
    for n, queries, keys in product((1, 7, 64), (1, 2, 20, 500), (1, 64, 100, 3000)):
        sizes = {"N": n, "L": queries, "S": keys}
        (cut,) = [cut for cut in cuts if evaluate(cut.when, sizes)]
        known = attention({}, [(tuple(evaluate(d, sizes) for d in shape), float32) for shape in shapes])
        assert known is not None
        splits, results = evaluate(cut.splits, sizes), evaluate(cut.results, sizes)
        assert chosen(known) == [Cut(cut.way, splits, n * 8 * queries * splits)]
        assert isinstance(splits, int)
        assert splits == 1 or results >= n * 8 * queries * splits
        blocks = -(-keys // cut.way.block)
        assert (splits - 1) * -(-blocks // splits) < blocks


def spelled(form: str, kind: DType = float32) -> Graph:
    """softmax(q · kᵀ · scale + mask) · v in the forms of exported models."""
    b = Builder()
    q, k, v = (b.input(name, (N, 2, L, 8), kind) for name in "qkv")
    mask = b.input("mask", (N, 1, 1, L), kind)
    scores = b.matmul(q, b.transpose(k, perm=(0, 1, 3, 2)))
    scores = b.div(scores, b.const(2.0, kind)) if form == "divided" else b.mul(b.const(0.5, kind), scores)
    if form == "spread":
        mask = b.expand(mask, shape=(N, 1, L, L))
    hidden = b.less(mask, b.const(-0.5, kind))
    if form == "replaced by −∞":
        scores = b.where(b.expand(hidden, shape=(N, 1, L, L)), b.const(-np.inf, kind), scores)
    elif form == "kept or low":
        scores = b.where(b.logical_not(hidden), scores, b.const(float(np.finfo(np.float32).min), kind))
    elif form == "added and replaced":
        scores = b.where(hidden, b.const(-1e9, kind), b.add(scores, mask))
    elif form != "plain":
        scores = b.add(mask, scores) if form == "divided" else b.add(scores, mask)
    weights = b.softmax(scores, axis=3)
    if form == "zeros for nan":
        weights = b.where(b.isnan(weights), b.const(0.0, kind), weights)
    y = b.matmul(weights, v)
    inputs = (q, k, v, mask if mask.row is None else mask.inputs[0])
    outputs = (y, weights) if form == "weights too" else (y, scores) if form == "scores too" else (y,)
    return Graph(inputs, outputs, ("y", "more")[: len(outputs)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    [
        "plain",
        "zeros for nan",
        "scores too",
        "replaced by −∞",
        *slow("kept or low", "added and replaced", "divided", "multiplied", "spread", "weights too"),
    ],
)
def test_attention_that_a_model_spells_out_is_one_kernel(form: str, run_graph: Any) -> None:
    """If nothing else reads the values between."""
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((3, 2, 20, 8)).astype(np.float32) for _ in range(3))
    mask = rng.standard_normal((3, 1, 1, 20)).astype(np.float32)
    arrays = [q, k, v, np.where(mask > 1, -np.inf, mask)]
    graph = spelled(form)
    for target in ("wasm", "wgsl"):
        compiled = compile_graph(graph, find_target(target))
        labels = {kernel.label for kernel in compiled.kernels}
        assert ("attention" in labels) is ("too" not in form)
        assert not labels & {"softmax", "matmul"} or "too" in form
        work = sum(known(k.flops, {"N": 3, "L": 20}) for k in compiled.kernels if k.label == "attention")
        assert "too" in form or work == 3 * 2 * 20 * 20 * (2 * (8 + 8) + 4)
        moved = sum(known(k.bytes, {"N": 3, "L": 20}) for k in compiled.kernels if k.label == "attention")
        # A profile leaves out kernels that move nothing: at these sizes another does the work.
        assert "too" in form or moved >= 4 * (q.size + k.size + v.size + q.size)
    got, *_ = run_graph(graph, arrays)
    mask, hidden = arrays[3], np.where(arrays[3] < -0.5, np.float32(-np.inf), np.float32(0))
    given = (
        []
        if form == "plain"
        else [hidden]
        if "kept" in form or "by" in form
        else [mask + hidden if "and" in form else mask]
    )
    want = formula(q, k, v, *given, scale=0.5)
    np.testing.assert_allclose(got, want, 0, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["kept or low", "added and replaced"])
def test_a_query_without_keys_weighs_them_alike_where_a_number_replaces_scores(form: str, run_graph: Any) -> None:
    """However large the scores and masks that it replaces are."""
    rng = np.random.default_rng(6)
    q, k, v = (100 * rng.standard_normal((3, 2, 20, 8)).astype(np.float32) for _ in range(3))
    got, *_ = run_graph(spelled(form), [q, k, v, rng.uniform(-1e8, -1, (3, 1, 1, 20)).astype(np.float32)])
    np.testing.assert_allclose(got, np.broadcast_to(v.mean(2, keepdims=True), v.shape), 0, 1e-4)


@ALL_BUT_SHADERS
@pytest.mark.parametrize("heads", [(1, 4, 4), (4, 1, 1), (N, 2, 2), (4, 1, 4)])
def test_products_that_repeat_heads_keep_their_meaning(heads: tuple[Dim, Dim, Dim], run_graph: Any) -> None:
    """The row `attention` groups heads, and products repeat one; an open number may turn out to be equal."""
    b = Builder()
    q, k, v = (b.input(x, (3, h, 5, 8), float32) for x, h in zip("qkv", heads, strict=True))
    with deferring():
        y = b.matmul(b.softmax(b.matmul(q, b.transpose(k, perm=(0, 1, 3, 2))), axis=3), v)
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal((3, known(h, {"N": 2}), 5, 8)).astype(np.float32) for h in heads]
    scores = np.exp(arrays[0] @ arrays[1].swapaxes(2, 3))
    got, *_ = run_graph(Graph((q, k, v), (y,), ("y",)), arrays)
    np.testing.assert_allclose(got, scores / scores.sum(3, keepdims=True) @ arrays[2], 0, 1e-5)


@pytest.mark.parametrize("target", ["wasm", "wgsl"])
def test_attention_of_products_is_one_kernel_beside_them(target: str) -> None:
    """Its inputs are no parts of it, although other nodes read them too."""
    b = Builder()
    x, w = b.input("x", (2, 20, 8), float32), b.input("w", (8, 8), float32)
    q = b.dot(x, w)
    graph = Graph((x, w), (b.attention(q, q, q), q), ("y", "q"))
    labels = [kernel.label for kernel in compile_graph(graph, find_target(target)).kernels]
    assert labels.count("attention") == 1
    assert len(labels) == 2


@pytest.mark.parametrize("target", ["wasm", "wgsl"])
def test_a_cache_grows_in_place(target: str) -> None:
    """New keys and values are written into the memory of the given cache, and read from there, for each sequence at its
    own place; nothing else has the cache's size."""
    b = Builder()
    q, k, v = (b.input(name, (2, heads, 1, 32), float32) for name, heads in (("q", 4), ("k", 2), ("v", 2)))
    caches = [b.input(name, (2, 2, 256, 32), float32) for name in ("keys", "values")]
    ends = b.input("ends", (2, 1, 1, 1), int32)
    held = [
        b.scatter_elements(c, x, b.expand(ends, shape=x.shape), axis=2) for c, x in zip(caches, (k, v), strict=True)
    ]
    y = b.attention(q, *held, seen_keys(b, 1, 100, ends), keys=100)
    graph = Graph((q, k, v, *caches, ends), (y, *held), ("y", "keys_out", "values_out"))
    program = compile_graph(graph, find_target(target), Options(donate=("keys", "values")))
    assert program.facts["donated"] == {"keys": "keys_out", "values": "values_out"}
    assert not any(g.head == COPY for g in program.groups)
    large = [
        x for x in program.buffers if x.place[0] == "slot" and isinstance(x.size, int) and x.size >= 2 * 2 * 256 * 32
    ]
    assert not large
