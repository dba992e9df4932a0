"""Random models of one op agree with onnxruntime on every device: all ops, dtypes, attributes, open and empty dimensions.

Where onnxruntime gives a result, ours must be equal to it, or to that of ONNX's reference: then onnxruntime errs (see
OTHERS). Where it refuses a model, ours may only raise a SingeError. A run of pytest takes some seconds of each device;

    nice python tests/conformance/drawn/test_ops_beside_onnxruntime.py numpy 0 20000

runs these seeds, and prints every difference. `make nightly` runs others every day: those from SINGE_SEED on, or from a number
that the date gives.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "support")]

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from op_draws import DRAWS, Case, draw
from peer import session

import singe as sg
from singe.errors import SingeError

SECONDS: Final = 2.0
"""How long a device is tried in each run of the tests."""
NIGHTLY_SECONDS: Final = 60.0
"""And by night."""
TOLERANCE: Final = {2: 2e-2, 4: 1e-3, 8: 1e-6}
"""Bytes of a float ↦ the allowed error, absolute and relative."""
OTHERS: Final[Mapping[str, str]] = {
    "Reduce": "over an empty tensor it drops axes that are not reduced, or keeps those that are",
    "Arg": "over an empty tensor it keeps the axis",
    "Resize": "it cuts wrong regions, and rounds places that are whole numbers",
}
"""The beginnings of ops' names ↦ what onnxruntime gives that the reference and Singe do not."""


def close(got: Any, want: Any) -> bool:
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if got.dtype.kind != "f":
        return np.array_equal(got, want)
    allowed = TOLERANCE[got.dtype.itemsize]
    return np.allclose(got, want, rtol=allowed, atol=allowed, equal_nan=True)


def results(case: Case, device_name: str) -> Sequence[np.ndarray]:
    model = sg.load(case.model.SerializeToString(), device=device_name)
    program = model.program({name: x.shape for name, x in case.feed.items()}, case.feed)
    return program.run([case.feed[x.name] for x in program.inputs])


def difference(case: Case, device_name: str) -> str:
    """What is wrong with a case; "" if nothing is."""
    try:
        wanted = session(case.model, as_written=True).run(None, dict(case.feed))
    except Exception:  # onnxruntime's errors have no common class
        wanted = None
    try:
        found = results(case, device_name)
    except SingeError as e:
        return "" if wanted is None else f"refused: {e}"
    if wanted is None or all(map(close, found, wanted)):
        return ""
    if case.op.startswith(tuple(OTHERS)):
        with warnings.catch_warnings(action="ignore"):  # of the mean of nothing
            reference = ReferenceEvaluator(case.model).run(None, dict(case.feed))
        # It sums squares of int32 in int64.
        if all(close(a, np.asarray(b, w.dtype)) for a, b, w in zip(found, reference, wanted, strict=True)):
            return ""
    shown = (f"{a.dtype}{a.shape} {a.ravel()[:5]}, expected {b.dtype}{b.shape} {b.ravel()[:5]}"
             for a, b in zip(found, wanted, strict=True) if not close(a, b))  # fmt: skip
    return "; ".join(shown)


def run_from(seed: int, seconds: float, device_name: str) -> None:
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        case = draw(seed)
        assert not difference(case, device_name), f"seed {seed}: {case.text}"
        seed += 1


@pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
def test_ops_agree(device_name: str) -> None:
    run_from(0, SECONDS, device_name)


def seed_of_today() -> int:
    """SINGE_SEED, or the date as in 20260131, times a million."""
    return int(os.environ.get("SINGE_SEED") or f"{datetime.now(UTC):%Y%m%d}000000")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
def test_other_ops_agree_each_night(device_name: str) -> None:
    first = seed_of_today()
    print(f"the first seed is {first}: SINGE_SEED={first} runs these cases again")
    run_from(first, NIGHTLY_SECONDS, device_name)


def test_every_op_is_drawn() -> None:
    assert {draw(seed).op for seed in range(1500)} == set(DRAWS)


def main() -> int:
    device_name, first, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    wrong: Counter[str] = Counter()
    for seed in range(first, end):
        case = draw(seed)
        try:
            text = difference(case, device_name)
        except Exception as e:
            text = f"{type(e).__name__}: {e}"
        if text:
            wrong[case.op] += 1
            print(f"{case.text}: {text:.300}", flush=True)
    print(f"{wrong.total()} of {end - first} differ: {dict(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
