"""Tasks that write down what is said, in Chromium: pages hear what Python hears, of sounds and as blocks come."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import tiny_whisper
from bundles import STATIC
from pages import node

import singe as sg
from singe.files.sounds import wav_bytes
from singe.speech.transcript import Transcript
from singe.tools.serving.folder_server import Server

pytestmark = pytest.mark.full
RATE: Final = 16_000
WISHES: Final[list[Mapping[str, Any]]] = [
    {"language": "en"}, {}, {"language": "de", "beams": 3}, {"language": "en", "beams": 5}, {"language": "en", "words": True},
    {"translate": True, "language": "de"}, {"prompt": "abc de"}, {"language": "en", "seed": 3},
]  # fmt: skip


def sound() -> np.ndarray:
    seconds = np.arange(RATE) / RATE
    samples = np.sin(900 * seconds * seconds) * np.sin(20 * seconds) * 0.4
    return (np.round(samples * 32767) / 32768).astype(np.float32)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    root = tmp_path_factory.mktemp("hearing")
    folder = tiny_whisper.hugging_face(root / "hf")
    sg.export(sg.task("transcribe", folder, device="numpy"), root / "hear", targets=["wasm"])
    (root / "sound.wav").write_bytes(wav_bytes(sound(), RATE))
    with Server(root, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server, root
        server.shutdown()


HEAR: Final = """async ({ wishes, threads, block }) => {
  const { task } = await import("/hear/singe-tasks.js");
  const hear = await task("/hear/", { device: "wasm", threads });
  const answers = [];
  for (const wish of wishes) answers.push(await hear("/sound.wav", wish));
  answers.push(...(await Promise.all([hear("/sound.wav"), hear(await (await fetch("/sound.wav")).blob())])));
  const { samples } = await (await import("/hear/singe-sound.js")).decoded(await (await fetch("/sound.wav")).blob());
  const parts = [];
  await hear.stream({ samples, sampleRate: 16000 }, (now) => parts.push(now), { language: "en" }).done;
  async function* blocks() {
    for (let k = 0; k < 3; k++) for (let at = 0; at < samples.length; at += block) yield samples.slice(at, at + block);
  }
  const live = [];
  await hear.stream(blocks(), (now) => live.push(now), { language: "en", sampling_rate: 16000 }).done;
  const stopped = [];
  const own = hear.stream(blocks(), (now) => stopped.push(now) && own.stop(), { language: "en", sampling_rate: 16000 });
  await own.done;
  const wrong = [];
  for (const wish of [{ language: "xx" }, { beams: 9 }, { beam: 2 }, { prompt: 3 }]) wrong.push(await hear("/sound.wav", wish).catch(({ message }) => message));
  wrong.push(await hear(samples).catch(({ message }) => message));
  const { worker } = hear.model;
  await hear.close();
  return { answers, parts, live, stopped, wrong, worker };
}"""


def same(found: Any, own: Transcript) -> bool:
    """The text, the parts and the words, with their times and chances, but for what rounding changes."""
    assert (found["text"], found["language"]) == (own.text, own.language)
    assert [part["text"] for part in found["chunks"]] == [part.text for part in own.chunks]
    for part, wanted in zip(found["chunks"], own.chunks, strict=True):
        assert [word["text"] for word in part.get("words", [])] == [word.text for word in wanted.words]
        for one, other in zip([part, *part.get("words", [])], [wanted, *wanted.words], strict=True):
            np.testing.assert_allclose(
                [one["start"], one["end"], one["score"]], [other.start, other.end, other.score], atol=1e-4
            )
    return True


@pytest.mark.parametrize("threads", [1, 2])
def test_a_page_hears_what_python_hears(site: tuple[Server, Path], browser: Any, threads: int) -> None:
    server, root = site
    page = browser.new_page()
    page.goto(f"{server.address}hear/")
    found = page.evaluate(HEAR, {"wishes": WISHES, "threads": threads, "block": 3000})
    page.close()
    with sg.task("transcribe", root / "hf", device="numpy") as hear:
        for answer, wish in zip(found["answers"], [*WISHES, {}, {}], strict=True):
            assert same(answer, hear(sound(), sampling_rate=RATE, **wish))
        assert same(found["parts"][-1], hear(sound(), sampling_rate=RATE, language="en"))
        with sg.task("transcribe", root / "hear", device="wasm") as bundle:  # Python reads it back
            for answer, wish in zip(found["answers"], WISHES, strict=False):
                assert same(answer, bundle(sound(), sampling_rate=RATE, **wish))
        assert len(found["parts"]) > 1
        thrice = np.tile(sound(), 3)
        blocks = [part[k : k + 3000] for part in np.split(thrice, 3) for k in range(0, RATE, 3000)]
        own = list(hear.stream(blocks, sampling_rate=RATE, language="en"))
    for answer, wanted in zip(found["live"][: len(own) - 1], own[:-1], strict=True):
        assert same(answer, wanted)
    assert same(found["live"][-1], own[-1])
    assert len(found["stopped"]) == 1
    assert found["worker"]
    told = [
        "transcribe: language",
        "transcribe: beams 9",
        "transcribe: got beam",
        "transcribe: prompt",
        "sound: an array",
    ]
    assert all(text.startswith(start) for text, start in zip(found["wrong"], told, strict=True)), found["wrong"]


def test_the_page_of_a_bundle_writes_down_and_saves(site: tuple[Server, Path], browser: Any) -> None:
    server, root = site
    page = browser.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
    page.goto(f"{server.address}hear/")
    page.wait_for_selector("#status[data-state=ready]")
    page.select_option("#language", "en")
    page.check("#words")
    page.set_input_files("#file", root / "sound.wav")
    page.wait_for_selector("#saving:not([hidden])")
    own = sg.task("transcribe", root / "hf", device="numpy")(sound(), sampling_rate=RATE, language="en", words=True)
    shown = page.locator("#found li span:not([title])").all_inner_texts()
    words = ["".join(word.text for word in part.words).strip() for part in own.chunks]
    assert [text.strip() for text in shown] == words
    with page.expect_download() as saved:
        page.click("#srt")
    saved.value.save_as(root / "saved.srt")
    own.save(root / "own.srt")
    assert (root / "saved.srt").read_text() == (root / "own.srt").read_text()
    assert not wrong
    page.close()


def test_a_bundle_that_lacks_a_fact_is_told_which(site: tuple[Server, Path]) -> None:
    info = json.loads((site[1] / "hear" / "model.json").read_text())["task"]
    facts = {name: value for name, value in info["preparation"].items() if name != "medium"}
    tables = {name: value for name, value in facts.items() if isinstance(value, dict)}
    fields = [f"{table}.{name}" for table, values in tables.items() for name in values]
    names = [*(facts.keys() - tables.keys()), *fields]
    body = """const { medium } = await import(given.medium);
    const told = (name, value) => {
      const info = structuredClone(given.info);
      const path = name.split(".");
      const last = path.pop();
      path.reduce((facts, key) => facts[key], info.preparation)[last] = value;
      return medium.whyNot(info);
    };
    return [medium.whyNot(given.info), given.names.flatMap((name) => [told(name), told(name, [{}])]), told("rules", null)];"""
    url = (STATIC / "tasks" / "saying" / "singe-task-hearing.js").as_uri()
    right, wrong, table = node(body, medium=url, info=info, names=names)
    assert not right
    assert wrong == [f"it does not say how it hears: {name}" for name in names for _ in range(2)]
    assert "rules.temperatures" in table


def test_samples_that_were_written_down_are_let_go(site: tuple[Server, Path]) -> None:
    body = """
