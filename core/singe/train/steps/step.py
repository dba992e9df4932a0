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

import functools
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from ...awaitables import MaybeAwaitable, map_result, resolve, resolve_async
from ...errors import DTypeError, InputError, ShapeError
from ...late_dataclass import dataclass
from ...model.model import Model
from ...model.program import Program
from ...nn import Module
from ...runtime import random_keys
from ...runtime.decorators import Fusion
from ...runtime.device import Device
from ...runtime.devices import device as open_device
from ...runtime.traced import refuse_when_traced
from ...shapes import show
from ...tensors.tensor import Tensor
from .batches import items_of
from .compiled import CompiledRuns
from .functions import BUFFERS, GRADIENTS, StepFunction, StepFunctions
from .nonfinite import Nonfinite, NonfiniteChecks
from .objective import Loss, checked_model
from .optimizers import RATE_SCALE, averages_of, observed, observed_names, optimizer_of
from .several import RoutedRuns, refuse_several, spread_over
from .states import MODEL, PRECISIONS

Precision = Literal["float32", "float16", "bfloat16"]
_WHOLE: Final = "a step in one piece: await step.run_async(…)"


@dataclass(frozen=True, eq=False)
class Share:
    """What one of several replicas adds to a step."""

    items: int
    """How long its part of the batch is."""
    values: dict[str, np.ndarray]
    """The loss, and what else the loss function returns."""
    gradients: np.ndarray | Tensor
    """Of all parameters, one behind the other, in float32; a Tensor, where they stay on the step's device."""
    buffers: dict[str, np.ndarray]
    """The new values of those that the step changes: running statistics."""
    finite: bool
    """Whether its loss and gradients are; True, where `nonfinite` checks none."""


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
    small gradients do not vanish. A step whose gradients overflow changes no weight. "bfloat16": the same without the scale, as it has
    the range of float32.
    nonfinite: what becomes of a step whose loss, or norm of the gradients, is NaN or infinite. "stop" raises NonFinite, "skip"
    goes on, and `skipped` counts it; either way no weight has changed. "ignore" does not look.

    device: with sg.Router(…), a model whose parts are on several of its devices is trained there: each device computes its part and
    updates its weights, and the model's forward moves what it hands on. Arrays of a batch are on the first.

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
        if precision not in PRECISIONS:
            raise InputError(
                f"TrainStep: got precision={precision!r}, expected one of {', '.join(map(repr, PRECISIONS))}"
            )
        checked_model("TrainStep", model)
        self._checks: Final = NonfiniteChecks(nonfinite)
        self._optimizer: Final = optimizer_of(optimizer, clip, accumulate)
        spread = spread_over(model, device)
        self.device: Final = spread or open_device(device)
        self._functions: Final = StepFunctions(
            model, self._optimizer, loss, self._checks, computes_in=PRECISIONS[precision], training=training, replica=replica,
            device=None if spread else self.device,
        )  # fmt: skip
        self._runs: Final = (
            RoutedRuns(self._functions, spread) if spread else CompiledRuns(self._functions, self.device)
        )
        if seed is not None:
            self.seed(seed)

    def __repr__(self) -> str:
        numbers = sum(math.prod(x.shape) for x in self._functions.given.parameters())
        return f"<TrainStep of {type(self._functions.given).__name__} on {self.device.label}: numbers: {numbers}, {self._optimizer!r:.80}>"

    def __call__(self, *batch: Any) -> Any:
        """Train on a batch: arrays, Tensors, Modules, or dicts of them, in the order in which the loss function takes them."""
        return resolve(self._run(batch), "await step.run_async(…)")

    async def run_async(self, *batch: Any) -> Any:
        """A step in a page, where results must be awaited."""
        return await resolve_async(self._run(batch))

    def evaluate(self, *batch: Any) -> Any:
        """The loss on a batch in inference mode, in float32: a number, or (number, dict of arrays) of what the loss function returns;
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
        state = {path: self._read(MODEL + name) for path, name in self._functions.names.items()}
        return self._functions.template().with_state(state).eval()

    def averaged(self) -> Module:
        """The model with the averages that `sg.optim.Averaged` keeps in the place of its weights; otherwise as `model`."""
        model = self.model
        own = {path: p.dtype.numpy for path, p in model.named_parameters()}
        names = averages_of(self._optimizer, model)
        return model.with_state({p: self._read(n).astype(own[p], copy=False) for p, n in names.items()}, strict=False)

    def lent(self, on: Fusion) -> Module:
        """The model in inference mode on a device around this step's, without a copy: its weights are the states themselves, which
        the next step changes."""
        found = self._runs.lent(on)
        return self.model.to(on) if found is None else found.eval()

    def seed(self, seed: int) -> None:
        """Draw of a sequence of its own from now on, that of a seed: equal seeds, equal numbers."""
        self._begin(random_keys.begun(random_keys.checked_seed(seed, "TrainStep")))

    def state(self) -> dict[str, np.ndarray]:
        """Copies of all that the next step depends on, by name: weights, moments, counts, the key of what it draws next."""
        self._own_sequence()
        return {name: self._read(name) for name in self._runs.states}

    async def state_async(self) -> dict[str, np.ndarray]:
        """`state` in a page, where results must be awaited."""
        self._own_sequence()
        return {name: await resolve_async(self._fetch(name)) for name in self._runs.states}

    def resume(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a `state`."""
        present = self._runs.states
        missing, unknown = present.keys() - state.keys(), state.keys() - present.keys()
        if missing or unknown:
            raise InputError(
                f"resume: the state is not one of this step: missing {_some(missing)}, unknown {_some(unknown)}; "
                "the model, the optimiser and the precision must be the same"
            )
        for name, old in present.items():
            given = np.asarray(state[name])
            if given.shape != old.shape:
                raise ShapeError(f"resume: {name!r} has the shape {show(given.shape)}, expected {show(old.shape)}")
            if given.dtype != old.dtype:
                raise DTypeError(f"resume: {name!r} is {given.dtype}, expected {old.dtype}")
        self._runs.resume(state)

    def observe(self, value: float) -> float:
        """Tell the optimiser, a `sg.optim.ReduceLROnPlateau`, the value of an epoch, such as the loss of validation. Returns by what
        the learning rate is multiplied from now on."""
        states = {name: self._read(name) for name in observed_names(self._optimizer)}
        return self._observed(value, states)

    async def observe_async(self, value: float) -> float:
        """`observe` in a page, where results must be awaited."""
        states = {name: await resolve_async(self._fetch(name)) for name in observed_names(self._optimizer)}
        return self._observed(value, states)

    def _observed(self, value: float, states: Mapping[str, np.ndarray]) -> float:
        after = observed(self._optimizer, value, states)
        self._runs.write(after)
        return float(after[RATE_SCALE])

    def gradients(self, *batch: Any) -> dict[str, np.ndarray]:
        """The gradients of each parameter on a batch by path, as the next step on it computes them before it clips them, with the same
        draws. Nothing is learned."""
        self._check_one_device("gradients")
        self._own_sequence()
        found = resolve(self._started("gradients", self._functions.gradients, batch), _WHOLE)
        outputs = self._checks.passed(found, learning=False)
        return {name.removeprefix(GRADIENTS): x for name, x in outputs.items() if name.startswith(GRADIENTS)}

    def program(self, *batch: Any) -> Program:
        """The Program of a step on batches of these shapes and types."""
        return self._runs.program("step", self._functions.checked, batch)

    def as_model(self, *batch: Any, names: Sequence[str] | None = None) -> Model:
        """A step on batches of these shapes as a Model, which starts with the present states: `sg.export` writes its bundle,
        and in a page `model.step({x, y})` trains. The inputs are called as `names` says, or like the parameters of the loss
        function; those of a Module or a dict have its name and the paths in it. What it draws goes on where a step with a sequence
        of its own is; otherwise it is of the shared sequence, and other numbers at each load of the page."""
        return self._runs.model(self._functions.step, batch, names)

    # --- one of several replicas ---

    def _trace_in_turn(self, other: TrainStep) -> None:
        """Trace only while another step of the same model does not."""
        self._functions.trace_in_turn(other._functions)

    @property
    def gradient_count(self) -> int:
        """How many numbers the gradients of a share are."""
        return self._functions.gradient_count

    def share(self, *batch: Any, on_device: bool = False) -> Share:
        """The first half of a step: what a part of a batch adds to it. No weight changes. on_device: the gradients stay where they
        are, as a Tensor."""
        self._check_one_device("share")
        self._own_sequence()
        started = self._started("share", self._functions.first_half, batch, (GRADIENTS,) if on_device else ())
        outputs = resolve(started, _WHOLE)
        finite = self._checks.finite(outputs)
        found = self._checks.passed(outputs, learning=False)
        gradients = found.pop(GRADIENTS)
        buffers = {name.removeprefix(BUFFERS): found.pop(name) for name in [*found] if name.startswith(BUFFERS)}
        return Share(items_of(batch), found, gradients, buffers, finite)

    def update(self, gradients: np.ndarray | Tensor, buffers: Mapping[str, np.ndarray], loss: float = 0.0) -> None:
        """The second half: the update of the weights, by the averages of all replicas; a Tensor on the step's device is used where
        it is. loss: theirs; one that is not finite is treated as `nonfinite` says."""
        self._check_one_device("update")
        self._own_sequence()
        half = functools.partial(self._functions.second_half, tuple(buffers))
        given = [gradients, np.float32(loss), *buffers.values()]
        self._checks.passed(resolve(self._started(("update", *buffers), half, given), _WHOLE))

    # --- what runs ---

    def _run(self, batch: Sequence[Any]) -> MaybeAwaitable[Any]:
        started = self._started("step", self._functions.checked, batch)
        return map_result(started, lambda found: loss_and_extras(self._checks.passed(found)))

    def _evaluation(self, batch: Sequence[Any]) -> MaybeAwaitable[Any]:
        started = self._started("evaluate", self._functions.evaluated, batch)
        return map_result(started, lambda found: loss_and_extras(self._checks.passed(found, learning=False)))

    def _started(
        self, name: Hashable, function: StepFunction, batch: Sequence[Any], kept: Collection[str] = ()
    ) -> MaybeAwaitable[dict[str, Any]]:
        """The outputs of a function of a batch and the states. name: the function's. kept: the outputs that stay on the device."""
        refuse_when_traced("a call of a TrainStep", "call it outside of the function")
        return self._runs.start(name, function, batch, kept)

    # --- states ---

    def _read(self, name: str) -> np.ndarray:
        """A copy of a state."""
        return resolve(self._fetch(name), "await step.state_async()")

    def _fetch(self, name: str) -> MaybeAwaitable[np.ndarray]:
        refuse_when_traced(
            "a state or the model of a TrainStep",
            "take step.model outside of the function, and pass it as an argument or as a part of the batch",
        )
        return self._runs.fetch(name)

    def _begin(self, sequence: random_keys.Words) -> None:
        """Draw of this sequence from now on."""
        self._runs.begin(sequence)

    def _own_sequence(self) -> None:
        """See `seed` in the class's docstring."""
        if self._runs.follows:
            self._begin(random_keys.begun(random_keys.new_seed()))

    def _check_one_device(self, what: str) -> None:
        if isinstance(self._runs, RoutedRuns):
            refuse_several(what)


def loss_and_extras(outputs: Mapping[str, np.ndarray]) -> Any:
    """What calling a step gives: the loss, or (loss, what else the loss function returns)."""
    rest = {name: x for name, x in outputs.items() if name != "loss"}
    loss = float(outputs["loss"])
    return (loss, rest) if rest else loss


def _some(names: Sequence[str] | set[str]) -> str:
    return ", ".join(map(repr, sorted(names)[:5])) or "nothing"
