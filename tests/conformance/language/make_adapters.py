"""Writes `adapters.npz`: `PYTHONPATH=core:tests/support python tests/conformance/language/make_adapters.py`, with torch, transformers and
peft installed. It holds, for each of ADAPTED, the loss and the gradients of a LoRA of rank 2 under PEFT's names."""

from __future__ import annotations

import numpy as np
import peft
import torch
import transformers
from decoder_cases import ADAPTED, ADAPTERS, config_of, lora_batch, weights_of


def _gradients(name: str, targets: list[str]) -> dict[str, np.ndarray]:
    told = config_of(name)
    config = transformers.AutoConfig.for_model(**told)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).float()
    tied = told["tie_word_embeddings"]
    shapes = {k: list(v.shape) for k, v in model.state_dict().items() if not (tied and k == "lm_head.weight")}
    model.load_state_dict({k: torch.from_numpy(v) for k, v in weights_of(shapes).items()}, strict=not tied)
    model.tie_weights()
    options = peft.LoraConfig(
        r=2, lora_alpha=6, target_modules=targets, task_type="CAUSAL_LM", fan_in_fan_out=name == "gpt2"
    )
    adapted = peft.get_peft_model(model, options).eval()
    keys = {k: list(v.shape) for k, v in peft.get_peft_model_state_dict(adapted).items()}
    peft.set_peft_model_state_dict(adapted, {k: torch.from_numpy(v) for k, v in weights_of(keys).items()})
    tokens, labels, mask = (torch.from_numpy(x) for x in lora_batch(name))
    logits = adapted(tokens.long(), use_cache=False).logits
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.long().flatten(), reduction="none")
    loss = (losses * mask.flatten()).sum() / mask.sum()
    loss.backward()
    parameters = {k.replace(".default.", "."): p.grad for k, p in adapted.named_parameters() if p.grad is not None}
    assert parameters.keys() == keys.keys()
    return {"loss": np.asarray(loss.item()), **{k: p.numpy() for k, p in parameters.items()}}


if __name__ == "__main__":
    made = {
        f"{name}:{k}": x.astype(np.float32)
        for name, targets in ADAPTED.items()
        for k, x in _gradients(name, [*targets]).items()
    }
    np.savez_compressed(ADAPTERS, **made)
    print(f"{ADAPTERS.name}: {len(made)} arrays, {ADAPTERS.stat().st_size:,} bytes")