const { HeardSamples } = await import(given.module);
const heard = new HeardSamples();
const wrong = [];
for (let k = 0; k < 400; k++) {
  heard.push(Float32Array.from({ length: 1000 }, (_, at) => 1000 * k + at));
  const start = Math.max(0, heard.count - 3500);
  const found = heard.between(start, heard.count);
  if (found.length !== heard.count - start || found.some((x, at) => x !== start + at)) wrong.push(k);
  heard.letGo(start);
}
return [wrong, heard.count, heard.between(heard.count, heard.count).buffer.byteLength];
"""
    wrong, count, size = node(body, module=(STATIC / "tasks" / "saying" / "singe-task-courses.js").as_uri())
    assert (wrong, count) == ([], 400_000)
    assert size == 4 << 16


def test_windows_of_an_odd_length_begin_at_whole_samples(site: tuple[Server, Path]) -> None:
    info = json.loads((site[1] / "hear" / "model.json").read_text())["task"]
    length = info["preparation"]["length"] = info["preparation"]["length"] // 2 * 2 + 1
    step, frames = info["preparation"]["step"], info["preparation"]["frames"]
    body = """const { medium } = await import(given.medium);
    const windows = [];
    const run = async ({ samples }) => {
      windows.push(Array.from(samples.data));
      if (windows.length === 2) throw new Error("enough");
      return { loudest: { data: new Float32Array(1) } };
    };
    const file = async () => JSON.parse(given.tokenizer);
    const begin = await medium.open(given.info, file, undefined, { session: () => ({ run, dispose() {} }) });
    const sound = Float32Array.from({ length: given.count }, (_, at) => at / given.scale);
    const chosen = { beams: 1, prompt: "", language: "en", sampling_rate: given.info.preparation.rate };
    await begin(undefined, chosen)([sound]).catch(({ message }) => windows.push(message));
    return windows;"""
    url = (STATIC / "tasks" / "saying" / "singe-task-hearing.js").as_uri()
    tokenizer = (site[1] / "hear" / info["files"]["tokenizer.json"]["file"]).read_text()
    count, scale = 4 * frames * step, 1 << 15  # samples that a sound can have, with exact values
    first, second, told = node(body, medium=url, info=info, tokenizer=tokenizer, count=count, scale=scale)
    assert told == "enough"
    size, before = frames * step + length - step, length // 2
    assert first == [abs(at) / scale for at in range(-before, size - before)]
    assert second == [at / scale for at in range(frames * step - before, frames * step - before + size)]
