"""The commands: each takes the parsed arguments, prints a report, and raises errors that the caller can fix."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from io import BytesIO
from pathlib import Path
from statistics import median
from textwrap import indent
from typing import Any, Final

import numpy as np

from ..dtypes import own, plain
from ..errors import (
    CompileError,
    DeviceError,
    HostNeeded,
    InputError,
    SingeError,
)
from ..files import kept, write
from ..files.folder import OFF, SINGE_CACHE, is_off
from ..files.urls import is_url
from ..model.arguments import bind
from ..model.description import describe_layers, describe_model
from ..model.files import load
from ..model.model import Model
from ..model.profiling import profile, trace_data
from ..model.program import Program, write_program
from ..program.container import PROGRAM, format_of
from ..report import LEFT, RIGHT, clean, fields, seconds, table
from ..runtime.devices import CHOSEN, DEFAULT, VARIABLE, Unopened, device_or_default, in_words
from ..runtime.devices import device as open_device
from ..runtime.devices import devices as all_devices
from ..runtime.registry import ELSEWHERE, backend_factory, backend_names
from ..shapes import bytes_text, show
from ..tasks.labels import read_labels
from ..texts import say
from . import chatting, exporting, ready_models, tasking
from .completion import script
from .inputs.files import given_inputs, once, read_inputs
from .inspection import describe_program
from .measuring.bench import (
    describe_bench,
    peaks,
    random_inputs,
    time_model,
    timing_data,
)
from .measuring.devices import measured_devices, worth_measuring
from .measuring.diff import compare
from .measuring.diff import describe as describe_comparison
from .measuring.peer import onnxruntime_here, peer_values
from .opening import compiled, model_on_device, model_on_numpy, single_model
from .options import parser
from .progress import doing
from .serving import folder_server, hosting

TOP: Final = 5
SOFTWARE: Final = "a software adapter: correct, but slow"
BYTES: Final = ("memory", "used", "pool_bytes")
"""What a device says of itself that counts bytes."""

chat: Final = chatting.chat
export: Final = exporting.export
task: Final = tasking.task
serve: Final = folder_server.serve
host: Final = hosting.host
zoo: Final = ready_models.zoo


# --- run --------------------------------------------------------------------------------------------------------------


def run(args: Namespace) -> None:
    """Run a model or a program on files."""
    with doing("loading") as loading:
        model = model_on_device(args)
    arrays = read_inputs(args, model.inputs)
    with doing("compiling") as compiling:
        program = (
            model if isinstance(model, Program) else model.program({k: a.shape for k, a in arrays.items()}, arrays)
        )
    names = [p.name for p in program.outputs]
    targets = once(args.output, "--output")
    unknown = targets.keys() - set(names)
    if unknown:
        raise InputError(f"--output {', '.join(sorted(unknown))}: no such output; the outputs are {', '.join(names)}")
    labels = read_labels(args.labels)
    given = [arrays[p.name] for p in program.inputs]
    with doing("running") as first:
        results = dict(zip(names, program.run(given), strict=True))
    again: list[float] = []
    with doing("running again") as work:
        for number in range(args.repeat):
            work(f"run {number + 1} of {args.repeat}")
            start = time.perf_counter()
            program.run(given)
            again.append(time.perf_counter() - start)

    say(fields([
        ("device", in_words(program.device.name, program.device.describe())),
        ("load", seconds(loading.seconds)),
        ("compile", seconds(compiling.seconds)),
        ("first run", seconds(first.seconds)),
        *([("run", f"{seconds(median(again))} (median of {len(again)}; least {seconds(min(again))})")] if again else []),
    ]))  # fmt: skip
    say()
    columns = [
        ("output", LEFT),
        ("dtype", LEFT),
        ("shape", LEFT),
        ("least", RIGHT),
        ("mean", RIGHT),
        ("most", RIGHT),
        ("", LEFT),
    ]
    say(table(columns, [(name, a.dtype, show(a.shape), *_summary(a)) for name, a in results.items()]))
    _rank(args, results, labels)
    for name, path in targets.items():
        file = BytesIO()
        np.save(file, _storable(results[name]))
        write(Path(path), [file.getbuffer()])


def _storable(a: np.ndarray) -> np.ndarray:
    """Strings as text of fixed width, which an .npy file can have without pickles. Of a type that NumPy lacks it keeps the name
    only as that of a field."""
    return a.astype(str) if a.dtype.kind == "O" else own(a)


def _summary(a: np.ndarray) -> tuple[str, str, str, str]:
    """Minimum, mean and maximum of the finite values, and how many are not finite; of other values than numbers, the first."""
    a = plain(a)
    if a.dtype.kind not in "biuf":
        return "", "", "", ", ".join(f"{v!r:.40}" for v in a.ravel()[:TOP].tolist())
    numbers = a.astype(np.float64).ravel()
    finite = numbers[np.isfinite(numbers)]
    note = "" if finite.size == numbers.size else f"{numbers.size - finite.size} not finite"
    if not finite.size:
        return "", "", "", note or "empty"
    return f"{finite.min():.5g}", f"{finite.mean():.5g}", f"{finite.max():.5g}", note


def _rank(args: Namespace, results: Mapping[str, np.ndarray], labels: Mapping[int, str] | None) -> None:
    """The most probable classes of each row, if requested or if one output looks like classes."""
    classes = [
        a for a in results.values() if a.ndim in (1, 2) and a.size and a.shape[-1] > 1 and plain(a).dtype.kind == "f"
    ]
    asked = args.top is not None or labels is not None
    if not classes:
        if asked:
            there = ", ".join(f"{name}{show(a.shape)}" for name, a in results.items())
            raise InputError(f"--top and --labels need an output of classes, of shape (1, K); there are {there}")
        return
    if not asked and (len(results) > 1 or classes[0].shape[:-1] != (1,)):
        return
    names = labels or {}
    for row in np.atleast_2d(classes[0]):
        probabilities = _probabilities(row.astype(np.float64))
        best = np.argsort(-probabilities, kind="stable")[: args.top or TOP]
        columns = [("rank", RIGHT), ("probability", RIGHT), ("class", RIGHT), *([("label", LEFT)] if labels else [])]
        say()
        say(
            table(
                columns,
                [
                    (n, f"{probabilities[k]:.1%}", k, *([names.get(int(k), "")] if labels else []))
                    for n, k in enumerate(best, 1)
                ],
            )
        )


def _probabilities(row: np.ndarray) -> np.ndarray:
    """The row itself if it is a distribution already, otherwise its softmax."""
    if row.min() >= 0 and abs(row.sum() - 1) < 1e-3:
        return row
    powers = np.exp(row - row.max())
    return powers / powers.sum()


# --- inspect, compile -------------------------------------------------------------------------------------------------


def inspect(args: Namespace) -> None:
    """Show a model, and the Programs that it compiles to."""
    model = model_on_numpy(args)
    say(describe_model(model))
    if model.needed:
        return
    if args.shapes:
        say(f"\n{describe_layers(model)}")
    for name in [args.device] if args.device else _worth_describing():
        say()
        try:
            program = compiled(model, name, fail_on_host=args.fail_on_host)
        except (CompileError, DeviceError) as e:
            if args.device or isinstance(e, HostNeeded):
                raise
            say(f"{name}: cannot be compiled: {e}")
            continue
        say(describe_program(name, program, args.kernels))


def _worth_describing() -> Iterator[str]:
    """The backends whose devices are here, and those of pages, here or not; one for each target, numpy's first."""
    told = set[str]()
    for name in dict.fromkeys((DEFAULT, *backend_names())):
        try:
            factory = backend_factory(name)
            if factory.target_name in told:
                continue
            if not factory.pages:
                open_device(name)
        except DeviceError:  # `singe devices` says why it is not here
            continue
        told.add(factory.target_name)
        yield name


