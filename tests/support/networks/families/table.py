"""The families, by what they take and give."""

from __future__ import annotations

from typing import Final

from .audio import AUDIO
from .classification import CLASSIFICATION
from .decoders import DECODERS
from .detection import DETECTION
from .family import Family
from .language import LANGUAGE
from .other import OTHER
from .pictures import PICTURES

DOMAINS: Final[dict[str, dict[str, Family]]] = {
    "Text": LANGUAGE,
    "Text, token by token": DECODERS,
    "Pictures, classified": CLASSIFICATION,
    "Pictures to pictures": PICTURES,
    "Pictures to boxes, masks and words": DETECTION,
    "Speech and sound": AUDIO,
    "Graphs, tables and series": OTHER,
}
FAMILIES: Final = {name: family for domain in DOMAINS.values() for name, family in domain.items()}
