"""Tensors as text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

import numpy as np

from ..shapes import show
from .notebook_drawings import drawn_as_html

SHOWN: Final = 1000
"""From this number of elements, those in the middle are left out."""
LINES: Final = 12
"""How many lines a text has at most, but for one in place of those in the middle."""
ROWS: Final = 12
COLUMNS: Final = 10
"""How many rows and columns a table in a notebook has at most."""


def text(elements: np.ndarray | None, shape: Sequence[Any], dtype: Any, device: str) -> str:
    """tensor([1.5, 2.0], shape=(2,), dtype=float32, device=numpy); `…` in place of elements that are not known."""
    shown = "…" if elements is None else _array(elements, "tensor(")
    return f"tensor({shown}, shape={show(shape)}, dtype={dtype}, device={device})"


def _array(elements: np.ndarray, prefix: str = "") -> str:
    shown = np.array2string(elements, precision=4, separator=", ", prefix=prefix, threshold=SHOWN, max_line_width=100)
    lines = shown.split("\n")
    if len(lines) <= LINES:
        return shown
    return "\n".join([*lines[: LINES // 2], f"{' ' * len(prefix)} …", *lines[-(LINES // 2) :]])


def html(elements: np.ndarray | None, shape: Sequence[Any], dtype: Any, device: str) -> str:
    """A line about the tensor, a drawing if it is a picture or a curve, and a table of its elements if it has one or two axes."""
    about = f"<div><b>tensor</b> {escape(show(shape))} {escape(str(dtype))} on {escape(device)}</div>"
    if elements is None:
        return about
    about += drawn_as_html(elements)
    if elements.ndim not in (1, 2) or not elements.size:
        return f"{about}<pre>{escape(_array(elements))}</pre>"
    matrix = elements.reshape(-1, elements.shape[-1])
    lines = "".join(
        f"<tr>{''.join(f'<td>{_cell(matrix, i, j)}</td>' for j in _ends(matrix.shape[1], COLUMNS))}</tr>"
        for i in _ends(matrix.shape[0], ROWS)
    )
    return f"{about}<table>{lines}</table>"


def _ends(count: int, most: int) -> list[int | None]:
    """The indices that are shown; None stands for those that are left out."""
    if count <= most:
        return list(range(count))
    return [*range(most // 2), None, *range(count - most // 2, count)]


def _cell(matrix: np.ndarray, i: int | None, j: int | None) -> str:
    if i is None or j is None:
        return "…"
    value = matrix[i, j]
    return escape(f"{value:.4g}" if matrix.dtype.kind == "f" else str(value))
