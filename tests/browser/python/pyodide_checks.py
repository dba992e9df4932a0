"""The functions that tests run under Pyodide; each returns a value for json.dumps."""

import asyncio
import contextlib
import gc
import hashlib
import io
import sys
import time
from importlib.metadata import distribution

import js
import numpy as np
import pyodide_js
from pyodide.code import run_js
from pyodide.ffi import to_js

import singe as sg
import singe_wasm.browser
import singe_webgpu.device.browser
from singe import float32, int32, nn
from singe.awaitables import resolve_async
from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
from singe.graph import Builder, Graph
from singe.onnx.model import read_model
from singe.onnx.source import OnnxSource
from singe.ops import ROWS
from singe.program.elements import aligned
from singe.runtime.devices import _devices
from singe.runtime.eager import EagerDevice
from singe.runtime.page import SCRIPTS
from singe.shapes import size


async def read(path: str) -> bytes:
    """A file of Python's file system, or of the page's site."""
    if not path.startswith("http"):
        with open(path, "rb") as file:
            return file.read()
    return (await (await js.fetch(path)).arrayBuffer()).to_bytes()


async def recorded(models: str, name: str):
    """A model's recorded inputs, and onnxruntime's outputs."""
    with np.load(io.BytesIO(await read(f"{models}/{name}.npz"))) as data:
        return [{k[len(p) :]: v for k, v in data.items() if k.startswith(p)} for p in ("in:", "out:")]


RUN_SESSION = """async ({ scripts, url, external, provider, feeds }) => {
  const { InferenceSession, Tensor, env } = await import(scripts);
  env.wasm.proxy = true;
  const file = new Uint8Array(await (await fetch(url)).arrayBuffer());
  const options = { executionProviders: [provider], externalData: external };
  const session = await InferenceSession.create(external ? file : url, options);
  const given = feeds.map(([name, type, data, dims]) => [name, new Tensor(type, data, dims)]);
  const outputs = await session.run(Object.fromEntries(given));
  await session.release();
  return Object.entries(outputs).map(([name, { data, dims }]) => [name, Array.from(data, Number), dims]);
}"""


async def run_session(address, url, provider, feeds, external=None):
    """What a session of singe/ort answers, of an ONNX file at an address and its external data."""
    given = {
        "scripts": f"{address}scripts/singe-ort.js",
        "url": url,
        "external": external,
        "provider": provider,
        "feeds": feeds,
    }
    found = await run_js(RUN_SESSION)(to_js(given, dict_converter=js.Object.fromEntries))
    return found.to_py()


async def dropped_in(address, models, name, provider):
    """How far a recorded model that was not compiled before is from onnxruntime, through singe/ort."""
    inputs, outputs = await recorded(models, name)
    feeds = [[name, str(x.dtype), x.ravel().tolist(), list(x.shape)] for name, x in inputs.items()]
    found = await run_session(address, f"{models}/{name}.onnx", provider, feeds)
    return [difference(np.array(data, outputs[n].dtype).reshape(shape), outputs[n]) for n, data, shape in found]


def difference(found, expected) -> float:
    """The largest difference, relative to the largest expected value."""
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    apart = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max(initial=0)
    return float(apart / max(1.0, np.abs(expected.astype(np.float64)).max(initial=0)))


def installed():
    files = [str(f) for f in distribution("singe").files or ()]
    return [sg.__version__, distribution("singe").metadata["Version"], "singe/_static/python/singe-python.js" in files]


async def model(models: str, name: str, device: str):
    """The difference of a model's outputs from the recorded ones, and the seconds that it took."""
    inputs, outputs = await recorded(models, name)
    start = time.perf_counter()
    loaded = await sg.load_async(f"{models}/{name}.onnx", device)
    found = await loaded.run_async(inputs)
    found = found if isinstance(found, dict) else {loaded.source.output_names[0]: found}
    seconds = time.perf_counter() - start
    assert found.keys() == outputs.keys(), (found.keys(), outputs.keys())
    return [loaded.name, max(difference(found[k], v) for k, v in outputs.items()), seconds]


