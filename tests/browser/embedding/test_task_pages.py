"""Tasks in Chromium: pages answer what Python answers, for every kind; videos are followed; a bundle's page is its task."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsers import plain
from pointing import task_of as pointing
from reading import task_of as reading

import singe as sg
from singe.model.model import Model
from singe.tasks.chains import CHAINS as ALL_CHAINS
from singe.tasks.kinds import KINDS
from singe.tools.serving.folder_server import Server

Image = pytest.importorskip("PIL.Image", reason="Pillow is not here")
RNG = np.random.default_rng(5)


def weights(*shape: int) -> np.ndarray:
    return (RNG.normal(size=shape) / 8).astype(np.float32)


def model(function: Any, side: int = 32) -> Model:
    return Model.of(function, {"images": (1, 3, side, side)}, "numpy")


def blocks(x: sg.Tensor) -> sg.Tensor:
    """The picture in 8 by 8 blocks: (1, 48)."""
    return x.reshape(1, 3, 4, 8, 4, 8).mean((3, 5)).reshape(1, 48)


def rows(count: int, numbers: int) -> Any:
    """A network of one layer that gives (count, numbers)."""
    w = weights(48, count * numbers)
    return lambda x: (blocks(x) @ sg.tensor(w)).reshape(1, count, numbers)


def yolo(x: sg.Tensor) -> sg.Tensor:
    found = PLACES(x)
    boxes = found[..., :4].sigmoid() * sg.tensor(np.array([32, 32, 12, 12], np.float32)) + 3.0
    return sg.concatenate([boxes, found[..., 4:].sigmoid()], axis=2).permute(0, 2, 1)


def masked(x: sg.Tensor) -> dict[str, sg.Tensor]:
    """Boxes, each with its shares of two patterns."""
    return {
        "output0": sg.concatenate([yolo(x), SHARED(x).permute(0, 2, 1)], axis=1),
        "output1": PATTERNS(x).reshape(1, 2, 8, 8),
    }


def people(x: sg.Tensor) -> sg.Tensor:
    found = PEOPLE(x)
    return sg.concatenate([yolo(x)[:, :5], found.sigmoid().permute(0, 2, 1) * 32.0], axis=1)


def faces(x: sg.Tensor) -> dict[str, sg.Tensor]:
    found = blocks(x.reshape(1, 3, 32, 4, 32, 4).mean((3, 5))) @ sg.tensor(FACES)
    found = found.reshape(1, 896, 17) * 30.0
    return {"boxes": found[..., :16].abs(), "scores": found[..., 16:] * 0.2}


FACES = weights(48, 896 * 17)
SHARES = np.array([9.0, 8.3, 7.9, 8.1, 8.7, 7.3], np.float32).reshape(1, 6, 1, 1)
PLACES, NINE, TWELVE = rows(21, 7), rows(1, 9), rows(1, 12)
SHARED, PATTERNS, PEOPLE = rows(21, 2), rows(1, 128), rows(21, 9)
TASKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "classify": (model(lambda x: NINE(x)[0] * 40.0), {"labels": [f"größer {k}" for k in range(9)]}),
    "detect": (model(yolo), {"labels": ["cat", "dog", "owl"]}),
    "faces": (model(faces, 128), {"labels": "face"}),
    "pose": (model(people), {}),
    "segment": (model(lambda x: sg.concatenate([x, 1.0 - x], axis=1) * sg.tensor(SHARES)), {}),
    "cutout": (model(lambda x: x.mean(1, keepdims=True)), {}),
    "depth": (model(lambda x: x[:, 0]), {}),
    "embed-image": (model(lambda x: TWELVE(x)[0]), {}),
}


def photo(width: int, height: int) -> bytes:
    """A picture without sharp edges, of its own."""
    coarse = Image.fromarray(RNG.integers(0, 256, (5, 6, 3)).astype(np.uint8))
    held = BytesIO()
    coarse.resize((width, height), Image.Resampling.BICUBIC).save(held, "PNG")
    return held.getvalue()


CHANGES: dict[str, dict[str, Any]] = {
    "other kind": {"kind": "toString"},
    "other labels": {"labels": "abc"},
    "no models": {"kind": "landmarks"},
    "models elsewhere": {"kind": "landmarks", "parts": ["../wide", "points"]},
    "other scripts": {"preparation": {"medium": "sound"}},
}
"""Bundles whose facts were changed."""
CHAINS = {"landmarks": pointing, "ocr": reading}
"""Those of several models."""
PHOTOS = {"wide": photo(150, 70), "high": photo(40, 90), "small": photo(20, 17)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server of a bundle and a record of each task."""
    root = tmp_path_factory.mktemp("tasks")
    for kind, (net, options) in TASKS.items():
        made = sg.task(kind, net, **options)
        sg.export(made, root / kind)
        made.save(root / f"{kind}.singe")
    masks = sg.task("detect", model(masked), labels=["cat", "dog", "owl"])
    sg.export(masks, root / "masks")
    masks.save(root / "masks.singe")
    sg.export(TASKS["depth"][0], root / "plain")
    for kind, chain in CHAINS.items():
        sg.export(chain(), root / kind)
    for name, data in PHOTOS.items():
        (root / f"{name}.png").write_bytes(data)
    for name, change in CHANGES.items():
        (root / name).mkdir()
        for file in (root / "classify").iterdir():
            if file.name != "model.json":
                (root / name / file.name).symlink_to(file)
        manifest = json.loads((root / "classify" / "model.json").read_text())
        (root / name / "model.json").write_text(json.dumps({**manifest, "task": {**manifest["task"], **change}}))
    (root / "index.html").write_text("<!doctype html><title>tasks</title>")
    with Server(root, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server, root
        server.shutdown()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
    yield page
    context.close()
    assert not wrong


ASK = """async ([kind, device, worker, names, settings]) => {
  const { task } = await import(`/${kind}/singe-tasks.js`);
  const ask = await task(`/${kind}/`, { device, worker });
  const answers = await ask(names.map((name) => `/${name}.png`), settings);
  const { info, model } = ask;
  const text = JSON.stringify(answers, (_, value) => (ArrayBuffer.isView(value) ? [...value] : value));
  const inWorker = model.worker;
  await ask.close();
  return { answers: JSON.parse(text), kind: info.kind, inWorker };
}"""


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of plain data."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, f"{path}/{key}")
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from numbers(item, f"{path}/{k}")
    else:
        yield path, value


def assert_same(found: Any, wanted: Any) -> None:
    mine, theirs = dict(numbers(found)), dict(numbers(wanted))
    assert mine.keys() == theirs.keys()
    texts = [key for key, value in theirs.items() if isinstance(value, str)]
    assert [mine[key] for key in texts] == [theirs[key] for key in texts]
    rest = [key for key in theirs if key not in texts]
    whole = all("mask" in key for key in rest)  # masks of whole numbers may be rounded apart
    np.testing.assert_allclose([mine[k] for k in rest], [theirs[k] for k in rest], rtol=2e-4, atol=1 if whole else 2e-3)


@pytest.mark.parametrize("kind", TASKS)
def test_a_page_answers_what_python_answers(site: tuple[Server, Path], page: Any, kind: str) -> None:
    server, root = site
    page.goto(server.address)
    found = page.evaluate(ASK, [kind, "wasm", True, list(PHOTOS), {}])
    ask = sg.task(kind, root / f"{kind}.singe", device="numpy")
    wanted = [answer.to_dict() for answer in ask([root / f"{name}.png" for name in PHOTOS])]
    assert any(wanted)
    assert found["kind"] == kind
    assert found["inWorker"]
    for mine, theirs in zip(found["answers"], wanted, strict=True):
        assert_same(mine, theirs)


def test_every_kind_is_compared() -> None:
    assert TASKS.keys() == {name for name, kind in KINDS.items() if kind.medium.name == "picture"}
    assert CHAINS.keys() == ALL_CHAINS.keys()


@pytest.mark.parametrize("device", ["wasm", "webgpu"])
@pytest.mark.parametrize("kind", CHAINS)
def test_a_page_runs_several_models_as_python_does(
    site: tuple[Server, Path], page: Any, kind: str, device: str
) -> None:
    page.goto(site[0].address)
    found = page.evaluate(ASK, [kind, device, device == "wasm", list(PHOTOS), {"threshold": 0.1}])
    answers = CHAINS[kind]()([site[1] / f"{name}.png" for name in PHOTOS], threshold=0.1)
    assert any(map(len, answers))
    for mine, theirs in zip(found["answers"], answers, strict=True):
        assert_same(mine, theirs.to_dict())


def test_masks_of_boxes_are_those_of_python(site: tuple[Server, Path], page: Any) -> None:
    server, root = site
    page.goto(server.address)
    found = page.evaluate(ASK, ["masks", "wasm", False, list(PHOTOS), {"threshold": 0.5, "top": 4}])
    answers = sg.task("detect", root / "masks.singe", device="wasm")(
        [root / f"{name}.png" for name in PHOTOS], threshold=0.5, top=4
    )
    assert 0 < np.mean([item.mask.mean() / 255 for answer in answers for item in answer if item.mask is not None]) < 1
    for mine, theirs in zip(found["answers"], answers, strict=True):
        assert_same(mine, theirs.to_dict())


def test_boxes_on_a_gpu_are_those_of_python(site: tuple[Server, Path], page: Any) -> None:
    server, root = site
    page.goto(server.address)
    found = page.evaluate(ASK, ["detect", "webgpu", False, ["wide"], {"threshold": 0.5, "top": 4}])
    ask = sg.task("detect", root / "detect.singe", device="numpy")
    assert_same(found["answers"][0], ask(root / "wide.png", threshold=0.5, top=4).to_dict())


SOURCES = """async (worker) => {
  const { task } = await import("/classify/singe-tasks.js");
  const ask = await task("/classify/", { device: "wasm", worker });
  const blob = await (await fetch("/wide.png")).blob();
  const image = Object.assign(new Image(), { src: "/wide.png" });
  const bitmap = await createImageBitmap(blob);
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const data = context.getImageData(0, 0, bitmap.width, bitmap.height);
  const element = Object.assign(document.createElement("canvas"), { width: bitmap.width, height: bitmap.height });
  element.getContext("2d").drawImage(bitmap, 0, 0);
  const frame = new VideoFrame(element, { timestamp: 0 });
  const sources = { url: new URL("/wide.png", location), blob, image, bitmap, canvas, data, element, frame };
  const texts = {};
  for (const [name, source] of Object.entries(sources)) texts[name] = JSON.stringify((await ask(source, { top: 1 })).map(({ index }) => index));
  frame.close();
  await ask.close();
  return texts;
}"""


def test_every_source_of_a_page_is_taken(site: tuple[Server, Path], page: Any) -> None:
    page.goto(site[0].address)
    for worker in (False, True):
        found = page.evaluate(SOURCES, worker)
        assert len(found) == 8
        assert len(set(found.values())) == 1


REFUSED = """async ([kind, source, settings]) => {
  const { task } = await import("/classify/singe-tasks.js");
  try {
    const ask = await task(`/${kind}/`, { device: "wasm", worker: false });
    await ask(source, settings);
  } catch ({ name, code, message }) {
    return [name, code, message];
  }
}"""


@pytest.mark.parametrize(
    ("kind", "source", "settings", "code", "text"),
    [
        ("plain", "/wide.png", {}, "format", "no task: it is a model without preparation and decoding: export it with"),
        ("other kind", "/wide.png", {}, "format", 'no task: its kind "toString" is not known'),
        ("other labels", "/wide.png", {}, "format", "no task: its labels are no list of texts"),
        ("no models", "/wide.png", {}, "format", "no task: it does not name its models"),
        ("models elsewhere", "/wide.png", {}, "format", "no task: it does not name its models"),
        ("other scripts", "/wide.png", {}, "network", "import task from singe-tasks.js in that folder"),
        ("classify", "/none.png", {}, "network", "the server answered 404"),
        ("classify", "/wide.png", {"topp": 1}, "input", "got topp; expected some of top"),
        ("detect", "/wide.png", {"threshold": 0.01}, "input", "threshold is 0.01, expected a score from 0.05"),
        ("classify", "/wide.png", {"top": -1}, "input", "top is -1, expected how many classes to give, 1 or more"),
        ("classify", 7, {}, "input", "expected a file, or something that a canvas draws, got Number"),
        ("classify", None, {}, "input", "expected a file, or something that a canvas draws, got null"),
    ],
)
def test_what_does_not_fit_is_refused(
    site: tuple[Server, Path], page: Any, kind: str, source: Any, settings: Any, code: str, text: str
) -> None:
    page.goto(site[0].address)
    name, found, message = page.evaluate(REFUSED, [kind, source, settings])
    assert (name, found) == ("SingeError", code)
    assert text in message


LOADING = """async () => {
  const { task } = await import("/classify/singe-tasks.js");
  const ask = await task("/classify/", { device: "wasm", worker: false });
  const told = async (wrong) => {
    try {
      return String(await wrong());
    } catch (error) {
      return `${error.code}: ${error.message}`;
    }
  };
  const image = (src) => Object.assign(new Image(), src && { src });
  const { length } = await ask(image("/high.png?new"), { top: 1 });
  const video = document.createElement("video");
  return [
    length,
    await told(() => ask(image("/none.png"))),
    await told(() => ask(image())),
    await told(() => ask(video)),
    await told(() => ask.stream(video)),
    await told(() => ask.stream(image("/high.png"), () => {})),
  ];
}"""


def test_an_image_is_waited_for_and_what_shows_nothing_is_told(site: tuple[Server, Path], page: Any) -> None:
    page.goto(site[0].address)
    count, missing, empty, idle, unheard, still = page.evaluate(LOADING)
    assert count == 1
    assert missing == f"input: picture: the image {site[0].address}none.png cannot be loaded"
    assert empty == "input: picture: the image has no src"
    assert idle == "input: picture: it has 0 × 0 pixels, as images and videos have until they are loaded"
    assert unheard == "input: stream: got undefined as its second argument, expected a function that takes an answer"
    assert still == "input: stream: expected a <video>; of other sources, ask for one picture after the other"


STREAM = """async () => {
  const { task } = await import("/detect/singe-tasks.js");
  const ask = await task("/detect/", { device: "wasm" });
  const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 48 });
  const context = canvas.getContext("2d");
  let hue = 0;
  const paint = setInterval(() => {
    context.fillStyle = `hsl(${(hue += 20)} 80% 50%)`;
    context.fillRect(0, 0, 64, 48);
  }, 20);
  const video = Object.assign(document.createElement("video"), { muted: true, srcObject: canvas.captureStream(30) });
  await video.play();
  const answers = [];
  await new Promise((resolve, reject) => {
    const following = ask.stream(video, (found, timing) => {
      answers.push([Array.isArray(found), timing.milliseconds >= 0, timing.frame.displayWidth]);
      if (answers.length === 4) {
        following.stop();
        following.done.then(resolve, reject);
      }
    });
    following.done.catch(reject);
  });
  clearInterval(paint);
  await ask.close();
  return answers;
}"""


def test_a_video_is_followed_until_it_is_stopped(site: tuple[Server, Path], page: Any) -> None:
    page.goto(site[0].address)
    assert page.evaluate(STREAM) == [[True, True, 64]] * 4


def status(page: Any, text: str) -> None:
    page.wait_for_function(
        """(text) => {
          const { dataset, textContent } = document.querySelector("[data-testid=status]");
          if (dataset.state === "error") throw new Error(textContent);
          return dataset.state === "ready" && textContent.includes(text);
        }""",
        arg=text,
    )


def test_the_page_of_a_bundle_is_its_task(site: tuple[Server, Path], page: Any) -> None:
    server, root = site
    page.goto(f"{server.address}detect/")
    status(page, "nothing is loaded")
    page.get_by_test_id("backend").select_option("wasm")
    status(page, "Ready on wasm")
    page.get_by_test_id("file").set_input_files(str(root / "wide.png"))
    status(page, "Done on wasm")
    wanted = sg.task("detect", root / "detect.singe", device="numpy")(root / "wide.png")
    first = page.get_by_test_id("top-1")
    assert first.get_attribute("data-value") == str(wanted[0].index)
    assert first.inner_text() == f"{wanted[0].label}: {wanted[0].score:.1%}".replace("%", " %")
    canvas = page.get_by_test_id("canvas")
    assert (canvas.get_attribute("width"), canvas.get_attribute("height")) == ("150", "70")
    assert float(page.get_by_test_id("time").get_attribute("data-value")) > 0
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


CAMERA = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")


ASKED = """globalThis.asked = 0;
const { getUserMedia } = MediaDevices.prototype;
MediaDevices.prototype.getUserMedia = function (wanted) {
  asked++;
  return getUserMedia.call(this, wanted);
};"""


def test_the_page_of_a_bundle_follows_a_camera(site: tuple[Server, Path], browser: Any) -> None:
    """It is asked for once, be its button pressed twice while the model is loaded."""
    with plain(browser, *CAMERA) as other:
        page = other.new_page()
        page.add_init_script(ASKED)
        page.goto(f"{site[0].address}faces/")
        status(page, "nothing is loaded")
        page.evaluate("for (let presses = 0; presses < 2; presses++) document.getElementById('camera').click()")
        status(page, "Done on wasm")
        assert page.evaluate("asked") == 1
        assert int(page.get_by_test_id("canvas").get_attribute("width")) > 300
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="Camera").wait_for()
    with plain(browser) as other:
        page = other.new_page()
        page.goto(f"{site[0].address}faces/")
        status(page, "nothing is loaded")
        page.get_by_role("button", name="Camera").click()
        page.get_by_text("There is no such device here.").wait_for()


