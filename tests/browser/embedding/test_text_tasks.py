"""Tasks of texts in Chromium: a page answers what Python answers, for every kind."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import STATIC
from changed import Edit, edited
from pages import node
from small_texts import ENTITIES, TAGS, WORDS, folder_of, of_pairs, of_tokens, token_vectors
from span_models import FILES, MAKERS, tiny_gliner

import singe as sg
from singe.tasks.kinds import KINDS
from singe.tools.serving.folder_server import Server

RNG = np.random.default_rng(9)
HIDDEN = RNG.normal(size=(len(dict.fromkeys(WORDS)),) * 2).astype(np.float32)
LONG = "the cat sat on the mat. dogs " * 12
TEXTS = ["the cat sat on the mat.", "Dogs, 日本 é", "", "👩‍👩‍👧 cats", LONG]


def guesses(device: Any = "numpy") -> sg.Model:
    def function(input_ids: sg.Tensor) -> sg.Tensor:
        own = sg.tensor(HIDDEN).take(input_ids, axis=0)
        return own + own.mean(1, keepdims=True)

    return sg.Model.of(function, {"input_ids": ("batch", "sequence")}, device, dtypes={"input_ids": "int64"})


def names(*labels: str) -> dict[str, Any]:
    return {"config": {"id2label": {str(k): name for k, name in enumerate(labels)}}}


TASKS: Mapping[str, tuple[sg.Model, dict[str, Any], list[str], dict[str, Any]]] = {
    "embed": (token_vectors(), {}, TEXTS, {"dimensions": 5}),
    "search": (token_vectors(), {}, TEXTS, {"top": 3}),
    "rerank": (of_pairs(1), {}, TEXTS[:2], {"documents": TEXTS}),
    "classify-text": (of_pairs(3), names("good", "bad", "größer"), TEXTS, {"top": 2}),
    "zero-shot": (
        of_pairs(2),
        names("entailment", "not_entailment"),
        TEXTS,
        {"labels": ["cat", "日本"], "hypothesis": "on {}"},
    ),
    "tag": (of_tokens(5, {"cat": 2, "dog": 2, "日": 3, "本": 4}), names(*TAGS), [*ENTITIES, LONG], {"threshold": 0.2}),
    "zero-shot-tag": (tiny_gliner(), FILES, [*MAKERS["texts"], ""], {"labels": MAKERS["labels"], "threshold": 0.4}),
    "fill-mask": (guesses(), {}, ["the [MASK] sat", f"{LONG} [MASK] {LONG}"], {"top": 4}),
}
"""A kind ↦ its model, the files beside it, what is asked, and the settings."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    root = tmp_path_factory.mktemp("texts")
    (root / "index.html").write_text("<!doctype html><title>texts</title>")
    with Server(root, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server, root
        server.shutdown()


def made(kind: str, root: Path) -> Any:
    """A task, whose bundle is in a folder of its name."""
    model, files, _, _ = TASKS[kind]
    task = sg.task(kind, model, beside=folder_of(root / "files" / kind, **files), length=48)
    if kind == "search":
        task = task.index(TEXTS[:3], codes="int8").index(TEXTS[3:])
    sg.export(task, root / kind, ["wasm"], readable=kind == "tag")
    return task


ASK = """async ([kind, texts, settings]) => {
  const { task } = await import(`/${kind}/singe-tasks.js`);
  const ask = await task(`/${kind}/`, { device: "wasm" });
  const answers = await ask(texts, settings);
  const windows = answers.map(({ windows }) => windows);
  const found = JSON.stringify(answers, (_, value) => (ArrayBuffer.isView(value) ? [...value] : value));
  let added;
  if (kind === "search") added = (await (await ask.index(["the dog sat"]))(texts[0], settings)).map(({ label }) => label);
  await ask.close();
  return { answers: JSON.parse(found), windows, added, points: texts.map((text) => [...text].length) };
}"""


def assert_alike(mine: Any, theirs: Any) -> None:
    """Plain data that is the same but for the last digits of numbers."""
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys()
        for key in theirs:
            assert_alike(mine[key], theirs[key])
    elif isinstance(theirs, list):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert_alike(one, other)
    else:
        assert mine == (pytest.approx(theirs, rel=2e-4, abs=2e-5) if isinstance(theirs, float) else theirs)


def in_utf16(text: str, place: int) -> int:
    """An index of JavaScript's strings."""
    return len(text[:place].encode("utf-16-le")) // 2


def on_its_page(page: Any, address: str, text: str, settings: Mapping[str, Any]) -> list[str]:
    """The lines that a bundle's own page has as its answer."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto(address)
    page.get_by_test_id("text").fill(text)
    more = settings.get("documents") or settings.get("labels")
    if more:
        page.get_by_test_id("more").fill("\n".join(more))
    page.get_by_test_id("text").press("Control+Enter")
    page.locator("#time[data-value], [data-state=error]").first.wait_for(state="attached")
    assert page.get_by_test_id("status").get_attribute("data-state") != "error", page.inner_text("#status")
    assert not wrong
    return page.locator("#found li").all_inner_texts()


@pytest.mark.parametrize("kind", TASKS)
def test_a_page_answers_for_texts_what_python_answers(site: tuple[Server, Path], browser: Any, kind: str) -> None:
    server, root = site
    task = made(kind, root)
    _, _, texts, settings = TASKS[kind]
    page = browser.new_page()
    page.goto(server.address)
    found = page.evaluate(ASK, [kind, texts, settings])
    shown = on_its_page(page, f"{server.address}/{kind}/", texts[0], settings)
    page.close()
    wanted = task(texts, **settings)
    assert found["windows"] == [answer.windows for answer in wanted]
    assert max(found["windows"]) > 1
    for text, mine, theirs in zip(texts, found["answers"], wanted, strict=True):
        plain = json.loads(json.dumps(theirs.to_dict()))
        for item in plain if kind.endswith("tag") else ():
            item["start"], item["end"] = (in_utf16(text, item[name]) for name in ("start", "end"))
        assert_alike(mine, plain)
    assert shown
    if kind == "search":
        more = task.index(["the dog sat"])(texts[0], **settings)
        assert found["added"] == [item.label for item in more]


def test_a_tokenizer_is_checked_before_it_is_fetched(tmp_path: Path) -> None:
    task = sg.task("embed", token_vectors(), beside=folder_of(tmp_path / "files"))
    sg.export(task, tmp_path / "embed", ["wasm"])
    entries = [
        ({"bytes": 2**28 + 1}, "tokenizer.json is too long"),
        ({"bytes": -1}, 'task.files["tokenizer.json"].bytes is -1, expected a count'),
        ({"file": "https://elsewhere.example/tokenizer.json"}, "expected a plain file name"),
        ({"sha256": ""}, "expected a sha256"),
        ({"file": "LICENSE", "bytes": 3, "sha256": sha256(b"{a}").hexdigest()}, "LICENSE is not JSON"),
    ]
    (tmp_path / "embed" / "LICENSE").write_text("{a}")
    for k, (changes, told) in enumerate(entries):
        edit: Edit = lambda manifest, changes=changes: manifest["task"]["files"]["tokenizer.json"].update(changes)
        folder = edited(tmp_path / "embed", tmp_path / str(k), edit)
        body = """const { task } = await import(given.tasks);
        return failure(() => task(given.url, { device: "wasm", worker: false }));"""
        found = node(body, url=folder.as_uri(), tasks=(STATIC / "singe-tasks.js").as_uri())
        assert (found["name"], found["code"]) == ("SingeError", "format"), found
        assert told in found["message"]


def test_an_index_that_is_none_is_refused_with_what_to_do(tmp_path: Path) -> None:
    task = sg.task("search", token_vectors(), beside=folder_of(tmp_path / "files"))
    sg.export(task.index(TEXTS[:2]), tmp_path / "search", ["wasm"])
    entries = [
        ("{a}", {"bytes": 2**28 + 1}, "LICENSE is too long"),
        ("{a}", {}, "LICENSE is not JSON"),
        ("null", {}, "its texts, codes or dimensions"),
        (json.dumps({"texts": [], "codes": "float32", "dimensions": 1 << 16}), {}, "its texts, codes or dimensions"),
    ]
    for k, (text, changes, told) in enumerate(entries):
        (tmp_path / "search" / "LICENSE").write_text(text)
        entry = {"file": "LICENSE", "bytes": len(text), "sha256": sha256(text.encode()).hexdigest(), **changes}
        edit: Edit = lambda manifest, entry=entry: manifest["task"]["files"]["index.json"].update(entry)
        folder = edited(tmp_path / "search", tmp_path / str(k), edit)
        body = """const { task } = await import(given.tasks);
        return failure(() => task(given.url, { device: "wasm", worker: false }));"""
        found = node(body, url=folder.as_uri(), tasks=(STATIC / "singe-tasks.js").as_uri())
        assert found["code"] == "format", found
        assert "not the index of a search: " + told in found["message"]
        assert found["message"].endswith("make it once more")


def test_every_kind_of_texts_is_compared() -> None:
    assert TASKS.keys() == {name for name, kind in KINDS.items() if kind.medium.name == "text"}
