"""Adapters translate ONNX ops that do not match one row exactly. Each family has a file; ADAPTERS is the open table."""

from . import (  # noqa: F401 (each enters its adapters)
    arithmetic,
    attention,
    basic,
    control,
    extremes,
    frames,
    linear_attention,
    losses,
    matrices,
    microsoft,
    ml,
    ngrams,
    normalise,
    pictures,
    products,
    quantise,
    quantised,
    quantised_microsoft,
    random,
    recurrent,
    reduce,
    resize,
    sampling,
    select,
    sequences,
    shapes,
    signal,
    statistics,
    strings,
    training,
    transformer,
    windows,
)
from ._call import ADAPTERS as ADAPTERS
from ._call import MAX_FOLDED as MAX_FOLDED
from ._call import OBJECTS as OBJECTS
from ._call import Call as Call
from ._call import adapter as adapter
