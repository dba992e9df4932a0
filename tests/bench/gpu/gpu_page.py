"""gpu.py page: matrix products and models on WebGPU in a browser, answered one by one, and with all data kept.

A kept run reads its inputs from GPU buffers and writes its outputs to others, the same ones each time; many are
submitted before one wait. The kernels' time is the sum of a profile, by the GPU's clock. The script starts the browser
with the given flags, and receives the figures by POST; no WebDriver is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from singe.dtypes import float16, float32
from singe.graph import Graph
from singe.model.files import load
from singe.model.model import Model
from singe.runtime.devices import device
from singe.tools.export.bundle import export
from singe.tools.measuring.bench import gemm

SIZES: Final = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (197, 768, 768), (196, 672, 112))
KINDS: Final = (
    (float32, "float32", False),
    (float16, "float16", False),
    (float16, "float16 without subgroup matrices", True),
)
HEADERS: Final = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cache-Control": "no-store",
}
TYPES: Final = {".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}
FLAGS: Final = ("--headless", "--no-sandbox", "--no-first-run", "--enable-unsafe-webgpu")
PATIENCE: Final = 120
"""The most seconds that a bundle may take."""
PAGE: Final = """<!doctype html><meta charset=utf-8><title>gpu</title><script type=module>
import { load } from "./bundle/singe.js";
const ANSWERED = 100, LASTING = 500;
const plain = location.search === "?plain";
const arrays = { bool: Uint8Array, uint8: Uint8Array, int32: Int32Array, int64: BigInt64Array, float16: Uint16Array, float32: Float32Array };
/** The first, the middle and the last row of an output of two dimensions, by their numbers. */
function rowsOf({ data, dtype, shape: [rows, columns] }) {
  const numbers = dtype === "float16" ? new Float16Array(data.buffer, data.byteOffset, data.length) : data;
  const row = (i) => [i, Array.from(numbers.subarray(i * columns, (i + 1) * columns), Number)];
  return Object.fromEntries([0, rows >> 1, rows - 1].map(row));
}
const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];
/** A device without subgroup matrices, whatever else it has. */
async function plainDevice() {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  const requiredFeatures = ["shader-f16", "subgroups"].filter((name) => adapter.features.has(name));
  return adapter.requestDevice({ requiredFeatures, requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });
}
async function measure() {
  const gpuDevice = plain ? await plainDevice() : undefined;
  const started = performance.now();
  const model = await load("./bundle/", { device: "webgpu", gpuDevice });
  const loaded = performance.now() - started;
  const inputs = {}, kept = {}, device = model.gpuDevice;
  for (const { name, dtype, shape } of model.inputs) {
    const size = shape.map((d) => (typeof d === "number" ? d : 1));
    const data = new arrays[dtype](size.reduce((a, b) => a * b, 1));
    const numbers = dtype === "float16" ? new Float16Array(data.buffer) : data;
    if (dtype.startsWith("float")) for (let i = 0; i < data.length; i++) numbers[i] = (i * 7919 % 1000) / 1000;
    inputs[name] = { data, shape: size };
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = device.createBuffer({ size: Math.ceil(data.byteLength / 4) * 4, usage });
    if (data.byteLength % 4 === 0 && !["bool", "uint8"].includes(dtype)) device.queue.writeBuffer(buffer, 0, data);
    kept[name] = { data: buffer, shape: size };
  }
  const small = Object.values(inputs).reduce((sum, { data }) => sum + data.byteLength, 0) < 1 << 24;
  const times = [];
  let rows;
  for (let k = 0; k < (small ? ANSWERED : 5) + 3; k++) {
    const start = performance.now();
    const [first] = Object.values(await model.run(inputs));
    if (!k && first.shape.length === 2) rows = rowsOf(first);
    if (k > 2) times.push(performance.now() - start);
  }
  const results = Object.entries(await model.run(kept, { outputs: "gpu" })).map(([name, { data }]) => [name, data]);
  const outputs = Object.fromEntries(results);
  const burst = async (count) => {
    const start = performance.now();
    for (let k = 0; k < count; k++) await model.run(kept, { outputs });
    await device.queue.onSubmittedWorkDone();
    return (performance.now() - start) / count;
  };
  await burst(3);
  const count = Math.max(5, Math.min(2000, Math.round(LASTING / (await burst(10)))));
  let best = Infinity;
  for (let k = 0; k < 4; k++) best = Math.min(best, await burst(count));
  const { kernels } = await model.profile(kept, { seconds: 0.5 });
  const kernel = kernels.reduce((sum, { seconds }) => sum + seconds, 0) * 1000;
  const { info } = await navigator.gpu.requestAdapter();
  return { adapter: `${info.vendor} ${info.architecture}`, loaded, answered: median(times), least: times[0], kept: best, kernel, rows };
}
measure().catch((error) => ({ error: String(error.stack ?? error) })).then((told) => fetch("/told", { method: "POST", body: JSON.stringify(told) }));
</script>"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | TYPES

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, _Site)
        server.told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        server.done.set()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Site(http.server.ThreadingHTTPServer):
    """A server of a folder with the page and a bundle, and the figures that the page sent."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder)))
        self.told: dict[str, Any] = {}
        self.done = threading.Event()


def measured(model: Model, browser: str, flags: list[str], plain: bool = False) -> dict[str, Any]:
    """The figures of a model's bundle in a browser. plain: without subgroup matrices."""
    with tempfile.TemporaryDirectory(prefix="singe-page-") as name:
        export(model, Path(name) / "bundle", ["webgpu"])
        (Path(name) / "index.html").write_text(PAGE, "utf-8")
        return asked(Path(name), browser, flags, "?plain" if plain else "")


