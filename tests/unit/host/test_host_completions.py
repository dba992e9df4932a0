"""Requests of OpenAI's completions, and the language model that answers them, without a server."""

from __future__ import annotations

import asyncio
import base64
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_language import tiny_gguf

import singe as sg
from singe.errors import InputError
from singe.host import Application
from singe.host.openai.completions import CompletionPart, CompletionRequest, completion, event, read_completion
from singe.host.openai.engine import LanguageEngine
from singe.host.openai.sessions import KeptSessions
from singe.host.protocol import Refused
from singe.language.generation import Generation

pytestmark = pytest.mark.slow

HELLO = [{"role": "user", "content": "hello"}]


def chat(**fields: Any) -> CompletionRequest:
    return read_completion(json.dumps({"model": "m", "messages": HELLO, **fields}).encode(), True)


def engine(llm: sg.language.LanguageModel, cache: int = 1 << 26) -> LanguageEngine:
    return LanguageEngine("m", llm, 256, math.inf, cache)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"colour": 1}, "no field colour"),
        ({"n": 2}, "n: got 2"),
        ({"messages": "hello"}, "messages: got"),
        ({"messages": [{"role": "user", "content": [1]}]}, "content is no text"),
        ({"stream": 1}, "stream: got 1"),
        ({"top_logprobs": 2}, "without logprobs"),
        ({"stop": 3}, "stop: got 3"),
        ({"stream_options": {"other": 1}}, "stream_options"),
        ({"tools": {}}, "tools: got"),
        ({"tool_choice": "required"}, "tool_choice: got 'required'"),
        ({"model": 3}, "model: got 3"),
        ({"response_format": {"type": "xml"}}, "response_format: got"),
        ({"chat_template_kwargs": 1}, "chat_template_kwargs: got 1"),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        chat(**fields)


def test_an_answer_is_the_models_own_and_a_conversation_that_goes_on_is_reused(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=128)
    asked = chat(max_tokens=4, temperature=0, logprobs=True)

    async def work() -> list[list[CompletionPart]]:
        served = engine(llm)
        first = [part async for part in served.parts(asked)]
        again = [part async for part in served.parts(asked)]
        with pytest.raises(InputError, match="room for 128"):
            _ = [part async for part in served.parts(chat(max_tokens=1000))]
        leaving = served.parts(chat(temperature=0))
        await anext(leaving)
        await leaving.aclose()
        await served.stop("the test is over")
        with pytest.raises(Refused, match="the test is over"):
            _ = [part async for part in served.parts(asked)]
        return [first, again]

    wanted = llm.chat(HELLO, max_tokens=4, temperature=0)
    for parts in (found := asyncio.run(work())):
        assert "".join(p.text for p in parts) == wanted.text
        assert parts[-1].finish_reason == wanted.finish_reason
    last = found[1][-1]
    assert last.usage is not None
    assert last.usage.reused_tokens == last.usage.prompt_tokens - 1
    answer = completion(asked, {"id": "1", "created": 0}, CompletionPart("x", None), str, "whole")
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "x"}
    assert event("[DONE]") == b"data: [DONE]\n\n"


def test_a_context_that_shifts_is_read_on_between_other_texts(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=48)
    asked = chat(max_tokens=60, temperature=0, regex="[a-z]{200}", shift=True)

    async def work() -> str:
        served = engine(llm)
        parts = [part async for part in served.parts(asked)]
        await served.stop("the test is over")
        return "".join(part.text for part in parts)

    assert asyncio.run(work()) == llm.chat(HELLO, **asked.options).text


async def ask(
    app: Application, path: str, body: Any = None, token: str = "secret", leaves: bool = False
) -> tuple[int, bytes]:
    """A request of a hand-written client; leaves: it goes when the first part is here."""
    sent, gone = list[dict[str, Any]](), asyncio.Event()
    messages = [
        {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode(), "more_body": False}
    ]

    async def receive() -> Any:
        if not messages:
            await gone.wait()
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if leaves and message.get("body"):
            gone.set()

    method = "GET" if body is None else "POST"
    headers = [(b"authorization", f"Bearer {token}".encode()), (b"host", b"127.0.0.1")]
    await app({"type": "http", "method": method, "path": path, "headers": headers}, receive, send)
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent[1:])


