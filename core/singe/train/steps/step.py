"""TrainStep: a step of training as one Program: forward, loss, gradients, clipping and the update of the weights.

Weights, moments and running statistics are states of the Program: they stay on the device, where each run changes them in
place. Batches of another shape have a Program of their own, over the same states.

The model runs in training mode, and `step.model` is in inference mode; `step.evaluate(x, y)` gives the loss in inference mode,
with the weights on the device.

What the loss function takes from elsewhere is compared at each step; when it has changed, the function is traced again, over the
same states. What changes from step to step is part of the batch, so that one Program serves; that may also be a Module: the other
network of two that are trained in turns, or a copy of the model from some steps ago.

    for real in loader:
        critic_step(real, noise(), generator_step.model)
        generator_step(noise(), critic_step.model)
"""

from __future__ import annotations

import copy
import functools
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from ...awaitables import MaybeAwaitable, map_result, resolve, resolve_async
from ...compiler.target import execution_of
from ...dtypes import dtype, float16, float32
from ...errors import DTypeError, InputError, ShapeError
from ...gradients import differentiable, value_and_grad
from ...graph import Graph
from ...model.model import Model, of_traces
from ...model.program import Program
from ...model.session import Session
from ...nn import Module, observing
from ...nn._copies import changing
from ...nn._module import with_parts
from ...runtime import random_keys
from ...runtime.debugging import looking
from ...runtime.decorators import Fusion
from ...runtime.device import Device
from ...runtime.devices import device as open_device
from ...shapes import show
from ...tensors.default_keys import apart, in_place_of_shared
from ...tensors.flags import Flags, collecting
from ...tensors.functions.creation import concat
from ...tensors.nodes.promotion import plain_array
from ...tensors.observed import Observed
from ...tensors.tensor import Tensor
from ...tensors.tracing import observed_trace, refuse_when_traced
from .batches import arrays_in, arrays_of, filled, form, formed, halved, items_of, mapped, modules_in, part_names
from .kept_tensors import keeping_nothing
from .nonfinite import OUT_OF_RANGE, Nonfinite, NonfiniteChecks, checked, norm_of, where_passed
from .objective import Loss, called_names, check_reached, checked_loss, checked_model, objective
from .optimizers import optimizer_of
from .states import FIRST_SCALE, MODEL, OPTIMIZER, SCALE, all_finite, by_name, next_scale, state_names, with_buffers

Precision = Literal["float32", "float16"]
Traced = tuple[Mapping[str, Tensor], Mapping[str, Tensor]]
"""What a step gives, and the states after it."""
Half = Callable[[Sequence[Any], Mapping[str, Tensor]], Traced]
"""A step, or a half of it: (batch, states) ↦ what it gives, the states after it."""
_WHOLE: Final = "a step in one piece: await step.run_async(…)"

GRADIENTS: Final = "gradients."
BUFFERS: Final = "buffers."
"""How the first half of a step names what it gives beside what the loss function tells."""


@dataclass(frozen=True, eq=False)
class Share:
    """What one of several replicas adds to a step."""

    items: int
    """How long its part of the batch is."""
    values: dict[str, np.ndarray]
    """The loss, and what else the loss function tells."""
    gradients: np.ndarray
    """Of all parameters, one behind the other, in float32."""
    buffers: dict[str, np.ndarray]
    """The new values of those that the step changes: running statistics."""


