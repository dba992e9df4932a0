"""Small random models with open dimensions agree with onnxruntime, one Program at many sizes, zero and one among them.

If onnxruntime gives a result, ours must be equal; if it refuses a model, ours may only raise a SingeError.
`pytest tests/conformance/drawn/test_beside_onnxruntime.py --drawn 25000` draws more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx_draws import NAMES, draw, example
from peer import session

import singe as sg

CHUNK = 25
WINDOWS = {"Conv", "ConvTranspose", "MaxPool", "AveragePool"}
REDUCTIONS = {"ReduceSum", "ReduceMean", "ReduceMax"}
DEVICES = pytest.mark.parametrize("device_name", ["numpy", "wasm"], indirect=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "start" in metafunc.fixturenames:
        metafunc.parametrize("start", range(0, metafunc.config.getoption("--drawn"), CHUNK))


def sizes_to_run(names: list[str], rng: np.random.Generator) -> Iterator[dict[str, int]]:
    yield {}
    yield {n: int(rng.integers(1, 12)) for n in names}
    yield dict.fromkeys(names, 1)
    yield dict.fromkeys(names, 0)
    yield dict.fromkeys(names[-1:], 0)


def differs_by_design(ops: set[str], sizes: dict[str, int], empty: bool) -> bool:
    """Cases in which onnxruntime's result is not the rule: a reduction over nothing drops the axis or is 0 for a mean,
    a window that is larger than its input has one place, and a reshape of an empty tensor takes an open length to be
    1."""
    none = empty or 0 in sizes.values()
    return none and bool(ops & (WINDOWS | REDUCTIONS | {"Reshape"}))


@DEVICES
def test_models_agree_at_every_size(device_name: str, start: int) -> None:
    for seed in range(start, start + CHUNK):
        model, shape, kinds = draw(seed)
        check(device_name, model, shape, kinds, f"seed {seed}: {', '.join(kinds)}")


def check(device_name: str, model: onnx.ModelProto, shape: tuple[int | str, ...], kinds: list[str], what: str) -> None:
    rng = np.random.default_rng(0)
    theirs, data = session(model, as_written=True), model.SerializeToString()
    ours: sg.Model | None = None  # until it loads: a model that cannot run at any size is refused at once
    names = [d for d in shape if isinstance(d, str)]
    assert set(names) <= set(NAMES)
    for sizes in sizes_to_run(names, rng):
        x = rng.standard_normal(example(shape, sizes)).astype(np.float32)
        where = f"{what} at {sizes}"
        try:
            wanted = theirs.run(None, {"x": x})[0]
        except Exception:  # onnxruntime's errors have no common class
            wanted = None
        try:
            ours = ours or sg.load(data, device=device_name)
            found = ours(x)
        except sg.SingeError as e:
            empty = re.search("larger than the padded input|must be at least 0|negative dimension", str(e)) is not None
            if "differ outside axis" in str(e) and re.search(r"[(\s]0[,)]", str(e)):
                continue  # onnxruntime leaves out empty parts of any shape
            if wanted is None or differs_by_design(set(kinds), sizes, empty):
                continue
            raise AssertionError(where) from e
        assert not ours.needed, f"{what}: {ours.needed}"
        if wanted is None or (
            found.shape != wanted.shape and differs_by_design(set(kinds), sizes, 0 in (found.size, wanted.size))
        ):
            continue
        assert found.shape == wanted.shape, where
        if not differs_by_design(set(kinds), sizes, bool(np.isnan(found).any())):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=where)
