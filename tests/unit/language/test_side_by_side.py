"""A run that adds a token to each of several conversations gives what each would get alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import RUNNERS
from tiny_language import tiny_gguf

import singe as sg
from singe.errors import InputError


@pytest.mark.parametrize(
    "case", ["llama3", pytest.param("lfm2", marks=pytest.mark.slow), pytest.param("gemma2", marks=pytest.mark.slow)]
)
@RUNNERS
def test_scores_are_those_of_each_conversation_alone(tmp_path: Path, device_name: str, case: str) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf", case), device_name, context=32, activations="float32")
    together, alone = ([llm.session() for _ in range(3)] for _ in range(2))
    for k, session in enumerate((*together, *alone)):
        session.feed([*range(5, 8 + 2 * (k % 3))])
    for tokens in ([9, 9, 9], [4, 50, 3]):
        scores = llm.side_by_side.feed(together, tokens)
        wanted = np.stack([s.feed([t]) for s, t in zip(alone, tokens, strict=True)])
        np.testing.assert_allclose(scores, wanted, atol=1e-4 * np.abs(wanted).max())
    assert [s.tokens for s in together] == [s.tokens for s in alone]
    together[0].rewind(2)
    assert together[0].feed([7]).shape == scores[0].shape


@pytest.mark.slow
@pytest.mark.parametrize("activations", ["auto", pytest.param("int8", marks=pytest.mark.full)])
def test_on_wasm_a_text_has_the_same_bits_alone_beside_others_and_in_parts(tmp_path: Path, activations: str) -> None:
    """Rounding to integers would make a last bit that differs anywhere a difference in all scores."""
    pytest.importorskip("wasmtime")
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "wasm", context=64, activations=activations)
    text = [5 + 7 * k % 40 for k in range(30)]
    whole, alone, parts = llm.session(), llm.session(), llm.session()
    wanted = np.concatenate([alone.run([token], 1) for token in text])
    np.testing.assert_array_equal(whole.run(text, 30), wanted)
    sizes = (1, 2, 3, 4, 5, 6, 9)
    cut = [text[sum(sizes[:k]) : sum(sizes[: k + 1])] for k in range(len(sizes))]
    np.testing.assert_array_equal(np.concatenate([parts.run(part, len(part)) for part in cut]), wanted)
    some = [llm.session() for _ in range(3)]
    for k, session in enumerate(some):
        session.feed(text[: k + 1])
    found = llm.side_by_side.feed(some, text[1:4])
    np.testing.assert_array_equal(found, wanted[1:4])


def test_a_conversation_that_is_full_is_refused(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=4)
    sessions = [llm.session(), llm.session()]
    for k, session in enumerate(sessions):
        session.feed([5] * (4 - k))
    with pytest.raises(InputError, match="the context is full"):
        llm.side_by_side.feed(sessions, [5, 5])


@pytest.mark.slow
def test_a_model_with_an_adapter_has_its_own_scores_side_by_side(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=16)
    llm.adapters["mine"] = sg.language.lora(llm, 2, rng=0).map_parameters(
        lambda _, t: np.full(t.shape, 0.1, np.float32)
    )
    other = llm.adapter("mine")
    sessions = [other.session(), other.session()]
    for session in sessions:
        session.feed([5, 6])
    wanted = other.logits([5, 6, 7])[-1]
    np.testing.assert_allclose(other.side_by_side.feed(sessions, [7, 7])[1], wanted, atol=1e-4)
    assert np.abs(wanted - llm.logits([5, 6, 7])[-1]).max() > 1e-2
    assert np.abs(other.embed("hello") - llm.embed("hello")).max() > 1e-4
