"""OCR: the lines of text of a picture. One model finds them, another says which stand on their heads, a third reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...dtypes import float32
from ...errors import FormatError
from ...graph import Graph
from ...model.model import Model
from ...shapes import dim_max
from ...tensors.functions.creation import arange, concatenate, full, tensor, where
from ...tensors.tensor import Tensor
from ..answers import Box, Line, Page
from ..applying import first_of
from ..picture.preparing import resampled, scalar
from .base import Chain, ChainPart, ChainParts, Following
from .crops import cropped, place_of, samples_of, sides_of
from .regions import MapRegion, regions_of

SHORT, LONG, STEP = 736, 1600, 32
"""A page is enlarged until its shorter side has SHORT pixels, and made smaller until its longer one has LONG; its sides are multiples of STEP."""
IS_TEXT, IS_LINE, GROW = 0.3, 0.5, 1.6
"""The least value of a place that has text, the least mean of a line's, and how far lines stand off from what the model marks."""
HEIGHT, UNIT = 48, 8
"""The height of a line for the models that see it, and what its width is a multiple of."""
NARROW, WIDE = 160, 4096
"""The least and the largest width of lines that are read."""
SQUEEZED: Final = 0.8
"""The part of their width with which lines are read: these models learn from squeezed lines, and are as right with a fifth less work."""
TURNING: Final = 192
"""The width for the model that says which are turned: it sees the beginning of a longer line, since letters that are squeezed mislead it."""
SMALL: Final = (80, 160)
"""The height and width of lines for such a model of PP-OCRv5."""
IMAGENET: Final = ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))
"""The mean and the deviation of colours that it is given."""
IS_TURNED: Final = 0.9
DOUBTFUL: Final = 0.9
"""Where lines may be turned, one with a lower score is read the other way, too."""
UPRIGHT: Final = 1.5
"""A line that is so many times as high as wide is read from the top down."""
AT_ONCE: Final = 6
"""So many lines are read at once."""
ALIKE: Final = 1.25
"""How many times as wide as the narrowest of them, or as NARROW, they may be: each takes as long as the widest."""
READS_IN: Final = "packed_int8"
"""A reader whose weights have 8 bits and a scale for each output makes the same errors, but for one in 4,000 characters, beside rows of 7 bits."""
CHARACTERS: Final = "characters.txt"
BLANK: Final = "blank"
"""What some files of characters call nothing."""
_ROUNDING: Final = 1e-6
"""Taken off a width, so that a whole one is the same however it was rounded."""
_LINES: Final[Mapping[str, Sequence[int | str]]] = {
    "picture": ("height", "width", 4), "places": ("lines", 6), "widths": ("lines",), "columns": ("columns",), "samples": ("samples",),
}  # fmt: skip
"""The inputs of Graphs that see lines."""
_LINE_TYPES: Final = dict.fromkeys(_LINES, "float32") | {"picture": "uint8", "columns": "uint8"}


def _finding(model: Model) -> Graph:
    net = model.graph()

    def whole(picture: Tensor, rows: Tensor, columns: Tensor) -> dict[str, Tensor]:
        x = picture
        for axis, side in enumerate((rows, columns)):
            own, out = picture.shape[axis], STEP * side.shape[0]
            longest = (own + out - 1) // dim_max(out, 1)
            x = resampled(x, axis, out, scalar(own) / scalar(out), scalar(0), longest, "linear")
        return {"chances": first_of(net, _given(x[..., :3].unsqueeze(0)))[0, 0]}

    shapes = {"picture": ("height", "width", 4), "rows": ("rows",), "columns": ("columns",)}
    return Model.of(whole, shapes, "numpy", dtypes=dict.fromkeys(shapes, "uint8")).graph()


def _given(pixels: Tensor) -> Tensor:
    """Pixels (count, height, width, 3), red first, as these models have learned them: blue first, from −1 to 1."""
    return (pixels.flip(-1) / 127.5 - 1.0).permute(0, 3, 1, 2)


