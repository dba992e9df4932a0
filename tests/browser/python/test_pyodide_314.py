"""Pyodide 314, without NumPy: it loads, it can call JavaScript, and Singe's WebAssembly modules work in its memory."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator

import pytest
from pyodides import Host, assembled, in_node

from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.shapes import size

HELPERS = """
import json
from array import array
from base64 import b64decode

import js
import pyodide_js
from pyodide.ffi import to_js

def room(count):
    "An array of floats, and the place of the first that lies at a multiple of 256 bytes."
    floats = array("f", [0.0] * (count + 64))
    return floats, -floats.buffer_info()[0] % 256 // 4

def address(floats, at=0):
    return floats.buffer_info()[0] + 4 * at

def memory_of(module):
    probe = array("B", range(7, 71))
    return js.scripts.pythonMemory(module, probe.buffer_info()[0], to_js(bytes(probe)))
"""
RUN = """
def doubled(text, entry, count):
    memory = memory_of(pyodide_js)
    module = js.scripts.linkModule(memory, to_js(b64decode(text)))
    x, at = room(count)
    y, to = room(count)
    answers = []
    for turn in range(2):
        x[at : at + count] = array("f", [k + turn for k in range(count)])
        words = array("i", [int(entry.split(":k")[1]), 3, address(x, at), address(y, to), count, -1, 3, address(x, at), address(y, to), 4 * count])
        module.run(words.buffer_info()[0], words.buffer_info()[0] + 4 * len(words))
        answers.append([list(y[to : to + count]), list(x[at : at + count])])
        before = memory.buffer.byteLength
        ballast = bytearray(100_000_000)
        answers[-1].append(memory.buffer.byteLength > before)
    return answers
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with in_node(assembled(tmp_path_factory, "314.0.7")) as ask:
        host = Host("node", ask, "", HELPERS)
        host.learn(RUN)
        yield host


def test_python_is_there(node: Host) -> None:
    assert json.loads(node.python("import sys; json.dumps(list(sys.version_info[:2]))")) == [3, 14]


def test_arrays_and_functions_go_both_ways(node: Host) -> None:
    assert node.python("list(to_js(array('i', [3, 1, 2])).map(lambda x, *_: x * 2)) == [6, 2, 4]")
    assert node.python("'simd' in js.scripts.wasmFeatures().to_py()")
    assert node.python("js.Uint8Array.new(4).to_py().nbytes") == 4


def test_modules_work_in_pythons_memory(node: Host) -> None:
    """A kernel that Singe generated, over arrays of Python's own, before and after the memory grew."""
    b = Builder()
    x = b.input("x", (size("N"),), float32)
    graph = Graph((x,), (b.add(b.mul(x, b.const(2.0, float32)), b.const(1.0, float32)),), ("y",))
    program = compile_graph(graph, find_target("wasm"))
    (code,) = program.kernels
    assert (code.ports, len(code.sizes)) == (2, 1), "the kernel takes x, y and N"
    entry = next(v.entry for v in code.variants if v.entry.startswith("simd:"))
    module = program.modules["simd"]
    assert isinstance(module, bytes)
    arguments = json.dumps([b64encode(module).decode(), entry, 37])
    answers = json.loads(node.python(f"json.dumps(doubled(*json.loads({arguments!r})))"))
    for turn, (y, copied, grew) in enumerate(answers):
        assert y == [2.0 * (k + turn) + 1 for k in range(37)]
        assert copied == y, "and then copied over x"
        assert grew


def test_the_memory_is_found_in_both_places(node: Host) -> None:
    assert node.python("memory_of(pyodide_js) is not None")
    assert node.python(
        "memory_of(to_js({'_module': {'memory': memory_of(pyodide_js)}}, dict_converter=js.Object.fromEntries)) is not None"
    )


def test_another_memory_is_not_believed(node: Host) -> None:
    node.python("other = js.WebAssembly.Memory.new(js.Object.fromEntries(to_js([['initial', 1000]])))")
    assert node.python("memory_of(to_js({'_module': {'memory': other}}, dict_converter=js.Object.fromEntries)) is None")
    assert node.python("memory_of(to_js({'_module': {}}, dict_converter=js.Object.fromEntries)) is None")
