"""A page in which two programs do the same, taking turns, and how long each took.

The page of a race defines `open_`, which is called once, and `once(who)`; it sets `ready`. Beside both runs a product of 512 × 512 · 512 on one
thread, which says what the machine gave meanwhile.
"""

from __future__ import annotations

import statistics
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from playwright.sync_api import sync_playwright

import singe as sg
from singe.tools.serving.folder_server import Server

sys.path.insert(0, str(Path(__file__).parents[1]))

from ort_web import CHROMIUM, FLAGS

TESTS: Final = Path(__file__).parents[2]
MARK: Final = "singe-page-turns"
SIZE: Final = 512
PRODUCT: Final = """async (size) => {
  const { load } = await import("./product/singe.js");
  const model = (window.product_ ??= await load("./product/", { device: "wasm", threads: 1, worker: false }));
  const x = new Float32Array(size * size).fill(0.5);
  let least = Infinity;
  for (let k = 0; k < 12; k++) {
    const begin = performance.now();
    await model.run({ x });
    least = Math.min(least, performance.now() - begin);
  }
  return least;
}"""


@dataclass
class Turns:
    """Seconds of one program's turns: of processors, and by the clock."""

    processor: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)


def processor_time() -> float:
    """Seconds that the race's page has computed so far."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if "--type=renderer" in (command := (folder / "cmdline").read_text()) and MARK in command:
                total += sum(int((x / "schedstat").read_text().split()[0]) for x in (folder / "task").iterdir())
        except OSError:  # it has ended
            continue
    return total / 1e9


def race(root: Path, opening: Sequence[Any], names: Sequence[str], rounds: int) -> dict[str, Turns]:
    """The times of all turns but the first of the page in a folder; what the first answers is printed."""

    def product(x: sg.Tensor) -> sg.Tensor:
        return x @ sg.tensor(np.random.default_rng(0).standard_normal((SIZE, SIZE), np.float32))

    sg.export(sg.Model.of(product, {"x": (SIZE, SIZE)}), root / "product", targets=["wasm"])
    times = {name: Turns() for name in names}
    milliseconds = []
    with Server(root, port=0) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, f"--user-agent={MARK} Chrome"])
        page = browser.new_page()
        page.goto(server.address)
        page.wait_for_function("window.ready === true")
        page.evaluate("(given) => open_(...given)", opening)
        for number in range(rounds + 1):
            milliseconds.append(page.evaluate(PRODUCT, SIZE))
            for who, turns in times.items():
                begin = processor_time()
                answer, seconds = page.evaluate(
                    "async (who) => { const t = performance.now(); const x = await once(who); return [x, (performance.now() - t) / 1e3]; }",
                    who,
                )
                if number:  # the first turn warms up
                    turns.processor.append(processor_time() - begin)
                    turns.clock.append(seconds)
                else:
                    print(f"{who}: {answer}")
        browser.close()
        server.shutdown()
    rates = [2 * SIZE**3 / x / 1e6 for x in milliseconds]
    print(f"a product on one thread: {max(rates):.0f} GFLOP/s, at the least {min(rates):.0f}")
    return times


def print_times(times: dict[str, Turns]) -> None:
    """Medians, with the least in brackets, and the ratio of the first to the second."""
    for who, turns in times.items():
        texts = [f"{statistics.median(x):.2f} s ({min(x):.2f})" for x in (turns.processor, turns.clock)]
        print(f"{who}: {texts[0]} of processors, {texts[1]} by the clock")
    first, second = (statistics.median(turns.processor) for turns in times.values())
    least = [min(turns.processor) for turns in times.values()]
    print(f"ratio of medians {first / second:.2f}, of the least {least[0] / least[1]:.2f}")
