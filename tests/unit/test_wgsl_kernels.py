"""Kernels and Routines in WGSL on this machine's adapter, compared with the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from singe.dtypes import (
    STORED,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from singe.errors import DeviceError
from singe.ir import affine
from singe.ir import scalar as S
from singe.ir.affine import flatten, unflatten
from singe.ir.interpreter import interpret
from singe.ir.kernel import Kernel, Port, Reduce, Routine, Store, loop_vars
from singe.ir.scalar import Expr, const, load, select
from singe.program.program import Buffer, Code, Dispatch, ProgramData
from singe.shapes import Dim, known, size, symbols

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe.ir.contraction import contraction
from singe_webgpu.kernels.choice import RATES
from singe_webgpu.kernels.gemm import Tile, print_contraction
from singe_webgpu.native import WebGpuBackend
from singe_webgpu.variants import variants


@cache
def _open() -> WebGpuBackend | str:
    try:
        return WebGpuBackend()
    except DeviceError as e:
        return str(e)


@pytest.fixture
def gpu() -> WebGpuBackend:
    found = _open()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def program_of(
    backend: WebGpuBackend, kernels: Sequence[Kernel | Routine], arrays: Sequence[Sequence[np.ndarray]]
) -> ProgramData:
    """A program that runs each kernel once over buffers of its own; every symbolic size is an input of that length."""
    target = backend.target
    firsts = [target.print(k, ()) for k in kernels]
    printed = [(number, p) for number, first in enumerate(firsts) for p in (first, *first.others)]
    modules, variants = target.link([p for _, p in printed])
    names = sorted(set().union(*(symbols([*k.grid, *k.inner, *_kernel(k).sizes]) for k in map(_kernel, kernels))))
    buffers = [Buffer(n, uint8, (size(n),), 4, ("input", i)) for i, n in enumerate(names)]
    inputs, outputs, steps = list(range(len(names))), [], []
    for number, (kernel, given) in enumerate(zip(kernels, arrays, strict=True)):
        mine = []
        for port, array in zip(kernel.ports, given, strict=True):
            side, place = (outputs, "output") if port.written else (inputs, "input")
            mine.append(len(buffers))
            buffers.append(
                Buffer(
                    f"k{number}_{len(mine)}",
                    port.dtype,
                    array.shape,
                    target.element_size(port.dtype),
                    (place, len(side)),
                )
            )
            side.append(mine[-1])
        steps += [Dispatch(k, tuple(mine)) for k, (of, _) in enumerate(printed) if of == number]
    codes = tuple(
        Code(kernels[of].name, "nest", len(kernels[of].ports), p.sizes, tuple(v))
        for (of, p), v in zip(printed, variants, strict=True)
    )
    return ProgramData(
        "wgsl", tuple(inputs), tuple(outputs), tuple(buffers), 0, codes, tuple(steps), modules, np.zeros(0, np.uint8)
    )


def _kernel(k: Kernel | Routine) -> Kernel:
    return k.kernel if isinstance(k, Routine) else k


Case = tuple[Kernel | Routine, Sequence[np.ndarray]]


def check(
    backend: WebGpuBackend,
    cases: Sequence[Case],
    sizes: dict[str, int] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """Run all cases as one program and compare each output with the interpreter's."""
    sizes = sizes or {}
    with_outputs = []
    for kernel, inputs in cases:
        given = iter(inputs)
        filled = [
            np.zeros(_extent(kernel, number, sizes), p.dtype.numpy)
            if p.written
            else np.ascontiguousarray(next(given)).reshape(-1)
            for number, p in enumerate(kernel.ports)
        ]
        with_outputs.append((kernel, filled))
    program = program_of(backend, [k for k, _ in with_outputs], [a for _, a in with_outputs])
    executable = backend.prepare(program)
    lengths = [np.zeros(sizes[n], np.uint8) for n in sorted(sizes) if any(b.name == n for b in program.buffers)]
    reads = [a for k, arrays in with_outputs for p, a in zip(k.ports, arrays, strict=True) if not p.written]
    got = [backend.download(a) for a in executable.run([backend.upload(a) for a in (*lengths, *reads)])]
    results = iter(got)
    for kernel, arrays in with_outputs:
        interpret(kernel, arrays, sizes)
        for port, wanted in zip(kernel.ports, arrays, strict=True):
            if port.written:
                found = next(results)
                message = f"{kernel.name}\n{_kernel(kernel)}"
                if port.dtype.is_float:
                    mine, theirs = (S.convert(a, port.dtype.compute.numpy) for a in (found, wanted))
                    np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol, err_msg=message)
                else:
                    np.testing.assert_array_equal(found, wanted, err_msg=message)
    executable.dispose()


