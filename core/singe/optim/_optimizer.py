"""Optimizer: what all optimisers share: which options a parameter has, and how models, gradients and states are walked.

An optimiser is its options, and nothing else; what it remembers is a dict of tensors that the caller keeps:

    opt = sg.optim.AdamW(lr=1e-3, groups={"head.*": {"lr": 1e-2, "weight_decay": 0}})
    state = opt.init(model)
    model, state = opt.step(model, grads, state)

`step` is Tensor operations only, so that it can be traced into one Program, of which the state and the weights are states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from functools import wraps
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from ..dtypes import DType, float32, float64
from ..errors import InputError, ShapeError
from ..hints import check_arguments, suggest
from ..late_dataclass import dataclass
from ..nn import Module
from ..nn._module import matches
from ..shapes import same_form, show
from ..tensors.functions.creation import full, zeros
from ..tensors.tensor import Tensor
from ._gradients import beside, gradient_of
from ._schedule import Rate, rate_at

M = TypeVar("M")
"""A Module, or a Tensor, or a list, tuple or dict of them."""

State = dict[str, Tensor]
COUNT: Final = "step"
"""The name in the state of the number of updates made."""


F = TypeVar("F", bound=Callable[..., Any])


def not_alone(step: F) -> F:
    """The method `step` of an optimiser; called without arguments, as PyTorch's, it says what to write."""

    @wraps(step)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        if not args and not named:
            raise InputError(f"{type(self).__name__}.step: got no model{suggest('Optimizer', 'step')}")
        return step(self, *args, **named)

    return checked  # pyright: ignore[reportReturnType]


def _without_parameters(name: str, argument: str) -> str:
    return (
        f"{name}: got {argument}, expected a learning rate or a schedule first. An optimiser does not hold parameters: they are "
        "given to init(model) and step(model, grads, state), or with the model to a TrainStep"
    )


class Held(Module, inline="model"):
    """A model that may be a Tensor or a container, as a Module: parameters keep their paths in it."""

    model: Any

    def __init__(self, model: Any) -> None:
        self.model = model


