"""Where the time of a run goes: a Program's steps timed on their device, summed by kernel; as text, a picture, or a trace.

Figures are means over the faster half of the timed runs. So they add up to the time of a run, and disturbed runs are
left out. Time outside of kernels is listed too (REST).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from .. import __version__
from ..compiler.compile import flops
from ..compiler.fuse import fuse
from ..errors import CompileError, DeviceError, InputError, ShapeError
from ..files import write
from ..graph import Builder, Graph
from ..late_dataclass import dataclass
from ..ops import View, find_row
from ..program.program import Bind, Host, ProgramData
from ..program.words import COPY, WordGroup
from ..report import LEFT, NAMES, RIGHT, PictureLine, bar, picture, table
from ..runtime.backend import Span, TimedExecutable, Timeline
from ..shapes import known, show
from .program import Program

REST: Final[Mapping[str, str]] = {
    "upload": "inputs to the device",
    "calls": "the overhead of calling the kernels",
    "dispatch": "the runner between kernels, and waiting for the device",
    "readback": "outputs from the device",
}
"""The parts of a run outside of its kernels."""
BARS: Final = 20
"""How many kernels have a bar each in the picture."""
WIDTH: Final = 760
FIGURES: Final = 130
"""The width of the picture, and that of its figures, in pixels."""
COLOURS: Final = ("#2f5eb5", "#bd7531", "#84408f", "#3a8a5c", "#b04646", "#6b7682")
PORTS: Final = 8
"""The limit of buffers per kernel when the work of a host step is counted by fusing it."""


@dataclass(frozen=True)
class KernelTime:
    """All steps that run the same code: seconds, operations and bytes are totals over its calls in one run.

    flops is None if they cannot be counted; bytes are the least traffic possible: each input and output once.
    """

    label: str
    kind: str
    output: str
    calls: int
    seconds: float
    flops: int | None
    bytes: int

    def rate(self, count: int | None) -> str:
        """Billions a second; "" if there are none."""
        return f"{count / self.seconds / 1e9:.1f}" if count and self.seconds > 0 else ""


@dataclass(frozen=True)
class LayerTime:
    """The seconds of a layer in one run: a part of a module, a node of a file, or a line of a function. Layers whose ops were fused are
    one, named by all. calls: of kernels."""

    name: str
    calls: int
    seconds: float


@dataclass(frozen=True)
class Profile:
    """A run's seconds, by kernel and the rest, and the same kernels by layer; its text is a table of each, and a notebook shows bars.
    `trace` has Chrome's events of the fastest run."""

    device: str
    clock: str
    runs: int
    seconds: float
    kernels: tuple[KernelTime, ...]
    rest: Mapping[str, float]
    trace: tuple[Mapping[str, Any], ...]
    layers: tuple[LayerTime, ...] = ()
    """In the order of the run; none if it is not known of what the Program was made."""

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """Those events of `trace` that are of the device's steps."""
        return [event for event in self.trace if event["ph"] == "X" and event["tid"] == _DEVICE]

    def __str__(self) -> str:
        """A table by time, which adds up to the run; and one of layers, in their order."""
        columns = [
            ("kernel", LEFT), ("kind", LEFT), ("output", LEFT), ("calls", RIGHT), ("ms", RIGHT), ("share", RIGHT),
            ("GFLOP/s", RIGHT), ("GB/s", RIGHT),
        ]  # fmt: skip
        rows = [
            (k.label, k.kind, k.output, k.calls, f"{k.seconds * 1e3:.3f}", self._share(k.seconds), *map(k.rate, (k.flops, k.bytes)))
            for k in self.kernels
        ]  # fmt: skip
        others = [
            (name, "", REST[name], "", f"{s * 1e3:.3f}", self._share(s), "", "") for name, s in self.rest.items() if s
        ]
        whole = ("together", "", "", "", f"{self.seconds * 1e3:.3f}", self._share(self.seconds), "", "")
        note = f"{self.device}; {self.clock}; means of the faster half of {self.runs} runs"
        return "\n\n".join([table(columns, [*rows, *others, whole]), *self._by_layer(), note])

    def _by_layer(self) -> list[str]:
        if not self.layers:
            return []
        rows = [(x.name, x.calls, f"{x.seconds * 1e3:.3f}", self._share(x.seconds)) for x in self.layers]
        return [table([("layer", LEFT), ("calls", RIGHT), ("ms", RIGHT), ("share", RIGHT)], rows)]

    def _share(self, seconds: float) -> str:
        return f"{seconds / self.seconds:.1%}" if self.seconds else ""

    def _repr_svg_(self) -> str:
        """Bars of the slowest kernels, of the others, and of the rest; then of the slowest layers."""
        shown = [(f"{k.label} {k.output}", k.kind, k.seconds) for k in self.kernels[:BARS]]
        others = sum(k.seconds for k in self.kernels[BARS:])
        if others:
            shown.append((f"{len(self.kernels) - BARS} others", "others", others))
        shown += [(name, "host", seconds) for name, seconds in self.rest.items() if seconds > 0]
        shown += [(x.name, "layer", x.seconds) for x in sorted(self.layers, key=lambda x: -x.seconds)[:BARS]]
        longest = max((seconds for *_, seconds in shown), default=0.0) or 1.0
        kinds = list(dict.fromkeys(kind for _, kind, _ in shown))
        lines: list[PictureLine] = []
        for label, kind, seconds in shown:
            width = max(1.0, (WIDTH - NAMES - FIGURES) * seconds / longest)
            marks = bar(NAMES, width, COLOURS[kinds.index(kind) % len(COLOURS)], f"{label}: {kind}")
            lines.append(
                PictureLine(label, marks, f"{seconds * 1e3:.3f} ms, {self._share(seconds)}", NAMES + width + 6)
            )
        taken = f"{self.seconds * 1e3:.2f} ms"
        about = f"Where a run on {self.device} spends {taken}"
        return picture(about, f"{self.device}: {taken} a run", lines, WIDTH)

    def save(self, path: str | Path) -> None:
        """Write it as a picture (.svg), or as a trace for chrome://tracing and ui.perfetto.dev (.json)."""
        suffix = Path(path).suffix.lower()
        if suffix not in (".svg", ".json"):
            raise InputError(
                f"save: {path}: a profile is a picture, .svg, or a trace, .json; got {suffix or 'no suffix'}"
            )
        text = self._repr_svg_() if suffix == ".svg" else json.dumps(trace_data(self))
        write(Path(path), [text.encode()])


