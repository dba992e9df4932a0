"""The bundle of a language model: what it writes in node and in Chromium is what Python's writes, and a page to talk with it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sites import serving, until
from text_cases import NOW, TOOLS, written
from tiny_language import tiny_gguf

import singe as sg
from singe.language.generation import TokenChance
from singe.language.tokenizing.tokenizer_json import tokenizer_of
from singe.tools.cli import main as singe
from singe.tools.export.stored import narrow, weights
from singe.tools.serving.folder_server import Server

CONTEXT = 96
MESSAGES = [{"role": "user", "content": "hello <b>"}]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "of": {"enum": ["x", None]}},
    "required": ["ok", "of"],
}
CALL = re.escape(f"[{written(NOW)}]")
PAGE = """<!doctype html><meta charset="utf-8"><title>wait</title><link rel="icon" href="data:,"><script type="module">
import { load } from "./chat/singe.js";
const llm = await load("./chat/", { device: new URLSearchParams(location.search).get("device") });
globalThis.answer = { worker: llm.worker, text: await llm.chat(MESSAGES, { temperature: 0, maxTokens: 12 }).text() };
document.title = "done";
</script>"""
COUNTED = """<!doctype html><meta charset="utf-8"><title>wait</title><link rel="icon" href="data:,"><script type="module">
import { load } from "./chat/singe.js";
const counts = {};
const count = (type, name) => {
  const original = type.prototype[name];
  type.prototype[name] = function (...given) {
    if (given[0].length !== 0) counts[name] = (counts[name] ?? 0) + 1; // an empty submit wakes the GPU
    return original.apply(this, given);
  };
};
count(GPUQueue, "submit");
Object.defineProperty(GPUDevice.prototype, "adapterInfo", { get: () => ({}) }); // of a GPU, where runs choose tokens
for (const name of ["createBindGroup", "createBuffer"]) count(GPUDevice, name);
const create = GPUDevice.prototype.createComputePipelineAsync;
let pending = 0;
globalThis.together = [];  // how many pipelines were asked for at once, of those that wait for none
GPUDevice.prototype.createComputePipelineAsync = async function (...given) {
  if (pending++ === 0) together.push(0);
  together[together.length - 1]++;
  try {
    return await create.apply(this, given);
  } finally {
    pending--;
  }
};
const llm = await load("./chat/", { device: "webgpu", worker: false });
globalThis.counted = [];
for (const maxTokens of [3, 2, 4]) {
  await llm.generate([70], { temperature: 1, seed: 3, maxTokens }).text();
  counted.push({ ...counts });
}
document.title = "done";
</script>"""
SCRIPT = """
import { load } from SINGE;
const llm = await load(FOLDER, { device: "wasm", threads: 1 });
const messages = MESSAGES;
const greedy = { temperature: 0, maxTokens: 12 };
const failed = async (act) => {
  try {
    await act();
  } catch ({ code, message }) {
    return [code, message];
  }
};
const found = {};
const whole = llm.chat(messages, greedy);
found.parts = [];
for await (const part of whole) found.parts.push(part);
found.facts = [whole.finishReason, whole.usage, llm.context, llm.template(messages)];
found.prompt = llm.tokenizer.encode(llm.template(messages), { addSpecial: false });
const text = found.parts.join("");
found.stop = Array.from(text).slice(3, 6).join("");
const stopped = llm.chat(messages, { ...greedy, stop: found.stop });
found.stopped = [await stopped.text(), stopped.finishReason, stopped.usage.reusedTokens];
const seeded = () => llm.chat(messages, { seed: 3, maxTokens: 20 }).text();
found.seeded = [await seeded(), await seeded()];
const session = llm.session();
const first = await session.chat(messages, greedy).text();
const longer = [...messages, { role: "assistant", content: first }, { role: "user", content: "more" }];
const branch = session.copy();
const [on, copied] = [session.chat(longer, greedy), branch.chat(longer, greedy)];
found.longer = [await on.text(), await copied.text(), await llm.session().chat(longer, greedy).text()];
found.reused = [on.usage.reusedTokens, copied.usage.reusedTokens, whole.usage.promptTokens];
session.rewind(2);
found.rewound = session.tokens;
const both = [llm.chat(messages, greedy), llm.chat(messages, greedy)];
found.both = await Promise.all(both.map((answer) => answer.text()));
const left = llm.chat(messages, greedy);
for await (const _ of left) break;
found.after = await llm.chat(messages, greedy).text();
const filled = llm.generate(Array(90).fill(70), { temperature: 0 });
await filled.text();
found.filled = [filled.finishReason, filled.usage.totalTokens];
const create = (request) => llm.chat.completions.create({ messages, max_tokens: 12, temperature: 0, ...request });
found.completion = await create({});
found.chunks = [];
for await (const chunk of await create({ stream: true, stream_options: { include_usage: true } })) found.chunks.push(chunk);
const schema = SCHEMA;
const regex = "(hello|bye)! [0-9]{2}";
const call = { regex: CALL, temperature: 0 };
const told = async (answer) => [await answer.text(), answer.finishReason, answer.toolCalls.map(({ function: { name } }) => name)];
found.constrained = [
  await told(llm.generate("hello", { regex, temperature: 0 })),
  await told(llm.generate("hello", { regex: new RegExp(regex), seed: 3, topK: 0 })),
  await told(llm.chat(messages, { schema, temperature: 0 })),
  await told(llm.chat(messages, { tools: TOOLS, ...call })),
  await told(llm.chat(messages, call)),
  await told(llm.chat(messages, { tools: TOOLS, maxTokens: 9, ...call })),
];
found.chances = [];
for (const options of [{ temperature: 0 }, { seed: 3, repeatPenalty: 1.3 }, { temperature: 0, drafts: 4 }, { temperature: 0, regex, maxTokens: 40 }]) {
  const answer = llm.generate("hello hello hello", { maxTokens: 30, logprobs: 3, ...options });
  await answer.text();
  found.chances.push(answer.logprobs);
}
const asked = { logprobs: true, top_logprobs: 2 };
found.openai = (await create(asked)).choices[0].logprobs.content;
found.openaiChunks = [];
for await (const { choices } of await create({ ...asked, stream: true })) found.openaiChunks.push(...choices[0].logprobs.content);
found.drafted = await llm.generate("hello hello hello", { temperature: 0, maxTokens: 40, drafts: 4 }).text();
const shifted = llm.chat(messages, { temperature: 0, maxTokens: 200, shift: true, repeatPenalty: 1.1 });
found.shifted = [await shifted.text(), shifted.finishReason, shifted.usage.completionTokens];
found.shiftedPrompt = await llm.generate(Array.from({ length: 150 }, (_, i) => 70 + (i % 7)), { temperature: 0, maxTokens: 5, shift: true }).text();
const prompts = await llm.LanguageModel.create();
found.prompted = [
  await prompts.prompt("hi", { responseConstraint: /(yes|no)!/ }),
  await prompts.prompt("hi", { responseConstraint: { enum: ["b", 1] }, omitResponseConstraintInput: true }),
];
found.named = await create({ chat_template_kwargs: { enable_thinking: false } });
const json = { type: "json_schema", json_schema: { name: "s", schema } };
found.formed = await create({ response_format: json, max_tokens: null });
found.called = await create({ tools: TOOLS, regex: CALL, max_tokens: null });
found.calledChunks = [];
for await (const chunk of await create({ tools: TOOLS, regex: CALL, max_tokens: null, stream: true })) found.calledChunks.push(chunk);
found.errors = [
  await failed(() => llm.generate("a", { schema: { type: "string", format: "date" } }).text()),
  await failed(() => llm.generate("a", { schema, regex })),
  await failed(() => create({ tool_choice: "required" })),
  await failed(() => llm.generate("a", { logprobs: 101 })),
  await failed(() => create({ top_logprobs: 2 })),
  await failed(() => llm.generate(Array(CONTEXT).fill(70))),
  await failed(() => llm.generate("")),
  await failed(() => llm.chat("Hello")),
  await failed(() => llm.generate("a", { temprature: 1 })),
  await failed(() => llm.generate("a", { topP: 2 })),
  await failed(() => llm.generate("a", { stop: [""] })),
  await failed(() => whole.text()),
  await failed(() => create({ best_of: 3 })),
  await failed(() => llm.chat(messages, { signal: AbortSignal.abort() }).text()),
];
await llm.dispose();
process.stdout.write(JSON.stringify(found));
"""

PROMPTS = """
import { load } from SINGE;
const llm = await load(FOLDER, { device: "wasm", threads: 1 });
const { LanguageModel } = llm;
const initialPrompts = [{ role: "system", content: "a" }];
const name = (act) => Promise.resolve().then(act).then(() => "", (error) => error.name);
const found = { progress: [], overflows: [], available: await LanguageModel.availability() };
const monitor = (m) => m.addEventListener("downloadprogress", ({ loaded, total }) => found.progress.push(loaded / total));
const session = await LanguageModel.create({ initialPrompts, temperature: 0, topK: 1, monitor });
found.facts = [session.contextWindow, session.contextUsage, await session.measureContextUsage("hi"), session.temperature, session.topK];
session.oncontextoverflow = () => found.overflows.push("session");
found.refused = [
  await name(() => session.prompt("hi", { responseConstraint: { format: "date" } })),
  await name(() => session.prompt("hi", { responseConstraint: /a/i })),
  await name(() => session.prompt([{ role: "user", content: [{ type: "image", value: 1 }] }])),
  await name(() => session.prompt([{ role: "tool", content: "x" }])),
  await name(() => session.prompt([{ role: "system", content: "x" }])),
  await name(() => session.prompt("hi", { signal: AbortSignal.abort() })),
  await name(() => session.prompt("x".repeat(CONTEXT))),
  await name(() => LanguageModel.create({ tools: [] })),
  await name(() => LanguageModel.create({ topK: 0.5 })),
  await name(() => LanguageModel.create({ signal: AbortSignal.abort() })),
  await name(() => LanguageModel.create({ expectedInputs: [{ type: "audio" }] })),
];
found.untouched = session.contextUsage;
const branch = await session.clone();
const parts = [];
found.cut = await name(async () => {
  for await (const part of session.promptStreaming("hi")) parts.push(part);
});
found.streamed = parts.join("");
found.direct = await llm.chat([...initialPrompts, { role: "user", content: "hi" }], { temperature: 0 }).text();
found.afterCut = session.contextUsage;
const talk = [...initialPrompts, { role: "user", content: "hi" }, { role: "assistant", content: found.streamed }, { role: "user", content: "more" }];
const other = await session.clone();
found.more = [await session.prompt("more"), await other.prompt("more"), await llm.chat(talk, { temperature: 0 }).text()];
found.afterMore = session.contextUsage - found.afterCut;
for (const content of ["b".repeat(30), "c".repeat(30)]) await branch.append([{ role: "user", content: [{ type: "text", value: content }] }]);
branch.addEventListener("contextoverflow", () => found.overflows.push("branch"));
await branch.append("d".repeat(30));
found.forgot = branch.contextUsage;
const streams = session.promptStreaming("hi").getReader();
await streams.read();
await streams.cancel();
found.afterCancel = session.contextUsage - found.afterCut - found.afterMore;
const writing = session.prompt("hi");
const pending = name(() => writing);
session.destroy();
const aborter = new AbortController();
const third = await LanguageModel.create({ signal: aborter.signal });
aborter.abort();
found.gone = [await pending, await name(() => session.prompt("hi")), await name(() => third.prompt("hi"))];
await llm.dispose();
process.stdout.write(JSON.stringify(found));
"""
AGAIN = """
import { load } from SINGE;
const llm = await load(FOLDER, { device: "wasm", threads: 1 });
const session = llm.session();
const found = { texts: [], reused: [] };
for (const forget of [() => {}, () => session.rewind(2), () => session.generate("other", { temperature: 0, maxTokens: 3 }).text()]) {
  await forget();
  const answer = session.generate("hello", { temperature: 0, maxTokens: 8 });
  found.texts.push(await answer.text());
  found.reused.push(answer.usage.reusedTokens);
}
await llm.dispose();
process.stdout.write(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> sg.language.LanguageModel:
    return sg.language.load(tiny_gguf(tmp_path_factory.mktemp("tiny") / "tiny.gguf"), "wasm", context=CONTEXT)


@pytest.fixture(scope="module")
def folder(llm: sg.language.LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    sg.export(llm, made / "chat")
    (made / "page.html").write_text(PAGE.replace("MESSAGES", json.dumps(MESSAGES)))
    (made / "counted.html").write_text(COUNTED)
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serving(Server(folder, port=0)) as server:
        yield server.address


@pytest.fixture
def text(llm: sg.language.LanguageModel) -> str:
    """What Python's model answers."""
    return llm.chat(MESSAGES, temperature=0, max_tokens=12).text


def in_node(script: str, folder: Path) -> dict[str, Any]:
    """What a script answers that loads the bundle in a folder."""
    if shutil.which("node") is None:
        pytest.skip("no node here")
    for name, value in (
        ("MESSAGES", MESSAGES),
        ("CONTEXT", CONTEXT),
        ("SCHEMA", SCHEMA),
        ("TOOLS", TOOLS),
        ("CALL", CALL),
    ):
        script = script.replace(name, json.dumps(value))
    for name, path in (("SINGE", "singe.js"), ("FOLDER", "")):
        script = script.replace(name, json.dumps(f"{folder.as_uri()}/{path}"))
    done = subprocess.run(
        ["node", "--input-type=module", "-"], input=script, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def constrained(llm: sg.language.LanguageModel) -> list[Any]:
    """What Python's model answers where JavaScript's is asked for `found.constrained`."""
    regex = r"(hello|bye)! [0-9]{2}"
    answers = [
        llm.generate("hello", regex=regex, temperature=0),
        llm.generate("hello", regex=regex, seed=3, top_k=0),
        llm.chat(MESSAGES, schema=SCHEMA, temperature=0),
        llm.chat(MESSAGES, tools=TOOLS, regex=CALL, temperature=0),
        llm.chat(MESSAGES, regex=CALL, temperature=0),
        llm.chat(MESSAGES, tools=TOOLS, regex=CALL, temperature=0, max_tokens=9),
    ]
    return [[a.text, a.finish_reason, [call["function"]["name"] for call in a.tool_calls]] for a in answers]


def chances(llm: sg.language.LanguageModel) -> list[Sequence[TokenChance]]:
    """What Python's model says where JavaScript's is asked for `found.chances`."""
    own: Any = {"max_tokens": 30, "logprobs": 3, "stream": False}
    regex = r"(hello|bye)! [0-9]{2}"
    options: list[Any] = [{"temperature": 0}, {"seed": 3, "repeat_penalty": 1.3}, {"temperature": 0, "drafts": 4}]
    options.append({"temperature": 0, "regex": regex, "max_tokens": 40})
    return [llm.generate("hello hello hello", **{**own, **some}).logprobs for some in options]


@pytest.mark.slow
def test_in_node(llm: sg.language.LanguageModel, folder: Path, text: str) -> None:
    found = in_node(SCRIPT, folder / "chat")
    prompt = llm.chat_prompt(MESSAGES)
    assert "".join(found["parts"]) == text
    usage = {"promptTokens": len(prompt), "reusedTokens": 0, "completionTokens": 12, "totalTokens": len(prompt) + 12}
    assert found["facts"] == ["length", usage, CONTEXT, llm.template(MESSAGES)]
    assert found["prompt"] == list(prompt)
    assert found["stopped"] == [text[: text.index(found["stop"])], "stop", len(prompt) - 1]
    assert found["seeded"][0] == found["seeded"][1]
    assert len(set(found["longer"])) == 1
    assert found["reused"][0] == found["reused"][1] >= found["reused"][2]
    assert found["rewound"] == 2
    assert found["both"] == [text, text]
    assert found["after"] == text
    assert found["filled"][1] <= CONTEXT
    choice = found["completion"]["choices"][0]
    assert (choice["message"], choice["finish_reason"]) == ({"role": "assistant", "content": text}, "length")
    assert found["named"]["choices"] == found["completion"]["choices"]
    chunks = found["chunks"]
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]) == text
    assert [c["object"] for c in chunks] == ["chat.completion.chunk"] * len(chunks)
    assert chunks[-1]["usage"]["completion_tokens"] == 12
    assert found["constrained"] == constrained(llm)
    for theirs, own in zip(found["chances"], chances(llm), strict=True):
        assert [[c["token"], c["text"], *[i for i, _ in c["likeliest"]]] for c in theirs] == [
            [c.token, c.text, *[i for i, _ in c.likeliest]] for c in own
        ]
        for a, b in zip(theirs, own, strict=True):
            wanted = [b.logprob, *[p for _, p in b.likeliest]]
            np.testing.assert_allclose([a["logprob"], *[p for _, p in a["likeliest"]]], wanted, atol=5e-3)
    assert found["openaiChunks"] == found["openai"]
    answer = llm.chat(MESSAGES, temperature=0, max_tokens=12, logprobs=2)
    assert answer.text == text
    for theirs, own in zip(found["openai"], answer.logprobs, strict=True):
        spelled = [llm.tokenizer.decode([i], skip_special=False) for i, _ in own.likeliest]
        assert [x["token"] for x in (theirs, *theirs["top_logprobs"])] == [own.text, *spelled]
        assert theirs["bytes"] == list(own.text.encode())
    repeated: Any = {"temperature": 0, "max_tokens": 40}
    assert found["drafted"] == llm.generate("hello hello hello", **repeated).text
    shifted = llm.chat(MESSAGES, temperature=0, max_tokens=200, shift=True, repeat_penalty=1.1)
    assert found["shifted"] == [shifted.text, "length", 200]
    long = [70 + i % 7 for i in range(150)]
    assert found["shiftedPrompt"] == llm.generate(long, temperature=0, max_tokens=5, shift=True).text
    assert found["prompted"][0] in ("yes!", "no!")
    assert found["prompted"][1] in ('"b"', "1")
    assert json.loads(found["formed"]["choices"][0]["message"]["content"])["ok"] in (True, False)
    choice, last = found["called"]["choices"][0], found["calledChunks"][-1]["choices"][0]
    assert choice["finish_reason"] == last["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    for calls in (choice["message"]["tool_calls"], last["delta"]["tool_calls"]):
        assert [call["function"] for call in calls] == [{"name": "now", "arguments": "{}"}]
    wanted = (
        ("input", 'the keyword "format" of string is not supported'),
        ("input", "schema and regex are given"),
        ("input", 'tool_choice: got "required", expected auto or none'),
        ("input", "logprobs: got 101, expected a number from 0 to 100"),
        ("input", "top_logprobs is given without logprobs"),
        ("input", "the prompt has 96 tokens, and there is room for 95 and an answer"),
        ("input", "the prompt has no tokens"),
        ("input", "messages: got Hello, expected a list"),
        ("input", 'unknown option "temprature": expected some of temperature, topK'),
        ("input", "topP: got 2, expected a number, above 0, at most 1"),
        ("input", "stop: expected a text, or a list of texts"),
        ("input", "an answer can be read once"),
        ("input", "best_of: expected some of model"),
        ("aborted", ""),
    )
    for (code, message), (wanted_code, part) in zip(found["errors"], wanted, strict=True):
        assert code == wanted_code
        assert part in message


@pytest.mark.slow
def test_the_shape_of_the_prompt_api(llm: sg.language.LanguageModel, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "chat", tmp_path / "chat")
    manifest = json.loads((tmp_path / "chat" / "model.json").read_bytes())
    manifest["language"]["ends"] = [*range(0, llm.description.vocabulary, 2)]  # answers are short
    (tmp_path / "chat" / "model.json").write_text(json.dumps(manifest))
    found = in_node(PROMPTS, tmp_path / "chat")
    begun = len(llm.chat_prompt([{"role": "system", "content": "a"}])) - len("<assistant>")
    assert (found["available"], found["progress"]) == ("available", [0, 1])
    assert found["facts"] == [CONTEXT, begun, len("<user>hi\n"), 0, 1]
    assert found["refused"] == [
        "SingeError", "SingeError", "NotSupportedError", "TypeError", "TypeError", "AbortError", "QuotaExceededError", "NotSupportedError",
        "SingeError", "AbortError", "NotSupportedError",
    ]  # fmt: skip
    assert found["untouched"] == begun
    assert (found["cut"], found["afterCancel"]) == ("", 0)
    assert found["streamed"] == found["direct"]
    assert found["afterCut"] > begun + len("<user>hi\n")
    assert len(set(found["more"])) == 1
    assert found["afterMore"] > len("<user>more\n")
    assert found["overflows"][0] == "branch"
    assert found["forgot"] == begun + len("<user>\n") + 30
    assert found["gone"] == ["AbortError", "InvalidStateError", "InvalidStateError"]


@pytest.mark.slow
def test_what_cannot_be_forgotten_is_read_again(tmp_path: Path) -> None:
    """A layer of LFM2 keeps what came before, and not by position: a text that parts from the one before is read from the start."""
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf", "lfm2"), "wasm", context=CONTEXT)
    sg.export(llm, tmp_path / "chat", targets=["wasm"])
    found = in_node(AGAIN, tmp_path / "chat")
    wanted = llm.generate("hello", temperature=0, max_tokens=8).text
    assert found == {"texts": [wanted] * 3, "reused": [0, 0, 0]}


@pytest.mark.slow
def test_targets_share_packed_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, scales and zeros are stored once, scales in 16 bits; the table of tokens is in one place, for rows and for products."""
    form = pytest.importorskip("gguf").GGMLQuantizationType.Q4_1
    file = tiny_gguf(tmp_path / "tiny.gguf", form=lambda name, x: form if x.ndim == 2 else None)
    llm = sg.language.load(file, "wasm", context=CONTEXT)
    monkeypatch.setattr(weights, "WORTH", 1)  # as in a large model
    for stored in (narrow, weights):
        monkeypatch.setattr(stored, "LEAST", 1)
    sg.export(llm, tmp_path / "chat")
    targets = json.loads((tmp_path / "chat" / "model.json").read_bytes())["targets"]
    wasm, webgpu = ([w["file"] for w in targets[name]["weights"]] for name in ("wasm", "webgpu"))
    assert set(wasm) == set(webgpu)
    assert len(webgpu) == len(set(webgpu)) == len(wasm)
    assert "float16" in {p["encoding"] for w in targets["wasm"]["weights"] for p in w.get("parts", ())}
    wanted = llm.generate("hello", temperature=0, max_tokens=8).text
    assert in_node(AGAIN, tmp_path / "chat")["texts"] == [wanted] * 3


@pytest.mark.slow
@pytest.mark.parametrize("device", ["wasm", "webgpu"])
def test_in_chromium_it_runs_in_a_worker(browser: Any, address: str, text: str, device: str) -> None:
    with browser.new_page() as page:
        page.goto(f"{address}page.html?device={device}")
        until(page, "document.title === 'done'")
        assert page.evaluate("answer") == {"worker": True, "text": text}


@pytest.mark.slow
def test_tokens_share_commands(browser: Any, address: str) -> None:
    """The length is read from a buffer: a token costs one submit, and its commands are made once for all tokens."""
    with browser.new_page() as page:
        page.goto(f"{address}counted.html")
        until(page, "document.title === 'done'", 240)  # SwiftShader is slow at folds
        first, second, third = page.evaluate("counted")
        _of_a_token, of_a_prompt, *_ = page.evaluate("together")
    assert of_a_prompt > 8, "a first prompt need not wait for one after the other"
    (few, _), (many, others) = (
        [after[name] - before[name] for name in ("submit", "createBindGroup")]
        for before, after in ((first, second), (second, third))
    )
    assert (few, many, others) == (2, 4, 0)
    assert (
        third["createBuffer"] <= second["createBuffer"] + 1
    )  # a second one for what is read, if a run begins before one ends


@pytest.mark.slow
def test_its_page(browser: Any, address: str) -> None:
    """Messages are text, never markup; answers are made again, messages changed, and all controls can be reached on a phone."""
    with browser.new_page(viewport={"width": 390, "height": 700}) as page:
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{address}chat/")
        ready = page.locator("[data-testid=status][data-state=ready]")
        ready.wait_for()
        page.get_by_test_id("backend").select_option("wasm")
        page.locator("[data-testid=status]", has_text="on wasm").wait_for()
        page.get_by_test_id("prompt").fill("<img src=x onerror=alert(1)>")
        page.keyboard.press("Enter")
        page.get_by_test_id("again").wait_for()
        ready.wait_for()
        messages = page.locator("[data-testid=messages] p")
        assert messages.nth(0).inner_text() == "<img src=x onerror=alert(1)>"
        assert page.locator("[data-testid=messages] img").count() == 0
        assert "tokens" in page.get_by_test_id("used").inner_text()
        page.get_by_test_id("again").click()
        page.get_by_test_id("again").wait_for()
        ready.wait_for()
        assert messages.count() == 2
        for name in ("backend", "temperature", "prompt", "send", "clear"):
            middle = "e => { const r = e.getBoundingClientRect(); return document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2) === e; }"
            assert page.get_by_test_id(name).evaluate(middle), name
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.get_by_test_id("edit").click()
        assert messages.count() == 0
        assert page.get_by_test_id("prompt").input_value() == "<img src=x onerror=alert(1)>"
        page.get_by_test_id("clear").click()
        assert not faults
        page.close()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tiny_gguf(tmp_path / "tiny.gguf"))
    (tmp_path / "given.jinja").write_text("{{ messages[0].content }}")
    options = [
        "--targets",
        "wasm",
        "--context",
        "50",
        "--activations",
        "int8",
        "--chat-template",
        str(tmp_path / "given.jinja"),
    ]
    assert singe(["export", file, "-o", str(tmp_path / "chat"), *options]) == 0
    assert "To talk with it: singe serve" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "chat" / "model.json").read_bytes())
    facts = manifest["language"]
    assert (facts["context"], facts["rewinds"], facts["ends"]) == (50, True, [0])
    assert (facts["template"], manifest["facts"]["activations"]) == ("{{ messages[0].content }}", "packed_int8")
    values = json.loads((tmp_path / "chat" / "tokenizer.json").read_bytes())
    assert tokenizer_of(values, None, "tokenizer.json").encode("hello") == sg.language.load(file).tokenizer.encode(
        "hello"
    )
    for options, message in (
        (["--dtype", "float16"], "--dtype cannot be given with a language model"),
        (["--snippet"], "--snippet cannot be given with a language model"),
    ):
        assert singe(["export", file, "-o", str(tmp_path / "no"), *options]) == 2
        assert message in capsys.readouterr().err


def test_other_forms_than_a_folder_are_refused(llm: sg.language.LanguageModel, tmp_path: Path) -> None:
    with pytest.raises(sg.InputError, match="of a language model a folder can be written"):
        sg.export(llm, tmp_path / "m.onnx")
