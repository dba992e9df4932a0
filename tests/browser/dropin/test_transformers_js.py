"""transformers.js, unmodified, over Singe and over its own onnxruntime-web: the answers are equal."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import hubs
import numpy as np
import pytest
import whisper_hub
from bundles import MODELS, ROOT
from packages import npm
from pages import HEADERS
from sites import Console, served_plainly

from singe.tools.export.package import write_package
from singe.tools.export.stub import export_folder

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

TRANSFORMERS: Final = "4.3.2"
VITE: Final = json.loads((ROOT / "demos" / "embed" / "vite" / "package.json").read_text("utf-8"))["devDependencies"][
    "vite"
]
OWN: Final = "./node_modules/onnxruntime-web/dist"
IMPORTS: Final = {
    "singe": {"onnxruntime-web/webgpu": "./singe/dist/singe-ort.js", "onnxruntime-common": "./singe/dist/singe-ort.js"},
    "own": {
        "onnxruntime-web/webgpu": f"{OWN}/ort.webgpu.bundle.min.mjs",
        "onnxruntime-common": "./node_modules/onnxruntime-common/dist/esm/index.js",
    },
}
"""The import maps of the two pages."""
PIPELINE: Final = """async ({ folder, task, name, options, args, symbol }) => {
  if (symbol) await import("./singe/dist/singe-ort-global.js");
  const dist = "./node_modules/@huggingface/transformers/dist/";
  const { env, pipeline } = await import(dist + (symbol ? "transformers.min.js" : "transformers.web.js"));
  Object.assign(env, { localModelPath: folder, allowRemoteModels: false, allowLocalModels: true, useWasmCache: false });
  if (!symbol) env.backends.onnx.wasm.wasmPaths = "/node_modules/onnxruntime-web/dist/";
  const sound = (x) => Float32Array.from({ length: x.samples }, (_, k) => Math.sin(k / 9) * Math.sin(k / 700));
  const pipe = await pipeline(task, name, options);
  const found = await pipe(...args.map((x) => (x?.samples ? sound(x) : x)));
  const plain = (x) => (x?.tolist ? x.tolist() : Array.isArray(x) ? x.map(plain) : x && typeof x === "object" ? each(x) : x);
  const each = (x) => (x.data ? Array.from(x.data, Number) : Object.fromEntries(Object.entries(x).map(([k, v]) => [k, plain(v)])));
  return plain(found);
}"""


@dataclass(frozen=True)
class Case:
    """A task of transformers.js: what writes a folder for it, and what it is asked."""

    write: Callable[[Path], None]
    args: list[Any]
    task: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: {"dtype": "fp32"})


def minilm(folder: Path) -> None:
    shared = MODELS / "minilm_l6_v2_int8.onnx"
    if not shared.exists():
        pytest.skip(f"no {shared.name} in {MODELS}")
    (folder / "onnx").mkdir(parents=True)
    shutil.copy(shared, folder / "onnx" / "model_quantized.onnx")
    hubs.write_hub(folder, {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384})


def texts(head: str, name: str, width: int, pooled: bool) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        hubs.text_model(folder / "onnx" / "model.onnx", name, width, pooled)
        hubs.write_hub(folder, {"model_type": "bert", "architectures": [head], **hubs.labels(width)})

    return write


def entailment(folder: Path) -> None:
    hubs.text_model(folder / "onnx" / "model.onnx", "logits", 3, pooled=True)
    names = {"entailment": 0, "neutral": 1, "contradiction": 2}
    config = {"label2id": names, "id2label": {str(k): name for name, k in names.items()}}
    hubs.write_hub(folder, {"model_type": "bert", "architectures": ["BertForSequenceClassification"], **config})


def questions(folder: Path) -> None:
    hubs.question_model(folder / "onnx" / "model.onnx")
    hubs.write_hub(folder, {"model_type": "bert", "architectures": ["BertForQuestionAnswering"]})


def pictures(folder: Path) -> None:
    hubs.picture_classifier(folder / "onnx" / "model.onnx")
    processor = {**hubs.PICTURES, "image_processor_type": "ViTImageProcessor"}
    config = {"model_type": "vit", "architectures": ["ViTForImageClassification"], **hubs.labels(5)}
    hubs.write_hub(folder, config, words=False, preprocessor_config=processor)


def objects(folder: Path) -> None:
    hubs.detector(folder / "onnx" / "model.onnx")
    processor = {
        **hubs.PICTURES,
        "image_processor_type": "DetrImageProcessor",
        "feature_extractor_type": "DetrFeatureExtractor",
    }
    config = {"model_type": "detr", "architectures": ["DetrForObjectDetection"], **hubs.labels(4)}
    hubs.write_hub(folder, config, words=False, preprocessor_config=processor)


def depths(folder: Path) -> None:
    hubs.depth_model(folder / "onnx" / "model.onnx")
    processor = {**hubs.PICTURES, "image_processor_type": "DPTImageProcessor"}
    config = {"model_type": "dpt", "architectures": ["DPTForDepthEstimation"]}
    hubs.write_hub(folder, config, words=False, preprocessor_config=processor)


def of_pictures(
    model: Callable[[Path], None], model_type: str, head: str, processor: str, words: bool = False, **settings: Any
) -> Callable[[Path], None]:
    """What writes a folder whose pictures are prepared by this class."""

    def write(folder: Path) -> None:
        model(folder / "onnx" / "model.onnx")
        config = {"model_type": model_type, "architectures": [head], **hubs.labels(4)}
        hubs.write_hub(
            folder,
            config,
            words=words,
            preprocessor_config={**hubs.PICTURES, "image_processor_type": processor, **settings},
        )

    return write


def voice(folder: Path) -> None:
    hubs.voice_model(folder / "onnx" / "model.onnx")
    hubs.write_hub(folder, {"model_type": "vits", "architectures": ["VitsModel"], "sampling_rate": 16000})


EXTRACTOR: Final = {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "do_normalize": True, "sampling_rate": 16000}


def sounds(folder: Path) -> None:
    hubs.sound_classifier(folder / "onnx" / "model.onnx")
    config = {"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForSequenceClassification"], **hubs.labels(4)}
    hubs.write_hub(folder, config, words=False, preprocessor_config=EXTRACTOR)


def speech(folder: Path) -> None:
    hubs.speech_model(folder / "onnx" / "model.onnx")
    settings = {
        "tokenizer_class": "Wav2Vec2CTCTokenizer",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "word_delimiter_token": "|",
    }
    hubs.write_hub(
        folder, {"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"]}, words=False,
        tokenizer=hubs.letter_tokenizer(), tokenizer_config=settings, preprocessor_config=EXTRACTOR,
    )  # fmt: skip


def language(folder: Path) -> None:
    hubs.decoder(folder / "onnx" / "model.onnx")
    config = {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": hubs.LAYERS, "n_head": hubs.HEADS, "n_embd": hubs.WIDTH,
        "vocab_size": len(hubs.vocabulary()), "eos_token_id": 1, "bos_token_id": 1, "pad_token_id": 0,
    }  # fmt: skip
    hubs.write_hub(folder, config, generation_config={"eos_token_id": 1, "pad_token_id": 0})


def translation(folder: Path) -> None:
    hubs.translator(folder / "onnx")
    config = {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "num_layers": 1, "num_decoder_layers": 1,
        "num_heads": hubs.HEADS, "d_model": hubs.WIDTH, "d_kv": hubs.WIDTH // hubs.HEADS, "vocab_size": len(hubs.vocabulary()),
        "decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "is_encoder_decoder": True,
    }  # fmt: skip
    settings = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    hubs.write_hub(folder, config, generation_config=settings)


SENTENCES: Final = ["The cat sat on the mat.", "Hello world, how are you?"]
PHOTO: Final = "./photo.png"
CASES: Final[Mapping[str, Case]] = {
    "feature-extraction": Case(minilm, [SENTENCES, {"pooling": "mean", "normalize": True}], options={}),
    "text-classification": Case(texts("BertForSequenceClassification", "logits", 3, True), [SENTENCES, {"top_k": 3}]),
    "zero-shot-classification": Case(entailment, ["I love cats.", ["house", "sky", "dogs"]]),
    "token-classification": Case(texts("BertForTokenClassification", "logits", 4, False), [SENTENCES[0]]),
    "fill-mask": Case(
        texts("BertForMaskedLM", "logits", len(hubs.vocabulary()), False), ["The cat [MASK] on the mat."]
    ),
    "question-answering": Case(questions, ["How are you?", "I am fine, and the dog sat in the house."]),
    "image-classification": Case(pictures, [PHOTO, {"top_k": 5}]),
    "object-detection": Case(objects, [PHOTO, {"threshold": 0.1}]),
    "depth-estimation": Case(depths, [PHOTO]),
    "image-segmentation": Case(
        of_pictures(
            partial(hubs.segmenter, classes=4, name="logits"),
            "segformer",
            "SegformerForSemanticSegmentation",
            "SegformerImageProcessor",
        ),
        [PHOTO],
    ),
    "background-removal": Case(
        of_pictures(partial(hubs.segmenter, classes=1, name="output"), "modnet", "MODNet", "ImageFeatureExtractor"),
        [PHOTO],
    ),
    "image-to-image": Case(
        of_pictures(
            hubs.upscaler, "swin2sr", "Swin2SRForImageSuperResolution", "Swin2SRImageProcessor", pad_size=8, do_pad=True
        ),
        [PHOTO],
    ),
    "image-feature-extraction": Case(
        of_pictures(hubs.picture_encoder, "vit", "ViTModel", "ViTFeatureExtractor"), [PHOTO]
    ),
    "zero-shot-image-classification": Case(
        of_pictures(hubs.picture_text_model, "clip", "CLIPModel", "CLIPImageProcessor", words=True),
        [PHOTO, ["cat", "dog", "house"]],
    ),
    "audio-classification": Case(sounds, [{"samples": 9000}, {"top_k": 4}]),
    "text-to-audio": Case(voice, ["hello world, how are you"]),
    "automatic-speech-recognition": Case(speech, [{"samples": 9000}]),
    **{
        f"whisper-{dtype}": Case(
            partial(whisper_hub.write, dtype=dtype),
            [{"samples": 48000}, {"language": "german", "max_new_tokens": 8, "return_timestamps": True}],
            task="automatic-speech-recognition",
            options={"dtype": dtype},
        )
        for dtype in whisper_hub.SUFFIX
    },
    "summarization": Case(translation, [SENTENCES[0], {"max_new_tokens": 12}]),
    "text2text-generation": Case(translation, ["the cat sat on the mat", {"max_new_tokens": 12}]),
    "text-generation": Case(language, ["the cat sat", {"max_new_tokens": 12, "do_sample": False}]),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with transformers.js, which is installed once for all runs, with the npm package of this checkout, a page for each runtime and a
    photo; without what only node needs."""
    place = ROOT / "tests" / ".cache" / f"transformers-{TRANSFORMERS}"
    if not (place / "done").exists():
        (place / "nothing").mkdir(parents=True, exist_ok=True)
        (place / "nothing" / "package.json").write_text('{"name": "nothing", "version": "1.0.0"}')
        unused = dict.fromkeys(("onnxruntime-node", "sharp"), "file:./nothing")
        (place / "package.json").write_text(json.dumps({"private": True, "overrides": unused}))
        npm("install", "--ignore-scripts", f"@huggingface/transformers@{TRANSFORMERS}", f"vite@{VITE}", cwd=place)
        (place / "done").touch()
    folder = tmp_path_factory.mktemp("hub")
    (folder / "node_modules").symlink_to(place / "node_modules")
    write_package(folder / "singe")
    for name, imports in IMPORTS.items():
        page = '<!doctype html><link rel="icon" href="data:,"><title>transformers.js</title>'
        (folder / f"{name}.html").write_text(
            f'{page}<script type="importmap">{json.dumps({"imports": imports})}</script>'
        )
    image = pytest.importorskip("PIL.Image")
    y, x = np.mgrid[:48, :64]
    image.fromarray(np.stack([4 * x, 5 * y, 2 * (x + y)], -1).astype(np.uint8)).save(folder / "photo.png")
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served_plainly(site, HEADERS) as found:
        yield found


