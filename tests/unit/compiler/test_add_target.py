"""Adding a target is one spelling table: C is one, printed here and compiled with gcc."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from singe.dtypes import DType, bool_, float32, int32, int64
from singe.ir import scalar
from singe.ir.arrays.numpy import NUMPY_ARRAYS
from singe.ir.scalar import Expr
from singe.ops import ROWS, Elementwise

TYPES = {bool_: "bool", int32: "int32_t", int64: "int64_t", float32: "float"}


def call(function: str) -> Callable[..., str]:
    return lambda e, *args: f"{function}({', '.join(args)})"


def between(sign: str) -> Callable[..., str]:
    return lambda e, a, b: f"({a} {sign} {b})"


def extreme(sign: str) -> Callable[..., str]:
    """min or max as C text; NaN if either side is NaN."""
    return lambda e, a, b: f"({a} != {a} || {a} {sign} {b} ? {a} : {b})"


SPELLINGS = scalar.complete(
    "c",
    {
        "add": between("+"), "sub": between("-"), "mul": between("*"), "div": between("/"),
        "rem": lambda e, a, b: f"fmodf({a}, {b})" if e.dtype is float32 else f"({a} % {b})",
        "min": extreme("<"), "max": extreme(">"),
        "neg": lambda e, a: f"(-{a})", "abs": lambda e, a: f"({a} < 0 ? -{a} : {a})",
        "sqrt": call("sqrtf"), "exp": call("expf"), "log": call("logf"), "sin": call("sinf"), "cos": call("cosf"), "tanh": call("tanhf"),
        "floor": call("floorf"), "ceil": call("ceilf"), "round": call("rintf"), "isnan": lambda e, a: f"({a} != {a})",
        "bits": call("f2i"), "of_bits": call("u2f"),
        "eq": between("=="), "lt": between("<"), "le": between("<="),
        "and": between("&"), "or": between("|"), "xor": between("^"), "not": lambda e, a: f"(!{a})" if e.dtype is bool_ else f"(~{a})",
        "shl": between("<<"), "shr": between(">>"),
        "select": lambda e, c, a, b: f"({c} ? {a} : {b})", "cast": lambda e, a: f"({TYPES[e.dtype]}){a}",
        "rounded": lambda e, a: f"(float)(_Float16){a}",
        "const": lambda e: f"u2f({int.from_bytes(struct.pack('<f', e.value), 'little')}u)" if e.dtype is float32 else str(int(e.value)),
        "var": lambda e: e.value[0],
    },
)  # fmt: skip
"""Word ↦ a function (expression, arguments as text) ↦ text."""


def c_function(row: Elementwise, kinds: list[DType], stored: DType) -> str:
    """A C loop that applies the row to arrays."""
    params = [scalar.var(f"x{k}", d) for k, d in enumerate(kinds)]
    value = row.value(params, stored, {})

    def spell(e: Expr, args: tuple[str, ...]) -> str:
        return SPELLINGS[e.word](e, *args)

    (text,) = scalar.fold([value], spell)
    arguments = ", ".join([*(f"const {TYPES[d]} *a{k}" for k, d in enumerate(kinds)), f"{TYPES[stored]} *out"])
    loads = " ".join(f"{TYPES[d]} x{k} = a{k}[i];" for k, d in enumerate(kinds))
    return f"void row_{row.name}({arguments}, int n) {{ for (int i = 0; i < n; i++) {{ {loads} out[i] = {text}; }} }}\n"


HEAD = """#include <math.h>
#include <stdbool.h>
#include <stdint.h>
static float u2f(uint32_t bits) { union { uint32_t u; float f; } both = { bits }; return both.f; }
static int32_t f2i(float number) { union { float f; int32_t i; } both = { number }; return both.i; }
"""
PRINTED = {
    **{
        name: [float32]
        for name in (
            "relu",
            "sigmoid",
            "gelu",
            "erf",
            "softplus",
            "elu",
            "leaky_relu",
            "tan",
            "round",
            "sign",
            "hard_sigmoid",
        )
    },
    **{name: [float32, float32] for name in ("add", "div", "minimum", "less")},
    **{name: [int32, int32] for name in ("bitwise_xor", "maximum", "equal")},
    "where": [bool_, float32, float32],
    "clip": [float32, float32, float32],
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions of PRINTED, compiled."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc here")
    folder: Path = tmp_path_factory.mktemp("c")
    text = HEAD
    for name, kinds in PRINTED.items():
        row = ROWS[name]
        assert isinstance(row, Elementwise)
        text += c_function(row, kinds, row.result(kinds, {}))
    (folder / "rows.c").write_text(text)
    subprocess.run([gcc, "-O1", "-shared", "-fPIC", "-o", "rows.so", "rows.c", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "rows.so"))


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTED)
def test_rows_print_as_c(name: str, library: Any) -> None:
    row, rng = ROWS[name], np.random.default_rng(7)
    assert isinstance(row, Elementwise)
    arrays = []
    for kind in PRINTED[name]:
        values = rng.uniform(*row.domain, 200) if kind is float32 else rng.integers(-9, 9, 200)
        arrays.append((values > 0 if kind is bool_ else values).astype(kind.numpy))
        if kind is float32:
            arrays[-1][:3] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        want = row.run(NUMPY_ARRAYS, arrays, {})
    got = np.empty_like(want)
    getattr(library, f"row_{name}")(*(a.ctypes.data_as(ctypes.c_void_p) for a in [*arrays, got]), 200)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_gap_fails_at_import() -> None:
    with pytest.raises(NotImplementedError, match=r"target c: no spelling for \['tanh'\]"):
        scalar.complete("c", {k: v for k, v in SPELLINGS.items() if k != "tanh"})
    with pytest.raises(NotImplementedError, match=r"unknown words \['arctan'\]"):
        scalar.complete("c", {**SPELLINGS, "arctan": call("atanf")})
