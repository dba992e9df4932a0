"""The front page in Chromium: what the browser can do, the benchmark, by mouse and by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from bundles import groups_of
from sites import SCREENSHOTS, front_page, until

CONTRAST: Final = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest(".hidden-text, noscript, :disabled, script")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(rgba(style.color)), light(behind(element))].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    found.push({ text: walker.currentNode.data.trim().slice(0, 40), ratio: (a + 0.05) / (b + 0.05), wanted: large ? 3 : 4.5 });
  }
  return found;
}"""
NAMELESS: Final = """() => [...document.querySelectorAll("a, button, select, textarea, input, progress, [role=region], [role=log]")]
  .filter((e) => !(e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim() || e.textContent.trim()))
  .map((e) => e.outerHTML)"""
SMALL: Final = """() => [...document.querySelectorAll("button, select, header a, a.card")]
  .filter((e) => e.checkVisibility() && !e.closest(".skip") && !e.matches(".skip"))
  .map((e) => [e.outerHTML.slice(0, 80), e.getBoundingClientRect()])
  .filter(([, r]) => r.height < 24 || r.width < 24).map(([text]) => text)"""
VIEWS: Final = {"light": ("light", 1280, 900), "dark": ("dark", 1280, 900), "phone": ("light", 360, 740)}


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with front_page(browser, address) as found:
        yield found


def benchmark(page: Any, model: str, device: str = "", *, runs: str = "5") -> None:
    """Start the benchmark; choices that are not given stay as in the form."""
    for name, value in {"model": model, "device": device, "runs": runs}.items():
        if value:
            page.select_option(f"#bench-{name}", value)
    page.click("#bench-run")


def facts(page: Any) -> dict[str, tuple[str, str]]:
    """The name of a feature ↦ its mark, and the reason."""
    rows = "[...document.querySelectorAll('#facts > div')].map((d) => [...d.children].map((c) => c.textContent))"
    return {name: (mark, why) for name, mark, why in page.evaluate(rows)}


def test_it_says_what_the_browser_can_do_with_reasons(page: Any) -> None:
    found = facts(page)
    for name in ("WebAssembly SIMD", "Relaxed SIMD", "Threads", "WebGPU"):
        assert found[name][0] == "yes", name
    assert "swiftshader" in found["WebGPU"][1].lower()
    assert "in software" in found["WebGPU"][1]
    assert re.search(r"\d+ cores?|one core", found["Threads"][1])
    assert re.fullmatch(r"\d+(\.\d+)? [GMK]iB", found["GPU limits"][0])
    assert "subgroups" in found["GPU features"][1]
    assert all(why.endswith(".") and len(why) > 10 for _, why in found.values())


def test_what_it_says_is_what_the_browser_says(page: Any) -> None:
    """The page's probes agree with the runner's, and reject a damaged module."""
    assert page.evaluate("""async () => {
      const { validates } = await import("./front-facts.js");
      const real = WebAssembly.validate;
      const seen = [];
      WebAssembly.validate = (bytes) => { seen.push(bytes); return real(bytes); };
      const honest = validates("simd") && validates("relaxed");
      WebAssembly.validate = real;
      return honest && seen.every((bytes) => !real(bytes.slice(0, -2)) && real(bytes));
    }""")


def test_without_webgpu_it_says_so(browser: Any, address: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.add_init_script("delete Navigator.prototype.gpu")
        page.goto(address)
        page.wait_for_selector("#facts[aria-busy=false]")
        mark, why = facts(page)["WebGPU"]
        assert mark == "no"
        assert "run on the CPU" in why
        benchmark(page, "mnist/model/")
        page.wait_for_selector("#bench-copying:not([hidden])")
        wasm, webgpu = page.locator("#bench-results tbody tr").all_inner_texts()
        assert "GFLOP" not in wasm
        assert re.search(r"WebAssembly.*\d ms", wasm, re.S)
        assert "WebGPU" in webgpu
        assert " ms" not in webgpu, "a device that is not there is a row that says why"
        assert len(webgpu) > 30


def test_nothing_heavy_is_loaded_before_it_is_asked_for(browser: Any, address: str) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url.removeprefix(address)))
    page.goto(address, wait_until="networkidle")
    photos = [a for a in asked if re.fullmatch(r"gallery/[a-z-]+\.webp", a)]
    assert sorted(a for a in asked if not a.startswith("data:") and a not in photos) == [
        "", "front-facts.js", "front-offline.js", "front.css", "front.js", "style.css",
    ]  # fmt: skip
    sizes = page.evaluate("performance.getEntriesByType('resource').map((e) => [e.name, e.encodedBodySize])")
    assert sum(size for name, size in sizes if "/gallery/" not in name) < 20_000, "scripts and style, compressed"
    context.close()


