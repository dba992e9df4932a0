"""Vectors of features: Scaler, Normalizer, Imputer, Binarizer, FeatureVectorizer, ArrayFeatureExtractor."""

from __future__ import annotations

import math

import numpy as np

from ....dtypes import float32, int32, int64
from ....graph import Node
from ....shapes import product
from .._call import Call, adapter
from ..elementwise.basic import cast
from ._scores import rows


def _per_feature(call: Call, name: str, x: Node) -> Node:
    """An attribute with a number for each feature, or for all."""
    given = call.items(name, float if x.dtype.is_float else int) or ()
    if len(given) != 1:
        last = call.number(x.shape[-1] if x.shape else 1, "the number of features")
        if len(given) != last:
            raise call.fail(f"attribute {name!r} has {len(given)} numbers for {last} features")
    return call.b.const(np.array(given, x.dtype.numpy), x.dtype)


@adapter("ai.onnx.ml.Scaler")
def _scaler(call: Call) -> Node:
    x = cast(call, call.x(), float32)
    if "offset" in call.attributes:
        x = call.b.sub(x, _per_feature(call, "offset", x))
    return call.b.mul(x, _per_feature(call, "scale", x)) if "scale" in call.attributes else x


@adapter("ai.onnx.ml.Normalizer")
def _normalizer(call: Call) -> Node:
    """Each row divided by its norm; a row whose norm is 0 stays."""
    b, x, norm = call.b, cast(call, call.x(), float32), call.attr("norm", "MAX")
    axes = (len(x.shape) - 1,)
    if norm == "MAX":
        size = b.reduce_max(x, axes=axes)
    elif norm == "L1":
        size = b.reduce_sum(b.abs(x), axes=axes)
    elif norm == "L2":
        size = b.sqrt(b.reduce_sum(b.mul(x, x), axes=axes))
    else:
        raise call.fail(f"norm is {norm!r}; expected 'MAX', 'L1' or 'L2'")
    return b.div(x, b.where(b.equal(size, b.const(0.0, float32)), b.const(1.0, float32), size))


@adapter("ai.onnx.ml.Imputer")
def _imputer(call: Call) -> Node:
    """Features in place of those that are missing: of a given value, or NaN."""
    b, x = call.b, call.x()
    if x.dtype.is_float:
        absent = call.attr("replaced_value_float", 0.0)
        missing = b.isnan(x) if math.isnan(absent) else b.equal(x, b.const(absent, x.dtype))
    else:
        missing = b.equal(x, b.const(call.attr("replaced_value_int64", 0), x.dtype))
    name = "imputed_value_floats" if x.dtype.is_float else "imputed_value_int64s"
    return b.where(missing, _per_feature(call, name, x), x)


@adapter("ai.onnx.ml.Binarizer")
def _binarizer(call: Call) -> Node:
    x = call.x()
    return call.b.cast(call.b.greater(x, call.b.const(call.attr("threshold", 0.0), x.dtype)), to=x.dtype)


@adapter("ai.onnx.ml.FeatureVectorizer")
def _feature_vectorizer(call: Call) -> Node:
    parts = [rows(call, cast(call, x, float32)) for x in call.all()]
    return parts[0] if len(parts) == 1 else call.b.concat(*parts, axis=1)


@adapter("ai.onnx.ml.ArrayFeatureExtractor")
def _array_feature_extractor(call: Call) -> Node:
    b, x, index = call.b, call.x(), call.x(1)
    if len(x.shape) == 1:
        x = b.reshape(x, shape=(1, x.shape[0]))
    index = index if index.dtype in (int32, int64) else b.cast(index, to=int64)
    return b.gather(x, b.reshape(index, shape=(product(index.shape),)), axis=len(x.shape) - 1)
