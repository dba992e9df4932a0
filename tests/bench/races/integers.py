"""Products and convolutions in int8 beside float32: bundles of both in one Chromium, taking turns, at both levels of SIMD.

    python tests/bench/races/integers.py [FOLDER] [--models efficientnet_lite0,…] [--threads 1] [--rounds 15]

FOLDER has ONNX models with recorded inputs; the first item of each is run. It prints the bytes of the weights, the error
of int8 relative to float32's largest value, the milliseconds of a run, medians (least), and the ratio of the medians;
for efficientnet_lite0 also how many photographs keep their top class. Times are as in chromium.py.
"""

from __future__ import annotations

import argparse
import base64
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

from singe.files.places import MANIFEST
from singe.model.compiling import compile as compiled
from singe.model.files import load
from singe.tasks.picture.spec import PictureSpec, read_picture
from singe.tools.export.bundle import export
from singe.tools.serving.folder_server import Server

sys.path.insert(0, str(Path(__file__).parents[1]))

from chromium import CODEC, LASTING, encoded, recorded, with_recordings
from inputs.packaged import ROOT, folder_of
from ort_web import CHROMIUM, FLAGS

SAMPLES: Final = ROOT / "demos" / "classify" / "samples"
LEVELS: Final = ("relaxed", "simd")
KINDS: Final = ("float32", "int8")
PAGE: Final = """<!doctype html><meta charset=utf-8><title>integers</title><script type=module>
import { load } from "./float32/singe.js";
CODECconst runs = {};
window.open = async (names, inputs, threads) => {
  const given = Object.fromEntries(inputs.map(([name, dtype, shape, data]) => [name, { data: new types[dtype](bytes(data)), shape }]));
  const answers = {};
  for (const name of names) {
    const model = await load(`./${name}/`, { device: "wasm", threads });
    runs[name] = () => model.run(given);
    answers[name] = Object.entries(await runs[name]()).map(([output, a]) => [output, text(a.data)]);
  }
  return answers;
};
window.time = async (who, lasting) => {
  let count = 0;
  const start = performance.now();
  let end = start;
  for (; end - start < lasting; end = performance.now(), count++) await runs[who]();
  return (end - start) / count;
};
window.ready = true;
</script>""".replace("CODEC", CODEC)


def plain(folder: Path, into: Path) -> None:
    """Write a copy of a bundle without the module that needs relaxed SIMD."""
    shutil.copytree(folder, into)
    manifest = json.loads((into / MANIFEST).read_bytes())
    for kernel in manifest["targets"]["wasm"]["program"]["kernels"]:
        kernel["variants"] = [v for v in kernel["variants"] if not v["requires"]]
    (into / MANIFEST).write_text(json.dumps(manifest), "utf-8")


@contextmanager
def site(model: Path, shapes: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, dict[str, int]]]:
    """The address of a folder with the bundles, and the bytes of their weights."""
    with tempfile.TemporaryDirectory(prefix="singe-integers-") as made:
        folder = Path(made)
        sizes = {}
        for kind in KINDS:
            given = load(model, "numpy", shapes)
            bundle = export(given, folder / kind, ["wasm"], dtype=kind, activations=kind)
            sizes[kind] = sum(w["bytes"] for w in bundle.manifest["targets"]["wasm"]["weights"])
            plain(folder / kind, folder / f"{kind}-simd")
        (folder / "index.html").write_text(PAGE, "utf-8")
        with Server(folder, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server.address, sizes
            server.shutdown()


def difference(one: Sequence[Any], other: Sequence[Any], dtypes: Mapping[str, np.dtype[Any]]) -> float:
    worst = 0.0
    for (name, a), (_, b) in zip(one, other, strict=True):
        x, y = (np.frombuffer(base64.b64decode(t), dtypes[name]) for t in (a, b))
        worst = max(worst, float(np.abs(x - y).max() / max(np.abs(x).max(), 1e-9)))
    return worst


def photographs(model: Path) -> str:
    """A line that says how many photographs keep their top class, computed by the numpy backend."""
    paths = sorted(SAMPLES.glob("*.jpg"))
    if model.stem != "efficientnet_lite0" or not paths:
        return ""
    spec = PictureSpec((224, 224), 3, 0.875, (127.0,), (128.0,), "nchw")
    given = load(model, "numpy")
    whole, small = (compiled(given, device="numpy", activations=kind) for kind in KINDS)
    pictures = [read_picture(p, spec) for p in paths]
    same = sum(whole(x).argmax() == small(x).argmax() for x in pictures)
    return f"; first class of {same} of {len(paths)} photographs kept"


def race(browser: Any, model: Path, threads: int, rounds: int) -> None:
    inputs, wanted = recorded(model.parent, model.stem)
    with site(model, {name: a.shape for name, a in inputs.items()}) as (address, sizes):
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function("window.ready === true")
        names = [f"{kind}{'' if level == 'relaxed' else '-simd'}" for level in LEVELS for kind in KINDS]
        answers = page.evaluate("([n, i, t]) => open(n, i, t)", [names, encoded(inputs), threads])
        dtypes = {name: a.dtype for name, a in wanted.items()}
        gap = difference(answers["float32"], answers["int8"], dtypes)
        times: dict[str, list[float]] = {name: [] for name in names}
        for number in range(rounds + 1):
            for name in names:
                taken = page.evaluate("([w, l]) => time(w, l)", [name, LASTING])
                if number:  # the first turn warms up
                    times[name].append(taken)
        page.close()
    cells = []
    for one, other in zip(names[::2], names[1::2], strict=True):
        middle = [statistics.median(times[n]) for n in (one, other)]
        cells += [f"{m:.2f} ({min(times[n]):.2f})" for m, n in zip(middle, (one, other), strict=True)]
        cells.append(f"{middle[1] / middle[0]:.2f}")
    told = f"{sizes['float32'] / 1e6:.2f}, {sizes['int8'] / 1e6:.2f}"
    print(f"| {model.stem} | {told} | {gap:.1e}{photographs(model)} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="models with recordings (default: those of packaged.py)")
    parser.add_argument("--models", help="names, with commas between them (default: all that have recordings)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    folder = folder_of(args.folder)
    names = args.models.split(",") if args.models else with_recordings(folder)
    columns = ["batch 1", "weights MB: float32, int8", "int8 from float32"]
    columns += [f"{level}: {what}" for level in LEVELS for what in ("float32 ms", "int8 ms", "ratio")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        print(f"Chromium {browser.version}, threads: {args.threads}\n")
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
        for name in names:
            race(browser, folder / f"{name}.onnx", args.threads, args.rounds)
        browser.close()


if __name__ == "__main__":
    main()
