"""Singe in other people's pages: the files of demos/embed in Chromium and node, as README.md shows them.

Each uses a bundle of a digit classifier (input `input`, output `logits`), written by `singe export`, and shows the
logits of a grey picture, which are compared with ONNX's reference evaluator.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from browsers import PATIENCE, WEBGPU, chromium
from bundles import MODELS, ROOT, small_model
from embedded import EMBED, Digits, answer_of
from sites import SCREENSHOTS, Console, served, served_plainly

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")

CORS: Final = {"Access-Control-Allow-Origin": "*"}
ISOLATED: Final = {"Cross-Origin-Embedder-Policy": "require-corp", "Cross-Origin-Resource-Policy": "cross-origin"}
CAMERA: Final = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
"""A fake camera that every page may use if its embedder allows it."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Digits]:
    root = tmp_path_factory.mktemp("embedding")
    known: dict[str, Digits] = {}

    def make(name: str) -> Digits:
        if name not in known:
            model = small_model(root / "small.onnx") if name == "small" else MODELS / f"{name}.onnx"
            if not model.exists():
                pytest.skip(f"no model {name} in {MODELS}")
            known[name] = Digits(model, root / name)
        return known[name]

    return make


@pytest.fixture(scope="module")
def digits(made: Callable[[str], Digits]) -> Digits:
    return made("small")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium with WebGPU in software, and a camera."""
    with chromium((*WEBGPU, *CAMERA)) as found:
        yield found


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page with separate storage."""
    context = browser.new_context(viewport={"width": 900, "height": 720})
    yield context.new_page()
    context.close()


def copied(folder: Path, digits: Digits) -> Path:
    """A folder of a site: the files of demos/embed, the bundle beside them."""
    shutil.copytree(EMBED, folder, dirs_exist_ok=True)
    shutil.copytree(digits.folder, folder / "model")
    (folder / "favicon.ico").touch()
    return folder


@pytest.fixture
def site(digits: Digits, tmp_path: Path) -> Path:
    return copied(tmp_path / "site", digits)


def shoot(page: Any, name: str) -> None:
    """Take a screenshot, for people."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def other_site(address: str) -> str:
    """The same host by another name, which counts as another site in a browser."""
    return address.replace("127.0.0.1", "localhost")


# --- README.md -------------------------------------------------------------------------------------------------------


def test_the_readme_shows_the_files() -> None:
    section = (ROOT / "README.md").read_text().split("\n## In a page\n")[1].split("\n## ")[0]
    shown = re.findall(r"\[(demos/embed/[\w./-]+)\]\(\1\):\n\n```\w+\n(.*?)```\n", section, re.S)
    assert len(shown) == section.count("```") // 2 >= 5, "each block stands below the name of its file"
    for name, text in shown:
        assert text == (ROOT / name).read_text(), name
    linked = {ROOT / name for name in re.findall(r"\((demos/embed/[\w./-]+)\)", section)}
    assert {path for path in EMBED.iterdir() if path.is_file()} <= linked


# --- a module --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small", "mnist_cnn"])
@pytest.mark.parametrize("folder", ["", "some/where"])
def test_a_module(page: Any, made: Callable[[str], Digits], name: str, folder: str, tmp_path: Path) -> None:
    copied(tmp_path / folder, made(name))
    (tmp_path / "favicon.ico").touch()
    console = Console(page)
    with served_plainly(tmp_path) as address:
        page.goto(f"{address}{folder}/module.html")
        made(name).assert_answer(answer_of(page))
        assert not page.evaluate("crossOriginIsolated")
    assert console.complaints == []


# --- an element ------------------------------------------------------------------------------------------------------


def test_an_element(page: Any, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    names = [f"digit {k}" for k in range(10)]
    (tmp_path / "labels.txt").write_text("\n".join(names))
    options = ["--size", "28", "--layout", "nchw", "--labels", str(tmp_path / "labels.txt")]
    digits = Digits(small_model(tmp_path / "digits.onnx"), tmp_path / "bundle", *options)
    pixels = np.random.default_rng(2).integers(0, 256, (28, 28), np.uint8)
    image.fromarray(pixels).save(tmp_path / "digit.png")
    scores = np.exp(digits.answer((pixels / np.float32(255))[None, None].astype(np.float32)))
    best = np.argsort(-scores)[:5]
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    console = Console(page)
    with served_plainly(copied(tmp_path / "site", digits)) as address:
        page.goto(f"{address}element.html")
        page.get_by_role("status").filter(has_text="digits: ready").wait_for()
        assert sum(url.endswith("model.json") for url in asked) == 1
        page.get_by_label("A picture").set_input_files(tmp_path / "digit.png")
        page.get_by_role("listitem").nth(4).wait_for()
        shares = [f"{names[k]}{100 * scores[k] / scores.sum():.1f} %" for k in best]
        assert page.get_by_role("listitem").all_text_contents() == shares
        shoot(page, "element-light")
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 390, "height": 700})
        shoot(page, "element-dark-phone")
    assert console.complaints == []


# --- a frame ---------------------------------------------------------------------------------------------------------


@contextmanager
def framed(page: Any, site: Path, *, source: str = "", attributes: str = "", isolated: bool = False) -> Iterator[Any]:
    """The frame of frame.html in a page, with another source or more attributes."""
    text = (EMBED / "frame.html").read_text()
    frame = text.replace('src="./model/index.html"', f'src="{source or "./model/index.html"}" {attributes}')
    assert frame != text
    (site / "frame.html").write_text(frame)
    with served(site) if isolated else served_plainly(site) as address:
        page.goto(f"{address}frame.html")
        yield page.frame_locator("iframe")


def run_in(frame: Any, device: str = "wasm") -> None:
    """Run the model on a bundle's own page."""
    frame.get_by_test_id("backend").select_option(device)
    frame.get_by_test_id("run").click()
    frame.get_by_test_id("status").filter(has_text=f"Done on {device}").wait_for()
    assert frame.get_by_test_id("outputs").locator("tr").count() == 1


