"""Pages under rules: Trusted Types, pages of an extension (Manifest V3), service workers, as docs/guides/bundlers.md says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from browsers import CHROMIUM, plain
from bundles import ROOT, STATIC, weighty_graph
from pages import SEVERAL
from sites import Console, served_plainly, until

from singe.model.model import Model
from singe.tools.export.bundle import export

GUIDE: Final = (ROOT / "docs" / "guides" / "bundlers.md").read_text("utf-8")
ISOLATED: Final = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
COUNT: Final = 600
"""A batch that is large enough for threads to share its runs."""
WAYS: Final = [(False, 1), (True, 1), (False, SEVERAL), (True, SEVERAL)]
"""What app.js tries: in a worker or not, and how many threads."""


@pytest.fixture(scope="module")
def weighty(bundle: Callable[[str], Path]) -> Path:
    return bundle("weighty")


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    x = (np.arange(COUNT * 5 * 7 * 6) * 7919 % 1000 / 1000 - 0.5).astype(np.float32)
    return np.asarray(Model(weighty_graph(), "numpy")(x.reshape(COUNT, 5, 7, 6))).ravel()


@pytest.fixture
def site(weighty: Path, tmp_path: Path) -> Path:
    """A page that imports the script of its bundle, model/; static/ has the readable modules."""
    folder = tmp_path / "site"
    shutil.copytree(weighty, folder / "model")
    shutil.copytree(STATIC, folder / "static")
    app = (ROOT / "tests" / "bundlers" / "app.js").read_text()
    (folder / "app.js").write_text(app.replace('"singe"', '"./model/singe.js"'))
    (folder / "modules.js").write_text(app.replace('"singe"', '"./static/singe.js"'))
    for name in ("app", "modules"):
        head = f'<!doctype html><title>{name}</title><link rel="icon" href="data:,">'
        (folder / f"{name}.html").write_text(f'{head}<script type="module" src="{name}.js"></script>')
    return folder


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def check(found: list[dict[str, Any]], expected: np.ndarray, ways: list[tuple[bool, int]]) -> None:
    assert [(way["worker"], way["threads"]) for way in found] == ways
    for way in found:
        np.testing.assert_allclose(way["y"], expected, rtol=0, atol=1e-4 * np.abs(expected).max())


# --- Trusted Types ----------------------------------------------------------------------------------------------------

TRUSTED: Final = re.findall(r"^Content-Security-Policy: (.*trusted-types singe)$", GUIDE, re.M)[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["app", "modules", "built"])
def test_trusted_types(page: Any, site: Path, expected: np.ndarray, name: str, request: pytest.FixtureRequest) -> None:
    console = Console(page)
    if name == "built":
        for script, data in request.getfixturevalue("built_scripts").items():
            (site / "model" / script).write_bytes(data)
        name = "app"
    with served_plainly(site, {**ISOLATED, "Content-Security-Policy": TRUSTED}) as address:
        page.goto(f"{address}{name}.html")
        until(page, "Boolean(globalThis.answers)")
        check(page.evaluate("answers('/model/', 600)"), expected, WAYS)
    assert console.complaints == []


def test_trusted_types_that_leave_us_out(page: Any, site: Path, expected: np.ndarray) -> None:
    console = Console(page)
    with served_plainly(site, {**ISOLATED, "Content-Security-Policy": TRUSTED.replace(" singe", " 'none'")}) as address:
        page.goto(f"{address}app.html")
        until(page, "Boolean(globalThis.answers)")
        check(page.evaluate("answers('/model/', 600)"), expected, [(False, 1)] * 4)
        until(page, "performance.getEntriesByType('resource').some(({ name }) => name.includes('unstarted'))")
    ours = [text for text in console.complaints if text.startswith("singe: ")]
    tells = ["The model runs in the page.", "The model runs on one thread."]
    assert len(ours) == SEVERAL
    assert all(said in text for said, text in zip(tells, ours, strict=False))
    assert all("TrustedScriptURL" in text for text in ours)


LACKING: Final = {
    "script-src 'self'": "wasm: WebAssembly needs 'wasm-unsafe-eval' in the page's script-src; webgpu: this engine has no WebGPU adapter",
    "script-src 'self' 'wasm-unsafe-eval'; connect-src 'none'": "the page's Content-Security-Policy forbids it: add 'self' to its connect-src",
}
"""A policy that lacks something, and what is said of it where there is no GPU."""


@pytest.mark.parametrize("policy", LACKING)
def test_what_a_policy_lacks_is_said(browser: Any, site: Path, policy: str) -> None:
    (site / "tried.js").write_text(
        """import { load } from "./model/singe.js";
        globalThis.tried = (worker) => load("/model/", { worker }).then(() => "loaded", ({ message }) => message);"""
    )
    (site / "tried.html").write_text('<!doctype html><script type="module" src="tried.js"></script>')
    with plain(browser) as other, served_plainly(site, {"Content-Security-Policy": policy}) as address:
        page = other.new_page()
        page.goto(f"{address}tried.html")
        for worker in (False, True):
            assert LACKING[policy] in page.evaluate("(worker) => tried(worker)", worker)


def test_a_server_that_does_not_share_is_said(page: Any, site: Path) -> None:
    (site / "bare.html").write_text("<!doctype html>")
    load = (
        "url => import('/model/singe.js').then(({ load }) => load(url)).then(() => 'loaded', ({ message }) => message)"
    )
    with served_plainly(site) as elsewhere, served_plainly(site) as address:
        page.goto(f"{address}bare.html")
        told = page.evaluate(load, f"{elsewhere}model/")
    assert "let it send Access-Control-Allow-Origin" in told


def test_workers_that_a_policy_forbids_are_said(page: Any, site: Path, expected: np.ndarray) -> None:
    console = Console(page)
    policy = "script-src 'self' 'wasm-unsafe-eval'; worker-src 'none'"
    with served_plainly(site, {"Content-Security-Policy": policy}) as address:
        page.goto(f"{address}app.html")
        until(page, "Boolean(globalThis.answers)")
        check(page.evaluate("answers('/model/', 600)"), expected, [(False, 1)] * 4)
    assert any("worker-src of the page's Content-Security-Policy" in text for text in console.complaints)


def test_no_script_writes_markup_or_code() -> None:
    """What Trusted Types and strict policies refuse."""
    for path in STATIC.rglob("singe*.js"):
        text = path.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, f"{path.name}: {word}"


# --- an extension -----------------------------------------------------------------------------------------------------

MANIFEST: Final = re.search(r"^```json extension/manifest.json\n(.*?)^```$", GUIDE, re.M | re.S)


@pytest.fixture
def extension(browser: Any, site: Path, tmp_path: Path) -> Iterator[Any]:
    """A browser's context with an extension, and the extension's service worker."""
    assert MANIFEST is not None
    (site / "manifest.json").write_text(MANIFEST[1])
    shutil.copy(site / "app.js", site / "background.js")
    switches = ["--no-sandbox", f"--disable-extensions-except={site}", f"--load-extension={site}"]
    context = browser.browser_type.launch_persistent_context(
        tmp_path / "profile", executable_path=CHROMIUM, args=switches, ignore_default_args=["--disable-extensions"]
    )
    try:
        yield (
            context,
            context.service_workers[0] if context.service_workers else context.wait_for_event("serviceworker"),
        )
    finally:
        context.close()


@pytest.mark.slow
def test_an_extension(extension: Any, expected: np.ndarray) -> None:
    """Its pages have workers and threads; its service worker runs models on one thread, and keeps no files twice."""
    context, worker = extension
    page = context.new_page()
    console = Console(page)
    page.goto(worker.url.replace("background.js", "app.html"))
    until(page, "Boolean(globalThis.answers)")
    check(page.evaluate("answers('/model/', 600)"), expected, WAYS)
    assert page.evaluate("caches.keys()") == []
    check(worker.evaluate("answers('/model/', 600, [{ worker: true }])"), expected, [(False, 1)])
    assert console.complaints == []


# --- service workers --------------------------------------------------------------------------------------------------

KEEPER: Final = """
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => event.respondWith(answer(event.request)));
async function answer(request) {
  const cache = await caches.open("site");
  const kept = await cache.match(request);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) await cache.put(request, response.clone());
  return response;
}"""
"""A service worker that answers every request, without a network from what it saw before."""
REGISTER: Final = """async ([script, type]) => {
  await navigator.serviceWorker.register(script, { type });
  await navigator.serviceWorker.ready;
}"""


@pytest.mark.slow
def test_a_bundle_that_a_service_worker_serves(page: Any, site: Path, expected: np.ndarray) -> None:
    (site / "keeper.js").write_text(KEEPER)
    console = Console(page)
    with served_plainly(site, ISOLATED) as address:
        page.goto(f"{address}app.html")
        page.evaluate(REGISTER, ["keeper.js", "classic"])
        until(page, "navigator.serviceWorker.controller !== null")
        page.reload()
        until(page, "Boolean(globalThis.answers)")
        check(page.evaluate("answers('/model/', 600)"), expected, WAYS)
    page.context.set_offline(True)
    page.goto(f"{address}app.html")
    until(page, "Boolean(globalThis.answers)")
    check(page.evaluate("answers('/model/', 600)"), expected, WAYS)
    assert console.complaints == []


@pytest.mark.slow
def test_in_a_service_worker(page: Any, site: Path, expected: np.ndarray) -> None:
    """The joined scripts run a model there; one that needs a rare script, which cannot be imported there, is refused."""
    export(Model(weighty_graph(), "numpy"), site / "float16", dtype="float16")
    with served_plainly(site, ISOLATED) as address:
        page.goto(f"{address}app.html")
        with page.context.expect_event("serviceworker") as found:
            page.evaluate(REGISTER, ["app.js", "module"])
        worker = found.value
        check(worker.evaluate("answers('/model/', 600, [{}])"), expected, [(False, 1)])
        error = worker.evaluate("answers('/float16/', 600, [{}]).catch(({ code, message }) => [code, message])")
    assert error[0] == "device"
    assert "must be one file" in error[1]
    assert "import()" in error[1]
