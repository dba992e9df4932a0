"""What a target says of itself decides the steps; what it leaves out has defaults."""

from __future__ import annotations

from typing import Any

import numpy as np

from singe.compiler.array_target import ARRAYS, ArrayTarget
from singe.compiler.compile import compile_graph
from singe.compiler.target import Execution, execution_of, find_target
from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.program.program import HOST, Host
from singe.runtime.eager import EagerDevice
from singe.runtime.numpy_backend import NumpyBackend


def graph() -> Graph:
    b = Builder()
    x = b.input("x", (4, 3), float32)
    y = b.softmax(b.reshape(b.exp(x), shape=(3, 4)), axis=1)
    return Graph((x,), (b.mul(y, b.const(np.float32(2))),), ("y",))


def test_each_op_is_a_step_of_arrays_and_a_group_of_ops_one_of_a_code_generator() -> None:
    on_arrays = compile_graph(graph(), ARRAYS)
    assert {type(g.stop) for g in on_arrays.groups} == {Host}
    assert on_arrays.target == HOST == ARRAYS.name
    assert "reshape" in {s.op for s in on_arrays.stops if isinstance(s, Host)}
    fused = compile_graph(graph(), find_target("wasm"))
    assert all(g.head >= 0 for g in fused.groups)
    assert not fused.stops
    assert len(fused.steps) < len(on_arrays.steps)


def test_a_target_of_other_arrays_differs_in_its_name_alone() -> None:
    class Others(ArrayTarget):
        name = "others"

    made, numpys = compile_graph(graph(), Others()), compile_graph(graph(), ARRAYS)
    assert made.target == "others"
    assert (made.words, made.stops, made.buffers, made.slots) == (
        numpys.words,
        numpys.stops,
        numpys.buffers,
        numpys.slots,
    )


def test_the_target_of_host_steps_is_that_of_arrays() -> None:
    assert find_target(HOST) is ARRAYS


def test_a_target_that_leaves_out_its_execution_is_a_code_generator() -> None:
    class Plain:
        """Another package's: all that a Target must have, and no more."""

        def __init__(self) -> None:
            inner = find_target("wasm")
            for name in ("max_ports", "integers", "counted", "networks", "repeated", "dtypes"):
                setattr(self, name, getattr(inner, name))
            for name in ("element_size", "print", "print_opaque", "link"):
                setattr(self, name, getattr(inner, name))
            self.name = "plain"

    plain: Any = Plain()
    assert execution_of(plain) == Execution()
    made, wanted = compile_graph(graph(), plain), compile_graph(graph(), find_target("wasm"))
    assert made.target == "plain"
    assert (made.words, made.kernels, made.buffers, made.modules) == (
        wanted.words,
        wanted.kernels,
        wanted.buffers,
        wanted.modules,
    )


def test_none_stands_for_arrays_as_the_target_of_a_backend() -> None:
    class Old(NumpyBackend):
        target: Any = None

    device = EagerDevice(Old())
    assert device.target is ARRAYS
    x = np.array([1.0, 4.0], np.float32)
    b = Builder()
    n = b.input("x", (2,), float32)
    (y,) = device.run(Graph((n,), (b.sqrt(n),), ("y",)), [device.upload(x)])
    np.testing.assert_array_equal(device.fetch(y), [1, 2])


def test_values_of_numpy_are_read_at_once_and_its_lock_is_made_anew() -> None:
    device = EagerDevice(NumpyBackend())
    assert device.reads_now
    assert device.lock.renews
