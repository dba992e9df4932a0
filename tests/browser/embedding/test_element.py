"""<singe-model> under a strict policy: numeric models are ready to run, models of pictures take a file and show classes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import packed, small_case, unpacked
from pages import POLICY, Page, open_page

from singe.dtypes import dtype, float32, uint8
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.tasks.picture.spec import PictureSpec
from singe.tools.export.bundle import export

LABELS: Final = dict(enumerate(["red", "green", "blue", "none", "some", "more"]))


def colours(std: float) -> Graph:
    """Scores from a picture's mean colour: its three channels, and three small numbers. Pixels come as bytes if they are not
    divided before."""
    b = Builder()
    x = pixels = b.input("pixels", (1, 3, 8, 8), uint8 if std == 1 else float32)
    if std == 1:
        x = b.div(b.cast(x, to=float32), b.const(255.0, float32))
    w = np.zeros((192, 6), np.float32)
    for channel in range(3):
        w[channel * 64 : (channel + 1) * 64, channel] = 4 / 64
    return Graph((pixels,), (b.matmul(b.reshape(x, shape=(1, 192)), b.const(w)),), ("scores",))


@pytest.fixture(scope="module")
def chromium(browser: Any, bundle: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    root = bundle("small").parent
    for name, std in (("colours", 255.0), ("bytes", 1.0)):
        if not (root / name).exists():
            picture = PictureSpec(size=(8, 8), crop=1.0, mean=(0.0,), std=(std,), layout="nchw", channels=3)
            export(Model(colours(std), "numpy", name), root / name, picture=picture, labels=LABELS)
    (root / "page.js").write_text(
        """import "/static/singe-element.js";
        globalThis.events = [];
        for (const element of document.querySelectorAll("singe-model")) {
          for (const type of ["load", "result", "error", "progress"]) {
            element.addEventListener(type, ({ detail }) => events.push([type, detail.code ?? detail.name ?? detail.phase]));
          }
        }"""
    )
    with open_page(browser, root) as page:
        yield page


def opened(page: Page, element: str) -> Any:
    """A tab with the element under the policy; violations of the policy are errors on its console."""
    markup = f'<!doctype html><meta charset=utf-8>{element}<script type=module src="/bundles/page.js"></script>'
    page.server.pages["/element"] = (markup, {"Content-Security-Policy": POLICY})
    tab = page.page.context.browser.new_page()
    tab.refused = []
    tab.on("console", lambda m: tab.refused.append(m.text) if "Content Security Policy" in m.text else None)
    tab.goto(page.server.address + "element")
    return tab


@pytest.mark.parametrize("worker", ["", " worker"])
def test_a_numeric_model(chromium: Page, worker: str) -> None:
    tab = opened(chromium, f'<singe-model src="/bundles/small" device="wasm"{worker}></singe-model>')
    try:
        tab.get_by_role("status").filter(has_text="ready on wasm").wait_for()
        inputs, expected = small_case(2)
        found = tab.evaluate(
            """async (given) => {
              const { pack, unpack } = await import("/tests/browser/harness.js");
              const element = document.querySelector("singe-model");
              const outputs = pack(await element.run(unpack(given)));
              return { outputs, device: (await element.model).device };
            }""",
            packed(inputs),
        )
        assert np.allclose(unpacked(found["outputs"])["scores"], expected["scores"])
        assert found["device"] == "wasm"
        events = [type for type, _ in tab.evaluate("events")]
        assert events[0] == "progress"
        assert events[-4:] == ["load", "progress", "progress", "result"]
        assert not tab.locator("singe-model").get_by_label("picture").is_visible()
        assert tab.refused == []
    finally:
        tab.close()


def picture_file(colour: tuple[int, int, int]) -> Any:
    image = pytest.importorskip("PIL.Image")
    raw = io.BytesIO()
    image.new("RGB", (40, 30), colour).save(raw, "PNG")
    return {"name": "a.png", "mimeType": "image/png", "buffer": raw.getvalue()}


@pytest.mark.parametrize("name", ["colours", "bytes"])
def test_a_model_of_pictures(chromium: Page, name: str) -> None:
    tab = opened(chromium, f'<singe-model src="/bundles/{name}?v=3" device="wasm"></singe-model>')
    try:
        tab.get_by_role("status").filter(has_text="ready").wait_for()
        for colour, label in (((250, 10, 20), "red"), ((10, 20, 250), "blue")):
            tab.get_by_label("A picture").set_input_files([picture_file(colour)])
            tab.get_by_role("listitem").first.filter(has_text=label).wait_for()
            assert tab.get_by_role("listitem").count() == 5
            values = tab.locator("meter").evaluate_all("bars => bars.map((bar) => bar.value)")
            assert values == sorted(values, reverse=True)
            assert values[0] > 0.8
        tab.get_by_label("A picture").set_input_files(
            [{"name": "a.png", "mimeType": "image/png", "buffer": b"no picture"}]
        )
        tab.get_by_role("status").filter(has_text="picture").wait_for()
        assert tab.evaluate("events").pop() == ["error", "input"]
        assert tab.get_by_role("listitem").count() == 0
        assert tab.refused == []
    finally:
        tab.close()


@pytest.mark.parametrize("answer", ["unreachable", "HTML"])
def test_labels_that_cannot_be_fetched_leave_numbers(chromium: Page, answer: str) -> None:
    red = picture_file((250, 10, 20))
    tab = opened(chromium, "")
    try:
        body = "<!doctype html>"
        tab.route("**/labels.json*", lambda r: r.abort() if answer == "unreachable" else r.fulfill(body=body))
        tab.evaluate(
            "() => { const e = document.createElement('singe-model'); e.setAttribute('device', 'wasm'); "
            "e.setAttribute('src', '/bundles/colours'); document.body.append(e); }"
        )
        tab.get_by_role("status").filter(has_text="ready on wasm").wait_for()
        tab.get_by_label("A picture").set_input_files([red])
        tab.get_by_role("listitem").first.filter(has_text="class 0").wait_for()
    finally:
        tab.close()


TWICE: Final = """async () => {
  const file = async (side, colour) => {
    const canvas = new OffscreenCanvas(side, side);
    const context = canvas.getContext("2d");
    context.fillStyle = colour;
    context.fillRect(0, 0, side, side);
    return new File([await canvas.convertToBlob()], "a.png", { type: "image/png" });
  };
  const files = [await file(3000, "red"), await file(28, "blue")];
  const field = document.querySelector("singe-model").shadowRoot.querySelector("input");
  for (const one of files) {
    const carried = new DataTransfer();
    carried.items.add(one);
    field.files = carried.files;
    field.dispatchEvent(new Event("change"));
  }
}"""
"""Choose a large picture, and at once a small one."""


def test_the_latest_picture_is_shown(chromium: Page) -> None:
    tab = opened(chromium, '<singe-model src="/bundles/colours" device="wasm"></singe-model>')
    try:
        tab.get_by_role("status").filter(has_text="ready").wait_for()
        tab.evaluate(TWICE)
        tab.get_by_role("listitem").first.filter(has_text="blue").wait_for()
        tab.wait_for_timeout(1500)  # the large one takes less
        assert "blue" in tab.get_by_role("listitem").first.inner_text()
        assert [type for type, _ in tab.evaluate("events")].count("result") == 1
    finally:
        tab.close()


def test_a_bundle_that_is_not_there(chromium: Page) -> None:
    tab = opened(chromium, '<singe-model src="/bundles/none"></singe-model>')
    try:
        tab.get_by_role("status").filter(has_text="404").wait_for()
        assert tab.evaluate("events") == [["error", "network"]]
    finally:
        tab.close()


def test_another_source_loads_anew_and_removal_frees(chromium: Page) -> None:
    tab = opened(chromium, '<singe-model src="/bundles/small" device="wasm"></singe-model>')
    try:
        tab.get_by_role("status").filter(has_text="small: ready").wait_for()
        tab.evaluate(
            "async () => { const e = document.querySelector('singe-model'); globalThis.first = await e.model; e.src; "
            "e.setAttribute('src', '/bundles/colours'); }"
        )
        tab.get_by_role("status").filter(has_text="colours: ready").wait_for()
        assert tab.evaluate("first.memory") == {"gpu": 0, "wasm": 0, "js": 0}
        held = "async () => { const e = document.querySelector('singe-model'); const m = await e.model; e.remove(); await m.dispose(); return m.memory; }"
        assert tab.evaluate(held) == {"gpu": 0, "wasm": 0, "js": 0}
    finally:
        tab.close()


PICTURES = """
/** What a page alone has of a picture: a canvas and an image of the page, and a video that plays the canvas. */
async function ofPage(picture) {
  const drawn = Object.assign(document.createElement("canvas"), { width: 16, height: 16 });
  const draw = () => drawn.getContext("2d").drawImage(picture, 0, 0);
  draw();
  const image = Object.assign(new Image(), { src: drawn.toDataURL() });
  await image.decode();
  const video = Object.assign(document.createElement("video"), { muted: true, srcObject: drawn.captureStream() });
  const shown = new Promise((done) => video.requestVideoFrameCallback(done));
  const drawing = setInterval(draw, 20); // a stream of a canvas has a frame for each change
  await Promise.all([video.play(), shown]);
  clearInterval(drawing);
  return { drawn, image, video };
}
const model = await load("/bundles/colours", { device: "wasm", worker: given.worker });
const canvas = new OffscreenCanvas(16, 16);
const context = canvas.getContext("2d");
context.fillStyle = "rgb(0 255 0)";
context.fillRect(0, 0, 16, 16);
const { data } = await model.run({ pixels: Array.from({ length: 192 }, (_, k) => (k >= 64 && k < 128 ? 1 : 0)) }).then((o) => o.scores);
const pictures = {
  data: context.getImageData(0, 0, 16, 16), bitmap: await createImageBitmap(canvas), file: await canvas.convertToBlob(),
  canvas, frame: new VideoFrame(canvas, { timestamp: 0 }), ...(await ofPage(canvas)),
};
const found = { list: [...data] };
for (const [name, pixels] of Object.entries(pictures)) found[name] = [...(await model.run({ pixels })).scores.data];
const refused = await failure(() => model.run({ pixels: new Image() }));
await model.dispose();
return { found, refused };
"""


@pytest.mark.parametrize("worker", [False, True])
def test_a_run_takes_pictures_and_lists(chromium: Page, worker: bool) -> None:
    done = chromium.run(PICTURES, worker=worker)
    assert len(done["found"]) == 9
    for name, scores in done["found"].items():
        np.testing.assert_allclose(scores, [0, 4, 0, 0, 0, 0], atol=0.05, err_msg=name)
    assert done["refused"]["code"] == "input"


OF_TWO: Final = {
    "bool": [0, 1],
    "int8": [-128, 127],
    "uint8": [0, 255],
    "int16": [-200, 310],
    "int64": [-200, 310],
    "uint64": [0, 310],
    "float16": [-200, 310],
    "float64": [-200, 310],
}
"""A dtype ↦ its elements for the numbers -200 and 310, which a black and a white pixel become."""


@pytest.mark.parametrize("name", OF_TWO)
def test_pictures_become_elements_of_every_dtype_of_numbers(chromium: Page, name: str) -> None:
    b = Builder()
    x = b.input("pixels", (1, 1, 1, 2), dtype(name))
    two = PictureSpec(size=(1, 2), channels=1, mean=(100.0,), std=(0.5,))
    model = Model(Graph((x,), (b.cast(x, to=float32),), ("numbers",)), "numpy")
    export(model, chromium.server.root / f"two-{name}", ["wasm"], picture=two)
    body = f"""
    const model = await load("/bundles/two-{name}", {{ device: "wasm" }});
    const picture = new ImageData(Uint8ClampedArray.of(0, 0, 0, 255, 255, 255, 255, 255), 2, 1);
    const runs = [picture, [[[given.expected]]]].map((pixels) => model.run({{ pixels }}));
    return (await Promise.all(runs)).map(({{ numbers }}) => [...numbers.data]);
    """
    assert chromium.run(body, expected=OF_TWO[name]) == [OF_TWO[name]] * 2
