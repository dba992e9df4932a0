"""Data for training: datasets, batches, loaders, sources and augmentations. `import singe`, then `singe.data.Loader(…)`."""

import typing as _typing

from ..hints import no_attribute as _no_attribute
from ..tracebacks import shorten_all as _shorten_all
from .augment import Augment as Augment
from .collate import PadCollate as PadCollate
from .collate import collate as collate
from .dataset import ArrayDataset as ArrayDataset
from .dataset import Dataset as Dataset
from .dataset import Subset as Subset
from .dataset import concat as concat
from .dataset import zipped as zipped
from .draws import Draws as Draws
from .loader import Loader as Loader
from .sources.arrow import ArrowTable as ArrowTable
from .sources.cifar import CIFAR10 as CIFAR10
from .sources.cifar import CIFAR100 as CIFAR100
from .sources.folders import ImageFolder as ImageFolder
from .sources.folders import TextFolder as TextFolder
from .sources.idx import MNIST as MNIST
from .sources.idx import FashionMNIST as FashionMNIST
from .sources.idx import read_idx as read_idx
from .sources.tables import CSV as CSV
from .sources.tables import SQLite as SQLite
from .steps import Normalize as Normalize
from .steps import RandomCrop as RandomCrop
from .steps import RandomErasing as RandomErasing
from .steps import RandomHorizontalFlip as RandomHorizontalFlip
from .steps import RandomVerticalFlip as RandomVerticalFlip
from .steps import Step as Step
from .warp import ElasticTransform as ElasticTransform
from .warp import RandomAffine as RandomAffine

__all__ = [
    "CIFAR10", "CIFAR100", "CSV", "MNIST", "ArrayDataset", "ArrowTable", "Augment", "Dataset", "Draws", "ElasticTransform", "FashionMNIST",
    "ImageFolder", "Loader", "Normalize", "PadCollate", "RandomAffine", "RandomCrop", "RandomErasing", "RandomHorizontalFlip",
    "RandomVerticalFlip", "SQLite", "Step", "Subset", "TextFolder", "collate", "concat", "read_idx", "zipped",
]  # fmt: skip

_shorten_all(globals())

if not _typing.TYPE_CHECKING:  # which would take every name for one of this module

    def __getattr__(name: str) -> _typing.Any:
        raise _no_attribute(__name__, name)
