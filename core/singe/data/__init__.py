"""Data for training: datasets, batches, loaders, sources and augmentations. `import singe`, then `singe.data.Loader(…)`."""

from .augment import Augment as Augment
from .collate import PadCollate as PadCollate
from .collate import collate as collate
from .dataset import ArrayDataset as ArrayDataset
from .dataset import Dataset as Dataset
from .dataset import concat as concat
from .dataset import zipped as zipped
from .draws import Draws as Draws
from .loader import Loader as Loader
from .steps import Normalize as Normalize
from .steps import RandomCrop as RandomCrop
from .steps import RandomErasing as RandomErasing
from .steps import RandomHorizontalFlip as RandomHorizontalFlip
from .steps import RandomVerticalFlip as RandomVerticalFlip
from .steps import Step as Step
from .warp import ElasticTransform as ElasticTransform
from .warp import RandomAffine as RandomAffine

__all__ = [
    "ArrayDataset", "Augment", "Dataset", "Draws", "ElasticTransform", "Loader", "Normalize", "PadCollate", "RandomAffine", "RandomCrop",
    "RandomErasing", "RandomHorizontalFlip", "RandomVerticalFlip", "Step", "collate", "concat", "zipped",
]  # fmt: skip
