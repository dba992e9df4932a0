"""singe-sound.js in node: it makes of sounds what core/singe/files/sounds makes of them, and what is known of tones."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from bundles import STATIC
from pages import node

from singe.files.sounds import resample

SOUND: Final = f'const sound = await import("{(STATIC / "singe-sound.js").as_uri()}");'
RATES: Final = ((44100, 16000), (48000, 16000), (16000, 44100), (8000, 11025), (44101, 8000), (22050, 22050))


def resampled(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    body = f"{SOUND} return [...sound.resample(Float32Array.from(given.samples), given.rate, given.wanted)];"
    return np.array(node(body, samples=samples.tolist(), rate=rate, wanted=wanted))


def tone(hertz: float, rate: int, count: int) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(count) / rate).astype(np.float32)


@pytest.mark.parametrize(("rate", "wanted"), RATES)
@pytest.mark.parametrize("count", [0, 1, 3000])
def test_numbers_are_those_of_python(rate: int, wanted: int, count: int) -> None:
    samples = np.random.default_rng(count).uniform(-1, 1, count).astype(np.float32)
    found = resampled(samples, rate, wanted)
    expected = resample(samples.astype(np.float64), rate, wanted)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("rate", "wanted"), RATES[:4])
def test_a_tone_stays_a_tone(rate: int, wanted: int) -> None:
    """Away from the ends, where there is silence on one side."""
    found = resampled(tone(440, rate, rate // 4), rate, wanted)
    inner = slice(100, -100)
    np.testing.assert_allclose(found[inner], tone(440, wanted, len(found))[inner], rtol=0, atol=2e-3)


def test_what_is_too_high_for_the_new_rate_is_left_out() -> None:
    """It would be heard as another tone: 7,000 Hz at 8,000 samples a second is one of 1,000 Hz."""
    found = resampled(tone(7000, 44100, 11025), 44100, 8000)
    assert np.abs(found[100:-100]).max() < 1e-3
    assert np.abs(tone(7000, 8000, 2000)).max() > 0.9


def test_the_mean_of_the_channels() -> None:
    body = f"""{SOUND}
    const channels = [Float32Array.of(1, 0, 0.5), Float32Array.of(0, -1, 0.5)];
    const buffer = {{ sampleRate: 8000, numberOfChannels: 2, getChannelData: (k) => channels[k] }};
    return [[...sound.soundToTensor(buffer, 8000)], sound.soundToTensor(buffer, 16000).length];
    """
    assert node(body) == [[0.5, -0.5, 0.5], 6]


WRONG: Final[dict[str, Any]] = {
    "sound.resample(new Float32Array(3), 44100.5, 16000)": "got a rate of 44100.5, expected a whole number",
    "sound.resample(new Float32Array(3), 44100, 0)": "got a rate of 0",
    "sound.resample(undefined, 44100, 16000)": "got samples of type undefined",
    "sound.resample(BigInt64Array.of(1n), 44100, 16000)": "got samples of type bigint",
    "sound.soundToTensor(new Float32Array(3), 16000)": "expected an AudioBuffer",
}


def test_what_does_not_fit_is_refused() -> None:
    found = node(f"{SOUND} return Promise.all([{', '.join(f'async () => {run}' for run in WRONG)}].map(failure));")
    for answer, told in zip(found, WRONG.values(), strict=True):
        assert (answer["name"], answer["code"]) == ("SingeError", "input")
        assert told in answer["message"]
