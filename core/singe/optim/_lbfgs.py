"""LBFGS: a quasi-Newton method, for losses that are not noisy. It evaluates the loss several times in a step.

How often it evaluates the loss, and where, depends on what it finds, so it reads losses and slopes, and a step cannot be
traced; `evaluate` is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from ..errors import InputError
from ..late_dataclass import dataclass
from ..tensors.functions.creation import cat, tensor, zeros
from ..tensors.tensor import Tensor
from ._gradients import beside, gradient_of
from ._optimizer import COUNT, Held, State, elements, held, not_alone, successor
from ._wolfe import LinePoint, search

M = TypeVar("M")
CURVED: Final = 1e-10
"""A change of the gradient tells something of the curvature if its product with the move is more."""


@dataclass(frozen=True)
class LBFGS:
    """L-BFGS, as torch.optim.LBFGS; `evaluate` has the place of PyTorch's closure, and is called several times in a step.

        evaluate = sg.value_and_grad(lambda model: loss(model(x), y))
        opt = sg.optim.LBFGS(line_search_fn="strong_wolfe")
        state = opt.init(model)
        model, state = opt.step(model, evaluate, state)

    max_iter: moves in one step. max_eval: evaluations in one step, 1.25 · max_iter if None. line_search_fn: "strong_wolfe",
    or None to move by lr times the direction.
    """

    lr: float = 1.0
    max_iter: int = 20
    max_eval: int | None = None
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    history_size: int = 100
    line_search_fn: str | None = None

    def __post_init__(self) -> None:
        if self.line_search_fn not in (None, "strong_wolfe"):
            raise InputError(f"LBFGS: got line_search_fn={self.line_search_fn!r}, expected 'strong_wolfe' or None")
        for name in ("max_iter", "history_size"):
            if getattr(self, name) < 1:
                raise InputError(f"LBFGS: got {name}={getattr(self, name)!r}, expected at least 1")

    def init(self, model: Any) -> State:
        """The state before the first step: the number of moves made. Later it also has "loss", the loss that was evaluated
        last, and the last moves and changes of the gradient, each as one vector."""
        first = next(iter(Held(model).parameters()), None)
        if first is None:
            raise InputError(
                f"the model has no parameters to optimise: got {model!r:.80}; expected a Module with parameters of a float type"
            )
        return {COUNT: zeros((), dtype="int32", device=first.device)}

    @not_alone
    def step(
        self, model: M, evaluate: Callable[[M], tuple[Tensor, Any]], state: Mapping[str, Tensor]
    ) -> tuple[M, State]:
        """The model after at most max_iter moves, and the state after them.

        evaluate: the loss of a model, and its gradients, as `sg.value_and_grad` gives them.
        """
        line = _Line(model, evaluate)
        moves = _Moves(state, self.history_size)
        most = self.max_iter * 5 // 4 if self.max_eval is None else self.max_eval
        x = line.vector(model)
        loss, gradient = line.evaluated(x)
        evaluations = 1
        for k in range(self.max_iter):
            if _largest(gradient) <= self.tolerance_grad:
                break
            direction = moves.follow(gradient)
            start = LinePoint(0.0, loss, _dot(gradient, direction), gradient)
            moves.length = self.lr * (min(1.0, 1 / gradient.abs().sum().item()) if moves.made == 1 else 1.0)
            if start.slope > -self.tolerance_change:
                break
            reach = _largest(direction)
            if self.line_search_fn is None:
                x = x + moves.length * direction
                if k == self.max_iter - 1:
                    break
                loss, gradient = line.evaluated(x)
                evaluations += 1
            else:
                visit = lambda at, x=x, d=direction: _place(at, *line.evaluated(x + at * d), d)
                found, visits = search(visit, start, moves.length, reach, self.tolerance_change)
                moves.length, loss, gradient = found.at, found.loss, found.gradient
                x = x + found.at * direction
                evaluations += visits
            still = abs(moves.length) * reach <= self.tolerance_change
            if evaluations >= most or still or abs(loss - start.loss) < self.tolerance_change:
                break
        return line.model(x), moves.state(loss, x)


class _Line:
    """A model's parameters as one vector, and the loss as a function of it."""

    def __init__(self, model: Any, evaluate: Callable[[Any], tuple[Tensor, Any]]) -> None:
        self._model: Final = model
        self._evaluate: Final = evaluate
        self._parameters: Final = dict(Held(model).named_parameters())

    def vector(self, model: Any) -> Tensor:
        return self._vector(Held(model).parameters())

    def model(self, x: Tensor) -> Any:
        new: dict[Tensor, Tensor] = {}
        at = 0
        for p in self._parameters.values():
            new[p] = successor(p, beside(x[at : at + p.size].reshape(p.shape), p))
            at += p.size
        return Held(self._model).map(lambda t: new.get(t, t)).model

    def evaluated(self, x: Tensor) -> tuple[float, Tensor]:
        """The loss and its gradient; that of a parameter without one is 0."""
        model = self.model(x)
        loss, grads = self._evaluate(model)
        parts = [
            zeros(p.shape, dtype=p.dtype, device=p.device) if g is None else g
            for path, p in Held(model).named_parameters()
            for g in [gradient_of(grads, path, p)]
        ]
        return loss.item(), self._vector(parts)

    def _vector(self, parts: Iterable[Tensor]) -> Tensor:
        """All elements, on the device of the first parameter."""
        first = next(iter(self._parameters.values()))
        return cat([beside(elements(x).reshape(-1), first) for x in parts])