@dataclass(frozen=True)
class _Sample:
    """One timed run: seconds of the upload and the readback around it."""

    upload: float
    timeline: Timeline
    readback: float

    @property
    def seconds(self) -> float:
        return self.upload + self.timeline.seconds + self.readback


def timed_executable(runnable: Program) -> TimedExecutable:
    """The executable, if it can time its steps; otherwise an error."""
    if isinstance(runnable.executable, TimedExecutable):
        return runnable.executable
    raise DeviceError(f"{runnable.device!r} cannot time its steps here; try another device, or run natively")


def profile(
    runnable: Program, arrays: Sequence[np.ndarray], repeat: int, progress: Callable[[int], None] = lambda _: None
) -> Profile:
    """Time the steps of a number of runs; an error if the device cannot."""
    executable = timed_executable(runnable)
    states = runnable.session().held(runnable) if runnable.states else ()
    samples = []
    for number in range(repeat + 1):
        progress(number)
        samples.append(_timed(runnable, executable, arrays, states))
    # The first is a warm-up.
    samples = sorted(samples[1:], key=lambda s: s.seconds)
    return _summed(runnable, {p.name: a.shape for p, a in zip(runnable.inputs, arrays, strict=True)}, samples)


def _timed(
    runnable: Program, executable: TimedExecutable, arrays: Sequence[np.ndarray], states: Sequence[Any]
) -> _Sample:
    on = runnable.device.eager
    with on.lock:
        start = time.perf_counter()
        given = [on.upload(a) for a in arrays]
        upload = time.perf_counter() - start
        timeline = executable.profile(given, states)
        start = time.perf_counter()
        for array in timeline.outputs:
            on.download(array)
        return _Sample(upload, timeline, time.perf_counter() - start)


