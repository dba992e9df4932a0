"""Providers choose the device; what cannot be had is said once; SINGE_DEVICE and Singe's own provider name any device."""

from __future__ import annotations

import gc
import json
import pickle
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from calls import ADD, DEFAULT, FEED, ONE_NAME, RANKLESS, SEQUENCE, TWO, X, Y, file, node, typed
from devices import slow
from onnx import TensorProto, numpy_helper

import singe as sg
from singe import ort
from singe.files.kept import finish_keeping
from singe.ort import placed
from singe.ort.settings import providers, warned

OWN = "SingeExecutionProvider"


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warned, "_told", set())
    monkeypatch.delenv("SINGE_DEVICE", raising=False)


@pytest.fixture(params=["numpy", "wasm", *slow("webgpu")])
def name(request: pytest.FixtureRequest) -> str:
    try:
        sg.device(request.param)
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")
    return request.param


def test_singes_provider_names_a_device(name: str) -> None:
    session = ort.InferenceSession(TWO, providers=[(OWN, {"device": name})])
    assert session.device is sg.device(name)
    assert session.get_providers() == [OWN, "CPUExecutionProvider"]
    assert session.get_provider_options()[OWN] == {"device": name}
    for rows in (2, 1, 5):
        x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
        z, w = session.run(None, {"x": x, "y": Y + 1})
        np.testing.assert_allclose(z, x + 2)
        np.testing.assert_allclose(w, x * 2)


def test_what_a_file_leaves_open_works_on_each_device(name: str) -> None:
    def run(data: bytes, **feed: object) -> np.ndarray:
        return ort.InferenceSession(data, providers=[(OWN, {"device": name})]).run(None, feed)[0]

    np.testing.assert_allclose(run(RANKLESS, x=X[None] - 2), np.maximum(X[None] - 2, 0))
    np.testing.assert_allclose(run(ONE_NAME, x=Y[:1], y=Y), Y + 1)
    np.testing.assert_allclose(run(DEFAULT, x=X, w=Y), X + 1)
    np.testing.assert_allclose(run(SEQUENCE, s=[Y, Y * 2], i=np.array(1)), Y * 2)


def test_one_session_runs_all_that_its_file_leaves_open() -> None:
    """Inputs of other ranks and sizes in turn: each gets its Model, and those before still work."""
    session = ort.InferenceSession(RANKLESS)
    for shape in ((3,), (2, 3), (1,), (2, 1, 2), (3,), ()):
        x = np.full(shape, -1.5, np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.zeros(shape, np.float32))
    named = ort.InferenceSession(ONE_NAME)
    for a, b in ((3, 3), (1, 3), (3, 3), (2, 1)):
        assert named.run(None, {"x": np.ones(a, np.float32), "y": np.ones(b, np.float32)})[0].shape == (max(a, b),)


def test_outputs_are_the_callers_own(name: str) -> None:
    """What a run gave does not change with the next run or with its input, and can be written."""
    session = ort.InferenceSession(typed(onnx.TensorProto.FLOAT), providers=[(OWN, {"device": name})])
    x = Y.copy()
    (first,) = session.run(None, {"x": x})
    x[:] = 7
    session.run(None, {"x": x})
    assert first.tolist() == [1, 1, 1]
    first[0] = 5
    assert x.tolist() == [7, 7, 7]


def test_the_variable_names_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINGE_DEVICE", "numpy")
    session = ort.InferenceSession(ADD, providers=["CPUExecutionProvider"])
    assert session.device is sg.device("numpy")
    assert ort.get_available_providers() == ["CPUExecutionProvider", OWN]
    assert ort.InferenceSession(ADD, providers=[(OWN, {"device": "cpu"})]).device is sg.device("cpu")


def test_a_device_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.EPFail, match=r"nonesuch"):
        ort.InferenceSession(ADD, providers=[(OWN, {"device": "nonesuch"})])


def test_without_providers_it_is_the_cpu() -> None:
    assert ort.InferenceSession(ADD).device is sg.device("cpu")
    assert ort.InferenceSession(ADD).get_providers() == ["CPUExecutionProvider"]


