"""Encoders and taggers of text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from .family import Family, Feeds
from .net import BOOL, FLOAT, INT32, INT64, MIN, Net

WIDTH, HEADS, WORDS, LONGEST, LAYERS = 16, 2, 30, 80, 1
SIZE = WIDTH // HEADS
Tokens = (INT64, ("batch_size", "sequence_length"))


def words(rng: np.random.Generator, batch: int, length: int) -> np.ndarray:
    return rng.integers(3, WORDS, (batch, length))


def texts(rng: np.random.Generator) -> Sequence[Feeds]:
    """Two batches; of the second, texts are padded at their end, with word 1."""
    whole = {"input_ids": words(rng, 1, 7), "attention_mask": np.ones((1, 7), np.int64)}
    mask = (np.arange(12) < np.array([[12], [5], [9]])).astype(np.int64)
    return [whole, {"input_ids": np.where(mask == 1, words(rng, 3, 12), 1), "attention_mask": mask}]


def distilbert() -> onnx.ModelProto:
    """Scores are masked by a filled, expanded comparison; the queries are divided by a root."""
    net = Net(1, 11)
    length = net.size("input_ids", 1)
    places = net.expand(net.unsqueeze(net.slice(net.const(np.arange(LONGEST)), 0, 0, length), 0), net.size("input_ids", 0), length)  # fmt: skip
    x = net.Add(net.Gather(net.weights(WORDS, WIDTH), "input_ids"), net.Gather(net.weights(LONGEST, WIDTH), places))
    x = net.layer_norm(x, WIDTH, 1e-12)
    for _ in range(LAYERS):
        batch, length = net.size(x, 0), net.size(x, 1)
        q, k, v = (
            net.Transpose(net.view(net.linear(x, WIDTH, WIDTH), batch, -1, HEADS, SIZE), perm=[0, 2, 1, 3])
            for _ in range(3)
        )
        scores = net.MatMul(net.Div(q, SIZE**0.5), net.Transpose(k, perm=[0, 1, 3, 2]))
        hidden = net.view(net.Equal("attention_mask", 0), batch, 1, 1, length)
        hidden = net.Expand(hidden, net.Shape(scores))
        scores = net.Where(net.Cast(hidden, to=BOOL), MIN, scores)
        y = net.Transpose(net.MatMul(net.Softmax(scores, axis=3), v), perm=[0, 2, 1, 3])
        y = net.linear(net.view(y, batch, -1, WIDTH), WIDTH, WIDTH)
        x = net.layer_norm(net.Add(y, x), WIDTH, 1e-12)
        x = net.layer_norm(net.Add(net.linear(net.gelu(net.linear(x, WIDTH, 32)), 32, WIDTH), x), WIDTH, 1e-12)
    first = net.Relu(net.gemm(net.Gather(x, 0, axis=1), WIDTH, WIDTH))
    net.output(net.gemm(first, WIDTH, 2), "logits")
    return net.model({"input_ids": Tokens, "attention_mask": Tokens})


def roberta() -> onnx.ModelProto:
    """Places are counted over what is no padding; the words' mean is taken under the mask and normalised."""
    net = Net(2, 14)
    real = net.Cast(net.Not(net.Equal("input_ids", 1)), to=INT32)
    places = net.Mul(net.Cast(net.Add(net.CumSum(real, 1), np.int32(0)), to=INT32), real)
    places = net.Add(net.Cast(places, to=INT64), 1)
    kinds = net.slice(net.const(np.zeros((1, LONGEST), np.int64)), 1, 0, net.size("input_ids", 1))
    kinds = net.expand(kinds, net.size("input_ids", 0), net.size("input_ids", 1))
    parts = ((WORDS, "input_ids"), (1, kinds), (LONGEST + 2, places))
    a, b, c = (net.Gather(net.weights(n, WIDTH), ids) for n, ids in parts)
    x = net.layer_norm(net.Add(net.Add(a, b), c), WIDTH)
    mask = net.encoder_mask("attention_mask", net.size("input_ids", 1))
    for _ in range(LAYERS):
        x = net.layer_norm(net.Add(net.attention(x, x, WIDTH, HEADS, mask), x), WIDTH)
        x = net.layer_norm(net.Add(net.linear(net.gelu(net.linear(x, WIDTH, 32)), 32, WIDTH), x), WIDTH)
    net.output(x, "token_embeddings")
    seen = net.Cast(net.Expand(net.unsqueeze("attention_mask", 2), net.Shape(x)), to=FLOAT)
    total, count = net.sum(net.Mul(x, seen), 1, keepdims=0), net.Clip(net.sum(seen, 1, keepdims=0), 1e-9)
    net.output(net.normalised(net.Div(total, count), 1), "sentence_embedding")
    return net.model({"input_ids": Tokens, "attention_mask": Tokens})


