"""A model under Pyodide, on `wasm` and on `numpy`, beside a page without Python, in one Chromium, taking turns.

    python tests/bench/races/python_page.py [FOLDER] [--models efficientnet_lite0,…] [--rounds 20]

All run on one thread. One page has Pyodide and Singe's wheel and calls `model(x)` with NumPy arrays in and out; the
other runs the bundle with singe.js. The first item of each recorded input is run, and all outputs are compared with the
recording. A time is the mean of runs that together last LASTING milliseconds.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from playwright.sync_api import sync_playwright
from wasm_gemm import setup

from singe.model.files import load
from singe.tools.export.bundle import export
from singe.tools.serving.folder_server import Server

sys.path.insert(0, str(Path(__file__).parents[1]))

from chromium import CODEC, LASTING, REST, difference, encoded, recorded
from inputs.packaged import folder_of
from ort_web import CHROMIUM, FLAGS

WHO: Final = ("page without Python", "Python, wasm", "Python, numpy")
PAGE: Final = """<!doctype html><meta charset=utf-8><title>without Python</title><script type=module>
import { load } from "./bundle/singe.js";
CODEClet model, given;
window.open_ = async (inputs) => {
  model = await load("./bundle/", { device: "wasm", threads: 1 });
  given = Object.fromEntries(inputs.map(([name, dtype, shape, data]) => [name, { data: new types[dtype](bytes(data)), shape }]));
  return Object.entries(await model.run(given)).map(([name, a]) => [name, text(a.data)]);
};
window.time = async (_, lasting, rest) => {
  await new Promise((done) => setTimeout(done, rest));
  let count = 0;
  const start = performance.now();
  let end = start;
  for (; end - start < lasting; end = performance.now(), count += 1) await model.run(given);
  return (end - start) / count;
};
window.ready = true;
</script>""".replace("CODEC", CODEC)
PYTHON_PAGE: Final = """<!doctype html><meta charset=utf-8><title>Python</title><script type=module>
import { start } from "./python/start.js";
const { pyodide } = await start();
await pyodide.runPythonAsync(`
import base64, io, json, time
import js
import numpy as np
import singe as sg
models = {}

async def open_():
    global inputs
    data = (await (await js.fetch("inputs.npz")).arrayBuffer()).to_bytes()
    with np.load(io.BytesIO(data)) as arrays:
        inputs = dict(arrays)
    answers = {}
    for device in ("wasm", "numpy"):
        model = models[f"Python, {device}"] = await sg.load_async("model.onnx", device)
        found = model(inputs)
        found = found if isinstance(found, dict) else {model.outputs[0].name: found}
        answers[f"Python, {device}"] = {k: base64.b64encode(v.tobytes()).decode() for k, v in found.items()}
    return json.dumps(answers)

def lasting(who, milliseconds):
    model, count = models[who], 0
    start = end = time.perf_counter()
    while end - start < milliseconds / 1000:
        model(inputs)
        count += 1
        end = time.perf_counter()
    return (end - start) / count * 1000
`);
const [open_, lasting] = ["open_", "lasting"].map((name) => pyodide.globals.get(name));
window.open_ = () => open_();
window.time = async (who, milliseconds, rest) => {
  await new Promise((done) => setTimeout(done, rest));
  return lasting(who, milliseconds);
};
window.ready = true;
</script>"""


@contextmanager
def site(model: Path, inputs: Mapping[str, np.ndarray], python: Path) -> Iterator[str]:
    """The address of a folder with both pages, the bundle, the model, its inputs, and Python."""
    with tempfile.TemporaryDirectory(prefix="singe-python-") as made:
        folder = Path(made)
        export(load(model, "numpy", {k: a.shape for k, a in inputs.items()}), folder / "bundle", ["wasm"])
        (folder / "model.onnx").write_bytes(model.read_bytes())
        packed = io.BytesIO()
        np.savez(packed, **inputs)  # pyright: ignore[reportArgumentType]
        (folder / "inputs.npz").write_bytes(packed.getvalue())
        (folder / "index.html").write_text(PAGE, "utf-8")
        (folder / "python.html").write_text(PYTHON_PAGE, "utf-8")
        shutil.copytree(python, folder / "python")
        with Server(folder, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server.address
            server.shutdown()


def race(
    browser: Any, address: str, inputs: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray], rounds: int
) -> dict[str, list[float]]:
    """Milliseconds of each, taking turns."""
    bare, python = browser.new_page(), browser.new_page()
    for page, path in ((bare, ""), (python, "python.html")):
        page.goto(address + path)
        page.wait_for_function("window.ready === true", timeout=120_000)
    answers = {
        WHO[0]: dict(bare.evaluate("i => open_(i)", encoded(inputs))),
        **json.loads(python.evaluate("() => open_()")),
    }
    for who, found in answers.items():
        if difference(found, wanted) > 1e-4:
            raise SystemExit(
                f"{who}: the answer is {difference(found, wanted):.1e} off, expected 1e-4 of the largest value"
            )
    times: dict[str, list[float]] = {who: [] for who in WHO}
    for number in range(rounds + 1):
        for who in WHO:
            page = bare if who == WHO[0] else python
            taken = page.evaluate("([w, l, r]) => time(w, l, r)", [who, LASTING, REST])
            if number:  # the first turn warms up
                times[who].append(taken)
    for page in (bare, python):
        page.close()
    return times


def show(name: str, times: Mapping[str, Sequence[float]]) -> str:
    median = {who: statistics.median(t) for who, t in times.items()}
    least = {who: min(t) for who, t in times.items()}
    cells = [f"{median[who]:.2f} ({least[who]:.2f})" for who in WHO]
    bare, wasm, numpy = WHO
    ratios = [f"{median[a] / median[b]:.2f} ({least[a] / least[b]:.2f})" for a, b in ((wasm, bare), (numpy, wasm))]
    return f"| {' | '.join([name, *cells, *ratios])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="models with recordings (default: those of packaged.py)")
    parser.add_argument("--models", default="efficientnet_lite0,mnist_cnn", help="names, with commas between them")
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    folder = folder_of(args.folder)
    with tempfile.TemporaryDirectory(prefix="singe-pyodide-") as made, sync_playwright() as playwright:
        python = Path(made)
        setup().assemble(python, say=lambda _: None)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        print(f"Chromium {browser.version}, Pyodide {setup().VERSION}, one thread, ms: median (least)\n")
        columns = ["batch 1", *WHO, "wasm over the page", "numpy over wasm"]
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
        for name in args.models.split(","):
            inputs, wanted = recorded(folder, name)
            with site(folder / f"{name}.onnx", inputs, python) as address:
                print(show(name, race(browser, address, inputs, wanted, args.rounds)), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
