"""How long streams of sound take in one Chromium, on one thread: a block of 10 ms, and the first sound of a text that is read aloud.

    python tests/bench/races/streams_page.py [--seconds 8]

Blocks come without a pause, so a block's time is that until the next one is asked for. The first two seconds, in which V8 compiles, are told
apart.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from page_turns import CHROMIUM, FLAGS
from playwright.sync_api import sync_playwright

import singe as sg
from singe.tools.serving.folder_server import Server

BLOCKS: Final = (("denoise", 16_000), ("denoise", 48_000), ("wake-word", 16_000), ("voices", 16_000))
"""Kinds of tasks, and samples a second."""
VOICE: Final = "zoo:joe"
TEXT: Final = "Good morning. The train left the station a few minutes late, and nobody on the platform seemed to mind."
WARM_UP_BLOCKS: Final = 200
PAGE: Final = """<!doctype html><meta charset=utf-8><title>streams</title>
<script type=module>
const open = async (folder) => (await import(`./${folder}/singe-tasks.js`)).task(`./${folder}/`, { device: "wasm", threads: 1, worker: false });
window.blocks = async (folder, rate, seconds) => {
  const task = await open(folder);
  const sound = Float32Array.from({ length: rate * seconds }, () => Math.random() / 10 - 0.05);
  const times = [];
  async function* given() {
    for (let at = 0; at < sound.length; at += rate / 100) {
      const begin = performance.now();
      yield sound.subarray(at, at + rate / 100);
      times.push(performance.now() - begin);
    }
  }
  await task.stream(given(), () => {}, { sampling_rate: rate }).done;
  await task.close();
  return times;
};
window.speech = async (folder, text) => {
  const speak = await open(folder);
  const firsts = [];
  for (let turn = 0; turn < 6; turn++) {
    const begin = performance.now();
    let first;
    await speak.stream(text, () => (first ??= performance.now() - begin)).done;
    firsts.push(first);
  }
  await speak.close();
  return firsts;
};
window.ready = true;
</script>"""


def told(times: list[float]) -> str:
    ordered = sorted(times)
    return f"{ordered[len(ordered) // 2]:.2f} ms, 99 of 100 within {ordered[len(ordered) * 99 // 100]:.2f}, all within {ordered[-1]:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="singe-streams-") as folder:
        root = Path(folder)
        for kind in {kind for kind, _ in BLOCKS}:
            sg.export(sg.task(kind, device="wasm"), root / kind, targets=["wasm"])
        sg.export(sg.task("speak", VOICE, device="wasm"), root / "speak", targets=["wasm"])
        (root / "index.html").write_text(PAGE, "utf-8")
        with Server(root, port=0) as server, sync_playwright() as playwright:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page()
            page.goto(server.address)
            page.wait_for_function("window.ready === true")
            for kind, rate in BLOCKS:
                given: list[Any] = [kind, rate, args.seconds]
                times = page.evaluate("(given) => blocks(...given)", given)
                first = max(times[:WARM_UP_BLOCKS])
                print(f"{kind} at {rate}: {told(times[WARM_UP_BLOCKS:])}; at the beginning within {first:.2f}")
            first, *others = page.evaluate("(given) => speech(...given)", ["speak", TEXT])
            print(
                f"{VOICE}: first sound after {sorted(others)[len(others) // 2]:.0f} ms, at the first call {first:.0f}"
            )
            browser.close()
            server.shutdown()


if __name__ == "__main__":
    main()
