"""A language model whose adapter is states of its decoder, called as those of a step that trains it: for a page, which copies them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from ...errors import InputError
from ...model.model import Model
from ...nn import Module
from ...tensors.tensor import Tensor
from ..decoder import TYPES, bounded
from .lora import LanguageAdapter, adapted, check_matrices

if TYPE_CHECKING:
    from ..llm import LanguageModel

OF_STEP: Final = "model."
"""How the states of a TrainStep begin that are its model."""


def with_states(llm: LanguageModel, adapter: Module) -> LanguageModel:
    """The model that reads with an adapter as states beside keys and values: `sg.export` writes its bundle, and in a page
    `llm.adapt(states)` writes those of the session of a step of the same adapter."""
    if not isinstance(adapter, LanguageAdapter):
        raise InputError(f"with_states: got {adapter!r:.80}, expected what sg.language.lora makes")
    check_matrices("with_states", llm.network, adapter.matrices)
    network = llm.network
    held = {OF_STEP + path: t.numpy() for path, t in adapter.state_dict().items()}

    def read(*inputs: Tensor, **states: Tensor) -> tuple[Any, dict[str, Tensor]]:
        weights = {name: states.pop(name) for name in held}
        present = adapter.with_state({name.removeprefix(OF_STEP): w for name, w in weights.items()})
        found, updated = adapted(network, present.matrices).forward(*inputs, **states)
        return found, {**updated, **weights}

    model = Model.of(
        read,
        bounded(network.room),
        llm.device,
        dtypes=TYPES,
        states={**network.states(), **held},
        name=llm.decoder.name,
    )
    made = copy.copy(llm)
    decoder = model if model.options == llm.decoder.options else model.on(model.device, llm.decoder.options)
    vars(made).update(decoder=decoder, learned=adapter, _idle=None)
    return made
