"""The kinds of tasks, a row each."""

from collections.abc import Mapping
from typing import Final

from .base import Head as Head
from .base import TaskKind as TaskKind
from .classify import CLASSIFY, EMBED_IMAGE
from .denoise import DENOISE
from .detect import DETECT
from .embed import EMBED
from .faces import FACES
from .maps import CUTOUT, DEPTH, SEGMENT
from .notes import NOTES
from .search import SEARCH
from .sounds import SOUNDS
from .speaker import SPEAKER, SPEAKERS
from .text_classes import CLASSIFY_TEXT, RERANK, ZERO_SHOT
from .tokens import FILL_MASK, TAG
from .voices import VOICES
from .wake_word import WAKE_WORD

KINDS: Final[Mapping[str, TaskKind]] = {
    kind.name: kind
    for kind in (
        CLASSIFY,
        DETECT,
        FACES,
        SEGMENT,
        CUTOUT,
        DEPTH,
        EMBED_IMAGE,
        EMBED,
        SEARCH,
        RERANK,
        CLASSIFY_TEXT,
        ZERO_SHOT,
        TAG,
        FILL_MASK,
        VOICES,
        DENOISE,
        NOTES,
        WAKE_WORD,
        SOUNDS,
        SPEAKER,
        SPEAKERS,
    )
}
