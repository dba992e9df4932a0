"""Singe under Pyodide: its wheel, installed by micropip, in node, in a page and in a module worker of Chromium."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import training
from bundles import BOUND, BOUNDS, MODELS
from pages import stopped_by
from pyodides import IN_PAGE, IN_WORKER, Failed, Host, Tab, assembled, in_node, setup, site

import singe
from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
from singe.onnx.model import read_model
from singe.onnx.source import OnnxSource
from singe.tools.export.page.scripts import bundle_scripts

NAMES = ("basic_pitch", "efficientnet_lite0", "magika", "mnist_cnn", "ppocr_cls", "ppocr_det")
MOST_OF_IT = 10_000_000
WAYS = ("by_gradients", "by_steps", "by_learner")
"""The functions of training.py."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assembled(tmp_path_factory)


@pytest.fixture(scope="module")
def node(folder: Path) -> Iterator[Host]:
    with in_node(folder) as ask:
        yield Host("node", ask, "/models")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with site(folder) as url:
        yield url


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Host:
    return Host("page", Tab(browser, address, IN_PAGE).ask, f"{address}models")


@pytest.fixture(scope="module")
def worker(browser: Any, address: str) -> Host:
    return Host("worker", Tab(browser, address, IN_WORKER).ask, f"{address}models")


@pytest.fixture(params=["node", "page", "worker"])
def host(request: pytest.FixtureRequest) -> Host:
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["numpy", "wasm", "webgpu"])
def device(request: pytest.FixtureRequest, host: Host) -> str:
    if host.name == "node" and request.param == "webgpu":
        pytest.skip("node has no WebGPU")
    return request.param


def need(name: str) -> Path:
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path.name} is absent: it belongs in {MODELS}")
    return path


# --- the same everywhere ----------------------------------------------------------------------------------------------


def test_the_wheel_is_installed(host: Host) -> None:
    assert host.call("installed", plain=True) == [singe.__version__, singe.__version__, True]


def test_batches(host: Host, device: str) -> None:
    assert max(host.call("batches", device)) < BOUND


def test_tensors(host: Host, device: str) -> None:
    assert max(host.call("eager", device)) < BOUND


def test_sessions(host: Host, device: str) -> None:
    *found, held, copied, drawn = host.call("sessions", device)
    assert found == [[2008, 20080], [1005, 10050], [6, 60], [2, 12], [5, 50]]
    assert (held, copied) == (3 * 8, 0)
    x, native = singe.tensor([1.0, 10.0]), list[list[float]]()
    for seed in (7, 8):
        singe.manual_seed(seed)
        native += [(x + singe.randn_like(x) * singe.rand_like(x)).tolist() for _ in range(2)]
    assert [y for pair in drawn for y in pair] == pytest.approx([y for pair in native for y in pair], abs=1e-4)
    assert len({y for y, _ in native}) == 4


def test_donated_inputs(host: Host, device: str) -> None:
    """NumPy's arrays are written over where WebAssembly works in their memory, and copied to a GPU."""
    in_place = device != "webgpu"
    assert host.call("donated", device) == [[True, in_place, True, True, True]] * 2


@pytest.fixture(scope="module")
def scripts(folder: Path) -> None:
    """singe/ort on the site."""
    place = folder.parent / "scripts"
    place.mkdir()
    for name, data in bundle_scripts().items():
        (place / name).write_bytes(data)


@pytest.mark.parametrize(("where", "provider"), [("page", "wasm"), ("worker", "webgpu")])
def test_a_model_that_was_not_compiled_before_is_compiled_in_the_page(
    request: pytest.FixtureRequest, scripts: None, address: str, where: str, provider: str
) -> None:
    host = request.getfixturevalue(where)
    need("mnist_cnn")
    assert max(host.call("dropped_in", address, host.models, "mnist_cnn", provider)) < BOUND


