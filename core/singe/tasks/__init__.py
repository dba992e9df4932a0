"""Tasks: a model with its preparation and decoding. `sg.task` makes one."""

from .answers import Answer as Answer
from .answers import Box as Box
from .answers import Entities as Entities
from .answers import Entity as Entity
from .answers import Finding as Finding
from .answers import Findings as Findings
from .answers import Line as Line
from .answers import Page as Page
from .answers import PictureMap as PictureMap
from .answers import TaskVector as TaskVector
from .chains.task import ChainTask as ChainTask
from .picture.spec import PictureInput as PictureInput
from .sound.answers import CleanSound as CleanSound
from .sound.answers import Notes as Notes
from .sound.answers import Segment as Segment
from .sound.answers import Voices as Voices
from .sound.midi import MusicNote as MusicNote
from .sound.spec import SoundInput as SoundInput
from .spec import TaskSpec as TaskSpec
from .task import Task as Task
from .text.spec import TextInput as TextInput
