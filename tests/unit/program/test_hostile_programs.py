"""Programs that were changed after they were compiled: refused when they are read, or stopped with an error of Singe's.

`python tests/support/networks/random_graphs/hostile_programs.py numpy 0 3000` tries more.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from containers import joined, split
from networks.random_graphs import hostile_programs

from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph
from singe.dtypes import float32
from singe.errors import DeviceError, FormatError
from singe.graph import Builder, Graph
from singe.program.format import from_bytes, to_bytes
from singe.program.program import Host
from singe.program.words import COPY, STOP
from singe.runtime.host_steps import run_host
from singe.shapes import size


@pytest.mark.slow
@pytest.mark.parametrize(("first", "end"), [(0, 25), (25, 200)])
@pytest.mark.parametrize("device_name", ["numpy", "wasm"], indirect=True)
def test_changed_programs_are_refused_or_run(device_name: str, first: int, end: int) -> None:
    """In a process of its own: it forks, which processes with threads of wgpu and wasmtime must not."""
    script = Path(hostile_programs.__file__)
    done = subprocess.run(
        [sys.executable, script, device_name, str(first), str(end)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def program() -> tuple[dict[str, Any], bytes]:
    """relu(transposed x + 1) for numpy, as a header and a block."""
    b = Builder()
    x = b.input("x", (size("N"), 3), float32)
    y = b.relu(b.add(b.transpose(x, perm=(1, 0)), b.const(1, float32)))
    return split(to_bytes(compile_graph(Graph((x,), (y,), ("y",)), ARRAYS)))


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an attribute that is missing": (lambda h: h["stops"][2]["attrs"].clear(), "missing a required argument: 'perm'"),
    "an attribute that the row lacks": (lambda h: h["stops"][0]["attrs"].update(to=1), "add has no attribute to"),
    "an axis that is not there": (lambda h: h["stops"][2]["attrs"].update(perm=[0, 2]), "which is wrong: transpose"),
    "too few inputs": (lambda h: h["stops"][0]["inputs"].pop(), "add takes 2 inputs, got 1"),
    "an attribute of a size that nothing gives": (
        lambda h: h["stops"][0].update(op="expand", inputs=[3], attrs={"shape": [{"size": [[1, "Q"]]}, 3]}),
        "a stop at word 0 needs the size Q before it is found",
    ),
    "a size found by an op that finds none": (
        lambda h: h["buffers"][2].update(shape=[[[1, "Q"]], 3]),
        "a stop at word 0 needs the size Q before it is found",
    ),
    "elements of more bytes than the type has": (
        lambda h: h["buffers"][3].update(dtype="bool", size=4),
        "buffer 3 has elements of 4 bytes; those of bool have 1",
    ),
    "results of another shape": (lambda h: h["buffers"][1].update(shape=[3, 3, 1]), "does not give float32(3, 3, 1)"),
    "an op of regions": (lambda h: h["stops"][1].update(op="loop"), "which only a graph has"),
    "a value that nothing wrote": (lambda h: h["words"].__delitem__(slice(3)), "which nothing wrote before"),
    "a value of another shape": (
        lambda h: (
            h["stops"].pop(1),
            h.update(words=[STOP, 1, 0, STOP, 1, 1]),
            h["buffers"][4].update(shape=[[[1, "N"]], 4], place=["slot", 0]),
            h["buffers"][1].update(shape=[4, [[1, "N"]]]),
        ),
        "buffer 4, float32(N, 4), where buffer 2, float32(N, 3), was written",
    ),
    "a copy to another type": (
        lambda h: (
            h.update(words=[COPY, 3, 5, 3, 0, *h["words"]]),
            h["buffers"].append({**h["buffers"][3], "dtype": "int32", "place": ["slot", 0]}),
        ),
        "a copy moves buffer 3 of float32 to buffer 5 of another type",
    ),
    "an output that is none": (lambda h: h.update(outputs=[2]), "output 0 is buffer 2, which lies in"),
    "an output that lies in another one": (
        lambda h: h.update(outputs=[h["outputs"][0]] * 2),
        "which lies in ('output', 0)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_ops_that_do_not_fit_are_refused(name: str) -> None:
    change, message = REFUSED[name]
    head, block = program()
    change(head)
    with pytest.raises(FormatError) as caught:
        from_bytes(joined(head, block))
    assert message in str(caught.value)


def test_arrays_that_do_not_fit_an_op_are_an_error_that_names_it() -> None:
    step = Host("reshape", {"shape": (size("N"), 2)}, (0,), (1,))
    with pytest.raises(DeviceError, match=r"reshape over float32\(5,\) is not possible"):
        run_host(step, [np.zeros(5, np.float32)], {"N": 3})