def _of_lines(net: Graph, decode: Any) -> Graph:
    """A network that sees lines; `columns` has an element for each UNIT of their width."""

    def whole(picture: Tensor, places: Tensor, widths: Tensor, columns: Tensor, samples: Tensor) -> dict[str, Tensor]:
        width = UNIT * columns.shape[0]
        pixels = cropped(picture, places, HEIGHT, width, samples)
        shown = arange(width).to(dtype="float32") < widths.unsqueeze(1)
        pixels = where(shown.unsqueeze(1).unsqueeze(-1), pixels, 127.5)
        return decode(first_of(net, _given(pixels)))

    return Model.of(whole, _LINES, "numpy", dtypes=_LINE_TYPES).graph()


def _turning(model: Model) -> Graph:
    shape = model.inputs[0].shape if model.inputs else ()
    if shape and tuple(shape[1:]) == (3, *SMALL):
        return _turning_small(model)
    return _of_lines(model.graph(), lambda chances: {"turned": chances[:, 1]})  # pyright: ignore[reportUnknownLambdaType]


def _turning_small(model: Model) -> Graph:
    """A model that sees each line stretched to SMALL, in the colours of ImageNet."""
    net = model.graph()
    height, width = SMALL
    mean, std = (tensor(np.array(x, np.float32)) for x in IMAGENET)

    def whole(picture: Tensor, places: Tensor, widths: Tensor, columns: Tensor, samples: Tensor) -> dict[str, Tensor]:
        wider, higher = (widths / width).unsqueeze(1), HEIGHT / height
        stretched = concatenate([places[:, :2], places[:, 2:4] * wider, places[:, 4:] * higher], axis=1)
        pixels = (cropped(picture, stretched, height, width, samples) - mean) / std
        return {"turned": first_of(net, pixels.permute(0, 3, 1, 2))[:, 1]}

    return Model.of(whole, _LINES, "numpy", dtypes=_LINE_TYPES).graph()


def _reading(model: Model) -> Graph:
    net = model.graph()
    last = net.outputs[0]
    if last.op == "softmax" and last.attrs.get("axis", -1) in (-1, 2) and last.dtype is float32:
        return _of_lines(replace(net, outputs=(last.inputs[0],), output_names=net.output_names[:1]), of_scores)
    return _of_lines(net, of_chances)


def of_chances(chances: Tensor) -> dict[str, Tensor]:
    """What a reader's probabilities (lines, steps, characters) spell."""
    return _collapsed(chances.argmax(2), chances.amax(2))


def of_scores(scores: Tensor) -> dict[str, Tensor]:
    """What the probabilities spell that are the softmax of these scores: of thousands at each step only the largest is needed."""
    return _collapsed(scores.argmax(2), 1.0 / (scores - scores.amax(2, keepdims=True)).exp().sum(2))


def _collapsed(likeliest: Tensor, chance: Tensor) -> dict[str, Tensor]:
    """Of the likeliest character of each step, and its probability: the number of a character where it begins, elsewhere 0, which stands
    for none; and the mean probability of the characters of each line."""
    best = likeliest.to(dtype="int32")
    none = full((best.shape[0], 1), 0, dtype="int32")  # pyright: ignore[reportArgumentType]
    begins = (best != 0) & (best != concatenate([none, best[:, :-1]], axis=1))
    count = begins.to(dtype="float32").sum(1)
    score = where(begins, chance, 0.0).sum(1) / count.maximum(1.0)
    return {"characters": where(begins, best, 0), "scores": score}


