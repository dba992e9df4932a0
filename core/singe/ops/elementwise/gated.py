"""Activations of transformers: GELU by tanh, gated units."""

from __future__ import annotations

import math
from typing import Any

from ...dtypes import FLOATS
from ...ir.scalar import Expr, tanh
from ..kinds import Composite, Elementwise, register


def _gelu_tanh(x: Expr) -> Expr:
    return 0.5 * x * (1.0 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _swiglu(b: Any, gate: Any, x: Any, *, alpha: float = 1.0) -> Any:
    return b.mul(swish(b, gate, alpha), x)


def swish(b: Any, x: Any, alpha: float) -> Any:
    """x · sigmoid(alpha · x)."""
    return b.silu(x) if alpha == 1 else b.mul(x, b.sigmoid(b.mul(x, b.const(alpha, x.dtype))))


register(
    Elementwise(name="gelu_tanh", doc="the approximation of gelu by tanh", body=_gelu_tanh,
                dtypes=FLOATS, tolerance=32, floor=2e-6),
    Composite(name="swiglu", doc="x · sigmoid(alpha · x), times a second tensor", onnx="SwiGLU", lower=_swiglu,
              dtypes=FLOATS, tolerance=32),
)  # fmt: skip