ELEMENT = """<!doctype html><meta charset="utf-8">{element}
<script type="module" src="/events.js"></script>"""
EVENTS = """import "/detect/singe-element.js";
globalThis.events = [];
for (const type of ["load", "result", "error"]) {
  document.querySelector("singe-task").addEventListener(type, ({ detail }) => events.push([type, detail.code ?? detail.info?.kind ?? detail.length]));
}"""


def placed(site: tuple[Server, Path], page: Any, element: str) -> None:
    """Open a page with the element."""
    server, root = site
    (root / "events.js").write_text(EVENTS)
    (root / "element.html").write_text(ELEMENT.format(element=element))
    page.goto(f"{server.address}element.html")


def said(page: Any, text: str) -> None:
    page.get_by_role("status").filter(has_text=text).wait_for()


def test_an_element_is_a_task_without_javascript(site: tuple[Server, Path], page: Any) -> None:
    placed(site, page, '<singe-task src="/detect/" device="wasm" threshold="0.5" top="3"></singe-task>')
    said(page, "ready on wasm")
    page.get_by_label("A picture").set_input_files(str(site[1] / "wide.png"))
    said(page, "ms on wasm")
    wanted = sg.task("detect", site[1] / "detect.singe", device="numpy")(site[1] / "wide.png", threshold=0.5, top=3)
    shown = page.get_by_role("listitem").all_inner_texts()
    assert [text.split("\n")[0] for text in shown] == [one.label for one in wanted]
    assert page.evaluate("events") == [["load", "detect"], ["result", len(wanted)]]
    asked = "async () => (await document.querySelector('singe-task').ask('/high.png')).length"
    assert page.evaluate(asked) <= 3
    removed = """async () => {
      const element = document.querySelector("singe-task");
      const { model } = await element.task;
      element.remove();
      await model.dispose();
      return model.memory;
    }"""
    assert page.evaluate(removed) == {"gpu": 0, "wasm": 0, "js": 0}


def test_an_element_follows_a_camera(site: tuple[Server, Path], browser: Any) -> None:
    with plain(browser, *CAMERA) as other:
        page = other.new_page()
        placed(site, page, '<singe-task src="/faces/" device="wasm" kind="camera"></singe-task>')
        page.get_by_role("button", name="Start the camera").click()
        page.wait_for_function("events.filter(([type]) => type === 'result').length > 2")
        page.get_by_role("button", name="Stop the camera").click()
        page.get_by_role("button", name="Start the camera").wait_for()
        assert not [event for event in page.evaluate("events") if event[0] == "error"]


def test_an_element_says_what_does_not_fit(site: tuple[Server, Path], page: Any) -> None:
    placed(site, page, '<singe-task src="/detect/" kind="cam"></singe-task>')
    said(page, 'kind: got "cam", expected picture, video, camera')
    page.evaluate("document.querySelector('singe-task').setAttribute('kind', 'picture')")
    said(page, "ready")
    page.evaluate("document.querySelector('singe-task').setAttribute('src', '/plain/')")
    said(page, "no task")
