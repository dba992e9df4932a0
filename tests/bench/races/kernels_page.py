"""A page of Chromium that times kernels of the target "wasm" alone, beside onnxruntime-web's model of the same work.

Each case has a name, and its data in files NAME.KIND: `x`, the input for onnxruntime-web, `onnx`, and the files of each
kernel's Given. All run on one thread; times are the CPU time of the page's thread.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from singe.tools.serving.folder_server import Server

sys.path.insert(0, str(Path(__file__).parents[1]))

from chromium import CODEC
from ort_web import package

PEER: Final = "onnxruntime-web"
LASTING: Final = 20
"""The least milliseconds that a measurement lasts."""
PAGE: Final = """<!doctype html><meta charset=utf-8><title>kernels</title><script type=module>
import * as ort from "./ort/ort.wasm.min.mjs";
ort.env.wasm.wasmPaths = new URL("./ort/", location.href).href;
ort.env.wasm.numThreads = 1;
CODECconst fetched = async (name) => (await fetch(name)).arrayBuffer();
let runs = {};
window.openCase = async (name, shape, count, kernels) => {
  runs = {};
  const answers = {};
  for (const [who, { code, inputs, scratch }] of Object.entries(kernels)) {
    const given = await Promise.all(inputs.map((kind) => fetched(`${name}.${kind}`)));
    let end = 256;
    const place = (count) => (end += Math.ceil(count / 256) * 256) - Math.ceil(count / 256) * 256;
    const at = [...given.map((data) => data.byteLength), 4 * count].map(place);
    const all = [...at, ...(scratch ? [place(scratch)] : []), 0, 1];
    const memory = new WebAssembly.Memory({ initial: Math.ceil(end / 65536) });
    given.forEach((data, i) => new Uint8Array(memory.buffer).set(new Uint8Array(data), at[i]));
    const { instance } = await WebAssembly.instantiate(await fetched(`${name}.${code}`), { env: { memory } });
    runs[who] = () => instance.exports.k0(...all);
    runs[who]();
    answers[who] = text(new Float32Array(memory.buffer, at.at(-1), count));
  }
  const session = await ort.InferenceSession.create(`${name}.onnx`, { executionProviders: ["wasm"] });
  const x = new ort.Tensor("float32", new Float32Array(await fetched(`${name}.x`)), shape);
  runs["PEER"] = () => session.run({ x });
  answers["PEER"] = text((await session.run({ x })).y.data);
  return answers;
};
window.openTurns = async (names, turns) => {
  runs = {};
  for (const name of names) {
    const env = { memory: new WebAssembly.Memory({ initial: 1 }) };
    const { instance } = await WebAssembly.instantiate(await fetched(`${name}.wasm`), { env });
    runs[name] = () => instance.exports.k0(turns);
  }
};
window.time = async (who, lasting) => {
  let count = 0;
  for (const start = performance.now(); performance.now() - start < lasting; count++) await runs[who]();
  return count;
};
window.ready = true;
</script>""".replace("CODEC", CODEC).replace("PEER", PEER)


@dataclass(frozen=True)
class Given:
    """A kernel's module and inputs, by the kinds of their files, and the bytes of scratch that it needs."""

    code: str
    inputs: Sequence[str]
    scratch: int


@contextmanager
def site(files: Mapping[str, bytes], more: Callable[[Path], None] = lambda folder: None) -> Iterator[str]:
    """The address of a folder with the page, onnxruntime-web, these files, and those that `more` adds."""
    with tempfile.TemporaryDirectory(prefix="singe-kernels-") as made:
        folder = Path(made)
        (folder / "index.html").write_text(PAGE, "utf-8")
        (folder / "ort").mkdir()
        for path in (package() / "node_modules" / "onnxruntime-web" / "dist").glob("ort*wasm*"):
            shutil.copyfile(path, folder / "ort" / path.name)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        more(folder)
        with Server(folder, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server.address
            server.shutdown()


class Page:
    """A page whose thread's CPU time can be read."""

    def __init__(self, browser: Any, address: str) -> None:
        self.page: Final = browser.new_page()
        self.page.goto(address)
        self.page.wait_for_function("window.ready === true", timeout=120_000)
        self._session: Final = self.page.context.new_cdp_session(self.page)
        self._session.send("Performance.enable")

    def open(self, name: str, shape: Sequence[int], count: int, kernels: Mapping[str, Given]) -> dict[str, np.ndarray]:
        """The results, `count` elements each, of a case's kernels and of onnxruntime-web,
        whose input has this shape."""
        given = {who: asdict(kernel) for who, kernel in kernels.items()}
        answers = self.page.evaluate("(given) => openCase(...given)", [name, list(shape), count, given])
        return {who: np.frombuffer(base64.b64decode(text), np.float32) for who, text in answers.items()}

    def seconds(self) -> float:
        """The CPU time of its thread so far."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "ThreadTime")

    def time(self, who: str) -> float:
        """Seconds of one run."""
        start = self.seconds()
        count = self.page.evaluate("([w, l]) => time(w, l)", [who, LASTING])
        return (self.seconds() - start) / count

    def best(self, names: Sequence[str], rounds: int) -> dict[str, float]:
        """The least seconds of each, taking turns; the first turn warms up."""
        turns = [[self.time(who) for who in names] for _ in range(rounds + 1)][1:]
        return dict(zip(names, map(min, zip(*turns, strict=True)), strict=True))