def test_providers_of_other_machines_are_passed_over_and_said_once() -> None:
    wanted = ["TensorrtExecutionProvider", "OpenVINOExecutionProvider", "CPUExecutionProvider"]
    with pytest.warns(UserWarning, match=r"Specified provider '\w+' is not here") as said:
        session = ort.InferenceSession(ADD, providers=wanted)
    assert len(said) == 2
    assert session.get_providers() == ["CPUExecutionProvider"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ort.InferenceSession(ADD, providers=wanted)


def test_what_changes_no_answer_is_not_said() -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(ort.InferenceSession(ADD, options).run(None, FEED)[0], X + 1)


def test_the_optimised_model_is_a_file_that_answers_alike(tmp_path: Path) -> None:
    """Weights of a file beside the model go with it."""
    weight = numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")
    weighted = file(
        [node("Add", "x w", "z")], [("x", TensorProto.FLOAT, ["N", 3])], [("z", TensorProto.FLOAT, ["N", 3])], [weight]
    )
    made = onnx.load_from_string(weighted)
    (tmp_path / "first").mkdir()
    onnx.save(made, tmp_path / "first" / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    options, out = ort.SessionOptions(), tmp_path / "second" / "out.onnx"
    options.optimized_model_filepath = str(out)
    refused = pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="cannot be written")
    with pytest.warns(UserWarning, match="as it was given"), refused:
        ort.InferenceSession(weighted, options)
    out.parent.mkdir()
    for model in (weighted, tmp_path / "first" / "m.onnx"):
        (expected,) = ort.InferenceSession(model, options).run(None, {"x": X})
        np.testing.assert_array_equal(ort.InferenceSession(out).run(None, {"x": X})[0], expected)
    before = out.read_bytes()
    ort.InferenceSession(out, options)  # onto itself
    assert out.read_bytes() == before
    options.add_free_dimension_override_by_name("N", 2)
    options.optimized_model_filepath = str(tmp_path / "third.onnx")
    with pytest.warns(UserWarning, match="no file is written"):
        ort.InferenceSession(weighted, options)
    assert not (tmp_path / "third.onnx").exists()


def test_a_profile_has_each_run_and_the_steps_of_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, "times"
    session = ort.InferenceSession(ADD, options, providers=[("SingeExecutionProvider", {"device": name})])
    for _ in range(2):
        session.run(None, FEED)
    assert session.get_profiling_start_time_ns() > 0
    path = Path(session.end_profiling())
    events = json.loads(path.read_text())
    assert path.name.startswith("times_")
    assert [e["name"] for e in events if e["cat"] == "Session"] == ["model_run"] * 2
    steps = [e for e in events if e["cat"] == "Node"]
    assert steps
    assert all(e["args"]["provider"] == "SingeExecutionProvider" and e["dur"] >= 0 for e in steps)
    assert session.end_profiling() == ""  # it has ended
    assert ort.InferenceSession(ADD).end_profiling() == ""


def test_native_libraries_of_ops_are_refused(tmp_path: Path) -> None:
    library = tmp_path / "ops.so"
    library.write_bytes(b"\x7fELF")
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.NotImplemented, match=r"sg\.op"):
        ort.SessionOptions().register_custom_ops_library(str(library))


def test_onnxruntimes_own_format_is_refused() -> None:
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.NotImplemented, match=r"\.ort.*give the ONNX file"):
        ort.InferenceSession(b"\x18\0\0\0ORTM" + bytes(40))


def test_addresses_on_other_devices_are_refused() -> None:
    binding = ort.InferenceSession(ADD).io_binding()
    with pytest.raises(RuntimeError, match=r"address on cuda.*bind an array"):
        binding.bind_input("x", "cuda", 0, np.float32, (2, 3), 4096)


