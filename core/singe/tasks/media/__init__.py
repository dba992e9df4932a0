"""The media that tasks are given, a row each."""

from collections.abc import Mapping
from typing import Final

from ..medium import Medium
from .picture import PICTURE
from .sound import SOUND
from .text import TEXT

MEDIA: Final[Mapping[str, Medium]] = {medium.name: medium for medium in (PICTURE, SOUND, TEXT)}
