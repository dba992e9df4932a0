"""The choice of a token: limits, penalties, and draws that a seed repeats."""

from __future__ import annotations

import numpy as np
import pytest

from singe.errors import InputError
from singe.language.generation import HeldBack
from singe.language.sampling import Sampler, SamplingOptions

SCORES = np.log(np.array([0.1, 0.4, 0.05, 0.25, 0.2], np.float32))


def drawn(count: int = 400, before: tuple[int, ...] = (), **options: float) -> list[int]:
    sampler = Sampler(
        SamplingOptions(**{"top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 3, "temperature": 1.0, **options})
    )  # type: ignore[arg-type]
    return [sampler.choose(SCORES, before).token for _ in range(count)]


def test_without_limits_draws_have_the_model_s_chances() -> None:
    counts = np.bincount(drawn(4000), minlength=5) / 4000
    np.testing.assert_allclose(counts, np.exp(SCORES), atol=0.03)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"temperature": 0}, {1}),
        ({"top_k": 1}, {1}),
        ({"top_k": 2}, {1, 3}),
        ({"top_p": 0.5}, {1, 3}),
        ({"top_p": 0.0}, {1}),
        ({"min_p": 0.45}, {1, 3, 4}),
        ({"min_p": 1.0}, {1}),
        ({"temperature": 0.01}, {1}),
    ],
)
def test_limits_leave_the_likeliest(options: dict[str, float], allowed: set[int]) -> None:
    assert set(drawn(**options)) == allowed


def test_penalties_make_tokens_that_came_less_likely() -> None:
    assert set(drawn(before=(1, 1), temperature=0, frequency_penalty=0.3)) == {3}
    assert set(drawn(before=(1,), temperature=0, presence_penalty=0.5)) == {3}
    assert set(drawn(before=(1,), temperature=0, repeat_penalty=2.0)) == {3}
    assert set(drawn(before=(1,), temperature=0, presence_penalty=0.1)) == {1}


def test_a_seed_repeats_the_draws() -> None:
    assert drawn(seed=5) == drawn(seed=5)
    assert drawn(seed=5) != drawn(seed=6)


def test_logprobs_are_those_of_the_model_before_all_limits() -> None:
    chosen = Sampler(SamplingOptions(temperature=0, top_k=1), told=2).choose(SCORES, ())
    assert chosen.token == 1
    assert chosen.logprob == pytest.approx(np.log(0.4), abs=1e-6)
    assert [token for token, _ in chosen.likeliest] == [1, 3]


@pytest.mark.parametrize(
    "options",
    [{"temperature": -1}, {"top_p": 2}, {"top_k": 1.5}, {"seed": -1}, {"min_p": float("nan")}, {"top_k": True}],
)
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(options))}: got"):
        SamplingOptions(**options)  # type: ignore[arg-type]


def test_scores_that_are_not_finite_are_an_error() -> None:
    with pytest.raises(InputError, match="not finite"):
        Sampler(SamplingOptions(temperature=0)).choose(np.array([np.nan, 1.0], np.float32), ())


def test_a_stop_text_is_found_across_parts_and_never_shown() -> None:
    held = HeldBack(["</end>", "STOP"])
    shown = [held.feed(part) for part in ("a<", "b</e", "nd", "> more")]
    assert shown == ["a", "<b", "", ""]
    assert held.found
    other = HeldBack(["STOP"])
    assert [other.feed(part) for part in ("ST", "ART S", "T")] == ["", "START ", ""]
    assert other.finish() == "ST"
    assert not other.found
