"""The kinds of tasks, a row each."""

from collections.abc import Mapping
from typing import Final

from .base import Head as Head
from .base import TaskKind as TaskKind
from .classify import CLASSIFY, EMBED_IMAGE
from .detect import DETECT
from .embed import EMBED
from .faces import FACES
from .hearing.denoise import DENOISE
from .hearing.notes import NOTES
from .hearing.sounds import SOUNDS
from .hearing.speaker import SPEAKER, SPEAKERS
from .hearing.voices import VOICES
from .hearing.wake_word import WAKE_WORD
from .maps import CUTOUT, DEPTH, SEGMENT
from .pose import POSE
from .search import SEARCH
from .spans import ZERO_SHOT_TAG
from .text_classes import CLASSIFY_TEXT, RERANK, ZERO_SHOT
from .tokens import FILL_MASK, TAG

KINDS: Final[Mapping[str, TaskKind]] = {
    kind.name: kind
    for kind in (
        CLASSIFY,
        DETECT,
        FACES,
        POSE,
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
        ZERO_SHOT_TAG,
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
