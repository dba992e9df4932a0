"""Names that a model does not know are refused with the nearest known one: in node, in a page, and in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from flows import FLOWS
from pages import Page, node, open_page

UNKNOWN: Final = {
    "model.run({ X: x })": 'unknown input "X": did you mean x?',
    "model.run({ picture: x })": 'unknown input "picture": this model takes x',
    "model.run({ x: { data: x, dims: [2] } })": 'unknown key of input "x" "dims": did you mean shape?',
    "model.run({ x }, { output: {} })": 'unknown option "output": did you mean outputs?',
    "model.run({ x }, { copy: 1 })": 'unknown option "copy": a run takes outputs, signal',
    "model.session().step({ x }, { sginal: 1 })": 'unknown option "sginal": did you mean signal?',
    "model.run({ x }, { outputs: { counte: x } })": 'unknown output "counte": did you mean counted?',
    "model.profile({ x }, { second: 1 })": 'unknown option "second": did you mean seconds?',
    "model.session().read('cuont')": 'unknown state "cuont": did you mean count?',
    "model.session().write('rows', x)": 'unknown state "rows": this model has count, largest',
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the bundle of a model with states."""
    folder = tmp_path_factory.mktemp("names")
    FLOWS["counter"]().write(folder / "counter", "counter")
    return folder


@pytest.fixture(scope="module")
def chromium(browser: Any, root: Path) -> Iterator[Page]:
    with open_page(browser, root) as page:
        yield page


BODY: Final = f"""
const model = await load(given.url, given.options);
const x = Int32Array.of(1, 2);
const found = [];
for (const run of [{", ".join(f"() => {run}" for run in UNKNOWN)}]) found.push(await failure(run));
await model.dispose();
return found.map(({{ code, message }}) => [code, message]);
"""


def test_in_node(root: Path) -> None:
    found = node(BODY, url=(root / "counter").as_uri(), options={})
    assert found == [["input", told] for told in UNKNOWN.values()]


@pytest.mark.parametrize("worker", [False, True])
def test_in_a_page(chromium: Page, worker: bool) -> None:
    found = chromium.run(BODY, url="/bundles/counter", options={"worker": worker})
    assert found == [["input", told] for told in UNKNOWN.values()]


def test_without_the_script_that_knows_near_names(chromium: Page) -> None:
    """A page that has lost its network says which names there are."""
    chromium.page.route("**/singe-names.js", lambda route: route.abort())
    chromium.page.reload()
    found = chromium.run(BODY, url="/bundles/counter", options={})
    assert found[0] == ["input", 'unknown input "X": this model takes x']
