"""singe/ort, the drop-in for onnxruntime-web: sessions of stubs, tensors, models of one op, and what is refused."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import STATIC, assert_close, packed, small_case, small_graph
from packages import npm, npm_package
from pages import Page, node, open_page

import singe as sg
from singe.model.model import Model
from singe.tools.export.stub import export_stub

SESSION: Final = """
    const { InferenceSession, Tensor, env } = await import("/static/singe-ort.js");
    const tensor = ({ dtype, shape, data }) => new Tensor(dtype, unpackOne(data, dtype), shape);
    const unpackOne = (data, dtype) => unpack({ x: { dtype, shape: [], data } }).x.data;
    const feedsOf = (inputs) => Object.fromEntries(Object.entries(inputs).map(([name, x]) => [name, tensor(x)]));
    const each = (tensors, change) => Object.fromEntries(Object.entries(tensors).map(([name, x]) => [name, change(x)]));
    const plain = (outputs) => pack(each(outputs, ({ type, dims, data }) => ({ dtype: type, shape: dims, data })));
"""
"""The beginning of a script that runs a session."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a stub, small.onnx."""
    folder = tmp_path_factory.mktemp("stubs")
    export_stub(Model(small_graph(), "numpy", "small"), folder / "small.onnx")
    export_stub(Model(small_graph(), "numpy", "small"), folder / "altered.onnx", targets=["wasm"])
    manifest = folder / "altered.onnx.singe" / "model.json"
    manifest.write_bytes(manifest.read_bytes() + b" ")
    return folder


@pytest.fixture(scope="module")
def page(browser: Any, folder: Path) -> Iterator[Page]:
    with open_page(browser, folder) as found:
        yield found


def packed_case(count: int) -> tuple[Any, dict[str, np.ndarray]]:
    inputs, expected = small_case(count)
    return packed(inputs), expected


@pytest.mark.parametrize("device", ["wasm", "webgpu"])
@pytest.mark.parametrize("how", ["address", "bytes", "buffer", "bundle"])
def test_a_session_runs_what_a_stub_names(page: Page, how: str, device: str) -> None:
    """Bytes alone do too: the bundle is beside the file that the page fetched."""
    inputs, expected = packed_case(5)
    body = (
        SESSION
        + """
        const bytes = await (await fetch("/bundles/small.onnx")).arrayBuffer();
        const longer = new Uint8Array(bytes.byteLength + 9);
        longer.set(new Uint8Array(bytes), 4);
        const given = {
          address: ["/bundles/small.onnx"], bytes: [new Uint8Array(bytes)], buffer: [longer.buffer, 4, bytes.byteLength],
          bundle: ["/bundles/small.onnx.singe/"],
        };
        const session = await InferenceSession.create(...given_(given), { executionProviders: [{ name: given.device }] });
        const { inputNames, outputNames, inputMetadata } = session;
        const outputs = plain(await session.run(feedsOf(given.inputs)));
        const one = Object.keys(await session.run(feedsOf(given.inputs), ["twice"]));
        await session.release();
        return { inputNames, outputNames, inputMetadata, outputs, one };
    """.replace("const given = {", "const sources = {").replace("...given_(given)", "...sources[given.how]")
    )
    found = page.run(body, how=how, device=device, inputs=inputs)
    assert_close(found["outputs"], expected)
    assert found["inputNames"] == ["x", "k", "keep"]
    assert found["outputNames"] == ["scores", "negated", "twice"]
    assert found["inputMetadata"][0] == {"name": "x", "isTensor": True, "type": "float32", "shape": ["N", 3]}
    assert found["one"] == ["twice"]


def test_outputs_stay_on_the_gpu_and_are_inputs_there(page: Page) -> None:
    """So do those of one session as inputs of another: all sessions have the same device."""
    inputs, expected = packed_case(4)
    body = (
        SESSION
        + """
        const options = { executionProviders: ["webgpu"], preferredOutputLocation: { scores: "gpu-buffer", twice: "gpu-buffer" } };
        const [one, other] = await Promise.all([1, 2].map(() => InferenceSession.create("/bundles/small.onnx", options)));
        const feeds = feedsOf(given.inputs);
        const first = await one.run(feeds);
        const places = Object.values(first).map(({ location }) => location);
        const second = await other.run({ ...feeds, k: first.twice });
        const doubled = Array.from(await second.twice.getData(true));
        const refused = await failure(async () => first.twice.data);
        for (const x of Object.values(first)) await x.getData();
        const after = first.scores.location;
        return { places, doubled, refused, outputs: plain(first), after, device: env.webgpu.device.constructor.name };
    """
    )
    found = page.run(body, inputs=inputs)
    assert found["places"] == ["gpu-buffer", "cpu", "gpu-buffer"]
    assert_close(found["outputs"], expected)
    assert found["doubled"] == (2 * expected["twice"]).ravel().tolist()
    assert "gpu-buffer; getData() copies it" in found["refused"]["message"]
    assert (found["after"], found["device"]) == ("cpu", "GPUDevice")


