"""A voice that reads a text aloud in a page, beside the network alone in onnxruntime-web, in one Chromium, taking turns.

    python tests/bench/races/speaking_page.py [--voice zoo:kokoro [--whole]] [--threads 1] [--rounds 3]

onnxruntime-web is given the numbers of each sentence's phonemes; Singe reads the text, and with --whole so does kokoro-js, in onnxruntime-web's
place. Times are of processors, so that other programs on the machine count little.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import kokoro_js
import page_turns
from ort_web import VERSION, package

import singe as sg
from singe.files import zoo
from singe.speech.kokoro import read_styles
from singe.speech.piper import KOKORO, sentences

TEXT: Final = (
    "The morning train left the station a few minutes late, and nobody on the platform seemed to mind. "
    "A woman with a red umbrella read the newspaper, while two children counted the pigeons under the roof. "
    "By noon the clouds had gone."
)
PAGE: Final = """<!doctype html><meta charset=utf-8><title>race</title>
<script type=importmap>{"imports": IMPORTS}</script>
<script type=module>
const runs = {};
const lengths = (count, rate) => `${(count / rate).toFixed(1)} s of speech`;
window.open_ = async (threads, text, rate, whole) => {
  const { task } = await import("./speak/singe-tasks.js");
  const speak = await task("./speak/", { device: "wasm", threads, worker: false });
  runs["singe"] = async () => lengths((await speak(text)).audio.length, rate);
  if (whole) {
    const speaker = await (await import("./kokoro.mjs")).speaker(threads);
    runs["kokoro-js"] = async () => lengths(await speaker(text), rate);
    return;
  }
  const ort = await import("./node_modules/onnxruntime-web/dist/ort.wasm.min.mjs");
  Object.assign(ort.env.wasm, { wasmPaths: "/node_modules/onnxruntime-web/dist/", numThreads: threads });
  const session = await ort.InferenceSession.create("./voice.onnx", { executionProviders: ["wasm"] });
  const arrays = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array };
  const given = (await (await fetch("./given.json")).json()).map((inputs) =>
    Object.fromEntries(Object.entries(inputs).map(([name, { dtype, shape, values }]) =>
      [name, new ort.Tensor(dtype, arrays[dtype].from(values, dtype === "int64" ? BigInt : Number), shape)])));
  runs["onnxruntime-web"] = async () => {
    let count = 0;
    for (const inputs of given) count += Object.values(await session.run(inputs))[0].data.length;
    return lengths(count, rate);
  };
};
window.once = (who) => runs[who]();
window.ready = true;
</script>""".replace("IMPORTS", json.dumps(kokoro_js.IMPORTS))


def inputs_of(speak: Any, files: dict[str, Path]) -> list[dict[str, Any]]:
    """The inputs of the voice's own network, sentence by sentence."""
    voice = speak.voice
    facts = voice.description

    def tensor(dtype: str, shape: list[int], values: Any) -> dict[str, Any]:
        return {"dtype": dtype, "shape": shape, "values": [float(x) if dtype == "float32" else int(x) for x in values]}

    given = []
    for sentence in sentences([TEXT]):
        ids = facts.ids(voice._signs(sentence))  # pyright: ignore[reportPrivateUsage]
        numbers = tensor("int64", [1, len(ids)], ids)
        if facts.network == KOKORO:
            styles = read_styles({Path(x).stem: path for x, path in files.items() if x.startswith("voices")})
            style = next(iter(styles.values()))[len(ids) - 3]
            sg_names = [x.name for x in sg.load(onnx_of(files), "numpy").inputs]
            tokens = next(x for x in sg_names if x not in ("style", "speed"))
            given.append(
                {tokens: numbers, "style": tensor("float32", [1, 256], style), "speed": tensor("float32", [1], [1])}
            )
        else:
            scales = tensor("float32", [3], [facts.noise, facts.length, facts.breadth])
            given.append({"input": numbers, "input_lengths": tensor("int64", [1], [len(ids)]), "scales": scales})
    return given


def onnx_of(files: dict[str, Path]) -> Path:
    return next(path for path in files.values() if path.suffix == ".onnx")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voice", default="zoo:joe")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.whole and args.voice != "zoo:kokoro":
        parser.error("--whole: kokoro-js has one voice here, --voice zoo:kokoro")
    with tempfile.TemporaryDirectory(prefix="singe-race-") as folder:
        root = Path(folder)
        speak, files = sg.task("speak", args.voice, device="wasm"), dict(zoo.fetch_all(args.voice))
        sg.export(speak, root / "speak", targets=["wasm"])
        if args.whole:
            kokoro_js.write(root, files)
        else:
            (root / "given.json").write_text(json.dumps(inputs_of(speak, files)), "utf-8")
            shutil.copy(onnx_of(files), root / "voice.onnx")
            parts = Path("node_modules") / "onnxruntime-web" / "dist"
            shutil.copytree(package() / parts, root / parts)
        (root / "index.html").write_text(PAGE, "utf-8")
        rate = speak.voice.description.rate
        peer = "kokoro-js" if args.whole else "onnxruntime-web"
        print(f"{peer} {kokoro_js.VERSION if args.whole else VERSION}, {args.threads} threads")
        page_turns.print_times(
            page_turns.race(root, [args.threads, TEXT, rate, args.whole], ["singe", peer], args.rounds)
        )


if __name__ == "__main__":
    main()
