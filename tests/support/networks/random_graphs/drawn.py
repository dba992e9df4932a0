"""Random Graphs on a device, compared with the results of direct.py: `check`, and a script that runs many.

python tests/support/networks/random_graphs/drawn.py wasm 0 1000      # the seeds from 0 to 999; --keep-going prints every failure
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2])]

import numpy as np
from direct import evaluate

from networks.random_graphs.draw_flow import Drawn, draw, first_states
from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.dtypes import COMPLEX, DTYPES, DType, dtype, float8_e8m0fnu, string, widened
from singe.graph import Graph, all_nodes
from singe.program.format import from_bytes, to_bytes
from singe.program.program import ProgramData
from singe.runtime.devices import device as open_device

TOLERANCE: Final = {"float64": 1e-9, "float32": 3e-4, "float16": 2e-2, "bfloat16": 8e-2}
"""The allowed error of results in a float type, relative to their largest element;
a graph has the largest of its types."""
RUNS: Final = ((3, 2), (3, 2), (1, 1), (0, 3), (5, 0), (4, 6))
"""The sizes N and M of the runs of one Program, one after the other."""


def kinds_on(device_name: str) -> list[DType]:
    """The dtypes of graphs for a device: all that it computes but strings, and float8_e8m0fnu, which has neither zero nor a sign."""
    target = open_device(device_name).target
    return [k for k in DTYPES.values() if k not in (*COMPLEX, float8_e8m0fnu, string) and k in target.dtypes]


def tolerance_of(graph: Graph) -> float:
    kinds = {k.name for n in all_nodes(graph) for _, k in n.results}
    return max((TOLERANCE[k] for k in kinds if k in TOLERANCE), default=0.0)


def assert_close(got: np.ndarray, want: np.ndarray, tolerance: float, what: str) -> None:
    """Check that arrays are equal; floats may differ by the tolerance times the largest element."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype), (
        f"{what}: {got.dtype} {got.shape}, expected {want.dtype} {want.shape}"
    )
    a, b = widened(got), widened(want)
    if not tolerance or not dtype(want.dtype).is_float:
        np.testing.assert_array_equal(a, b, what)
    elif a.size:
        top = max(1.0, float(np.abs(b.astype(np.float64)).max()))
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * top, err_msg=what)


def compare(
    device_name: str,
    graph: Graph,
    runs: Iterable[Sequence[np.ndarray]],
    tolerance: float = 0.0,
    exact: Collection[str] = (),
    what: str = "",
    donate: Sequence[str] = (),
) -> ProgramData:
    """Check one Program, which was written and read again, against the evaluator, run after run, with its states kept.

    The outputs named by `exact` must be equal, floats of others within the tolerance. donate: inputs that it may write over.
    """
    backend: Any = open_device(device_name).backend  # pyright: ignore[reportAttributeAccessIssue]
    program = backend.prepare(from_bytes(to_bytes(compile_graph(graph, backend.target, Options(donate=donate)))))
    states, wanted_states = program.new_states(), first_states(graph)
    for number, arrays in enumerate(runs):
        where = f"{what} on {device_name}, run {number} of {[a.shape for a in arrays]}"
        wanted, wanted_states = evaluate(graph, arrays, wanted_states)
        found = [backend.download(y) for y in program.run([backend.upload(a.copy()) for a in arrays], states)]
        for name, got, want in zip(graph.output_names, found, wanted, strict=True):
            assert_close(got, want, 0.0 if name in exact else tolerance, f"{where}: {name}")
        for s, got, want in zip(graph.states, states, wanted_states, strict=True):
            assert_close(backend.download(got), want, tolerance, f"{where}: state {s.name}")
    program.dispose()
    return program.program


def check(device_name: str, drawn: Drawn) -> None:
    """Check a random graph on a device, at one size after another; three runs are enough if no size is open. All inputs
    of graphs with odd seeds are donated."""
    sizes = RUNS if drawn.graph.symbols else RUNS[:3]
    runs = (drawn.arrays({"N": n, "M": m}, k) for k, (n, m) in enumerate(sizes))
    donate = [x.name for x in drawn.graph.inputs] if drawn.seed % 2 else []
    compare(device_name, drawn.graph, runs, tolerance_of(drawn.graph), drawn.exact, f"seed {drawn.seed}", donate)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare a device with the evaluator on random graphs.")
    parser.add_argument("device")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--keep-going", action="store_true", help="print every failure, not only the first")
    options = parser.parse_args()
    kinds, failures = kinds_on(options.device), 0
    for seed in range(options.first, options.end):
        try:
            check(options.device, draw(seed, kinds))
        except Exception:
            failures += 1
            print(f"--- seed {seed} on {options.device}")
            traceback.print_exc(limit=-4, file=sys.stdout)
            if not options.keep_going:
                break
    print(f"{failures} of {options.end - options.first} fail")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