async def batches(device: str):
    """One Program with an open batch, at several sizes, and again at earlier ones."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 8)).astype(np.float32)
    b = Builder()
    x, k = b.input("x", (size("N"), 3), float32), b.input("k", (size("N"), 1), int32)
    outputs = b.add(b.matmul(x, b.const(w)), b.cast(k, to=float32)), b.add(k, k), x
    model = sg.Model(Graph((x, k), outputs, ("scores", "twice", "same")), await sg.device_async(device))
    found = []
    for count in (3, 1, 200, 2, 3, 0, 200):
        a, n = rng.normal(size=(count, 3)).astype(np.float32), rng.integers(-9, 9, (count, 1)).astype(np.int32)
        out = await model.run_async(a, n)
        found.append(difference(out["scores"], a @ w + n.astype(np.float32)))
        assert np.array_equal(out["twice"], n + n)
        assert np.array_equal(out["same"], a)
        out["same"][:] = 0  # the caller's own
    assert len(model._programs) == 1
    return found


async def trained_layers(device: str):
    """A module that was moved to a device."""
    layers = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    x = np.random.default_rng(3).normal(size=(5, 3)).astype(np.float32)
    moved = layers.to(await sg.device_async(device))
    found = await moved(sg.tensor(x, device=device)).numpy_async()
    return difference(found, layers(sg.tensor(x)).numpy())


async def eager(device: str):
    """Operations on tensors, one by one and fused; dtypes; arrays that are passed from Program to Program."""
    on = await sg.device_async(device)
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 7)).astype(np.float32), rng.normal(size=(7, 3)).astype(np.float32)
    expected = np.maximum(a @ b, 0).sum(axis=0) * 2 + 1
    found = []
    for home in (on, sg.Fusion(on)):
        x, y = sg.tensor(a, device=home), sg.tensor(b, device=home)
        found.append(difference(await ((x @ y).relu().sum(axis=0) * 2 + 1).numpy_async(), expected))
    for kind in (np.bool_, np.uint8, np.int32, np.int64, np.float16):
        values = rng.integers(0, 2, (3, 5)).astype(kind)
        t = sg.tensor(values, device=on)
        assert np.array_equal(await t.numpy_async(), values), kind
        assert np.array_equal(await sg.concat([t, t]).numpy_async(), np.concatenate([values, values])), kind
    empty = sg.tensor(np.zeros((0, 3), np.float32), device=on)
    assert (await (empty * 2).numpy_async()).shape == (0, 3)
    return found


async def one_device(device: str):
    """All callers get the same device, also two at the same time."""
    first, second = await asyncio.gather(sg.device_async(device), sg.device_async(device))
    return first is second and sg.device(device) is first


def plain(device: str):
    """The results of the plain forms, or their errors."""
    try:
        x = sg.tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device=device)
        return (x @ x.T).numpy().tolist()
    except sg.DeviceError as e:
        return str(e)


async def plain_suspending(device: str):
    return plain(device)


async def plain_model(models: str, name: str, device: str):
    """The plain forms of loading from bytes, and of a call."""
    inputs, outputs = await recorded(models, name)
    (expected,) = outputs.values()
    return difference(sg.load(await read(f"{models}/{name}.onnx"), device)(inputs), expected)


def open_anew():
    """Opening a device for the first time, in a form that cannot wait."""
    _devices.pop("wasm", None)
    return plain("wasm")


def forget(device: str):
    """Close the device, and unregister the scripts."""
    _devices.pop(device, None)
    sys.modules.pop(SCRIPTS, None)
    with contextlib.suppress(ValueError):  # none was
        pyodide_js.unregisterJsModule(SCRIPTS)


def closed(device: str):
    """Close the device."""
    _devices.pop(device, None)


async def without_scripts():
    """The device when no script is registered."""
    forget("wasm")
    try:
        x = sg.tensor([1.0, 2.0], device=await sg.device_async("wasm"))
        return (x + 1).numpy().tolist()
    except sg.DeviceError as e:
        return str(e)


async def programs(models: str, name: str, shapes: dict):
    """Hashes of a model's code for both targets and of its weights; `shapes`:
    shapes of its inputs, if they are given."""
    graph = OnnxSource(read_model(await read(f"{models}/{name}.onnx")), shapes).graph({}, {})
    return {target: digests(compile_graph(graph, find_target(target))) for target in ("wgsl", "wasm")}


def digests(program):
    code = {k: hashlib.sha256(v.encode() if isinstance(v, str) else v).hexdigest() for k, v in program.modules.items()}
    return {**code, "weights": hashlib.sha256(program.weights.tobytes()).hexdigest()}


async def compile_seconds(models: str, name: str, target: str):
    source = OnnxSource(read_model(await read(f"{models}/{name}.onnx")))
    start = time.perf_counter()
    compile_graph(source.graph({}, {}), find_target(target))
    return time.perf_counter() - start


# --- the memory that WebAssembly shares with Pyodide ---


async def shared_memory():
    """Modules get the addresses of NumPy's arrays, and write to these without a copy."""
    backend = (await sg.device_async("wasm")).backend
    array = backend.upload(np.arange(8, dtype=np.float32))
    block, _ = backend.engine._blocks[array.address]
    in_place = singe_wasm.browser.address_of(block) == array.address and block[:32].view(np.float32).tolist() == list(
        range(8)
    )

    rooms = aligned(4096).view(np.float32)
    rooms[:] = 3
    program = sg.compile(lambda x: x * 2, rooms, device="wasm")
    seen = []
    run = program.executable.execute
    program.executable.execute = lambda placed, given, *rest: (seen.append(given), run(placed, given, *rest))[1]
    out = program(rooms)
    (given,) = seen
    weights = sg.compile(lambda x: x @ np.full((1024, 64), 0.5, np.float32), rooms.reshape(1, 1024), device="wasm")
    return {
        "shared": backend.describe()["shared"],
        "array": in_place,
        "input": [at for _, at in given] == [singe_wasm.browser.address_of(rooms)]
        and singe_wasm.browser.placed(rooms) is rooms,
        "output": singe_wasm.browser.placed(out) is out and bool((out == 6).all()),
        "weights": weights.executable._weights[0] == singe_wasm.browser.address_of(weights.data.weights),
        "scores": bool((weights(rooms.reshape(1, 1024)) == 1536).all()),
    }


