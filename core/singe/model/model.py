"""Model: a Graph or a file, compiled for the inputs with which it is called.

A Model keeps its source (a Graph or an ONNX file) and compiles it once, for open sizes: one Program serves all sizes. If
the Graph cannot be built like that, `Model.needed` says which sizes must be numbers, which inputs' values must be known,
and why. Then each set of these gets a Program; the latest MAX_PROGRAMS of them are kept. They share their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..awaitables import MaybeAwaitable, map_result, resolve, resolve_async
from ..compiler.options import Options
from ..dtypes import contents, dtype
from ..errors import ImportFailure, InputError, ShapeError, SingeError, SizeNeeded, ValueNeeded
from ..garbage import collector_resting
from ..lazy_names import LateModule
from ..program.block import SharedBlocks
from ..runtime.debugging import debug, looking
from ..runtime.device import Device
from ..runtime.devices import device as open_device
from ..runtime.recent_values import Recent
from ..shapes import Needed, Size, show, show_sizes, size
from ..texts import escaped
from ..tracebacks import shortened
from .arguments import TensorSpec, bind, by_name, listed, unwrap
from .program import Program, refuse_call_when_traced
from .session import Call, JoinedSession, Session, kept_states
from .sizes import OpenSizes, without_bounds

if TYPE_CHECKING:
    from .. import graph as graphs
    from ..compiler import compile as compiling
    from ..graph import Graph
    from ..tensors.layer_statistics import LayerStatistics
    from . import debug_graph, objects, retrace
    from . import source as sources
    from .profiling import Profile
    from .retrace import Traces, Tracing
    from .source import Source
else:
    graphs, compiling = LateModule("graph"), LateModule("compiler.compile")
    debug_graph, objects, retrace, sources = (
        LateModule(f"model.{name}") for name in ("debug_graph", "objects", "retrace", "source")
    )

MAX_PROGRAMS: Final = 8
"""How many Programs a Model keeps."""

OF_TRACE: Final = ("_programs", "_served", "_needed", "_imported")
"""The fields that each trace of a function has of its own."""

MAX_SERVED_SIZES: Final = 256
"""How many sets of sizes a Model remembers that its Program serves as it is."""


@shortened
class Model:
    """A function, a module or an ONNX file, compiled for a device and called with arrays: `sg.load`, `sg.compile` and `Model.of`
    make one.

        model = sg.load("resnet.onnx", device="wasm")
        scores = model(image)

    It is compiled once for all sizes of its inputs, or again for each where it must be. Calls may keep states: see `session`.
    """

    def __init__(
        self,
        source: Graph | Source,
        device: str | Device = "auto",
        name: str = "model",
        activations: str = "float32",
        fail_on_host: bool = False,
        bounds: Mapping[str, int] | None = None,
        donate: Sequence[str] = (),
    ) -> None:
        """activations: "float32", "int16", "packed_int8" or "int8", the type in which products and convolutions compute (see `compile`);
        fail_on_host: refuse ops that cannot run on the device; bounds: the largest values of open sizes; donate: see `of`."""
        self.name: Final = name
        self.device: Final = open_device(device)
        self.source: Source = _source_of(source)
        self.inputs: Final = tuple(TensorSpec(x.name, x.dtype, x.shape) for x in self.source.inputs)
        self._programs: Recent[Program] = Recent(MAX_PROGRAMS)  # a Program that is dropped still works for its holders
        self._holding: Final[Recent[Model]] = Recent(MAX_PROGRAMS)  # by what the inputs hold that are no tensors
        self._blocks = SharedBlocks()
        self._served: Recent[bool] = Recent(MAX_SERVED_SIZES)  # sizes, and checks in branches that some do not meet
        self._needed: Needed | None = None  # None: not computed yet
        self._imported: Graph | None = None  # of which the first Program will be compiled
        self._traces: Traces | None = None  # of a function
        open_sizes = (str(d) for p in self.inputs for d in p.shape or () if isinstance(d, Size))
        self.sizes: Final = OpenSizes(open_sizes, bounds or {})
        names = [p.name for p in self.inputs]
        several = isinstance(donate, Collection) and not isinstance(donate, (str, Mapping))
        if not several or not all(x in names for x in donate):
            raise InputError(f"donate: got {donate!r}, expected a list of inputs, some of {', '.join(names) or 'none'}")
        self.options: Final = Options(activations, fail_on_host, bounds=self.sizes.bounds, donate=tuple(donate))

    @staticmethod
    def of(
        function: Callable[..., Any], input_shapes: Mapping[str, Sequence[int | str]], device: str | Device = "auto",
        *, dtypes: Mapping[str, Any] | None = None, states: Mapping[str, Any] | None = None,
        donate: Sequence[str] = (), name: str = "model",
    ) -> Model:  # fmt: skip
        """A Model of a function of Tensors, such as a Module: `Model.of(net, {"input": ("N", 3, 224, 224)})`.

        The inputs are given in order, with names of the caller's choice. A name in a shape keeps that dimension open, and
        "L<=512" also limits it. Inputs are float32 unless `dtypes` says otherwise. The output is called "output", unless
        the function returns a dict.

        states: values kept from run to run, by name: an initial array, or a (shape, dtype) for zeros. The function takes
        the states as keyword arguments, and returns a tuple of its outputs and a dict of the states' next values.

        donate: inputs that the caller does not need after a run. An output of the same shape and type may be computed in
        the memory of such an input, without a copy; on "numpy" the array that is given may then be the one returned.

        What the function takes from outside (variables, attributes, items) is compared at each run; when it has changed, the
        function is traced again, over the same states.
        """
        from ..tensors.tracing import observed_trace  # noqa: PLC0415

        named, bounds = without_bounds(input_shapes)
        if dtypes is not None and not isinstance(dtypes, Mapping):
            raise InputError(
                f"dtypes: got {dtypes!r:.80}, expected a dict of an input's name to its dtype, such as {{'x': 'int64'}}"
            )
        unknown = [k for k in dtypes or {} if k not in named]
        if unknown:
            raise InputError(f"dtypes are given for {', '.join(map(str, unknown))}; the inputs are {', '.join(named)}")
        kinds = {k: dtype((dtypes or {}).get(k, "float32")) for k in named}
        shapes = {k: tuple(size(d) if isinstance(d, str) else d for d in shape) for k, shape in named.items()}
        specs = [(k, shapes[k], kinds[k]) for k in named]
        return of_traces(lambda: observed_trace(function, specs, states), device, name, bounds=bounds, donate=donate)

    @property
    def states(self) -> tuple[TensorSpec, ...]:
        """What is kept from run to run."""
        with self.device.lock:
            self._refresh()
            return tuple(TensorSpec(x.name, x.dtype, x.shape) for x in self.source.states)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs; their shapes are known if the Graph can be built without a run."""
        with self.device.lock:
            self._refresh()
            s = self.source
            if None in s.output_shapes:
                with suppress(ShapeError, ImportFailure):
                    graph = self._imported or self._graph({}, {})
                    return tuple(map(_spec_of, graph.output_names, graph.outputs))
            return tuple(map(TensorSpec, s.output_names, s.output_dtypes, s.output_shapes))

    def __repr__(self) -> str:
        return f"<model {escaped(self.name)} on {self.device.name}: {listed(self._described())} → {listed(self.source.output_names)}>"

    def _described(self) -> list[str]:
        """Its inputs, for people."""
        kinds = self.source.objects
        return [f"{name}: {kind}" for name, kind in kinds.items()] if kinds else [str(p) for p in self.inputs]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it: arrays in order or by name (or one dict of them) → the output's array, or a dict of several by name.

        A list is a sequence, None an optional that holds nothing, a dict a map; results are such, too."""
        return resolve(self._called(args, kwargs), "await model.run_async(…)")

    async def run_async(self, *args: Any, **kwargs: Any) -> Any:
        """A call for a page, where results must be awaited."""
        return await resolve_async(self._called(args, kwargs))

    def session(self) -> Session:
        """A new session: runs called through it keep their own states, and share the weights."""
        return self._new_session(self._called, self.program)

    def _new_session(self, call: Call, program: Callable[[], Program]) -> Session:
        """A session, which may have no states yet if those of a later trace can be some."""
        states = self.states
        may_get_some = self._traces is not None and self._traces.may_change()
        return Session(states if may_get_some else kept_states(states), call, program)

    @cached_property
    def _own(self) -> Session:
        return Session(self.states, self._called, self.program)

    def seed(self, seed: int) -> None:
        """Begin the random numbers of a seed, in the model's own session; see `Session.seed`."""
        self._own.seed(seed)

    def _called(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], session: Session | None = None
    ) -> MaybeAwaitable[Any]:
        refuse_call_when_traced()
        model, arrays = self.bound(args, kwargs)
        with nullcontext() if len(model._programs) else collector_resting():  # the first answer waits for no collection
            runnable = model.program({k: a.shape for k, a in arrays.items()}, arrays)
            if runnable.data.states:
                session = session or self._own
            outputs = runnable.start([arrays[p.name] for p in runnable.inputs], session)
            names = tuple(runnable.results) or tuple(p.name for p in runnable.outputs)
            return map_result(outputs, lambda found: unwrap(self.results(runnable, found), names))

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Model, dict[str, np.ndarray]]:
        """Arguments as arrays by input name, and the model whose inputs these are: if arguments are lists, dicts or None,
        another one, for inputs that hold as much."""
        if not self.source.objects:
            return self, bind(self.inputs, args, kwargs)
        kinds = self.source.objects
        given, trees = by_name(tuple(kinds), args, kwargs, self._described()), {}
        arrays: dict[str, Any] = {}
        for name, kind in kinds.items():
            if kind.name == "tensor":
                arrays[name] = given[name]
            else:
                trees[name], parts = objects.parted(name, given[name], kind)
                arrays |= parts
        with self.device.lock:
            model = self._holding.at(
                tuple(trees.items()), lambda: self._over(self.source.holding(trees), self.device, self.options)
            )
        return model, bind(model.inputs, (), arrays)

    def results(self, runnable: Program, outputs: Sequence[np.ndarray]) -> list[Any]:
        """The results, in order: the outputs of a Program of this model, or lists and dicts made of them."""
        if not runnable.results:
            return list(outputs)
        arrays = {p.name: a for p, a in zip(runnable.outputs, outputs, strict=True)}
        return [objects.whole(runnable.results[name], arrays) for name in self.source.output_names]

    @property
    def needed(self) -> Needed:
        """The sizes and values for each set of which a separate Program is compiled. This is known before any run; but if
        some are needed, a run with these may find that others are needed too."""
        with self.device.lock:
            if self._needed is None:
                self._needed = self._open_graph()
            return self._needed

    def check(self) -> None:
        """Refuse a model that cannot be imported, as far as this is known before a run; the first Program is compiled of the
        Graph that is made for it."""
        if not self.source.objects:
            self._needed = self._open_graph(kept=True)

    def _open_graph(self, kept: bool = False) -> Needed:
        """What is needed beside open sizes; kept: the Graph, if nothing is, waits for the first Program."""
        found = self.source.graph({}, {})
        if isinstance(found, Needed):
            return found
        self._imported = found if kept else None
        return Needed()

    def graph(self, sizes: Mapping[str, int] | None = None, values: Mapping[str, np.ndarray] | None = None) -> Graph:
        """The Graph, with numbers for some of its sizes, and constants for some inputs."""
        with self.device.lock:
            self._refresh()
            return self._graph(sizes or {}, values or {})

    def _graph(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Graph:
        """`graph` of the trace in use, also if what the function took from outside changes meanwhile."""
        found = self.source.graph(sizes, values)
        if isinstance(found, Needed):
            raise found.error()
        return found

    def on(self, device: Device, options: Options) -> Model:
        """The same model on another device, or with other options."""
        with self.device.lock:
            self._refresh()
            made = self._over(self.source, device, options)
            made._traces = self._traces and self._traces.apart()
        for sizes in self.sizes.specialised():
            made.sizes.specialise(sizes)
        return made

    def joined(self, sessions: Sequence[Session]) -> Session:
        """A session whose states are those of sessions of another model, one after the other: runs change them."""
        return JoinedSession(sessions, self._called, self.program)

    def _over(self, source: Source, device: Device, options: Options) -> Model:
        """A model of the same name over another source, on another device or with other options; on the same device they
        share their weights."""
        o = options
        made = Model(source, device, self.name, o.activations, o.fail_on_host, o.bounds, o.donate)
        if device is self.device:
            made._blocks = self._blocks
        return made

    def share_weights(self, other: Model) -> None:
        """Hold equal weights once, together with another model on the same device, whose Programs need not be there yet."""
        if other.device is self.device:
            self._blocks = other._blocks

    def profile(self, *args: Any, repeat: int = 20, **kwargs: Any) -> Profile:
        """Where the time of a run goes, by kernel and by layer: `print(model.profile(x))`; `.save("run.svg")` writes a picture of it.
        repeat: how many runs are timed. It is compiled once more. The states of its own session stay as they are."""
        from .profiling import profile  # noqa: PLC0415 (only this needs what counts the work)

        if not isinstance(repeat, int) or repeat < 1:
            raise InputError(f"profile: repeat: got {repeat!r:.80}, expected a number of runs, at least 1")
        refuse_call_when_traced()
        model, arrays = self.bound(args, kwargs)
        with debug():  # in which it is noted where nodes come from
            runnable = model._anew().program({k: a.shape for k, a in arrays.items()}, arrays)
        return profile(runnable, [arrays[p.name] for p in runnable.inputs], repeat)

    def _anew(self) -> Model:
        """The same model without its Programs, which is traced again."""
        made = self.on(self.device, self.options)
        if made._traces is not None:
            from ..tensors.default_keys import no_block  # noqa: PLC0415 (a model of a file needs no tensors)

            with no_block():
                made._traces = retrace.Traces(made._traces.tracing, self.name)
            made.source = made._traces.present.source
        return made

    def statistics(self, *args: Any, **kwargs: Any) -> LayerStatistics:
        """The mean, deviation, least and most, zeros, NaN and infinities of what each layer gives for inputs: print it; in a notebook it is
        a picture. The states of its own session stay as they are."""
        from .description import layer_statistics  # noqa: PLC0415

        return layer_statistics(self, args, kwargs)

    def summary(self) -> str:
        """Its inputs, outputs and ops as text, and what each layer gives: `print(model.summary())`."""
        from .description import describe_layers, describe_model  # noqa: PLC0415

        return "\n\n".join([describe_model(self), *([] if self.needed else [describe_layers(self)])])

    def specialise(self, **sizes: int) -> None:
        """Add steps to the Program that are compiled for these sizes; runs at these sizes use them.

        Sizes that are not named stay open. The weights are shared. Compiling takes as long again; runs may be faster.
        """
        with self.device.lock:
            self.sizes.specialise(sizes)
            self._programs.clear()
            self._served.clear()

    @property
    def specialised(self) -> list[tuple[dict[str, int], Graph]]:
        """The sets of sizes for which the Program has separate steps, and the Graph at each."""
        with self.device.lock:
            self._refresh()
            return [(sizes, self._graph(sizes, {})) for sizes in self.sizes.specialised()]

    def program(
        self, shapes: Mapping[str, Sequence[int]] | None = None, values: Mapping[str, np.ndarray] | None = None
    ) -> Program:
        """The Program for inputs of these shapes (none given: all open dimensions symbolic), compiled if it is new."""
        sizes = {} if shapes is None else self._sizes(shapes)
        with self.device.lock:
            self._refresh()
            return self._program(sizes, values or {})

    def _refresh(self) -> None:
        """Trace a function again, if what it took from outside has changed. The caller holds the device's lock until it has what
        it needs of the trace: a thread may find other values outside than the next one, which puts its own trace in use."""
        if self._traces is None or self._traces.holds():
            return
        from ..tensors.default_keys import no_block  # noqa: PLC0415 (a model of a file needs no tensors)

        before = self._traces.present
        with no_block():
            after = self._traces.next()
        if after is not before:
            before.kept = {name: getattr(self, name) for name in OF_TRACE}
            fresh = {
                "_programs": Recent(MAX_PROGRAMS),
                "_served": Recent(MAX_SERVED_SIZES),
                "_needed": None,
                "_imported": None,
            }
            self.source = after.source
            vars(self).update(after.kept or fresh)

    def _every_program(self) -> list[Program]:
        """The Programs of all traces."""
        others = (
            ()
            if self._traces is None
            else (t.kept.get("_programs", ()) for t in self._traces if t is not self._traces.present)
        )
        return [p for programs in (self._programs, *others) for p in programs]

    def _program(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Program:
        while True:
            needed = self._needed or Needed()
            fixed = {k: n for k, n in sizes.items() if k in needed.sizes}
            known = {k: v for k, v in values.items() if k in needed.inputs}
            key = (tuple(sorted(fixed.items())), tuple((k, contents(v), v.shape) for k, v in known.items()))
            found = self._programs.get(key)
            if found is None:
                found = self._recalled(fixed, known)
                if found is not None:
                    self._programs.at(key, partial(_same, found))
            if found is None:
                graph = (None if fixed or known else self._imported) or self.source.graph(fixed, known)
                self._imported = None
                if not isinstance(graph, Needed):
                    self._needed = needed
                    try:
                        found = self._programs.at(key, partial(self._compiled, graph, fixed, known))
                    except SizeNeeded as e:  # the steps cannot be made for all sizes
                        if not e.sizes & sizes.keys() - fixed.keys():
                            raise
                        self._needed = needed | Needed.by(e)
                        continue
                elif (
                    graph.sizes.keys() & sizes.keys() - fixed.keys()
                    or graph.inputs.keys() & values.keys() - known.keys()
                ):
                    self._needed = needed | graph
                    continue
                else:
                    raise graph.error()
            at = key, tuple(sizes.items())
            if fixed == sizes or self._served.get(at):
                return found
            data = found.data.at(sizes)
            unmet, doubtful = data.unmet(sizes), data.doubtful(sizes)
            if unmet is not None or (doubtful and not self._served.get((key, doubtful))):
                try:
                    return self._programs.at(key, partial(self._met, sizes, fixed, known), anew=True)
                except SingeError as e:
                    if unmet is not None:
                        got = f"(got {show_sizes(sizes)})"
                        # an error of shapes says with numbers what the check says with names
                        text = f"{e} {got}" if isinstance(e, ShapeError) else f"{unmet} {got}: {e}"
                        raise ShapeError(text) from e
                    if isinstance(e, ValueNeeded):  # as it would be at other sizes
                        self._served.at((key, doubtful), lambda: True)
            self._served.at(at, lambda: True)
            return found

    def _recalled(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Program | None:
        """A Program that another process compiled, if it was kept."""
        return None

    def _compiled(self, graph: Graph, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Program:
        own = [(s, self._graph({**sizes, **s}, values)) for s in self.sizes.specialised(sizes)]
        data = compiling.compile_graph(
            graph,
            self.device.target,
            replace(self.options, specialised=own, shared=self._blocks, layers=looking()),
        )
        tracing = self._traces and self._traces.tracing
        return Program(data, self.device, graph.results, debug_graph.Remade(graph, self.source, tracing, sizes, values))

    def _met(self, sizes: Mapping[str, int], fixed: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Program:
        """A Program with separate steps for sizes that fail a check of the open steps; compiling for them may fail too."""
        own = {k: n for k, n in sizes.items() if k not in fixed}
        self.sizes.meet(own)
        try:
            found = self._recalled(fixed, values)
            if found is None and self._graph(sizes, values).refuses:
                raise ValueNeeded("at these sizes a branch cannot run", tuple(values))
            return found or self._compiled(self._graph(fixed, values), fixed, values)
        except SingeError:
            self.sizes.forget(own)
            raise

    def _sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """The open sizes, from the shapes of the inputs; a shape that does not fit is an error."""
        found: dict[str, int] = {}
        for p in self.inputs:
            try:
                given = shapes[p.name]
            except (KeyError, TypeError):
                raise InputError(
                    f"program: got {shapes!r:.80}, expected the shape of each input by name, as in {{{p.name!r}: (…)}}; the "
                    f"inputs are {', '.join(map(str, self.inputs))}"
                ) from None
            if not isinstance(given, (Sequence, np.ndarray)) or not all(
                isinstance(n, (int, np.integer)) for n in given
            ):
                raise InputError(
                    f"input {p.name!r}: got a {type(given).__name__}, expected its shape, a tuple of numbers"
                )
            shape = tuple(given)
            assert p.shape is not None
            if len(shape) != len(p.shape) or any(
                isinstance(d, int) and d != n for d, n in zip(p.shape, shape, strict=True)
            ):
                raise ShapeError(f"input {p.name!r}: got shape {shape}, expected {show(p.shape)}")
            for d, n in zip(p.shape, shape, strict=True):
                if isinstance(d, Size) and found.setdefault(str(d), n) != n:
                    apart = tuple(f"{d}_{p.name}" if e == d else e if isinstance(e, int) else str(e) for e in p.shape)
                    raise ShapeError(
                        f"input {p.name!r}: got shape {shape}, but {d} is {found[str(d)]} elsewhere; if the model calls two "
                        f"sizes {d}, load it with another name for one: input_shapes={{{p.name!r}: {apart}}}"
                    )
        self.sizes.check(found)
        return found


def _source_of(source: Any) -> Source:
    if hasattr(source, "with_layers"):
        return source
    if isinstance(source, graphs.Graph):
        return sources.GraphSource(source)
    raise InputError(
        f"Model: got a {type(source).__name__}, expected a Graph or a Source; sg.Model.of(function, shapes) makes a Model of "
        "a function or a module"
    )


def _spec_of(name: str, output: graphs.Node) -> TensorSpec:
    return TensorSpec(name, output.dtype, output.shape)


def _same(program: Program) -> Program:
    return program


def of_traces(tracing: Tracing, device: str | Device, name: str, **options: Any) -> Model:
    """The Model of a function that `tracing` traces, and traces again when what it took from outside has changed."""
    traces = retrace.Traces(tracing, name)
    model = Model(traces.present.source, device, name, **options)
    model._traces = traces
    return model
