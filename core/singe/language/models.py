"""The Models of a decoder: one for each of its functions, over one set of weights.

What is compiled of a file is kept from one process to the next (model/kept.py): the next one fills no decoder and compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..model.kept import KeptFile, kept_model
from ..model.model import Model
from ..model.sizes import without_bounds
from ..runtime.device import Device
from .decoder import INPUTS, TYPES, Decoder, bounded, numbered


class DecoderModels:
    """Makes the Models of one decoder on a device."""

    def __init__(
        self,
        network: Callable[[], Decoder],
        room: int,
        device: Device,
        name: str,
        activations: str,
        kept: KeptFile | None,
        sharing: Model | None = None,
    ) -> None:
        """network: makes the decoder, for so many positions. activations: those of the compiler. kept: what is kept of its files, None
        if it differs from them. sharing: a Model with which these share weights."""
        self._network: Final = network
        self.room: Final = room
        self._device: Final = device
        self._name: Final = name
        self._activations: Final = activations
        self._kept: Final = kept
        self._sharing = sharing

    def of_text(self, function: str) -> Model:
        """A Model of `forward` or `vectors`."""
        names = INPUTS if function == "forward" else ("ids", "keys", "rows")
        return self._of(function, {name: shape for name, shape in bounded(self.room).items() if name in names})

    def of_several(self, width: int) -> Model:
        """A Model of `side_by_side` for so many conversations."""
        keys = {f"keys_{k}": (f"K{k}<={self.room}", 0) for k in range(width)}
        return self._of("side_by_side", {"ids": (width,), **keys}, width)

    def _of(self, function: str, shapes: Mapping[str, Sequence[int | str]], width: int | None = None) -> Model:
        """width: how many conversations have states of their own, with numbered names."""

        network, device, name = self._network, self._device, self._name

        def traced() -> Model:
            decoder = network()
            states = {
                state if width is None else numbered(state, k): kind
                for k in range(width or 1)
                for state, kind in decoder.states().items()
            }
            kinds = {k: TYPES.get(k, "bool") for k in shapes}
            return Model.of(getattr(decoder, function), shapes, device, dtypes=kinds, states=states, name=name)

        if self._kept is None:
            model = traced()
            options = replace(model.options, activations=self._activations)
            model = model if options == model.options else model.on(device, options)
        else:
            kept = self._kept.part(function, width)
            bounds = without_bounds(shapes)[1]
            model = kept_model(
                kept, lambda: traced().source, device, name, activations=self._activations, bounds=bounds
            )
        if self._sharing is None:
            self._sharing = model
        else:
            model.share_weights(self._sharing)
        return model
