"""Layers whose weights are computed from other parameters: of low rank, of a direction and a length, of a bounded norm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..errors import InputError
from ..runtime.random_keys import Rng, one_generator
from ..tensors.tensor import Tensor
from . import init
from ._linear import Linear
from ._module import Module, joined, own_tensors
from ._norm import latest, report
from ._space.conv import ConvTranspose

M = TypeVar("M", bound=Module)
FIRST_TURNS: Final = 15
"""Of the power method, with which a spectral norm begins."""


class _Reparametrized(Module):
    """A layer, and what its weights are computed from. Its other fields and methods are those of the layer with the computed
    weights, for callers that look into it."""

    base: Module

    def weights(self) -> Mapping[str, Tensor]:
        """The computed weights, by their paths in the layer."""
        raise NotImplementedError

    def merged(self) -> Module:
        """The layer with the computed weights."""
        found = self.weights()
        return self.base._mapped(found.get)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.merged()(*args, **kwargs)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or "base" not in self.__dict__ or not hasattr(self.base, name):
                return super().__getattr__(name)
            return getattr(self.merged(), name)


def merged(module: M) -> M:
    """A module in which the layers of `lora`, `weight_norm` and `spectral_norm` are plain layers again, with the weights
    that were computed."""
    found: dict[Module, Module] = {
        part: part.merged() for _, part in module.named_modules() if isinstance(part, _Reparametrized)
    }
    return module.with_modules(found)


# --- low rank --------------------------------------------------------------------------------------------------------


class LoRA(_Reparametrized):
    """A layer, each chosen weight of which has a difference of low rank added: weight + alpha / rank · lora_B @ lora_A."""

    lora_A: dict[str, Tensor]
    lora_B: dict[str, Tensor]
    alpha: float

    def __init__(
        self, base: Module, paths: Sequence[str], rank: int = 8, alpha: float = 8.0, *, rng: Rng = None
    ) -> None:
        rng, state = one_generator(rng), base.state_dict()
        self.base, self.alpha = base, alpha
        self.lora_A, self.lora_B = {}, {}
        for path in paths:
            weight = state[path]
            inputs = math.prod(weight.shape[1:])
            down, up = init.kaiming_uniform((rank, inputs), math.sqrt(5), rng=rng), init.zeros((weight.shape[0], rank))
            self.lora_A[path], self.lora_B[path] = (t.to(weight.device).cast(weight.dtype) for t in (down, up))

    def weights(self) -> Mapping[str, Tensor]:
        state = self.base.state_dict()
        return {path: state[path] + self._difference(path).reshape(*state[path].shape) for path in self.lora_A}

    def _difference(self, path: str) -> Tensor:
        down = self.lora_A[path]
        return (self.lora_B[path] @ down) * (self.alpha / down.shape[0])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if type(self.base) is not Linear:
            return super().forward(*args, **kwargs)
        (x,) = (*args, *kwargs.values())  # through the low rank: cheaper than the sum of the weights, and its gradient
        down, up = self.lora_A["weight"], self.lora_B["weight"]
        return self.base(x) + ((x @ down.T) @ up.T) * (self.alpha / down.shape[0])


def lora(module: M, rank: int = 8, alpha: float = 8.0, patterns: Sequence[str] = (), *, rng: Rng = None) -> M:
    """A module to be fine-tuned with few parameters: all that it has are frozen, and for each chosen weight a difference of
    low rank is learned, which is zero at first (Hu et al., "LoRA", 2021).

    patterns: of the paths of weights with two axes or more, as in `freeze`, such as "*.self_attn.*"; by default the weights
    of all Linear layers. `merged` gives the module with the sums as its weights.
    """
    if not isinstance(module, Module):
        raise InputError(f"lora: got {module!r:.40}, expected a Module, as sg.nn.Linear is")
    if rank < 1:
        raise InputError(f"lora: the rank is {rank}, expected 1 or more")
    state, parts = module.state_dict(), dict(module.named_modules())
    if patterns:
        chosen = {p for p in module._matching("lora", patterns) if state[p].ndim > 1 and state[p].dtype.is_float}
    else:
        chosen = {joined(path, "weight") for path, part in parts.items() if type(part) is Linear}
    if not chosen:
        where = f"that matches {', '.join(patterns)}" if patterns else "in a Linear layer; choose others by patterns="
        raise InputError(
            f"lora: there is no weight of floats with two axes or more {where}; choose layers that have one, as Linear and Conv2d do"
        )
    rng, new = one_generator(rng), dict[Module, Module]()
    for path, part in parts.items():
        own = [p for p in own_tensors(part) if joined(path, p) in chosen]
        if own:
            inside = {p for p in chosen if p.startswith(joined(path, ""))}  # also what the layers in it have
            new[part] = LoRA(
                part, [p.removeprefix(joined(path, "")) for p in state if p in inside], rank, alpha, rng=rng
            )
            chosen -= inside
    made = module.with_modules(new).freeze()
    learned = [
        joined(path, name)
        for path, part in made.named_modules()
        if isinstance(part, LoRA)
        for name in ("lora_A", "lora_B")
    ]
    return made.unfreeze(*learned)


# --- lengths and norms -----------------------------------------------------------------------------------------------


class WeightNorm(_Reparametrized):
    """A layer, of which a weight is base.weight / ‖base.weight‖ · length: a direction and, for each place on the axis `dim`, a
    length."""

    length: Tensor
    name: str
    dim: int | None

    def __init__(self, base: Module, name: str = "weight", dim: int | None = 0) -> None:
        self.base, self.name, self.dim = base, name, dim
        self.length = self._norm(_weight(base, name, "weight_norm"))

    def weights(self) -> Mapping[str, Tensor]:
        weight = self.base.state_dict()[self.name]
        return {self.name: weight * (self.length / self._norm(weight))}

    def _norm(self, weight: Tensor) -> Tensor:
        kept = None if self.dim is None else self.dim % weight.ndim
        return (weight * weight).sum([a for a in range(weight.ndim) if a != kept], keepdims=True).sqrt()


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> WeightNorm:
    """A layer of which the direction and the length of a weight are learned apart (Salimans and Kingma, "Weight
    normalization", 2016). dim: the axis along which there are several lengths; None: there is one."""
    return WeightNorm(module, name, dim)


class SpectralNorm(_Reparametrized, buffers=("u", "v")):
    """A layer, a weight of which is divided by its largest singular value, as a matrix of the axis `dim` and of all others.
    The value is found by turns of the power method: in training by `n_power_iterations` more of them in each run, of which
    `observing` collects the vectors."""

    u: Tensor
    v: Tensor
    training: bool

    def __init__(
        self, base: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None,
        *, rng: Rng = None,
    ) -> None:  # fmt: skip
        self.base, self.name, self.n_power_iterations, self.eps = base, name, n_power_iterations, eps
        self.dim = (1 if isinstance(base, ConvTranspose) else 0) if dim is None else dim
        matrix, rng = self._matrix(_weight(base, name, "spectral_norm")).detach(), one_generator(rng)
        u, v = (init.normal((n,), rng=rng).to(matrix.device).cast(matrix.dtype) for n in matrix.shape)
        self.u, self.v = self._turned(matrix, u, v, FIRST_TURNS)
        self.training = False

    def weights(self) -> Mapping[str, Tensor]:
        weight = self.base.state_dict()[self.name]
        return {self.name: weight / (self.u * (self._matrix(weight) @ self.v)).sum()}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        made = self
        if self.training:
            before = latest(self)
            matrix = self._matrix(self.base.state_dict()[self.name]).detach()
            u, v = self._turned(matrix, before.u, before.v, self.n_power_iterations)
            made = before.replace(u=u, v=v)
            report(self, made)
        return made.merged()(*args, **kwargs)

    def _matrix(self, weight: Tensor) -> Tensor:
        dim = self.dim % weight.ndim
        order = [dim, *(a for a in range(weight.ndim) if a != dim)]
        return weight.permute(*order).reshape(weight.shape[dim], -1)

    def _turned(self, matrix: Tensor, u: Tensor, v: Tensor, turns: int) -> tuple[Tensor, Tensor]:
        """The vectors after turns of the power method."""
        for _ in range(turns):
            u = self._unit(matrix @ v)
            v = self._unit(matrix.T @ u)
        return u, v

    def _unit(self, x: Tensor) -> Tensor:
        return x / (x * x).sum().sqrt().maximum(self.eps)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None, *, rng: Rng = None
) -> SpectralNorm:  # fmt: skip
    """A layer with a weight that lengthens nothing: divided by its largest singular value (Miyato et al., "Spectral
    normalization", 2018)."""
    return SpectralNorm(module, name, n_power_iterations, eps, dim, rng=rng)


def _weight(base: Module, name: str, who: str) -> Tensor:
    found = base.state_dict().get(name)
    if found is None or found.ndim < 1:
        raise InputError(f"{who}: {type(base).__name__} has no weight {name!r}; it has {', '.join(base.state_dict())}")
    return found
