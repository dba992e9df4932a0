"""The kinds of tasks that need several models, a row each."""

from collections.abc import Mapping
from typing import Final

from .base import Chain as Chain
from .landmarks import LANDMARKS
from .ocr import OCR

CHAINS: Final[Mapping[str, Chain]] = {chain.name: chain for chain in (LANDMARKS, OCR)}
