"""A bundle's own page in Chromium, from `singe serve`: numbers, pictures, devices, errors, appearance."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import MODELS, ROOT, dtypes_graph, small_graph

from singe import load
from singe.dtypes import float32, int8, int16, uint16, uint32, uint64
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.tasks.picture import spec as images
from singe.tasks.picture.spec import PictureSpec
from singe.tools.export.bundle import export
from singe.tools.serving.folder_server import Server

PHOTOS = ROOT.parent / "shared" / "photos"
LITE0 = PictureSpec((224, 224), 3, 0.875, (127.0,), (128.0,), "nchw")
SHOTS = os.environ.get("SINGE_SCREENSHOTS")
"""A folder for screenshots of the page; without it none are kept."""


WHOLE = (int8, int16, uint16, uint32, uint64)


def whole_numbers_graph() -> Graph:
    b = Builder()
    inputs = tuple(b.input(dtype.name, (2,), dtype) for dtype in WHOLE)
    return Graph(inputs, tuple(b.cast(x, to=float32) for x in inputs), tuple(f"of_{dtype.name}" for dtype in WHOLE))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of bundles by name."""
    root = tmp_path_factory.mktemp("site")
    export(Model(small_graph(), "numpy", "small"), root / "small")
    export(Model(small_graph(), "numpy", "labelled"), root / "labelled", labels=["one", "two", "three", "four"])
    export(Model(dtypes_graph(), "numpy", "dtypes"), root / "dtypes")
    export(Model(whole_numbers_graph(), "numpy", "whole"), root / "whole")
    export(Model.of(lambda a, b: a @ b, {"a": (2, 3), "b": (3, 2)}, "numpy"), root / "product")
    if MODELS.exists() and PHOTOS.exists():
        from singe.tasks.labels import read_labels  # noqa: PLC0415

        model = load(MODELS / "efficientnet_lite0.onnx", device="numpy")
        export(
            model, root / "photos", dtype="int8", picture=LITE0,
            labels=read_labels(str(PHOTOS / "imagenet_labels.json")),
        )  # fmt: skip
    with Server(root, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that must not have an unexpected exception or a violation of its policy."""
    context = browser.new_context()
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
    yield page
    context.close()
    assert not wrong


def wait(page: Any, state: str, text: str = "") -> None:
    """Wait until the page has this status; an unexpected error fails the test."""
    found = page.wait_for_function(
        """([state, text]) => {
          const { dataset, textContent } = document.querySelector("[data-testid=status]");
          const done = (dataset.state === state && textContent.includes(text)) || dataset.state === "error";
          return done && [dataset.state, textContent];
        }""",
        arg=[state, text],
    )
    last, told = found.json_value()
    assert last == state, told
    assert text in told


def choose(page: Any, photo: str) -> None:
    """Give the page a picture, after removing the results of the last one."""
    page.evaluate("document.querySelector('[data-testid=status]').textContent = ''")
    page.get_by_test_id("file").set_input_files(str(PHOTOS / photo))


def cells(page: Any) -> list[list[str]]:
    return [row.locator("td").all_inner_texts() for row in page.get_by_test_id("outputs").locator("tr").all()]


@pytest.mark.parametrize("device", ["wasm", "webgpu"])
def test_numbers_as_json(site: Server, page: Any, device: str) -> None:
    page.goto(f"{site.address}small/")
    wait(page, "ready", "nothing is loaded")
    page.get_by_test_id("backend").select_option(device)
    for name, text in {"x": "[[1, 2, 3], [0, 0, 1]]", "k": "[[5], [7]]", "keep": "[[true], [0]]"}.items():
        page.get_by_test_id(f"fill-{name}").select_option("JSON")
        page.get_by_test_id(f"json-{name}").fill(text)
    page.get_by_test_id("run").click()
    wait(page, "ready", f"Done on {device}")
    w = np.arange(12).reshape(3, 4) - 5
    scores = np.array([np.array([1, 2, 3]) @ w + 5, [-1] * 4])
    found = {name: (shape, head) for name, _, shape, _, _, _, head in cells(page)}
    assert found["scores"] == ("(2, 4)", ", ".join(map(str, scores.reshape(-1))))
    assert found["negated"] == ("(2, 1)", "0, 1")
    assert found["twice"] == ("(2, 1)", "10, 14")
    assert float(page.get_by_test_id("time").get_attribute("data-value")) >= 0


def test_a_model_without_weights(site: Server, page: Any) -> None:
    page.goto(f"{site.address}product/")
    wait(page, "ready")
    assert page.locator("#facts").inner_text().endswith("(2, 2). It has no weights.")


@pytest.mark.parametrize("kind", ["random", "zeros", "JSON"])
def test_every_dtype_is_filled(site: Server, page: Any, kind: str) -> None:
    page.goto(f"{site.address}dtypes/")
    wait(page, "ready")
    for name in "hiu":
        page.get_by_test_id(f"fill-{name}").select_option(kind)
        if kind == "JSON":
            page.get_by_test_id(f"json-{name}").fill("[1, 2, 3]")
    page.get_by_label("Size N").fill("3")
    page.get_by_test_id("run").click()
    wait(page, "ready", "Done on wasm")
    found = {row[0]: row for row in cells(page)}
    assert found["same_i"][2] == "(3)"
    assert found["table"][6] == "3, -4"
    doubled = {"zeros": "0, 0, 0", "JSON": "2, 4, 6"}
    if kind != "random":
        assert {found[name][6] for name in ("half", "long", "byte")} == {doubled[kind]}


@pytest.mark.parametrize("kind", ["random", "zeros", "JSON"])
def test_inputs_of_whole_numbers_are_filled(site: Server, page: Any, kind: str) -> None:
    page.goto(f"{site.address}whole/")
    wait(page, "ready")
    page.get_by_test_id("backend").select_option("wasm")
    for dtype in WHOLE:
        page.get_by_test_id(f"fill-{dtype.name}").select_option(kind)
        if kind == "JSON":
            page.get_by_test_id(f"json-{dtype.name}").fill("[3, 100]")
    page.get_by_test_id("run").click()
    wait(page, "ready", "Done on wasm")
    heads = {row[6] for row in cells(page)}
    assert kind == "random" or heads == {{"zeros": "0, 0", "JSON": "3, 100"}[kind]}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[1, 2", "x is not JSON"),
        ('["a", 1, 2]', 'got "a" in a list, expected numbers'),
        ("[[1, 2, 3], [4]]", "lists of several lengths"),
        ("[1, 2]", "got 2 elements for the shape (1, 3)"),
        ("[[1, 2]]", "input"),
    ],
)
def test_wrong_numbers_are_told(site: Server, page: Any, text: str, what: str) -> None:
    page.goto(f"{site.address}small/")
    wait(page, "ready")
    page.get_by_test_id("fill-x").select_option("JSON")
    page.get_by_test_id("json-x").fill(text)
    page.get_by_test_id("run").click()
    wait(page, "error", what)
    page.get_by_test_id("fill-x").select_option("zeros")
    page.get_by_test_id("run").click()
    wait(page, "ready", "Done on")


def test_a_bundle_that_is_not_there(site: Server, page: Any) -> None:
    page.route("**/model.json*", lambda route: route.fulfill(status=404))
    page.goto(f"{site.address}small/")
    wait(page, "error", "the server answered 404")


def test_a_damaged_bundle(site: Server, page: Any) -> None:
    page.route("**/*.wasm*", lambda route: route.fulfill(body=b"not it"))
    page.goto(f"{site.address}small/")
    wait(page, "ready")
    page.get_by_test_id("backend").select_option("wasm")
    page.get_by_test_id("run").click()
    wait(page, "error", "the manifest says")


@pytest.mark.parametrize("answer", [{"status": 404, "body": "[]"}, {"body": "<!doctype html>"}], ids=["404", "HTML"])
def test_a_bundle_without_its_labels_runs(site: Server, page: Any, answer: dict[str, Any]) -> None:
    page.route("**/labels.json*", lambda route: route.fulfill(**answer))
    page.goto(f"{site.address}labelled/")
    wait(page, "ready")
    page.get_by_test_id("backend").select_option("wasm")
    page.get_by_test_id("run").click()
    wait(page, "ready", "Done on wasm")
    assert cells(page)
    assert not page.get_by_test_id("classes").is_visible()


def test_a_browser_without_webgpu(site: Server, page: Any) -> None:
    page.add_init_script("delete Navigator.prototype.gpu")
    page.goto(f"{site.address}small/")
    wait(page, "ready")
    option = page.get_by_test_id("backend").locator("option[value=webgpu]")
    assert option.is_disabled()
    assert "not in this browser" in option.inner_text()


# --- pictures --------------------------------------------------------------------------------------------------------

needs_photos = pytest.mark.skipif(not (MODELS.exists() and PHOTOS.exists()), reason="needs ../shared")


@needs_photos
@pytest.mark.parametrize("device", ["wasm", pytest.param("webgpu", marks=pytest.mark.slow)])
def test_a_chosen_picture_is_classified(site: Server, page: Any, device: str) -> None:
    page.goto(f"{site.address}photos/")
    wait(page, "ready")
    page.get_by_test_id("backend").select_option(device)
    for photo in ("chelsea.png", "coffee.png")[: 2 if device == "wasm" else 1]:  # WebGPU runs in software here
        choose(page, photo)
        wait(page, "ready", f"Done on {device}")
        model = load(MODELS / "efficientnet_lite0.onnx", device="numpy")
        best = np.argsort(-model(images.read_picture(PHOTOS / photo, LITE0))[0])[:2]
        assert int(page.get_by_test_id("top-1").get_attribute("data-value")) in best
    assert page.get_by_test_id("classes").locator("li").count() == 5


DROP = """([data, kind, name]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const carried = new DataTransfer();
  carried.items.add(new File([bytes], name, { type: "image/png" }));
  const made = { drop: () => new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }),
                 paste: () => new ClipboardEvent("paste", { clipboardData: carried, bubbles: true }) };
  document.body.dispatchEvent(made[kind]());
}"""


@needs_photos
@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(site: Server, page: Any, kind: str) -> None:
    from base64 import b64encode  # noqa: PLC0415

    page.goto(f"{site.address}photos/")
    wait(page, "ready")
    page.get_by_test_id("backend").select_option("wasm")
    page.evaluate(DROP, [b64encode((PHOTOS / "chelsea.png").read_bytes()).decode(), kind, "cat.png"])
    page.get_by_test_id("top-1").wait_for(timeout=120_000)
    assert "cat" in page.get_by_test_id("top-1").inner_text()
    page.evaluate(DROP, [b64encode(b"no picture at all, only words").decode(), kind, "words.png"])
    wait(page, "error", "expected a JPEG, PNG, GIF, WebP, AVIF or BMP file")


@pytest.mark.slow
@needs_photos
@pytest.mark.parametrize(
    ("name", "scheme", "size"),
    [("light", "light", (1280, 900)), ("dark", "dark", (1280, 900)), ("phone", "light", (360, 740))],
    ids=("light", "dark", "phone"),
)
def test_how_it_looks(
    site: Server, browser: Any, tmp_path: Path, name: str, scheme: str, size: tuple[int, int]
) -> None:
    """Nothing is wider than a phone; with SINGE_SCREENSHOTS=DIR pictures are kept there, to be looked at."""
    folder = Path(SHOTS) if SHOTS else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
    page = context.new_page()
    for model in ("photos", "small"):
        page.goto(f"{site.address}{model}/")
        wait(page, "ready")
        page.get_by_test_id("backend").select_option("wasm")
        if model == "photos":
            choose(page, "chelsea.png")
        else:
            page.get_by_test_id("run").click()
        wait(page, "ready", "Done on")
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0], (name, model)
        page.screenshot(path=str(folder / f"bundle-{model}-{name}.png"), full_page=True)
    context.close()


def test_everything_has_a_label(site: Server, page: Any) -> None:
    page.goto(f"{site.address}small/")
    wait(page, "ready")
    bare = page.evaluate(
        "[...document.querySelectorAll('select, input, textarea')].filter((e) => !e.labels.length).map((e) => e.outerHTML)"
    )
    assert bare == []
