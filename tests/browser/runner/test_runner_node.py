"""singe.js in node: bundles on WebAssembly, refused bundles, and the size of the scripts."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import BOUND, BOUNDS, MODEL_NAMES, STATIC, assert_close, dtypes_case, model_case, packed, small_case
from changed import Edit, edited
from pages import node, phases

import singe as sg
from singe.tools.export import bundle as export_bundle
from singe.tools.export.page.scripts import MAIN, joined_scripts

MOST_GZIP_BYTES = {"joined": 24_150, "built": 20_500}
MOST_GZIP_BYTES_OF_ORT = {"joined": 5_000, "built": 4_000}
MOST_GZIP_BYTES_OF_CHAT = {"joined": {"wasm": 70_350, "webgpu": 78_550}, "built": {"wasm": 58_200, "webgpu": 65_100}}
CHAT = (MAIN, "singe-folded.js", "singe-language.js", "singe-session.js", "singe-stream.js")
"""What a page with a language model loads for a conversation."""
CHAT_ON = {"wasm": "singe-outputs.js", "webgpu": "singe-webgpu.js"}
"""What it loads beside these on a device."""


def failed(folder: Path, body: str = "await load(given.url)", **given: Any) -> dict[str, str]:
    return node(f"return failure(async () => {{ {body} }});", url=folder.as_uri(), **given)


ANSWER = "return answer(load, given.url, { device: given.device }, given.cases);"


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_models(bundle: Callable[[str], Path], name: str) -> None:
    folder = bundle(name)
    inputs, outputs = model_case(name)
    done = node(ANSWER, url=folder.as_uri(), device="wasm", cases=[packed(inputs)])
    assert_close(done["outputs"][0], outputs, BOUNDS.get(name, BOUND))
    print(f"{name}: {done['seconds']:.3f} s a run, {done['memory']['wasm'] / 2**20:.1f} MiB")


def test_programs_of_their_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long manifest has the program of each of its targets in a file, of which a page fetches one, and checks it."""
    monkeypatch.setattr(export_bundle, "WORTH_A_TRIP", 0)

    def layers(x: sg.Tensor) -> sg.Tensor:
        for k in range(24):
            x = (x @ np.full((8, 8), k / 64, np.float32)).softmax()
        return x

    model = sg.Model.of(layers, {"x": (2, 8)}, "numpy")
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    files = sg.export(model, tmp_path).files
    done = node(ANSWER, url=tmp_path.as_uri(), device="wasm", cases=[packed({"x": x})])
    assert_close(done["outputs"][0], {"output": model(x)})
    assert phases(done["progress"]) == ["download", "compile", "ready", "run", "ready"]
    (tmp_path / "program-webgpu.json").unlink()
    (tmp_path / "program-wasm.json").write_bytes(files["program-wasm.json"].replace(b"softmax", b"softest"))
    assert failed(tmp_path)["code"] == "format"


def test_overlapping_runs_of_several_sizes(bundle: Callable[[str], Path]) -> None:
    cases = [small_case(n) for n in (3, 1, 200, 2, 3)]
    done = node(ANSWER, url=bundle("small").as_uri(), device="auto", cases=[packed(x) for x, _ in cases])
    for found, (_, expected) in zip(done["outputs"], cases, strict=True):
        assert_close(found, expected)
    assert done["device"] == "wasm"
    assert done["inputs"][1] == {"name": "k", "dtype": "int32", "shape": ["N", 1]}
    assert done["memory"]["wasm"] > 0
    assert done["after"] == {"gpu": 0, "wasm": 0, "js": 0}


def test_dtypes(bundle: Callable[[str], Path]) -> None:
    inputs, expected = dtypes_case(37)
    done = node(ANSWER, url=bundle("dtypes").as_uri(), device="wasm", cases=[packed(inputs)])
    assert_close(done["outputs"][0], expected)


def test_progress_is_true(bundle: Callable[[str], Path]) -> None:
    """Of bytes, kernels and the first run; of later runs nothing is told."""
    cases = [packed({"input": np.zeros((1, 1, 28, 28), np.float32)})] * 2
    progress = node(ANSWER, url=bundle("mnist_cnn").as_uri(), device="wasm", cases=cases)["progress"]
    assert phases(progress) == ["download", "compile", "ready", "run", "ready"]
    for done, total in (("loaded", "total"), ("compiled", "kernels")):
        amounts = [p[done] for p in progress]
        assert amounts == sorted(amounts)
        assert amounts[0] == 0 < amounts[-1] == progress[-1][total]
    assert progress[-1]["total"] > 1_500_000
    assert [p["compiled"] > 0 for p in progress if p["phase"] == "compile"] == [False, True]


