"""The memory that a language model takes at its peak, from opening its file to its first tokens, natively and in a page.

    python tests/bench/language_memory.py MODEL.gguf [--context 512] [--page]

Natively: the largest resident set of a process of its own, less that of one which only imports Singe, on `wasm`; first with an
empty cache, where it is compiled, then with what was kept; "with the same imports" is less that of one which also ran a model of one
operation. --page: of the renderer of a fresh Chromium, on WebAssembly, without pages of files, sampled every SAMPLE seconds, less that
of an empty page; the second figure is after REST seconds without work; medians of ROUNDS. Needs Linux.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ort_web import CHROMIUM

import singe as sg
from singe.listening import LOOPBACK
from singe.tools.serving.folder_server import Server

SAMPLE: Final = 0.02
REST: Final = 3.0
ROUNDS: Final = 5
OWN: Final = """import re, sys
import singe as sg
if len(sys.argv) == 2:
    from singe.language import llm, tokenizing
    sg.Model.of(lambda x: x * 2, {"x": (4,)}, "wasm")([1, 2, 3, 4])
elif len(sys.argv) > 2:
    sg.language.load(sys.argv[1], "wasm", context=int(sys.argv[2])).generate([5] * 32, temperature=0, max_tokens=2).text
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
EMPTY: Final = "<!doctype html><script type=module>TOLD</script>"
PAGE: Final = """<!doctype html><script type=module>
import { load } from "./chat/singe.js";
const llm = await load("./chat/", { device: "wasm", threads: 1 });
await llm.generate(Array(32).fill(5), { temperature: 0, maxTokens: 2 }).text();
globalThis.held = llm;
TOLD;
</script>"""


def native(*given: str, **environment: str) -> float:
    """The peak of a process in MB."""
    command = [sys.executable, "-c", OWN, *given]
    done = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
    return int(done.stdout) / 1e3


def is_own(process: Path) -> bool:
    """Whether a process comes from this one."""
    parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return parent == os.getpid() or (parent > 1 and is_own(Path("/proc", str(parent))))


def renderers() -> Iterator[float]:
    """The memory of each renderer of this process's browser, in MB, that is no part of a file."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"--type=renderer" in (process / "cmdline").read_bytes() and is_own(process):
                found = re.search(r"^Pss_Anon:\s+(\d+)", (process / "smaps_rollup").read_text(), re.MULTILINE)
                yield int(found[1]) / 1e3 if found else 0.0
        except OSError:  # it has ended
            continue


def in_page(server: Server, page: str) -> tuple[float, float]:
    """The peak of a page, and what it holds afterwards, in MB. No tool of a browser is attached: these hold what a page fetches."""
    calls = socket.create_server((LOOPBACK, 0))
    calls.settimeout(300)
    told = f'fetch("http://{LOOPBACK}:{calls.getsockname()[1]}/", {{ mode: "no-cors" }})'
    server.folder.joinpath("page.html").write_text(page.replace("TOLD", told))
    peak, ends = [0.0], threading.Event()

    def watch() -> None:
        while not ends.wait(SAMPLE):
            peak[0] = max(peak[0], *renderers(), 0.0)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--no-first-run", f"--user-data-dir={profile}"]
        browser = subprocess.Popen([*command, f"{server.address}page.html"], stderr=subprocess.DEVNULL)
        watching = threading.Thread(target=watch)
        watching.start()
        try:
            calls.accept()[0].close()
            ends.set()
            time.sleep(REST)
            return peak[0], max(renderers())
        finally:
            ends.set()
            watching.join()
            browser.terminate()
            browser.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL.gguf", type=Path)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    size, given = args.model.stat().st_size / 1e6, (str(args.model), str(args.context))

    def say(what: str, peak: float) -> None:
        print(f"{what}: {peak:.0f} MB, {peak / size:.2f} times the file's {size:.0f}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        cache = f"{folder}/cache"
        empty, _, same = native(), native("", SINGE_CACHE=cache), native("", SINGE_CACHE=cache)
        for what in ("natively, compiled", "natively, kept"):
            peak = native(*given, SINGE_CACHE=cache)
            say(what, peak - empty)
            say("  with the same imports", peak - same)
        if args.page:
            sg.export(
                sg.language.load(args.model, "wasm", context=args.context), Path(folder, "site", "chat"), ["wasm"]
            )
            server = Server(Path(folder, "site"), port=0)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            rounds = [(in_page(server, EMPTY)[1], *in_page(server, PAGE)) for _ in range(ROUNDS)]
            say("in a page, at its peak", statistics.median(peak - empty for empty, peak, _ in rounds))
            say("in a page, afterwards", statistics.median(held - empty for empty, _, held in rounds))
            server.shutdown()


if __name__ == "__main__":
    main()
