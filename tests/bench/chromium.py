"""Exported bundles beside onnxruntime-web in one Chromium, taking turns, on WebAssembly.

    python tests/bench/chromium.py [FOLDER] [--models efficientnet_lite0,…] [--threads 1,2] [--rounds 30]
    python tests/bench/chromium.py --random [minilm_l6,…] [--threads 1,2] [--rounds 30]
    python tests/bench/chromium.py --gemm [--threads 1,2]

FOLDER has ONNX models with recorded outputs; the first item of each batch is run, and both outputs are compared with
the recording. --random races models of others.py, which need no download. --gemm races matrix products with a constant
operand instead, ours also into an existing array, beside a loop of multiply-adds in registers on the same threads: the
machine's peak at that moment. A time is the mean of runs that together last LASTING milliseconds, since a page's clock is
coarse.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import statistics
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from inputs import others
from inputs.packaged import FOLDER, folder_of
from inputs.products import ROOF_WORK, onnx_product, roof
from inputs.recordings import first_items
from ort_web import CHROMIUM, FLAGS, VERSION, package
from playwright.sync_api import sync_playwright

from singe.model.files import load
from singe.tools.export.bundle import export
from singe.tools.serving.folder_server import Server

ROOT: Final = Path(__file__).parents[2]
SIZES: Final = (
    (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (33, 47, 129), (1, 1000, 1280), (197, 768, 768), (12544, 96, 16),
    (196, 672, 112), (49, 1152, 320),
)  # fmt: skip
LASTING: Final = 20
REST: Final = 50
"""Milliseconds to wait before a turn, since threads of the other runtime may spin for a while after its runs."""
WHO: Final = ("singe", "onnxruntime-web")
INTO: Final = "singe, into the caller's array"
ROOF: Final = "in registers"
ROOF_TURNS: Final = 2_000_000
CODEC: Final = """const types = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array, bool: Uint8Array };
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
const text = (a) => {
  let out = "";
  for (const b of new Uint8Array(a.buffer, a.byteOffset, a.byteLength)) out += String.fromCharCode(b);
  return btoa(out);
};
"""
"""Functions for pages of races: tensors are sent and received as text."""
PAGE: Final = """<!doctype html><meta charset=utf-8><title>race</title><script type=module>
import { load } from "./bundle/singe.js";
import * as ort from "./ort/ort.wasm.min.mjs";
CODECconst runs = {};
let model, ours;
window.openBoth = async (inputs, threads) => {
  model = await load("./bundle/", { device: "wasm", threads });
  ours = Object.fromEntries(inputs.map(([name, dtype, shape, data]) => [name, { data: new types[dtype](bytes(data)), shape }]));
  ort.env.wasm.wasmPaths = new URL("./ort/", location.href).href;
  ort.env.wasm.numThreads = threads;
  const session = await ort.InferenceSession.create("./model.onnx", { executionProviders: ["wasm"] });
  const theirs = Object.fromEntries(inputs.map(([name, dtype, shape, data]) => [name, new ort.Tensor(dtype, new types[dtype](bytes(data)), shape)]));
  runs["singe"] = () => model.run(ours);
  runs["onnxruntime-web"] = () => session.run(theirs);
  const answers = {};
  for (const who in runs) {
    const out = await runs[who]();
    answers[who] = Object.entries(out).map(([name, a]) => [name, text(a.data)]);
  }
  return [crossOriginIsolated, answers];
};
window.openMore = async (threads, into, roof, turns) => {
  const outputs = Object.fromEntries(Object.entries(await model.run(ours)).map(([name, { data }]) => [name, data.slice().fill(0)]));
  runs[into] = () => model.run(ours, { outputs });
  const workers = Array.from({ length: threads }, () => new Worker("./roof.js"));
  const ask = (message) => Promise.all(workers.map((worker) => new Promise((done) => {
    worker.onmessage = done;
    worker.postMessage(message);
  })));
  await ask({ code: await (await fetch("./roof.wasm")).arrayBuffer() });
  runs[roof] = () => ask({ turns });
  await runs[into]();
  return Object.entries(outputs).map(([name, data]) => [name, text(data)]);
};
window.time = async (who, lasting, rest) => {
  await new Promise((done) => setTimeout(done, rest));
  let count = 0;
  const start = performance.now();
  let end = start;
  while (end - start < lasting) {
    await runs[who]();
    count += 1;
    end = performance.now();
  }
  return (end - start) / count;
};
window.ready = true;
</script>""".replace("CODEC", CODEC)
ROOF_WORKER: Final = """let run;
onmessage = async ({ data: { code, turns } }) => {
  const env = { memory: new WebAssembly.Memory({ initial: 1 }) };
  if (code) run = (await WebAssembly.instantiate(code, { env })).instance.exports.k0;
  else run(turns);
  postMessage({});
};
"""


@contextmanager
def site(model: Path, shapes: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """The address of a folder with the page, the bundle, the model and onnxruntime-web."""
    with tempfile.TemporaryDirectory(prefix="singe-race-") as made:
        folder = Path(made)
        export(load(model, "numpy", shapes), folder / "bundle", ["wasm"])
        shutil.copyfile(model, folder / "model.onnx")
        (folder / "ort").mkdir()
        for path in (package() / "node_modules" / "onnxruntime-web" / "dist").glob("ort*wasm*"):
            shutil.copyfile(path, folder / "ort" / path.name)
        (folder / "index.html").write_text(PAGE, "utf-8")
        (folder / "roof.js").write_text(ROOF_WORKER, "utf-8")
        (folder / "roof.wasm").write_bytes(roof(relaxed=True))
        with Server(folder, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server.address
            server.shutdown()


def encoded(inputs: Mapping[str, np.ndarray]) -> list[Any]:
    return [
        [name, str(a.dtype), list(a.shape), base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()]
        for name, a in inputs.items()
    ]


def race(
    browser: Any, model: Path, inputs: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray], threads: int, rounds: int,
    who: Sequence[str] = WHO,
) -> tuple[dict[str, list[float]], dict[str, float]]:  # fmt: skip
    """Milliseconds of `who`, taking turns, and the largest error of their outputs relative to the largest expected
    value."""
    with site(model, {name: a.shape for name, a in inputs.items()}) as address:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function("window.ready === true")
        isolated, answers = page.evaluate("([i, t]) => openBoth(i, t)", [encoded(inputs), threads])
        assert isolated, "the page is not isolated: threads are not there"
        if INTO in who:
            answers[INTO] = page.evaluate("(given) => openMore(...given)", [threads, INTO, ROOF, ROOF_TURNS])
        errors = {one: difference(dict(found), wanted) for one, found in answers.items()}
        times: dict[str, list[float]] = {one: [] for one in who}
        for number in range(rounds + 1):
            for one in who:
                taken = page.evaluate("([w, l, r]) => time(w, l, r)", [one, LASTING, REST])
                if number:  # the first turn warms up
                    times[one].append(taken)
        page.close()
    return times, errors


def difference(found: Mapping[str, str], wanted: Mapping[str, np.ndarray]) -> float:
    worst = 0.0
    for name, a in wanted.items():
        got = np.frombuffer(base64.b64decode(found[name]), a.dtype).reshape(a.shape)
        worst = max(worst, float(np.abs(got - a).max() / max(np.abs(a).max(), 1e-9)))
    return worst


def with_recordings(folder: Path) -> list[str]:
    return sorted(p.stem for p in folder.glob("*.onnx") if p.with_suffix(".npz").is_file())


def recorded(folder: Path, name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The first item of the recorded inputs, and onnxruntime's outputs for it."""
    import onnxruntime  # noqa: PLC0415 (the products need none)

    inputs = first_items(folder / f"{name}.onnx")
    session = onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return inputs, dict(zip(names, map(np.asarray, session.run(names, inputs)), strict=True))