@pytest.mark.parametrize("device", ["wasm", "webgpu"])
@pytest.mark.parametrize("isolated", [False, True])
def test_a_frame_of_the_page_s_origin(page: Any, site: Path, device: str, isolated: bool) -> None:
    with framed(page, site, isolated=isolated) as frame:
        run_in(frame, device)
        assert page.frames[1].evaluate("crossOriginIsolated") == isolated
        if not isolated:
            shoot(page, f"frame-{device}")


@pytest.mark.parametrize(
    ("device", "headers", "attributes"),
    [
        pytest.param("wasm", {}, "", id="plain"),
        pytest.param("webgpu", {}, "", id="plain, webgpu"),
        pytest.param("wasm", {}, 'sandbox="allow-scripts allow-forms allow-same-origin"', id="sandbox with an origin"),
        pytest.param("wasm", CORS, 'sandbox="allow-scripts allow-forms"', id="sandbox"),
        pytest.param("webgpu", CORS, 'sandbox="allow-scripts allow-forms"', id="sandbox, webgpu"),
    ],
)
def test_a_frame_of_another_origin(
    page: Any, site: Path, digits: Digits, device: str, headers: Mapping[str, str], attributes: str
) -> None:
    with served_plainly(digits.folder, headers) as address:
        source = f"{other_site(address)}index.html"
        with framed(page, site, source=source, attributes=attributes) as frame:
            run_in(frame, device)
            assert page.frames[1].url == source


def test_a_sandbox_whose_host_does_not_share_says_so(page: Any, site: Path, digits: Digits) -> None:
    with served_plainly(digits.folder) as address:
        source = f"{other_site(address)}index.html"
        with framed(page, site, source=source, attributes='sandbox="allow-scripts allow-forms"') as frame:
            frame.locator('[data-testid=status][data-state="error"]').wait_for()


@pytest.mark.parametrize(
    ("headers", "attributes", "inside"),
    [
        pytest.param(ISOLATED, "", False, id="isolating headers"),
        pytest.param(ISOLATED, 'allow="cross-origin-isolated"', True, id="isolating headers, and the page's leave"),
        pytest.param({}, "credentialless", False, id="credentialless"),
    ],
)
def test_a_frame_of_another_origin_in_an_isolated_page(
    page: Any, site: Path, digits: Digits, headers: Mapping[str, str], attributes: str, inside: bool
) -> None:
    with served_plainly(digits.folder, headers) as address:
        source = f"{other_site(address)}index.html"
        with framed(page, site, source=source, attributes=attributes, isolated=True) as frame:
            run_in(frame)
            assert page.evaluate("crossOriginIsolated")
            assert page.frames[1].evaluate("crossOriginIsolated") == inside


def test_a_plain_frame_of_another_origin_is_blocked_in_an_isolated_page(page: Any, site: Path, digits: Digits) -> None:
    failures: list[str] = []
    page.on("requestfailed", lambda request: failures.append(request.failure))
    with (
        served_plainly(digits.folder) as there,
        framed(page, site, source=f"{other_site(there)}index.html", isolated=True),
    ):
        until = time.monotonic() + PATIENCE
        while not failures and time.monotonic() < until:
            page.wait_for_timeout(100)
    assert any("BLOCKED_BY_RESPONSE" in text for text in failures)


