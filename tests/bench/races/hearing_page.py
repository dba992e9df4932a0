"""Whisper tiny.en, of real weights and of real speech, beside transformers.js with the same weights, in one Chromium, taking turns.

    python tests/bench/races/hearing_page.py [--weights q8_0] [--threads 1] [--rounds 3]

Without --weights both have floats; with q8_0 transformers.js has matrices of 8 bits, as its own converter writes them. The speech is made by
Piper's joe. Times of processors are those of the page, so that other programs on the machine count little; both texts are printed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import Any, Final

import numpy as np
import page_turns
from onnx import TensorProto, helper

import singe as sg
from singe.files import zoo
from singe.files.sounds.resampling import resample
from singe.language.layers import floats
from singe.weights import read_weights

sys.path.insert(0, str(Path(__file__).parents[2] / "browser" / "dropin"))

import whisper_hub  # pyright: ignore[reportMissingImports]

TESTS: Final = Path(__file__).parents[2]
VERSION: Final = "4.3.2"
PACKAGES: Final = ("@huggingface/transformers", "onnxruntime-web", "onnxruntime-common")
TEXT: Final = (
    "The morning train left the station a few minutes late, and nobody on the platform seemed to mind. "
    "A woman with a red umbrella read the newspaper, while two children counted the pigeons under the roof. "
    "Near the old bridge the river was high after a week of rain, and the fields beyond it looked like a lake. "
    "By noon the clouds had gone, the shops were open again, and people sat outside with coffee and cake. "
    "Later that evening the mayor announced that the new library would open in March."
)
PAGE: Final = """<!doctype html><meta charset=utf-8><title>race</title>
<script type=importmap>{"imports": {"onnxruntime-web/webgpu": "./node_modules/onnxruntime-web/dist/ort.webgpu.bundle.min.mjs",
 "onnxruntime-common": "./node_modules/onnxruntime-common/dist/esm/index.js"}}</script>