def heading(first: str, threads: int, unit: str, last: str, who: Sequence[str] = WHO) -> None:
    columns = [
        f"{first}, {threads} thread{'s' * (threads > 1)}",
        *(f"{one.replace('web', f'web {VERSION}')} {unit}" for one in who),
        last,
    ]
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(' | '.join(columns).split(' | '))}", flush=True)


def models(browser: Any, folder: Path, names: Sequence[str], threads: int, rounds: int) -> None:
    heading("batch 1", threads, "ms (least)", "ratio | difference: singe, onnxruntime-web")
    for name in names:
        inputs, wanted = recorded(folder, name)
        times, errors = race(browser, folder / f"{name}.onnx", inputs, wanted, threads, rounds)
        ours, theirs = (statistics.median(times[who]) for who in WHO)
        least = [min(times[who]) for who in WHO]
        gaps = ", ".join(f"{errors[who]:.1e}" for who in WHO)
        print(
            f"| {name} | {ours:.2f} ({least[0]:.2f}) | {theirs:.2f} ({least[1]:.2f}) | {ours / theirs:.2f} | {gaps} |",
            flush=True,
        )


def products(browser: Any, threads: int, rounds: int) -> None:
    who = (WHO[0], INTO, ROOF, WHO[1])
    heading("m × k · n", threads, "GFLOP/s (best)", "ratio of times", who)
    rng = np.random.default_rng(0)
    for m, k, n in SIZES:
        x, weight = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        with tempfile.TemporaryDirectory(prefix="singe-product-") as made:
            path = Path(made) / "product.onnx"
            path.write_bytes(onnx_product(m, weight))
            times, errors = race(browser, path, {"x": x}, {"y": x @ weight}, threads, rounds, who)
        assert max(errors.values()) < 1e-4, errors
        work = dict.fromkeys(who, 2 * m * k * n / 1e6) | {ROOF: threads * ROOF_TURNS * ROOF_WORK / 1e6}
        ours, theirs = (statistics.median(times[one]) for one in WHO)
        cells = [f"{work[one] / statistics.median(times[one]):.1f} ({work[one] / min(times[one]):.1f})" for one in who]
        print(f"| {m} × {k} · {n} | {' | '.join(cells)} | {ours / theirs:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="models with recordings (default: those of packaged.py)")
    parser.add_argument("--models", help="names, with commas between them (default: all that have recordings)")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--random", nargs="?", const=",".join(others.MODELS), help="models with random weights (default: all)"
    )
    parser.add_argument("--gemm", action="store_true")
    args = parser.parse_args()
    if args.random:
        folder, names = others.FOLDER, args.random.split(",")
        others.prepare(folder, names)
    else:
        folder = FOLDER if args.gemm else folder_of(args.folder)  # products need no models
        names = args.models.split(",") if args.models else with_recordings(folder)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        print(f"Chromium {browser.version}, WebAssembly")
        for threads in map(int, args.threads.split(",")):
            if args.gemm:
                products(browser, threads, args.rounds)
            else:
                models(browser, folder, names, threads, args.rounds)
        browser.close()


if __name__ == "__main__":
    main()
