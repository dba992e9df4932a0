"""Tasks: a model with its preparation and decoding. `sg.task` makes one."""

from .answers import Answer as Answer
from .answers import Box as Box
from .answers import Finding as Finding
from .answers import Findings as Findings
from .answers import PictureMap as PictureMap
from .answers import PictureVector as PictureVector
from .spec import PictureInput as PictureInput
from .spec import TaskSpec as TaskSpec
from .task import Task as Task
