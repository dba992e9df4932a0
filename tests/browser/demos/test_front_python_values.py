"""Files, drawings and packages at the front page's Python prompt, in Chromium."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from packages import axe, findings
from prompts import Prompt
from sites import served_plainly, until

AT_END: Final = "(log) => log.scrollTop + log.clientHeight >= log.scrollHeight - 1"


@pytest.mark.slow
def test_files_are_added_and_used(prompt: Prompt, tmp_path: Path) -> None:
    page = prompt.page
    entry = page.locator("#python-input")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "x"], ["y"])], "twice", [x], [y])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "my model.onnx")
    np.savez(tmp_path / "two.npz", a=np.arange(3), b=np.eye(2))
    page.set_input_files("#python-file", tmp_path / "my model.onnx")
    until(page, "document.querySelector('#python-input').value !== ''")
    assert entry.input_value() == 'model = await sg.load_async("my model.onnx")'
    assert f"my model.onnx ({(tmp_path / 'my model.onnx').stat().st_size} bytes) is in Python's folder" in prompt.log()
    assert prompt.ask(entry.input_value()) == ""
    assert prompt.ask("await model.run_async(np.arange(3, dtype=np.float32))") == "array([0., 2., 4.], dtype=float32)\n"
    page.fill("#python-input", "kept = 1")
    page.evaluate(
        """(files) => {
          const data = new DataTransfer();
          for (const [name, bytes] of Object.entries(files)) data.items.add(new File([new Uint8Array(bytes)], name));
          const terminal = document.querySelector("#terminal");
          const over = new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true });
          terminal.dispatchEvent(over);
          if (!over.defaultPrevented || !terminal.classList.contains("over")) throw new Error("no drop expected");
          terminal.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        {"a.safetensors": [1, 2], "two.npz": list((tmp_path / "two.npz").read_bytes())},
    )
    until(page, "document.querySelector('#python-log').textContent.includes('two.npz')")
    assert entry.input_value() == "kept = 1", "what is being typed stays"
    assert 'weights = sg.read_weights("a.safetensors")' in prompt.log()
    assert 'arrays = np.load("two.npz")' in prompt.log()
    assert prompt.ask('sorted(np.load("two.npz"))') == "['a', 'b']\n"
    assert prompt.ask('open("a.safetensors", "rb").read()') == "b'\\x01\\x02'\n"


@pytest.mark.slow
def test_a_file_that_cannot_be_kept_is_refused(prompt: Prompt) -> None:
    prompt.ask("import os; os.mkdir('taken.npz')")
    prompt.page.set_input_files("#python-file", [{"name": "taken.npz", "mimeType": "", "buffer": b"x"}])
    until(prompt.page, "document.querySelector('#python-log').textContent.includes('taken.npz could not be read')")
    assert prompt.ask("1 + 1") == "2\n"


@pytest.mark.slow
def test_pictures_and_curves_are_drawn(prompt: Prompt) -> None:
    page = prompt.page
    image, curve = page.locator("#python-log img"), page.locator("#python-log svg path")
    said = prompt.ask("sg.tensor(np.eye(32) - 1)")
    assert said.startswith("tensor([[")
    assert image.get_attribute("alt") == "32 × 32 pixels, black is -1, white is 0"
    until(page, "document.querySelector('#python-log img').naturalWidth === 224")
    until(page, f"(({AT_END}))(document.querySelector('#python-log'))")
    prompt.ask("np.sin(np.arange(100) / 9)")
    assert curve.count() == 1
    assert curve.bounding_box()["width"] > 200
    for source in ("np.arange(3)", "np.array(['a'] * 20)", "sg.Tensor", "[np.eye(32)]"):
        prompt.ask(source)
    assert (image.count(), curve.count()) == (1, 1)


