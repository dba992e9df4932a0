"""How far a training is, as what a checkpoint holds beside weights and moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any, Self

from ...errors import FormatError
from ...late_dataclass import dataclass
from ..monitor.summary import EpochLine


@dataclass
class Progress:
    """All counts and times; `facts` is it as JSON."""

    done: int = 0
    """Epochs that are trained and validated."""
    batch: int = 0
    """Batches trained on in the epoch after them."""
    trained: bool = False
    """Whether these are all batches of that epoch, so that only its validation is missing."""
    step: int = 0
    """Batches trained on in all epochs."""
    items: int = 0
    """Samples trained on in the epoch."""
    skipped: int = 0
    """Steps of the epoch that changed no weight, with nonfinite="skip"."""
    skipped_before: int = 0
    """Such steps of the epochs that are done."""
    epoch_seconds: float = 0.0
    seconds: float = 0.0
    """In all epochs."""
    loader: dict[str, Any] | None = None
    """Where the training data is, if it tells that."""
    rows: list[EpochLine] = field(default_factory=list)
    """The epochs that are done."""

    @property
    def epoch(self) -> int:
        """The last epoch that was begun."""
        return self.done + (self.batch > 0)

    def end_epoch(self, row: EpochLine) -> None:
        self.rows.append(row)
        self.done += 1
        self.skipped_before += self.skipped
        self.batch = self.items = self.skipped = 0
        self.trained = False
        self.epoch_seconds = 0.0

    def facts(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        try:
            return cls(**{**facts, "rows": [EpochLine(**row) for row in facts["rows"]]})
        except (KeyError, TypeError) as e:
            raise FormatError(f"a checkpoint of another version of Singe: {e}") from None
