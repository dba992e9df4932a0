"""GFLOP/s of the WebAssembly matmul template in wasmtime: python tests/bench/wasm_gemm.py [simd|relaxed]."""

from __future__ import annotations

import sys
import time

import numpy as np
import wasmtime

from singe import scalar
from singe._dtypes import float32, int32
from singe.kernel import Kernel, Port, Reduce, Routine, Store
from singe_wasm.target import WasmTarget

SHAPES = (
    (256, 256, 256),
    (1024, 1024, 1024),
    (12544, 96, 16),
    (12544, 16, 32),
    (196, 672, 112),
    (196, 112, 672),
    (49, 1152, 320),
    (1, 1000, 1280),
)


def matmul(m: int, n: int, k: int) -> Routine:
    """a @ b + bias, clipped to 0 … 6."""
    i, j, r = (scalar.var(name, int32, d) for name, d in (("g0", m), ("g1", n), ("r0", k)))
    total = Reduce("a0", "add", scalar.load(0, i * k + r, float32) * scalar.load(1, r * n + j, float32))
    value = scalar.clip(total.accumulator + scalar.load(2, j, float32), 0.0, 6.0)
    ports = (Port(float32), Port(float32), Port(float32), Port(float32, True))
    return Routine("matmul", Kernel(ports, (m, n), (k,), (total, Store(3, i * n + j, value))))


def measure(m: int, n: int, k: int, level: str) -> float:
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    target = WasmTarget()
    printed = target.print(matmul(m, n, k), {1: b})
    modules, _ = target.link([printed])
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    engine = wasmtime.Engine(config)
    store = wasmtime.Store(engine)
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(1024, None)))
    exports = wasmtime.Instance(store, wasmtime.Module(engine, modules[level]), [memory]).exports(store)
    addresses = [256]
    for array in (a, printed.packed[1], bias, np.empty((m, n), np.float32)):
        memory.write(store, array.tobytes(), addresses[-1])
        addresses.append((addresses[-1] + array.nbytes + 255) // 256 * 256)
    arguments = [*addresses[: 5 if printed.scratch else 4], 0, 1]
    run = exports["k0"]
    run(store, *arguments)
    got = np.frombuffer(bytes(memory.read(store, addresses[3], addresses[3] + 4 * m * n)), np.float32).reshape(m, n)
    np.testing.assert_allclose(got, np.clip(a @ b + bias, 0, 6), rtol=1e-3, atol=1e-3)
    best = float("inf")
    until = time.perf_counter() + 0.5
    while time.perf_counter() < until:
        start = time.perf_counter()
        run(store, *arguments)
        best = min(best, time.perf_counter() - start)
    return 2 * m * n * k / best / 1e9


if __name__ == "__main__":
    for level in sys.argv[1:] or ("simd", "relaxed"):
        for shape in SHAPES:
            print(f"{level:8} {'x'.join(map(str, shape)):>15} {measure(*shape, level):6.1f} GFLOP/s", flush=True)
