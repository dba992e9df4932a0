"""Folders with quantised weights give the logits of the floats that they stand for; a packer of each method is written here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from decoder_cases import ids_of, read_fixture, weights_of
from devices import RUNNERS

import singe as sg
from singe.language.files import open_model
from singe.weights.quantised import QUANTISATIONS
from singe.weights.safetensors import write_safetensors

GROUP: Final = 32
Packed = tuple[dict[str, np.ndarray], np.ndarray]
"""The tensors of a matrix by the ends of their names, and the floats (outputs, inputs) that they stand for."""


def words(q: np.ndarray, bits: int, places: tuple[int, ...] | None = None) -> np.ndarray:
    """Numbers along the last axis in words: the one at places[i] is the i-th from below."""
    each = 32 // bits
    q = np.pad(q.astype(np.int64), ((0, 0), (0, -q.shape[1] % each)))
    total = sum(q[:, place::each] << (bits * i) for i, place in enumerate(places or range(each)))
    return np.asarray(total).astype(np.uint32).view(np.int32)


def draws(n: int, k: int, bits: int, group: int = GROUP) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers (outputs, inputs), scales and zeros (outputs, groups)."""
    rng = np.random.default_rng([n, k, bits])
    q = rng.integers(0, 1 << bits, (n, k))
    scale = (rng.uniform(0.5, 1.5, (n, k // group)) / (1 << bits)).astype(np.float16)
    return q, scale, rng.integers(1, 1 << bits, (n, k // group))


def meaning(q: np.ndarray, scale: np.ndarray, zero: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    of = np.arange(q.shape[1]) // (q.shape[1] // scale.shape[1]) if of is None else of
    return ((q - zero[:, of]) * scale.astype(np.float64)[:, of]).astype(np.float32)


def gptq(n: int, k: int, bits: int, order: str = "", added: int = 1) -> Packed:
    q, scale, zero = draws(n, k, bits)
    of = np.arange(k) // GROUP
    if order == "sorted apart":
        of = np.random.default_rng(k).permutation(of)
    elif order == "uneven":
        of = np.random.default_rng(k).integers(0, k // GROUP, k)
    parts = {
        "qweight": words(q, bits).T, "qzeros": words(zero.T - added, bits), "scales": scale.T, "g_idx": of.astype(np.int32),
    }  # fmt: skip
    return parts, meaning(q, scale, zero, of)


def awq(n: int, k: int) -> Packed:
    q, scale, zero = draws(n, k, 4)
    places = (0, 2, 4, 6, 1, 3, 5, 7)
    return {"qweight": words(q.T, 4, places), "qzeros": words(zero.T, 4, places), "scales": scale.T}, meaning(
        q, scale, zero
    )


def compressed(n: int, k: int, bits: int, zeros: bool = False, group: int = GROUP) -> Packed:
    q, scale, zero = draws(n, k, bits, group or k)
    parts = {"weight_packed": words(q, bits), "weight_scale": scale, "weight_shape": np.array([n, k], np.int64)}
    if zeros:
        parts["weight_zero_point"] = words(zero.T, bits).T
    else:
        zero = np.full_like(zero, 1 << bits - 1)
    return parts, meaning(q, scale, zero)


def mlx(n: int, k: int, bits: int) -> Packed:
    q, scale, zero = draws(n, k, bits)
    bias = (-zero * scale + 0.01).astype(np.float16)
    scale[0, 0] = 0
    of = np.arange(k) // GROUP
    made = (q * scale.astype(np.float64)[:, of] + bias[:, of]).astype(np.float32)
    return {"weight": words(q, bits).view(np.uint32), "scales": scale, "biases": bias}, made


def _compressed_config(bits: int, **weights: Any) -> dict[str, Any]:
    facts = {"num_bits": bits, "type": "int", "symmetric": True, "strategy": "group", "group_size": GROUP, **weights}
    return {
        "quantization_config": {
            "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"weights": facts}},
        }
    }  # fmt: skip


def _config(kind: str, bits: int, **more: Any) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": kind, "bits": bits, "group_size": GROUP, **more}}


CASES: Final[Mapping[str, tuple[dict[str, Any], Callable[[int, int], Packed]]]] = {
    "gptq": (_config("gptq", 4), lambda n, k: gptq(n, k, 4)),
    "gptq of 8 bits": (_config("gptq", 8), lambda n, k: gptq(n, k, 8)),
    "gptq sorted apart": (_config("gptq", 4, desc_act=True), lambda n, k: gptq(n, k, 4, "sorted apart")),
    "gptq uneven": (_config("gptq", 4, desc_act=True), lambda n, k: gptq(n, k, 4, "uneven")),
    "gptq of the second format": (
        _config("gptq", 4, checkpoint_format="gptq_v2"), lambda n, k: gptq(n, k, 4, added=0),
    ),
    "awq": (_config("awq", 4, version="gemm"), awq),
    "compressed-tensors": (_compressed_config(4), lambda n, k: compressed(n, k, 4)),
    "compressed-tensors of 8 bits": (
        _compressed_config(8, strategy="channel", group_size=None), lambda n, k: compressed(n, k, 8, group=0),
    ),
    "compressed-tensors with zeros": (
        _compressed_config(4, symmetric=False), lambda n, k: compressed(n, k, 4, zeros=True),
    ),
    "mlx": ({"quantization": {"bits": 4, "group_size": GROUP}}, lambda n, k: mlx(n, k, 4)),
    "mlx of 8 bits": ({"quantization": {"bits": 8, "group_size": GROUP}}, lambda n, k: mlx(n, k, 8)),
}  # fmt: skip


@pytest.fixture(scope="module")
def case() -> Mapping[str, Any]:
    return read_fixture()["cases"]["llama"]


def folders(
    path: Path, case: Mapping[str, Any], name: str, change: Callable[[str, np.ndarray], np.ndarray] = lambda _, x: x
) -> tuple[Path, Path]:
    """One that is quantised, and one with the floats. change: is called for each tensor of the former."""
    config, pack = CASES[name]
    kept: dict[str, np.ndarray] = {}
    floats: dict[str, np.ndarray] = {}
    for key, value in weights_of(case["shapes"]).items():
        base = key.removesuffix(".weight")
        if value.ndim != 2 or not ("_proj" in key or "mlx" in name):
            kept[key] = floats[key] = value
            continue
        parts, floats[key] = pack(*value.shape)
        kept |= {f"{base}.{end}": np.ascontiguousarray(array) for end, array in parts.items()}
    for folder, more, tensors in (("packed", config, kept), ("floats", {}, floats)):
        (path / folder).mkdir()
        (path / folder / "config.json").write_text(json.dumps({**case["config"], **more}))
        tensors = {k: change(k, v) for k, v in tensors.items()} if folder == "packed" else tensors
        write_safetensors(path / folder / "model.safetensors", tensors)
    return path / "packed", path / "floats"


def test_every_method_has_a_case() -> None:
    assert {name.split()[0] for name in CASES} == set(QUANTISATIONS)


@pytest.mark.parametrize("name", CASES)
def test_weights_are_those_of_the_file(name: str, case: Mapping[str, Any], tmp_path: Path) -> None:
    """To the bit, where the method has whole zeros; they stay packed unless no order of the inputs brings groups together."""
    packed, floats = (open_model(folder, 64).tensors for folder in folders(tmp_path, case, name))
    for key, shape in {"blk.1.attn_k.weight": (32, 64), "blk.2.ffn_down.weight": (64, 96)}.items():
        found, wanted = packed.take(key, shape), floats.take(key, shape)
        assert (found.packed is None) == ("uneven" in name)
        np.testing.assert_allclose(found.read(), wanted.read(), rtol=0, atol=2e-7 if "mlx" in name else 0)


@RUNNERS
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["gptq of 8 bits", "gptq sorted apart", "gptq uneven", "awq", "compressed-tensors", "mlx"]
)
def test_logits_are_those_of_the_floats(name: str, case: Mapping[str, Any], device_name: str, tmp_path: Path) -> None:
    packed, floats = folders(tmp_path, case, name)
    ids = ids_of("llama")
    found = sg.language.load(packed, device_name, context=64, activations="float32").logits(ids)
    wanted = sg.language.load(floats, "numpy", context=64, activations="float32").logits(ids)
    np.testing.assert_allclose(found, wanted, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("gptq", {"quant_method": "bitsandbytes"}, "the quantisation 'bitsandbytes'; Singe reads gptq, awq"),
        ("gptq", {"bits": 3}, "has 3 bits in gptq, expected 4 or 8"),
        ("gptq", {"group_size": 12}, "has groups of 12, expected whole words"),
        ("gptq", {"group_size": 16}, r"scales has the shape \(\d, \d+\) of float16, expected"),
        ("gptq", {"group_size": True}, "has groups of True"),
        ("gptq", {"checkpoint_format": "marlin"}, "the checkpoint_format 'marlin'"),
        ("awq", {"version": "gemv"}, "the version 'gemv'"),
        ("compressed-tensors", {"format": "float-quantized"}, "the format 'float-quantized'"),
        ("compressed-tensors", {"transform_config": {"config_groups": {"R1": {}}}}, "the transform_config"),
        ("gptq", {"dynamic": {"-:lm_head": {}}}, "the dynamic"),
        ("compressed-tensors", {"config_groups": {}}, "has 0 config_groups"),
    ],
)
def test_what_is_unknown_is_refused_by_its_name(
    name: str, change: Mapping[str, Any], message: str, case: Mapping[str, Any], tmp_path: Path
) -> None:
    folder, _ = folders(tmp_path, case, name)
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] |= change
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(sg.FormatError, match=message):
        open_model(folder, 64)


@pytest.mark.parametrize(
    ("name", "end", "change", "message"),
    [
        ("gptq", "g_idx", lambda x: x + 1, "g_idx has numbers beyond its"),
        ("gptq", "qzeros", lambda x: x[:, 1:], "qzeros has the shape"),
        ("gptq", "qweight", lambda x: x.astype(np.float32), "qweight has the shape .* of float32"),
        ("compressed-tensors", "weight_shape", lambda x: x * 2**40, "has the weight_shape"),
        ("compressed-tensors", "weight_shape", lambda x: -x, "has the weight_shape"),
        ("mlx", "scales", lambda x: np.full_like(x, np.inf), "scales or biases that are not finite"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    name: str, end: str, change: Callable[[np.ndarray], np.ndarray], message: str, case: Mapping[str, Any], tmp_path: Path
) -> None:  # fmt: skip
    folder, _ = folders(
        tmp_path, case, name, lambda key, x: np.ascontiguousarray(change(x)) if key.endswith(end) else x
    )
    with pytest.raises(sg.FormatError, match=message):
        sg.language.load(folder, "numpy", context=64)
