"""gpu.py run: matrix products, elementwise chains beside copies, and models, on WebGPU beside PyTorch.

Work that stays on the GPU is timed twice: by the wall clock, over many runs submitted before one wait, and by the GPU's
clock. An answered run of a model includes upload and readback.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from singe.dtypes import DType, float16, float32
from singe.errors import DeviceError
from singe.graph import Builder, Graph
from singe.model.files import load
from singe.model.model import Model
from singe.model.profiling import profile
from singe.model.program import Program
from singe.runtime.devices import device as open_device
from singe.runtime.eager import EagerDevice
from singe.runtime.memory.settings import Memory
from singe.tools.measuring.bench import (
    elementwise_copy,
    gemm,
    kept_seconds,
    machine,
    peaks,
    random_arrays,
    timed_seconds,
)
from singe.tools.measuring.profiling import describe_profile, profile_data
from singe_gpu.device.runtime import GpuRuntime

SIZES: Final = (
    (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (33, 47, 129), (1, 1000, 1280),
    (197, 768, 768), (12544, 96, 16), (196, 672, 112), (49, 1152, 320),
)  # fmt: skip
QUICK: Final = 256
"""The largest side of a product, and the bytes of a chain in KiB, of a quick run."""
GIB: Final = 1 << 30
BATCH: Final = 64
KEPT: Final = 4 * GIB
"""How many bytes of idle buffers are kept for the next run, so that chains of 1 GiB do not wait for memory."""
TIMM: Final = {"efficientnet_lite0": "efficientnet_lite0"}
"""Our name of a model ↦ timm's name."""

Figures = dict[str, Any]


def both_clocks(device: EagerDevice, graph: Graph) -> tuple[float, float, int]:
    """Seconds of a run of a graph with random inputs kept on the device, by the wall clock and by the GPU's;
    and its number of steps."""
    runnable = Model(graph, device).program()
    given = random_arrays(runnable)
    try:
        return kept_seconds(runnable, given), timed_seconds(runnable, given), len(runnable.data.steps)
    finally:
        runnable.dispose()


# --- products ---------------------------------------------------------------------------------------------------------


def products(device: EagerDevice, torch: Any, quick: bool) -> list[Figures]:
    print("\n| m × k · n | dtype | TFLOP/s, kept | TFLOP/s, GPU's clock | PyTorch TFLOP/s |\n|---|---|---|---|---|")
    found = []
    for kind in (float32, float16):
        for m, k, n in SIZES:
            if quick and max(m, k, n) > QUICK:
                continue
            wall, gpu, _ = both_clocks(device, gemm(m, k, n, kind))
            work = 2 * m * k * n
            peer = torch_gemm(torch, m, k, n, kind) if torch else None
            theirs = f"{work / peer / 1e12:.3g}" if peer else ""
            print(
                f"| {m} × {k} · {n} | {kind} | {work / wall / 1e12:.3g} | {work / gpu / 1e12:.3g} | {theirs} |",
                flush=True,
            )
            found.append({"m": m, "k": k, "n": n, "dtype": kind.name, "wall": wall, "gpu": gpu, "pytorch": peer})
    return found


# --- chains -----------------------------------------------------------------------------------------------------------


