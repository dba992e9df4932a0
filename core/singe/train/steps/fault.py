"""A step that gave a number that is not finite, done again under observation: where the first such number is.

The batch runs once more with the same weights and the same key, on the same device. Of each call of a layer it is asked
whether its output is finite, and of each output and each parameter whether its gradient is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from ...dtypes import FLOATS, dtype, float32, uint32
from ...errors import SingeError
from ...graph import Graph, Node, gradient
from ...late_dataclass import dataclass
from ...model.model import Model
from ...nn import Module
from ...nn._module import tensors_in, with_parts
from ...nn._summary import Layer, listening
from ...runtime import random_keys
from ...runtime.debugging import finite, infinite_or_nan, looking
from ...runtime.device import Device
from ...shapes import deferring
from ...tensors.default_keys import in_place_of_shared
from ...tensors.functions.creation import stack
from ...tensors.nodes.promotion import plain_array
from ...tensors.tensor import Tensor, value_on
from ...tensors.tracing import Tracer, tracing
from .batches import arrays_in, computing_in, filled
from .objective import Objective
from .states import PRECISIONS


def fault_text(
    objective: Objective, model: Module, batch: Sequence[Any], device: Device, key: np.ndarray, precision: str
) -> str:
    """What `first_fault` finds, as the end of a sentence. Nothing within `sg.debug`, whose error says it."""
    if looking():
        return ""
    try:
        return f"; {first_fault(objective, model, batch, device, key, precision)}"
    except SingeError as e:
        return f"; the layer was not found: {e}"


def first_fault(
    objective: Objective,
    model: Module,
    batch: Sequence[Any],
    device: Device,
    key: np.ndarray,
    precision: str = "float32",
) -> str:
    """Where in a step the first number is that is not finite, in words; key: the state of random numbers that the step left."""
    named = [pair for k, part in enumerate(batch) for pair in arrays_in(part, f"{k}")]
    for path, array in named:
        if not finite(array):
            return f"part {path} of the batch holds {infinite_or_nan(array)}"
    parameters = {path: t for path, t, is_buffer in tensors_in(model) if t.dtype in FLOATS and not is_buffer}
    for path, t in parameters.items():
        if not finite(t.numpy()):
            return f"the parameter {path!r} holds {infinite_or_nan(t.numpy())} before the step"
    return _Trace(objective, model, batch, [array for _, array in named], parameters, precision).run(device, key)


@dataclass
class _Call:
    """A call of a layer: what people call it, the outputs, and inputs of zeros that are added to the outputs, whose gradients are
    those at the outputs."""

    name: str
    outputs: list[Node] = field(default_factory=list)
    probes: list[Node] = field(default_factory=list)


class _Trace:
    """The Graph of a step that tells what is finite."""

    def __init__(
        self,
        objective: Objective,
        model: Module,
        batch: Sequence[Any],
        arrays: Sequence[Any],
        parameters: dict[str, Tensor],
        precision: str,
    ) -> None:
        self._on: Final = Tracer()
        self._calls: Final[list[_Call]] = []
        self._given: Final[list[tuple[Node, np.ndarray]]] = []
        self._parameters: Final = parameters
        places: dict[int, Tensor] = {}
        for path, t in parameters.items():
            if id(t._value) not in places:
                places[id(t._value)] = self._input(path, t.numpy())
        self._by: Final = [value_on(self._on, places[id(t._value)]) for t in parameters.values()]
        placed = with_parts(model, lambda x: places.get(id(x._value), x) if isinstance(x, Tensor) else x)
        tensors = iter([self._input(f"part {k}", plain_array(a)) for k, a in enumerate(arrays)])
        given = [filled(part, tensors) for part in batch]
        self._key: Final = self._on.input(("key", (2,), uint32))
        with deferring(), tracing(self._on), in_place_of_shared(self._key) as drawn:
            computing, *given = (computing_in(PRECISIONS[precision], x) for x in (placed, *given))
            self._names = {id(part): path for path, part in computing.named_modules()}
            with listening(self._listen):
                loss, _ = objective(computing, *given)
            self._loss: Final = value_on(self._on, loss.cast(float32))
        self._taken: Final = drawn.count

    def _input(self, name: str, array: np.ndarray) -> Tensor:
        made = self._on.input((name, array.shape, dtype(array.dtype)))
        self._given.append((value_on(self._on, made), array))
        return made

    def _listen(self, layer: Layer, result: Any) -> Any:
        kind, path = type(layer).__name__, self._names.get(id(layer))
        name = f"the model, {kind}" if path == "" else f"the layer {path!r}, {kind}" if path else f"a layer, {kind}"
        call = _Call(name)
        self._calls.append(call)

        def probed(x: Any) -> Any:
            if not isinstance(x, Tensor) or x.dtype not in FLOATS or x.device is not self._on:
                return x
            probe = self._input(f"probe {len(self._given)}", np.zeros(x.shape, x.dtype.numpy))
            call.outputs.append(value_on(self._on, x))
            call.probes.append(value_on(self._on, probe))
            return x + probe

        return with_parts(result, probed)

    def run(self, device: Device, left: np.ndarray) -> str:
        """left: of the sequence of keys, after the step."""
        key = random_keys.as_array(random_keys.after((int(left[0]), int(left[1])), -self._taken))
        b, calls = self._on.builder, self._calls
        probes = [n for call in calls for n in call.probes]
        with deferring(), tracing(self._on):
            seed = b.expand(b.const(1, float32), shape=self._loss.shape)
            found = gradient(Graph((), (self._loss,), ("",), b.size_nodes), b, [seed], [*probes, *self._by])
            tests = [*(n for call in calls for n in call.outputs), self._loss, *found]
            finite = stack([Tensor(self._on, n).isfinite().all().cast(float32) for n in tests])
            sizes = stack([Tensor(self._on, n).cast(float32).abs().amax() for n in found[len(probes) :]])
        nodes = [value_on(self._on, x) for x in (finite, sizes)]
        inputs = (*(n for n, _ in self._given), value_on(self._on, self._key))
        program = Model(Graph(inputs, tuple(nodes), ("finite", "sizes"), b.size_nodes), device, "observed").program()
        is_finite, largest = program.run([*(array for _, array in self._given), key])
        return self._said(is_finite != 0, largest)

    def _said(self, finite: np.ndarray, largest: np.ndarray) -> str:
        """finite: of the outputs of each call, of the loss, of the gradients at each output, and of each parameter."""
        owners = [call.name for call in self._calls for _ in call.outputs]
        count = len(owners)
        outputs, loss, slopes, parameters = np.split(finite, [count, count + 1, 2 * count + 1])
        if not outputs.all():
            return f"the first output that is not finite is that of {owners[int(np.argmin(outputs))]}"
        if not loss.all():
            return "the outputs of all layers are finite: it is what the loss function computes of them that is not"
        if not slopes.all():
            last = count - 1 - int(np.argmin(slopes[::-1]))
            return f"on the way back, the first gradient that is not finite is that of the output of {owners[last]}"
        names = list(self._parameters)
        if not parameters.all():
            last = len(names) - 1 - int(np.argmin(parameters[::-1]))
            return f"the gradients of all outputs are finite, that of the parameter {names[last]!r} is not"
        most = int(np.argmax(largest))
        return (
            f"all numbers are finite; the largest gradient is that of the parameter {names[most]!r}, {largest[most]:g}"
        )