def test_external_data_and_what_singe_refuses_come_to_the_page(
    page: Host, scripts: None, address: str, folder: Path
) -> None:
    onnx = pytest.importorskip("onnx")
    weights = onnx.numpy_helper.from_array(np.arange(600, dtype=np.float32).reshape(2, 300), "w")
    info = onnx.helper.make_tensor_value_info
    for name, op in (("scaled", "MatMul"), ("strange", "Unheard")):
        node, ports = (
            onnx.helper.make_node(op, ["x", "w"], ["y"]),
            ([info("x", 1, ["N", 2])], [info("y", 1, ["N", 300])]),
        )
        model = onnx.helper.make_model(onnx.helper.make_graph([node], name, *ports, [weights]))
        place = {"save_as_external_data": True, "location": f"{name}.data", "size_threshold": 0}
        onnx.save(model, folder.parent / "scripts" / f"{name}.onnx", **place)
    feeds = [["x", "float32", [1, 10], [1, 2]]]
    given = {"path": "./scaled.data", "data": f"{address}scripts/scaled.data"}
    ((name, data, shape),) = page.call("run_session", address, f"{address}scripts/scaled.onnx", "wasm", feeds, [given])
    assert (name, shape) == ("y", [1, 300])
    assert data == [3000 + 11 * k for k in range(300)]
    for path, message in (("strange.data", "Unheard"), ("../strange.data", "expected one beside the model")):
        with pytest.raises(Failed, match=message):
            page.call(
                "run_session", address, f"{address}scripts/strange.onnx", "wasm", feeds, [{**given, "path": path}]
            )


def test_modules(host: Host, device: str) -> None:
    assert host.call("trained_layers", device) < BOUND


def loaded() -> list[Any]:
    """Batches of two epochs, the second of which is resumed; sent to Python in the page as it is."""
    import numpy as np  # noqa: PLC0415

    from singe import data  # noqa: PLC0415

    images = (np.arange(10 * 28 * 28).reshape(10, 1, 28, 28) % 251).astype(np.uint8)
    augment = data.Augment(data.RandomAffine(20, (0.1, 0.1), (0.8, 1.2)), data.ElasticTransform(30, 4))
    make = lambda: data.Loader((images, np.arange(10)), 4, shuffle=True, seed=3, workers=2, transform=augment)
    first, second = make(), make()
    made = [*first, next(iter(first))]
    second.resume(first.state())
    return [[labels.tolist(), float(changed.mean())] for changed, labels in [*made, *second]]


def test_integers_are_as_natively(node: Host) -> None:
    """NumPy's own are of 32 bits there."""
    made = "[str(t.dtype) for t in (sg.tensor(0), sg.tensor([1, 2]), sg.full((2,), 3), nn.BatchNorm1d(2).num_batches_tracked)]"
    assert json.loads(node.python(f"json.dumps({made})", plain=True)) == ["int64"] * 4


def test_data_is_loaded_without_threads(host: Host) -> None:
    found = json.loads(
        host.python(f"from typing import Any\n{inspect.getsource(loaded)}\njson.dumps(loaded())", plain=True)
    )
    expected = loaded()
    assert [labels for labels, _ in found] == [labels for labels, _ in expected]
    assert [mean for _, mean in found] == pytest.approx([mean for _, mean in expected], abs=0.05)


@pytest.fixture(scope="module")
def native() -> dict[str, list[float]]:
    """The losses of each way of training, natively on numpy; in a thread, since Playwright's runs an event loop."""
    with ThreadPoolExecutor(1) as pool:
        return {way: pool.submit(asyncio.run, getattr(training, way)("numpy")).result() for way in WAYS}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_losses_of_training_are_the_native_ones(
    host: Host, device: str, way: str, native: dict[str, list[float]]
) -> None:
    if (
        way == "by_learner"
        and device == "webgpu"
        and not host.python("from pyodide.ffi import can_run_sync; can_run_sync()")
    ):
        pytest.skip("this browser cannot suspend WebAssembly, and a Learner does not await")
    host.learn(inspect.getsource(training))
    assert host.call(way, device) == pytest.approx(native[way], rel=BOUND if device == "webgpu" else 1e-5)


def test_who_asks_for_a_device_gets_the_same(host: Host, device: str) -> None:
    assert host.call("one_device", device)


def test_a_page_has_an_adapter_of_low_power(page: Host) -> None:
    name, twice, refused = page.call("adapters")
    assert (name, twice) == ("webgpu:low-power", [2, 2])
    assert refused == 'no WebGPU adapter \'1\': a page has "webgpu" and "webgpu:low-power"'


def test_memory_is_counted(host: Host, device: str) -> None:
    if device == "numpy":
        pytest.skip("numpy does not count")
    with_it, without, refused = host.call("held", device)
    assert (with_it, without) == (4000, 0)
    assert ("takes memory in its own way" if device == "webgpu" else "no memory strategy") in refused


def test_tensors_and_gradients_move_between_devices(host: Host, device: str) -> None:
    there, back, onto, off = host.call("routed", device)
    assert there == back == [2**53 + 1, -5]
    assert onto == [4 * 8, 4 * 27]
    if off != onto:
        assert device == "webgpu"
        assert "nothing can wait here without await" in off


