"""gpu.py start: from the start of a page's script to the first answer on WebGPU, in a new browser with empty caches each time.

The models take turns; figures are medians. The time of opening the device is that of the browser's adapter and device,
which an empty page waits for too.
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
PAGE: Final = """<!doctype html><meta charset=utf-8><title>start</title><script type=module>
import { load } from "./bundle/singe.js";
const started = performance.now(), since = () => performance.now() - started;
const open = GPUAdapter.prototype.requestDevice;
let opened;
GPUAdapter.prototype.requestDevice = async function (...given) {
  const device = await open.apply(this, given);
  opened ??= since();
  return device;
};
async function measure() {
  const model = await load("./bundle/", { device: "webgpu" });
  const loaded = since();
  const inputs = model.inputs.map(({ name, shape }) => [name, new Float32Array(shape.reduce((a, b) => a * b, 1))]);
  await model.run(Object.fromEntries(inputs));
  const answered = since();
  const { vendor, architecture } = model.gpuDevice.adapterInfo;
  return { adapter: `${vendor} ${architecture}`, opened, loaded, answered };
}
measure().catch((error) => ({ error: String(error.stack ?? error) })).then((told) => fetch("/told", { method: "POST", body: JSON.stringify(told) }));
</script>"""


def main(arguments: list[str], folder: Path) -> None:
    parser = argparse.ArgumentParser(prog="gpu.py start", description=__doc__)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    parser.add_argument("--flags", default="", help="the browser's flags, as a shell would take them")
    parser.add_argument("--out", type=Path, help="write all figures here, as JSON")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--models", type=Path, default=folder, help=f"ONNX models with recordings (default: {folder})")
    args = parser.parse_args(arguments)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in MODELS}
    with tempfile.TemporaryDirectory(prefix="singe-start-") as made:
        for name in MODELS:
            recorded = np.load(args.models / f"{name}.npz")
            shapes = {key[3:]: (1, *recorded[key].shape[1:]) for key in recorded.files if key.startswith("in:")}
            export(load(args.models / f"{name}.onnx", "numpy", shapes), Path(made, name, "bundle"), ["webgpu"])
            Path(made, name, "index.html").write_text(PAGE, "utf-8")
        for _ in range(args.turns):
            for name in MODELS:
                found[name].append(asked(Path(made, name), args.browser, shlex.split(args.flags)))
    print("| model | device open ms | loaded ms | first answer ms (least) | of it after the device is open |")
    print("|---|---|---|---|---|")
    for name, turns in found.items():
        errors = [turn["error"] for turn in turns if "error" in turn]
        if errors:
            print(f"| {name} | {errors[0]} | | | |")
            continue
        after = [turn["answered"] - turn["opened"] for turn in turns]
        opened, loaded, answered = ([turn[key] for turn in turns] for key in ("opened", "loaded", "answered"))
        middle = [f"{statistics.median(times):.0f}" for times in (opened, loaded, answered, after)]
        print(f"| {name} | {middle[0]} | {middle[1]} | {middle[2]} ({min(answered):.0f}) | {middle[3]} |")
    print({turn["adapter"] for turns in found.values() for turn in turns if "adapter" in turn} or "no adapter")
    if args.out:
        args.out.write_text(json.dumps(found, indent=1), "utf-8")