<script type=module>
const runs = {};
window.open_ = async (threads, dtype) => {
  const { task } = await import("./hear/singe-tasks.js");
  const hear = await task("./hear/", { device: "wasm", threads, worker: false });
  const samples = new Float32Array(await (await fetch("./talk.f32")).arrayBuffer());
  runs["singe"] = async () => (await hear({ samples, sampleRate: 16000 })).text;
  const { env, pipeline } = await import("./node_modules/@huggingface/transformers/dist/transformers.web.js");
  Object.assign(env, { localModelPath: "/models/", allowRemoteModels: false, allowLocalModels: true, useWasmCache: false });
  Object.assign(env.backends.onnx.wasm, { wasmPaths: "/node_modules/onnxruntime-web/dist/", numThreads: threads });
  const pipe = await pipeline("automatic-speech-recognition", "whisper", { dtype, device: "wasm" });
  runs["transformers.js"] = async () => (await pipe(samples, { return_timestamps: true })).text;
};
window.once = (who) => runs[who]();
window.ready = true;
</script>"""


class RealNet(whisper_hub.SpeechNet):
    """A network with weights that are given, in place of random ones. weights, norms: in the order in which they are asked for; table: of
    tokens."""

    weights_left: deque[np.ndarray]
    norms_left: deque[tuple[np.ndarray, np.ndarray]]
    table: np.ndarray

    def __init__(self, dtype: str) -> None:
        super().__init__("fp32")
        self._is_packed = dtype == "q8"
        self._scales: dict[str, np.float32] = {}

    def __call__(self, op: str, *inputs: str | np.ndarray, name: str = "", **attributes: Any) -> str:
        if self._is_packed and op == "Transpose" and attributes.get("perm") == [1, 0]:
            return self._packed(self.table.T.copy())
        if op == "MatMul" and inputs[1] in self._scales:
            return self._in_integers(str(inputs[0]), str(inputs[1]))
        return super().__call__(op, *inputs, name=name, **attributes)

    def weight(self, *shape: int) -> str:
        value = self.weights_left.popleft()
        assert value.shape == shape, (value.shape, shape)
        return self.constant(value)

    def factor(self, width: int, to: int) -> str:
        return self._packed(self.weights_left.popleft()) if self._is_packed else self.weight(width, to)

    def norm(self, x: str) -> str:
        return self("LayerNormalization", x, *self.norms_left.popleft(), axis=-1)

    def product(self, x: str, pair: whisper_hub.Pair) -> str:
        return self("Add", self("MatMul", x, pair[0]), pair[1])

    def _packed(self, value: np.ndarray) -> str:
        scale = np.float32(np.abs(value).max() / 127)
        name = self.constant(np.round(value / scale).astype(np.int8))
        self._scales[name] = scale
        return name

    def _in_integers(self, x: str, matrix: str) -> str:
        rows, scale, zero = (f"{matrix}.{x}.{part}" for part in ("rows", "scale", "zero"))
        self.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], [rows, scale, zero]))
        sums = self("Cast", self("MatMulInteger", rows, matrix, zero), to=TensorProto.FLOAT)
        return self("Mul", sums, self("Mul", scale, np.array(self._scales[matrix], np.float32)))


def hub(own: Path, to: Path, dtype: str) -> None:
    """The folder of CTranslate2 as transformers.js takes it."""
    t = {name: np.asarray(floats(array), np.float32) for name, array in read_weights(own / "model.bin").stored.items()}

    def pair(name: str, parts: int = 1) -> list[np.ndarray]:
        w, b = (np.split(t[f"{name}/{end}"], parts) for end in ("weight", "bias"))
        return [x for both in zip((part.T.copy() for part in w), b, strict=True) for x in both]

    def norm(name: str) -> tuple[np.ndarray, np.ndarray]:
        return t[f"{name}/layer_norm/gamma"], t[f"{name}/layer_norm/beta"]

    def attention(path: str) -> list[np.ndarray]:
        return [*pair(f"{path}/self_attention/linear_0", 3), *pair(f"{path}/self_attention/linear_1")]

    def forward(path: str) -> list[np.ndarray]:
        return [*pair(f"{path}/ffn/linear_0"), *pair(f"{path}/ffn/linear_1")]

    layers = [f"layer_{k}" for k in range(whisper_hub.LAYERS)]
    convolutions = [t[f"encoder/conv{k}/{end}"] for k in (1, 2) for end in ("weight", "bias")]
    own_layers = [x for layer in layers for x in [*attention(f"encoder/{layer}"), *forward(f"encoder/{layer}")]]
    RealNet.weights_left = deque([*convolutions, t["encoder/position_encodings/encodings"], *own_layers])
    parts = [f"{layer}/{x}" for layer in layers for x in ("self_attention", "ffn")]
    RealNet.norms_left = deque([*(norm(f"encoder/{part}") for part in parts), norm("encoder")])
    RealNet.table = t["decoder/embeddings/weight"]
    whisper_hub.SpeechNet, whisper_hub.VOCABULARY = RealNet, len(RealNet.table)  # pyright: ignore[reportAttributeAccessIssue, reportConstantRedefinition, reportPrivateImportUsage]
    suffix = whisper_hub.SUFFIX[dtype]
    whisper_hub.encoder(to / "onnx" / f"encoder_model{suffix}.onnx", dtype)
    RealNet.weights_left = deque([RealNet.table, t["decoder/position_encodings/encodings"]])
    for layer in layers:
        path = f"decoder/{layer}"
        cross = [x for k, count in enumerate((1, 2, 1)) for x in pair(f"{path}/attention/linear_{k}", count)]
        RealNet.weights_left += [*attention(path), *cross, *forward(path)]
    parts = [f"{layer}/{x}" for layer in layers for x in ("self_attention", "attention", "ffn")]
    RealNet.norms_left = deque(2 * [*(norm(f"decoder/{part}") for part in parts), norm("decoder")])
    whisper_hub.merged_decoder(to / "onnx" / f"decoder_model_merged{suffix}.onnx", dtype)
    tokenizer = json.loads((own / "tokenizer.json").read_text("utf-8"))
    rules = json.loads((own / "config.json").read_text("utf-8"))
    marks = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    whisper_hub.write_settings(
        to, tokenizer, marks, {"is_multilingual": False, "suppress_tokens": rules["suppress_ids"]}
    )


def write_site(root: Path, weights: str | None) -> None:
    own = root / "own"
    own.mkdir()
    for name, path in zoo.fetch_all("zoo:whisper-tiny-en").items():
        shutil.copy(path, own / name.split("/")[-1])
    hub(own, root / "models" / "whisper", "q8" if weights else "fp32")
    options = {"weights": weights} if weights else {}
    sg.export(sg.task("transcribe", own, device="wasm", **options), root / "hear", targets=["wasm"])
    sound = sg.task("speak", device="wasm")(TEXT)
    resample(sound.audio, sound.sample_rate, 16_000).astype("<f4").tofile(root / "talk.f32")
    cache = TESTS / ".cache" / f"transformers-{VERSION}"
    if not (cache / "node_modules").exists():
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(cache)]
        subprocess.run([*command, f"{PACKAGES[0]}@{VERSION}"], check=True, stdout=subprocess.DEVNULL)
    for package in PACKAGES:
        shutil.copytree(cache / "node_modules" / package / "dist", root / "node_modules" / package / "dist")
    (root / "index.html").write_text(PAGE, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", choices=["q8_0"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="singe-race-") as folder:
        root = Path(folder)
        write_site(root, args.weights)
        opening = [args.threads, "q8" if args.weights else "fp32"]
        page_turns.print_times(page_turns.race(root, opening, ["singe", "transformers.js"], args.rounds))


if __name__ == "__main__":
    main()
