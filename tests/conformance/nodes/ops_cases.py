"""Models of one node for the table of ops: of ops that have no cases among ONNX's own, from the tests here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import test_microsoft
import test_microsoft_layers
import test_onnx_ml
import test_onnx_sampling
import test_quantised_ops
from test_microsoft import Case


def models() -> Iterator[tuple[bytes, list[Any]]]:
    """Each with its inputs."""
    cases = [
        *test_microsoft.CASES.values(),
        *(form for form, _ in test_microsoft.FORMS.values()),
        *test_microsoft_layers.CASES.values(),
        *(case for case, _ in test_microsoft_layers.FORMULAS.values()),
        *_random(),
        Case("GlobalLpPool", (np.ones((1, 2, 3, 4), np.float32),), domain=""),
        Case("SimplifiedLayerNormalization", (np.ones((2, 3), np.float32), np.ones(3, np.float32))),
        Case(
            "QLinearReduceMean",
            (np.ones((2, 3), np.uint8), *test_quantised_ops.X, *test_quantised_ops.Y),
            {"axes": [1]},
        ),
    ]
    for case in cases:
        yield case.model().SerializeToString(), list(case.given().values())
    for sampled in test_onnx_sampling.CASES:
        yield sampled.model().SerializeToString(), list(sampled.inputs)
    for quantised in test_quantised_ops.CASES.values():
        free = [x for i, x in enumerate(quantised.inputs) if x is not None and i not in quantised.constant]
        yield test_quantised_ops.model_of(quantised).SerializeToString(), free
    for op, xs, attributes in test_onnx_ml.NODES:
        yield _fixed(test_onnx_ml.model(op, xs, **attributes), xs)
    for op, outputs, attributes in _learned():
        yield _fixed(test_onnx_ml.model(op, [test_onnx_ml.X], outputs, **attributes), [test_onnx_ml.X])


def _fixed(data: bytes, xs: list[np.ndarray]) -> tuple[bytes, list[Any]]:
    """The model with the inputs' lengths as numbers, and these."""
    model = onnx.load_from_string(data)
    for given, x in zip(model.graph.input, xs, strict=True):
        for dim, length in zip(given.type.tensor_type.shape.dim, x.shape, strict=True):
            dim.dim_value = length
    return model.SerializeToString(), xs


def _random() -> Iterator[Case]:
    shares = np.log(np.array([[0.25, 0.75]], np.float32))
    yield Case("Multinomial", (shares,), {"sample_size": 3}, domain="", kinds={0: 6})
    for op in ("RandomNormal", "RandomUniform"):
        yield Case(op, (), {"shape": [2, 3]}, domain="")
        yield Case(f"{op}Like", (shares,), domain="")


def _learned() -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Classifiers and regressors: the op, the number of its outputs, and its attributes."""
    rng = np.random.default_rng(1)
    labels = {"classlabels_ints": [4, 2, 9]}
    yield "LinearClassifier", 2, {"coefficients": test_onnx_ml.COEFFICIENTS, "intercepts": [0.5, 1.0, 2.0], **labels}
    yield "TreeEnsembleRegressor", 1, {"n_targets": 1, **test_onnx_ml.forest(rng, 3, 3, "target")}
    trees = test_onnx_ml.forest(rng, 3, 3, "class", targets=3)
    yield "TreeEnsembleClassifier", 2, {"classlabels_int64s": [5, 3, 9], **trees}
    kernel: dict[str, Any] = {"kernel_type": "RBF", "kernel_params": test_onnx_ml.KERNELS["RBF"]}
    vectors = test_onnx_ml.vectors
    yield "SVMRegressor", 1, {"n_supports": 5, "rho": [0.25], **kernel, **vectors(5, 1)}
    three = {"vectors_per_class": [2] * 3, "rho": [0.1, 0.2, 0.3], **kernel, **vectors(6, 2)}
    yield "SVMClassifier", 2, {**labels, **three}