@pytest.mark.slow
def test_a_device_elsewhere(page: Host) -> None:
    """A page's own WebSocket leads to it: tensors, steps of training, and a connection that is lost."""
    pytest.importorskip("websockets", reason="the extra `remote` is not installed")
    with singe.remote.RemoteServer("wasm", port=0) as server, stopped_by(server.stop) as stop:
        assert "await singe.device_async" in page.call("plain", f"remote:{server.url}", plain=True)
        found = page.call("remote", server.url, server.token, stop)
    assert max(found["apart"]) < BOUND
    assert found["big"]
    assert found["first"] == [1]
    x = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)
    step = singe.train.TrainStep(
        singe.nn.Linear(7, 2, rng=0), singe.optim.SGD(0.1), lambda m, x: (m(x) ** 2).mean(), device="wasm"
    )
    assert found["losses"] == pytest.approx([step(x) for _ in range(3)], rel=1e-5)
    assert found["trips"] == 1
    assert found["sent"] < 1000
    assert found["kept"]
    (wrong, token), (cut, again), *stops, (absent, origin) = found["errors"]
    assert (wrong, cut, absent) == ("DeviceError", "RemoteDisconnected", "DeviceError")
    assert "the token is wrong" in token
    assert "the next call connects again" in again
    assert [(kind, "it is late" in text) for kind, text in stops] == [("RemoteDisconnected", True)] * 2
    assert "--origin http://127.0.0.1" in origin


def test_inputs_that_do_not_fit(host: Host, device: str) -> None:
    assert "got shape (3, 2), expected (2, 2)" in host.call("wrong_input", device)


def test_float64_and_strings_run_or_say_where(host: Host, device: str) -> None:
    found = host.call("on_the_host", device)
    if device == "webgpu":
        assert "add (wgsl does not compute float64)" in found[0]
        assert "string_concat (wgsl does not compute string)" in found[1]
        assert all("singe.js lacks" in text and "use the device wasm or numpy" in text for text in found)
    else:
        assert found == [[0.2, 4.0], ["abab"]]


@pytest.mark.parametrize("device", ["numpy", "wasm"])
def test_mnist_in_plain_forms(host: Host, device: str) -> None:
    need("mnist_cnn")
    host.call("one_device", device)
    assert host.call("plain_model", host.models, "mnist_cnn", device) < BOUND


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_models(host: Host, device: str, name: str) -> None:
    need(name)
    if host.name == "worker" and name != "mnist_cnn":
        pytest.skip("a worker does what a page does: one model shows it")
    if device == "webgpu" and name not in ("mnist_cnn", "magika"):
        pytest.skip("minutes in software: its programs are the same as natively, and test_runner_chromium runs them")
    found, apart, seconds = host.call("model", host.models, name, device)
    print(f"{name} on {device} in {host.name}: {apart:.1e} apart, {seconds:.2f} s to load, compile and run")
    assert found == name
    assert apart <= BOUNDS.get(name, BOUND)


@pytest.mark.parametrize("name", NAMES)
def test_programs_are_the_same_as_natively(node: Host, name: str) -> None:
    """WGSL, WebAssembly and packed weights, by their hashes."""
    shapes = {"x": (1, 3, 64, 96)} if name == "ppocr_det" else {}
    source = OnnxSource(read_model(need(name)), shapes)
    for target, found in node.call("programs", node.models, name, shapes).items():
        program = compile_graph(source.graph({}, {}), find_target(target))
        code = {k: v.encode() if isinstance(v, str) else v for k, v in program.modules.items()}
        expected = {k: hashlib.sha256(v).hexdigest() for k, v in code.items()}
        assert found == {**expected, "weights": hashlib.sha256(program.weights.tobytes()).hexdigest()}, target


def test_compiling(node: Host) -> None:
    """Under 4 seconds on an idle machine; on a busy one, less than a minute."""
    need("efficientnet_lite0")
    seconds = {
        target: node.call("compile_seconds", node.models, "efficientnet_lite0", target) for target in ("wasm", "wgsl")
    }
    print(", ".join(f"efficientnet_lite0 for {target}: {count:.2f} s" for target, count in seconds.items()))
    assert max(seconds.values()) < 60


def test_missing_files(host: Host) -> None:
    assert "cannot fetch" in host.call("missing", "http://127.0.0.1:1/none.onnx")
    if host.name != "node":
        assert "answers 404" in host.call("missing", f"{host.models}/none.onnx")


# --- memory -----------------------------------------------------------------------------------------------------------


def test_webassembly_works_in_pythons_memory(host: Host) -> None:
    host.call("one_device", "wasm")
    found = host.call("shared_memory")
    assert found == dict.fromkeys(found, True)


def test_memory_may_grow(host: Host) -> None:
    assert host.call("growth") == [True, True, True, True, "SharedEngine"]


