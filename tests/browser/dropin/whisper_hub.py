"""Whisper's folder as Hugging Face has it, with random weights of the shape of whisper-tiny: an encoder, and a decoder whose two
forms, for the first run and for those with a cache, are the branches of one If; a tokenizer of bytes and of made-up tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import hubs
import numpy as np
from hubs import FLOAT, INT64, Net
from onnx import GraphProto, TensorProto, helper, numpy_helper

WIDTH: Final = 384
HEADS: Final = 6
LAYERS: Final = 4
BANDS, FRAMES, PLACES, LENGTH = 80, 3000, 1500, 448
"""The encoder's input, the places that it makes of it, and the most tokens of a text."""
WORDS: Final = 50257
"""How many tokens are no special ones."""
LANGUAGES: Final = ("en", "de", *(f"language {k}" for k in range(97)))
SPECIAL: Final = (
    "<|endoftext|>", "<|startoftranscript|>", *(f"<|{x}|>" for x in LANGUAGES), "<|translate|>", "<|transcribe|>",
    "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>",
)  # fmt: skip
NUMBERS: Final = {token: WORDS + k for k, token in enumerate(SPECIAL)}
VOCABULARY: Final = WORDS + len(SPECIAL) + 1501
"""With a token for each fiftieth of a second of half a minute."""
SUFFIX: Final[Mapping[str, str]] = {"fp32": "", "fp16": "_fp16", "q8": "_quantized"}
"""A dtype ↦ what follows the name of a model in that of its file."""
LOW: Final = {"fp16": -6e4}
"""A dtype ↦ what hides scores, if it is not −1e9."""
Pair = tuple[str, str]


class SpeechNet(Net):
    """The layers of Whisper, of weights that are drawn before, so that two branches may share them. dtype: "fp16" computes in float16,
    between casts of the inputs and outputs; "q8" has products of rows and weights of 8 bits, as onnxruntime's quantiser writes them."""

    def __init__(self, dtype: str) -> None:
        super().__init__(WIDTH, HEADS)
        self.dtype: Final = dtype

    def constant(self, value: np.ndarray) -> str:
        return super().constant(value.astype(np.float16) if self._halves and value.dtype == np.float32 else value)

    @property
    def _halves(self) -> bool:
        return self.dtype == "fp16"

    def read(self, name: str) -> str:
        """An input of the model, as its layers compute."""
        return self("Cast", name, to=TensorProto.FLOAT16) if self._halves else name

    def give(self, x: str, name: str) -> None:
        """Make a value an output of the model, a float32."""
        self("Cast", x, name=name, to=FLOAT)

    def pairs(self, attentions: int) -> Sequence[Pair]:
        """The weights of a layer: q, k, v and output of each attention, and the two of the network behind."""
        sides = [*[(WIDTH, WIDTH)] * 4 * attentions, (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
        return [(self.factor(width, to), self.weight(to)) for width, to in sides]

    def factor(self, width: int, to: int) -> str:
        """A matrix of weights, for q8 of whole numbers of 8 bits."""
        if self.dtype != "q8":
            return self.weight(width, to)
        return self.constant(self._rng.normal(0, 30, (width, to)).clip(-127, 127).astype(np.int8))

    def product(self, x: str, pair: Pair) -> str:
        if self.dtype != "q8":
            return self("Add", self("MatMul", x, pair[0]), pair[1])
        rows, scale, zero = (f"{pair[0]}.{x}.{part}" for part in ("rows", "scale", "zero"))
        self.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], [rows, scale, zero]))
        sums = self("Cast", self("MatMulInteger", rows, pair[0], zero), to=FLOAT)
        scales = self("Mul", scale, np.array(1 / (30 * WIDTH**0.5), np.float32))
        return self("Add", self("Mul", sums, scales), pair[1])

    def gelu(self, x: str) -> str:
        erf = self("Erf", self("Div", x, np.array(2**0.5, np.float32)))
        return self("Mul", self("Mul", x, self("Add", erf, np.array(1, np.float32))), np.array(0.5, np.float32))

    def network(self, x: str, up: Pair, down: Pair) -> str:
        return self("Add", x, self.product(self.gelu(self.product(self.norm(x), up)), down))

    def branch(self, name: str, outputs: Sequence[str]) -> GraphProto:
        """The nodes up to here as a graph of its own; weights stay outside."""
        kind = TensorProto.FLOAT16 if self._halves else FLOAT
        made = [helper.make_tensor_value_info(output, kind, None) for output in outputs]
        graph = helper.make_graph(self.nodes, name, [], made)
        self.nodes = []
        return graph


