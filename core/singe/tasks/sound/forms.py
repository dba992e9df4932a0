"""How models take samples: as they are, or as what is computed of them. A row says how such a model is recognised, and makes its input of
rows of samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from ...dtypes import int64
from ...errors import InputError
from ...late_dataclass import dataclass
from ...model.arguments import TensorSpec
from ...shapes import Dim, Size
from ...speech.hearing import micro_frontend, speech_embedding, voice_encoder
from ...speech.hearing.mel import fbank, mel_power
from ...tensors.functions.creation import arange, tensor, where
from ...tensors.tensor import Tensor
from .spec import SoundInput


@dataclass(frozen=True)
class SoundFrame:
    """What heads get beside a model's outputs. spectrum: of the log-power form, the transforms (rows, bins, 2) of the samples; memory: what the row before left
    of the form; keep: the output of what is remembered, if anything is: of the model's own outputs, and of what a head adds."""

    keep: Callable[[Mapping[str, Tensor], Sequence[Tensor]], dict[str, Tensor]]
    spectrum: Tensor | None = None
    memory: Tensor | None = None


@dataclass(frozen=True)
class Rows:
    """What a form makes a model's input of. samples: (rows, width); shape: of the input; lengths: (rows,), how many are of the sound, if the model
    takes that; memory: the numbers that the form remembers; beside: the networks in files beside the model, by the names of these."""

    samples: Tensor
    spec: SoundInput
    shape: Sequence[Dim]
    lengths: Tensor | None = None
    memory: Tensor | None = None
    beside: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict[str, Callable[[Tensor], Tensor]])


@dataclass(frozen=True)
class Heard:
    """A model's input. spectrum: for heads; kept: what the form remembers next, unless the head says it."""

    input: Tensor
    spectrum: Tensor | None = None
    kept: Sequence[Tensor] = ()


@dataclass(frozen=True)
class SoundForm:
    """A row of FORMS. recognise: of a model's input, of its others, and of the facts that the caller gives (`preparation`): its facts and the
    sizes that its open ones become, or None; input: the model's input of rows. memory: how many numbers are remembered from row to row beside
    those of the model, of the shape of its input; alone: whether the model remembers nothing itself; networks: the names of files beside the
    model that `input` needs; options: those of the heads of such models, in place of what these suppose; open: the fields of the facts that models of it leave
    to the caller, as far as these facts are supposed."""

    name: str
    about: str
    recognise: Callable[
        [TensorSpec, Sequence[TensorSpec], Mapping[str, Any]], tuple[SoundInput, Mapping[str, int]] | None
    ]
    input: Callable[[Rows], Heard]
    memory: Callable[[SoundInput, Sequence[Dim]], int] = lambda spec, shape: 0
    alone: bool = False
    networks: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    open: Callable[[SoundInput], Sequence[str]] = lambda spec: ()


_CONTEXTS: Final = {576: 64, 288: 32}
"""Silero's rows ↦ how many of their samples are of the row before."""
_LAYERS: Final = 2
"""Silero's models with such rows remember the state and the cell of an LSTM: in one input of two, or in two of one."""
_OPEN_WIDTHS: Final = {128: 576, 64: 512}
"""The last size of a state ↦ the samples in a row of Silero's models that leave them open."""


