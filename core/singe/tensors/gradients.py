"""Gradients: what differentiating a number gives, a container beside the tensors. No tensor holds a gradient."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ..errors import InputError
from ..ir.scalar import Number
from ..shapes import show
from ..tracebacks import shortened
from .layer_statistics import LayerStatistics, figures
from .tensor import Tensor

T = TypeVar("T")
SHOWN: Final = 8
"""How many gradients a text shows."""
Key: TypeAlias = int | str
"""The path of a parameter, or for a tensor without one the id of its value."""


@shortened
class Gradients:
    """The gradients of a number by the tensors it was differentiated by, and by their paths if they belong to a module:
    `gradients[x]`, `gradients["conv.weight"]`.

    They are plain data: `a + b`, `a * 2`, `a / n` (of the same parameters, also of two copies of a module: paths count),
    `sg.optim.mean([a, b])`, `a.to(device)`, and pickles. A pickle has the paths, not the parameters; `of(module)` finds those of
    a copy of the module.
    """

    def __init__(self, of: Iterable[tuple[Any, Any]], names: Mapping[str, Tensor] | None = None) -> None:
        """of: pairs of a tensor and its gradient; names: the tensors by path."""
        paths = {id(x._value): path for path, x in reversed([*(names or {}).items()])}
        pairs = [(paths.get(id(x._value), id(x._value)), x, g) for x, g in of]
        self._gradients: dict[Key, Tensor] = {key: g for key, _, g in pairs}
        self._tensors: dict[Key, Tensor] = {key: x for key, x, _ in pairs}
        # Tensors are compared by the values that they hold: two handles on one value have one gradient.
        self._keys: dict[Key, Key] = {id(x._value): key for key, x, _ in pairs}
        self._keys |= {
            path: self._keys[id(x._value)] for path, x in (names or {}).items() if id(x._value) in self._keys
        }

    @classmethod
    def _made(cls, gradients: dict[Key, Tensor], like: Gradients | None = None) -> Gradients:
        """Gradients by key, for the tensors of another container; without it the keys are paths."""
        made = cls(())
        made._gradients = gradients
        made._tensors = {} if like is None else like._tensors
        made._keys = {key: key for key in gradients} if like is None else like._keys
        return made

    def get(self, key: Tensor | str, default: T = None) -> Tensor | T:
        """The gradient of a tensor, or of the parameter of a path; the default if there is none."""
        found = self._keys.get(key if isinstance(key, str) else id(key._value))
        return default if found is None else self._gradients[found]

    def __getitem__(self, key: Tensor | str) -> Tensor:
        found = self.get(key)
        if found is None:
            given = repr(key) if isinstance(key, str) else f"a tensor {key.dtype}{show(key.shape)}"
            known = [k for k in self._gradients if isinstance(k, str)]
            names = f"; the names are {', '.join(known)}" if known and isinstance(key, str) else ""
            copied = "; of a copy of the module write grads.of(copy)[x]" if known and not isinstance(key, str) else ""
            raise InputError(
                f"there is no gradient of {given}: the number does not depend on it, or it does not require a gradient "
                f"(expected requires_grad=True, or a parameter of the module){names}{copied}"
            )
        return found

    def statistics(self) -> LayerStatistics:
        """The figures of each gradient, by path: print them; in a notebook they are a picture."""
        return LayerStatistics.of(
            figures(key if isinstance(key, str) else f"tensor {k}", str(g.dtype), g.numpy())
            for k, (key, g) in enumerate(self._gradients.items())
        )

    def __contains__(self, key: Tensor | str) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return len(self._gradients)

    def __iter__(self) -> Iterator[Tensor | str]:
        """The tensors; the paths, where the container came without tensors."""
        return (self._tensors.get(key, str(key)) for key in self._gradients)

    def values(self) -> Iterator[Tensor]:
        """The gradients, in order."""
        return iter(self._gradients.values())

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """(path, gradient) for each path."""
        return ((path, self._gradients[key]) for path, key in self._keys.items() if isinstance(path, str))

    def of(self, module: Any) -> Gradients:
        """The same gradients for the parameters of a module: of a copy of the one they are of, by path (after `to`, `clone`, a
        pickle, in another thread); or by `backward`, which then get the paths of its parameters."""
        parameters: dict[str, Tensor] = module.state_dict()
        found = {path: self.get(x, self.get(path)) for path, x in parameters.items()}
        known = {path: g for path, g in found.items() if g is not None}
        lost = [key for key in self._gradients if isinstance(key, str) and key not in known]
        if lost or (self._gradients and not known):
            raise InputError(
                f"these are gradients of {', '.join(lost[:5]) or 'other tensors'}, which the {type(module).__name__} does not have; its "
                f"parameters are {', '.join(list(parameters)[:5]) or 'none'}"
            )
        return Gradients([(parameters[path], g) for path, g in known.items()], {p: parameters[p] for p in known})

    def map(self, function: Callable[..., Tensor], *others: Gradients) -> Gradients:
        """The same container with function(gradient, those of the same parameter in the others) for every gradient."""
        for other in others:
            if other._gradients.keys() != self._gradients.keys():
                raise InputError(
                    f"gradients of different parameters: {self!r} and {other!r}; expected those of one model, or of copies of it"
                )
        made = {key: function(g, *(other._gradients[key] for other in others)) for key, g in self._gradients.items()}
        return self._made(made, self)

    def to(self, device: Any) -> Gradients:
        """The gradients on another device."""
        return self.map(lambda g: g.to(device=device))

    def __add__(self, other: Gradients) -> Gradients:
        return self.map(operator.add, other) if isinstance(other, Gradients) else NotImplemented

    def __radd__(self, other: Any) -> Gradients:
        """Of 0, with which Python's `sum` begins."""
        return self if type(other) is int and other == 0 else NotImplemented

    def __mul__(self, factor: Tensor | Number) -> Gradients:
        return self.map(lambda g: (g * factor).cast(g.dtype)) if _is_factor(factor) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, divisor: Tensor | Number) -> Gradients:
        return self.map(lambda g: (g / divisor).cast(g.dtype)) if _is_factor(divisor) else NotImplemented

    def __copy__(self) -> Gradients:
        return self._made(dict(self._gradients), self)

    def __reduce__(self) -> tuple[Any, ...]:
        if all(isinstance(key, str) and key for key in self._gradients):
            return Gradients._made, (self._gradients,)
        names = {key: x for key, x in self._tensors.items() if isinstance(key, str)}
        return Gradients, ([(x, self._gradients[key]) for key, x in self._tensors.items()], names)

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"Gradients has no {name!r}: it holds the gradient by each tensor, as in grads[x], or grads['conv.weight'] of a "
                "module; of sg.grad(f)(y) write sg.grad(f)(y)[y]",
                name=name,
                obj=self,
            )

    def __repr__(self) -> str:
        paths = [key for key in self._gradients if isinstance(key, str) and key]
        shown = [
            f"{key}: {g.dtype}{show(g.shape)}" if key in paths else f"{g.dtype}{show(g.shape)}"
            for key, g in (*self._gradients.items(),)[:SHOWN]
        ]
        more = [f"and {len(self) - SHOWN} more"] if len(self) > SHOWN else []
        return f"<gradients: {', '.join(shown + more) or 'none'}; as in grads[{repr(paths[0]) if paths else 'x'}]>"


def _is_factor(argument: Any) -> bool:
    return isinstance(argument, (Tensor, Real))
