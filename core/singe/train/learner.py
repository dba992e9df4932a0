"""Learner: trains a model with an optimiser, a loss and data, and keeps what is worth keeping.

What happens goes to listeners as events (events.py): the dashboard, the logs in the run's folder, and `hooks`. The same
pieces serve in a loop of one's own: TrainStep, the tallies of metrics, the Loader.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..ending import OrderlyEnd
from ..errors import DeviceLost, InputError, NonFinite
from ..files import clear_parts
from ..metrics import LearningRate, Metric
from ..nn import Module
from ..optim import ReduceLROnPlateau
from ..runtime.decorators import Fusion, Router
from ..runtime.device import Device
from ..runtime.devices import in_words, separate
from ..runtime.random_keys import KEY, new_seed
from .best_value import EarlyStopping
from .config import plain
from .events import (
    BatchEnded,
    CheckpointSaved,
    EpochBegan,
    EpochEnded,
    Event,
    LayersObserved,
    Listener,
    Note,
    Phase,
    Reason,
    RunBegan,
    Stopped,
)
from .fit_arguments import check_asked, check_data, check_statistics, length, position
from .interrupts import interruptible
from .metric_totals import LOSS, Tallies, checked_metrics, of_predictions
from .monitor.dashboard import Kind, dashboard, try_to_say
from .monitor.logs import Log, logs_of
from .monitor.summary import EpochLine, Summary, flat, not_finite
from .saving.checkpoints import Checkpoint, Checkpoints
from .saving.folder_lock import locked
from .saving.progress import Progress
from .saving.run_files import RunFiles
from .steps.batches import fields_of, items_of
from .steps.fault import fault_text
from .steps.layer_figures import layer_figures
from .steps.nonfinite import Nonfinite, checked_kind
from .steps.objective import Evaluation, Loss, checked_model, objective
from .steps.optimizers import RATE_SCALE, averages_of, rate_of, within
from .steps.parallel import Workers, step_over
from .steps.several import beside_model, spread_over
from .steps.step import Precision, TrainStep
from .watched_values import WatchedValues

STEP: Final = "step/"
TALLIES: Final = "epoch/"
"""How the names of arrays in a checkpoint begin: those of TrainStep, and what the present epoch has counted."""
SKIPPED: Final = "skipped"
"""The value of an epoch that tells how many of its steps were skipped, where they may be."""


class Learner:
    """Trains a model with an optimiser, a loss and data, and keeps what is worth keeping.

        learner = sg.train.Learner(model, sg.optim.AdamW(1e-3), nn.CrossEntropyLoss(), [sg.metrics.Accuracy()], run="runs/first")
        summary = learner.fit(train, valid, epochs=10)
        model = learner.best

    loss: a Module, called as loss(model(*inputs), target), where the target is the last field of a batch; or a function
    loss(model, *batch) that returns a number, or (a number, dict). The numbers in the dict are shown, too; metrics take its
    "prediction", and its "target" where that is not the last field of the batch.

    run: a folder in which checkpoints, logs and the configuration are kept; nothing is written without one. checkpoints: when,
    and which stay. early_stopping: ends training when a value does not get better. clip: the largest norm of all gradients
    together. accumulate: how many batches make one update. averaged: validation, `evaluate`, `model` and `best` have the averages
    of the optimiser, an `sg.optim.Averaged`, in the place of the weights. precision: "float16" and "bfloat16" compute each step so, as
    TrainStep says; evaluation is in float32. nonfinite: what is done when the loss or the norm of the gradients of a step is NaN or infinite. "stop"
    ends training there, and says in which layer it began; so does a loss or a metric of an epoch that is not finite. "skip" leaves
    out that step, which changes no weight, and counts it among the values of the epoch ("skipped"); an epoch without another step
    ends training. "ignore" goes on. statistics: in the first step and after every so many, figures of each parameter and of its
    gradient go to hooks, as LayersObserved, and are written to the folder: a table, and histograms for TensorBoard; such a step
    takes twice as long. seed: of what is drawn at random, by default of the sequence that `sg.manual_seed` begins; the
    Loader has its own for the order of the data. hooks: functions that are called with every event. config: a dataclass (or a dict)
    that is written beside the weights. dashboard: "auto", "terminal", "plain", or None for silence.

    device: one, or a list of several, which share each batch (parallel.py says how); with sg.Router(…), a model whose parts are on
    several of its devices is trained there, as TrainStep says. workers: other machines that do so, each on
    a device of this name: `singe.cluster.RayWorkers(4)`. They start with the Learner, and end with `fit`; another `fit` starts others.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Any,
        loss: Loss,
        metrics: Sequence[Metric] = (),
        *,
        device: str | Device | Sequence[str | Device] = "auto",
        workers: Workers | None = None,
        run: str | Path | None = None,
        checkpoints: Checkpoints | None = None,
        early_stopping: EarlyStopping | None = None,
        clip: float | None = None,
        accumulate: int = 1,
        averaged: bool = False,
        seed: int | None = None,
        precision: Precision = "float32",
        nonfinite: Nonfinite = "stop",
        statistics: int | None = None,
        hooks: Sequence[Listener] = (),
        config: object = None,
        dashboard: Kind | None = "auto",
    ) -> None:
        if checkpoints is not None and run is None:
            raise InputError("Learner: checkpoints need a folder; give run=…")
        seed = new_seed() if seed is None else seed
        settings: dict[str, Any] = {"clip": clip, "accumulate": accumulate, "seed": seed, "precision": precision}
        steps: dict[str, Any] = {**settings, "nonfinite": checked_kind(nonfinite)}
        self.folder: Final = None if run is None else Path(run)
        self.metrics: Final = checked_metrics(metrics)
        self.checkpoints: Final = checkpoints or Checkpoints()
        self._objective = objective(loss, predictions=bool(of_predictions(self.metrics)))
        training = checked_model("Learner", model), optimizer, self._objective
        if averaged:
            averages_of(optimizer, model)
        self._spread: Final = spread_over(model, device)
        places = [device] if isinstance(device, (str, Device)) and not isinstance(device, Router) else [*device]
        if len(places) > 1 and workers is not None:
            raise InputError("Learner: got several devices and workers; give one device, on which each worker computes")
        if statistics is not None:
            check_statistics(statistics, len(places) > 1 or workers is not None or self._spread is not None)
        self._statistics: Final = statistics
        self.devices: Final = separate(places)
        self.device: Final = self.devices[0]
        self._step, self._remote = step_over(self._spread or self.devices, workers, *training, **steps)
        self._nonfinite: Final = nonfinite
        self._precision: Final = precision
        self._trains: Final = type(model).__name__
        self._rate = rate_of(optimizer, accumulate)
        self._averaged: Final = averaged
        self._scale = 1.0  # of the learning rate, by it
        if self._rate is None and any(isinstance(m, LearningRate) for m in self.metrics):
            raise InputError(
                f"metrics: LearningRate needs an optimiser of sg.optim, which tells its rate; got {optimizer!r:.60}"
            )
        self._tallies = Tallies(self.metrics)
        self._progress = Progress()
        self._watched: Final = WatchedValues(
            self.metrics, self.checkpoints, early_stopping, within(optimizer, ReduceLROnPlateau)
        )
        self._best_state: Mapping[str, np.ndarray] | None = None
        self._files: Final = RunFiles(self.folder, self.checkpoints.keep, config, lambda text: self._tell(Note(text)))
        self._settings = plain(config) if config is not None else {"optimizer": repr(optimizer), **settings}
        self._workers = workers
        self._hooks: Final = tuple(hooks)
        self._dashboard: Kind | None = dashboard
        self._listeners: list[Listener] = []
        self._asked: Reason | None = None
        self._order = self._new_order()

    def __repr__(self) -> str:
        kept = f"; folder: {self.folder}" if self.folder is not None else ""
        return f"<Learner of {self._trains} on {self.device.label}: epochs: {self.epoch}, steps: {self.step}{kept}>"

    # --- what callers use --------------------------------------------------------------------------------------------

    @property
    def model(self) -> Module:
        """The model with its present weights, or with averaged=True their averages, in inference mode, on the device of the model
        that was given."""
        return self._step.averaged() if self._averaged else self._step.model

    @property
    def best(self) -> Module:
        """The model with the weights of the best epoch; with its present ones if no epoch has ended."""
        if self._best_state is None and self._watched.best.epoch:  # of a run that was resumed
            self._best_state = self._files.best()
        return self.model if self._best_state is None else self.model.with_state(self._best_state)

    @property
    def epoch(self) -> int:
        """How many epochs are done."""
        return self._progress.done

    @property
    def step(self) -> int:
        """How many batches were trained on."""
        return self._progress.step

    def stop(self) -> None:
        """Ask `fit` to end after the present batch; from any thread."""
        self._asked = self._asked or "asked"
        self._order.asked = True

    def fit(
        self, train: Iterable[Any], valid: Iterable[Any] | None = None, epochs: int = 1, *, resume: bool = False
    ) -> Summary:
        """Train until `epochs` epochs are done, those of earlier calls and runs included.

        train, valid: Loaders, or other iterables that give the batches of an epoch each time that they are iterated over; a
        batch is a tuple of arrays, or a dict of them, which is one argument of the loss function. resume: go on from the newest
        whole checkpoint in the run's folder, if there is one: with the same data and settings, training goes on exactly as if it
        had not been interrupted.

        Ctrl-C and SIGTERM end training after the present batch, with a checkpoint, and `fit` returns as usual; a second one ends
        it at once, and the last checkpoint is what stays. While the first batch is computed or its kernels are compiled, when
        nothing would be lost, the first one does.
        """
        check_asked(train, valid, epochs, None if resume else self.epoch, self._watched.named())
        self._asked = None
        epochs = int(epochs)
        reason: Reason = "failed"
        message = ""
        with ExitStack() as stack:
            if self.folder is not None:
                stack.enter_context(locked(self.folder))
                clear_parts(self.folder)
            if self._remote is not None:
                stack.callback(self._remote.close)
            notes = self._begin(train, resume)
            self._files.begin(self.step)
            self._order = self._new_order()
            # Before the dashboard, which has handlers of its own.
            at_once = stack.enter_context(interruptible(self._interrupt, self._order))
            start = time.perf_counter()
            self._listeners = [*self._logs(), *self._hooks]
            if self._dashboard is not None:
                self._listeners.append(stack.enter_context(dashboard(self._dashboard, self.stop, at_once)))
            self._tell(self._began(train, valid, epochs))
            if self.epoch >= epochs:
                notes.append(f"there is nothing to train: up to epoch {epochs} was asked, and {self.epoch} are done")
            for text in notes:
                self._tell(Note(text))
            try:
                reason, message = self._surviving(train, valid, epochs)
            except KeyboardInterrupt:
                reason = self._asked or "interrupted"
            except BaseException as e:
                message = f"{type(e).__name__}: {e}"
                raise
            finally:
                self._order.ended = True
                self._tell(Stopped(reason, self._progress.epoch, time.perf_counter() - start, message))
        now = self._progress
        skipped = now.skipped_before + now.skipped
        summary = Summary(
            reason, message, now.step, now.seconds, tuple(now.rows), self._watched.modes, self.folder, skipped
        )
        if self._dashboard is not None:
            try_to_say(str(summary))
            if reason in ("asked", "interrupted", "terminated"):
                try_to_say(self._files.kept(self.step))
        return summary

    def evaluate(self, data: Iterable[Any], model: Module | None = None) -> dict[str, float]:
        """The loss and the metrics of a model on data: of the present one, or of another, such as `learner.best`."""
        check_data("evaluate", "data", data)
        return self._measured(data, None, model)

    # --- the loops ---------------------------------------------------------------------------------------------------

    def _surviving(self, train: Iterable[Any], valid: Iterable[Any] | None, epochs: int) -> tuple[Reason, str]:
        """The epochs. When all workers are lost, training goes on from the last checkpoint."""
        lost = -1
        while True:
            try:
                return self._epochs(train, valid, epochs)
            except DeviceLost as e:
                step = self._progress.step
                if self._workers is None or not (files := self._files.checkpoints) or not files.steps() or step <= lost:
                    raise
                lost = step
                self._tell(Note(f"{e}; training goes on from the last checkpoint"))
            self._progress, self._tallies = Progress(), Tallies(self.metrics)
            for text in self._begin(train, resume=True):
                self._tell(Note(text))
            self._tell(self._began(train, valid, epochs))

    def _epochs(self, train: Iterable[Any], valid: Iterable[Any] | None, epochs: int) -> tuple[Reason, str]:
        now = self._progress
        while now.done < epochs:
            epoch = now.done + 1
            start = time.perf_counter() - now.epoch_seconds
            before = now.seconds - now.epoch_seconds
            self._tell(EpochBegan(epoch))
            values: dict[Phase, dict[str, float]] = {}
            if not now.trained and (fault := self._train(train, epoch, start, before)):
                return "nonfinite", fault
            if valid is not None and not self._asked:
                values["valid"] = self._measured(valid, epoch)
            now.epoch_seconds = time.perf_counter() - start
            now.seconds = before + now.epoch_seconds
            if self._asked:
                self._order.ended = True
                self._save()
                return self._asked, ""
            skipped = {SKIPPED: now.skipped} if self._nonfinite == "skip" else {}
            values = {"train": {**skipped, **self._tallies.values()}, **values}
            if self._nonfinite == "stop" and (wrong := not_finite(values)):
                return "nonfinite", f"epoch {epoch}: {wrong}{self._files.newest()}"
            message = self._end_epoch(values, last=epoch == epochs)
            if message:
                return "patience", message
        return "finished", ""

    def _train(self, train: Iterable[Any], epoch: int, start: float, before: float) -> str:
        """The rest of an epoch; it may end early, as `_asked` says. Returns what is not finite, if that ends training."""
        now, steps = self._progress, self.checkpoints.steps
        last, finite = time.perf_counter(), True
        fields: Sequence[Any] = ()
        # A loader stands where the last batch that was trained on left it; of other data, that which was seen is left out.
        rest = iter(train) if now.loader is not None else islice(train, now.batch, None)
        for batch in rest:
            fields, skipped = fields_of(batch), self._step.skipped
            if self._statistics and now.step % self._statistics == 0 and isinstance(self._step, TrainStep):
                self._tell(LayersObserved(epoch, now.step + 1, *layer_figures(self._step, fields)))
            try:
                found = self._step(*fields)
                loss, extras = found if isinstance(found, tuple) else (found, {})
            except NonFinite as e:
                return f"epoch {epoch}, step {now.step + 1}: {e}{self._fault(fields)}{self._files.newest()}"
            items = items_of(fields)
            ended = time.perf_counter()
            rate = self._rate and self._rate(now.step, self._scale)
            counts = self._step.skipped == skipped
            values = (
                self._tallies.update(loss, extras, fields[-1], items, ended - last, rate) if counts else {LOSS: loss}
            )
            if rate is not None:
                values["lr"] = rate
            self._watched.check(self._tallies.values, lambda fields=fields: self._measured([fields], None))
            now.batch, now.step, now.items, now.loader = now.batch + 1, now.step + 1, now.items + items, position(train)
            now.skipped, now.trained = now.skipped + (not counts), now.batch == length(train)
            self._tell(BatchEnded(epoch, "train", now.batch, values, ended - last, items, self._memory(), now.step))
            last = ended
            was, finite = finite, counts and math.isfinite(loss)
            if was and not finite:  # the first of several tells enough
                what = f"the norm of the gradients of step {now.step} is not finite"
                what = what if math.isfinite(loss) else f"the loss of step {now.step} is {loss}"
                self._tell(Note(f"{what}{'' if counts else '; the step is skipped'}"))
            if self._asked:
                return ""
            if steps and now.step % steps == 0:
                now.epoch_seconds = last - start
                now.seconds = before + now.epoch_seconds
                self._save()
        if not now.batch:
            raise InputError(
                "fit: the training data gave no batch, expected one or more; a generator gives its batches only once: pass a list or a Loader"
            )
        now.trained = now.skipped < now.batch
        if not now.trained:
            fault = self._fault(fields) if fields else ""
            return f"epoch {epoch}: each of its {now.batch} steps was skipped, as it was not finite{fault}{self._files.newest()}"
        return ""

    def _memory(self) -> int | None:
        return self.device.memory().in_use if self.device.counts_memory else None

    def _fault(self, fields: Sequence[Any]) -> str:
        """Where in the step that was tried last the first number is that is not finite, as the end of a sentence."""
        key, model = self._step.state()[KEY], self._step.model.train()
        return fault_text(self._objective, model, fields, self.device, key, self._precision)

    def _measured(self, data: Iterable[Any], epoch: int | None, model: Module | None = None) -> dict[str, float]:
        """The values over data. epoch: tell the batches as those of its validation, and end early if that is asked."""
        tallies = Tallies(self.metrics)
        on = Fusion(self.device.eager)
        model = self.model if model is None and self._averaged else model
        if self._spread:
            evaluated, on = beside_model(model or self._step.lent(on), on)
        else:
            evaluated = model.to(on) if model else self._step.lent(on)
        evaluation = Evaluation(self._objective, evaluated, on)
        last = time.perf_counter()
        for k, batch in enumerate(data, 1):
            fields = fields_of(batch)
            loss, extras = evaluation(*fields)
            items, ended = items_of(fields), time.perf_counter()
            values = tallies.update(loss, extras, fields[-1], items, ended - last)
            if epoch is not None:
                self._tell(BatchEnded(epoch, "valid", k, values, ended - last, items, self._memory(), self.step))
                if self._asked:
                    break
            last = ended
        return tallies.values()

    def _end_epoch(self, values: Mapping[Phase, Mapping[str, float]], last: bool) -> str:
        """Why it was the last although it need not have been; "" if it was not."""
        now = self._progress
        row = EpochLine(now.done + 1, now.step, now.epoch_seconds, values)
        watched = flat(values)
        best = self._watched.see(row.epoch, watched, "valid" in values)
        if self._watched.plateau:
            self._scale = self._step.observe(watched[self._watched.plateau.value])
        items = now.items
        now.end_epoch(row)
        self._tallies = Tallies(self.metrics)
        self._tell(EpochEnded(row.epoch, values, row.seconds, items, best, row.step))
        if best:
            self._keep_best()
        why = "" if last else self._watched.ends(row.epoch)
        if last or why or row.epoch % self.checkpoints.every == 0:
            self._save()
        return why

    # --- what is kept ------------------------------------------------------------------------------------------------

    def _keep_best(self) -> None:
        self._best_state = {name: np.array(t.numpy()) for name, t in self.model.state_dict().items()}
        best = self._watched.best
        self._files.write_best(self._best_state, {"epoch": best.epoch, best.value: best.best})

    def _save(self) -> None:
        """Write a checkpoint, if there is a folder."""
        if self.folder is None:
            return
        now = self._progress
        arrays = {STEP + name: array for name, array in self._step.state().items()}
        arrays |= {TALLIES + name: array for name, array in self._tallies.arrays().items()}
        facts = {"progress": now.facts(), **self._watched.state()}
        if path := self._files.write_checkpoint(Checkpoint(now.step, arrays, facts)):
            best = self._watched.best.epoch == now.done and not now.batch
            self._tell(CheckpointSaved(now.epoch, path, best))

    def _begin(self, train: Iterable[Any], resume: bool) -> list[str]:
        """Bring all to where training begins or goes on; returns notes about damaged checkpoints."""
        notes: list[str] = []
        if resume and self.folder is None:
            raise InputError("fit: resume=True needs the folder of a run; give run=… to the Learner")
        if not self._progress.step:
            found, notes = self._files.found(resume)
            if found is not None:
                self._resume(found)
        loader = getattr(train, "resume", None)
        if loader is not None and self._progress.loader is not None and (resume or self._progress.batch):
            loader(self._progress.loader)
        self._files.write_settings()
        return notes

    def _resume(self, checkpoint: Checkpoint) -> None:
        self._step.resume({k.removeprefix(STEP): a for k, a in checkpoint.arrays.items() if k.startswith(STEP)})
        self._scale = float(checkpoint.arrays.get(STEP + RATE_SCALE, 1.0))
        self._tallies.resume(
            {k.removeprefix(TALLIES): a for k, a in checkpoint.arrays.items() if k.startswith(TALLIES)}
        )
        self._progress = Progress.of(checkpoint.facts["progress"])
        self._watched.resume(checkpoint.facts)

    # --- listeners ---------------------------------------------------------------------------------------------------

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    def _logs(self) -> list[Log]:
        return [] if self.folder is None else logs_of(self.folder, lambda text: self._tell(Note(text)))

    def _began(self, train: Iterable[Any], valid: Iterable[Any] | None, epochs: int) -> RunBegan:
        now = self._progress
        batches: dict[Phase, int | None] = {"train": length(train)}
        if valid is not None:
            batches["valid"] = length(valid)
        best = self._watched.best
        name = best.value.partition(".")[2]
        folder = self.folder
        each = " + ".join(in_words(d.name, d.describe()) for d in self.devices)
        device = f"{self._workers}, each on {each}; exchange: {self._remote.exchange}" if self._remote else each
        return RunBegan(
            folder.name if folder else "training", epochs, batches, device, now.done + 1, now.batch, now.step,
            str(folder) if folder else None, self._settings, (name, best.mode), self._watched.modes,
        )  # fmt: skip

    def _interrupt(self, reason: Reason) -> bool:
        asked, self._asked = self._asked is not None, reason
        return asked

    def _new_order(self) -> OrderlyEnd:
        """What an end asked for by signals must know."""
        files = self._files
        return OrderlyEnd(lambda: files.lost(self.step), lambda: files.kept(self.step))
