"""Decoders of text, with caches, as steps of a generation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import helper

from .family import Family, Feeds, normal
from .language import HEADS, WORDS, Tokens, words
from .net import BOOL, END, FLOAT, INT64, MIN, Net

WIDTH, SIZE, KV_HEADS, LAYERS = 16, 8, 1, 1
ANGLES = (1 / 100 ** (np.arange(0, SIZE, 2) / SIZE)).astype(np.float32)


def step_inputs(kv_heads: int = KV_HEADS, layers: int = LAYERS) -> dict[str, tuple[int, Sequence[int | str]]]:
    caches = {
        f"past_key_values.{i}.{n}": (FLOAT, ("batch_size", kv_heads, "past_sequence_length", SIZE))
        for i in range(layers)
        for n in ("key", "value")
    }
    return {
        "input_ids": Tokens,
        "attention_mask": (INT64, ("batch_size", "past_sequence_length + sequence_length")),
        **caches,
    }


def steps(rng: np.random.Generator, kv_heads: int = KV_HEADS, layers: int = LAYERS) -> Sequence[Feeds]:
    """A prompt with no past, and one word after four of two texts, of which one is padded on its left."""
    found: list[Feeds] = []
    for batch, past, length in ((1, 0, 6), (2, 4, 1)):
        mask = np.ones((batch, past + length), np.int64)
        mask[1:, :2] = 0
        caches = {
            f"past_key_values.{i}.{n}": normal(rng, batch, kv_heads, past, SIZE)
            for i in range(layers)
            for n in ("key", "value")
        }
        found.append({"input_ids": words(rng, batch, length), "attention_mask": mask, **caches})
    return found


def positioned(feeds: Sequence[Feeds]) -> Sequence[Feeds]:
    places = (np.maximum(f["attention_mask"].cumsum(1) - 1, 0)[:, -f["input_ids"].shape[1] :] for f in feeds)
    return [f | {"position_ids": p} for f, p in zip(feeds, places, strict=True)]


def _rms(net: Net, x: str, width: int, gemma: bool = False) -> str:
    x = net.Cast(x, to=FLOAT)
    scaled = net.Mul(x, net.Div(1.0, net.Sqrt(net.Add(net.mean(net.Pow(x, 2.0), -1), 1e-6))))
    scale = net.positive(width)
    if gemma:
        return net.Mul(scaled, net.Add(scale, 1.0))
    return net.Mul(scale, net.Cast(scaled, to=FLOAT))


def _turned(net: Net, x: str, cos: str, sin: str) -> str:
    """Rotary positions: the middle is computed from the shape."""
    half = net.Cast(net.Cast(net.floordiv(net.size(x, 3), 2), to=INT64), to=INT64)
    left, right = net.slice(x, 3, 0, half), net.slice(x, 3, half)
    return net.Add(net.Mul(x, cos), net.Mul(net.Concat(net.Neg(right), left, axis=-1), sin))


def _angles(net: Net, places: str) -> tuple[str, str]:
    wide = net.Cast(net.unsqueeze(places, 1), to=FLOAT)
    frequencies = net.expand(net.const(ANGLES[None, :, None]), net.size(places, 0), -1, 1)
    angles = net.Transpose(net.MatMul(net.Cast(frequencies, to=FLOAT), wide), perm=[0, 2, 1])
    angles = net.Concat(angles, angles, axis=-1)
    cos, sin = (net.unsqueeze(net.Mul(y, 1.0), 1) for y in (net.Cos(angles), net.Sin(angles)))
    return cos, sin


def _repeated(net: Net, x: str) -> str:
    batch, length = net.size(x, 0), net.size(x, 2)
    y = net.expand(net.unsqueeze(x, 2), batch, KV_HEADS, HEADS // KV_HEADS, length, SIZE)
    return net.view(y, batch, HEADS, length, SIZE)


def _grown(net: Net, layer: int, k: str, v: str) -> tuple[str, str]:
    found = []
    for name, x in (("key", k), ("value", v)):
        y = net.Concat(f"past_key_values.{layer}.{name}", x, axis=2)
        net.output(y, f"present.{layer}.{name}")
        found.append(y)
    return found[0], found[1]


def assigned(net: Net, x: str, rank: int, axis: int, end: str, values: str) -> str:
    """`x[…, :end] = values`, for which PyTorch's older exporter writes an index for each element."""
    lines = []
    for i in range(rank):
        line = net.Range(0, net.size(x, i), 1)
        line = net.slice(line, 0, 0, end) if i == axis else line
        lines.append(net.Reshape(line, tuple(-1 if i == j else 1 for j in range(rank))))
    total = lines[0]
    for line in lines[1:]:
        total = net.Add(total, line)
    shape = net.Shape(total)
    index = net.Concat(*(net.unsqueeze(net.Expand(line, shape), -1) for line in lines), axis=-1)
    target = net.Concat(net.Slice(net.Shape(index), (0,), (-1,), (0,)), net.Slice(net.Shape(x), (rank,), (END,), (0,)), axis=0)  # fmt: skip
    return net.ScatterND(x, index, net.Reshape(values, target))