def test_one_element_is_a_scalar_whatever_its_dims(page: Page, folder: Path) -> None:
    """As onnxruntime takes it: packages give a rate as one element of one axis."""
    export_stub(sg.Model.of(lambda x, k: x * k, {"x": (3,), "k": ()}), folder / "scaled.onnx", targets=["wasm"])
    body = (
        SESSION
        + """
        const session = await InferenceSession.create("/bundles/scaled.onnx");
        const x = new Tensor(Float32Array.of(1, 2, 3));
        const found = await Promise.all([[1], [1, 1], []].map((dims) => session.run({ x, k: new Tensor(Float32Array.of(4), dims) })));
        return found.map((outputs) => Array.from(Object.values(outputs)[0].data));
    """
    )
    assert page.run(body) == [[4, 8, 12]] * 3


@pytest.mark.parametrize("device", ["wasm", "webgpu"])
def test_results_come_into_tensors_that_are_given(page: Page, device: str) -> None:
    inputs, expected = packed_case(3)
    body = (
        SESSION
        + """
        const session = await InferenceSession.create("/bundles/small.onnx", { executionProviders: [given.device] });
        const scores = new Tensor("float32", new Float32Array(12), [3, 4]);
        const outputs = await session.run(feedsOf(given.inputs), { scores, twice: null });
        return { same: outputs.scores === scores, names: Object.keys(outputs), scores: Array.from(scores.data) };
    """
    )
    found = page.run(body, inputs=inputs, device=device)
    assert found["same"]
    assert found["names"] == ["scores", "twice"]
    np.testing.assert_allclose(np.reshape(found["scores"], (3, 4)), expected["scores"], rtol=1e-5, atol=1e-5)


