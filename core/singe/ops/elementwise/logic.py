"""Comparison, logic and choice."""

from __future__ import annotations

import math
from typing import Final

from ...dtypes import ALL, FLOATS, NUMBERS, bool_
from ...ir import scalar
from ...ir.scalar import Expr, const, select
from ..kinds import WHOLE_RESULT, Elementwise, register

LOGIC: Final = (bool_,)


def _is_inf(x: Expr, *, detect_negative: bool = True, detect_positive: bool = True) -> Expr:
    positive, negative = scalar.eq(x, math.inf), scalar.eq(x, -math.inf)
    return (positive & const(detect_positive, bool_)) | (negative & const(detect_negative, bool_))


register(
    Elementwise(name="equal", doc="x == other", body=scalar.eq, onnx="Equal", result_type="bool", dtypes=ALL,
        no_gradient=WHOLE_RESULT),
    Elementwise(name="less", doc="x < other", body=scalar.lt, onnx="Less", result_type="bool", dtypes=NUMBERS,
        no_gradient=WHOLE_RESULT),
    Elementwise(name="less_equal", no_gradient=WHOLE_RESULT, doc="x <= other",
        body=scalar.le, onnx="LessOrEqual", result_type="bool", dtypes=NUMBERS),
    Elementwise(name="greater", no_gradient=WHOLE_RESULT, doc="x > other",
        body=lambda a, b: a > b, onnx="Greater", result_type="bool", dtypes=NUMBERS),
    Elementwise(name="greater_equal", no_gradient=WHOLE_RESULT, doc="x >= other",
        body=lambda a, b: a >= b, onnx="GreaterOrEqual", result_type="bool", dtypes=NUMBERS),
    Elementwise(name="is_nan", no_gradient=WHOLE_RESULT, doc="whether it is NaN",
        public=False, body=scalar.isnan, onnx="IsNaN", result_type="bool", dtypes=FLOATS),
    Elementwise(name="is_inf", no_gradient=WHOLE_RESULT, doc="whether it is infinite",
        public=False, body=_is_inf, onnx="IsInf", result_type="bool", dtypes=FLOATS),
    Elementwise(name="logical_and", doc="whether both are true",
        body=scalar.and_, onnx="And", dtypes=LOGIC),
    Elementwise(name="logical_or", doc="whether either is true",
        body=scalar.or_, onnx="Or", dtypes=LOGIC),
    Elementwise(name="logical_xor", doc="whether just one is true",
        body=scalar.xor, onnx="Xor", dtypes=LOGIC),
    Elementwise(name="logical_not", doc="whether it is false",
        body=scalar.not_, onnx="Not", dtypes=LOGIC),
    Elementwise(name="where", doc="of two tensors: the first where the condition is true, the second elsewhere",
        body=select, argument_types=("bool", "T", "T"), onnx="Where", dtypes=ALL),
)  # fmt: skip
