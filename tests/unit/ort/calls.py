"""Calls of onnxruntime's interface, for any module that has it: each makes an answer, or an exception."""

from __future__ import annotations

import copy
import pickle
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
from onnx import TensorProto as T
from onnx import helper, load_model_from_string

X: Final = np.arange(6, dtype=np.float32).reshape(2, 3)
Y: Final = np.ones(3, np.float32)
FEED: Final = {"x": X, "y": Y}
CPU: Final = ["CPUExecutionProvider"]


# --- models -----------------------------------------------------------------------------------------------------------


def file(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], weights: Sequence[Any] = (), ir: int = 8
) -> bytes:
    """The bytes of a model. Inputs and outputs are (name, type, shape), or values of ONNX."""
    ends = [
        [v if hasattr(v, "name") else helper.make_tensor_value_info(*v) for v in part] for part in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "a graph", *ends, list(weights), doc_string="about the graph")
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir, producer_name="singe's tests", domain="a.b", model_version=3,
        doc_string="about the model",
    )  # fmt: skip
    helper.set_model_props(made, {"author": "someone", "labels": "a,b"})
    return made.SerializeToString()


def node(op: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), output.split(), **attributes)


ADD: Final = file(
    [node("Add", "x y", "z")], [("x", T.FLOAT, ["N", 3]), ("y", T.FLOAT, [3])], [("z", T.FLOAT, ["N", 3])]
)
TWO: Final = file(
    [node("Add", "x y", "z"), node("Mul", "x y", "w")],
    [("x", T.FLOAT, ["N", 3]), ("y", T.FLOAT, [3])],
    [("z", T.FLOAT, ["N", 3]), ("w", T.FLOAT, ["N", 3])],
)
SCALAR: Final = file([node("Add", "x y", "z")], [("x", T.INT64, []), ("y", T.INT64, [None])], [("z", T.INT64, [None])])
SIZES: Final = file([node("Add", "x y", "z")], [("x", T.FLOAT, ["A"]), ("y", T.FLOAT, ["B"])], [("z", T.FLOAT, ["C"])])
ONE_NAME: Final = file(
    [node("Add", "x y", "z")], [("x", T.FLOAT, ["A"]), ("y", T.FLOAT, ["A"])], [("z", T.FLOAT, ["A"])]
)
RANKLESS: Final = file([node("Relu", "x", "z")], [("x", T.FLOAT, None)], [("z", T.FLOAT, None)])
UNUSED: Final = file(
    [node("Identity", "x", "z")], [("x", T.FLOAT, ["N"]), ("u", T.FLOAT, [3])], [("z", T.FLOAT, ["N"])]
)
WEIGHT: Final = helper.make_tensor("w", T.FLOAT, [3], [1, 2, 3])
DEFAULT: Final = file(
    [node("Add", "x w", "z")], [("x", T.FLOAT, ["N", 3]), ("w", T.FLOAT, [3])], [("z", T.FLOAT, ["N", 3])], [WEIGHT]
)
OLD: Final = file(
    [node("Add", "x w", "z")],
    [("x", T.FLOAT, ["N", 3]), ("w", T.FLOAT, [3])],
    [("z", T.FLOAT, ["N", 3])],
    [WEIGHT],
    ir=3,
)
UNSAID: Final = file([node("Flatten", "x", "z")], [("x", T.FLOAT, ["N", 2, 3])], [("z", T.FLOAT, None)])
SEQUENCE: Final = file(
    [node("SequenceAt", "s i", "z")],
    [helper.make_tensor_sequence_value_info("s", T.FLOAT, None), ("i", T.INT64, [])],
    [("z", T.FLOAT, None)],
)
MAKES_SEQUENCE: Final = file(
    [node("SequenceConstruct", "x x", "s")],
    [("x", T.FLOAT, ["N"])],
    [helper.make_tensor_sequence_value_info("s", T.FLOAT, None)],
)
OPTIONAL: Final = file(
    [node("OptionalHasElement", "o", "z")],
    [helper.make_value_info("o", helper.make_optional_type_proto(helper.make_tensor_type_proto(T.FLOAT, ["N"])))],
    [("z", T.BOOL, [])],
)
BRANCHES: Final = file(
    [node("Relu", "x", "a"), node("ReduceSum", "a", "z", keepdims=0)],
    [("x", T.FLOAT, ["N", "M"])],
    [("z", T.FLOAT, [])],
)
STRANGER: Final = helper.make_model(
    helper.make_graph(
        [helper.make_node("Strange", ["x"], ["z"], domain="my.domain")],
        "g",
        [helper.make_tensor_value_info("x", T.FLOAT, [1])],
        [helper.make_tensor_value_info("z", T.FLOAT, [1])],
    ),
    opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)],
    ir_version=8,
).SerializeToString()