def gelu(count: int) -> Graph:
    """x · (1 + erf(x / √2)) / 2: five ops, one kernel."""
    b = Builder()
    x = b.input("x", (count // 4,), float32)
    two = b.const(2.0)
    inner = b.add(b.erf(b.div(x, b.sqrt(two))), b.const(1.0))
    return Graph((x,), (b.div(b.mul(x, inner), two),), ("y",))


def buffer_copy(count: int) -> Graph:
    """The input, copied from buffer to buffer."""
    b = Builder()
    x = b.input("x", (count // 4,), float32)
    return Graph((x,), (x,), ("y",))


def chains(device: EagerDevice, torch: Any, quick: bool) -> list[Figures]:
    count = QUICK << 10 if quick else GIB
    graphs: dict[str, Callable[[int], Graph]] = {
        "buffer copy": buffer_copy, "elementwise copy (−x)": elementwise_copy, "GELU": gelu,
    }  # fmt: skip
    while True:
        try:
            times = {name: both_clocks(device, make(count)) for name, make in graphs.items()}
            break
        except DeviceError as e:  # more than a buffer of this device holds
            if count <= 1 << 20:
                raise
            print(f"\n{count >> 20} MiB: {e}")
            count //= 2
    print(
        f"\n| {count / GIB:.3g} GiB read and written | steps | GB/s, kept | GB/s, GPU's clock | of the buffer copy |\n|---|---|---|---|---|"
    )
    best = times["buffer copy"][1]
    for name, (wall, gpu, steps) in times.items():
        print(
            f"| {name} | {steps} | {2 * count / wall / 1e9:.4g} | {2 * count / gpu / 1e9:.4g} | {best / gpu:.0%} |",
            flush=True,
        )
    found = [
        {"what": name, "bytes": 2 * count, "steps": steps, "wall": wall, "gpu": gpu}
        for name, (wall, gpu, steps) in times.items()
    ]
    if torch:
        source = torch.rand(count // 4, device="cuda")
        target = torch.empty_like(source)
        taken = torch_seconds(torch, lambda: target.copy_(source))
        print(f"| PyTorch copy_ | 1 | {2 * count / taken / 1e9:.0f} | | |", flush=True)
        found.append({"what": "PyTorch copy_", "bytes": 2 * count, "steps": 1, "wall": taken, "gpu": None})
    return found


# --- models -----------------------------------------------------------------------------------------------------------


def models(device: EagerDevice, torch: Any, folder: Path, quick: bool, profiled: bool) -> list[Figures]:
    print(
        "\n| model | batch | answered ms (least) | kept ms | GPU's clock ms | dispatches | items/s answered, kept | difference |"
        " PyTorch ms: answered, kept, CUDA graph |\n|---|---|---|---|---|---|---|---|---|"
    )
    found, texts = [], []
    limit = peaks(device) if profiled else None
    for path in sorted(folder.glob("*.onnx")):
        model = load(path, device)
        recorded = np.load(path.with_suffix(".npz"))
        whole = {k[3:]: recorded[k] for k in recorded.files if k.startswith("in:")}
        difference = worst(model, whole, {k[4:]: recorded[k] for k in recorded.files if k.startswith("out:")})
        first = {k: a[:1] for k, a in whole.items()}
        batches = [first]
        if model.program({k: a.shape for k, a in first.items()}, first).data.symbols and not quick:
            batches.append({k: np.concatenate([a] * BATCH) for k, a in first.items()})
        for arrays in batches:
            runnable = model.program({k: a.shape for k, a in arrays.items()}, arrays)
            given = [arrays[p.name] for p in runnable.inputs]
            figures = model_figures(runnable, given, 3 if quick else 100)
            if torch and path.stem in TIMM:
                figures["pytorch"] = torch_model(torch, TIMM[path.stem], given[0])
            batch = given[0].shape[0]
            found.append({"model": path.stem, "batch": batch, "difference": difference, **figures})
            print(model_row(found[-1]), flush=True)
            if limit is not None:
                told = profile(runnable, given, 3 if quick else 20)
                found[-1]["profile"] = profile_data(told, limit)
                texts.append(f"\n{path.stem}, batch {batch}\n\n```\n{describe_profile(told, limit, 20)}\n```")
    print("\n".join(texts))
    return found


def worst(model: Model, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> float:
    """The largest difference of any output from the recording, relative to the output's largest value."""
    runnable = model.program({k: a.shape for k, a in inputs.items()}, inputs)
    results = runnable.run([inputs[p.name] for p in runnable.inputs])
    pairs = [(outputs[p.name], a) for p, a in zip(runnable.outputs, results, strict=True) if outputs[p.name].size]
    return max(float(np.abs(a - r).max() / max(np.abs(r).max(), 1e-9)) for r, a in pairs)


def model_figures(runnable: Program, given: list[np.ndarray], rounds: int) -> Figures:
    times = []
    for _ in range(rounds + 2):
        start = time.perf_counter()
        runnable.run(given)
        times.append(time.perf_counter() - start)
    return {
        "answered": statistics.median(times[2:]), "least": min(times[2:]), "kept": kept_seconds(runnable, given),
        "gpu": timed_seconds(runnable, given), "dispatches": len(runnable.data.steps),
    }  # fmt: skip


def model_row(f: Figures) -> str:
    peer = f.get("pytorch")
    theirs = ", ".join(f"{peer[k] * 1e3:.2f}" for k in ("answered", "kept", "graph")) if peer else ""
    speed = f"{f['batch'] / f['answered']:.0f}, {f['batch'] / f['kept']:.0f}"
    return (
        f"| {f['model']} | {f['batch']} | {f['answered'] * 1e3:.2f} ({f['least'] * 1e3:.2f}) | {f['kept'] * 1e3:.3f} | "
        f"{f['gpu'] * 1e3:.3f} | {f['dispatches']} | {speed} | {f['difference']:.1e} | {theirs} |"
    )


def race_arguments(command: str, description: str | None, arguments: list[str]) -> argparse.Namespace:
    """device: the names of the devices to race, or None; out: where figures are written, or None."""
    parser = argparse.ArgumentParser(prog=command, description=description)
    parser.add_argument(
        "--device", action="append", help="a device to race, such as cuda:0; may be repeated (default: webgpu)"
    )
    parser.add_argument("--out", type=Path, help="write all figures here, as JSON")
    return parser.parse_args(arguments)


# --- PyTorch ----------------------------------------------------------------------------------------------------------


def pytorch() -> Any:
    """PyTorch with a GPU, set to compute float32 in float32; None if it is missing."""
    try:
        import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch


def torch_seconds(torch: Any, run: Callable[[], Any], count: int = 50) -> float:
    """Seconds of a run, when many are submitted together."""
    best = float("inf")
    for _ in range(4):  # the first warms up
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            run()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def torch_gemm(torch: Any, m: int, k: int, n: int, kind: DType) -> float:
    element = torch.float32 if kind is float32 else torch.float16
    a, b = torch.rand(m, k, device="cuda", dtype=element), torch.rand(k, n, device="cuda", dtype=element)
    return torch_seconds(torch, lambda: a @ b)


def torch_model(torch: Any, name: str, given: np.ndarray) -> Figures | None:
    """The figures of timm's model of this name, with random weights: speed does not depend on them."""
    try:
        import timm  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    with torch.inference_mode():
        net = timm.create_model(name, pretrained=False).eval().cuda()
        kept = torch.from_numpy(given).cuda()

        def answered() -> None:
            net(torch.from_numpy(given).cuda()).cpu()

        found = {"answered": torch_seconds(torch, answered), "kept": torch_seconds(torch, lambda: net(kept))}
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            net(kept)
        found["graph"] = torch_seconds(torch, graph.replay)
    return found


def main(arguments: list[str], folder: Path) -> None:
    parser = argparse.ArgumentParser(prog="gpu.py run", description=__doc__)
    parser.add_argument("--out", type=Path, help="write all figures here, as JSON")
    parser.add_argument("--quick", action="store_true", help="small problems, for trying it where there is no GPU")
    parser.add_argument("--profile", action="store_true", help="a table for each model of where its time goes")
    parser.add_argument("--device", default="webgpu", help="the device to race, such as cuda:0 (default: webgpu)")
    parser.add_argument("--models", type=Path, default=folder, help=f"ONNX models with recordings (default: {folder})")
    args = parser.parse_args(arguments)
    device = open_device(args.device)
    assert isinstance(device, EagerDevice)
    assert isinstance(device.backend, GpuRuntime)
    device.configure(Memory(keep=KEPT))
    facts, torch = device.describe(), pytorch()
    peer = f"PyTorch {torch.__version__}" if torch else "no PyTorch"
    print(
        f"{facts['adapter']}, {device.name}, {facts.get('api') or facts['driver']}, singe {machine()['singe']}; {peer}"
    )
    found = {
        "machine": machine(), "device": facts, "peer": peer, "products": products(device, torch, args.quick),
        "chains": chains(device, torch, args.quick), "models": models(device, torch, args.models, args.quick, args.profile),
    }  # fmt: skip
    if args.out:
        args.out.write_text(json.dumps(found, indent=1, default=str), "utf-8")
