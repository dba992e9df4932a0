"""The front page in Chromium: what the browser can do, the benchmark, the Python prompt, by mouse and by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from sites import SCREENSHOTS, Console, served, until

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
STATE: Final = "document.querySelector('#python-status').dataset.state"
VIEWS: Final = {"light": ("light", 1280, 900), "dark": ("dark", 1280, 900), "phone": ("light", 360, 740)}


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The front page, whose console must have no errors at the end."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    console = Console(page)
    page.goto(address)
    page.wait_for_selector("#facts[aria-busy=false]")
    yield page
    assert console.complaints == []
    context.close()


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
    """The probes of the page against those of the runner, and a module that is damaged."""
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
        page.set_default_timeout(60_000)  # milliseconds, as all of Playwright's
        page.add_init_script("delete Navigator.prototype.gpu")
        page.goto(address)
        page.wait_for_selector("#facts[aria-busy=false]")
        mark, why = facts(page)["WebGPU"]
        assert mark == "no"
        assert "run on the CPU" in why
        benchmark(page, "mnist/model/")
        page.wait_for_selector("#bench-copying:not([hidden])", timeout=60_000)
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
    assert sorted(a for a in asked if not a.startswith("data:")) == [
        "", "front-facts.js", "front-offline.js", "front.css", "front.js", "style.css",
    ]  # fmt: skip
    sizes = page.evaluate("performance.getEntriesByType('resource').map((e) => e.encodedBodySize)")
    assert sum(sizes) < 20_000, "scripts and style, compressed"
    context.close()


def test_the_benchmark_runs_on_each_device_and_its_result_is_copied(page: Any, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    benchmark(page, "mnist/model/")
    page.wait_for_selector("#bench-copying:not([hidden])", timeout=120_000)
    rows = [row.split("\t") for row in page.locator("#bench-results tbody tr").all_inner_texts()]
    assert [row[1] for row in rows] == ["WebAssembly", "WebGPU"]
    for row in rows:
        assert all(re.fullmatch(r"[\d.]+ ms", cell) for cell in row[2:4]), row
        assert re.fullmatch(r"[\d.]+ ms \(\d\)", row[4])
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
    page.wait_for_selector("#bench-copying:not([hidden])", timeout=60_000)
    row = page.locator("#bench-results tbody tr").inner_text().split("\t")
    median, rate = float(row[4].split(" ")[0]), float(row[5])
    assert rate * median / 1e3 == pytest.approx(4 * 2 * 512**3 / 1e9, rel=0.05)


def test_a_manifest_is_fetched_once_for_a_load(browser: Any, address: str) -> None:
    with browser.new_context(service_workers="block") as context:
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda r: asked.append(r.url))
        page.goto(address)
        benchmark(page, "mnist/model/", "wasm", runs="")
        page.wait_for_selector("#bench-copying:not([hidden])", timeout=60_000)
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
    assert sum(int(row[3]) for row in table.kernels) == int(table.together[3]) == len(program["steps"])
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
    assert len(events) == len(program["steps"]) + 2
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
        page.set_default_timeout(60_000)
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
        page.set_default_timeout(60_000)
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
    page.click("#profile-run", timeout=60_000)
    page.wait_for_selector("#bench-status[data-state=running]")
    assert page.is_disabled("#bench-run")
    page.click("#bench-stop")
    page.wait_for_selector("#bench-status[data-state=ready]", timeout=60_000)
    assert page.inner_text("#bench-status") == "Stopped."
    assert page.is_enabled("#profile-run")
    assert page.is_hidden("#profile-found")


def test_the_benchmark_stops_when_it_is_told_to(page: Any) -> None:
    page.select_option("#bench-device", "webgpu")
    page.select_option("#bench-runs", "100")
    page.click("#bench-run")
    page.wait_for_selector("#bench-status[data-state=running]", timeout=60_000)
    page.click("#bench-stop")
    page.wait_for_selector("#bench-status[data-state=ready]", timeout=60_000)
    assert page.inner_text("#bench-status") == "Stopped."
    assert page.is_enabled("#bench-run")
    assert page.is_hidden("#bench-stop")


def test_where_the_clipboard_is_shut_the_result_can_be_taken_by_hand(page: Any) -> None:
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('shut')); }")
    benchmark(page, "mnist/model/", "wasm")
    page.click("#bench-copy", timeout=60_000)
    text = page.input_value("#bench-text")
    assert text.startswith("| model | device |")
    assert page.evaluate("getSelection().toString()") == text


def test_the_page_is_used_by_keyboard_alone(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = []
    for _ in range(40):
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
    assert [name for name in seen if name in wanted] == ["mnist/", *wanted]  # once in the navigation, once as a card
    page.focus("#bench-model")
    page.keyboard.type("Digits")
    page.keyboard.press("Tab")
    page.keyboard.type("WebAssembly")
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#bench-copying:not([hidden])", timeout=60_000)
    assert page.locator("#bench-results tbody tr").count() == 1


@pytest.mark.parametrize("view", VIEWS)
def test_it_can_be_read(browser: Any, address: str, view: str) -> None:
    """Contrast of every text, names of all controls, their sizes, nothing that sticks out; and a picture to look at."""
    scheme, width, height = VIEWS[view]
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#facts[aria-busy=false]")
    benchmark(page, "mnist/model/", "wasm")
    page.click("#profile-run", timeout=60_000)
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


# --- Python ------------------------------------------------------------------------------------------------------------


class Prompt:
    """The Python prompt of a page, started."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.click("#python-start")
        self.rest(120)

    def rest(self, seconds: float = 60) -> None:
        until(self.page, f"['ready', 'error', 'unsupported'].includes({STATE})", seconds)
        assert self.page.get_attribute("#python-status", "data-state") == "ready", self.page.inner_text(
            "#python-status"
        )

    def log(self) -> str:
        return self.page.evaluate("document.querySelector('#python-log').textContent")

    def ask(self, source: str) -> str:
        """The answer to a complete source."""
        before = len(self.log())
        self.page.fill("#python-input", source)
        self.page.click("#python-run")
        until(self.page, f"document.querySelector('#python-log').textContent.length > {before}")
        self.rest()
        shown = "".join(f"{'...' if k else '>>>'} {line}\n" for k, line in enumerate(source.split("\n")))
        said = self.log()[before:]
        assert said.startswith(shown)
        return said.removeprefix(shown)