CAMERA_IN: Final = """async () => {
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ video: true });
    stream.getTracks().forEach((track) => track.stop());
    return "a camera";
  } catch (error) {
    return error.name;
  }
}"""
PASTE_IN: Final = "() => navigator.clipboard.read().then(() => 'read', (error) => error.name)"


@pytest.mark.parametrize(
    ("attributes", "camera", "clipboard"),
    [("", "NotAllowedError", "NotAllowedError"), ('allow="camera; clipboard-read"', "a camera", "read")],
)
def test_a_frame_of_another_origin_has_the_camera_and_the_clipboard_if_the_page_lets_it(
    page: Any, site: Path, digits: Digits, attributes: str, camera: str, clipboard: str
) -> None:
    with served_plainly(digits.folder) as address:
        other = other_site(address).rstrip("/")
        page.context.grant_permissions(["clipboard-read"])
        with framed(page, site, source=f"{other}/index.html", attributes=attributes) as frame:
            frame.get_by_test_id("backend").click()
            assert page.frames[1].evaluate(CAMERA_IN) == camera
            assert page.frames[1].evaluate(PASTE_IN) == clipboard


# --- a page of another origin, with a strict policy ------------------------------------------------------------------

MODELS_EXAMPLE: Final = "https://models.example/digits"
WITH_WORKERS: Final = {"worker-src 'none'": "worker-src blob: https://models.example"}


@contextmanager
def strict(page: Any, folder: Path, digits: Digits, policy: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A page whose bundle has another origin, both in sub-folders, with another policy; it gives the page's errors."""
    shutil.copytree(digits.folder, folder / "host" / "pub" / "digits")
    site = folder / "site" / "some" / "where"
    shutil.copytree(EMBED / "other-origin", site)
    (folder / "site" / "favicon.ico").touch()
    console = Console(page)
    with served_plainly(folder / "host", CORS) as host, served_plainly(folder / "site") as address:
        there = f"{other_site(host)}pub/digits"
        for path in site.iterdir():
            text = path.read_text()
            assert "https://models.example" in text
            for old, new in (policy or {}).items():
                text = text.replace(old, new)
            path.write_text(
                text.replace(MODELS_EXAMPLE, there).replace("https://models.example", other_site(host)[:-1])
            )
        page.goto(f"{address}some/where/index.html")
        yield console


def test_a_page_of_another_origin_with_a_strict_policy(page: Any, digits: Digits, tmp_path: Path) -> None:
    with strict(page, tmp_path, digits) as console:
        digits.assert_answer(answer_of(page))
        assert page.locator("p").text_content() == "In the page, threads: 1."
    *forbidden, ours = [c for c in console.complaints if "worker-src 'none'" in c or c.startswith("singe: ")]
    assert forbidden, "the policy did forbid the worker"
    assert re.match(r"singe: no worker from .*worker-src.* The model runs in the page\.$", ours)
    assert len(console.complaints) == len(forbidden) + 1


def test_a_page_of_another_origin_that_lets_workers_start(page: Any, digits: Digits, tmp_path: Path) -> None:
    with strict(page, tmp_path, digits, WITH_WORKERS) as console:
        digits.assert_answer(answer_of(page))
        assert page.locator("p").text_content() == "In a worker, threads: 1."
    assert console.complaints == []


LOAD: Final = """async ([url, options]) => {
  const { load } = await import(`${url}/singe.js`);
  try {
    const model = await load(url, options);
    const { logits } = await model.run({ input: new Float32Array(784).fill(0.5) });
    return [model.device, logits.data.join(" ")];
  } catch ({ name, code, message }) {
    return [name, code, message];
  }
}"""


@pytest.mark.parametrize("worker", [False, True])
def test_a_policy_without_webassembly(page: Any, digits: Digits, worker: bool, tmp_path: Path) -> None:
    """An error says what the policy lacks. WebGPU does not need it, and is chosen by "auto"."""
    with strict(page, tmp_path, digits, {**WITH_WORKERS, " 'wasm-unsafe-eval'": ""}):
        digits.assert_answer(answer_of(page))
        url = re.findall(r'load\("([^"]+)/"', (tmp_path / "site/some/where/page.js").read_text())[0]
        name, code, message = page.evaluate(LOAD, [url, {"device": "wasm", "worker": worker}])
        assert (name, code) == ("SingeError", "device"), message
        assert "needs 'wasm-unsafe-eval' in the page's script-src" in message
        device, text = page.evaluate(LOAD, [url, {"device": "webgpu", "worker": worker}])
        assert device == "webgpu"
        digits.assert_answer(text)
