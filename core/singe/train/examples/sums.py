"""Sums of numbers read digit by digit, by an LSTM: what must be remembered is a carry.

Two numbers of some digits come in, from the last digit to the first, a pair of digits in each step; out comes the last digit of
the sum, then the one before it, and so on. The network has to find out that there is a carry, and to keep it. It is trained on
numbers of 12 digits and validated on numbers of 40, so that learning pairs by heart does not help.

"accuracy" counts digits; "whole" counts sums of which every digit is right: all of them from the fourth epoch on, after 2 s (wasm).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np

from ... import data, nn, optim
from ...late_dataclass import dataclass
from ...model.files import save
from ...tensors.tensor import Tensor
from ..config import precision_setting, setting
from ..learner import Learner
from ..monitor.summary import Summary
from ..saving.checkpoints import Checkpoints
from . import Example


@dataclass(frozen=True)
class SumsConfig:
    """The settings of a run."""

    epochs: int = setting(8, "how often each sum is shown", 1)
    seed: int = setting(0, "of the numbers, the first weights and the order", 0)
    batch_size: int = setting(64, "sums in a step", 1)
    lr: float = setting(1e-2, "the largest learning rate", 0)
    precision: Literal["float32", "float16", "bfloat16"] = precision_setting()
    items: int = setting(4000, "how many sums", 1)
    digits: int = setting(12, "of the numbers in training", 1)
    longer: int = setting(40, "digits of the numbers in validation", 1)
    width: int = setting(32, "numbers in the state", 1)
    layers: int = setting(1, "layers", 1)


SETTINGS: Final = SumsConfig
QUICK: Final[Mapping[str, Any]] = {"epochs": 1, "items": 192, "digits": 5, "longer": 8, "width": 8}


class Adder(nn.Module):
    """Pairs of digits (batch, length, 2), the last first ↦ logits (batch, length, 10) of the digits of the sums."""

    lstm: nn.LSTM
    head: nn.Linear

    def __init__(self, config: SumsConfig) -> None:
        rng = np.random.default_rng(config.seed)
        self.lstm = nn.LSTM(20, config.width, config.layers, batch_first=True, rng=rng)
        self.head = nn.Linear(config.width, 10, rng=rng)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        y, _ = self.lstm(x.one_hot(10).cast(self.head.weight.dtype).reshape(batch, length, 20))
        return self.head(y)


def sums(count: int, digits: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of digits (count, digits, 2), and the digits of the sums, without what is carried out of the first."""
    x = np.random.default_rng(seed).integers(0, 10, (count, digits, 2))
    y, carry = np.empty((count, digits), np.int64), np.zeros(count, np.int64)
    for place in range(digits):
        total = x[:, place].sum(1) + carry
        y[:, place], carry = total % 10, total // 10
    return x, y


def loss(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    logits = model(x)
    right = (logits.argmax(-1) == y).cast("float32")
    extras = {"accuracy": right.mean(), "whole": right.amin(1).mean()}
    return nn.CrossEntropyLoss()(logits.reshape(-1, 10), y.reshape(-1)), extras


def train(config: SumsConfig, run: Example) -> tuple[Learner, Summary]:
    """Train on sums."""
    learn = sums(config.items, config.digits, config.seed)
    unseen = sums(500, config.longer, config.seed + 1)
    batches = data.Loader(learn, config.batch_size, shuffle=True, seed=config.seed, drop_last=True)
    learner = Learner(
        Adder(config), optim.AdamW(optim.CosineAnnealingLR(config.lr, max(1, config.epochs * len(batches)))), loss,
        device=run.device, run=run.folder, checkpoints=Checkpoints(best="valid.loss"), clip=1.0, seed=config.seed, precision=config.precision,
        config=config, dashboard=run.dashboard,
    )  # fmt: skip
    summary = learner.fit(batches, data.Loader(unseen, 100), config.epochs, resume=run.resume)
    save(learner.best, run.folder / "sums.safetensors")
    return learner, summary