@pytest.fixture
def prompt(site: Path, page: Any) -> Prompt:
    if not (site / "python/start.js").exists():
        pytest.skip("the site was built without Python: its files cannot be had here")
    return Prompt(page)


@pytest.mark.slow
def test_python_evaluates(prompt: Prompt) -> None:
    assert re.match(r"Python 3\.\d+\.\d+, NumPy \d.*, Singe \d", prompt.log())
    assert prompt.ask("6 * 7") == "42\n"
    assert prompt.ask("_ + 1") == "43\n"
    assert prompt.ask("x = 5") == ""
    assert prompt.ask("print(x)\nx + 1") == "5\n6\n"
    assert prompt.ask("(sg.tensor([1.0, 2.0], device='numpy') * 2).numpy()") == "array([2., 4.], dtype=float32)\n"
    assert prompt.ask("import asyncio; await asyncio.sleep(0, 'late')") == "'late'\n"
    assert prompt.ask("np.ones(3) @ np.ones(3)") == "np.float64(3.0)\n"
    assert prompt.ask("print('é' * 3, '✓')") == "ééé ✓\n"
    assert (
        prompt.ask("model = await sg.load_async('python/mnist.singe', device='wasm')\nmodel.inputs[0].name")
        == "'input'\n"
    )
    assert prompt.ask("(await model.run_async(np.zeros((2, 1, 28, 28), np.float32))).shape") == "(2, 10)\n"


