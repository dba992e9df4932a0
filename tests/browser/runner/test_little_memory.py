"""Engines that give WebAssembly little memory: Chromium with a WebAssembly.Memory that refuses, as WebKit's does on phones.

What fits runs, on fewer threads if shared memory is what lacks. What does not fit is an error that says how much was asked
for and what to do, and the model goes on with what fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from browsers import chromium
from bundles import packed
from pages import SEVERAL, Page, Served, several_cores

pytestmark = pytest.mark.slow
REFUSING: Final = """
globalThis.memories = { shared: 0, refused: 0 };
const check = (pages, shared) => {
  if (pages <= (shared ? SHARED : PLAIN)) return;
  memories.refused++;
  throw new RangeError("could not allocate memory");
};
WebAssembly.Memory = class extends WebAssembly.Memory {
  constructor(given) {
    if (given.shared) check(given.maximum, true);
    super(given);
    if (given.shared) memories.shared++;
    this.grown = given.shared ? GROWN : PLAIN;
  }
  grow(pages) {
    if (this.buffer.byteLength / 65536 + pages > this.grown) check(Infinity);
    return super.grow(pages);
  }
};
"""
"""PLAIN and SHARED: the pages that a memory may have, GROWN: those to which a shared one can really grow."""
GB: Final = 16384
"""Pages."""
LARGE: Final = 600
"""A batch of the graph "weighty", whose weights are two pages, that needs more than LITTLE pages and is worth threads."""
LITTLE: Final = 40


def case(count: int) -> dict[str, Any]:
    return packed({"x": np.random.default_rng(count).normal(size=(count, 5, 7, 6)).astype(np.float32)})


@pytest.fixture
def page(bundle: Callable[[str], Path]) -> Any:
    """A function that opens a page whose memories are limited."""
    root = bundle("weighty").parent

    @contextmanager
    def opened(*, plain: int, shared: int, grown: int = GB) -> Any:
        script = REFUSING.replace("PLAIN", str(plain)).replace("SHARED", str(shared)).replace("GROWN", str(grown))
        with closing(Served(root)) as server, chromium(()) as browser:
            tab = browser.new_page()
            tab.add_init_script(script)
            tab.goto(server.address)
            given = {"url": "/bundles/weighty", "little": case(1), "large": case(LARGE)}
            yield lambda body, **more: Page(tab, server).run(body, **given, **more)

    return opened


ANSWER: Final = """
const model = await load(given.url, { device: "wasm", threads: 2 });
const outputs = [];
for (const name of ["little", "large"]) outputs.push(pack(await model.run(unpack(given[name]))));
return { outputs, threads: model.threads, ...memories };
"""


@pytest.mark.parametrize(("most", "threads"), [(65536, SEVERAL), (GB, SEVERAL), (GB - 1, 1)])
def test_a_shared_memory_has_what_the_engine_allows(most: int, threads: int, page: Any) -> None:
    with page(plain=65536, shared=65536) as run:
        wanted = run(ANSWER)["outputs"]
    with page(plain=GB, shared=most) as run:
        done = run(ANSWER)
    assert done["outputs"] == wanted
    assert done["threads"] == threads


def test_weights_that_do_not_fit_are_refused_with_what_to_do(page: Any) -> None:
    with page(plain=1, shared=1) as run:
        found = run('return failure(() => load(given.url, { device: "wasm" }));')
    assert (found["name"], found["code"]) == ("SingeError", "device")
    asked = r'no WebAssembly memory of \d{5} bytes here, 0 are held: load the model with device: "webgpu"'
    assert re.fullmatch(asked, found["message"]), found["message"]


@pytest.mark.parametrize("threads", [1, SEVERAL])
def test_a_run_that_does_not_fit_is_refused_and_the_next_one_runs(threads: int, page: Any) -> None:
    body = """
    const model = await load(given.url, { device: "wasm", threads: given.threads });
    const run = async (name) => pack(await model.run(unpack(given[name])));
    const before = await run("little");
    const found = await failure(() => run("large"));
    return { found, same: JSON.stringify(before) === JSON.stringify(await run("little")) };
    """
    with page(plain=LITTLE, shared=65536, grown=LITTLE) as run:
        done = run(body, threads=threads)
    assert done["same"]
    message = done["found"]["message"]
    assert done["found"]["code"] == "device"
    assert re.match(
        r"no WebAssembly memory of \d{7} bytes here, \d{6} are held: run less at a time, or load", message
    ), message
    assert message.endswith("threads: 1" if threads > 1 else 'device: "webgpu"'), message


@several_cores
def test_threads_that_were_not_asked_for_give_way_to_a_run_that_needs_their_memory(page: Any) -> None:
    """A shared memory that cannot grow is left for one of a single thread, as long as the choice of threads is the runner's."""
    body = """
    const model = await load(given.url, { device: "wasm" });
    const run = async (count) => pack(await model.run({ x: { data: new Float32Array(count * 210).fill(0.5), shape: [count, 5, 7, 6] } }));
    const until = performance.now() + 20_000;
    while (!memories.shared && performance.now() < until) {
      await run(given.slow);
      await new Promise((done) => setTimeout(done, 5)); // scripts of threads arrive
    }
    const [{ y: few }, { y: many }] = [await run(given.slow), await run(2 * given.slow)];
    return { rows: [few, many].map((y) => y.shape[0]), same: atob(many.data).startsWith(atob(few.data)), ...memories };
    """
    with page(plain=GB, shared=GB, grown=1500) as run:
        done = run(body, slow=6000)
    assert done["shared"] == 1
    assert done["refused"] == 1
    assert done["rows"] == [6000, 12000]
    assert done["same"]
