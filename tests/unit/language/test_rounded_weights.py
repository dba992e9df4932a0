"""Weights rounded to few bits when a language model is loaded: as llama.cpp's library does, and how far the model moves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import RUNNERS
from tiny_language import tiny_gguf

import singe as sg
from singe.language.divergence import compared, divergence
from singe.tools import cli
from singe.tools.options import ROUNDED
from singe.weights.rounding import FORMS, rounded
from singe.weights.stored import present

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("form", ["q4_0", "q4_1", "q8_0"])
def test_numbers_are_those_of_ggufs_own_library(form: str) -> None:
    gguf = pytest.importorskip("gguf")
    x = np.random.default_rng(0).normal(size=(6, 96)).astype(np.float32)
    x[1, :32], x[2, 32:64] = 0, 0.25
    kind = gguf.GGMLQuantizationType[form.upper()]
    wanted = gguf.quants.dequantize(gguf.quants.quantize(x, kind), kind)
    np.testing.assert_allclose(rounded(present(x), form).read(), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("depth", [96, 256])
def test_a_packed_layer_has_the_rounded_weights(form: str, depth: int) -> None:
    x = np.random.default_rng(0).normal(size=(6, depth)).astype(np.float32)
    x[1, :32], x[2, 32:64], x[3, :32] = 0, 0.25, -0.25
    made = rounded(present(x), form)
    wanted = made.read()
    assert np.abs(wanted[1:4, :32] - x[1:4, :32]).max() < np.abs(wanted - x).max()
    assert made.packed is not None
    m = made.packed()
    layer = sg.nn.PackedLinear(depth, 6, m.bits, m.block, False, m.zero.ndim > 0)
    held = {"words": sg.tensor(m.words), "scale": sg.tensor(m.scale), "zero": sg.tensor(m.zero)}
    found = layer.replace(**held)(sg.tensor(np.eye(depth, dtype=np.float32))).numpy().T
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_scales_of_q4_k_are_integers_of_six_bits() -> None:
    """Of eight blocks together, as the least values are; and no other form of four bits errs less."""
    x = np.random.default_rng(0).standard_t(5, size=(8, 320)).astype(np.float32)
    error = {form: np.square(rounded(present(x), form).read() - x).mean() for form in FORMS}
    assert error["q8_0"] < error["q4_k"] < error["q4_1"] < error["q4_0"] < error["int4"] < 2 * error["q4_0"]
    packed = rounded(present(x), "q4_k").packed
    assert packed is not None
    m = packed()
    for values in (m.scale, m.scale * m.zero):
        for together in (values[:8], values[8:]):
            whole = together / (together.max(0) / 63)
            np.testing.assert_allclose(whole, np.rint(whole), atol=0.05)


def test_the_divergence_is_that_of_the_chances() -> None:
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
    found = compared(np.log([p, p]) + 3, np.log([q, p]))
    assert found.mean == pytest.approx((p * np.log(p / q)).sum() / 2)
    assert (found.tokens, found.same) == (2, 0.5)


def test_more_bits_move_a_model_less(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says how far; packed weights stay as they are."""
    assert tuple(FORMS) == ROUNDED
    path = tiny_gguf(tmp_path / "tiny.gguf")
    exact = sg.language.load(path, "numpy", context=64)
    eight, four = (sg.language.load(path, "numpy", context=64, weights=form) for form in ("q8_0", "q4_0"))
    text = "hello all of you, and hello again"
    assert 0 < divergence(exact, eight, text).mean < divergence(exact, four, text).mean / 10
    assert "Packed" in repr(eight.network)
    sample = tmp_path / "text.txt"
    sample.write_text(text)
    given = [
        "export",
        str(path),
        "-o",
        str(tmp_path / "out"),
        "--targets",
        "webgpu",
        "--context",
        "64",
        "--sample",
        str(sample),
    ]
    assert cli.main([*given, "--weights", "q8_0"]) == 0
    assert "q8_0 beside the weights of the file: mean KLD " in capsys.readouterr().out
    assert cli.main([*given[:-2], "--weights", "inside"]) == 2
    assert "--weights inside needs --freestanding" in capsys.readouterr().err
    with pytest.raises(sg.InputError, match="expected one of q4_0, q4_1, q4_k, q8_0, int4"):
        sg.language.load(path, weights="q3")


@RUNNERS
def test_a_packed_product_of_one_normalised_row(device_name: str) -> None:
    x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    packed = rounded(present(x), "q8_0").packed
    assert packed is not None
    m = packed()
    held = {"words": sg.tensor(m.words), "scale": sg.tensor(m.scale), "zero": sg.tensor(m.zero)}
    layer = sg.nn.PackedLinear(64, 64, m.bits, m.block, False, m.zero.ndim > 0).replace(**held)
    model = sg.Model.of(lambda row: layer(row.layer_norm(64)), {"row": (1, 64)}, device_name)
    row = np.arange(64, dtype=np.float32)[None]
    wanted = ((row - row.mean()) / np.sqrt(row.var() + 1e-5)) @ rounded(present(x), "q8_0").read().T
    np.testing.assert_allclose(model(row), wanted, atol=1e-4)
