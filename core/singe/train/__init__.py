"""Training: `singe.train.Learner` and its parts."""

from ..tracebacks import shorten_all as _shorten_all
from .best_value import EarlyStopping as EarlyStopping
from .config import read_config as read_config
from .config import write_config as write_config
from .events import BatchEnded as BatchEnded
from .events import CheckpointSaved as CheckpointSaved
from .events import EpochBegan as EpochBegan
from .events import EpochEnded as EpochEnded
from .events import Event as Event
from .events import LayersObserved as LayersObserved
from .events import Listener as Listener
from .events import Note as Note
from .events import RunBegan as RunBegan
from .events import Stopped as Stopped
from .learner import Learner as Learner
from .monitor.summary import Summary as Summary
from .saving.checkpoints import Checkpoint as Checkpoint
from .saving.checkpoints import CheckpointFolder as CheckpointFolder
from .saving.checkpoints import Checkpoints as Checkpoints
from .steps.parallel import DataParallel as DataParallel
from .steps.step import TrainStep as TrainStep

_shorten_all(globals())