def classifier(labels: str, kind: int, values: Sequence[Any]) -> bytes:
    """A linear classifier as sklearn's models are exported: its labels, and a list of dicts of probabilities."""
    domain = "ai.onnx.ml"
    nodes = [
        node(
            "LinearClassifier", "X", "label p", domain=domain, coefficients=[0.1, 0.2, 0.3, 0.4, -0.1, 0.2, 0.3, -0.4, 0.5, 0.1, 0.1, 0.1],
            intercepts=[0.1, 0.2, 0.3], multi_class=0, post_transform="SOFTMAX", **{f"classlabels_{labels}": values},
        ),
        node("ZipMap", "p", "probabilities", domain=domain, **{f"classlabels_{'int64s' if labels == 'ints' else labels}": values}),
    ]  # fmt: skip
    pairs = helper.make_map_type_proto(kind, helper.make_tensor_type_proto(T.FLOAT, None))
    ends = (
        [helper.make_tensor_value_info("X", T.FLOAT, [None, 4])],
        [
            helper.make_tensor_value_info("label", kind, [None]),
            helper.make_value_info("probabilities", helper.make_sequence_type_proto(pairs)),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 3)]
    return helper.make_model(
        helper.make_graph(nodes, "c", *ends), opset_imports=opsets, ir_version=8
    ).SerializeToString()


CLASSES: Final = classifier("ints", T.INT64, [0, 1, 2])
NAMES: Final = classifier("strings", T.STRING, ["a", "b", "c"])
ROWS: Final = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def typed(kind: int) -> bytes:
    return file([node("Identity", "x", "z")], [("x", kind, ["N"])], [("z", kind, ["N"])])


@cache
def session(ort: Any, data: bytes) -> Any:
    return ort.InferenceSession(data, providers=CPU)


# --- what is asked ----------------------------------------------------------------------------------------------------


def run(data: bytes, feed: Any, names: Any = None) -> Callable[[Any], Any]:
    return lambda ort: session(ort, data).run(names, feed)


def ends(data: bytes) -> Callable[[Any], Any]:
    def ask(ort: Any) -> Any:
        s = session(ort, data)
        return [
            (a.name, a.type, a.shape)
            for part in (s.get_inputs(), s.get_outputs(), s.get_overridable_initializers())
            for a in part
        ]

    return ask


def load(data: Any, **arguments: Any) -> Callable[[Any], Any]:
    return lambda ort: ort.InferenceSession(data, **{"providers": CPU, **arguments}).get_providers()