def asked(folder: Path, browser: str, flags: list[str], query: str = "", patience: float = PATIENCE) -> dict[str, Any]:
    """The figures that the page of a folder sends."""
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(_Site(folder))
        threading.Thread(target=site.serve_forever, daemon=True).start()
        profile = tempfile.mkdtemp(prefix="singe-profile-")
        stack.callback(shutil.rmtree, profile, ignore_errors=True)
        url = f"http://127.0.0.1:{site.server_port}/{query}"
        command = [browser, *FLAGS, *flags, f"--user-data-dir={profile}", url]
        own = {**os.environ, "HOME": profile, "XDG_CACHE_HOME": f"{profile}/cache"}  # the driver's cache too is empty
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=own)
        try:
            if not site.done.wait(patience):
                return {"error": f"no answer in {patience} s"}
        finally:
            started.terminate()
            started.wait()
            site.shutdown()
        return site.told


def difference(graph: Graph, rows: Mapping[str, list[float]]) -> float:
    """The largest difference between rows of a product that a page sent and NumPy's,
    relative to NumPy's largest element."""
    (x,) = graph.inputs
    weight = next(n.value for n in graph.nodes if n.value is not None).astype(np.float32)
    depth, worst = weight.shape[0], 0.0
    for row, told in rows.items():
        places = np.arange(int(row) * depth, (int(row) + 1) * depth)
        want = (places * 7919 % 1000 / 1000).astype(x.dtype.numpy).astype(np.float32) @ weight
        worst = max(worst, float(np.abs(want - told).max() / np.abs(want).max()))
    return worst


def main(arguments: list[str], folder: Path) -> None:
    parser = argparse.ArgumentParser(prog="gpu.py page", description=__doc__)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    parser.add_argument("--flags", default="", help="the browser's flags, as a shell would take them")
    parser.add_argument("--out", type=Path, help="write all figures here, as JSON")
    parser.add_argument("--quick", action="store_true", help="one small product, for trying it where there is no GPU")
    parser.add_argument("--models", type=Path, default=folder, help=f"ONNX models with recordings (default: {folder})")
    args = parser.parse_args(arguments)
    flags, host, found = shlex.split(args.flags), device("numpy"), {}
    sizes = ((33, 47, 129),) if args.quick else SIZES
    print("| | answered ms (least) | kept ms | kernels ms | TFLOP/s: kept, kernel | difference | load ms |")
    print("|---|---|---|---|---|---|---|")

    def told(name: str, model: Model, work: float = 0, plain: bool = False) -> None:
        f = found[name] = measured(model, args.browser, flags, plain)
        if "error" in f:
            print(f"| {name} | {f['error']} | | | | | |", flush=True)
            return
        rows = f.pop("rows", None)
        if work:
            f["difference"] = difference(model.graph(), rows)
        speeds = ", ".join(f"{work / f[clock] / 1e9:.3g}" for clock in ("kept", "kernel"))
        product = f"{speeds} | {f['difference']:.1e}" if work else " | "
        times = f"{f['answered']:.2f} ({f['least']:.2f}) | {f['kept']:.4g} | {f['kernel']:.4g}"
        print(
            f"| {name} | {times} | {product} | {f['loaded']:.0f} |",
            flush=True,
        )

    for m, k, n in sizes:
        for kind, how, plain in KINDS:
            told(f"{m} × {k} · {n}, {how}", Model(gemm(m, k, n, kind), host), 2 * m * k * n, plain)
    for path in () if args.quick else sorted(args.models.glob("*.onnx")):
        recorded = np.load(path.with_suffix(".npz"))
        shapes = {name[3:]: (1, *recorded[name].shape[1:]) for name in recorded.files if name.startswith("in:")}
        told(path.stem, load(path, host, shapes))
    print({f["adapter"] for f in found.values() if "adapter" in f} or "no adapter")
    if args.out:
        args.out.write_text(json.dumps(found, indent=1), "utf-8")