def deberta() -> onnx.ModelProto:
    """Attention to words and to distances in buckets, which GatherElements brings to their places."""
    net, span = Net(3, 14), 8
    x = net.layer_norm(net.Gather(net.weights(WORDS, WIDTH), "input_ids"), WIDTH)
    x = net.Mul(x, net.Cast(net.unsqueeze("attention_mask", 2), to=FLOAT))
    mask = net.unsqueeze("attention_mask", 1, 2)
    mask = net.Mul(mask, net.unsqueeze(net.squeeze(mask, -2), -1))
    line = net.Range(0, net.size(x, 1), 1)
    gap = net.Sub(net.unsqueeze(line, 1), net.unsqueeze(line, 0))
    mid = span // 2
    sign, size = net.Sign(gap), net.Abs(gap)
    near = net.And(net.Less(gap, mid), net.Greater(gap, -mid))
    size = net.Where(near, net.expand(net.const(mid - 1), net.size(gap, 0), net.size(gap, 1)), size)
    ratio = net.Div(net.Log(net.Div(net.Cast(size, to=FLOAT), float(mid))), float(np.log((LONGEST - 1) / mid)))
    logs = net.Add(net.Ceil(net.Mul(ratio, float(mid - 1))), float(mid))
    bucket = net.Where(net.LessOrEqual(size, mid), net.Cast(gap, to=FLOAT), net.Mul(logs, net.Cast(sign, to=FLOAT)))
    bucket = net.unsqueeze(net.Cast(bucket, to=INT64), 0)
    table = net.layer_norm(net.weights(2 * span, WIDTH), WIDTH)

    def split(y: str) -> str:
        y = net.Transpose(net.view(y, net.size(y, 0), net.size(y, 1), HEADS, -1), perm=[0, 2, 1, 3])
        return net.view(y, -1, net.size(y, 2), net.size(y, 3))

    for _ in range(LAYERS):
        q, k, v = (split(net.linear(x, WIDTH, WIDTH)) for _ in range(3))
        scale = net.Sqrt(net.Mul(net.Cast(net.size(q, 2), to=FLOAT), 3.0))
        scores = net.MatMul(q, net.Div(net.Transpose(k, perm=[0, 2, 1]), scale))
        far = (split(net.unsqueeze(net.linear(table, WIDTH, WIDTH), 0)) for _ in range(2))
        keys, queries = (net.Tile(y, net.shape(net.size("input_ids", 0), 1, 1)) for y in far)
        lengths = [net.size(q, 0), net.size(q, 1), net.size(k, 1)]
        at = net.Clip(net.Add(bucket, span), np.int64(0), np.int64(2 * span - 1))
        met = net.MatMul(q, net.Transpose(keys, perm=[0, 2, 1]))
        met = net.GatherElements(met, net.expand(net.squeeze(net.unsqueeze(at, 0), 0), *lengths), axis=2)
        scores = net.Add(scores, net.Div(met, scale))
        at = net.Clip(net.Add(net.Neg(bucket), span), np.int64(0), np.int64(2 * span - 1))
        met = net.MatMul(k, net.Transpose(queries, perm=[0, 2, 1]))
        met = net.GatherElements(met, net.expand(at, lengths[0], lengths[2], lengths[2]), axis=2)
        scores = net.Add(scores, net.Div(net.Transpose(met, perm=[0, 2, 1]), scale))
        scores = net.view(scores, -1, HEADS, net.size(scores, 1), net.size(scores, 2))
        hidden = net.Not(net.Cast(mask, to=BOOL))
        weights = net.Softmax(net.Where(hidden, MIN, scores), axis=-1)
        weights = net.Where(hidden, 0.0, weights)
        y = net.MatMul(net.view(weights, -1, net.size(weights, 2), net.size(weights, 3)), v)
        y = net.Transpose(net.view(y, -1, HEADS, net.size(y, 1), net.size(y, 2)), perm=[0, 2, 1, 3])
        y = net.linear(net.view(y, net.size(y, 0), net.size(y, 1), -1), WIDTH, WIDTH)
        x = net.layer_norm(net.Add(y, x), WIDTH, 1e-7)
        x = net.layer_norm(net.Add(net.linear(net.gelu(net.linear(x, WIDTH, 32)), 32, WIDTH), x), WIDTH, 1e-7)
    net.output(net.linear(x, WIDTH, 5), "logits")
    return net.model({"input_ids": Tokens, "attention_mask": Tokens})