def encoder(path: Path, dtype: str) -> None:
    net = SpeechNet(dtype)
    x = net("Conv", net.read("input_features"), net.weight(WIDTH, BANDS, 3), net.weight(WIDTH), pads=[1, 1])
    x = net("Conv", net.gelu(x), net.weight(WIDTH, WIDTH, 3), net.weight(WIDTH), pads=[1, 1], strides=[2])
    x = net("Add", net("Transpose", net.gelu(x), perm=[0, 2, 1]), net.weight(PLACES, WIDTH))
    for _ in range(LAYERS):
        q, k, v, out, up, down = net.pairs(attentions=1)
        normed = net.norm(x)
        mixed = net.attention(*(net.heads(net.product(normed, pair)) for pair in (q, k, v)))
        x = net.network(net("Add", x, net.product(mixed, out)), up, down)
    net.give(net.norm(x), "last_hidden_state")
    features = {"input_features": (FLOAT, ("batch_size", BANDS, FRAMES))}
    net.save(path, features, {"last_hidden_state": ("batch_size", PLACES, WIDTH)})


CACHED: Final = [
    f"{k}.{part}.{kind}" for k in range(LAYERS) for part in ("decoder", "encoder") for kind in ("key", "value")
]


def merged_decoder(path: Path, dtype: str) -> None:
    """As optimum writes it: where there is a cache, the encoder's keys and values are not given out again, but empty tensors."""
    net = SpeechNet(dtype)
    words, places = net.weight(VOCABULARY, WIDTH), net.weight(LENGTH, WIDTH)
    layers = [net.pairs(attentions=2) for _ in range(LAYERS)]
    head = net("Transpose", words, perm=[1, 0])
    cache = {name: net.read(f"past_key_values.{name}") for name in CACHED}
    states = net.read("encoder_hidden_states")
    outside, net.nodes = net.nodes, []

    def branch(has_past: bool) -> GraphProto:
        """One form of the decoder."""
        zero, one = np.array(0, np.int64), np.array(1, np.int64)
        past = "past_key_values.0.decoder.key"
        before = net("Gather", net("Shape", past), np.array(2, np.int64)) if has_past else net.constant(zero)
        total = net("Add", before, net("Gather", net("Shape", "input_ids"), one))
        rows = net("Range", before, total, one)
        later = net("Greater", net("Range", zero, total, one), net("Unsqueeze", rows, one.reshape(1)))
        causal = net("Where", later, np.array(LOW.get(dtype, -1e9), np.float32), np.array(0, np.float32))
        x = net("Add", net("Gather", words, "input_ids"), net("Gather", places, rows))
        present: dict[str, str] = {}
        for number, (q, k, v, out, far_q, far_k, far_v, far_out, up, down) in enumerate(layers):
            normed = net.norm(x)
            kept = []
            for kind, pair in (("key", k), ("value", v)):
                name = f"{number}.decoder.{kind}"
                new = net.heads(net.product(normed, pair))
                kept.append(net("Concat", cache[name], new, axis=2) if has_past else new)
                present[name] = kept[-1]
            mixed = net.attention(net.heads(net.product(normed, q)), kept[0], kept[1], causal)
            x = net("Add", x, net.product(mixed, out))
            far = []
            for kind, pair in (("key", far_k), ("value", far_v)):
                name = f"{number}.encoder.{kind}"
                if has_past:
                    far.append(cache[name])
                    empty = np.zeros((0, HEADS, 1, WIDTH // HEADS), np.float16 if dtype == "fp16" else np.float32)
                    present[name] = net("Constant", value=numpy_helper.from_array(empty))
                else:
                    far.append(net.heads(net.product(states, pair)))
                    present[name] = far[-1]
            mixed = net.attention(net.heads(net.product(net.norm(x), far_q)), far[0], far[1])
            x = net.network(net("Add", x, net.product(mixed, far_out)), up, down)
        logits = net("MatMul", net.norm(x), head)
        return net.branch("with_past" if has_past else "first", [logits, *(present[name] for name in CACHED)])

    with_past, first = branch(True), branch(False)
    outputs = ["logits", *(f"present.{name}" for name in CACHED)]
    chosen = [f"{name}.chosen" for name in outputs]
    choice = helper.make_node("If", ["use_cache_branch"], chosen, then_branch=with_past, else_branch=first)
    net.nodes = [*outside, choice]
    for x, name in zip(chosen, outputs, strict=True):
        net.give(x, name)
    given: dict[str, tuple[int, Sequence[int | str]]] = {
        "input_ids": (INT64, ("batch_size", "decoder_sequence_length")),
        "encoder_hidden_states": (FLOAT, ("batch_size", "encoder_sequence_length_out", WIDTH)),
    }
    made: dict[str, Sequence[int | str]] = {"logits": ("batch_size", "decoder_sequence_length", VOCABULARY)}
    for name in CACHED:
        part = name.split(".")[1]
        given[f"past_key_values.{name}"] = FLOAT, ("batch_size", HEADS, f"past_{part}_sequence_length", WIDTH // HEADS)
        length = "encoder_sequence_length_out" if part == "encoder" else "past_decoder_sequence_length + 1"
        made[f"present.{name}"] = ("batch_size", HEADS, length, WIDTH // HEADS)
    net.save(path, {**given, "use_cache_branch": (TensorProto.BOOL, (1,))}, made)


def tokenizer() -> dict[str, Any]:
    """Tokens of one byte, written with GPT-2's letters, and made-up ones up to the size of Whisper's vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(k) for k in plain] + [chr(256 + k) for k in range(256 - len(plain))]
    vocab = {token: k for k, token in enumerate((*letters, *(f"Ġw{k}" for k in range(WORDS - len(letters)))))}
    times = [f"<|{k * 0.02:.2f}|>" for k in range(1501)]
    special = [{"id": NUMBERS[token], **_added(token), "special": True} for token in SPECIAL]
    timed = [{"id": WORDS + len(SPECIAL) + k, **_added(token), "special": False} for k, token in enumerate(times)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [*special, *timed], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "unk_token": "", "vocab": vocab, "merges": []},
    }  # fmt: skip


def _added(token: str) -> Mapping[str, Any]:
    return {"content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def write(folder: Path, dtype: str) -> None:
    """The whole folder, with models of this dtype of transformers.js."""
    encoder(folder / "onnx" / f"encoder_model{SUFFIX[dtype]}.onnx", dtype)
    merged_decoder(folder / "onnx" / f"decoder_model_merged{SUFFIX[dtype]}.onnx", dtype)
    multilingual = {
        "is_multilingual": True, "lang_to_id": {f"<|{x}|>": NUMBERS[f"<|{x}|>"] for x in LANGUAGES},
        "task_to_id": {x: NUMBERS[f"<|{x}|>"] for x in ("transcribe", "translate")},
    }  # fmt: skip
    write_settings(folder, tokenizer(), NUMBERS, multilingual)


def write_settings(
    folder: Path, tokenizer: Mapping[str, Any], marks: Mapping[str, int], generation: Mapping[str, Any]
) -> None:
    """All but the models. marks: the numbers of special tokens; generation: what else is said of texts."""
    end = marks["<|endoftext|>"]
    numbers = {
        "bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": marks["<|startoftranscript|>"],
    }  # fmt: skip
    config = {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "is_encoder_decoder": True, "d_model": WIDTH,
        "encoder_layers": LAYERS, "encoder_attention_heads": HEADS, "decoder_layers": LAYERS, "decoder_attention_heads": HEADS,
        "num_hidden_layers": LAYERS, "num_mel_bins": BANDS, "max_source_positions": PLACES, "max_target_positions": LENGTH,
        "vocab_size": VOCABULARY, **numbers,
    }  # fmt: skip
    rules = {
        **numbers, "max_length": LENGTH, "no_timestamps_token_id": marks["<|notimestamps|>"], "max_initial_timestamp_index": 50,
        "begin_suppress_tokens": [220, end], **generation,
    }  # fmt: skip
    settings = {"tokenizer_class": "WhisperTokenizer", "model_max_length": 1024, **dict.fromkeys(
        ("bos_token", "eos_token", "pad_token", "unk_token"), "<|endoftext|>")}  # fmt: skip
    extractor = {
        "feature_extractor_type": "WhisperFeatureExtractor", "processor_class": "WhisperProcessor", "sampling_rate": 16000,
        "feature_size": BANDS, "n_fft": 400, "hop_length": 160, "chunk_length": 30, "n_samples": 480000, "nb_max_frames": FRAMES,
        "padding_value": 0.0, "return_attention_mask": False,
    }  # fmt: skip
    hubs.write_hub(
        folder, config, words=False, tokenizer=tokenizer, tokenizer_config=settings, generation_config=rules,
        preprocessor_config=extractor,
    )  # fmt: skip
