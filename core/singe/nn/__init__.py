"""Layers, and Module for writing your own; see README.md in this folder."""

from ._activation import ELU as ELU
from ._activation import GELU as GELU
from ._activation import Flatten as Flatten
from ._activation import HardSigmoid as HardSigmoid
from ._activation import HardSwish as HardSwish
from ._activation import Identity as Identity
from ._activation import LeakyReLU as LeakyReLU
from ._activation import LogSoftmax as LogSoftmax
from ._activation import ReLU as ReLU
from ._activation import ReLU6 as ReLU6
from ._activation import Sigmoid as Sigmoid
from ._activation import SiLU as SiLU
from ._activation import Softmax as Softmax
from ._activation import Softplus as Softplus
from ._activation import Tanh as Tanh
from ._container import Sequential as Sequential
from ._conv import Conv2d as Conv2d
from ._linear import Linear as Linear
from ._module import Module as Module
from ._norm import BatchNorm2d as BatchNorm2d
from ._norm import observing as observing
from ._pool import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from ._pool import AvgPool2d as AvgPool2d
from ._pool import MaxPool2d as MaxPool2d

__all__ = [
    "ELU", "GELU", "AdaptiveAvgPool2d", "AvgPool2d", "BatchNorm2d", "Conv2d", "Flatten", "HardSigmoid", "HardSwish", "Identity",
    "LeakyReLU", "Linear", "LogSoftmax", "MaxPool2d", "Module", "ReLU", "ReLU6", "Sequential", "SiLU", "Sigmoid", "Softmax", "Softplus",
    "Tanh", "observing",
]  # fmt: skip
