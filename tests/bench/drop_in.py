"""The drop-in for onnxruntime-web beside it: the same lines over both, in one Chromium, taking turns, on WebAssembly.

    python tests/bench/drop_in.py MODEL.onnx [--length 64] [--threads 1,2] [--rounds 5]

Each turn is a page with empty caches, over a local server that compresses as `singe serve` does. Printed are medians: from the page's
first line to the first answer, a run, and the bytes that were fetched beside the weights. Open dimensions are 1 for a batch, else LENGTH;
integers are 1 and floats 0.5. The largest difference of the outputs is printed too.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from ort_web import CHROMIUM, FLAGS, package
from playwright.sync_api import sync_playwright

from singe.model.files import load
from singe.tools.export.package import write_package
from singe.tools.export.stub import export_stub
from singe.tools.serving.folder_server import Server

SCRIPTS: Final = {"singe": "/singe/dist/singe-ort.js", "onnxruntime-web": "/ort/ort.wasm.bundle.min.mjs"}
MODELS: Final = {"singe": "/stub/model.onnx", "onnxruntime-web": "/model.onnx"}
RUNS: Final = 15
TURN: Final = """async ({ script, model, threads, inputs, runs }) => {
  const begun = performance.now();
  const { env, InferenceSession, Tensor } = await import(script);
  Object.assign(env.wasm, { wasmPaths: "/ort/", numThreads: threads });
  const session = await InferenceSession.create(model, { executionProviders: ["wasm"] });
  const filled = (dtype, size) => (dtype === "int64" ? new BigInt64Array(size).fill(1n) : dtype === "float32" ? new Float32Array(size).fill(0.5) : null);
  const size = (shape) => shape.reduce((all, d) => all * d, 1);
  const feeds = Object.fromEntries(inputs.map(([name, dtype, shape]) => [name, new Tensor(dtype, filled(dtype, size(shape)), shape)]));
  const outputs = await session.run(feeds);
  const first = performance.now() - begun;
  const times = [];
  for (let k = 0; k < runs; k++) {
    const start = performance.now();
    await session.run(feeds);
    times.push(performance.now() - start);
  }
  const fetched = performance.getEntriesByType("resource").map(({ name, transferSize }) => [new URL(name).pathname, transferSize]);
  const values = Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => [name, Array.from(data, Number)]));
  return { first, run: times.sort((a, b) => a - b)[runs >> 1], fetched, values };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        site = Path(made)
        shutil.copy(asked.model, site / "model.onnx")
        (site / "index.html").write_text('<!doctype html><link rel="icon" href="data:,"><title>drop-in</title>')
        shutil.copytree(package() / "node_modules" / "onnxruntime-web" / "dist", site / "ort")
        write_package(site / "singe")
        model = load(asked.model, "numpy")
        (site / "stub").mkdir()
        export_stub(model, site / "stub" / "model.onnx", targets=["wasm"])
        sizes = [
            [d if isinstance(d, int) else (asked.length if k else 1) for k, d in enumerate(x.shape or ())]
            for x in model.inputs
        ]
        inputs = [(x.name, x.dtype.name, shape) for x, shape in zip(model.inputs, sizes, strict=True)]
        with Server(site, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            race(server.address, inputs, [int(n) for n in asked.threads.split(",")], asked.rounds)
            server.shutdown()


def race(address: str, inputs: list[tuple[str, str, list[int]]], threads: list[int], rounds: int) -> None:
    found: defaultdict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for _ in range(rounds):
            for count in threads:
                for who, script in SCRIPTS.items():
                    context = browser.new_context()
                    page = context.new_page()
                    page.goto(address)
                    given = {"script": script, "model": MODELS[who], "threads": count, "inputs": inputs, "runs": RUNS}
                    found[who, count].append(page.evaluate(TURN, given))
                    context.close()
        browser.close()
    for (who, count), turns in found.items():
        first, run = (median(turn[what] for turn in turns) for what in ("first", "run"))
        most: dict[str, int] = {}
        for path, size in turns[0]["fetched"]:
            if "weights-" not in path and path != MODELS["onnxruntime-web"]:
                most[path] = max(most.get(path, 0), size)
        print(
            f"{who}, {count} threads: first answer {first:.0f} ms, a run {run:.1f} ms, {sum(most.values()) / 1e6:.3f} MB beside the weights"
        )
    ours, theirs = (found[who, threads[0]][0]["values"] for who in SCRIPTS)
    apart = max(float(np.abs(np.subtract(ours[name], theirs[name])).max()) for name in theirs)
    print(f"the largest difference: {apart:.1e}")


if __name__ == "__main__":
    main()