def characters_of(model: Model, files: Mapping[str, Path]) -> Sequence[str]:
    """What the reader tells apart, by number: nothing first. Its file says it, or the file beside it; both may leave out nothing, which is
    first, and the space, which is last: how many it tells apart says whether they do."""
    from ...onnx.model import read_model  # noqa: PLC0415 (other tasks need no reader of ONNX files for what they know)

    reader = files["rec"]
    told = read_model(reader).metadata.get("character") if reader.suffix == ".onnx" else None
    if told is None:
        if CHARACTERS not in files:
            raise FormatError(
                f"{reader}: does not name its characters; put them into {CHARACTERS} beside it, one on each line"
            )
        try:
            told = files[CHARACTERS].read_text("utf-8")
        except UnicodeDecodeError as e:
            raise FormatError(f"{files[CHARACTERS]}: expected UTF-8 text, a character on each line: {e}") from e
    lines = told.replace("\r\n", "\n").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    count = model.graph().outputs[0].shape[-1:]
    known = count[0] if count and isinstance(count[0], int) else len(lines) + 2
    forms = {
        len(lines) + 2: ["", *lines, " "],
        len(lines) + 1: ["", *lines[1:], " "] if lines[:1] == [BLANK] else ["", *lines],
        len(lines): ["", *lines[1:]],
    }
    if known not in forms:
        raise FormatError(
            f"{reader}: tells {known} characters apart, and {len(lines)} are named; give the {CHARACTERS} that it was trained with"
        )
    return forms[known]


def _begin(parts: ChainParts, settings: Mapping[str, Any]) -> Following:
    return lambda picture: _answer(parts, picture, settings)


def _answer(parts: ChainParts, picture: np.ndarray, settings: Mapping[str, Any]) -> Page:
    found = _lines_in(parts, picture)
    seen = [upright(region.corners) for region in found]
    turned = _turned(parts, picture, seen)
    seen = [
        np.roll(corners, 2, 0) if chance > IS_TURNED else corners for corners, chance in zip(seen, turned, strict=True)
    ]
    texts = _read(parts, picture, seen)
    doubtful = [k for k, (_, score) in enumerate(texts) if score < DOUBTFUL and "cls" in parts.steps]
    others = [np.roll(seen[k], 2, 0) for k in doubtful]
    for k, other, again in zip(doubtful, others, _read(parts, picture, others), strict=True):
        if again[1] > texts[k][1]:
            seen[k], texts[k] = other, again
    lines = [
        Line(text, score, _box(found[k].corners), found[k].corners)
        for k in reading_order(seen)
        for text, score in (texts[k],)
        if text.strip() and score >= settings["threshold"]
    ]
    return Page("ocr", picture, lines)


def _turned(parts: ChainParts, picture: np.ndarray, lines: Sequence[np.ndarray]) -> list[float]:
    """How likely it is that each line stands on its head."""
    if "cls" not in parts.steps:
        return [0.0] * len(lines)
    found: list[float] = []
    for start in range(0, len(lines), AT_ONCE):
        some = _views(picture, [_begun(corners) for corners in lines[start : start + AT_ONCE]], TURNING, TURNING)
        found += parts.steps["cls"](some)["turned"].tolist()
    return found


def _read(parts: ChainParts, picture: np.ndarray, lines: Sequence[np.ndarray]) -> list[tuple[str, float]]:
    """The text of each line, and its score."""
    texts = [("", 0.0)] * len(lines)
    for some in _alike([_wide(corners, SQUEEZED) for corners in lines]):
        read = parts.steps["rec"](_views(picture, [lines[k] for k in some], NARROW, WIDE, SQUEEZED))
        for k, numbers, score in zip(some, read["characters"], read["scores"], strict=True):
            texts[k] = _spelt(numbers[numbers > 0], parts.info.labels), float(score)
    return texts


def _alike(widths: Sequence[int]) -> list[list[int]]:
    """The numbers of lines that are read at once."""
    groups: list[list[int]] = []
    for k in sorted(range(len(widths)), key=widths.__getitem__):
        last = groups[-1] if groups else []
        if last and len(last) < AT_ONCE and widths[k] <= ALIKE * max(NARROW, widths[last[0]]):
            last.append(k)
        else:
            groups.append([k])
    return groups


def _spelt(numbers: np.ndarray, characters: Sequence[str]) -> str:
    if len(numbers) and numbers.max() >= len(characters):
        raise FormatError(
            f"ocr: the model reads character {numbers.max()}, of {len(characters)} that are named; give the {CHARACTERS} of this rec.onnx"
        )
    return "".join(characters[int(n)] for n in numbers)


