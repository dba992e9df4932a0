"""What a runner does on the host in mid-run, where a Plan stops.

A Host stop computes an op over whole arrays with its row; a Bind reads a size; a Check refuses sizes that do not fit.
Runners supply the arrays, and move the results to their device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..dtypes import string
from ..errors import DeviceError, ShapeError, SingeError
from ..lazy_names import LateModule
from ..program.plan import Found, Plan
from ..program.program import Bind, Check, Host, Stop
from ..shapes import Shape, known, show, show_sizes, size_name, symbols

if TYPE_CHECKING:
    from .. import graph as graphs
    from .. import ops
    from ..ir.arrays import numpy as numpy_arrays
else:
    graphs, ops, numpy_arrays = map(LateModule, ("graph", "ops", "ir.arrays.numpy"))

ReadBuffer: TypeAlias = Callable[[int], np.ndarray]
"""Read a buffer, by its number: its elements in its shape."""
WriteBuffer: TypeAlias = Callable[[int, np.ndarray], None]
"""Write elements to a buffer, by its number."""


def run_host_step(
    plan: Plan, step: Stop, read: ReadBuffer, write: WriteBuffer, notify_sizes: Callable[[Found], None]
) -> None:
    """Run a step. If it binds sizes, `notify_sizes` is called before any result is written.

    Strings are neither read nor written: the plan keeps them.
    """
    if isinstance(step, Check):
        check(step, plan.sizes)
        return
    if isinstance(step, Bind):
        value = known(step.dim or 0, plan.sizes) if step.buffer is None else int(read(step.buffer).reshape(-1)[0])
        notify_sizes(plan.bind({step.size: value}))
        return
    inputs = [plan.texts(i) if plan.program.buffers[i].dtype is string else read(i) for i in step.inputs]
    results = run_host(step, inputs, plan.sizes)
    sizes: dict[str, int] = {}
    for i, array in zip(step.outputs, results, strict=True):
        sizes |= found_sizes(plan.program.buffers[i].shape, array.shape, plan.given)
    if sizes:
        notify_sizes(plan.bind(sizes))
    for i, array in zip(step.outputs, results, strict=True):
        b, shape = plan.program.buffers[i], plan.shape(i)
        if array.shape != shape or array.dtype != b.dtype.numpy:
            got = f"{array.dtype}{show(array.shape)}"
            raise DeviceError(f"{step.op} gave {got} for {b.name!r}, expected {b.dtype}{show(shape)}")
        if b.dtype is string:
            plan.strings[b.place] = array
        else:
            write(i, array)


def check(step: Check, sizes: Mapping[str, int]) -> None:
    """Refuse sizes that do not fit."""
    if known(step.dim, sizes) < 0:
        own = {name: sizes[name] for name in sorted(symbols(step.dim))}
        raise ShapeError(f"{step.text} (got {show_sizes(own)})" if own else step.text)


def row_of(step: Host) -> ops.Row:
    """The row of a step's op."""
    try:
        return ops.find_row(step.op)
    except KeyError:
        raise DeviceError(
            f"a step runs the op {step.op!r:.60} on the host, which this version of Singe lacks"
            "; install the version that compiled it, or compile the model again"
        ) from None


def unfit(step: Host, inputs: Sequence[np.ndarray], e: Exception) -> DeviceError:
    """The error for one that a row raised over arrays (`ArrayAdapter.unfit`)."""
    over = ", ".join(f"{x.dtype}{show(x.shape)}" for x in inputs)
    return DeviceError(f"{step.op} over {over} is not possible: {e}")


def run_host(step: Host, inputs: Sequence[np.ndarray], sizes: Mapping[str, int]) -> tuple[np.ndarray, ...]:
    """The results of a step's op over whole arrays."""
    row = row_of(step)
    attrs = {name: graphs.with_sizes(value, sizes) for name, value in step.attrs.items()}
    try:
        with np.errstate(all="ignore"):
            results: Any = row.run(numpy_arrays.NUMPY_ARRAYS, inputs, attrs)
    except SingeError:
        raise
    except numpy_arrays.NUMPY_ARRAYS.unfit as e:
        raise unfit(step, inputs, e) from e
    return tuple(map(np.asarray, results if isinstance(results, tuple) else (results,)))


def found_sizes(shape: Shape, lengths: Sequence[int], inputs: frozenset[str]) -> dict[str, int]:
    """The sizes that follow if `shape` is `lengths` at run time, except those that the run's inputs give."""
    pairs = zip(shape, lengths, strict=len(shape) == len(lengths))
    return {name: n for d, n in pairs if (name := size_name(d)) is not None and name not in inputs}
