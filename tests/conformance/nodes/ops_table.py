"""Writes docs/ops.md: which ONNX ops Singe has, and where each runs.

`python tests/conformance/nodes/ops_table.py` writes the file; tests/conformance/nodes/test_ops_table.py checks that it is current. Where an op
runs is what the compiler says of ONNX's own node cases of the op, or of the cases of ops_cases.py where ONNX has none. They
are compiled, not run.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

import numpy as np
from ops_cases import models
from test_onnx_nodes import cases

from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.compiler.target import find_target
from singe.dtypes import DTYPES
from singe.errors import SingeError
from singe.graph import Graph
from singe.model.model import Model
from singe.onnx.adapters import ADAPTERS
from singe.onnx.model import OnnxModel, read_model
from singe.onnx.source import OnnxSource
from singe.ops import ROWS

PAGE: Final = Path(__file__).parents[3] / "docs" / "ops.md"
TARGETS: Final = {"wasm": "wasm", "webgpu": "wgsl"}
"""A device ↦ its target."""
HEAD: Final = """# Ops

The ops of ONNX that Singe reads, and where they run. `tests/conformance/nodes/ops_table.py` writes this page from the code.

On the device `numpy`, everything runs on the CPU, by NumPy. On `wasm` and `webgpu`, an op is compiled to kernels of the
device unless a table says "host", with the reason. `singe inspect` says it for a whole model, before anything runs, and
`--fail-on-host` refuses a model with such ops. A page runs the host ops that sort, select, scatter and compute shapes in
JavaScript. Strings, complex numbers, encoded pictures, and float64 on `webgpu` need Python: `singe export` refuses a model
with them, and names the op.

Ops after "Also" are read too, but have no test of a single node from which the table could tell where they run: those of
sequences, optionals and maps become other nodes while a model is read.

"\\*": lengths, axes or positions that a run computes are read on the host first; the elements stay on the device.
"""
SIZES: Final = ROWS["sizes"].host
Where = dict[str, dict[str, set[str]]]
"""A device ↦ the element types of an op's inputs ↦ why it runs on the host; empty: it does not."""


def page() -> str:
    found = _found()
    names = {*ADAPTERS, *(row.onnx for row in ROWS.values() if row.onnx)}
    domains: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names, key=lambda n: (n.rpartition(".")[0], n.lower())):
        domains[name.rpartition(".")[0]].append(name)
    parts = [HEAD, _types()]
    for domain, ops in domains.items():
        shown = [op for op in ops if op in found]
        parts.append(f"## {domain or 'ai.onnx'}\n")
        if shown:
            parts.append(_table(["op", *TARGETS], [[_last(op), *_cells(found[op])] for op in shown]))
        others = [_last(op) for op in ops if op not in found]
        if others:
            parts.append(f"Also: {', '.join(others)}.\n")
    return "\n".join(parts)


def _last(op: str) -> str:
    return op.rpartition(".")[2]


def _types() -> str:
    rows = [
        [d.name, *("device" if d in find_target(t).dtypes else "host" for t in TARGETS.values())]
        for d in DTYPES.values()
    ]
    return "## Element types\n\n" + _table(["type", *TARGETS], rows)


def _cells(where: Where) -> Iterator[str]:
    for device in TARGETS:
        kinds = where.get(device, {})
        star = " \\*" if any(SIZES in reasons for reasons in kinds.values()) else ""
        kinds = {kind: reasons - {SIZES} for kind, reasons in kinds.items()}
        hosted: dict[str, set[str]] = defaultdict(set)
        for kind, reasons in kinds.items():
            for why in reasons:
                hosted[why].add(kind)
        if not hosted:
            yield f"device{star}"
            continue
        parts = [] if all(kinds.values()) else [f"device{star}"]
        for why, own in sorted(hosted.items()):
            some = f" for {', '.join(sorted(own))}" if len(own) < len(kinds) and "does not compute" not in why else ""
            parts.append(f"host{some}: {why}")
        yield "; ".join(parts)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _found() -> Mapping[str, Where]:
    """What the compiler says of each op's cases."""
    found: dict[str, Where] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    for name, (_, model, data_sets) in cases().items():
        if len(model.graph.nodes) == 1 and not name.endswith("_expanded") and data_sets:
            _add(found, model, data_sets[0][0])
    own = set(found)
    for data, arrays in models():
        model = read_model(data)
        if model.graph.nodes[0].op not in own:
            _add(found, model, arrays)
    return found


def _add(found: dict[str, Where], model: OnnxModel, arrays: list[Any]) -> None:
    """Enter where the node of a case runs."""
    graph = _graph(model, arrays)
    if graph is None:
        return
    kinds = ", ".join(dict.fromkeys(str(x.dtype) for x in graph.inputs)) or "none"
    for device, target in TARGETS.items():
        program = compile_graph(graph, find_target(target), Options())
        found[model.graph.nodes[0].op][device][kinds].update(
            why.replace(target, device) for counts in program.facts.get("host", {}).values() for why in counts
        )


def _graph(model: OnnxModel, arrays: list[Any]) -> Graph | None:
    """The Graph of a case, with the values that it needs."""
    opened = Model(OnnxSource(model), "numpy")
    try:
        needed = opened.needed
        values = {p.name: np.asarray(a) for p, a in zip(opened.inputs, arrays, strict=False) if p.name in needed.inputs}
        return opened.graph({}, values)
    except SingeError:
        return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    PAGE.write_text(page())
    print(PAGE)
