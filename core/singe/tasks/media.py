"""The media that tasks are given, a row each."""

from collections.abc import Mapping
from typing import Final

from .medium import Medium
from .picture.medium import PICTURE
from .sound.medium import SOUND
from .text.medium import TEXT

MEDIA: Final[Mapping[str, Medium]] = {medium.name: medium for medium in (PICTURE, SOUND, TEXT)}