def qwen2() -> onnx.ModelProto:
    """The mask's part for padding is assigned by ScatterND."""
    net = Net(11, 14)
    x = net.Gather(net.weights(WORDS, WIDTH), "input_ids")
    past, length = net.size("past_key_values.0.key", 2), net.size(x, 1)
    at = net.Range(past, net.Add(past, length), 1)
    cos, sin = _angles(net, "position_ids")
    total = net.size("attention_mask", 1)
    mask = net.expand(net.const(np.float32(MIN)), length, total)
    later = net.Greater(net.Range(0, total, 1), net.Reshape(at, (-1, 1)))
    mask = net.Mul(mask, net.Cast(later, to=FLOAT))
    mask = net.expand(net.unsqueeze(mask, 0, 1), net.size(x, 0), 1, -1, -1)
    seen = net.slice(mask, 3, 0, total)
    padding = net.Equal(net.Add(seen, net.Cast(net.unsqueeze("attention_mask", 1, 2), to=FLOAT)), 0.0)
    mask = assigned(net, mask, 4, 3, total, net.Where(net.Cast(padding, to=BOOL), MIN, seen))
    for i in range(LAYERS):
        y = _rms(net, x, WIDTH)
        q, k, v = (net.heads(net.linear(y, WIDTH, heads * SIZE), heads, SIZE) for heads in (HEADS, KV_HEADS, KV_HEADS))
        q = _turned(net, q, cos, sin)
        k, v = _grown(net, i, _turned(net, k, cos, sin), v)
        mine = net.slice(mask, 3, 0, net.size(k, 2))
        y = net.joined(net.sdpa(q, _repeated(net, k), _repeated(net, v), mine), WIDTH)
        x = net.Add(x, net.linear(y, WIDTH, WIDTH, False))
        y = _rms(net, x, WIDTH)
        y = net.Mul(net.silu(net.linear(y, WIDTH, 32, False)), net.linear(y, WIDTH, 32, False))
        x = net.Add(x, net.linear(y, 32, WIDTH, False))
    net.output(net.linear(_rms(net, x, WIDTH), WIDTH, WORDS, False), "logits")
    return net.model({**step_inputs(), "position_ids": Tokens})


# --- the newer exporter of PyTorch ------------------------------------------------------------------------------------


def _dim(net: Net, x: str, axis: int) -> str:
    return net.Squeeze(net.Shape(x, start=axis, end=axis + 1))


def _shape(net: Net, *dims: int | str) -> str:
    parts = (net.const(np.array([d])) if isinstance(d, int) else net.Reshape(d, (-1,), allowzero=0) for d in dims)
    return net.Concat(*parts, axis=0)


def _spread(net: Net, x: str, *dims: int | str) -> str:
    return net.Expand(x, net.Abs(_shape(net, *dims)))


