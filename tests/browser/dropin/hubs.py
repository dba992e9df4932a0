"""Folders as Hugging Face has them, for transformers.js: a tokenizer, configurations, and models with random weights, of the inputs,
outputs and layers of the models that they stand for, but few and narrow ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH: Final = 32
HEADS: Final = 4
LAYERS: Final = 2
SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS: Final = re.findall(
    r"\w+",
    "the a cat dog sat on mat hello world this is test of how are you fine i love cats and dogs in house sky blue",
)
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Net:
    """An ONNX graph in the making, with random weights. width, heads: of its layers of attention."""

    def __init__(self, width: int = WIDTH, heads: int = HEADS) -> None:
        self.width: Final = width
        self._parts: Final = heads, width // heads
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._numbers: Final = count()
        self._rng = np.random.default_rng(0)

    def __call__(self, op: str, *inputs: str | np.ndarray, name: str = "", **attributes: Any) -> str:
        """The first output of a node; arrays become constants."""
        names = [self.constant(x) if isinstance(x, np.ndarray) else x for x in inputs]
        self.nodes.append(helper.make_node(op, names, [name or f"t{next(self._numbers)}"], **attributes))
        return self.nodes[-1].output[0]

    def constant(self, value: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(value, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *shape: int) -> str:
        scale = shape[-2] ** -0.5 if len(shape) > 1 else 0.1
        return self.constant((self._rng.normal(size=shape) * scale).astype(np.float32))

    def linear(self, x: str, width: int, to: int, name: str = "") -> str:
        return self("Add", self("MatMul", x, self.weight(width, to)), self.weight(to), name=name)

    def norm(self, x: str) -> str:
        ones, zeros = np.ones(self.width, np.float32), np.zeros(self.width, np.float32)
        return self("LayerNormalization", x, ones, zeros, axis=-1)

    def save(
        self,
        path: Path,
        inputs: Mapping[str, tuple[int, Sequence[int | str]]],
        outputs: Mapping[str, Sequence[int | str]],
    ) -> None:
        given = [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()]
        made = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self.nodes, path.stem, given, made, self.weights)
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)

    # --- layers ---

    def heads(self, x: str) -> str:
        """(batch, length, width) as (batch, heads, length, width / heads)."""
        shape = np.array([0, 0, *self._parts], np.int64)
        return self("Transpose", self("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attention(self, q: str, k: str, v: str, bias: str | None = None) -> str:
        """bias: what is added to the scores."""
        scores = self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2]))
        scaled = self("Mul", scores, np.array(self._parts[1] ** -0.5, np.float32))
        mixed = self("MatMul", self("Softmax", self("Add", scaled, bias) if bias else scaled, axis=-1), v)
        return self("Reshape", self("Transpose", mixed, perm=[0, 2, 1, 3]), np.array([0, 0, self.width], np.int64))

    def block(self, x: str, bias: str, past: Callable[[str, str], tuple[str, str]] = lambda k, v: (k, v)) -> str:
        """A layer of a transformer; `past` adds earlier keys and values."""
        normed = self.norm(x)
        q, k, v = (self.heads(self.linear(normed, WIDTH, WIDTH)) for _ in range(3))
        k, v = past(k, v)
        x = self("Add", x, self.linear(self.attention(q, k, v, bias), WIDTH, WIDTH))
        inner = self.linear(self.norm(x), WIDTH, 2 * WIDTH)
        return self("Add", x, self.linear(self("Relu", inner), 2 * WIDTH, WIDTH))

    def masked(self, mask: str) -> str:
        """A mask of ones (batch, length) as numbers that are added to scores."""
        away = self("Sub", np.array(1, np.float32), self("Cast", mask, to=FLOAT))
        return self("Unsqueeze", self("Mul", away, np.array(-1e9, np.float32)), np.array([1, 2], np.int64))


# --- models -----------------------------------------------------------------------------------------------------------

TOKENS: Final = ("batch_size", "sequence_length")
TEXT: Final[Mapping[str, tuple[int, Sequence[int | str]]]] = dict.fromkeys(
    ("input_ids", "attention_mask", "token_type_ids"), (INT64, TOKENS)
)


def text_encoder(net: Net) -> str:
    """BERT, up to its last hidden state."""
    words = net("Gather", net.weight(len(vocabulary()), WIDTH), "input_ids")
    x = net("Add", words, net("Gather", net.weight(2, WIDTH), "token_type_ids"))
    bias = net.masked("attention_mask")
    for _ in range(LAYERS):
        x = net.block(x, bias)
    return net.norm(x)


def text_model(path: Path, name: str, width: int, pooled: bool) -> None:
    """BERT with a head: one answer for each text, or for each token."""
    net = Net()
    x = text_encoder(net)
    if pooled:
        x = net("Gather", x, np.array(0, np.int64), axis=1)
    net.linear(x, WIDTH, width, name=name)
    net.save(path, TEXT, {name: ("batch_size", width) if pooled else (*TOKENS, width)})


def question_model(path: Path) -> None:
    net = Net()
    x = text_encoder(net)
    for name in ("start_logits", "end_logits"):
        net("Squeeze", net.linear(x, WIDTH, 1), np.array([-1], np.int64), name=name)
    net.save(path, TEXT, dict.fromkeys(("start_logits", "end_logits"), TOKENS))


SIDE: Final = 32
PATCH: Final = 8


def patches(net: Net) -> str:
    """A picture's patches, through a layer: (batch, patches, width)."""
    found = net("Conv", "pixel_values", net.weight(WIDTH, 3, PATCH, PATCH), net.weight(WIDTH), strides=[PATCH, PATCH])
    x = net("Transpose", net("Reshape", found, np.array([0, 0, -1], np.int64)), perm=[0, 2, 1])
    return net.norm(net.block(x, np.zeros((1, 1, 1, 1), np.float32)))  # pyright: ignore[reportArgumentType]