def test_shapes_are_inferred_and_outputs_are_copies(bundle: Callable[[str], Path]) -> None:
    body = """
    const model = await load(given.url);
    const inputs = { x: new Float32Array(6).fill(1), k: Int32Array.of(1, 2), keep: Uint8Array.of(1, 0) };
    const first = await model.run(inputs);
    first.scores.data.fill(7);
    const second = await model.run(inputs);
    return [first.scores.data[0], [...second.scores.data], second.scores.shape, second.negated.dtype];
    """
    assert node(body, url=bundle("small").as_uri()) == [7, [-2, 1, 4, 7, -1, -1, -1, -1], [2, 4], "bool"]


BAD_INPUTS = {
    "missing": ("{}", "got undefined, expected Float32Array"),
    "unknown": ("{ ...good, y: 1 }", 'unknown input "y": this model takes x, k, keep'),
    "nearly known": ("{ ...good, Kep: 1 }", 'unknown input "Kep": did you mean keep?'),
    "text": ("{ ...good, x: 'abc' }", "expected Float32Array (float32) of shape (N, 3)"),
    "a list of text": ("{ ...good, x: [1, 2, '3'] }", 'got "3" in a list, expected numbers for float32'),
    "uneven lists": ("{ ...good, x: [[1, 2, 3], [4, 5]] }", "got lists of several lengths"),
    "a list of another shape": ("{ ...good, x: [[1, 2]] }", "got the shape (1, 2)"),
    "a half": ("{ ...good, k: [0.5] }", "got 0.5 in a list, expected numbers for int32"),
    "a large integer": ("{ ...good, k: [2 ** 31] }", "got 2147483648 in a list, expected numbers for int32"),
    "two of a bool": ("{ ...good, keep: [2] }", "got 2 in a list, expected numbers for bool"),
    "a file without a preparation": ("{ ...good, x: new Blob([]) }", "does not say how a picture becomes it"),
    "another dtype": ("{ ...good, k: new Float32Array(1) }", "got Float32Array, expected Int32Array"),
    "a part of a row": ("{ ...good, x: new Float32Array(4) }", "got 4 elements"),
    "two batches": ("{ ...good, x: new Float32Array(6) }", "got 1 elements for the shape (2, 1)"),
    "another rank": ("{ ...good, x: { data: new Float32Array(3), shape: [3] } }", "got the shape (3)"),
    "a negative dimension": ("{ ...good, x: { data: new Float32Array(3), shape: [-1, 3] } }", "got the shape [-1,3]"),
    "dims": (
        "{ ...good, x: { data: new Float32Array(3), dims: [1, 3] } }",
        'unknown key of input "x" "dims": did you mean shape?',
    ),
    "a key": (
        "{ ...good, x: { data: new Float32Array(3), name: 'x' } }",
        '"name": it takes data, shape, dtype',
    ),
    "elements by another key": ("{ ...good, x: { date: new Float32Array(3) } }", '"date": did you mean data?'),
    "another dtype beside": ("{ ...good, x: { data: new Float32Array(3), dtype: 'int32' } }", 'got the dtype "int32"'),
    "a shape of BigInts": (
        "{ ...good, x: { data: new Float32Array(3), shape: [1n, 3n] } }",
        'got the shape ["1n","3n"]',
    ),
    "a BigInt as dtype": ("{ ...good, x: { data: new Float32Array(3), dtype: 1n } }", 'got the dtype "1n"'),
    "a list of what holds itself": ("{ ...good, x: [1, 2, ring] }", "got object in a list, expected numbers"),
    "a list that holds itself": ("{ ...good, x: rings }", "got a list that holds itself"),
    "a list that holds itself at its end": ("{ ...good, x: [1, 2, rings] }", "got lists of several lengths"),
    "no bools": ("{ ...good, keep: Uint8Array.of(2) }", "other than 0 and 1"),
}


