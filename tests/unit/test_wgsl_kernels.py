"""Kernels and Routines through WGSL on the adapter that is here, against the interpreter that defines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from singe import scalar as S
from singe._dtypes import DType, bool_, dtype, float16, float32, int32, int64, uint8
from singe._errors import DeviceError
from singe._shape import Dim, known, size, symbols
from singe.interpret import interpret
from singe.kernel import Kernel, Port, Reduce, Routine, Store, loop_vars
from singe.program import Buffer, Code, Dispatch, Program
from singe.scalar import Expr, const, flatten, load, select, unflatten

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe_webgpu.native import WebGpuBackend  # noqa: E402


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


def program_of(backend: WebGpuBackend, kernels: Sequence[Kernel | Routine], arrays: Sequence[Sequence[np.ndarray]]) -> Program:
    """A program that runs each kernel once over buffers of its own; every symbolic size is an input of that length."""
    target = backend.target
    printed = [target.print(k, {}) for k in kernels]
    modules, variants = target.link(printed)
    names = sorted(set().union(*(symbols([*k.grid, *k.inner, *_kernel(k).sizes]) for k in map(_kernel, kernels))))
    buffers = [Buffer(n, uint8, (size(n),), 4, ("input", i)) for i, n in enumerate(names)]
    inputs, outputs, steps = list(range(len(names))), [], []
    for number, (kernel, given) in enumerate(zip(kernels, arrays, strict=True)):
        mine = []
        for port, array in zip(kernel.ports, given, strict=True):
            side, place = (outputs, "output") if port.written else (inputs, "input")
            mine.append(len(buffers))
            buffers.append(Buffer(f"k{number}_{len(mine)}", port.dtype, array.shape, target.element_size(port.dtype), (place, len(side))))
            side.append(mine[-1])
        steps.append(Dispatch(number, tuple(mine)))
    codes = tuple(Code(k.name, "nest", len(k.ports), p.sizes, tuple(v)) for k, p, v in zip(kernels, printed, variants, strict=True))
    return Program("wgsl", tuple(inputs), tuple(outputs), tuple(buffers), 0, codes, tuple(steps), modules, np.zeros(0, np.uint8))


def _kernel(k: Kernel | Routine) -> Kernel:
    return k.kernel if isinstance(k, Routine) else k


Case = tuple[Kernel | Routine, Sequence[np.ndarray]]


def check(backend: WebGpuBackend, cases: Sequence[Case], sizes: dict[str, int] | None = None, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Run all cases as one program and compare each output with the interpreter's."""
    sizes = sizes or {}
    with_outputs = []
    for kernel, inputs in cases:
        given = iter(inputs)
        filled = [
            np.zeros(_extent(kernel, number, sizes), p.dtype.numpy) if p.written else np.ascontiguousarray(next(given)).reshape(-1)
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
                    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, err_msg=message)
                else:
                    np.testing.assert_array_equal(found, wanted, err_msg=message)
    executable.dispose()


def _extent(kernel: Kernel | Routine, port: int, sizes: dict[str, int]) -> int:
    """How many elements a store writes: the tests' outputs are dense."""
    kernel = _kernel(kernel)
    (store,) = (s for s in kernel.stages if isinstance(s, Store) and s.port == port)
    return int(np.prod([known(d, sizes) for d in (*kernel.grid, *(kernel.inner if store.inner else ()))]))


def elementwise(name: str, ports: Sequence[DType], out: DType, count: Dim, body: Callable[..., Expr]) -> Kernel:
    """out[i] = body(in0[i], in1[i], …)."""
    (i,) = loop_vars("g", (count,))
    values = [load(number, i, d) for number, d in enumerate(ports)]
    return Kernel((*map(Port, ports), Port(out, True)), (count,), (), (Store(len(ports), i, body(*values)),), name)


F32 = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-3, 1e3, -1e3, 88.0, -88.0, 100.0, -104.0, 1e5, -1e5, 99999.9, 3e9, -3e9]
    + [2147483648.0, -2147483648.0, 1e19, -1e19, 9.3e18, 1e30, -1e30, 3e38, 1e-30, np.inf, -np.inf, np.nan],
    np.float32,
)
I32 = np.array([0, 1, -1, 2, 3, -3, 7, 31, 32, 33, -33, 64, 100, -100, 65535, 65536, -65537, 2**31 - 1, -(2**31), -(2**31) + 1], np.int32)
I64 = np.concatenate([
    np.array([0, 1, -1, 2, 3, -7, 31, 32, 33, 63, 64, 65, 2**31, -(2**31), 2**32 - 1, 2**32, -(2**32), 2**53 + 1, 2**63 - 1, -(2**63)], np.int64),
    np.random.default_rng(5).integers(-(2**63), 2**63 - 1, 60, np.int64) >> np.random.default_rng(6).integers(0, 63, 60),
])  # fmt: skip
SAMPLES = {float32: F32, int32: I32, int64: I64, bool_: np.array([False, True])}
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
    x = np.concatenate([SAMPLES[d], np.random.default_rng(1).normal(0, 20, 500).astype(np.float32)]) if d is float32 else SAMPLES[d]
    cases = []
    for word in UNARY:
        if _takes(word, d):
            mine = x[np.abs(np.where(np.isnan(x), 0, x)) <= 1e5] if word in ("sin", "cos") else x
            cases.append((elementwise(word, [d], _result(word, d), mine.size, lambda a, w=word: S.make(w, (a,), _result(w, a.dtype))), [mine]))
    if cases:
        check(gpu, cases, rtol=1e-5, atol=2e-7)


@pytest.mark.parametrize("d", SAMPLES, ids=repr)
def test_binary_words(gpu: WebGpuBackend, d: DType) -> None:
    cases = []
    for word in BINARY:
        if _takes(word, d):
            a, b = _pairs(word, d)
            cases.append((elementwise(word, [d, d], _result(word, d), a.size, lambda x, y, w=word: S.make(w, (x, y), _result(w, x.dtype))), [a, b]))
    check(gpu, cases)


def test_casts_between_all_types(gpu: WebGpuBackend) -> None:
    cases = [(elementwise(f"{a}_to_{b}", [a], b, x.size, lambda v, b=b: S.cast(v, b)), [x]) for a, x in SAMPLES.items() for b in SAMPLES if a is not b]
    check(gpu, cases, rtol=0, atol=0)