def picture_classifier(path: Path) -> None:
    net = Net()
    net.linear(net("ReduceMean", patches(net), axes=[1], keepdims=0), WIDTH, 5, name="logits")
    net.save(path, {"pixel_values": (FLOAT, ("batch_size", 3, SIDE, SIDE))}, {"logits": ("batch_size", 5)})


def detector(path: Path) -> None:
    """DETR's outputs: a class and a box for each of some queries."""
    net = Net()
    x = patches(net)
    net.linear(x, WIDTH, 4, name="logits")
    net("Sigmoid", net.linear(x, WIDTH, 4), name="pred_boxes")
    shape = ("batch_size", 3, "height", "width")
    queries = ("batch_size", "queries")
    net.save(path, {"pixel_values": (FLOAT, shape)}, {"logits": (*queries, 4), "pred_boxes": (*queries, 4)})


def depth_model(path: Path) -> None:
    """A number for each patch."""
    net = Net()
    rows = SIDE // PATCH
    net("Reshape", net.linear(patches(net), WIDTH, 1), np.array([-1, rows, rows], np.int64), name="predicted_depth")
    net.save(
        path, {"pixel_values": (FLOAT, ("batch_size", 3, SIDE, SIDE))}, {"predicted_depth": ("batch_size", rows, rows)}
    )


PICTURE: Final[Mapping[str, tuple[int, Sequence[int | str]]]] = {
    "pixel_values": (FLOAT, ("batch_size", 3, "height", "width"))
}


def segmenter(path: Path, classes: int, name: str) -> None:
    """A network of convolutions, whose answer has half of the picture's height and width: SegFormer's, and MODNet's of one class between 0 and 1."""
    net = Net()
    x = net(
        "Relu",
        net("Conv", next(iter(PICTURE)), net.weight(WIDTH, 3, 3, 3), net.weight(WIDTH), strides=[4, 4], pads=[1] * 4),
    )
    x = net("Resize", x, "", np.array([1, 1, 2, 2], np.float32), mode="linear")
    x = net("Conv", x, net.weight(classes, WIDTH, 1, 1), net.weight(classes), name=name if classes > 1 else "")
    if classes == 1:
        net("Sigmoid", x, name=name)
    net.save(path, PICTURE, {name: ("batch_size", classes, "rows", "columns")})


