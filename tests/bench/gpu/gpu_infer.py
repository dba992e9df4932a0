"""Inference beside PyTorch eager on the same card, in one process: an encoder of MiniLM's size, a ViT-tiny, and efficientnet_lite0.

A run is answered: its inputs come from the host, and its outputs go there. PyTorch computes float32 without TF32, in inference mode; its
CUDA graph has its inputs on the card. The encoders have random weights, the same in both.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from gpu_race import TIMM, pytorch, race_arguments

import singe as sg
from singe import nn
from singe.errors import DeviceError

TURNS: Final = 5
"""How often the contestants take turns."""
RUNS: Final = 20


@dataclass(frozen=True)
class Encoder:
    """The sizes of a transformer's encoder, whose input is embedded."""

    batch: int
    length: int
    width: int
    layers: int
    heads: int
    pre_norm: bool


ENCODERS: Final = {
    "MiniLM, 8 × 128 words": Encoder(8, 128, 384, 6, 12, False),
    "ViT-tiny, 1 picture": Encoder(1, 197, 192, 12, 3, True),
    "ViT-tiny, 64 pictures": Encoder(64, 197, 192, 12, 3, True),
}
BATCHES: Final = (1, 64)
"""The pictures that efficientnet_lite0 gets at once."""

Contestant = Callable[[], Any]
"""A run, which waits for its answer."""


def ours(sizes: Encoder, device: str, x: np.ndarray) -> Contestant:
    rng = np.random.default_rng(0)
    layer = nn.TransformerEncoderLayer(
        sizes.width, sizes.heads, 4 * sizes.width, 0.0, "gelu", batch_first=True, norm_first=sizes.pre_norm, rng=rng
    )
    net = nn.TransformerEncoder(layer, sizes.layers).eval()
    model = sg.compile(net, x, device=device)
    return lambda: model(x)


def theirs(torch: Any, sizes: Encoder, x: np.ndarray) -> dict[str, Contestant]:
    layer = torch.nn.TransformerEncoderLayer(
        sizes.width, sizes.heads, 4 * sizes.width, 0.0, "gelu", batch_first=True, norm_first=sizes.pre_norm
    )
    net = torch.nn.TransformerEncoder(layer, sizes.layers, enable_nested_tensor=False).eval().cuda()
    return runs_of(torch, net, x)


def runs_of(torch: Any, net: Any, x: np.ndarray) -> dict[str, Contestant]:
    """PyTorch's runs of a network: eager, and as a CUDA graph."""
    kept = torch.from_numpy(x).cuda()
    with torch.inference_mode():
        for _ in range(3):
            net(kept)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = net(kept)

    def eager() -> Any:
        with torch.inference_mode():
            return net(torch.from_numpy(x).cuda()).cpu()

    def graphed() -> Any:
        kept.copy_(torch.from_numpy(x))
        graph.replay()
        return y.cpu()

    return {"PyTorch": eager, "PyTorch's CUDA graph": graphed}


def race(name: str, runs: dict[str, Contestant], batch: int) -> dict[str, Any]:
    for run in runs.values():
        for _ in range(5):
            run()
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(TURNS):
        for contestant, run in runs.items():
            for _ in range(RUNS):
                start = time.perf_counter()
                run()
                best[contestant] = min(best[contestant], time.perf_counter() - start)
    for contestant, seconds in best.items():
        ratio = f", {seconds / best['PyTorch']:.2f} × PyTorch" if "PyTorch" in best else ""
        print(f"{name}: {contestant} {seconds * 1e3:.2f} ms{ratio}", flush=True)
    return {"model": name, "batch": batch, "seconds": best}


def main(arguments: list[str], folder: Path) -> None:
    args = race_arguments("gpu.py infer", __doc__, arguments)
    torch, found = pytorch(), []
    devices = args.device or ["webgpu"]
    for name, sizes in ENCODERS.items():
        x = np.random.default_rng(1).random((sizes.batch, sizes.length, sizes.width), np.float32)
        runs = {device: ours(sizes, device, x) for device in devices}
        found.append(race(name, runs | (theirs(torch, sizes, x) if torch else {}), sizes.batch))
    for path in sorted(folder.glob("*.onnx")):
        if path.stem not in TIMM:
            continue
        first = np.load(path.with_suffix(".npz"))
        for batch in BATCHES:
            x = np.concatenate([next(first[k] for k in first.files if k.startswith("in:"))[:1]] * batch)
            runs = {}
            for device in devices:
                try:
                    model = sg.load(path, device)
                except DeviceError as e:
                    print(f"{path.stem}: {device}: {e}")
                    continue
                runs[device] = partial(model, x)
            if torch and importlib.util.find_spec("timm"):
                import timm  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

                runs |= runs_of(torch, timm.create_model(TIMM[path.stem], pretrained=False).eval().cuda(), x)
            found.append(race(f"{path.stem}, {batch} pictures", runs, batch))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1), "utf-8")
