"""CompiledRuns: the functions of a step as Programs of one device, over one set of states."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...awaitables import MaybeAwaitable, map_result, resolve
from ...dtypes import dtype, float32
from ...graph import Graph
from ...model.model import Model, of_traces
from ...model.program import Program
from ...model.session import Session
from ...nn import Module
from ...nn._copies import changing
from ...runtime import random_keys
from ...runtime.debugging import looking
from ...runtime.decorators import Fusion
from ...runtime.device import Device
from ...tensors.default_keys import in_place_of_shared
from ...tensors.nodes.promotion import plain_array
from ...tensors.observed import Observed
from ...tensors.tensor import Tensor
from ...tensors.tracing import observed_trace
from .batches import arrays_in, arrays_of, filled, form, formed, mapped, modules_in, part_names
from .functions import StepFunction, StepFunctions, key_after
from .objective import called_names
from .states import MODEL


class CompiledRuns:
    """The functions of a step as Programs, one for each function and form of a batch, over states on one device, which each run
    changes in place."""

    def __init__(self, functions: StepFunctions, device: Device) -> None:
        self._functions: Final = functions
        self._device: Final = device
        self._first: Final = {
            name: np.array(t.numpy()) for name, t in functions.initial(functions.given.to("numpy")).items()
        }
        self._first[random_keys.KEY] = random_keys.as_array((0, 0))  # until it has a sequence of its own
        self.follows = True
        """Whether it draws of the shared sequence."""
        self.models: Final[dict[Any, Model]] = {}
        self._session: Session | None = None

    @property
    def states(self) -> Mapping[str, np.ndarray]:
        """Arrays of the forms that the states have, by name."""
        return self._first

    def fetch(self, name: str) -> MaybeAwaitable[np.ndarray]:
        """A copy of a state."""
        return self._first[name].copy() if self._session is None else self._session.fetch(name)

    def begin(self, sequence: random_keys.Words) -> None:
        """Draw of this sequence from now on."""
        self.follows = False
        self._first[random_keys.KEY] = random_keys.as_array(sequence)
        if self._session is not None:
            self._session.write(random_keys.KEY, self._first[random_keys.KEY])

    def resume(self, states: Mapping[str, np.ndarray]) -> None:
        """Go on from copies of all states."""
        self.follows = False
        self.write(states)

    def write(self, states: Mapping[str, np.ndarray]) -> None:
        """Go on with copies of some states in the place of those that there are."""
        if self._session is None and self.models:  # a Program was traced with the states before
            self._session = self._any_program().session()
        for name, array in states.items():
            if self._session is None:
                self._first[name] = np.array(array)
            else:
                self._session.write(name, array)

    def lent(self, on: Fusion) -> Module | None:
        """The model on a device around this one, without a copy: its weights are the states. None: no run has put them there."""
        if self._session is None:
            return None
        held = self._session.held(self._any_program())
        values = {
            name.removeprefix(MODEL): Tensor(on, on.holding(held[k]))
            for k, name in enumerate(self._session.names)
            if name.startswith(MODEL)
        }
        return self._functions.placed(values.__getitem__)

    def start(
        self, name: Hashable, function: StepFunction, batch: Sequence[Any], kept: Collection[str] = ()
    ) -> MaybeAwaitable[dict[str, Any]]:
        """The outputs of a function of a batch and the states. name: the function's. kept: the outputs that stay on the device, as
        Tensors. A Tensor in float32 with which a batch begins is taken where it is, if that is this device."""
        program = self.program(name, function, batch)
        if self._session is None:
            self._session = program.session()
            if not self.follows:  # where the Program was traced before it had a sequence of its own
                self._session.write(random_keys.KEY, self._first[random_keys.KEY])
        names = [p.name for p in program.outputs]
        on, first = self._device.eager, batch[0] if batch and not looking() else None
        here = [first._value] if isinstance(first, Tensor) and first.device is on and first.dtype is float32 else []
        arrays = arrays_of(batch[len(here) :])
        # An array's type is that of its Tensor in the trace: float64 is float32 there.
        given = [a.astype(p.dtype.numpy, copy=False) for a, p in zip(arrays, program.inputs[len(here) :], strict=True)]
        if not here and not kept:
            return map_result(program.start(given, self._session), lambda found: dict(zip(names, found, strict=True)))
        numbers = {k for k, name in enumerate(names) if name in kept}
        return map_result(
            program.start_on_device([*here, *given], self._session, numbers),
            lambda found: {names[k]: Tensor(on, x) if k in numbers else x for k, x in enumerate(found)},
        )

    def program(self, name: Hashable, function: StepFunction, batch: Sequence[Any]) -> Program:
        """The Program of a function of a batch of this form."""
        key = (name, *map(form, batch))
        if key not in self.models:
            names = called_names(self._functions.loss, self._functions.given, len(batch), self._first)
            self.models[key] = self._traced(function, batch, self._first, names)
        return self.models[key].program()

    def model(self, function: StepFunction, batch: Sequence[Any], names: Sequence[str] | None) -> Model:
        """The Model of a function of a batch of this form, which begins with the present states."""
        states = {name: resolve(self.fetch(name), "await step.state_async()") for name in self._first}
        return self._traced(function, batch, states, names)

    def _any_program(self) -> Program:
        """One of the Programs, which all have the same states."""
        return next(iter(self.models.values())).program()

    def _traced(
        self,
        function: StepFunction,
        batch: Sequence[Any],
        states: Mapping[str, np.ndarray],
        parts: Sequence[str] | None = None,
    ) -> Model:
        """parts: the names of the batch's parts; by default those of the loss function."""
        named = dict(zip(parts or part_names(self._functions.loss, len(batch)), batch, strict=True))
        arrays = {path: array for name, part in named.items() for path, array in arrays_in(part, name)}
        shapes = {name: a.shape for name, a in arrays.items()}
        kinds = {name: plain_array(a).dtype for name, a in arrays.items()}
        forms = {name: mapped(formed, part) for name, part in named.items()}
        copied = {**dict(modules_in(forms)), "model": self._functions.given}

        taken = 0

        def step(*tensors: Tensor, **states: Tensor) -> Any:
            nonlocal taken
            given = iter(tensors)
            filled_in = [filled(part, given) for part in forms.values()]
            with in_place_of_shared(states[random_keys.KEY]) as drawn, changing([*forms.values()], filled_in):
                outputs, after = function(filled_in, states)
            taken = drawn.count
            return outputs, {random_keys.KEY: key_after(states[random_keys.KEY], taken), **after}

        specs = [(name, shape, dtype(kinds[name])) for name, shape in shapes.items()]
        follows, alone = self.follows, self._functions.tracing  # not these runs, which keep what is traced

        def traced() -> tuple[Graph, Observed]:
            with alone:
                graph, observed = observed_trace(step, specs, states, copied)
            kept = tuple(
                replace(s, draws=taken, initial=None if follows else s.initial) if s.name == random_keys.KEY else s
                for s in graph.states
            )
            return replace(graph, states=kept), observed

        return of_traces(traced, self._device, "step")
