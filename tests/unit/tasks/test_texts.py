"""Tasks that take texts: vectors are those of the tokens, however many texts there are at once, and nothing of a long text is lost."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_texts import ENTITIES, TAGS, WORDS, folder_of, of_pairs, of_tokens, token_vectors, tokenizer_json, vector_of

import singe as sg
from singe.errors import FormatError, InputError
from singe.files.zoo import find, is_here
from singe.tasks import TaskSpec, TextInput
from singe.tasks.text.index import TextIndex, read_index

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


def test_words_beside_a_model_make_its_tokenizer(tmp_path: Path) -> None:
    words = list(dict.fromkeys(WORDS))
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    embed = sg.task("embed", token_vectors(), beside=tmp_path)
    text = "The cat's on É Mats."
    np.testing.assert_allclose(embed(text).vector, vector_of(text), atol=1e-6)
    (tmp_path / "vocab.txt").write_text("the\ncat\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"2 words without \[UNK\] and \[CLS\] and \[SEP\]"):
        sg.task("embed", token_vectors(), beside=tmp_path)


def test_a_model_of_classes_is_no_model_of_vectors(tmp_path: Path) -> None:
    def classes(input_ids: sg.Tensor) -> dict[str, sg.Tensor]:
        return {"logits": input_ids.to(dtype="float32")[:, :3]}

    model = sg.Model.of(classes, {"input_ids": ("n", "t")}, "numpy", dtypes={"input_ids": "int64"})
    with pytest.raises(
        InputError,
        match=r"embed: the outputs logits .* are none of those that it decodes; classify-text would take them",
    ):
        sg.task("embed", model, beside=folder_of(tmp_path))


# --- search -----------------------------------------------------------------------------------------------------------


def searcher(folder: Path, **options: Any) -> Any:
    return sg.task("search", token_vectors(), beside=folder_of(folder), **options)


@pytest.mark.parametrize("codes", ["float32", "int8"])
def test_a_search_finds_what_is_most_alike(tmp_path: Path, codes: str) -> None:
    texts = ["the cat sat", "dogs on the mat", "b c d", "the dog sat on the cat"]
    search = searcher(tmp_path / "files")
    index = search.index(texts[:3], codes=codes).index(texts[3:])
    cosines = np.array([vector_of(text) @ vector_of("the cat sat on") for text in texts])
    found = index("the cat sat on", top=4)
    assert [item.index for item in found] == np.argsort(-cosines).tolist()
    np.testing.assert_allclose([item.score for item in found], np.sort(cosines)[::-1], atol=0.01)
    assert found[0].label == texts[found[0].index]
    assert [item.index for item in index("the cat sat on", among=[2, 1])] == sorted((1, 2), key=lambda k: -cosines[k])
    index.save(tmp_path / "index.singe")
    again = sg.task("search", tmp_path / "index.singe", device="numpy")
    assert again("the cat sat on", top=4) == found
    for call, problem in (
        (lambda: search("a"), "nothing to look through"),
        (lambda: index("a", top=0), "top is 0"),
        (lambda: index("a", among=[7]), "below 4"),
        (lambda: search.index("a"), "expected a list of texts"),
        (lambda: search.index(["a"], codes="int4"), "float32 or int8"),
        (lambda: embedder(tmp_path / "files").index(["a"]), "only a search"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=problem):
            call()


def test_an_index_of_many_compares_those_whose_signs_agree() -> None:
    rng = np.random.default_rng(3)
    table = rng.normal(size=(30_000, 64)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    index = TextIndex.of([""] * len(table), table, "float32")
    query = table[11] + 0.05 * rng.normal(size=64).astype(np.float32)
    near, exact = index.nearest(query, 10, 1000, None), index.nearest(query, 10, 0, None)
    assert exact == [(int(k), float((table @ query)[k])) for k in np.argsort(-(table @ query))[:10]]
    assert near[0] == exact[0]
    assert len(set(near) & set(exact)) >= 8
    assert index.nearest(query, 3, 1000, range(5)) == index.nearest(query, 3, 0, range(5))


def test_the_sentences_of_the_demo_have_their_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(__file__).parents[3] / "demos" / "search"
    monkeypatch.syspath_prepend(folder)
    texts = importlib.import_module("sentences").sentences()
    assert len(set(texts)) == 10_000
    facts = {"codes": "int8", "dimensions": 384, "texts": texts}
    data = {"index.json": json.dumps(facts).encode(), "index.bin": (folder / "index.bin").read_bytes()}
    index = read_index(data)
    assert index is not None
    np.testing.assert_allclose(np.linalg.norm(index.table, axis=1), 1, atol=0.01)
    if not is_here(find("minilm")):
        pytest.skip("MiniLM of the zoo is not in the cache")
    for k, answer in zip((0, 17, 9_999), sg.task("embed")([texts[k] for k in (0, 17, 9_999)]), strict=True):
        assert index.table[k] @ answer.vector > 0.999


def test_a_tokenizer_that_travels_has_a_bound() -> None:
    with pytest.raises(FormatError, match=r"tokenizer\.json: 268435457 bytes, at most 268435456 are read"):
        sg.language.Tokenizer.of_json(bytes(2**28 + 1))
    with pytest.raises(FormatError, match=r"tokenizer\.json: not JSON"):
        sg.language.Tokenizer.of_json(b"{")


def test_an_index_that_was_changed_is_refused() -> None:
    files = TextIndex.of(["a", "b"], np.eye(2, dtype=np.float32), "int8").files()
    assert read_index({}) is None
    facts = json.loads(files["index.json"])
    for change in (
        {"codes": "x"},
        {"dimensions": 3},
        {"dimensions": "2"},
        {"texts": ["a"]},
        {"texts": [1, 2]},
        {"texts": None},
    ):
        with pytest.raises(FormatError, match="not the index of a search"):
            read_index({**files, "index.json": json.dumps({**facts, **change}).encode()})
    for data in (b"", b"{", b"[]"):
        with pytest.raises(FormatError, match="not the index of a search"):
            read_index({**files, "index.json": data})
    with pytest.raises(FormatError, match="not finite"):
        read_index({**files, "index.bin": np.float32(np.nan).tobytes() * 2 + files["index.bin"][8:]})


# --- pairs and tokens -------------------------------------------------------------------------------------------------


def pair_scores(one: str, two: str, width: int) -> np.ndarray:
    tokenizer = sg.language.Tokenizer.of_values(tokenizer_json())
    first, second = tokenizer.encode(one), [*tokenizer.encode(two)[1:]] if two else []
    table = np.random.default_rng(5).normal(size=(len(WORDS), width)).astype(np.float32)
    weights = np.array([1.0] * len(first) + [3.0] * len(second))
    return (table[[*first, *second]] * weights[:, None]).sum(0) / weights.sum()


def test_texts_are_ranked_for_a_question(tmp_path: Path) -> None:
    documents = ["the cat sat", "dogs on mats", "a b c d e"]
    found = sg.task("rerank", of_pairs(1), beside=folder_of(tmp_path))("the dog", documents=documents)
    wanted = 1 / (1 + np.exp(-np.array([pair_scores("the dog", text, 1)[0] for text in documents])))
    assert [item.index for item in found] == np.argsort(-wanted).tolist()
    np.testing.assert_allclose([item.score for item in found], np.sort(wanted)[::-1], rtol=1e-5)
    assert [item.label for item in found] == [documents[item.index] for item in found]


def test_labels_are_those_that_follow(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, config={"id2label": {"0": "contradiction", "1": "neutral", "2": "entailment"}})
    judge = sg.task("zero-shot", of_pairs(3), beside=folder)
    labels = ["cats", "dogs", "mats"]
    logits = np.array([pair_scores("the cat sat on the mat", f"on {label}", 3) for label in labels])
    one = judge("the cat sat on the mat", labels=labels, hypothesis="on {}")
    wanted = np.exp(logits[:, 2]) / np.exp(logits[:, 2]).sum()
    assert [item.label for item in one] == [labels[k] for k in np.argsort(-wanted)]
    np.testing.assert_allclose([item.score for item in one], np.sort(wanted)[::-1], rtol=1e-5)
    several = judge("the cat sat on the mat", labels=labels, hypothesis="on {}", several=True)
    np.testing.assert_allclose(
        sorted(item.score for item in several), np.sort(1 / (1 + np.exp(logits[:, 0] - logits[:, 2]))), rtol=1e-5
    )
    with pytest.raises(InputError, match="labels is"):
        judge("a")
    with pytest.raises(InputError, match=r"no room is left"):
        sg.task("zero-shot", of_pairs(3), beside=folder, length=32, overlap=0)("a " * 40, labels=["b " * 40])


def test_texts_have_classes(tmp_path: Path) -> None:
    config: dict[str, Any] = {"id2label": {"0": "good", "1": "bad"}}
    classify = sg.task("classify-text", of_pairs(2), beside=folder_of(tmp_path, config=config))
    row = pair_scores("the cat", "", 2)
    found = classify("the cat")
    best = int(row.argmax())
    assert [item.label for item in found] == [("good", "bad")[best], ("good", "bad")[1 - best]]
    assert found[0].score == pytest.approx(1 / (1 + np.exp(row[1 - best] - row[best])), rel=1e-5)
    several = folder_of(tmp_path / "several", config={**config, "problem_type": "multi_label_classification"})
    one = sg.task("classify-text", of_pairs(2), beside=several)("the cat", top=1)
    assert one[0].score == pytest.approx(1 / (1 + np.exp(-row[best])), rel=1e-5)


@pytest.mark.parametrize("length", [64, 8])
def test_entities_stand_where_they_are_said_to(tmp_path: Path, length: int) -> None:
    model = of_tokens(5, {"cat": 2, "dog": 2, "日": 3, "本": 4})
    folder = folder_of(tmp_path, config={"id2label": {str(k): name for k, name in enumerate(TAGS)}})
    tag = sg.task("tag", model, beside=folder, length=length, overlap=2)
    for text, wanted in ENTITIES.items():
        found = tag(text)
        assert [(item.label, item.text) for item in found] == wanted
        assert all(text[item.start : item.end] == item.text for item in found)
    assert tag("cat", threshold=0.999).to_dict() == []


def test_a_hidden_word_is_guessed(tmp_path: Path) -> None:
    table = np.random.default_rng(9).normal(size=(len(dict.fromkeys(WORDS)),) * 2).astype(np.float32)

    def function(input_ids: sg.Tensor) -> sg.Tensor:
        own = sg.tensor(table).take(input_ids, axis=0)
        return own + own.mean(1, keepdims=True)

    model = sg.Model.of(function, {"input_ids": ("batch", "sequence")}, "numpy", dtypes={"input_ids": "int64"})
    fill = sg.task("fill-mask", model, beside=folder_of(tmp_path))
    ids = sg.language.Tokenizer.of_values(tokenizer_json()).encode("the [MASK] sat")
    row = table[ids[2]] + table[ids].mean(0)
    found = fill("the [MASK] sat", top=3)
    assert [item.index for item in found] == np.argsort(-row)[:3].tolist()
    assert found[0].score == pytest.approx(np.exp(row.max()) / np.exp(row).sum(), rel=1e-4)
    for text, problem in ("the cat", "0 hidden words"), ("[MASK] [MASK]", "2 hidden words"):
        with pytest.raises(InputError, match=problem):
            fill(text)