@dataclass(frozen=True)
class Optimizer(ABC):
    """The base of the optimisers that treat each parameter by itself.

    groups: other options for some parameters: a pattern of paths, as in "head.*" or "*.bias", ↦ options. All patterns that
    match a path count; of two that give the same option, the later one.
    """

    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, kw_only=True)

    def __new__(cls, *args: Any, **named: Any) -> Self:
        if args and not (callable(args[0]) or isinstance(args[0], Real)):
            raise InputError(_without_parameters(cls.__name__, f"{args[0]!r:.60}"))
        if "params" in named:
            raise InputError(_without_parameters(cls.__name__, "params=…"))
        check_arguments("optimizer argument", cls.__name__, named.keys() - {f.name for f in fields(cls)})
        return super().__new__(cls)

    def __post_init__(self) -> None:
        names = [f.name for f in fields(self) if f.name != "groups"]
        for pattern, options in self.groups.items():
            unknown = [name for name in options if name not in names]
            if unknown:
                raise InputError(
                    f"{type(self).__name__}: the group {pattern!r} has {', '.join(map(repr, unknown))}; "
                    f"expected some of {', '.join(names)}"
                )
            self._with(options)
        self._check()

    if not TYPE_CHECKING:  # which would take every name for an option

        def __getattr__(self, name: str) -> Any:
            what = type(self).__name__
            raise AttributeError(f"{what} has no {name!r}{suggest('Optimizer', name)}", name=name, obj=self)

    # --- what callers use ---

    def init(self, model: Any) -> State:
        """The state before the first update: the number of updates made, and moments of each parameter."""
        state: State = {}
        for path, parameter, own in self._parameters(model):
            if not state:
                state[COUNT] = zeros((), dtype="int32", device=parameter.device)
            for name, value in own._moments(parameter).items():
                state[key(name, path)] = full(
                    parameter.shape, value, dtype=wide(parameter.dtype), device=parameter.device
                )
        return state

    @not_alone
    def step(self, model: M, grads: Any, state: Mapping[str, Tensor]) -> tuple[M, State]:
        """The model after one update, and the state after it.

        grads: Gradients, or a dict of them by path. A parameter without a gradient stays as it is, and so do its moments.
        """
        count = held(state, COUNT)
        after = {**state, COUNT: count + 1}
        shared: dict[tuple[tuple[str, ...], Any], Any] = {}
        new: dict[Tensor, Tensor] = {}
        parameters = self._parameters(model)
        if isinstance(grads, Mapping) and (unknown := grads.keys() - Held(model).state_dict().keys()):
            raise InputError(
                f"there are gradients of {listed(sorted(unknown))}, which the model does not have; expected those of this model, or of a copy of it"
            )
        for path, parameter, own in parameters:
            g = gradient_of(grads, path, parameter)
            if g is None:
                continue
            if not same_form(g.shape, parameter.shape):
                raise ShapeError(
                    f"the gradient of {path!r} has the shape {show(g.shape)}, expected {show(parameter.shape)}"
                )
            moments = {name: held(state, key(name, path)) for name in own._moments(parameter)}
            alike = self._matching(path), parameter.device
            if alike not in shared:
                shared[alike] = own._factors(beside(count, parameter))
            value, moments = own._update(elements(parameter), elements(g), moments, shared[alike])
            new[parameter] = successor(parameter, value)
            after |= {key(name, path): x for name, x in moments.items()}
        if parameters and not new and len(grads):
            raise InputError(
                f"{type(self).__name__}.step: none of the gradients is of a parameter of the model: {grads!r:.300}"
                "; expected those of this model, or of a copy of it"
            )
        return Held(model).map(lambda t: new.get(t, t)).model, after

    def rate(self, step: Any) -> Any:
        """The learning rate of the update that follows `step` updates, for parameters of no group."""
        return rate_at(self.lr, step)

    def with_rates(self, change: Callable[[Rate], Rate]) -> Self:
        """This optimiser with other learning rates, in its groups, too."""

        def changed(options: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: change(x) if name == "lr" else x.with_rates(change) if isinstance(x, Optimizer) else x
                for name, x in options.items()
            }

        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "groups"}
        return replace(self, groups={p: changed(options) for p, options in self.groups.items()}, **changed(own))

    # --- what an optimiser defines ---

    lr: Rate

    @abstractmethod
    def _check(self) -> None:
        """Refuse options that make no sense."""

    @abstractmethod
    def _moments(self, parameter: Tensor) -> Mapping[str, float]:
        """The names of what is remembered of a parameter, and the number with which each is filled at first."""

    def _factors(self, count: Tensor) -> Any:
        """What all parameters with the same options share, from the number of updates made before."""
        return self.rate(count)

    @abstractmethod
    def _update(self, x: Tensor, g: Tensor, m: Mapping[str, Tensor], factors: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """The new value of a parameter, and its new moments, from its value, its gradient and its moments."""

    # --- groups ---

    def _parameters(self, model: Any) -> list[tuple[str, Tensor, Self]]:
        """(path, parameter, the optimiser with the options of its groups) of each parameter."""
        found = list(Held(model).named_parameters())
        if not found:
            raise InputError(
                f"the model has no parameters to optimise: got {model!r:.80}; expected a Module with parameters of a float type"
            )
        idle = [pattern for pattern in self.groups if not any(matches(path, pattern) for path, _ in found)]
        if idle:
            raise InputError(
                f"groups: {', '.join(map(repr, idle))} matches no parameter; there are {listed([p for p, _ in found])}"
            )
        by_patterns: dict[tuple[str, ...], Self] = {}
        for path, _ in found:
            matching = self._matching(path)
            if matching not in by_patterns:
                options = {name: value for p in matching for name, value in self.groups[p].items()}
                by_patterns[matching] = self._with(options)
        return [(path, parameter, by_patterns[self._matching(path)]) for path, parameter in found]

    def _matching(self, path: str) -> tuple[str, ...]:
        return tuple(pattern for pattern in self.groups if matches(path, pattern))

    def _with(self, options: Mapping[str, Any]) -> Self:
        return replace(self, groups={}, **options)

    def _within(self, name: str, low: float, high: float | None = None) -> None:
        """Refuse an option outside low ≤ x < high; a function, such as a schedule, is not looked at."""
        given = getattr(self, name)
        for x in given if isinstance(given, (tuple, list)) else [given]:
            if not callable(x) and not (isinstance(x, Real) and low <= float(x) and (high is None or float(x) < high)):
                expected = f"at least {low}" + ("" if high is None else f" and less than {high}")
                raise InputError(f"{type(self).__name__}: got {name}={given!r}, expected {expected}")


def key(name: str, path: str) -> str:
    """The name in the state of a moment of a parameter."""
    return f"{name}.{path}" if path else name


def elements(x: Tensor) -> Tensor:
    """The elements of a parameter or a gradient as updates compute with them: wide, and not part of a gradient."""
    return x.detach().cast(wide(x.dtype))


def successor(parameter: Tensor, value: Tensor) -> Tensor:
    """A new value of a parameter: of its dtype, and asking for its gradient if the parameter does."""
    value = value.cast(parameter.dtype)
    return value.require_grad() if parameter.requires_grad else value


def wide(kind: DType) -> DType:
    """The type in which parameters of a type are updated, and that of their moments."""
    return float64 if kind is float64 else float32


def held(state: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in state:
        raise InputError(
            f"the state has no {name!r}; it has {listed(list(state))}. opt.init(model) makes one for this optimiser"
        )
    return state[name]


def listed(names: list[str], most: int = 8) -> str:
    return (", ".join(map(repr, names[:most])) or "nothing") + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )
