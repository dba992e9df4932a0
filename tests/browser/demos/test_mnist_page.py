"""The MNIST page in Chromium: digits of several handwritings, drawn in several ways, are read on each backend."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from browsers import plain
from desk import LOOKS, Desk, desk
from digits import HANDS, Stroke
from sites import served, served_plainly, until

LIMIT: Final = 48_500
"""The most bytes, compressed, that the page may fetch besides weights."""


@pytest.fixture(scope="module")
def mnist(browser: Any, address: str) -> Iterator[Desk]:
    with desk(browser, f"{address}mnist/") as found:
        yield found


@pytest.fixture(autouse=True)
def blank(request: pytest.FixtureRequest) -> None:
    """Tests that share the page begin with a blank sheet on WebAssembly."""
    if "mnist" in request.fixturenames:
        found = request.getfixturevalue("mnist")
        found.choose("wasm")
        found.page.evaluate("scrollTo(0, 0)")
        if found.item("clear").is_enabled():
            found.item("clear").click()


MOVES = """
(canvas, points) => points.forEach(([clientX, clientY]) =>
  canvas.dispatchEvent(new PointerEvent("pointermove", { pointerId: 1, clientX, clientY })))
"""
BARS = "Array.from({ length: 10 }, (_, k) => Number(document.querySelector(`[data-testid=bar-${k}]`).dataset.value))"


def on_screen(found: Desk, stroke: Stroke) -> list[tuple[float, float]]:
    box = found.item("canvas").bounding_box()
    return [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]


def draw(found: Desk, strokes: list[Stroke]) -> None:
    """Draw strokes with the mouse, whose moves between start and end come all at once: the browser takes one in a frame."""
    canvas = found.item("canvas")
    canvas.scroll_into_view_if_needed()
    for stroke in strokes:
        first, *rest = on_screen(found, stroke)
        found.page.mouse.move(*first)
        found.page.mouse.down()
        canvas.evaluate(MOVES, rest)
        found.page.mouse.up()
    found.ready()


def parts(found: Desk) -> list[float]:
    return found.page.evaluate(BARS)


def assert_reads(found: Desk, digit: int) -> None:
    """Check that the page reads this digit, and that its bars, its text and its figures agree."""
    bars = parts(found)
    assert found.value("prediction") == str(digit), bars
    assert found.item("prediction").inner_text() == str(digit)
    assert abs(sum(bars) - 1) < 1e-3
    assert bars[digit] == max(bars) > 0.5
    assert float(found.value("time")) > 0


def assert_blank(found: Desk) -> None:
    found.ready()
    assert found.value("prediction") == ""
    assert found.item("prediction").inner_text() == ""
    assert parts(found) == [0.0] * 10


def draw_and_clear(found: Desk, hand: str) -> None:
    for digit in range(10):
        draw(found, HANDS[hand].strokes(digit))
        assert_reads(found, digit)
        found.item("clear").click()
        assert_blank(found)


@pytest.mark.parametrize(
    "hand", [*list(HANDS)[:3], *(pytest.param(name, marks=pytest.mark.slow) for name in list(HANDS)[3:])]
)
def test_every_hand_is_read(mnist: Desk, hand: str) -> None:
    draw_and_clear(mnist, hand)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["webgpu", "numpy"])
def test_digits_are_read_on_each_backend(mnist: Desk, backend: str) -> None:
    if mnist.item("backend").locator(f"option[value={backend}]").is_disabled():
        pytest.skip(mnist.item("reasons").inner_text())
    mnist.choose(backend)
    draw_and_clear(mnist, "round")


@pytest.mark.slow
def test_both_ways_answer_the_same(mnist: Desk) -> None:
    if mnist.item("python").is_disabled():
        pytest.skip(mnist.item("reasons").inner_text())
    draw(mnist, HANDS["school"].strokes(5))
    expected = parts(mnist)
    for backend in ("numpy", "wasm", "webgpu"):
        mnist.choose(backend, through_python=True)
        assert_reads(mnist, 5)
        assert parts(mnist) == pytest.approx(expected, abs=1e-4), backend
    progress = mnist.item("progress")
    assert int(progress.get_attribute("data-loaded")) <= int(progress.get_attribute("data-total"))
    mnist.choose("wasm")
    assert_reads(mnist, 5)


def test_it_reads_while_one_draws(mnist: Desk) -> None:
    first, *rest = on_screen(mnist, HANDS["round"].strokes(1)[0])
    mnist.page.mouse.move(*first)
    mnist.page.mouse.down()
    for point in rest:
        mnist.page.mouse.move(*point)
    mnist.page.locator("[data-testid=prediction][data-value='1']").wait_for()
    mnist.page.mouse.up()


def test_blank_undo_and_clear(mnist: Desk) -> None:
    assert_blank(mnist)
    assert mnist.item("undo").is_disabled()
    upright, line = HANDS["school"].strokes(7)
    draw(mnist, [upright])
    once = parts(mnist)
    draw(mnist, [line])
    assert parts(mnist) != once
    mnist.item("undo").click()
    mnist.ready()
    assert parts(mnist) == once
    mnist.page.keyboard.press("Control+z")
    assert_blank(mnist)
    draw(mnist, [upright])
    mnist.item("clear").click()
    assert_blank(mnist)


def test_keys_draw(mnist: Desk) -> None:
    mnist.item("canvas").focus()
    for key in (*["ArrowUp"] * 9, " ", *["ArrowDown"] * 18, " ", *["ArrowRight"] * 3):
        mnist.page.keyboard.press(key)
    mnist.ready()
    assert_reads(mnist, 1)


def test_a_dot_stays_a_dot(mnist: Desk) -> None:
    draw(mnist, [[(0.3, 0.3)]])
    ink = mnist.item("view").evaluate(
        "(view) => view.getContext('2d').getImageData(0, 0, 28, 28).data.filter((v, i) => i % 4 === 0 && v > 0).length"
    )
    assert 1 <= ink <= 16


def test_the_picture_is_laid_as_mnists_are(mnist: Desk) -> None:
    """Within 20 × 20 pixels, with the centre of mass where MNIST has it, wherever and however large one draws."""
    for hand in HANDS.values():
        draw(mnist, hand.strokes(2))
        pixels = mnist.item("view").evaluate(
            "(view) => [...view.getContext('2d').getImageData(0, 0, 28, 28).data.filter((v, i) => i % 4 === 0)]"
        )
        rows = [sum(pixels[28 * k : 28 * k + 28]) for k in range(28)]
        columns = [sum(pixels[k::28]) for k in range(28)]
        for sums in (rows, columns):
            inked = [k for k, total in enumerate(sums) if total]
            assert inked[-1] - inked[0] + 1 <= 21  # a soft edge on each side
            assert abs(sum((k + 0.5) * total for k, total in enumerate(sums)) / sum(sums) - 14.5) <= 0.6
        assert max(sum(1 for total in sums if total) for sums in (rows, columns)) >= 20
        mnist.item("clear").click()


@pytest.mark.parametrize("kind", ["touch", "pen"])
def test_fingers_and_pens_draw(browser: Any, address: str, kind: str) -> None:
    with desk(browser, f"{address}mnist/", **LOOKS["phone"]) as found:
        session = found.page.context.new_cdp_session(found.page)
        for stroke in HANDS["round"].strokes(4):
            points = on_screen(found, stroke)
            for k, (x, y) in enumerate(points):
                if kind == "touch":
                    event = "touchStart" if k == 0 else "touchMove"
                    session.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": [{"x": x, "y": y}]})
                else:
                    event = {"type": "mousePressed" if k == 0 else "mouseMoved", "x": x, "y": y, "pointerType": "pen"}
                    pressed = {"button": "left", "buttons": 1, "force": k / len(points)}
                    session.send("Input.dispatchMouseEvent", {**event, **pressed})
            if kind == "touch":
                session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
            else:
                x, y = points[-1]
                released = {"type": "mouseReleased", "x": x, "y": y, "button": "left", "pointerType": "pen"}
                session.send("Input.dispatchMouseEvent", released)
        found.ready()
        assert_reads(found, 4)
        assert found.page.evaluate("scrollY") == 0, "drawing does not scroll"


# --- teaching ----------------------------------------------------------------------------------------------------------


def lesson(found: Desk, begins: str) -> str:
    """What the page says, once it begins so."""
    found.item("lesson").filter(has_text=re.compile(f"^{begins}")).wait_for()
    return found.item("lesson").inner_text()


def shown(found: Desk, digit: int) -> None:
    found.page.locator(f"[data-testid=prediction][data-value='{digit}']").wait_for()


@pytest.mark.slow
def test_it_is_taught_a_hand_and_keeps_it(browser: Any, address: str) -> None:
    with desk(browser, f"{address}mnist/") as found:
        assert found.item("teach-3").is_disabled()
        draw(found, HANDS["school"].strokes(7))
        assert_reads(found, 7)
        found.item("teach-3").click()
        assert_blank(found)
        lesson(found, "1 drawing")
        found.item("learn").click()
        assert "Of yours it read 0 before and reads 1 now" in lesson(found, "It has learnt")
        draw(found, HANDS["school"].strokes(7))
        shown(found, 3)
        assert found.item("taught-says").is_visible()
        found.item("clear").click()
        draw(found, HANDS["round"].strokes(4))
        shown(found, 4)
        found.page.reload()  # another visit
        found.ready()
        lesson(found, "It reads with what you taught it")
        assert found.item("taught").locator("li").count() == 1
        draw(found, HANDS["school"].strokes(7))
        shown(found, 3)
        found.item("before").click()
        shown(found, 7)
        assert found.item("taught").locator("li").count() == 1
        found.item("forget").click()
        lesson(found, "All that you taught it is forgotten")
        assert found.item("taught").locator("li").count() == 0
        assert found.page.evaluate("localStorage.length") == 0


def test_what_was_kept_of_other_weights_is_not_used(browser: Any, address: str) -> None:
    script = """localStorage.setItem("singe hand", '{"of": "others", "drawings": [], "weights": {}}')"""
    with desk(browser, f"{address}mnist/", script=script) as found:
        until(found.page, "!document.getElementById('progress').checkVisibility()")
        draw(found, HANDS["round"].strokes(3))
        assert_reads(found, 3)
        assert not found.item("taught-says").is_visible()


@pytest.mark.slow
def test_where_teaching_does_not_load_the_page_says_so_and_tries_again(browser: Any, address: str) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/teach.js", lambda route: route.abort())
    found = Desk(page)
    page.goto(f"{address}mnist/")
    found.ready()
    draw(found, HANDS["round"].strokes(3))
    found.item("teach-3").click()
    found.await_state("error")
    page.unroute("**/teach.js")
    draw(found, HANDS["round"].strokes(3))
    found.item("teach-3").click()
    lesson(found, "1 drawing")
    context.close()


# --- missing features and failures -------------------------------------------------------------------------------------


def assert_disabled(found: Desk, backend: str, reason: str) -> None:
    option = found.item("backend").locator(f"option[value={backend}]")
    found.item("reasons").filter(has_text=reason).wait_for()
    assert option.is_disabled()
    assert reason in option.get_attribute("title")


def test_without_webgpu(browser: Any, address: str) -> None:
    with plain(browser) as other, desk(other, f"{address}mnist/") as found:
        assert_disabled(found, "webgpu", "WebGPU")
        draw(found, HANDS["round"].strokes(3))
        assert_reads(found, 3)


def test_without_python(browser: Any, address: str) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/python/**", lambda route: route.fulfill(status=404))
    found = Desk(page)
    page.goto(f"{address}mnist/")
    found.ready()
    assert_disabled(found, "numpy", "without Python")
    assert found.item("python").is_disabled()
    draw(found, HANDS["round"].strokes(6))
    assert_reads(found, 6)
    context.close()


NO_WASM: Final = "delete globalThis.WebAssembly"


def test_without_webassembly_it_leaves_for_webgpu(browser: Any, address: str) -> None:
    with desk(browser, f"{address}mnist/", script=NO_WASM) as found:
        assert_disabled(found, "wasm", "no WebAssembly")
        found.page.locator("[data-testid=status][data-state=ready]").wait_for()
        assert found.item("backend").input_value() == "webgpu"


def test_without_anything_it_says_so(browser: Any, address: str) -> None:
    script = NO_WASM + "; Object.defineProperty(Navigator.prototype, 'gpu', { value: undefined })"
    with desk(browser, f"{address}mnist/", script=script) as found:
        found.await_state("unsupported")
        assert found.item("backend").is_disabled()
        assert len(found.item("reasons").locator("li").all()) == 3


def test_on_a_plain_host(browser: Any, site: Path) -> None:
    with served_plainly(site) as address, desk(browser, f"{address}mnist/") as found:
        assert found.page.evaluate("crossOriginIsolated") is False
        draw(found, HANDS["round"].strokes(8))
        assert_reads(found, 8)


KEPT: Final = "caches.open('singe').then((cache) => cache.keys()).then((keys) => keys.length >= 3)"
"""Whether the runner has kept the manifest, the kernels and the weights."""


def test_it_reads_without_a_network(browser: Any, site: Path) -> None:
    context = browser.new_context()
    found = Desk(context.new_page())
    with served(site) as address:
        found.page.goto(f"{address}mnist/")
        found.ready()
        until(found.page, "navigator.serviceWorker.controller !== null")
        found.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        until(found.page, KEPT)
    context.set_offline(True)
    found.page.reload()
    found.ready()
    draw(found, HANDS["round"].strokes(7))
    assert_reads(found, 7)
    context.close()


DESTROY: Final = """
globalThis.opened = [];
const requestDevice = GPUAdapter.prototype.requestDevice;
GPUAdapter.prototype.requestDevice = async function (...given) {
  const device = await requestDevice.apply(this, given);
  opened.push(device);
  return device;
};
const submit = GPUQueue.prototype.submit;
GPUQueue.prototype.submit = function (...given) {
  submit.apply(this, given);
  if (globalThis.doomed) opened.find((device) => device.queue === this).destroy();
  globalThis.doomed = false;
};
"""


@pytest.mark.slow
def test_a_gpu_device_that_is_destroyed_in_mid_run(browser: Any, address: str) -> None:
    with desk(browser, f"{address}mnist/", script=DESTROY) as found:
        found.choose("webgpu")
        before = found.page.evaluate("opened.length")
        found.page.evaluate("globalThis.doomed = true")
        draw(found, HANDS["round"].strokes(2))
        assert_reads(found, 2)
        assert found.page.evaluate("[globalThis.doomed, opened.length]") == [False, before + 1]


def test_a_bundle_that_cannot_be_had_is_an_error(browser: Any, address: str) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/mnist/model/weights-*", lambda route: route.fulfill(status=503))
    found = Desk(page)
    page.goto(f"{address}mnist/")
    found.await_state("error")
    assert "503" in found.item("status").inner_text()
    page.unroute("**/mnist/model/weights-*")
    found.choose("webgpu")
    found.choose("wasm")
    draw(found, HANDS["round"].strokes(0))
    assert_reads(found, 0)
    context.close()


LATEST: Final = """async () => {
  const { latest } = await import("/shared/panel.js");
  let [at_once, most, runs, state, seen] = [0, 0, 0, 0, -1];
  const ask = latest(async () => {
    most = Math.max(most, ++at_once);
    runs++;
    const started = state;
    await new Promise((done) => setTimeout(done, 5));
    seen = started;
    at_once--;
  });
  for (; state < 50; state++) {
    ask();
    if (state % 10 === 0) await new Promise((done) => setTimeout(done, 2));
  }
  state = 50;
  ask();
  while (at_once || seen !== 50) await new Promise((done) => setTimeout(done, 5));
  return { most, runs, seen };
}"""


def test_runs_never_pile_up(mnist: Desk) -> None:
    done = mnist.page.evaluate(LATEST)
    assert (done["most"], done["seen"]) == (1, 50)
    assert done["runs"] < 15


# --- size and appearance -------------------------------------------------------------------------------------------------


def test_the_page_is_light(browser: Any, address: str, site: Path) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "GET" else None)
    found = Desk(page)
    page.goto(f"{address}mnist/")
    found.ready()
    draw(found, HANDS["round"].strokes(9))
    context.close()
    names = {url.removeprefix(address) for url in asked if url.startswith(address)}
    assert not [name for name in names if name.startswith("python/")]
    sizes = {}
    for name in sorted(names):
        path = site / (f"{name}index.html" if name.endswith("/") else name)
        if not path.name.startswith("weights-"):
            sizes[name] = len(gzip.compress(path.read_bytes(), 6, mtime=0))
    print(f"{sum(sizes.values())} bytes, compressed: {sizes}")
    assert "singe.js" in sizes
    assert sum(sizes.values()) <= LIMIT


def test_progress_is_of_true_bytes(browser: Any, address: str, site: Path) -> None:
    with desk(browser, f"{address}mnist/") as found:
        loaded, total = (int(found.item("progress").get_attribute(f"data-{what}")) for what in ("loaded", "total"))
    model = site / "mnist" / "model"
    wanted = sum(p.stat().st_size for kind in ("shared", "wasm") for p in model.glob(f"weights-{kind}-*"))
    assert loaded == total
    assert wanted < loaded < wanted + 100_000  # and the kernels


@pytest.mark.parametrize("look", LOOKS)
def test_looks(browser: Any, address: str, look: str) -> None:
    with desk(browser, f"{address}mnist/", **LOOKS[look]) as found:
        found.screenshot(f"mnist-{look}-blank")
        draw(found, HANDS["school"].strokes(3))
        found.page.evaluate("scrollTo(0, 0)")
        found.screenshot(f"mnist-{look}")
        assert found.fits()
        assert found.small_targets() == []
        complaints = [text for text in found.console.complaints if "Service Worker" not in text]
        assert complaints == []