def test_bad_inputs_say_what_was_expected(bundle: Callable[[str], Path]) -> None:
    cases = ", ".join(f"() => model.run({given})" for given, _ in BAD_INPUTS.values())
    body = f"""
    const model = await load(given.url);
    const good = {{ x: new Float32Array(3), k: new Int32Array(1), keep: new Uint8Array(1) }};
    const ring = {{}}, rings = [];
    ring.ring = ring;
    rings.push(rings);
    return Promise.all([{cases}].map(failure));
    """
    found = node(body, url=bundle("small").as_uri())
    for answer, (_, message) in zip(found, BAD_INPUTS.values(), strict=True):
        assert answer["code"] == "input", answer
        assert message in answer["message"]


BAD_LISTS = {
    "one more": (
        "{ i: [2n ** 63n], u: [1], h: good }",
        "got 9223372036854775808n in a list, expected numbers for int64",
    ),
    "no integer": (
        "{ i: [2 ** 63], u: [255], h: good }",
        "got 9223372036854776000 in a list, expected numbers for int64",
    ),
    "below zero": ("{ i: [0], u: [-1], h: good }", "got -1 in a list, expected numbers for uint8"),
    "halves": (
        "{ i: [0], u: [0], h: [0.5] }",
        "float16 takes its bits, as Uint16Array: this engine has no Float16Array",
    ),
}


