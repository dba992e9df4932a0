"""TextInput: how a text becomes the tokens of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Final

from ...errors import InputError
from ...late_dataclass import dataclass
from ..medium import TaskInput

MAX_LENGTH: Final = 1 << 15
MAX_WIDTH: Final = 100


@dataclass(frozen=True)
class TextInput(TaskInput):
    """How texts become ids of tokens. length: the most tokens that the model takes at once, its marks among them; overlap: how many tokens of
    a window of a longer text are in the next one, too. prompts: what is written before a text, by name; prompt: the name of the one that is
    written where a call says nothing. width: of a model of spans, how many words one has at most; marks: what stands before each label, and before
    the text."""

    medium: ClassVar[str] = "text"
    length: int = 512
    overlap: int = 16
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    prompt: str = ""
    width: int = 0
    marks: Sequence[str] = ()

    def __post_init__(self) -> None:
        if type(self.length) is not int or not 8 <= self.length <= MAX_LENGTH:
            raise InputError(f"texts: length {self.length!r:.40}: expected a number of tokens from 8 to {MAX_LENGTH}")
        if type(self.overlap) is not int or not 0 <= self.overlap <= self.length // 2:
            raise InputError(
                f"texts: overlap {self.overlap!r:.40}: expected a number of tokens up to {self.length // 2}"
            )
        if not all(isinstance(x, str) for pair in self.prompts.items() for x in pair):
            raise InputError("texts: prompts: expected names and texts")
        if self.prompt and self.prompt not in self.prompts:
            raise InputError(f"texts: prompt {self.prompt!r:.40}: expected one of {', '.join(self.prompts) or 'none'}")

        if type(self.width) is not int or not 0 <= self.width <= MAX_WIDTH:
            raise InputError(
                f"texts: width {self.width!r:.40}: expected how many words a span has at most, up to {MAX_WIDTH}"
            )
        if not all(isinstance(x, str) and x for x in self.marks) or len(self.marks) != (2 if self.width else 0):
            raise InputError(f"texts: marks {self.marks!r:.60}: expected two of a model of spans, none of others")

    def __str__(self) -> str:
        return f"{self.length} tokens at once"
