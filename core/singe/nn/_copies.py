"""Copies of modules in which a function is traced: what the function changes in a copy's lists and dicts is changed in those of the
module itself, as it is eagerly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..frontend.tensor import Tensor
from ._module import CONTAINERS, Module, everything_in


@contextmanager
def changing(original: Any, copy: Any) -> Iterator[None]:
    """A block in which a function gets a copy of a container. What holds new Tensors or Modules afterwards stays as it was."""
    pairs = [(a, b, _items(b)) for a, b in _pairs(original, copy) if a is not b]
    same = {id(x): y for a, _, items in pairs for key, x in items.items() if (y := _items(a).get(key)) is not None}
    yield
    for a, b, before in pairs:
        now = _items(b)
        if now.keys() == before.keys() and all(now[key] is x for key, x in before.items()):
            continue
        fresh = [x for x in now.values() if id(x) not in same]
        if any(isinstance(part, (Tensor, Module)) for x in fresh for _, part, _ in everything_in(x)):
            continue
        new = {key: same.get(id(x), x) if isinstance(x, (Tensor, *CONTAINERS)) else x for key, x in now.items()}
        if isinstance(a, dict):
            a.clear()
            a.update(new)
        else:
            a[:] = new.values()


def _pairs(original: Any, copy: Any) -> Iterator[tuple[Any, Any]]:
    """Each list and dict in a container with its copy."""
    if isinstance(original, (list, dict)):
        yield original, copy
    if isinstance(original, CONTAINERS):
        mine, others = (x.fields() if isinstance(x, Module) else _items(x) for x in (original, copy))
        for key, part in mine.items():
            if key in others:
                yield from _pairs(part, others[key])


def _items(container: Any) -> dict[Any, Any]:
    return dict(container) if isinstance(container, dict) else dict(enumerate(container))
