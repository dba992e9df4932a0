"""Every scalar word and every stored element type in WGSL, compared with the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest
from wgsl_checks import Case, check, elementwise, program_of, this_gpu

from singe.compiler.compile import compile_graph
from singe.dtypes import (
    STORED,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from singe.graph import Builder, Graph
from singe.ir import scalar as S
from singe.ir.scalar import const, select

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe_webgpu.code import wgsl
from singe_webgpu.device.native import WebGpuBackend
from singe_webgpu.target import WgslTarget


@pytest.fixture
def gpu() -> WebGpuBackend:
    return this_gpu()


F32 = np.array(
    [
        *(
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            3.7,
            -3.7,
            1e-3,
            1e3,
            -1e3,
            88.0,
            -88.0,
            100.0,
            -104.0,
            1e5,
            -1e5,
            99999.9,
            3e9,
            -3e9,
        ),
        *(2147483648.0, -2147483648.0, 1e19, -1e19, 9.3e18, 1e30, -1e30, 3e38, 1e-30, np.inf, -np.inf, np.nan),
    ],
    np.float32,
)
I32 = np.array(
    [0, 1, -1, 2, 3, -3, 7, 31, 32, 33, -33, 64, 100, -100, 65535, 65536, -65537, 2**31 - 1, -(2**31), -(2**31) + 1],
    np.int32,
)
I64 = np.concatenate([
    np.array([0, 1, -1, 2, 3, -7, 31, 32, 33, 63, 64, 65, 2**31, -(2**31), 2**32 - 1, 2**32, -(2**32), 2**53 + 1, 2**63 - 1, -(2**63)], np.int64),
    np.random.default_rng(5).integers(-(2**63), 2**63 - 1, 60, np.int64) >> np.random.default_rng(6).integers(0, 63, 60),
])  # fmt: skip
SAMPLES = {
    float32: F32,
    int32: I32,
    uint32: np.array([0, 1, 2, 3, 7, 31, 33, 2**31 - 1, 2**31, 2**32 - 1, 4294967040], np.uint32),
    int64: I64,
    uint64: np.array([0, 1, 2, 3, 7, 31, 65, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 10**19], np.uint64),
    bool_: np.array([False, True]),
}
UNARY = [w for w, row in S.WORDS.items() if row.arity == 1 and row.result != "given"]
BINARY = [w for w, row in S.WORDS.items() if row.arity == 2]
# At these the interpreter's NumPy itself is not bound by the contract: a zero divisor gives some value.
ZERO_FREE = ("div", "rem")


def _takes(word: str, d: DType) -> bool:
    return S._KINDS[S.WORDS[word].kinds](d) and S.result_of(word, d) in SAMPLES


def _result(word: str, d: DType) -> DType:
    return S.result_of(word, d)


def _pairs(word: str, d: DType) -> tuple[np.ndarray, np.ndarray]:
    values = SAMPLES[d]
    a, b = (x.ravel() for x in np.meshgrid(values, values, indexing="ij"))
    if word in ZERO_FREE and d.is_int:
        a, b = a[b != 0], b[b != 0]
    return a, b


@pytest.mark.parametrize("d", SAMPLES, ids=repr)
def test_unary_words(gpu: WebGpuBackend, d: DType) -> None:
    x = (
        np.concatenate([SAMPLES[d], np.random.default_rng(1).normal(0, 20, 500).astype(np.float32)])
        if d is float32
        else SAMPLES[d]
    )
    cases = []
    for word in UNARY:
        if _takes(word, d):
            mine = x[np.abs(np.where(np.isnan(x), 0, x)) <= 1e5] if word in ("sin", "cos") else x
            cases.append(
                (
                    elementwise(
                        word, [d], _result(word, d), mine.size, lambda a, w=word: S.make(w, (a,), _result(w, a.dtype))
                    ),
                    [mine],
                )
            )
    if d is float32:
        tiny = np.array(
            [1e-38, 1e-40, 1e-45], np.float32
        )  # devices may flush them to zero, which a logarithm would show
        cases.append((elementwise("log of tiny", [d], d, tiny.size, S.log), [tiny]))
    if cases:
        check(gpu, cases, rtol=1e-5, atol=2e-7)


@pytest.mark.parametrize("d", SAMPLES, ids=repr)
def test_binary_words(gpu: WebGpuBackend, d: DType) -> None:
    cases = []
    for word in BINARY:
        if _takes(word, d):
            a, b = _pairs(word, d)
            cases.append(
                (
                    elementwise(
                        word,
                        [d, d],
                        _result(word, d),
                        a.size,
                        lambda x, y, w=word: S.make(w, (x, y), _result(w, x.dtype)),
                    ),
                    [a, b],
                )
            )
    check(gpu, cases)


def test_casts_between_all_types(gpu: WebGpuBackend) -> None:
    cases = [
        (elementwise(f"{a}_to_{b}", [a], b, x.size, lambda v, b=b: S.cast(v, b)), [x])
        for a, x in SAMPLES.items()
        for b in SAMPLES
        if a is not b
    ]
    check(gpu, cases, rtol=0, atol=0)


def test_word_chains_keep_nan_and_infinity(gpu: WebGpuBackend) -> None:
    clip = elementwise("clip", [float32], float32, F32.size, lambda x: S.clip(x, 0.0, 6.0))
    silu = elementwise("silu", [float32], float32, F32.size, lambda x: x / (1.0 + S.exp(-x)))
    chosen = elementwise("chosen", [float32], float32, F32.size, lambda x: select(S.isnan(x), 7.0, x * np.inf))
    made = elementwise(
        "made", [float32], float32, F32.size, lambda x: select(x < 0.0, np.nan, select(S.eq(x, 0.0), -np.inf, 1e-40))
    )
    least = elementwise("least", [int32], int32, I32.size, lambda x: S.maximum(x, -(2**31)) - S.div(x, -1))
    check(gpu, [(clip, [F32]), (silu, [F32]), (chosen, [F32]), (made, [F32]), (least, [I32])])


@pytest.mark.parametrize("divisor", [255.0, 0.1, -3e20, None])
def test_quotients_are_the_nearest_numbers(gpu: WebGpuBackend, divisor: float | None) -> None:
    """To the last digit, where neither the numbers nor the quotients are near the ends of the range."""
    rng = np.random.default_rng(0)
    a, c = ((rng.normal(size=20_000) * 10.0 ** rng.integers(-18, 18, 20_000)).astype(np.float32) for _ in range(2))
    divide = S.div if divisor is None else lambda x: S.div(x, divisor)
    given = [a, c] if divisor is None else [a]
    kernel = elementwise("quotients", [float32] * len(given), float32, a.size, divide)
    program = program_of(gpu, [kernel], [[*given, np.zeros_like(a)]])
    found = gpu.download(gpu.prepare(program).run([gpu.upload(x) for x in given])[0])
    wanted = a / (c if divisor is None else np.float32(divisor))
    inside = np.abs(wanted) >= np.finfo(np.float32).tiny
    np.testing.assert_array_equal(found[inside], wanted[inside])


def test_divisors_of_zero_do_not_trap(gpu: WebGpuBackend) -> None:
    """Some value comes back, whichever; the elements beside them are right."""
    for d, values in ((int32, I32), (int64, I64)):
        for word in ZERO_FREE:
            by = np.where(np.arange(values.size) % 2, 3, 0).astype(d.numpy)
            kernel = elementwise(word, [d, d], d, values.size, lambda x, y, w=word: S.make(w, (x, y), x.dtype))
            constant = elementwise(
                word, [d], d, values.size, lambda x, w=word: S.make(w, (x, const(0, x.dtype)), x.dtype)
            )
            program = program_of(
                gpu, [kernel, constant], [[values, by, np.zeros_like(values)], [values, np.zeros_like(values)]]
            )
            found = gpu.download(gpu.prepare(program).run([gpu.upload(a) for a in (values, by, values)])[0])
            wanted = S.NUMPY[word](values[1::2], by[1::2])
            np.testing.assert_array_equal(found[1::2], wanted)


@pytest.fixture(params=["best", "plain"])
def abilities(request: pytest.FixtureRequest, gpu: WebGpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run tests with the features of the device, and again as if it had none."""
    if request.param == "plain":
        monkeypatch.setattr(gpu.gpu, "features", frozenset())


