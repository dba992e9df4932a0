"""RoutedRuns: the functions of a step over several devices, each of which computes the parts of the model that are on it.

Weights and moments stay on the device of their part. A step runs lazily, and what a device computes from one move to the next is
one Program, which is compiled for the first batch of a form only.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np

from ...awaitables import MaybeAwaitable, map_result, together
from ...errors import DeviceError, InputError
from ...model.model import Model
from ...model.program import Program
from ...nn import Module
from ...nn._copies import changing
from ...nn._on_several import OnSeveral
from ...runtime import random_keys
from ...runtime.decorators import Fusion, Router
from ...runtime.device import Device
from ...tensors.default_keys import in_place_of_shared, of_words
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor
from .batches import arrays_in, mapped
from .functions import StepFunction, StepFunctions
from .states import MODEL


def refuse_several(what: str) -> NoReturn:
    """Refuse a method of TrainStep that needs all of a model on one device."""
    raise InputError(
        f"TrainStep.{what}: got a model whose parts are on several devices, expected one on one device, as in "
        "TrainStep(model.to(device), …, device=device)"
    )


def spread_over(model: Module, device: object) -> Router | None:
    """The Router on several of whose devices the parts of a model are, so that each computes its own, if `device` is that."""
    if not isinstance(device, Router):
        return None
    places = {path: t.device.eager for path, t in model.state_dict().items()}
    several = len({*places.values()}) > 1
    strange = {path: on for path, on in places.items() if on not in [one.eager for one in device]}
    if several and strange:
        path, on = next(iter(strange.items()))
        raise DeviceError(
            f"the model's parts are on several devices, and {path} is on {on!r}, which is none of {device!r}; move each part to one of "
            "these, as in model.replace(head=model.head.to(device[1])), or the whole model to one device"
        )
    return device if several else None


class RoutedRuns:
    """The functions of a step, run on the devices of the model's parts. What a batch has in arrays is on the Router's first."""

    def __init__(self, functions: StepFunctions, router: Router) -> None:
        self._functions: Final = functions
        self._home: Final = router.first.eager
        self._states: Final = functions.initial(functions.given.map(lambda t: t.to(t.device.eager)))
        self._key: random_keys.Words = (0, 0)
        self.follows = True
        """Whether it draws of the shared sequence."""

    @property
    def states(self) -> Mapping[str, np.ndarray]:
        """Arrays of the forms that the states have, by name."""
        forms = {name: np.broadcast_to(np.zeros((), t.dtype.numpy), t.shape) for name, t in self._states.items()}
        return {**forms, random_keys.KEY: random_keys.as_array(self._key)}

    def fetch(self, name: str) -> MaybeAwaitable[np.ndarray]:
        """A copy of a state."""
        if name == random_keys.KEY:
            return random_keys.as_array(random_keys.shared() if self.follows else self._key)
        return _fetched(self._states[name])

    def begin(self, sequence: random_keys.Words) -> None:
        """Draw of this sequence from now on."""
        self.follows, self._key = False, sequence

    def resume(self, states: Mapping[str, np.ndarray]) -> None:
        """Go on from copies of all states."""
        first, second = (int(word) for word in states[random_keys.KEY])
        self.begin((first, second))
        self.write({name: states[name] for name in self._states})

    def write(self, states: Mapping[str, np.ndarray]) -> None:
        """Go on with copies of some states in the place of those that there are."""
        for name, array in states.items():
            t = self._states[name]
            self._states[name] = tensor(array, dtype=t.dtype, device=t.device)

    def lent(self, on: Fusion) -> Module:
        """The model, whose weights are the states, which no step changes in place."""
        return self._functions.placed(lambda name: self._states[MODEL + name])

    def start(
        self, name: Hashable, function: StepFunction, batch: Sequence[Any], kept: Collection[str] = ()
    ) -> MaybeAwaitable[dict[str, Any]]:
        """The outputs of a function of a batch and the states, of which none are kept."""
        with self._functions.tracing:
            outputs, after = self._computed(function, batch)
            self._states.update(after)
        return map_result(
            together([_fetched(x) for x in outputs.values()]), lambda found: dict(zip(outputs, found, strict=True))
        )

    def _computed(self, function: StepFunction, batch: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The outputs of a function, and the states after it but the key, all of it computed."""
        on = OnSeveral()
        home = on.around(self._home)
        states = on.copied(self._states)
        copies = [mapped(partial(_placed, on, home, f"{k}"), part) for k, part in enumerate(batch)]
        drawing = nullcontext() if self.follows else in_place_of_shared(of_words(self._key, home))
        with changing([*batch], copies), drawing as drawn:
            outputs, after = function(copies, states)
        if drawn is not None:
            self._key = random_keys.after(self._key, drawn.count)
        return on.given_back(({**outputs}, {**after}))

    def program(self, name: Hashable, function: StepFunction, batch: Sequence[Any]) -> Program:
        refuse_several("program")

    def model(self, function: StepFunction, batch: Sequence[Any], names: Sequence[str] | None) -> Model:
        refuse_several("as_model")


def _fetched(x: Tensor) -> MaybeAwaitable[np.ndarray]:
    return x.device.fetch(x._value)


def _placed(on: OnSeveral, home: Device, path: str, part: Any) -> Any:
    """A part of a batch on the devices of a step: Tensors where they are, those of a Module too, and an array on the first."""
    if isinstance(part, (Tensor, Module)):
        return on.copied(part)
    ((_, array),) = arrays_in(part, path)
    return tensor(array, device=home)


def beside_model(model: Module, device: Device) -> tuple[Module, Device]:
    """A model with parts on several devices on devices around these, which compute lazily, and that around one of them."""
    on = OnSeveral()
    return on.copied(model), on.around(device)
