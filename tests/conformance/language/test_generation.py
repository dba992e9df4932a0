"""Texts that a tiny model makes: parts, seeds, stop texts, sessions that go on, and what is refused."""

from __future__ import annotations

import json
import re
import signal
from io import StringIO
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
import pytest
from command_line import run
from decoder_cases import config_of, read_fixture, weights_of
from devices import RUNNERS
from gguf_decoders import write_gguf
from tiny_language import tiny_folder, tiny_gguf

import singe as sg
from singe.tools import chatting

GREEDY: Final[dict[str, Any]] = {"temperature": 0, "max_tokens": 12}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def llm(path: Path) -> sg.language.LanguageModel:
    return sg.language.load(path, "numpy", context=96)


@RUNNERS
@pytest.mark.slow
def test_a_seed_gives_the_same_text_on_each_device(path: Path, device_name: str) -> None:
    """Whether the host chooses the tokens or the runs do."""
    llm = sg.language.load(path, device_name, context=96)
    made = list[Any]()
    for chooses in (False, True):
        vars(llm)["chooses"] = chooses
        made.append(llm.generate("hello", max_tokens=12, seed=4, repeat_penalty=1.2, stream=False))
    assert made[0].text == made[1].text
    assert made[0].tokens == made[1].tokens
    assert made[1].usage.reused_tokens == made[1].usage.prompt_tokens - 1


def test_the_parts_are_the_text_and_the_tokens_its_likeliest(llm: sg.language.LanguageModel) -> None:
    prompt = llm.tokenizer.encode("hello")
    generation = llm.generate(prompt, logprobs=1, **GREEDY)
    assert "".join(generation) == generation.text
    assert generation.finish_reason == "length"
    assert generation.usage.completion_tokens == 12
    scores = llm.logits([*prompt, *generation.tokens])[len(prompt) - 1 : -1]
    assert tuple(scores.argmax(-1)) == generation.tokens
    assert [chance.likeliest[0][0] for chance in generation.logprobs] == list(generation.tokens)
    assert all(chance.logprob == chance.likeliest[0][1] for chance in generation.logprobs)


def test_a_stop_text_ends_it_and_is_left_out(llm: sg.language.LanguageModel) -> None:
    whole = llm.generate("hello", **GREEDY).text
    stop = whole[3:6]
    generation = llm.generate("hello", stop=stop, **GREEDY)
    assert generation.text == whole[: whole.index(stop)]
    assert generation.finish_reason == "stop"


def test_a_conversation_that_goes_on_computes_only_what_is_new(llm: sg.language.LanguageModel) -> None:
    messages = [{"role": "user", "content": "hello"}]
    assert llm.template(messages) == "<user>hello\n<assistant>"
    session = llm.session()
    first = session.chat(messages, max_tokens=4, temperature=0)
    messages += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "more"}]
    second = session.chat(messages, **GREEDY)
    text = second.text
    assert second.usage.reused_tokens >= first.usage.prompt_tokens
    assert text == llm.session().chat(messages, **GREEDY).text


def test_sessions_are_copied_rewound_and_saved(llm: sg.language.LanguageModel, tmp_path: Path) -> None:
    session = llm.session()
    session.feed(range(5, 15))
    session.save(tmp_path / "s.safetensors")
    branch, other = session.copy(), llm.session()
    other.load(tmp_path / "s.safetensors")
    wanted = session.feed([20, 21])
    np.testing.assert_array_equal(branch.feed([20, 21]), wanted)
    np.testing.assert_array_equal(other.feed([20, 21]), wanted)
    session.rewind(10)
    assert session.tokens == tuple(range(5, 15))
    np.testing.assert_array_equal(session.feed([20, 21]), wanted)
    session.rewind(0)
    assert session.tokens == ()


