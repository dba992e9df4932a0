"""How models take samples: as they are, as the logarithm of a spectrum, or as long windows. A row says how such a model is recognised, and
makes its input of rows of samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import int64
from ...errors import InputError
from ...late_dataclass import dataclass
from ...model.arguments import TensorSpec
from ...shapes import Size
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor
from .spec import SoundInput


@dataclass(frozen=True)
class SoundFrame:
    """What heads are told. spectrum: of the log-power form, the transforms (rows, bins, 2) of the samples; tail: what the row before left
    to be added to this one; keep: the output of what is remembered, if anything is: of the model's own outputs, and of what a head adds."""

    keep: Callable[[Mapping[str, Tensor], Sequence[Tensor]], dict[str, Tensor]]
    spectrum: Tensor | None = None
    tail: Tensor | None = None


@dataclass(frozen=True)
class SoundForm:
    """A row of FORMS. recognise: of a model's input, of its others, and of the facts that the caller gives: its facts and the sizes that its
    open ones become, or None; input: the model's input of
    rows (rows, width), and what it is told. tail: how many samples of a row's output are remembered for the next."""

    name: str
    about: str
    recognise: Callable[
        [TensorSpec, Sequence[TensorSpec], Mapping[str, Any]], tuple[SoundInput, Mapping[str, int]] | None
    ]
    input: Callable[[Tensor, SoundInput], tuple[Tensor, Tensor | None]]
    tail: Callable[[SoundInput], int] = lambda spec: 0


_CONTEXTS: Final = {576: 64, 288: 32}
"""Silero's rows ↦ how many of their samples are of the row before."""
_LAYERS: Final = 2
"""Silero's models with such rows remember the state and the cell of an LSTM: in one input of two, or in two of one."""
_OPEN_WIDTHS: Final = {128: 576, 64: 512}
"""The last size of a state ↦ the samples in a row of Silero's models that leave them open."""


def _frames(
    x: TensorSpec, others: Sequence[TensorSpec], given: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = x.shape or ()
    if len(shape) != 2:
        return None
    states = [o.shape or () for o in others if o.dtype is not int64]
    width = (
        shape[1]
        if isinstance(shape[1], int)
        else next((_OPEN_WIDTHS.get(int(d)) for s in states for d in s[2:] if isinstance(d, int)), None)
    )
    if width is None:
        return None
    before = given.get("before", _CONTEXTS.get(width, 0))
    if before and "before" not in given and sum(d for s in states for d in s[:1] if isinstance(d, int)) != _LAYERS:
        raise InputError(
            f"task: the model takes rows of {width} samples, as Silero's do, but remembers other things, and does not say how many of them are of "
            "the row before: give before=, such as 64"
        )
    is_sequence = isinstance(shape[0], Size) and not any(isinstance(d, Size) for s in states for d in s)
    sizes = {str(d): 1 for o in (x, *others) for d in o.shape or () if isinstance(d, Size)}
    sizes |= {str(shape[1]): width} if isinstance(shape[1], Size) else {}
    if is_sequence:
        sizes.pop(str(shape[0]))
    rate = 8000 if width == 288 else 16000
    return SoundInput("frames", rate, width - before, before, 0, 0 if is_sequence else 1), sizes


@dataclass(frozen=True)
class Spectra:
    """Of models that say how loud each frequency shall be: rate, the numbers of a window and of its transform, and the step between windows;
    weigh and join: what its samples are multiplied with before and after. floor: the least that a frequency is multiplied with."""

    rate: int
    length: int
    size: int
    step: int
    weigh: np.ndarray
    join: np.ndarray
    floor: float


def _spectra(rate: int, size: int, step: int, floor: float, window: np.ndarray) -> Spectra:
    root = np.sqrt(window)
    if not floor:  # the sum of squares of all windows over a sample is 1
        total = sum(
            np.pad(root[k * step : (k + 1) * step] ** 2, (0, max(0, (k + 1) * step - len(root)))) for k in range(2)
        )
        join = root / np.concatenate([total, total])[: len(root)]
    else:
        join = root
    return Spectra(rate, len(window), size, step, root.astype(np.float32), join.astype(np.float32), floor)


SPECTRA: Final[Mapping[int, Spectra]] = {
    161: _spectra(16000, 320, 160, 1e-4, np.hanning(320)),
    513: _spectra(48000, 1024, 512, 0.0, np.hanning(961)[:-1]),
}
"""How many frequencies a model takes ↦ what they are of: the two of NSNet2."""


def _bins(
    x: TensorSpec, others: Sequence[TensorSpec], given: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = tuple(x.shape or ())
    known = SPECTRA.get(shape[2]) if len(shape) == 3 and isinstance(shape[2], int) else None
    if known is None or others or not isinstance(shape[1], Size):
        return None
    sizes = {str(shape[0]): 1} if isinstance(shape[0], Size) else {}
    return SoundInput("log power", known.rate, known.step, 0, known.length - known.step), sizes


def spectra_of(spec: SoundInput) -> Spectra:
    return next(x for x in SPECTRA.values() if x.rate == spec.rate)


def _log_power(rows: Tensor, spec: SoundInput) -> tuple[Tensor, Tensor | None]:
    """The decimal logarithm of the power of each frequency, (1, rows, bins), and the transforms (rows, bins, 2)."""
    known = spectra_of(spec)
    weighed = rows * tensor(known.weigh)
    if known.size > known.length:
        weighed = weighed.pad(((0, 0), (0, known.size - known.length)))
    spectrum = weighed.unsqueeze(2).dft(axis=1, onesided=True)
    power = spectrum.square().sum(2)
    return (power.maximum(1e-12).log() * float(1 / np.log(10))).unsqueeze(0), spectrum


_OVERLAP: Final = 30 * 256
"""Samples that two windows of basic-pitch share: 30 of its frames."""


def _windows(
    x: TensorSpec, others: Sequence[TensorSpec], given: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = x.shape or ()
    if len(shape) != 3 or shape[2] != 1 or not isinstance(shape[1], int) or shape[1] <= 2 * _OVERLAP or others:
        return None
    half = _OVERLAP // 2
    rows = 0 if isinstance(shape[0], Size) else 1
    return SoundInput("windows", 22050, shape[1] - _OVERLAP, half, half, rows), {}


FORMS: Final[Mapping[str, SoundForm]] = {
    form.name: form
    for form in (
        SoundForm("frames", "samples (rows, count)", _frames, lambda rows, spec: (rows, None)),
        SoundForm(
            "log power", f"the logarithm of power, (1, rows, {' or '.join(map(str, SPECTRA))})", _bins, _log_power,
            lambda spec: spectra_of(spec).length - spec.step,
        ),
        SoundForm("windows", "long windows of samples, (rows, count, 1)", _windows, lambda rows, spec: (rows.unsqueeze(2), None)),
    )
}  # fmt: skip
"""A kind of task says in its preparation which form it has."""