def of_file(content: bytes | None) -> Callable[[Any], Any]:
    """A session of a file with this content; None: of a folder."""

    def ask(ort: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.mkdir() if content is None else path.write_bytes(content)
            return ort.InferenceSession(path, providers=CPU).run(None, FEED)

    return ask


def with_options(**values: Any) -> Callable[[Any], Any]:
    """The options as they are kept."""

    def ask(ort: Any) -> Any:
        options = ort.SessionOptions()
        for name, value in values.items():
            kind, _, member = value.partition(".") if isinstance(value, str) else ("", "", "")
            setattr(options, name, getattr(getattr(ort, kind), member) if member else value)
        found = ort.InferenceSession(ADD, options, providers=CPU).run(None, FEED)
        return [found, *(str(getattr(options, name)) for name in values)]

    return ask


def settings(ort: Any) -> Any:
    """Every option with its default."""
    found = []
    for made in (ort.SessionOptions(), ort.RunOptions()):
        names = [n for n in dir(made) if n[0] != "_" and not callable(getattr(made, n))]
        found += [(n, str(getattr(made, n))) for n in names]
    return found


def entries(ort: Any) -> Any:
    options, of_run = ort.SessionOptions(), ort.RunOptions()
    options.add_session_config_entry("session.a", "1")
    of_run.add_run_config_entry("run.a", "2")
    return options.get_session_config_entry("session.a"), of_run.get_run_config_entry("run.a"), options.has_providers()


def sized(feed: Mapping[str, Any]) -> Callable[[Any], Any]:
    def ask(ort: Any) -> Any:
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("N", 2)
        s = ort.InferenceSession(ADD, options, providers=CPU)
        return s.run(None, feed), [a.shape for a in s.get_inputs()]

    return ask


def replaced(ort: Any) -> Any:
    options = ort.SessionOptions()
    given = ort.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
    options.add_initializer("w", given)
    data = file([node("Add", "x w", "z")], [("x", T.FLOAT, ["N", 3])], [("z", T.FLOAT, ["N", 3])], [WEIGHT])
    return ort.InferenceSession(data, options, providers=CPU).run(None, {"x": X})


def versioned(number: int | None) -> bytes:
    """ADD with a version of its own."""
    model = load_model_from_string(ADD)
    model.ClearField("model_version")
    if number is not None:
        model.model_version = number
    return model.SerializeToString()


def arena(*values: Any) -> Callable[[Any], Any]:
    def call(ort: Any) -> Any:
        made = ort.OrtArenaCfg(*values)
        info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
        names = (
            "max_mem",
            "arena_extend_strategy",
            "initial_chunk_size_bytes",
            "max_dead_bytes_per_chunk",
            "initial_growth_chunk_size_bytes",
        )
        return [ort.create_and_register_allocator(info, made), *(getattr(made, name) for name in names)]

    return call


def metadata(ort: Any) -> Any:
    made = session(ort, ADD).get_modelmeta()
    return {n: getattr(made, n) for n in dir(made) if n[0] != "_"}


def asynchronous(ort: Any) -> Any:
    done, found = threading.Event(), []

    def callback(outputs: Any, data: Any, error: str) -> None:
        found.extend([outputs, data, error])
        done.set()

    session(ort, ADD).run_async(["z"], FEED, callback, 5)
    assert done.wait(20)
    return found


def terminated(ort: Any) -> Any:
    options = ort.RunOptions()
    options.terminate = True
    return session(ort, ADD).run(None, FEED, options)


def values(ort: Any) -> Any:
    array = X.copy()
    value = ort.OrtValue.ortvalue_from_numpy(array)
    array[0, 0] = 9
    facts = [
        value.numpy().copy(), value.shape(), value.data_type(), value.element_type(), value.device_name(), value.has_value(), value.is_tensor(),
        value.is_sparse_tensor(), value.is_tensor_sequence(), value.tensor_size_in_bytes(), value.data_ptr() == array.ctypes.data,
        tuple(map(int, value.__dlpack_device__())), np.asarray(value), np.asarray(value, np.float64).dtype.name,
    ]  # fmt: skip
    value.update_inplace(X + 1)
    empty = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.int64)
    return [*facts, value.numpy().copy(), np.from_dlpack(value).copy(), array, empty.shape(), empty.data_type()]


def of_types(ort: Any) -> Any:
    make = ort.OrtValue.ortvalue_from_shape_and_type
    kinds = [np.float32, "float64", np.dtype("uint8"), bool, np.float16, 16, 7, 10]
    return [(make([2], kind).data_type(), make([2], kind).element_type()) for kind in kinds]


def from_dlpack(data: Any) -> Callable[[Any], Any]:
    def ask(ort: Any) -> Any:
        made = ort.OrtValue.from_dlpack(data() if callable(data) else data)
        return made.data_type(), made.numpy()

    return ask


def ort_values(names: Any, feed: Mapping[str, np.ndarray]) -> Callable[[Any], Any]:
    def ask(ort: Any) -> Any:
        given = {k: ort.OrtValue.ortvalue_from_numpy(v) for k, v in feed.items()}
        return [v.numpy() for v in session(ort, TWO).run_with_ort_values(names, given)] + session(ort, TWO).run(
            names, given
        )

    return ask


