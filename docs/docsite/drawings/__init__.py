"""The drawings of the book, made from real models by the code itself, as SVG in the colours of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from . import graphs, kernels, programs

DRAWINGS: Final[dict[str, Callable[[], str]]] = {
    "word": graphs.word,
    "traced": graphs.traced,
    "gradient": graphs.gradient,
    "fused": graphs.fused,
    "plan": programs.plan,
    "arrays": programs.arrays,
    "words": programs.words,
    "held": programs.held,
    "bundle": programs.bundle,
    "registers": kernels.registers,
    "workgroups": kernels.workgroups,
}
"""A drawing's name in a page ↦ what makes it."""