def test_a_device_that_is_not_here_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sessions run on the CPU, and its values are in memory."""

    def absent(name: str) -> sg.Device:
        if name.startswith("cuda"):
            raise sg.DeviceError("no driver")
        return sg.device(name)

    for module in (placed, providers):
        monkeypatch.setattr(module, "open_device", absent)

    def run() -> tuple[ort.InferenceSession, ort.OrtValue, np.ndarray]:
        session = ort.InferenceSession(ADD, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
        value, binding = ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0), session.io_binding()
        binding.bind_output("z", "cuda")
        binding.bind_ortvalue_input("x", value)
        binding.bind_cpu_input("y", Y)
        session.run_with_iobinding(binding)
        return session, value, binding.get_outputs()[0].numpy()

    with pytest.warns(UserWarning, match=r"not here: no driver") as said:
        session, value, z = run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run()
    assert len(said) == 2
    assert (session.get_providers(), value.device_name()) == (["CPUExecutionProvider"], "cpu")
    assert np.shares_memory(value.numpy(), X)
    np.testing.assert_array_equal(z, X + Y)


def test_the_provider_of_cuda_is_cuda_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    device = sg.device("numpy")
    monkeypatch.setattr(providers, "open_device", {"cuda": device, "cuda:1": device}.__getitem__)
    for provider in ("CUDAExecutionProvider", ("CUDAExecutionProvider", {"device_id": 1})):
        session = ort.InferenceSession(ADD, providers=[provider])
        assert session.device is device
        assert session.get_providers() == ["CUDAExecutionProvider", "CPUExecutionProvider"]


@pytest.fixture(params=["wasm", *slow("webgpu")])
def place(request: pytest.FixtureRequest) -> str:
    try:
        sg.device(request.param)
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")
    return request.param


def test_values_stay_on_the_device_of_a_session(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An output that is bound to the device is an input of the next run, and nothing is copied in between."""
    session = ort.InferenceSession(TWO, providers=[(OWN, {"device": place})])
    device = sg.device(place)
    x, y = (ort.OrtValue.ortvalue_from_numpy(a, place, 0) for a in (X, Y))
    assert (x.device_name(), x.shape(), x.data_type(), x.tensor_size_in_bytes()) == (place, [2, 3], "tensor(float)", 24)
    into = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, place)
    binding = session.io_binding()
    binding.bind_ortvalue_input("y", y)
    binding.bind_output("z", place)
    binding.bind_ortvalue_output("w", into)
    with monkeypatch.context() as patched:
        for copies in ("fetch", "upload"):
            patched.setattr(device, copies, lambda *_: pytest.fail("a copy"))
        for _ in range(3):
            binding.bind_ortvalue_input("x", x)
            session.run_with_iobinding(binding)
            x = binding.get_outputs()[0]
    assert x.device_name() == into.device_name() == place
    np.testing.assert_allclose(x.numpy(), X + 3 * Y)
    np.testing.assert_allclose(into.numpy(), (X + 2 * Y) * Y)
    np.testing.assert_allclose(np.from_dlpack(x), X + 3 * Y)
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], X + 3 * Y)
    y.update_inplace(Y + 1)
    (z,) = session.run_with_ort_values(["z"], {"x": x, "y": y})
    np.testing.assert_allclose(z.numpy(), X + 4 * Y + 1)


def test_a_value_on_a_device_serves_sessions_elsewhere(place: str) -> None:
    """And sessions that must know elements, or take lists."""
    run = lambda data, feed, on="numpy": ort.InferenceSession(data, providers=[(OWN, {"device": on})]).run(None, feed)[
        0
    ]
    x, y = (ort.OrtValue.ortvalue_from_numpy(a, place) for a in (X, Y))
    np.testing.assert_allclose(run(ADD, {"x": x, "y": y}), X + Y)
    np.testing.assert_allclose(run(ADD, {"x": x, "y": Y}, place), X + Y)
    np.testing.assert_allclose(run(RANKLESS, {"x": x}, place), np.maximum(X, 0))
    number = ort.OrtValue.ortvalue_from_numpy(np.array(1), place)
    np.testing.assert_allclose(run(SEQUENCE, {"s": [Y, Y * 2], "i": number}, place), Y * 2)
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match=r"Unexpected input data type"):
        run(ADD, {"x": x, "y": number}, place)
    with pytest.raises(RuntimeError, match=r"tells no address"):
        x.data_ptr()
    with pytest.raises(RuntimeError, match=r"got 3 elements.*expected 6"):
        x.update_inplace(Y)


