"""Articles by their subject: a transformer encoder that learns from texts in the form of AG News.

The way of the data: CSV files without a header (the class from 1 to 4, the title, the description) ↦ words ↦ numbers by the
vocabulary of the articles for training ↦ batches of one length, with a mask ↦ the network. `--data FOLDER` names a folder with
the train.csv and test.csv of AG News; without it articles of four subjects are written by rules, in that form, and each has words
of other subjects too.

    python demos/training/news.py [--device wasm] [--quick] [--data FOLDER]
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from command import run

import singe as sg
from singe import data, metrics, nn, optim, train

SUBJECTS = ("world", "sports", "business", "science")
COLUMNS = ("subject", "title", "description")
WORD = re.compile(r"[a-z]+|[0-9]+")
LONGEST = 48
"""Words of an article that are read."""
MOST_WORDS = 10_000
"""In the vocabulary: the most frequent, after the two numbers for what is no word and for a word that is unknown."""
PAD, UNKNOWN = 0, 1

OWN_WORDS = {
    "world": "minister border treaty election embassy troops parliament ceasefire president protest refugees summit",
    "sports": "coach season goal league final striker medal champion inning quarterback referee tournament",
    "business": "profit shares market bank merger investors oil quarter sales stock revenue inflation",
    "science": "software galaxy browser telescope chip genome virus satellite network researchers robot laser",
}
SHARED_WORDS = [
    "the",
    "a",
    "new",
    "after",
    "says",
    "in",
    "on",
    "for",
    "with",
    "over",
    "to",
    "of",
    "report",
    "week",
    "plan",
    "talks",
    "first",
    "big",
    "team",
    "group",
    "deal",
]


def write_articles(path: Path, count: int, seed: int) -> None:
    """Articles in the form of AG News: a third of the words are of the subject, one in ten is of another."""
    rng = np.random.default_rng(seed)
    own = [words.split() for words in OWN_WORDS.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)
        for _ in range(count):
            subject = int(rng.integers(4))
            kinds = rng.choice(3, int(rng.integers(12, 36)), p=(0.57, 0.33, 0.1))
            words = [rng.choice((SHARED_WORDS, own[subject], own[rng.integers(4)])[kind]) for kind in kinds]
            rows.writerow([subject + 1, " ".join(words[:5]).capitalize(), f"{' '.join(words[5:])}."])


def articles(path: Path) -> data.Dataset:
    """The words of each article, and its subject from 0."""
    rows = data.CSV(path, {"subject": int, "title": str, "description": str}, header=COLUMNS)
    return rows.map(lambda row: (WORD.findall(f"{row['title']} {row['description']}".lower()), int(row["subject"]) - 1))


def vocabulary(found: Iterable[tuple[list[str], int]]) -> dict[str, int]:
    counts = Counter(word for words, _ in found for word in words)
    return {word: n for n, (word, _) in enumerate(counts.most_common(MOST_WORDS), UNKNOWN + 1)}


class Classifier(nn.Module):
    """Words as numbers (batch, words), and where there is one ↦ logits (batch, subjects)."""

    words: nn.Embedding
    positions: nn.SinusoidalPositions
    layers: nn.TransformerEncoder
    head: nn.Linear

    def __init__(self, words: int, width: int, layers: int) -> None:
        rng = np.random.default_rng(0)
        self.words = nn.Embedding(words, width, rng=rng)
        self.positions = nn.SinusoidalPositions(width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, batch_first=True, norm_first=True, rng=rng)
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width))
        self.head = nn.Linear(width, len(SUBJECTS), rng=rng)

    def forward(self, words: sg.Tensor, there: sg.Tensor) -> sg.Tensor:
        found = self.layers(self.positions(self.words(words)), src_key_padding_mask=there.logical_not())
        weights = there.cast("float32").unsqueeze(-1)
        return self.head((found * weights).sum(1) / weights.sum(1))


def main(device: str, quick: bool, source: str | None = None) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(source or made)
        if source is None:
            write_articles(folder / "train.csv", 400 if quick else 4000, 0)
            write_articles(folder / "test.csv", 80 if quick else 1000, 1)
        learn, test = articles(folder / "train.csv"), articles(folder / "test.csv")
        numbers = vocabulary(learn)

        def numbered(item: tuple[list[str], int]) -> tuple[np.ndarray, int]:
            words, subject = item
            return np.array([numbers.get(word, UNKNOWN) for word in words] or [UNKNOWN]), subject

        padded = data.PadCollate(fields=0, length=LONGEST, value=PAD, truncate=True)
        # The mask behind the words: what the network takes, and then the target.
        ordered = {"collate": padded, "transform": lambda batch, draws: (batch[0], batch[2], batch[1])}
        model = Classifier(len(numbers) + UNKNOWN + 1, 16 if quick else 64, 1 if quick else 2)
        learner = train.Learner(
            model, optim.AdamW(5e-3 if quick else 1e-3), nn.CrossEntropyLoss(), [metrics.Accuracy()], device=device, run=Path(made) / "run",
            dashboard="plain", seed=0, checkpoints=train.Checkpoints(best="valid.accuracy"),
        )  # fmt: skip
        learn, valid = learn.map(numbered).split(0.9, 0.1, seed=0)
        batch = 16 if quick else 32
        shuffled = data.Loader(learn, batch, shuffle=True, seed=0, drop_last=True, **ordered)
        learner.fit(shuffled, data.Loader(valid, batch, **ordered), 4)
        found = learner.evaluate(data.Loader(test.map(numbered), batch, **ordered), learner.best)
    print(f"{found['accuracy']:.1%} of the articles for the test have the right subject")
    return {"accuracy": found["accuracy"], "words": float(len(numbers))}


if __name__ == "__main__":
    run(main, __doc__, data="the folder with the train.csv and test.csv of AG News")
