"""Sentences of five classes by a transformer encoder: what somebody asks a kitchen's assistant for.

The sentences are made by rules, so nothing is fetched: each class has patterns in which words are filled in, and the classes
share most words ("add soup to the list", "take soup off the list", "move the soup to friday"). Those for validation are
others than those for training. Sentences have different lengths: a batch is padded, and the mask keeps attention and the
average over the words from what was added.

After the second epoch all sentences for validation are sorted right; four epochs take 30 s on two busy cores (wasm).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np

from ... import data, metrics, nn, optim
from ...late_dataclass import dataclass
from ...model.files import save
from ...tensors.tensor import Tensor
from ..config import precision_setting, setting
from ..learner import Learner
from ..monitor.summary import Summary
from ..saving.checkpoints import Checkpoints
from . import Example

PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    "timer": ("set a timer for the {food}", "tell me when the {food} is done", "wake me in {n} minutes for the {food}"),
    "list": ("add {food} to the list", "we need {n} more {food}", "put {food} and {other} on the list for {day}"),
    "recipe": ("how do i make {food} with {other}", "what goes into {food}", "how long does the {food} need in the oven"),
    "plan": ("make {food} the meal for {day}", "on {day} we have {food} and {other}", "move the {food} to {day}"),
    "undo": ("no not the {food}", "take {food} off the list", "stop the timer for the {food}", "not {food} on {day}"),
}  # fmt: skip
POLITE: Final = ("", "please", "could you", "and", "now", "i think")
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "food": ("soup", "bread", "rice", "eggs", "beans", "apple pie", "green salad", "fish", "pasta", "potatoes"),
    "other": ("salt", "butter", "red onions", "milk", "tomatoes", "olive oil", "cheese"),
    "n": ("two", "three", "five", "ten", "twenty"),
    "day": ("monday", "tuesday", "friday", "sunday", "tomorrow", "next week"),
}
LONGEST: Final = 16
"""Words in a sentence, at most."""


@dataclass(frozen=True)
class SentencesConfig:
    """The settings of a run."""

    epochs: int = setting(4, "how often each sentence is shown", 1)
    seed: int = setting(0, "of the sentences, the first weights and the order", 0)
    batch_size: int = setting(32, "sentences in a step", 1)
    lr: float = setting(1e-3, "the learning rate", 0)
    precision: Literal["float32", "float16", "bfloat16"] = precision_setting()
    items: int = setting(2000, "how many sentences", 1)
    width: int = setting(48, "numbers for each word", 1)
    layers: int = setting(2, "layers of attention", 1)
    heads: int = setting(4, "heads in a layer", 1)
    noise: float = setting(0.1, "which part of the words is left out of a sentence for training", 0, 1)


SETTINGS: Final = SentencesConfig
QUICK: Final[Mapping[str, Any]] = {"epochs": 1, "items": 100, "width": 16, "layers": 1}


class SentenceNet(nn.Module):
    """Sentences (batch, words) as numbers, and where there is a word ↦ logits (batch, classes)."""

    words: nn.Embedding
    positions: nn.SinusoidalPositions
    layers: nn.TransformerEncoder
    head: nn.Linear

    def __init__(self, words: int, config: SentencesConfig) -> None:
        rng = np.random.default_rng(config.seed)
        self.words = nn.Embedding(words, config.width, rng=rng)
        self.positions = nn.SinusoidalPositions(config.width)
        layer = nn.TransformerEncoderLayer(
            config.width, config.heads, 2 * config.width, 0.1, batch_first=True, norm_first=True, rng=rng
        )
        self.layers = nn.TransformerEncoder(layer, config.layers, nn.LayerNorm(config.width))
        self.head = nn.Linear(config.width, len(PATTERNS), rng=rng)

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        y = self.layers(self.positions(self.words(x)), src_key_padding_mask=there.logical_not())
        counted = there.cast("float32").unsqueeze(-1)
        return self.head((y * counted).sum(1) / counted.sum(1))


def sentences(count: int, seed: int) -> list[tuple[str, int]]:
    """Different sentences, and the place of the class of each in PATTERNS."""
    rng = np.random.default_rng(seed)
    found: dict[str, int] = {}
    while len(found) < count:
        kind = int(rng.integers(len(PATTERNS)))
        pattern = str(rng.choice(list(PATTERNS.values())[kind]))
        sentence = pattern.format(**{name: rng.choice(words) for name, words in WORDS.items()})
        found.setdefault(f"{rng.choice(POLITE)} {sentence}".strip(), kind)
    return list(found.items())


def train(config: SentencesConfig, run: Example) -> tuple[Learner, Summary]:
    """Train on sentences."""
    made = sentences(config.items, config.seed)
    vocabulary = {word: n for n, word in enumerate(sorted({w for text, _ in made for w in text.split()}), 1)}
    items = data.Dataset.of(made).map(lambda item: (np.array([vocabulary[w] for w in item[0].split()]), item[1]))
    learn, valid = items.split(0.8, 0.2, seed=config.seed, stratify=1)

    def ready(batch: Any, draws: data.Draws, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Words, where there are some, and classes. With noise some words become 0, which is no word; their places stay."""
        x, kinds, there = batch
        return np.where(draws.uniform(shape=x.shape[1:]) < noise, 0, x), there, kinds

    def forgetful(batch: Any, draws: data.Draws) -> Any:
        return ready(batch, draws, config.noise)

    # One length for all batches, so that a step is compiled once.
    padded = data.PadCollate(fields=0, length=LONGEST)
    learner = Learner(
        SentenceNet(len(vocabulary) + 1, config), optim.AdamW(config.lr), nn.CrossEntropyLoss(), [metrics.Accuracy()],
        device=run.device, run=run.folder, checkpoints=Checkpoints(best="valid.accuracy"), seed=config.seed, precision=config.precision,
        config=config, dashboard=run.dashboard,
    )  # fmt: skip
    batches = data.Loader(
        learn, config.batch_size, shuffle=True, seed=config.seed, drop_last=True, collate=padded, transform=forgetful
    )
    summary = learner.fit(
        batches,
        data.Loader(valid, config.batch_size, collate=padded, transform=ready),
        config.epochs,
        resume=run.resume,
    )
    save(learner.best, run.folder / "sentences.safetensors")
    return learner, summary