def test_lists_of_integers_and_halves(bundle: Callable[[str], Path]) -> None:
    """Whole numbers within a dtype's limits; float16 needs an engine with Float16Array."""
    cases = ", ".join(f"() => model.run({given})" for given, _ in BAD_LISTS.values())
    body = f"""
    delete globalThis.Float16Array;
    const good = new Uint16Array(1);
    const model = await load(given.url, {{ device: "wasm" }});
    const {{ same_i, same_u }} = await model.run({{ i: [2n ** 63n - 1n], u: [255], h: good }});
    return [[String(same_i.data[0]), same_u.data[0]], ...(await Promise.all([{cases}].map(failure)))];
    """
    found = node(body, url=bundle("dtypes").as_uri())
    assert found[0] == [str(2**63 - 1), 255]
    for answer, (_, message) in zip(found[1:], BAD_LISTS.values(), strict=True):
        assert answer["code"] == "input"
        assert message in answer["message"]


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%20b", "a b é"])
def test_relative_addresses_in_a_folder_of_any_name(bundle: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    shutil.copytree(bundle("small"), tmp_path / name / "model")
    assert node("return (await load('./model')).device;", cwd=tmp_path / name) == "wasm"


def test_outputs_are_taken_as_inputs(bundle: Callable[[str], Path]) -> None:
    body = """
    const model = await load(given.url);
    const inputs = { x: Float32Array.of(1, 2, 3), k: Int32Array.of(1), keep: Uint8Array.of(1) };
    const first = await model.run(inputs);
    const { scores } = await model.run({ ...inputs, k: first.twice, keep: first.negated });
    return [first.twice.dtype, first.negated.dtype, scores.shape];
    """
    assert node(body, url=bundle("small").as_uri()) == ["int32", "bool", [1, 4]]


def test_lists_are_taken(bundle: Callable[[str], Path]) -> None:
    body = """
    const model = await load(given.url);
    const arrays = { x: Float32Array.of(1, 2, 3, 4, 5, 6), k: Int32Array.of(1, 2), keep: Uint8Array.of(1, 0) };
    const lists = { x: [[1, 2, 3], [4, 5, 6]], k: [[1], [2n]], keep: [true, false] };
    const flat = { x: [1, 2, 3, 4, 5, 6], k: { data: [1, 2], shape: [2, 1] }, keep: [1, 0] };
    const runs = await Promise.all([arrays, lists, flat].map((inputs) => model.run(inputs)));
    return runs.map(({ scores }) => [...scores.data]);
    """
    first, *others = node(body, url=bundle("small").as_uri())
    assert others == [first, first]


def test_runs_are_aborted(bundle: Callable[[str], Path]) -> None:
    """At once, also one that has begun; the others are made in their order."""
    body = """
    const model = await load(given.url);
    const inputs = (x) => ({ x: new Float32Array(3).fill(x), k: Int32Array.of(1), keep: Uint8Array.of(1) });
    const stop = new AbortController();
    const options = { signal: stop.signal };
    const runs = [model.run(inputs(1)), failure(() => model.run(inputs(2), options)), model.run(inputs(3), { signal: null })];
    stop.abort();
    const found = await Promise.all(runs);
    const late = await failure(() => model.run(inputs(1), options));
    const wrong = await failure(() => model.run(inputs(1), { signal: 5 }));
    const again = await model.run(inputs(1));
    return [found[1].code, late.code, wrong.message, found[0].scores.data[0] === again.scores.data[0], !!found[2].scores];
    """
    wrong = "signal: got number, expected an AbortSignal"
    assert node(body, url=bundle("small").as_uri()) == ["aborted", "aborted", wrong, True, True]


def test_a_wrong_server_is_named() -> None:
    """One that answers every address with a page, one that has no such file, and an address with `undefined`."""
    body = """
    const found = [];
    for (const [answer, url] of [
      [new Response("<!doctype html>", { status: 200 }), "http://x.test/model/"],
      [new Response("no", { status: 404 }), "http://x.test/model/"],
      [new Response("no", { status: 404 }), "http://x.test/undefined/model/"],
    ]) {
      globalThis.fetch = async () => answer;
      found.push(await failure(() => load(url, { cache: false })));
    }
    return found;
    """
    page, missing, unset = node(body)
    assert [x["code"] for x in (page, missing, unset)] == ["format", "network", "network"]
    assert "http://x.test/model/model.json: the server answers with a page, HTML; put the folder" in page["message"]
    assert "http://x.test/model/model.json: the server answers 404; put the folder" in missing["message"]
    assert "the address was made of a value that is not set" in unset["message"]


def test_disposed(bundle: Callable[[str], Path]) -> None:
    body = "const model = await load(given.url); await model.dispose(); await model.dispose(); await model.run({});"
    assert failed(bundle("small"), body)["code"] == "disposed"


def test_aborted(bundle: Callable[[str], Path]) -> None:
    body = """
    const stop = new AbortController();
    await load(given.url, { signal: stop.signal, onProgress: ({ loaded }) => loaded && stop.abort() });
    """
    assert failed(bundle("mnist_cnn"), body)["code"] == "aborted"
    assert failed(bundle("small"), "await load(given.url, { signal: AbortSignal.abort() })")["code"] == "aborted"


WRONG_ARGUMENTS = {
    "a device that is none": (
        "given.url, { device: 'tpu' }",
        'device: got "tpu", expected "wasm", "webgpu", "remote" or "auto"',
    ),
    "another word": ("given.url, { thread: 1 }", 'unknown option "thread": did you mean threads?'),
    "another word near two": ("given.url, { onprogres() {} }", 'unknown option "onprogres": did you mean onProgress?'),
    "a word of others": ("given.url, { backend: 'wasm' }", 'unknown option "backend": did you mean device?'),
    "no word": ("given.url, { colour: 'wasm' }", 'unknown option "colour": load takes device, threads'),
    "half a thread": ("given.url, { threads: 0.5 }", "threads: got 0.5, expected how many threads"),
    "a signal of text": ("given.url, { signal: 'stop' }", 'signal: got "stop", expected an AbortSignal'),
    "a signal that is a controller": (
        "given.url, { signal: new AbortController() }",
        "signal: got [object AbortController], expected an AbortSignal",
    ),
    "progress to an object": ("given.url, { onProgress: {} }", "onProgress: got [object Object], expected a function"),
    "progress to what has no text": ("given.url, { onProgress: Object.create(null) }", "onProgress: got object"),
    "a GPU beside a signal that is null": (
        "given.url, { signal: null, gpuDevice: 5 }",
        "gpuDevice: got 5, expected a GPU",
    ),
    "a listener beside one that is null": (
        "given.url, { onProgress: null, onDevice: 3 }",
        "onDevice: got 3, expected a function",
    ),
    "a device to a number": ("given.url, { onDevice: 1 }", "onDevice: got 1, expected a function"),
    "an adapter": (
        "given.url, { gpuDevice: { requestDevice() {} } }",
        "gpuDevice: got [object Object], expected a GPU",
    ),
    "a script": ("'javascript:alert(1)'", 'url: got "javascript:alert(1)", expected the address of a folder'),
    "data": ("'data:application/json,{}'", 'url: got "data:application/json,{}"'),
    "a symbol": ("Symbol('model')", "url: got Symbol(model), expected the address of a folder"),
    "a symbol and no options": ("Symbol('model'), null", "url: got Symbol(model)"),
}


def test_wrong_arguments_say_what_was_expected(bundle: Callable[[str], Path]) -> None:
    cases = ", ".join(f"() => load({given})" for given, _ in WRONG_ARGUMENTS.values())
    found = node(f"return Promise.all([{cases}].map(failure));", url=bundle("small").as_uri())
    for answer, (_, message) in zip(found, WRONG_ARGUMENTS.values(), strict=True):
        assert answer["code"] == "input", answer
        assert message in answer["message"]
    assert failed(bundle("small"), "await load(given.url, { device: 'webgpu' })")["code"] == "device"


def test_memory_that_may_change(bundle: Callable[[str], Path]) -> None:
    """Inputs in memory that is shared or may grow are copied; what was given away is an error."""
    body = """
    const model = await load(given.url, { onProgress: null, signal: undefined });
    const rest = { k: Int32Array.of(1), keep: Uint8Array.of(1) };
    const filled = (memory) => new Float32Array(memory).fill(1);
    const given_away = new Float32Array(3);
    structuredClone(given_away.buffer, { transfer: [given_away.buffer] });
    const growing = new ArrayBuffer(12, { maxByteLength: 24 });
    const shrunk = new ArrayBuffer(12, { maxByteLength: 24 });
    const beyond = new Float32Array(shrunk, 0, 3);
    shrunk.resize(4);
    const answers = [];
    for (const x of [filled(12), filled(new SharedArrayBuffer(12)), filled(growing)].map((a) => new Float32Array(a.buffer, 0, 3))) {
      answers.push([...(await model.run({ x, ...rest })).scores.data]);
    }
    return [answers, await failure(() => model.run({ x: given_away, ...rest })), await failure(() => model.run({ x: beyond, ...rest }))];
    """
    answers, *errors = node(body, url=bundle("small").as_uri())
    assert answers[1] == answers[2] == answers[0]
    for error in errors:
        assert error["code"] == "input", error
        assert "got a detached array, expected Float32Array" in error["message"]


def test_files_that_are_not_as_the_manifest_says(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    def spoilt(name: str, spoil: Callable[[bytes], bytes]) -> dict[str, str]:
        folder = edited(bundle("small"), tmp_path / name, lambda m: None)
        path = next(folder.glob("weights-wasm*"))
        path.write_bytes(spoil(path.read_bytes()))
        return failed(folder)

    assert "sha256" in spoilt("changed", lambda raw: bytes([raw[0] ^ 1]) + raw[1:])["message"]
    assert spoilt("short", lambda raw: raw[:-1])["code"] == "format"
    assert spoilt("long", lambda raw: raw + b"\0")["code"] == "format"
    assert failed(tmp_path / "nothing")["code"] == "network"
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "model.json").write_text("<!doctype html>")
    assert failed(tmp_path / "text")["code"] == "format"


def test_weights_of_a_bundle_beside_it(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    def beside(m: dict[str, Any]) -> None:
        for w in m["targets"]["wasm"]["weights"]:
            w["file"] = f"../first.onnx.singe/{w['file']}"

    edited(bundle("small"), tmp_path / "first.onnx.singe", lambda m: None)
    folder = edited(bundle("small"), tmp_path / "second", beside)
    for path in folder.glob("weights-*"):
        path.unlink()
    assert node("return (await load(given.url)).outputs.length;", url=folder.as_uri())


def program(edit: Edit) -> Edit:
    return lambda m: edit(m["targets"]["wasm"]["program"])


def deep(depth: int) -> Any:
    dim: Any = [[1, "N"]]
    for _ in range(depth):
        dim = [[1, ["div", dim, 2]]]
    return dim


HOSTILE: dict[str, Edit] = {
    "format": lambda m: m.update(format="singe/1"),
    "no targets": lambda m: m.update(targets={}),
    "targets of the prototype": lambda m: m.update(targets=[]),
    "a file elsewhere": lambda m: m["targets"]["wasm"]["weights"][0].update(file="../weights.bin"),
    "a file two folders up": lambda m: m["targets"]["wasm"]["weights"][0].update(file="../../weights.bin"),
    "a file of a folder of another": lambda m: m["targets"]["wasm"]["weights"][0].update(file="../a/b/weights.bin"),
    "a file of another site": lambda m: m["targets"]["wasm"]["weights"][0].update(file="https://a.b/c"),
    "no hash": lambda m: m["targets"]["wasm"]["weights"][0].pop("sha256"),
    "labels elsewhere": lambda m: m.update(labels="/etc/passwd"),
    "bytes below zero": lambda m: m["targets"]["wasm"]["weights"][0].update(bytes=-1),
    "weights missing": lambda m: m["targets"]["wasm"].update(weights=[]),
    "no such module": lambda m: m["targets"]["wasm"].update(modules={}),
    "program null": lambda m: m["targets"]["wasm"].update(program=None),
    "another target": program(lambda p: p.update(target="wgsl")),
    "input out of range": program(lambda p: p["inputs"].__setitem__(0, 99)),
    "input that is none": program(lambda p: p["inputs"].__setitem__(0, p["outputs"][0])),
    "too many slots": program(lambda p: p.update(slots=10**9)),
    "slot out of range": program(lambda p: p["buffers"][-1].update(place=["slot", p["slots"]])),
    "weights out of range": program(lambda p: p["buffers"][-1].update(place=["weights", 2**40])),
    "weights off the grid": program(lambda p: p["buffers"][-1].update(place=["weights", 4])),
    "an unknown dtype": program(lambda p: p["buffers"][0].update(dtype="constructor")),
    "a large element": program(lambda p: p["buffers"][0].update(size=64)),
    "a negative dimension": program(lambda p: p["buffers"][0].update(shape=[-1, 3])),
    "a fraction": program(lambda p: p["buffers"][0].update(shape=[1.5, 3])),
    "an untold size": program(lambda p: p["buffers"][-1].update(place=["slot", 0], shape=[[[1, "M"]]])),
    "an unknown word": program(lambda p: p["buffers"][0].update(shape=[[[1, ["toString", 1, 2]]]])),
    "a deep dimension": program(lambda p: p["kernels"][0]["sizes"].__setitem__(0, deep(40))),
    "no variant": program(lambda p: p["kernels"][0].update(variants=[])),
    "a missing function": program(
        lambda p: [v.update(entry="simd:none") for v in p["kernels"][0]["variants"]] and None
    ),
    "more ports": program(lambda p: p["kernels"][0].update(ports=9)),
    "a call's kernel": program(lambda p: p["words"].__setitem__(0, 99)),
    "a call's buffers": program(lambda p: p["words"].__setitem__(2, -1)),
}


def test_hostile_manifests(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    folders = [edited(bundle("small"), tmp_path / str(k), edit) for k, edit in enumerate(HOSTILE.values())]
    body = "return Promise.all(given.urls.map((url) => failure(() => load(url))));"
    found = node(body, urls=[f.as_uri() for f in folders])
    for name, answer in zip(HOSTILE, found, strict=True):
        assert (answer["name"], answer["code"]) == ("SingeError", "format"), (name, answer)


def test_absurd_sizes_are_refused(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    def absurd(m: dict[str, Any]) -> None:
        m["targets"]["wasm"]["weights"][0]["bytes"] = 2**47

    assert failed(edited(bundle("small"), tmp_path / "weights", absurd))["code"] == "device"
    many = "const m = await load(given.url); const x = { data: new Float32Array(0), shape: [2 ** 46, 3] }; await m.run({ x });"
    assert failed(bundle("small"), many)["code"] == "input"


def test_a_bundle_of_an_older_format_says_what_to_do(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    found = failed(edited(bundle("small"), tmp_path / "older", lambda m: m.update(format="singe/2")))
    assert found["code"] == "format"
    assert found["message"].endswith('singe/3 says: its format is "singe/2": export the model again')


MATRICES = {"componentType": "f16", "resultComponentType": "f32", "M": 16, "N": 16, "K": 16}
NEEDED = ["shader-f16", "subgroups", "chromium-experimental-subgroup-matrix"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "f16-f32-16x16x16"),
        ({"configs": [MATRICES | {"M": 8}, MATRICES | {"K": 8}]}, "f16-f32-16x16x8"),
        ({"configs": []}, None),
        ({"features": NEEDED[1:]}, None),
        ({"features": [NEEDED[0], NEEDED[2]]}, None),
        ({"sizes": [16, 32]}, None),
        ({"sizes": [32, 64]}, None),
        ({"memory": 16384}, None),
        ({"sizes": None}, None),
    ],
)
def test_variants_on_subgroup_matrices_are_for_devices_that_have_them(change: dict[str, Any], word: str | None) -> None:
    """A feature does not imply a kind of matrix: the device's adapterInfo decides."""
    told = {"features": NEEDED, "configs": [MATRICES], "sizes": [32, 32], "memory": 32768} | change
    body = f"""
    const {{ abilities }} = await import({json.dumps((STATIC / "webgpu" / "singe-matrices.js").as_uri())});
    const {{ chooseVariant }} = await import({json.dumps((STATIC / "program" / "singe-format.js").as_uri())});
    const {{ features, configs, sizes, memory, word }} = given;
    const device = {{ features: new Set(features), limits: {{ maxComputeWorkgroupStorageSize: memory }} }};
    if (sizes) device.adapterInfo = {{ subgroupMinSize: sizes[0], subgroupMaxSize: sizes[1], subgroupMatrixConfigs: configs }};
    const able = abilities(device);
    const variant = (entry, ...requires) => ({{ entry, requires }});
    const variants = [variant("matrices", "shader-f16", "subgroups", `subgroup-matrix-${{word}}`), variant("half", "shader-f16"), variant("plain")];
    return [chooseVariant({{ variants }}, able).entry, features.every((name) => able.has(name))];
    """
    chosen, kept = node(body, **told, word=word or "f16-f32-16x16x16")
    assert chosen == ("matrices" if word else "half" if "shader-f16" in told["features"] else "plain")
    assert kept


def test_sha256() -> None:
    body = f"""
    const {{ Sha256 }} = await import({json.dumps((STATIC / "loading" / "singe-sha256.js").as_uri())});
    return Array.from({{ length: 300 }}, (_, length) => {{
      const bytes = Uint8Array.from({{ length }}, (_, k) => k * 7 + length);
      const hash = new Sha256();
      for (let at = 0, step = 1; at < length; at += step, step = (step * 5) % 97) hash.update(bytes.subarray(at, at + step));
      return hash.hex();
    }});
    """
    expected = [hashlib.sha256(bytes((k * 7 + n) % 256 for k in range(n))).hexdigest() for n in range(300)]
    assert node(body) == expected


def test_hashes_where_pages_have_no_crypto(bundle: Callable[[str], Path]) -> None:
    body = "Object.defineProperty(globalThis, 'crypto', {}); return (await load(given.url)).device;"
    assert node(body, url=bundle("small").as_uri()) == "wasm"


@pytest.mark.parametrize("how", MOST_GZIP_BYTES)
def test_size_as_shipped(how: str, request: pytest.FixtureRequest) -> None:
    """The script that every page loads, and those loaded on demand, as a bundle has them: from a checkout, and from a release."""
    files = joined_scripts() if how == "joined" else request.getfixturevalue("built_scripts")
    scripts = {name: data for name, data in files.items() if name.endswith(".js")}
    counts = {name: len(gzip.compress(data, 9)) for name, data in scripts.items()}
    for name, count in counts.items():
        print(f"{name:20} {count:6,} bytes gzip{', eager' if name == MAIN else ''}")
    assert files.keys() == joined_scripts().keys()
    assert counts[MAIN] <= MOST_GZIP_BYTES[how]
    assert counts["singe-ort.js"] <= MOST_GZIP_BYTES_OF_ORT[how]
    for device, script in CHAT_ON.items():
        assert sum(counts[name] for name in (*CHAT, script)) <= MOST_GZIP_BYTES_OF_CHAT[how][device]


def test_a_run_does_not_fail_with_who_hears_of_its_progress(bundle: Callable[[str], Path]) -> None:
    body = """
    const heard = [];
    process.on("uncaughtException", (error) => heard.push(error.message));
    let loaded = false;
    const onProgress = ({ phase }) => {
      if (loaded) throw new Error(phase);
    };
    const model = await load(given.url, { device: "wasm", onProgress });
    loaded = true;
    const { scores } = await model.run(unpack(given.inputs));
    await new Promise((done) => setTimeout(done, 50));
    return { heard, shape: scores.shape };
    """
    inputs, outputs = small_case(3)
    found = node(body, url=bundle("small").as_uri(), inputs=packed(inputs))
    assert found == {"heard": ["run", "ready"], "shape": list(outputs["scores"].shape)}
