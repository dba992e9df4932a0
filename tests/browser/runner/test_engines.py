"""The runner in other engines: JavaScript's outside of pages, Playwright's browsers, and Chromium without what WebKit lacks.

Engines come from npm (`make nightly`). SINGE_BROWSER=firefox or webkit names a browser that Playwright has installed; without
it, the pages are Debian's Chromium.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from browsers import chromium
from bundles import STATIC, assert_close, dtypes_case, packed, small_case
from packages import npm
from pages import HEADERS, NODE, SEVERAL, Page, Served
from sites import Console

HARNESS: Final = Path(__file__).parents[1] / "harness.js"
ENGINES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "node": ("", ("node",)),
    "node 22": ("node@22.23.3", ("node",)),
    "node 24": ("node@24.9.0", ("node",)),
    "deno": ("deno@2.9.6", ("deno", "run", "--allow-all")),
    "bun": ("bun@1.4.5", ("bun", "run")),
}
"""An engine ↦ its package of npm, none for the one on the path; and the start of its command."""
COUNT: Final = 600
"""A batch that is large enough for threads to share its runs."""
BODY: Final = """
const done = {};
for (const [name, { url, cases }] of Object.entries(given.bundles)) {
  done[name] = (await answer(load, url, { device: "wasm" }, cases)).outputs;
}
done.threads = [];
done.shared = [];
for (const threads of [1, 2]) {
  const model = await load(given.weighty.url, { device: "wasm", threads });
  done.shared.push(pack(await model.run(unpack(given.weighty.tensors))));
  done.threads.push(model.threads);
  await model.dispose();
}
return done;
"""


@pytest.fixture
def given(bundle: Callable[[str], Path]) -> tuple[Path, Callable[[str], dict[str, Any]]]:
    """The folder of bundles, and a function that says what to run, with addresses that start as given."""
    root = bundle("small").parent
    bundle("dtypes")
    bundle("weighty")
    x = np.random.default_rng(0).normal(size=(COUNT, 5, 7, 6)).astype(np.float32)

    def asked(start: str) -> dict[str, Any]:
        cases = {"small": small_case, "dtypes": dtypes_case}
        bundles = {name: {"url": start + name, "cases": [packed(case(7)[0])]} for name, case in cases.items()}
        return {"bundles": bundles, "weighty": {"url": f"{start}weighty", "tensors": packed({"x": x})}}

    return root, asked


def check(done: dict[str, Any], threads: list[int]) -> None:
    assert_close(done["small"][0], small_case(7)[1])
    assert_close(done["dtypes"][0], dtypes_case(7)[1])
    assert done["threads"] == threads
    assert done["shared"][0] == done["shared"][1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if ENGINES[name][0] else ()) for name in ENGINES]
)
def test_an_engine(name: str, given: tuple[Path, Callable[[str], dict[str, Any]]], tmp_path: Path) -> None:
    package, (program, *arguments) = ENGINES[name]
    if package:
        (tmp_path / "package.json").write_text('{ "private": true }')
        npm("install", package, cwd=tmp_path)
        program = str(tmp_path / "node_modules" / ".bin" / program)
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    root, asked = given
    text = NODE.replace("BODY", BODY).replace("RUNNER", json.dumps((STATIC / "singe.js").as_uri()))
    (tmp_path / "script.mjs").write_text(text.replace("HARNESS", json.dumps(HARNESS.as_uri())))
    done = subprocess.run(
        [program, *arguments, "script.mjs"],
        cwd=tmp_path, input=json.dumps(asked(f"{root.as_uri()}/")), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout), [1, SEVERAL])


# --- pages ------------------------------------------------------------------------------------------------------------


@contextmanager
def opened() -> Iterator[Any]:
    """A browser."""
    name = os.environ.get("SINGE_BROWSER", "")
    if not name:
        with chromium(()) as browser:
            yield browser
        return
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = getattr(playwright, name).launch()
        try:
            yield browser
        finally:
            browser.close()


WITHOUT_RELAXED: Final = """
const relaxed = (bytes) => {
  const b = new Uint8Array(bytes.buffer ?? bytes, bytes.byteOffset, bytes.byteLength);
  return b.length < 100 && b.some((_, k) => b[k] === 253 && b[k + 1] >= 128 && b[k + 2] === 2);
};
const validate = WebAssembly.validate;
WebAssembly.validate = (bytes) => !relaxed(bytes) && validate(bytes);
"""
LACKS: Final = {
    "nothing": ("", True),
    "relaxed SIMD": (WITHOUT_RELAXED, True),
    "shared memory": ("delete globalThis.SharedArrayBuffer; const M = WebAssembly.Memory; WebAssembly.Memory = function (d) {"
                      " if (d.shared) throw new TypeError('no shared memory'); return new M(d); };", False),
    "SharedArrayBuffer": ("delete globalThis.SharedArrayBuffer;", False),
    "Float16Array": ("delete globalThis.Float16Array;", True),
}  # fmt: skip
"""What a page lacks ↦ the script that takes it away before any other, and whether threads are left."""


@pytest.mark.slow
@pytest.mark.parametrize("isolated", [True, False], ids=["isolated", "plain"])
@pytest.mark.parametrize("lack", LACKS)
def test_a_page_that_lacks(lack: str, isolated: bool, given: tuple[Path, Callable[[str], dict[str, Any]]]) -> None:
    root, asked = given
    script, threads = LACKS[lack]
    server = Served(root)
    server.pages["/favicon.ico"] = ("", {})
    if not isolated:
        own = dict.fromkeys(("Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy"), "unsafe-none")
        server.pages["/"] = (server.pages["/"][0], {**HEADERS, **own})
    try:
        with opened() as browser:
            tab = browser.new_page()
            tab.add_init_script(script)
            console = Console(tab)
            tab.goto(server.address)
            done = Page(tab, server).run(BODY, **asked("/bundles/"))
            relaxed = [path for path in server.asked if "relaxed" in path]
        check(done, [1, SEVERAL if isolated and threads else 1])
        assert console.complaints == []
        if lack == "relaxed SIMD" or "SINGE_BROWSER" not in os.environ:
            assert bool(relaxed) == (lack != "relaxed SIMD"), "these kernels are for engines that have it"
    finally:
        server.close()
