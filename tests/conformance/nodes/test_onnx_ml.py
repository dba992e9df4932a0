"""ai.onnx.ml beside onnxruntime, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, check, need
from peer import session

import singe as sg
from singe.errors import ImportFailure

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "object": TensorProto.STRING,
}
COMPARISONS = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
RNG = np.random.default_rng(7)
X = RNG.normal(size=(6, 4)).astype(np.float32)
TEXTS = np.array([["a", "b"], ["c", "nothing"]], object)
NUMBERS = np.array([[1, 2, 3], [7, 2, -4]], np.int64)


def model(op: str, xs: list[np.ndarray], outputs: int = 1, domain: str = "ai.onnx.ml", **attributes: Any) -> bytes:
    """A node over inputs of these types, with open lengths."""
    names = [f"y{k}" for k in range(outputs)]
    inputs = [
        helper.make_tensor_value_info(f"x{k}", TYPES[x.dtype.name], [f"{k}.{i}" for i in range(x.ndim)])
        for k, x in enumerate(xs)
    ]
    node = helper.make_node(op, [v.name for v in inputs], names, domain=domain, **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(name) for name in names])
    opsets = [
        helper.make_opsetid("", 18),
        helper.make_opsetid("ai.onnx.ml", 3),
        helper.make_opsetid("com.microsoft", 1),
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def compare(data: bytes, xs: list[np.ndarray], device: str, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    need(device)
    wanted = session(data).run(None, {f"x{k}": x for k, x in enumerate(xs)})
    found = sg.load(data, DEVICES[device])(*xs)
    check(list(found.values()) if isinstance(found, dict) else [found], wanted, rtol, atol)


def forest(
    rng: np.random.Generator, trees: int, depth: int, prefix: str, *, targets: int = 1, spread: bool = False,
    modes: tuple[str, ...] = COMPARISONS[:1], missing: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Random trees over four features; with `spread` each has leaves of all targets, else of one."""
    nodes: dict[str, list[Any]] = {}
    weights: dict[str, list[Any]] = {}

    def enter(table: dict[str, list[Any]], row: dict[str, Any]) -> None:
        for name, value in row.items():
            table.setdefault(name, []).append(value)

    def grow(tree: int, number: int, levels: int) -> None:
        leaf = levels == 0 or (number > 0 and rng.random() < 0.2)
        enter(nodes, {
            "nodes_treeids": tree, "nodes_nodeids": number, "nodes_featureids": int(rng.integers(4)),
            "nodes_values": float(rng.integers(-2, 3)), "nodes_modes": "LEAF" if leaf else str(rng.choice(modes)),
            "nodes_truenodeids": 0 if leaf else 2 * number + 1, "nodes_falsenodeids": 0 if leaf else 2 * number + 2,
            "nodes_missing_value_tracks_true": int(missing and rng.random() < 0.5),
        })  # fmt: skip
        if not leaf:
            grow(tree, 2 * number + 1, levels - 1)
            grow(tree, 2 * number + 2, levels - 1)
            return
        for k in range(targets) if spread else (tree % targets,):
            enter(weights, {"treeids": tree, "nodeids": number, "ids": k, "weights": float(rng.normal())})

    for tree in range(trees):
        grow(tree, 0, depth)
    return nodes | {f"{prefix}_{name}": values for name, values in weights.items()}


def examples(count: int) -> np.ndarray:
    """Features that meet thresholds exactly, and are missing at times."""
    x = RNG.integers(-3, 4, (count, 4)).astype(np.float32)
    x[RNG.random(x.shape) < 0.1] = np.nan
    return x