class _Moves:
    """What is remembered: the last moves, and how the gradient changed by each; the direction of the next move from them."""

    def __init__(self, state: Mapping[str, Tensor], most: int) -> None:
        self.made = int(held(state, COUNT))
        self.length = 0.0
        self._followed: tuple[Tensor, Tensor] | None = None  # the last gradient and direction
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self._most: Final = most
        if self.made:
            self.length = held(state, "length").item()
            self._followed = held(state, "gradient"), held(state, "direction")
            kept = sum(name.startswith("move.") for name in state)
            self._pairs = [(state[f"move.{k}"], held(state, f"change.{k}")) for k in range(kept)]

    def follow(self, gradient: Tensor) -> Tensor:
        """The direction of the move from a place with this gradient, to which the last move led."""
        self.made += 1
        if self._followed is not None:
            before, direction = self._followed
            move, change = self.length * direction, gradient - before
            if _dot(move, change) > CURVED:
                self._pairs = [*self._pairs, (move, change)][-self._most :]
        self._followed = gradient, self._product(-gradient)
        return self._followed[1]

    def _product(self, x: Tensor) -> Tensor:
        """x times the inverse of the Hessian that the moves tell, by the two loops of L-BFGS."""
        shares: list[Tensor] = []
        for move, change in reversed(self._pairs):
            shares.append((move * x).sum() / (move * change).sum())
            x = x - shares[-1] * change
        if self._pairs:
            move, change = self._pairs[-1]
            x = x * ((move * change).sum() / (change * change).sum())
        for (move, change), share in zip(self._pairs, reversed(shares), strict=True):
            x = x + (share - (change * x).sum() / (move * change).sum()) * move
        return x

    def state(self, loss: float, like: Tensor) -> State:
        numbers = {"loss": loss, "length": self.length}
        found = {name: tensor(x, dtype=like.dtype, device=like.device) for name, x in numbers.items()}
        found[COUNT] = tensor(self.made, dtype="int32", device=like.device)
        if self._followed is not None:
            found |= dict(zip(("gradient", "direction"), self._followed, strict=True))
        for k, (move, change) in enumerate(self._pairs):
            found |= {f"move.{k}": move, f"change.{k}": change}
        return found


def _place(at: float, loss: float, gradient: Tensor, direction: Tensor) -> LinePoint:
    return LinePoint(at, loss, _dot(gradient, direction), gradient)


def _dot(x: Tensor, y: Tensor) -> float:
    return (x * y).sum().item()


def _largest(x: Tensor) -> float:
    return x.abs().amax().item()
