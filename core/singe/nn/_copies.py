"""Copies of modules in which a function is traced: what the function changes in a copy's lists and dicts is changed in those of the
module itself, as it is eagerly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..tensors.tensor import Tensor
from ._module import CONTAINERS, Module, everything_in


@contextmanager
def changing(original: Any, copy: Any) -> Iterator[None]:
    """A block in which a function gets a copy of a container. Tensors and Modules that it makes stay in the copy: items that hold
    some are what they were."""
    parts = list(_pairs(original, copy))
    lists = [(a, b, _items(b)) for a, b in parts if isinstance(a, (list, dict)) and a is not b]
    own = {id(b): a for a, b in parts if a is not b}
    yield
    for a, b, before in lists:
        now = _items(b)
        if now.keys() != before.keys() or any(now[key] is not x for key, x in before.items()):
            was = _items(a)
            new = {key: own.get(id(x), x) for key, x in now.items()}
            fresh = {key for key, x in new.items() if x is now[key] and _is_made(x)}
            _put(a, {key: was[key] if key in fresh else x for key, x in new.items() if key not in fresh or key in was})


def _pairs(original: Any, copy: Any) -> Iterator[tuple[Any, Any]]:
    """A container and all that is in it, each with that in its copy."""
    yield original, copy
    if isinstance(original, CONTAINERS):
        mine, others = _items(original), _items(copy)
        for key, part in mine.items():
            yield from _pairs(part, others[key])


def _items(container: Any) -> dict[Any, Any]:
    if isinstance(container, Module):
        return container.fields()
    return dict(container) if isinstance(container, dict) else dict(enumerate(container))


def _put(container: list[Any] | dict[Any, Any], items: dict[Any, Any]) -> None:
    """Let a list or dict have these items, in this order."""
    if isinstance(container, dict):
        container.clear()
        for key, x in items.items():  # a Counter's `update` adds
            container[key] = x
    else:
        container[:] = items.values()


def _is_made(x: Any) -> bool:
    return any(isinstance(part, (Tensor, Module)) for _, part, _ in everything_in(x))
