"""A network of GLiNER with random weights, as its own package writes it, with what that package answers; and one whose scores are plain."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import singe as sg

_HERE: Final = Path(__file__).parent
MAKERS: Final[Any] = json.loads((_HERE / "gliner_makers.json").read_text("utf-8"))
FILES: Final = {"tokenizer": MAKERS["tokenizer"], "gliner_config": MAKERS["config"]}
"""The files beside such a model, by their names without the ending."""
WIDTH: Final = 3
LABELS: Final = 2
"""Those of the plain network."""


@cache
def tiny_gliner() -> sg.Model:
    return sg.load(gzip.decompress((_HERE / "gliner_makers.onnx.gz").read_bytes()), "numpy", name="gliner")


def plain_score(first: Any, last: Any, label: Any) -> Any:
    """The score of a span, of the tokens with which its first and its last word begin."""
    return (first * 31 + last * 17 + label * 53) % 101 / 8 - 9.0


def plain_spans() -> sg.Model:
    """Of GLiNER's form, but that what a span has depends on nothing around it."""

    def function(
        input_ids: sg.Tensor, attention_mask: sg.Tensor, words_mask: sg.Tensor, text_lengths: sg.Tensor, span_idx: sg.Tensor,
        span_mask: sg.Tensor,
    ) -> sg.Tensor:  # fmt: skip
        rows, places = span_idx.shape[0], span_idx.shape[1]
        counts = sg.arange(1, places // WIDTH + 1).to(dtype="int64").reshape(1, -1, 1)
        words = ((words_mask.unsqueeze(1) == counts).to(dtype="int64") * input_ids.unsqueeze(1)).sum(2)
        at = [
            (
                (span_idx[:, :, k].unsqueeze(2) + 1 == counts.reshape(1, 1, -1)).to(dtype="int64") * words.unsqueeze(1)
            ).sum(2)
            for k in (0, 1)
        ]
        first, last = (x.to(dtype="float32") for x in at)
        scores = sg.stack([plain_score(first, last, float(label)) for label in range(LABELS)], 2)
        there = (
            span_mask.to(dtype="float32").unsqueeze(2)
            + (attention_mask.sum() + text_lengths.sum()).to(dtype="float32") * 0.0
        )
        return (scores * there).reshape(rows, places // WIDTH, WIDTH, LABELS)

    both = ("rows", "tokens")
    shapes = {
        **dict.fromkeys(("input_ids", "attention_mask", "words_mask"), both),
        "text_lengths": ("rows", 1), "span_idx": ("rows", "places", 2), "span_mask": ("rows", "places"),
    }  # fmt: skip
    return sg.Model.of(
        function, shapes, "numpy", dtypes={**dict.fromkeys(shapes, "int64"), "span_mask": "bool"}, name="plain"
    )