@pytest.mark.parametrize("device", DEVICES)
def test_trees_that_give_numbers(device: str) -> None:
    rng, x = np.random.default_rng(1), examples(30)
    for targets, spread, aggregate, modes, depth in (
        (1, False, "SUM", COMPARISONS[:1], 3),
        (1, False, "AVERAGE", COMPARISONS, 5),
        (3, False, "SUM", COMPARISONS, 2),
        (3, True, "MIN", COMPARISONS, 4),
        (2, True, "MAX", COMPARISONS[:2], 1),
        (1, False, "SUM", COMPARISONS, 0),
        (1, False, "SUM", COMPARISONS[:1], 9),
    ):
        attributes = forest(rng, 6, depth, "target", targets=targets, spread=spread, modes=modes, missing=depth > 3)
        base = [float(v) for v in rng.normal(size=targets)]
        attributes |= {"n_targets": targets, "aggregate_function": aggregate, "base_values": base}
        compare(model("TreeEnsembleRegressor", [x], **attributes), [x], device, 1e-4, 1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_deep_trees_take_several_turns(device: str) -> None:
    """A chain of 40 nodes, each of which ends for other examples."""
    x = np.linspace(-2, 45, 60, dtype=np.float32).reshape(-1, 1)
    ids = list(range(81))
    attributes: dict[str, Any] = {
        "nodes_treeids": [0] * 81, "nodes_nodeids": ids, "nodes_featureids": [0] * 81,
        "nodes_modes": ["BRANCH_LEQ" if k < 40 else "LEAF" for k in ids], "nodes_values": [float(k) for k in ids],
        "nodes_truenodeids": [40 + k if k < 40 else 0 for k in ids],
        "nodes_falsenodeids": [k + 1 if k < 39 else 80 if k == 39 else 0 for k in ids],
        "target_treeids": [0] * 41, "target_nodeids": ids[40:], "target_ids": [0] * 41,
        "target_weights": [float(k) for k in range(41)], "n_targets": 1,
    }  # fmt: skip
    compare(model("TreeEnsembleRegressor", [x], **attributes), [x], device)


@pytest.mark.parametrize("device", DEVICES)
def test_trees_that_give_classes(device: str) -> None:
    rng, x = np.random.default_rng(2), examples(30)
    for names, targets, spread, post in (
        (["a", "b"], 1, False, "NONE"),  # as skl2onnx writes two classes: the weights are those of one
        ([5, 3], 1, False, "LOGISTIC"),
        ([5, 3, 9], 3, False, "SOFTMAX"),
        (["x", "y", "z", "a"], 4, True, "NONE"),
        ([1, 2, 3], 3, True, "SOFTMAX_ZERO"),
        ([1, 2, 3], 3, True, "LOGISTIC"),
    ):
        attributes = forest(rng, 6, 3, "class", targets=targets, spread=spread, modes=COMPARISONS)
        labels = "classlabels_strings" if isinstance(names[0], str) else "classlabels_int64s"
        attributes |= {labels: names, "post_transform": post}
        compare(model("TreeEnsembleClassifier", [x], 2, **attributes), [x], device, 1e-4, 1e-5)


def test_a_forest_is_one_kernel() -> None:
    pytest.importorskip("wasmtime", reason="wasmtime is not here")
    rng = np.random.default_rng(3)
    attributes = forest(rng, 300, 5, "target") | {"n_targets": 1}
    loaded = sg.load(model("TreeEnsembleRegressor", [X], **attributes), "wasm", input_shapes={"x0": ("N", 4)})
    assert len(loaded.program().data.kernels) == 1


def test_trees_that_cannot_be() -> None:
    rng = np.random.default_rng(4)
    given: dict[str, Any] = forest(rng, 2, 2, "target") | {"n_targets": 1}
    for name, value, text in (
        ("nodes_truenodeids", [99] * len(given["nodes_nodeids"]), "not there"),
        ("nodes_truenodeids", [0] * len(given["nodes_nodeids"]), "no first node|deeper"),
        ("nodes_featureids", [4] * len(given["nodes_nodeids"]), "features up to 4"),
        ("nodes_values", [1.0], "1 values"),
        ("target_ids", [5] * len(given["target_ids"]), "targets up to 5"),
        ("target_nodeids", [77] * len(given["target_ids"]), "no leaf"),
        ("aggregate_function", "MODE", "aggregate_function"),
        ("target_weights", given["target_weights"][1:], "'target_weights' has"),
        ("target_treeids", given["target_treeids"][1:], "'target_nodeids' has"),
        ("nodes_nodeids", given["nodes_nodeids"][1:], "'nodes_nodeids' has"),
        ("nodes_truenodeids", None, "'nodes_truenodeids' has 0"),
        ("nodes_falsenodeids", None, "'nodes_falsenodeids' has 0"),
    ):
        with pytest.raises(ImportFailure, match=text):
            sg.load(model("TreeEnsembleRegressor", [X], **{**given, name: value}), "numpy")(X)


def test_nan_goes_where_the_comparison_fails_unless_the_file_says_otherwise() -> None:
    given = forest(np.random.default_rng(4), 2, 2, "target") | {"n_targets": 1}
    x = np.full((1, 4), np.nan, np.float32)
    without = {k: v for k, v in given.items() if k != "nodes_missing_value_tracks_true"}
    drawn = [sg.load(model("TreeEnsembleRegressor", [x], **kept), "numpy")(x) for kept in (given, without)]
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize(("labels", "rows"), [(2, 3), (4, 3), (3, 1)])
def test_as_many_labels_as_classes(labels: int, rows: int) -> None:
    given = {"coefficients": COEFFICIENTS[: 4 * rows], "classlabels_ints": list(range(labels))}
    for op, more in (("LinearClassifier", {"intercepts": [0.0] * rows}), ("SVMClassifier", {"rho": [0.0]})):
        with pytest.raises(ImportFailure, match=f"{labels} labels"):
            sg.load(model(op, [X], 2, **given, **more), "numpy")(X)


@pytest.mark.parametrize("device", DEVICES)
def test_keys_that_the_type_of_the_input_does_not_hold_are_never_found(device: str) -> None:
    need(device)
    x = np.array([1, 2, 3], np.int32)
    for keys, wanted in (([2**32 + 1, 3], [-1, -1, 20]), ([2**32 + 1, 2**33 + 2], [-1, -1, -1])):
        data = model("LabelEncoder", [x], keys_int64s=keys, values_int64s=[10, 20])
        np.testing.assert_array_equal(sg.load(data, {"CPU": "numpy"}.get(device, device.lower()))(x), wanted)


COEFFICIENTS = [float(v) for v in RNG.normal(size=12)]
NODES: list[tuple[str, list[np.ndarray], dict[str, Any]]] = [
    ("LinearRegressor", [X], {"coefficients": COEFFICIENTS[:4], "intercepts": [0.5]}),
    ("LinearRegressor", [X], {"coefficients": COEFFICIENTS, "intercepts": [0.5, 1.0, -1.0], "targets": 3}),
    ("Scaler", [X], {"offset": [0.5, 1.0, -1.0, 2.0], "scale": [2.0, 1.0, 0.5, 3.0]}),
    ("Scaler", [NUMBERS], {"offset": [0.5], "scale": [2.0]}),
    *(
        ("Normalizer", [np.concatenate([X, np.zeros((1, 4), np.float32)])], {"norm": norm})
        for norm in ("MAX", "L1", "L2")
    ),
    ("Imputer", [examples(9)], {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float("nan")}),
    ("Imputer", [NUMBERS], {"imputed_value_int64s": [9], "replaced_value_int64": 2}),
    ("Binarizer", [X], {"threshold": 0.25}),
    ("FeatureVectorizer", [X, X[:, :2]], {"inputdimensions": [4, 2]}),
    ("ArrayFeatureExtractor", [X, np.array([3, 0, 3])], {}),
    ("ArrayFeatureExtractor", [X[0], np.array([2, 1])], {}),
    ("OneHotEncoder", [NUMBERS], {"cats_int64s": [1, 2, 7], "zeros": 1}),
    ("OneHotEncoder", [TEXTS], {"cats_strings": ["b", "c"], "zeros": 1}),
    ("CategoryMapper", [NUMBERS], {"cats_int64s": [1, 2], "cats_strings": ["one", "two"], "default_string": "?"}),
    ("CategoryMapper", [TEXTS], {"cats_int64s": [1, 2], "cats_strings": ["a", "b"], "default_int64": 9}),
    ("LabelEncoder", [TEXTS], {"keys_strings": ["a", "b", "a"], "values_int64s": [4, 5, 6]}),
    ("LabelEncoder", [NUMBERS], {"keys_int64s": [1, 2], "values_strings": ["one", "two"]}),
    ("LabelEncoder", [NUMBERS], {"keys_int64s": [1, 2], "values_floats": [0.5, 1.5], "default_float": 3.0}),
    ("LabelEncoder", [X], {"keys_floats": [float(X[0, 0]), float("nan")], "values_int64s": [4, 5]}),
    ("LabelEncoder", [examples(9)], {"keys_floats": [1.0, float("nan")], "values_strings": ["one", "none"]}),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", range(len(NODES)), ids=lambda k: f"{NODES[k][0]}{k}")
def test_one_node(k: int, device: str) -> None:
    op, xs, attributes = NODES[k]
    compare(model(op, xs, **attributes), xs, device)


@pytest.mark.parametrize("device", DEVICES)
def test_linear_classifiers(device: str) -> None:
    cases: tuple[tuple[int, dict[str, Any], str], ...] = (
        (3, {"classlabels_strings": ["a", "b", "c"]}, "SOFTMAX"),
        (3, {"classlabels_ints": [4, 2, 9]}, "LOGISTIC"),
        (2, {"classlabels_ints": [4, 2]}, "NONE"),
        (1, {"classlabels_ints": [4, 2]}, "LOGISTIC"),
        (1, {"classlabels_strings": ["a", "b"]}, "NONE"),
    )
    for rows, names, post in cases:
        attributes: dict[str, Any] = {
            "coefficients": COEFFICIENTS[: 4 * rows],
            "intercepts": COEFFICIENTS[:rows],
            "post_transform": post,
        }
        compare(model("LinearClassifier", [X], 2, **attributes, **names), [X], device)


def vectors(count: int, rows: int) -> dict[str, Any]:
    return {
        "support_vectors": [float(v) for v in RNG.normal(size=count * 4)],
        "coefficients": [float(v) for v in RNG.normal(size=count * rows)],
    }


KERNELS = {"LINEAR": (0.5, 0.0, 3.0), "RBF": (0.25, 0.0, 3.0), "POLY": (0.5, 4.0, 3.0), "SIGMOID": (0.25, 0.5, 3.0)}


@pytest.mark.parametrize("device", DEVICES)
def test_support_vectors_that_give_numbers(device: str) -> None:
    for kernel, parameters in KERNELS.items():
        attributes: dict[str, Any] = {
            "kernel_type": kernel,
            "kernel_params": parameters,
            "n_supports": 5,
            "rho": [0.25],
            **vectors(5, 1),
        }
        compare(model("SVMRegressor", [X], **attributes), [X], device, 1e-4, 1e-4)
    one_class = {"kernel_type": "RBF", "kernel_params": KERNELS["RBF"], "n_supports": 5, "rho": [0.1], **vectors(5, 1)}
    compare(model("SVMRegressor", [X], **one_class, one_class=1), [X], device)


@pytest.mark.parametrize("device", DEVICES)
def test_support_vectors_that_give_classes(device: str) -> None:
    for (kernel, parameters), classes in zip(KERNELS.items(), (3, 4, 3, 4), strict=True):
        pairs = classes * (classes - 1) // 2
        for probabilities in (False, True):
            attributes: dict[str, Any] = {
                "kernel_type": kernel, "kernel_params": parameters, "classlabels_ints": list(range(10, 10 + classes)),
                "vectors_per_class": [2] * classes, "rho": [float(v) for v in RNG.normal(size=pairs)],
                **vectors(2 * classes, classes - 1),
            }  # fmt: skip
            if probabilities:
                attributes |= {name: [float(v) for v in RNG.normal(size=pairs)] for name in ("prob_a", "prob_b")}
            compare(model("SVMClassifier", [X], 2, **attributes), [X], device, 1e-3, 1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_counts_of_n_grams(device: str) -> None:
    """The columns of the last list are in another order than its n-grams, and some have none."""
    words = np.array([["a", "b", "a", "b", "c"], ["c", "?", "a", "b", "b"]], object)
    numbers = RNG.integers(0, 4, (3, 8))
    for x, pool, counts, columns in (
        (words, {"pool_strings": ["a", "c", "a", "b", "b", "b"]}, [0, 2], [0, 1, 2, 3]),
        (numbers, {"pool_int64s": [0, 1, 2, 3, 1, 2, 3, 0, 0, 1, 1]}, [0, 2, 8], [4, 2, 0, 1, 3, 6]),
        (numbers[0], {"pool_int64s": [2, 1, 1, 0, 1, 1]}, [0, 0], [0, 2, 1]),
    ):
        for mode, least, most, skips in (("TF", 1, 3, 2), ("IDF", 1, 2, 0), ("TFIDF", 2, 2, 5)):
            weights = [0.5 + k for k in range(max(columns) + 1)]
            attributes: dict[str, Any] = {
                "ngram_counts": counts, "ngram_indexes": columns, "mode": mode, "min_gram_length": least,
                "max_gram_length": min(most, len(counts)), "max_skip_count": skips,
                "weights": weights if len(weights) == len(columns) else None,
            }  # fmt: skip
            compare(model("TfIdfVectorizer", [x], domain="", **attributes, **pool), [x], device)


@pytest.mark.parametrize("device", DEVICES)
def test_tokens(device: str) -> None:
    x = np.array([["the cat, the dog", "a-b c"], ["", "öl 12 ß!"]], object)
    for attributes in (
        {"tokenexp": "[a-zA-Z0-9_]+", "mark": 0, "mincharnum": 1, "pad_value": "#"},
        {"separators": [" ", ","], "mark": 1, "mincharnum": 2, "pad_value": "#"},
        {"separators": [""], "mark": 0, "mincharnum": 1, "pad_value": ""},
    ):
        compare(model("Tokenizer", [x], domain="com.microsoft", **attributes), [x], device)
    need(device)
    broken = model("Tokenizer", [x], domain="com.microsoft", tokenexp="[", mark=0)
    with pytest.raises(ImportFailure, match="not a regular expression"):
        sg.load(broken, DEVICES[device])


@pytest.mark.parametrize("device", DEVICES)
def test_maps(device: str) -> None:
    """Rows of scores become dicts, and dicts become vectors."""
    need(device)
    data = model("ZipMap", [X[:2]], classlabels_strings=["a", "b", "c", "d"])
    found = sg.load(data, DEVICES[device])(X[:2])
    assert found == [dict(zip("abcd", row, strict=True)) for row in X[:2].tolist()]
    kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, ()))
    node = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "c", "b"])
    graph = helper.make_graph(
        [node], "g", [helper.make_value_info("x", kind)], [helper.make_empty_tensor_value_info("y")]
    )
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)])
    loaded = sg.load(whole.SerializeToString(), DEVICES[device])
    np.testing.assert_array_equal(loaded(x={"a": 1.5, "b": 2.0}), np.array([[1.5, 0, 2]], np.float32))
    np.testing.assert_array_equal(loaded(x={"c": 1.0, "other": 2.0}), np.array([[0, 1, 0]], np.float32))
    numbered = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, ()))
    for attributes, wanted in (({}, [[2, 1.5]]), ({"map_form": "SPARSE", "max_map": 5}, [[0, 2, 0, 1.5, 0]])):
        node = helper.make_node("CastMap", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
        graph = helper.make_graph(
            [node], "g", [helper.make_value_info("x", numbered)], [helper.make_empty_tensor_value_info("y")]
        )
        whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)])
        loaded = sg.load(whole.SerializeToString(), DEVICES[device])
        np.testing.assert_array_equal(loaded(x={3: 1.5, 1: 2.0}), np.array(wanted, np.float32))
