"""The filter that gives sounds another rate: how far its tones are off, and that blocks of any size make the same numbers."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from singe.errors import InputError
from singe.files.sounds import Resampler, resample

RATES: Final = (
    (44100, 16000),
    (48000, 16000),
    (16000, 44100),
    (8000, 11025),
    (44101, 8000),
    (16000, 48000),
    (16000, 16000),
)
KEPT: Final = {0.05: 1e-5, 0.5: 1e-5, 0.8: 1e-5, 0.85: 1e-5, 0.88: 4e-5}
"""A tone's frequency, as a part of the lower limit ↦ the most that a sample of it may be off."""
LEFT_OUT: Final = {1.0: 4e-5, 1.01: 4e-5, 1.1: 6e-6, 1.35: 4e-6}
"""The same of a tone beyond the limit ↦ the most that may be left of it."""


def tone(hertz: float, rate: int, count: int) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(count) / rate)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "wanted"), RATES)
def test_the_error_of_each_tone(rate: int, wanted: int) -> None:
    limit, count = min(rate, wanted) / 2, rate // 10
    for part, error in KEPT.items():
        found = resample(tone(part * limit, rate, count), rate, wanted)
        assert len(found) == -(-count * wanted // rate)
        same = tone(part * limit, wanted, len(found))
        np.testing.assert_allclose(found[200:-200], same[200:-200], rtol=0, atol=error, err_msg=str(part))
    for part, error in LEFT_OUT.items():
        if part * limit < rate / 2:
            assert np.abs(resample(tone(part * limit, rate, count), rate, wanted)[200:-200]).max() < error, part


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "wanted"), RATES)
def test_blocks_of_any_size_make_the_same_numbers(rate: int, wanted: int) -> None:
    rng = np.random.default_rng(rate)
    resampler = Resampler(rate, wanted)
    for count in (0, 1, 5000):  # one sound after the other
        samples = rng.uniform(-1, 1, count).astype(np.float32)
        cuts = np.sort(rng.integers(0, count + 1, 30))
        parts = [resampler.push(part) for part in np.split(samples, cuts)]
        np.testing.assert_array_equal(np.concatenate([*parts, resampler.finish()]), resample(samples, rate, wanted))


def test_a_rate_of_none_is_refused() -> None:
    with pytest.raises(InputError, match="got a rate of 0"):
        Resampler(16000, 0)
