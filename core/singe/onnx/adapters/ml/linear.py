"""Linear models and support vectors: LinearClassifier, LinearRegressor, SVMClassifier, SVMRegressor."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ....dtypes import float32, int32, int64
from ....graph import Node
from ....ops.control import repeated
from ....shapes import Dim
from .._call import Call, adapter
from ..elementwise.basic import cast
from ..movement.shapes import part
from ._scores import chosen, labels, largest, matrix, table, transformed

TURNS = 100
"""The most turns for probabilities of more than two classes."""


def _features(call: Call) -> tuple[Node, int]:
    """The features as float32, and their number."""
    x = cast(call, matrix(call, call.x()), float32)
    return x, call.number(x.shape[1], "the number of features")


def _weights(call: Call, name: str, width: int) -> np.ndarray:
    """An attribute as a matrix with a row for each target."""
    given = np.array(call.items(name, float) or (), np.float32)
    if width == 0 or len(given) == 0 or len(given) % width:
        raise call.fail(f"attribute {name!r} has {len(given)} numbers; expected a multiple of {width}")
    return given.reshape(-1, width)


def _linear(call: Call) -> Node:
    """Products with the rows of coefficients, and intercepts."""
    x, width = _features(call)
    weights = _weights(call, "coefficients", width)
    y = call.b.matmul(x, call.b.const(np.ascontiguousarray(weights.T)))
    given = call.items("intercepts", float)
    if given and len(given) != len(weights):
        raise call.fail(f"{len(given)} intercepts for {len(weights)} targets")
    return call.b.add(y, table(call, given, float32)) if given else y


@adapter("ai.onnx.ml.LinearRegressor")
def _regressor(call: Call) -> Node:
    y = _linear(call)
    post = call.attr("post_transform", "NONE")
    return transformed(call, y, "NONE" if y.shape[1] == 1 and post != "PROBIT" else post)


def _check_labels(call: Call, names: Node, allowed: tuple[Dim, ...]) -> None:
    if names.shape[0] not in allowed:
        raise call.fail(f"{names.shape[0]} labels, expected {' or '.join(map(str, allowed))}")


@adapter("ai.onnx.ml.LinearClassifier")
def _classifier(call: Call) -> list[Node]:
    b, scores = call.b, _linear(call)
    names = labels(call, numbers="classlabels_ints")
    post = call.attr("post_transform", "NONE")
    if scores.shape[1] != 1:
        names = names or b.const(np.arange(call.number(scores.shape[1], "the number of classes")))
        _check_labels(call, names, (scores.shape[1],))
        return [chosen(call, names, largest(call, scores)), transformed(call, scores, post)]
    names = names or b.const(np.arange(2))
    _check_labels(call, names, (1, 2))
    holds = b.reshape(b.greater(scores, b.const(0.0, float32)), shape=(scores.shape[0],))
    scores = transformed(call, scores, post if post in ("LOGISTIC", "PROBIT") else "NONE")
    if names.shape[0] == 2:
        scores = b.concat(b.sub(b.const(1.0, float32), scores), scores, axis=1)
    return [chosen(call, names, b.cast(holds, to=int32)), scores]


# --- support vectors -------------------------------------------------------------------------------------------------


def _kernel(call: Call, x: Node, vectors: np.ndarray) -> Node:
    """The kernel of each example and each support vector."""
    b, name = call.b, call.attr("kernel_type", "LINEAR")
    gamma, coef, degree = [*(call.items("kernel_params", float) or ()), 0.0, 0.0, 0.0][:3]

    def number(value: float) -> Node:
        return b.const(value, float32)

    dots = b.matmul(x, b.const(np.ascontiguousarray(vectors.T)))
    if name == "LINEAR":
        return dots
    if name == "RBF":
        # The distances themselves: |x|² − 2 x·v + |v|² would cancel.
        count, width = vectors.shape
        apart = b.sub(b.reshape(x, shape=(x.shape[0], 1, width)), b.const(vectors.reshape(1, count, width)))
        squares = b.reshape(b.reduce_sum(b.mul(apart, apart), axes=(2,)), shape=(x.shape[0], count))
        return b.exp(b.mul(number(-gamma), squares))
    moved = b.add(b.mul(number(gamma), dots), number(coef))
    if name == "POLY":
        return b.pow(moved, number(degree))
    if name == "SIGMOID":
        return b.tanh(moved)
    raise call.fail(f"kernel_type is {name!r}; expected LINEAR, POLY, RBF or SIGMOID")


def _rho(call: Call, count: int) -> Node:
    given = call.items("rho", float) or ()
    if len(given) < count:
        raise call.fail(f"attribute 'rho' has {len(given)} numbers, expected {count}")
    return call.b.const(np.array(given[:count], np.float32))


@adapter("ai.onnx.ml.SVMRegressor")
def _svm_regressor(call: Call) -> Node:
    b, (x, width) = call.b, _features(call)
    count = call.attr("n_supports", 0)
    coefficients = np.array(call.items("coefficients", float) or (), np.float32)
    if count:
        vectors = _weights(call, "support_vectors", width)
        if not len(vectors) == len(coefficients) == count:
            raise call.fail(f"{len(vectors)} support vectors with {len(coefficients)} coefficients; expected {count}")
        x = _kernel(call, x, vectors)
    elif len(coefficients) != width:
        raise call.fail(f"{len(coefficients)} coefficients for {width} features")
    y = b.add(b.matmul(x, b.const(coefficients.reshape(-1, 1))), _rho(call, 1))
    if call.attr("one_class", 0):
        return b.where(b.greater(y, b.const(0.0, float32)), b.const(1.0, float32), b.const(-1.0, float32))
    return transformed(call, y, "PROBIT" if call.attr("post_transform", "NONE") == "PROBIT" else "NONE")


def _pairs(call: Call, x: Node, width: int, sizes: tuple[int, ...]) -> Node:
    """The decision between each two classes, positive for the first: sums over the support vectors of both."""
    vectors, classes = _weights(call, "support_vectors", width), len(sizes)
    coefficients = _weights(call, "coefficients", len(vectors))
    if sum(sizes) != len(vectors) or len(coefficients) != classes - 1 or min(sizes) < 0:
        raise call.fail(
            f"{len(vectors)} support vectors of {classes} classes with {len(coefficients)} rows of coefficients"
        )
    ends = np.cumsum((0, *sizes))
    pairs = list(combinations(range(classes), 2))
    weights = np.zeros((len(vectors), len(pairs)), np.float32)
    for k, (i, j) in enumerate(pairs):
        weights[ends[i] : ends[i + 1], k] = coefficients[j - 1, ends[i] : ends[i + 1]]
        weights[ends[j] : ends[j + 1], k] = coefficients[i, ends[j] : ends[j + 1]]
    return call.b.add(call.b.matmul(_kernel(call, x, vectors), call.b.const(weights)), _rho(call, len(pairs)))


def _votes(call: Call, decisions: Node, classes: int) -> Node:
    """For how many other classes the decision is for this one."""
    pairs = list(combinations(range(classes), 2))
    first, second = np.zeros((2, len(pairs), classes), np.float32)
    for k, (i, j) in enumerate(pairs):
        first[k, i] = second[k, j] = 1
    b = call.b
    won = b.cast(b.greater(decisions, b.const(0.0, float32)), to=float32)
    lost = b.sub(b.const(1.0, float32), won)
    return b.add(b.matmul(won, b.const(first)), b.matmul(lost, b.const(second)))


def _probabilities(call: Call, decisions: Node, classes: int) -> Node:
    """Probabilities of the classes from those of each pair, by the method of libsvm (Wu, Lin and Weng)."""
    b, pairs = call.b, list(combinations(range(classes), 2))
    given = [np.array(call.items(name, float) or (), np.float32) for name in ("prob_a", "prob_b")]
    if any(len(values) != len(pairs) for values in given):
        raise call.fail(f"{len(given[0])} and {len(given[1])} numbers in prob_a and prob_b; expected {len(pairs)}")

    def number(value: float) -> Node:
        return b.const(value, float32)

    a, c = map(b.const, given)
    wins = b.sub(number(1.0), b.sigmoid(b.add(b.mul(decisions, a), c)))
    wins = b.minimum(b.maximum(wins, number(1e-7)), number(1 - 1e-7))
    rows = decisions.shape[0]
    # r[i, j] is the probability of class i among i and j; q has −r[j, i] · r[i, j], and sums of squares on its diagonal.
    order = np.zeros((classes, classes), np.int64)
    for k, (i, j) in enumerate(pairs):
        order[i, j], order[j, i] = k, len(pairs) + k
    both = b.concat(wins, b.sub(number(1.0), wins), axis=1)
    r = b.reshape(b.gather(both, b.const(order.reshape(-1)), axis=1), shape=(rows, classes, classes))
    r = b.mul(r, b.const((1 - np.eye(classes)).astype(np.float32)))
    back = b.transpose(r, perm=(0, 2, 1))
    sums = b.reshape(b.reduce_sum(b.mul(r, r), axes=(1,)), shape=(rows, classes, 1))
    eye = b.const(np.eye(classes, dtype=np.float32))
    q = b.sub(b.mul(eye, sums), b.mul(r, back))

    def turn(carried: list[Node], own: list[Node]) -> list[Node]:
        (p,), (q,) = carried, own

        def dot(x: Node, y: Node) -> Node:
            return b.reduce_sum(b.mul(x, y), axes=(1,))

        def column(x: Node, k: int) -> Node:
            return part(b, x, 1, k, 1)

        square = b.reshape(q, shape=(rows, classes * classes))
        qp = b.reshape(b.matmul(q, b.reshape(p, shape=(rows, classes, 1))), shape=(rows, classes))
        pqp, first = dot(p, qp), p
        error = b.reduce_max(b.abs(b.sub(qp, pqp)), axes=(1,))
        for k in range(classes):
            own_row = part(b, square, 1, k * classes, classes)
            least, now = column(own_row, k), column(qp, k)
            step = b.div(b.sub(pqp, now), least)
            whole = b.add(number(1.0), step)
            pqp = b.add(pqp, b.mul(step, b.add(b.mul(step, least), b.mul(number(2.0), now))))
            pqp = b.div(b.div(pqp, whole), whole)
            qp = b.div(b.add(qp, b.mul(step, own_row)), whole)
            unit = b.const(np.eye(classes, dtype=np.float32)[k : k + 1])
            p = b.div(b.add(p, b.mul(step, unit)), whole)
        return [b.where(b.less(error, number(0.005 / classes)), first, p)]

    start = b.expand(number(1.0 / classes), shape=(rows, classes))
    (p,) = repeated(b, TURNS, [start], [q], turn)
    return p


@adapter("ai.onnx.ml.SVMClassifier")
def _svm_classifier(call: Call) -> list[Node]:
    """Without support vectors it is linear. The class with the most decisions for it is chosen; with prob_a
    the scores are probabilities, otherwise decisions."""
    b, (x, width) = call.b, _features(call)
    names, sizes = labels(call, numbers="classlabels_ints"), call.items("vectors_per_class", int) or ()
    post = call.attr("post_transform", "NONE")
    if not sizes:
        weights = _weights(call, "coefficients", width)
        scores = b.add(b.matmul(x, b.const(np.ascontiguousarray(weights.T))), _rho(call, 1))
        place = largest(call, scores)
    else:
        decisions = _pairs(call, x, width, sizes)
        place = largest(call, _votes(call, decisions, len(sizes)))
        scores = _probabilities(call, decisions, len(sizes)) if call.items("prob_a", float) else decisions
    names = names or b.const(np.arange(max(2, len(sizes))))
    _check_labels(call, names, (max(2, len(sizes) or call.number(scores.shape[1], "the number of classes")),))
    if scores.shape[1] == 1:
        single = b.reshape(scores, shape=(x.shape[0],))
        positive = b.greater(single, b.const(0.0, float32))
        place = b.cast(positive, to=int64) if not sizes else place
        scores = b.concat(b.neg(scores), scores, axis=1)
    return [chosen(call, names, place), transformed(call, scores, post)]
