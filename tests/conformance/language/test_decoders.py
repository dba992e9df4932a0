"""Decoders of each architecture give the logits of transformers, from folders and from GGUF files, in one run and token by token."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoder_cases import CASES, ids_of, read_fixture, weights_of
from devices import RUNNERS
from gguf_decoders import write_gguf

import singe as sg
from singe.language import LanguageModel
from singe.language.architectures import ARCHITECTURES, MODEL_TYPES
from singe.weights.gguf.packed import PARTS
from singe.weights.safetensors import write_safetensors

MAX_KLD = 1e-9
Case = Mapping[str, Any]
Opened = Callable[..., LanguageModel]


@pytest.fixture(scope="module")
def cases() -> Mapping[str, Case]:
    return read_fixture()["cases"]


def folder(path: Path, case: Case, **changes: Any) -> Path:
    path.joinpath("config.json").write_text(json.dumps({**case["config"], **changes}))
    write_safetensors(path / "model.safetensors", weights_of(case["shapes"]))
    return path


def divergences(logits: np.ndarray, wanted: Any) -> np.ndarray:
    """The Kullback-Leibler divergence of each position."""
    theirs, reference = (
        x - np.logaddexp.reduce(x, -1, keepdims=True) for x in (np.asarray(y, np.float64) for y in (logits, wanted))
    )
    assert (theirs.argmax(-1) == reference.argmax(-1)).all()
    return (np.exp(reference) * (reference - theirs)).sum(-1)


def test_every_architecture_has_a_case() -> None:
    assert {MODEL_TYPES[case["model_type"]].name for case in CASES.values()} == set(ARCHITECTURES)


@RUNNERS
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_transformers(
    name: str, cases: Mapping[str, Case], device_name: str, tmp_path: Path
) -> None:
    llm = sg.language.load(folder(tmp_path, cases[name]), device_name, context=64, activations="float32")
    ids = ids_of(name)
    whole = llm.logits(ids)
    assert divergences(whole, cases[name]["logits"]).max() < MAX_KLD
    session = llm.session()
    one_by_one = np.concatenate([session.run(part, len(part)) for part in (ids[:5], *([i] for i in ids[5:9]), ids[9:])])
    np.testing.assert_allclose(one_by_one, whole, atol=3e-4)


@RUNNERS
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "bound"),
    [("llama3", None, 1e-5), ("gemma3", None, 1e-5), ("lfm2", None, 1e-5), ("qwen3", "int8", 1e-3)],
)
def test_keys_and_values_are_held_in_half_the_memory(
    name: str, kind: str | None, bound: float, cases: Mapping[str, Case], device_name: str, tmp_path: Path
) -> None:
    """In float16 by default: a text read at once and one read token by token see the same rounded ones. In eight bits, there
    are scales beside."""
    path, ids = folder(tmp_path, cases[name]), ids_of(name)
    llm, exact = (sg.language.load(path, device_name, context=64, cache_dtype=k) for k in (kind, "float32"))
    whole = llm.logits(ids)
    assert 0 < divergences(whole, cases[name]["logits"]).mean() < bound
    session = llm.session()
    one_by_one = np.concatenate([session.run([i], 1) for i in ids])
    np.testing.assert_allclose(one_by_one, whole, atol=1e-2)
    held, size = ("float16", 2) if kind is None else ("int32", 9 / 8)
    states, floats = (
        [x for x in model.decoder.states if x.name.startswith(("keys", "values"))] for model in (llm, exact)
    )
    assert {x.dtype.name for x in states} == {held}
    assert exact.session_bytes - llm.session_bytes == sum(math.prod(x.shape or ()) for x in floats) * (4 - size)
    session.save(tmp_path / "s.safetensors")
    other = llm.session()
    other.load(tmp_path / "s.safetensors")
    np.testing.assert_array_equal(other.run([7], 1), session.run([7], 1))
    with pytest.raises(sg.FormatError, match=f"is {held}"):
        exact.session().load(tmp_path / "s.safetensors")


def test_heads_of_other_sizes_are_not_held_in_eight_bits(cases: Mapping[str, Case], tmp_path: Path) -> None:
    path = folder(tmp_path, cases["llama3"])
    with pytest.raises(
        sg.InputError, match='"int8" takes heads of a multiple of 32 numbers, and keys of this model have 16'
    ):
        sg.language.load(path, "numpy", context=64, cache_dtype="int8")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_gguf_files_give_the_same(name: str, cases: Mapping[str, Case], tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    case = cases[name]
    write_gguf(tmp_path / "m.gguf", case["config"], weights_of(case["shapes"]))
    llm = sg.language.load(tmp_path / "m.gguf", "numpy", context=64, activations="float32")
    assert divergences(llm.logits(ids_of(name)), case["logits"]).max() < MAX_KLD


@RUNNERS
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Q4_1", "Q8_0"])
def test_packed_weights_count_as_they_are(
    kind: str, cases: Mapping[str, Case], device_name: str, tmp_path: Path
) -> None:
    """Weights in blocks give what the floats that they stand for give, the tied table of tokens included."""
    gguf = pytest.importorskip("gguf")
    case, form = cases["llama3"], gguf.GGMLQuantizationType[kind]
    assert kind in PARTS
    write_gguf(tmp_path / "packed.gguf", case["config"], weights_of(case["shapes"]), lambda name, x: form)
    arrays = sg.read_weights(tmp_path / "packed.gguf")
    llm = sg.language.load(tmp_path / "packed.gguf", device_name, context=64, activations="float32")
    floats = {k: np.asarray(v) for k, v in arrays.items()}
    writer = gguf.GGUFWriter(str(tmp_path / "floats.gguf"), "llama")
    for key, value in arrays.metadata.items():
        if key.startswith("llama."):
            (writer.add_uint32 if isinstance(value, int) else writer.add_float32)(key, value)
    for k, v in floats.items():
        writer.add_tensor(k, v)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    same = sg.language.load(tmp_path / "floats.gguf", "numpy", context=64, activations="float32")
    ids = ids_of("llama3")
    assert divergences(llm.logits(ids), same.logits(ids)).max() < MAX_KLD
    faster = sg.language.load(tmp_path / "packed.gguf", device_name, context=64)
    assert divergences(faster.logits(ids), same.logits(ids)).max() < 1e-4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mamba"}, "model_type is 'mamba', which Singe does not know"),
        ({"rope_scaling": {"rope_type": "ntk", "factor": 2.0}}, "the rotations are scaled by 'ntk'"),
        ({"hidden_act": "relu"}, "the activation 'relu'"),
        ({"sliding_window": 8}, "a window of 8 positions"),
        ({"quantization_config": {"quant_method": "fp8"}}, "the quantisation 'fp8'"),
        ({"hidden_size": 10**12}, "hidden_size is 1000000000000, expected a whole number from 1"),
        ({"num_hidden_layers": 2}, "tensors that Singe does not know in this architecture: blk.2"),
        ({"num_hidden_layers": 4}, "the tensor blk.3.attn_q.weight is missing"),
        ({"num_attention_heads": 3}, "3 heads of queries and 2 of keys"),
        ({"hidden_size": 128}, r"token_embd.weight has the shape \(96, 64\), expected \(96, 128\)"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps is 'small', expected a finite number"),
        ({"rope_theta": -1.0}, "rope_theta is -1.0, expected a number above 0"),
    ],
)
def test_what_is_unknown_is_refused_by_its_name(
    changes: Mapping[str, Any], message: str, cases: Mapping[str, Case], tmp_path: Path
) -> None:
    with pytest.raises(sg.FormatError, match=message):
        sg.language.load(folder(tmp_path, cases["llama"], **changes), "numpy", context=64)


def test_files_that_are_not_there_are_told(cases: Mapping[str, Case], tmp_path: Path) -> None:
    with pytest.raises(sg.InputError, match=r"Qwen/Qwen3-0.6B: there is no such file or folder here; give a GGUF file"):
        sg.language.load("Qwen/Qwen3-0.6B", "numpy")
    path = folder(tmp_path, cases["llama"])
    (path / "model.safetensors").rename(path / "pytorch_model.bin")
    with pytest.raises(sg.FormatError, match=r"pytorch_model.bin is a pickle, which could run code"):
        sg.language.load(path, "numpy")


@pytest.mark.slow
def test_packed_weights_take_rows_in_integers_unless_floats_are_asked_for(
    cases: Mapping[str, Case], tmp_path: Path
) -> None:
    gguf = pytest.importorskip("gguf")
    case = cases["llama3"]
    write_gguf(
        tmp_path / "m.gguf",
        case["config"],
        weights_of(case["shapes"]),
        lambda name, x: gguf.GGMLQuantizationType.Q4_1,
    )
    ids = ids_of("llama3")
    exact, rounded, short = (
        sg.language.load(tmp_path / "m.gguf", "wasm", context=64, activations=kind).logits(ids)
        for kind in ("float32", "auto", "int8")
    )
    assert 0 < np.abs(rounded - exact).max() < 1e-2 < np.abs(short - exact).max() < 1
    with pytest.raises(sg.InputError, match="activations: got 'int3'"):
        sg.language.load(tmp_path / "m.gguf", "numpy", context=64, activations="int3")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sg.InputError, match=r"without config\.json; give a folder of Hugging Face, .*or a GGUF file"):
        sg.language.load(tmp_path, "numpy")