async def growth():
    """Arrays and Programs stay valid when the memory grows; freed ones return their bytes."""
    on = await sg.device_async("wasm")
    engine = on.backend.engine
    x = sg.tensor(np.arange(100_000, dtype=np.float32), device=on)
    program = sg.compile(lambda t: t + 1, np.zeros(100_000, np.float32), device=on)
    program(np.zeros(100_000, np.float32))
    before = on.describe()
    ballast = [np.ones(60_000_000, np.uint8) for _ in range(4)]
    after = on.describe()
    same = bool((program(x.numpy()) == np.arange(1, 100_001)).all() and (x * 2).numpy()[-1] == 199_998)
    more = [sg.tensor(np.full(1 << 20, k, np.float32), device=on) for k in range(8)]
    kept = all((t + 0).numpy()[-1] == k for k, t in enumerate(more))
    held = on.describe()["used"]
    del more, ballast
    gc.collect()
    return [after["memory"] > before["memory"], same, kept, on.describe()["used"] < held, type(engine).__name__]


async def copying():
    """The engine in which modules have a separate memory."""
    backend = await resolve_async(singe_wasm.browser.open_backend(share=False))
    on = EagerDevice(backend)
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(65, 300)).astype(np.float32), rng.normal(size=(300, 70)).astype(np.float32)
    found = [difference((sg.tensor(a, device=on) @ sg.tensor(b, device=on)).numpy(), a @ b)]
    program = sg.compile(lambda x: (x @ b).relu(), a, device=on)
    found.append(difference(program(a), np.maximum(a @ b, 0)))
    big = sg.tensor(np.ones(3_000_000, np.float32), device=on)
    found.append(difference((big + 1).numpy(), np.full(3_000_000, 2, np.float32)))
    return [backend.describe()["shared"], found]