@pytest.fixture(scope="module")
def folder_of(site: Path) -> Callable[[str], str]:
    """The name of a task's folder, which is in the folders `given` and, with stubs, `compiled` of the site."""

    def made(task: str) -> str:
        given = site / "given" / task
        if not given.exists():
            CASES[task].write(given)
            stubs = export_folder(given, site / "compiled" / task)
            assert not stubs.left_out
        return task

    return made


def asked(browser: Any, address: str, runtime: str, task: str, options: Mapping[str, Any], symbol: bool = False) -> Any:
    """What a pipeline answers in a page of its own."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(300_000)
    console = Console(page)
    page.goto(f"{address}{runtime}.html")
    case = CASES[task]
    given = {
        "folder": "./given/" if runtime == "own" else "./compiled/", "task": case.task or task, "name": task, "args": case.args, "symbol": symbol,
        "options": {**case.options, **options},
    }  # fmt: skip
    try:
        return page.evaluate(PIPELINE, given)
    except Exception as e:
        raise AssertionError("\n".join(console.complaints)) from e
    finally:
        context.close()


def assert_same(found: Any, expected: Any, place: str = "") -> None:
    """Equal texts and forms, and numbers that differ by no more than two ways to add them."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key in expected:
            assert_same(found[key], expected[key], f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for k, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{place}[{k}]")
    elif isinstance(expected, float) or isinstance(found, float):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-4), place
    else:
        assert found == expected, place