@pytest.mark.slow
def test_the_log_is_limited_drawings_and_folds_included(own_prompt: Prompt) -> None:
    page = own_prompt.page
    image, texts = page.locator("#python-log img"), "[...document.querySelectorAll('#python-log pre')]"
    own_prompt.ask(
        "class Drawing:\n    def _repr_html_(self): return picture * 10\n    def __repr__(self): return 'drawn'"
    )
    own_prompt.ask("picture = sg.tensor(np.eye(16))._repr_html_()")

    def run(source: str) -> None:
        page.fill("#python-input", source)
        page.click("#python-run")
        own_prompt.rest()

    for _ in range(15):
        run("Drawing()")
    assert 80 <= image.count() <= 100
    assert "class Drawing" not in own_prompt.log()
    for _ in range(12):
        run("for k in range(1200): print('a line', k)")
    assert image.count() == 0
    length = page.evaluate(f"{texts}.reduce((sum, {{ textContent }}) => sum + textContent.length, 0)")
    assert 80_000 < length <= 100_000


@pytest.mark.slow
def test_what_a_newcomer_pastes_and_types(prompt: Prompt) -> None:
    """A session with its >>> and its answers; a package by import and by pip; a name with a slip."""
    page = prompt.page
    page.focus("#python-input")
    session = (
        "    >>> a = 1\n    >>> for k in range(2):\n    ...     print(k)\n    ...\n    0\n    1\n    >>> a\n    1\n"
    )
    page.evaluate(
        """(text) => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", text);
          const paste = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
          document.querySelector("#python-input").dispatchEvent(paste);
        }""",
        session,
    )
    source = page.input_value("#python-input")
    assert source == "a = 1\nfor k in range(2):\n    print(k)\n\na"
    assert prompt.ask(source) == "0\n1\n1\n"
    advice = 'import micropip; await micropip.install("nosuch")\n'
    assert prompt.ask("import nosuch").endswith(f"If PyPI has nosuch as a wheel of pure Python: {advice}")
    assert "packages that Pyodide builds, of which this site has numpy only; long Tensors" in prompt.ask(
        "import matplotlib.pyplot"
    )
    assert prompt.ask("import scipy").endswith(
        "scipy is one of the packages that Pyodide builds, of which this site has numpy only\n"
    )
    assert prompt.ask("import numpy.nosuch").endswith("No module named 'numpy.nosuch'\n")
    for typed in ("pip install one two", "!pip install one two", "%pip install one two"):
        assert prompt.ask(typed).endswith(
            'no shell; pip is here: import micropip; await micropip.install(["one", "two"])\n'
        )
    assert "Did you mean: 'tensor'?" in prompt.ask("sg.tensr")


ODD = """class Odd:
    def _repr_html_(self):
        return '''<b id=odd>bold</b><script>document.title = 'changed'</script>
            <img src=x onerror="document.title = 'changed'"><img src=/front.css>
            <svg onload="document.title = 'changed'" viewBox="0 0 9 9"><script>document.title = 1</script>
            <a href="https://example.com"><text>link</text></a><foreignObject><form></form></foreignObject>
            <path d="M0 0L9 9" stroke="red" onclick="1"/></svg>'''"""


@pytest.mark.slow
def test_html_of_python_adds_drawings_and_nothing_else(prompt: Prompt) -> None:
    """Text, scripts, links, forms, handlers and addresses of an object's HTML stay out of the page."""
    page = prompt.page
    log = page.locator("#python-log")
    prompt.ask(ODD)
    prompt.ask("Odd()")
    page.wait_for_timeout(300)
    assert page.title().startswith("Singe")
    assert {e.evaluate("e => e.localName") for e in log.locator("*").all()} == {"pre", "div", "svg", "path"}
    assert log.locator("svg > path[stroke=red]").count() == 1
    assert log.locator("[onload], [onclick], [id]").count() == 0
    prompt.ask("class Broken:\n    def _repr_html_(self): 1 / 0\n    def __repr__(self): return 'broken'")
    assert prompt.ask("Broken()") == "broken\n"


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_prompt_fits_the_page(width: int, prompt: Prompt) -> None:
    """Whatever is typed, said, drawn or offered."""
    page = prompt.page
    page.set_viewport_size({"width": width, "height": 800})
    prompt.ask(f"print('{'x' * 300}')\nnp.arange(5000)")
    prompt.ask("np.zeros((512, 512))")
    page.fill("#python-input", f"'{'y' * 300}'; np.")
    page.locator("#python-input").press("Tab")
    until(page, "document.querySelectorAll('#python-names li').length > 100")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    wide = "[...document.querySelectorAll('#terminal *')].filter((e) => e.getBoundingClientRect().right > innerWidth)"
    assert page.evaluate(f"{wide}.map((e) => e.outerHTML.slice(0, 60))") == []