@pytest.mark.usefixtures("abilities")
def test_every_half(gpu: WebGpuBackend) -> None:
    """All float16s are read as they are; float32s are rounded to the nearest, ties to even."""
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    widen = elementwise("widen", [float16], float32, halves.size, lambda v: v)
    program = program_of(gpu, [widen], [[halves, np.zeros(halves.size, np.float32)]])
    found = gpu.download(gpu.prepare(program).run([gpu.upload(halves)])[0])
    np.testing.assert_array_equal(found, halves.astype(np.float32))
    whole = np.sort(found[np.isfinite(found)])
    between = (whole[1:] + whole[:-1]) / 2
    edges = [65519.0, 65519.996, 65520.0, 1e9, np.inf, np.nan, 6e-8, 2.0**-25, 2.0**-25 * 1.001]
    given = np.concatenate([between, np.nextafter(between, np.float32(9e9)), whole, edges, -np.array(edges)]).astype(
        np.float32
    )
    given = given[: given.size // 2 * 2 - 1]  # an odd number: the last shares its word with nothing
    narrow = elementwise("narrow", [float32], float16, given.size, lambda v: v)
    program = program_of(gpu, [narrow], [[given, np.zeros(given.size, np.float16)]])
    found = gpu.download(gpu.prepare(program).run([gpu.upload(given)])[0])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, given.astype(np.float16))


