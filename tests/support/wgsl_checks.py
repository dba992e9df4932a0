"""Kernels that the tests of WGSL share, run on this machine's adapter and compared with the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest

from singe.compiler.schedule.steps import Dispatch, words_of
from singe.dtypes import DType, bool_, float32, uint8
from singe.errors import DeviceError
from singe.ir import affine
from singe.ir import scalar as S
from singe.ir.affine import flatten
from singe.ir.interpreter import interpret
from singe.ir.kernel import Kernel, Port, Reduce, Routine, Store, loop_vars
from singe.ir.scalar import Expr, const, load, select
from singe.program.program import Buffer, Code, ProgramData
from singe.runtime.devices import device
from singe.runtime.eager import EagerDevice
from singe.shapes import Dim, known, size, symbols

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe_webgpu.device.native import WebGpuBackend


@cache
def _opened() -> WebGpuBackend | str:
    try:
        return WebGpuBackend()
    except DeviceError as e:
        return str(e)


def this_gpu() -> WebGpuBackend:
    """The adapter of this machine, which all tests share; without one, the test is skipped."""
    found = _opened()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def gpu_device() -> EagerDevice:
    """The device "webgpu", as a user opens it; without an adapter, the test is skipped."""
    try:
        return device("webgpu")
    except DeviceError as e:
        pytest.skip(str(e))


@contextmanager
def own_gpu() -> Iterator[WebGpuBackend]:
    """A backend of the test's own, for what changes it; without an adapter, the test is skipped."""
    try:
        backend = WebGpuBackend()
    except DeviceError as e:
        pytest.skip(str(e))
    yield backend
    backend.dispose()


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
        "wgsl", tuple(inputs), tuple(outputs), tuple(buffers), 0, codes, *words_of(steps, codes, range(len(codes))), modules,
        np.zeros(0, np.uint8),
    )  # fmt: skip


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


def reduction(word: str, d: DType, outer: Dim, inner: Sequence[Dim], last: Dim = 1) -> Kernel:
    """out[o, l] = fold over inner of in[o, inner…, l]."""
    o, l = loop_vars("g", (outer, last))
    r = loop_vars("r", tuple(inner))
    first = Reduce("a0", word, load(0, flatten([o, *r, l], (outer, *inner, last)), d))
    store = Store(1, flatten([o, l], (outer, last)), first.accumulator)
    return Kernel(
        (Port(d), Port(d, True)), (outer, last), tuple(inner), (first, store), f"{word} {outer}×{tuple(inner)}×{last}"
    )


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
