"""`singe export MODEL --train lora`: a language model that learns in a page, as two bundles that share their weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ...errors import InputError
from ...language import load, lora, next_token_loss, with_states
from ...language.llm import DEFAULT_CONTEXT
from ...optim import AdamW
from ...train.steps.step import TrainStep
from .bundle import Bundle, draft, export_together
from .language import spoken_of
from .training import READ, STEP

LENGTH: Final = 128


def export_tuning(
    path: str | Path, folder: str | Path, *, rank: int = 8, length: int = LENGTH, batch: int = 1, lr: float = 1e-3,
    learn: Sequence[str] = (), context: int = DEFAULT_CONTEXT, cache_dtype: str | None = None,
    chat_template: str | Path | None = None, targets: Sequence[str] | None = None, force: bool = False,
    readable: bool = False,
) -> dict[str, Bundle]:  # fmt: skip
    """Write folder/read, a language model with an adapter as states, and folder/step, whose `model.step({ tokens, labels, mask })` trains that
    adapter by AdamW; the weights are in folder/read.

    rank: of the adapter. length: how many tokens of a text are in a step. batch: the texts of a step. lr: the learning rate. learn: the matrices
    that get an adapter, as the model's folder calls them; all, if there is none.
    """
    llm = load(path, "numpy", context=context, cache_dtype=cache_dtype, chat_template=chat_template)
    if length > llm.context:
        raise InputError(f"--length {length}: the model has room for {llm.context} tokens; give less, or --context")
    adapter = lora(llm, rank, targets=learn or None, rng=0)
    step = TrainStep(adapter, AdamW(lr), next_token_loss, device="numpy", seed=0)
    ids, mask = np.zeros((batch, length), np.int32), np.zeros((batch, length), np.float32)
    reader = with_states(llm, adapter)
    drafts = {
        READ: draft(
            reader.decoder, targets, activations=reader.decoder.options.activations, readable=readable, spoken=spoken_of(reader),
        ),
        STEP: draft(step.as_model(ids, ids, mask), targets, readable=readable),
    }  # fmt: skip
    return export_together(drafts, Path(folder), force)
