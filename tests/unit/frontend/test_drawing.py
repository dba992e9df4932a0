"""What notebooks show of a tensor: pictures and curves."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest

import singe as sg

LEFT_TO_RIGHT = np.tile(np.arange(32, dtype=np.float32), (16, 1))


def pixels(html: str) -> np.ndarray:
    """The pixels of the only picture in HTML, in which each may be enlarged to a square."""
    image = pytest.importorskip("PIL.Image")
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    found = np.asarray(image.open(io.BytesIO(base64.b64decode(data))))
    scale = max(1, found.shape[1] // int(re.findall(r"(\d+) × \d+ pixels", html)[0]))
    small = found[::scale, ::scale]
    np.testing.assert_array_equal(small.repeat(scale, axis=0).repeat(scale, axis=1), found)
    return small


def html(x: np.ndarray) -> str:
    return sg.tensor(x, device="numpy")._repr_html_()


def test_a_matrix_is_drawn_from_its_least_to_its_largest_element() -> None:
    found = pixels(html(LEFT_TO_RIGHT - 10))
    assert found.shape == (16, 32)
    np.testing.assert_array_equal(found[0], np.round(np.arange(32) / 31 * 255))
    assert "32 × 16 pixels, black is -10, white is 21" in html(LEFT_TO_RIGHT - 10)
    assert "black is 0, white is 1" in html(LEFT_TO_RIGHT / 62)
    np.testing.assert_array_equal(pixels(html(LEFT_TO_RIGHT / 62))[0, -1], 128)


def test_channels_may_be_first_or_last_and_bytes_are_themselves() -> None:
    x = np.random.default_rng(0).integers(0, 256, (20, 24, 3)).astype(np.uint8)
    for given in (x, x.transpose(2, 0, 1), x[None]):
        np.testing.assert_array_equal(pixels(html(given)), x)
    np.testing.assert_array_equal(pixels(html(x[:, :, :1])), x[:, :, 0])
    transparent = np.dstack([x, x[:, :, 0]])
    np.testing.assert_array_equal(pixels(html(transparent)), transparent)


def test_a_picture_survives_what_is_not_finite_or_all_the_same() -> None:
    x = LEFT_TO_RIGHT.copy()
    x[0, :3] = [np.nan, np.inf, -np.inf]
    np.testing.assert_array_equal(pixels(html(x))[0, :4], [0, 255, 0, round(3 / 31 * 255)])
    assert not pixels(html(np.full((16, 16), 7.0))).any()
    assert not pixels(html(np.full((16, 16), np.nan))).any()
    assert pixels(html(np.eye(16) > 0))[3, 3] == 255


def test_large_pictures_are_thinned() -> None:
    found = html(np.zeros((1025, 700), np.float32))
    assert pixels(found).shape == (342, 234)
    assert "700 × 1025 pixels" in found


def points(html: str) -> np.ndarray:
    (path,) = re.findall(r' d="([^"]*)"', html)
    return np.array([[float(n) for n in point.split()] for point in re.split("[ML]", path)[1:]])


def test_one_axis_is_a_curve() -> None:
    found = html(np.arange(20.0)[::-1] ** 2)
    assert "a curve of 20 points, from 0 to 361" in found
    x, y = points(found).T
    assert len(x) == 20
    assert (np.diff(x) > 0).all()
    assert (np.diff(y) > 0).all(), "down the page"
    found = html(np.array([np.nan, *range(8), np.inf, *range(8)]))
    assert found.count("M") == 2, "gaps"
    assert "<svg" not in html(np.full(20, np.nan))


def test_a_long_curve_keeps_its_peaks() -> None:
    y = np.zeros(100_000)
    y[[12_345, 67_890]] = 5.0, -5.0
    found = html(y)
    assert len(points(found)) < 1300
    assert "100000 points, from -5 to 5" in found
    heights = points(found)[:, 1]
    assert (heights.min(), heights.max()) == (20, 130)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (15, 40), (2, 2), (0, 20), (5, 20, 20), (2, 3, 20, 20)])
def test_other_tensors_are_not_drawn(shape: tuple[int, ...]) -> None:
    assert not re.search("<img|<svg", html(np.zeros(shape)))


def test_text_and_complex_numbers_are_not_drawn() -> None:
    assert "<svg" not in sg.tensor(["a"] * 20)._repr_html_()
    assert "<svg" not in html(np.ones(20, np.complex64))
