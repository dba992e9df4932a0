# ruff: noqa: PLC0415 (each program imports its package, and the module that onnxruntime stands for is decided before)
"""Programs that use packages written for onnxruntime, unmodified: `python programs.py NAME onnxruntime|DEVICE FOLDER OUT.npz`.

Each program uses a package as its documentation shows, and gives arrays of its answers. With the name of a device, singe.ort stands in
for onnxruntime on it. FOLDER is for files that a program writes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np

Answers = Mapping[str, Any]


def magika(_: Path) -> Answers:
    """What kinds of contents texts and bytes have."""
    from magika import Magika

    contents = [
        b"import os\n\n\ndef main(path: str) -> None:\n    print(os.listdir(path))\n" * 20,
        b"<!doctype html><html><body><p>A page</p><script>let a = 1;</script></body></html>" * 10,
        b'{"name": "a", "values": [1, 2, 3], "nested": {"x": null}}' * 20,
        b"# Title\n\nSome *text* with a [link](http://example.com).\n\n- a\n- b\n" * 10,
        bytes(range(256)) * 16,
    ]
    found = [Magika().identify_bytes(content) for content in contents]
    return {"labels": [str(x.output.label) for x in found], "scores": [x.score for x in found]}


def picture_of_text() -> np.ndarray:
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (480, 200), "white")
    draw = ImageDraw.Draw(picture)
    draw.text((20, 20), "Hello World 2026", fill="black", font=ImageFont.load_default(40))
    draw.text((20, 110), "invoice no. 4711", fill="black", font=ImageFont.load_default(36))
    return np.asarray(picture)[..., ::-1].copy()


def rapidocr_onnxruntime(_: Path) -> Answers:
    """The lines of text in a picture, and where they are."""
    from rapidocr_onnxruntime import RapidOCR

    lines, _times = RapidOCR()(picture_of_text())
    assert lines, "no text was found"
    return {
        "boxes": np.array([box for box, _, _ in lines]),
        "texts": [text for _, text, _ in lines],
        "scores": np.array([float(score) for _, _, score in lines]),
    }


def sound(seconds: float, rate: int = 16000) -> np.ndarray:
    """Tones and noise that come and go."""
    rng = np.random.default_rng(0)
    t = np.arange(int(seconds * rate)) / rate
    voice = sum(
        np.sin(2 * np.pi * f * t * (1 + 0.02 * np.sin(2 * np.pi * 3 * t))) / k
        for k, f in enumerate((140, 280, 560, 1120), 1)
    )
    return ((0.15 * voice * (np.sin(2 * np.pi * 0.9 * t) > 0)) + rng.normal(0, 0.01, t.size)).astype(np.float32)


def openwakeword(_: Path) -> Answers:
    """How likely each piece of a sound ends with a wake word, and its speech probability."""
    import openwakeword.model

    np.random.seed(0)  # noqa: NPY002 (of which the package draws the sound before the first)
    model = openwakeword.model.Model(
        wakeword_models=["hey_jarvis", "alexa"], inference_framework="onnx", vad_threshold=0.5
    )
    pieces = (sound(2) * 32767).astype(np.int16).reshape(-1, 1280)
    found = [model.predict(piece) for piece in pieces]
    embeddings = model.preprocessor.feature_buffer
    vad = [float(x) for x in model.vad.prediction_buffer]
    return {"scores": [list(map(float, x.values())) for x in found], "features": embeddings, "vad": vad}


def torch() -> Any:
    """PyTorch, or where it is not installed, the few of its functions that the package silero-vad calls, over NumPy's arrays."""
    with suppress(ImportError):
        return import_module("torch")
    methods = {
        "dim": lambda x: x.ndim,
        "numpy": lambda x: x.view(np.ndarray),
        "float": lambda x: x.astype(np.float32),
        "cpu": lambda x: x,
        "unsqueeze": np.expand_dims,
        "numel": lambda x: x.size,
    }
    kind = type("Tensor", (np.ndarray,), methods)
    made = ModuleType("torch")
    functional = SimpleNamespace(
        pad=lambda x, ends, mode="constant", value=0.0: np.pad(
            x, [(0, 0)] * (x.ndim - 1) + [ends], mode, constant_values=value
        ).view(kind)
    )
    vars(made).update(
        {
            "Tensor": kind,
            "device": str,
            "cat": lambda xs, dim: np.concatenate(xs, dim).view(kind),
            "from_numpy": lambda x: x.view(kind),
            "hub": SimpleNamespace(),
            "is_tensor": lambda x: isinstance(x, kind),
            "nn": SimpleNamespace(functional=functional),
            "no_grad": lambda: lambda f: f,
            "set_num_threads": lambda n: None,
            "zeros": lambda *shape: np.zeros(shape[0] if isinstance(shape[0], tuple) else shape, np.float32).view(kind),
        }
    )
    return sys.modules.setdefault("torch", made)


