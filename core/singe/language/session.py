"""LanguageSession: a conversation's tokens, and the keys and values of these, which later runs need not compute again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import FormatError, InputError
from ..files import write
from ..model.session import Session
from ..weights import read_weights
from ..weights.safetensors import safetensors_pieces
from .choosing import NOT_CHOSEN
from .decoder import CACHE_AXIS, KEYS, LATEST, VALUES
from .generation import Generation
from .shifting import common_beginning

if TYPE_CHECKING:
    from .llm import LanguageModel

FORMAT: Final = "singe-session/1"
CHUNK: Final = 256
"""How many tokens of a prompt a run takes at once: the memory of a run grows with it."""
_TOKENS: Final = "tokens"


class LanguageSession:
    """A conversation with a model: `llm.session()` makes one. A text that begins like the one before is computed from where they
    part.

        session = llm.session()
        for part in session.chat([{"role": "user", "content": "Hello"}]):
            print(part, end="", flush=True)
        branch = session.copy()             # both go on from here
        session.rewind(0)                   # as new
    """

    def __init__(self, llm: LanguageModel, states: Session, tokens: Iterable[int] = ()) -> None:
        self.llm: Final = llm
        self.states: Final = states
        """Keys and values."""
        self._tokens = list(tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        """Those whose keys and values are held."""
        return tuple(self._tokens)

    @property
    def count(self) -> int:
        """How many tokens there are."""
        return len(self._tokens)

    def __repr__(self) -> str:
        return f"<language session: {len(self._tokens)} of {self.llm.context} tokens>"

    def generate(self, text: str | Sequence[int], **options: Any) -> Generation:
        """As `LanguageModel.generate`, in this conversation: the text is the whole of it."""
        return self.llm.generation(self, self.llm.prompt(text), options)

    def chat(self, messages: Sequence[Mapping[str, Any]], *, tools: Any = None, **options: Any) -> Generation:
        """As `LanguageModel.chat`, in this conversation: `messages` are all of it."""
        names = options.pop("chat_template_kwargs", None)
        return self.llm.generation(self, self.llm.chat_prompt(messages, tools, names), options, messages, tools)

    def feed(self, tokens: Sequence[int]) -> np.ndarray:
        """Add tokens; the scores of the one that follows them."""
        if not tokens:
            raise InputError("feed: got no tokens, expected at least one")
        scores = np.empty(0)
        for part in chunks(tokens):
            scores = self.run(part, 1)[0]
        return scores

    def run(self, tokens: Sequence[int], rows: int) -> np.ndarray:
        """Add tokens in one run; the scores (rows, vocabulary) after each of the last ones."""
        return self.add(tokens, rows, *NOT_CHOSEN)[0]

    def choose(self, tokens: Sequence[int], sampling: np.ndarray, before: np.ndarray) -> int:
        """Add tokens; the one that follows them, which the run chooses (choosing.py)."""
        *parts, last = chunks(tokens)
        for part in parts:
            self.add(part, 0, *NOT_CHOSEN)
        (token,) = self.add(last, 0, sampling, before)[1]
        return int(token)

    def add(
        self, tokens: Sequence[int], rows: int, sampling: np.ndarray, before: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add tokens in one run: the scores after each of the last `rows`, and what it chooses (choosing.py)."""
        ids = self.llm.checked(tokens)
        used = self.check_room(len(ids))
        found = self.states(ids, np.empty((used, 0), np.bool_), np.empty((rows, 0), np.bool_), sampling, before)
        self.added(ids.tolist())
        scores, chosen = found.values()
        return scores, chosen

    def check_room(self, count: int) -> int:
        """How many tokens there will be with so many more; an error if there is no room for them."""
        used = len(self._tokens) + count
        if used > self.llm.context:
            raise InputError(
                f"the context is full: {len(self._tokens)} tokens and {count} more, there is room for {self.llm.context}; "
                "shorten the text, generate with shift=True, or load the model with a larger context="
            )
        return used

    def added(self, tokens: Sequence[int]) -> None:
        """Note tokens whose keys and values a run has added."""
        self._tokens += tokens

    def keep_common(self, tokens: Sequence[int]) -> int:
        """Keep what the conversation has in common with these tokens, of which the last one is always left to feed; how many that is."""
        common = self.common(tokens)
        self.rewind(common)
        return common

    def common(self, tokens: Sequence[int]) -> int:
        """How many tokens `keep_common` would keep."""
        found = common_beginning(self._tokens, tokens[:-1])
        return found if self.llm.rewinds or found == len(self._tokens) else 0

    def rewind(self, count: int = 0) -> None:
        """Go back to the first so many tokens."""
        if type(count) is not int or not 0 <= count <= len(self._tokens):
            raise InputError(f"rewind: got {count!r:.40}, expected a number of tokens from 0 to {len(self._tokens)}")
        if count == len(self._tokens):
            return
        if self.llm.rewinds:
            del self._tokens[count:]
            return
        kept = self._tokens[:count]
        self.states.reset()
        self._tokens = []
        if kept:
            self.feed(kept)

    def copy(self) -> LanguageSession:
        """Another session that goes on from here."""
        return LanguageSession(self.llm, self.states.copy(), self._tokens)

    def save(self, path: str | Path) -> None:
        """Write the conversation's tokens, keys and values as safetensors, for `load`."""
        arrays = {_TOKENS: np.asarray(self._tokens, np.int32)}
        if self._tokens:
            for name in self.states.names:
                if name == LATEST:
                    continue
                arrays[name] = np.ascontiguousarray(self._used(name, self.states.read(name)))
        write(Path(path), safetensors_pieces(arrays, {"format": FORMAT, "model": self.llm.fingerprint}))

    def load(self, path: str | Path) -> None:
        """Go on from where a session of the same model was saved."""
        found = read_weights(path)
        told = found.metadata
        if told.get("format") != FORMAT or told.get("model") != self.llm.fingerprint:
            what = "of another model" if told.get("format") == FORMAT else "not a saved session"
            raise InputError(f"{path}: {what}; give a file that the session of this model wrote")
        stored = found.stored
        tokens = stored.get(_TOKENS)
        if tokens is None or len(tokens.shape) != 1 or tokens.dtype.name != "int32":
            raise FormatError(f"{path}: without a list of tokens")
        if tokens.shape[0] > self.llm.context:
            raise InputError(
                f"{path}: {tokens.shape[0]} tokens, there is room for {self.llm.context}; load the model with context="
            )
        ids = self.llm.checked(tokens.read().tolist()) if tokens.shape[0] else np.empty(0, np.int32)
        self.states.reset()
        self._tokens = []
        if not len(ids):
            return
        for spec in self.states.states:
            if spec.name == LATEST:
                continue
            whole = np.zeros(spec.shape or (), spec.dtype.numpy)
            part = self._used(spec.name, whole, len(ids))
            held = stored.get(spec.name)
            if held is None or held.shape != part.shape or held.dtype is not spec.dtype:
                told = "missing" if held is None else f"{held.dtype}{held.shape}"
                raise FormatError(
                    f"{path}: {spec.name} is {told}, expected {spec.dtype}{part.shape}; load the model with the cache_dtype that it was "
                    "saved with"
                )
            part[...] = held.read()
            self.states.write(spec.name, whole)
        self._tokens = ids.tolist()

    def _used(self, name: str, array: np.ndarray, count: int | None = None) -> np.ndarray:
        """The part of a state that tokens have filled."""
        if not name.startswith((KEYS, VALUES)):
            return array
        return array[(slice(None),) * CACHE_AXIS + (slice(len(self._tokens) if count is None else count),)]


def chunks(tokens: Sequence[int]) -> Iterable[Sequence[int]]:
    """The tokens, in parts for one run each."""
    return (tokens[i : i + CHUNK] for i in range(0, len(tokens), CHUNK))
