"""What a step of training computes, as functions of Tensors: of a batch and the states, the outputs and the states after it.

compiled.py traces them into Programs; several.py runs them as they are, on several devices, between which they move no more than
a number: whether the checks are passed, the scale of the loss, the norm of the gradients.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ...compiler.target import execution_of
from ...dtypes import DType, float16, float32
from ...errors import InputError
from ...gradients import differentiable, value_and_grad
from ...nn import Module, observing
from ...nn._copies import changing
from ...nn._module import with_parts
from ...optim._gradients import beside, beside_each
from ...runtime import random_keys
from ...runtime.debugging import looking
from ...runtime.device import Device
from ...tensors.default_keys import apart, in_place_of_shared
from ...tensors.flags import Flags, collecting
from ...tensors.functions.creation import concat, tensor
from ...tensors.tensor import Tensor
from .batches import computing_in
from .kept_tensors import keeping_nothing
from .nonfinite import OUT_OF_RANGE, NonfiniteChecks, checked, norm_of, where_passed
from .objective import Loss, check_reached, checked_loss, objective
from .states import FIRST_SCALE, MODEL, OPTIMIZER, SCALE, all_finite, by_name, next_scale, state_names, with_buffers

Traced: TypeAlias = tuple[Mapping[str, Tensor], Mapping[str, Tensor]]
"""What a step gives, and the states after it."""
StepFunction: TypeAlias = Callable[[Sequence[Any], Mapping[str, Tensor]], Traced]
"""A step, or a half of it: (batch, states) ↦ what it gives, the states after it."""

GRADIENTS: Final = "gradients."
BUFFERS: Final = "buffers."
"""How the first half of a step names what it gives beside what the loss function returns."""


class StepFunctions:
    """A model, an optimiser and a loss as functions of a batch and the states of the two."""

    def __init__(
        self,
        model: Module,
        optimizer: Any,
        loss: Loss,
        checks: NonfiniteChecks,
        *,
        computes_in: DType | None,
        training: bool,
        replica: int,
        device: Device | None,
    ) -> None:
        """computes_in: the type that takes the place of float32 in the model. device: where all is computed; None: the parts of the model are on several."""
        self.given: Final = model
        self.loss: Final = objective(loss, predictions=False) if isinstance(loss, Module) else checked_loss(loss)
        self.names: Final = state_names(model)
        self.tracing = threading.RLock()
        """Held while a function is traced, which changes the lists and dicts of the model that was given, as its code does."""
        self._measured: Final = objective(loss, predictions=True)
        self._optimizer: Final = optimizer
        self._checks: Final = checks
        self._computes_in: Final = computes_in
        self._training: Final = training
        self._replica: Final = replica
        self._device: Final = device
        self._tensors: Final = model.state_dict()
        self._trained: Final = tuple(differentiable(model))

    def trace_in_turn(self, other: StepFunctions) -> None:
        """Be traced only while the functions of another step of the same model are not."""
        self.tracing = other.tracing

    @property
    def gradient_count(self) -> int:
        """How many numbers the gradients of all parameters are."""
        return sum(math.prod(self._tensors[path].shape) for path in self._trained)

    def initial(self, model: Module) -> dict[str, Tensor]:
        """The first states but the key, on the devices of a model."""
        states = {MODEL + name: t for name, t in by_name(model, self.names).items()}
        states |= {OPTIMIZER + name: t for name, t in self._optimizer.init(model).items()}
        if self._computes_in is float16:
            states[SCALE] = tensor([FIRST_SCALE, 0.0], device=next(iter(states.values())).device)
        return states

    def step(self, batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        outputs, grads, seen = self._differentiated(batch, states)
        outputs.pop(OUT_OF_RANGE, None)
        return outputs, self._updated(seen, grads, states, None)

    def checked(self, batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        outputs, grads, seen = self._differentiated(batch, states)
        return self._guarded(outputs, seen, grads, states)

    def _guarded(
        self, outputs: dict[str, Tensor], seen: Module, grads: Mapping[str, Tensor], states: Mapping[str, Tensor]
    ) -> Traced:
        outputs, passed = checked(self._checks.kind, outputs, self._norm(grads, states))
        return outputs, self._updated(seen, grads, states, passed)

    def _norm(self, grads: Mapping[str, Tensor], states: Mapping[str, Tensor]) -> Tensor | None:
        """That of the gradients, where it is checked."""
        return None if self._checks.kind == "ignore" else norm_of(grads, states.get(SCALE))

    def evaluated(self, batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        model = self.placed(lambda name: states[MODEL + name]).eval()
        with changing(self.given, model), keeping_nothing(model, *batch), collecting(self._checks.texts) as flags:
            loss, rest = self._measured(model, *batch)
        return checked("ignore", {"loss": loss, **rest, **_flagged(flags)}, None)[0], _but_key(states)

    def first_half(self, batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        key = apart(key_after(states[random_keys.KEY], 1)) + random_keys.as_array((0, self._replica))
        with in_place_of_shared(key):
            outputs, grads, seen = self._differentiated(batch, states)
        after = by_name(seen, self.names)
        flat = concat([g.cast(float32).reshape(-1) for g in grads.values()])
        changed = {BUFFERS + n: x for n, x in after.items() if x._value is not states[MODEL + n]._value}
        outputs, _ = checked(self._checks.kind, outputs, self._norm(grads, states))
        return {**outputs, GRADIENTS: flat, **changed}, states

    def gradients(self, batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        """Those that a step would have before it clips them, without a scale. Nothing changes, so that the step draws the same again."""
        outputs, grads, _ = self._differentiated(batch, states)
        outputs, _ = checked("ignore", outputs, None)
        scale = states.get(SCALE)
        near = None if scale is None else beside_each(scale[0])
        wide = {path: g.cast(float32) for path, g in grads.items()}
        found = {GRADIENTS + path: g if near is None else g / near(g) for path, g in wide.items()}
        return {**outputs, **found}, states

    def second_half(self, buffers: Sequence[str], batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        gradients, loss, *given = (x for x in batch if isinstance(x, Tensor))
        new = dict(zip(buffers, given, strict=True))
        before = {name: new.get(name, states[MODEL + name]) for name in self.names.values()}
        grads: dict[str, Tensor] = {}
        at = 0
        for path in self._trained:
            x = before[self.names[path]]
            grads[path] = gradients[at : at + x.numel()].reshape(*x.shape).cast(x.dtype)
            at += x.numel()
        key = key_after(states[random_keys.KEY], 1)
        outputs, after = self._guarded({"loss": loss}, self.placed(before.__getitem__), grads, states)
        return outputs, {random_keys.KEY: key, **after}

    def _differentiated(
        self, batch: Sequence[Any], states: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Module]:
        """The outputs of a step, the gradients by path, and the model with new running statistics."""
        model = self.placed(lambda name: states[MODEL + name])
        with changing(self.given, model):
            ((_, (outputs, seen)), grads) = value_and_grad(self._objective, has_aux=True)(
                model, batch, states.get(SCALE)
            )
        return dict(outputs), dict(grads.items()), seen

    def _updated(
        self, seen: Module, grads: Mapping[str, Tensor], states: Mapping[str, Tensor], passed: Tensor | None
    ) -> dict[str, Tensor]:
        """The states but the key after an update of a model, the running statistics of which are new already. passed: where not,
        they stay; None: they never do."""
        scale = states.get(SCALE)
        more: dict[str, Tensor] = {}
        if scale is not None:
            finite = all_finite(grads.values())
            passed = finite if passed is None else passed & beside(finite, passed)
            more[SCALE] = next_scale(scale, beside(finite, scale))
        new = {BUFFERS + n: x for n, x in by_name(seen, self.names).items() if x._value is not states[MODEL + n]._value}
        given = {**_but_key(states), **new, **{GRADIENTS + path: g for path, g in grads.items()}}
        kept = [name for name in states if name not in (random_keys.KEY, SCALE)]
        # `debug` sees what is computed outside of branches only.
        on = self._device and self._device.eager
        branches = on is not None and on.reads_now and not execution_of(on.target).fuses and not looking()
        return {**where_passed(passed, functools.partial(self._update, tuple(grads)), given, kept, branches), **more}

    def _update(self, paths: Sequence[str], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The model's states and the optimiser's after an update, of those before, new running statistics, and the gradients of the
        parameters at these paths."""
        scale = tensors.get(SCALE)
        grads = {path: tensors[GRADIENTS + path] for path in paths}
        if scale is not None:
            near = beside_each(scale[0])
            grads = {path: g / near(g) for path, g in grads.items()}
        seen = self.placed(lambda name: tensors.get(BUFFERS + name, tensors[MODEL + name]))
        before = {k.removeprefix(OPTIMIZER): x for k, x in tensors.items() if k.startswith(OPTIMIZER)}
        updated, after = self._optimizer.step(seen, grads, before)
        model = {MODEL + name: x for name, x in by_name(updated, self.names).items()}
        return {**model, **{OPTIMIZER + name: x for name, x in after.items()}}

    def _objective(self, model: Module, batch: Sequence[Any], scale: Tensor | None) -> tuple[Tensor, Any]:
        """The loss that is differentiated, and (the outputs of a step, the model with new running statistics)."""
        computing, *given = (computing_in(self._computes_in, x) for x in (model, *batch))
        kept = keeping_nothing(computing, *given)
        with (
            changing([model, *batch], [computing, *given]),
            kept,
            observing() as seen,
            collecting(self._checks.texts) as flags,
        ):
            found = self.loss(computing, *given)
        value, extras = found if isinstance(found, tuple) and len(found) == 2 else (found, {})
        if not isinstance(value, Tensor) or not isinstance(extras, Mapping) or "loss" in extras:
            raise InputError(
                f"the loss function returned {found!r:.80}, expected a Tensor of one number, or a pair of it and a dict of "
                'tensors, of which none is called "loss"'
            )
        check_reached(model, value)
        value = value.cast(float32)
        after = with_buffers(model, computing.with_modules(seen))
        return value if scale is None else value * beside(scale[0], value), (
            {"loss": value, **extras, **_flagged(flags)},
            after,
        )

    def template(self) -> Module:
        """The model, with what its lists and dicts hold now, in the mode in which it is trained."""
        present = self.given.state_dict()
        for path in [*self._tensors, *present]:
            if present.get(path) is not self._tensors.get(path):
                raise InputError(
                    f"TrainStep: the model's tensor {path} is another one than when the step was made; expected the same one, as the "
                    "step has weights of its own: make a new TrainStep of the model"
                )
        return self.given.train() if self._training else self.given

    def placed(self, place: Callable[[str], Tensor]) -> Module:
        """The model with place(name) for each of its tensors."""
        names = {id(t._value): self.names[path] for path, t in self._tensors.items()}
        return with_parts(
            self.template(), lambda part: place(names[id(part._value)]) if isinstance(part, Tensor) else part
        )


def _flagged(flags: Flags) -> dict[str, Tensor]:
    """What a step's first part tells of indices out of range."""
    return {} if flags.code is None else {OUT_OF_RANGE: flags.code}


def key_after(key: Tensor, count: int) -> Tensor:
    """What is left of a sequence after so many keys; with 1, also its next key."""
    return key + random_keys.as_array(random_keys.after((0, 0), count)) if count else key


def _but_key(states: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: x for name, x in states.items() if name != random_keys.KEY}
