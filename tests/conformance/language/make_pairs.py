"""Writes `pairs.json.gz`: `PYTHONPATH=tests/support:core python tests/conformance/language/make_pairs.py`, with torch and transformers
installed."""

from __future__ import annotations

import gzip
import json
from typing import Any

import torch
import transformers
from pair_cases import CASES, FIXTURE, RULES, numbers_of, source_of, text_of


def _answer(name: str) -> dict[str, Any]:
    config = transformers.AutoConfig.for_model(**CASES[name])
    config._attn_implementation = "eager"
    kind = transformers.AutoModelForSpeechSeq2Seq if name == "moonshine" else transformers.AutoModelForSeq2SeqLM
    model = kind.from_config(config).float().eval()
    left = (
        "embed_tokens",
        "embed_positions",
        *(() if config.tie_word_embeddings is False else ("lm_head", "proj_out")),
    )
    kept = [k for k in model.state_dict() if name == "moonshine" or not any(x in k for x in left)]
    shapes = {k: list(model.state_dict()[k].shape) for k in kept if "proj_out" not in k}
    model.load_state_dict({k: torch.from_numpy(v) for k, v in numbers_of(shapes).items()}, strict=False)
    model.tie_weights()
    source = torch.from_numpy(source_of(name))[None]
    given = {"input_values": source} if name == "moonshine" else {"input_ids": source.long()}
    start = config.decoder_start_token_id
    with torch.no_grad():
        logits = model(**given, decoder_input_ids=torch.tensor([text_of(start)])).logits
        texts = [model.generate(**given, **rules)[0].tolist() for rules in RULES]
    generation = {
        k: v for k, v in model.generation_config.to_dict().items() if k.endswith("token_id") and v is not None
    }
    return {
        "config": config.to_dict(), "generation": generation, "shapes": shapes, "texts": texts,
        "logits": [float(f"{x:.7g}") for x in logits.reshape(-1).tolist()],
    }  # fmt: skip


if __name__ == "__main__":
    made = {name: _answer(name) for name in CASES}
    FIXTURE.write_bytes(
        gzip.compress(json.dumps({"transformers": transformers.__version__, "cases": made}).encode(), mtime=0)
    )
    print(f"{FIXTURE.name}: {len(made)} cases, {FIXTURE.stat().st_size:,} bytes")
    for name, case in made.items():
        print(name, [len(text) for text in case["texts"]], case["texts"][1][:12])
