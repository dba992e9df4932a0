"""singe-tasks.js: classes, boxes and vectors of outputs in node, pictures for detectors in Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import STATIC
from pages import node
from pointing import CHAIN, Told
from reading import CHAIN as READING
from reading import Blots
from sites import served

import singe as sg
from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.tools import cli

TASKS = f'const tasks = await import("{(STATIC / "singe-tasks.js").as_uri()}");'


def test_masks_take_room_when_they_are_asked_for() -> None:
    """As in tests/unit/tasks/test_masks.py."""
    body = """const { answerOf } = await import(given.answers);
    const count = 300;
    const output = (data, ...shape) => ({ data, shape });
    const boxes = output(Float32Array.from({ length: 4 * count }, (_, i) => [1000, 1000, 1200, 1100][i % 4]), count, 4);
    const masks = output(new Float32Array(count * 400).fill(1), count, 20, 20);
    const outputs = { boxes, scores: output(new Float32Array(count).fill(1), count), classes: output(new Int32Array(count), count), masks,
      mask_scale: output(Float32Array.of(20 / 3000, 0, 20 / 4000, 0), 2, 2) };
    const before = process.memoryUsage().arrayBuffers;
    const found = answerOf({ kind: "detect", labels: ["cat"], options: {} }, outputs, { threshold: 0.5, top: count }, [3000, 4000]);
    const held = process.memoryUsage().arrayBuffers - before;
    const { mask } = found[7];
    return [found.length, held, [mask.width, mask.height, mask.data.length, mask.data === mask.data, mask.data.indexOf(255)],
      mask.data.reduce((sum, one) => sum + one, 0), Object.keys(mask)];
    """
    count, held, mask, total, keys = node(body, answers=(STATIC / "tasks" / "singe-task-answers.js").as_uri())
    assert count == 300
    assert held < 1_000_000
    assert mask == [4000, 3000, 4000 * 3000, True, 1000 * 4000 + 1000]
    assert total == 255 * 200 * 100
    assert keys == ["width", "height", "data"]


def test_classes_are_sorted_probabilities() -> None:
    body = f"""{TASKS}
    const output = (...data) => ({{ data: Float32Array.from(data), shape: [1, data.length] }});
    const labels = ["a", "b", "c"];
    return [tasks.classes(output(1, 3, 2), {{ labels, top: 2 }}), tasks.classes(output(0.25, 0.75)),
      tasks.classes({{ data: BigInt64Array.of(9n, 0n), shape: [1, 2, 1, 1] }}, {{ labels: {{ 0: "all" }}, top: 1 }}),
      (await failure(async () => tasks.classes({{ data: new Float32Array(4), shape: [2, 2] }}))).code];
    """
    scores, parts, whole, code = node(body)
    expected = np.exp([3, 2]) / np.exp([1, 2, 3]).sum()
    assert [(x["index"], x["label"]) for x in scores] == [(1, "b"), (2, "c")]
    np.testing.assert_allclose([x["probability"] for x in scores], expected)
    assert [(x["label"], x["probability"]) for x in parts] == [("class 1", 0.75), ("class 0", 0.25)]
    assert whole[0]["label"] == "all"
    assert code == "input"


def test_halves_are_read_as_numbers() -> None:
    """A float16 output is bits; an engine without Float16Array says so."""
    body = f"""{TASKS}
    const half = {{ data: Uint16Array.of(0x3c00, 0x4000), shape: [1, 2], dtype: "float16" }};
    if (given.lacks) delete globalThis.Float16Array;
    else globalThis.Float16Array ??= class {{ constructor() {{ return Float32Array.of(1, 2); }} }};
    return failure(async () => {{ const [best] = tasks.classes(half); throw new Error(best.probability.toFixed(3)); }});
    """
    assert node(body, lacks=False)["message"] == "0.731"
    assert "this engine has no Float16Array" in node(body, lacks=True)["message"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4"])
def test_bits_are_not_taken_as_numbers(dtype: str) -> None:
    body = f"""{TASKS}
    const bits = {{ data: Uint16Array.of(0x3c00, 0x4000), shape: [1, 2], dtype: given.dtype }};
    return failure(async () => tasks.classes(bits));
    """
    refused = node(body, dtype=dtype)
    assert refused["code"] == "input"
    assert f"got {dtype}" in refused["message"]


def test_boxes_are_placed_and_suppressed() -> None:
    """Five boxes: one, another class there, its like, one apart and beyond the edge, one that is unlikely."""
    body = f"""{TASKS}
    const columns = [[50, 60, 20, 20, 0.9, 0], [50, 60, 20, 20, 0, 0.8], [51, 60, 20, 20, 0.7, 0], [5, 20, 20, 10, 0.6, 0.1],
      [80, 80, 4, 4, 0.1, 0.2]];
    const data = Float32Array.from({{ length: 30 }}, (_, i) => columns[i % 5][Math.floor(i / 5)]);
    const placed = {{ scale: 0.5, left: 0, top: 10, width: 200, height: 160 }};
    return [tasks.boxes({{ data, shape: [1, 6, 5] }}, {{ placed, labels: ["cat", "dog"] }}),
      (await failure(async () => tasks.boxes({{ data, shape: [5, 6] }}))).message];
    """
    found, message = node(body)
    assert [(x["label"], x["box"]) for x in found] == [
        ("cat", [80, 80, 120, 120]), ("dog", [80, 80, 120, 120]), ("cat", [0, 10, 30, 30]),
    ]  # fmt: skip
    np.testing.assert_allclose([x["probability"] for x in found], [0.9, 0.8, 0.6], rtol=1e-6)
    assert "expected (1, 4 + classes, boxes)" in message


def test_scores_that_are_no_numbers_are_left_out() -> None:
    found = node(
        f"""{TASKS}
    const one = (probability) => ({{ box: [0, 0, 9, 9], index: 0, label: "", probability }});
    const rows = {{ data: Float32Array.of(4, 4, 8, 8, NaN, 0.9), shape: [1, 6, 1], dtype: "float32" }};
    const kept = tasks.suppressed([one(0.1), {{ ...one(NaN), box: [20, 20, 30, 30] }}, one(0.9)]);
    return [kept.map((x) => x.probability), tasks.boxes(rows).map((x) => x.index)];"""
    )
    assert found == [[0.9], [1]]


def test_vectors_are_means_of_length_one() -> None:
    body = f"""{TASKS}
    const output = {{ data: Float32Array.of(3, 4, 0, 0, 100, 0), shape: [1, 3, 2] }};
    const one = tasks.vector(output, BigInt64Array.of(1n, 1n, 0n));
    const others = [Float32Array.of(1, 0), Float32Array.of(0.6, 0.8), Float32Array.of(0, 1)];
    return [[...one], tasks.nearest(one, others, {{ top: 2 }}), (await failure(async () => tasks.vector(output, [1]))).code];
    """
    one, near, code = node(body)
    np.testing.assert_allclose(one, [0.6, 0.8], rtol=1e-6)
    assert [x["index"] for x in near] == [1, 2]
    np.testing.assert_allclose([x["similarity"] for x in near], [1, 0.8], rtol=1e-6)
    assert code == "input"


WRONG = {
    "classes()": "classes: got undefined, expected an output, { data, shape }",
    "classes(null)": "classes: got null, expected an output",
    "classes(new Float32Array(3))": "classes: got Float32Array, expected an output",
    "classes({ logits: {} })": "classes: got Object, expected an output, { data, shape }: one of those that model.run gives",
    "classes({ data: new Float32Array(3), shape: [1, 4] })": "expected an output",
    'classes({ data: new Float32Array(3), shape: [1, 3] }, { labels: "labels.json" })': (
        'classes: labels: got "labels.json", expected names: the contents of the file that model.labels names'
    ),
    "boxes()": "boxes: got undefined, expected an output",
    "boxes({ data: new Float32Array(3), shape: [1, 6, 5] })": "boxes: got Object, expected an output",
    "suppressed()": "suppressed: got undefined, expected a list of boxes, as boxes() gives: { box:",
    "suppressed([{}, 1])": "suppressed: got [Object, Number], expected a list of boxes",
    "suppressed([{ box: [1, 2, 3] }])": "expected a list of boxes",
    "letterbox(source)": "letterbox: size: got undefined, expected [height, width], as model.image.size",
    "letterbox(source, 64)": "letterbox: size: got 64, expected [height, width]",
    "letterbox(source, [64])": "letterbox: size: got [Number], expected",
    "letterbox(undefined, [64, 64])": "letterbox: got undefined, expected a picture",
    "letterbox({ width: 0, height: 5 }, [64, 64])": "letterbox: got Object, expected a picture",
    "letterbox({ width: 1, height: 1, data: [] }, [64, 64])": "createImageBitmap makes one of ImageData",
    "drawBoxes()": 'drawBoxes: got undefined, expected what canvas.getContext("2d") gives',
    "drawBoxes({}, [])": "drawBoxes: got Object, expected what canvas",
    "drawBoxes(context)": "drawBoxes: got undefined, expected a list of boxes",
    "vector()": "vector: got undefined, expected an output",
    "vector({ data: new Float32Array(4), shape: [2, 2] }, {})": "vector: the mask has no elements for 2 rows",
    "similarity()": "similarity: got undefined, expected a vector, as vector() gives",
    "similarity(one, { data: one })": "similarity: got Object, expected a vector",
    "similarity(one, BigInt64Array.of(1n, 2n))": "similarity: got BigInt64Array, expected a vector",
    "similarity(one, new Float32Array(3))": "similarity: vectors of 2 and 3 elements",
    "nearest()": "nearest: got undefined, expected a vector",
    "nearest(one)": "nearest: got undefined, expected a list of vectors",
    "nearest(one, one)": "nearest: got Float32Array, expected a list of vectors",
    "nearest(one, [null])": "similarity: got null, expected a vector",
}


def test_what_does_not_fit_is_named() -> None:
    cases = ", ".join(f"() => tasks.{call}" for call in WRONG)
    body = f"""{TASKS}
    const [one, source] = [Float32Array.of(0, 1), {{ width: 8, height: 8 }}];
    const context = {{ fillText() {{}}, strokeRect() {{}} }};
    return Promise.all([{cases}].map((call) => failure(async () => call())));
    """
    for found, (call, message) in zip(node(body), WRONG.items(), strict=True):
        assert (found["name"], found["code"]) == ("SingeError", "input"), (call, found)
        assert message in found["message"]


@pytest.mark.slow
def test_pictures_are_letterboxed_and_boxes_drawn(browser: Any) -> None:
    script = """async () => {
      const { drawBoxes, letterbox } = await import("/singe-tasks.js");
      const source = new OffscreenCanvas(100, 50);
      const context = source.getContext("2d");
      context.fillStyle = "red";
      context.fillRect(0, 0, 100, 50);
      const { picture, placed } = letterbox(source, [64, 64]);
      const pixel = (canvas, x, y) => [...canvas.getContext("2d").getImageData(x, y, 1, 1).data];
      drawBoxes(context, [{ box: [10, 25, 90, 45], index: 0, label: "x", probability: 0.5 }]);
      return { placed, middle: pixel(picture, 32, 32), above: pixel(picture, 32, 8), inside: pixel(source, 50, 35), edge: pixel(source, 50, 45) };
    }"""
    with served(STATIC) as address, browser.new_page() as page:
        page.goto(f"{address}singe.js")
        found = page.evaluate(script)
    assert found["placed"] == {"scale": 0.64, "left": 0, "top": 16, "width": 100, "height": 50}
    assert (found["middle"], found["above"]) == ([255, 0, 0, 255], [114, 114, 114, 255])
    assert found["inside"] == [255, 0, 0, 255] != found["edge"]


def test_a_letterboxed_picture_is_taken_by_a_bundle_without_options(browser: Any, tmp_path: Path) -> None:
    """In a worker too, where a canvas cannot be sent."""
    b = Builder()
    x = b.input("x", (1, 3, 8, 8), float32)
    scaled = b.mul(x, b.const(np.float32(255)))
    sg.save(Model(Graph((x,), (scaled,), ("y",)), "numpy"), tmp_path / "m.singe")
    assert cli.main(["export", str(tmp_path / "m.singe"), "-o", str(tmp_path / "out"), "--targets", "wasm"]) == 0
    script = """async (worker) => {
      const [{ load }, { letterbox }] = await Promise.all([import("/singe.js"), import("/singe-tasks.js")]);
      const source = new OffscreenCanvas(16, 8);
      source.getContext("2d").fillRect(0, 0, 16, 8);
      const model = await load("/", { worker });
      const { picture } = letterbox(source, model.image.size);
      const { y } = await model.run({ x: picture });
      return [model.worker, Array.from(y.data)];
    }"""
    expected = np.full((3, 8, 8), 114.0)
    expected[:, 2:6] = 0
    with served(tmp_path / "out") as address, browser.new_page() as page:
        page.goto(address)
        for worker in (False, True):
            found, values = page.evaluate(script, worker)
            assert found is worker
            np.testing.assert_allclose(np.reshape(values, (3, 8, 8)), expected, atol=1e-3)


LANDMARKS = f'const {{ landmarks }} = await import("{(STATIC / "tasks/singe-task-landmarks.js").as_uri()}");'
SCENES = {
    "one is lost": (Told([[10, 10, 8, 0]], {12.0: 0.4}), 1, 4),
    "one of two": (Told([[10, 10, 80, 0]], {}), 2, 7),
    "some are the same": (Told([[10, 10, 8, 0], [11, 10, 0, 8], [40, 10, 8, 3]], {41.0: 0.1}), 9, 7),
    "none": (Told([], {}), 2, 2),
}
"""What is found and its scores, how many are asked for, and how many frames there are."""


@pytest.mark.parametrize("name", SCENES)
def test_what_is_followed_in_a_page_is_what_python_follows(name: str) -> None:
    told, top, frames = SCENES[name]
    body = f"""{LANDMARKS}
    const calls = [];
    const run = async (name, {{ picture, threshold, region, samples }}) => {{
      if (name === "find") {{
        calls.push("find");
        return {{ regions: {{ data: Float32Array.from(given.finds.flat()), shape: [given.finds.length, 4] }} }};
      }}
      calls.push(String(region[0]));
      const score = Float32Array.of(given.scores[region[0]] ?? 1);
      const points = Float32Array.of(region[0], region[1], 0, region[0], region[1], 0);
      const ahead = Float32Array.from(region, (x, k) => (k ? x : x + 1));
      return {{ score: {{ data: score, shape: [1] }}, landmarks: {{ data: points, shape: [2, 3] }}, region: {{ data: ahead, shape: [4] }} }};
    }};
    const info = {{ kind: "landmarks", labels: ["hand"], options: {{ side: 224, joints: [] }} }};
    const follow = landmarks(run, info, {{ threshold: 0.5, top: given.top }});
    const answers = [];
    for (let k = 0; k < given.frames; k++) answers.push(await follow({{ data: new Uint8Array(64), width: 4, height: 4 }}));
    const wrong = await failure(async () => landmarks(run, info, {{ threshold: 0.5, top: 17 }}));
    return {{ answers, calls, wrong }};
    """
    found = node(
        body, finds=told.finds, scores={f"{x:g}": score for x, score in told.scores.items()}, top=top, frames=frames
    )
    follow = CHAIN.begin(told.parts(), {"threshold": 0.5, "top": top})
    answers: list[Any] = [follow(np.zeros((4, 4, 4), np.uint8)) for _ in range(frames)]
    assert found["answers"] == [answer.to_dict() for answer in answers]
    assert found["calls"] == told.calls
    assert found["wrong"]["code"] == "input"
    assert "top is 17" in found["wrong"]["message"]


OCR = f'const {{ ocr }} = await import("{(STATIC / "tasks/singe-task-ocr.js").as_uri()}");'


@pytest.mark.parametrize(
    ("seed", "has_turned", "sides"),
    [(0, True, (60, 90)), (1, True, (720, 900)), (2, False, (3000, 700)), (3, True, (90, 5))],
)
def test_lines_are_found_and_ordered_in_a_page_as_in_python(
    seed: int, has_turned: bool, sides: tuple[int, int]
) -> None:
    """Regions, their rectangles, the order and the views of lines are plain functions of both languages."""
    blots = Blots(seed, has_turned)
    body = f"""{OCR}
    const calls = [];
    const round = (values) => Array.from(values, (x) => Math.round(x * 1000) / 1000);
    const run = async (name, {{ rows, columns, places, widths, samples }}) => {{
      if (name === "det") {{
        calls.push([name, rows.length, columns.length]);
        return {{ chances: {{ data: new Float32Array(Uint8Array.from(atob(given.chances), (c) => c.charCodeAt(0)).buffer), shape: given.shape }} }};
      }}
      calls.push([name, round(places.data), round(widths), round(samples), columns.length]);
      const x = Array.from(widths, (_, k) => places.data[6 * k]);
      if (name === "cls") return {{ turned: {{ data: x.map((at) => (((at % 5) + 5) % 5 < 2 ? 0.95 : 0.1)) }} }};
      const characters = Int32Array.from(x.flatMap((at, k) => [widths[k] % 4, 0, at % 4]));
      return {{ characters: {{ data: characters, shape: [x.length, 3] }}, scores: {{ data: x.map((at) => (at % 10) / 10) }} }};
    }};
    const info = {{ kind: "ocr", parts: given.parts, labels: given.labels, options: {{}} }};
    const [height, width] = given.sides;
    const answers = await ocr(run, info, {{ threshold: 0.1 }})({{ data: new Uint8Array(0), width, height }});
    const wrong = await failure(async () => ocr(run, {{ ...info, labels: ["", "a"] }}, {{ threshold: 0.1 }})({{ data: new Uint8Array(0), width, height }}));
    return {{ answers, calls, wrong }};
    """
    found = node(body, **blots.to_dict(), sides=sides)
    wanted: Any = READING.begin(blots.parts(), {"threshold": 0.1})(np.zeros((*sides, 4), np.uint8))
    assert len(wanted) > 2
    assert [line["text"] for line in found["answers"]] == [line.text for line in wanted]
    for mine, theirs in zip(found["answers"], wanted.to_dict(), strict=True):
        for part in ("corners", "box"):
            np.testing.assert_allclose(values(mine[part]), values(theirs[part]), atol=1e-6)
        np.testing.assert_allclose(mine["score"], theirs["score"], atol=1e-6)
    for mine, theirs in zip(found["calls"], blots.calls, strict=False):
        assert mine[0] == theirs[0]
        one, other = (np.hstack([np.ravel(x) for x in call[1:]]) for call in (mine, theirs))
        np.testing.assert_allclose(one, other, atol=2e-3)
    assert found["wrong"]["code"] == "format"
    assert "that are named: export it with the characters.txt" in found["wrong"]["message"]


def values(part: Any) -> list[float]:
    """The numbers of corners, or of a box."""
    return [x for point in (part if isinstance(part, list) else [part]) for x in point.values()]