def _extent(kernel: Kernel | Routine, port: int, sizes: dict[str, int]) -> int:
    """How many elements a port has, if the kernel stores to it; outputs in these tests are dense."""
    kernel = _kernel(kernel)
    (store,) = (s for s in kernel.stages if isinstance(s, Store) and s.port == port)
    return int(np.prod([known(d, sizes) for d in (*kernel.grid, *(kernel.inner if store.inner else ()))]))


def elementwise(name: str, ports: Sequence[DType], out: DType, count: Dim, body: Callable[..., Expr]) -> Kernel:
    """out[i] = body(in0[i], in1[i], …)."""
    (i,) = loop_vars("g", (count,))
    values = [load(number, i, d) for number, d in enumerate(ports)]
    return Kernel((*map(Port, ports), Port(out, True)), (count,), (), (Store(len(ports), i, body(*values)),), name)


F32 = np.array(
    [
        *(
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            3.7,
            -3.7,
            1e-3,
            1e3,
            -1e3,
            88.0,
            -88.0,
            100.0,
            -104.0,
            1e5,
            -1e5,
            99999.9,
            3e9,
            -3e9,
        ),
        *(2147483648.0, -2147483648.0, 1e19, -1e19, 9.3e18, 1e30, -1e30, 3e38, 1e-30, np.inf, -np.inf, np.nan),
    ],
    np.float32,
)
I32 = np.array(
    [0, 1, -1, 2, 3, -3, 7, 31, 32, 33, -33, 64, 100, -100, 65535, 65536, -65537, 2**31 - 1, -(2**31), -(2**31) + 1],
    np.int32,
)
I64 = np.concatenate([
    np.array([0, 1, -1, 2, 3, -7, 31, 32, 33, 63, 64, 65, 2**31, -(2**31), 2**32 - 1, 2**32, -(2**32), 2**53 + 1, 2**63 - 1, -(2**63)], np.int64),
    np.random.default_rng(5).integers(-(2**63), 2**63 - 1, 60, np.int64) >> np.random.default_rng(6).integers(0, 63, 60),
])  # fmt: skip
SAMPLES = {
    float32: F32,
    int32: I32,
    uint32: np.array([0, 1, 2, 3, 7, 31, 33, 2**31 - 1, 2**31, 2**32 - 1, 4294967040], np.uint32),
    int64: I64,
    uint64: np.array([0, 1, 2, 3, 7, 31, 65, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 10**19], np.uint64),
    bool_: np.array([False, True]),
}
UNARY = [w for w, row in S.WORDS.items() if row.arity == 1 and w != "cast"]
BINARY = [w for w, row in S.WORDS.items() if row.arity == 2]
# At these the interpreter's NumPy itself is not bound by the contract: a zero divisor gives some value.
ZERO_FREE = ("div", "rem")


def _takes(word: str, d: DType) -> bool:
    return S._KINDS[S.WORDS[word].kinds](d)


def _result(word: str, d: DType) -> DType:
    return bool_ if S.WORDS[word].result == "bool" else d


def _pairs(word: str, d: DType) -> tuple[np.ndarray, np.ndarray]:
    values = SAMPLES[d]
    a, b = (x.ravel() for x in np.meshgrid(values, values, indexing="ij"))
    if word in ZERO_FREE and d.is_int:
        a, b = a[b != 0], b[b != 0]
    return a, b


