"""Reductions by subgroups and by a tree: the same results, also for NaN and infinity,
on a device that has subgroups."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from devices import slow
from wgsl_checks import check, norm, own_gpu, reduction, softmax

from singe.compiler.compile import compile_graph
from singe.dtypes import DType, float32, int32, int64
from singe.graph import Builder, Graph
from singe.program.program import Code, choose_variant

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe_gpu.dialect import SUBGROUPS
from singe_webgpu.device.native import WebGpuBackend
from singe_webgpu.target import WgslTarget


@pytest.fixture(params=["subgroups", *slow("tree")])
def gpu(request: pytest.FixtureRequest) -> Iterator[WebGpuBackend]:
    with own_gpu() as backend:
        if request.param == "tree":
            backend.gpu.features -= {SUBGROUPS}
        elif SUBGROUPS not in backend.gpu.features:
            pytest.skip("the adapter has no subgroups")
        yield backend


def test_answers(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(0)
    cases = []
    for length in (33, 100, 1000, 5000):
        for word in ("add", "max", "min"):
            cases.append((reduction(word, float32, 3, (length,)), [rng.normal(size=3 * length).astype(np.float32)]))
            whole = rng.integers(-(2**31), 2**31, 3 * length)
            cases.append((reduction(word, int32, 3, (length,)), [whole.astype(np.int32)]))
        near = rng.uniform(0.99, 1.01, 3 * length).astype(np.float32)
        cases.append((reduction("mul", float32, 3, (length,)), [near]))
        cases.append((softmax(5, length), [rng.normal(size=5 * length).astype(np.float32)]))
        x, scale = rng.normal(size=5 * length).astype(np.float32), rng.normal(size=length).astype(np.float32)
        cases.append((norm(5, length), [x, scale]))
    check(gpu, cases, rtol=2e-5, atol=2e-5)


def test_what_is_no_number(gpu: WebGpuBackend) -> None:
    """One NaN among the numbers, wherever it stands, is the extreme; infinities are theirs."""
    cases = []
    for place in (0, 31, 77, 199):
        for special in (np.nan, np.inf, -np.inf):
            x = np.linspace(-1, 1, 200, dtype=np.float32)
            x[place] = special
            cases += [(reduction(word, float32, 1, (200,)), [x]) for word in ("max", "min", "add")]
    check(gpu, cases)


@pytest.mark.parametrize(("kind", "variants"), [(float32, 2), (int32, 2), (int64, 1)])
def test_variants(kind: DType, variants: int) -> None:
    """Subgroups cannot fold pairs of words; other folds have a variant that requires subgroups, and one that does not."""
    printed = WgslTarget().print(reduction("max", kind, 3, (1000,)), ())
    assert [v.requires for v in printed.variants] == [("subgroups",), ()][-variants:]


def test_the_variant_is_chosen_by_the_device(gpu: WebGpuBackend) -> None:
    printed = gpu.target.print(softmax(5, 1000), ())
    code = Code("softmax", "reduce", 2, printed.sizes, printed.variants)
    assert (SUBGROUPS in choose_variant(code, gpu.gpu.features).requires) == (SUBGROUPS in gpu.gpu.features)


def test_a_kernel_that_folds_pairs_and_words_folds_only_words_by_subgroups() -> None:
    """argmax folds the values, then the places of the largest; a subgroup's maximum would take the words of a pair one by one."""
    b = Builder()
    x = b.input("x", (3, 1000), int64)
    program = compile_graph(Graph((x,), (b.argmax(x, axis=1),), ("y",)), WgslTarget())
    (text,) = {str(program.modules[v.entry]) for k in program.kernels for v in k.variants if v.requires}
    assert re.findall(r"subgroup(?:Max|Min|Add|Mul)\(\w+", text) == ["subgroupMin(a1_part"]
