"""Program: compiled code on a device, called with NumPy arrays."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..awaitables import MaybeAwaitable, map_result, resolve, resolve_async, together
from ..dtypes import own
from ..errors import DeviceError, InputError
from ..files import write
from ..lazy_names import LateModule
from ..program.format import pieces, read_program
from ..program.program import Host, ProgramData
from ..program.words import COPY
from ..runtime.backend import DirectExecutable, Executable
from ..runtime.debugging import check_run, finite, looking
from ..runtime.device import Device
from ..runtime.devices import device as open_device
from ..runtime.devices import device_for
from ..runtime.traced import refuse_when_traced
from ..tracebacks import shortened
from .arguments import TensorSpec, bind, listed, unwrap
from .session import Session, copies, kept_states

if TYPE_CHECKING:
    from ..compiler import compile as compiling
    from ..graph import Graph
    from .model import Model
else:
    compiling = LateModule("compiler.compile")


def refuse_call_when_traced() -> None:
    """Refuse a call of a Model or Program within a function that is traced: it would run then, and not in each run."""
    refuse_when_traced(
        "a call of a Model or Program",
        "call the function or Module itself that it was compiled from, or, for a file, the Module of sg.load_module(path)",
    )


@shortened
class Program:
    """Compiled code on a device, called with NumPy arrays; `save` writes it, `Program.load` reads it."""

    def __init__(
        self,
        data: ProgramData,
        on: Device,
        results: Mapping[str, Any] | None = None,
        remake_graph: Callable[[], Graph | None] = lambda: None,
        whole: Callable[[], ProgramData] | None = None,
    ) -> None:
        """results: see Graph. Only the Model makes lists and dicts of the outputs. remake_graph: makes the Graph of which it was compiled
        once more, if it can be had. whole: makes the Program that other devices run, too, if data is the part for this one."""
        self.data: Final = data
        self.device: Final = on
        self.results: Final = results or {}
        self.executable: Final[Executable] = on.eager.prepare(data)
        self._direct: Final = self.executable if isinstance(self.executable, DirectExecutable) else None
        self._made: Final = remake_graph
        self._whole: Final = whole
        self._copies: Final[dict[tuple[int, ...], Executable]] = {}  # by the numbers of states
        self._keys: Final = {k: s.draws for k, s in enumerate(data.states) if s.draws is not None}
        """The numbers of the states that are sequences of keys ↦ how many keys a run takes."""
        self._followed: Final = {k: n for k, n in self._keys.items() if data.states[k].initial is None}
        """Those that begin where the shared sequence is."""
        self._followed_model: Model | None = None
        self._shapes: Mapping[str, Sequence[int]] = {}

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names, dtypes and shapes of the inputs."""
        return self._ports(self.data.inputs)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names, dtypes and shapes of the outputs."""
        present = self._present()
        return present._ports(present.data.outputs)

    @property
    def states(self) -> tuple[TensorSpec, ...]:
        """Names, dtypes and shapes of what is kept from run to run."""
        return self._present()._kept()

    def _kept(self) -> tuple[TensorSpec, ...]:
        return self._ports([s.buffer for s in self.data.states])

    def __copy__(self) -> Program:
        made = object.__new__(type(self))
        made.__dict__ |= self.__dict__
        return made

    def __reduce__(self) -> Any:
        raise InputError(
            "Program: got a call of pickle or deepcopy, which cannot take what is on a device; program.save(path) writes it, and "
            "Program.load(path, device) reads it"
        )

    def __repr__(self) -> str:
        data = self.data
        held = sum(len(block) for block in (data.weights, *data.shared.values()))
        states = f"; states: {listed(self.states)}" if data.states else ""
        return (
            f"<program on {self.device.name}: {listed(self.inputs)} → {listed(self.outputs)}{states}; "
            f"steps: {len(data.steps)}, bytes of weights: {held}>"
        )

    def _following(self, model: Model, shapes: Mapping[str, Sequence[int]]) -> Program:
        """A Program that always runs as the one which a Model of a function has for what this takes from outside now. It is not
        this one, which the Model keeps: the two would keep each other in memory."""
        made = copy.copy(self)
        made._followed_model, made._shapes = model, shapes
        return made

    def _present(self) -> Program:
        return self if self._followed_model is None else self._followed_model.program(self._shapes)

    def session(self) -> Session:
        """A new session: runs called through it keep their own states, and share the weights."""
        if self._followed_model is not None:
            return self._followed_model._new_session(self._called, self._present)
        return Session(kept_states(self.states), self._called, self._present)

    @cached_property
    def _own(self) -> Session:
        return Session(self._kept(), self._called, self._present)

    def seed(self, seed: int) -> None:
        """Begin the random numbers of a seed, in the Program's own session; see `Session.seed`."""
        self._own.seed(seed)

    def _copy_into(self, session: Session, arrays: Mapping[int, Any]) -> None:
        """Copy arrays of the device into states of a session; the keys are the states' numbers."""
        on, which, kept = self.device.eager, tuple(arrays), self._kept()
        with on.lock:
            if which not in self._copies:
                graph = copies([kept[k] for k in which])
                self._copies[which] = on.prepare(compiling.compile_graph(graph, on.target))
            held = session.held(self)
            self._copies[which].run(list(arrays.values()), [held[k] for k in which])

    def _ports(self, numbers: Sequence[int]) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec(b.name, b.dtype, b.shape) for b in (self.data.buffers[i] for i in numbers))

    @property
    def memory(self) -> Mapping[str, int]:
        """Bytes held on the device."""
        with self.device.eager.lock:
            return self._present().executable.memory()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it: arrays in order or by name (or one dict of them) → the output's array, or a dict of several by name."""
        return resolve(self._called(args, kwargs), "await program.run_async(…)")

    async def run_async(self, *args: Any, **kwargs: Any) -> Any:
        """A call for a page, where results must be awaited."""
        return await resolve_async(self._called(args, kwargs))

    def _called(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], session: Session | None = None
    ) -> MaybeAwaitable[Any]:
        refuse_call_when_traced()
        arrays = bind(self.inputs, args, kwargs)
        present = self._present()
        names = [p.name for p in present.outputs]
        outputs = present._started([arrays[p.name] for p in self.inputs], session or self)
        return map_result(outputs, lambda found: unwrap(found, names))

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run it with checked arrays, in the order of the inputs; threads take turns."""
        wanted = len(self.data.inputs)
        listed = isinstance(arrays, (list, tuple))
        if not listed or len(arrays) != wanted or not all(isinstance(x, (np.ndarray, np.generic)) for x in arrays):
            given = f"[{', '.join(type(x).__name__ for x in arrays)}]" if listed else f"one {type(arrays).__name__}"
            raise InputError(
                f"run: got {given}, expected a list of {wanted} arrays, in the order of the inputs; "
                "a call, as in program(x), takes arrays by position or by name"
            )
        return resolve(self.start(arrays), "await program.run_async(…)")

    def start(self, arrays: Sequence[np.ndarray], session: Session | None = None) -> MaybeAwaitable[list[np.ndarray]]:
        """Start a run over the states of a session (None: the Program's own); `run` waits for its results."""
        return self._present()._started(arrays, session or self)

    def start_on_device(
        self, inputs: Sequence[Any], session: Session | None, kept: Collection[int]
    ) -> MaybeAwaitable[list[Any]]:
        """`start`, where inputs may be values of the device, and outputs of these numbers stay there as such."""
        session = session or self._own
        on = self.device.eager
        given = [own(x) if isinstance(x, np.ndarray) else x for x in inputs]
        if self.data.ranges:
            self.data.check_indices([x if isinstance(x, np.ndarray) else None for x in given])
        with on.lock:
            states = session.held(self)
            with session._following(self):
                values = [on.upload(x) if isinstance(x, np.ndarray) else x for x in given]
                found = self.executable.run(values, states)
            return together([x if k in kept else on.fetch(x) for k, x in enumerate(found)])

    def _started(self, arrays: Sequence[np.ndarray], states_of: Session | Program) -> MaybeAwaitable[list[np.ndarray]]:
        """states_of: whose states, if there are some."""
        on = self.device.eager
        arrays = [own(a) for a in arrays]
        if self.data.ranges:
            self.data.check_indices(arrays)
        with on.lock:
            if not self.data.states:
                return self._begun(arrays, ())
            session = states_of if isinstance(states_of, Session) else states_of._own
            states = session.held(self)
            if not self._followed:
                return self._begun(arrays, states)
            with session._following(self):
                return self._begun(arrays, states)

    def _begun(self, arrays: Sequence[np.ndarray], states: Sequence[Any]) -> MaybeAwaitable[list[np.ndarray]]:
        if looking():
            return self._looked(arrays, states)
        on = self.device.eager
        if self._direct is not None:
            return self._direct.call(arrays, states)
        return together([on.fetch(v) for v in self.executable.run([on.upload(a) for a in arrays], states)])

    def _looked(self, arrays: Sequence[np.ndarray], states: Sequence[Any]) -> list[np.ndarray]:
        """A run in a `debug` block: refused if an output or a state is not finite after it."""
        on = self.device.eager
        before = [on.download(v) for v in states]
        given = [on.upload(a) for a in arrays]
        found = [on.download(v) for v in self.executable.run(given, states)]
        names = [p.name for p in (*self.outputs, *self.states)]
        after = dict(zip(names, [*found, *map(on.download, states)], strict=True))

        def again(of: Graph) -> list[np.ndarray]:
            values = [on.upload(a) for a in arrays], [on.upload(a) for a in before]
            return [on.download(v) for v in on.prepare(compiling.compile_graph(of, on.target)).run(*values)]

        graph = None if all(map(finite, after.values())) else self._made()
        check_run(graph, [*arrays, *before], after, again, self._giver)
        return found

    def _giver(self, name: str) -> str:
        """What computes an output or a state, in words."""
        data = self.data
        buffers = (*data.outputs, *(s.buffer for s in data.states))
        ports = dict(zip((p.name for p in (*self.outputs, *self.states)), buffers, strict=True))
        for g in reversed(data.groups):
            if ports[name] in g.writes:
                if g.head > COPY:
                    return f"the kernel {data.kernels[g.head].label!r}"
                return f"the op {g.stop.op!r}" if isinstance(g.stop, Host) else "a copy"
        return "a copy"

    def save(self, path: str | Path) -> None:
        """Write it to a file, which `Program.load` reads: of a function, as it is with the values outside of it now."""
        present = self._present()
        write_program(present.data if present._whole is None else present._whole(), path)

    @staticmethod
    def load(path: str | Path, device: str | Device | None = None) -> Program:
        """A Program from a file, on a device that runs its target (by default the most preferred one)."""
        return _on_device(read_program(path), device)

    def dispose(self) -> None:
        """Free its memory; it cannot be used any more. Of a function: nor can the Programs of what it took from outside before."""
        with self.device.eager.lock:
            if self._followed_model is not None:
                for program in self._followed_model._every_program():
                    program.dispose()
                self._followed_model = None
            for held in (self.executable, *self._copies.values()):
                held.dispose()
            self._copies.clear()


def write_program(program: ProgramData, path: str | Path) -> None:
    """Write a Program to one file, which has it all or stays as it was. Its weights are not copied."""
    write(Path(path), pieces(program))


def _on_device(data: ProgramData, device_argument: str | Device | None) -> Program:
    on = device_for(data.target) if device_argument in (None, "auto") else open_device(device_argument)
    target = on.target.name
    if target != data.target:
        raise DeviceError(
            f"the program was compiled for {data.target!r}, and {on!r} runs {target!r}; compile it again for this device"
        )
    return Program(data, on)
