"""WGSL as a dialect of kernel text, which takes its declarations from it: only the words are WGSL's own."""

from __future__ import annotations

from typing import Final

from singe.extension import float16
from singe_gpu.dialect import PACKED_DOTS, SHADER_F16, SUBGROUP_MATRIX, SUBGROUPS, Dialect, Matrices
from singe_gpu.rates import MATRIX_RATES, RATES

from .elements import ELEMENTS, element_size
from .text import bindings, join
from .wgsl import SPELLINGS, TYPES, VECTOR_WORDS, literal

WGSL: Final = Dialect(
    name="wgsl",
    types=TYPES,
    elements=ELEMENTS,
    element_size=element_size,
    words=SPELLINGS,
    vector_words=VECTOR_WORDS,
    literal=literal,
    features=(SUBGROUP_MATRIX, PACKED_DOTS, SHADER_F16, SUBGROUPS),
    rates=RATES,
    matrices=Matrices({float16: "f16"}, {float16: MATRIX_RATES}),
    max_ports=8,  # WebGPU's default maxStorageBuffersPerShaderStage
    join=join,
    bindings=bindings,
)
