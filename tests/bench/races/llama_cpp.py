"""Decoding beside llama.cpp on the same device: python tests/bench/races/llama_cpp.py MODEL.gguf --device webgpu --peer vulkan

Models of growing size have random weights of 4 bits (language.py) and the tokenizer of MODEL.gguf, which is raced too. After each number of
tokens, `--count` are written, the likeliest each time. Contestants take turns; printed are the least time in which the prompt is read and the
first token is there, and the most tokens written in a second. llama.cpp is node-llama-cpp's, which is installed from npm once; `--packages`
names a folder that holds it, for a machine without a network. `--peer cpu` has one thread. Needs the package gguf, and node.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))
from language import SHAPES, random_gguf

import singe as sg

VERSION: Final = "3.22.1"
CACHE: Final = Path(__file__).parents[2] / ".cache" / "llama-cpp"
PEERS: Final = {"cpu": "linux-x64", "vulkan": "linux-x64-vulkan", "cuda": "linux-x64-cuda"}
"""What llama.cpp computes on ↦ the package of its machine code."""
TURNS: Final = 4
SCRIPT: Final = """
import { getLlama } from 'node-llama-cpp';
const [path, gpu, before, count, turns] = process.argv.slice(2).map(x => /^\\d+$/.test(x) ? +x : x);
const llama = await getLlama({ gpu: gpu === 'cpu' ? false : gpu, build: 'never' });
const model = await llama.loadModel({ modelPath: path, gpuLayers: gpu === 'cpu' ? 0 : 'max' });
const context = await model.createContext({ contextSize: before + count + 8, batchSize: 512, flashAttention: true, threads: 1 });
const sequence = context.getSequence();
for (let turn = 0; turn < turns; turn++) {
  await sequence.clearHistory();
  const ids = Array.from({ length: before }, (_, k) => 5 + (7 * k + turn) % 200);
  const start = performance.now();
  let written = 0, first = 0;
  for await (const _ of sequence.evaluate(ids, { temperature: 0, yieldEogToken: true })) {
    first ||= performance.now();
    if (++written === count) break;
  }
  console.log(JSON.stringify([first - start, (written - 1) / (performance.now() - first) * 1000]));
}
process.exit(0);
"""

Turns = list[tuple[float, float]]
"""Of each turn the milliseconds until the first token, and the tokens that follow it in a second."""


def packages(peer: str) -> Path:
    """The folder in which llama.cpp is installed."""
    if not (CACHE / "node_modules" / "@node-llama-cpp" / PEERS[peer]).exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        print(f"llama.cpp (node-llama-cpp {VERSION}) is being installed from npm, once …", file=sys.stderr, flush=True)
        wanted = [f"node-llama-cpp@{VERSION}", f"@node-llama-cpp/{PEERS[peer]}@{VERSION}"]
        quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional"]
        subprocess.run(["npm", "install", "--prefix", str(CACHE), *quiet, *wanted], check=True)
    return CACHE


def ours(path: Path, device: str, before: int, count: int) -> Turns:
    llm = sg.language.load(path, device, context=before + count + 8)
    found: Turns = []
    for turn in range(TURNS):
        ids = [5 + (7 * k + turn) % 200 for k in range(before)]
        text = llm.generate(ids, temperature=0.0, max_tokens=count, stream=False)
        found.append((text.timings.prompt_seconds * 1e3, text.timings.completion_per_second))
    return found


def theirs(path: Path, peer: str, folder: Path, before: int, count: int) -> Turns:
    script = folder / "race.mjs"
    script.write_text(SCRIPT, "utf-8")
    arguments = ["node", str(script), str(path.resolve()), peer, str(before), str(count), str(TURNS)]
    printed = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    return [tuple(json.loads(line)) for line in printed.splitlines() if line.startswith("[")]


def race(path: Path, devices: Sequence[str], peer: str, folder: Path, before: int, count: int) -> None:
    found: dict[str, Turns] = {}
    for _ in range(2):
        for device in devices:
            found.setdefault(device, []).extend(ours(path, device, before, count))
        found.setdefault(f"llama.cpp, {peer}", []).extend(theirs(path, peer, folder, before, count))
    size = path.stat().st_size / 1e6
    for name, turns in found.items():
        first, rate = min(t[0] for t in turns), max(t[1] for t in turns)
        print(f"{path.stem} ({size:.0f} MB), {before} before: {name} {first:.1f} ms, {rate:.0f} tokens/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL.gguf", type=Path)
    parser.add_argument("--device", action="append", metavar="NAME", help="of Singe; may be given several times")
    parser.add_argument("--peer", choices=PEERS, default="vulkan")
    parser.add_argument("--packages", type=Path, metavar="DIR")
    parser.add_argument("--sizes", default=",".join(SHAPES), help="of the random models (default %(default)s)")
    parser.add_argument("--before", default="128", help="tokens, such as 128,7000 (default %(default)s)")
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    folder = args.packages or packages(args.peer)
    with tempfile.TemporaryDirectory() as made:
        paths = [
            random_gguf(Path(made) / f"{name}.gguf", *SHAPES[name], args.model)
            for name in args.sizes.split(",")
            if name
        ]
        for path in [*([args.model] if args.model.stat().st_size > 8 << 20 else []), *paths]:
            for before in map(int, args.before.split(",")):
                race(path, args.device or ["webgpu"], args.peer, folder, before, args.count)


if __name__ == "__main__":
    main()
