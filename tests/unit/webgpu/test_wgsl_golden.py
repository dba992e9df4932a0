"""The WGSL of representative kernels, as text: a change shows as a diff. SINGE_UPDATE_GOLDEN=1 updates it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from gpu_kernels import KERNELS, half, matmul_bias_relu, softmax

from singe.dtypes import float16, float32, int8
from singe.shapes import size
from singe_webgpu.target import WgslTarget

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("name", KERNELS)
def test_text_is_golden(name: str) -> None:
    constants = [k for k, port in enumerate(KERNELS[name].ports) if port.dtype is int8]
    first = WgslTarget().print(KERNELS[name], constants)
    assert first is not None
    for number, printed in enumerate((first, *first.others)):
        for code, variant in zip(printed.code, printed.variants, strict=True):
            _compare("_".join((name, *[f"other{number}"] * (number > 0), *variant.requires)), code)


def test_attention_with_split_keys_is_golden() -> None:
    shape = (1, 3, 197, 64)
    first = WgslTarget().print_opaque("attention", {}, [(shape, float32)] * 3, [(shape, float32)])
    assert first is not None
    for name, printed in zip(("attention", "attention_joined"), (first, *first.others), strict=True):
        _compare(name, printed.code[-1])


def test_reductions_have_a_variant_for_subgroups() -> None:
    printed = WgslTarget().print(KERNELS["softmax"], ())
    assert [v.requires for v in printed.variants] == [("subgroups",), ()]


def test_variants_are_ordered_by_what_they_gain() -> None:
    printed = WgslTarget().print(softmax(float16), ())
    assert [v.requires for v in printed.variants] == [
        ("shader-f16", "subgroups"),
        ("shader-f16",),
        ("subgroups",),
        (),
    ]
    for variant, code in zip(printed.variants, printed.code, strict=True):
        assert re.findall(r"^enable (\w+);", code, re.MULTILINE) == [
            w.removeprefix("shader-") for w in variant.requires
        ]


def test_halves_written_singly_come_in_two_texts() -> None:
    printed = WgslTarget().print(half(), ())
    assert [v.requires for v in printed.variants] == [("shader-f16",), ()]
    assert WgslTarget().element_size(float16) == 2
    for name, code in zip(("half", "half_plain"), printed.code, strict=True):
        _compare(name, code)
    assert "enable" not in printed.code[1]


def test_products_of_halves_come_on_subgroup_matrices_too() -> None:
    printed = WgslTarget().print(matmul_bias_relu(size("N"), kind=float16), ())
    assert [v.requires for v in printed.variants] == [
        ("shader-f16", "subgroups", "subgroup-matrix-f16-f32-16x16x16"),
        (),
    ]
    for name, code in zip(("matmul_matrices", "matmul_halves"), printed.code, strict=True):
        _compare(name, code)


def test_equal_text_is_linked_once() -> None:
    target = WgslTarget()
    modules, variants = target.link([target.print(k, ()) for k in (KERNELS["relu"], softmax(), KERNELS["relu"])])
    assert list(modules) == ["w0", "w1", "w2"]
    assert [[v.entry for v in row] for row in variants] == [["w0"], ["w1", "w2"], ["w0"]]


def _compare(name: str, code: str) -> None:
    path = GOLDEN / f"{name}.wgsl"
    if os.environ.get("SINGE_UPDATE_GOLDEN"):
        path.write_text(code)
    assert code == path.read_text()
