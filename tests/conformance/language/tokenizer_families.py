"""The tokenizers of twelve families, small: trained here by Hugging Face's library, each in the exact arrangement of its family."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import Any, Final

import sentencepiece
import tokenizer_texts as drawing
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, pre_tokenizers, trainers

from singe.language.tokenizing.patterns import CLIP, KINDS

Json = dict[str, Any]
SIZE: Final = 700
BYTE_LEVEL: Final = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
GPT2_LEVEL: Final = {**BYTE_LEVEL, "use_regex": True}
FALLBACK: Final = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}
MARKS: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>")


def _split(pattern: str) -> Json:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _sequence(name: str, *steps: Json) -> Json:
    return {"type": "Sequence", name: list(steps)}


def _added(first: int, contents: Iterable[str], **options: bool) -> list[Json]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return [{"id": first + i, "content": content, **plain, **options} for i, content in enumerate(contents)]


def _template(before: Mapping[str, int], after: Mapping[str, int] | None = None) -> Json:
    after = after or {}
    special = [{"SpecialToken": {"id": name, "type_id": 0}} for name in before]
    special += [
        {"Sequence": {"id": "A", "type_id": 0}},
        *({"SpecialToken": {"id": name, "type_id": 0}} for name in after),
    ]
    named = {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in {**before, **after}.items()}
    return {"type": "TemplateProcessing", "single": special, "pair": special, "special_tokens": named}


def _trained(whole: Json, trainer: Any, corpus: list[str]) -> Json:
    """A tokenizer whose model is trained on a corpus."""
    tokenizer = Tokenizer.from_str(json.dumps(whole))
    tokenizer.train_from_iterator(corpus, trainer)
    return json.loads(tokenizer.to_str())


def _whole(model: Json, **parts: Json | None) -> Json:
    empty = dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding"))
    return {"version": "1.0", **empty, "added_tokens": [], **parts, "model": model}


def _byte_pairs(pre_tokenizer: Json, corpus: list[str], **parts: Any) -> Json:
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    model = {"type": "BPE", "vocab": {}, "merges": []}
    start = _whole(model, pre_tokenizer=pre_tokenizer, normalizer=parts.get("normalizer"), decoder=BYTE_LEVEL)
    trained = _trained(start, trainer, corpus)
    trained["added_tokens"] = _added(len(trained["model"]["vocab"]), MARKS)
    trained["model"]["ignore_merges"] = parts.pop("ignore_merges", False)
    return {**trained, **parts}


def _kind(kind: str, corpus: list[str], **parts: Any) -> Json:
    pre_tokenizer = _sequence("pretokenizers", *map(_split, KINDS[kind]), BYTE_LEVEL)
    return _byte_pairs(pre_tokenizer, corpus, **parts)


def _llama2(corpus: list[str], prefix: bool) -> Json:
    """SentencePiece's byte pairs with bytes for what is unknown: Llama 2 with ▁ before a text, Gemma without."""
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE + 256, special_tokens=special, show_progress=False, limit_alphabet=120
    )
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    prepend = {"type": "Prepend", "prepend": "▁"}
    normalizer = _sequence("normalizers", prepend, replace) if prefix else replace
    training = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    trained = _trained(_whole({"type": "BPE", "vocab": {}, "merges": []}, pre_tokenizer=training), trainer, corpus)
    model = {**trained["model"], "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    steps = (
        [*FALLBACK["decoders"], {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
        if prefix
        else FALLBACK["decoders"]
    )
    return {
        **trained,
        "model": model,
        "added_tokens": _added(0, special[:3]),
        "normalizer": normalizer,
        "pre_tokenizer": None
        if prefix
        else {**_split(""), "pattern": {"String": " "}, "behavior": "MergedWithPrevious"},
        "post_processor": _template({"<s>": 1}),
        "decoder": {"type": "Sequence", "decoders": steps},
    }


def _charsmap(corpus: list[str]) -> str:
    """SentencePiece's own map of characters, nmt_nfkc, out of a model that it trains."""
    writer = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus),
        model_writer=writer,
        vocab_size=300,
        minloglevel=2,
        hard_vocab_limit=False,
        character_coverage=0.98,
    )
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(writer.getvalue())
    return b64encode(model.normalizer_spec.precompiled_charsmap).decode()