def _recurrent(net: Net, op: str, x: str, inputs: int, lengths: str, hidden: int, gates: int, **attributes: int) -> str:
    """`nn.LSTM(bidirectional=True, batch_first=True)` of packed sequences: (batch, length, 2 · hidden)."""
    x = net.Transpose(x, perm=[1, 0, 2])
    w, r, b = (
        net.weights(2, gates * hidden, inputs),
        net.weights(2, gates * hidden, hidden),
        net.weights(2, 2 * gates * hidden),
    )
    zeros = net.expand(net.const(np.zeros((1, 1, 1), np.float32)), 2, net.size(x, 1), hidden)
    first = [zeros] * (2 if op == "LSTM" else 1)
    y, *_ = net.node(
        op, x, w, r, b, lengths, *first, outputs=[None, None, *[None] * (op == "LSTM")], direction="bidirectional",
        hidden_size=hidden, **attributes,
    )  # fmt: skip
    y = net.Reshape(net.Transpose(y, perm=[0, 2, 1, 3]), (0, 0, -1))
    return net.Transpose(y, perm=[1, 0, 2])


def lstm_tagger() -> onnx.ModelProto:
    net = Net(4, 13)
    x = net.Gather(net.weights(WORDS, WIDTH), "words")
    for inputs in (WIDTH, 16):
        x = _recurrent(net, "LSTM", x, inputs, "lengths", 8, 4)
    net.output(net.LogSoftmax(net.linear(x, 16, 5), axis=2), "tags")
    return net.model({"words": (INT64, ("batch", "time")), "lengths": (INT32, ("batch",))})


def gru_tagger() -> onnx.ModelProto:
    """Its lengths are counted from the words; the last states of both directions name the whole text too."""
    net = Net(5, 14)
    x = net.Gather(net.weights(WORDS, WIDTH), "words")
    real = net.Cast(net.Not(net.Equal("words", 0)), to=INT64)
    lengths = net.Cast(net.sum(real, 1, keepdims=0), to=INT32)
    x = _recurrent(net, "GRU", x, WIDTH, lengths, 8, 3, linear_before_reset=1)
    net.output(net.ArgMax(net.linear(x, 16, 5), axis=-1, keepdims=0), "tags", INT64)
    net.output(net.Softmax(net.gemm(net.ReduceMax(x, axes=[1], keepdims=0), 16, 3), axis=-1), "whole")
    return net.model({"words": (INT64, ("batch", "time"))})


def tagged(rng: np.random.Generator) -> Sequence[Feeds]:
    found: list[Feeds] = []
    for lengths in ((6,), (3, 9, 1, 9)):
        seen = np.arange(max(lengths)) < np.array(lengths)[:, None]
        found.append({"words": words(rng, *seen.shape) * seen, "lengths": np.array(lengths, np.int32)})
    return found


