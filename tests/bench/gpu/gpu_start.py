"""gpu.py start: from the start of a page's script to the first answer on WebGPU, step by step, in Chromium.

Each turn starts a new browser with empty caches, its driver's too, for each way of meeting a page:

- `empty`: a page that opens an adapter and a device and makes a pipeline that does nothing: what the machine takes;
- `new`: the model's page is the first that the browser opens;
- `later`: it is the second, after an empty page, so that the browser's GPU process runs already;
- `again`: the model's page once more, in the same browser.

The models take turns; figures are medians of the ms since the page's script began.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from gpu_page import asked

from singe.model.files import load
from singe.tools.export.bundle import export

MODELS: Final = ("mnist_cnn", "efficientnet_lite0")
WAYS: Final = {"empty": ("open",), "new": ("start",), "later": ("open", "start"), "again": ("start", "start")}
"""A way of meeting a page ↦ the steps of a browser, of which the last is measured."""
STEPS: Final = {
    "adapter": "adapter",
    "device": "device",
    "asked": "first pipeline asked for",
    "written": "weights written",
    "compiled": "last pipeline made",
    "loaded": "loaded",
    "submitted": "first run submitted",
    "answered": "answered",
}
PAGE: Final = """<!doctype html><meta charset=utf-8><title>start</title><script type=module>
import { load } from "./bundle/singe.js";
const steps = location.search.slice(1).split(","), told = JSON.parse(sessionStorage.told ?? "[]");
const started = performance.now(), since = () => performance.now() - started;
const at = {}, pipelines = [];
function watch(kind, name, before, after) {
  const call = kind.prototype[name];
  kind.prototype[name] = function (...given) {
    const asked = since();
    before?.(...given);
    const result = call.apply(this, given);
    if (after) result.then((value) => after(value, asked), () => {});
    return result;
  };
}
watch(GPU, "requestAdapter", undefined, () => (at.adapter ??= since()));
watch(GPUAdapter, "requestDevice", undefined, () => (at.device ??= since()));
watch(GPUDevice, "createComputePipelineAsync", () => (at.asked ??= since()), (_, asked) => pipelines.push([asked, (at.compiled = since())]));
watch(GPUQueue, "writeBuffer", () => at.loaded ?? (at.written = since()));
watch(GPUQueue, "submit", (commands) => commands.length && (at.submitted ??= since()));
async function open() {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const device = await adapter.requestDevice();
  const module = device.createShaderModule({ code: "@compute @workgroup_size(1) fn main() {}" });
  if (steps.length === 1) await device.createComputePipelineAsync({ layout: "auto", compute: { module } });
  return adapter.info;
}
async function start() {
  const model = await load("./bundle/", { device: "webgpu" });
  at.loaded = since();
  const inputs = model.inputs.map(({ name, shape }) => [name, new Float32Array(shape.reduce((a, b) => a * b, 1))]);
  await model.run(Object.fromEntries(inputs));
  at.answered = since();
  const files = performance.getEntriesByType("resource").map(({ name, responseEnd }) => [name.split("/").at(-1), responseEnd - started]);
  return Object.assign(model.gpuDevice.adapterInfo, { files });
}
async function measure() {
  const { vendor, architecture, files } = await { open, start }[steps[told.length]]();
  return { adapter: `${vendor} ${architecture}`, at, pipelines, files };
}
told.push(await measure().catch((error) => ({ error: String(error.stack ?? error) })));
sessionStorage.told = JSON.stringify(told);
if (told.length < steps.length && !told.at(-1).error) setTimeout(() => location.reload(), 500);
else fetch("/told", { method: "POST", body: JSON.stringify(told.at(-1)) });
</script>"""


def main(arguments: list[str], folder: Path) -> None:
    parser = argparse.ArgumentParser(prog="gpu.py start", description=__doc__)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    parser.add_argument("--flags", default="", help="the browser's flags, as a shell would take them")
    parser.add_argument("--out", type=Path, help="write all figures here, as JSON")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--models", type=Path, default=folder, help=f"ONNX models with recordings (default: {folder})")
    args = parser.parse_args(arguments)
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="singe-start-") as made:
        for name in MODELS:
            recorded = np.load(args.models / f"{name}.npz")
            shapes = {key[3:]: (1, *recorded[key].shape[1:]) for key in recorded.files if key.startswith("in:")}
            export(load(args.models / f"{name}.onnx", "numpy", shapes), Path(made, name, "bundle"), ["webgpu"])
            Path(made, name, "index.html").write_text(PAGE, "utf-8")
        for _ in range(args.turns):
            for way, steps in WAYS.items():
                for name in MODELS[:1] if way == "empty" else MODELS:
                    row = "an empty page" if way == "empty" else f"{name}, {way}"
                    told = asked(Path(made, name), args.browser, shlex.split(args.flags), "?" + ",".join(steps))
                    found.setdefault(row, []).append(told)
    print(f"| page | {' | '.join(STEPS.values())} | answered, least | of it after the device |")
    print("|---|" + "---|" * (len(STEPS) + 2))
    for row, turns in sorted(found.items()):
        errors = [turn["error"] for turn in turns if "error" in turn]
        print(f"| {row} | {errors[0] if errors else ' | '.join(_cells([turn['at'] for turn in turns]))} |")
    print({turn["adapter"] for turns in found.values() for turn in turns if "adapter" in turn} or "no adapter")
    if args.out:
        args.out.write_text(json.dumps(found, indent=1), "utf-8")


def _cells(turns: list[dict[str, float]]) -> list[str]:
    """The medians of the steps, the least time of an answer, and the median of what follows the device."""

    def shown(times: list[float], of: Any = statistics.median) -> str:
        return f"{of(times):.0f}" if times else ""

    answers = [turn for turn in turns if "answered" in turn]
    return [
        *(shown([turn[step] for turn in turns if step in turn]) for step in STEPS),
        shown([turn["answered"] for turn in answers], min),
        shown([turn["answered"] - turn["device"] for turn in answers]),
    ]