REFUSED: Final = {
    "a model": (
        "InferenceSession.create(new Uint8Array(5000))",
        "got 5000 bytes that are no stub of Singe", "singe export model.onnx -o public/model.onnx --stub",
    ),
    "a model's address": ("InferenceSession.create('/bundles/small.onnx.singe/model.json')", "no stub of Singe", "model.json"),
    "no file": ("InferenceSession.create('/bundles/none.onnx')", "none.onnx: the server answers 404", ""),
    "another bundle": ("InferenceSession.create('/bundles/altered.onnx')", "is not the stub's bundle", "--url"),
    "a folder elsewhere": ("""InferenceSession.create(edited('"small.onnx.singe"', '"../small.onnx.singe"'))""", "the stub is damaged", ""),
    "a provider": ("InferenceSession.create('/bundles/small.onnx', { executionProviders: ['webnn'] })", "executionProviders: got webnn", "webgpu and wasm"),
    "no feeds": ("session.run({})", "input 'x' is missing in 'feeds'", ""),
    "another feed": ("session.run({ ...feeds, y: feeds.x })", "invalid input 'y'", ""),
    "another output": ("session.run(feeds, ['logits'])", "invalid output name: logits", ""),
    "a dtype": (
        "session.run({ ...feeds, k: new Tensor(new Float32Array(1), [1, 1]) })",
        "Unexpected input data type. Actual: (tensor(float)) , expected: (tensor(int32))", 'input "k": got the dtype',
    ),
    "a rank": (
        "session.run({ ...feeds, x: new Tensor(new Float32Array(4), [1, 2, 2]) })",
        "ERROR_MESSAGE: Invalid rank for input: x Got: 3 Expected: 2 ", 'input "x": got the shape',
    ),
    "dimensions": (
        "session.run({ ...feeds, x: new Tensor(new Float32Array(2), [1, 2]) })",
        "Got invalid dimensions for input: x for the following indices\n index: 1 Got: 2 Expected: ", 'input "x": got the shape',
    ),
    "a length": ("new Tensor('float32', new Float32Array(3), [2, 2])", "size(4) does not match data length(3)", ""),
    "elements": ("new Tensor('float32', new Int32Array(3))", "a tensor of float32: got Int32Array, expected Float32Array", ""),
    "a type": ("new Tensor('float31', [1])", "type: got float31", ""),
    "a texture": ("Tensor.fromTexture({}, { width: 1, height: 1 })", "location: got texture, expected cpu or gpu-buffer", ""),
    "bytes on the GPU": ("Tensor.fromGpuBuffer({}, { dataType: 'uint8', dims: [1] })", "a GPU buffer of uint8", "give it on the CPU"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_with_what_to_do(page: Page, what: str) -> None:
    inputs, _ = packed_case(1)
    script, *parts = REFUSED[what]
    body = (
        SESSION
        + f"""
        const session = await InferenceSession.create("/bundles/small.onnx", {{ executionProviders: ["wasm"] }});
        const feeds = feedsOf(given.inputs);
        const text = await (await fetch("/bundles/small.onnx")).text();
        const edited = (from, to) => new TextEncoder().encode(text.replace(from, to));
        return failure(async () => {script});
    """
    )
    found = page.run(body, inputs=inputs)
    assert found["name"] != "none"
    assert all(part in found["message"] for part in parts), found


def test_a_stub_may_say_where_its_bundle_is(page: Page, folder: Path) -> None:
    (folder / "other").mkdir()
    export_stub(
        Model(small_graph(), "numpy", "small"), folder / "other" / "told.onnx", url="/bundles/other/told.onnx.singe"
    )
    stub = list((folder / "other" / "told.onnx").read_bytes())
    body = SESSION + "return (await InferenceSession.create(Uint8Array.from(given.stub))).inputNames;"
    assert page.run(body, stub=stub) == ["x", "k", "keep"]
    assert page.run(body, stub=list((folder / "small.onnx").read_bytes())) == ["x", "k", "keep"]  # which others fetched


def test_a_stub_that_a_library_keeps_in_a_cache_finds_its_bundle(page: Page, folder: Path) -> None:
    """On a later visit nothing fetches the stub; and if the model was exported anew meanwhile, the bundle of now is taken."""
    model = Model(small_graph(), "numpy", "small")
    export_stub(model, folder / "kept.onnx", targets=["wasm"])
    stub = (folder / "kept.onnx").read_bytes()
    body = (
        SESSION
        + """
        const cache = await caches.open("of a library");
        await cache.put("/bundles/kept.onnx", new Response(Uint8Array.from(given.stub)));
        const session = await InferenceSession.create(Uint8Array.from(given.stub));
        return session.inputNames;
    """
    )
    assert page.run(body, stub=list(stub)) == ["x", "k", "keep"]
    export_stub(sg.Model.of(lambda x: x * 2, {"other": (3,)}), folder / "kept.onnx", targets=["wasm"])
    assert page.run(body, stub=list(stub)) == ["other"]
    page.run("await caches.delete('of a library');")
    nowhere = "InferenceSession.create(new TextEncoder().encode(new TextDecoder().decode(Uint8Array.from(given.stub)).replaceAll('kept', 'gone')))"
    found = page.run(SESSION + f"return failure(async () => {nowhere});", stub=list(stub))
    assert "fetched no file of its name; export with --url, the address of the bundle" in found["message"]


TENSORS: Final = """
    const { Tensor } = await import("/static/singe-ort.js");
    const found = (t) => [t.type, [...t.dims], t.data.constructor.name, Array.from(t.data, Number), t.size, t.location];
"""


def test_tensors_are_made_in_every_form_of_onnxruntime(page: Page) -> None:
    body = (
        TENSORS
        + """
        const disposed = (tensor) => {
          tensor.dispose();
          try {
            return tensor.data;
          } catch (error) {
            return error.message;
          }
        };
        return {
          typed: found(new Tensor(new Float32Array([1, 2, 3, 4]), [2, 2])),
          bare: found(new Tensor(new BigInt64Array([1n, 2n]))),
          list: found(new Tensor("int64", [1, 2, 3], [3])),
          bools: found(new Tensor([true, false])),
          bool: found(new Tensor("bool", [true, false], [1, 2])),
          clamped: found(new Tensor(new Uint8ClampedArray([1, 2]))),
          half: found(new Tensor("float16", new Uint16Array([0x3c00]), [1])).filter((_, k) => k !== 2),
          strings: new Tensor(["a", "b"], [2, 1]).data,
          shaped: found(new Tensor("uint8", [1, 2, 3, 4], [4]).reshape([2, 2])),
          scalar: found(new Tensor("float64", [0.5], [])),
          pinned: found(Tensor.fromPinnedBuffer("int8", new Int8Array([-1]))),
          nibbles: new Tensor("uint4", new Uint8Array(2), [3]).size,
          copied: found({ ...new Tensor("uint8", [1, 2], [2]) }), // as transformers.js 2 does
          disposed: disposed(new Tensor("uint8", [1, 2], [2])),
        };
    """
    )
    found = page.run(body)
    half = found.pop("half")
    assert half in (
        ["float16", [1], [1], 1, "cpu"],
        ["float16", [1], [0x3C00], 1, "cpu"],
    )  # without Float16Array its bits
    assert found == {
        "typed": ["float32", [2, 2], "Float32Array", [1, 2, 3, 4], 4, "cpu"],
        "bare": ["int64", [2], "BigInt64Array", [1, 2], 2, "cpu"],
        "list": ["int64", [3], "BigInt64Array", [1, 2, 3], 3, "cpu"],
        "bools": ["bool", [2], "Uint8Array", [1, 0], 2, "cpu"],
        "bool": ["bool", [1, 2], "Uint8Array", [1, 0], 2, "cpu"],
        "clamped": ["uint8", [2], "Uint8Array", [1, 2], 2, "cpu"],
        "strings": ["a", "b"],
        "shaped": ["uint8", [2, 2], "Uint8Array", [1, 2, 3, 4], 4, "cpu"],
        "scalar": ["float64", [], "Float64Array", [0.5], 1, "cpu"],
        "pinned": ["int8", [1], "Int8Array", [-1], 1, "cpu-pinned"],
        "nibbles": 3,
        "copied": ["uint8", [2], "Uint8Array", [1, 2], 2, "cpu"],
        "disposed": "the tensor is disposed",
    }


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("order", ["RGB", "BGR"])
def test_pictures_go_there_and_back(page: Page, order: str, layout: str) -> None:
    """A picture becomes a tensor of (pixel + bias) / mean, and one of these a picture."""
    body = (
        TENSORS
        + """
        const pixels = Uint8ClampedArray.from({ length: 24 }, (_, k) => (k % 4 === 3 ? 255 : 10 * k));
        const { order: tensorFormat, layout: tensorLayout } = given;
        const image = new ImageData(pixels, 3, 2);
        const tensor = await Tensor.fromImage(image, { tensorFormat, tensorLayout, norm: { mean: 2, bias: 1 } });
        const whole = await Tensor.fromImage(image, { tensorFormat, tensorLayout });
        const back = whole.toImageData({ format: tensorFormat, tensorLayout });
        const address = whole.toDataURL({ format: tensorFormat, tensorLayout });
        return { pixels: [...pixels], dims: tensor.dims, data: [...tensor.data], back: [...back.data], address: address.slice(0, 15) };
    """
    )
    found = page.run(body, order=order, layout=layout)
    pixels = np.reshape(found["pixels"], (2, 3, 4))[:, :, [0, 1, 2] if order == "RGB" else [2, 1, 0]]
    wanted = (pixels + 1) / 2
    wanted = wanted.transpose(2, 0, 1)[None] if layout == "NCHW" else wanted[None]
    assert found["dims"] == list(wanted.shape)
    np.testing.assert_allclose(np.reshape(found["data"], wanted.shape), wanted, rtol=1e-6)
    assert found["back"] == found["pixels"]
    assert found["address"] == "data:image/png;"


def one_op(op: str, inputs: dict[str, tuple[int, list[int]]], outputs: tuple[str, ...], **attributes: Any) -> bytes:
    """An ONNX model of one node; inputs whose names are blank are missing."""
    helper = pytest.importorskip("onnx").helper
    given = [
        helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in inputs.items() if name.strip()
    ]
    made = [helper.make_tensor_value_info(name, 7 if name == "i" else 1, None) for name in outputs]
    graph = helper.make_graph(
        [helper.make_node(op, [name.strip() for name in inputs], list(outputs), **attributes)], "g", given, made
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def ops() -> dict[str, tuple[bytes, dict[str, np.ndarray]]]:
    """Models of one op as transformers.js has them, and others of these ops, with inputs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 5, 4)).astype(np.float32)
    ints = lambda *values: np.array(values, np.int64)
    pictures = {
        f"resize, {mode}, {size}": (
            one_op("Resize", {"x": (1, [2, 3, 5, 4]), "": (1, []), " ": (1, []), "s": (7, [4])}, ("y",), mode=mode),
            {"x": x, "s": ints(2, 3, *size)},
        )
        for mode in ("nearest", "linear", "cubic")
        for size in ((9, 7), (3, 4), (10, 2))
    }
    found = {
        "top k": (one_op("TopK", {"x": (1, [2, 3, 5, 4]), "k": (7, [1])}, ("v", "i")), {"x": np.round(x), "k": ints(3)}),
        "top k, the least, of an axis": (
            one_op("TopK", {"x": (1, [2, 3, 5, 4]), "k": (7, [1])}, ("v", "i"), axis=1, largest=0), {"x": x, "k": ints(2)},
        ),
        "top k, of an axis from the back": (
            one_op("TopK", {"x": (1, [2, 3, 5, 4]), "k": (7, [1])}, ("v", "i"), axis=-2), {"x": x, "k": ints(5)},
        ),
        "product": (
            one_op("MatMul", {"a": (1, [2, 3, 5, 4]), "b": (1, [3, 4, 6])}, ("c",)),
            {"a": x, "b": rng.normal(size=(3, 4, 6)).astype(np.float32)},
        ),
        "product with a vector": (
            one_op("MatMul", {"a": (1, [2, 3, 5, 4]), "b": (1, [4])}, ("c",)),
            {"a": x, "b": rng.normal(size=4).astype(np.float32)},
        ),
        "slice": (
            one_op("Slice", {"x": (1, [2, 3, 5, 4]), "s": (7, [3]), "e": (7, [3]), "a": (7, [3]), "t": (7, [3])}, ("y",)),
            {"x": x, "s": ints(0, -1, 3), "e": ints(2, -10, 1000), "a": ints(1, 2, -1), "t": ints(1, -2, 1)},
        ),
        "spectrum": (
            one_op("DFT", {"x": (1, [2, 9, 1]), "": (7, []), "a": (7, [])}, ("y",), onesided=1),
            {"x": rng.normal(size=(2, 9, 1)).astype(np.float32), "a": np.array(-2, np.int64)},
        ),
    }  # fmt: skip
    return {**found, **pictures}


def test_models_of_one_op_are_computed_as_onnxruntime_does(page: Page) -> None:
    runtime = pytest.importorskip("onnxruntime")
    body = (
        SESSION
        + """
        const session = await InferenceSession.create(Uint8Array.from(given.model));
        return plain(await session.run(feedsOf(given.inputs)));
    """
    )
    for name, (model, inputs) in ops().items():
        session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        expected = dict(zip(names, session.run(None, inputs), strict=True))
        found = page.run(body, model=list(model), inputs=packed(inputs))
        try:
            assert_close(found, expected)
        except AssertionError as e:
            raise AssertionError(name) from e


@pytest.mark.parametrize("op", ["Softmax", "TopK"])
def test_models_of_other_ops_and_attributes_are_refused(page: Page, op: str) -> None:
    attributes = {"sorted": 0} if op == "TopK" else {}
    model = one_op(
        op,
        {"x": (1, [3]), **({"k": (7, [1])} if op == "TopK" else {})},
        ("v",) if op == "Softmax" else ("v", "i"),
        **attributes,
    )
    body = SESSION + "return failure(async () => InferenceSession.create(Uint8Array.from(given.model)));"
    assert "are no stub of Singe" in page.run(body, model=list(model))["message"]


def test_a_page_that_is_not_secure_compares_hashes_too(page: Page) -> None:
    """It has no crypto.subtle."""
    body = (
        SESSION
        + """
      Object.defineProperty(crypto, "subtle", { value: undefined, configurable: true });
      try {
        const session = await InferenceSession.create("/bundles/small.onnx", { executionProviders: ["wasm"] });
        const { message } = await failure(async () => InferenceSession.create("/bundles/altered.onnx"));
        return [session.outputNames.length, message];
      } finally {
        delete crypto.subtle;
      }
    """
    )
    count, message = page.run(body)
    assert count > 0
    assert "is not the stub's bundle" in message


def test_the_package_has_it_and_node_runs_it(folder: Path, tmp_path: Path) -> None:
    """`singe/ort/global` sets what libraries look for; in node a stub is read from disk."""
    npm("install", "--offline", str(npm_package(tmp_path)), cwd=tmp_path)
    inputs, expected = packed_case(2)
    body = """
        await import("singe/ort/global");
        const { InferenceSession, Tensor } = globalThis[Symbol.for("onnxruntime")];
        const session = await InferenceSession.create(given.url, { executionProviders: ["cpu"] });
        const each = (tensors, change) => Object.fromEntries(Object.entries(tensors).map(([name, x]) => [name, change(x, name)]));
        const inputs = unpack(given.inputs);
        const outputs = await session.run(each(inputs, ({ data, shape }, name) => new Tensor(given.inputs[name].dtype, data, shape)));
        return pack(each(outputs, ({ type, dims, data }) => ({ dtype: type, shape: dims, data })));
    """
    found = node(body, runner="singe", cwd=tmp_path, url=(folder / "small.onnx").as_uri(), inputs=inputs)
    assert_close(found, expected)


def test_in_node_a_stub_s_url_is_a_path_from_the_working_directory(tmp_path: Path) -> None:
    cwd = tmp_path / "100%20 #1?"
    stub = cwd / "models" / "small.onnx"
    export_stub(Model(small_graph(), "wasm", "small"), stub, url="models/small.onnx.singe", targets=["wasm"])
    body = """
        const { readFileSync } = process.getBuiltinModule("fs");
        const { InferenceSession } = await import(given.script);
        const sessions = [readFileSync("models/small.onnx"), "models/small.onnx"].map((file) => InferenceSession.create(file));
        return (await Promise.all(sessions)).map(({ inputNames }) => inputNames);
    """
    names = [list(small_case(1)[0])] * 2
    assert node(body, cwd=cwd, script=(STATIC / "singe-ort.js").as_uri()) == names


TYPED: Final = """
import "singe/ort/global";
import { InferenceSession, Tensor, env, type OrtData } from "singe/ort";

env.wasm.numThreads = 2;
const session = await InferenceSession.create("/model.onnx", { executionProviders: ["webgpu", { name: "wasm" }], enableMemPattern: true });
const input = new Tensor("float32", new Float32Array(784), [1, 1, 28, 28]);
const ids = new Tensor("int64", [1n, 2n], [1, 2]);
const outputs = await session.run({ input, ids }, ["logits"], { tag: "x" });
const data: OrtData = await outputs.logits.getData(true);
const first: string = session.inputNames[0];
const image = await Tensor.fromImage(document.createElement("canvas"), { resizedWidth: 224, norm: { mean: [1, 2, 3] } });
await session.release();
console.log(data.length, first, image.toDataURL());
"""


@pytest.mark.slow
@pytest.mark.full
def test_its_types_are_those_of_onnxruntimes_interface(tmp_path: Path) -> None:
    """The script is right for TypeScript, and what is wrong is not."""
    (tmp_path / "package.json").write_text('{ "private": true, "type": "module" }')
    pins = json.loads((STATIC / "package.json").read_text("utf-8"))["devDependencies"]
    npm("install", str(npm_package(tmp_path)), f"typescript@{pins['typescript']}", cwd=tmp_path)
    changes = {
        "feeds": ("{ input, ids }, [", "[input, ids], ["),
        "dims": ("[1, 1, 28, 28]", '"28x28"'),
        "data": ("data: OrtData", "data: string"),
        "options": ("resizedWidth: 224", "resizedWidth: true"),
    }
    cases = {"good.ts": TYPED, **{f"{name}.ts": TYPED.replace(*change) for name, change in changes.items()}}
    for name, text in cases.items():
        (tmp_path / name).write_text(text)
    command = ["npx", "tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", *cases]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert {line.split("(")[0] for line in done.stdout.splitlines() if ": error TS" in line} == set(cases) - {
        "good.ts"
    }, done.stdout


def test_other_bundles_have_none_of_it_and_those_of_stubs_have(folder: Path, bundle: Callable[[str], Path]) -> None:
    assert not list(bundle("small").glob("singe-ort*"))
    names = {path.name for path in (folder / "small.onnx.singe").glob("singe-ort*.js")}
    assert names == {
        f"singe-ort{part}.js" for part in ("", "-global", "-gpu", "-lost", "-ops", "-picture", "-python", "-refused")
    }


def test_what_every_page_of_it_fetches_is_small(built_scripts: dict[str, bytes]) -> None:
    """The script and what it imports at once, as a release has them."""
    assert len(gzip.compress(built_scripts["singe-ort.js"], 9)) <= 4096
