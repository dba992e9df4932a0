"""The row that resamples. Along each axis every output element is a weighted sum of a few input elements; which, and with
which weights, is a table made here once, so that all of ONNX's modes cost the same loads and one multiply each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..dtypes import NUMBERS, float32, int32, uint8
from ..errors import ShapeError
from ..shapes import Dim, Shape, show
from . import _reference as reference
from ._row import Composite, Shaped, register

Place = Callable[[np.ndarray, int, int, float, tuple[float, float]], np.ndarray]


def _symmetric(i: np.ndarray, d: int, out: int, scale: float, roi: tuple[float, float]) -> np.ndarray:
    return d / 2 * (1 - out / (scale * d)) + (i + 0.5) / scale - 0.5


def _corners(i: np.ndarray, d: int, out: int, scale: float, roi: tuple[float, float]) -> np.ndarray:
    return i * 0 if scale * d == 1 else i * ((d - 1) / (scale * d - 1))


def _crop(i: np.ndarray, d: int, out: int, scale: float, roi: tuple[float, float]) -> np.ndarray:
    width = (roi[1] - roi[0]) * (d - 1)
    return (i * 0 + width / 2 if out == 1 else i * (width / (out - 1))) + roi[0] * (d - 1)


PLACES: Final[Mapping[str, Place]] = {
    "half_pixel": lambda i, d, out, scale, roi: (i + 0.5) / scale - 0.5,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda i, d, out, scale, roi: (i + 0.5) / scale - 0.5 if scale * d != 1 else i * 0 - 0.5,
    "align_corners": _corners,
    "asymmetric": lambda i, d, out, scale, roi: i / scale,
    "tf_half_pixel_for_nn": lambda i, d, out, scale, roi: (i + 0.5) / scale,
    "tf_crop_and_resize": _crop,
}
"""coordinate transformation ↦ the place in the input (a fraction) of each output index."""

ROUNDINGS: Final[Mapping[str, Callable[[np.ndarray], np.ndarray]]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _triangle(x: np.ndarray, a: float) -> np.ndarray:
    return np.clip(1 - np.abs(x), 0, 1)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


FILTERS: Final[Mapping[str, tuple[Callable[[np.ndarray, float], np.ndarray], int]]] = {
    "linear": (_triangle, 1),
    "cubic": (_cubic, 2),
}
"""mode ↦ the weight at a distance, and the distance at which it ends."""


MAX_TABLE: Final = 1 << 24
"""Elements of the input that take part in an axis of the output, counted for each of its elements, at most."""


def _table(
    d: int, out: int, scale: float, roi: tuple[float, float], options: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """(input indices [taps, out], weights [taps, out] or None for one tap of weight 1, which outputs lie outside or None)."""
    weigh, reach = FILTERS.get(options["mode"], (_triangle, 0))
    stretch = min(scale, 1.0) if options["antialias"] else 1.0
    if not stretch > 0 or out * max(1.0, 2 * reach / stretch) > MAX_TABLE:
        raise ShapeError(
            f"resize: from {d} to {out} elements by {scale}: at most {MAX_TABLE} are weighed along an axis"
        )
    i = np.arange(out, dtype=np.float64)
    place = PLACES[options["coordinates"]](i, d, out, scale, roi)
    outside = (place < 0) | (place > d - 1) if options["coordinates"] == "tf_crop_and_resize" else None
    if options["mode"] == "nearest":
        return np.clip(ROUNDINGS[options["nearest"]](place), 0, d - 1)[None], None, outside
    base = np.ceil(place) - 1
    first = int(np.floor(-reach / stretch)) + 1
    offsets = np.arange(first, 2 - first)[:, None]
    weights = weigh((offsets - (place - base)) * stretch, options["cubic"])
    indices = base + offsets
    if options["exclude_outside"]:
        weights = np.where((indices < 0) | (indices >= d), 0.0, weights)
    if options["antialias"] or options["exclude_outside"]:
        weights = weights / weights.sum(0)
    used = np.any(weights != 0, axis=1)
    return np.clip(indices, 0, d - 1)[used], weights[used], outside


def _resize(
    b: Any, x: Any, *, sizes: Shape, scales: tuple[float, ...], mode: str = "nearest", coordinates: str = "half_pixel", nearest: str = "round_prefer_floor",
    cubic: float = -0.75, exclude_outside: bool = False, extrapolation: float = 0.0, roi: tuple[float, ...] = (), antialias: bool = False,
) -> Any:  # fmt: skip
    for what, given, allowed in (
        ("mode", mode, ("nearest", *FILTERS)),
        ("coordinates", coordinates, tuple(PLACES)),
        ("nearest", nearest, tuple(ROUNDINGS)),
    ):
        if given not in allowed:
            raise ShapeError(f"resize: {what} {given!r}, expected one of {', '.join(allowed)}")
    rank = len(x.shape)
    if not len(sizes) == len(scales) == rank:
        raise ShapeError(f"resize: sizes and scales must name all {rank} axes of {show(x.shape)}")
    options = {
        "mode": mode,
        "coordinates": coordinates,
        "nearest": nearest,
        "cubic": cubic,
        "exclude_outside": exclude_outside,
        "antialias": antialias,
    }
    ends = roi or (0.0,) * rank + (1.0,) * rank
    kind = x.dtype
    if mode != "nearest" and kind is not float32:
        x = b.cast(x, to=float32)
    lost: Any = None
    for axis in range(rank):
        d, out, scale = x.shape[axis], sizes[axis], scales[axis]
        span = (ends[axis], ends[rank + axis])
        if d == out and scale == 1 and (coordinates != "tf_crop_and_resize" or span == (0.0, 1.0)):
            continue
        if _repeats(d, out, scale, options):
            x = _repeated(b, x, axis, int(scale))
            continue
        if not (isinstance(d, int) and isinstance(out, int)):
            raise ShapeError(f"resize: axis {axis} goes from {d} to {out}; give this dimension a fixed size")
        indices, weights, outside = _table(d, out, scale, span, options)
        x = _sampled(b, x, axis, indices, weights)
        if outside is not None and outside.any():
            mask = b.const(outside.reshape([-1 if i == axis else 1 for i in range(rank)]))
            lost = mask if lost is None else b.logical_or(lost, mask)
    if lost is not None:
        x = b.where(lost, b.const(extrapolation, x.dtype), x)
    if x.dtype is kind:
        return x
    if kind is uint8:  # cubic weights overshoot, and a cast would wrap
        x = b.clip(x, b.const(0.0), b.const(255.0))
    return b.cast(x, to=kind)


def _repeats(d: Dim, out: Dim, scale: float, options: Mapping[str, Any]) -> bool:
    """Whether the axis is enlarged by a whole factor with each element repeated: then index arithmetic needs no table."""
    if (
        options["mode"] != "nearest"
        or scale != int(scale)
        or scale < 1
        or out != d * int(scale)
        or options["coordinates"] == "tf_crop_and_resize"
    ):
        return False
    probe = 7  # the rule is the same for every length, and shows within a few elements
    length = d if isinstance(d, int) and d > 0 else probe
    if not isinstance(d, int) and options["coordinates"] in ("align_corners", "half_pixel_symmetric"):
        return False
    indices, _, _ = _table(length, length * int(scale), scale, (0.0, 1.0), options)
    return bool((indices[0] == np.arange(length * int(scale)) // int(scale)).all())


def _repeated(b: Any, x: Any, axis: int, factor: int) -> Any:
    before, d, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    x = b.reshape(x, shape=(*before, d, 1, *after))
    x = b.expand(x, shape=(*before, d, factor, *after))
    return b.reshape(x, shape=(*before, d * factor, *after))


def _sampled(b: Any, x: Shaped, axis: int, indices: np.ndarray, weights: np.ndarray | None) -> Any:
    total: Any = None
    for tap, index in enumerate(indices):
        part = b.gather(x, b.const(index.astype(np.int32), int32), axis=axis)
        if weights is not None:
            shape = tuple(-1 if i == axis else 1 for i in range(len(x.shape)))
            part = b.mul(part, b.const(weights[tap].reshape(shape), x.dtype))
        total = part if total is None else b.add(total, part)
    return total


register(
    Composite(name="resize", doc="resampled along every axis whose size changes; attributes as ONNX's Resize", dtypes=NUMBERS, lower=_resize,
              reference=reference.resize, tolerance=64, floor=1e-5),
)  # fmt: skip
