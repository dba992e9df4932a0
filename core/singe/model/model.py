"""Models and Programs that run: `load` and `compile` make them, calling them with NumPy arrays runs them.

A Model keeps its source (a Graph or an ONNX file) and compiles it once, for open sizes: one Program serves all sizes. If
the Graph cannot be built like that, `Model.needed` says which sizes must be numbers, which inputs' values must be known,
and why. Then each set of these gets a Program; the latest PROGRAMS of them are kept. They share their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..compiler.build import Options, compile_graph
from ..compiler.target import name_of
from ..dtypes import dtype
from ..errors import DeviceError, FormatError, ImportFailure, InputError, ShapeError, SingeError, ValueNeeded
from ..graph import Graph, Needed, contents, specialise
from ..nn import Module
from ..program.block import SharedBlocks
from ..program.container import MAGIC
from ..program.format import read_program, write_program
from ..program.program import ProgramData
from ..runtime.backend import DirectExecutable, Executable
from ..runtime.device import Device
from ..runtime.devices import device as open_device
from ..runtime.devices import device_async, device_for
from ..runtime.download import fetched, local_file
from ..runtime.files import mapped, write
from ..runtime.page import is_url, stem_of
from ..runtime.recent import Recent
from ..runtime.waiting import IN_PAGE, Later, now, soon, then, together
from ..shapes import Size, show, show_sizes, size
from ..weights.files import kind_of
from ..weights.records import is_container, model_record, read_graph, stored_as, weights_record
from ..weights.safetensors import SAFETENSORS, write_safetensors
from .arguments import TensorSpec, bind, by_name, unwrap
from .objects import parted, whole
from .session import Session, copies
from .sizes import OpenSizes, without_bounds
from .source import GraphSource, Source
from .states import PairedSource

PROGRAMS: Final = 8
"""How many Programs a Model keeps."""


SERVED: Final = 256
"""How many sets of sizes a Model remembers that its Program serves as it is."""

OTHERS: Final = frozenset(
    {".bin", ".ckpt", ".gguf", ".h5", ".npy", ".npz", ".onnx", ".pb", ".pickle", ".pkl", ".pt", ".pth"}
)
"""Suffixes of formats that `save` does not write."""


class Program:
    """Compiled code on a device, called with NumPy arrays; `save` writes it, `Program.load` reads it."""

    def __init__(self, data: ProgramData, on: Device, results: Mapping[str, Any] | None = None) -> None:
        """results: see Graph. Only the Model makes lists and dicts of the outputs."""
        self.data: Final = data
        self.device: Final = on
        self.results: Final = results or {}
        self.executable: Final[Executable] = on.eager.prepare(data)
        self._direct: Final = self.executable if isinstance(self.executable, DirectExecutable) else None
        self._copies: Final[dict[tuple[int, ...], Executable]] = {}  # by the numbers of states

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self._ports(self.data.inputs)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self._ports(self.data.outputs)

    @property
    def states(self) -> tuple[TensorSpec, ...]:
        return self._ports([s.buffer for s in self.data.states])

    def session(self) -> Session:
        """A new session: runs called through it keep their own states, and share the weights."""
        return Session(self.states, self._called, lambda: self)

    @cached_property
    def _own(self) -> Session:
        return self.session()

    def copy_into(self, session: Session, arrays: Mapping[int, Any]) -> None:
        """Copy arrays of the device into states of a session; the keys are the states' numbers."""
        on, which = self.device.eager, tuple(arrays)
        with on.lock:
            if which not in self._copies:
                graph = copies([self.states[k] for k in which])
                self._copies[which] = on.prepare(compile_graph(graph, on.target))
            held = session.held(self)
            self._copies[which].run(list(arrays.values()), [held[k] for k in which])

    def _ports(self, numbers: Sequence[int]) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec(b.name, b.dtype, b.shape) for b in (self.data.buffers[i] for i in numbers))

    @property
    def memory(self) -> Mapping[str, int]:
        """Bytes held on the device."""
        with self.device.eager.lock:
            return self.executable.memory()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it: arrays in order or by name (or one dict of them) → the output's array, or a dict of several by name."""
        return now(self._called(args, kwargs), "await program.run_async(…)")

    async def run_async(self, *args: Any, **kwargs: Any) -> Any:
        """A call for a page, where results must be awaited."""
        return await soon(self._called(args, kwargs))

    def _called(self, args: Sequence[Any], kwargs: Mapping[str, Any], session: Session | None = None) -> Later[Any]:
        arrays = bind(self.inputs, args, kwargs)
        names = [p.name for p in self.outputs]
        outputs = self.start([arrays[p.name] for p in self.inputs], session)
        return then(outputs, lambda found: unwrap(found, names))

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run it with checked arrays, in the order of the inputs; threads take turns."""
        return now(self.start(arrays), "await program.run_async(…)")

    def start(self, arrays: Sequence[np.ndarray], session: Session | None = None) -> Later[list[np.ndarray]]:
        """Start a run over the states of a session (None: the Program's own); `run` waits for its results."""
        on = self.device.eager
        with on.lock:
            states = (session or self._own).held(self) if self.data.states else ()
            if self._direct is not None:
                return self._direct.call(arrays, states)
            return together([on.fetch(v) for v in self.executable.run([on.upload(a) for a in arrays], states)])

    def save(self, path: str | Path) -> None:
        write_program(self.data, path)

    @staticmethod
    def load(path: str | Path, device: str | Device | None = None) -> Program:
        """A Program from a file, on a device that runs its target (by default the most preferred one)."""
        return _on_device(read_program(path), device)

    def dispose(self) -> None:
        """Free its memory; it cannot be used any more."""
        with self.device.eager.lock:
            for held in (self.executable, *self._copies.values()):
                held.dispose()
            self._copies.clear()


def _on_device(data: ProgramData, given: str | Device | None) -> Program:
    on = device_for(data.target) if given is None else open_device(given)
    target = name_of(on.target)
    if target != data.target:
        raise DeviceError(
            f"the program was compiled for {data.target!r}, and {on!r} runs {target!r}; compile it again for this device"
        )
    return Program(data, on)


class Model:
    """See the module's docstring."""

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
        """activations: "float32" or "int8", the type in which products and convolutions compute (see `compile`);
        fail_on_host: refuse ops that cannot run on the device; bounds: the largest values of open sizes; donate: see `of`."""
        self.name: Final = name
        self.device: Final = open_device(device)
        self.source: Final = GraphSource(source) if isinstance(source, Graph) else source
        self.inputs: Final = tuple(TensorSpec(x.name, x.dtype, x.shape) for x in self.source.inputs)
        self.states: Final = tuple(TensorSpec(x.name, x.dtype, x.shape) for x in self.source.states)
        self._programs: Recent[Program] = Recent(PROGRAMS)  # a Program that is dropped still works for its holders
        self._holding: Final[Recent[Model]] = Recent(PROGRAMS)  # by what the inputs hold that are no tensors
        self._blocks: Final = SharedBlocks()
        self._served: Final[Recent[bool]] = Recent(SERVED)  # sizes, and checks in branches that some do not meet
        self._needed: Needed | None = None  # None: not computed yet
        open_sizes = (str(d) for p in self.inputs for d in p.shape or () if isinstance(d, Size))
        self.sizes: Final = OpenSizes(open_sizes, bounds or {})
        names = [p.name for p in self.inputs]
        if isinstance(donate, str) or not set(donate) <= set(names):
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
        """
        from ..frontend.tracing import trace  # noqa: PLC0415

        unknown = [k for k in dtypes or {} if k not in input_shapes]
        if unknown:
            raise InputError(f"dtypes are given for {', '.join(unknown)}; the inputs are {', '.join(input_shapes)}")
        kinds = {k: dtype((dtypes or {}).get(k, "float32")) for k in input_shapes}
        named, bounds = without_bounds(input_shapes)
        shapes = {k: tuple(size(d) if isinstance(d, str) else d for d in shape) for k, shape in named.items()}
        graph = trace(function, [(k, shapes[k], kinds[k]) for k in named], states)
        return Model(graph, device, name, bounds=bounds, donate=donate)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs; their shapes are known if the Graph can be built without a run."""
        try:
            graph = self.graph()
        except (ShapeError, ImportFailure):
            declared = zip(self.source.output_names, self.source.output_dtypes, strict=True)
            return tuple(TensorSpec(name, kind, None) for name, kind in declared)
        return tuple(
            TensorSpec(name, n.dtype, n.shape) for name, n in zip(graph.output_names, graph.outputs, strict=True)
        )

    def __repr__(self) -> str:
        return f"<model {self.name} on {self.device.name}: {', '.join(self._described())} → {', '.join(self.source.output_names)}>"

    def _described(self) -> list[str]:
        """Its inputs, for people."""
        kinds = self.source.objects
        return [f"{name}: {kind}" for name, kind in kinds.items()] if kinds else [str(p) for p in self.inputs]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it: arrays in order or by name (or one dict of them) → the output's array, or a dict of several by name.

        A list is a sequence, None an optional that holds nothing, a dict a map; results are such, too."""
        return now(self._called(args, kwargs), "await model.run_async(…)")

    async def run_async(self, *args: Any, **kwargs: Any) -> Any:
        """A call for a page, where results must be awaited."""
        return await soon(self._called(args, kwargs))

    def session(self) -> Session:
        """A new session: runs called through it keep their own states, and share the weights."""
        return Session(self.states, self._called, self.program)

    @cached_property
    def _own(self) -> Session:
        return self.session()

    def _called(self, args: Sequence[Any], kwargs: Mapping[str, Any], session: Session | None = None) -> Later[Any]:
        if self.states:
            session = session or self._own
        model, arrays = self.bound(args, kwargs)
        runnable = model.program({k: a.shape for k, a in arrays.items()}, arrays)
        outputs = runnable.start([arrays[p.name] for p in runnable.inputs], session)
        return then(outputs, lambda found: unwrap(self.results(runnable, found), self.source.output_names))

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
                trees[name], parts = parted(name, given[name], kind)
                arrays |= parts
        with self.device.lock:
            model = self._holding.at(tuple(trees.items()), lambda: self._over(self.source.holding(trees), self.device))
        return model, bind(model.inputs, (), arrays)

    def results(self, runnable: Program, outputs: Sequence[np.ndarray]) -> list[Any]:
        """The results, in order: the outputs of a Program of this model, or lists and dicts made of them."""
        if not runnable.results:
            return list(outputs)
        arrays = {p.name: a for p, a in zip(runnable.outputs, outputs, strict=True)}
        return [whole(runnable.results[name], arrays) for name in self.source.output_names]

    @property
    def needed(self) -> Needed:
        """The sizes and values for each set of which a separate Program is compiled. This is known before any run; but if
        some are needed, a run with these may find that others are needed too."""
        if self._needed is None:
            found = self.source.graph({}, {})
            self._needed = found if isinstance(found, Needed) else Needed()
        return self._needed

    def graph(self, sizes: Mapping[str, int] | None = None, values: Mapping[str, np.ndarray] | None = None) -> Graph:
        """The Graph, with numbers for some of its sizes, and constants for some inputs."""
        found = self.source.graph(sizes or {}, values or {})
        if isinstance(found, Needed):
            raise found.error()
        return found

    def on(self, device: Device, options: Options) -> Model:
        """The same model on another device, or with other options."""
        made = self._over(self.source, device, options)
        for sizes in self.sizes.specialised():
            made.sizes.specialise(sizes)
        return made

    def _over(self, source: Source, device: Device, options: Options | None = None) -> Model:
        """A model of the same name and options over another source, or on another device."""
        o = options or self.options
        return Model(source, device, self.name, o.activations, o.fail_on_host, o.bounds, o.donate)

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
        return [(sizes, self.graph(sizes)) for sizes in self.sizes.specialised()]

    def program(
        self, shapes: Mapping[str, Sequence[int]] | None = None, values: Mapping[str, np.ndarray] | None = None
    ) -> Program:
        """The Program for inputs of these shapes (none given: all open dimensions symbolic), compiled if it is new."""
        sizes = {} if shapes is None else self._sizes(shapes)
        with self.device.lock:
            return self._program(sizes, values or {})

    def _program(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Program:
        while True:
            needed = self._needed or Needed()
            fixed = {k: n for k, n in sizes.items() if k in needed.sizes}
            known = {k: v for k, v in values.items() if k in needed.inputs}
            key = (tuple(sorted(fixed.items())), tuple((k, contents(v), v.shape) for k, v in known.items()))
            found = self._programs.get(key)
            if found is None:
                graph = self.source.graph(fixed, known)
                if not isinstance(graph, Needed):
                    self._needed = needed
                    found = self._programs.at(key, partial(self._compiled, graph, fixed, known))
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
                        raise ShapeError(f"{unmet} (got {show_sizes(sizes)}): {e}") from e
                    if isinstance(e, ValueNeeded):  # as it would be at other sizes
                        self._served.at((key, doubtful), lambda: True)
            self._served.at(at, lambda: True)
            return found

    def _compiled(self, graph: Graph, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Program:
        own = [(s, self.graph({**sizes, **s}, values)) for s in self.sizes.specialised(sizes)]
        data = compile_graph(graph, self.device.target, replace(self.options, specialised=own, shared=self._blocks))
        return Program(data, self.device, graph.results)

    def _met(self, sizes: Mapping[str, int], fixed: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Program:
        """A Program with separate steps for sizes that fail a check of the open steps; compiling for them may fail too."""
        self.sizes.meet({k: n for k, n in sizes.items() if k not in fixed})
        try:
            return self._compiled(self.graph(fixed, values), fixed, values)
        except SingeError:
            self.sizes.forget({k: n for k, n in sizes.items() if k not in fixed})
            raise

    def _sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """The open sizes, from the shapes of the inputs; a shape that does not fit is an error."""
        found: dict[str, int] = {}
        for p in self.inputs:
            shape = tuple(shapes[p.name])
            assert p.shape is not None
            if len(shape) != len(p.shape) or any(
                isinstance(d, int) and d != n for d, n in zip(p.shape, shape, strict=True)
            ):
                raise ShapeError(f"input {p.name!r}: got shape {shape}, expected {show(p.shape)}")
            for d, n in zip(p.shape, shape, strict=True):
                if isinstance(d, Size) and found.setdefault(str(d), n) != n:
                    raise ShapeError(f"input {p.name!r}: got shape {shape}, but {d} is {found[str(d)]} elsewhere")
        self.sizes.check(found)
        return found


def load(
    path: str | Path | bytes,
    device: str | Device = "auto",
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    name: str | None = None,
    states: Mapping[str, str] | None = None,
    *,
    fail_on_host: bool = False,
    donate: Sequence[str] = (),
) -> Model:
    """A Model from an ONNX file or a record that `save` wrote: a path, bytes, or a URL, such as hf://owner/repo/file, which
    is kept in a cache folder (singe/runtime/download.py). input_shapes gives numbers, or names, for dimensions that it
    leaves open. "L<=512" in place of the name L also limits it: memory for 512 is allocated once, and larger runs are
    refused.

    states: each input and the output that is its next value, as in {"past": "present"}: the Model keeps them from run to
    run, starting with zeros (see `session`). fail_on_host: compiling fails if an op would run on the host. donate: inputs
    in whose memory outputs may be computed, as in `Model.of`.
    """
    url = path if isinstance(path, str) and is_url(path) else None
    if url is not None:
        path, name = local_file(url), name or stem_of(url)
    name = name or (Path(path).stem if isinstance(path, (str, Path)) else "model")
    shapes, bounds = without_bounds(input_shapes)
    record = _record(path)
    if record is not None:
        source: Source = GraphSource(
            _closed(read_graph(record, str(path) if isinstance(path, (str, Path)) else name), shapes)
        )
    else:
        from ..onnx.model import read_model  # noqa: PLC0415 (`import singe` pays for no importer)
        from ..onnx.source import OnnxSource  # noqa: PLC0415

        fetch = None if url is None else partial(local_file, url)
        try:
            read = read_model(path, name=url, fetch=fetch)
        except FormatError as e:
            kind = kind_of(memoryview(path) if isinstance(path, bytes) else mapped(Path(path)))
            if kind is None:
                raise
            raise FormatError(
                f"{url or (name if isinstance(path, bytes) else path)}: these are weights without a model ({kind}): "
                "singe.load_weights(module, path) reads them"
            ) from e
        source = OnnxSource(read, shapes)
    source = PairedSource(source, states) if states else source
    return Model(source, device, name, fail_on_host=fail_on_host, bounds=bounds, donate=donate)


def _record(path: str | Path | bytes) -> bytes | None:
    """The bytes of a file of Singe; None if it is another file, or cannot be read (the ONNX reader reports that)."""
    if isinstance(path, bytes):
        return path if is_container(path) else None
    try:
        with Path(path).open("rb") as file:
            head = file.read(len(MAGIC))
            return head + file.read() if is_container(head) else None
    except OSError:
        return None


def _closed(graph: Graph, shapes: Mapping[str, Sequence[int | str]]) -> Graph:
    """The graph with the numbers that these shapes give for its sizes."""
    inputs = {x.name: x for x in graph.inputs}
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        if name not in inputs:
            raise InputError(f"a shape is given for {name!r}; the inputs are {', '.join(inputs) or 'none'}")
        own = inputs[name].shape
        for d, n in zip(own, shape, strict=len(own) == len(shape)):
            known = d if isinstance(d, int) else sizes.setdefault(str(d), n) if isinstance(n, int) else n
            if len(own) != len(shape) or known != n:
                raise InputError(f"the input {name!r} has the shape {show(own)}, got {tuple(shape)}")
    return specialise(graph, sizes) if sizes else graph


def save(what: Model | Module, path: str | Path, dtype: str | None = None, shard_bytes: int | None = None) -> None:
    """Write a record: a Model, which `load` reads, or the weights of a Module, which `load_weights` reads. Weights are written
    as safetensors if the path ends so; shard_bytes then splits them into files of about that size, with an index. A record's
    path ends in .singe, or as the caller likes, but not in the suffix of another format.

    dtype="float16" stores float32s in half the bytes; reading widens them again.
    """
    if not isinstance(what, (Model, Module)):
        raise InputError(f"save: got a {type(what).__name__}, expected a Model or a Module; a Program has save(path)")
    suffix, stem = Path(path).suffix.lower(), Path(path).stem
    if isinstance(what, Model):
        if suffix in OTHERS or suffix == SAFETENSORS:
            raise InputError(f"save: {path}: a Model is written as a record, {stem}.singe, not as {suffix}")
        return write(Path(path), [model_record(what.graph(), dtype)])
    if suffix in OTHERS:
        raise InputError(
            f"save: {path}: the weights of a Module are written as {stem}{SAFETENSORS}, or as a record, {stem}.singe, not as {suffix}"
        )
    state = {name: t.numpy() for name, t in what.state_dict().items()}
    if suffix == SAFETENSORS:
        return write_safetensors(Path(path), {k: stored_as(a, dtype) for k, a in state.items()}, shard_bytes)
    if shard_bytes is not None:
        raise InputError(f"save: {path} is one file; only {SAFETENSORS} files are split by shard_bytes")
    return write(Path(path), [weights_record(state, dtype)])


async def load_async(
    path: str | Path | bytes,
    device: str | Device = "auto",
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    name: str | None = None,
    states: Mapping[str, str] | None = None,
    *,
    fail_on_host: bool = False,
    donate: Sequence[str] = (),
) -> Model:
    """`load` for a page, where a device must be awaited; there, a URL is fetched by the browser, which keeps it in its own cache."""
    on = await device_async(device)
    if IN_PAGE and isinstance(path, str) and is_url(path):
        url, path = path, await fetched(path)
        name = name or stem_of(url)
    return load(path, on, input_shapes, name, states, fail_on_host=fail_on_host, donate=donate)


def compile(
    what: Model | Graph | Callable[..., Any],
    *examples: Any,
    device: str | Device = "auto",
    activations: str | None = None,
    fail_on_host: bool | None = None,
    states: Mapping[str, Any] | None = None,
    donate: Sequence[str] = (),
) -> Program:
    """A Program from a Model, a Graph, or a function of Tensors and examples of its arguments.

    states, donate: only for a function, as in `Model.of`. The inputs of a function are called "x0", "x1", ….

    activations="int8" computes products and convolutions with constant weights in 8-bit integers: faster on `wasm`, and
    less accurate. Other devices give the same results, but slowly. fail_on_host refuses ops that cannot run on the device.
    An option that is not given stays as the Model has it.
    """
    given = {"activations": activations, "fail_on_host": fail_on_host}
    chosen: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    if isinstance(what, Graph):
        what = Model(what, device, donate=donate)
        donate = ()
    if isinstance(what, Model):
        if states is not None:
            raise InputError("compile: states are given with a function of Tensors; a model has its own already")
        if donate:
            raise InputError("compile: donate is given with a function of Tensors; a model has its own already")
        shapes = None if not examples else {p.name: np.shape(x) for p, x in zip(what.inputs, examples, strict=True)}
        on = what.device if device == "auto" else open_device(device)
        options = replace(what.options, **chosen)
        if (on, options) != (what.device, what.options):
            what = what.on(on, options)
        return what.program(shapes)
    from ..frontend.tracing import trace_call  # noqa: PLC0415

    shapes = {f"x{i}": np.shape(x) for i, x in enumerate(examples)}
    graph = trace_call(what, examples, states)
    model = Model(graph, device, donate=donate, **chosen)
    return model.program(shapes)
