"""From a model's file to its first answer in a page with Python: Singe under Pyodide, on `wasm` and on `numpy`, beside onnxruntime-web.

    python tests/bench/races/python_start.py [FOLDER] [--models mnist_cnn,…] [--rounds 3] [--csv FILE]

Every time is that of a new page in a new browser context, on one thread: from the call that loads the file, over a local server, to the
outputs. Python, NumPy and Singe are there before, as onnxruntime-web's script is; how long Python takes to be there is printed
alone. The first item of each recorded input is run, and all outputs are compared with the recording.
"""

from __future__ import annotations

import argparse
import csv
import io
import shutil
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from playwright.sync_api import sync_playwright
from wasm_gemm import setup

from singe.tools.serving.folder_server import Server

sys.path.insert(0, str(Path(__file__).parents[1]))

from chromium import CODEC, difference, encoded, recorded
from inputs.packaged import folder_of
from ort_web import CHROMIUM, FLAGS, package

WHO: Final = ("onnxruntime-web", "Python, wasm", "Python, numpy")
COLUMNS: Final = ("model", "MB", *(f"{who}, ms" for who in WHO), "wasm over onnxruntime-web")
ORT_PAGE: Final = """<!doctype html><meta charset=utf-8><title>onnxruntime-web</title><script type=module>
CODECimport * as ort from "./ort/ort.wasm.min.mjs";
Object.assign(ort.env.wasm, { wasmPaths: new URL("./ort/", location).href, numThreads: 1 });
window.answer = async (model, _, inputs) => {
  const feeds = Object.fromEntries(inputs.map(([name, dtype, shape, data]) => [name, new ort.Tensor(dtype, new types[dtype](bytes(data)), shape)]));
  const start = performance.now();
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const found = await session.run(feeds);
  const taken = performance.now() - start;
  return [taken, Object.fromEntries(Object.entries(found).map(([name, { data }]) => [name, text(data)]))];
};
window.started = 0;
</script>""".replace("CODEC", CODEC)
PYTHON_PAGE: Final = """<!doctype html><meta charset=utf-8><title>Python</title><script type=module>
import { start } from "./python/start.js";
const begun = performance.now();
const { pyodide } = await start();
const started = performance.now() - begun;
await pyodide.runPythonAsync(`
import base64, io, json, time
import js
import numpy as np
import singe as sg

async def answer(model, device):
    data = (await (await js.fetch(model.replace(".onnx", ".npz"))).arrayBuffer()).to_bytes()
    with np.load(io.BytesIO(data)) as arrays:
        inputs = dict(arrays)
    start = time.perf_counter()
    loaded = await sg.load_async(model, device)
    found = await loaded.run_async(inputs)
    taken = time.perf_counter() - start
    found = found if isinstance(found, dict) else {loaded.outputs[0].name: found}
    return json.dumps([taken * 1000, {k: base64.b64encode(v.tobytes()).decode() for k, v in found.items()}])
`);
const answer = pyodide.globals.get("answer");
window.answer = async (model, device) => JSON.parse(await answer(model, device));
window.started = started;
</script>"""


@contextmanager
def site(models: Sequence[Path], python: Path) -> Iterator[str]:
    """The address of a folder with both pages, the models and their inputs, Python, and onnxruntime-web."""
    with tempfile.TemporaryDirectory(prefix="singe-start-") as made:
        folder = Path(made)
        for path in models:
            (folder / path.name).write_bytes(path.read_bytes())
            packed = io.BytesIO()
            np.savez(packed, **recorded(path.parent, path.stem)[0])  # pyright: ignore[reportArgumentType]
            (folder / f"{path.stem}.npz").write_bytes(packed.getvalue())
        (folder / "ort.html").write_text(ORT_PAGE, "utf-8")
        (folder / "python.html").write_text(PYTHON_PAGE, "utf-8")
        shutil.copytree(python, folder / "python")
        shutil.copytree(package() / "node_modules" / "onnxruntime-web" / "dist", folder / "ort")
        with Server(folder, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server.address
            server.shutdown()


def measured(browser: Any, address: str, path: Path, who: str) -> tuple[float, float]:
    """Milliseconds from the file to the answer, and before that until Python was there."""
    inputs, wanted = recorded(path.parent, path.stem)
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(300_000)
    page.goto(address + ("ort.html" if who == WHO[0] else "python.html"))
    page.wait_for_function("window.started !== undefined")
    asked = [path.name, who.rpartition(" ")[2], encoded(inputs)]
    taken, found = page.evaluate("([model, device, inputs]) => answer(model, device, inputs)", asked)
    started = page.evaluate("started")
    context.close()
    if (off := difference(found, wanted)) > 1e-3:
        raise SystemExit(f"{who}, {path.name}: the answer is {off:.1e} off, expected 1e-3 of the largest value")
    return taken, started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="models with recordings (default: those of packaged.py)")
    parser.add_argument("--models", default="", help="names, with commas between them (default: all of them)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--csv", type=Path, help="write the table to this file")
    args = parser.parse_args()
    names = [name for name in args.models.split(",") if name]
    models = [p for p in sorted(folder_of(args.folder).glob("*.onnx")) if p.stem in names or not names]
    rows, starts = [], []
    with tempfile.TemporaryDirectory(prefix="singe-pyodide-") as made, sync_playwright() as playwright:
        python = Path(made)
        setup().assemble(python, say=lambda _: None)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        print(f"Chromium {browser.version}, Pyodide {setup().VERSION}, one thread, ms: medians of {args.rounds}\n")
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
        with site(models, python) as address:
            for path in models:
                taken: dict[str, list[float]] = {who: [] for who in WHO}
                for _ in range(args.rounds):
                    for who in WHO:
                        answered, started = measured(browser, address, path, who)
                        taken[who].append(answered)
                        if who != WHO[0]:
                            starts.append(started)
                median = {who: statistics.median(times) for who, times in taken.items()}
                ratio = median[WHO[1]] / median[WHO[0]]
                cells = (
                    path.stem,
                    f"{path.stat().st_size / 1e6:.1f}",
                    *(f"{x:.0f}" for x in median.values()),
                    f"{ratio:.1f}",
                )
                rows.append(cells)
                print(f"| {' | '.join(cells)} |", flush=True)
        browser.close()
    print(
        f"\nPython, NumPy and Singe are there after {statistics.median(starts) / 1000:.1f} s ({min(starts) / 1000:.1f})"
    )
    if args.csv:
        with args.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