def test_a_memory_of_their_own(host: Host) -> None:
    """The fallback if Pyodide's memory is not found."""
    shared, apart = host.call("copying")
    assert not shared
    assert max(apart) < BOUND


# --- waiting ----------------------------------------------------------------------------------------------------------

PRODUCT = [[5.0, 14.0], [14.0, 50.0]]


def test_plain_forms_need_no_waiting_once_a_device_is_open(host: Host) -> None:
    host.call("one_device", "wasm")
    assert host.call("plain", "wasm", plain=True) == PRODUCT
    assert host.call("plain", "numpy", plain=True) == PRODUCT


def test_errors_name_the_twins(page: Host) -> None:
    page.call("closed", "webgpu", plain=True)
    assert 'await singe.device_async("webgpu")' in page.call("plain", "webgpu", plain=True)
    page.call("one_device", "webgpu")
    assert "await tensor.numpy_async()" in page.call("plain", "webgpu", plain=True)


def test_plain_forms_wait_where_the_engine_can_suspend(page: Host) -> None:
    if not page.python("from pyodide.ffi import can_run_sync; can_run_sync()"):
        pytest.skip("this browser cannot suspend WebAssembly")
    page.call("closed", "webgpu", plain=True)
    assert page.call("plain_suspending", "webgpu") == PRODUCT


def test_a_device_whose_scripts_are_to_be_imported(node: Host) -> None:
    """Node has been given none, and cannot suspend: only the async form opens the device."""
    assert node.call("without_scripts") == [2.0, 3.0]
    node.call("forget", "wasm", plain=True)
    assert 'await singe.device_async("wasm")' in node.call("open_anew", plain=True)
    assert node.call("one_device", "wasm")
    assert node.call("open_anew", plain=True) == PRODUCT


def test_a_lost_device(page: Host) -> None:
    kind, message = page.call("lost")
    assert kind == "DeviceLost", message


# --- the page ---------------------------------------------------------------------------------------------------------


def test_progress(page: Host) -> None:
    progress = page._ask({})
    phases = [p["phase"] for p in progress]
    assert list(dict.fromkeys(phases)) == ["runtime", "numpy", "singe", "ready"]
    loaded = [p["loaded"] for p in progress]
    assert loaded == sorted(loaded)
    assert loaded[-1] == progress[-1]["total"] > MOST_OF_IT
    assert len(set(loaded)) > 10, "the bytes of a file count as they arrive"


def test_a_page_without_start(page: Host) -> None:
    """What micropip installed brings its scripts with it."""
    assert page.call("without_scripts") == [2.0, 3.0]


def test_a_strict_policy(browser: Any, address: str) -> None:
    """With the scripts that start.js registers all works; without them the error says what to do."""
    strict = Host("page", Tab(browser, f"{address}strict", IN_PAGE).ask, "")
    assert strict.call("one_device", "wasm")
    assert max(strict.call("eager", "wasm") + strict.call("eager", "webgpu")) < BOUND
    message = strict.call("without_scripts")
    assert "Content-Security-Policy" in message
    assert 'registerJsModule("singe_scripts"' in message


# --- the folder -------------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_the_one_that_was_locked(folder: Path, tmp_path: Path) -> None:
    """Nothing that the network gives is believed: not its length, not its contents."""
    made = setup()
    file = next(f for f in made.locked_files() if f.name.endswith(".mjs"))
    assert file.matches((folder / file.name).read_bytes())
    assert not file.matches(b"0" * file.bytes)
    (tmp_path / file.sha256).write_bytes(b"0" * file.bytes)
    said: list[str] = []
    other = made.Locked(
        file.name, file.bytes, file.sha256, ("npm no-such-package-of-singe@0 package/x", "pypi ../x==0 y")
    )
    with pytest.raises(made.SetupError, match=r"(?s)could not be fetched:.*npm.*pypi"):
        made.LockedFiles(tmp_path, [other], made.VERSION, said.append).path(other)
    assert len(said) == 4


@pytest.mark.slow
def test_a_tab_that_dies_is_replaced_by_one_that_has_learnt_the_same(browser: Any, address: str) -> None:
    tab = Tab(browser, address, IN_PAGE)
    host = Host("page", tab.ask, "", "def first():\n    return 1")
    host.learn("def second():\n    return first() + 1")
    tab.crash()
    with pytest.warns(UserWarning, match="the tab died"):
        assert host.call("second", plain=True) == 2


def test_python_errors_come_through(host: Host) -> None:
    with pytest.raises(Failed, match="ZeroDivisionError"):
        host.python("1 / 0")
