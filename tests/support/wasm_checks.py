"""Kernels that tests of WebAssembly share, run by wasmtime and compared with the interpreter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import wasmtime

from singe.compiler.target import Printed
from singe.dtypes import DType, bool_, float32, int32
from singe.ir import affine
from singe.ir import scalar as s
from singe.ir.interpreter import interpret
from singe.ir.kernel import Kernel, Port, Reduce, Routine, Store, loop_vars
from singe.shapes import Dim, known
from singe_wasm.levels import LEVELS
from singe_wasm.target import WasmTarget

TARGET = WasmTarget(tuple(LEVELS))


CANARY = bytes(range(256))


def _engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    return wasmtime.Engine(config)


ENGINE = _engine()


PARTS = (1, 2, 3, 5)


def print_all(kernel: Kernel | Routine, constants: Collection[int]) -> list[Printed]:
    """The code for a kernel; after it that over weights packed as for open sizes, where it is different."""
    printed = TARGET.print(kernel, constants)
    if printed is None and isinstance(kernel, Routine):
        printed = TARGET.print(kernel.kernel, constants)
    assert printed is not None
    return [printed, printed.sharing()] if printed.sharing else [printed]


def execute(
    kernel: Kernel | Routine,
    buffers: Sequence[np.ndarray],
    sizes: Mapping[str, int],
    level: str,
    constants: Collection[int],
) -> list[np.ndarray]:
    return execute_printed(print_all(kernel, constants)[0], buffers, sizes, level)


def execute_printed(
    printed: Printed, buffers: Sequence[np.ndarray], sizes: Mapping[str, int], level: str
) -> list[np.ndarray]:
    """The buffers after a run; checks that nothing outside of them is written,
    and that any number of parts gives the same bits."""
    modules, variants = TARGET.link([printed])
    entry = next(v.entry for v in variants[0] if v.entry.startswith(level + ":")).split(":")[1]
    store = wasmtime.Store(ENGINE)
    given = [printed.packers[i](b) if i in printed.packers else b for i, b in enumerate(buffers)]
    ports = len(given)
    if printed.scratch != 0:
        given += [np.full(known(printed.scratch, sizes), 255, np.uint8)] * max(PARTS)
    addresses, at = [], 256
    for b in given:
        addresses.append(at)
        at += b.nbytes + 256
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(at // 65536 + 1, None)))
    run: Any = wasmtime.Instance(store, wasmtime.Module(ENGINE, modules[level]), [memory]).exports(store)[entry]
    results = []
    for parts in PARTS:
        for address, b in zip(addresses, given, strict=True):
            memory.write(store, b.tobytes() + CANARY, address)
        for part in reversed(range(parts)):
            workspace = [addresses[ports + part]] if printed.scratch != 0 else []
            run(store, *addresses[:ports], *workspace, *(known(d, sizes) for d in printed.sizes), part, parts)
        for address, b in zip(addresses, given, strict=True):
            after = bytes(memory.read(store, address + b.nbytes, address + b.nbytes + 256))
            assert after == CANARY, "written beyond a buffer"
        results.append(
            [bytes(memory.read(store, a, a + b.nbytes)) for a, b in zip(addresses, given[:ports], strict=False)]
        )
        assert results[-1] == results[0], f"{parts} parts differ from one"
    return [np.frombuffer(found, b.dtype) for found, b in zip(results[0], given, strict=False)]


def check(
    kernel: Kernel | Routine, buffers: Sequence[np.ndarray], sizes: Mapping[str, int] | None = None,
    constants: Sequence[int] = (), rtol: float = 1e-5, atol: float = 1e-6,
) -> None:  # fmt: skip
    expected = [b.copy() for b in buffers]
    interpret(kernel, expected, sizes)
    for printed, level in product(print_all(kernel, constants), LEVELS):
        got = execute_printed(printed, buffers, sizes or {}, level)
        for i, port in enumerate(kernel.ports):
            if port.written:
                mine, wanted = (s.convert(a, port.dtype.compute.numpy) for a in (got[i], expected[i]))
                np.testing.assert_allclose(mine, wanted, rtol, atol, err_msg=f"{level}: {kernel}")


def g(number: int, bound: object) -> s.Expr:
    return s.var(f"g{number}", int32, bound)  # pyright: ignore[reportArgumentType]


def r(number: int, bound: object) -> s.Expr:
    return s.var(f"r{number}", int32, bound)  # pyright: ignore[reportArgumentType]


def matrices(
    m: Dim, n: Dim, k: Dim, batch: tuple[Dim, ...] = (), shared: bool = False, prologue: bool = False, transposed: bool = False,
    plain: bool = False, out: DType = float32, pairs: bool = False,
) -> tuple[Routine, list[tuple[Dim, ...]]]:  # fmt: skip
    """clip(a @ b + bias) + residual; shared: one b for all batches; prologue: a function of a; plain: no epilogue.

    pairs: the output has two columns of a row side by side, then the same columns of the next row.
    """
    grid = (*batch, m, n)
    *outer, i, j = loop_vars("g", grid)
    (r,) = loop_vars("r", (k,))
    outside = () if shared else tuple(outer)
    b_shape = (*(() if shared else batch), *((n, k) if transposed else (k, n)))
    a = s.load(0, affine.flatten((*outer, i, r), (*batch, m, k)), float32)
    if prologue:
        a = s.maximum(a * 2.0 + 1.0, 0.0)
    b = s.load(1, affine.flatten((*outside, *((j, r) if transposed else (r, j))), b_shape), float32)
    fold = Reduce("a0", "add", a * b)
    at = affine.flatten((*outer, i, j), grid)
    value = (
        fold.accumulator
        if plain
        else s.clip(fold.accumulator + s.load(2, j, float32), 0.0, 6.0) + s.load(3, at, float32)
    )
    ports = (Port(float32), Port(float32), Port(float32), Port(float32), Port(out, True))
    if pairs:
        at = affine.flatten((*outer, affine.index_div(j, 2), i, affine.index_rem(j, 2)), (*batch, n // 2, m, 2))
    kernel = Kernel(ports, grid, (k,), (fold, Store(4, at, s.cast(value, out.compute))))
    return Routine("matmul", kernel), [(*batch, m, k), b_shape, (n,), grid, grid]


def convolution(
    batch: Dim, space: tuple[Dim, ...], channels: int, outputs: int, window: tuple[int, ...], strides: tuple[int, ...] = (),
    dilations: tuple[int, ...] = (), pads: tuple[tuple[Dim, Dim], ...] = (), group: int = 1, scaled: bool = False,
    shuffled: bool = False, kind: DType = float32,
) -> tuple[Routine, list[tuple[Dim, ...]]]:  # fmt: skip
    """A convolution, channels last; pads (beginning, end) by axis; scaled: times a factor for each image and channel;
    shuffled: the groups' outputs take turns; kind: of x and the weights."""
    rank = len(space)
    strides, dilations, pads = strides or (1,) * rank, dilations or (1,) * rank, pads or ((0, 0),) * rank
    each = channels // group
    extents = tuple(
        (x + a + b - d * (w - 1) - 1) // t + 1
        for x, (a, b), d, w, t in zip(space, pads, dilations, window, strides, strict=True)
    )
    grid, inner = (batch, *extents, outputs), (*window, each)
    n, *place, o = loop_vars("g", grid)
    *taps, c = loop_vars("r", inner)
    inside = s.const(True, bool_)
    read = []
    for p, t, k, d, (a, b), x in zip(place, strides, taps, dilations, pads, space, strict=True):
        q = p * t + k * d - s.size(a)
        if a != 0 or b != 0:
            inside = s.and_(inside, s.and_(s.le(0, q), s.lt(q, s.size(x))))
            q = s.minimum(s.maximum(q, 0), s.size(x - 1))
        read.append(q)
    channel = s.div(o, s.const(outputs // group, int32)) * each + c
    x = s.cast(s.load(0, affine.flatten((n, *read, channel), (batch, *space, channels)), kind), float32)
    x = x if inside.word == "const" else s.select(inside, x, 0.0)
    w_shape = (*window, each, outputs)
    weight = s.cast(s.load(1, affine.flatten((*taps, c, o), w_shape), kind), float32)
    fold = Reduce("a0", "add", x * weight)
    turn = (affine.index_rem(o, outputs // group), affine.index_div(o, outputs // group))
    last = affine.flatten(turn, (outputs // group, group)) if shuffled else o
    at = affine.flatten((n, *place, last), grid)
    value = s.clip(fold.accumulator + s.load(2, o, float32), 0.0, 6.0)
    value = value * s.load(3, n * outputs + o, float32) if scaled else value + s.load(3, at, float32)
    ports = (Port(kind), Port(kind), Port(float32), Port(float32), Port(float32, True))
    facts = {
        "x": 0, "w": 1, "x_shape": (batch, *space, channels), "w_shape": w_shape,
        "strides": strides, "dilations": dilations, "pads": tuple(p[0] for p in pads), "group": group,
    }  # fmt: skip
    return Routine("conv", Kernel(ports, grid, inner, (fold, Store(4, at, value))), facts), [
        (batch, *space, channels),
        w_shape,
        (outputs,),
        grid,
        grid,
    ]


ONE, SAME = (0, 0), (1, 1)