def compile(args: Namespace) -> None:
    """Write a model's Program."""
    out = Path(args.out)
    if out.exists() and not is_url(args.model) and out.samefile(args.model):
        raise InputError(f"-o {args.out}: this is the model itself, which the program would replace; give another file")
    program = compiled(
        single_model(args), args.device, activations=args.activations or "float32", fail_on_host=args.fail_on_host
    )
    with doing("writing"):
        write_program(program, args.out)
    size = bytes_text(Path(args.out).stat().st_size)
    say(
        fields(
            [
                ("wrote", args.out),
                ("target", program.target),
                ("size", size),
                ("compile", seconds(program.seconds)),
            ]
        )
    )


# --- diff -------------------------------------------------------------------------------------------------------------


def diff(args: Namespace) -> int:
    """Compare a model's values on devices; 1 if one differs."""
    if args.against != DEFAULT:
        onnxruntime_here()  # before a model is loaded and run
    model = model_on_numpy(args)
    there = {name: open_device(name) for name in args.devices} if args.devices else worth_measuring()
    devices = [d for d in there.values() if not isinstance(d, DeviceError) and d.name != args.against]
    if not devices:
        raise InputError(f"there is no device to compare with {args.against}; name others with --devices")
    given = given_inputs(args, model.inputs)
    drawn = random_inputs([x for x in model.inputs if x.name not in given], None)
    arrays = bind(model.inputs, (), given | drawn)
    reference = partial(peer_values, args.model, arrays) if args.against != DEFAULT else None
    with doing("comparing") as tell:
        found = compare(model, devices, arrays, args.tolerance, reference, tell)
    say(describe_comparison(found, args.against))
    return 1 if any(c.differing for c in found) else 0


# --- runs -------------------------------------------------------------------------------------------------------------


def runs(args: Namespace) -> int:
    """List runs, or write a report of some; 2 if any was left out."""
    from .runs import describe_runs, write_report  # noqa: PLC0415 (it imports singe.train, which no other command needs)

    folder, refused = Path(args.folder), list[SingeError]()
    if args.report:
        say(write_report(folder, args.report, Path(args.out or "report.html"), refused.append))
    elif args.out:
        raise InputError("-o needs --report")
    else:
        say(describe_runs(folder, shutil.get_terminal_size().columns if sys.stdout.isatty() else None, refused.append))
    for error in refused:
        say(f"singe runs: left out, as it cannot be read: {clean(error)}", file=sys.stderr)
    return 2 if refused else 0


