"""A language model that is served: a thread makes several texts at once, a token of each in turn, so that no text waits for the end of
another. A prompt is read in parts, between which the others go on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from ...language.generation import Generation, GenerationOptions
from ...language.llm import LanguageModel
from ...language.session import CHUNK
from ...late_dataclass import dataclass
from ..metrics import ModelCounts
from ..protocol import Refused
from .completions import CompletionPart, CompletionRequest
from .sessions import KeptSessions


@dataclass(eq=False)
class _Asked:
    """A text that is asked for. tell: takes its parts, or why there are no more; end: when it must be there."""

    prompt: tuple[int, ...]
    options: GenerationOptions
    tell: Callable[[CompletionPart | Exception], object]
    end: float
    is_left: bool = False
    """Its client has left."""


@dataclass(eq=False)
class _Text:
    """A text that is being made. sent: how many chances were sent."""

    asked: _Asked
    generation: Generation
    sent: int = 0


class LanguageEngine:
    """See the module's docstring. limit: how many texts may wait; seconds: how long one may take; cache: the most bytes of the
    conversations that are kept, and so how many texts are made at once."""

    def __init__(self, name: str, llm: LanguageModel, limit: int, seconds: float, cache: int) -> None:
        self.name: Final = name
        self.llm: Final = llm
        self.counts: Final = ModelCounts()
        self.counts.waiting = lambda: len(self._waiting)
        self._limit, self._seconds = limit, seconds
        self._sessions: Final = KeptSessions(llm, cache)
        self._waiting: Final = deque[_Asked]()
        self._texts: Final = list[_Text]()
        """Those that are being made; only the thread looks at them."""
        self._changed: Final = threading.Condition()
        self._stopped = ""
        self._embedding: Final = asyncio.Lock()
        llm.side_by_side.compile(self._sessions.most)
        self._thread: Final = threading.Thread(target=self._work, name=f"singe host {name}", daemon=True)
        self._thread.start()

    def about(self) -> str:
        """How many conversations there may be, for people."""
        each, room = self.llm.session_bytes / 1e6, self.llm.context
        return f"{self._sessions.most} conversations at once, of {room} tokens and {each:.3g} MB each"

    def spell(self, token: int) -> str:
        """The text of a token."""
        return self.llm.tokenizer.decode([token], skip_special=False)

    async def parts(self, asked: CompletionRequest) -> AsyncGenerator[CompletionPart, None]:
        """The parts of an answer. Closing this iterator ends the text at its next token."""
        end = time.monotonic() + self._seconds
        prompt, options = await asyncio.to_thread(self._read, asked)
        loop, parts = asyncio.get_running_loop(), asyncio.Queue[CompletionPart | Exception]()

        def tell(part: CompletionPart | Exception) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(parts.put_nowait, part)

        text = _Asked(prompt, options, tell, end)
        with self._changed:
            if self._stopped:
                raise Refused(503, self._stopped)
            if len(self._waiting) >= self._limit:
                raise Refused(503, f"{self._limit} requests wait already: try again later", ((b"retry-after", b"1"),))
            self._waiting.append(text)
            self._changed.notify()
        try:
            while True:
                part = await parts.get()
                if isinstance(part, Exception):
                    raise part
                yield part
                if part.finish_reason:
                    return
        finally:
            text.is_left = True

    async def vectors(self, texts: Sequence[str | Sequence[int]]) -> tuple[np.ndarray, int]:
        """The vectors of texts, or of the ids of some, and how many tokens they have."""

        def work() -> tuple[np.ndarray, int]:
            prompts = [self.llm.prompt(text) for text in texts]
            return self.llm.embed(prompts), sum(map(len, prompts))

        async with self._embedding:
            if self._stopped:
                raise Refused(503, self._stopped)
            return await asyncio.to_thread(work)

    async def stop(self, reason: str) -> int:
        """Refuse what waits, and wait for the texts that have begun; how many waited."""
        with self._changed:
            self._stopped, waiting = reason, [*self._waiting]
            self._waiting.clear()
            self._changed.notify()
        for text in waiting:
            text.tell(Refused(503, reason))
        await asyncio.to_thread(self._thread.join)
        return len(waiting)

    def _read(self, asked: CompletionRequest) -> tuple[tuple[int, ...], GenerationOptions]:
        llm = self.llm
        prompt = llm.chat_prompt(asked.prompt, asked.tools, asked.names) if asked.is_chat else llm.prompt(asked.prompt)
        options = llm.options(prompt, asked.options, asked.prompt if asked.is_chat else (), asked.tools)
        return options.fitted(prompt), options

    # --- the thread ---

    def _work(self) -> None:
        while self._admitted():
            for text in self._texts[:]:
                if text.asked.is_left:
                    self._ended(text)
                elif time.monotonic() > text.asked.end:
                    late = f"the answer was not there within {self._seconds:g} seconds, and the server allows no more"
                    self._ended(text, Refused(504, late))
            self._step()

    def _admitted(self) -> bool:
        """Begin what waits, as far as there are sessions; False when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._texts or self._waiting or self._stopped)
        while self._sessions.has_free:
            with self._changed:
                if not self._waiting:
                    break
                asked = self._waiting.popleft()
            try:
                generation = Generation(self._sessions.taken(asked.prompt), asked.prompt, asked.options, lambda: None)
            except Exception as e:
                asked.tell(e)
                continue
            text = _Text(asked, generation)
            self._texts.append(text)
            self._tried([text], generation.begin)
        return bool(self._texts) or not self._stopped

    def _step(self) -> None:
        """A token of each text whose prompt was read, and a part of the prompt of one other."""
        reading = next((t for t in self._texts if len(t.generation.pending) > 1), None)
        texts = [t for t in self._texts if len(t.generation.pending) == 1]
        if reading is not None:
            self._tried([reading], lambda: self._read_on(reading))
        if texts:
            self._tried(texts, lambda: self._advance(texts))

    def _tried(self, texts: Sequence[_Text], work: Callable[[], object]) -> None:
        """Do a part of the work on texts; an error ends those alone."""
        try:
            work()
        except Exception as e:
            for text in texts:
                if text in self._texts:
                    self._ended(text, e)

    def _read_on(self, text: _Text) -> None:
        generation = text.generation
        part, generation.pending = generation.pending[:CHUNK], generation.pending[CHUNK:]
        scores = generation.session.feed(part)
        if not generation.pending:
            self._take(text, scores)

    def _advance(self, texts: Sequence[_Text]) -> None:
        """A token of each, in one run."""
        sessions = [t.generation.session for t in texts]
        scores = self.llm.side_by_side.feed(sessions, [t.generation.pending[0] for t in texts])
        self.counts.rows.add(len(texts))
        for text, row in zip(texts, scores, strict=True):
            self._tried([text], lambda text=text, row=row: self._take(text, row))

    def _take(self, text: _Text, scores: np.ndarray) -> None:
        """Tell what the scores after a text's tokens add to it."""
        generation, tell = text.generation, text.asked.tell
        part = generation.take(scores)
        if not part and not generation.finish_reason:
            return
        chances = None if text.asked.options.logprobs is None else generation.logprobs[text.sent :]
        text.sent += len(chances or ())
        if not generation.finish_reason:
            tell(CompletionPart(part, chances))
            return
        tell(CompletionPart(part, chances, generation.finish_reason, generation.usage, generation.tool_calls))
        self._ended(text)

    def _ended(self, text: _Text, why: Exception | None = None) -> None:
        self._texts.remove(text)
        self._sessions.give(text.generation.session, is_sound=why is None or isinstance(why, Refused))
        if why is not None:
            text.asked.tell(why)