def test_the_routes_answer_in_openais_shapes(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=512)
    wanted = llm.chat(HELLO, max_tokens=4, temperature=0)
    body = {"model": "m", "messages": HELLO, "max_tokens": 4, "temperature": 0}

    async def work() -> None:
        app = Application({"m": llm}, token="secret")
        status, answer = await ask(app, "/v1/models")
        assert (status, [m["id"] for m in json.loads(answer)["data"]]) == (200, ["m"])
        status, answer = await ask(app, "/v1/chat/completions", {**body, "logprobs": True, "top_logprobs": 2})
        choice = json.loads(answer)["choices"][0]
        assert (status, choice["message"]["content"], choice["finish_reason"]) == (
            200,
            wanted.text,
            wanted.finish_reason,
        )
        assert all(len(place["top_logprobs"]) == 2 for place in choice["logprobs"]["content"])
        status, answer = await ask(
            app, "/v1/chat/completions", {**body, "stream": True, "stream_options": {"include_usage": True}}
        )
        *events, end, rest = answer.decode().split("\n\n")
        chunks = [json.loads(e.removeprefix("data: ")) for e in events]
        assert (status, end, rest) == (200, "data: [DONE]", "")
        assert "".join(c["choices"][0]["delta"]["content"] for c in chunks[:-1]) == wanted.text
        assert ["role" in c["choices"][0]["delta"] for c in chunks[:-1]] == [True] + [False] * (len(chunks) - 2)
        assert chunks[-1]["usage"]["completion_tokens"] == wanted.usage.completion_tokens
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes", "no"]}}}
        status, answer = await ask(app, "/v1/chat/completions", {**body, "max_tokens": 9, "response_format": form})
        assert json.loads(answer)["choices"][0]["message"]["content"] in ('"yes"', '"no"')
        status, answer = await ask(
            app, "/v1/completions", {"model": "m", "prompt": "hello", "max_tokens": 2, "logprobs": 1}
        )
        assert (status, json.loads(answer)["object"]) == (200, "text_completion")
        tools = [{"type": "function", "function": {"name": "now", "parameters": {}}}]
        called = {**body, "max_tokens": 99, "tools": tools, "regex": r'\{"name": "now", "arguments": \{\}\}'}
        status, answer = await ask(app, "/v1/chat/completions", called)
        choice = json.loads(answer)["choices"][0]
        call = {"type": "function", "function": {"name": "now", "arguments": "{}"}}
        assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
        assert [{**c, "id": 0} for c in choice["message"]["tool_calls"]] == [{**call, "id": 0}]
        status, answer = await ask(app, "/v1/chat/completions", {**called, "stream": True})
        choice = json.loads(answer.decode().split("\n\n")[-3].removeprefix("data: "))["choices"][0]
        assert (choice["finish_reason"], choice["delta"]["tool_calls"][0]["index"]) == ("tool_calls", 0)
        status, answer = await ask(app, "/v1/chat/completions", {**called, "tool_choice": "none"})
        assert json.loads(answer)["choices"][0]["finish_reason"] == "stop"
        for wrong, expected in (
            ({**body, "model": "n"}, 404),
            ({**body, "tools": ["now"]}, 400),
            ({**body, "colour": 1}, 400),
            ({**body, "regex": "(?=a)"}, 400),
            ({**body, "max_tokens": 9999}, 400),
        ):
            status, answer = await ask(app, "/v1/chat/completions", {**wrong, "stream": True})
            assert (status, json.loads(answer)["error"]["type"]) == (expected, "invalid_request_error")
        assert (await ask(app, "/v1/models", token="wrong"))[0] == 401
        await ask(app, "/v1/chat/completions", {**body, "max_tokens": 400, "stream": True}, leaves=True)
        assert b'singe_requests_total{model="m"}' in (await ask(app, "/metrics"))[1]
        await app.stop("the test is over")
        assert (await ask(app, "/v1/chat/completions", body))[0] == 503

    asyncio.run(work())


def test_what_goes_wrong_after_the_first_part_is_an_event_and_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=512)
    took, body = Generation.take, {"model": "m", "messages": HELLO, "max_tokens": 40, "stream": True}

    def take(self: Generation, scores: Any) -> str:
        if len(self.tokens) == 20:
            raise RuntimeError("the cable was pulled")
        return took(self, scores)

    async def work() -> None:
        app = Application({"m": llm}, token="secret")
        monkeypatch.setattr(Generation, "take", take)
        status, answer = await ask(app, "/v1/chat/completions", {**body, "temperature": 0, "seed": 1})
        *_, last, rest = answer.decode().split("\n\n")
        assert (status, rest) == (200, "")
        assert json.loads(last.removeprefix("data: "))["error"]["type"] == "server_error"
        assert b'singe_errors_total{model="m",status="500"} 1' in (await ask(app, "/metrics"))[1]
        monkeypatch.setattr(Generation, "take", took)
        assert (await ask(app, "/v1/chat/completions", {**body, "max_tokens": 4}))[1].endswith(b"data: [DONE]\n\n")
        await app.stop("the test is over")

    asyncio.run(work())
    assert "the cable was pulled" in capsys.readouterr().err


