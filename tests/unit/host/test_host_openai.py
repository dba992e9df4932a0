"""The openai package is a client of a served language model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tiny_language import tiny_gguf

import singe as sg

openai = pytest.importorskip("openai")
pytest.importorskip("uvicorn")


def test_openais_own_client_reads_answers_streams_and_errors(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=128)
    messages = [{"role": "user", "content": "hello"}]
    wanted = llm.chat(messages, max_tokens=4, temperature=0)
    with (
        sg.host.ModelServer({"m": llm}, port=0) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.token, max_retries=0) as client,
    ):
        assert [m.id for m in client.models.list()] == ["m"]
        options = {"model": "m", "messages": messages, "max_tokens": 4, "temperature": 0}
        answer = client.chat.completions.create(**options, logprobs=True, top_logprobs=2)
        assert answer.choices[0].message.content == wanted.text
        assert answer.choices[0].finish_reason == wanted.finish_reason
        assert answer.usage.completion_tokens == wanted.usage.completion_tokens
        assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 2
        chunks = list(client.chat.completions.create(**options, stream=True))
        assert "".join(c.choices[0].delta.content for c in chunks) == wanted.text
        vectors = client.embeddings.create(model="m", input=["hello"]).data
        np.testing.assert_allclose(vectors[0].embedding, llm.embed("hello"), atol=1e-6)
        assert client.completions.create(model="m", prompt="hello", max_tokens=2).object == "text_completion"
        with pytest.raises(openai.NotFoundError, match="no model"):
            client.chat.completions.create(**{**options, "model": "other"})
        with pytest.raises(openai.BadRequestError, match="no field"):
            client.chat.completions.create(**options, reasoning_effort="low")


def test_eight_clients_at_once_get_the_texts_that_each_would_get_alone(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=128)
    asked = [[{"role": "user", "content": "hello " * (k + 1)}] for k in range(8)]
    wanted = [llm.chat(messages, max_tokens=24, temperature=0).text for messages in asked]
    with (
        sg.host.ModelServer({"m": llm}, port=0) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.token, max_retries=0) as client,
        ThreadPoolExecutor(8) as threads,
    ):

        def text(messages: list[dict[str, str]]) -> str:
            chunks = client.chat.completions.create(
                model="m", messages=messages, max_tokens=24, temperature=0, stream=True
            )
            return "".join(c.choices[0].delta.content for c in chunks)

        assert list(threads.map(text, asked)) == wanted
