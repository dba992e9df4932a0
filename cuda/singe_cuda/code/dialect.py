"""CUDA C++ as a dialect of kernel text, and HIP, which is the same but for what stands before a text."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from singe.extension import DType, bfloat16, float16, float32
from singe_gpu.dialect import (
    INTEGER_MATRIX,
    PACKED_DOTS,
    PACKED_MATRIX,
    SHADER_F16,
    SUBGROUP_MATRIX,
    SUBGROUPS,
    WIDE_MATRIX,
    Dialect,
    Matrices,
)
from singe_gpu.rates import RATES

from .elements import ELEMENTS
from .rates import HALF_RATES, INTEGER_RATES, PACKED_RATES, SINGLE_RATES
from .text import bindings, join
from .words import SPELLINGS, TYPES, VECTOR_WORDS, literal

WORKGROUP_BYTES: Final = 96 << 10
"""Of workgroup memory for matrices: consumers' cards have 99 KiB."""
WIDE_BYTES: Final = 227 << 10
"""Of that on the cards that have WIDE_MATRIX."""


def element_size(dtype: DType) -> int:
    return dtype.size


CUDA: Final = Dialect(
    name="cuda",
    types=TYPES,
    elements=ELEMENTS,
    element_size=element_size,
    words=SPELLINGS,
    vector_words=VECTOR_WORDS,
    literal=literal,
    features=(WIDE_MATRIX, SUBGROUP_MATRIX, INTEGER_MATRIX, PACKED_MATRIX, PACKED_DOTS, SHADER_F16, SUBGROUPS),
    rates=RATES,
    matrices=Matrices(
        {float16: "f16", bfloat16: "bf16", float32: "f32"},
        {float16: HALF_RATES, bfloat16: HALF_RATES, float32: SINGLE_RATES},
        WORKGROUP_BYTES,
        WIDE_BYTES,
        ahead=True,
        barrier="subgroupBarrier();",
        integers=INTEGER_RATES,
        packed=PACKED_RATES,
    ),
    max_ports=64,  # of the 4,096 bytes of a kernel's parameters, each takes 16
    join=join,
    bindings=bindings,
)
TF32: Final = replace(CUDA, matrices=replace(CUDA.matrices, types={**CUDA.matrices.types, float32: "tf32"}))
"""CUDA where the operands of products on matrices may be rounded to the 11 binary digits of TF32."""
HIP: Final = replace(CUDA, name="hip", features=(SUBGROUPS,))
"""CUDA's text as HIP takes it, for AMD's cards: without matrices and products of packed bytes, which it has under other names."""