def test_conversations_take_no_more_memory_than_they_may(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=128)
    with pytest.raises(InputError, match=f"one conversation of 128 tokens takes {llm.session_bytes}"):
        KeptSessions(llm, llm.session_bytes - 1)
    kept, long = KeptSessions(llm, 2 * llm.session_bytes), [*range(2, 102)]
    first = kept.taken(long)
    first.feed(long)
    copy = kept.taken([*long, 5])  # the first is in use: what it has is copied
    assert (copy.tokens, kept.has_free) == (first.tokens, False)
    kept.give(first, is_sound=True)
    other = kept.taken([7, 8])  # there is no room for a third one
    assert other is first
    kept.give(copy, is_sound=False)
    assert kept.taken([7, 8]) is not copy


def test_more_requests_than_there_is_memory_for_take_turns(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=128)
    asked = [chat(messages=[{"role": "user", "content": "hello" * n}], max_tokens=6, temperature=0) for n in range(5)]
    wanted = [llm.chat(a.prompt, max_tokens=6, temperature=0).text for a in asked]

    async def text(served: LanguageEngine, request: CompletionRequest) -> str:
        return "".join([part.text async for part in served.parts(request)])

    async def work() -> list[str]:
        served = engine(llm, 2 * llm.session_bytes)
        found = await asyncio.gather(*(text(served, a) for a in asked))
        await served.stop("the test is over")
        return found

    assert asyncio.run(work()) == wanted


def test_texts_that_are_made_at_once_are_those_that_each_would_be_alone(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=128)
    asked = [
        chat(messages=[{"role": "user", "content": "hello" * n}], max_tokens=9 + n, temperature=0) for n in range(9)
    ]
    wanted = [llm.chat(a.prompt, max_tokens=a.options["max_tokens"], temperature=0).text for a in asked]

    async def text(served: LanguageEngine, request: CompletionRequest) -> str:
        return "".join([part.text async for part in served.parts(request)])

    async def work() -> list[str]:
        served = engine(llm)
        found = await asyncio.gather(*(text(served, a) for a in asked))
        assert any('le="8"' in line for line in served.counts.rows.lines("rows", 'model="m"'))
        await served.stop("the test is over")
        return found

    assert asyncio.run(work()) == wanted


def test_vectors_of_texts_have_length_one_and_openais_shape(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=512)
    vectors = llm.embed(["hello", "x" * 200], pooling="last")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    with pytest.raises(InputError, match="expected one of mean, last"):
        llm.embed("hello", pooling="first")

    async def work() -> None:
        app = Application({"m": llm}, token="secret")
        ids = llm.tokenizer.encode("hello")
        status, answer = await ask(app, "/v1/embeddings", {"model": "m", "input": ["hello", ids]})
        found = json.loads(answer)
        assert (status, found["usage"]["prompt_tokens"]) == (200, 2 * len(ids))
        for row in found["data"]:
            np.testing.assert_allclose(row["embedding"], llm.embed("hello"), atol=1e-6)
        status, answer = await ask(app, "/v1/embeddings", {"model": "m", "input": ids, "encoding_format": "base64"})
        packed = np.frombuffer(base64.b64decode(json.loads(answer)["data"][0]["embedding"]), "<f4")
        np.testing.assert_allclose(packed, llm.embed("hello"), atol=1e-6)
        for wrong in ({"input": []}, {"input": "x" * 600}, {"input": "x", "dimensions": 3}):
            assert (await ask(app, "/v1/embeddings", {"model": "m", **wrong}))[0] == 400
        await app.stop("the test is over")

    asyncio.run(work())


def test_a_context_is_for_language_models() -> None:
    with pytest.raises(InputError, match="and no language model"):
        Application({"m": sg.Model.of(sg.nn.Linear(2, 2), {"x": ("N", 2)}, "numpy")}, context=128)
    with pytest.raises(InputError, match="got Program as a model"):
        Application({"m": sg.compile(sg.nn.Linear(2, 2), np.zeros((1, 2), np.float32))})  # pyright: ignore[reportArgumentType]


def test_replicas_run_no_language_model() -> None:
    pytest.importorskip("uvicorn")
    with pytest.raises(InputError, match="replicas do not run"):
        sg.host.ModelServer({"m": "m.gguf"}, port=0, replicas=(1, 1))


def test_files_of_language_models_are_loaded_as_is_asked(tmp_path: Path) -> None:
    file = tiny_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "given.jinja").write_text("{{ messages[0].content }}")
    options: Any = {"context": 32, "cache_dtype": "float32", "chat_template": tmp_path / "given.jinja"}
    llm = Application({"m": file}, "numpy", activations="float32", **options).languages["m"].llm
    assert (llm.context, llm.network.cache_dtype, llm.decoder.options.activations) == (32, "float32", "float32")
    assert llm.template([{"role": "user", "content": "hello"}]) == "hello"