class TrainStep:
    """A step of training as one Program: forward, loss, gradients, clipping and the update of the weights, which stay on the device.

        step = sg.train.TrainStep(model, sg.optim.AdamW(1e-3), lambda model, x, y: nn.MSELoss()(model(x), y), device="wasm")
        for x, y in loader:
            value = step(x, y)
        model = step.model

    Calling it gives the loss as a number, or (loss, dict of arrays) if the loss function gives a pair. loss may also be a Module,
    called as loss(model(*inputs), target), where the target is the last part of a batch.

    training: whether the model runs in training mode, in which Dropout drops and batch norms learn their statistics; with False
    each layer runs in the mode in which it is given: that of a new module is inference mode.
    clip: the largest norm of all gradients together. accumulate: how many batches make one update.
    seed: of what is drawn. Without it a step draws of the sequence that `sg.manual_seed` begins, what its lines would draw eagerly,
    or of the block `with nn.drawing(key):` around it. `seed(n)`, `state()`, `resume` and `share` give it a sequence of its own,
    so that a run that is resumed draws what the other one draws.
    precision="float16": the model computes in float16; weights and updates stay in float32, and the loss is scaled so that
    small gradients do not vanish. A step whose gradients overflow changes no weight.
    nonfinite: what becomes of a step whose loss, or norm of the gradients, is NaN or infinite. "stop" raises NonFinite, "skip"
    goes on, and `skipped` counts it; either way no weight has changed. "ignore" does not look.

    `share` and `update` are the two halves of a step, between which several replicas average what they have (parallel.py).
    replica: the number of this one; layers draw other numbers in each.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Any,
        loss: Loss,
        *,
        device: str | Device = "auto",
        clip: float | None = None,
        accumulate: int = 1,
        seed: int | None = None,
        precision: Precision = "float32",
        nonfinite: Nonfinite = "ignore",
        training: bool = True,
        replica: int = 0,
    ) -> None:
        if precision not in ("float32", "float16"):
            raise InputError(f"TrainStep: got precision={precision!r}, expected 'float32' or 'float16'")
        self.device: Final = open_device(device)
        checked_model("TrainStep", model)
        self._given: Final = model
        self._training: Final = training
        self._tensors: Final = model.state_dict()
        self._loss: Final = objective(loss, predictions=False) if isinstance(loss, Module) else checked_loss(loss)
        self._measured: Final = objective(loss, predictions=True)
        self._optimizer: Final = optimizer_of(optimizer, clip, accumulate)
        self._half: Final = precision == "float16"
        self._checks: Final = NonfiniteChecks(nonfinite)
        self._replica: Final = replica
        self._names: Final = state_names(model)
        self._trained: Final = tuple(differentiable(model))
        self._first: Final = self._initial(model)
        self._follows = True
        """Whether it draws of the shared sequence."""
        self._tracing = threading.RLock()
        """Held while it is traced, which changes the lists and dicts of the model that was given, as its code does."""
        self._functions: Final = copy.copy(self)
        """The owner of the functions that are traced, without the Models below, which keep it."""
        self._models: Final[dict[Any, Model]] = {}
        self._session: Session | None = None
        if seed is not None:
            self.seed(seed)

    def __repr__(self) -> str:
        numbers = sum(math.prod(x.shape) for x in self._given.parameters())
        return f"<TrainStep of {type(self._given).__name__} on {self.device.label}: numbers: {numbers}, {self._optimizer!r:.80}>"

    def __call__(self, *batch: Any) -> Any:
        """Train on a batch: arrays, Tensors, Modules, or dicts of them, in the order in which the loss function takes them."""
        return resolve(self._run(batch), "await step.run_async(…)")

    async def run_async(self, *batch: Any) -> Any:
        """A step in a page, where results must be awaited."""
        return await resolve_async(self._run(batch))

    def evaluate(self, *batch: Any) -> Any:
        """The loss on a batch in inference mode, in float32: a number, or (number, dict of arrays) of what the loss function tells;
        of a loss Module, the model's "prediction". Nothing is learned, and the weights stay on the device."""
        return resolve(self._evaluation(batch), "await step.evaluate_async(…)")

    async def evaluate_async(self, *batch: Any) -> Any:
        """`evaluate` in a page, where results must be awaited."""
        return await resolve_async(self._evaluation(batch))

    @property
    def skipped(self) -> int:
        """How many steps changed no weight, with nonfinite="skip"."""
        refuse_when_traced("step.skipped", "read it before, and pass it as an argument")
        return self._checks.skipped

    @property
    def model(self) -> Module:
        """The model with its present weights, in inference mode, on the device of the model that was given."""
        state = {path: self._read(MODEL + name) for path, name in self._names.items()}
        return self._template().with_state(state).eval()

    def lent(self, on: Fusion) -> Module:
        """The model in inference mode on a device around this step's, without a copy: its weights are the states themselves, which
        the next step changes."""
        session = self._session
        if session is None:
            return self.model.to(on)
        held = session.held(self._any_program())
        values = {
            name.removeprefix(MODEL): Tensor(on, on.holding(held[k]))
            for k, name in enumerate(session.names)
            if name.startswith(MODEL)
        }
        return self._placed(values.__getitem__).eval()

    def seed(self, seed: int) -> None:
        """Draw of a sequence of its own from now on, that of a seed: equal seeds, equal numbers."""
        self._begin(random_keys.begun(random_keys.checked_seed(seed, "TrainStep")))

    def state(self) -> dict[str, np.ndarray]:
        """Copies of all that the next step depends on, by name: weights, moments, counts, the key of what it draws next."""
        self._own_sequence()
        return {name: self._read(name) for name in self._first}

    async def state_async(self) -> dict[str, np.ndarray]:
        """`state` in a page, where results must be awaited."""
        self._own_sequence()
        return {name: await resolve_async(self._fetch(name)) for name in self._first}

    def resume(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a `state`."""
        missing, unknown = self._first.keys() - state.keys(), state.keys() - self._first.keys()
        if missing or unknown:
            raise InputError(
                f"resume: the state is not one of this step: missing {_some(missing)}, unknown {_some(unknown)}; "
                "the model, the optimiser and the precision must be the same"
            )
        for name, old in self._first.items():
            given = np.asarray(state[name])
            if given.shape != old.shape:
                raise ShapeError(f"resume: {name!r} has the shape {show(given.shape)}, expected {show(old.shape)}")
            if given.dtype != old.dtype:
                raise DTypeError(f"resume: {name!r} is {given.dtype}, expected {old.dtype}")
        self._follows = False
        if self._session is None and self._models:  # a Program was traced with the states before
            self._session = self._any_program().session()
        for name in self._first:
            if self._session is None:
                self._first[name] = np.array(state[name])
            else:
                self._session.write(name, state[name])

    def program(self, *batch: Any) -> Program:
        """The Program of a step on batches of these shapes and types."""
        return self._program("step", self._functions._checked, batch)

    def as_model(self, *batch: Any, names: Sequence[str] | None = None) -> Model:
        """A step on batches of these shapes as a Model, which starts with the present states: `sg.export` writes its bundle,
        and in a page `model.step({x, y})` trains. The inputs are called as `names` says, or like the parameters of the loss
        function; those of a Module or a dict have its name and the paths in it. What it draws goes on where a step with a sequence
        of its own is; otherwise it is of the shared sequence, and other numbers at each load of the page."""
        return self._traced(self._functions._step, batch, {name: self._read(name) for name in self._first}, names)

    # --- one of several replicas ---

    def share(self, *batch: Any) -> Share:
        """The first half of a step: what a part of a batch adds to it. No weight changes."""
        self._own_sequence()
        started = self._started("share", self._functions._first_half, batch)
        found = self._checks.passed(resolve(started, _WHOLE), learning=False)
        gradients = found.pop(GRADIENTS)
        buffers = {name.removeprefix(BUFFERS): found.pop(name) for name in [*found] if name.startswith(BUFFERS)}
        return Share(items_of(batch), found, gradients, buffers)

    def update(self, gradients: np.ndarray, buffers: Mapping[str, np.ndarray], loss: float = 0.0) -> None:
        """The second half: the update of the weights, by the averages of all replicas. loss: theirs; one that is not finite is
        treated as `nonfinite` says."""
        self._own_sequence()
        half = functools.partial(self._functions._second_half, tuple(buffers))
        given = [gradients, np.float32(loss), *buffers.values()]
        self._checks.passed(resolve(self._started(("update", *buffers), half, given), _WHOLE))

    # --- what runs ---

    def _traced(
        self,
        function: Half,
        batch: Sequence[Any],
        states: Mapping[str, np.ndarray],
        parts: Sequence[str] | None = None,
    ) -> Model:
        """parts: the names of the batch's parts; by default those of the loss function."""
        named = dict(zip(parts or part_names(self._loss, len(batch)), batch, strict=True))
        arrays = {path: array for name, part in named.items() for path, array in arrays_in(part, name)}
        shapes = {name: a.shape for name, a in arrays.items()}
        kinds = {name: plain_array(a).dtype for name, a in arrays.items()}
        forms = {name: mapped(formed, part) for name, part in named.items()}
        copied = {**dict(modules_in(forms)), "model": self._given}

        taken = 0

        def step(*tensors: Tensor, **states: Tensor) -> Any:
            nonlocal taken
            given = iter(tensors)
            filled_in = [filled(part, given) for part in forms.values()]
            with in_place_of_shared(states[random_keys.KEY]) as drawn, changing([*forms.values()], filled_in):
                told, after = function(filled_in, states)
            taken = drawn.count
            return told, {random_keys.KEY: _after(states[random_keys.KEY], taken), **after}

        specs = [(name, shape, dtype(kinds[name])) for name, shape in shapes.items()]
        follows, alone = self._follows, self._tracing  # not the step, which keeps what is traced

        def traced() -> tuple[Graph, Observed]:
            with alone:
                graph, observed = observed_trace(step, specs, states, copied)
            kept = tuple(
                replace(s, draws=taken, initial=None if follows else s.initial) if s.name == random_keys.KEY else s
                for s in graph.states
            )
            return replace(graph, states=kept), observed

        return of_traces(traced, self.device, "step")

    def _program(self, name: Hashable, function: Half, batch: Sequence[Any]) -> Program:
        key = (name, *map(form, batch))
        if key not in self._models:
            names = called_names(self._loss, self._given, len(batch), self._first)
            self._models[key] = self._traced(function, batch, self._first, names)
        return self._models[key].program()

    def _any_program(self) -> Program:
        """One of the Programs, which all have the same states."""
        return next(iter(self._models.values())).program()

    def _run(self, batch: Sequence[Any]) -> MaybeAwaitable[Any]:
        started = self._started("step", self._functions._checked, batch)
        return map_result(started, lambda found: told(self._checks.passed(found)))

    def _evaluation(self, batch: Sequence[Any]) -> MaybeAwaitable[Any]:
        started = self._started("evaluate", self._functions._evaluated, batch)
        return map_result(started, lambda found: told(self._checks.passed(found, learning=False)))

    def _started(self, name: Hashable, function: Half, batch: Sequence[Any]) -> MaybeAwaitable[dict[str, np.ndarray]]:
        """The outputs of a function of a batch and the states. name: the function's, which has a Program for each form of the
        batch."""
        refuse_when_traced("a call of a TrainStep", "call it outside of the function")
        program = self._program(name, function, batch)
        if self._session is None:
            self._session = program.session()
            if not self._follows:  # where the Program was traced before it had a sequence of its own
                self._session.write(random_keys.KEY, self._first[random_keys.KEY])
        names = [p.name for p in program.outputs]
        # An array's type is that of its Tensor in the trace: float64 is float32 there.
        given = [a.astype(p.dtype.numpy, copy=False) for a, p in zip(arrays_of(batch), program.inputs, strict=True)]
        return map_result(program.start(given, self._session), lambda found: dict(zip(names, found, strict=True)))

    # The functions of which the Programs are traces.

    def _step(self, batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        told, grads, seen = self._differentiated(batch, states)
        told.pop(OUT_OF_RANGE, None)
        return told, self._updated(seen, grads, states, None)

    def _checked(self, batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        told, grads, seen = self._differentiated(batch, states)
        return self._guarded(told, seen, grads, states)

    def _guarded(
        self, outputs: dict[str, Tensor], seen: Module, grads: Mapping[str, Tensor], states: Mapping[str, Tensor]
    ) -> Traced:
        kind = self._checks.kind
        norm = None if kind == "ignore" else norm_of(grads, states.get(SCALE))
        outputs, passed = checked(kind, outputs, norm)
        return outputs, self._updated(seen, grads, states, passed)

    def _evaluated(self, batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        model = self._placed(lambda name: states[MODEL + name]).eval()
        with changing(self._given, model), keeping_nothing(model, *batch), collecting(self._checks.texts) as flags:
            loss, rest = self._measured(model, *batch)
        return checked("ignore", {"loss": loss, **rest, **_flagged(flags)}, None)[0], _but_key(states)

    def _first_half(self, batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        key = apart(_after(states[random_keys.KEY], 1)) + random_keys.as_array((0, self._replica))
        with in_place_of_shared(key):
            told, grads, seen = self._differentiated(batch, states)
        after = by_name(seen, self._names)
        flat = concat([g.cast(float32).reshape(-1) for g in grads.values()])
        changed = {BUFFERS + n: x for n, x in after.items() if x._value is not states[MODEL + n]._value}
        told, _ = checked("ignore", told, None)
        return {**told, GRADIENTS: flat, **changed}, states

    def _second_half(self, buffers: Sequence[str], batch: Sequence[Any], states: Mapping[str, Tensor]) -> Traced:
        gradients, loss, *given = (x for x in batch if isinstance(x, Tensor))
        new = dict(zip(buffers, given, strict=True))
        before = {name: new.get(name, states[MODEL + name]) for name in self._names.values()}
        grads: dict[str, Tensor] = {}
        at = 0
        for path in self._trained:
            x = before[self._names[path]]
            grads[path] = gradients[at : at + x.numel()].reshape(*x.shape).cast(x.dtype)
            at += x.numel()
        key = _after(states[random_keys.KEY], 1)
        told, after = self._guarded({"loss": loss}, self._placed(before.__getitem__), grads, states)
        return told, {random_keys.KEY: key, **after}

    def _differentiated(
        self, batch: Sequence[Any], states: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Module]:
        """What a step tells, the gradients by path, and the model with new running statistics."""
        model = self._placed(lambda name: states[MODEL + name])
        with changing(self._given, model):
            ((_, (told, seen)), grads) = value_and_grad(self._objective, has_aux=True)(model, batch, states.get(SCALE))
        return dict(told), dict(grads.items()), seen

    def _updated(
        self, seen: Module, grads: Mapping[str, Tensor], states: Mapping[str, Tensor], passed: Tensor | None
    ) -> dict[str, Tensor]:
        """The states but the key after an update of a model, the running statistics of which are new already. passed: where not,
        they stay; None: they never do."""
        scale = states.get(SCALE)
        more: dict[str, Tensor] = {}
        if scale is not None:
            finite = all_finite(grads.values())
            passed = finite if passed is None else passed & finite
            more[SCALE] = next_scale(scale, finite)
        new = {
            BUFFERS + n: x for n, x in by_name(seen, self._names).items() if x._value is not states[MODEL + n]._value
        }
        given = {**_but_key(states), **new, **{GRADIENTS + path: g for path, g in grads.items()}}
        kept = [name for name in states if name not in (random_keys.KEY, SCALE)]
        # `debug` sees what is computed outside of branches only.
        on = self.device.eager
        branches = on.reads_now and not execution_of(on.target).fuses and not looking()
        return {**where_passed(passed, functools.partial(self._update, tuple(grads)), given, kept, branches), **more}

    def _update(self, paths: Sequence[str], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The model's states and the optimiser's after an update, of those before, new running statistics, and the gradients of the
        parameters at these paths."""
        scale = tensors.get(SCALE)
        grads = {path: tensors[GRADIENTS + path] for path in paths}
        unscaled = grads if scale is None else {path: g / scale[0] for path, g in grads.items()}
        seen = self._placed(lambda name: tensors.get(BUFFERS + name, tensors[MODEL + name]))
        before = {k.removeprefix(OPTIMIZER): x for k, x in tensors.items() if k.startswith(OPTIMIZER)}
        updated, after = self._optimizer.step(seen, unscaled, before)
        model = {MODEL + name: x for name, x in by_name(updated, self._names).items()}
        return {**model, **{OPTIMIZER + name: x for name, x in after.items()}}

    def _objective(self, model: Module, batch: Sequence[Any], scale: Tensor | None) -> tuple[Tensor, Any]:
        """The loss that is differentiated, and (what a step tells, the model with new running statistics)."""
        computing = model.cast(float16) if self._half else model
        given = [halved(x) for x in batch] if self._half else batch
        kept = keeping_nothing(computing, *given)
        with (
            changing([model, *batch], [computing, *given]),
            kept,
            observing() as seen,
            collecting(self._checks.texts) as flags,
        ):
            found = self._loss(computing, *given)
        value, told = found if isinstance(found, tuple) and len(found) == 2 else (found, {})
        if not isinstance(value, Tensor) or not isinstance(told, Mapping) or "loss" in told:
            raise InputError(
                f"the loss function returned {found!r:.80}, expected a Tensor of one number, or a pair of it and a dict of "
                'tensors, of which none is called "loss"'
            )
        check_reached(model, value)
        value = value.cast(float32)
        after = with_buffers(model, computing.with_modules(seen))
        return value if scale is None else value * scale[0], ({"loss": value, **told, **_flagged(flags)}, after)

    # --- states ---

    def _read(self, name: str) -> np.ndarray:
        """A copy of a state."""
        return resolve(self._fetch(name), "await step.state_async()")

    def _fetch(self, name: str) -> MaybeAwaitable[np.ndarray]:
        refuse_when_traced(
            "a state or the model of a TrainStep",
            "take step.model outside of the function, and pass it as an argument or as a part of the batch",
        )
        return self._first[name].copy() if self._session is None else self._session.fetch(name)

    def _begin(self, sequence: random_keys.Words) -> None:
        """Draw of this sequence from now on."""
        self._follows = False
        self._first[random_keys.KEY] = random_keys.as_array(sequence)
        if self._session is not None:
            self._session.write(random_keys.KEY, self._first[random_keys.KEY])

    def _own_sequence(self) -> None:
        """See `seed` in the class's docstring."""
        if self._follows:
            self._begin(random_keys.begun(random_keys.new_seed()))

    def _initial(self, model: Module) -> dict[str, np.ndarray]:
        found = {MODEL + name: np.array(t.numpy()) for name, t in by_name(model, self._names).items()}
        for name, t in self._optimizer.init(model.to("numpy")).items():
            found[OPTIMIZER + name] = t.numpy()
        found[random_keys.KEY] = random_keys.as_array((0, 0))  # until it has a sequence of its own
        if self._half:
            found[SCALE] = np.array([FIRST_SCALE, 0], np.float32)
        return found

    def _template(self) -> Module:
        """The model, with what its lists and dicts hold now, in the mode in which it is trained."""
        present = self._given.state_dict()
        for path in [*self._tensors, *present]:
            if present.get(path) is not self._tensors.get(path):
                raise InputError(
                    f"TrainStep: the model's tensor {path} is another one than when the step was made; expected the same one, as the "
                    "step has weights of its own: make a new TrainStep of the model"
                )
        return self._given.train() if self._training else self._given

    def _placed(self, place: Callable[[str], Tensor]) -> Module:
        """The model with place(name) for each of its tensors."""
        names = {id(t._value): self._names[path] for path, t in self._tensors.items()}
        return with_parts(
            self._template(), lambda part: place(names[id(part._value)]) if isinstance(part, Tensor) else part
        )


def _flagged(flags: Flags) -> dict[str, Tensor]:
    """What a step's first part tells of indices out of range."""
    return {} if flags.code is None else {OUT_OF_RANGE: flags.code}


def _after(key: Tensor, count: int) -> Tensor:
    """What is left of a sequence after so many keys; with 1, also its next key."""
    return key + random_keys.as_array(random_keys.after((0, 0), count)) if count else key


def _but_key(states: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: x for name, x in states.items() if name != random_keys.KEY}


def told(outputs: Mapping[str, np.ndarray]) -> Any:
    """What calling a step gives: the loss, or (loss, what else the loss function tells)."""
    rest = {name: x for name, x in outputs.items() if name != "loss"}
    loss = float(outputs["loss"])
    return (loss, rest) if rest else loss


def _some(names: Sequence[str] | set[str]) -> str:
    return ", ".join(map(repr, sorted(names)[:5])) or "nothing"
