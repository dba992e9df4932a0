"""SoundInput: how a sound becomes the rows of samples that a model takes."""

from __future__ import annotations

from typing import ClassVar, Final

from ...errors import InputError
from ...files.sounds.sound import RATES
from ...late_dataclass import dataclass
from ..medium import TaskInput

MAX_SAMPLES: Final = 1 << 22
"""The most samples in a row, and the most numbers that a model may remember."""

MAX_FEATURE: Final = 1e6


@dataclass(frozen=True)
class SoundInput(TaskInput):
    """How sounds become rows of samples. form: a row of FORMS. rate: samples a second. step: how many of them each row goes on; before and
    after: how many around these it has, too. rows: the most that go through the Graph at once, 0 if it takes any number. states: how many
    numbers the model remembers from row to row. lengths: whether it takes how many samples of each row are of the sound. level: decibels
    below the loudest that samples can be, to which a sound that is quieter in the mean is raised; 0: none is. center, spread: what is subtracted from
    features, and what they are divided by then."""

    medium: ClassVar[str] = "sound"
    form: str = "frames"
    rate: int = 16000
    step: int = 512
    before: int = 0
    after: int = 0
    rows: int = 0
    states: int = 0
    lengths: bool = False
    level: float = 0.0
    center: float = 0.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        if type(self.rate) is not int or self.rate not in RATES:
            raise InputError(f"sounds: rate {self.rate!r:.40}: expected {RATES[0]} to {RATES[-1]} samples a second")
        for name in ("step", "before", "after", "rows", "states"):
            value = getattr(self, name)
            if type(value) is not int or not (name == "step") <= value <= MAX_SAMPLES:
                raise InputError(f"sounds: {name} {value!r:.40}: expected a number up to {MAX_SAMPLES}")
        for name in ("center", "spread"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not abs(value) < MAX_FEATURE or (name == "spread" and not value):
                raise InputError(
                    f"sounds: {name} {value!r:.40}: expected a number under {MAX_FEATURE:g}, a spread other than 0"
                )
        if type(self.lengths) is not bool or type(self.level) not in (int, float) or not 0 <= self.level <= 100:
            raise InputError(
                f"sounds: lengths {self.lengths!r:.40} and level {self.level!r:.40}: expected a bool, and decibels up to 100"
            )

    @property
    def width(self) -> int:
        """Samples in a row."""
        return self.before + self.step + self.after

    def __str__(self) -> str:
        return f"{self.rate} samples a second, {self.step} in a row"