def silero_vad(_: Path) -> Answers:
    """The speech probabilities of the pieces of a sound, by the package's ONNX wrapper and by its model of whole sounds."""
    voice = torch().from_numpy(sound(2))
    from silero_vad import SileroVADSequence, get_speech_timestamps, load_silero_vad

    model = load_silero_vad(onnx=True)
    whole = SileroVADSequence(files("silero_vad") / "data" / "silero_vad_16k_sequence.onnx")
    return {
        "scores": model.audio_forward(voice, 16000).numpy(),
        "spans": [[x["start"], x["end"]] for x in get_speech_timestamps(voice, model, threshold=0.02)],
        "at 8000": model.audio_forward(torch().from_numpy(sound(1, 8000)), 8000).numpy(),
        "whole": whole.audio_forward(sound(2)),
        "in parts": whole.audio_forward(sound(1), max_frames=7),
    }


def fastembed(folder: Path) -> Answers:
    """Embeddings of texts by a model in a local folder: that of FASTEMBED_MODEL, or a small one that is written here."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *"abcdefghijklmnopqrstuvwxyz",
        *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"),
    ]
    tokens = Tokenizer(WordPiece({w: k for k, w in enumerate(words)}, unk_token="[UNK]"))
    tokens.normalizer, tokens.pre_tokenizer = BertNormalizer(lowercase=True), BertPreTokenizer()
    tokens.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokens.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64, "pad_token": "[PAD]"}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]", "unk_token": "[UNK]"}))
    given = os.environ.get("FASTEMBED_MODEL")
    data = Path(given).read_bytes() if given else embedder(len(words), 32)
    (folder / "model.onnx").write_bytes(data)
    TextEmbedding.add_custom_model(
        "local/small", PoolingType.MEAN, True, ModelSource(url="http://localhost/none"), 32, model_file="model.onnx"
    )
    model = TextEmbedding("local/small", specific_model_path=str(folder))
    texts = ["a cat sat", "the quick brown fox jumps over the lazy dog", "b", "neural networks"]
    return {"embeddings": np.stack(list(model.embed(texts, batch_size=3)))}


def embedder(words: int, width: int) -> bytes:
    """A transformer's layer over embedded words, with random weights."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    shapes = {
        "table": (words, width),
        "q": (width, width),
        "k": (width, width),
        "v": (width, width),
        "scale": (width,),
        "bias": (width,),
    }
    weights = [numpy_helper.from_array(rng.normal(0, 0.3, s).astype(np.float32), n) for n, s in shapes.items()]
    weights += [
        numpy_helper.from_array(np.array([1, 2], np.int64), "axes"),
        numpy_helper.from_array(np.array(1, np.float32), "one"),
        numpy_helper.from_array(np.array(-1e9, np.float32), "low"),
        numpy_helper.from_array(np.array(width**-0.5, np.float32), "small"),
        numpy_helper.from_array(np.array([1], np.int64), "axis"),
    ]
    n = helper.make_node
    nodes = [
        n("Gather", ["table", "input_ids"], ["x"]),
        n("MatMul", ["x", "q"], ["xq"]), n("MatMul", ["x", "k"], ["xk"]), n("MatMul", ["x", "v"], ["xv"]),
        n("Transpose", ["xk"], ["xkt"], perm=[0, 2, 1]), n("MatMul", ["xq", "xkt"], ["raw"]), n("Mul", ["raw", "small"], ["scores"]),
        n("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT), n("Sub", ["one", "mask"], ["hidden"]),
        n("Mul", ["hidden", "low"], ["away"]), n("Unsqueeze", ["away", "axis"], ["far"]), n("Add", ["scores", "far"], ["masked"]),
        n("Softmax", ["masked"], ["weights"]), n("MatMul", ["weights", "xv"], ["mixed"]), n("Add", ["x", "mixed"], ["sum"]),
        n("LayerNormalization", ["sum", "scale", "bias"], ["last_hidden_state"]),
    ]  # fmt: skip
    ids = [
        helper.make_tensor_value_info(k, TensorProto.INT64, ["batch", "tokens"])
        for k in ("input_ids", "attention_mask")
    ]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", width])
    graph = helper.make_graph(nodes, "embedder", ids, [out], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def ctc(letters: int) -> bytes:
    """Two convolutions over features, with random weights, and the logarithms of probabilities of letters."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    n = helper.make_node
    nodes = [
        n("Conv", ["audio_signal", "w1"], ["a"], strides=[2], pads=[1, 1]), n("Relu", ["a"], ["b"]),
        n("Conv", ["b", "w2"], ["c"], strides=[2], pads=[1, 1]), n("Transpose", ["c"], ["d"], perm=[0, 2, 1]),
        n("LogSoftmax", ["d"], ["logprobs"]),
    ]  # fmt: skip
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.1, shape).astype(np.float32), name)
        for name, shape in (("w1", (64, 80, 3)), ("w2", (letters, 64, 3)))
    ]
    graph = helper.make_graph(
        nodes,
        "ctc",
        [
            helper.make_tensor_value_info("audio_signal", TensorProto.FLOAT, ["batch", 80, "frames"]),
            helper.make_tensor_value_info("length", TensorProto.INT64, ["batch"]),
        ],
        [helper.make_tensor_value_info("logprobs", TensorProto.FLOAT, ["batch", "steps", letters])],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made.SerializeToString()


def onnx_asr(folder: Path) -> Answers:
    """Letters of a sound by a small CTC model in a local folder, features and resampling by the package's own ONNX files, and spans of
    speech by the package silero-vad's model."""
    import onnx_asr as package
    from onnx_asr.preprocessors.preprocessor import OnnxPreprocessor

    letters = ["▁", *"abcdefghijklmnopqrstuvwxyz", "<blk>"]
    (folder / "vocab.txt").write_text("\n".join(f"{c} {k}" for k, c in enumerate(letters)), "utf-8")
    (folder / "config.json").write_text(
        json.dumps({"model_type": "nemo-conformer-ctc", "features_size": 80, "subsampling_factor": 4})
    )
    beside = Path(__file__).with_name("ctc.onnx")  # in a page, where no package can write it
    (folder / "model.onnx").write_bytes(beside.read_bytes() if beside.exists() else ctc(len(letters)))
    model = package.load_model("nemo-conformer-ctc", folder)
    answers: dict[str, Any] = {
        "text": [model.recognize(sound(2)), model.recognize(sound(1, 8000), sample_rate=8000)],
    }
    waves, lengths = sound(1)[None], np.array([16000])
    for name in ("nemo80", "kaldi", "whisper80", "gigaam_v2"):
        features, count = OnnxPreprocessor(name, {})(waves, lengths)
        answers |= {f"{name} features": features, f"{name} count": count}
    given = os.environ.get("SILERO_VAD_MODEL")
    if given:
        (folder / "silero_vad.onnx").write_bytes(Path(given).read_bytes())
        vad = package.load_vad("silero", folder)
        answers["speech"] = np.concatenate(list(vad._encode(sound(2)[None], 16000, 512, 64)))  # pyright: ignore[reportAttributeAccessIssue]
    return answers


def arabic_name_romanizer(_: Path) -> Answers:
    """Names in Latin letters, by a search among what a decoder proposes letter by letter."""
    from arabic_name_romanizer import Transliterator

    names = ["زكريا الخوارزمي", "شهرزاد قيسون بختيار", "فلنتاينوف"]
    found = [x for name in names for x in Transliterator().transliterate(name, top_k=3)]
    return {"names": [x.text for x in found], "scores": np.array([x.score for x in found])}


def text2tashkeel(_: Path) -> Answers:
    """Texts with the marks of their vowels, by recurrent networks in 8 bits."""
    from text2tashkeel import Diacritizer

    text = "ذهب الولد الى المدرسة في الصباح الباكر وكتب الدرس"
    return {name: [Diacritizer(name)(text)] for name in ("bilstm-int8", "rawi-int8", "rawi-ensemble")}


def captcha_whisperer(_: Path) -> Answers:
    """The letters of small pictures, by convolutions and LSTMs in both directions."""
    from io import BytesIO

    from captcha_whisperer import CaptchaRecognizer
    from PIL import Image, ImageDraw, ImageFont

    recognizer = CaptchaRecognizer()
    found = []
    for text in ("7k2p9", "ab3de", "HELLO"):
        picture, data = Image.new("RGB", (160, 60), "white"), BytesIO()
        ImageDraw.Draw(picture).text((10, 8), text, fill="black", font=ImageFont.load_default(36))
        picture.save(data, "PNG")
        found.append(recognizer.recognize_bytes(data.getvalue()))
    return {"texts": [x["text"] for x in found], "confidences": np.array([x["confidence"] for x in found])}


def khmersm(_: Path) -> Answers:
    """The words of Khmer texts, which have no spaces; the model's weights are external data."""
    from khmersm import segment

    texts = ("ខ្ញុំស្រលាញ់ប្រទេសកម្ពុជាហើយខ្ញុំចង់ទៅលេងប្រាសាទអង្គរវត្ត", "សួស្តីអ្នកទាំងអស់គ្នា")
    return {"words": [segment(text) for text in texts]}


def ddddocr(_: Path) -> Answers:
    """What is read in pictures of one word, and where characters are in another; of its 8-bit network, the words alone are steady."""
    from io import BytesIO

    from ddddocr import DdddOcr
    from PIL import Image, ImageDraw, ImageFont

    def drawn(size: tuple[int, int], *words: tuple[str, int, int]) -> bytes:
        picture, data = Image.new("RGB", size, "white"), BytesIO()
        for text, x, y in words:
            ImageDraw.Draw(picture).text((x, y), text, fill="black", font=ImageFont.load_default(36))
        picture.save(data, "PNG")
        return data.getvalue()

    reader, finder = DdddOcr(show_ad=False), DdddOcr(det=True, show_ad=False)
    texts = [reader.classification(drawn((160, 60), (text, 10, 8))) for text in ("8Gk2", "hello", "7391")]
    return {"texts": texts, "boxes": np.array(finder.detection(drawn((320, 200), ("A7", 30, 30), ("Q", 180, 110))))}


def luscinia(_: Path) -> Answers:
    """Which vowel of a Ukrainian word has the stress, by an ensemble of trees."""
    from luscinia import LusciniaPredictor

    predictor = LusciniaPredictor()
    words = ["мама", "тато", "університет", "виходити", "перекладач"]
    return {"alone": [predictor.predict(word) for word in words], "together": predictor.predict_batch(words)}


def nudenet(_: Path) -> Answers:
    """Faces and other parts of bodies in a photograph."""
    from nudenet import NudeDetector

    photo = Path(__file__).parents[3] / "demos" / "tasks" / "samples" / "astronaut.jpg"
    found = NudeDetector().detect(str(photo))
    assert found, "nothing was found"
    return {
        "classes": [x["class"] for x in found],
        "boxes": np.array([x["box"] for x in found]),
        "scores": np.array([x["score"] for x in found]),
    }


PROGRAMS: Final[Mapping[str, Callable[[Path], Answers]]] = {
    f.__name__: f
    for f in (
        magika, rapidocr_onnxruntime, openwakeword, silero_vad, fastembed, onnx_asr, arabic_name_romanizer, text2tashkeel,
        captcha_whisperer, khmersm, ddddocr, luscinia, nudenet,
    )
}  # fmt: skip


def main() -> None:
    name, runtime, folder, out = sys.argv[1:]
    if runtime != "onnxruntime":
        os.environ["SINGE_DEVICE"] = runtime
        import singe.ort

        singe.ort.install(force=True)
    import onnxruntime

    assert onnxruntime.__name__ == ("onnxruntime" if runtime == "onnxruntime" else "singe.ort")
    answers = PROGRAMS[name](Path(folder))
    np.savez(out, **{k: np.asarray(v) for k, v in answers.items()})


if __name__ == "__main__":
    main()
