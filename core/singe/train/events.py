"""The events of a Learner while it trains: small frozen values, with each of which its listeners are called.

One fit is: RunBegan; for each epoch EpochBegan, the BatchEnded of "train" (before some of them LayersObserved), then those of "valid", EpochEnded, and
CheckpointSaved whenever one is written; at the end Stopped, whatever the reason. A Note may come at any time. RunBegan comes
again when all workers of a cluster were lost and training goes on from a checkpoint. Epochs, batches and steps count from 1;
steps are counted through all epochs.

A listener is called in the thread that trains, so it must return at once: what takes time is done in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from ..tensors.layer_statistics import LayerStatistics

Phase: TypeAlias = Literal["train", "valid"]
PHASES: Final[tuple[Phase, ...]] = ("train", "valid")
Reason: TypeAlias = Literal["finished", "patience", "asked", "interrupted", "terminated", "nonfinite", "failed"]
"""All epochs are done; a metric has not improved for too long; `Learner.stop()`; Ctrl-C; SIGTERM; a number that is not finite; an
exception."""
ENDS: Final[Mapping[str, str]] = {
    "finished": "finished",
    "patience": "stopped early",
    "asked": "stopped when asked",
    "interrupted": "interrupted",
    "terminated": "ended by SIGTERM",
    "nonfinite": "stopped at a number that is not finite",
    "failed": "failed",
    "running": "running, or killed",
}
"""Reasons, and what a run's folder says before there is one, in words."""


@dataclass(frozen=True, slots=True)
class RunBegan:
    """Training begins, or goes on from a checkpoint if `epoch` is above 1 or `batch` above 0."""

    run: str
    """The run's name."""
    epochs: int
    """The last epoch, if nothing stops the run before it."""
    batches: Mapping[Phase, int | None]
    """Batches in an epoch; None where the loader does not know it; no "valid" where nothing is validated."""
    device: str
    """The device in words: "wasm (wasmtime 50.0.1)"."""
    epoch: int = 1
    """The first epoch that is trained."""
    batch: int = 0
    """How many batches of that epoch are done already."""
    step: int = 0
    """Batches trained on before."""
    folder: str | None = None
    """The run's folder."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """What the run was started with, by name: the optimiser, its rate, the seed, the size of a batch."""
    best: tuple[str, Literal["least", "most"]] = ("loss", "least")
    """The metric by which the best epoch is chosen, and whether its least or its most is the best."""
    modes: Mapping[str, Literal["least", "most"] | None] = field(default_factory=dict)
    """The same of other metrics; one that is not named is judged by its name."""


@dataclass(frozen=True, slots=True)
class EpochBegan:
    """An epoch begins."""

    epoch: int


@dataclass(frozen=True, slots=True)
class BatchEnded:
    """A batch has been trained on or validated."""

    epoch: int
    phase: Phase
    batch: int
    values: Mapping[str, float]
    """The loss and the metrics of this batch; without those that were not read from the device."""
    seconds: float
    """Since the batch before it in this phase, waiting for data included."""
    items: int = 0
    """Samples in the batch."""
    memory: int | None = None
    """Bytes in use on the device, where that is known."""
    step: int = 0
    """Batches trained on since training began."""


@dataclass(frozen=True, slots=True)
class LayersObserved:
    """The parameters before a step, and their gradients in it, before they are clipped; with `statistics` of a Learner."""

    epoch: int
    step: int
    """The step that comes now."""
    weights: LayerStatistics
    gradients: LayerStatistics


@dataclass(frozen=True, slots=True)
class EpochEnded:
    """An epoch is trained and validated; `values` are those over all of its batches."""

    epoch: int
    values: Mapping[Phase, Mapping[str, float]]
    seconds: float
    items: int = 0
    """Samples trained on."""
    best: bool = False
    """Whether this epoch is the best so far."""
    step: int = 0
    """Batches trained on since training began."""


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    """A checkpoint is on disk, whole."""

    epoch: int
    path: str
    best: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a person should read: a checkpoint that could not be written because the disk is full, one that is damaged
    and was passed over. Training goes on."""

    text: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The last event of a run."""

    reason: Reason
    epoch: int
    """The last epoch that was begun."""
    seconds: float
    message: str = ""
    """More about the reason, in one line: "no better valid loss for 5 epochs", or the text of the exception."""


Event: TypeAlias = RunBegan | EpochBegan | BatchEnded | LayersObserved | EpochEnded | CheckpointSaved | Note | Stopped


class Listener(Protocol):
    """A function, or an object that can be called, which gets each event of a run when it happens, as a hook of a Learner does."""

    def __call__(self, event: Event, /) -> None: ...
