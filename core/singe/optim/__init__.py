"""Optimisers, schedules of learning rates, and what is done with gradients; see README.md in this folder."""

import typing as _typing

from ..hints import no_attribute as _no_attribute
from ..tracebacks import shorten_all as _shorten_all
from ._adam import Adam as Adam
from ._adam import AdamW as AdamW
from ._adam import Adan as Adan
from ._around import Accumulated as Accumulated
from ._around import Averaged as Averaged
from ._around import ReduceLROnPlateau as ReduceLROnPlateau
from ._gradients import clip_norm as clip_norm
from ._gradients import clip_value as clip_value
from ._gradients import global_norm as global_norm
from ._gradients import mean as mean
from ._gradients import mean as mean_gradients
from ._lbfgs import LBFGS as LBFGS
from ._muon import Muon as Muon
from ._optimizer import Optimizer as Optimizer
from ._rms import Adagrad as Adagrad
from ._rms import RMSprop as RMSprop
from ._schedule import ChainedScheduler as ChainedScheduler
from ._schedule import ConstantLR as ConstantLR
from ._schedule import CosineAnnealingLR as CosineAnnealingLR
from ._schedule import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from ._schedule import ExponentialLR as ExponentialLR
from ._schedule import LinearLR as LinearLR
from ._schedule import MultiStepLR as MultiStepLR
from ._schedule import NoamLR as NoamLR
from ._schedule import OneCycleLR as OneCycleLR
from ._schedule import PolynomialLR as PolynomialLR
from ._schedule import Schedule as Schedule
from ._schedule import SequentialLR as SequentialLR
from ._schedule import StepLR as StepLR
from ._schedule import WarmUp as WarmUp
from ._sgd import SGD as SGD

__all__ = [
    "LBFGS", "SGD", "Accumulated", "Adagrad", "Adam", "AdamW", "Adan", "Averaged", "ChainedScheduler", "ConstantLR", "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts", "ExponentialLR", "LinearLR", "MultiStepLR", "Muon", "NoamLR", "OneCycleLR", "Optimizer", "PolynomialLR",
    "RMSprop", "ReduceLROnPlateau", "Schedule", "SequentialLR", "StepLR", "WarmUp", "clip_norm", "clip_value", "global_norm", "mean", "mean_gradients",
]  # fmt: skip

_shorten_all(globals())

if not _typing.TYPE_CHECKING:  # which would take every name for one of this module

    def __getattr__(name: str) -> _typing.Any:
        raise _no_attribute(__name__, name)
