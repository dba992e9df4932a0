"""Encoders of each family, with each head, give what transformers gives, from a folder; and what is not known is refused by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS
from encoder_cases import CASES, MODELS, folder_of_case, inputs_of, numbers_of, read_encoders
from small_texts import folder_of, tokenizer_json

import singe as sg
from singe.errors import FormatError, InputError
from singe.language.encoders.families import FAMILIES
from singe.language.encoders.files import encoder_model
from singe.language.encoders.network import HEADS
from singe.weights.safetensors import write_safetensors

pytestmark = pytest.mark.slow
Case = Mapping[str, Any]


@pytest.fixture(scope="module")
def cases() -> Mapping[str, Mapping[str, Case]]:
    return read_encoders()["cases"]


def opened(folder: Path, head: str, device: str = "numpy") -> sg.Model:
    return encoder_model(folder / "model.safetensors", folder / "config.json", head, device, "encoder")


def check(model: sg.Model, case: Case, name: str, head: str) -> None:
    ids, mask, types = inputs_of(name, head)
    found = np.asarray(model(ids, mask, types))
    expected = np.array(case["values"], np.float32).reshape(found.shape)
    there = ... if head == "text" else mask == 1
    np.testing.assert_allclose(found[there], expected[there], atol=2e-5, rtol=2e-5)


def test_every_family_has_a_case() -> None:
    assert {case["model_type"] for case in CASES.values()} == set(FAMILIES)
    assert set(MODELS) == set(HEADS)


@RUNNERS
@pytest.mark.parametrize("name", CASES)
def test_vectors_are_those_of_transformers(
    name: str, cases: Mapping[str, Mapping[str, Case]], device_name: str, tmp_path: Path
) -> None:
    case = cases[name]["vectors"]
    check(opened(folder_of_case(tmp_path, case), "vectors", device_name), case, name, "vectors")


@pytest.mark.parametrize("name", CASES)
def test_heads_are_those_of_transformers(name: str, cases: Mapping[str, Mapping[str, Case]], tmp_path: Path) -> None:
    for head in ("text", "tokens", "words"):
        case = cases[name][head]
        folder = folder_of_case(tmp_path / head, case)
        check(opened(folder, head), case, name, head)
        other = opened(folder, "vectors")  # which take nothing of the head
        assert other(*inputs_of(name, head)).shape == (2, 40, 16)


def test_a_folder_without_a_graph_is_a_task(cases: Mapping[str, Mapping[str, Case]], tmp_path: Path) -> None:
    """Its vectors are the means of those of its tokens, and it travels like others."""
    folder = folder_of(folder_of_case(tmp_path / "folder", cases["bert"]["vectors"]))
    texts = ["c a t", "b a"]
    found = sg.task("embed", folder, device="numpy")(texts)
    model, tokenizer = opened(folder, "vectors"), sg.language.Tokenizer.of_values(tokenizer_json())
    for text, answer in zip(texts, found, strict=True):
        ids = np.array([tokenizer.encode(text)], np.int32)
        mean = np.asarray(model(ids, ids * 0 + 1, ids * 0))[0].mean(0)
        np.testing.assert_allclose(answer.vector, mean / np.linalg.norm(mean), atol=1e-5)
    sg.task("search", folder, device="numpy").index(texts).save(tmp_path / "index.singe")
    assert sg.task("search", tmp_path / "index.singe", device="numpy")("b a", top=1)[0].index == 1
    assert sg.task("embed", folder).info.preparation.length == 160  # so many positions
    with pytest.raises(InputError, match="length is 161, and the model takes at most 160"):
        sg.task("embed", folder, length=161)
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense"}]')
    for kind, problem in (
        ("embed", "a module 'Dense', expected Transformer, Pooling"),
        ("tag", r"architectures is \['BertModel'\], expected \['BertForTokenClassification'\]: the model was made for another"),
    ):  # fmt: skip
        with pytest.raises((InputError, FormatError), match=problem):
            sg.task(kind, folder)
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"weights without a config.json"):
        sg.task("embed", folder)


def test_what_is_not_known_is_refused(cases: Mapping[str, Mapping[str, Case]], tmp_path: Path) -> None:
    case = cases["bert"]["vectors"]
    for change, problem in (
        ({"model_type": "deberta-v2"}, "'deberta-v2' is not known: expected one of bert, distilbert, roberta"),
        ({"model_type": ["bert"]}, "is not known"),
        ({"hidden_size": 1 << 40}, "hidden_size is"),
        ({"hidden_size": 18}, "expected a multiple"),
        ({"num_hidden_layers": 3}, "the tensor 2.query.weight is missing"),
        ({"num_hidden_layers": 1}, "tensors that Singe does not know"),
        ({"vocab_size": 49}, "the tensor tokens.weight has the shape"),
        ({"hidden_act": "swish"}, "hidden_act is 'swish'"),
        ({"layer_norm_eps": "x"}, "layer_norm_eps is 'x'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is True"),
    ):  # fmt: skip
        folder = folder_of_case(tmp_path, case, **change)
        with pytest.raises((InputError, FormatError), match=problem):
            opened(folder, "vectors")
    with pytest.raises(FormatError, match="relative_attention_num_buckets is 512, expected 32"):
        opened(folder_of_case(tmp_path, cases["mpnet"]["vectors"], relative_attention_num_buckets=512), "vectors")
    shapes = {**case["shapes"], "encoder.layer.0.gate.weight": [2, 2]}
    write_safetensors(tmp_path / "model.safetensors", numbers_of(shapes))
    (tmp_path / "config.json").write_text(json.dumps(case["config"]))
    with pytest.raises(FormatError, match=r"'encoder.layer.0.gate.weight', which Singe does not know in bert"):
        opened(tmp_path, "vectors")
