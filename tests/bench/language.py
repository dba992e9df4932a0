"""Tokens a second of language models as the work grows: the context, the conversations side by side, the model.

    python tests/bench/language.py MODEL.gguf --device wasm --out docs/measurements/data

`MODEL.gguf` is decoded after contexts of several lengths, and for several conversations at once; models of growing size have
random weights of 4 bits, in the shapes of SmolLM2 and of Llama 3.2. Each figure is the median of TURNS. Written are language-context.csv,
language-batch.csv and language-sizes.csv. Needs the package gguf.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import singe as sg
from singe.language.llm import LanguageModel

TURNS: Final = 15
CONTEXTS: Final = (16, 128, 512, 1024, 2048)
CONVERSATIONS: Final = (1, 2, 4, 8)
SHAPES: Final = {
    "135M": (576, 30, 9, 3, 1536, 49152),
    "360M": (960, 32, 15, 5, 2560, 49152),
    "1B": (2048, 16, 32, 8, 8192, 128256),
    "3B": (3072, 28, 24, 8, 8192, 128256),
}
"""Width, layers, heads, heads of keys, feed-forward width and vocabulary."""
BLOCK, BLOCK_BYTES = 32, 18
"""Weights of a block of Q4_0, and its bytes."""


def random_gguf(
    path: Path, width: int, layers: int, heads: int, keys: int, feed: int, vocabulary: int, texts: Path | None = None
) -> Path:
    """A model of random weights. texts: a GGUF file whose tokenizer, with as many words as that has, it gets."""
    import gguf  # noqa: PLC0415 (an index may lack it)

    rng, size = np.random.default_rng(0), width // heads
    writer: Any = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_context_length(8192)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(feed)
    writer.add_head_count(heads)
    writer.add_head_count_kv(keys)
    writer.add_layer_norm_rms_eps(1e-5)
    fields = gguf.GGUFReader(texts).fields if texts else {}
    for name, field in fields.items():
        if name.startswith("tokenizer.ggml."):
            writer.add_key_value(name, field.contents(), *field.types)
    vocabulary = len(fields["tokenizer.ggml.tokens"].data) if fields else vocabulary
    writer.add_vocab_size(vocabulary)

    def matrix(name: str, rows: int, depth: int) -> None:
        blocks = rng.integers(0, 256, (rows, depth // BLOCK, BLOCK_BYTES), np.uint8)
        blocks[..., :2] = np.frombuffer(np.float16(0.1 / depth**0.5).tobytes(), np.uint8)
        writer.add_tensor(f"{name}.weight", blocks.reshape(rows, -1), raw_dtype=gguf.GGMLQuantizationType.Q4_0)

    def norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))

    matrix("token_embd", vocabulary, width)
    norm("output_norm")
    for k in range(layers):
        at = f"blk.{k}."
        norm(f"{at}attn_norm")
        norm(f"{at}ffn_norm")
        for name, rows, depth in (
            ("attn_q", width, width), ("attn_k", keys * size, width), ("attn_v", keys * size, width), ("attn_output", width, width),
            ("ffn_gate", feed, width), ("ffn_up", feed, width), ("ffn_down", width, feed),
        ):  # fmt: skip
            matrix(at + name, rows, depth)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def rate(tokens: int, run: Callable[[], object]) -> float:
    """Tokens a second."""
    run()
    times = list[float]()
    for _ in range(TURNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return tokens / statistics.median(times)


def after(llm: LanguageModel, context: int) -> float:
    session = llm.session()
    session.feed([5 + k % 200 for k in range(context)])
    return rate(1, lambda: session.feed([7]))


def beside(llm: LanguageModel, count: int) -> float:
    sessions = [llm.session() for _ in range(count)]
    for session in sessions:
        session.feed([5 + k % 200 for k in range(128)])
    return rate(count, lambda: llm.side_by_side.feed(sessions, [7] * count))


def reading(llm: LanguageModel, count: int) -> float:
    session, ids = llm.session(), [5 + k % 200 for k in range(count)]

    def turn() -> None:
        session.rewind(0)
        session.feed(ids)

    return rate(count, turn)


def write(folder: Path, name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(name, head, *rows, sep="\n", flush=True)
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL.gguf")
    parser.add_argument("--device", default="wasm")
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR")
    parser.add_argument("--sizes", default="135M,360M,1B", help="of the random models (default %(default)s)")
    args = parser.parse_args()
    llm = sg.language.load(args.model, args.device, context=max(CONTEXTS) + TURNS + 1)
    contexts = [[str(n), f"{after(llm, n):.1f}"] for n in CONTEXTS]
    write(args.out, "language-context", ["tokens before", args.device], contexts)
    batches = [[str(n), f"{beside(llm, n):.1f}"] for n in CONVERSATIONS]
    write(args.out, "language-batch", ["conversations", args.device], batches)
    sizes = list[list[str]]()
    for name in args.sizes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            path = random_gguf(Path(folder) / "random.gguf", *SHAPES[name])
            other = sg.language.load(path, args.device, context=256)
            written, read = after(other, 128), reading(other, 128)
            sizes.append([name, f"{path.stat().st_size / 1e6:.0f}", f"{written:.1f}", f"{read:.1f}"])
            del other
    write(args.out, "language-sizes", ["model", "MB", "writes", "reads 128"], sizes)


if __name__ == "__main__":
    main()