@pytest.mark.parametrize("d", SAMPLES, ids=repr)
def test_unary_words(gpu: WebGpuBackend, d: DType) -> None:
    x = (
        np.concatenate([SAMPLES[d], np.random.default_rng(1).normal(0, 20, 500).astype(np.float32)])
        if d is float32
        else SAMPLES[d]
    )
    cases = []
    for word in UNARY:
        if _takes(word, d):
            mine = x[np.abs(np.where(np.isnan(x), 0, x)) <= 1e5] if word in ("sin", "cos") else x
            cases.append(
                (
                    elementwise(
                        word, [d], _result(word, d), mine.size, lambda a, w=word: S.make(w, (a,), _result(w, a.dtype))
                    ),
                    [mine],
                )
            )
    if d is float32:
        tiny = np.array(
            [1e-38, 1e-40, 1e-45], np.float32
        )  # devices may flush them to zero, which a logarithm would show
        cases.append((elementwise("log of tiny", [d], d, tiny.size, S.log), [tiny]))
    if cases:
        check(gpu, cases, rtol=1e-5, atol=2e-7)


@pytest.mark.parametrize("d", SAMPLES, ids=repr)
def test_binary_words(gpu: WebGpuBackend, d: DType) -> None:
    cases = []
    for word in BINARY:
        if _takes(word, d):
            a, b = _pairs(word, d)
            cases.append(
                (
                    elementwise(
                        word,
                        [d, d],
                        _result(word, d),
                        a.size,
                        lambda x, y, w=word: S.make(w, (x, y), _result(w, x.dtype)),
                    ),
                    [a, b],
                )
            )
    check(gpu, cases)


def test_casts_between_all_types(gpu: WebGpuBackend) -> None:
    cases = [
        (elementwise(f"{a}_to_{b}", [a], b, x.size, lambda v, b=b: S.cast(v, b)), [x])
        for a, x in SAMPLES.items()
        for b in SAMPLES
        if a is not b
    ]
    check(gpu, cases, rtol=0, atol=0)


def test_word_chains_keep_nan_and_infinity(gpu: WebGpuBackend) -> None:
    clip = elementwise("clip", [float32], float32, F32.size, lambda x: S.clip(x, 0.0, 6.0))
    silu = elementwise("silu", [float32], float32, F32.size, lambda x: x / (1.0 + S.exp(-x)))
    chosen = elementwise("chosen", [float32], float32, F32.size, lambda x: select(S.isnan(x), 7.0, x * np.inf))
    made = elementwise(
        "made", [float32], float32, F32.size, lambda x: select(x < 0.0, np.nan, select(S.eq(x, 0.0), -np.inf, 1e-40))
    )
    least = elementwise("least", [int32], int32, I32.size, lambda x: S.maximum(x, -(2**31)) - S.div(x, -1))
    check(gpu, [(clip, [F32]), (silu, [F32]), (chosen, [F32]), (made, [F32]), (least, [I32])])


def test_divisors_of_zero_do_not_trap(gpu: WebGpuBackend) -> None:
    """Some value comes back, whichever; the elements beside them are right."""
    for d, values in ((int32, I32), (int64, I64)):
        for word in ZERO_FREE:
            by = np.where(np.arange(values.size) % 2, 3, 0).astype(d.numpy)
            kernel = elementwise(word, [d, d], d, values.size, lambda x, y, w=word: S.make(w, (x, y), x.dtype))
            constant = elementwise(
                word, [d], d, values.size, lambda x, w=word: S.make(w, (x, const(0, x.dtype)), x.dtype)
            )
            program = program_of(
                gpu, [kernel, constant], [[values, by, np.zeros_like(values)], [values, np.zeros_like(values)]]
            )
            found = gpu.download(gpu.prepare(program).run([gpu.upload(a) for a in (values, by, values)])[0])
            wanted = S.NUMPY[word](values[1::2], by[1::2])
            np.testing.assert_array_equal(found[1::2], wanted)


