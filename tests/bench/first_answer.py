"""Time and trips to the server until the first answer of a small model in Chromium, and its bytes, beside onnxruntime-web's.

    python tests/bench/first_answer.py [MODEL.onnx] [--repeat N] [--latency MS …] [--pages NAME …]

The pages load their runtime and the model, on one thread of WebAssembly, and run it once on zeros; they take turns. Singe
is loaded plainly, in a worker, and both with the lines of `singe export --snippet`; and from the npm package, in what Vite,
webpack and esbuild make of the projects in tests/bundlers. First visits are those of new browsers; at the others the disk
cache is warm, and Singe's files are in Cache Storage. The server waits before each answer for the latency. Trips are the
longest row of requests of which each came after the answer to the one before, HTML included, at the largest latency. Bytes
are those of a first visit, compressed as `singe serve` sends them.
"""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

from inputs.packaged import folder_of
from ort_web import CHROMIUM, FLAGS, VERSION, package
from playwright.sync_api import sync_playwright

from singe.model.files import load
from singe.tools.export.bundle import export
from singe.tools.export.package import write_package
from singe.tools.export.page.snippet import snippet, version
from singe.tools.serving.folder_server import Server, _Handler

ROOT: Final = Path(__file__).parents[2]
WAYS: Final = {
    "module": (False, False),
    "worker": (True, False),
    "module-snippet": (False, True),
    "worker-snippet": (True, True),
}
"""A page ↦ whether the model is in a worker, and whether the page has the lines of `singe export --snippet`."""
BUNDLERS: Final = {"vite": ("dist", "--base", "./"), "webpack": ("public",), "esbuild": ("public",)}
"""A project of tests/bundlers ↦ the folder that it builds, and options of its build."""
OURS: Final = """<!doctype html><meta charset=utf-8><title>singe</title><link rel=icon href="data:,">HINTS<script type=module>
SCRIPT</script>"""
SCRIPT: Final = """import { load } from "RUNNER";
const model = await load("MODEL", { device: "wasm", worker: WORKER });
const inputs = model.inputs.map(({ name, shape }) => {
  const dims = shape.map((d) => (typeof d === "number" ? d : 1));
  return [name, { data: new Float32Array(dims.reduce((a, b) => a * b, 1)), shape: dims }];
});
await model.run(Object.fromEntries(inputs));
window.answered = performance.now();
"""
THEIRS: Final = """<!doctype html><meta charset=utf-8><title>onnxruntime-web</title><link rel=icon href="data:,"><script type=module>
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
def site(model: Path, names: Set[str]) -> Iterator[tuple[Path, str]]:
    """A folder with the pages of these names, and the address at which it is served."""
    with tempfile.TemporaryDirectory(prefix="singe-first-") as made:
        folder = Path(made)
        bundle = export(load(model, device="numpy"), folder / "model")
        (folder / "model.onnx").write_bytes(model.read_bytes())
        dist = Path("node_modules", "onnxruntime-web", "dist")
        (folder / "ort" / dist).mkdir(parents=True)
        for path in (package() / dist).glob("ort*"):
            (folder / "ort" / dist / path.name).write_bytes(path.read_bytes())
        printed = snippet("/model/", bundle.manifest, bundle.files)
        hints = "".join(line for line in printed.splitlines() if "<link" in line)
        query = f"?v={version(bundle.files)}"
        for name, (worker, hinted) in WAYS.items():
            last = query if hinted else ""
            text = script(f"./model/singe.js{last}", f"./model/{last}", worker)
            (folder / f"{name}.html").write_text(OURS.replace("HINTS", hints if hinted else "").replace("SCRIPT", text))
        if names & {name for bundler in BUNDLERS for name in projects(bundler)}:
            build_projects(folder, "".join(re.findall(r'<link rel="preload"[^>]*>', hints)), query, names)
        (folder / "onnxruntime-web.html").write_text(THEIRS)
        with Server(folder, port=0) as server:
            server.RequestHandlerClass = Far
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield folder, server.address
            server.shutdown()


def script(runner: str, model: str, worker: bool) -> str:
    return SCRIPT.replace("RUNNER", runner).replace("MODEL", model).replace("WORKER", str(worker).lower())


def projects(bundler: str) -> dict[str, tuple[bool, bool]]:
    """The pages of a bundler, as WAYS has ours."""
    plain = {bundler: (False, False), f"{bundler}-worker": (True, False)}
    return {**plain, **({f"{bundler}-snippet": (False, True)} if bundler == "vite" else {})}


def build_projects(folder: Path, hints: str, query: str, names: Collection[str]) -> None:
    """The pages of bundlers that have these names, each in a folder of its own. hints: those that are not of scripts."""
    with tempfile.TemporaryDirectory(prefix="singe-npm-") as made:
        write_package(Path(made, "package"))
        every = [
            (bundler, name, way) for bundler in BUNDLERS for name, way in projects(bundler).items() if name in names
        ]
        for bundler, name, (worker, hinted) in every:
            built, *options = BUNDLERS[bundler]
            project = Path(made, name)
            shutil.copytree(ROOT / "tests" / "bundlers" / bundler, project)
            (project / "app.js").write_text(script("singe", f"/model/{query if hinted else ''}", worker))
            if hinted:
                page = project / "index.html"
                page.write_text(page.read_text().replace("<script", f"{hints}\n<script"))
            install = ["npm", "install", "--install-links", "--no-audit", "--no-fund", "--loglevel=error", "../package"]
            for command in (install, ["npm", "run", "build", "--", *options]):
                subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)
            shutil.copytree(project / built, folder / name)


def pages() -> dict[str, str]:
    """A row of the table ↦ the path of its page."""
    ours = {name: f"{name}.html" for name in WAYS}
    built = {name: f"{name}/" for bundler in BUNDLERS for name in projects(bundler)}
    return {**ours, **built, "onnxruntime-web": "onnxruntime-web.html"}


class Far(_Handler):
    """The handler of `singe serve`, a while away; it notes when requests come."""

    latency = 0.0
    asked: Final[list[float]] = []

    def do_GET(self) -> None:
        self.asked.append(time.monotonic())
        time.sleep(self.latency)
        super().do_GET()


def trips() -> int:
    depths: list[int] = []
    starts = sorted(Far.asked)
    for start in starts:
        answered = (d for s, d in zip(starts, depths, strict=False) if s + Far.latency <= start)
        depths.append(1 + max(answered, default=0))
    return max(depths)


def visit(context: Any, url: str) -> tuple[float, int, list[str]]:
    """Milliseconds from navigation to the first answer, the trips, and the paths that were requested."""
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    Far.asked.clear()
    page.goto(url)
    page.wait_for_function("window.answered", timeout=60_000)
    answered, count = page.evaluate("window.answered"), trips()
    page.wait_for_timeout(300)  # what was fetched is being kept
    page.close()
    return answered, count, asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", help="default: mnist_cnn of packaged.py")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--latency", type=int, nargs="+", default=[0, 100, 300], metavar="MS")
    parser.add_argument("--pages", nargs="+", choices=pages(), default=list(pages()), metavar="NAME")
    given = parser.parse_args()
    names = {name: path for name, path in pages().items() if name in given.pages}
    times: dict[tuple[str, int, bool], list[float]] = {}
    counts: dict[tuple[str, bool], int] = {}
    asked: dict[str, list[str]] = {}
    model = given.model or folder_of(None) / "mnist_cnn.onnx"
    with site(model, names.keys()) as (folder, address), sync_playwright() as playwright:
        for latency, _ in product(given.latency, range(given.repeat)):
            Far.latency = latency / 1000
            for name, path in names.items():
                with tempfile.TemporaryDirectory() as profile:
                    browser = playwright.chromium.launch_persistent_context(
                        profile, executable_path=CHROMIUM, args=FLAGS
                    )
                    for again in (False, True):
                        took, count, paths = visit(browser, f"{address}{path}")
                        times.setdefault((name, latency, again), []).append(took)
                        if latency == max(given.latency):
                            counts[name, again] = count
                        asked.setdefault(name, paths)
                    browser.close()
        columns = [(latency, again) for again in (False, True) for latency in given.latency]
        told = [f"{'again' if again else 'first'} at {latency} ms" for latency, again in columns]
        print(f"{model.stem}, ms to the first answer, one thread; onnxruntime-web {VERSION}\n")
        print(f"| | {' | '.join(told)} | trips first, again | files | kB gzip | without weights or model |")
        print("|---" * (len(columns) + 5) + "|")
        for name in names:
            paths = {url.removeprefix(address).partition("?")[0] for url in asked[name]}
            sizes = {p: len(gzip.compress((folder / p).read_bytes(), 6)) for p in paths if (folder / p).is_file()}
            code = sum(size for path, size in sizes.items() if not path.endswith((".bin", ".onnx")))
            medians = " | ".join(f"{statistics.median(times[name, *column]):.0f}" for column in columns)
            told_trips = f"{counts[name, False]}, {counts[name, True]}"
            print(
                f"| {name} | {medians} | {told_trips} | {len(sizes)} | {sum(sizes.values()) / 1000:.1f} | {code / 1000:.1f} |"
            )


if __name__ == "__main__":
    main()
