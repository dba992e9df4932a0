"""Cache Storage: each byte is fetched once, damaged files again, unused files are removed, and offline works."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from browsers import plain
from bundles import assert_close, packed, small_case, write_bundle
from changed import changed_graph
from pages import Page, open_page

RUN: Final = (
    "return (await answer(load, given.url, { device: given.device, ...given.options }, given.cases)).outputs[0];"
)
KEYS: Final = """
const cache = await caches.open("singe");
return (await cache.keys()).map(({ url }) => url);
"""


@pytest.fixture
def page(browser: Any, bundle: Callable[[str], Path], tmp_path: Path) -> Iterator[Page]:
    """A page with empty storage, and a bundle of the test's own."""
    shutil.copytree(bundle("small"), tmp_path / "small")
    with open_page(browser, tmp_path) as found:
        yield found


@pytest.fixture(params=["wasm", "webgpu"])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


def loaded(page: Page, device: str, name: str = "small", **options: Any) -> None:
    """Load, run and compare; then wait until the fetched files are in the cache."""
    inputs, expected = small_case(5)
    done = page.run(RUN, url=f"/bundles/{name}", device=device, options=options, cases=[packed(inputs)])
    assert_close(done, expected)
    named = hashes(page, name, device)
    if options.get("cache", True):
        page.run(
            """
            const deadline = performance.now() + 10_000;
            for (;;) {
              const kept = (await (await caches.open("singe")).keys()).map(({ url }) => url);
              if (given.named.every((hash) => kept.some((url) => url.endsWith(hash)))) return;
              if (performance.now() > deadline) throw new Error(`kept: ${kept}`);
              await new Promise((done) => setTimeout(done, 20));
            }
            """,
            named=named,
        )


def hashes(page: Page, name: str, device: str) -> list[str]:
    """The hashes of the files that a load for a device needs."""
    target = json.loads((page.root / name / "model.json").read_text())["targets"][device]
    modules = target["modules"]
    files = [*target["weights"], modules if "file" in modules else modules["relaxed"]]
    return [entry["sha256"] for entry in files]


def test_every_byte_of_a_folder_is_fetched_once(page: Page, device: str) -> None:
    loaded(page, device)
    assert page.server.files()
    page.page.reload()
    loaded(page, device)
    assert page.server.files() == []
    shutil.copytree(page.root / "small", page.root / "elsewhere")
    loaded(page, device, "elsewhere")
    assert len(page.server.files()) == len(hashes(page, "small", device)), "no folder answers for another"
    keys = page.run(KEYS)
    for folder in ("small", "elsewhere"):
        for named in hashes(page, "small", device):
            assert any(f"/{folder}/" in key and key.endswith(f"?sha256={named}") for key in keys)


def test_a_load_right_after_another_waits_for_what_is_being_kept(page: Page, device: str) -> None:
    """The disk is slower than the load: without the wait, the second load would find nothing and fetch again."""
    slow = """
    const put = Cache.prototype.put;
    Cache.prototype.put = async function (...given) {
      await new Promise((done) => setTimeout(done, 300));
      return put.apply(this, given);
    };
    for (let k = 0; k < 2; k++) await (await load("/bundles/small", { device: given.device })).dispose();
    """
    page.run(slow, device=device)
    assert len(page.server.files()) == len(hashes(page, "small", device))


def test_a_file_that_breaks_off_goes_on_where_it_ended(page: Page, device: str) -> None:
    """It is kept whole. Where the server gives no parts, the error says which file cannot be read."""
    page.server.breaks = "whole"
    failed = page.failed("await load('/bundles/small', { device: given.device, cache: false });", device=device)
    assert failed["code"] == "network"
    assert "cannot read" in failed["message"]
    assert ".bin" in failed["message"]
    page.server.breaks = "ranges"
    loaded(page, device)
    page.server.files()
    page.page.reload()
    loaded(page, device)
    assert page.server.files() == []


def test_progress_counts_what_the_cache_gives(page: Page, device: str) -> None:
    for _ in range(2):
        progress = page.run(
            "return (await answer(load, '/bundles/small', { device: given.device }, [])).progress;", device=device
        )
        assert progress[-1]["phase"] == "ready"
        assert progress[-1]["loaded"] == progress[-1]["total"] > 0


def test_no_cache_when_told_so(page: Page, device: str) -> None:
    loaded(page, device, cache=False)
    first = sorted(page.server.files())
    page.page.reload()
    loaded(page, device, cache=False)
    assert sorted(page.server.files()) == first
    assert page.run("return caches.keys();") == []


def test_damaged_entries_are_fetched_again(page: Page, device: str) -> None:
    loaded(page, device)
    page.server.files()
    spoil = """
    const cache = await caches.open("singe");
    for (const { url } of await cache.keys()) if (url.includes("sha256")) await cache.put(url, new Response(given.text));
    """
    for text in ("", "x" * 16, "x" * 10_000_000):
        page.run(spoil, text=text)
        page.page.reload()
        loaded(page, device)
        assert len(page.server.files()) == len(hashes(page, "small", device))
        page.page.reload()
        loaded(page, device)
        assert page.server.files() == []