def test_each_demo_has_a_picture_that_moves_when_it_is_pointed_at(page: Any, site: Path) -> None:
    assert sum(path.stat().st_size for path in (site / "gallery").iterdir()) < 120_000
    cards = page.locator("#demos a.card")
    assert cards.count() == page.locator("#demos a.card > .plate").count() > 10
    shift = """() => new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().reduce((sum, { value }) => sum + value, 0)))
      .observe({ type: "layout-shift", buffered: true }) || setTimeout(() => done(0), 300))"""
    for card in cards.all():
        card.scroll_into_view_if_needed()
    until(page, "[...document.querySelectorAll('#demos img')].every((e) => e.complete && e.naturalWidth === 560)", 20)
    assert page.evaluate(shift) < 0.02
    box = page.locator("a.card[href='detect/'] .draw")
    box.evaluate("async (e) => { await e.getAnimations()[0].finished; }")
    page.locator("a.card[href='detect/']").focus()
    assert box.evaluate("(e) => e.getAnimations()[0].playState") == "running"


def test_the_benchmark_runs_on_each_device_and_its_result_is_copied(page: Any, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    benchmark(page, "mnist/model/")
    page.wait_for_selector("#bench-copying:not([hidden])", timeout=120_000)
    rows = [row.split("\t") for row in page.locator("#bench-results tbody tr").all_inner_texts()]
    assert [row[1] for row in rows] == ["WebAssembly", "WebGPU"]
    for row in rows:
        assert re.fullmatch(r"[\d.]+ ms \(\d\)", row[2])
        assert all(re.fullmatch(r"[\d.]+ ms", cell) for cell in row[3:5]), row
        assert float(row[5]) > 0
    page.click("#bench-copy")
    until(page, "document.querySelector('#bench-copied').textContent === 'Copied.'", 10)
    lines = page.evaluate("navigator.clipboard.readText()").strip().split("\n")
    assert [line.count("|") for line in lines[:4]] == [7] * 4
    assert set(lines[1]) <= set("| -:")
    assert all(cell in lines[2] for cell in rows[0])
    assert "Singe 0" in lines[-1]
    assert "swiftshader" in lines[-1]


def test_the_rate_counts_what_the_product_computes(page: Any) -> None:
    """Four products of 512 × 512 × 512: two operations for each multiplication."""
    benchmark(page, "matmul/", "wasm")
    page.wait_for_selector("#bench-copying:not([hidden])")
    row = page.locator("#bench-results tbody tr").inner_text().split("\t")
    median, rate = float(row[2].split(" ")[0]), float(row[5])
    assert rate * median / 1e3 == pytest.approx(4 * 2 * 512**3 / 1e9, rel=0.05)


def test_a_phone_shows_the_median_and_all_links(browser: Any, address: str) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        page = context.new_page()
        page.goto(address)
        benchmark(page, "mnist/model/", "wasm")
        page.wait_for_selector("#bench-copying:not([hidden])")
        head = page.locator("#bench-results th", has_text="Median")
        assert head.evaluate("(cell) => cell.getBoundingClientRect().right") <= 390
        for demo in ("", "mnist/", "train/", "classify/", "remote/"):
            page.goto(address + demo)
            links = page.locator("header.site nav a")
            assert all(link.is_visible() for link in links.all()), demo
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, demo


def test_a_manifest_is_fetched_once_for_a_load(browser: Any, address: str) -> None:
    with browser.new_context(service_workers="block") as context:
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda r: asked.append(r.url))
        page.goto(address)
        benchmark(page, "mnist/model/", "wasm", runs="")
        page.wait_for_selector("#bench-copying:not([hidden])")
        assert len([url for url in asked if url.endswith("mnist/model/model.json")]) == 1


@dataclass(frozen=True)
class Table:
    """The table of kernels on the page: its caption, and the cells of its rows by kind."""

    caption: str
    kernels: list[list[str]]
    others: list[list[str]]
    rest: list[list[str]]
    together: list[str]
    hidden: int

    @property
    def milliseconds(self) -> list[float]:
        return [float(row[1]) for row in (*self.kernels, *self.rest)]