async def sessions(device: str):
    """The states after runs of two sessions, a write, a copy and a reset, and their bytes; what a model draws in runs after
    manual_seed(7), and of the seed 8."""

    def step(x, *, count):
        return count * 2, {"count": count + x}

    on = await sg.device_async(device)
    model = sg.Model.of(step, {"x": (2,)}, on, states={"count": np.array([5, 50], np.float32)})
    session, other, x = model.session(), model.session(), np.array([1, 10], np.float32)
    for _ in range(1000):
        last = await session.run_async(x)
    branch = session.copy()
    await other.run_async(x)
    branch.write("count", [1, 2])
    await branch.run_async(x)
    found = [last.tolist(), *[(await s.read_async("count")).tolist() for s in (session, other, branch)]]
    held = model.program().memory["states"]
    session.reset()
    del branch, other
    gc.collect()
    noisy = sg.Model.of(lambda x: x + sg.randn_like(x) * sg.rand_like(x), {"x": (2,)}, on)
    sg.manual_seed(7)
    drawn = [(await noisy.run_async(x)).tolist() for _ in range(2)]
    noisy.seed(8)
    drawn += [(await noisy.run_async(x)).tolist() for _ in range(2)]
    return [*found, (await session.read_async("count")).tolist(), held, model.program().data.copied({}), drawn]


async def donated(device: str):
    """What an input that is donated becomes, in a Program of calls alone and in one with a loop: by arrays of NumPy's, by an
    array of the device's, and whether that is the array that comes back; and what is left of NumPy's memory in use."""
    on = await sg.device_async(device)
    found = []
    for in_turns in (False, True):
        b = Builder()
        x, y = b.input("x", (64,), float32), b.input("y", (64,), float32)
        if in_turns:
            v, w = b.input("v", (64,), float32), b.input("w", (64,), float32)
            body = Graph((v, w), (b.const(True), b.add(v, w)), ("c", "v"))
            z = b.apply(ROWS["loop"], x, y, body=body, carried=1, conditional=False, count=2)
        else:
            z = b.add(x, b.add(y, y))
        program = sg.Model(Graph((x, y), (z,), ("z",)), on, donate=["x"]).program()
        mean, ones = aligned(256).view(np.float32), np.ones(64, np.float32)
        last = await program.run_async(mean, ones)
        in_place = np.shares_memory(last, mean)
        array, other = on.upload(np.zeros(64, np.float32)), on.upload(ones)
        same = all(program.executable.run([array, other])[0] is array for _ in range(100))
        read = await resolve_async(on.fetch(array))
        found.append(
            [program.data.donated == {0: 0}, in_place, last.tolist() == [2] * 64, same, read.tolist() == [200] * 64]
        )
    return found


# --- failures ---


async def missing(address: str):
    try:
        await sg.load_async(address)
    except sg.InputError as e:
        return str(e)
    return "nothing failed"


async def lost():
    """Reading from a device that was lost."""
    on = EagerDevice(await singe_webgpu.device.browser.open_backend())
    x = sg.tensor(np.ones(4, np.float32), device=on)
    y = x + 1
    await y.numpy_async()
    on.backend.dispose()
    try:
        await (y * 2).numpy_async()
    except sg.DeviceError as e:
        return [type(e).__name__, str(e)]
    return ["nothing", ""]


async def held(device):
    """Bytes in use with a tensor and without it, and why a strategy is refused."""
    on = await sg.device_async(device)
    gc.collect()  # what other calls left
    before = on.memory().in_use
    x = sg.tensor(np.ones(1000, np.float32), device=on)
    between = on.memory().in_use
    del x
    gc.collect()
    try:
        on.configure(sg.Memory("exclusive"))
    except sg.DeviceError as e:
        return [between - before, on.memory().in_use - before, str(e)]
    return [between, before, "nothing failed"]


async def adapters():
    """The name of the adapter of low power, what it computes, and why there is no second one."""
    on = await sg.device_async("webgpu:low-power")
    twice = (await (sg.ones(2, device=on) * 2).numpy_async()).tolist()
    try:
        await sg.device_async("webgpu:1")
    except sg.DeviceError as e:
        return [on.name, twice, str(e)]
    return [on.name, twice, "nothing failed"]


