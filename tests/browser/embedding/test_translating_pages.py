"""Tasks that translate, and a Moonshine that writes down what is said, in Chromium: pages say what Python says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import STATIC
from pages import node
from pair_cases import moonshine_folder
from tiny_translator import translator, translator_of

import singe as sg
from singe.files.sounds import wav_bytes
from singe.tools.serving.folder_server import Server

pytestmark = pytest.mark.full
RATE: Final = 16_000
TEXTS: Final = ("hello world", " the  cat in the world!", "quiz €€ in, é", "", "The cat in the world. " * 12, "a" * 100)
WISHES: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "marian": [{}, {"beams": 1}, {"beams": 4}],
    "marian_to": [{"tgt_lang": "deu"}, {"tgt_lang": "fra", "beams": 1}],
    "m2m_100": [{"src_lang": "en", "tgt_lang": "de"}, {"src_lang": "de", "tgt_lang": "en", "beams": 1}],
    "t5": [{"tgt_lang": "de"}, {"src_lang": "en", "tgt_lang": "fr"}, {"tgt_lang": "fr", "beams": 5}],
}
REFUSED: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "marian": [{"beams": 0}, {"beams": 9}, {"tgt_lang": "de"}, {"src_lang": "de"}, {"beam": 1}],
    "marian_to": [{}, {"tgt_lang": "xx"}, {"src_lang": "en", "tgt_lang": "deu"}],
    "m2m_100": [{"tgt_lang": "de"}, {"src_lang": "en"}],
    "t5": [{}, {"tgt_lang": "xx"}],
}


def sound(seconds: float) -> np.ndarray:
    draws = np.random.default_rng(3)
    samples = 0.1 * draws.standard_normal(int(RATE * seconds))
    return (np.round(samples * 32767) / 32768).astype(np.float32)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    root = tmp_path_factory.mktemp("translating")
    made = {
        "marian": translator(root / "of_marian"), "marian_to": translator(root / "of_marian_to", "deu", "fra"),
        "m2m_100": translator_of(root / "of_m2m_100", "m2m_100"), "t5": translator_of(root / "of_t5", "t5"),
    }  # fmt: skip
    for name, folder in made.items():
        sg.export(sg.task("translate", folder, device="numpy"), root / name, targets=["wasm"])
    moonshine = moonshine_folder(root / "of_moonshine")
    sg.export(sg.task("transcribe", moonshine, device="numpy"), root / "moonshine", targets=["wasm"])
    for name, seconds in (("short", 0.4), ("long", 31.0), ("none", 0.02)):
        (root / f"{name}.wav").write_bytes(wav_bytes(sound(seconds), RATE))
    with Server(root, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server, root
        server.shutdown()


TRANSLATE: Final = """async ({ name, texts, wishes, refused }) => {
  const { task } = await import(`/${name}/singe-tasks.js`);
  const translate = await task(`/${name}/`, { device: "wasm" });
  const answers = [];
  for (const wish of wishes) for (const { translation_text, windows, cut } of await translate(texts, wish)) answers.push([translation_text, windows, cut]);
  const live = [];
  await translate.stream(texts[0], (now) => live.push(now.translation_text), { ...wishes[0], beams: 1 }).done;
  const stopped = [];
  const own = translate.stream(texts[0], (now) => stopped.push(now) && own.stop(), { ...wishes[0], beams: 1 });
  await own.done;
  const told = (wish) => translate("hello", wish).then(() => "", ({ message }) => message);
  const wrong = [];
  for (const wish of refused) wrong.push(await told(wish));
  wrong.push(await translate(3, wishes[0]).catch(({ message }) => message));
  await translate.close();
  return { answers, live, stopped: stopped.length, wrong };
}"""


@pytest.mark.parametrize("name", WISHES)
def test_a_page_translates_as_python_does(site: tuple[Server, Path], browser: Any, name: str) -> None:
    server, root = site
    page = browser.new_page()
    page.goto(f"{server.address}{name}/")
    wishes, refused = WISHES[name], REFUSED[name]
    found = page.evaluate(TRANSLATE, {"name": name, "texts": TEXTS, "wishes": wishes, "refused": refused})
    page.close()
    for source, device in ((f"of_{name}", "numpy"), (name, "wasm")):  # the bundle says it in Python, too
        with sg.task("translate", root / source, device=device) as translate:
            own = [translate(text, **wish) for wish in wishes for text in TEXTS]
            assert found["answers"] == [[x.text, x.windows, x.cut] for x in own]
            live = [x.text for x in translate.stream(TEXTS[0], **{**wishes[0], "beams": 1})]
            assert found["live"] == live
            assert found["stopped"] == 1
    assert all(text.startswith("translate: ") for text in found["wrong"]), found["wrong"]


def test_the_page_of_a_bundle_translates_between_languages(site: tuple[Server, Path], browser: Any) -> None:
    server, root = site
    page = browser.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
    page.goto(f"{server.address}m2m_100/")
    page.wait_for_selector("#status[data-state=ready]")
    assert page.locator("#from option").all_inner_texts() == ["English", "German"] or page.locator(
        "#from option"
    ).all_inner_texts() == ["German", "English"]
    page.select_option("#from", "en")
    page.select_option("#to", "de")
    page.fill("#text", "hello world")
    page.click("#ask")
    page.wait_for_selector("#copy:not([disabled])")
    with sg.task("translate", root / "of_m2m_100", device="numpy") as translate:
        assert page.inner_text("#said") == translate("hello world", src_lang="en", tgt_lang="de").text
        page.click("#swap")
        page.select_option("#beams", "1")
        page.press("#text", "Control+Enter")
        page.wait_for_selector("#stop[disabled]")
        page.wait_for_function("document.querySelector('#status').textContent.startsWith('Done')")
        assert page.inner_text("#said") == translate("hello world", src_lang="de", tgt_lang="en", beams=1).text
    assert not wrong
    page.close()


HEAR: Final = """async ({ names, beams }) => {
  const { task } = await import("/moonshine/singe-tasks.js");
  const hear = await task("/moonshine/", { device: "wasm" });
  const answers = [];
  for (const name of names) for (const count of beams) answers.push(await hear(`/${name}.wav`, { beams: count }));
  const { samples } = await (await import("/moonshine/singe-sound.js")).decoded(await (await fetch("/short.wav")).blob());
  async function* blocks() {
    for (let k = 0; k < 4; k++) yield samples;
  }
  const live = [];
  await hear.stream(blocks(), (now) => live.push(now), { sampling_rate: 16000 }).done;
  const wrong = [];
  for (const wish of [{ beams: 9 }, { language: "en" }]) wrong.push(await hear("/short.wav", wish).catch(({ message }) => message));
  await hear.close();
  return { answers, live, wrong };
}"""


def test_a_page_hears_what_a_moonshine_hears_in_python(site: tuple[Server, Path], browser: Any) -> None:
    server, root = site
    page = browser.new_page()
    page.goto(f"{server.address}moonshine/")
    page.wait_for_selector("#status[data-state=ready]")
    names, beams = ("short", "long", "none"), (None, 3)
    found = page.evaluate(HEAR, {"names": names, "beams": beams})
    page.set_input_files("#file", root / "short.wav")
    page.wait_for_selector("#saving:not([hidden])")
    shown = page.locator("#found li span").all_inner_texts()
    page.close()
    for source, device in (("of_moonshine", "numpy"), ("moonshine", "wasm")):
        with sg.task("transcribe", root / source, device=device) as hear:
            own = [hear(root / f"{name}.wav", beams=count) for name in names for count in beams]
            live = list(hear.stream([sound(0.4)] * 4, sampling_rate=RATE))
        for answer, wanted in zip([*found["answers"], *found["live"]], [*own, *live], strict=True):
            assert answer["text"] == wanted.text
            assert [(x["text"], x["start"], x["end"]) for x in answer["chunks"]] == [
                (x.text, x.start, x.end) for x in wanted.chunks
            ]
        assert [text.strip() for text in shown] == [part.text.strip() for part in own[0].chunks]
    assert len(own[2].chunks) == 2
    assert [text[:17] for text in found["wrong"]] == ["transcribe: beams", "transcribe: got l"]


@pytest.mark.parametrize(
    ("name", "script"), [("m2m_100", "translating"), ("t5", "translating"), ("moonshine", "moonshine")]
)
def test_a_bundle_that_lacks_a_fact_is_told_which(site: tuple[Server, Path], name: str, script: str) -> None:
    info = json.loads((site[1] / name / "model.json").read_text())["task"]
    facts = {key: value for key, value in info["preparation"].items() if key != "medium"}
    inner = [f"{table}.{key}" for table in ("rules", "cut") for key in facts.get(table, {})]
    names = [*(key for key in facts if key not in ("rules", "cut")), *inner]
    body = """const { medium } = await import(given.medium);
    const told = (name, value) => {
      const info = structuredClone(given.info);
      const path = name.split(".");
      const last = path.pop();
      path.reduce((facts, key) => facts[key], info.preparation)[last] = value;
      return medium.whyNot(info);
    };
    return [medium.whyNot(given.info), given.names.map((name) => [told(name), told(name, [{}])])];"""
    url = (STATIC / "tasks" / "saying" / f"singe-task-{script}.js").as_uri()
    right, wrong = node(body, medium=url, info=info, names=names)
    assert not right
    for key, answers in zip(names, wrong, strict=True):
        assert all(answer.endswith(f": {key}") for answer in answers), (key, answers)
