"""A text that is generated: an iterator of its parts, which tells how it ended, what it took, and which tokens were chosen."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from ..errors import InputError
from ..late_dataclass import dataclass
from .choosing import can_choose, remembered
from .drafts import MAX_DRAFTS, Drafts
from .sampling import REMEMBERED, Chosen, Sampler, SamplingOptions
from .templating import CallForm, CallReader

if TYPE_CHECKING:
    from .constraints import TextConstraint
    from .session import LanguageSession
    from .shifting import Shift

MAX_LOGPROBS: Final = 100


@dataclass(frozen=True)
class Usage:
    """Counts of tokens. reused_tokens: those of the prompt that the session held already."""

    prompt_tokens: int
    completion_tokens: int
    reused_tokens: int

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Timings:
    """Seconds until the prompt was read, and from then on; and tokens in a second of each, without those that were reused."""

    prompt_seconds: float
    completion_seconds: float
    prompt_per_second: float
    completion_per_second: float


@dataclass(frozen=True)
class TokenChance:
    """A token that was chosen, the logarithm of its probability, and the likeliest tokens there with theirs."""

    token: int
    text: str
    logprob: float
    likeliest: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class GenerationOptions:
    """What bounds a text. max_tokens None: until the model ends it, or the context is full. constraint: what it must match.
    calls: how calls of tools are written, if there are tools. shift: what is kept when the context is full; None: the text ends.
    drafts: how many tokens are guessed at once."""

    sampling: SamplingOptions
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    constraint: TextConstraint | None = None
    calls: CallForm | None = None
    shift: Shift | None = None
    drafts: int = 0

    def fitted(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """The tokens of a prompt for which there is room."""
        return tuple(prompt) if self.shift is None else self.shift.fitted(prompt)

    def __post_init__(self) -> None:
        if self.max_tokens is not None and (type(self.max_tokens) is not int or self.max_tokens < 1):
            raise InputError(
                f"max_tokens: got {self.max_tokens!r:.40}, expected a number of tokens, at least 1, or None"
            )
        if not all(isinstance(s, str) and s for s in self.stop):
            raise InputError(f"stop: got {self.stop!r:.80}, expected a text or several, none of them empty")
        if type(self.drafts) is not int or not 0 <= self.drafts <= MAX_DRAFTS:
            raise InputError(f"drafts: got {self.drafts!r:.40}, expected a number of tokens from 0 to {MAX_DRAFTS}")
        if self.logprobs is not None and (type(self.logprobs) is not int or not 0 <= self.logprobs <= MAX_LOGPROBS):
            raise InputError(
                f"logprobs: got {self.logprobs!r:.40}, expected a number from 0 to {MAX_LOGPROBS}, or None"
            )


class HeldBack:
    """Text that comes in parts, of which what may be the beginning of a stop text waits for what follows."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops, self._waiting = tuple(stops), ""
        self.found = False
        """Whether a stop text came; what follows it is dropped."""

    def feed(self, text: str) -> str:
        """The text that is certain now."""
        self._waiting += text
        places = [at for stop in self._stops if (at := self._waiting.find(stop)) >= 0]
        if places:
            self.found = True
            made, self._waiting = self._waiting[: min(places)], ""
            return made
        longest = max(map(len, self._stops), default=1)
        kept = next(
            (
                n
                for n in range(min(longest - 1, len(self._waiting)), 0, -1)
                if any(stop.startswith(self._waiting[-n:]) for stop in self._stops)
            ),
            0,
        )
        cut = len(self._waiting) - kept
        made, self._waiting = self._waiting[:cut], self._waiting[cut:]
        return made

    def finish(self) -> str:
        made, self._waiting = self._waiting, ""
        return made


