"""Sounds: a task's Graph takes rows of samples, and what it remembers of those before. Files, arrays and microphones go through the same."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...dtypes import int64
from ...errors import InputError
from ...files.sounds import blocks_at, sound_of
from ...model.arguments import TensorSpec
from ...model.files import load
from ...model.model import Model
from ...shapes import product
from ...tensors.functions.creation import concat, tensor
from ...tensors.tensor import Tensor
from ..answers import Answer
from ..applying import first_of
from ..medium import Files, Fitted, Following, Inputs, Medium, Run, Wishes
from .files import READS, wishes_with_files
from .forms import FORMS, Rows, SoundForm, SoundFrame
from .remembering import Remembered, remembering
from .running import LENGTHS, SAMPLES, STATE, SoundRun, joined, raised
from .spec import SoundInput

if TYPE_CHECKING:
    from ...runtime.device import Device
    from ..kinds import TaskKind
    from ..places import Place
    from ..spec import TaskSpec

_log: Final = logging.getLogger("singe")
UNTOLD_RATE: Final = (
    "%s: %s is given %d samples a second; its file does not say how many it takes, nor does a preprocessor_config.json beside it. Models of "
    "this kind take from 8000 to 48000: rate=%d says that it is so"
)
_WISHES: Final = frozenset(("rate", "before", "center", "spread"))
"""What a caller, or a file beside a model, may say of a form that leaves it open."""
RATE: Final = "sampling_rate"
"""The setting of a call that says how many samples of an array are a second."""


def _fit(model: Model, kind: TaskKind, wishes: Wishes) -> Fitted:
    form, place, spec, sizes = _input_of(model, kind, wishes.preparation)
    if "rate" in form.open(spec) and "rate" not in wishes.preparation:
        _log.warning(UNTOLD_RATE, kind.name, model.name, spec.rate, spec.rate)
    graph, own = (model.graph(sizes), ()) if form.alone else remembering(model.graph(sizes))
    kept = [*_pairs(graph.inputs[: len(model.inputs)], place, graph), *own]
    shapes = [tuple(d for d in graph.inputs[x.place].shape if isinstance(d, int)) for x in kept]
    memory = form.memory(spec, graph.inputs[place].shape)
    beside = _networks(kind, form, wishes.files)
    counts = [*map(product, shapes), memory]
    if any(len(shape) != len(graph.inputs[x.place].shape) for shape, x in zip(shapes, kept, strict=True)):
        raise InputError(f"{kind.name}: what the model remembers has open sizes; export it with numbers")
    spec = replace(spec, states=int(sum(map(int, counts))))  # pyright: ignore[reportArgumentType]

    def feed(inputs: Mapping[str, Tensor], spec: SoundInput) -> tuple[Sequence[Tensor], SoundFrame]:
        parts = _split(inputs.get(STATE), counts)
        remembered = parts[-1] if memory else None
        rows = Rows(inputs[SAMPLES], spec, graph.inputs[place].shape, inputs.get(LENGTHS), remembered, beside)
        heard = form.input(rows)
        values: list[Tensor] = []
        for k, x in enumerate(graph.inputs):
            m = next((m for m, state in enumerate(kept) if state.place == k), None)
            if k == place:
                values.append(heard.input.to(dtype=x.dtype.name))
            elif m is not None:
                values.append(_begun(parts[m].reshape(*shapes[m]), kept[m], 1).to(dtype=x.dtype.name))
            else:
                values.append(tensor(np.full(x.shape, spec.rate, np.int64)))  # pyright: ignore[reportArgumentType, reportCallIssue]

        def keep(outputs: Mapping[str, Tensor], others: Sequence[Tensor]) -> dict[str, Tensor]:
            if not spec.states:
                return {}
            states = (_begun(outputs[x.output].to(dtype="float32"), x, -1) for x in kept)
            return {STATE: concat([x.reshape(-1) for x in (*states, *heard.kept, *others)])}

        return values, SoundFrame(keep, heard.spectrum, remembered)

    return Fitted(graph, spec, feed, fixed=_WISHES.difference(form.open(spec)), options=form.options)


def _networks(kind: TaskKind, form: SoundForm, files: Mapping[str, Path]) -> Mapping[str, Callable[[Tensor], Tensor]]:
    """What a form computes by networks of its own, which are in files beside the model."""
    if lacking := [name for name in form.networks if name not in files]:
        raise InputError(
            f"{kind.name}: the model takes {form.about}, which other networks make: {' and '.join(lacking)} must be beside it: put it there, or "
            "name its folder with beside="
        )
    return {name: _network(files[name]) for name in form.networks}


def _network(path: Path) -> Callable[[Tensor], Tensor]:
    graph = load(path, "numpy").graph()
    return lambda x: first_of(graph, x)


def _begun(x: Tensor, state: Remembered, sign: int) -> Tensor:
    """What is remembered begins with zeros: it is less by what the model begins with."""
    return x if state.initial is None else x + tensor(state.initial.astype(np.float32) * sign)


def network_of(kind: TaskKind, place: Place, device: str | Device) -> Model:
    """A network whose weights stand without a graph, by its architecture."""
    from .networks import NETWORKS  # noqa: PLC0415 (ONNX files need none)

    if kind.network not in NETWORKS:
        raise InputError(
            f"{kind.name}: {place.model}: weights without a graph; expected an ONNX or a TensorFlow Lite file"
        )
    return NETWORKS[kind.network](place, device)


def _inputs(spec: SoundInput) -> Inputs:
    rows = spec.rows or "rows"
    return {
        SAMPLES: ("float32", (rows, spec.width)),
        **({LENGTHS: ("float32", (rows,))} if spec.lengths else {}),
        **({STATE: ("float32", (spec.states,))} if spec.states else {}),
    }


def _input_of(
    model: Model, kind: TaskKind, preparation: Mapping[str, Any]
) -> tuple[SoundForm, int, SoundInput, Mapping[str, int]]:
    """The form of the model, the number of the input that takes samples, the facts of it, and the numbers that open sizes become."""
    for form in (FORMS[name] for name in kind.forms):
        for k, x in enumerate(model.inputs):
            others = [o for o in model.inputs if o is not x]
            if all(_is_told(o) for o in others) and (found := form.recognise(x, others, preparation)) is not None:
                return form, k, *found
    about = ", or ".join(FORMS[name].about for name in kind.forms)
    told = ", ".join(map(str, model.inputs)) or "none"
    raise InputError(f"{kind.name}: the model takes no sound as it is known here: {about}; its inputs are {told}")


def _is_told(x: TensorSpec) -> bool:
    """Whether an input is a state, or the rate."""
    return (x.dtype is int64 and len(x.shape or ()) < 2) or (x.dtype.is_float and len(x.shape or ()) == 3)


def _pairs(inputs: Sequence[Any], place: int, graph: Any) -> list[Remembered]:
    """The inputs that are states, with the names of the outputs that are their next values: of three axes, in the same order."""
    states = [k for k, x in enumerate(inputs) if k != place and x.dtype is not int64]
    named = [
        name for name, x in zip(graph.output_names, graph.outputs, strict=True)
        if len(x.shape) == 3 and not name.startswith("remembered ")
    ]  # fmt: skip
    if states and len(named) != len(states):
        raise InputError(f"task: {len(states)} states go in, and {len(named)} come out: {', '.join(named)}")
    return list(map(Remembered, states, named)) if states else []


def _split(state: Tensor | None, counts: Sequence[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    at = 0
    for count in counts if state is not None else ():
        found.append(state[at : at + count])  # pyright: ignore[reportOptionalSubscript]
        at += count
    return found


def _open(kind: TaskKind, info: TaskSpec, files: Files) -> Callable[[Run, Mapping[str, Any]], Following]:
    def begin(run: Run, settings: Mapping[str, Any]) -> Following:
        def one(source: Any) -> Answer:
            sound = sound_of(source, settings[RATE]).at(info.preparation.rate)
            if info.preparation.level:
                sound = replace(sound, samples=raised(sound.samples, info.preparation.level))
            through = SoundRun(run, info.preparation)
            parts = [*through.push(sound.samples), *through.finish()]
            return kind.answer(joined(parts), info, sound, settings)

        return lambda sources: list(map(one, sources))

    return begin


def _stream(
    kind: TaskKind, info: TaskSpec, run: Run, settings: Mapping[str, Any]
) -> Callable[[Iterable[Any]], Iterator[Answer]]:
    """Answers for the blocks of a sound as they come: each for what became known with it, and one for the end."""
    if kind.live is None:
        raise InputError(f"{kind.name}: takes whole sounds; call it with one")
    follow, spec = kind.live(info, settings), info.preparation
    through = SoundRun(run, spec)

    def answers(blocks: Iterable[Any]) -> Iterator[Answer]:
        for samples, ends in blocks_at(spec.rate, blocks, settings[RATE]):
            rows = through.push(samples)
            yield follow([*rows, *through.finish()] if ends else rows, through.count, ends)

    return answers


SOUND: Final = Medium(
    "sound",
    SoundInput,
    frozenset(("rate", "before")),
    _inputs,
    _fit,
    _open,
    READS,
    wishes_with_files,
    network_of,
    stream=_stream,
)
