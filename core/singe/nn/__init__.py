"""Layers, and Module for writing your own; see README.md in this folder."""

import typing as _typing

from ..hints import no_attribute as _no_attribute
from ..tracebacks import shorten_all as _shorten_all
from . import init as init
from ._activation import CELU as CELU
from ._activation import ELU as ELU
from ._activation import GELU as GELU
from ._activation import GLU as GLU
from ._activation import SELU as SELU
from ._activation import Flatten as Flatten
from ._activation import Hardshrink as Hardshrink
from ._activation import Hardsigmoid as Hardsigmoid
from ._activation import Hardswish as Hardswish
from ._activation import Hardtanh as Hardtanh
from ._activation import Identity as Identity
from ._activation import LeakyReLU as LeakyReLU
from ._activation import LogSigmoid as LogSigmoid
from ._activation import LogSoftmax as LogSoftmax
from ._activation import Mish as Mish
from ._activation import PReLU as PReLU
from ._activation import ReLU as ReLU
from ._activation import ReLU6 as ReLU6
from ._activation import Sigmoid as Sigmoid
from ._activation import SiLU as SiLU
from ._activation import Softmax as Softmax
from ._activation import Softmax2d as Softmax2d
from ._activation import Softmin as Softmin
from ._activation import Softplus as Softplus
from ._activation import Softshrink as Softshrink
from ._activation import Softsign as Softsign
from ._activation import Tanh as Tanh
from ._activation import Tanhshrink as Tanhshrink
from ._activation import Threshold as Threshold
from ._container import ModuleDict as ModuleDict
from ._container import ModuleList as ModuleList
from ._container import Sequential as Sequential
from ._distance import CosineSimilarity as CosineSimilarity
from ._distance import PairwiseDistance as PairwiseDistance
from ._dropout import AlphaDropout as AlphaDropout
from ._dropout import Dropout as Dropout
from ._dropout import Dropout1d as Dropout1d
from ._dropout import Dropout2d as Dropout2d
from ._dropout import Dropout3d as Dropout3d
from ._dropout import FeatureAlphaDropout as FeatureAlphaDropout
from ._dropout import GaussianNoise as GaussianNoise
from ._dropout import RReLU as RReLU
from ._linear import Bilinear as Bilinear
from ._linear import Linear as Linear
from ._linear import PackedLinear as PackedLinear
from ._loss.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from ._loss.classes import BCELoss as BCELoss
from ._loss.classes import BCEWithLogitsLoss as BCEWithLogitsLoss
from ._loss.classes import CrossEntropyLoss as CrossEntropyLoss
from ._loss.classes import MultiLabelMarginLoss as MultiLabelMarginLoss
from ._loss.classes import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from ._loss.classes import MultiMarginLoss as MultiMarginLoss
from ._loss.classes import NLLLoss as NLLLoss
from ._loss.classes import SoftMarginLoss as SoftMarginLoss
from ._loss.pairs import CosineEmbeddingLoss as CosineEmbeddingLoss
from ._loss.pairs import HingeEmbeddingLoss as HingeEmbeddingLoss
from ._loss.pairs import MarginRankingLoss as MarginRankingLoss
from ._loss.pairs import TripletMarginLoss as TripletMarginLoss
from ._loss.pairs import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from ._loss.regression import GaussianNLLLoss as GaussianNLLLoss
from ._loss.regression import GramMatrixLoss as GramMatrixLoss
from ._loss.regression import HuberLoss as HuberLoss
from ._loss.regression import KLDivLoss as KLDivLoss
from ._loss.regression import L1Loss as L1Loss
from ._loss.regression import LpLoss as LpLoss
from ._loss.regression import MSELoss as MSELoss
from ._loss.regression import PoissonNLLLoss as PoissonNLLLoss
from ._loss.regression import SmoothL1Loss as SmoothL1Loss
from ._loss.sequences import CTCLoss as CTCLoss
from ._loss.sequences import RNNTLoss as RNNTLoss
from ._module import Module as Module
from ._norm import BatchNorm1d as BatchNorm1d
from ._norm import BatchNorm2d as BatchNorm2d
from ._norm import BatchNorm3d as BatchNorm3d
from ._norm import CrossMapLRN2d as CrossMapLRN2d
from ._norm import GroupNorm as GroupNorm
from ._norm import InstanceNorm1d as InstanceNorm1d
from ._norm import InstanceNorm2d as InstanceNorm2d
from ._norm import InstanceNorm3d as InstanceNorm3d
from ._norm import LayerNorm as LayerNorm
from ._norm import LocalResponseNorm as LocalResponseNorm
from ._norm import RMSNorm as RMSNorm
from ._norm import observing as observing
from ._random import drawing as drawing
from ._random import next_key as next_key
from ._reparametrized import LoRA as LoRA
from ._reparametrized import SpectralNorm as SpectralNorm
from ._reparametrized import WeightNorm as WeightNorm
from ._reparametrized import lora as lora
from ._reparametrized import merged as merged
from ._reparametrized import spectral_norm as spectral_norm
from ._reparametrized import weight_norm as weight_norm
from ._sequence.attention import MultiheadAttention as MultiheadAttention
from ._sequence.embedding import Embedding as Embedding
from ._sequence.embedding import EmbeddingBag as EmbeddingBag
from ._sequence.position import RotaryEmbedding as RotaryEmbedding
from ._sequence.position import SinusoidalPositions as SinusoidalPositions
from ._sequence.recurrent import GRU as GRU
from ._sequence.recurrent import LSTM as LSTM
from ._sequence.recurrent import RNN as RNN
from ._sequence.recurrent import GRUCell as GRUCell
from ._sequence.recurrent import LSTMCell as LSTMCell
from ._sequence.recurrent import RNNCell as RNNCell
from ._sequence.transformer import Transformer as Transformer
from ._sequence.transformer import TransformerDecoder as TransformerDecoder
from ._sequence.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from ._sequence.transformer import TransformerEncoder as TransformerEncoder
from ._sequence.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from ._space.conv import Conv1d as Conv1d
from ._space.conv import Conv2d as Conv2d
from ._space.conv import Conv3d as Conv3d
from ._space.conv import ConvTranspose1d as ConvTranspose1d
from ._space.conv import ConvTranspose2d as ConvTranspose2d
from ._space.conv import ConvTranspose3d as ConvTranspose3d
from ._space.conv import DeformConv2d as DeformConv2d
from ._space.fractional import FractionalMaxPool2d as FractionalMaxPool2d
from ._space.fractional import FractionalMaxPool3d as FractionalMaxPool3d
from ._space.padding import CircularPad1d as CircularPad1d
from ._space.padding import CircularPad2d as CircularPad2d
from ._space.padding import CircularPad3d as CircularPad3d
from ._space.padding import ConstantPad1d as ConstantPad1d
from ._space.padding import ConstantPad2d as ConstantPad2d
from ._space.padding import ConstantPad3d as ConstantPad3d
from ._space.padding import ReflectionPad1d as ReflectionPad1d
from ._space.padding import ReflectionPad2d as ReflectionPad2d
from ._space.padding import ReflectionPad3d as ReflectionPad3d
from ._space.padding import ReplicationPad1d as ReplicationPad1d
from ._space.padding import ReplicationPad2d as ReplicationPad2d
from ._space.padding import ReplicationPad3d as ReplicationPad3d
from ._space.padding import ZeroPad1d as ZeroPad1d
from ._space.padding import ZeroPad2d as ZeroPad2d
from ._space.padding import ZeroPad3d as ZeroPad3d
from ._space.pool import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from ._space.pool import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from ._space.pool import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from ._space.pool import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from ._space.pool import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from ._space.pool import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from ._space.pool import AvgPool1d as AvgPool1d
from ._space.pool import AvgPool2d as AvgPool2d
from ._space.pool import AvgPool3d as AvgPool3d
from ._space.pool import LPPool1d as LPPool1d
from ._space.pool import LPPool2d as LPPool2d
from ._space.pool import LPPool3d as LPPool3d
from ._space.pool import MaxPool1d as MaxPool1d
from ._space.pool import MaxPool2d as MaxPool2d
from ._space.pool import MaxPool3d as MaxPool3d
from ._space.pool import MaxUnpool1d as MaxUnpool1d
from ._space.pool import MaxUnpool2d as MaxUnpool2d
from ._space.pool import MaxUnpool3d as MaxUnpool3d
from ._space.shape import ChannelShuffle as ChannelShuffle
from ._space.shape import Fold as Fold
from ._space.shape import PixelShuffle as PixelShuffle
from ._space.shape import PixelUnshuffle as PixelUnshuffle
from ._space.shape import Unflatten as Unflatten
from ._space.shape import Unfold as Unfold
from ._space.shape import Upsample as Upsample
from ._space.shape import UpsamplingBilinear2d as UpsamplingBilinear2d
from ._space.shape import UpsamplingNearest2d as UpsamplingNearest2d

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "GRU", "LSTM", "RNN", "SELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveLogSoftmaxWithLoss", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d",
    "BatchNorm2d", "BatchNorm3d", "Bilinear", "CTCLoss", "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d",
    "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss",
    "CosineSimilarity", "CrossEntropyLoss", "CrossMapLRN2d", "DeformConv2d", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Embedding", "EmbeddingBag",
    "FeatureAlphaDropout", "Flatten", "Fold", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "GRUCell", "GaussianNLLLoss", "GaussianNoise", "GramMatrixLoss", "GroupNorm", "Hardshrink",
    "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "KLDivLoss", "L1Loss", "LPPool1d", "LPPool2d", "LPPool3d", "LSTMCell", "LayerNorm", "LeakyReLU", "Linear", "LoRA", "LocalResponseNorm",
    "LogSigmoid", "LogSoftmax", "LpLoss", "MSELoss", "MarginRankingLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d", "Mish", "Module", "ModuleDict", "ModuleList", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "MultiheadAttention", "NLLLoss", "PReLU", "PackedLinear", "PairwiseDistance", "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "RMSNorm", "RNNCell",
    "RNNTLoss", "RReLU", "ReLU", "ReLU6", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "RotaryEmbedding", "Sequential", "SiLU", "Sigmoid", "SinusoidalPositions", "SmoothL1Loss", "SoftMarginLoss", "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "SpectralNorm", "Tanh", "Tanhshrink", "Threshold", "Transformer",
    "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "WeightNorm", "ZeroPad1d",
    "ZeroPad2d", "ZeroPad3d", "drawing", "init", "lora", "merged", "next_key", "observing", "spectral_norm", "weight_norm",
]  # fmt: skip

_shorten_all(globals())

if not _typing.TYPE_CHECKING:  # which would take every name for one of this module

    def __getattr__(name: str) -> _typing.Any:
        raise _no_attribute(__name__, name)
