"""Draws an answer on its picture, as a picture of Pillow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..files.pictures import canvas_of, pen_on
from .answers import Answer, Findings, Page, PictureMap, TaskVector

_TURN: Final = 0.38
"""How far the hue turns from one class to the next."""
MANY_POINTS: Final = 100
"""So many points are drawn small."""
LEAST_VISIBILITY: Final = 0.5
"""Points that are less likely to be seen are not drawn."""


def drawn(answer: Answer, picture: np.ndarray) -> Any:
    """The picture (height, width, 4) with what was found on it."""
    return _WAYS[type(answer)](answer, picture[..., :3])


def _colour(index: int) -> tuple[int, int, int]:
    """A dark colour of a class, on which white text is read."""
    hue = (index * _TURN) % 1.0 * 6
    rising = 1 - abs(hue % 2 - 1)
    low, high, middle = 40, 170, round(40 + 130 * rising)
    rows = (
        (high, middle, low),
        (middle, high, low),
        (low, high, middle),
        (low, middle, high),
        (middle, low, high),
        (high, low, middle),
    )
    return rows[int(hue)]


def _findings(answer: Findings, colours: np.ndarray) -> Any:
    pixels = colours.astype(np.float32)
    for item in answer:
        if (mask := item.lazy_mask()) is not None:
            top, left, values = mask.part()
            share = values[..., None] / np.float32(510)
            under = pixels[top : top + len(values), left : left + values.shape[1]]
            under[:] = under * (1 - share) + np.array(_colour(item.index), np.float32) * share
    picture = canvas_of(np.round(pixels).astype(np.uint8))
    pen = pen_on(picture)
    size = max(10, round(min(picture.size) / 40))
    for row, item in enumerate(answer):
        colour = _colour(item.index)
        left, top = (0.0, row * (size + 6.0)) if item.box is None else (item.box.xmin, item.box.ymin)
        if item.box is not None:
            pen.rectangle((left, top, item.box.xmax, item.box.ymax), outline=colour, width=max(2, size // 6))
            top = max(0.0, top - size - 6)
        marks: Any = () if item.landmarks is None else item.landmarks
        points = [(float(point[0]), float(point[1])) for point in marks]
        seen = [len(point) < 4 or point[3] >= LEAST_VISIBILITY for point in marks]
        for one, other in answer.joints if points else ():
            if seen[one] and seen[other]:
                pen.line([points[one], points[other]], fill=colour, width=max(2, size // 6))
        far = max(2, size // 6) if len(points) < MANY_POINTS else 1
        for x, y in (point for point, is_seen in zip(points, seen, strict=True) if is_seen):
            pen.ellipse((x - far, y - far, x + far, y + far), fill=colour)
        hand = f"{item.handedness.lower()} " if item.handedness else ""
        text = f"{hand}{item.label} {item.score:.0%}"
        pen.rectangle((left, top, left + pen.textlength(text, font_size=size) + 8, top + size + 6), fill=colour)
        pen.text((left + 4, top + 2), text, fill="white", font_size=size)
    return picture


def _page(answer: Page, colours: np.ndarray) -> Any:
    """Each line in a frame, with its number in reading order before it."""
    picture = canvas_of(colours)
    pen = pen_on(picture)
    size = max(10, round(min(picture.size) / 60))
    for row, line in enumerate(answer):
        colour = _colour(row)
        places = [(float(x), float(y)) for x, y in line.corners]
        pen.line([*places, places[0]], fill=colour, width=max(2, size // 6))
        wide = pen.textlength(str(row + 1), font_size=size) + 4
        left, top = max(0.0, places[0][0] - wide), places[0][1]
        pen.rectangle((left, top, left + wide, top + size + 4), fill=colour)
        pen.text((left + 2, top + 1), str(row + 1), fill="white", font_size=size)
    return picture


def _map(answer: PictureMap, colours: np.ndarray) -> Any:
    """A cutout with its transparency; the depth in grey."""
    if answer.name == "mask":
        return canvas_of(np.concatenate([colours, answer.values[..., None]], axis=2))
    values = answer.values.astype(np.float64)
    least, most = (values.min(), values.max()) if values.size else (0.0, 1.0)
    return canvas_of(np.round((values - least) / ((most - least) or 1) * 255).astype(np.uint8))


def _plain(answer: Answer, colours: np.ndarray) -> Any:
    return canvas_of(colours)


_WAYS: Final[Mapping[type[Answer], Callable[[Any, np.ndarray], Any]]] = {
    Findings: _findings,
    Page: _page,
    PictureMap: _map,
    TaskVector: _plain,
}
