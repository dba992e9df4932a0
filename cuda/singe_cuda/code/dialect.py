"""CUDA C++ as a dialect of kernel text."""

from __future__ import annotations

from typing import Final

from singe.extension import DType, bfloat16, float16, float32
from singe_gpu.dialect import PACKED_DOTS, SHADER_F16, SUBGROUP_MATRIX, SUBGROUPS, Dialect, Matrices
from singe_gpu.rates import AHEAD_RATES, SINGLE_RATES

from .elements import ELEMENTS
from .text import bindings, join
from .words import SPELLINGS, TYPES, VECTOR_CASTS, VECTOR_WORDS, literal

WORKGROUP_BYTES: Final = 96 << 10
"""Of workgroup memory for matrices: consumers' cards have 99 KiB."""


def element_size(dtype: DType) -> int:
    return dtype.size


CUDA: Final = Dialect(
    name="cuda",
    types=TYPES,
    elements=ELEMENTS,
    element_size=element_size,
    words=SPELLINGS,
    vector_words=VECTOR_WORDS,
    vector_casts=VECTOR_CASTS,
    literal=literal,
    features=(SUBGROUP_MATRIX, PACKED_DOTS, SHADER_F16, SUBGROUPS),
    matrices=Matrices(
        {float16: "f16", bfloat16: "bf16", float32: "f32"},
        {float16: AHEAD_RATES, bfloat16: AHEAD_RATES, float32: SINGLE_RATES},
        WORKGROUP_BYTES,
        ahead=True,
        barrier="subgroupBarrier();",
    ),
    max_ports=64,  # of the 4,096 bytes of a kernel's parameters, each takes 16
    join=join,
    bindings=bindings,
)
