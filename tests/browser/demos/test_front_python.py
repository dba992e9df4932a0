"""The Python prompt of the front page in Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prompts import Prompt
from sites import served, until


@pytest.mark.slow
def test_python_evaluates(prompt: Prompt) -> None:
    assert re.match(r"Python 3\.\d+\.\d+, NumPy \d.*, Singe \d", prompt.greeting)
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
        until(page, "document.querySelector('#python-input').value.endsWith('    ')")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#python-log').textContent.endsWith('0\\n1\\n')")
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
    until(page, "document.querySelector('#python-log').textContent.endsWith('2\\n')")


@pytest.mark.slow
def test_what_is_typed_after_enter_stays(prompt: Prompt) -> None:
    """Python takes the source a moment later."""
    prompt.page.fill("#python-input", "1 + 1")
    prompt.page.evaluate(
        """() => {
          const entry = document.querySelector("#python-input");
          entry.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
          entry.focus();
          document.execCommand("insertText", false, "'ahead'");
        }"""
    )
    until(prompt.page, "document.querySelector('#python-log').textContent.endsWith('>>> 1 + 1\\n2\\n')")
    assert prompt.page.input_value("#python-input") == "'ahead'"


@pytest.mark.slow
def test_python_that_never_ends_is_stopped_while_the_page_goes_on(own_prompt: Prompt) -> None:
    page = own_prompt.page
    assert own_prompt.ask("kept = 1") == ""
    page.fill("#python-input", "while True: print('spam' * 100)")
    page.click("#python-run")
    page.wait_for_selector("#python-status[data-state=running]")
    page.wait_for_timeout(1500)
    assert len(own_prompt.log()) < 150_000, "the log is bounded"
    page.click("#python-stop")
    page.wait_for_selector("#python-status[data-state=loading]")
    own_prompt.rest()
    assert "NameError" in own_prompt.ask("kept")
    assert own_prompt.ask("1 + 1") == "2\n"


@pytest.mark.slow
def test_python_is_interrupted_and_keeps_what_was_defined(prompt: Prompt) -> None:
    page = prompt.page
    assert prompt.ask("kept = 1") == ""
    for source, how in (
        ("while True: pass", "button"),
        ("while True: kept += 1", "keys"),
        ("import asyncio\nawait asyncio.sleep(1000)", "button"),
    ):
        page.fill("#python-input", f"print(1)\nprint({how!r}, 'begins')\n{source}")  # each line is shown at once
        page.click("#python-run")
        until(page, f"document.querySelector('#python-log').textContent.endsWith('{how} begins\\n')")
        until(page, "document.querySelector('#python-run').textContent === 'Stop'")
        if how == "button":
            page.click("#python-run")
        else:
            page.focus("#python-input")
            page.keyboard.press("Control+c")
        prompt.rest()
        last = page.locator("#python-log .failed").last.inner_text()
        assert last.endswith("KeyboardInterrupt\n")
        assert "<prompt" in last, source
        assert page.inner_text("#python-run") == "Run"
    assert prompt.ask("kept > 1") == "True\n"


@pytest.mark.slow
def test_python_is_interrupted_before_it_begins(prompt: Prompt) -> None:
    """An interrupt may come at any moment between the click and the first line: none leaves the prompt waiting."""
    page = prompt.page
    for moment in [*range(25), *range(25)]:
        page.fill("#python-input", "while True: pass")
        page.evaluate(
            """async (moment) => {
                document.querySelector("#python-run").click();
                await new Promise((done) => setTimeout(done, moment));
                const init = { key: "c", ctrlKey: true, bubbles: true };
                document.querySelector("#python-input").dispatchEvent(new KeyboardEvent("keydown", init));
            }""",
            moment,
        )
        prompt.rest()
        assert page.locator("#python-log .failed").last.inner_text().endswith("KeyboardInterrupt\n")
    assert prompt.ask("1 + 1") == "2\n"


@pytest.mark.slow
def test_python_shows_no_frames_of_libraries(prompt: Prompt) -> None:
    prompt.ask("def product(a):\n    return sg.tensor(a) @ sg.tensor([[1.0, 2.0]])")
    said = prompt.ask("product([[1.0, 2.0]])")
    assert said.count("File ") == 2
    assert "in product" in said
    assert "ShapeError" in said
    assert "/singe/" not in said
    said = prompt.ask("try:\n    np.ones(2).reshape(3)\nexcept ValueError as e:\n    raise KeyError('k') from e")
    assert said.count("File ") == 2
    assert "direct cause" in said
    assert prompt.ask("import sys; sys.last_exc") == "KeyError('k')\n"


@pytest.mark.slow
def test_names_are_completed_from_a_list(prompt: Prompt) -> None:
    """Tab inserts what all names share and lists them; typing narrows; the arrows choose; Enter takes, Escape closes."""
    page = prompt.page
    entry, names = page.locator("#python-input"), page.locator("#python-names li")
    chosen = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.textContent"
    prompt.ask("class Box:\n    def __init__(self):\n        self.width, self.whole, self._own = 1, 2, 3")
    prompt.ask("box = Box()")
    entry.type("box.")
    entry.press("Tab")
    until(page, f"{chosen} === 'whole'")
    assert names.all_inner_texts() == ["whole", "width"]
    assert entry.input_value() == "box.w"
    assert page.inner_text("#python-names-told").startswith("2 names")
    entry.press("ArrowDown")
    assert page.evaluate(chosen) == "width"
    entry.press("Enter")
    assert entry.input_value() == "box.width"
    assert names.count() == 0
    page.fill("#python-input", "sg.a")
    entry.press("Tab")
    until(page, f"{chosen} !== undefined")
    assert "arange" in names.all_inner_texts()
    entry.type("s_t")
    assert names.all_inner_texts() == ["as_tensor"]
    entry.press("Tab")
    assert entry.input_value() == "sg.as_tensor"
    page.fill("#python-input", "sg.as_")
    entry.press("Tab")
    until(page, "document.querySelector('#python-input').value === 'sg.as_tensor'")
    assert names.count() == 0, "a single name is inserted at once"
    page.fill("#python-input", "np.")
    entry.press("Tab")
    until(page, f"{chosen} !== undefined")
    page.locator("#python-names li", has_text="zeros_like").click()
    assert entry.input_value() == "np.zeros_like"
    page.fill("#python-input", "x = box._")
    entry.press("Tab")
    until(page, f"{chosen} === '__class__'")
    assert "_own" in names.all_inner_texts()
    entry.press("Escape")
    assert names.count() == 0
    page.fill("#python-input", "box.w")
    entry.press("Tab")
    until(page, f"{chosen} === 'whole'")
    page.focus("#python-names")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(chosen) == "width"
    page.keyboard.press("Enter")
    assert entry.input_value() == "box.width"
    assert page.evaluate("document.activeElement.id") == "python-input"
    assert prompt.ask("box.width") == "1\n"


@pytest.mark.slow
def test_tab_does_not_hold_the_focus(prompt: Prompt) -> None:
    """It leaves the entry where there is no name, where there is none to find, while Python runs, and after Escape."""
    page = prompt.page
    entry = page.locator("#python-input")
    focused = "document.activeElement.id"
    for text, keys in (("", "Tab"), ("box", "Escape Tab"), ("1 + ", "Tab"), ("box", "Shift+Tab")):
        page.fill("#python-input", text)
        for key in keys.split():
            entry.press(key)
        assert page.evaluate(focused) != "python-input", (text, keys)
    page.fill("#python-input", "for k in range(2):\n")
    entry.press("Tab")
    assert entry.input_value().endswith("\n    "), "it indents"
    page.fill("#python-input", "nosuchname")
    entry.press("Tab")
    until(page, "document.querySelector('#python-names-told').textContent.includes('No name')")
    page.fill("#python-input", "input('?')")
    page.click("#python-run")
    until(page, "document.querySelector('#python-run').textContent === 'Answer'")
    page.fill("#python-input", "so")
    entry.press("Tab")
    assert page.evaluate(focused) != "python-input"
    page.click("#python-run")
    prompt.rest()


@pytest.mark.slow
def test_long_output_is_folded(prompt: Prompt) -> None:
    page = prompt.page
    fold = page.locator("#python-log details")
    assert prompt.ask("for k in range(40): print(k)").count("\n") == 40
    assert fold.count() == 0
    said = prompt.ask("for k in range(141): print('line', k)\n'the end'")
    assert fold.count() == 1
    assert fold.locator("summary").inner_text() == "112 more lines"
    assert "line 19\n112 more lines" in said
    assert said.endswith("line 139\nline 140\n'the end'\n")
    assert page.get_by_text("line 70").is_hidden()
    fold.locator("summary").click()
    assert page.get_by_text("line 70").is_visible()
    said = prompt.ask("for k in range(100): print('again', k)\n1 / 0")
    assert fold.count() == 2
    assert said.endswith("ZeroDivisionError: division by zero\n")
    assert "[*range" not in prompt.ask("'x' * 30_000")
    assert page.locator("#python-log").inner_text().count("[10002 characters left out]") == 0, "it is in the fold"
    assert "[10002 characters left out]" in prompt.log()


@pytest.mark.slow
def test_input_is_answered_and_interrupted(prompt: Prompt) -> None:
    page = prompt.page

    def ask(source: str) -> None:
        page.fill("#python-input", source)
        page.click("#python-run")
        until(page, "document.querySelector('#python-run').textContent === 'Answer'")

    ask("name = input('Your name? ')\nprint('Hello,', name)")
    assert prompt.log().endswith("Your name? ")
    page.keyboard.type("Zoë")
    page.keyboard.press("Enter")
    prompt.rest()
    assert prompt.log().endswith("Your name? Zoë\nHello, Zoë\n")
    assert prompt.ask("name") == "'Zoë'\n"
    ask("int(input()) + int(input())")
    page.keyboard.type("20")
    page.click("#python-run")
    until(page, "document.querySelector('#python-run').textContent === 'Answer'")
    page.keyboard.type("22")
    page.keyboard.press("Enter")
    prompt.rest()
    assert prompt.log().endswith("20\n22\n42\n")
    for how in ("keys", "button"):
        ask("input('Now? ')")
        page.keyboard.type("unsent")
        if how == "keys":
            page.keyboard.press("Control+c")
        else:
            page.click("#python-interrupt")
        prompt.rest()
        assert prompt.log().endswith("KeyboardInterrupt\n")
        assert page.locator("#python-interrupt").is_hidden()
    assert prompt.ask("name") == "'Zoë'\n"


@pytest.mark.slow
def test_python_remembers_what_was_run_over_reloads(own_prompt: Prompt) -> None:
    page = own_prompt.page
    own_prompt.ask("'first'")
    own_prompt.ask("'second'")
    page.reload()
    again = Prompt(page)
    page.focus("#python-input")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.input_value("#python-input") == "'first'"
    assert again.ask("'third'") == "'third'\n"


@pytest.mark.slow
def test_python_comes_back_without_a_network(browser: Any, python_site: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    with served(python_site) as address:
        page.goto(address)
        until(page, "navigator.serviceWorker.controller !== null")
        Prompt(page)
        page.wait_for_timeout(1000)
    context.set_offline(True)
    page.reload()
    assert Prompt(page).ask("np.ones(2).sum()") == "np.float64(2.0)\n"
    context.close()


@pytest.mark.slow
def test_a_restart_that_fails_leaves_a_prompt_that_says_so(own_prompt: Prompt) -> None:
    """Nothing is sent to a Python that is not there; what was typed stays, and runs once Python has started."""
    page = own_prompt.page
    own_prompt.ask("box = 1")
    page.context.route("**/python/start.js", lambda route: route.fulfill(status=404, body="none"))
    page.click("#python-stop")
    page.wait_for_selector("#python-status[data-state=unsupported]")
    page.fill("#python-input", "6 * 7")
    for key in ("Tab", "Shift+Tab", "Enter", "Control+c"):
        page.locator("#python-input").press(key)
    assert page.locator("#python-run").is_disabled()
    assert page.locator("#python-complete").is_hidden()
    page.set_input_files("#python-file", [{"name": "a.npy", "mimeType": "", "buffer": b"x"}])
    assert own_prompt.log().endswith("a.npy was not added: Python does not run. Start it, then add the file again.\n")
    assert page.input_value("#python-input") == "6 * 7"
    page.context.unroute_all()
    page.click("#python-start")
    page.wait_for_selector("#python-status[data-state=loading]")
    own_prompt.rest()
    page.click("#python-run")
    until(page, "document.querySelector('#python-log').textContent.endsWith('>>> 6 * 7\\n42\\n')")


@pytest.mark.slow
def test_what_is_given_while_python_starts_waits_for_it(own_prompt: Prompt) -> None:
    page = own_prompt.page
    page.click("#python-stop")
    page.set_input_files("#python-file", [{"name": "early.txt", "mimeType": "", "buffer": b"early"}])
    page.fill("#python-input", "open('early.txt').read()")
    page.locator("#python-input").press("Enter")
    assert page.get_attribute("#python-status", "data-state") == "loading"
    assert "early.txt waits until Python has started.\n" in own_prompt.log()
    own_prompt.rest()
    until(page, "document.querySelector('#python-log').textContent.includes('early.txt (5 bytes) is in')")
    assert page.input_value("#python-input") == "open('early.txt').read()"
    page.click("#python-run")
    until(page, "document.querySelector('#python-log').textContent.endsWith(`'early'\\n`)")


def test_pages_say_what_python_weighs(python_site: Path) -> None:
    patterns = ("pyodide*", "python_stdlib.zip", "numpy-*.whl", "singe-*.whl")
    size = sum(f.stat().st_size for p in patterns for f in (python_site / "python").glob(p)) / 1e6
    for name in ("index.html", "mnist/index.html", "classify/index.html", "train/index.html", "docs/start/tour.html"):
        text = re.sub(
            r"<p>SmolLM2.*?</p>", "", (python_site / name).read_text()
        )  # which says what a language model weighs
        (said,) = re.findall(r"(\d+)\s+MB", text)
        assert abs(int(said) - size) <= 1, name


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
