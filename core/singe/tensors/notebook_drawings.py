"""Tensors as drawings for notebooks: a curve as SVG, a picture as PNG.

Contract: `drawn_as_html` gives HTML without scripts and files, or "" for elements that are neither. One axis of LEAST numbers or
more is a curve. Two axes of LEAST and more are a picture, as are three of which the first or the last has 1, 3 or 4
channels. Axes of length 1 in front of these do not count.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final

import numpy as np

LEAST: Final = 16
MOST: Final = 512
"""The most pixels of a side; of larger pictures, every second (third, …) row and column is drawn."""
SHOWN: Final = 224
"""Small pictures are enlarged to about this many pixels."""
COLORS: Final = {1: 0, 3: 2, 4: 6}
"""Channels ↦ PNG's colour type."""
WIDTH: Final = 340
HEIGHT: Final = 150
MARGIN: Final = 20
"""Of a curve: above and below it are numbers of this height."""


def drawn_as_html(elements: np.ndarray) -> str:
    """The HTML of a drawing; "" if the elements are no curve and no picture."""
    if elements.dtype.kind not in "buif" or not elements.size:
        return ""
    x = elements
    while x.ndim > 1 and len(x) == 1:
        x = x[0]
    if x.ndim == 1:
        return _curve(x.astype(np.float64)) if len(x) >= LEAST else ""
    pixels = _pixels(x)
    return "" if pixels is None else _picture(pixels)


# --- pictures ----------------------------------------------------------------------------------------------------------


def _pixels(x: np.ndarray) -> np.ndarray | None:
    """The elements as (height, width, channels); None if they are no picture."""
    if x.ndim == 2:
        x = x[:, :, None]
    elif x.ndim == 3 and len(x) in COLORS and min(x.shape[1:]) >= LEAST:
        x = x.transpose(1, 2, 0)
    if x.ndim != 3 or min(x.shape[:2]) < LEAST or x.shape[2] not in COLORS:
        return None
    return x


def _picture(x: np.ndarray) -> str:
    height, width, channels = x.shape
    step = -(-max(height, width) // MOST)
    x = x[::step, ::step]
    levels, low, high = _levels(x)
    scale = max(1, round(SHOWN / max(levels.shape[:2])))
    levels = levels.repeat(scale, axis=0).repeat(scale, axis=1)
    about = f"{width} × {height} pixels, black is {low:.4g}, white is {high:.4g}"
    data = base64.b64encode(_png(levels, COLORS[channels])).decode()
    return f'<div><img alt="{about}" src="data:image/png;base64,{data}"></div><div>{about}</div>'


def _levels(x: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Bytes, and the elements that black and white stand for: 0 and 255 of bytes, 0 and 1 of numbers between these, otherwise
    the least and the largest."""
    if x.dtype == np.uint8:
        return x, 0, 255
    x = x.astype(np.float64)
    finite = x[np.isfinite(x)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    span = high - low or 1.0
    return np.round(np.clip(np.nan_to_num((x - low) / span), 0, 1) * 255).astype(np.uint8), low, high


def _png(pixels: np.ndarray, color: int) -> bytes:
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter: 0, none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )


# --- curves ------------------------------------------------------------------------------------------------------------


def _curve(y: np.ndarray) -> str:
    y = np.where(np.isfinite(y), y, np.nan)
    low, high = float(np.fmin.reduce(y)), float(np.fmax.reduce(y))
    if np.isnan(low):
        return ""
    about = f"a curve of {len(y)} points, from {low:.4g} to {high:.4g}"
    x, y = _thinned(np.arange(len(y)) * (WIDTH / (len(y) - 1)), y)
    span = high - low or 1.0
    heights = MARGIN + (HEIGHT - 2 * MARGIN) * (high - y) / span
    path, pen = [], "M"
    for a, b in zip(x, heights, strict=True):
        if np.isnan(b):
            pen = "M"
            continue
        path.append(f"{pen}{a:.1f} {b:.1f}")
        pen = "L"
    label = 'x="0" font-size="12" fill="currentColor" opacity="0.7"'
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{about}">'
        f'<path d="{"".join(path)}" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round"/>'
        f'<text {label} y="12">{high:.4g}</text><text {label} y="{HEIGHT - 5}">{low:.4g}</text></svg>'
    )


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points, or of many the least and the largest of each stretch of the curve."""
    step = len(y) // WIDTH
    if step < 4:
        return x, y
    count = len(y) // step * step
    parts = y[:count].reshape(-1, step)
    ends = np.stack([np.fmin.reduce(parts, axis=1), np.fmax.reduce(parts, axis=1)], axis=1)
    return np.repeat(x[:count:step], 2), ends.reshape(-1)