def _frames(
    x: TensorSpec, others: Sequence[TensorSpec], preparation: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = x.shape or ()
    if len(shape) != 2 or not x.dtype.is_float:
        return None
    states = [o.shape or () for o in others if o.dtype is not int64]
    width = (
        shape[1]
        if isinstance(shape[1], int)
        else next((_OPEN_WIDTHS.get(int(d)) for s in states for d in s[2:] if isinstance(d, int)), None)
    )
    if width is None:
        return None
    before = preparation.get("before", _CONTEXTS.get(width, 0))
    if (
        before
        and "before" not in preparation
        and sum(d for s in states for d in s[:1] if isinstance(d, int)) != _LAYERS
    ):
        raise InputError(
            f"task: the model takes rows of {width} samples, as Silero's do, but remembers other things, and does not say how many of them are of "
            "the row before: give it as before, such as 64"
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
    x: TensorSpec, others: Sequence[TensorSpec], preparation: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = tuple(x.shape or ())
    known = SPECTRA.get(shape[2]) if len(shape) == 3 and isinstance(shape[2], int) else None
    if known is None or others or not isinstance(shape[1], Size):
        return None
    sizes = {str(shape[0]): 1} if isinstance(shape[0], Size) else {}
    return SoundInput("log power", known.rate, known.step, 0, known.length - known.step), sizes


def spectra_of(spec: SoundInput) -> Spectra:
    return next(x for x in SPECTRA.values() if x.rate == spec.rate)


def _log_power(rows: Rows) -> Heard:
    """The decimal logarithm of the power of each frequency, (1, rows, bins), and the transforms (rows, bins, 2)."""
    known = spectra_of(rows.spec)
    weighed = rows.samples * tensor(known.weigh)
    if known.size > known.length:
        weighed = weighed.pad(((0, 0), (0, known.size - known.length)))
    spectrum = weighed.unsqueeze(2).dft(axis=1, onesided=True)
    power = spectrum.square().sum(2)
    return Heard((power.maximum(1e-12).log() * float(1 / np.log(10))).unsqueeze(0), spectrum)


_OVERLAP: Final = 30 * 256
"""Samples that two windows of basic-pitch share: 30 of its frames."""


def _windows(
    x: TensorSpec, others: Sequence[TensorSpec], preparation: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = x.shape or ()
    if len(shape) != 3 or shape[2] != 1 or not isinstance(shape[1], int) or shape[1] <= 2 * _OVERLAP or others:
        return None
    half = _OVERLAP // 2
    rows = 0 if isinstance(shape[0], Size) else 1
    return SoundInput("windows", 22050, shape[1] - _OVERLAP, half, half, rows), {}


_FEATURE_SPAN: Final = 26.0
"""The features of the micro frontend that 8 bits tell apart are from 0 to this."""


def _micro(
    x: TensorSpec, others: Sequence[TensorSpec], preparation: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = x.shape or ()
    if len(shape) != 3 or shape[0] != 1 or shape[2] != micro_frontend.BANDS or others or not isinstance(shape[1], int):
        return None
    after = micro_frontend.LENGTH - micro_frontend.STEP
    return SoundInput("micro features", micro_frontend.RATE, shape[1] * micro_frontend.STEP, 0, after, 1), {}


def _micro_features(rows: Rows) -> Heard:
    """As integers of 8 bits, for which the models are made."""
    assert rows.memory is not None
    frames = rows.spec.step // micro_frontend.STEP
    noise = rows.memory.reshape(2, micro_frontend.BANDS)
    features, kept = micro_frontend.micro_features(rows.samples[0], frames, noise)
    whole = (features / float(np.float32(_FEATURE_SPAN / 255)) - 128.0).round().clip(-128.0, 127.0)
    return Heard(whole.unsqueeze(0), kept=[kept])


BAND_NETWORK: Final = "melspectrogram.onnx"
EMBEDDING_NETWORK: Final = "embedding_model.onnx"
"""What openWakeWord calls the networks that all its models share."""


def _vectors(
    x: TensorSpec, others: Sequence[TensorSpec], preparation: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = tuple(x.shape or ())
    if (
        len(shape) != 3
        or shape[2] != speech_embedding.WIDTH
        or others
        or not x.dtype.is_float
        or not isinstance(shape[1], int)
        or not 0 < shape[1] <= speech_embedding.MAX_VECTORS
    ):
        return None
    sizes = {str(shape[0]): 1} if isinstance(shape[0], Size) else {}
    return SoundInput(
        "speech vectors", speech_embedding.RATE, speech_embedding.STEP, speech_embedding.BEFORE, 0, 1
    ), sizes


def _speech_vectors(rows: Rows) -> Heard:
    assert rows.memory is not None
    networks = (rows.beside[name] for name in (BAND_NETWORK, EMBEDDING_NETWORK))
    made, kept = speech_embedding.embeddings(rows.samples[0], rows.memory, int(rows.shape[1]), *networks)  # pyright: ignore[reportArgumentType]
    return Heard(made, kept=[kept])


_VOICE_STEP: Final = 77 * voice_encoder.STEP
"""Resemblyzer takes 1.3 windows a second."""


def _voice(
    x: TensorSpec, others: Sequence[TensorSpec], preparation: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = tuple(x.shape or ())
    if shape[1:] != (voice_encoder.FRAMES, voice_encoder.BANDS) or others or not x.dtype.is_float:
        return None
    margin = voice_encoder.LENGTH // 2
    after = voice_encoder.FRAMES * voice_encoder.STEP - _VOICE_STEP + margin
    rows = 0 if isinstance(shape[0], Size) else 1
    return SoundInput("voice bands", voice_encoder.RATE, _VOICE_STEP, margin, after, rows, level=30.0), {}


def _voice_bands(rows: Rows) -> Heard:
    bands = mel_power(rows.samples, rows.spec.rate, voice_encoder.LENGTH, voice_encoder.STEP, voice_encoder.BANDS)
    return Heard(bands[:, : voice_encoder.FRAMES])


_AUDIO_RATE: Final = 16_000
_AUDIO_FRAME, _AUDIO_STEP = 400, 160
AUDIO_CENTER, AUDIO_SPREAD = -4.2677393, 2 * 4.5689974
"""Of the logarithms in bands, over AudioSet: what spectrogram transformers subtract and divide by, where no file says it."""


def _log_bands(
    x: TensorSpec, others: Sequence[TensorSpec], preparation: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = x.shape or ()
    if len(shape) != 3 or others or not x.dtype.is_float or not all(isinstance(d, int) for d in shape[1:]):
        return None
    frames, bands = (int(d) for d in shape[1:])  # pyright: ignore[reportArgumentType]
    if frames < 100 or not 16 <= bands <= 256:
        return None
    sizes = {str(shape[0]): 1} if isinstance(shape[0], Size) else {}
    after = _AUDIO_FRAME - _AUDIO_STEP
    spec = SoundInput(
        "log bands",
        _AUDIO_RATE,
        frames * _AUDIO_STEP,
        0,
        after,
        1,
        lengths=True,
        center=AUDIO_CENTER,
        spread=AUDIO_SPREAD,
    )
    return spec, sizes


def _of_log_bands(rows: Rows) -> Heard:
    """Kaldi's bands, and zeros where the sound has ended."""
    assert rows.lengths is not None
    frames, bands = (int(d) for d in rows.shape[1:])  # pyright: ignore[reportArgumentType]
    logs = fbank(rows.samples, rows.spec.rate, bands, "hanning")
    complete = ((rows.lengths - float(_AUDIO_FRAME - _AUDIO_STEP)) / float(_AUDIO_STEP)).floor()
    inside = arange(frames, dtype="float32").reshape(1, -1, 1) < complete.reshape(-1, 1, 1)
    return Heard((where(inside, logs, 0.0) - rows.spec.center) / rows.spec.spread)


_MIN_WAVE_SAMPLES: Final = 4000
"""Shorter rows, such as those of Silero, are of models that remember, or of other numbers than samples."""


def _waves(
    x: TensorSpec, others: Sequence[TensorSpec], preparation: Mapping[str, Any]
) -> tuple[SoundInput, Mapping[str, int]] | None:
    shape = tuple(x.shape or ())
    count = shape[-1] if shape else None
    if (
        len(shape) not in (1, 2)
        or not isinstance(count, int)
        or count < _MIN_WAVE_SAMPLES
        or others
        or not x.dtype.is_float
    ):
        return None
    sizes = {str(shape[0]): 1} if isinstance(shape[0], Size) else {}
    return SoundInput("waves", 16000, count, rows=1), sizes


FORMS: Final[Mapping[str, SoundForm]] = {
    form.name: form
    for form in (
        SoundForm(
            "frames", "samples (rows, count)", _frames, lambda rows: Heard(rows.samples),
            open=lambda spec: ("before",) if spec.width in _CONTEXTS else ("before", "rate"),
        ),
        SoundForm(
            "log power", f"the logarithm of power, (1, rows, {' or '.join(map(str, SPECTRA))})", _bins, _log_power,
            lambda spec, shape: spectra_of(spec).length - spec.step,
        ),
        SoundForm("windows", "long windows of samples, (rows, count, 1)", _windows, lambda rows: Heard(rows.samples.unsqueeze(2))),
        SoundForm(
            "micro features", f"features of the micro frontend, (1, frames, {micro_frontend.BANDS}), of 8 bits", _micro, _micro_features,
            lambda spec, shape: 2 * micro_frontend.BANDS,
        ),
        SoundForm(
            "speech vectors", f"vectors of openWakeWord, (1, count, {speech_embedding.WIDTH})", _vectors, _speech_vectors,
            lambda spec, shape: speech_embedding.memory_of(int(shape[1])), alone=True,  # pyright: ignore[reportArgumentType]
            networks=(BAND_NETWORK, EMBEDDING_NETWORK), options={"threshold": 0.5, "mean_of": 1},
        ),
        SoundForm(
            "voice bands", f"power in bands of a voice, (rows, {voice_encoder.FRAMES}, {voice_encoder.BANDS})", _voice, _voice_bands, alone=True
        ),
        SoundForm(
            "log bands", "the logarithms of power in bands, (1, frames, bands)", _log_bands, _of_log_bands, alone=True,
            open=lambda spec: ("center", "spread"),
        ),
        SoundForm(
            "waves", "long rows of samples, (rows, count) or (count,)", _waves, lambda rows: Heard(rows.samples.reshape(*rows.shape)),
            alone=True, open=lambda spec: ("rate",),
        ),
    )
}  # fmt: skip
"""A kind of task says which forms it has."""
