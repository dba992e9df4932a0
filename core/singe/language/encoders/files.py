"""The files of an encoder, config.json and model.safetensors of Hugging Face, and the Model of one of its heads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ...errors import FormatError, InputError
from ...files.bounded import read_json_object
from ...model.model import Model
from ...runtime.device import Device
from ...tensors.tensor import Tensor
from ...weights import read_weights
from ...weights.renaming import Renaming
from ...weights.stored import StoredArray
from ..files import Tensors
from .description import MAX_SIZE, EncoderDescription, of_config
from .families import EncoderFamily
from .network import HEADS, INPUTS, EncoderHead, TextEncoder

_IGNORED: Final = re.compile(r".*\bposition_ids")
"""Buffers of older files, which hold the numbers of positions."""
_LAST: Final = {"gamma": "weight", "beta": "bias"}
_OF_HEADS: Final = ("classes.", "words.", "pooler")
_LABELS: Final = "classes.output.weight"


def encoder_model(weights: Path, config: Path, head: str, device: str | Device, name: str) -> Model:
    """A Model of INPUTS, int32 (rows, tokens). head: one of HEADS."""
    values = read_json_object(config)
    description = of_config(values, str(config))
    row = HEADS[head]
    _check_model(values, description.family, row, str(config))
    stored = _renamed(read_weights(weights).stored, description, row, str(weights))
    labels = stored[_LABELS].shape[0] if _LABELS in stored else 0
    if labels > MAX_SIZE:
        raise FormatError(f"{weights}: {labels} classes, expected at most {MAX_SIZE}")
    tensors = Tensors(stored, str(weights))
    encoder = TextEncoder(description, tensors)
    said = row.make(description, tensors, encoder, labels)
    tensors.check_all_taken()

    def whole(input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> dict[str, Tensor]:
        return {row.output: said(encoder(input_ids, attention_mask, token_type_ids))}

    shape = ("rows", f"tokens<={encoder.reach + 1}")
    return Model.of(whole, dict.fromkeys(INPUTS, shape), device, dtypes=dict.fromkeys(INPUTS, "int32"), name=name)


def _check_model(config: Mapping[str, Any], family: EncoderFamily, head: EncoderHead, name: str) -> None:
    """A head is what the model was trained for, not what its tensors look like."""
    models = config.get("architectures")
    if head.model and models != [f"{family.model}{head.model}"]:
        raise InputError(
            f"{name}: architectures is {models!r:.80}, expected {[f'{family.model}{head.model}']}: the model was made for another task"
        )


def _renamed(
    arrays: Mapping[str, StoredArray], d: EncoderDescription, head: EncoderHead, name: str
) -> dict[str, StoredArray]:
    """The tensors under our names, without those of other heads."""
    renaming = Renaming(d.family.tensors, d.family.name, name)
    for key, array in arrays.items():
        if _IGNORED.fullmatch(key):
            continue
        base, _, last = key.rpartition(".")
        new, end = renaming.base_of(key, base), _LAST.get(last, last)
        if end not in ("weight", "bias"):
            raise renaming.unknown(key)
        whole = f"{new}.{end}"
        if (new.startswith(_OF_HEADS) and new not in head.tensors) or (whole == "words.output.weight" and d.tied):
            continue
        if whole == "words.output.bias":
            renaming.stored[whole] = array  # files have it under two names
        else:
            renaming.keep(key, whole, array)
    return renaming.stored
