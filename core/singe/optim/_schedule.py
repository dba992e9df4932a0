"""Schedules: the learning rate as a function of how many updates were made before.

A schedule takes a Python int and gives a float, or takes an integer tensor and gives a float32 one. So a training step that
is compiled holds its schedule, and is compiled once. Names and arguments are those of torch.optim.lr_scheduler, with the
learning rate in the place of the optimiser: `CosineAnnealingLR(1e-3, T_max=1000)`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Final, TypeAlias

from ..dtypes import float32
from ..errors import InputError
from ..late_dataclass import dataclass
from ..tensors.functions.creation import where
from ..tensors.tensor import Tensor

Rate: TypeAlias = "float | Callable[[Any], Any]"
"""A learning rate: a number, or a function of the number of updates made before, such as a Schedule."""

LONGEST: Final = 1 << 31
"""More updates than a schedule counts."""


def rate_at(rate: Rate, step: int | Tensor) -> Any:
    """The learning rate for the update that follows `step` updates."""
    return rate(step) if callable(rate) else rate


class Schedule(ABC):
    """A learning rate that depends on the number of updates made before. `a * b` is the product of two, or with a number."""

    def __post_init__(self) -> None:
        rate = getattr(self, "lr", 0.0)
        if not callable(rate) and not (isinstance(rate, Real) and float(rate) >= 0):
            raise InputError(f"{type(self).__name__}: got lr={rate!r}, expected at least 0")

    @abstractmethod
    def __call__(self, step: Any) -> Any:
        """The learning rate for the update that follows `step` updates: of an int a float, of a tensor a float32 one."""

    def __mul__(self, other: Rate) -> ChainedScheduler:
        return ChainedScheduler((self, other))

    __rmul__ = __mul__


@dataclass(frozen=True)
class ConstantLR(Schedule):
    """lr · factor for the first total_iters updates, then lr."""

    lr: Rate
    factor: float = 1 / 3
    total_iters: int = 5

    def __call__(self, step: Any) -> Any:
        return _choose(step < self.total_iters, self.factor, 1.0) * rate_at(self.lr, step)


@dataclass(frozen=True)
class LinearLR(Schedule):
    """From lr · start_factor to lr · end_factor in total_iters updates, then the latter."""

    lr: Rate
    start_factor: float = 1 / 3
    end_factor: float = 1.0
    total_iters: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "total_iters")

    def __call__(self, step: Any) -> Any:
        done = _real(smaller(step, self.total_iters)) / self.total_iters
        return (self.start_factor + (self.end_factor - self.start_factor) * done) * rate_at(self.lr, step)


@dataclass(frozen=True)
class PolynomialLR(Schedule):
    """lr · (1 − step / total_iters) ** power, which is 0 from total_iters updates on."""

    lr: Rate
    total_iters: int = 5
    power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "total_iters")

    def __call__(self, step: Any) -> Any:
        left = _real(self.total_iters - smaller(step, self.total_iters)) / self.total_iters
        return left**self.power * rate_at(self.lr, step)


@dataclass(frozen=True)
class ExponentialLR(Schedule):
    """lr · gamma ** step."""

    lr: Rate
    gamma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_gamma(self, self.gamma)

    def __call__(self, step: Any) -> Any:
        return _power(self.gamma, _real(step)) * rate_at(self.lr, step)


@dataclass(frozen=True)
class StepLR(Schedule):
    """lr · gamma ** (how many times step_size updates were made)."""

    lr: Rate
    step_size: int
    gamma: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "step_size")
        _check_gamma(self, self.gamma)

    def __call__(self, step: Any) -> Any:
        return _power(self.gamma, _quotient(step, self.step_size)) * rate_at(self.lr, step)


@dataclass(frozen=True)
class MultiStepLR(Schedule):
    """lr · gamma ** (how many of the milestones were reached)."""

    lr: Rate
    milestones: Sequence[int]
    gamma: float = 0.1

    def __call__(self, step: Any) -> Any:
        factor: Any = 1.0
        for passed, milestone in enumerate(sorted(self.milestones), 1):
            factor = _choose(step >= milestone, self.gamma**passed, factor)
        return factor * rate_at(self.lr, step)


@dataclass(frozen=True)
class CosineAnnealingLR(Schedule):
    """eta_min + (lr − eta_min) · (1 + cos(π · step / T_max)) / 2: half a wave down in T_max updates, the next T_max up."""

    lr: float
    T_max: int
    eta_min: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "T_max")

    def __call__(self, step: Any) -> Any:
        return _half_wave(self.lr, self.eta_min, step % (2 * self.T_max), self.T_max)


@dataclass(frozen=True)
class CosineAnnealingWarmRestarts(Schedule):
    """Half a cosine wave from lr down to eta_min in T_0 updates, then again from lr in T_0 · T_mult, and so on."""

    lr: float
    T_0: int
    T_mult: int = 1
    eta_min: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "T_0", "T_mult")

    def __call__(self, step: Any) -> Any:
        if self.T_mult == 1:
            return _half_wave(self.lr, self.eta_min, step % self.T_0, self.T_0)
        begun: Any = 0
        length: Any = self.T_0
        start, following = self.T_0, self.T_0 * self.T_mult
        while start < LONGEST:
            begun, length = _choose(step >= start, start, begun), _choose(step >= start, following, length)
            start, following = start + following, following * self.T_mult
        return _half_wave(self.lr, self.eta_min, step - begun, length)


@dataclass(frozen=True)
class OneCycleLR(Schedule):
    """One cycle in total_steps updates: from max_lr / div_factor up to max_lr in the first pct_start of them, and then down to
    max_lr / div_factor / final_div_factor, where it stays. With three_phase=True it goes down as long as it went up, to where it
    began, and from there to the end. "cos" is half a cosine wave, "linear" a line. It is the rate alone: the momentum, which
    PyTorch cycles, too, is a fixed option of an optimiser here."""

    max_lr: float
    total_steps: int
    pct_start: float = 0.3
    anneal_strategy: str = "cos"
    div_factor: float = 25.0
    final_div_factor: float = 1e4
    three_phase: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "total_steps")
        for name in ("max_lr", "div_factor", "final_div_factor", "pct_start"):
            given, most = getattr(self, name), 1 if name == "pct_start" else math.inf
            least = "more than 0" if name.endswith("factor") else "at least 0"
            fits = isinstance(given, Real) and (float(given) > 0 or (float(given) == 0 and least == "at least 0"))
            if not fits or not float(given) <= most:
                raise InputError(f"OneCycleLR: got {name}={given!r}, expected {least}{' and at most 1' * (most == 1)}")
        if self.anneal_strategy not in ("cos", "linear"):
            raise InputError(f"OneCycleLR: got anneal_strategy={self.anneal_strategy!r}, expected 'cos' or 'linear'")

    def __call__(self, step: Any) -> Any:
        begin, last = self.max_lr / self.div_factor, self.total_steps - 1
        final = begin / self.final_div_factor
        top = float(self.pct_start * self.total_steps) - 1
        phases = [(top, begin, self.max_lr), (float(last), self.max_lr, final)]
        if self.three_phase:
            down = float(2 * self.pct_start * self.total_steps) - 2
            phases = [phases[0], (down, self.max_lr, begin), (float(last), begin, final)]
        step = smaller(step, last)
        starts = [0.0, *(end for end, _, _ in phases)]
        rates = [self._between(step, start, *phase) for start, phase in zip(starts, phases, strict=False)]
        found = rates[-1]
        for (end, _, _), rate in zip(phases[-2::-1], rates[-2::-1], strict=True):
            found = _choose(step <= math.floor(end), rate, found)
        return found

    def _between(self, step: Any, start: float, end: float, first: float, second: float) -> Any:
        """The rate in a phase that goes from one rate to another."""
        done = (_real(step) - start) / (end - start) if end != start else _real(step) * 0 + 1.0
        if self.anneal_strategy == "linear":
            return first + (second - first) * done
        return second + (first - second) * 0.5 * (1 + _cosine(math.pi * done))


@dataclass(frozen=True)
class NoamLR(Schedule):
    """factor · model_size ** −0.5 · min(n ** −0.5, n · warmup_steps ** −1.5), where n = step + 1: up for warmup_steps
    updates, then down. PyTorch lacks it; it is the schedule of "Attention is all you need"."""

    model_size: int
    warmup_steps: int
    factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "model_size", "warmup_steps")

    def __call__(self, step: Any) -> Any:
        n = _real(step + 1)
        return smaller(n**-0.5, n * self.warmup_steps**-1.5) * (self.factor * self.model_size**-0.5)


@dataclass(frozen=True)
class WarmUp(Schedule):
    """Linear growth to the first rate of another schedule in warmup_steps updates, and then that schedule from its start:
    the update number k of these (from 1) has k / warmup_steps of that rate."""

    lr: Rate
    warmup_steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "warmup_steps")

    def __call__(self, step: Any) -> Any:
        grown = _real(smaller(step + 1, self.warmup_steps)) / self.warmup_steps
        return grown * rate_at(self.lr, larger(step - self.warmup_steps, 0))


@dataclass(frozen=True)
class SequentialLR(Schedule):
    """The first schedule until the first milestone, then the second one from its start, and so on."""

    schedulers: Sequence[Rate]
    milestones: Sequence[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.milestones) != len(self.schedulers) - 1 or list(self.milestones) != sorted(set(self.milestones)):
            raise InputError(
                f"SequentialLR: got {len(self.schedulers)} schedules and the milestones {list(self.milestones)}; expected "
                "rising milestones, one fewer than schedules"
            )

    def __call__(self, step: Any) -> Any:
        found = rate_at(self.schedulers[0], step)
        for milestone, follower in zip(self.milestones, self.schedulers[1:], strict=True):
            found = _choose(step >= milestone, rate_at(follower, larger(step - milestone, 0)), found)
        return found


@dataclass(frozen=True)
class ChainedScheduler(Schedule):
    """The product of schedules, all from the first update on. Give one of them the learning rate, and the others 1."""

    schedulers: Sequence[Rate]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.schedulers:
            raise InputError("ChainedScheduler: got no schedules, expected at least one")

    def __call__(self, step: Any) -> Any:
        return math.prod((rate_at(s, step) for s in self.schedulers[1:]), start=rate_at(self.schedulers[0], step))


# --- arithmetic of Python's numbers and of tensors -------------------------------------------------------------------


def _real(x: Any) -> Any:
    return x.cast(float32) if isinstance(x, Tensor) else float(x)


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return where(condition, yes, no) if isinstance(condition, Tensor) else yes if condition else no


def smaller(x: Any, y: Any) -> Any:
    return _choose(x < y, x, y)


def larger(x: Any, y: Any) -> Any:
    return _choose(x > y, x, y)


def _power(base: float, exponent: Any) -> Any:
    """base ** exponent; of tensors by the logarithm in float64, as the power would multiply the error of a rounded base."""
    return (exponent * math.log(base)).exp() if isinstance(exponent, Tensor) else base**exponent


def _quotient(x: Any, y: int) -> Any:
    """⌊x / y⌋ as a real number; of tensors from a multiple of y, as devices may round x / y up or down."""
    return (_real(x - x % y) / y).round() if isinstance(x, Tensor) else float(x // y)


def _cosine(angle: Any) -> Any:
    return angle.cos() if isinstance(angle, Tensor) else math.cos(angle)


def _half_wave(high: float, low: float, step: Any, length: Any) -> Any:
    return low + (high - low) * 0.5 * (1 + _cosine(math.pi * (_real(step) / _real(length))))


def _positive(schedule: Schedule, *names: str) -> None:
    for name in names:
        given = getattr(schedule, name)
        if not isinstance(given, int) or given < 1:
            raise InputError(f"{type(schedule).__name__}: got {name}={given!r}, expected a whole number of at least 1")


def _check_gamma(schedule: Schedule, gamma: float) -> None:
    if not gamma > 0:
        raise InputError(f"{type(schedule).__name__}: got gamma={gamma!r}, expected a positive number")
