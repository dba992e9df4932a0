"""The service worker in Chromium: the site works offline after one visit, and is isolated on any host."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from sites import Console, demos_build, served, served_plainly, until

PAGES: Final = ("", "mnist/", "classify/", "train/", "write/", "tune/", "remote/")
KEPT: Final = """async () => {
  const found = [];
  for (const name of await caches.keys()) {
    for (const { url } of await (await caches.open(name)).keys()) found.push([name, url]);
  }
  return found;
}"""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def visit(page: Any, url: str) -> None:
    """Visit a page for the first time, and wait until the service worker controls it."""
    page.goto(url)
    until(page, "navigator.serviceWorker.controller !== null && crossOriginIsolated")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")


def shut(page: Any) -> None:
    """Disconnect the page. Playwright's switch does not affect service workers,
    so the caller also stops the servers."""
    page.context.set_offline(True)


def test_after_one_visit_every_page_is_there_without_a_network(page: Any, site: Path) -> None:
    with served(site) as address:
        visit(page, address)
    shut(page)
    for name in PAGES:
        page.goto(address + name)
        assert page.locator("h1").count() == 1
        assert page.evaluate("crossOriginIsolated")
        sheet = "[...document.styleSheets].every((s) => s.cssRules.length > 5)"
        assert page.evaluate(sheet), f"{name} without its style"
    page.goto(f"{address}never/opened/")
    assert page.get_by_role("heading", name="Offline").count() == 1
    page.get_by_role("link", name="The front page").click()
    page.wait_for_url(address)
    page.goto(address)
    page.reload()
    page.wait_for_selector("#facts[aria-busy=false]")


def test_a_model_that_was_run_once_runs_without_a_network(page: Any, site: Path) -> None:
    run = """async () => {
      const { load } = await import("./singe.js");
      const model = await load("./mnist/model/", { device: "wasm" });
      const { logits } = await model.run({ [model.inputs[0].name]: new Float32Array(784).fill(0.5) });
      await model.dispose();
      return [...logits.data];
    }"""
    with served(site) as address:
        visit(page, address)
        online = page.evaluate(run)
        target = json.loads((site / "mnist/model/model.json").read_text())["targets"]["wasm"]
        count = len(target["weights"]) + 1  # and the module that suits this browser; the runner stores while it goes on
        until(page, f"({KEPT})().then((all) => all.filter(([name]) => name === 'singe').length > {count})")
    shut(page)
    page.goto(address)
    assert page.evaluate(run) == online
    assert len(online) == 10


def test_what_is_kept_is_kept_once(page: Any, address: str) -> None:
    visit(page, address)
    page.evaluate("""async () => {
      const { load } = await import("./singe.js");
      for (const device of ["wasm", "webgpu"]) await (await load("./mnist/model/", { device })).dispose();
    }""")
    page.evaluate("fetch('./docs/readme.txt').then((r) => r.text())")
    until(page, f"({KEPT})().then((all) => all.some(([, url]) => url.includes('readme.txt')))")
    kept = page.evaluate(KEPT)
    of_site = [url for name, url in kept if name.startswith("singe-site")]
    assert all(re.search(r"\?sha256=[0-9a-f]{64}$", url) for url in of_site)
    assert any("docs/readme.txt" in url for url in of_site)
    assert not [url for url in of_site if re.search(r"weights-|kernels-", url)]


@pytest.mark.parametrize("folder", ["", "some/deep folder/"])
def test_a_host_without_headers_is_isolated_after_one_reload(
    page: Any, site: Path, tmp_path: Path, folder: str
) -> None:
    if folder:
        (tmp_path / folder).parent.mkdir(parents=True)
        (tmp_path / folder).symlink_to(site, target_is_directory=True)
    loads: list[str] = []
    page.on("load", lambda p: loads.append(p.url))
    with served_plainly(tmp_path if folder else site) as host:
        address = host + folder
        visit(page, address)
        page.wait_for_selector("#facts[aria-busy=false]")
        page.wait_for_timeout(500)
        assert len(loads) == 2, "the page reloads once, and no more"
        assert page.evaluate("typeof new SharedArrayBuffer(8)") == "object"
        for name in PAGES[1:]:
            page.goto(address + name)
            assert page.evaluate("crossOriginIsolated")
        assert len(loads) == len(PAGES) + 1
    shut(page)
    page.goto(address + "mnist/")
    assert page.evaluate("crossOriginIsolated")
    assert page.locator("h1").count() == 1


def test_a_page_that_cannot_be_isolated_does_not_reload_for_ever(page: Any, site: Path, tmp_path: Path) -> None:
    """In a frame of a page that is not isolated."""
    shutil.copytree(site, tmp_path / "site", ignore=shutil.ignore_patterns("python", "classify"))
    (tmp_path / "index.html").write_text("<!doctype html><title>frame</title><iframe src='site/'></iframe>")
    loads: list[str] = []
    page.on("framenavigated", lambda frame: loads.append(frame.url))
    with served_plainly(tmp_path) as host:
        page.goto(host)
        page.frame_locator("iframe").locator("#facts[aria-busy=false]").wait_for()
        page.wait_for_timeout(1500)
        assert len([url for url in loads if url.endswith("/site/")]) == 1


def test_an_update_is_taken_up_and_the_old_is_let_go(page: Any, site: Path, tmp_path: Path) -> None:
    build = demos_build()
    copy = tmp_path / "site"
    shutil.copytree(site, copy, ignore=shutil.ignore_patterns("python", "classify"))
    with served(copy) as address:
        visit(page, address)
        files = {p.relative_to(copy).as_posix(): p for p in copy.rglob("*") if p.is_file() and p.name != build.WORKER}
        changed = tmp_path / "style.css"
        changed.write_text((copy / "style.css").read_text() + "/* another */")
        build.write_site(files | {"style.css": changed}, copy)
        page.evaluate("navigator.serviceWorker.getRegistration().then((r) => r.update())")
        held = """caches.keys().then(async ([...names]) => {
          const cache = await caches.open(names.find((n) => n.startsWith("singe-site")));
          const urls = (await cache.keys()).map((r) => r.url).filter((u) => u.includes("/style.css?"));
          return urls.length === 1 && (await (await cache.match(urls[0])).text()).endsWith("/* another */");
        })"""
        until(page, held)
    shut(page)
    page.goto(address)
    assert page.evaluate("fetch('style.css').then((r) => r.text())").endswith("/* another */")


def test_bytes_that_the_build_did_not_write_are_not_kept(page: Any, site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    shutil.copytree(site, copy, ignore=shutil.ignore_patterns("python", "classify"))
    (copy / "docs/readme.txt").write_text("log in to use this network")
    with served(copy) as address:
        visit(page, address)
        assert "log in" in page.evaluate("fetch('docs/readme.txt').then((r) => r.text())")
        page.evaluate("fetch('docs/format.txt').then((r) => r.text())")
        until(page, f"({KEPT})().then((all) => all.some(([, url]) => url.includes('format.txt')))")
        assert "readme.txt" not in json.dumps(page.evaluate(KEPT))


def test_without_service_workers_the_page_works(browser: Any, site: Path) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    console = Console(page)
    with served_plainly(site) as host:
        page.goto(host)
        page.wait_for_selector("#facts[aria-busy=false]")
        assert not page.evaluate("crossOriginIsolated")
        assert "not isolated" in page.inner_text("#facts")
        assert console.complaints == [] or all("Service Worker" in c for c in console.complaints)
    context.close()