@pytest.mark.slow
def test_axe_finds_nothing_in_a_prompt_that_was_used(prompt: Prompt) -> None:
    """Answers, a traceback, a fold, drawings, the list of names, and a question; in light and dark."""
    page = prompt.page
    script = axe()
    for source in ("1 / 0", "for k in range(60): print(k)", "np.eye(20)", "np.arange(50)"):
        prompt.ask(source)
    page.fill("#python-input", "np.a")
    page.locator("#python-input").press("Tab")
    until(page, "document.querySelectorAll('#python-names li').length > 3")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.locator("#python-names li").count() > 3
        assert findings(page, script) == [], scheme
    page.fill("#python-input", "input('Why? ')")
    page.click("#python-run")
    until(page, "document.querySelector('#python-run').textContent === 'Answer'")
    assert findings(page, script) == []
    page.emulate_media(color_scheme="light")
    page.click("#python-run")
    prompt.rest()


def write_wheel(folder: Path, name: str) -> Path:
    """A wheel of a package that has the number 42."""
    path, facts = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", "number = 42\n")
        wheel.writestr(f"{facts}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{facts}/RECORD", "")
    return path


@pytest.mark.slow
def test_wheels_come_from_the_site_from_files_and_from_servers_that_allow_it(
    prompt: Prompt, site: Path, tmp_path: Path
) -> None:
    page = prompt.page
    prompt.ask("import micropip")
    own = next((site / "python").glob("packaging-*.whl"))
    assert prompt.ask(f"await micropip.install('python/{own.name}')") == ""
    page.set_input_files("#python-file", write_wheel(tmp_path, "given"))
    until(page, "document.querySelector('#python-input').value !== ''")
    assert prompt.ask(page.input_value("#python-input")) == ""
    assert prompt.ask("import given; given.number") == "42\n"
    write_wheel(tmp_path, "allowed")
    with served_plainly(tmp_path, {"Access-Control-Allow-Origin": "*"}) as address:
        assert prompt.ask(f"await micropip.install('{address}allowed-1.0-py3-none-any.whl')") == ""
        assert prompt.ask("import allowed; allowed.number") == "42\n"


@pytest.mark.slow
def test_packages_that_cannot_be_had_are_errors_that_say_what_can(
    browser: Any, python_site: Path, address: str, tmp_path: Path
) -> None:
    """A server that lets no other page read, a package of Pyodide's that the site lacks, and a policy of the site."""
    write_wheel(tmp_path, "kept")
    context = browser.new_context(service_workers="block")
    with (
        served_plainly(tmp_path) as closed,
        served_plainly(tmp_path, {"Access-Control-Allow-Origin": "*"}) as open_to_all,
    ):
        page = context.new_page()
        page.goto(address)
        prompt = Prompt(page)
        said = prompt.ask(f"import micropip; await micropip.install('{closed}kept-1.0-py3-none-any.whl')")
        assert "ValueError: Can't fetch wheel" in said
        assert 'await micropip.install("./NAME' in said
        assert "Content-Security-Policy (" not in said
        said = prompt.ask("await micropip.install(['pillow', 'numpy'])")
        assert "Content-Security-Policy (" not in said
        assert "ValueError: pillow not installed" in said
        assert "this site has numpy only" in said
        page = context.new_page()

        def strict(route: Any) -> None:
            answer = route.fetch()
            policy = "script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"
            route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": policy})

        page.route("**/prompt-worker.js", strict)
        page.goto(address)
        prompt = Prompt(page)
        said = prompt.ask(f"import micropip; await micropip.install('{open_to_all}kept-1.0-py3-none-any.whl')")
        assert f"Content-Security-Policy (connect-src) forbids {open_to_all}kept" in said
        assert "ModuleNotFoundError" in prompt.ask("import kept")
        prompt.ask(
            f"from pyodide.http import pyfetch\ntry:\n    await pyfetch('{open_to_all}other')\nexcept OSError: pass"
        )
        said = prompt.ask("await micropip.install(['pillow', 'numpy'])")
        assert "ValueError: pillow not installed" in said
        assert "Content-Security-Policy (" not in said, "what was forbidden to another is no reason here"
    context.close()
