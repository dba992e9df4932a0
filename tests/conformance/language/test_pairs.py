"""Encoder–decoder networks of each family give what transformers gives, from a folder: scores, and texts by each rule of choosing."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS, runners
from pair_cases import CASES, FIXTURE, RULES, TEXT, VOCABULARY, folder_of_case, read_pairs, source_of, text_of

from singe.errors import FormatError, InputError, ShapeError
from singe.language.encoder_decoders.description import check_room, of_config
from singe.language.encoder_decoders.families import FAMILIES
from singe.language.encoder_decoders.files import PairFiles, files_in, open_pair
from singe.language.encoder_decoders.generating import BestEnded, GenerationRules, generated, rules_of
from singe.language.encoder_decoders.onnx_files import OnnxPair
from singe.language.encoder_decoders.running import WholePair
from singe.language.encoder_decoders.search import side_by_side

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cases() -> Mapping[str, Mapping[str, Any]]:
    return read_pairs()


def opened(folder: Path) -> PairFiles:
    return open_pair(files_in(folder, ()), "tiny")


def test_every_family_has_a_case() -> None:
    assert {case["model_type"] for case in CASES.values()} == set(FAMILIES)


def check_scores(name: str, case: Mapping[str, Any], folder: Path, device: str) -> None:
    """Of tokens that come together, and of those that follow one by one."""
    model = opened(folder_of_case(folder, case)).model(device)
    model.hear(source_of(name))
    texts = model.texts(1)
    ids = text_of(case["config"]["decoder_start_token_id"])
    found = [texts.add([ids[:9]], 9)[0], *(texts.add([[k]])[0] for k in ids[9:])]
    expected = np.array(case["logits"], np.float32).reshape(TEXT, VOCABULARY)
    np.testing.assert_allclose(np.concatenate(found), expected, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_transformers(name: str, cases: Mapping[str, Any], tmp_path: Path) -> None:
    check_scores(name, cases[name], tmp_path, "numpy")


@pytest.mark.full
@RUNNERS
@pytest.mark.parametrize("name", CASES)
def test_scores_are_the_same_on_all_devices(
    name: str, cases: Mapping[str, Any], device_name: str, tmp_path: Path
) -> None:
    check_scores(name, cases[name], tmp_path, device_name)


def check_texts(
    name: str, case: Mapping[str, Any], folder: Path, numbers: Iterable[int], device: str = "numpy"
) -> None:
    """By some of RULES."""
    files = opened(folder_of_case(folder, case))
    model = files.model(device)
    model.hear(source_of(name))
    for told, expected in ((RULES[k], case["texts"][k]) for k in numbers):
        rules = rules_of(files.config, {**files.generation, **told}, VOCABULARY, model.room[1], "tiny")
        (end,) = rules.ends
        text = expected[1:]
        found, whole = generated(model, rules)
        assert found == (text[: text.index(end)] if end in text else text), told
        assert whole == (end in text and (rules.last is None or len(text) < rules.most))


def test_texts_are_those_of_transformers(cases: Mapping[str, Any], tmp_path: Path) -> None:
    check_texts("marian", cases["marian"], tmp_path, (3, 6))


@pytest.mark.full
@RUNNERS
def test_texts_side_by_side_are_the_same_on_all_devices(
    cases: Mapping[str, Any], device_name: str, tmp_path: Path
) -> None:
    check_texts("t5", cases["t5"], tmp_path, (1,), device_name)


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_texts_by_all_rules_are_those_of_transformers(name: str, cases: Mapping[str, Any], tmp_path: Path) -> None:
    check_texts(name, cases[name], tmp_path, range(len(RULES)))


@pytest.mark.parametrize("name", ["marian", pytest.param("moonshine", marks=pytest.mark.full)])
def test_onnx_files_give_the_same(name: str, tmp_path: Path) -> None:
    """Networks of random weights that optimum 2.1 exported, with what transformers makes of them, token by token by one Program. The sound has
    so many positions that a mask of them would not do as one of samples."""
    with zipfile.ZipFile(FIXTURE.with_name(f"tiny_{name}_onnx.zip")) as archive:
        archive.extractall(tmp_path)
    expected = json.loads((tmp_path / "expected.json").read_text())
    files = opened(tmp_path)
    model = files.model("numpy")
    assert isinstance(model, OnnxPair)
    draws = np.random.default_rng(1)
    source = expected["source"] if "source" in expected else 0.1 * draws.normal(size=expected["samples"])
    model.hear(source)
    texts, ids = model.texts(1), expected["ids"]
    found = [texts.add([ids[:7]], 7)[0], *(texts.add([[k]])[0] for k in ids[7:])]
    np.testing.assert_allclose(np.concatenate(found), expected["logits"], atol=2e-5, rtol=2e-5)
    told = {**files.generation, "num_beams": 3, "max_length": 12}
    rules = rules_of(files.config, told, files.vocabulary, model.room[1], "tiny")
    text, whole = generated(model, rules)
    assert text == [k for k in expected["beams"][1:] if k not in rules.ends]
    assert not whole
    assert not model.later.specialised
    whole = WholePair(model.whole("tiny", 3), model.room, 3, "tiny")  # by the weights of the files, as a page has it
    whole.hear(source)
    texts = whole.texts(1)
    found = [texts.add([ids[:7]], 7)[0], *(texts.add([[k]])[0] for k in ids[7:])]
    np.testing.assert_allclose(np.concatenate(found), expected["logits"], atol=2e-5, rtol=2e-5)
    assert generated(whole, rules) == (text, False)


@pytest.mark.full
@runners("numpy", pytest.param("wasm", marks=pytest.mark.full))
def test_sounds_of_all_lengths_are_heard_by_one_program_of_onnx_files(device_name: str, tmp_path: Path) -> None:
    """They say what the network with the same weights says."""
    with zipfile.ZipFile(FIXTURE.with_name("tiny_moonshine_onnx.zip")) as archive:
        archive.extractall(tmp_path)
    model = opened(tmp_path).model(device_name)
    assert isinstance(model, OnnxPair)
    assert not model._encoder.needed
    whole = WholePair(model.whole("tiny", 1), model.room, 1, "tiny")
    for samples in (895, 16_000, 20_011):
        sound = (0.1 * np.random.default_rng(samples).standard_normal(samples)).astype(np.float32)
        found = list[np.ndarray]()
        for one in (model, whole):
            one.hear(sound)
            texts = one.texts(1)
            found.append(np.concatenate([texts.add([[k]])[0] for k in (1, 7)]))
        np.testing.assert_allclose(found[0], found[1], atol=2e-5, rtol=2e-5)
    with pytest.raises(ShapeError, match="is larger than the padded input"):
        model.hear(np.zeros(894, np.float32))


@pytest.mark.parametrize("by_column", [False, True])
def test_weights_of_8_bits_in_onnx_files_are_floats_again(by_column: bool, tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    with zipfile.ZipFile(FIXTURE.with_name("tiny_marian_onnx.zip")) as archive:
        archive.extractall(tmp_path)
    expected = json.loads((tmp_path / "expected.json").read_text())
    for name in ("encoder_model", "decoder_model_merged"):
        path = tmp_path / f"{name}.onnx"
        quantization.quantize_dynamic(path, tmp_path / f"{name}_quantized.onnx", per_channel=by_column)
        path.unlink()
    model = opened(tmp_path).model("numpy")
    whole = WholePair(model.whole("tiny", 3), model.room, 3, "tiny")
    scores = list[np.ndarray]()
    for one in (model, whole):
        one.hear(expected["source"])
        texts = one.texts(1)
        scores.append(np.concatenate([texts.add([[k]])[0] for k in expected["ids"]]))
    # The files also round what the products are given.
    np.testing.assert_allclose(scores[1], scores[0], atol=5e-3 * np.abs(scores[0]).max())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "bart"}, "'bart' is not known"),
        ({"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings is False"),
        ({"activation_function": "mish"}, "activation_function is 'mish'"),
        ({"encoder_attention_heads": 3}, "expected a multiple"),
        ({"max_position_embeddings": 10**9}, "max_position_embeddings is 1000000000"),
        ({"vocab_size": 61}, r"tokens\.weight has the shape \(60, 16\)"),
    ],
)
def test_what_is_not_known_is_refused_by_its_name(
    changes: Mapping[str, Any], message: str, cases: Mapping[str, Any], tmp_path: Path
) -> None:
    folder = folder_of_case(tmp_path, cases["marian"], **changes)
    with pytest.raises((FormatError, InputError), match=message):
        opened(folder).model("numpy")


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"do_sample": True}, "do_sample is True"), ({"repetition_penalty": 1.2}, r"repetition_penalty is 1\.2"),
        ({"num_beams": 1000}, "num_beams is 1000"), ({"bad_words_ids": [[60]]}, "bad_words_ids"), ({"eos_token_id": []}, "eos_token_id"),
        ({"length_penalty": "x"}, "length_penalty is 'x'"), ({"length_penalty": 11}, "length_penalty is 11, expected"),
        ({"early_stopping": "soon"}, "early_stopping is 'soon'"),
        ({"decoder_start_token_id": -1}, "decoder_start_token_id is -1"),
    ],
)  # fmt: skip
def test_rules_that_are_not_known_are_refused_by_their_names(told: Mapping[str, Any], message: str) -> None:
    usual = {"decoder_start_token_id": 1, "eos_token_id": 2}
    with pytest.raises((FormatError, InputError), match=message):
        rules_of({}, {**usual, **told}, VOCABULARY, 48, "tiny")


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("marian", {"d_model": 1 << 21}, "16384 positions of a width of 2097152"),
        ("t5", {"d_kv": 1 << 21}, "16384 positions of 2 heads of 2097152 in 2 layers"),
        ("t5", {"num_heads": 1 << 21}, "16384 positions of 2097152 heads of 6 in 2 layers"),
    ],
)
def test_sizes_that_would_take_all_memory_are_refused(name: str, changes: Mapping[str, Any], message: str) -> None:
    room = {"max_position_embeddings": 1 << 14, "n_positions": 1 << 14}
    with pytest.raises(FormatError, match=message):
        of_config({**CASES[name], **room, **changes}, "tiny")


def test_texts_side_by_side_whose_keys_would_take_all_memory_are_refused() -> None:
    d = of_config({**CASES["t5"], "n_positions": 1 << 14, "d_kv": 1 << 10, "num_layers": 4}, "tiny")
    check_room(d, 2)
    with pytest.raises(InputError, match=r"beams: 3 texts side by side, .* expected at most 2"):
        check_room(d, 3)


def test_texts_that_cannot_go_on_are_refused() -> None:
    class Texts:
        count = 3

        def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Sequence[int] | None = None) -> np.ndarray:
            return np.zeros((self.count, rows, 2), np.float32)

    ending = BestEnded(GenerationRules(0, frozenset((0, 1)), 4, beams=3))
    with pytest.raises(InputError, match="scores 2 tokens, each of which ends a text"):
        side_by_side(Texts(), np.zeros((3, 2)), lambda scores, said: scores, (0, 1), 4, ending)
    few = BestEnded(GenerationRules(0, frozenset((1,)), 4, beams=3))
    side_by_side(Texts(), np.zeros((3, 2)), lambda scores, said: scores, (1,), 4, few)
    assert len(few.texts) == 3