async def routed(device: str):
    """What moved off a device and back; gradients that go back onto it, and off it, or the error of an engine that cannot wait."""
    here = sg.Router(await sg.device_async(device), "numpy")
    whole = await sg.tensor([2**53 + 1, -5], device=here[0]).to_async(here[1])
    found = [whole.tolist(), (await whole.to(here[0]).numpy_async()).tolist()]
    recorded = sg.Autodiff(sg.Fusion(here))
    for first, second in (recorded, (recorded[1], recorded[0])):
        x = sg.tensor([2.0, 3.0], device=first, requires_grad=True)
        y = await (x * x).to_async(second)
        try:
            found.append((await (y * y).sum().backward()[x].numpy_async()).tolist())
        except sg.DeviceError as e:
            found.append(str(e))
    return found


async def remote(url: str, token: str, lose: str):
    """What a device elsewhere computes, forgets and says: tensors, ops one by one and fused, batches of a model, a weight after a step
    of training, round trips of the step and its bytes beside its batch; and the errors of a wrong token, of a lost connection, which
    comes back, and of none."""
    name = f"remote:{url}"
    found = {"errors": []}

    async def fails(work):
        try:
            await work
        except sg.SingeError as e:
            found["errors"].append([type(e).__name__, str(e)])

    with contextlib.suppress(sg.DeviceError):
        sg.Remote(url, "no")
    await fails(sg.device_async(name))
    with contextlib.suppress(sg.DeviceError):
        sg.Remote(url, token)  # where no engine can suspend, it is opened below
    on = await sg.device_async(name)
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 7)).astype(np.float32), rng.normal(size=(7, 3)).astype(np.float32)
    for home in (on, sg.Fusion(on)):
        x, y = sg.tensor(a, device=home), sg.tensor(b, device=home)
        found.setdefault("apart", []).append(difference(await (x @ y).relu().numpy_async(), np.maximum(a @ b, 0)))
    big = rng.normal(size=20_000_000).astype(np.float32)  # more frames than may be under way
    found["big"] = bool(np.array_equal(await sg.tensor(big, device=on).numpy_async(), big))
    first, *_ = await asyncio.gather(*((sg.tensor([k], device=on) + 1).numpy_async() for k in range(20)))
    found["first"] = first.tolist()
    step = sg.train.TrainStep(nn.Linear(7, 2, rng=0), sg.optim.SGD(0.1), lambda m, x: (m(x) ** 2).mean(), device=on)
    found["losses"] = [await step.run_async(a) for _ in range(3)]
    before = on.describe()
    await step.run_async(a)
    found["sent"], found["trips"] = (on.describe()[k] - before[k] for k in ("sent", "trips"))
    found["sent"] -= a.nbytes
    kept = sg.tensor(a, device=on)
    await on.backend.synchronize()
    on.backend.connection._link._socket.close()
    await fails(kept.numpy_async())
    found["kept"] = bool(np.array_equal(await kept.numpy_async(), a))
    asked = [kept.numpy_async(), (kept * 2).numpy_async()]
    await js.fetch(lose)
    for work in asked:
        await fails(work)
    await fails(sg.device_async(name))
    return found


async def wrong_input(device: str):
    program = sg.compile(lambda x: x + 1, np.zeros((2, 2), np.float32), device=await sg.device_async(device))
    try:
        await program.run_async(np.zeros((3, 2), np.float32))
    except sg.ShapeError as e:
        return str(e)
    return "nothing failed"


async def on_the_host(device: str):
    """Twice a float64 and twice a string; where the device's runner has no such steps, the error."""
    b = Builder()
    x, word = b.input("x", (2,), sg.float64), b.input("word", (1,), sg.string)
    found = []
    for graph, given in (
        (Graph((x,), (b.add(x, x),), ("y",)), np.array([0.1, 2.0])),
        (Graph((word,), (b.string_concat(word, word),), ("y",)), np.array(["ab"], object)),
    ):
        try:
            model = sg.Model(graph, await sg.device_async(device))
            found.append((await model.run_async(given)).tolist())
        except sg.DeviceError as e:
            found.append(str(e))
    return found
