"""GenerationRules: how a text is chosen, as a generation_config.json says, and the text that they choose.

Answers are those of transformers' `generate` for these rules. A rule that Singe does not know is refused by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, Literal

import numpy as np

from ...errors import FormatError, InputError
from ...late_dataclass import dataclass
from .running import SourceReader
from .search import FollowedText, log_chances, one_by_one, side_by_side

MAX_BEAMS: Final = 32
MAX_WORDS: Final = 4096
MAX_PENALTY: Final = 10
"""The most of `length_penalty`, to which power the tokens of a text are raised."""
_DEFAULTS: Final[Mapping[str, Sequence[Any]]] = {
    "do_sample": (False,), "repetition_penalty": (1, None), "encoder_repetition_penalty": (1, None), "diversity_penalty": (0, None),
    "num_beam_groups": (1, None), "penalty_alpha": (None, 0), "encoder_no_repeat_ngram_size": (0, None), "min_new_tokens": (None, 0),
    "exponential_decay_length_penalty": (None,), "suppress_tokens": (None, []), "begin_suppress_tokens": (None, []),
    "sequence_bias": (None,), "constraints": (None,), "force_words_ids": (None,), "stop_strings": (None,), "guidance_scale": (None, 1),
    "forced_decoder_ids": (None, []), "max_time": (None,),
}  # fmt: skip
"""What Singe does not do: expected as it is where nobody asks for it."""


@dataclass(frozen=True)
class GenerationRules:
    """start: the token with which a text begins; ends: those that end it; most: the tokens of a text after the start; beams: how many texts
    are followed side by side. length_penalty: a text of n tokens counts as the sum of the logarithms of its chances by n to this power.
    early_stopping: True: as soon as so many texts ended; "never": only when none can become better. bad_words: tokens that do not come one
    after the other; first, last: the tokens that a text begins with, and ends with where it is at its longest; least: tokens, with the
    start, before which it does not end; no_repeats: as many tokens as do not come again in the same order."""

    start: int
    ends: frozenset[int]
    most: int
    beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    bad_words: Sequence[tuple[int, ...]] = ()
    first: int | None = None
    last: int | None = None
    least: int = 0
    no_repeats: int = 0
    renormalized: bool = False

    def to_config(self) -> dict[str, Any]:
        """As a generation_config.json says it, for `rules_of` and for a page."""
        return {
            "decoder_start_token_id": self.start, "eos_token_id": sorted(self.ends), "max_new_tokens": self.most, "num_beams": self.beams,
            "length_penalty": self.length_penalty, "early_stopping": self.early_stopping, "bad_words_ids": [list(x) for x in self.bad_words],
            "forced_bos_token_id": self.first, "forced_eos_token_id": self.last, "min_length": self.least,
            "no_repeat_ngram_size": self.no_repeats, "renormalize_logits": self.renormalized,
        }  # fmt: skip

    def are_whole(self, tokens: Sequence[int]) -> bool:
        """Whether a text was said to its end, which was not forced because it has all tokens that it may have."""
        return bool(tokens) and tokens[-1] in self.ends and (len(tokens) < self.most or self.last is None)

    def chances(self, scores: np.ndarray, said: Sequence[int]) -> np.ndarray:
        """The logarithms of the chances of what comes after these tokens."""
        forced = (
            self.first if not said and self.first is not None else self.last if len(said) == self.most - 1 else None
        )
        if forced is not None:
            chances = np.full(len(scores), -inf, np.float32)
            chances[forced] = 0.0
            return chances
        chances = log_chances(scores)
        told = (self.start, *said)
        if self.no_repeats:
            chances[_repeated(told, self.no_repeats)] = -inf
        for word in self.bad_words:
            if len(word) == 1 or told[1 - len(word) :] == word[:-1]:
                chances[word[-1]] = -inf
        if len(told) < self.least:
            chances[list(self.ends)] = -inf
        return log_chances(chances) if self.renormalized and chances.max() > -inf else chances


def _repeated(tokens: Sequence[int], size: int) -> list[int]:
    """What followed when the last size − 1 tokens came before."""
    last = tuple(tokens[len(tokens) + 1 - size :])
    return [tokens[k + size - 1] for k in range(len(tokens) - size + 1) if tuple(tokens[k : k + size - 1]) == last]


class BestEnded:
    """The likeliest for their length, of those that ended among the best of a step."""

    def __init__(self, rules: GenerationRules) -> None:
        self._rules: Final = rules
        self._open = True  # whether one that goes on can still become better
        self.texts = list[tuple[float, tuple[int, ...]]]()

    def take(self, best: Sequence[FollowedText], going: Sequence[FollowedText], last: bool) -> bool:
        rules, count = self._rules, self._rules.beams
        length = len(best[0].tokens)
        full = len(self.texts) == count
        if self._open and not (full and rules.early_stopping is True):
            ended = [text for text in best[:count] if last or text.tokens[-1] in rules.ends]
            self.texts += [(text.total / length**rules.length_penalty, text.tokens) for text in ended]
            self.texts = sorted(self.texts, key=lambda text: text[0], reverse=True)[:count]
        full = len(self.texts) == count
        longest = rules.most if rules.early_stopping == "never" and rules.length_penalty > 0 else length
        self._open = self._open and (
            not full or max(text.total for text in going) / longest**rules.length_penalty > self.texts[-1][0]
        )
        return not self._open or (full and rules.early_stopping is True)


def generated(model: SourceReader, rules: GenerationRules) -> tuple[list[int], bool]:
    """The tokens of the text about what the model heard, and whether it was said to its end."""
    if rules.beams == 1:
        tokens = list(generated_live(model, rules))
    else:
        texts = model.texts(rules.beams)
        scores = texts.add([[rules.start]] * rules.beams)[:, 0]
        ending = BestEnded(rules)
        side_by_side(texts, scores, rules.chances, rules.ends, rules.most, ending)
        tokens = list(ending.texts[0][1])
    return [t for t in tokens if t not in rules.ends], rules.are_whole(tokens)


def generated_live(model: SourceReader, rules: GenerationRules) -> Iterator[int]:
    """The likeliest tokens one by one, with that which ends them."""

    def choose(scores: np.ndarray, said: Sequence[int]) -> tuple[int, float]:
        chances = rules.chances(scores, said)
        token = int(chances.argmax())
        return token, float(chances[token])

    texts = model.texts(1)
    scores = texts.add([[rules.start]])[0, 0]
    return (token for token, _ in one_by_one(texts, scores, choose, rules.ends, rules.most))


def rules_of(
    config: Mapping[str, Any], generation: Mapping[str, Any], vocabulary: int, room: int, name: str
) -> GenerationRules:
    """From config.json and generation_config.json; where that is empty, the former says all. name: for errors."""
    told = generation or config
    for key, usual in _DEFAULTS.items():
        if key in told and told[key] not in usual:
            raise InputError(f"{name}: {key} is {told[key]!r:.60}, which Singe does not do; expected {usual[0]!r}")

    def tokens(key: str) -> list[int]:
        found: Any = told.get(key)
        several = found if isinstance(found, list) else [] if found is None else [found]
        if not all(type(x) is int and 0 <= x < vocabulary for x in several):
            raise FormatError(f"{name}: {key} is {found!r:.60}, expected tokens below {vocabulary}")
        return several

    def token(key: str) -> int | None:
        return next(iter(tokens(key)), None)

    told = {**{key: config[key] for key in ("decoder_start_token_id", "eos_token_id") if key in config}, **told}

    def number(key: str, default: int, most: int) -> int:
        found = told.get(key)
        if found is None:
            return default
        if type(found) is not int or not 0 <= found <= most:
            raise FormatError(f"{name}: {key} is {found!r:.40}, expected a number from 0 to {most}")
        return found

    start = next(
        (x for x in map(token, ("decoder_start_token_id", "bos_token_id", "pad_token_id")) if x is not None), None
    )
    ends = frozenset(tokens("eos_token_id"))
    if start is None or not ends:
        raise FormatError(f"{name}: expected decoder_start_token_id and eos_token_id, which begin and end a text")
    penalty, early = told.get("length_penalty"), told.get("early_stopping")
    penalty = 1.0 if penalty is None else penalty
    if isinstance(penalty, bool) or not isinstance(penalty, (int, float)) or not abs(penalty) <= MAX_PENALTY:
        raise FormatError(
            f"{name}: length_penalty is {penalty!r:.40}, expected a number from -{MAX_PENALTY} to {MAX_PENALTY}"
        )
    if early not in (None, True, False, "never"):
        raise FormatError(f'{name}: early_stopping is {early!r:.40}, expected true, false or "never"')
    most = number("max_new_tokens", number("max_length", room + 1, 1 << 31) - 1, 1 << 31)
    return GenerationRules(
        start, ends, max(1, min(most, room)), number("num_beams", 1, MAX_BEAMS) or 1, float(penalty), early or False,
        _bad_words(told.get("bad_words_ids"), ends, vocabulary, name), token("forced_bos_token_id"), token("forced_eos_token_id"),
        number("min_length", 0, 1 << 31), number("no_repeat_ngram_size", 0, 1 << 31), told.get("renormalize_logits") is True,
    )  # fmt: skip


def _bad_words(words: Any, ends: frozenset[int], vocabulary: int, name: str) -> tuple[tuple[int, ...], ...]:
    found: Any = [] if words is None else words
    if not isinstance(found, list) or len(found) > MAX_WORDS or not all(
        isinstance(word, list) and word and all(type(t) is int and 0 <= t < vocabulary for t in word) for word in found
    ):  # fmt: skip
        raise FormatError(f"{name}: bad_words_ids is {words!r:.60}, expected lists of tokens below {vocabulary}")
    return tuple(tuple(word) for word in found if not (len(word) == 1 and word[0] in ends))
