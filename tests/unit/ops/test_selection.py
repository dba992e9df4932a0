"""Ops that select by data, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from singe.ops import find_row


def _too_near(a: np.ndarray, b: np.ndarray, most: float) -> bool:
    """Whether two boxes, given by two corners each, share more than this part of what they cover."""
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), np.float32(0))
    shared = sides[0] * sides[1]
    covered = (a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - shared
    return bool(covered > 0 and shared / covered > np.float32(most))


@pytest.mark.parametrize(("boxes", "limit", "overlap"), [(100, 1000, 0.3), (100, 20, 0.0), (90, 7, 1.0), (0, 5, 0.5)])
def test_suppression_of_many_boxes(boxes: int, limit: int, overlap: float) -> None:
    rng = np.random.default_rng(boxes + limit)
    corners = rng.uniform(0, 60, (1, boxes, 2))
    given = np.concatenate([corners, corners + rng.uniform(0, 20, corners.shape)], -1).astype(np.float32)
    scores = np.round(rng.random((1, 2, boxes)) * 50).astype(np.float32) / 50
    expected = []
    for kind in range(2):
        kept: list[int] = []
        for i in sorted(range(boxes), key=lambda i: -scores[0, kind, i]):
            if scores[0, kind, i] > 0.25 and not any(_too_near(given[0, k], given[0, i], overlap) for k in kept):
                kept.append(i)
        expected += [[0, kind, i] for i in kept[:limit]]
    limits = (np.array([limit]), np.array([overlap], np.float32), np.array([0.25], np.float32))
    found = find_row("non_max_suppression").on_host(given, scores, *limits)  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_array_equal(found, np.array(expected, np.int64).reshape(-1, 3))
