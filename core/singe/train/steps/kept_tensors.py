"""What a model keeps of a call in its lists and dicts, which a step refuses.

The model that is traced is a copy with lists and dicts of its own. Of what is changed in these, all but Tensors is changed in the
model that was given, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import InputError
from ...nn import Module
from ...tensors.tensor import Tensor
from .batches import modules_in


@contextmanager
def keeping_nothing(*values: Any) -> Iterator[None]:
    """Refuse a block in which one of these values, if it is a Module or a dict of some, begins to hold another Tensor."""
    models = [x for _, x in modules_in(dict(enumerate(values)))]
    before = [dict(_tensors(model)) for model in models]
    yield
    for model, was in zip(models, before, strict=True):
        for place, t in _tensors(model):
            if was.get(place) is not t:
                path, name = place
                layer = f"{path!r}, a layer of {type(model).__name__}" if path else type(model).__name__
                raise InputError(
                    f"the model keeps a Tensor in {name} of {layer}; a step of training would set it only when it is traced, where "
                    "the Tensor has no value. A constant, such as a mask: make it in __init__, in a field that the class "
                    "names in buffers=. What forward computes: return it instead of keeping it"
                )


def _tensors(model: Module) -> Iterator[tuple[tuple[str, str], Tensor]]:
    """((the layer's path, the name of the place in it), Tensor) of each Tensor in a model."""
    for path, layer in model.named_modules():
        for field, part in layer.fields().items():
            for name, t in _held(field, part):
                yield (path, name), t


def _held(name: str, part: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(part, Tensor):
        yield name, part
    elif isinstance(part, (dict, list, tuple)):
        for key, x in part.items() if isinstance(part, dict) else enumerate(part):
            yield from _held(f"{name}[{key!r:.40}]", x)
