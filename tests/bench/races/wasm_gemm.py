"""Matrix products in WebAssembly: the generated kernels alone, beside onnxruntime-web and NumPy in one Chromium.

    python tests/bench/races/wasm_gemm.py [--shapes 256x256x256,…] [--rounds 10] [--no-numpy]
    python tests/bench/races/wasm_gemm.py --wasmtime [--shapes …]

A shape is rows x depth x columns; the second matrix is constant. All run on one thread, in turns. Rates are over the
thread's CPU time (a shared machine preempts it now and then), the best of all rounds. The first row is the machine's
peak: multiply-adds in registers. NumPy, under Pyodide, runs in a page of its own. All results are compared with float64.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import wasmtime
from kernels_page import PEER, Given, Page, site
from playwright.sync_api import sync_playwright

from singe.compiler.target import Printed
from singe.dtypes import float32, int32
from singe.ir import scalar
from singe.ir.kernel import Kernel, Port, Reduce, Routine, Store
from singe.shapes import known
from singe_wasm.levels import LEVELS, PAGES
from singe_wasm.target import WasmTarget

sys.path.insert(0, str(Path(__file__).parents[1]))

from inputs.products import ROOF_WORK, onnx_product, roof
from ort_web import CHROMIUM, FLAGS, VERSION

ROOT: Final = Path(__file__).parents[3]
SHAPES: Final = (
    "256x256x256,512x512x512,1024x1024x1024,33x129x47,1x1280x1000,197x768x768,12544x96x16,12544x16x32,3136x144x24,"
    "784x40x240,196x672x112,196x112x672,49x1152x192,49x1152x320,49x192x1152,1000x27x64"
)
ROOF_TURNS: Final = 10_000
LARGEST_FOR_NUMPY: Final = 1 << 29
"""NumPy runs only products of at most this size: larger ones would take seconds."""

NUMPY_PAGE: Final = """<!doctype html><meta charset=utf-8><title>NumPy</title><script type=module>
import { start } from "./python/start.js";
const { pyodide } = await start();
pyodide.runPython(`
import time
import numpy as np
def rate(m, k, n):
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    return 2e-9 * m * k * n / best
`);
window.rate = pyodide.globals.get("rate");
window.ready = true;
</script>"""

Shape = tuple[int, int, int]


def product(m: int, k: int, n: int) -> Routine:
    """a @ b."""
    i, j, r = (scalar.var(name, int32, d) for name, d in (("g0", m), ("g1", n), ("r0", k)))
    total = Reduce("a0", "add", scalar.load(0, i * k + r, float32) * scalar.load(1, r * n + j, float32))
    ports = (Port(float32), Port(float32), Port(float32, True))
    return Routine("matmul", Kernel(ports, (m, n), (k,), (total, Store(2, i * n + j, total.accumulator))))


@dataclass(frozen=True)
class Case:
    """A product with its inputs, and the modules of its kernel by level."""

    shape: Shape
    a: np.ndarray
    b: np.ndarray
    printed: Printed
    modules: Mapping[str, bytes]

    @property
    def name(self) -> str:
        return "x".join(map(str, self.shape))

    @property
    def work(self) -> int:
        return 2 * int(np.prod(self.shape))

    @property
    def panels(self) -> np.ndarray:
        return self.printed.packers[1](self.b) if 1 in self.printed.packers else self.b

    def check(self, who: str, answer: np.ndarray) -> None:
        m, k, n = self.shape
        wanted = self.a.astype(np.float64) @ self.b.astype(np.float64)
        gap = np.abs(answer.reshape(m, n) - wanted).max() / np.abs(wanted).max()
        if gap > 1e-5:
            raise SystemExit(
                f"{m} × {k} · {n}: the answer of {who} is {gap:.1e} off, expected 1e-5 of the largest value"
            )


def case(shape: Shape) -> Case:
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    target = WasmTarget(tuple(LEVELS))
    printed = target.print(product(m, k, n), [1])
    assert printed is not None
    modules, _ = target.link([printed])
    return Case(shape, a, b, printed, {level: code for level, code in modules.items() if isinstance(code, bytes)})


# --- in Chromium -----------------------------------------------------------------------------------------------------


def files(cases: Sequence[Case]) -> dict[str, bytes]:
    """The files that the page needs, by name."""
    found = {f"{level}.wasm": roof(level == "relaxed") for level in PAGES}
    for c in cases:
        found |= {
            f"{c.name}.x": c.a.tobytes(),
            f"{c.name}.w": c.panels.tobytes(),
            f"{c.name}.onnx": onnx_product(c.shape[0], c.b),
        }
        found |= {f"{c.name}.{level}": code for level, code in c.modules.items()}
    return found


def put_numpy(folder: Path) -> None:
    (folder / "numpy.html").write_text(NUMPY_PAGE, "utf-8")
    (folder / "python").mkdir()
    setup().assemble(folder / "python", say=lambda _: None)


def setup() -> Any:
    """The script wasm/pyodide/setup.py as a module."""
    sys.path.insert(0, str(ROOT / "wasm" / "pyodide"))
    return importlib.import_module("setup")


def in_chromium(cases: Sequence[Case], rounds: int, numpy: bool) -> None:
    with site(files(cases), put_numpy if numpy else lambda _: None) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        print(f"Chromium {browser.version}, one thread, GFLOP/s\n")
        columns = [
            "m × k · n",
            *PAGES,
            f"{PEER} {VERSION}",
            "times of onnxruntime-web's",
            *["NumPy under Pyodide"] * numpy,
        ]
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
        page = Page(browser, address)
        page.page.evaluate("([l, t]) => openTurns(l, t)", [list(PAGES), ROOF_TURNS])
        best = page.best(list(PAGES), rounds)
        cells = [f"{ROOF_TURNS * ROOF_WORK / best[who] / 1e9:.1f}" for who in PAGES]
        print(f"| in registers | {' | '.join(cells)} |" + " |" * (2 + numpy), flush=True)
        python = Page(browser, f"{address}numpy.html") if numpy else None
        for c in cases:
            m, k, n = c.shape
            kernels = {level: Given(level, ("x", "w"), known(c.printed.scratch, {})) for level in PAGES}
            answers = page.open(c.name, (m, k), m * n, kernels)
            for who, answer in answers.items():
                c.check(who, answer)
            best = page.best(list(answers), rounds)
            cells = [f"{c.work / seconds / 1e9:.1f}" for seconds in best.values()]
            cells.append(f"{best['relaxed'] / best[PEER]:.2f}")
            if python:
                small = c.work <= LARGEST_FOR_NUMPY
                cells.append(f"{python.page.evaluate('s => rate(...s)', c.shape):.2f}" if small else "")
            print(f"| {' × '.join(map(str, c.shape[:2]))} · {c.shape[2]} | {' | '.join(cells)} |", flush=True)
        browser.close()


# --- in wasmtime -----------------------------------------------------------------------------------------------------


def in_wasmtime(c: Case, level: str) -> float:
    """GFLOP/s of a product under wasmtime."""
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    engine = wasmtime.Engine(config)
    store = wasmtime.Store(engine)
    m, _, n = c.shape
    blocks = [
        c.a.tobytes(),
        c.panels.tobytes(),
        bytes(4 * m * n),
        *[bytes(known(c.printed.scratch, {}))] * (c.printed.scratch != 0),
    ]
    addresses = [256]
    for block in blocks:
        addresses.append((addresses[-1] + len(block) + 255) // 256 * 256)
    linear = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(addresses.pop() // 65536 + 1, None)))
    for at, block in zip(addresses, blocks, strict=True):
        linear.write(store, block, at)
    run: Any = wasmtime.Instance(store, wasmtime.Module(engine, c.modules[level]), [linear]).exports(store)["k0"]
    run(store, *addresses, 0, 1)
    c.check(level, np.frombuffer(bytes(linear.read(store, addresses[2], addresses[2] + 4 * m * n)), np.float32))
    best = float("inf")
    until = time.perf_counter() + 0.5
    while time.perf_counter() < until:
        start = time.thread_time()
        run(store, *addresses, 0, 1)
        best = min(best, time.thread_time() - start)
    return c.work / best / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--no-numpy", action="store_true")
    parser.add_argument("--wasmtime", action="store_true")
    args = parser.parse_args()
    shapes = [tuple(map(int, text.split("x"))) for text in args.shapes.split(",")]
    if any(len(s) != 3 or min(s) < 1 for s in shapes):
        parser.error(f"--shapes: got {args.shapes!r}, expected rows x depth x columns, as in 256x256x256,1x1280x1000")
    cases = [case(s) for s in shapes]  # pyright: ignore[reportArgumentType]
    if not args.wasmtime:
        in_chromium(cases, args.rounds, not args.no_numpy)
        return
    for c in cases:
        rates = ", ".join(f"{level} {in_wasmtime(c, level):.1f}" for level in LEVELS)
        print(f"{c.name:>15} {rates} GFLOP/s", flush=True)


if __name__ == "__main__":
    main()