def bound(steps: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A run through a binding, to which `steps` (of the module and the binding) bound something."""

    def ask(ort: Any) -> Any:
        s = session(ort, TWO)
        binding = s.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_ortvalue_input("y", ort.OrtValue.ortvalue_from_numpy(Y))
        more = steps(ort, binding)
        s.run_with_iobinding(binding)
        return [more, [v.numpy() for v in binding.get_outputs()], binding.copy_outputs_to_cpu()]

    return ask


def to_value(shape: Sequence[int]) -> Callable[[Any, Any], Any]:
    def steps(ort: Any, binding: Any) -> Any:
        value = ort.OrtValue.ortvalue_from_shape_and_type(shape, np.float32)
        binding.bind_output("z")
        binding.bind_ortvalue_output("w", value)
        return value  # which the run fills

    return steps


def to_address(kind: Any) -> Callable[[Any, Any], Any]:
    place = np.zeros((2, 3), np.float32)

    def steps(_: Any, binding: Any) -> Any:
        binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
        binding.bind_output("z", "cpu", 0, kind, place.shape, place.ctypes.data)
        return place

    return steps


def cleared(_: Any, binding: Any) -> Any:
    binding.bind_output("z")
    binding.clear_binding_outputs()
    binding.bind_output("w")


def emptied(_: Any, binding: Any) -> Any:
    binding.bind_output("z")
    binding.clear_binding_inputs()


def inner(ort: Any) -> Any:
    """A run by the classes and methods of the inner module, as some programs call them."""
    state, s = ort.capi._pybind_state, session(ort, TWO)
    device = state.OrtDevice(state.OrtDevice.cpu(), state.OrtDevice.default_memory(), 0)
    binding = s.io_binding()._iobinding
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X)._ortvalue)
    binding.bind_ortvalue_input("y", state.OrtValue.ortvalue_from_numpy(Y, device))
    binding.bind_output("z", device)
    s._sess.run_with_iobinding(binding, ort.RunOptions())
    return [v.numpy() for v in binding.get_outputs()], (device.device_type(), device.device_id())


class Arraylike:
    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return X


CALLS: Final[Mapping[str, Callable[[Any], Any]]] = {
    # Runs
    "all outputs": run(TWO, FEED),
    "no names": run(TWO, FEED, []),
    "one output": run(TWO, FEED, ["w"]),
    "outputs in another order": run(TWO, FEED, ["w", "z"]),
    "an output twice": run(TWO, FEED, ["z", "z"]),
    "an unknown output": run(TWO, FEED, ["q"]),
    "a name in place of a list": run(TWO, FEED, "z"),
    "a missing input": run(ADD, {"x": X}),
    "an unknown input": run(ADD, {**FEED, "q": Y}),
    "an unknown input of None": run(ADD, {**FEED, "q": None}),
    "None": run(ADD, {"x": X, "y": None}),
    "a wrong name": run(ADD, {"a": X, "y": Y}),
    "an unused input": run(UNUSED, {"x": Y, "u": Y}),
    "an unused input that is missing": run(UNUSED, {"x": Y}),
    "float64 for float32": run(ADD, {"x": X.astype(np.float64), "y": Y}),
    "int32 for float32": run(ADD, {"x": X.astype(np.int32), "y": Y}),
    "a wrong rank": run(ADD, {"x": X[0], "y": Y}),
    "a wrong size": run(ADD, {"x": X[:, :2], "y": Y}),
    "lists": run(ADD, {"x": [[1, 2, 3]], "y": [1.0, 2, 3]}),
    "a list of arrays": run(ADD, {"x": [Y, Y], "y": Y}),
    "a ragged list": run(ADD, {"x": [[1, 2, 3], [1]], "y": Y}),
    "a list of texts for numbers": run(ADD, {"x": [["a", "b", "c"]], "y": Y}),
    "a tuple": run(ADD, {"x": ((1, 2, 3),), "y": Y}),
    "a float": run(ADD, {"x": 3.0, "y": Y}),
    "what has __array__": run(ADD, {"x": Arraylike(), "y": Y}),
    "a memoryview": run(ADD, {"x": memoryview(X), "y": Y}),
    "an array of objects for numbers": run(ADD, {"x": X.astype(object), "y": Y}),
    "a transposed array": run(ADD, {"x": np.ones((3, 2), np.float32).T, "y": Y}),
    "a slice with steps": run(ADD, {"x": np.ones((4, 6), np.float32)[::2, ::2], "y": Y}),
    "no rows": run(ADD, {"x": X[:0], "y": Y}),
    "other rows": run(ADD, {"x": np.ones((7, 3), np.float32), "y": Y}),
    "an int": run(SCALAR, {"x": 3, "y": np.array([1, 2])}),
    "a scalar of NumPy": run(SCALAR, {"x": np.int64(3), "y": np.array([1, 2])}),
    "a 0-d array": run(SCALAR, {"x": np.array(3), "y": np.array([1, 2])}),
    "a list for a scalar": run(SCALAR, {"x": [3], "y": np.array([1, 2])}),
    "one element for a scalar": run(SCALAR, {"x": np.array([3]), "y": np.array([1, 2])}),
    "two elements for a scalar": run(SCALAR, {"x": np.array([3, 4]), "y": np.array([1, 2])}),
    "a scalar result": run(BRANCHES, {"x": X}),
    "sizes that do not fit": run(SIZES, {"x": Y[:2], "y": Y}),
    "a size of one": run(SIZES, {"x": Y[:1], "y": Y}),
    "different sizes of one name": run(ONE_NAME, {"x": Y[:1], "y": Y}),
    "any rank: 1": run(RANKLESS, {"x": Y}),
    "any rank: 3": run(RANKLESS, {"x": X[None] - 2}),
    "a default": run(DEFAULT, {"x": X}),
    "a default overridden": run(DEFAULT, {"x": X, "w": Y}),
    "a weight of an old file": run(OLD, {"x": X}),
    "a list of tensors": run(SEQUENCE, {"s": [Y, Y * 2], "i": np.array(1)}),
    "a list of tensors of another type": run(SEQUENCE, {"s": [Y.astype(np.float64)], "i": np.array(0)}),
    "an array for a list": run(SEQUENCE, {"s": Y, "i": np.array(0)}),
    "a result that is a list": run(MAKES_SEQUENCE, {"x": Y}),
    "an optional that holds nothing": run(OPTIONAL, {"o": None}),
    "an optional that holds a tensor": run(OPTIONAL, {"o": Y}),
    "a classifier of numbers": run(CLASSES, {"X": ROWS}),
    "a classifier of names": run(NAMES, {"X": ROWS}),
    "a classifier of lists": run(NAMES, {"X": ROWS.tolist()}, ["probabilities"]),
    "texts": run(typed(T.STRING), {"x": np.array(["a", "bü", ""])}),
    "texts as objects": run(typed(T.STRING), {"x": np.array(["a", "b"], object)}),
    "texts in a list": run(typed(T.STRING), {"x": ["a", "b"]}),
    "objects that are no texts": run(typed(T.STRING), {"x": np.array([1, None], object)}),
    "numbers for texts": run(typed(T.STRING), {"x": np.array([1, 2])}),
    "a terminated run": terminated,
    "options of another kind": lambda ort: session(ort, ADD).run(None, FEED, 3),
    "in another thread": asynchronous,
    **{
        f"{name}: {what}": run(typed(kind), {"x": value})
        for name, kind, dtype in (
            ("bool", T.BOOL, bool), ("float16", T.FLOAT16, np.float16), ("uint8", T.UINT8, np.uint8), ("double", T.DOUBLE, np.float64),
            ("int32", T.INT32, np.int32), ("int64", T.INT64, np.int64), ("int8", T.INT8, np.int8), ("uint64", T.UINT64, np.uint64),
        )
        for what, value in (("an array", np.array([1, 0, 1], dtype)), ("float32", np.ones(2, np.float32)), ("a list", [1, 0]), ("floats", [1.5, 0]))
    },
    "bits for bfloat16": run(typed(T.BFLOAT16), {"x": np.ones(2, np.uint16)}),
    # What a session says of its model
    **{f"ends of {name}": ends(data) for name, data in (
        ("ADD", ADD), ("TWO", TWO), ("SCALAR", SCALAR), ("SIZES", SIZES), ("RANKLESS", RANKLESS), ("UNUSED", UNUSED), ("DEFAULT", DEFAULT), ("OLD", OLD),
        ("SEQUENCE", SEQUENCE), ("MAKES_SEQUENCE", MAKES_SEQUENCE), ("OPTIONAL", OPTIONAL), ("BRANCHES", BRANCHES), ("UNSAID", UNSAID),
        ("CLASSES", CLASSES), ("NAMES", NAMES),
        ("texts", typed(T.STRING)), ("bfloat16", typed(T.BFLOAT16)), ("uint16", typed(T.UINT16)),
    )},
    "metadata": metadata,
    "text of a NodeArg": lambda ort: str(session(ort, ADD).get_inputs()[0]),
    "the path": lambda ort: [session(ort, ADD)._model_path, [a.name for a in session(ort, ADD)._inputs_meta]],
    "providers": lambda ort: [session(ort, ADD).get_providers(), session(ort, ADD).get_provider_options()],
    "set_providers": lambda ort: [load(ADD)(ort), ort.InferenceSession(ADD, providers=CPU).set_providers(CPU)],
    "end_profiling": lambda ort: session(ort, ADD).end_profiling(),
    "inner session": lambda ort: session(ort, ADD)._sess.run(["z"], FEED, ort.RunOptions()),
    "copied": lambda ort: copy.copy(session(ort, ADD)).run(None, FEED),
    "tuning": lambda ort: [session(ort, ADD).get_tuning_results(), session(ort, ADD).set_tuning_results([])],
    "dynamic options": lambda ort: session(ort, ADD).set_ep_dynamic_options({"a": "b"}),
    "no dynamic options": lambda ort: session(ort, ADD).set_ep_dynamic_options({}),
    "versions of models": lambda ort: [session(ort, versioned(n)).get_modelmeta().version for n in (None, 0, 3)],
    "an arena": arena({"max_mem": 5}),
    "an arena of four numbers": arena(7, 1, -1, 2),
    "an arena of three numbers": arena(7, 1, -1),
    "an arena with an unknown setting": arena({"max": 5}),
    "pickled": lambda ort: pickle.dumps(session(ort, ADD)),
    # Loading
    "a file": of_file(ADD),
    "a folder": of_file(None),
    "an empty file": of_file(b""),
    "a text": of_file(b"hello world, which is no model"),
    "a cut file": load(ADD[:-20]),
    "no file": load("no/such/file.onnx"),
    "nothing": load(b""),
    "None for a model": load(None),
    "a bytearray": load(bytearray(ADD)),
    "an unknown op": load(file([node("Nope", "x", "z")], [("x", T.FLOAT, ["N"])], [("z", T.FLOAT, ["N"])])),
    "an op of an unknown domain": load(STRANGER),
    "shapes that do not fit": load(file([node("Add", "x y", "z")], [("x", T.FLOAT, [2]), ("y", T.FLOAT, [3])], [("z", T.FLOAT, [3])])),
    "types that do not fit": load(file([node("Add", "x y", "z")], [("x", T.FLOAT, [3]), ("y", T.INT64, [3])], [("z", T.FLOAT, [3])])),
    "no providers": load(ADD, providers=None),
    "an empty list of providers": load(ADD, providers=[]),
    "CUDA, where there is none": load(ADD, providers=["CUDAExecutionProvider", "CPUExecutionProvider"]),
    "CUDA alone, with options": load(ADD, providers=[("CUDAExecutionProvider", {"device_id": 0})]),
    "an unknown provider": load(ADD, providers=["StrangeExecutionProvider"]),
    "a number for a provider": load(ADD, providers=[3]),
    "a name for providers": load(ADD, providers="CPUExecutionProvider"),
    "options of providers": load(ADD, provider_options=[{"a": "b"}]),
    "too many options of providers": load(ADD, provider_options=[{}, {}]),
    # Options
    "defaults": settings,
    "threads": with_options(intra_op_num_threads=2, inter_op_num_threads=np.int64(1)),
    "levels": with_options(graph_optimization_level="GraphOptimizationLevel.ORT_DISABLE_ALL", execution_mode="ExecutionMode.ORT_PARALLEL"),
    "flags": with_options(enable_cpu_mem_arena=False, enable_mem_pattern=False, use_deterministic_compute=True, log_severity_level=4),
    "a text for a number": with_options(intra_op_num_threads="a"),
    "a number for a level": with_options(graph_optimization_level=99),
    "a bool for a number, a number for a flag": with_options(intra_op_num_threads=True, enable_mem_pattern=0),
    "a float for a number": with_options(intra_op_num_threads=2.0),
    "None for a number": with_options(log_severity_level=None),
    "a level of logging that is none": lambda ort: ort.set_default_logger_severity(7),
    "an unknown option": with_options(no_such_option=1),
    "entries": entries,
    "an entry that is not there": lambda ort: ort.SessionOptions().get_session_config_entry("none"),
    "an entry that is no text": lambda ort: ort.SessionOptions().add_session_config_entry("a", 1),
    "options pickled": lambda ort: pickle.dumps(ort.SessionOptions()),
    "a library of ops that is not there": lambda ort: ort.SessionOptions().register_custom_ops_library("/no/such.so"),
    "a number for a size": sized(FEED),
    "another size than that number": sized({"x": np.ones((3, 3), np.float32), "y": Y}),
    "another weight": replaced,
    # OrtValue
    "an OrtValue": values,
    "types of OrtValues": of_types,
    "an OrtValue of a list": lambda ort: ort.OrtValue.ortvalue_from_numpy([1, 2]),
    "an OrtValue of texts": lambda ort: ort.OrtValue.ortvalue_from_numpy(np.array(["a"])),
    "an OrtValue of a number": lambda ort: ort.OrtValue(3),
    "an OrtValue updated by another size": lambda ort: ort.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace(Y),
    "an OrtValue updated by a list": lambda ort: ort.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace([1]),
    "bits as bfloat16": lambda ort: ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(2, np.uint16), 16).data_type(),
    "bits of another size": lambda ort: ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(2, np.uint16), 1),
    "DLPack": from_dlpack(X),
    "a capsule of DLPack": from_dlpack(lambda: X.copy().__dlpack__()),
    "DLPack of a number": from_dlpack(3),
    "devices": lambda ort: [
        (d.device_type(), d.device_id(), d.device_vendor_id(), d.device_mem_type())
        for d in (ort.OrtDevice.make(n, k) for n, k in (("cpu", 0), ("cuda", 1), ("webgpu", 0), ("dml", 0), ("cann", 0)))
    ],
    "OrtValues in and out": ort_values(["w"], FEED),
    "all OrtValues": ort_values(None, FEED),
    "a missing OrtValue": ort_values(["z"], {"x": X}),
    # Bindings
    "a bound output": bound(lambda _, b: b.bind_output("z")),
    "two bound outputs": bound(lambda _, b: [b.bind_output("w", "cpu"), b.bind_output("z", "cpu", 0)][0]),
    "an output bound twice": bound(lambda _, b: [b.bind_output("z"), b.bind_output("z")][0]),
    "nothing bound": bound(lambda *_: None),
    "an unknown input bound": bound(lambda _, b: b.bind_cpu_input("q", X)),
    "an unknown output bound": bound(lambda _, b: b.bind_output("q")),
    "a list bound": bound(lambda _, b: b.bind_cpu_input("x", [[1, 2, 3]])),
    "another type bound": bound(lambda _, b: [b.bind_cpu_input("x", X.astype(np.float64)), b.bind_output("z")][0]),
    "an OrtValue bound": bound(to_value((2, 3))),
    "an OrtValue of another shape bound": bound(to_value((3, 3))),
    "an address bound": bound(to_address(np.float32)),
    "an address of another type bound": bound(to_address(np.int32)),
    "an output bound to a device of the inner module": inner,
    "outputs cleared": bound(cleared),
    "inputs cleared": bound(emptied),
    # The module
    "version": lambda ort: [ort.__version__, ort.get_version_string()],
    "all providers": lambda ort: [p for p in ort.get_all_providers() if p != "SingeExecutionProvider"],
    "device": lambda ort: ort.get_device(),
    "functions": lambda ort: [
        ort.set_seed(3), ort.set_default_logger_severity(3), ort.set_default_logger_verbosity(0), ort.disable_telemetry_events(),
        ort.enable_telemetry_events(), ort.has_collective_ops(),
    ],
    "enumerations": lambda ort: [
        (str(m), int(m), m.name, m.value, kind(int(m)) == m)
        for kind in (ort.GraphOptimizationLevel, ort.ExecutionMode, ort.ExecutionOrder, ort.OrtMemType, ort.OrtAllocatorType, ort.OrtSparseFormat)
        for m in kind.__members__.values()
        if (kind.__name__, m.name) != ("OrtMemType", "CPU")  # a second name of a number
    ],
}  # fmt: skip


def narrow(ort: Any) -> Any:
    """Elements of a type that NumPy lacks, which onnxruntime refuses."""
    return session(ort, typed(T.BFLOAT16)).run(None, {"x": np.ones(2, ml_dtypes.bfloat16)})
