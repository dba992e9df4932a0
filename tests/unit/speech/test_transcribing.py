"""What Whisper's text may be, and how windows follow each other: rules of tokens, silence, repetition, and what is given to the next window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_whisper
from tiny_whisper import opened

from singe.errors import InputError
from singe.language import Tokenizer
from singe.speech.search import window_text
from singe.speech.tokens import WhisperTokens
from singe.speech.transcribing import Course, TranscribeOptions, Transcriber
from singe.speech.words import cheapest_path, timed_words, words_of

pytestmark = pytest.mark.slow

FRAMES = 2 * tiny_whisper.POSITIONS
SECOND = 16000
WINDOW = FRAMES * 160


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> WhisperTokens:
    files = opened(tiny_whisper.hugging_face(tmp_path_factory.mktemp("whisper")))
    return WhisperTokens.of_model(Tokenizer.of_file(files.tokenizer), files.description, files.name)


class Script:
    """In place of a network: says a text of its script in each window, and notes what it was given."""

    def __init__(
        self, d: Any, tokens: WhisperTokens, script: Sequence[Sequence[int]], likely: Mapping[int, float]
    ) -> None:
        self.description, self._tokens, self._script, self._likely = d, tokens, list(script), likely
        self.prompts: list[list[int]] = []
        self.windows: list[tuple[int, int]] = []
        self.count, self._at, self.longest = 1, 0, 0

    def window(self, samples: np.ndarray, first: int) -> tuple[np.ndarray, float]:
        self.longest = max(self.longest, len(samples))
        self._first = (self.longest - len(samples)) // 160 + first  # samples at the beginning may have been let go
        return np.zeros((FRAMES, tiny_whisper.BANDS), np.float32), 0.0

    def hear(self, window: np.ndarray, peak: float, count: int) -> None:
        self.windows.append((self._first, count))

    def texts(self, count: int) -> Script:
        self._at = -1
        return self

    def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Any = None) -> np.ndarray:
        if self._at < 0:
            self.prompts.append(list(ids[0]))
            self._text = [*(self._script.pop(0) if self._script else []), self._tokens.end]
        self._at += 1
        scores = np.full((1, rows, tiny_whisper.VOCABULARY), -20, np.float32)
        scores[0, -1, self._text[min(self._at, len(self._text) - 1)]] = 20
        for token, score in self._likely.items():
            scores[0, 0, token] = score
        return scores


def _course(
    tokens: WhisperTokens, tmp_path: Path, script: Sequence[Sequence[int]], seconds: float, likely: Mapping[int, float] = {}, **options: Any
) -> tuple[Any, Script]:  # fmt: skip
    d = opened(tiny_whisper.hugging_face(tmp_path / "m")).description
    model: Any = Script(d, tokens, script, likely)
    samples = np.zeros(int(seconds * SECOND), np.float32)
    return Transcriber(model, tokens)(samples, TranscribeOptions(language="en", **options)), model


def _letters(text: str) -> list[int]:
    return [tiny_whisper.LETTERS.index(x) for x in text]


def test_windows_begin_where_the_text_before_ended_and_are_given_it(tokens: WhisperTokens, tmp_path: Path) -> None:
    at = tokens.times
    script = [[at, *_letters("ab"), at + 12, at + 12], [at, *_letters("c"), at + 5, at + 5, *_letters("d")]]
    answer, model = _course(tokens, tmp_path, script, 0.5)
    assert [(c.text, round(c.start, 2), round(c.end, 2)) for c in answer.chunks] == [
        ("ab", 0.0, 0.24),
        ("c", 0.24, 0.34),
    ]
    assert model.windows == [(0, FRAMES), (24, 50 - 24), (34, 50 - 34)]
    assert model.prompts[1] == [
        tokens.before,
        *script[0][:4],
        *tokens.begun("en", False),
    ]  # the latest that there is room for
    assert answer.to_dict()["chunks"][0] == {"text": "ab", "timestamp": [0.0, 0.24], "score": answer.chunks[0].score}


def test_samples_that_are_written_down_are_let_go(tokens: WhisperTokens, tmp_path: Path) -> None:
    at = tokens.times
    d = opened(tiny_whisper.hugging_face(tmp_path / "m")).description
    model: Any = Script(d, tokens, [], {})
    course = Course(Transcriber(model, tokens), TranscribeOptions(language="en"))
    for _ in range(20):
        course.hear(np.zeros(WINDOW // 2, np.float32))
        model._script = [[at, *_letters("a"), at + 18, at + 18]] * 2
        course.so_far()
        assert len(course._samples) <= 2 * WINDOW
    starts = [round(part.start, 2) for part in course.transcript().chunks]
    assert starts == [round(0.36 * k, 2) for k in range(len(starts))]
    assert len(starts) > 8


def test_a_window_of_silence_is_passed_over(tokens: WhisperTokens, tmp_path: Path) -> None:
    at = tokens.times
    unsure = [at, *_letters("abc"), at + 3]
    answer, model = _course(
        tokens, tmp_path, [unsure] * 6, 0.3, {tokens.no_speech: 30.0, 3: 22.0, 4: 22.0, 5: 22.0, 6: 22.0}
    )
    assert answer.chunks == []
    assert len(model.prompts) == 1


def test_a_text_that_repeats_itself_is_drawn_again(tokens: WhisperTokens, tmp_path: Path) -> None:
    d = opened(tiny_whisper.hugging_face(tmp_path / "m")).description
    model: Any = Script(d, tokens, [[tokens.times, *_letters("a")]] * 9, {})
    text = window_text(model, tokens, [], tokens.begun("en", False))
    assert text.text == "a"
    assert text.repetition < 2.4
    long = type(text)((), -0.1, 0.0, 0.0, "la " * 100)
    assert long.repetition > 2.4


def test_times_come_in_pairs_and_do_not_go_back(tokens: WhisperTokens) -> None:
    at, end = tokens.times, tokens.end

    def allowed(said: Sequence[int]) -> set[int]:
        scores = np.zeros(tiny_whisper.VOCABULARY, np.float32)
        scores[:at] = 40  # so that the sum of all times does not outweigh a letter
        tokens.allow(scores, said)
        return set(np.flatnonzero(scores > -np.inf).tolist())

    times = set(range(at, tiny_whisper.VOCABULARY))
    texts = {*range(len(tiny_whisper.LETTERS) + 1), end, *tokens.languages.values()}
    assert allowed([]) == {t for t in times if t <= at + 50}
    assert allowed([at]) == texts
    assert allowed([at, 3]) == texts | (times - {at})
    assert allowed([at, 3, at + 4]) == {end, *tokens.languages.values()} | {t for t in times if t >= at + 4}
    assert allowed([at, 3, at + 4, at + 4]) == texts
    scores = np.zeros(tiny_whisper.VOCABULARY, np.float32)
    tokens.allow(scores, [at, 3])
    assert set(np.flatnonzero(scores > -np.inf).tolist()) == times - {at}  # together they are likelier than any letter


def test_what_the_model_does_not_know_is_refused(tokens: WhisperTokens) -> None:
    with pytest.raises(InputError, match="expected one of en, de"):
        tokens.begun("fr", False)
    with pytest.raises(InputError, match="beams"):
        TranscribeOptions(beams=0)


def test_the_cheapest_path_is_the_cheapest_of_all() -> None:
    costs = np.sin(np.arange(5 * 9) ** 2.0).reshape(5, 9)

    def cost(row: int, column: int) -> float:
        before = [(row - 1, column - 1), (row - 1, column), (row, column - 1)]
        least = min((cost(r, c) for r, c in before if r >= 0 and c >= 0), default=0.0)
        return float(costs[row, column]) + least

    rows, columns = cheapest_path(costs)
    assert (rows[0], columns[0], rows[-1], columns[-1]) == (0, 0, 4, 8)
    assert set(zip(np.diff(rows).tolist(), np.diff(columns).tolist(), strict=True)) <= {(0, 1), (1, 0), (1, 1)}
    np.testing.assert_allclose(costs[rows, columns].sum(), cost(4, 8))


def test_words_have_times_within_their_window(tmp_path: Path) -> None:
    files = opened(tiny_whisper.hugging_face(tmp_path / "m"))
    tokens = WhisperTokens.of_model(Tokenizer.of_file(files.tokenizer), files.description, files.name)
    model = files.model("numpy")
    window = tiny_whisper.window()
    model.hear(window, float(window.max()), FRAMES)
    ids = [*_letters("ab"), len(tiny_whisper.LETTERS), *_letters("cd")]
    words = timed_words(model, tokens, [tokens.start], ids, FRAMES, "en")
    assert [(word.text, word.count) for word in words] == [("ab", 2), (" cd", 3)]
    assert all(0 <= word.start <= word.end <= FRAMES / 100 and 0 < word.chance < 1 for word in words)
    assert [text for text, _ in words_of(ids, tokens, "ja")] == ["a", "b", " ", "c", "d"]
    seen, scores = model.align([tokens.start, *ids])
    assert seen.shape == (2, 6, tiny_whisper.POSITIONS)  # both heads of the later layer
    texts = model.texts(1)
    np.testing.assert_allclose(scores, texts.add([[tokens.start, *ids]], 6)[0], atol=1e-5)