def _lines_in(parts: ChainParts, picture: np.ndarray) -> list[MapRegion]:
    """The lines of a picture, in its pixels."""
    sides = picture.shape[:2]
    scale = min(max(1.0, SHORT / min(sides)), LONG / max(sides))
    units = [max(1, round(side * scale / STEP)) for side in sides]
    rows, columns = (np.zeros(n, np.uint8) for n in units)
    chances = parts.steps["det"]({"picture": picture, "rows": rows, "columns": columns})["chances"]
    ratio = np.array([sides[1] / chances.shape[1], sides[0] / chances.shape[0]])
    ends = np.array([sides[1], sides[0]])
    found = [
        MapRegion(np.clip(region.corners * ratio, 0, ends), region.score)
        for region in regions_of(chances, IS_TEXT, IS_LINE, GROW)
    ]
    return [region for region in found if min(sides_of(region.corners)) > 1]


def upright(corners: np.ndarray) -> np.ndarray:
    """The corners of a line in the order in which it is read: one that is high goes from the top down."""
    height, width = sides_of(corners)
    return np.roll(corners, -1, 0) if height >= UPRIGHT * width else corners


def _wide(corners: np.ndarray, part: float = 1.0) -> int:
    """The width of a line of HEIGHT, or a part of it."""
    height, width = sides_of(corners)
    return max(1, int(np.ceil(part * HEIGHT * width / height - _ROUNDING)))


def _begun(corners: np.ndarray) -> np.ndarray:
    """The beginning of a line, which has no more than TURNING pixels at HEIGHT."""
    part = min(1.0, TURNING / _wide(corners))
    first, second, third, fourth = corners
    return np.stack([first, first + (second - first) * part, fourth + (third - fourth) * part, fourth])


def _views(
    picture: np.ndarray, lines: Sequence[np.ndarray], least: int, most: int, part: float = 1.0
) -> dict[str, np.ndarray]:
    """What a model of lines is given."""
    widths = [min(_wide(corners, part), most) for corners in lines]
    places = [place_of(corners, HEIGHT, width) for corners, width in zip(lines, widths, strict=True)]
    coarse = max(max(np.hypot(*p[2:4]), np.hypot(*p[4:6])) for p in places)
    return {
        "picture": picture,
        "places": np.array(places, np.float32),
        "widths": np.array(widths, np.float32),
        "columns": np.zeros(-(-max(least, *widths) // UNIT), np.uint8),
        "samples": samples_of(coarse),
    }


def reading_order(lines: Sequence[np.ndarray]) -> list[int]:
    """The numbers of lines, whose corners begin where their text does, from the top down and from left to right, as seen along the way
    that most of them run. Lines stand beside each other where their centres are within half a height."""
    if not lines:
        return []
    ways = np.sum([c[1] - c[0] for c in lines], axis=0)
    along = ways / (float(np.linalg.norm(ways)) or 1.0)
    across = np.array([-along[1], along[0]])
    centers = np.array([c.mean(0) for c in lines])
    x, y = centers @ along, centers @ across
    heights = np.array([min(sides_of(c)) for c in lines])
    rows: list[list[int]] = []
    for k in np.argsort(y, kind="stable").tolist():
        last = rows[-1][0] if rows else None
        if last is not None and y[k] - y[last] < min(heights[k], heights[last]) / 2:
            rows[-1].append(k)
        else:
            rows.append([k])
    return [k for row in rows for k in sorted(row, key=lambda k: float(x[k]))]


def _box(corners: np.ndarray) -> Box:
    return Box(*map(float, (*corners.min(0), *corners.max(0))))


OCR: Final = Chain(
    "ocr", "the lines of text of a picture, in reading order",
    {
        "det": ChainPart(("det.onnx",), ("det",), _finding),
        "cls": ChainPart(("cls.onnx",), ("cls",), _turning, optional=True),
        "rec": ChainPart(("rec.onnx",), ("rec",), _reading, activations=READS_IN),
    },
    {CHARACTERS: ("dict", "keys")}, lambda models, files: (characters_of(models["rec"], files), {}), _begin, {"threshold": 0.5},
)  # fmt: skip
