"""Writes `decoders.json.gz`: `PYTHONPATH=tests/support python
tests/conformance/language/make_decoders.py`, with torch and transformers installed."""

from __future__ import annotations

import gzip
import json
from typing import Any

import torch
import transformers
from decoder_cases import CASES, FIXTURE, config_of, ids_of, weights_of


def _answer(name: str) -> dict[str, Any]:
    told = config_of(name)
    config = transformers.AutoConfig.for_model(**told)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    shapes = {k: list(v.shape) for k, v in model.state_dict().items()}
    if told["tie_word_embeddings"]:
        del shapes["lm_head.weight"]
    weights = {k: torch.from_numpy(v) for k, v in weights_of(shapes).items()}
    model.load_state_dict(weights, strict=not told["tie_word_embeddings"])
    model.tie_weights()
    with torch.no_grad():
        logits = model(torch.tensor([ids_of(name)]), use_cache=False).logits[0]
    return {"config": told, "shapes": shapes, "logits": [[float(f"{x:.7g}") for x in row] for row in logits.tolist()]}


if __name__ == "__main__":
    made = {"transformers": transformers.__version__, "cases": {name: _answer(name) for name in CASES}}
    FIXTURE.write_bytes(gzip.compress(json.dumps(made).encode(), mtime=0))
    print(f"{FIXTURE.name}: {len(made['cases'])} cases, {FIXTURE.stat().st_size:,} bytes")