def _clip_text(net: Net, quick: bool) -> str:
    """Words ↦ the state of each text's last word, projected."""
    length = net.size("input_ids", 1)
    ids = net.view("input_ids", -1, length)
    places = net.slice(net.const(np.arange(LONGEST)[None]), 1, 0, length)
    x = net.Add(net.Gather(net.weights(WORDS, WIDTH), ids), net.Gather(net.weights(LONGEST, WIDTH), places))
    mask = net.unsqueeze(net.causal(length), 0, 1)
    mask = net.Add(mask, net.encoder_mask("attention_mask", length)) if quick else ""
    x = _pre_norm(net, x, mask, quick)
    x = net.layer_norm(x, WIDTH)
    if not quick:  # SigLIP: the last place, padded or not
        return net.gemm(net.Gather(x, -1, axis=1), WIDTH, WIDTH)
    last = net.ArgMax(net.Cast("input_ids", to=INT32), axis=-1, keepdims=0)
    rows = net.Range(0, net.size(x, 0), 1)
    return net.MatMul(net.picked(x, rows, last), net.weights(WIDTH, WIDTH))


def _pre_norm(net: Net, x: str, mask: str, quick: bool) -> str:
    for _ in range(LAYERS):
        x = net.Add(x, net.attention(net.layer_norm(x, WIDTH), net.layer_norm(x, WIDTH), WIDTH, HEADS, mask))
        y = net.linear(net.layer_norm(x, WIDTH), WIDTH, 32)
        y = net.Mul(y, net.Sigmoid(net.Mul(y, 1.702))) if quick else net.gelu_tanh(y)
        x = net.Add(x, net.linear(y, 32, WIDTH))
    return x


