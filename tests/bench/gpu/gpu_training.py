"""Steps of training beside PyTorch eager on the same card, in one process: the MNIST example's network, and a transformer of six layers.

Each step ends with its loss read. PyTorch computes float32 without TF32, and with `autocast` in half precision. Memory is the peak of each
one's allocator, from the making of the network on.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from gpu_race import pytorch, race_arguments

import singe as sg
from singe import nn
from singe.train import TrainStep
from singe.train.examples.gpt import GPT, GptConfig
from singe.train.examples.mnist import Digits

TURNS: Final = 4
"""How often the contestants take turns."""
STEPS: Final = 20
WORDS, LENGTH, BATCH = 1000, 128, 32
CONFIG: Final = GptConfig(length=LENGTH, width=512, layers=6, heads=8, dropout=0.0)

Contestant = Callable[[], Any]
"""Makes a step, and reads its loss."""


def digits(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.random((64, 1, 28, 28), np.float32), rng.integers(0, 10, 64)


def texts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.integers(0, WORDS, (BATCH, LENGTH)), rng.integers(0, WORDS, (BATCH, LENGTH))


def loss_of_texts(model: GPT, x: sg.Tensor, y: sg.Tensor) -> sg.Tensor:
    return nn.CrossEntropyLoss()(model(x).reshape(-1, WORDS), y.reshape(-1))


def ours(name: str, precision: Any, device: str) -> Contestant:
    rng = np.random.default_rng(0)
    model = Digits(rng).train() if name == "mnist" else GPT(WORDS, CONFIG).train()
    loss = nn.CrossEntropyLoss() if name == "mnist" else loss_of_texts
    batch = digits(rng) if name == "mnist" else texts(rng)
    step = TrainStep(model, sg.optim.AdamW(lr=1e-4), loss, device=device, precision=precision)
    return lambda: float(step(*batch))


def theirs(torch: Any, name: str, precision: str) -> Contestant:
    nn_ = torch.nn

    def block(i: int, o: int, k: int, s: int, p: int) -> list[Any]:
        return [nn_.Conv2d(i, o, k, s, p, bias=False), nn_.BatchNorm2d(o), nn_.ReLU()]

    class Texts(nn_.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn_.Embedding(WORDS, CONFIG.width), nn_.Embedding(LENGTH, CONFIG.width)
            layer = nn_.TransformerEncoderLayer(
                CONFIG.width, CONFIG.heads, 4 * CONFIG.width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            self.layers = nn_.TransformerEncoder(
                layer, CONFIG.layers, nn_.LayerNorm(CONFIG.width), enable_nested_tensor=False
            )
            self.head = nn_.Linear(CONFIG.width, WORDS)
            self.mask = nn_.Transformer.generate_square_subsequent_mask(LENGTH, device="cuda")

        def forward(self, x: Any) -> Any:
            embedded = self.words(x) + self.places(torch.arange(LENGTH, device="cuda"))
            return self.head(self.layers(embedded, mask=self.mask, is_causal=True)).flatten(0, 1)

    if name == "mnist":
        layers = *block(1, 16, 5, 2, 2), *block(16, 32, 3, 1, 1), *block(32, 48, 3, 2, 1), *block(48, 64, 3, 1, 0)
        net: Any = nn_.Sequential(*layers, nn_.AdaptiveAvgPool2d(1), nn_.Flatten(), nn_.Linear(64, 10)).cuda()
        x, y = map(torch.from_numpy, digits(np.random.default_rng(0)))
    else:
        net = Texts().cuda()
        x, y = map(torch.from_numpy, texts(np.random.default_rng(0)))
        y = y.flatten()
    optimizer, criterion = torch.optim.AdamW(net.parameters(), lr=1e-4), nn_.CrossEntropyLoss()
    scaler = torch.amp.GradScaler(enabled=precision == "float16")

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast(
            "cuda", torch.float16 if precision == "float16" else torch.bfloat16, enabled=precision != "float32"
        ):
            loss = criterion(net(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    return step


def fastest(run: Contestant) -> float:
    best = float("inf")
    for _ in range(STEPS):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def main(arguments: list[str], folder: Path) -> None:
    args = race_arguments("gpu.py train", __doc__, arguments)
    torch, found = pytorch(), []
    for name in ("mnist", "transformer"):
        for precision in ("float32", "float16") if name == "mnist" else ("float32", "float16", "bfloat16"):
            runs: dict[str, Contestant] = {}
            memory: dict[str, int] = {}
            for device in args.device or ["webgpu"]:
                on = sg.device(device)
                on.clean()
                on.reset_peak()
                runs[device] = ours(name, precision, device)
                runs[device]()
                memory[device] = on.memory().peak or 0
            if torch:
                torch.cuda.reset_peak_memory_stats()
                runs["PyTorch"] = theirs(torch, name, precision)
                for _ in range(3):
                    runs["PyTorch"]()
                memory["PyTorch"] = torch.cuda.max_memory_allocated()
            best = dict.fromkeys(runs, float("inf"))
            for _ in range(TURNS):
                for contestant, run in runs.items():
                    best[contestant] = min(best[contestant], fastest(run))
            for contestant, seconds in best.items():
                ratio = f", {seconds / best['PyTorch']:.2f} × PyTorch" if torch else ""
                print(
                    f"{name}, {precision}: {contestant} {seconds * 1e3:.2f} ms, {memory[contestant] / 1e6:.0f} MB{ratio}",
                    flush=True,
                )
            found.append({"network": name, "precision": precision, "seconds": best, "bytes": memory})
            del runs
            gc.collect()
    if args.out:
        args.out.write_text(json.dumps(found, indent=1), "utf-8")