def upscaler(path: Path) -> None:
    """A picture of twice the height and width, as Swin2SR gives it."""
    net = Net()
    x = net("Conv", next(iter(PICTURE)), net.weight(12, 3, 3, 3), net.weight(12), pads=[1] * 4)
    net("DepthToSpace", net("Sigmoid", x), blocksize=2, name="reconstruction")
    net.save(path, PICTURE, {"reconstruction": ("batch_size", 3, "rows", "columns")})


def picture_encoder(path: Path) -> None:
    """ViT, up to its last hidden state."""
    net = Net()
    net("Identity", patches(net), name="last_hidden_state")
    net.save(path, PICTURE, {"last_hidden_state": ("batch_size", "patches", WIDTH)})


def picture_text_model(path: Path) -> None:
    """CLIP: how well each text tells what is in each picture."""
    net = Net()

    def direction(x: str) -> str:
        found = net.linear(x, WIDTH, WIDTH)
        return net("Div", found, net("ReduceL2", found, axes=[1], keepdims=1))

    text = direction(net("Gather", text_encoder(net), np.array(0, np.int64), axis=1))
    picture = direction(net("ReduceMean", patches(net), axes=[1], keepdims=0))
    product = net("MatMul", picture, net("Transpose", text, perm=[1, 0]))
    net("Mul", product, np.array(10, np.float32), name="logits_per_image")
    net.save(
        path,
        {**TEXT, "pixel_values": (FLOAT, ("pictures", 3, SIDE, SIDE))},
        {"logits_per_image": ("pictures", "batch_size")},
    )


def voice_model(path: Path) -> None:
    """VITS: how long each token sounds is an outcome of the network, and so is the length of the sound."""
    net = Net()
    x = text_encoder(net)
    chance = net("Sigmoid", net.linear(x, WIDTH, 1))
    durations = net("Ceil", net("Mul", chance, np.array(5, np.float32)))
    ends = net("CumSum", durations, np.array(1, np.int64))
    total = net("Cast", net("ReduceMax", ends, keepdims=0), to=INT64)
    frames = net("Cast", net("Range", np.array(0, np.int64), total, np.array(1, np.int64)), to=FLOAT)
    begun = net("GreaterOrEqual", frames, net("Sub", ends, durations))
    spoken = net("Cast", net("And", begun, net("Less", frames, ends)), to=FLOAT)
    x = net("MatMul", net("Transpose", spoken, perm=[0, 2, 1]), x)
    sound = net("ConvTranspose", net("Transpose", x, perm=[0, 2, 1]), net.weight(WIDTH, 1, 16), strides=[8])
    net("Tanh", net("Squeeze", sound, np.array([1], np.int64)), name="waveform")
    net.save(path, TEXT, {"waveform": ("batch_size", "samples")})


def sound_encoder(net: Net) -> str:
    """wav2vec 2, up to its last hidden state: frames."""
    sound = net("Unsqueeze", "input_values", np.array([1], np.int64))
    frames = net("Conv", sound, net.weight(WIDTH, 1, 400), net.weight(WIDTH), strides=[320])
    return net.block(net("Transpose", frames, perm=[0, 2, 1]), np.zeros((1, 1, 1, 1), np.float32))  # pyright: ignore[reportArgumentType]


SOUND: Final[Mapping[str, tuple[int, Sequence[int | str]]]] = {"input_values": (FLOAT, ("batch_size", "samples"))}


def speech_model(path: Path) -> None:
    """wav2vec 2 with CTC: a letter for each frame."""
    net = Net()
    net.linear(sound_encoder(net), WIDTH, len(LETTERS), name="logits")
    net.save(path, SOUND, {"logits": ("batch_size", "frames", len(LETTERS))})


def sound_classifier(path: Path) -> None:
    net = Net()
    net.linear(net("ReduceMean", sound_encoder(net), axes=[1], keepdims=0), WIDTH, 4, name="logits")
    net.save(path, SOUND, {"logits": ("batch_size", 4)})