def kernel_table(page: Any) -> Table:
    found = page.evaluate("""() => {
      const table = document.querySelector("#profile-table");
      const cells = (row) => [...row.cells].map((c) => c.textContent);
      const rows = [...table.tBodies[0].rows];
      const of = (...kinds) => rows.filter((r) => kinds.includes(r.className)).map(cells);
      return {
        caption: table.caption.textContent,
        kernels: of("", "more"),
        others: of("others"),
        rest: of("rest"),
        together: cells(table.tFoot.rows[0]),
        hidden: rows.filter((r) => !r.checkVisibility()).length,
      };
    }""")
    return Table(**found)


def profiled(page: Any, model: str, device: str) -> Table:
    """The table of a model that is benchmarked and profiled."""
    benchmark(page, model, device)
    page.click("#profile-run", timeout=120_000)
    page.wait_for_selector("#profile-found:not([hidden])", timeout=120_000)
    return kernel_table(page)


@pytest.mark.parametrize("device", ["wasm", "webgpu"])
def test_it_shows_where_the_time_goes(page: Any, site: Path, device: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    table = profiled(page, "mnist/model/", device)
    program = json.loads((site / "mnist/model/model.json").read_text())["targets"][device]["program"]
    name = f"Digits, 28 × 28 on {'WebAssembly' if device == 'wasm' else 'WebGPU'}"
    assert re.fullmatch(rf"{name}: [\d.]+ ms a run", table.caption)
    assert sum(table.milliseconds) == pytest.approx(float(table.together[1]), abs=0.0006 * len(table.milliseconds))
    assert sum(float(row[2].split()[0]) for row in (*table.kernels, *table.rest)) == pytest.approx(100, abs=1)
    assert sum(int(row[3]) for row in table.kernels) == int(table.together[3]) == len(groups_of(program))
    assert [float(row[1]) for row in table.kernels] == sorted((float(row[1]) for row in table.kernels), reverse=True)
    assert all(label in "".join(row[0] for row in table.kernels) for label in {k["label"] for k in program["kernels"]})
    dearest = table.kernels[0]
    assert float(dearest[4]) > 0
    assert re.fullmatch(r"\d+ %", dearest[5])
    notes = page.inner_text("#profile-notes")
    assert ("performance.now()" if device == "wasm" else "the GPU's timestamps") in notes
    assert re.search(r"Peaks were measured here: [\d.]+ GFLOP/s in a product of 512 × 512", notes)
    heads = page.locator("#profile-table th[scope=col]").all_inner_texts()
    assert heads == ["Kernel", "ms", "Share", "Calls", "GFLOP/s", "of peak", "GB/s", "of peak"]
    assert page.locator("#profile-table tbody th[scope=row]").count() == len(table.kernels) + len(table.rest)
    with page.expect_download() as saved:
        page.click("#profile-trace")
    assert saved.value.suggested_filename.endswith(".json")
    events = [e for e in json.loads(Path(saved.value.path()).read_text())["traceEvents"] if e["ph"] == "X"]
    assert sum(e["dur"] for e in events) / 1e3 == pytest.approx(float(table.together[1]), abs=0.001)
    assert len(events) == len(groups_of(program)) + 2
    page.click("#bench-copy")
    until(page, "document.querySelector('#bench-copied').textContent === 'Copied.'", 10)
    text = page.evaluate("navigator.clipboard.readText()")
    assert table.caption in text
    assert all(f"| {' | '.join(row[1:])} |" in text for row in (*table.kernels, *table.rest, table.together))


def test_of_many_kernels_the_dearest_are_shown_first(page: Any) -> None:
    table = profiled(page, "classify/model/", "wasm")
    assert len(table.kernels) > 20
    assert table.hidden == len(table.kernels) - 12
    (others,) = table.others
    assert others[0] == f"{table.hidden} others"
    assert float(others[1]) == pytest.approx(sum(float(row[1]) for row in table.kernels[12:]), abs=0.02)
    assert int(others[3]) == sum(int(row[3]) for row in table.kernels[12:])
    page.click("#profile-all")
    assert kernel_table(page).hidden == 1, "the row of the others"
    page.click("#profile-all")
    assert kernel_table(page).hidden == table.hidden


def test_without_peaks_kernels_are_compared_with_the_best(browser: Any, address: str) -> None:
    with browser.new_context(service_workers="block") as context:
        page = context.new_page()
        page.route("**/peaks/model.json", lambda route: route.fulfill(status=404, body="none"))
        page.goto(address)
        table = profiled(page, "mnist/model/", "wasm")
        assert re.search(
            r"Peaks are the best of these kernels, .* could be measured: .*404", page.inner_text("#profile-notes")
        )
        for column in (5, 7):
            assert max(int(row[column].split()[0] or 0) for row in table.kernels if row[column]) == 100


def test_without_timestamps_the_page_takes_the_time_of_a_gpu(browser: Any, address: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.add_init_script("""
          const ask = GPUAdapter.prototype.requestDevice;
          GPUAdapter.prototype.requestDevice = function (given) {
            return ask.call(this, { ...given, requiredFeatures: given.requiredFeatures.filter((f) => f !== "timestamp-query") });
          };
        """)
        page.goto(address)
        table = profiled(page, "mnist/model/", "webgpu")
        assert "performance.now() around submits" in page.inner_text("#profile-notes")
        assert float(table.kernels[0][1]) > 0
        assert sum(table.milliseconds) == pytest.approx(float(table.together[1]), abs=0.0006 * len(table.milliseconds))


def test_a_profile_stops_when_it_is_told_to(page: Any) -> None:
    benchmark(page, "mnist/model/", "webgpu")
    page.click("#profile-run")
    page.wait_for_selector("#bench-status[data-state=running]")
    assert page.is_disabled("#bench-run")
    page.click("#bench-stop")
    page.wait_for_selector("#bench-status[data-state=ready]")
    assert page.inner_text("#bench-status") == "Stopped."
    assert page.is_enabled("#profile-run")
    assert page.is_hidden("#profile-found")


def test_the_benchmark_stops_when_it_is_told_to(page: Any) -> None:
    page.select_option("#bench-device", "webgpu")
    page.select_option("#bench-runs", "100")
    page.click("#bench-run")
    page.wait_for_selector("#bench-status[data-state=running]")
    page.click("#bench-stop")
    page.wait_for_selector("#bench-status[data-state=ready]")
    assert page.inner_text("#bench-status") == "Stopped."
    assert page.is_enabled("#bench-run")
    assert page.is_hidden("#bench-stop")


def test_where_the_clipboard_is_shut_the_result_can_be_taken_by_hand(page: Any) -> None:
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('shut')); }")
    benchmark(page, "mnist/model/", "wasm")
    page.click("#bench-copy")
    text = page.input_value("#bench-text")
    assert text.startswith("| model | device |")
    assert page.evaluate("getSelection().toString()") == text