def _dynamo_sdpa(net: Net, q: str, k: str, v: str, mask: str) -> str:
    """torchlib's: keys are transposed in three axes, and a mask of bools becomes 0 and −inf."""
    shape = net.Shape(k)
    last, second = net.Slice(shape, (-1,), (END,)), net.Slice(shape, (-2,), (-1,))
    flat = net.Reshape(k, net.Concat((-1,), second, last, axis=0), allowzero=0)
    turned = net.Concat(net.Slice(shape, (0,), (-2,)), last, second, axis=0)
    k = net.Reshape(net.Transpose(flat, perm=[0, 2, 1]), turned, allowzero=0)
    scale = net.Sqrt(np.array([SIZE**-0.5]))
    scores = net.MatMul(net.Mul(q, scale), net.Mul(k, net.CastLike(scale, k)))
    weights = net.Softmax(net.Add(scores, net.Where(mask, 0.0, float("-inf"))), axis=-1)
    return net.MatMul(weights, v)


def _seen(net: Net, queries: str, keys: str, total: str, window: int | None) -> str:
    """A mask of bools from comparisons of places, and what the padding mask says of each pair."""
    batch = _dim(net, "input_ids", 0)
    query, key = net.Reshape(queries, (1, 1, -1, 1)), net.Reshape(keys, (1, 1, 1, -1))
    seen = net.LessOrEqual(key, query)
    if window is not None:
        seen = net.And(seen, net.Greater(key, net.Sub(query, window)))
    text = net.Reshape(net.Range(0, batch, 1), (-1, 1, 1, 1))
    shape = _shape(net, batch, 1, 1, total)
    index = net.Concat(*(net.Unsqueeze(net.Expand(y, shape), (-1,)) for y in (text, key)), axis=-1)
    real = net.GatherND(net.Cast("attention_mask", to=BOOL), index)
    return net.And(seen, real)