@pytest.fixture(params=["best", "plain"])
def abilities(request: pytest.FixtureRequest, gpu: WebGpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run tests with the features of the device, and again as if it had none."""
    if request.param == "plain":
        monkeypatch.setattr(gpu.gpu, "features", frozenset())


@pytest.mark.usefixtures("abilities")
def test_every_half(gpu: WebGpuBackend) -> None:
    """All float16s are read as they are; float32s are rounded to the nearest, ties to even."""
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    widen = elementwise("widen", [float16], float32, halves.size, lambda v: v)
    program = program_of(gpu, [widen], [[halves, np.zeros(halves.size, np.float32)]])
    found = gpu.download(gpu.prepare(program).run([gpu.upload(halves)])[0])
    np.testing.assert_array_equal(found, halves.astype(np.float32))
    whole = np.sort(found[np.isfinite(found)])
    between = (whole[1:] + whole[:-1]) / 2
    edges = [65519.0, 65519.996, 65520.0, 1e9, np.inf, np.nan, 6e-8, 2.0**-25, 2.0**-25 * 1.001]
    given = np.concatenate([between, np.nextafter(between, np.float32(9e9)), whole, edges, -np.array(edges)]).astype(
        np.float32
    )
    given = given[: given.size // 2 * 2 - 1]  # an odd number: the last shares its word with nothing
    narrow = elementwise("narrow", [float32], float16, given.size, lambda v: v)
    program = program_of(gpu, [narrow], [[given, np.zeros(given.size, np.float16)]])
    found = gpu.download(gpu.prepare(program).run([gpu.upload(given)])[0])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, given.astype(np.float16))


@pytest.mark.usefixtures("abilities")
def test_storage_types(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(2)
    stored = {
        bool_: rng.integers(0, 2, 37).astype(bool),
        uint8: rng.integers(0, 256, 37).astype(np.uint8),
        float16: np.concatenate([rng.normal(0, 100, 33), [np.inf, -np.inf, np.nan, 65504]]).astype(np.float16),
    }
    cases: list[Case] = []
    for d, x in stored.items():
        cases.append((elementwise(f"copy_{d}", [d], d, x.size, lambda v: v), [x]))
        cases.append((elementwise(f"twice_{d}", [d], d, x.size, lambda v: v + v if v.dtype is not bool_ else ~v), [x]))
    halves = rng.normal(0, 3, 37).astype(np.float32)
    cases.append((elementwise("narrow", [float32], float16, 37, lambda v: v), [halves]))
    cases.append((elementwise("wrap", [int32], uint8, I32.size, lambda v: v), [I32]))
    for d in (int8, int16, uint16, bfloat16, *STORED):
        codes = np.arange(256 if d.size == 1 else 65536).astype(d.held or d.name).view(d.numpy)
        floats = np.resize(F32, 1000) if d.is_float else np.arange(-500, 500).astype(np.float32)
        cases.append((elementwise(f"widen_{d}", [d], d.compute, codes.size, lambda v: v), [codes]))
        cases.append(
            (elementwise(f"store_{d}", [float32], d, floats.size, lambda v, d=d: S.cast(v, d.compute)), [floats])
        )
        stored[d] = codes
    with np.errstate(over="ignore"):
        check(gpu, cases, rtol=1e-3, atol=1e-3)
    for x in (*stored.values(), I64, np.zeros((0, 3), np.float16), np.float32(3.5)):
        back = gpu.download(gpu.upload(np.asarray(x)))
        np.testing.assert_array_equal(back, x)
        assert back.dtype == x.dtype
        assert back.shape == x.shape


# --- loop nests ------------------------------------------------------------------------------------------------------


def test_permuted_and_broadcast_indices(gpu: WebGpuBackend) -> None:
    x = np.random.default_rng(3).normal(size=(5, 6, 7)).astype(np.float32)
    i, j, k = loop_vars("g", (7, 5, 6))
    moved = Store(
        2, flatten([i, j, k], (7, 5, 6)), load(0, flatten([j, k, i], (5, 6, 7)), float32) + load(1, j, float32)
    )
    kernel = Kernel((Port(float32), Port(float32), Port(float32, True)), (7, 5, 6), (), (moved,), "permute")
    counts = [(1 << 17) + 5, (1 << 21) + 7]
    many = [
        (elementwise("many", [float32], float32, count, lambda v: v + 1.0), [np.arange(count, dtype=np.float32)])
        for count in counts
    ]
    flat = loop_vars("g", (5 * 6 * 7,))[0]
    a, b, c = unflatten(flat, (5, 6, 7))
    picked = Store(1, flat, load(0, flatten([S.const(4, int32) - a, b, c], (5, 6, 7)), float32))
    check(
        gpu,
        [
            (kernel, [x, x[:, 0, 0]]),
            (Kernel((Port(float32), Port(float32, True)), (210,), (), (picked,), "flip"), [x]),
            *many,
        ],
    )


def reduction(word: str, d: DType, outer: Dim, inner: Sequence[Dim], last: Dim = 1) -> Kernel:
    """out[o, l] = fold over inner of in[o, inner…, l]."""
    o, l = loop_vars("g", (outer, last))
    r = loop_vars("r", tuple(inner))
    first = Reduce("a0", word, load(0, flatten([o, *r, l], (outer, *inner, last)), d))
    store = Store(1, flatten([o, l], (outer, last)), first.accumulator)
    return Kernel(
        (Port(d), Port(d, True)), (outer, last), tuple(inner), (first, store), f"{word} {outer}×{tuple(inner)}×{last}"
    )


def test_reductions(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(4)
    cases: list[Case] = []
    extents = (
        (3, (5,), 1),
        (4, (3, 7), 1),
        (3, (700,), 1),
        (2, (3, 100, 7), 1),
        (5, (100,), 300),
        (2, (1,), 3),
        (2, (90,), 3),
        (1, (1000,), 1),
    )
    for outer, inner, last in extents:
        count = outer * int(np.prod(inner)) * last
        words = ("add", "max", "min", "mul") if inner in ((5,), (700,)) else ("add",)
        for word in words:
            x = rng.normal(1, 0.02, count).astype(np.float32)
            cases.append((reduction(word, float32, outer, inner, last), [x]))
    for word in ("add", "max", "min", "mul"):
        cases.append((reduction(word, int64, 3, (300,)), [rng.integers(-(2**40), 2**40, 900)]))
        cases.append((reduction(word, int32, 3, (300,)), [rng.integers(-(2**30), 2**30, 900).astype(np.int32)]))
    spotted = np.zeros((2, 500), np.float32)
    spotted[1, 77] = np.nan
    cases += [(reduction("max", float32, 2, (500,)), [spotted]), (reduction("min", float32, 2, (500,)), [spotted])]
    cases += [
        (reduction("max", float32, 2, (0,)), [np.zeros(0, np.float32)]),
        (reduction("add", float32, 0, (5,)), [np.zeros(0, np.float32)]),
    ]
    check(gpu, cases, rtol=1e-4)


def softmax(rows: Dim, columns: Dim, more: bool = False) -> Kernel:
    (i,), (r,) = loop_vars("g", (rows,)), loop_vars("r", (columns,))
    x = load(0, flatten([i, r], (rows, columns)), float32)
    top = Reduce("a0", "max", x)
    powers = S.exp(x - top.accumulator)
    total = Reduce("a1", "add", powers)
    stages: list[Reduce | Store] = [
        top,
        total,
        Store(1, flatten([i, r], (rows, columns)), powers / total.accumulator, inner=True),
    ]
    ports = [Port(float32), Port(float32, True)]
    if more:
        stages.append(Store(2, i, S.log(total.accumulator) + top.accumulator))
        ports.append(Port(float32, True))
    return Kernel(tuple(ports), (rows,), (columns,), tuple(stages), f"softmax {rows}×{columns}")


def norm(rows: Dim, columns: Dim) -> Kernel:
    """Two folds in one loop, then a loop that stores."""
    (i,), (r,) = loop_vars("g", (rows,)), loop_vars("r", (columns,))
    x = load(0, flatten([i, r], (rows, columns)), float32)
    one, two = Reduce("a0", "add", x), Reduce("a1", "add", x * x)
    mean = one.accumulator / S.cast(S.size(columns), float32)
    spread = two.accumulator / S.cast(S.size(columns), float32) - mean * mean
    value = (x - mean) / S.sqrt(spread + 1e-5) * load(1, r, float32)
    stages = (one, two, Store(2, flatten([i, r], (rows, columns)), value, inner=True))
    return Kernel((Port(float32), Port(float32), Port(float32, True)), (rows,), (columns,), stages, "norm")


def test_kernels_of_several_stages(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(7)
    cases: list[Case] = []
    for rows, columns in ((3, 5), (4, 1000), (3, 65), (1, 300), (2, 1)):
        x = rng.normal(0, 3, (rows, columns)).astype(np.float32)
        cases += [(softmax(rows, columns, more=columns % 2 == 0), [x]), (norm(rows, columns), [x, x[0]])]
    check(gpu, cases, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 5, 130])
def test_symbolic_sizes(gpu: WebGpuBackend, n: int) -> None:
    rng = np.random.default_rng(8)
    rows = size("N")
    x = rng.normal(size=(n, 6)).astype(np.float32)
    double = elementwise("double", [float32], float32, rows * 6, lambda v: v * 2.0)
    wide = rng.normal(size=(3, n)).astype(np.float32)
    cases: list[Case] = [
        (double, [x]),
        (softmax(rows, 6), [x]),
        (matmul(rows, 9, 6), [x, rng.normal(size=(6, 9)).astype(np.float32)]),
    ]
    if n:
        cases += [
            (softmax(3, rows), [wide]),
            (norm(3, rows), [wide, wide[0]]),
            (matmul(5, rows, 3), [rng.normal(size=(5, 3)).astype(np.float32), wide]),
        ]
        image, weights = (
            rng.normal(size=(n, 5, 5, 3)).astype(np.float32),
            rng.normal(size=(3, 3, 3, 4)).astype(np.float32),
        )
        cases.append((conv((rows, 5, 5, 3), (3, 3, 3, 4)), [image, weights]))
    check(gpu, cases, {"N": n}, rtol=1e-4, atol=1e-5)


# --- products of matrices --------------------------------------------------------------------------------------------


def matmul(
    rows: Dim, columns: Dim, depth: Dim, batch: tuple[Dim, ...] = (), *, turned: str = "", shared: bool = False, d: DType = float32,
    before: Callable[[Expr], Expr] = lambda a: a, after: Callable[[Expr, Expr], Expr] = lambda y, bias: y,
) -> Routine:  # fmt: skip
    """after(before(a) @ b, bias[n]). turned: names of operands that are stored transposed. shared: b has no batch."""
    *t, m, n = loop_vars("g", (*batch, rows, columns))
    (k,) = loop_vars("r", (depth,))
    a_at = flatten([*t, k, m], (*batch, depth, rows)) if "a" in turned else flatten([*t, m, k], (*batch, rows, depth))
    lead, outer = ([], ()) if shared else (t, batch)
    b_at = (
        flatten([*lead, n, k], (*outer, columns, depth))
        if "b" in turned
        else flatten([*lead, k, n], (*outer, depth, columns))
    )
    total = Reduce("a0", "add", before(load(0, a_at, d)) * load(1, b_at, d))
    value = after(total.accumulator, load(2, n, d))
    used = any(e.word == "load" for e in S.postorder([value]))
    ports = (Port(d), Port(d), *([Port(d)] if used else []), Port(d, True))
    store = Store(len(ports) - 1, flatten([*t, m, n], (*batch, rows, columns)), value)
    return Routine(
        "matmul",
        Kernel(
            ports, (*batch, rows, columns), (depth,), (total, store), f"matmul {batch}{rows}×{depth}×{columns} {turned}"
        ),
    )


def _bias_relu(y: Expr, bias: Expr) -> Expr:
    return S.maximum(y + bias, 0.0)


def test_matmuls(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(9)

    def some(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    cases: list[Case] = [
        (matmul(m, n, k), [some(m, k), some(k, n)])
        for m, n, k in (
            (1, 1, 1),
            (1, 70, 33),
            (2, 33, 100),
            (3, 5, 7),
            (17, 33, 65),
            (64, 64, 64),
            (65, 1, 40),
            (1, 40, 500),
        )
    ]
    cases += [(matmul(9, 35, 18, turned=t), [some(9, 18), some(18, 35)]) for t in ("a", "b", "ab")]
    cases += [(matmul(1, 35, 118, turned="b"), [some(1, 118), some(118, 35)])]
    cases += [
        (matmul(7, 6, 5, (3,)), [some(3, 7, 5), some(3, 5, 6)]),
        (matmul(4, 6, 5, (2, 3)), [some(2, 3, 4, 5), some(2, 3, 5, 6)]),
    ]
    cases += [
        (matmul(7, 20, 5, (3,), shared=True), [some(3, 7, 5), some(5, 20)]),
        (matmul(1, 20, 5, (4,)), [some(4, 1, 5), some(4, 5, 20)]),
    ]
    cases += [(matmul(10, 40, 30, before=S.tanh, after=_bias_relu), [some(10, 30), some(30, 40), some(40)])]
    cases += [(matmul(1, 40, 30, before=S.tanh, after=_bias_relu), [some(1, 30), some(30, 40), some(40)])]
    cases += [(matmul(8, 8, 0), [some(0), some(0)]), (matmul(0, 8, 8), [some(0), some(8, 8)])]
    whole = rng.integers(-50, 50, (2, 20, 20))
    cases += [(matmul(20, 20, 20, d=d), [whole[0].astype(d.numpy), whole[1].astype(d.numpy)]) for d in (int32, int64)]
    check(gpu, cases, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("turned", ["", "a", "b"])
@pytest.mark.parametrize("sizes", [(70, 90, 40), (68, 96, 72)], ids=["odd", "in fours"])
def test_every_cut(gpu: WebGpuBackend, sizes: tuple[int, int, int], turned: str) -> None:
    """The cuts themselves, whichever the sizes would choose: each way that the operands lie, singly and by vectors."""
    m, n, k = sizes
    rng = np.random.default_rng(10)
    a, b, bias = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    routine = matmul(m, n, k, turned=turned, after=_bias_relu)
    found = contraction(routine)
    assert found is not None
    wanted = np.maximum(a @ b + bias, 0)
    given = [a.T.copy() if turned == "a" else a, b.T.copy() if turned == "b" else b, bias]
    for cut in (*filter(None, RATES), Tile(64, 64, 8, 8, 8), Tile(32, 64, 16, 4, 8)):
        printed = variants(routine.kernel.ports, partial(print_contraction, found, cut))
        _, ((variant,),) = gpu.target.link([printed])
        program = program_of(gpu, [routine], [[*given, wanted]])
        code = replace(program.kernels[0], variants=(variant,))
        program = replace(program, kernels=(code,), modules={"w0": printed.code[0]})
        (out,) = gpu.prepare(program).run([gpu.upload(x) for x in given])
        np.testing.assert_allclose(gpu.download(out).reshape(m, n), wanted, rtol=1e-4, atol=1e-4, err_msg=str(cut))


def test_tiles_keep_to_what_webgpu_promises() -> None:
    for tile in filter(None, RATES):
        assert tile.shared_bytes <= 16384, tile
        assert tile.threads <= 256, tile


# --- convolutions ----------------------------------------------------------------------------------------------------


def conv(
    x: Sequence[Dim], w: Sequence[int], strides: Sequence[int] = (), dilations: Sequence[int] = (),
    before: Sequence[int] = (), after: Sequence[int] = (), group: int = 1,
    epilogue: Callable[[Expr], Expr] = lambda y: y,
) -> Routine:  # fmt: skip
    """x (n, …space, channels) and w (…window, channels of a group, outputs), as singe.ops lowers conv_last."""
    spaces = len(x) - 2
    strides, dilations, before, after = (
        tuple(v) or (fill,) * spaces for v, fill in ((strides, 1), (dilations, 1), (before, 0), (after, 0))
    )
    *window, per_group, outputs = w
    extents = [
        (d + b + a - dil * (k - 1) - 1) // s + 1
        for d, k, s, dil, b, a in zip(x[1:-1], window, strides, dilations, before, after, strict=True)
    ]
    n, *space, o = loop_vars("g", (x[0], *extents, outputs))
    *taps, c = loop_vars("r", (*window, per_group))
    inside = const(True, bool_)
    place = []
    for axis in range(spaces):
        p = space[axis] * strides[axis] + taps[axis] * dilations[axis] - before[axis]
        inside = inside & (p >= 0) & (p < S.size(x[axis + 1]))
        place.append(S.clip(p, 0, S.size(x[axis + 1] - 1)))
    channel = c if group == 1 else affine.index_div(o, outputs // group) * per_group + c
    read = select(inside, load(0, flatten([n, *place, channel], tuple(x)), float32), 0.0)
    total = Reduce("a0", "add", read * load(1, flatten([*taps, c, o], tuple(w)), float32))
    grid = (x[0], *extents, outputs)
    store = Store(2, flatten([n, *space, o], grid), epilogue(total.accumulator))
    kernel = Kernel(
        (Port(float32), Port(float32), Port(float32, True)),
        grid,
        (*window, per_group),
        (total, store),
        f"conv {tuple(x)} {tuple(w)} g{group}",
    )
    facts = {
        "x": 0,
        "w": 1,
        "x_shape": tuple(x),
        "w_shape": tuple(w),
        "strides": strides,
        "dilations": dilations,
        "pads": before,
        "group": group,
    }
    return Routine("conv", kernel, facts)


def test_the_places_of_shuffled_groups_are_simple() -> None:
    """Outputs that take turns, group by group, are divided among groups once, not at each store."""
    routine = conv((1, 6, 7, 12), (1, 1, 4, 24), group=3)
    o = routine.kernel.grid_vars[-1]
    turns = affine.flatten((affine.index_rem(o, 8), affine.index_div(o, 8)), (8, 3))
    *stages, store = routine.kernel.stages
    assert isinstance(store, Store)
    stages = (*stages, replace(store, index=affine.substitute(store.index, {o: turns})))
    found = contraction(replace(routine, kernel=replace(routine.kernel, stages=stages)))
    assert found is not None
    assert affine.linear(found.store.index) == ({found.m: 24, found.n: 3, found.batch_vars[0]: 1}, 0)


def test_convolutions(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(11)
    shapes: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, object]]] = [
        ((2, 9, 3), (3, 3, 5), {}),
        ((1, 17, 4), (4, 2, 6), {"strides": (2,), "dilations": (3,), "before": (1,), "after": (4,), "group": 2}),
        ((1, 8, 9, 3), (3, 3, 3, 8), {"before": (1, 1), "after": (1, 1)}),
        ((2, 9, 8, 3), (3, 2, 3, 7), {"strides": (2, 1), "before": (0, 1), "after": (1, 0)}),
        ((1, 7, 7, 6), (3, 3, 2, 9), {"group": 3, "dilations": (2, 1), "before": (2, 1), "after": (2, 1)}),
        ((1, 6, 7, 8), (3, 3, 1, 8), {"group": 8, "before": (1, 1), "after": (1, 1)}),
        ((1, 6, 7, 8), (3, 3, 1, 16), {"group": 8, "strides": (2, 2), "before": (1, 0), "after": (0, 1)}),
        ((2, 5, 5, 4), (1, 1, 4, 6), {"strides": (2, 2)}),
        ((3, 5, 5, 4), (1, 1, 4, 6), {}),
        ((1, 5, 5, 40), (3, 3, 40, 1), {}),
        ((1, 4, 5, 6, 2), (2, 3, 2, 2, 4), {"before": (1, 0, 1), "after": (0, 1, 0), "strides": (1, 2, 1)}),
        ((1, 3, 3, 4), (3, 3, 4, 10), {}),
    ]
    cases: list[Case] = []
    for x, w, facts in shapes:
        routine = conv(x, w, **facts, epilogue=lambda y: S.maximum(y, 0.0))  # pyright: ignore[reportArgumentType]
        cases.append((routine, [rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)]))
    check(gpu, cases, rtol=1e-4, atol=1e-4)
