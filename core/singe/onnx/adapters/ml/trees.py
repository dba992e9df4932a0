"""Forests of decision trees: TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor.

All trees become one table of nodes for the row `tree_steps`, whatever their comparisons: those other than "at most" are
turned into it (with a negated feature, branches swapped, or more nodes). Then the leaves' weights are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ....dtypes import DType, float32, int32
from ....graph import Node
from ....late_dataclass import dataclass
from ....ops.control import repeated
from ....shapes import ceildiv
from .._call import Call, adapter
from ..elementwise.basic import cast
from ._scores import chosen, labels, largest, matrix, table, transformed

MODES: Final = {
    "BRANCH_LEQ": 0, "BRANCH_LT": 1, "BRANCH_GTE": 2, "BRANCH_GT": 3, "BRANCH_EQ": 4, "BRANCH_NEQ": 5, "BRANCH_MEMBER": 6,
}  # fmt: skip
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
MAX_STEPS_PER_KERNEL: Final = 12
"""The most steps in one kernel; deeper trees take several turns of a loop."""
MAX_STEPS: Final = 1000
"""The greatest depth of a tree, with the nodes that comparisons add."""
MAX_TABLE: Final = 1 << 26
"""The most weights of a forest, with those that are 0."""
AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass
class Forest:
    """Trees: of each node a mode, a feature, a threshold, the node where the comparison holds and where not (a leaf is
    −1 − its number), and whether NaN goes where it holds. roots: the first node of each tree, or a leaf. weights: of a
    leaf (by number) and a target, in `at` and `target`."""

    mode: np.ndarray
    feature: np.ndarray
    split: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    missing: np.ndarray
    roots: np.ndarray
    leaves: int
    at: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    members: Sequence[np.ndarray] = ()


def _integers(call: Call, name: str, count: int | None = None) -> np.ndarray:
    found = np.array(call.items(name, int) or (), np.int64)
    if count is not None and len(found) != count:
        raise call.fail(f"attribute {name!r} has {len(found)} elements, expected {count}")
    return found


def _tracks(call: Call, count: int) -> np.ndarray:
    """For each node whether NaN goes where the comparison holds; if the attribute is missing, nowhere."""
    name = "nodes_missing_value_tracks_true"
    return _integers(call, name, count) != 0 if call.items(name, int) else np.zeros(count, bool)


def _tensor(call: Call, name: str) -> np.ndarray:
    found = call.attributes.get(name)
    if not isinstance(found, np.ndarray) or found.ndim != 1 or found.dtype.kind not in "fiu":
        raise call.fail(f"attribute {name!r} is {type(found).__name__}; expected a tensor of numbers with one axis")
    return found


# --- how files say it ------------------------------------------------------------------------------------------------


def _by_numbers(call: Call, weights: str, kind: DType) -> Forest:
    """The form of TreeEnsembleClassifier and TreeEnsembleRegressor: nodes by the numbers of their tree and in it."""

    def floats(name: str) -> np.ndarray:
        exact = f"{name}_as_tensor"
        return np.asarray(
            _tensor(call, exact) if exact in call.attributes else call.items(name, float) or (), kind.numpy
        )

    trees = _integers(call, "nodes_treeids")
    count = len(trees)
    ids = _integers(call, "nodes_nodeids", count)
    names = call.items("nodes_modes", str) or ()
    splits = floats("nodes_values")
    unknown = {*names} - {*MODES, "LEAF"}
    if unknown or not count == len(ids) == len(names) == len(splits) or "BRANCH_MEMBER" in names:
        raise call.fail(
            f"{count} nodes with {len(ids)} numbers, {len(names)} modes ({', '.join(unknown)}), {len(splits)} values"
        )
    place = _places(trees, ids)
    if place is None:
        raise call.fail("two nodes have the same numbers")
    mode = np.array([MODES.get(name, -1) for name in names], np.int64)
    leaf: np.ndarray = mode < 0
    own = np.where(leaf, -np.cumsum(leaf), np.cumsum(~leaf) - 1)  # leaf k is −1 − k

    def below(name: str) -> np.ndarray:
        of, given = trees[~leaf], _integers(call, name, count)[~leaf]
        found = place(of, given)
        if (found < 0).any():
            k = int(np.argmin(found))
            raise call.fail(f"attribute {name!r} names the node {int(of[k]), int(given[k])}, which is not there")
        return own[found]

    yes, no = below("nodes_truenodeids"), below("nodes_falsenodeids")
    named = np.zeros(count, bool)
    back = np.empty(count, np.int64)
    back[own] = np.arange(count)  # negative numbers count from the end, as leaves do
    named[back[yes]] = named[back[no]] = True
    # A tree begins with the first of its nodes that no other names.
    _, first = np.unique(trees[~named], return_index=True)
    roots = np.flatnonzero(~named)[first]
    if len(roots) < len(np.unique(trees)):
        raise call.fail("a tree has no first node: each of its nodes is below another")
    of = _integers(call, f"{weights}_treeids")
    where = place(of, _integers(call, f"{weights}_nodeids", len(of)))
    if (where < 0).any() or not leaf[where].all():
        raise call.fail(f"the attributes {weights}_… name a node that is no leaf")
    weight = floats(f"{weights}_weights")
    if len(weight) != len(where):
        raise call.fail(f"attribute '{weights}_weights' has {len(weight)} elements, expected {len(where)}")
    at = -1 - own[where]
    return Forest(
        mode[~leaf],
        _integers(call, "nodes_featureids", count)[~leaf], splits[~leaf], yes, no,
        _tracks(call, count)[~leaf],
        own[roots], int(leaf.sum()), at, _integers(call, f"{weights}_ids", len(at)), weight,
    )  # fmt: skip


def _places(trees: np.ndarray, ids: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """What finds nodes by the numbers of their tree and in it: their places, −1 where there is none. None if two nodes have the same."""
    columns = [np.unique(x, return_inverse=True) for x in (trees, ids)]
    keys = columns[0][1] * len(columns[1][0]) + columns[1][1]
    order = np.argsort(keys)
    ordered = keys[order]
    if (ordered[1:] == ordered[:-1]).any():
        return None

    def find(*numbers: np.ndarray) -> np.ndarray:
        if not len(order):
            return np.full(len(numbers[0]), -1)
        ranks = [
            np.minimum(np.searchsorted(known, x), len(known) - 1)
            for (known, _), x in zip(columns, numbers, strict=True)
        ]
        here = [known[rank] == x for (known, _), rank, x in zip(columns, ranks, numbers, strict=True)]
        key = ranks[0] * len(columns[1][0]) + ranks[1]
        at = np.minimum(np.searchsorted(ordered, key), len(order) - 1)
        return np.where(here[0] & here[1] & (ordered[at] == key), order[at], -1)

    return find


def _by_place(call: Call, kind: DType) -> Forest:
    """The form of TreeEnsemble: nodes and leaves by their places in separate lists."""
    mode = _tensor(call, "nodes_modes").astype(np.int64)
    count = len(mode)
    weight = _tensor(call, "leaf_weights").astype(kind.numpy)
    target = _integers(call, "leaf_targetids", len(weight))

    def below(name: str, flags: str) -> np.ndarray:
        places, end = _integers(call, name, count), _integers(call, flags, count) != 0
        if ((places < 0) | (places >= np.where(end, len(weight), count))).any():
            raise call.fail(f"attribute {name!r} names a node that is not there")
        return np.where(end, -1 - places, places)

    roots = _integers(call, "tree_roots")
    if ((roots < 0) | (roots >= count)).any() or ((mode < 0) | (mode > MEMBER)).any():
        raise call.fail(f"tree_roots or nodes_modes has a number that is none of {count} nodes, or no mode")
    splits = _tensor(call, "nodes_splits").astype(kind.numpy)
    if len(splits) != count:
        raise call.fail(f"attribute 'nodes_splits' has {len(splits)} elements, expected {count}")
    members: list[np.ndarray] = []
    if (mode == MEMBER).any():
        values = _tensor(call, "membership_values").astype(kind.numpy)
        members = [part[~np.isnan(part)] for part in np.split(values, np.flatnonzero(np.isnan(values)))]
        if np.isnan(values[-1:]).any():
            members.pop()
        if len(members) != (mode == MEMBER).sum():
            raise call.fail(
                f"{(mode == MEMBER).sum()} nodes test membership; membership_values has {len(members)} sets"
            )
    return Forest(
        mode, _integers(call, "nodes_featureids", count), splits, below("nodes_truenodeids", "nodes_trueleafs"),
        below("nodes_falsenodeids", "nodes_falseleafs"),
        _tracks(call, count), roots, len(weight), np.arange(len(weight)), target,
        weight, members,
    )  # fmt: skip


# --- one kind of comparison ------------------------------------------------------------------------------------------


def _only_at_most(f: Forest, width: int) -> None:
    """Have the comparison "at most" alone, in place. Feature k + width is the negated feature k."""
    extra: list[tuple[int, float, int, int, bool]] = []
    count = len(f.mode)

    def more(feature: int, split: float, yes: int, no: int, missing: bool) -> int:
        extra.append((feature, split, yes, no, missing))
        return count + len(extra) - 1

    def equals(feature: int, split: float, yes: int, no: int, missing: bool) -> tuple[int, float, int, int, bool]:
        return feature, split, more(feature + width, -split, yes, no, missing), no, missing

    def one_of(
        feature: int, values: list[float], yes: int, no: int, missing: bool
    ) -> tuple[int, float, int, int, bool]:
        """A search among sorted values."""
        if len(values) == 1:
            return equals(feature, values[0], yes, no, missing)
        half = len(values) // 2
        low, high = (more(*one_of(feature, part, yes, no, missing)) for part in (values[:half], values[half:]))
        return feature, values[half - 1], low, high, False

    nodes = {
        EQ: np.flatnonzero(f.mode == EQ),
        NEQ: np.flatnonzero(f.mode == NEQ),
        MEMBER: np.flatnonzero(f.mode == MEMBER),
    }
    negated, swapped = (f.mode == LT) | (f.mode == GTE), (f.mode == LT) | (f.mode == GT)
    f.missing = f.missing ^ swapped
    f.yes, f.no = np.where(swapped, f.no, f.yes), np.where(swapped, f.yes, f.no)
    sets = iter(f.members)
    for mode, places in nodes.items():
        for k in places.tolist():
            feature, yes, no, missing = int(f.feature[k]), int(f.yes[k]), int(f.no[k]), bool(f.missing[k])
            if mode == MEMBER:
                values = np.unique(next(sets)).tolist()
                made = one_of(feature, values, yes, no, missing) if values else (feature, np.nan, yes, no, missing)
            else:
                yes, no, missing = (yes, no, missing) if mode == EQ else (no, yes, False)
                made = equals(feature, float(f.split[k]), yes, no, missing)
            f.feature[k], f.split[k], f.yes[k], f.no[k], f.missing[k] = made
    f.feature = f.feature + np.where(negated, width, 0)
    f.split = np.where(negated, -f.split, f.split)
    if extra:
        feature, split, yes, no, missing = (np.array(column) for column in zip(*extra, strict=True))
        f.feature, f.split = (
            np.concatenate([f.feature, feature]),
            np.concatenate([f.split, split]).astype(f.split.dtype),
        )
        f.yes, f.no, f.missing = (np.concatenate(pair) for pair in ((f.yes, yes), (f.no, no), (f.missing, missing)))


def _levels(call: Call, f: Forest) -> int:
    """The number of nodes on the longest way down."""
    here, depth = f.roots[f.roots >= 0], 0
    while len(here):
        depth += 1
        if depth > MAX_STEPS:
            raise call.fail(f"a tree is deeper than {MAX_STEPS} nodes, or a node is below itself")
        below = np.concatenate([f.yes[here], f.no[here]])
        below = np.sort(below[below >= 0])
        here = below[np.diff(below, prepend=-1) > 0]
    return depth


# --- what they compute -----------------------------------------------------------------------------------------------


def _walk(call: Call, f: Forest, x: Node, roots: np.ndarray) -> Node:
    """The leaf of each example in each tree, with these roots."""
    b, width = call.b, call.number(x.shape[1], "the number of features")
    if len(f.feature) and not 0 <= f.feature.min() <= f.feature.max() < width:
        raise call.fail(f"the trees have features up to {f.feature.max()}, the input has {width}")
    _only_at_most(f, width)
    if (f.feature >= width).any():
        x = b.concat(x, b.neg(x), axis=1)
    count = len(f.feature)
    depth = _levels(call, f)
    ends = count + np.arange(f.leaves)

    def nodes(places: np.ndarray) -> np.ndarray:
        return np.where(places < 0, count - 1 - places, places).astype(np.int32)

    rows = (
        np.concatenate([f.feature, np.zeros(f.leaves)]).astype(np.int32),
        np.concatenate([f.split, np.zeros(f.leaves)]).astype(x.dtype.numpy),
        np.concatenate([nodes(f.yes), ends]).astype(np.int32),
        np.concatenate([nodes(f.no), ends]).astype(np.int32),
        *([np.concatenate([f.missing, np.zeros(f.leaves, bool)])] if f.missing.any() else []),
    )
    constants = [b.const(row) for row in rows]
    at = b.const(nodes(roots).reshape(1, -1))
    turns = ceildiv(depth, MAX_STEPS_PER_KERNEL)
    if depth == 0:
        at = b.expand(at, shape=(x.shape[0], len(roots)))
    elif turns == 1:
        at = b.tree_steps(at, x, *constants, steps=depth)
    else:
        each = ceildiv(depth, turns)
        at = b.expand(at, shape=(x.shape[0], len(roots)))
        (at,) = repeated(
            b, turns, [at], [x, *constants], lambda carried, own: [b.tree_steps(carried[0], *own, steps=each)]
        )
    return b.sub(at, b.const(count, int32))


def _sums(call: Call, f: Forest, x: Node, targets: int, aggregate: str) -> Node:
    """The weights of the leaves that each example reaches, summed for each target."""
    b, count = call.b, len(f.roots)
    if len(f.at) and not 0 <= f.target.min() <= f.target.max() < targets:
        raise call.fail(f"the leaves have targets up to {f.target.max()}; expected less than {targets}")
    if aggregate not in AGGREGATES:
        raise call.fail(f"aggregate_function is {aggregate!r}; expected one of {', '.join(AGGREGATES)}")
    none = {"MIN": np.inf, "MAX": -np.inf}.get(aggregate, 0.0)
    fold = {"MIN": b.reduce_min, "MAX": b.reduce_max}.get(aggregate, b.reduce_sum)
    if count == 0 or targets == 0:
        return b.expand(b.const(0.0, x.dtype), shape=(x.shape[0], targets))
    own = _only_target(f) if targets > 1 and len(np.unique(f.at)) == len(f.at) else None
    if own is None:
        if f.leaves * targets > MAX_TABLE:
            raise call.fail(f"{f.leaves} leaves with {targets} targets; at most {MAX_TABLE} weights are supported")
        weights = np.full((f.leaves, targets), none, f.weight.dtype)
        if aggregate in ("MIN", "MAX"):
            weights[f.at, f.target] = f.weight
        else:
            np.add.at(weights, (f.at, f.target), f.weight)
        leaf = _walk(call, f, x, f.roots)
        if targets == 1:
            y = fold(b.gather(b.const(weights[:, 0]), leaf, axis=0), axes=(1,))
        else:
            y = fold(b.gather(b.const(weights), leaf, axis=0), axes=(1,))
            y = b.reshape(y, shape=(x.shape[0], targets))
    else:
        # Trees of one target stand together; one leaf without weight fills up targets with fewer trees.
        most = int(np.bincount(own, minlength=targets).max())
        roots = np.full((targets, most), -1 - f.leaves, np.int64)
        for k in range(targets):
            trees = f.roots[own == k]
            roots[k, : len(trees)] = trees
        weights = np.full(f.leaves + 1, none, f.weight.dtype)
        weights[f.at] = f.weight
        f.leaves += 1
        found = b.gather(b.const(weights), _walk(call, f, x, roots.reshape(-1)), axis=0)
        y = fold(b.reshape(found, shape=(x.shape[0], targets, most)), axes=(2,))
        y = b.reshape(y, shape=(x.shape[0], targets))
    if aggregate == "AVERAGE":
        y = b.div(y, b.const(count, x.dtype))
    if np.isinf(none):
        y = b.where(b.equal(y, b.const(none, x.dtype)), b.const(0.0, x.dtype), y)
    return y


def _only_target(f: Forest) -> np.ndarray | None:
    """The target of each tree, if all its leaves have the same one, and filling up the targets is little work."""
    target = np.full(f.leaves, -1, np.int64)
    target[f.at] = f.target
    # Each node gets the target of the leaves below it: −1 none, −2 several.
    found = np.full(max(1, len(f.yes)), -1, np.int64)

    def of(places: np.ndarray) -> np.ndarray:
        return np.where(places >= 0, found[np.maximum(places, 0)], target[-1 - np.minimum(places, -1)])

    for _ in range(MAX_STEPS):
        yes, no = of(f.yes), of(f.no)
        now = np.where(yes == no, yes, np.where(yes == -1, no, np.where(no == -1, yes, -2)))
        if (now == found[: len(now)]).all():
            break
        found[: len(now)] = now
    own = of(f.roots)
    if (own < 0).any():
        return None
    counts = np.bincount(own)
    return own if len(counts) * counts.max() <= 2 * len(own) + len(counts) else None


def _added(call: Call, y: Node, name: str = "base_values") -> Node:
    given: Any = call.attributes.get(f"{name}_as_tensor", call.items(name, float))
    if given is None or len(given) == 0:
        return y
    if len(given) not in (1, y.shape[1]):
        raise call.fail(f"{len(given)} {name} for {y.shape[1]} targets")
    return call.b.add(y, table(call, given, y.dtype))


@adapter("ai.onnx.ml.TreeEnsembleRegressor")
def _regressor(call: Call) -> Node:
    x = matrix(call, call.x())
    f = _by_numbers(call, "target", x.dtype)
    targets = call.attr("n_targets", 1)
    y = _added(call, _sums(call, f, x, targets, call.attr("aggregate_function", "SUM")))
    post = call.attr("post_transform", "NONE")
    if targets == 1 and post != "PROBIT":
        post = "NONE"  # as onnxruntime: the others are transforms of several scores
    return cast(call, transformed(call, y, post), float32)


@adapter("ai.onnx.ml.TreeEnsemble")
def _ensemble(call: Call) -> Node:
    given = call.x()
    x = matrix(call, given)
    f = _by_place(call, x.dtype)
    aggregate, post = call.attr("aggregate_function", 1), call.attr("post_transform", 0)
    if not 0 <= aggregate < len(AGGREGATES) or not 0 <= post < 5:
        raise call.fail(f"aggregate_function is {aggregate}, post_transform {post}; expected 0 to 3 and 0 to 4")
    y = _sums(call, f, x, call.attr("n_targets", 1), AGGREGATES[aggregate])
    y = transformed(call, y, ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[post])
    return cast(call, y, given.dtype)


@adapter("ai.onnx.ml.TreeEnsembleClassifier")
def _classifier(call: Call) -> list[Node]:
    """Of two classes, only one may have weights. If it is the first one of the list, its score is that of the second class,
    as onnxruntime has it, and the score of the other class is its complement."""
    b, x, names = call.b, matrix(call, call.x()), labels(call)
    if names is None:
        raise call.fail("there are no class labels")
    f = _by_numbers(call, "class", x.dtype)
    classes, only = call.number(names.shape[0], "the number of classes"), np.unique(f.target).tolist()
    post = call.attr("post_transform", "NONE")
    if classes == 2 and len(only) == 1:
        positive = bool((f.weight >= 0).all())
        if only == [0]:
            score = _sums(call, f, x, 1, "SUM")
            base: Any = call.attributes.get("base_values_as_tensor", call.items("base_values", float))
            if base is not None and len(base):
                score = b.add(score, table(call, base[-1], x.dtype))
            logistic = post == "LOGISTIC"
            other = b.sub(b.const(1.0, x.dtype), score) if positive and not logistic else b.neg(score)
            scores = b.concat(other, score, axis=1)
            post = "LOGISTIC" if logistic else "NONE"
        else:
            scores = _added(call, _sums(call, f, x, classes, "SUM"))
            score = b.gather(scores, b.const(np.array([1])), axis=1)
        holds = b.greater(score, b.const(0.5 if positive else 0.0, x.dtype))
        place = b.cast(b.reshape(holds, shape=(x.shape[0],)), to=int32)
    else:
        scores = _added(call, _sums(call, f, x, classes, "SUM"))
        place = largest(call, scores)
    return [chosen(call, names, place), cast(call, transformed(call, scores, post), float32)]