def _modern(seed: int, gemma: bool) -> onnx.ModelProto:
    net = Net(seed, 18)
    x = net.Gather(net.weights(WORDS, WIDTH), "input_ids")
    x = net.Mul(x, WIDTH**0.5) if gemma else x
    batch, length, past = _dim(net, "input_ids", 0), _dim(net, "input_ids", 1), _dim(net, "past_key_values.0.key", 2)
    total = net.Add(past, length)
    places = net.Range(past, total, 1)
    angles = net.Mul(net.Cast(net.Reshape(places, (1, -1, 1)), to=FLOAT), ANGLES)
    angles = net.Concat(angles, angles, axis=-1)
    cos, sin = (net.Unsqueeze(y, (1,)) for y in (net.Cos(angles), net.Sin(angles)))
    line = net.Range(0, total, 1)
    layers = 2 if gemma else 1  # of Gemma's, one sees a window
    masks = [_seen(net, places, line, total, window) for window in ((None, 3) if gemma else (None,))]
    for i in range(layers):
        y = _rms(net, x, WIDTH, gemma)
        q, k, v = (
            net.Reshape(net.linear(y, WIDTH, heads * SIZE, False), _shape(net, batch, length, -1, SIZE), allowzero=1)
            for heads in (HEADS, KV_HEADS, KV_HEADS)
        )
        q, k = (_rms(net, z, SIZE, gemma) for z in (q, k))
        q, k, v = (net.Transpose(z, perm=[0, 2, 1, 3]) for z in (q, k, v))
        q, k = (_turned(net, z, cos, sin) for z in (q, k))
        k, v = _grown(net, i, k, v)
        wide = (
            net.Reshape(
                _spread(net, net.Unsqueeze(z, (2,)), batch, KV_HEADS, HEADS // KV_HEADS, total, SIZE),
                _shape(net, batch, HEADS, total, SIZE),
                allowzero=1,
            )
            for z in (k, v)
        )
        if gemma:
            k, v = wide
            scores = net.Mul(net.MatMul(q, net.Transpose(k, perm=[0, 1, 3, 2])), SIZE**-0.5)
            scores = net.Mul(net.Tanh(net.Div(scores, 50.0)), 50.0)
            scores = net.Add(scores, net.Where(masks[i % 2], 0.0, MIN))
            y = net.MatMul(net.Softmax(scores, axis=-1), v)
        else:
            y = _dynamo_sdpa(net, q, *wide, masks[0])
        y = net.Reshape(net.Transpose(y, perm=[0, 2, 1, 3]), _shape(net, batch, length, -1), allowzero=1)
        y = net.linear(y, WIDTH, WIDTH, False)
        x = net.Add(x, _rms(net, y, WIDTH, True) if gemma else y)
        y = _rms(net, x, WIDTH, gemma)
        gate = net.linear(y, WIDTH, 32, False)
        gate = net.gelu_tanh(gate) if gemma else net.silu(gate)
        y = net.linear(net.Mul(gate, net.linear(y, WIDTH, 32, False)), 32, WIDTH, False)
        x = net.Add(x, _rms(net, y, WIDTH, True) if gemma else y)
    x = _rms(net, x, WIDTH, gemma)
    logits = net.linear(x, WIDTH, WORDS, False)
    net.output(net.Mul(net.Tanh(net.Div(logits, 30.0)), 30.0) if gemma else logits, "logits")
    return net.model(step_inputs(layers=layers))


def qwen3() -> onnx.ModelProto:
    return _modern(12, False)


def gemma() -> onnx.ModelProto:
    return _modern(13, True)


def phi() -> onnx.ModelProto:
    """Half of each head is rotated; attention and the units run side by side; two layers' weights in one norm."""
    net, turned = Net(14, 17), SIZE // 2
    x = net.Gather(net.weights(WORDS, WIDTH), "input_ids")
    total, length = net.size("attention_mask", 1), net.size(x, 1)
    at = net.Range(net.Sub(total, length), total, 1)
    angles = net.Einsum(net.Cast(at, to=FLOAT), ANGLES[: turned // 2], equation="i,j->ij")
    angles = net.Concat(angles, angles, axis=-1)
    cos, sin = net.Cos(angles), net.Sin(angles)
    later = net.Greater(net.unsqueeze(net.Range(0, total, 1), 0), net.unsqueeze(at, 1))
    mask = net.Where(later, MIN, 0.0)
    hidden = net.Mul(net.Sub(1.0, net.Cast(net.unsqueeze("attention_mask", 1, 2), to=FLOAT)), MIN)
    mask = net.Max(net.Add(mask, hidden), MIN)
    for i in range(LAYERS):
        y = net.layer_norm(x, WIDTH)
        q, k, v = (net.heads(net.linear(y, WIDTH, WIDTH), HEADS, SIZE) for _ in range(3))
        q, k = (
            net.Concat(_turned(net, net.slice(z, 3, 0, turned), cos, sin), net.slice(z, 3, turned), axis=-1)
            for z in (q, k)
        )
        k, v = _grown(net, i, k, v)
        met = net.linear(net.joined(net.sdpa(q, k, v, mask), WIDTH), WIDTH, WIDTH)
        inner = net.linear(net.gelu_tanh(net.linear(y, WIDTH, 32)), 32, WIDTH)
        x = net.Add(net.Add(met, inner), x)
    net.output(net.linear(net.layer_norm(x, WIDTH), WIDTH, WORDS), "logits")
    return net.model(step_inputs(HEADS))


def mixture_of_experts(experts: int = 3, chosen: int = 2) -> onnx.ModelProto:
    """Each expert computes the words that chose it, which NonZero finds, and adds them by ScatterElements."""
    net = Net(15, 16)
    x = net.Gather(net.weights(WORDS, WIDTH), "input_ids")
    x = net.Add(x, net.attention(_rms(net, x, WIDTH), _rms(net, x, WIDTH), WIDTH, HEADS, net.causal(net.size(x, 1))))
    y = net.view(_rms(net, x, WIDTH), -1, net.size(x, 2))
    chances = net.Softmax(net.linear(y, WIDTH, experts, False), axis=1)
    weights, which = net.many(2, "TopK", chances, (chosen,), axis=-1, largest=1, sorted=1)
    weights = net.Div(weights, net.sum(weights, -1))
    total = net.Expand(0.0, net.shape(net.size(y, 0), WIDTH))
    chose = net.OneHot(which, experts, (0, 1), axis=-1)
    chose = net.Transpose(chose, perm=[2, 1, 0])
    for i in range(experts):
        found = net.Transpose(net.NonZero(net.Gather(chose, i, axis=0)), perm=[1, 0])
        places, rows = (net.squeeze(z, 1) for z in net.split(found, [1, 1], 1))
        given = net.view(net.Gather(net.unsqueeze(y, 0), rows, axis=1), -1, WIDTH)
        inner = net.Mul(net.silu(net.linear(given, WIDTH, 8, False)), net.linear(given, WIDTH, 8, False))
        flat = net.Reshape(weights, (-1,))
        share = net.Gather(flat, net.Add(net.Mul(rows, net.size(weights, 1)), places))
        made = net.Mul(net.linear(inner, 8, WIDTH, False), net.unsqueeze(share, 1))
        index = net.Expand(net.unsqueeze(rows, 1), net.Shape(made))
        total = net.ScatterElements(total, index, made, axis=0, reduction="add")
    x = net.Add(x, net.Reshape(total, net.Shape(x)))
    net.output(net.linear(_rms(net, x, WIDTH), WIDTH, WORDS, False), "logits")
    return net.model({"input_ids": Tokens})


def vision_language(image: int = 2) -> onnx.ModelProto:
    """The features of patches take the places of one word, as `masked_scatter` is exported."""
    net = Net(16, 16)
    x = net.Gather(net.weights(WORDS, WIDTH), "input_ids")
    y = net.conv("pixel_values", 3, 12, 4, 4, pad=0)
    y = net.Transpose(net.Reshape(y, (0, 0, -1)), perm=[0, 2, 1])
    features = net.linear(net.gelu(net.linear(y, 12, WIDTH)), WIDTH, WIDTH)
    mask = net.unsqueeze(net.Equal("input_ids", image), -1)
    mask = net.Expand(mask, net.Shape(x))
    index = net.Transpose(net.NonZero(mask), perm=[1, 0])
    source = net.slice(net.Reshape(features, (-1,)), 0, 0, net.size(index, 0))
    x = net.ScatterND(x, index, source)
    x = net.Add(x, net.attention(_rms(net, x, WIDTH), _rms(net, x, WIDTH), WIDTH, HEADS, net.causal(net.size(x, 1))))
    net.output(net.linear(_rms(net, x, WIDTH), WIDTH, WORDS, False), "logits")
    return net.model({"input_ids": Tokens, "pixel_values": (FLOAT, ("images", 3, 8, 8))})


def seeing(rng: np.random.Generator) -> Sequence[Feeds]:
    found: list[Feeds] = []
    for batch, length in ((1, 7), (2, 6)):
        ids = words(rng, batch, length)
        ids[:, 1:5] = 2
        found.append({"input_ids": ids, "pixel_values": normal(rng, batch, 3, 8, 8)})
    return found


# --- a decoder with an encoder, merged by Optimum ---------------------------------------------------------------------


def _branch(net: Net, name: str, fill: Callable[[Net], Sequence[str]]) -> onnx.GraphProto:
    """A subgraph, whose constants are the whole graph's."""
    nodes, net.nodes = net.nodes, []
    outputs = fill(net)
    inner, net.nodes = net.nodes, nodes
    return helper.make_graph(inner, name, [], [helper.make_tensor_value_info(x, FLOAT, None) for x in outputs])


def merged() -> onnx.ModelProto:
    """Whisper, BART, T5: with a cache or without is an If, whose branches share weights. Without one, both kinds of
    keys are computed; with one, those of the encoder are passed on."""
    net = Net(17, 14)
    embedding, places = net.weights(WORDS, WIDTH), net.weights(40, WIDTH)
    own, other = ([net.weights(WIDTH, WIDTH) for _ in range(4)] for _ in range(2))
    up, down = net.weights(WIDTH, 32), net.weights(32, WIDTH)
    scale, shift = net.positive(WIDTH), net.weights(WIDTH)
    kinds = [f"{side}.{n}" for side in ("decoder", "encoder") for n in ("key", "value")]

    def norm(x: str) -> str:
        return net.Add(net.Mul(net.normed(x, -1), scale), shift)

    def split(x: str, weight: str) -> str:
        return net.heads(net.MatMul(x, weight), HEADS, SIZE)

    def filled(net: Net, cached: bool) -> list[str]:
        length = net.size("input_ids", 1)
        past = net.size("past_key_values.0.decoder.key", 2) if cached else net.const(0)
        at = net.Range(past, net.Add(past, length), 1)
        x = net.Add(net.Gather(embedding, "input_ids"), net.Gather(places, at))
        y = norm(x)
        k, v = (split(y, w) for w in own[1:3])
        if cached:
            k, v = (net.Concat(f"past_key_values.0.decoder.{n}", z, axis=2) for n, z in (("key", k), ("value", v)))
        mask = "" if cached else net.unsqueeze(net.causal(length), 0, 1)
        x = net.Add(x, net.MatMul(net.joined(net.sdpa(split(y, own[0]), k, v, mask), WIDTH), own[3]))
        names = [f"past_key_values.0.encoder.{n}" for n in ("key", "value")]
        far = [net.Identity(z) for z in names] if cached else [split("encoder_hidden_states", w) for w in other[1:3]]
        y = net.joined(net.sdpa(split(norm(x), other[0]), *far), WIDTH)
        x = net.Add(x, net.MatMul(y, other[3]))
        x = net.Add(x, net.MatMul(net.gelu(net.MatMul(norm(x), up)), down))
        logits = net.MatMul(norm(x), net.Transpose(embedding, perm=[1, 0]))
        return [logits, k, v, *far]

    found = net.many(
        5, "If", "use_cache_branch",
        then_branch=_branch(net, "with_past", lambda n: filled(n, True)),
        else_branch=_branch(net, "no_past", lambda n: filled(n, False)),
    )  # fmt: skip
    for x, name in zip(found, ["logits", *(f"present.0.{n}" for n in kinds)], strict=True):
        net.output(x, name)
    caches = {
        f"past_key_values.0.{n}": (FLOAT, ("batch_size", HEADS, f"past_{n.split('.')[0]}_length", SIZE)) for n in kinds
    }
    states = (FLOAT, ("batch_size", "encoder_sequence_length", WIDTH))
    ports = {"input_ids": Tokens, "encoder_hidden_states": states, **caches, "use_cache_branch": (BOOL, (1,))}
    return net.model(ports)


def merged_steps(rng: np.random.Generator) -> Sequence[Feeds]:
    found: list[Feeds] = []
    for batch, length, past, seen, cached in ((1, 4, 0, 0, False), (2, 1, 3, 5, True)):
        sizes = {"decoder": past, "encoder": seen}
        caches = {
            f"past_key_values.0.{side}.{n}": normal(rng, batch, HEADS, size, SIZE)
            for side, size in sizes.items()
            for n in ("key", "value")
        }
        states = normal(rng, batch, 5, WIDTH)
        flag = np.array([cached])
        found.append({"input_ids": words(rng, batch, length), "encoder_hidden_states": states, **caches, "use_cache_branch": flag})  # fmt: skip
    return found


DECODERS = {
    "qwen2": Family("Qwen 2 and 2.5", "biased projections, grouped heads; the mask is assigned by ScatterND", qwen2,
                    lambda rng: positioned(steps(rng))),
    "qwen3": Family("Qwen 3, SmolLM, Llama 3", "PyTorch's newer exporter; norms of queries and keys; a mask by GatherND", qwen3, steps),
    "gemma": Family("Gemma 2 and 3", "norms with 1 + w, soft caps, every second layer sees a window", gemma, lambda rng: steps(rng, layers=2)),
    "phi": Family("Phi 1 and 2, GPT-NeoX", "half of each head is rotated; attention beside the units", phi,
                  lambda rng: steps(rng, HEADS)),
    "mixture_of_experts": Family("Mixtral, Qwen MoE", "NonZero finds each expert's tokens, ScatterElements adds", mixture_of_experts,
                                 lambda rng: [{"input_ids": words(rng, *shape)} for shape in ((1, 6), (3, 9))]),
    "vision_language": Family("LLaVA, SmolVLM, Qwen-VL", "features replace one token's embeddings, by NonZero and ScatterND",
                              vision_language, seeing),
    "merged": Family("Whisper, BART, T5, merged by Optimum", "If chooses between the steps with a cache and without", merged, merged_steps),
}  # fmt: skip
