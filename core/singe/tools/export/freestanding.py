"""`export_freestanding` writes a model as one WebAssembly module without imports, which any engine runs.

static/README.md, "The freestanding module", documents what it exports. The module holds the Program for one set of
shapes, so dimensions must be numbers, and all of its steps, so no op may run on the host or give a size in mid-run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from ... import __version__
from ...compiler.compile import compile_graph
from ...compiler.options import ACTIVATIONS
from ...compiler.target import find_target
from ...dtypes import string
from ...errors import DeviceError, InputError
from ...files import write
from ...model.model import Model
from ...program.program import Bind, Host, ProgramData
from ...report import LEFT, RIGHT, fields, table
from ...runtime.registry import BackendFactory, factories
from ...shapes import bytes_text, known, show, symbols

SUFFIX: Final = ".wasm"
WEIGHTS: Final = ("inside", "separate")
"""Where the weights may be: in the module, or in a file beside it, which has WEIGHTS_SUFFIX in place of SUFFIX."""
WEIGHTS_SUFFIX: Final = ".weights"


def export_freestanding(
    model: Model, path: str | Path, *, weights: str = "inside", activations: str = "float32"
) -> Mapping[str, int]:
    """Write a model as one WebAssembly module without imports; returns the bytes of each file that was written, by name.

    Every input has a shape of numbers. weights: "inside" the module, or "separate", in a second file named as `path` with
    the ending .weights. activations: with "int8", matrix products and convolutions compute in integers: faster, less
    accurate; with "int16", products with packed weights do, at almost no cost in accuracy. The same model gives the same bytes.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise InputError(f"{path}: expected the name of a file that ends with {SUFFIX}")
    for what, given, choices in (("weights", weights, WEIGHTS), ("activations", activations, ACTIVATIONS)):
        if given not in choices:
            raise InputError(f"{what}: got {given!r}, expected one of {', '.join(choices)}")
    factory = next((f for f in factories().values() if f.freestanding is not None), None)
    if factory is None or factory.freestanding is None:
        raise DeviceError("no installed backend makes freestanding modules; the package singe-wasm has one that does")
    program = _compiled(model, factory, activations)
    module, separate = factory.freestanding(program, {"singe": __version__, "name": model.name}, weights == "separate")
    files = {path.with_suffix(WEIGHTS_SUFFIX): separate, path: module} if separate else {path: module}
    for file, data in files.items():
        write(file, [data])
    return {file.name: len(data) for file, data in files.items()}


def _compiled(model: Model, factory: BackendFactory, activations: str) -> ProgramData:
    """The model's Program, if a module can hold all of it."""
    graph = model.graph()
    open_inputs = [x for x in graph.inputs if symbols(x.shape)]
    if open_inputs:
        told = ", ".join(f"{x.name} {show(x.shape)}" for x in open_inputs)
        example = "x".join(str(d) if isinstance(d, int) else "1" for d in open_inputs[0].shape)
        raise InputError(
            f"a freestanding module has inputs of fixed shapes, and these have open dimensions: {told}. Give numbers with "
            f"--input-shape (`shapes` of singe.load), as in --input-shape {open_inputs[0].name}={example}"
        )
    program = compile_graph(graph, find_target(factory.target_name), replace(model.options, activations=activations))
    if any(isinstance(s, Host) for s in program.stops):
        ops = program.facts["host"]
        told = "; ".join(f"{op} ({', '.join(why)})" for op, why in ops.items())
        raise InputError(
            f"a freestanding module has no host, and these ops of the model run there: {told}; export a bundle instead, whose page has one"
        )
    found = sorted({s.size for s in program.stops if isinstance(s, Bind)})
    if found:
        raise InputError(
            f"a freestanding module has a fixed layout, and the model finds sizes in mid-run: {', '.join(found)}; export a bundle instead, which may"
        )
    drawn = [s.name for s in program.states if s.draws is not None and s.initial is None]
    if drawn:
        raise InputError(
            "a freestanding module has no random numbers to begin with, and the model draws some without a key: let it take a key "
            "as an input, as in `def f(x, key): with nn.drawing(key): …`"
        )
    texts = [b.name for i in (*program.inputs, *program.outputs) if (b := program.buffers[i]).dtype is string]
    if texts:
        raise InputError(
            f"a freestanding module has no strings, and these inputs and outputs are: {', '.join(texts)}; export a bundle instead, which may have them"
        )
    program.sizes({x.name: tuple(known(d, {}) for d in x.shape) for x in graph.inputs})  # the checks of shapes
    return program


def describe_freestanding(files: Mapping[str, int], model: Model) -> str:
    """The files with their sizes, and the numbers that functions of the module take for inputs and outputs."""
    listing = table([("file", LEFT), ("bytes", RIGHT)], [(name, bytes_text(count)) for name, count in files.items()])
    ports = [
        (f"{kind}({k})", str(spec))
        for kind, specs in (("input", model.inputs), ("output", model.outputs))
        for k, spec in enumerate(specs)
    ]
    return f"{listing}\n\n{fields(ports)}"
