"""What errors of singe.js say to do, in node: addresses that are no bundles, inputs without names, calls of other models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundles import STATIC
from pages import node

PROMISED = "return Promise.all(given.urls.map((url) => failure(() => load(url, { cache: false }))));"


@pytest.mark.parametrize("url", ["", "undefined", "null", "3", "{}", "['model/']", "new Date(0)"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    found = node(f"return failure(() => load({url}));")
    assert (found["name"], found["code"]) == ("SingeError", "input")
    assert found["message"].startswith("url: got ")
    assert found["message"].endswith("expected the address of a folder")


def test_addresses_are_texts_or_urls(bundle: Callable[[str], Path]) -> None:
    """An URL of another realm too, such as a frame's, and what has an address."""
    body = """
    const realm = process.getBuiltinModule("vm").runInNewContext("(href) => ({ href })");
    const found = [given.url, new URL(given.url), realm(given.url)].map(async (url) => (await load(url)).device);
    return Promise.all(found);
    """
    assert node(body, url=bundle("small").as_uri()) == ["wasm"] * 3


def test_a_path_without_a_bundle_says_what_to_pass(bundle: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"a model")
    urls = {
        (bundle("small") / "model.json").as_uri(): "; pass load the folder, without model.json",
        "m.onnx": "export it first, with singe export m.onnx -o FOLDER, and pass load that folder",
        "nothing": f"pass load the folder that singe export wrote; a relative path begins at {tmp_path}",
        f"{tmp_path}/undefined/": "the address was made of a value that is not set",
    }
    for answer, message in zip(node(PROMISED, cwd=tmp_path, urls=list(urls)), urls.values(), strict=True):
        assert answer["code"] == "network", answer
        assert answer["message"].startswith("cannot read file:///")
        assert message in answer["message"]


def test_a_server_without_a_bundle_says_what_to_pass() -> None:
    urls = {
        "http://x.test/model/model.json": "; pass load the folder, without model.json",
        "http://x.test/m.onnx": "; export it first, with singe export m.onnx -o FOLDER",
        "http://x.test/model": "; put the folder that singe export wrote where the server has its static files",
    }
    answers = 'globalThis.fetch = async () => new Response("no", { status: 404 });'
    for answer, message in zip(node(answers + PROMISED, urls=list(urls)), urls.values(), strict=True):
        assert answer["code"] == "network", answer
        assert message in answer["message"]


BARE = {
    "": "undefined",
    "null": "null",
    "7": "Number",
    "new Float32Array(784)": "Float32Array",
    "[[1, 2], [3, 4]]": "Array",
    "{ data: [1, 2, 3] }": "Object",
    "new Blob([])": "Blob",
}


def test_inputs_without_names_are_told_their_names(bundle: Callable[[str], Path]) -> None:
    cases = ", ".join(f"() => model.run({given})" for given in BARE)
    body = f"""
    const model = await load(given.url);
    return Promise.all([{cases}, () => model.profile(new Float32Array(3))].map(failure));
    """
    found = node(body, url=bundle("small").as_uri())
    for answer, got in zip(found, [*BARE.values(), "Float32Array"], strict=True):
        expected = f"inputs: got {got}, this model takes them by name: pass {{ x: data, k: data, keep: data }}"
        assert (answer["code"], answer["message"]) == ("input", expected)


def test_null_is_called_null(bundle: Callable[[str], Path]) -> None:
    body = """
    const model = await load(given.url);
    const rest = { k: new Int32Array(1), keep: new Uint8Array(1) };
    return Promise.all([null, { data: null }, {}].map(async (x) => (await failure(() => model.run({ ...rest, x }))).message));
    """
    found = node(body, url=bundle("small").as_uri())
    for message, got in zip(found, ["null", "null", "undefined"], strict=True):
        assert message == f'input "x": got {got}, expected Float32Array (float32) of shape (N, 3)'


def test_a_model_without_states_has_no_steps_and_no_sessions(bundle: Callable[[str], Path]) -> None:
    body = """
    const model = await load(given.url);
    return Promise.all([() => model.step({}), async () => model.session()].map(failure));
    """
    for answer in node(body, url=bundle("small").as_uri()):
        assert answer["code"] == "input"
        assert answer["message"] == "this model has no states: no sessions, no steps of training"


@pytest.mark.parametrize(
    ("info", "software"),
    [
        ({"vendor": "google", "architecture": "swiftshader"}, True),
        ({"vendor": "mesa", "architecture": "", "description": "llvmpipe (LLVM 15.0.6, 256 bits)"}, True),
        ({"vendor": "mesa", "device": "softpipe"}, True),
        ({"vendor": "microsoft", "description": "Microsoft Basic Render Driver"}, True),
        ({"vendor": "acme", "architecture": "fast-1", "isFallbackAdapter": True}, True),
        ({"vendor": "nvidia", "architecture": "hopper", "description": "", "isFallbackAdapter": False}, False),
        ({}, False),
        (None, False),
    ],
)
def test_adapters_in_software_are_known_by_flag_or_name(info: dict[str, Any] | None, software: bool) -> None:
    body = f"""
    const {{ isSoftware }} = await import({json.dumps((STATIC / "webgpu" / "singe-gpu.js").as_uri())});
    return Boolean(isSoftware(given.info ?? undefined));
    """
    assert node(body, info=info) is software