def test_external_data_of_a_model_in_memory(tmp_path: Path) -> None:
    """Its files are given in memory, or a setting says in which folder they are."""
    model = onnx.load_from_string(DEFAULT)
    del model.graph.input[1]
    for weight in model.graph.initializer:
        weight.raw_data = np.array([1, 2, 3], np.float32).tobytes()
        weight.ClearField("float_data")
    onnx.save(model, str(tmp_path / "m.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    data = (tmp_path / "m.onnx").read_bytes()
    of_file = ort.InferenceSession(tmp_path / "m.onnx").run(None, {"x": X})[0]
    np.testing.assert_allclose(of_file, X + np.float32([1, 2, 3]))
    in_memory, named = ort.SessionOptions(), ort.SessionOptions()
    weights = (tmp_path / "w.bin").read_bytes()
    in_memory.add_external_initializers_from_files_in_memory(["w.bin"], [weights], [len(weights)])
    named.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
    for options in (in_memory, named):
        np.testing.assert_array_equal(ort.InferenceSession(data, options).run(None, {"x": X})[0], of_file)
    with pytest.raises(sg.SingeError, match=r"w\.bin"):
        ort.InferenceSession(data)


def test_a_file_that_was_compiled_before_is_not_compiled_again(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor its variants: what is kept from one process to the next serves sessions, too."""
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "m.onnx").write_bytes(DEFAULT)

    def answers() -> list[list[float]]:
        session = ort.InferenceSession(tmp_path / "m.onnx", providers=[(OWN, {"device": name})])
        assert [(a.name, a.shape) for a in session.get_outputs()] == [("z", ["N", 3])]
        return [session.run(None, feed)[0].tolist() for feed in ({"x": X}, {"x": X[:1]}, {"x": X, "w": Y})]

    expected = answers()

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("it is compiled again")

    monkeypatch.setattr("singe.model.model.compiling.compile_graph", refused)
    assert answers() == expected


def test_a_session_that_nobody_holds_is_freed_at_once(name: str) -> None:
    """Without a collection of garbage: what it has on its device is large."""
    session = ort.InferenceSession(DEFAULT, providers=[(OWN, {"device": name})])
    session.run(None, {"x": X})
    session.run(None, {"x": X, "w": Y})
    binding = session.io_binding()
    seen = weakref.ref(session), weakref.ref(session._variants)
    gc.disable()
    try:
        del session, binding
        assert [each() for each in seen] == [None, None]
    finally:
        gc.enable()


def test_threads_share_a_session() -> None:
    """Runs of other sizes, ranks and weights at the same time: each gets its own answer."""
    session, shared = ort.InferenceSession(DEFAULT), ort.InferenceSession(RANKLESS)

    def answers(k: int) -> bool:
        x = np.full((k % 5 + 1, 3), k, np.float32)
        (z,) = session.run(None, {"x": x, "w": Y * k} if k % 2 else {"x": x})
        (r,) = shared.run(None, {"x": np.full((2,) * (k % 3), -k, np.float32)})
        return np.array_equal(z, x + (Y * k if k % 2 else np.float32([1, 2, 3]))) and not r.any()

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(answers, range(60)))


def test_the_file_may_be_removed_once_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As programs do that write a model to a temporary file; also where something of it was kept before."""
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))
    for _ in range(2):
        (tmp_path / "m.onnx").write_bytes(DEFAULT)
        session = ort.InferenceSession(tmp_path / "m.onnx")
        (tmp_path / "m.onnx").unlink()
        for _ in range(2):
            np.testing.assert_array_equal(session.run(None, {"x": X, "w": Y})[0], X + 1)
            np.testing.assert_array_equal(session.run(None, {"x": X})[0], X + np.float32([1, 2, 3]))
        finish_keeping()
        kept = [*(tmp_path / "cache" / "compiled").glob("program*")]
        assert len(kept) >= 2
        for path in kept:  # so that the second session knows the file, and must compile it
            path.unlink()


class ByPath(ort.InferenceSession):
    """A session that is pickled by its path, as programs for onnxruntime write one."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __getstate__(self) -> dict[str, str]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, str]) -> None:
        self.__init__(state["path"])


def test_a_subclass_can_be_pickled(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(ADD)
    again = pickle.loads(pickle.dumps(ByPath(str(tmp_path / "m.onnx"))))
    np.testing.assert_array_equal(again.run(None, FEED)[0], X + 1)
