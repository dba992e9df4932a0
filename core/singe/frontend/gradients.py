"""Gradients: what differentiating a number gives, a container beside the tensors. No tensor holds a gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InputError
from ..shapes import show
from .tensor import Tensor

T = TypeVar("T")


class Gradients:
    """The gradients of a number by the tensors it was differentiated by, or by their names if they belong to a module:
    `gradients[x]`, `gradients["conv.weight"]`."""

    def __init__(self, of: Iterable[tuple[Any, Any]], names: Mapping[str, Tensor] | None = None) -> None:
        """of: pairs of a tensor and its gradient; names: the tensors by name."""
        # Tensors are compared by the values that they hold: two handles on one value have one gradient.
        self._of = {id(x._value): (x, g) for x, g in of}
        self._names = dict(names or {})

    def get(self, key: Tensor | str, default: T = None) -> Tensor | T:
        """The gradient of a tensor, or of the parameter of a name; the default if there is none."""
        x = self._names.get(key) if isinstance(key, str) else key
        found = None if x is None else self._of.get(id(x._value))
        return default if found is None else found[1]

    def __getitem__(self, key: Tensor | str) -> Tensor:
        found = self.get(key)
        if found is None:
            given = repr(key) if isinstance(key, str) else f"a tensor {key.dtype}{show(key.shape)}"
            known = f"; the names are {', '.join(self._names)}" if self._names and isinstance(key, str) else ""
            raise InputError(
                f"there is no gradient of {given}: the number does not depend on it, or it does not require a gradient{known}"
            )
        return found

    def __contains__(self, key: Tensor | str) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Tensor]:
        return (x for x, _ in self._of.values())

    def values(self) -> Iterator[Tensor]:
        """The gradients, in order."""
        return (g for _, g in self._of.values())

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """(name, gradient) for each name."""
        return ((name, self[x]) for name, x in self._names.items() if x in self)

    def map(self, function: Callable[..., Tensor], *others: Gradients) -> Gradients:
        """The same container with function(gradient, those of the same tensor in the others) for every gradient."""
        return Gradients([(x, function(g, *(other[x] for other in others))) for x, g in self._of.values()], self._names)

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"Gradients has no {name!r}: it holds the gradient by each tensor, as in grads[x], or grads['conv.weight'] of a "
                "module; of sg.grad(f)(y) write sg.grad(f)(y)[y]",
                name=name,
                obj=self,
            )

    def __repr__(self) -> str:
        names = {id(x._value): name for name, x in self._names.items()}
        shown = [(names.get(key, ""), f"{g.dtype}{show(g.shape)}") for key, (_, g) in self._of.items()]
        keys = (
            f"grads[{next((name for name, _ in shown if name), '')!r}]"
            if any(name for name, _ in shown)
            else "grads[x]"
        )
        return f"<gradients: {', '.join(f'{n}: {g}' if n else g for n, g in shown) or 'none'}; as in {keys}>"
