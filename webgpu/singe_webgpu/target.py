"""The target "wgsl": kernels as WGSL, and the shaders that users wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from singe.extension import DType, Printed, Shape
from singe_gpu.kernels.products.cuts import Choose
from singe_gpu.target import GpuTarget

from .code.dialect import WGSL
from .code.user_shaders import print_own


class WgslTarget(GpuTarget):
    """The code generator for WebGPU."""

    confined = "WebGPU validates shaders, and keeps them within their buffers"

    def __init__(self, choose: Choose | None = None, tuned_for: str | None = None) -> None:
        super().__init__(WGSL, choose, tuned_for)

    def print_opaque(
        self,
        op: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[tuple[Shape, DType]],
        results: Sequence[tuple[Shape, DType]],
    ) -> Printed | None:
        printed = super().print_opaque(op, attrs, inputs, results)
        return printed or print_own(op, attrs, inputs, results, self.max_ports)