@pytest.mark.parametrize("task", CASES)
def test_a_pipeline_answers_as_over_its_own_runtime(
    browser: Any, address: str, folder_of: Callable[[str], str], task: str
) -> None:
    """Plainly, without a device; and on WebGPU, where a decoder keeps its cache on the GPU."""
    folder_of(task)
    expected = asked(browser, address, "own", task, {})
    assert expected
    assert_same(asked(browser, address, "singe", task, {}), expected)
    if CASES[task].options.get("dtype") == "fp16":
        return  # transformers.js refuses it on GPUs that lack it, as those of processors do
    own = {"dtype": "q8"} if task == "feature-extraction" else {}
    assert_same(asked(browser, address, "singe", task, {"device": "webgpu", **own}), expected)


BUILT: Final = {
    "vite.config.js": """export default {
      resolve: { alias: [{ find: /^onnxruntime-(web|common)(\\/.*)?$/, replacement: "singe/ort" }], preserveSymlinks: true },
    };""",
    "index.html": '<!doctype html><link rel="icon" href="data:,"><title>Vite</title><script type="module" src="./main.js"></script>',
    "main.js": """const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
      worker.onmessage = ({ data }) => (globalThis.answer = data);""",
    "worker.js": """import { env, pipeline } from "@huggingface/transformers";
      Object.assign(env, { localModelPath: "/compiled/", allowRemoteModels: false, allowLocalModels: true });
      const ask = async () => (await pipeline("fill-mask", "fill-mask", { dtype: "fp32" }))("The cat [MASK] on the mat.");
      ask().then(postMessage, (error) => postMessage(String(error)));""",
}
"""A project of Vite, by file: the alias is the guide's. Packages are links here."""


