"""Regions of a map: components are those of a plain flood fill, rectangles the smallest of all angles."""

from __future__ import annotations

import numpy as np
import pytest

from singe.tasks.chains.regions import (
    grown,
    mean_within,
    ordered,
    regions_of,
    runs_of,
    smallest_rectangle,
    widened,
)

RNG = np.random.default_rng(5)


def flooded(mask: np.ndarray) -> np.ndarray:
    """The number of each pixel's component, in the order of their first pixels, and −1 beside them; joined also at corners."""
    found = np.full(mask.shape, -1)
    count = 0
    for start in np.argwhere(mask).tolist():
        if found[tuple(start)] >= 0:
            continue
        waiting = [start]
        found[tuple(start)] = count
        while waiting:
            y, x = waiting.pop()
            for v in range(max(0, y - 1), min(mask.shape[0], y + 2)):
                for u in range(max(0, x - 1), min(mask.shape[1], x + 2)):
                    if mask[v, u] and found[v, u] < 0:
                        found[v, u] = count
                        waiting.append([v, u])
        count += 1
    return found


def painted(mask: np.ndarray) -> np.ndarray:
    runs = runs_of(mask)
    found = np.full(mask.shape, -1)
    for y, first, last, component in zip(runs.row, runs.first, runs.last, runs.component, strict=True):
        found[y, first : last + 1] = component
    return found


@pytest.mark.parametrize("density", [0.0, 0.2, 0.35, 0.5, 0.8, 1.0])
def test_components_are_those_of_a_flood_fill(density: float) -> None:
    for size in ((1, 1), (1, 30), (30, 1), (23, 31), (40, 17)):
        mask = RNG.random(size) < density
        np.testing.assert_array_equal(painted(mask), flooded(mask))


def test_a_spiral_is_one_component() -> None:
    mask = np.zeros((21, 21), bool)
    for k in range(0, 10, 2):
        mask[k, k : 21 - k] = mask[20 - k, k : 21 - k] = mask[k : 21 - k, 20 - k] = mask[k + 2 : 21 - k, k] = True
        mask[k + 2, k : k + 3] = True
    assert painted(mask).max() == flooded(mask).max() == 0


def test_the_smallest_rectangle_holds_all_points_and_no_angle_has_a_smaller_one() -> None:
    for _ in range(30):
        points = RNG.integers(0, 40, (RNG.integers(3, 40), 2)).astype(float)
        corners = smallest_rectangle(points)
        right, down = corners[1] - corners[0], corners[3] - corners[0]
        width, height = np.linalg.norm(right), np.linalg.norm(down)
        assert abs(right @ down) < 1e-6 * max(1.0, width * height)
        for side, length in ((right, width), (down, height)):
            far = (points - corners[0]) @ side / length
            assert far.min() > -1e-6
            assert far.max() < length + 1e-6
        for angle in np.linspace(0, np.pi / 2, 181):
            turned = points @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            assert width * height <= np.prod(np.ptp(turned, axis=0)) + 1e-6


def test_points_on_a_line_or_at_one_place_have_a_flat_rectangle() -> None:
    for points in (np.array([[3.0, 4.0]]), np.array([[0.0, 0.0], [2.0, 2.0], [5.0, 5.0]])):
        corners = smallest_rectangle(points)
        np.testing.assert_allclose(corners.min(0), points.min(0), atol=1e-9)
        np.testing.assert_allclose(corners.max(0), points.max(0), atol=1e-9)


def rectangle(angle: float, width: float, height: float, center: tuple[float, float]) -> np.ndarray:
    u, v = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    ways = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return np.array([np.array(center) + a * width / 2 * u + b * height / 2 * v for a, b in ways])


def drawn(corners: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """1 where the centre of a pixel lies in a rectangle."""
    y, x = np.mgrid[: size[0], : size[1]] + 0.5
    found = np.ones(size, bool)
    for side in (corners[1] - corners[0], corners[3] - corners[0]):
        far = ((x - corners[0, 0]) * side[0] + (y - corners[0, 1]) * side[1]) / (side @ side)
        found &= (far >= 0) & (far <= 1)
    return found.astype(np.float32)


@pytest.mark.parametrize("degrees", [0, 4, -7, 30, -40])
def test_a_rectangle_that_is_drawn_is_found(degrees: float) -> None:
    wanted = rectangle(np.radians(degrees), 60, 14, (60, 50))
    chances = drawn(wanted, (100, 120)) * 0.9
    (found,) = regions_of(chances, 0.3, 0.5, 0.0)
    np.testing.assert_allclose(found.corners, wanted, atol=1.6)
    assert 0.7 < found.score <= 0.9
    (wider,) = regions_of(chances, 0.3, 0.5, 1.6)
    sides = [np.linalg.norm(wider.corners[k] - wider.corners[0]) for k in (1, 3)]
    np.testing.assert_allclose(sides, [60 + 2 * 9.1, 14 + 2 * 9.1], atol=3.5)


def test_what_is_faint_or_tiny_is_not_found() -> None:
    chances = np.zeros((60, 60), np.float32)
    chances[10:20, 10:40] = 0.4
    chances[40:42, 40:42] = 1.0
    assert regions_of(chances, 0.3, 0.5, 1.6) == []
    assert regions_of(np.zeros((4, 4), np.float32), 0.3, 0.5, 1.6) == []


def test_pixels_that_are_one_apart_are_joined() -> None:
    mask = np.zeros((5, 9), bool)
    mask[2, [2, 4]] = True
    assert painted(mask).max() == 1
    assert painted(widened(mask)).max() == 0
    assert widened(mask).sum() == 8


def test_corners_begin_at_the_top_left_and_go_clockwise() -> None:
    for degrees in (0, 20, -20, 44, -44):
        wanted = rectangle(np.radians(degrees), 40, 10, (50, 50))
        for turn in range(4):
            np.testing.assert_allclose(ordered(np.roll(wanted, turn, 0)), wanted)
            np.testing.assert_allclose(ordered(np.roll(wanted[::-1], turn, 0)), wanted)


def test_a_rectangle_grows_on_all_sides() -> None:
    np.testing.assert_allclose(
        grown(np.array([[0.0, 0.0], [30.0, 0.0], [30.0, 10.0], [0.0, 10.0]]), 0.8),
        [[-3, -3], [33, -3], [33, 13], [-3, 13]],
    )


def test_the_mean_is_that_of_the_elements_within() -> None:
    values = RNG.random((20, 30)).astype(np.float32)
    corners = np.array([[4.0, 3.0], [12.0, 3.0], [12.0, 9.0], [4.0, 9.0]])
    assert mean_within(values, corners) == pytest.approx(values[3:10, 4:13].mean())
    assert mean_within(values, corners + 100) == 0.0