def _unigram(corpus: list[str], roberta: bool) -> Json:
    """T5, and XLM-RoBERTa, which differ in marks and in the cut at spaces."""
    special = ["<s>", "<pad>", "</s>", "<unk>"] if roberta else ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=SIZE + 300, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    pre_tokenizer = _sequence("pretokenizers", {"type": "WhitespaceSplit"}, metaspace) if roberta else metaspace
    normalizer: Json = {"type": "Precompiled", "precompiled_charsmap": _charsmap(corpus)}
    if not roberta:
        spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}
        strip = {"type": "Strip", "strip_left": False, "strip_right": True}
        normalizer = _sequence("normalizers", normalizer, strip, spaces)
    start = _whole(
        {"type": "Unigram", "vocab": [["<unk>", 0.0]], "unk_id": 0},
        pre_tokenizer=pre_tokenizer,
        normalizer=normalizer,
        decoder=metaspace,
    )
    trained = _trained(start, trainer, corpus)
    # Rust's JSON may read a long number to the next float, which decides between two ways that are equally good.
    trained["model"]["vocab"] = [[token, round(score, 5)] for token, score in trained["model"]["vocab"]]
    trained["added_tokens"] = _added(0, special) + _added(SIZE + 600, ["<mask>"], lstrip=True)
    post = _template({"<s>": 0}, {"</s>": 2}) if roberta else _template({}, {"</s>": 1})
    return {**trained, "post_processor": post}


def _bert(corpus: list[str], lower: bool) -> Json:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=SIZE, special_tokens=special, show_progress=False, limit_alphabet=150
    )
    normalizer = {
        "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": lower,
    }  # fmt: skip
    model = {
        "type": "WordPiece", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    }  # fmt: skip
    decoder = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    start = _whole(model, pre_tokenizer={"type": "BertPreTokenizer"}, normalizer=normalizer, decoder=decoder)
    return {**_trained(start, trainer, corpus), "post_processor": _template({"[CLS]": 2}, {"[SEP]": 3})}


def _clip(corpus: list[str]) -> Json:
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE + 256,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    words = {**_split(CLIP), "behavior": "Removed", "invert": True}
    normalizer = _sequence(
        "normalizers",
        {"type": "NFC"},
        {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
        {"type": "Lowercase"},
    )
    model = {"type": "BPE", "vocab": {}, "merges": [], "end_of_word_suffix": "</w>"}
    start = _whole(
        model,
        normalizer=normalizer,
        pre_tokenizer=_sequence("pretokenizers", words, {**BYTE_LEVEL, "use_regex": True}),
        decoder=BYTE_LEVEL,
    )
    return _trained(start, trainer, corpus)


FAMILIES: Final[Mapping[str, Callable[[list[str]], Json]]] = {
    "gpt-2": lambda corpus: _byte_pairs(GPT2_LEVEL, corpus),
    "roberta": lambda corpus: _byte_pairs(
        {**GPT2_LEVEL, "add_prefix_space": True},
        corpus,
        post_processor={
            "type": "RobertaProcessing",
            "sep": ["h", 71],
            "cls": ["g", 70],
            "trim_offsets": True,
            "add_prefix_space": True,
        },
    ),
    "smollm": lambda corpus: _byte_pairs(
        _sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, GPT2_LEVEL), corpus
    ),
    "llama-3": lambda corpus: _kind(
        "llama-bpe", corpus, ignore_merges=True, post_processor=_template({"<|endoftext|>": SIZE})
    ),
    "qwen-2": lambda corpus: _kind("qwen2", corpus, normalizer={"type": "NFC"}),
    "qwen-3.5": lambda corpus: _kind("qwen35", corpus, normalizer={"type": "NFC"}),
    "gpt-4o": lambda corpus: _kind("gpt-4o", corpus),
    "tekken": lambda corpus: _kind("tekken", corpus, ignore_merges=True),
    "deepseek-3": lambda corpus: _kind("deepseek-v3", corpus),
    "llama-2": lambda corpus: _llama2(corpus, True),
    "gemma": lambda corpus: _llama2(corpus, False),
    "t5": lambda corpus: _unigram(corpus, False),
    "xlm-roberta": lambda corpus: _unigram(corpus, True),
    "bert": lambda corpus: _bert(corpus, True),
    "bert-cased": lambda corpus: _bert(corpus, False),
    "clip": _clip,
}
"""The families ↦ how their tokenizers are trained."""


def corpus(prose: list[str]) -> list[str]:
    """What they are trained on: prose, and texts like those of the fixtures."""
    drawn = [drawing.text(10_000 + seed) for seed in range(1500)]
    return [text.replace("<s>", "").replace("</s>", "") for text in (*prose, *drawn)]