def test_vite_bundles_it_for_a_worker(
    browser: Any, address: str, folder_of: Callable[[str], str], site: Path, tmp_path: Path
) -> None:
    task = folder_of("fill-mask")
    expected = asked(browser, address, "own", task, {})
    for name, text in BUILT.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "node_modules").mkdir()
    for package in (site / "node_modules").iterdir():
        (tmp_path / "node_modules" / package.name).symlink_to(package)
    (tmp_path / "node_modules" / "singe").symlink_to(site / "singe")
    command = ["node", str(site / "node_modules" / "vite" / "bin" / "vite.js"), "build"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    shutil.copytree(site / "compiled", tmp_path / "dist" / "compiled")
    with served_plainly(tmp_path / "dist", HEADERS) as built:
        page = browser.new_page()
        page.goto(built)
        page.wait_for_function("() => !!globalThis.answer")
        assert_same(page.evaluate("globalThis.answer"), expected)
        page.close()


def test_a_decoders_cache_stays_on_the_gpu(browser: Any, address: str, folder_of: Callable[[str], str]) -> None:
    """Of the outputs only the logits come to the CPU."""
    task = folder_of("text-generation")
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}singe.html")
    body = """async (task) => {
      const { AutoModelForCausalLM, AutoTokenizer, env } = await import("./node_modules/@huggingface/transformers/dist/transformers.web.js");
      Object.assign(env, { localModelPath: "./compiled/", allowRemoteModels: false, allowLocalModels: true });
      const model = await AutoModelForCausalLM.from_pretrained(task, { device: "webgpu", dtype: "fp32" });
      const tokenizer = await AutoTokenizer.from_pretrained(task);
      const outputs = await model(tokenizer("the cat sat"));
      return Object.fromEntries(Object.entries(outputs).map(([name, { location }]) => [name, location]));
    }"""
    places = page.evaluate(body, task)
    context.close()
    assert places.pop("logits") == "cpu"
    assert len(places) == 2 * hubs.LAYERS
    assert set(places.values()) == {"gpu-buffer"}


def test_the_symbol_sets_the_runtime_of_the_file_with_everything(
    browser: Any, address: str, folder_of: Callable[[str], str], site: Path
) -> None:
    """It knows no devices then: `auto` is named by the caller, or in config.json, and then plain calls do."""
    task = folder_of("text-classification")
    expected = asked(browser, address, "own", task, {})
    assert_same(asked(browser, address, "singe", task, {"device": "auto"}, symbol=True), expected)
    place = site / "compiled" / task / "config.json"
    config = json.loads(place.read_bytes())
    place.write_text(json.dumps({**config, "transformers.js_config": {"device": "auto"}}))
    try:
        assert_same(asked(browser, address, "singe", task, {}, symbol=True), expected)
    finally:
        place.write_text(json.dumps(config))