def test_the_page_is_used_by_keyboard_alone(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = []
    for _ in range(200):  # more than the page has to be chosen
        page.keyboard.press("Tab")
        name, outlined = page.evaluate("""() => {
          const e = document.activeElement;
          return [e.id || e.getAttribute("href") || e.tagName, getComputedStyle(e).outlineStyle !== "none"];
        }""")
        if name == "BODY":
            break
        assert outlined, f"{name} does not show that it is chosen"
        seen.append(name)
    wanted = ["mnist/", "bench-model", "bench-device", "bench-runs", "bench-run", "python-start"]
    assert [name for name in seen if name in wanted] == wanted
    page.focus("#bench-model")
    page.keyboard.type("Digits")
    page.keyboard.press("Tab")
    page.keyboard.type("WebAssembly")
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#bench-copying:not([hidden])")
    assert page.locator("#bench-results tbody tr").count() == 1


@pytest.mark.parametrize("view", VIEWS)
def test_it_can_be_read(browser: Any, address: str, view: str) -> None:
    """Contrast of every text, names and sizes of all controls, no overflow; and a screenshot to look at."""
    scheme, width, height = VIEWS[view]
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#facts[aria-busy=false]")
    benchmark(page, "mnist/model/", "wasm")
    page.click("#profile-run")
    page.wait_for_selector("#profile-found:not([hidden])")
    texts = page.evaluate(CONTRAST)
    assert len(texts) > 60
    assert [t for t in texts if t["ratio"] < t["wanted"]] == []
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(SMALL) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "it scrolls sideways"
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=str(SCREENSHOTS / f"front-{view}.png"), full_page=True)
    context.close()


def test_who_wants_less_motion_gets_none(browser: Any, address: str) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    moving = """() => [...document.querySelectorAll("*")].map((e) => getComputedStyle(e))
      .filter((s) => s.scrollBehavior === "smooth" || s.transitionDuration !== "0s" || s.animationName !== "none").length"""
    assert page.evaluate(moving) == 0
    context.close()


def test_a_wrong_manifest_is_a_row_that_says_so(browser: Any, address: str) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/mnist/model/model.json", lambda route: route.fulfill(status=200, body=json.dumps({"format": "no"})))
    page.goto(address)
    benchmark(page, "mnist/model/", runs="")
    page.wait_for_selector("#bench-status[data-state=ready]")
    rows = page.locator("#bench-results tbody tr").all_inner_texts()
    assert len(rows) == 2
    assert all("singe/3" in row for row in rows)
    context.close()