def _patches(net: Net, side: int, token: bool) -> str:
    x = net.conv("pixel_values", 3, WIDTH, 4, 4, pad=0, bias=not token)
    x = net.Transpose(net.view(x, net.size(x, 0), net.size(x, 1), -1), perm=[0, 2, 1])
    if token:
        first = net.expand(net.weights(WIDTH), net.size("pixel_values", 0), 1, -1)
        x = net.Concat(first, x, axis=1)
    count = (side // 4) ** 2 + token
    return net.Add(x, net.Gather(net.weights(count, WIDTH), np.arange(count)[None]))


def clip() -> onnx.ModelProto:
    """Texts and pictures ↦ their similarities, from one file as Optimum writes it."""
    net = Net(6, 14)
    text = _clip_text(net, True)
    x = net.layer_norm(_patches(net, 12, True), WIDTH)
    x = net.layer_norm(net.Gather(_pre_norm(net, x, "", True), 0, axis=1), WIDTH)
    image = net.MatMul(x, net.weights(WIDTH, WIDTH))
    image, text = (net.Div(y, net.norm2(y, -1)) for y in (image, text))
    logits = net.Mul(net.MatMul(text, net.Transpose(image, perm=[1, 0])), net.Exp(net.const(np.float32(2.6))))
    net.output(logits, "logits_per_text")
    net.output(net.Transpose(logits, perm=[1, 0]), "logits_per_image")
    net.output(text, "text_embeds")
    net.output(image, "image_embeds")
    pixels = (FLOAT, ("image_batch_size", "num_channels", "height", "width"))
    return net.model({"input_ids": Tokens, "pixel_values": pixels, "attention_mask": Tokens})


def _packed_attention(net: Net, query: str, x: str) -> str:
    """`nn.MultiheadAttention` of a query (batch, 1, width) whose projections are one matrix."""
    query, x = (net.Transpose(y, perm=[1, 0, 2]) for y in (query, x))
    weight, bias = net.weights(3 * WIDTH, WIDTH), net.weights(3 * WIDTH)
    wq, wkv = net.split(weight, [WIDTH, 2 * WIDTH], 0)
    bq, bkv = net.split(bias, [WIDTH, 2 * WIDTH], 0)
    q = net.Add(net.MatMul(query, net.Transpose(wq, perm=[1, 0])), bq)
    kv = net.Add(net.MatMul(x, net.Transpose(wkv, perm=[1, 0])), bkv)
    kv = net.view(kv, net.size(kv, 0), net.size(kv, 1), 2, WIDTH)
    kv = net.squeeze(net.Transpose(net.unsqueeze(kv, 0), perm=[3, 1, 2, 0, 4]), 3)
    k, v = (net.Gather(kv, i, axis=0) for i in range(2))

    def split(y: str) -> str:
        y = net.view(y, net.size(y, 0), net.Mul(net.size(y, 1), HEADS), SIZE)
        y = net.Transpose(y, perm=[1, 0, 2])
        return net.view(y, net.size("pixel_values", 0), HEADS, net.size(y, 1), SIZE)

    y = net.sdpa(*(split(y) for y in (q, k, v)))
    y = net.Transpose(y, perm=[2, 0, 1, 3])
    y = net.view(y, net.Mul(net.size("pixel_values", 0), 1), WIDTH)
    y = net.gemm(y, WIDTH, WIDTH)
    return net.Transpose(net.view(y, 1, net.size(y, 0), net.size(y, 1)), perm=[1, 0, 2])


def siglip() -> onnx.ModelProto:
    """A picture is what a learnt query sees of its patches; logits have a scale and a bias, and go through a sigmoid."""
    net = Net(7)
    text = _clip_text(net, False)
    x = net.layer_norm(_pre_norm(net, _patches(net, 12, False), "", False), WIDTH)
    query = net.Tile(net.weights(1, 1, WIDTH), net.shape(net.size(x, 0), 1, 1))
    y = _packed_attention(net, query, x)
    y = net.Add(y, net.linear(net.gelu_tanh(net.linear(net.layer_norm(y, WIDTH), WIDTH, 32)), 32, WIDTH))
    image = net.Gather(y, 0, axis=1)
    image, text = (net.Div(y, net.norm2(y, -1)) for y in (image, text))
    logits = net.Mul(net.MatMul(text, net.Transpose(image, perm=[1, 0])), net.Exp(net.const(np.array([2.0]))))
    logits = net.Add(logits, np.array([-1.5]))
    net.output(net.Transpose(logits, perm=[1, 0]), "logits_per_image")
    net.output(net.Sigmoid(logits), "probabilities")
    pixels = (FLOAT, ("image_batch_size", 3, 12, 12))
    return net.model({"input_ids": Tokens, "pixel_values": pixels})


def pictured(rng: np.random.Generator) -> Sequence[Feeds]:
    return [
        feeds | {"pixel_values": rng.standard_normal((count, 3, 12, 12)).astype(np.float32)}
        for feeds, count in zip(texts(rng), (2, 1), strict=True)
    ]


LANGUAGE = {
    "distilbert": Family("DistilBERT", "opset 11; scores filled under an expanded comparison", distilbert, texts),
    "roberta": Family("RoBERTa, XLM-R, BGE-M3, sentence encoders", "position ids by CumSum, mean over tokens under a mask, normalised", roberta, texts),
    "deberta": Family("DeBERTa v2 and v3, GLiNER", "distances in logarithmic buckets, GatherElements", deberta, texts),
    "lstm_tagger": Family("LSTM taggers", "bidirectional LSTM with lengths, in two layers", lstm_tagger, tagged),
    "gru_tagger": Family("GRU taggers", "bidirectional GRU, lengths counted in the graph", gru_tagger,
                         lambda rng: [{"words": f["words"]} for f in tagged(rng)]),
    "clip": Family("CLIP, OpenCLIP, CN-CLIP", "two encoders in one file; the last token by ArgMax and Gather", clip, pictured),
    "siglip": Family("SigLIP", "nn.MultiheadAttention with one packed matrix, a learnt query", siglip,
                     lambda rng: [{k: x for k, x in f.items() if k != "attention_mask"} for f in pictured(rng)]),
}  # fmt: skip