def test_a_session_of_another_model_is_refused(llm: sg.language.LanguageModel, path: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.safetensors"
    sg.language.load(path, "numpy", context=200).session().save(file)
    llm.session().load(file)
    write_gguf(tmp_path / "other.gguf", config_of("llama"), weights_of(read_fixture()["cases"]["llama"]["shapes"]))
    with pytest.raises(sg.InputError, match="of another model"):
        sg.language.load(tmp_path / "other.gguf", "numpy", context=96).session().load(file)
    with pytest.raises(sg.InputError, match="not a saved session"):
        llm.session().load(path)


def test_a_full_context_says_so(llm: sg.language.LanguageModel) -> None:
    with pytest.raises(sg.InputError, match="the text has 90 tokens and 20 more, there is room for 96"):
        llm.generate([5] * 90, max_tokens=20)
    session = llm.session()
    session.feed([5] * 90)
    with pytest.raises(sg.InputError, match="the context is full: 90 tokens and 7 more, there is room for 96"):
        session.feed([5] * 7)
    generation = llm.generate([5] * 90, temperature=0)
    assert generation.text
    assert generation.finish_reason in ("length", "stop")


@pytest.mark.parametrize("case", ["llama3", "lfm2"])
def test_a_context_that_shifts_goes_on_as_from_what_it_keeps(tmp_path: Path, case: str) -> None:
    """lfm2: what it holds cannot go back, and is read again."""
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf", case), "numpy", context=48)
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "hello"}]
    beginning = llm.chat_prompt(messages)[: len("<system>a\n<user>")]
    assert llm.tokenizer.decode(beginning) == "<system>a\n<user>"
    session = llm.session()
    options: dict[str, Any] = {"temperature": 0, "shift": True, "max_tokens": 60, "regex": "[a-z]{300}"}
    answer = session.chat(messages, **options)
    assert len(answer.text) >= 60
    assert answer.finish_reason == "length"
    assert session.tokens[: len(beginning)] == tuple(beginning)
    held, rest = session.tokens, [*llm.chat_prompt(messages), *answer.tokens][:-1]
    assert held[len(beginning) :] == tuple(rest[len(rest) - len(held) + len(beginning) :])
    assert len(held) > 24
    scores = llm.session().feed(held)
    masked = [
        i for i, word in enumerate(llm.tokenizer.vocabulary) if word.isalpha() and word.islower() and word.isascii()
    ]
    assert masked[int(scores[masked].argmax())] == answer.tokens[-1]
    messages += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "more"}]
    more = session.chat(messages, **options)
    assert len(more.text) >= 60
    assert more.usage.prompt_tokens <= 48


@RUNNERS
@pytest.mark.slow
def test_drafts_give_the_same_tokens_in_fewer_runs(
    path: Path, device_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = sg.language.load(path, device_name, context=96)
    counts = list[int]()
    run = sg.language.LanguageSession.add

    def counted(self: sg.language.LanguageSession, tokens: Any, rows: int, sampling: Any, before: Any) -> Any:
        counts.append(rows + len(sampling))
        return run(self, tokens, rows, sampling, before)

    monkeypatch.setattr(sg.language.LanguageSession, "add", counted)
    repeats = {"max_tokens": 40, "regex": "(hello you ){9}.*"}
    cases: list[dict[str, Any]] = [
        {**GREEDY}, {**repeats, "temperature": 0}, {**repeats, "seed": 3, "stop": "you hello yo"}, {**repeats, "seed": 4, "logprobs": 1},
        {**repeats, "shift": True, "max_tokens": 100, "temperature": 0},
    ]  # fmt: skip
    for options in cases:
        texts = [llm.session().generate("hello you hello", drafts=drafts, **options) for drafts in (0, 4)]
        runs: list[int] = []
        for text in texts:
            counts.clear()
            assert text.text
            runs.append(len(counts))
            assert max(counts) <= 5
        plain, drafted = texts
        assert (drafted.tokens, drafted.finish_reason) == (plain.tokens, plain.finish_reason)
        assert [c.token for c in drafted.logprobs] == [c.token for c in plain.logprobs]
        held = drafted.session.tokens
        assert held[-20:] == plain.session.tokens[-20:]
        if "regex" in options:
            assert runs[1] < 0.7 * runs[0]


def test_drafts_are_refused_where_a_session_cannot_go_back(tmp_path: Path, llm: sg.language.LanguageModel) -> None:
    other = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf", "lfm2"), "numpy", context=48)
    with pytest.raises(sg.InputError, match="drafts: layers of this model"):
        other.generate("hello", drafts=2)
    with pytest.raises(sg.InputError, match="drafts: got 99, expected a number of tokens from 0 to 15"):
        llm.generate("hello", drafts=99)


def test_a_beginning_that_leaves_no_room_to_shift_is_refused(llm: sg.language.LanguageModel) -> None:
    messages = [{"role": "system", "content": "a" * 60}, {"role": "user", "content": "hello"}]
    with pytest.raises(
        sg.InputError, match="the beginning that is kept has 75 tokens, at most half of the room for 96"
    ):
        llm.chat(messages, shift=True)
    with pytest.raises(sg.InputError, match="shift: got 1"):
        llm.session().generate("hello", shift=1)


def test_a_text_that_is_left_early_frees_the_session(llm: sg.language.LanguageModel) -> None:
    first = llm.generate("hello", **GREEDY)
    next(first)
    second = llm.generate("hello", **GREEDY)
    assert next(second)
    first.close()
    assert second.text == llm.generate("hello", **GREEDY).text


@pytest.mark.parametrize(
    ("ids", "message"),
    [([], "empty|whole numbers"), ([-1], "ids: got -1"), ([10**6], "ids: got 1000000"), ([1.5], "whole numbers")],
)
def test_ids_out_of_range_are_refused(llm: sg.language.LanguageModel, ids: list[int], message: str) -> None:
    with pytest.raises(sg.InputError, match=message):
        llm.generate(ids)


def test_unknown_options_are_refused(llm: sg.language.LanguageModel) -> None:
    with pytest.raises(sg.InputError, match="there is no option heat; there are max_tokens"):
        llm.session().generate("hello", heat=1)
    with pytest.raises(sg.InputError, match=r"; did you mean temperature\?$"):
        llm.session().generate("hello", temprature=1)
    with pytest.raises(sg.InputError, match="stop: got"):
        llm.generate("hello", stop=[""])
    with pytest.raises(sg.InputError, match="stop: got"):
        llm.generate("hello", stop=3)  # pyright: ignore[reportArgumentType]


def test_a_terminal_talks_and_keeps_the_conversation(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kept.json"
    lines = f"hello\n/save {file}\n/reset\nhello\n/load {file}\nmore\n/exit\nnever\n"
    monkeypatch.setattr("sys.stdin", StringIO(lines))
    options = ("--device", "numpy", "--max-tokens", 4, "--temperature", 0, "--context", 96)
    code, shown, told = run(capsys, "chat", path, *options)
    assert code == 0, told
    kept = json.loads(file.read_bytes())
    assert [message["role"] for message in kept] == ["user", "assistant"]
    assert told.count(" tokens, ") == 3
    assert "never" not in shown
    monkeypatch.setattr("sys.stdin", StringIO(f"/load {path}\n"))
    code, _, told = run(capsys, "chat", path, *options)
    assert code == 2
    assert "not JSON" in told


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ("Hello", "got 'Hello' as messages, expected a list of some"),
        ({"role": "user", "content": "Hello"}, "expected a list of some"),
        ([], "got \\[\\] as messages"),
        (["Hello"], "got the message 'Hello', expected a role and a content"),
        ([{"content": "Hello"}], "expected a role and a content"),
        ([{"role": "user"}], "got None as the content of a message of 'user', expected a text"),
        ([{"role": "user", "content": 3}], "got 3 as the content"),
    ],
)
def test_what_are_no_messages_is_refused(llm: sg.language.LanguageModel, messages: Any, said: str) -> None:
    with pytest.raises(sg.InputError, match=said):
        llm.chat(messages)


