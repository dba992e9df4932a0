"""Many machines, by Ray: `RayWorkers` for training, `map` for inference. The extra `cluster` installs Ray."""

from .mapping import Predictor as Predictor
from .mapping import map as map
from .workers import RayStep as RayStep
from .workers import RayWorkers as RayWorkers
