"""Matrices of floats rounded to few bits, in blocks of inputs: (q − zero) · scale. The names are those of GGUF's types, whose values these
are, but for int4, which has blocks of up to 128 inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from ..dtypes import float32
from ..errors import InputError
from ..late_dataclass import dataclass
from ..ops.products.blocks import packed
from .stored import PackedMatrix, StoredArray

_OF_PLACES: Final = (".positions.weight", ".distances.weight")
_OF_TABLES: Final = "q8_0"
_AT_ONCE: Final = 1 << 20
"""Elements that are rounded at once."""
_SCALES_TOGETHER: Final = 8
"""Blocks of q4_k whose scales and least values are integers of 6 bits, times a number for all of them."""
_TOP: Final = np.float32(63)
_STEPS: Final = np.linspace(13.5, 17, 8, dtype=np.float32)
"""Into how many steps q4_k tries to cut a block; there are 15, and what is beyond them becomes the last one."""
_ENDS: Final = np.linspace(6.5, 9.5, 7, dtype=np.float32)
"""What int4 tries to make of the number that is farthest from 0; 8 is the most."""
Rounded: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray | float]


def _half(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


def _inverse(scale: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(scale == 0, np.float32(0), np.float32(1) / scale)


def _q4_0(x: np.ndarray) -> Rounded:
    """The number that is farthest from 0 becomes −8."""
    scale = np.take_along_axis(x, np.abs(x).argmax(-1, keepdims=True), -1) / np.float32(-8)
    return np.clip(np.floor(x * _inverse(scale) + np.float32(8.5)), 0, 15), _half(scale), 8.0


def _q4_1(x: np.ndarray) -> Rounded:
    """The least number becomes 0, the largest 15."""
    least = x.min(-1, keepdims=True)
    scale = (x.max(-1, keepdims=True) - least) / np.float32(15)
    q = np.clip(np.floor((x - least) * _inverse(scale) + np.float32(0.5)), 0, 15)
    kept = _half(scale)
    flat = kept == 0  # all weights of such a block are the least
    kept = np.where(flat, np.float32(1), kept)
    return np.where(flat, 0, q), kept, -_half(least) / kept


def _q8_0(x: np.ndarray) -> Rounded:
    scale = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    steps = x * _inverse(scale)
    return np.copysign(np.floor(np.abs(steps) + np.float32(0.5)), steps) + 128, _half(scale), 128.0


def _importance(x: np.ndarray) -> np.ndarray:
    """How much an error of each weight counts: large ones more."""
    return np.abs(x) + np.sqrt((x * x).mean(-1, keepdims=True))


def _least_error(tried: Iterable[tuple[np.ndarray, np.ndarray]], x: np.ndarray, worth: np.ndarray) -> np.ndarray:
    """Of some (numbers that stand for x, what is kept of it), for each block that with the least error."""
    best, kept = np.full((*x.shape[:-1], 1), np.inf, np.float32), np.zeros(())
    for made, facts in tried:
        error = (worth * (made - x) ** 2).sum(-1, keepdims=True)
        kept = np.where(error < best, facts, kept)
        best = np.minimum(best, error)
    return kept


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a * _inverse(b)


def _int4(x: np.ndarray) -> Rounded:
    """The scale with the least error, of several."""
    worth = _importance(x)
    far = np.take_along_axis(x, np.abs(x).argmax(-1, keepdims=True), -1)

    def tried(end: np.float32) -> tuple[np.ndarray, np.ndarray]:
        q = np.clip(np.rint(x * _inverse(far / -end)), -8, 7)
        scale = _half(_quotient((worth * x * q).sum(-1, keepdims=True), (worth * q * q).sum(-1, keepdims=True)))
        return q * scale, scale

    scale = _least_error(map(tried, _ENDS), x, worth)
    return np.clip(np.rint(x * _inverse(scale)), -8, 7) + 8, scale, 8.0


def _q4_k(x: np.ndarray) -> Rounded:
    """The scale and the least value of a block with the least error, of several; then these are rounded, and the numbers chosen anew."""
    worth = _importance(x)
    low = np.minimum(x.min(-1, keepdims=True), 0)
    wide = np.maximum(x.max(-1, keepdims=True), 0) - low
    total, of_x = worth.sum(-1, keepdims=True), (worth * x).sum(-1, keepdims=True)

    def tried(steps: np.float32) -> tuple[np.ndarray, np.ndarray]:
        """The line through the numbers with the least error, which does not rise above 0 at the first of them."""
        q = np.clip(np.rint((x - low) * _inverse(wide / steps)), 0, 15)
        of_q, of_qq = (worth * q).sum(-1, keepdims=True), (worth * q * q).sum(-1, keepdims=True)
        of_qx = (worth * q * x).sum(-1, keepdims=True)
        scale = _quotient(total * of_qx - of_q * of_x, total * of_qq - of_q * of_q)
        least = _quotient(of_q * scale - of_x, total)
        scale = np.maximum(np.where(least < 0, _quotient(of_qx, of_qq), scale), 0)
        least = np.maximum(least, 0)
        return q * scale - least, np.concatenate([scale, least], -1)

    kept = _in_six_bits(_least_error(map(tried, _STEPS), x, worth))
    scale, least = kept[..., :1], kept[..., 1:]
    q = np.clip(np.rint((x + least) * _inverse(scale)), 0, 15)
    flat = scale == 0  # all weights of such a block are −least
    scale = np.where(flat, np.float32(1), scale)
    return np.where(flat, 0, q), scale, least / scale


def _in_six_bits(x: np.ndarray) -> np.ndarray:
    """Numbers (…, blocks, 2) as integers of 6 bits, times the largest of a few blocks by the largest integer, in 16 bits."""
    count = x.shape[-2]
    padded = np.zeros((*x.shape[:-2], -(-count // _SCALES_TOGETHER), _SCALES_TOGETHER, 2), np.float32)
    flat = padded.reshape(*x.shape[:-2], -1, 2)
    flat[..., :count, :] = x
    each = _half(padded.max(-2, keepdims=True) / _TOP)
    whole = np.clip(np.rint(padded * _inverse(each)), 0, _TOP) * each
    return whole.reshape(flat.shape)[..., :count, :]


@dataclass(frozen=True)
class RoundingForm:
    """blocks: how many inputs may have a scale together, the most first. rule: for blocks (…, blocks, inputs) the numbers, and of each block
    the scale and the zero."""

    bits: int
    blocks: tuple[int, ...]
    rule: Callable[[np.ndarray], Rounded]

    def block(self, depth: int) -> int | None:
        """How many of so many inputs a block has; None if they are no multiple of one."""
        return next((b for b in self.blocks if depth % b == 0), None)


FORMS: Final[Mapping[str, RoundingForm]] = {
    "q4_0": RoundingForm(4, (32,), _q4_0),
    "q4_1": RoundingForm(4, (32,), _q4_1),
    "q4_k": RoundingForm(4, (32,), _q4_k),
    "q8_0": RoundingForm(8, (32,), _q8_0),
    "int4": RoundingForm(4, (128, 64, 32), _int4),
}


def rounded(array: StoredArray, name: str) -> StoredArray:
    """The matrix (outputs, inputs) in a form; as it is, if it is of few bits already, or its inputs are no multiple of a block."""
    form = FORMS[name]
    block = form.block(array.shape[1]) if len(array.shape) == 2 else None
    if array.packed is not None or block is None or not array.dtype.is_float:
        return array
    bits, rule = form.bits, form.rule

    def packed_() -> PackedMatrix:
        n, depth = array.shape
        whole = np.asarray(array.read())
        made: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []
        zero: np.ndarray | float = 0.0
        for first in range(0, n, max(1, _AT_ONCE // depth)):
            some = whole[first : first + max(1, _AT_ONCE // depth)].astype(np.float32)
            q, scale, zero = rule(some.reshape(len(some), -1, block))
            words = packed(q.reshape(len(some), depth).astype(np.uint8).T, bits)
            made.append((words, scale[..., 0].T, zero[..., 0].T if isinstance(zero, np.ndarray) else None))
        words, scale = (np.concatenate(parts, axis=1) for parts in ([m[0] for m in made], [m[1] for m in made]))
        every = [z for _, _, z in made if z is not None]
        middle = np.concatenate(every, axis=1, dtype=np.float32) if every else np.asarray(zero, np.float32)
        return PackedMatrix(words, np.ascontiguousarray(scale, np.float32), middle, bits, block)

    def read() -> np.ndarray:
        n, depth = array.shape
        q, scale, zero = rule(np.asarray(array.read(), np.float32).reshape(n, -1, block))
        return ((q - zero) * scale).astype(np.float32).reshape(n, depth)

    return replace(array, dtype=float32, stored=name, read=read, packed=packed_)


def with_rounded(
    stored: Mapping[str, StoredArray], form: str | None, table: str, name: str
) -> Mapping[str, StoredArray]:  # fmt: skip
    """The tensors of a network with its matrices in a form, but for tables of positions; None: as they are. table: the name of that of tokens,
    which has 8 bits at least; name: of the network, for errors."""
    if form is None:
        return stored
    if form not in FORMS:
        raise InputError(f"{name}: weights {form!r:.40}, expected one of {', '.join(FORMS)}")
    return {
        key: array if key.endswith(_OF_PLACES) else rounded(array, _OF_TABLES if key == table else form)
        for key, array in stored.items()
    }