@pytest.mark.parametrize("cache", [True, False])
def test_a_new_export_is_loaded_although_the_browser_holds_the_files_of_the_old(
    page: Page, device: str, cache: bool
) -> None:
    """A host that says max-age of all files: their names stay the same."""
    page.server.headers["Cache-Control"] = "max-age=3600"
    run = """
    const { progress } = await answer(load, "/bundles/small", { device: given.device, cache: given.cache }, []);
    const { loaded, total } = progress.at(-1);
    return loaded === total;
    """
    assert page.run(run, device=device, cache=cache)
    page.server.files()
    folder = page.root / "small"
    shutil.rmtree(folder)
    write_bundle(changed_graph(), folder, "small")
    later = time.time() + 10
    os.utime(folder / "model.json", (later, later))  # the server's dates are whole seconds
    page.page.reload()
    assert page.run(run, device=device, cache=cache)
    assert len(page.server.files()) == len(hashes(page, "small", device))


def test_a_file_with_a_wrong_hash_is_not_kept(page: Page, device: str) -> None:
    for path in (page.root / "small").glob("weights*"):
        path.write_bytes(bytes(path.stat().st_size))
    for _ in range(2):
        found = page.failed("await load('/bundles/small', { device: given.device });", device=device)
        assert found["code"] == "format"
    weights = json.loads((page.root / "small" / "model.json").read_text())["targets"][device]["weights"]
    for _ in range(50):
        kept = [key for key in page.run(KEYS) if key.endswith(tuple(w["sha256"] for w in weights))]
        if not kept:
            break
        page.page.wait_for_timeout(100)
    assert not kept


def test_offline(page: Page, device: str) -> None:
    loaded(page, device)
    page.server.close()
    loaded(page, device)
    assert page.failed("await load('/bundles/never', {});")["code"] == "network"


def test_a_server_that_answers_with_an_error_is_not_offline(page: Page, device: str) -> None:
    loaded(page, device)
    (page.root / "small" / "model.json").unlink()
    assert page.failed("await load('/bundles/small', {});")["code"] == "network"


def test_what_no_bundle_names_is_removed(page: Page, device: str) -> None:
    shutil.copytree(page.root / "small", page.root / "other")
    loaded(page, device)
    loaded(page, device, "other")
    before = page.run(KEYS)
    shutil.rmtree(page.root / "small")
    write_bundle(changed_graph(), page.root / "small", "small")
    run = "return (await answer(load, '/bundles/small', { device: given.device }, [])).device;"
    assert page.run(run, device=device) == device
    page.page.wait_for_timeout(300)
    kept = page.run(KEYS)
    others = {key for key in before if "/other/" in key}
    assert others
    assert others <= set(kept), "the other bundle still names the old files"
    shutil.rmtree(page.root / "other")
    write_bundle(changed_graph(), page.root / "other", "other")
    assert page.run(run.replace("small", "other"), device=device) == device
    page.page.wait_for_timeout(300)
    left = page.run(KEYS)
    new = hashes(page, "small", device)
    assert sorted(k.rsplit("=", 1)[1] for k in left if "sha256" in k) == sorted([*new, *new])


def test_storage_that_fails_is_done_without(page: Page, device: str) -> None:
    faults = {
        "absent": "delete Object.getPrototypeOf(globalThis).caches; delete globalThis.caches;",
        "forbidden": "CacheStorage.prototype.open = () => Promise.reject(new DOMException('no', 'SecurityError'));",
        "full": "Cache.prototype.put = () => Promise.reject(new DOMException('full', 'QuotaExceededError'));",
    }
    inputs, expected = small_case(5)
    for fault in faults.values():
        page.page.reload()
        done = page.run(fault + RUN, url="/bundles/small", device=device, cases=[packed(inputs)])
        assert_close(done, expected)


def test_a_sandboxed_frame_has_none(page: Page, bundle: Callable[[str], Path]) -> None:
    """Of an opaque origin: no storage, and a bundle that its server lets everyone read."""
    page.server.pages["/frame"] = (
        f"""<!doctype html><script type=module>
        import {{ load }} from "{page.server.address}static/singe.js";
        const model = await load("{page.server.address}bundles/small", {{ device: "wasm" }});
        parent.postMessage(model.device, "*");
        </script>""",
        {},
    )
    body = """
    const frame = Object.assign(document.createElement("iframe"), { src: "/frame", sandbox: "allow-scripts" });
    const told = new Promise((done) => addEventListener("message", ({ data }) => done(data)));
    document.body.append(frame);
    return Promise.race([told, new Promise((_, fail) => setTimeout(fail, 10_000, new Error("nothing came")))]);
    """
    assert page.run(body) == "wasm"


def test_a_model_rebuilt_after_a_lost_device_asks_nothing(page: Page) -> None:
    inputs, expected = small_case(4)
    loaded(page, "webgpu")
    page.server.files()
    body = """
    const model = await load("/bundles/small", { device: "webgpu" });
    model.gpuDevice.destroy();
    const outputs = await model.run(unpack(given.tensors));
    await model.dispose();
    return pack(outputs);
    """
    assert_close(page.run(body, tensors=packed(inputs)), expected)
    assert page.server.files() == []


def test_what_is_kept_is_read_to_its_end_while_garbage_is_collected(
    browser: Any, bundle: Callable[[str], Path]
) -> None:
    body = """
    const collecting = setInterval(() => gc(), 1);
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error("it never loads")), 30_000));
    for (let k = 0; k < 5; k++) {
      const model = await Promise.race([load("/bundles/mnist_cnn", { device: "wasm" }), late]);
      await model.dispose();
    }
    clearInterval(collecting);
    """
    with plain(browser, "--js-flags=--expose-gc") as other, open_page(other, bundle("mnist_cnn").parent) as page:
        page.run(body)
        needed = json.loads((bundle("mnist_cnn") / "model.json").read_text())["targets"]["wasm"]["weights"]
        fetched = [path for path in page.asked if path.endswith(".bin")]
        assert len(fetched) == len(needed), "the rest came from the cache"
