"""`compile`: a Program from a Model, a Graph or a function of Tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InputError
from ..graph import Graph
from ..runtime.device import Device
from ..runtime.devices import device as open_device
from .model import Model, of_traces
from .program import Program


def compile(
    what: Model | Graph | Callable[..., Any],
    *examples: Any,
    device: str | Device = "auto",
    activations: str | None = None,
    fail_on_host: bool | None = None,
    states: Mapping[str, Any] | None = None,
    donate: Sequence[str] = (),
) -> Program:
    """A Program from a Model, a Graph, or a function of Tensors and examples of its arguments.

    states, donate: only for a function, as in `Model.of`. The inputs of a function are called "x0", "x1", ….

    activations="int16" computes products with packed weights of 4 or 8 bits in integers: twice as fast on `wasm`, with errors of
    about 1e-5; "packed_int8" keeps eight bits of the integers where weights have 4, and seven where weights have 8 and each output one
    scale, which is faster for several rows, with errors of a few thousandths. With "int8", other products and convolutions with constant
    weights compute in 8-bit integers too: faster on `wasm`, and less accurate. Other devices give the same results, but slowly; the first
    two they leave out. fail_on_host refuses ops that cannot run on the device. An option that is not given stays as the Model has it.

    What a function takes from outside (variables, attributes, items) is compared at each run; when it has changed, the function
    is traced again, over the same states. `save` writes the Program for the present values.
    """
    given = {"activations": activations, "fail_on_host": fail_on_host}
    chosen: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    if isinstance(what, Graph):
        what = Model(what, device, donate=donate)
        donate = ()
    if isinstance(what, Model):
        if states is not None:
            raise InputError("compile: states are given with a function of Tensors; a model has its own already")
        if donate:
            raise InputError("compile: donate is given with a function of Tensors; a model has its own already")
        if examples and len(examples) != len(what.inputs):
            names = ", ".join(p.name for p in what.inputs)
            raise InputError(f"compile: got {len(examples)} examples, expected one for each input: {names}")
        shapes = None if not examples else {p.name: np.shape(x) for p, x in zip(what.inputs, examples, strict=True)}
        on = what.device if device == "auto" else open_device(device)
        options = replace(what.options, **chosen)
        if (on, options) != (what.device, what.options):
            what = what.on(on, options)
        return what.program(shapes)
    if not callable(what):
        raise InputError(f"compile: got {what!r:.80}, expected a Model, a Graph or a function of Tensors")
    from ..tensors.tracing import observed_trace, specs_of  # noqa: PLC0415

    shapes = {f"x{i}": np.shape(x) for i, x in enumerate(examples)}
    specs = specs_of(examples)
    name = getattr(what, "__name__", type(what).__name__)
    model = of_traces(lambda: observed_trace(what, specs, states), device, name, donate=donate, **chosen)
    return model.program(shapes)._following(model, shapes)