# --- bench ------------------------------------------------------------------------------------------------------------


def bench(args: Namespace) -> None:
    """Time a model, or all devices."""
    if args.model is None:
        _bench_devices(args)
        return
    with doing("loading") as tell:
        start = time.perf_counter()
        model = _to_bench(args)
        load_seconds = time.perf_counter() - start
        arrays = random_inputs(model.inputs, args.batch)
        timing, runnable = time_model(model, arrays, load_seconds, Path(args.model).name, args.repeat, tell)
        used = runnable.device.memory() if args.memory else None
        found = limit = None
        if args.profile or args.trace:
            given = [arrays[p.name] for p in runnable.inputs]
            count = len(timing.runs)
            found = profile(runnable, given, count, lambda number: tell(f"profiled run {number} of {count}"))
        if args.profile:
            limit = peaks(runnable.device, tell)
    if args.trace and found is not None:
        write(Path(args.trace), [json.dumps(trace_data(found)).encode()])
    if args.json:
        data = timing_data(timing, found, limit) | ({} if used is None else {"device_memory": asdict(used)})
        say(json.dumps(data, indent=1, default=str))
        return
    say(describe_bench(timing, in_words(timing.device, timing.facts), found, limit, args.most))
    if used is not None:
        say(f"\n{used!r}")


def _to_bench(args: Namespace) -> Model | Program:
    if format_of(args.model) == PROGRAM:
        for option, own in (("input_shape", "shapes"), ("state", "states"), ("donate", "donated inputs")):
            if getattr(args, option):
                option = f"--{option.replace('_', '-')}"
                raise InputError(f"{option}: a program has its {own} already; give the model that it was compiled from")
        return Program.load(args.model, args.device)
    shapes = once(args.input_shape, "--input-shape")
    return load(args.model, args.device or "auto", shapes, states=once(args.state, "--state"), donate=args.donate)


def _bench_devices(args: Namespace) -> None:
    given = [
        option
        for option in ("input_shape", "state", "donate", "batch", "repeat", "profile", "memory", "trace", "most")
        if getattr(args, option)
    ]
    if given:
        raise InputError(f"--{given[0].replace('_', '-')} needs a MODEL")
    with doing("opening devices") as tell:
        measured = measured_devices(args.device, tell)
    say(json.dumps(measured.data(), indent=1) if args.json else str(measured))


# --- train ------------------------------------------------------------------------------------------------------------


def train(args: Namespace) -> int:
    """Run an example of singe.train."""
    from .training import train as train_example  # noqa: PLC0415 (other commands need no training)

    return train_example(args)


# --- devices ----------------------------------------------------------------------------------------------------------


def devices(args: Namespace) -> None:
    """Show every device, or why it is not available."""
    with doing("opening devices"):
        there = all_devices()
    for name, found in there.items():
        if isinstance(found, DeviceError):
            say(fields([(name, f"absent: {found}")]))
            continue
        if isinstance(found, Unopened):
            say(fields([(name, f"installed: {found.library}, which is imported when it is asked for")]))
            continue
        facts = found.describe()
        say(fields([(name, "here" if not facts.get("software") else SOFTWARE)]))
        say(
            indent(
                fields([(key, bytes_text(value) if key in BYTES else _plain(value)) for key, value in facts.items()]),
                "  ",
            )
        )
    say(
        fields(
            [(ELSEWHERE, f"with {backend_factory(ELSEWHERE).choices}, where `singe host` runs; needs singe[remote]")]
        )
    )
    named = os.environ.get(VARIABLE)
    without = f"{VARIABLE}={named}" if named else f"{VARIABLE} is not set"
    say(fields([
        *((name, open_device(name).name) for name in CHOSEN),
        ("no name", f"{device_or_default().name} ({without})"),
    ]))  # fmt: skip


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return ", ".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


# --- cache ------------------------------------------------------------------------------------------------------------


def cache(args: Namespace) -> None:
    """List what is kept, or remove it."""
    if args.clear:
        say(f"removed {bytes_text(kept.clear())} from {kept.kept_folder()}")
        return
    found = kept.entries()
    if found:
        rows = [
            [e.kind, e.text, bytes_text(e.bytes), time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used))]
            for e in found
        ]
        say(table([("kind", LEFT), ("what", LEFT), ("size", RIGHT), ("last used", LEFT)], rows))
    off = f"; {SINGE_CACHE} is {OFF!r}, so nothing is kept now" if is_off() else ""
    say(f"{bytes_text(sum(e.bytes for e in found))} in {kept.kept_folder()}{off}")


# --- completion -------------------------------------------------------------------------------------------------------


def completion(args: Namespace) -> None:
    """Print a shell's function."""
    say(script(parser(examples=True), args.shell), end="")
