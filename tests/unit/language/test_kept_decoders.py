"""What is compiled of a language model is kept from one process to the next, and its weights once."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from decoder_cases import config_of, read_fixture, weights_of
from tiny_language import tiny_gguf

import singe as sg
from singe.errors import InputError
from singe.files import kept
from singe.language.decoder import Decoder
from singe.language.llm import LanguageModel
from singe.weights.safetensors import write_safetensors

pytestmark = pytest.mark.slow

IDS = [5, 6, 7, 8]
LOCAL = pytest.mark.parametrize("device_name", ["numpy", "wasm"])


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "compiled"


def packed(path: Path) -> Path:
    """A model whose matrices are packed: all Programs read these in one order."""
    form = pytest.importorskip("gguf").GGMLQuantizationType.Q4_1
    return tiny_gguf(path, form=lambda _, x: form if x.ndim == 2 else None)


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("this was to be kept")


def forbid(patched: pytest.MonkeyPatch) -> None:
    """From now on nothing is compiled, and no decoder filled."""
    patched.setattr(sys.modules["singe.compiler.compile"], "compile_graph", refuse)
    patched.setattr(Decoder, "__init__", refuse)


def answers(llm: LanguageModel) -> list[np.ndarray]:
    """Of each of its Programs."""
    sessions = [llm.session(), llm.session()]
    for k, session in enumerate(sessions):
        session.feed(IDS[k:])
    return [llm.logits(IDS), llm.side_by_side.feed(sessions, [9, 10]), llm.embed([IDS])]


@LOCAL
def test_the_second_process_compiles_nothing(
    tmp_path: Path, cache_folder: Path, device_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path / "tiny.gguf")
    first = sg.language.load(path, device_name, context=32)
    wanted = answers(first)
    kept.finish_keeping()
    sizes = [entry.stat().st_size for entry in cache_folder.glob("weights-*")]
    assert sum(sizes) < 1.2 * max(sizes)
    with monkeypatch.context() as patched:
        forbid(patched)
        second = sg.language.load(path, device_name, context=32)
        for a, b in zip(answers(second), wanted, strict=True):
            np.testing.assert_array_equal(a, b)
        assert repr(second.decoder) == repr(first.decoder)
        assert second.fingerprint == first.fingerprint
    graph = second.decoder.graph()
    assert [x.name for x in graph.inputs] == [x.name for x in first.decoder.graph().inputs]
    second.adapters["mine"] = sg.language.lora(second, 2, rng=0)
    np.testing.assert_allclose(second.adapter("mine").logits(IDS), wanted[0], atol=1e-3)


@LOCAL
def test_programs_that_come_later_share_kept_weights(tmp_path: Path, cache_folder: Path, device_name: str) -> None:
    path = packed(tmp_path / "tiny.gguf")
    sg.language.load(path, device_name, context=32).logits(IDS)
    llm = sg.language.load(path, device_name, context=32)
    answers(llm)
    kept.finish_keeping()
    sizes = [entry.stat().st_size for entry in cache_folder.glob("weights-*")]
    assert sum(sizes) < 1.2 * max(sizes)


def test_another_file_and_other_options_are_compiled_anew(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_gguf(tmp_path / "tiny.gguf")
    first = sg.language.load(path, "numpy", context=32)
    wanted = first.logits(IDS)
    kept_model = sg.language.load(path, "numpy", context=32)
    with monkeypatch.context() as patched:
        forbid(patched)
        for context, activations in ((16, "auto"), (32, "float32")):
            with pytest.raises(AssertionError, match="this was to be kept"):
                sg.language.load(path, "numpy", context=context, activations=activations).logits(IDS)
    raw = bytearray(path.read_bytes())
    raw[-4:] = np.float32(0.5).tobytes()
    path.unlink()  # a mapped file must not change under those who read it
    path.write_bytes(raw)
    changed = sg.language.load(path, "numpy", context=32)
    assert np.abs(changed.logits(IDS) - wanted).max() > 0
    with pytest.raises(InputError, match="has changed since it was loaded"):
        _ = kept_model.network
    np.testing.assert_array_equal(kept_model.logits(IDS), wanted)


def test_damaged_weights_are_made_anew(tmp_path: Path, cache_folder: Path) -> None:
    path = tiny_gguf(tmp_path / "tiny.gguf")
    wanted = sg.language.load(path, "numpy", context=32).logits(IDS)
    kept.finish_keeping()
    for entry in sorted(cache_folder.glob("weights-*")):
        whole = entry.read_bytes()
        for damaged in (b"", whole[:-1] + bytes([whole[-1] ^ 1])):
            entry.unlink()
            entry.write_bytes(damaged)
            entry.chmod(0o600)
            np.testing.assert_array_equal(sg.language.load(path, "numpy", context=32).logits(IDS), wanted)
            kept.finish_keeping()
            assert entry.read_bytes() == whole


def test_each_file_of_a_folder_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = read_fixture()["cases"]["llama3"]["shapes"]
    config = config_of("llama3")
    weights = weights_of(shapes)
    write_safetensors(tmp_path / "model.safetensors", weights, 100_000)

    def logits(**changes: object) -> np.ndarray:
        (tmp_path / "config.json").write_text(json.dumps(config | changes))
        return sg.language.load(tmp_path, "numpy", context=32).logits(IDS)

    wanted = logits()
    with monkeypatch.context() as patched:
        forbid(patched)
        np.testing.assert_array_equal(logits(), wanted)
        with pytest.raises(AssertionError, match="this was to be kept"):
            logits(rms_norm_eps=1e-2)
        shards = sorted(tmp_path.glob("model-*.safetensors"))
        assert len(shards) > 1
        raw = bytearray(shards[-1].read_bytes())
        raw[-1] ^= 1
        shards[-1].unlink()
        shards[-1].write_bytes(raw)
        with pytest.raises(AssertionError, match="this was to be kept"):
            logits()


def test_what_would_fill_the_cache_is_not_kept(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setattr("singe.model.kept.MAX_ENTRY_BYTES", path.stat().st_size - 1)
    sg.language.load(path, "numpy", context=32).logits(IDS)
    kept.finish_keeping()
    assert not list(cache_folder.glob("*"))
    monkeypatch.setattr(kept, "MAX_ENTRY_BYTES", 10)
    kept.keep_entry("program", kept.entry_key(1), "large", [bytes(11)])
    kept.finish_keeping()
    assert not list(cache_folder.glob("*"))


@LOCAL
def test_weights_that_are_kept_with_a_program_are_let_go(tmp_path: Path, device_name: str) -> None:
    """The first process holds what later ones do; the file is read once more for another function."""
    llm = sg.language.load(packed(tmp_path / "tiny.gguf"), device_name, context=64)
    network = weakref.ref(llm.network)
    first = llm.logits(IDS)
    gc.collect()
    assert network() is None
    np.testing.assert_array_equal(llm.logits(IDS), first)
    assert llm.embed([IDS]).shape[0] == 1
