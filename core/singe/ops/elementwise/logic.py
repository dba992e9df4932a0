"""Comparison, logic and choice."""

from __future__ import annotations

import math
from typing import Final

from ...dtypes import ALL, NUMBERS, bool_
from ...ir import scalar
from ...ir.scalar import Expr, const, select
from ..kinds import WHOLE_RESULT, Elementwise, register

LOGIC: Final = (bool_,)
PLAIN: Final = (bool_, *NUMBERS)


def _isinf(x: Expr, *, detect_negative: bool = True, detect_positive: bool = True) -> Expr:
    if not x.dtype.is_float:
        return const(False, bool_)
    positive, negative = scalar.eq(x, math.inf), scalar.eq(x, -math.inf)
    return (positive & const(detect_positive, bool_)) | (negative & const(detect_negative, bool_))


register(
    Elementwise(name="equal", doc="x == other",
        promote="same", numpy="equal", operator="eq", also=("eq",),
        body=scalar.eq, onnx="Equal", result_type="bool", dtypes=ALL,
        no_gradient=WHOLE_RESULT),
    Elementwise(name="less", doc="x < other",
        promote="same", numpy="less", operator="lt", also=("lt",),
        body=scalar.lt, onnx="Less", result_type="bool", dtypes=NUMBERS,
        no_gradient=WHOLE_RESULT),
    Elementwise(name="less_equal", no_gradient=WHOLE_RESULT, doc="x <= other",
        promote="same", numpy="less_equal", operator="le", also=("le",),
        body=scalar.le, onnx="LessOrEqual", result_type="bool", dtypes=NUMBERS),
    Elementwise(name="greater", no_gradient=WHOLE_RESULT, doc="x > other",
        promote="same", numpy="greater", operator="gt", also=("gt",),
        body=lambda a, b: a > b, onnx="Greater", result_type="bool", dtypes=NUMBERS),
    Elementwise(name="greater_equal", no_gradient=WHOLE_RESULT, doc="x >= other",
        promote="same", numpy="greater_equal", operator="ge", also=("ge",),
        body=lambda a, b: a >= b, onnx="GreaterOrEqual", result_type="bool", dtypes=NUMBERS),
    Elementwise(name="isnan", no_gradient=WHOLE_RESULT, doc="whether it is NaN",
        promote="same", numpy="isnan", complex=True,
        body=lambda x: scalar.isnan(x) if x.dtype.is_float else const(False, bool_), onnx="IsNaN", result_type="bool", dtypes=PLAIN),
    Elementwise(name="isinf", no_gradient=WHOLE_RESULT, doc="whether it is infinite",
        promote="same", numpy="isinf", complex=True,
        body=_isinf, onnx="IsInf", result_type="bool", dtypes=PLAIN),
    Elementwise(name="isfinite", no_gradient=WHOLE_RESULT, doc="whether it is a number and not infinite",
        promote="same", numpy="isfinite", complex=True,
        body=lambda x: scalar.absolute(x) < math.inf if x.dtype.is_float else const(True, bool_), result_type="bool", dtypes=PLAIN),
    Elementwise(name="logical_and", doc="whether both are true",
        promote="bool", numpy="logical_and", complex=True,
        body=scalar.and_, onnx="And", dtypes=LOGIC),
    Elementwise(name="logical_or", doc="whether either is true",
        promote="bool", numpy="logical_or", complex=True,
        body=scalar.or_, onnx="Or", dtypes=LOGIC),
    Elementwise(name="logical_xor", doc="whether just one is true",
        promote="bool", numpy="logical_xor", complex=True,
        body=scalar.xor, onnx="Xor", dtypes=LOGIC),
    Elementwise(name="logical_not", doc="whether it is false",
        promote="bool", numpy="logical_not", complex=True,
        body=scalar.not_, onnx="Not", dtypes=LOGIC),
    Elementwise(name="where", doc="of two tensors: the first where the condition is true, the second elsewhere",
        body=select, argument_types=("bool", "T", "T"), onnx="Where", dtypes=ALL),
)  # fmt: skip
