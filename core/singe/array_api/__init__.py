"""The Python array API standard, 2024.12, over Tensors: `import singe.array_api as xp`, or `x.__array_namespace__()`.

Names, parameters and meanings are the standard's. The functions run on the device where a row computes them, and in NumPy
on the host elsewhere (complex numbers, decompositions, Fourier transforms). Tensors do not change, so `x[key] = value` is
an error that says what to write instead.
"""

from __future__ import annotations

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any, Final

from ..dtypes import DTYPES
from ..tensors.functions.combining import broadcast_shapes as broadcast_shapes
from ..tensors.functions.creation import from_dlpack as from_dlpack
from . import _elementwise
from . import fft as fft
from . import linalg as linalg
from ._creation import arange as arange
from ._creation import asarray as asarray
from ._creation import empty as empty
from ._creation import empty_like as empty_like
from ._creation import eye as eye
from ._creation import full as full
from ._creation import full_like as full_like
from ._creation import linspace as linspace
from ._creation import meshgrid as meshgrid
from ._creation import ones as ones
from ._creation import ones_like as ones_like
from ._creation import tril as tril
from ._creation import triu as triu
from ._creation import zeros as zeros
from ._creation import zeros_like as zeros_like
from ._elementwise import clip as clip
from ._elementwise import not_equal as not_equal
from ._elementwise import positive as positive
from ._elementwise import pow as pow
from ._elementwise import sign as sign
from ._elementwise import square as square
from ._folds import all as all
from ._folds import any as any
from ._folds import argmax as argmax
from ._folds import argmin as argmin
from ._folds import argsort as argsort
from ._folds import count_nonzero as count_nonzero
from ._folds import cumulative_prod as cumulative_prod
from ._folds import cumulative_sum as cumulative_sum
from ._folds import diff as diff
from ._folds import max as max
from ._folds import mean as mean
from ._folds import min as min
from ._folds import nonzero as nonzero
from ._folds import prod as prod
from ._folds import searchsorted as searchsorted
from ._folds import sort as sort
from ._folds import std as std
from ._folds import sum as sum
from ._folds import unique_all as unique_all
from ._folds import unique_counts as unique_counts
from ._folds import unique_inverse as unique_inverse
from ._folds import unique_values as unique_values
from ._folds import var as var
from ._folds import where as where
from ._info import __array_namespace_info__ as __array_namespace_info__
from ._manipulation import broadcast_arrays as broadcast_arrays
from ._manipulation import broadcast_to as broadcast_to
from ._manipulation import concat as concat
from ._manipulation import expand_dims as expand_dims
from ._manipulation import flip as flip
from ._manipulation import moveaxis as moveaxis
from ._manipulation import permute_dims as permute_dims
from ._manipulation import repeat as repeat
from ._manipulation import reshape as reshape
from ._manipulation import roll as roll
from ._manipulation import squeeze as squeeze
from ._manipulation import stack as stack
from ._manipulation import take as take
from ._manipulation import take_along_axis as take_along_axis
from ._manipulation import tile as tile
from ._manipulation import unstack as unstack
from ._types import astype as astype
from ._types import can_cast as can_cast
from ._types import finfo as finfo
from ._types import iinfo as iinfo
from ._types import isdtype as isdtype
from ._types import result_type as result_type
from .linalg import matmul as matmul
from .linalg import matrix_transpose as matrix_transpose
from .linalg import tensordot as tensordot
from .linalg import vecdot as vecdot

__array_api_version__: Final = "2024.12"
newaxis: Final = None
bool = DTYPES["bool"]
int8, int16, int32, int64 = (DTYPES[f"int{n}"] for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DTYPES[f"uint{n}"] for n in (8, 16, 32, 64))
float32, float64 = DTYPES["float32"], DTYPES["float64"]
complex64, complex128 = DTYPES["complex64"], DTYPES["complex128"]

globals().update(_elementwise.ROW_FUNCTIONS)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"the array API standard 2024.12 has no {name!r}", name=name)