def _summed(runnable: Program, shapes: Mapping[str, tuple[int, ...]], samples: Sequence[_Sample]) -> Profile:
    """The means over the faster half of the samples, which come fastest first."""
    kept = samples[: -(-len(samples) // 2)]
    sizes = runnable.data.sizes(shapes)
    data = runnable.data.at(sizes)
    work = _Workload(data, {**sizes, **kept[0].timeline.sizes}, data.buffers is runnable.data.buffers)
    calls: dict[_Key, int] = {}
    taken: dict[_Key, float] = {}
    layers: dict[str, list[float]] = {}
    for sample in kept:
        for span in sample.timeline.spans:
            key, each = work.key(span), span.seconds / len(kept)
            calls[key] = calls.get(key, 0) + 1
            taken[key] = taken.get(key, 0.0) + each
            layers.setdefault(work.layer(span), []).append(each)
    kernels = [work.kernel(key, calls[key] // len(kept), taken[key]) for key in taken]

    def mean(of: Callable[[_Sample], float]) -> float:
        return sum(map(of, kept)) / len(kept)

    overhead = mean(lambda s: sum(span.overhead for span in s.timeline.spans))
    steps = mean(lambda s: s.timeline.seconds)
    rest = {
        "upload": mean(lambda s: s.upload),
        "calls": overhead,
        "dispatch": steps - overhead - sum(k.seconds for k in kernels),
        "readback": mean(lambda s: s.readback),
    }
    return Profile(
        device=runnable.device.name,
        clock=kept[0].timeline.clock,
        runs=len(samples),
        seconds=mean(lambda s: s.seconds),
        kernels=tuple(sorted(kernels, key=lambda k: -k.seconds)),
        rest=rest,
        trace=tuple(_events(runnable, work, samples[0])),
        layers=tuple(LayerTime(name, len(x) // len(kept), sum(x)) for name, x in layers.items()) if any(layers) else (),
    )


# --- which kernel, and what it does -----------------------------------------------------------------------------------


_Key = tuple[str, str, str, Any]
"""Label, kind, the output's shape, and whatever else distinguishes kernels."""


class _Workload:
    """The operations and bytes of what a Program does at known sizes."""

    def __init__(self, program: ProgramData, sizes: Mapping[str, int], is_general: bool) -> None:
        """is_general: whether the program is not specialised: layers are known of the buffers of such."""
        self._program = program
        self._sizes = sizes
        self._groups = {g.at: g for g in program.groups}
        self._layers: Mapping[int, str] = program.facts.get("layers", {}) if is_general else {}
        self._keys: dict[int, _Key] = {}
        self._work: dict[_Key, tuple[int | None, int]] = {}

    def key(self, span: Span) -> _Key:
        """The key under which a group is counted. Only groups that ran have one: sizes of others may be unknown."""
        if span.at not in self._keys:
            group = self._groups[span.at]
            key = self._keys[span.at] = self._group_key(group)
            if key not in self._work:
                self._work[key] = self._counted(group)
        return self._keys[span.at]

    def layer(self, span: Span) -> str:
        """The layers whose ops a group computes; "" if they are not known."""
        return next((self._layers[i] for i in reversed(self._groups[span.at].writes) if i in self._layers), "")

    def kernel(self, key: _Key, calls: int, taken: float) -> KernelTime:
        count, moved = self._work.get(key, (None, 0))
        return KernelTime(*key[:3], calls, taken, None if count is None else count * calls, moved * calls)

    def _shape(self, buffer: int) -> str:
        return show(tuple(known(d, self._sizes) for d in self._program.buffers[buffer].shape))

    def _bytes(self, *buffers: int) -> int:
        return sum(known(self._program.buffers[i].bytes, self._sizes) for i in buffers)

    def _group_key(self, group: WordGroup) -> _Key:
        stop = group.stop
        if group.head >= 0:
            code = self._program.kernels[group.head]
            output = group.writes[-2] if code.workspace else group.writes[-1]
            return code.label, code.kind, self._shape(output), group.head
        if group.head == COPY:
            return "copy", "copy", self._shape(group.writes[0]), self._bytes(*group.reads)
        if isinstance(stop, Host):
            shapes = tuple(self._shape(i) for i in stop.inputs)
            return stop.op, "host", self._shape(stop.outputs[0]), (shapes, repr(sorted(stop.attrs.items())))
        assert stop is not None, "jumps are not timed"
        if isinstance(stop, Bind):
            return f"size {stop.size}", "bind", "", group.at
        return stop.text, "check", "", group.at

    def _counted(self, group: WordGroup) -> tuple[int | None, int]:
        """Operations and bytes of one call."""
        stop = group.stop
        if group.head >= 0:
            code = self._program.kernels[group.head]
            return known(code.flops, self._sizes), known(code.bytes, self._sizes)
        if group.head == COPY:
            return 0, self._bytes(*group.reads, *group.writes)
        if isinstance(stop, Host):
            # A view of another array moves no bytes.
            moved = 0 if isinstance(find_row(stop.op), View) else self._bytes(*stop.inputs, *stop.outputs)
            return self._host_flops(stop), moved
        return None, 0

    def _host_flops(self, step: Host) -> int | None:
        """Operations of the kernels that the op would compile to; None if it is not a loop nest."""
        b = Builder()
        nodes = []
        for k, i in enumerate(step.inputs):
            buffer = self._program.buffers[i]
            shape = tuple(known(d, self._sizes) for d in buffer.shape)
            nodes.append(b.input(f"x{k}", shape, buffer.dtype))
        try:
            made = b.apply(find_row(step.op), *nodes, **step.attrs)
            _, groups = fuse(Graph(tuple(nodes), (made,), ("y",)), PORTS)
        except (CompileError, ShapeError):
            return None
        return sum(known(flops(g.kernel), self._sizes) for g in groups)


def trace_data(profile: Profile) -> dict[str, Any]:
    """A trace in Chrome's format, for chrome://tracing and ui.perfetto.dev."""
    return {
        "traceEvents": list(profile.trace),
        "displayTimeUnit": "ms",
        "otherData": {"singe": __version__, "device": profile.device, "clock": profile.clock},
    }


_PROCESS: Final = 1
_HOST: Final = 1
_DEVICE: Final = 2


def _events(runnable: Program, work: _Workload, sample: _Sample) -> list[dict[str, Any]]:
    """The events of the host on one line, those of the steps on another."""

    def name(kind: str, text: str, line: int) -> dict[str, Any]:
        return {"name": kind, "ph": "M", "ts": 0, "pid": _PROCESS, "tid": line, "args": {"name": text}}

    def complete(
        label: str, kind: str, line: int, start: float, taken: float, args: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {
            "name": label, "cat": kind, "ph": "X", "ts": start * 1e6, "dur": taken * 1e6, "pid": _PROCESS, "tid": line,
            "args": dict(args),
        }  # fmt: skip

    timeline = sample.timeline
    began = sample.upload
    events = [
        name("process_name", "singe", _HOST),
        name("thread_name", "host", _HOST),
        name("thread_name", f"{runnable.device.name}: steps", _DEVICE),
        complete("upload", "host", _HOST, 0.0, sample.upload, {}),
        complete("run", "host", _HOST, began, timeline.seconds, {"clock": timeline.clock}),
        complete("readback", "host", _HOST, began + timeline.seconds, sample.readback, {}),
    ]
    for span in timeline.spans:
        one = work.kernel(work.key(span), 1, span.seconds)
        facts = {"output": one.output, "flops": one.flops, "bytes": one.bytes, "call_us": span.overhead * 1e6}
        events.append(complete(one.label, one.kind, _DEVICE, began + span.start, span.seconds + span.overhead, facts))
    return events
