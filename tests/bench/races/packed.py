"""The products of a language model with packed weights, rows in float32 beside rows in 16-bit integers, in one Chromium, taking turns.

    python tests/bench/races/packed.py [--threads 1,2] [--rounds 9] [--layers 6]

The layers have SmolLM2-135M's shapes, with 4 bits and a scale and a zero for each block of 32; the vocabulary matrix has 8
bits and scales. One row is a step of decoding, 128 are a prompt. Weights are random. It prints milliseconds of a run, medians
(least), and the ratio of the medians, at both levels of SIMD; `--wasmtime` also times the same in Python.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from integers import LEVELS, PAGE, plain
from playwright.sync_api import sync_playwright

from singe.dtypes import float32
from singe.graph import Builder, Graph, Node
from singe.model.compiling import compile as compiled
from singe.model.model import Model
from singe.ops.products.blocks import packed
from singe.tools.export.bundle import export
from singe.tools.serving.folder_server import Server

sys.path.insert(0, str(Path(__file__).parents[1]))

from chromium import LASTING, encoded
from ort_web import CHROMIUM, FLAGS

KINDS: Final = ("float32", "int16")
WIDTH, KEYS, INNER, VOCABULARY = 576, 192, 1536, 49152
BLOCK: Final = 32


def product(b: Builder, rng: np.random.Generator, x: Node, columns: int, bits: int) -> Node:
    depth = x.shape[-1]
    assert isinstance(depth, int)
    words = packed(rng.integers(0, 1 << bits, (depth, columns)), bits)
    scale = rng.uniform(1e-3, 2e-3, (depth // BLOCK, columns)).astype(np.float32)
    zero = rng.uniform(6, 9, scale.shape).astype(np.float32) if bits == 4 else np.asarray(np.float32(128))
    return b.dot_blocks(x, *(b.const(a) for a in (words, scale, zero)), bits=bits, block=BLOCK)


def layers(rows: int, count: int) -> Graph:
    """The products of some layers; keys and values are outputs."""
    b, rng = Builder(), np.random.default_rng(0)
    given = x = b.input("x", (rows, WIDTH), float32)
    kept: list[Node] = []
    for _ in range(count):
        q, *more = (product(b, rng, x, n, 4) for n in (WIDTH, KEYS, KEYS))
        kept += more
        x = b.add(x, product(b, rng, q, WIDTH, 4))
        gated = b.mul(product(b, rng, x, INNER, 4), product(b, rng, x, INNER, 4))
        x = b.add(x, product(b, rng, gated, WIDTH, 4))
    return Graph((given,), (x, *kept), ("y", *(f"kept{i}" for i in range(len(kept)))))


def vocabulary() -> Graph:
    b = Builder()
    x = b.input("x", (1, WIDTH), float32)
    return Graph((x,), (product(b, np.random.default_rng(1), x, VOCABULARY, 8),), ("y",))


@contextmanager
def site(graph: Graph) -> Iterator[str]:
    """The address of a folder with a bundle of each kind, and copies without relaxed SIMD."""
    with tempfile.TemporaryDirectory(prefix="singe-packed-") as made:
        folder = Path(made)
        for kind in KINDS:
            export(Model(graph, "numpy"), folder / kind, ["wasm"], activations=kind)
            plain(folder / kind, folder / f"{kind}-simd")
        (folder / "index.html").write_text(PAGE, "utf-8")
        with Server(folder, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server.address
            server.shutdown()


def turns(names: Sequence[str], rounds: int, run: Callable[[str], float]) -> list[str]:
    """The cells of a row: of each pair of names, milliseconds and their ratio."""
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name in names:
            taken = run(name)
            if number:  # the first turn warms up
                times[name].append(taken)
    cells: list[str] = []
    for pair in zip(names[::2], names[1::2], strict=True):
        middle = [statistics.median(times[n]) for n in pair]
        cells += [f"{m:.2f} ({min(times[n]):.2f})" for m, n in zip(middle, pair, strict=True)]
        cells.append(f"{middle[1] / middle[0]:.2f}")
    return cells


def in_page(browser: Any, graph: Graph, x: np.ndarray, threads: int, rounds: int) -> list[str]:
    with site(graph) as address:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function("window.ready === true")
        names = [f"{kind}{'' if level == 'relaxed' else '-simd'}" for level in LEVELS for kind in KINDS]
        page.evaluate("([n, i, t]) => open(n, i, t).then(() => 0)", [names, encoded({"x": x}), threads])
        cells = turns(names, rounds, lambda name: page.evaluate("([w, l]) => time(w, l)", [name, LASTING]))
        page.close()
        return cells


def in_wasmtime(graph: Graph, x: np.ndarray, rounds: int) -> list[str]:
    programs = {kind: compiled(Model(graph, "wasm"), activations=kind) for kind in KINDS}

    def run(name: str) -> float:
        start = time.perf_counter()
        programs[name](x)
        return 1000 * (time.perf_counter() - start)

    return turns(KINDS, rounds, run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2", help="how many in the page, with commas between them")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--wasmtime", action="store_true")
    args = parser.parse_args()
    cases = [(f"{args.layers} layers, {rows} row{'s' * (rows > 1)}", layers(rows, args.layers)) for rows in (1, 128)]
    cases.append(("vocabulary, 1 row", vocabulary()))
    columns = ["products", "threads", *(f"{level}: {what}" for level in LEVELS for what in (*KINDS, "ratio"))]
    if args.wasmtime:
        columns += [f"wasmtime: {what}" for what in (*KINDS, "ratio")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        print(f"Chromium {browser.version}, milliseconds\n")
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
        for name, graph in cases:
            x = np.random.default_rng(2).normal(size=graph.inputs[0].shape).astype(np.float32)
            native = in_wasmtime(graph, x, args.rounds) if args.wasmtime else []
            for threads in map(int, args.threads.split(",")):
                cells = in_page(browser, graph, x, threads, args.rounds)
                print(f"| {name} | {threads} | {' | '.join([*cells, *native])} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