@pytest.mark.usefixtures("abilities")
def test_storage_types(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(2)
    stored = {
        bool_: rng.integers(0, 2, 37).astype(bool),
        uint8: rng.integers(0, 256, 37).astype(np.uint8),
        float16: np.concatenate([rng.normal(0, 100, 33), [np.inf, -np.inf, np.nan, 65504]]).astype(np.float16),
    }
    cases: list[Case] = []
    for d, x in stored.items():
        cases.append((elementwise(f"copy_{d}", [d], d, x.size, lambda v: v), [x]))
        cases.append((elementwise(f"twice_{d}", [d], d, x.size, lambda v: v + v if v.dtype is not bool_ else ~v), [x]))
    halves = rng.normal(0, 3, 37).astype(np.float32)
    cases.append((elementwise("narrow", [float32], float16, 37, lambda v: v), [halves]))
    cases.append((elementwise("wrap", [int32], uint8, I32.size, lambda v: v), [I32]))
    for d in (int8, int16, uint16, bfloat16, *STORED):
        codes = np.arange(256 if d.size == 1 else 65536).astype(d.held or d.name).view(d.numpy)
        floats = np.resize(F32, 1000) if d.is_float else np.arange(-500, 500).astype(np.float32)
        cases.append((elementwise(f"widen_{d}", [d], d.compute, codes.size, lambda v: v), [codes]))
        cases.append(
            (elementwise(f"store_{d}", [float32], d, floats.size, lambda v, d=d: S.cast(v, d.compute)), [floats])
        )
        stored[d] = codes
    with np.errstate(over="ignore"):
        check(gpu, cases, rtol=1e-3, atol=1e-3)
    for x in (*stored.values(), I64, np.zeros((0, 3), np.float16), np.float32(3.5)):
        back = gpu.download(gpu.upload(np.asarray(x)))
        np.testing.assert_array_equal(back, x)
        assert back.dtype == x.dtype
        assert back.shape == x.shape


def test_constants_are_within_the_range_of_their_type() -> None:
    """Read as a real number, as browsers read them, a text rounds to its number and is not beyond the largest."""
    facts = np.finfo(np.float32)
    for value in (
        facts.max,
        facts.min,
        np.nextafter(facts.max, np.float32(0)),
        facts.tiny,
        1.0,
        0.1,
        1e-38,
        16777216.0,
    ):
        text = wgsl.literal(float(value), float32)
        if text.startswith("bitcast"):
            continue
        read = float(text.removesuffix("f"))
        assert np.float32(read) == np.float32(value)
        assert abs(read) <= float(facts.max), text


def test_a_product_with_zero_is_left_to_the_device() -> None:
    """It is NaN of infinity and NaN, and its sign may be read. The driver may compute as if there were no such numbers."""
    b = Builder()
    x = b.input("x", (4,), float32)
    graph = Graph((x,), (b.div(x, b.mul(x, b.const(0.0, float32))),), ("y",))
    (text,) = compile_graph(graph, WgslTarget()).modules.values()
    (line,) = [line.strip() for line in str(text).splitlines() if "= div_f32(" in line]
    assert re.fullmatch(r"b1\[g0\] = div_f32\((\w+), \(\1 \* 0\.0f\)\);", line)