@pytest.mark.slow
def test_python_shows_tracebacks_of_what_was_typed_and_no_more(prompt: Prompt) -> None:
    prompt.ask("def half(x):\n    return x / 0")
    said = prompt.ask("half(1)")
    assert said.startswith("Traceback (most recent call last):\n")
    assert "return x / 0" in said
    assert said.endswith("ZeroDivisionError: division by zero\n")
    assert "_pyodide" not in said
    assert prompt.page.locator("#python-log .failed").count() == 1
    assert "SyntaxError" in prompt.ask("x = = 1")
    assert prompt.ask("raise SystemExit(3)").endswith("SystemExit: 3\n")
    assert prompt.ask("1 + 1") == "2\n"


@pytest.mark.slow
def test_python_is_typed_as_at_a_prompt(prompt: Prompt) -> None:
    """Enter goes on with a block and ends it at a blank line; the arrows bring back what was run."""
    page = prompt.page
    page.focus("#python-input")
    for line in ("for k in range(2):", "print(k)"):
        page.keyboard.type(line)
        page.keyboard.press("Enter")
        prompt.rest()
        until(page, "document.querySelector('#python-input').value.endsWith('    ')", 10)
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#python-log').textContent.endsWith('0\\n1\\n')", 10)
    assert prompt.ask("'second'") == "'second'\n"
    page.focus("#python-input")
    page.keyboard.type("unfinished")
    page.keyboard.press("ArrowUp")
    assert page.input_value("#python-input") == "'second'"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.input_value("#python-input") == "for k in range(2):\n    print(k)"
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert page.input_value("#python-input") == "unfinished"
    page.fill("#python-input", "")
    page.keyboard.type("a = 1")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("a + 1")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#python-log').textContent.endsWith('2\\n')", 10)


@pytest.mark.slow
def test_python_that_never_ends_is_stopped_while_the_page_goes_on(prompt: Prompt) -> None:
    page = prompt.page
    assert prompt.ask("kept = 1") == ""
    page.fill("#python-input", "while True: print('spam' * 100)")
    page.click("#python-run")
    page.wait_for_selector("#python-status[data-state=running]")
    page.wait_for_timeout(1500)
    assert len(prompt.log()) < 150_000, "the log is bounded"
    page.click("#python-stop")
    page.wait_for_selector("#python-status[data-state=loading]")
    prompt.rest(120)
    assert "NameError" in prompt.ask("kept")
    assert prompt.ask("1 + 1") == "2\n"


@pytest.mark.slow
def test_python_comes_back_without_a_network(browser: Any, site: Path) -> None:
    if not (site / "python/start.js").exists():
        pytest.skip("the site was built without Python: its files cannot be had here")
    context = browser.new_context()
    page = context.new_page()
    with served(site) as address:
        page.goto(address)
        until(page, "navigator.serviceWorker.controller !== null")
        Prompt(page)
        page.wait_for_timeout(1000)
    context.set_offline(True)
    page.reload()
    assert Prompt(page).ask("np.ones(2).sum()") == "np.float64(2.0)\n"
    context.close()


def test_a_site_without_python_says_so(browser: Any, address: str) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/python/start.js", lambda route: route.fulfill(status=404, body="none"))
    page.goto(address)
    page.click("#python-start")
    page.wait_for_selector("#python-status[data-state=unsupported]")
    assert "built without Python" in page.inner_text("#python-status")
    assert page.is_visible("#python-start")
    context.close()


def test_a_wrong_manifest_is_a_row_that_says_so(browser: Any, address: str) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/mnist/model/model.json", lambda route: route.fulfill(status=200, body=json.dumps({"format": "no"})))
    page.goto(address)
    benchmark(page, "mnist/model/", runs="")
    page.wait_for_selector("#bench-status[data-state=ready]", timeout=60_000)
    rows = page.locator("#bench-results tbody tr").all_inner_texts()
    assert len(rows) == 2
    assert all("singe/2" in row for row in rows)
    context.close()
