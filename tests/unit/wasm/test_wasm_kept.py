"""An expensive value that two stages of a kernel need is kept in the output between them, with the same bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from devices import slow
from wasm_checks import check, execute, g

from singe.dtypes import DType, float16, float32, int32
from singe.ir import scalar as s
from singe.ir.kernel import Kernel, Port, Reduce, Store
from singe.shapes import size
from singe_wasm import printing
from singe_wasm.kernels.kept_values import keep
from singe_wasm.levels import LEVELS

N = size("N")
WIDTH = 37


def softmax(
    dear: Callable[[s.Expr], s.Expr] = s.exp, stored: DType = float32, beside: bool = False, inner: bool = True, width: int = WIDTH,
) -> Kernel:  # fmt: skip
    """Over rows; `beside`: the output is read as well."""
    i, r = g(0, N), s.var("r0", int32, width)
    at = i * width + r
    x = s.load(0, at, float32)
    most = Reduce("a0", "max", x)
    value = dear(x - most.accumulator)
    total = Reduce("a1", "add", value)
    last = value / total.accumulator if inner else total.accumulator
    last = last + s.load(1, at, float32) if beside else last
    store = Store(1, at if inner else i, last, inner)
    return Kernel((Port(float32), Port(stored, True)), (N,), (width,), (most, total, store))


CASES: dict[str, tuple[Kernel, bool]] = {
    "exponentials": (softmax(), True),
    "tangents of them": (softmax(lambda x: s.tanh(s.exp(x)) + 1.5), True),
    "what is cheap": (softmax(lambda x: x * x + 1.0), False),
    "an output that is read": (softmax(beside=True), False),
    "an output that rounds": (softmax(stored=float16), False),
    "one result for each row": (softmax(inner=False), False),
    "a row of one": (softmax(width=1), False),
}


@pytest.mark.parametrize("case", [*(case for case in CASES if case != "tangents of them"), *slow("tangents of them")])
def test_what_is_kept(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, wanted = CASES[case]
    kept = keep(kernel)
    assert (kept is not kernel) == wanted
    if not wanted:
        return
    first, dear, fold, last = kept.stages
    assert isinstance(dear, Store)
    assert first is kernel.stages[0]
    for stage in (fold, last):
        words = {e.word for e in s.postorder([stage.value])}
        assert "load" in words
        assert not words & {"exp", "tanh"}
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(rows * WIDTH).astype(np.float32) for rows in (0, 1, 5)]
    for x in given:
        check(kernel, [x, np.zeros_like(x)], {"N": x.size // WIDTH})

    def answers() -> list[np.ndarray]:
        return [
            execute(kernel, [x, np.zeros_like(x)], {"N": x.size // WIDTH}, level, ())[1]
            for x in given
            for level in LEVELS
        ]

    with_it = answers()
    monkeypatch.setattr(printing, "keep", lambda kernel: kernel)
    assert all(np.array_equal(a, b) for a, b in zip(with_it, answers(), strict=True))
