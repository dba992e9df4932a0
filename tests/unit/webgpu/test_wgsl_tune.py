"""Autotuning: which cuts are tried, what is kept, and damaged cache files."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks.recurrent_cases import CASES, built

from singe.compiler.compile import compile_graph
from singe.compiler.target import Target
from singe.dtypes import float32
from singe.errors import DeviceError
from singe.graph import Builder, Graph
from singe.ir.kernel import Routine
from singe.model.model import Model
from singe.runtime.eager import EagerDevice
from singe.shapes import size
from singe.tools.measuring.bench import gemm, random_arrays

pytest.importorskip("wgpu", reason="wgpu is not installed")
from wgsl_checks import own_gpu

from singe.ir.contraction import Contraction, contraction
from singe_gpu.code.variants import variants
from singe_gpu.device import tune
from singe_gpu.device.timing import text_seconds
from singe_gpu.device.tune import Cache, Tuner, cache_path, wanted
from singe_gpu.kernels.products.cut_choice import print_cut, ranked
from singe_webgpu.code.dialect import WGSL
from singe_webgpu.device.native import WebGpuBackend
from singe_webgpu.target import WgslTarget


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[WebGpuBackend]:
    """A device that tunes, with a cache of its own, and a short time limit for slow adapters."""
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "singe"))
    monkeypatch.setenv(tune.VARIABLE, "1")
    monkeypatch.setattr(tune, "MAX_TIMED_CUTS", 2)
    monkeypatch.setattr(tune, "MAX_ESTIMATE_RATIO", 100.0)
    with own_gpu() as backend:
        yield backend


def answer(backend: WebGpuBackend, graph: Graph) -> np.ndarray:
    runnable = Model(graph, EagerDevice(backend)).program()
    (out,) = runnable.run(random_arrays(runnable))
    runnable.dispose()
    return out


def product(graph: Graph) -> tuple[Routine, Contraction]:
    """The only Routine of the graph, and its Contraction."""
    found: list[Routine] = []

    class Collector(WgslTarget):
        def print(self, kernel: Any, constants: Any) -> Any:
            found.append(kernel)
            return super().print(kernel, constants)

    compile_graph(graph, Collector())
    (routine,) = found
    c = contraction(routine)
    assert c is not None
    return routine, c


def kept(backend: WebGpuBackend) -> dict[str, str]:
    assert backend.tuner is not None
    assert backend.tuner.path is not None
    (cuts,) = json.loads(backend.tuner.path.read_text("utf-8"))["cuts"].values()
    return cuts


def test_a_product_is_searched_once(gpu: WebGpuBackend, tmp_path: Path) -> None:
    graph = gemm(24, 20, 28)
    first = answer(gpu, graph)
    assert gpu.tuner is not None
    assert gpu.tuner.path == cache_path() == tmp_path / "singe" / "gpu-cuts.json"
    assert gpu.tuner.searched == 1
    ((key, cut),) = kept(gpu).items()
    routine, c = product(graph)
    assert "24 × 20 · 28" in key
    assert cut in map(str, ranked(WGSL, routine, c, {}))
    second = answer(gpu, graph)
    again = WebGpuBackend()
    third = answer(again, graph)
    assert again.tuner is not None
    assert (gpu.tuner.searched, again.tuner.searched) == (1, 0)
    again.dispose()
    weight = np.random.default_rng(0).random((20, 28), np.float32)
    x = np.random.default_rng(0).random((24, 20))
    for out in (first, second, third):
        np.testing.assert_allclose(out, x.astype(np.float32) @ weight, rtol=1e-5)


def test_what_the_cache_names_is_taken(gpu: WebGpuBackend) -> None:
    """The choice follows the file, where the file names a cut that may be had."""
    routine, c = product(gemm(24, 20, 28))
    order = ranked(WGSL, routine, c, {})
    assert gpu.tuner is not None
    key = tune.cache_key(routine, c, gpu.gpu.features)
    for cut in order:
        gpu.tuner._cache.put(key, str(cut))
        assert gpu.tuner.choose(routine, c) == [(0, cut)]
    gpu.tuner._cache.put(key, "9999×1×1 by 1×1; drop table")
    assert gpu.tuner.choose(routine, c)[0][1] in order
    assert gpu.tuner.searched == 1


@pytest.mark.slow
def test_open_sizes(gpu: WebGpuBackend) -> None:
    b = Builder()
    x = b.input("x", (size("N"), 20), float32)
    y = b.matmul(x, b.const(np.ones((20, 12), np.float32)))
    compile_graph(Graph((x,), (y,), ("y",)), gpu.target)
    assert gpu.tuner is not None
    assert gpu.tuner.searched == 1


@pytest.mark.slow
def test_a_product_within_a_loop_of_open_length(gpu: WebGpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "MAX_TIMED_MULTIPLY_ADDS", 1 << 20)  # small sizes will do
    graph, _ = built("lstm", (), CASES[0][2], "float32")
    compile_graph(graph, gpu.target)
    assert gpu.tuner is not None
    assert gpu.tuner.searched


@pytest.mark.slow
def test_all_candidates_are_timed_and_answer_alike(gpu: WebGpuBackend) -> None:
    routine, c = product(gemm(40, 36, 52))
    order = ranked(WGSL, routine, c, {})
    printed = [variants(WGSL, routine.kernel.ports, partial(print_cut, routine, c, cut)) for cut in order]
    seconds = text_seconds(gpu.gpu, WGSL, routine.kernel, printed, {})
    assert len(seconds) == len(order)
    assert all(0 < s < 60 for s in seconds)
    answers = []
    for cut in order:
        gpu.target.choose = lambda *_, cut=cut: [(0, cut)]
        answers.append(answer(gpu, gemm(40, 36, 52)))
    for found, cut in zip(answers, order, strict=True):
        np.testing.assert_allclose(found, answers[0], rtol=1e-5, err_msg=str(cut))


def test_the_budget_ends_the_search(gpu: WebGpuBackend) -> None:
    assert gpu.tuner is not None
    gpu.tuner.spent = tune.SEARCH_SECONDS
    answer(gpu, gemm(24, 20, 28))
    assert gpu.tuner.searched == 0
    assert gpu.tuner.path is not None
    assert not gpu.tuner.path.exists()


def test_a_device_that_fails_leaves_the_estimate(gpu: WebGpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> list[float]:
        raise DeviceError("out of memory")

    monkeypatch.setattr(tune, "text_seconds", fails)
    routine, c = product(gemm(24, 20, 28))
    assert gpu.tuner is not None
    assert gpu.tuner.choose(routine, c) == [(0, ranked(WGSL, routine, c, {})[0])]


@pytest.mark.parametrize(("value", "on", "on_a_cpu"), [("0", False, False), ("1", True, True), ("", True, False)])
def test_the_switch(value: str, on: bool, on_a_cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tune.VARIABLE, value)
    assert (wanted(software=False), wanted(software=True)) == (on, on_a_cpu)


def test_off_is_told(gpu: WebGpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu.describe()["autotune"] == str(cache_path())
    monkeypatch.setenv(tune.VARIABLE, "0")
    off = WebGpuBackend()
    assert off.tuner is None
    assert off.describe()["autotune"] == "off"
    off.dispose()


# --- the file ---------------------------------------------------------------------------------------------------------

SPOILT = {
    "empty": b"",
    "no JSON": b"\x00\xff{",
    "a list": b"[]",
    "another format": b'{"format": 2, "cuts": {}}',
    "no cuts": b'{"format": 1}',
    "cuts that are none": b'{"format": 1, "cuts": {"d": {"product": 7}}}',
    "nested": b"[" * 100_000,
    "too large": b" " * (tune.MAX_FILE_BYTES + 1),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_spoilt_file_is_told_once_and_written_anew(
    what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cuts.json"
    path.write_bytes(SPOILT[what])
    cache = Cache(path, "d")
    with caplog.at_level(logging.WARNING, "singe"):
        assert cache.get("product") is None
        cache.put("product", "cut")
        cache.put("other", "cut")
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    assert json.loads(path.read_bytes()) == {"format": 1, "cuts": {"d": {"product": "cut", "other": "cut"}}}
    assert Cache(path, "d").get("product") == "cut"
    assert [p.name for p in tmp_path.iterdir()] == ["cuts.json"]


def test_processes_share_a_file(tmp_path: Path) -> None:
    """A write keeps the results of other processes, and the results of each device are separate."""
    path = tmp_path / "deep" / "cuts.json"
    one, two, other = Cache(path, "d"), Cache(path, "d"), Cache(path, "e")
    for cache in (one, two, other):
        assert cache.get("a") is None
    one.put("a", "x")
    two.put("b", "y")
    other.put("a", "z")
    assert json.loads(path.read_bytes())["cuts"] == {"d": {"a": "x", "b": "y"}, "e": {"a": "z"}}


def test_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cuts.json"
    monkeypatch.setattr(tune, "MAX_KEPT_PRODUCTS", 3)
    cache = Cache(path, "d")
    for number in range(5):
        cache.put(str(number), "cut")
    assert list(json.loads(path.read_bytes())["cuts"]["d"]) == ["2", "3", "4"]
    monkeypatch.setattr(tune, "MAX_FILE_BYTES", 100)
    Cache(path, "e").put("0", "cut")
    assert list(json.loads(path.read_bytes())["cuts"]) == ["e"]


def test_a_folder_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "cuts.json", "d")
    with caplog.at_level(logging.WARNING, "singe"):
        cache.put("a", "x")
        cache.put("b", "x")
    assert cache.get("a") == "x"
    assert len(caplog.records) == 1


def test_exports_do_not_depend_on_the_cache(gpu: WebGpuBackend) -> None:
    """The code generator that exports chooses by the estimates, whatever was found here."""
    routine, c = product(gemm(24, 20, 28))
    plain = _code(WgslTarget(), routine)
    assert gpu.tuner is not None
    gpu.tuner._cache.put(tune.cache_key(routine, c, gpu.gpu.features), str(ranked(WGSL, routine, c, {})[-1]))
    assert _code(gpu.target, routine) != plain
    assert _code(WgslTarget(), routine) == plain


def _code(target: Target, routine: Routine) -> str:
    printed = target.print(routine, ())
    assert printed is not None
    return str(printed.code)


@pytest.mark.slow
def test_the_tuner_takes_any_gpu(gpu: WebGpuBackend, tmp_path: Path) -> None:
    """Without timestamps launches are timed by the wall clock, in batches."""
    gpu.gpu.has_timestamps = False
    routine, c = product(gemm(8, 8, 8))
    tuner = Tuner(gpu.gpu, WGSL, "d", tmp_path / "cuts.json")
    assert tuner.choose(routine, c)[0][1] in ranked(WGSL, routine, c, {})
    assert tuner.searched == 1


def test_nothing_is_written_where_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINGE_CACHE", "off")
    assert cache_path() is None
    cache = Cache(cache_path(), "d")
    cache.put("product", "cut")
    assert cache.get("product") == "cut"
    assert Cache(cache_path(), "d").get("product") is None
