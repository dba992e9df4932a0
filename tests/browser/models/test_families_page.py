"""Families of models that people run give in a page what onnxruntime gives: each as a bundle, on WebAssembly, at each of its
sizes; a few on WebGPU too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from bundles import RUN, packed, unpacked
from pages import Page, open_page

pytest.importorskip("onnxruntime")

from networks.families import FAMILIES, check_family, expected, file_of

import singe as sg
from singe.errors import InputError
from singe.tools.export.bundle import export

pytestmark = pytest.mark.slow

ON_GPU: Final = ("roberta", "series", "mobilenet_v2", "mobilenet_v3", "convnext_v2", "lstm_tagger", "vision_language")
"""Families that run on WebGPU too: in software it takes seconds to compile their shaders."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


@pytest.fixture(scope="module")
def page(browser: Any, root: Path) -> Iterator[Page]:
    with open_page(browser, root) as found:
        yield found


def run(page: Page, name: str, device: str) -> None:
    shapes = FAMILIES[name].numbers
    cases = [(f, w) for f, w in expected(name) if all(f[k].shape == shape for k, shape in shapes.items())]
    assert cases
    model = sg.load(file_of(name), device="numpy", input_shapes=shapes)
    folder = f"{name}-{device}"
    export(model, page.root / folder, [device])
    given = [packed(feeds) for feeds, _ in cases]
    found = page.run(RUN, url=f"/bundles/{folder}", device=device, cases=given)
    for outputs, (_, wanted) in zip(found, cases, strict=True):
        check_family(name, unpacked(outputs), wanted)


def failures(names: Iterable[str], check: Callable[[str], None]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        try:
            check(name)
        except Exception as e:
            found[name] = f"{type(e).__name__}: {str(e)[:500]}"
    return found


def test_every_family_runs_in_a_page(page: Page) -> None:
    names = [name for name, family in FAMILIES.items() if not family.host]
    assert failures(names, lambda name: run(page, name, "wasm")) == {}


def test_what_a_page_lacks_is_refused_at_export(tmp_path: Path) -> None:
    for name in (name for name, family in FAMILIES.items() if family.host):
        with pytest.raises(InputError, match=r"singe\.js lacks"):
            export(sg.load(file_of(name), device="numpy"), tmp_path / name, ["wasm"])


def test_some_families_run_in_a_page_on_webgpu(page: Page) -> None:
    assert failures(ON_GPU, lambda name: run(page, name, "webgpu")) == {}
