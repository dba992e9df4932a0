"""Time from navigation to the first answer of a small model in Chromium, and the bytes of it, beside onnxruntime-web's.

    python tests/bench/first_answer.py [MODEL.onnx] [--repeat N]

Both pages load their runtime and the model, on one thread of WebAssembly, and run it once on zeros; they take turns. It
is a repeated visit: the disk cache is warm, and Singe's files are in Cache Storage. Bytes are those of a first visit,
compressed as `singe serve` sends them.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ort_web import CHROMIUM, FLAGS, VERSION, package
from playwright.sync_api import sync_playwright

from singe.model.files import load
from singe.tools.export.bundle import export
from singe.tools.serve import Server

ROOT: Final = Path(__file__).parents[2]
OURS: Final = """<!doctype html><meta charset=utf-8><title>singe</title><script type=module>
import { load } from "./model/singe.js";
const model = await load("./model/", { device: "wasm" });
const inputs = model.inputs.map(({ name, shape }) => {
  const dims = shape.map((d) => (typeof d === "number" ? d : 1));
  return [name, { data: new Float32Array(dims.reduce((a, b) => a * b, 1)), shape: dims }];
});
await model.run(Object.fromEntries(inputs));
window.answered = performance.now();
</script>"""
THEIRS: Final = """<!doctype html><meta charset=utf-8><title>onnxruntime-web</title><script type=module>
import * as ort from "./ort/node_modules/onnxruntime-web/dist/ort.wasm.min.mjs";
ort.env.wasm.wasmPaths = new URL("./ort/node_modules/onnxruntime-web/dist/", location.href).href;
ort.env.wasm.numThreads = 1;
const session = await ort.InferenceSession.create("./model.onnx", { executionProviders: ["wasm"] });
const feeds = session.inputMetadata.map(({ name, shape }) => {
  const dims = shape.map((d) => (typeof d === "number" ? d : 1));
  return [name, new ort.Tensor("float32", new Float32Array(dims.reduce((a, b) => a * b, 1)), dims)];
});
await session.run(Object.fromEntries(feeds));
window.answered = performance.now();
</script>"""


@contextmanager
def site(model: Path) -> Iterator[tuple[Path, str]]:
    """A folder with both pages, and the address at which it is served."""
    with tempfile.TemporaryDirectory(prefix="singe-first-") as made:
        folder = Path(made)
        export(load(model, device="numpy"), folder / "model")
        (folder / "model.onnx").write_bytes(model.read_bytes())
        dist = Path("node_modules", "onnxruntime-web", "dist")
        (folder / "ort" / dist).mkdir(parents=True)
        for path in (package() / dist).glob("ort*"):
            (folder / "ort" / dist / path.name).write_bytes(path.read_bytes())
        (folder / "singe.html").write_text(OURS)
        (folder / "onnxruntime-web.html").write_text(THEIRS)
        with Server(folder, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield folder, server.address
            server.shutdown()


def visit(context: Any, url: str) -> tuple[float, list[str]]:
    """Milliseconds from navigation to the first answer, and the paths that were requested."""
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    page.wait_for_function("window.answered", timeout=60_000)
    time = page.evaluate("window.answered")
    page.close()
    return time, asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", default=ROOT.parent / "shared" / "models" / "mnist_cnn.onnx")
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    names = ("singe", "onnxruntime-web")
    times: dict[str, list[float]] = {name: [] for name in names}
    first: dict[str, tuple[float, list[str]]] = {}
    with (
        site(given.model) as (folder, address),
        sync_playwright() as playwright,
        tempfile.TemporaryDirectory() as profile,
    ):
        context = playwright.chromium.launch_persistent_context(profile, executable_path=CHROMIUM, args=FLAGS)
        for name in names:
            first[name] = visit(context, f"{address}{name}.html")
        for _ in range(given.repeat):
            for name in names:
                times[name].append(visit(context, f"{address}{name}.html")[0])
        context.close()
        print(f"{given.model.stem}, first answer after navigation, one thread; onnxruntime-web {VERSION}\n")
        print("| | first visit ms | warm: median ms (least) | files | kB gzip | without weights or model |")
        print("|---|---|---|---|---|---|")
        for name in names:
            paths = {url.removeprefix(address).partition("?")[0] for url in first[name][1]}
            sizes = {p: len(gzip.compress((folder / p).read_bytes(), 6)) for p in paths if (folder / p).is_file()}
            code = sum(size for path, size in sizes.items() if not path.endswith((".bin", ".onnx")))
            median, least = statistics.median(times[name]), min(times[name])
            figures = (
                f"{first[name][0]:.0f} | {median:.0f} ({least:.0f}) | {len(sizes)} | {sum(sizes.values()) / 1000:.1f}"
            )
            print(f"| {name} | {figures} | {code / 1000:.1f} |")


if __name__ == "__main__":
    main()
