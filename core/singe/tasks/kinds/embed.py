"""A text as a vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...tensors.functions.creation import where
from ...tensors.tensor import Tensor
from ..answers import Arrays, TaskVector
from ..spec import TaskSpec
from ..text.medium import TEXT, Asking, Reading, TextFrame, text_of
from .base import SCORE_WORDS, Asked, Head, Shapes, TaskKind, Tensors

_SENTENCE: Final = "sentence_embedding"
"""What sentence-transformers calls the output that is pooled already."""


def _vectors(shapes: Shapes) -> Shapes:
    """Without what is called scores of classes or of words."""
    return {name: shape for name, shape in shapes.items() if not any(word in name.lower() for word in SCORE_WORDS)}


def _is_pooled(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """Beside others, a vector may be of another use, such as BERT's of the first token."""
    if _SENTENCE in shapes and len(shapes[_SENTENCE]) == 2:
        return {"output": _SENTENCE}
    found = _vectors(shapes)
    name = next((name for name, shape in found.items() if len(shape) == 2), None)
    return None if name is None or len(shapes) > 1 else {"output": name}


def _are_tokens(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    name = next((name for name, shape in _vectors(shapes).items() if len(shape) == 3), None)
    return None if name is None else {"output": name}


def _of_length_one(x: Tensor) -> dict[str, Tensor]:
    return {"vector": x / (x * x).sum(-1, keepdims=True).sqrt().maximum(1e-12)}


def _pooled(outputs: Tensors, frame: TextFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    return _of_length_one(outputs[options["output"]].to(dtype="float32"))


def _pooling(pool: Callable[[Tensor, Tensor], Tensor]) -> Any:
    """The decoding that makes one vector of those of tokens (rows, tokens, width), of which a mask (rows, tokens, 1) says which count."""

    def decode(outputs: Tensors, frame: TextFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
        return _of_length_one(pool(outputs[options["output"]].to(dtype="float32"), frame.mask.unsqueeze(2)))

    return decode


def _mean(x: Tensor, mask: Tensor) -> Tensor:
    return (x * mask).sum(1) / mask.sum(1).maximum(1e-9)


def _first(x: Tensor, mask: Tensor) -> Tensor:
    return x[:, 0]


def _last(x: Tensor, mask: Tensor) -> Tensor:
    """Of the last token that counts: where one counts and the next does not."""
    after = mask.sum(1, keepdims=True)
    place = mask.cumsum(1)
    return where((place == after) & (mask > 0.5), x, 0.0).sum(1)


def _max(x: Tensor, mask: Tensor) -> Tensor:
    return where(mask > 0.5, x, -1e9).amax(1)


def vector(outputs: Arrays, spec: TaskSpec, reading: Reading, settings: Mapping[str, Any]) -> TaskVector:
    whole = reading.mean(outputs["vector"])
    dimensions = settings["dimensions"]
    if type(dimensions) is not int or not 0 <= dimensions <= whole.size:
        raise InputError(
            f"{spec.kind}: dimensions is {dimensions!r:.40}, expected how many of the {whole.size} numbers to keep; 0 keeps all"
        )
    return TaskVector(spec.kind, None, unit(whole, dimensions or whole.size), reading.windows)


def unit(whole: np.ndarray, dimensions: int) -> np.ndarray:
    """The first numbers of a vector, of length 1."""
    part = whole[:dimensions]
    return (part / (float(np.linalg.norm(part)) or 1.0)).astype(np.float32)


def prompted(source: Any, spec: TaskSpec, settings: Mapping[str, Any]) -> Sequence[Asking]:
    """A text with what is written before it."""
    name = settings["prompt"] or spec.preparation.prompt
    prompts: Mapping[str, str] = spec.preparation.prompts
    if name and name not in prompts:
        raise InputError(
            f"{spec.kind}: prompt {name!r:.40}, expected one of {', '.join(prompts) or 'none: the model has none'}"
        )
    return [Asking(prompts.get(name, "") + text_of(source))]


HEADS: Final = (
    Head("vector", "a vector for each text", _is_pooled, _pooled),
    Head("mean", "vectors of tokens, of which the mean is taken", _are_tokens, _pooling(_mean)),
    Head("first", "vectors of tokens, of which the first is taken", _are_tokens, _pooling(_first)),
    Head("last", "vectors of tokens, of which the last is taken", _are_tokens, _pooling(_last)),
    Head("max", "vectors of tokens, of which the largest numbers are taken", _are_tokens, _pooling(_max)),
)
EMBED: Final = TaskKind(
    "embed", "a text as a vector, to compare with others", TEXT, HEADS, vector, 512, settings={"prompt": "", "dimensions": 0},
    asks=prompted, network="vectors",
)  # fmt: skip