class Generation(Iterator[str]):
    """The parts of a text, as they are made; `.text` is the whole of it. When it has ended, `.finish_reason` is "stop" (the model or a
    stop text ended it), "tool_calls" (it ended with calls of tools, which are no part of the text), or "length" (max_tokens, or a full
    context). It is made by `LanguageModel.generate` and `.chat`.

    Whoever runs the session for several texts calls `begin`, and then `take` with the scores after `pending`, until `finish_reason`.
    """

    def __init__(
        self, session: LanguageSession, prompt: Sequence[int], options: GenerationOptions, ended: Callable[[], object]
    ) -> None:
        """ended: is called once, when the session is free again."""
        self.session: Final = session
        self._prompt, self._options, self._ended = options.fitted(prompt), options, ended
        self.pending: Sequence[int] = self._prompt
        """The tokens after which the next one is chosen, and which the session does not have yet."""
        self._latest = [*self._prompt[-REMEMBERED:]]
        self._sampler: Final = Sampler(options.sampling, options.logprobs or 0)
        self._stream: Final = session.llm.tokenizer.stream()
        self._held: Final = HeldBack(options.stop)
        self._calls: Final = None if options.calls is None else CallReader(options.calls)
        self._drafts: Final = Drafts(options.drafts, self._prompt) if options.drafts else None
        self._constraint: Final = options.constraint
        chosen_by_host = options.constraint or options.drafts or options.logprobs is not None
        self._chosen_by_runs: Final = session.llm.chooses and not chosen_by_host and can_choose(options.sampling)
        self._place = 0 if options.constraint is None else options.constraint.start
        self._parts: list[str] = []
        self._tokens: list[int] = []
        self._chances: list[TokenChance] = []
        self._reused = 0
        self._begun = self._read = self._last = time.perf_counter()
        self.finish_reason: str | None = None
        """None while it goes on."""
        self.tool_calls: tuple[dict[str, Any], ...] = ()
        """When it has ended: the calls of tools, in OpenAI's shape."""
        self._steps = self._run()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        return next(self._steps)

    def close(self) -> None:
        """End it early; the session keeps what was made so far."""
        self._steps.close()

    @property
    def text(self) -> str:
        """The whole text, which is made to its end first."""
        for _ in self:
            pass
        return "".join(self._parts)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens that were chosen so far."""
        return tuple(self._tokens)

    @property
    def logprobs(self) -> tuple[TokenChance, ...]:
        """Of the tokens so far, if `logprobs=` asked for them."""
        return tuple(self._chances)

    @property
    def usage(self) -> Usage:
        return Usage(len(self._prompt), len(self._tokens), self._reused)

    @property
    def timings(self) -> Timings:
        prompt, rest = self._read - self._begun, self._last - self._read
        fresh, more = len(self._prompt) - self._reused, max(len(self._tokens) - 1, 0)
        return Timings(prompt, rest, fresh / prompt if prompt else 0.0, more / rest if rest else 0.0)

    def _run(self) -> Generator[str, None, None]:
        try:
            self.begin()
            while self.finish_reason is None:
                guessed = () if self._drafts is None or len(self.pending) > 1 else self._drafts.guess(self._room)
                if part := self._checked(guessed) if guessed else self._next():
                    yield part
        finally:
            self._ended()

    def _next(self) -> str:
        """Add what is pending; the text that is certain with the token that follows."""
        session = self.session
        if not self._chosen_by_runs:
            return self.take(session.feed(self.pending))
        row = self._sampler.row(len(session.llm.tokenizer.vocabulary))
        return self._add(session.choose(self.pending, row, remembered(self._latest)))

    @property
    def _room(self) -> int:
        """How many tokens may be guessed: the context is not full after them, and the text goes on to their end."""
        session, most = self.session, self._options.max_tokens
        room = session.llm.context - session.count - 2
        return room if most is None else min(room, most - len(self._tokens) - 1)

    def _checked(self, guessed: Sequence[int]) -> str:
        """Add what is pending and what is guessed in one run; the text up to the first token that is another."""
        session, parts = self.session, list[str]()
        kept = session.count + 1
        scores = session.run((*self.pending, *guessed), len(guessed) + 1)
        for row, token in itertools.zip_longest(scores, guessed):
            parts.append(self.take(row))
            if self.finish_reason or self._tokens[-1] != token:
                break
        were_right = len(parts) > len(guessed)
        session.rewind(kept + len(parts) - 1)
        if self._drafts is not None:
            self._drafts.tell(were_right)
        return "".join(parts)

    def begin(self) -> None:
        """Let the session keep what it has of the prompt; the rest is pending."""
        self._begun = time.perf_counter()
        self._reused = self.session.keep_common(self._prompt)
        self.pending = self._prompt[self._reused :]

    def take(self, scores: np.ndarray) -> str:
        """Choose the token that follows those that were pending; the text that is certain now."""
        vocabulary = len(self.session.llm.tokenizer.vocabulary)
        chosen = self._sampler.choose(scores[:vocabulary], self._latest, self._allowed(vocabulary))
        self._note(chosen)
        return self._add(chosen.token)

    def _add(self, token: int) -> str:
        """Add the token that follows those that were pending; the text that is certain now."""
        options, session = self._options, self.session
        is_full = session.count == session.llm.context
        self._last = time.perf_counter()
        if not self._tokens:
            self._read = self._last
        self._tokens.append(token)
        self._latest = [*self._latest[1 - REMEMBERED :], token]
        if self._drafts is not None:
            self._drafts.add(token)
        self.pending = (token,)
        if self._constraint is not None and token not in session.llm.ends:
            self._place = self._constraint.after(self._place, session.llm.tokenizer.vocabulary[token])
        if token in session.llm.ends:
            self.finish_reason, part = "stop", ""
        else:
            part = self._held.feed(self._stream.feed(token))
            if self._held.found or (self._constraint is not None and self._constraint.is_whole(self._place)):
                self.finish_reason = "stop"
            elif len(self._tokens) == options.max_tokens or (is_full and options.shift is None):
                self.finish_reason = "length"
            elif is_full:
                tokens = options.fitted((*session.tokens, token))
                self.pending = tokens[session.keep_common(tokens) :]
        if self.finish_reason and not self._held.found:
            part += self._held.feed(self._stream.finish())
            part += self._held.finish()
        if self._calls is not None:
            part = self._calls.feed(part)
            if self.finish_reason:
                rest, self.tool_calls = self._calls.finish()
                part += rest
                if self.tool_calls and self.finish_reason == "stop":
                    self.finish_reason = "tool_calls"
        self._parts.append(part)
        return part

    def _allowed(self, vocabulary: int) -> np.ndarray | None:
        """Whether each token may follow, by the constraint; those that end the text may where it matches."""
        if self._constraint is None:
            return None
        allowed = self._constraint.mask(self._place).copy()
        allowed[[i for i in self.session.llm.ends if i < vocabulary]] = self._constraint.ends(self._place)
        if not allowed.any():
            raise InputError("no token can follow so that the text matches its schema or regex; give another one")
        return allowed

    def _note(self, chosen: Chosen) -> None:
        if self._options.logprobs is not None:
            text = self.session.llm.tokenizer.decode([chosen.token], skip_special=False)
            self._chances.append(TokenChance(chosen.token, text, chosen.logprob, chosen.likeliest))