def test_ctrl_c_stops_an_answer_and_the_conversation_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts: list[str] = []

    def say(text: str = "", end: str = "\n", file: TextIO | None = None) -> None:
        if not end:
            parts.append(text)
            if len(parts) == 1:
                signal.raise_signal(signal.SIGINT)
        print(text, end=end, file=file)

    monkeypatch.setattr(chatting, "say", say)
    monkeypatch.setattr("sys.stdin", StringIO("hello\nhello\n"))
    before = signal.getsignal(signal.SIGINT)
    code, _, told = run(
        capsys, "chat", path, "--device", "numpy", "--max-tokens", 4, "--temperature", 0, "--context", 96
    )
    assert (code, len(parts)) == (0, 5), told
    assert re.findall(r"\[(\d) tokens, .* of 96 in use(.*)\]", told) == [("1", "; stopped"), ("4", "; cut off")]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_a_terminal_goes_on_with_texts_where_there_is_no_chat_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tiny_folder(tmp_path / "plain", "llama3")
    (folder / "tokenizer_config.json").write_text("{}")
    options = ("--device", "numpy", "--max-tokens", 2, "--context", 96)
    monkeypatch.setattr("sys.stdin", StringIO("hello\n"))
    code, _, told = run(capsys, "chat", folder, *options)
    assert code == 0, told
    assert "no chat template" in told
    assert "2 tokens, " in told
    code, _, told = run(capsys, "chat", folder, *options, "--system", "Be brief.")
    assert code == 2
    assert "--system: the model has no chat template" in told
    file = tmp_path / "given.jinja"
    file.write_text("{{ messages[0].content }}")
    monkeypatch.setattr("sys.stdin", StringIO("hello\n"))
    given = ("--chat-template", file, "--activations", "float32", "--system", "Be brief.")
    code, _, told = run(capsys, "chat", folder, *options, *given)
    assert code == 0, told
    assert "no chat template" not in told
    file.write_text("{% for %}")
    code, _, told = run(capsys, "chat", folder, *options, *given)
    assert code == 2
    assert "template" in told
