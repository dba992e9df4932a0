"""Writes `encoders.json.gz`: `PYTHONPATH=tests/support:core python tests/conformance/language/make_encoders.py`, with torch and
transformers installed."""

from __future__ import annotations

import gzip
import json
from typing import Any

import torch
import transformers
from encoder_cases import CASES, FIXTURE, MODELS, config_of, inputs_of, numbers_of


def _answer(name: str, head: str) -> dict[str, Any]:
    config = transformers.AutoConfig.for_model(**config_of(name))
    config._attn_implementation = "eager"
    model = getattr(transformers, f"AutoModel{MODELS[head].removeprefix('Model')}").from_config(config).float().eval()
    tied = set(model.all_tied_weights_keys) if config.tie_word_embeddings else {}
    shapes = {k: list(v.shape) for k, v in model.state_dict().items() if k not in tied and "position_ids" not in k}
    model.load_state_dict({k: torch.from_numpy(v) for k, v in numbers_of(shapes).items()}, strict=False)
    model.tie_weights()
    ids, mask, types = (torch.from_numpy(x).long() for x in inputs_of(name, head))
    typed = {"token_type_ids": types} if getattr(config, "type_vocab_size", 0) and name != "mpnet" else {}
    with torch.no_grad():
        (values, *_) = model(input_ids=ids, attention_mask=mask, **typed).values()
    told = {**config_of(name), "architectures": [type(model).__name__]}
    return {"config": told, "shapes": shapes, "values": [float(f"{x:.6g}") for x in values.reshape(-1).tolist()]}


if __name__ == "__main__":
    made = {name: {head: _answer(name, head) for head in MODELS} for name in CASES}
    whole = {"transformers": transformers.__version__, "cases": made}
    FIXTURE.write_bytes(gzip.compress(json.dumps(whole).encode(), mtime=0))
    print(f"{FIXTURE.name}: {len(made)} families, {FIXTURE.stat().st_size:,} bytes")
