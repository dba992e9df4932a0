"""Transformers and decoders step by step give in a page what onnxruntime gives, quantised networks what exact arithmetic gives:
each as one bundle for all of its sizes, on WebAssembly; a few on WebGPU too."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import RUN, packed, unpacked
from pages import Page, open_page

sys.path.insert(0, str(Path(__file__).parents[2] / "conformance"))

pytest.importorskip("onnxruntime.quantization")

from onnx_devices import check_relative
from quantised_models import FORMS, NETWORKS, check_quantised, expected_quantised, quantised
from transformer_cases import BOUND, DECODERS, MODELS, Feeds, cases, file_of

import singe as sg
from singe.tools.export.bundle import export

pytestmark = pytest.mark.slow

ON_GPU: Final = {("vit",), ("gpt2",), ("cnn", "operators"), ("transformer", "dynamic")}
"""What runs on WebGPU too: in software it takes seconds to compile the shaders of each."""


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_page(browser, tmp_path_factory.mktemp("transformers")) as found:
        yield found


def runs(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Each with its devices before it."""
    rows = list(rows)
    return [("wasm", *row) for row in rows] + [("webgpu", *row) for row in rows if row in ON_GPU]


def run(page: Page, file: bytes, folder: str, device: str, feeds: list[Feeds]) -> list[Feeds]:
    export(sg.load(file, device="numpy"), page.root / folder, [device])
    given = [packed(each) for each in feeds]
    return [unpacked(each) for each in page.run(RUN, url=f"/bundles/{folder}", device=device, cases=given)]


@pytest.mark.parametrize(("device", "name"), runs([(name,) for name in (*MODELS, *DECODERS)]))
def test_transformers(page: Page, device: str, name: str) -> None:
    known = list(cases(name))
    found = run(page, file_of(name), f"{name}-{device}", device, [feeds for feeds, _ in known])
    for outputs, (_, wanted) in zip(found, known, strict=True):
        check_relative(outputs, wanted, BOUND)


@pytest.mark.parametrize(("device", "network", "form"), runs(product(NETWORKS, FORMS)))
def test_quantised_networks(page: Page, device: str, network: str, form: str, tmp_path: Path) -> None:
    plain = NETWORKS[network]()
    file = quantised(plain, form, tmp_path)
    known = expected_quantised(plain, file)
    found = run(page, file, f"{network}-{form.replace(' ', '-')}-{device}", device, [{"x": x} for x, _ in known])
    for outputs, (_, wanted) in zip(found, known, strict=True):
        (got,) = outputs.values()
        check_quantised(np.asarray(got), wanted)