def decoder(path: Path) -> None:
    """GPT-2 with a cache: keys and values of earlier tokens come in and go out."""
    net = Net()
    size = len(vocabulary())
    x = net(
        "Add", net("Gather", net.weight(size, WIDTH), "input_ids"), net("Gather", net.weight(64, WIDTH), "position_ids")
    )
    total = net("Gather", net("Shape", "attention_mask"), np.array(1, np.int64))
    places = net("Range", np.array(0, np.int64), total, np.array(1, np.int64))
    later = net("Greater", places, net("Unsqueeze", "position_ids", np.array([1, 3], np.int64)))
    bias = net(
        "Add", net("Where", later, np.array(-1e9, np.float32), np.array(0, np.float32)), net.masked("attention_mask")
    )
    past: dict[str, tuple[int, Sequence[int | str]]] = {}
    present: dict[str, Sequence[int | str]] = {}
    for number in range(LAYERS):

        def with_past(k: str, v: str, number: int = number) -> tuple[str, str]:
            found = []
            for kind, new in (("key", k), ("value", v)):
                name = f"{number}.{kind}"
                past[f"past_key_values.{name}"] = (FLOAT, ("batch_size", HEADS, "past_sequence_length", WIDTH // HEADS))
                present[f"present.{name}"] = ("batch_size", HEADS, "total", WIDTH // HEADS)
                found.append(net("Concat", f"past_key_values.{name}", new, name=f"present.{name}", axis=2))
            return found[0], found[1]

        x = net.block(x, bias, with_past)
    net.linear(net.norm(x), WIDTH, size, name="logits")
    given = {
        "input_ids": (INT64, TOKENS),
        "attention_mask": (INT64, ("batch_size", "total")),
        "position_ids": (INT64, TOKENS),
    }
    net.save(path, {**given, **past}, {"logits": (*TOKENS, size), **present})


def translator(folder: Path) -> None:
    """T5: an encoder, and a decoder whose cache holds its own keys and values and, from the first run on, those of the encoder."""
    net = Net()
    x = net("Gather", net.weight(len(vocabulary()), WIDTH), "input_ids")
    net("Identity", net.norm(net.block(x, net.masked("attention_mask"))), name="last_hidden_state")
    read = {name: TEXT[name] for name in ("input_ids", "attention_mask")}
    net.save(folder / "encoder_model.onnx", read, {"last_hidden_state": (*TOKENS, WIDTH)})

    net = Net()
    size, source = len(vocabulary()), ("batch_size", "encoder_sequence_length")
    given: dict[str, tuple[int, Sequence[int | str]]] = {
        "encoder_attention_mask": (INT64, source), "input_ids": (INT64, ("batch_size", "decoder_sequence_length")),
        "encoder_hidden_states": (FLOAT, (*source, WIDTH)),
    }  # fmt: skip
    made: dict[str, Sequence[int | str]] = {"logits": ("batch_size", "decoder_sequence_length", size)}

    def cached(name: str, kind: str, length: str) -> str:
        part = WIDTH // HEADS
        given[f"past_key_values.{name}"] = (FLOAT, ("batch_size", HEADS, f"past_{kind}_sequence_length", part))
        made[f"present.{name}"] = ("batch_size", HEADS, length, part)
        return f"past_key_values.{name}"

    def of_encoder(name: str) -> str:
        """The keys or values of the encoder: those of the cache, or new ones."""
        past = cached(name, "encoder", "encoder_length")
        new = net.heads(net.linear("encoder_hidden_states", WIDTH, WIDTH))
        branches = [
            helper.make_graph([helper.make_node("Identity", [x], [f"{name}.{k}"])], "branch", [],
                              [helper.make_tensor_value_info(f"{name}.{k}", FLOAT, None)])
            for k, x in enumerate((past, new))
        ]  # fmt: skip
        return net("If", "use_cache_branch", name=f"present.{name}", then_branch=branches[0], else_branch=branches[1])

    def of_decoder(name: str, new: str) -> str:
        return net("Concat", cached(name, "decoder", "decoder_length"), new, name=f"present.{name}", axis=2)

    before = net("Gather", net("Shape", "past_key_values.0.decoder.key"), np.array(2, np.int64))
    given_count = net("Gather", net("Shape", "input_ids"), np.array(1, np.int64))
    total, zero, one = net("Add", before, given_count), np.array(0, np.int64), np.array(1, np.int64)
    rows = net("Range", before, total, one)
    later = net("Greater", net("Range", zero, total, one), net("Unsqueeze", rows, one.reshape(1)))
    causal = net("Where", later, np.array(-1e9, np.float32), np.array(0, np.float32))
    x = net("Add", net("Gather", net.weight(size, WIDTH), "input_ids"), net("Gather", net.weight(64, WIDTH), rows))
    x = net.block(x, causal, lambda k, v: (of_decoder("0.decoder.key", k), of_decoder("0.decoder.value", v)))
    q = net.heads(net.linear(net.norm(x), WIDTH, WIDTH))
    keys, values = of_encoder("0.encoder.key"), of_encoder("0.encoder.value")
    x = net("Add", x, net.attention(q, keys, values, net.masked("encoder_attention_mask")))
    net.linear(net.norm(x), WIDTH, size, name="logits")
    net.save(folder / "decoder_model_merged.onnx", {**given, "use_cache_branch": (TensorProto.BOOL, (1,))}, made)


# --- tokenizers and configurations ------------------------------------------------------------------------------------


def vocabulary() -> dict[str, int]:
    """Words and letters; special tokens have BERT's numbers, and the rest follows."""
    letters = [chr(code) for code in range(33, 127)]
    tokens = [
        "[PAD]",
        *(f"[unused{k}]" for k in range(99)),
        *SPECIAL[1:],
        *letters,
        *(f"##{x}" for x in letters if x.islower()),
        *WORDS,
    ]
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


LETTERS: Final = ("<pad>", "<s>", "</s>", "<unk>", "|", *"ETAOINSHRDLUCMWFGYPBVKXJQZ")


def _token(content: str, number: int) -> dict[str, Any]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": content, **plain}


def word_tokenizer() -> dict[str, Any]:
    """BERT's WordPiece."""
    vocab = vocabulary()

    def special(token: str, kind: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": kind}}

    first = [special("[CLS]", 0), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]", 0)]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, special("[SEP]", 1)]
    ids = {token: {"id": token, "ids": [vocab[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [_token(token, vocab[token]) for token in SPECIAL],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": first, "pair": first + second, "special_tokens": ids},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab,
        },
    }  # fmt: skip


def letter_tokenizer() -> dict[str, Any]:
    """wav2vec 2's letters."""
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [_token(token, k) for k, token in enumerate(LETTERS[:4])],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "|"},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": False},
        "post_processor": None,
        "decoder": {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "", "max_input_chars_per_word": 100,
                  "vocab": {token: k for k, token in enumerate(LETTERS)}},
    }  # fmt: skip


WORD_SETTINGS: Final = {
    "tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 64,
    **{f"{name}_token": token for name, token in zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL, strict=True)},
}  # fmt: skip
PICTURES: Final = {
    "do_resize": True, "do_rescale": True, "do_normalize": True, "rescale_factor": 1 / 255, "resample": 2,
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "size": {"height": SIDE, "width": SIDE},
}  # fmt: skip


def labels(count: int) -> dict[str, Any]:
    return {
        "id2label": {str(k): f"class {k}" for k in range(count)},
        "label2id": {f"class {k}": k for k in range(count)},
    }


def write_hub(folder: Path, config: Mapping[str, Any], words: bool = True, **files: Mapping[str, Any]) -> None:
    """The files beside the models. files: more of them, by their names without the suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, Any] = {"config": config, **files}
    if words:
        written |= {"tokenizer": word_tokenizer(), "tokenizer_config": WORD_SETTINGS}
    for name, value in written.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
