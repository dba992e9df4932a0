"""kokoro-js in a page, as its users run it, but with the zoo's file of Kokoro in place of one from the network.

Its file for pages has transformers.js inside, whose settings it does not give out; so it is taken as a bundler takes it, with its packages beside it.
Its voice comes out of the page's cache, where kokoro-js looks first.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import onnx

TESTS: Final = Path(__file__).parents[2]
VERSION: Final = "1.2.1"
PARTS: Final = ("kokoro-js", "phonemizer", "@huggingface/transformers", "onnxruntime-web", "onnxruntime-common")
VOICE: Final = "af_heart"
IMPORTS: Final = {
    "kokoro-js": "./node_modules/kokoro-js/dist/kokoro.js",
    "phonemizer": "./node_modules/phonemizer/dist/phonemizer.js",
    "@huggingface/transformers": "./node_modules/@huggingface/transformers/dist/transformers.web.js",
    "onnxruntime-web": "./node_modules/onnxruntime-web/dist/ort.bundle.min.mjs",
    "onnxruntime-common": "./node_modules/onnxruntime-common/dist/esm/index.js",
    "path": "data:text/javascript,export default {}",
    "fs/promises": "data:text/javascript,export default {}",
}
SCRIPT: Final = (
    """
export const speaker = async (threads) => {
  const { KokoroTTS, TextSplitterStream } = await import("kokoro-js");
  const { env } = await import("@huggingface/transformers");
  Object.assign(env, { localModelPath: "/models/", allowRemoteModels: false, allowLocalModels: true });
  Object.assign(env.backends.onnx.wasm, { wasmPaths: "/node_modules/onnxruntime-web/dist/", numThreads: threads });
  const cache = await caches.open("kokoro-voices");
  const address = "https://huggingface.co/onnx-community/Kokoro-82M-v1.0-ONNX/resolve/main/voices/VOICE.bin";
  await cache.put(address, await fetch("/models/kokoro/VOICE.bin"));
  const voice = await KokoroTTS.from_pretrained("kokoro", { dtype: "q8", device: "wasm" });
  return async (text) => {
    let count = 0;
    const sentences = new TextSplitterStream();
    sentences.push(text);
    sentences.close();
    for await (const { audio } of voice.stream(sentences, { voice: "VOICE" })) count += audio.audio.length;
    return count;
  };
};
"""
).replace("VOICE", VOICE)


def write(root: Path, files: Mapping[str, Path]) -> None:
    """The packages, the model as transformers.js names it, and `kokoro.mjs` with SCRIPT. files: of the zoo's row."""
    cache = TESTS / ".cache" / f"kokoro-js-{VERSION}"
    if not (cache / "node_modules").exists():
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(cache)]
        subprocess.run([*command, f"kokoro-js@{VERSION}"], check=True, stdout=subprocess.DEVNULL)
    for part in PARTS:
        shutil.copytree(cache / "node_modules" / part / "dist", root / "node_modules" / part / "dist")
    (root / "kokoro.mjs").write_text(SCRIPT, "utf-8")
    model = root / "models" / "kokoro"
    (model / "onnx").mkdir(parents=True)
    network = onnx.load(next(path for path in files.values() if path.suffix == ".onnx"))
    renamed = {network.graph.input[0].name: "input_ids", network.graph.output[0].name: "waveform"}
    for node in network.graph.node:
        for names in (node.input, node.output):
            names[:] = [renamed.get(name, name) for name in names]
    for value in (*network.graph.input, *network.graph.output):
        value.name = renamed.get(value.name, value.name)
    onnx.save(network, model / "onnx" / "model_quantized.onnx")
    shutil.copy(files[f"voices-{VOICE}.bin"], model / f"{VOICE}.bin")
    vocabulary: dict[str, int] = {"$": 0, **json.loads(files["vocab.json"].read_text("utf-8"))["vocab"]}
    signs = "".join("\\" + sign if sign in "\\]^-" else sign for sign in vocabulary)
    mark = {"SpecialToken": {"id": "$", "type_id": 0}}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Replace", "pattern": {"Regex": f"[^{signs}]"}, "content": ""},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [mark, {"Sequence": {"id": "A", "type_id": 0}}, mark],
            "special_tokens": {"$": {"id": "$", "ids": [0], "tokens": ["$"]}},
        },
        "decoder": None,
        "model": {"vocab": vocabulary},
    }
    settings = {"model_max_length": 512, "pad_token": "$", "tokenizer_class": "PreTrainedTokenizer", "unk_token": "$"}
    contents = {
        "config.json": {"model_type": "style_text_to_speech_2"},
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": settings,
    }
    for name, content in contents.items():
        (model / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")
