"""Tasks that take texts: vectors are those of the tokens, however many texts there are at once, and nothing of a long text is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_texts import folder_of, token_vectors, vector_of

import singe as sg
from singe.errors import FormatError, InputError
from singe.tasks import TaskSpec, TextInput

pytestmark = pytest.mark.slow

TEXTS = ("the cat sat on the mat.", "Dogs", "", "日本 cats, é", "the dog sat on the cat. " * 3)


def embedder(folder: Path, **options: Any) -> Any:
    return sg.task("embed", token_vectors(), beside=folder_of(folder), **options)


def test_texts_become_the_vectors_of_their_tokens(tmp_path: Path, on: sg.Device) -> None:
    embed = sg.task("embed", token_vectors(), beside=folder_of(tmp_path), device=on)
    together = embed(list(TEXTS))
    for text, found in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(found.vector, vector_of(text), atol=2e-6)
        np.testing.assert_allclose(embed(text).vector, found.vector, atol=1e-6)


def test_a_long_text_is_read_in_windows(tmp_path: Path) -> None:
    embed = embedder(tmp_path, length=12, overlap=2)
    words = "the cat sat on the mat . dogs " * 4
    found = embed(words)
    assert found.windows == 5
    assert "of 5 windows" in repr(found)
    assert embed("the cat sat on the mat").windows == 1
    other = embed(words + "zzzzzz zzzzzz")  # its end counts
    assert found.similarity(other) < 0.999


def test_dimensions_and_prompts_are_those_of_the_call(tmp_path: Path) -> None:
    embed = embedder(tmp_path, prompts={"query": "dog: ", "passage": "cat: "}, prompt="passage")
    whole = vector_of("cat: mat")
    np.testing.assert_allclose(embed("mat").vector, whole, atol=2e-6)
    np.testing.assert_allclose(embed("mat", prompt="query").vector, vector_of("dog: mat"), atol=2e-6)
    short = whole[:3] / np.linalg.norm(whole[:3])
    np.testing.assert_allclose(embed("mat", dimensions=3).vector, short, atol=2e-6)
    for settings, problem in ({"dimensions": 9}, "of the 8 numbers"), ({"prompt": "x"}, "one of query, passage"):
        with pytest.raises(InputError, match=problem):
            embed("mat", **settings)


def test_files_beside_a_model_say_how_it_reads(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        config={"max_position_embeddings": 66, "model_type": "xlm-roberta"},
        tokenizer_config={"model_max_length": 10**30},
        config_sentence_transformers={"prompts": {"query": "q: "}, "default_prompt_name": "query"},
    )
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}'
    )
    info = sg.task("embed", token_vectors(), beside=folder).info
    assert (info.head, info.preparation.length, info.preparation.prompt) == ("first", 64, "query")
    assert sg.task("embed", token_vectors(), beside=folder, head="max", length=32).info.head == "max"


def test_the_tokenizer_travels_in_a_record(tmp_path: Path) -> None:
    embed = embedder(tmp_path / "files", prompts={"query": "dog: "})
    embed.save(tmp_path / "embed.singe")
    again = sg.task("embed", tmp_path / "embed.singe", device="numpy")
    assert again.info == embed.info
    np.testing.assert_array_equal(again("the mat").vector, embed("the mat").vector)


def test_what_is_no_text_task_is_refused(tmp_path: Path) -> None:
    embed = embedder(tmp_path)
    good = embed.info.to_dict()
    assert TaskSpec.from_dict(good, "x") == embed.info
    for change in (
        {"medium": "taste"},
        {"length": 3},
        {"overlap": -1},
        {"prompts": {"a": 1}},
        {"prompt": "x"},
        {"fit": "cover"},
    ):
        with pytest.raises(FormatError, match="not the facts of a task"):
            TaskSpec.from_dict({**good, "preparation": {**good["preparation"], **change}}, "x")
    flat = sg.Model.of(lambda x: x, {"x": (1, 3)}, "numpy")
    for call, problem in (
        (lambda: embed(7), "got a int, expected a text"),
        (lambda: sg.task("embed", token_vectors()), "no tokenizer.json"),
        (lambda: sg.task("embed", flat, beside=tmp_path), "takes no text"),
        (lambda: embedder(tmp_path, fit="cover"), "got fit"),
        (lambda: embed("a").plot(), "no picture to draw on"),
        (lambda: TextInput(length=4), "length 4: expected"),
        (lambda: sg.tasks.Task(embed.model, embed.info), "no tokenizer.json travels"),
    ):  # fmt: skip
        with pytest.raises((InputError, FormatError), match=problem):
            call()
