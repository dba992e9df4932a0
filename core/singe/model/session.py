"""Sessions: each one keeps its own states of a model from run to run; all share one set of weights.

    session = model.session()
    session(x)                             # a run; it leaves its states for the next one
    branch = session.copy()                # both continue from here
    session.write("count", branch.read("count"))
    session.reset()                        # the initial values again

States are kept on the device, where runs change them in place. Calling the model itself uses a session of the model's own.

A model that draws random numbers keeps a sequence of keys among its states. Until somebody sets it, by `seed` or `write`, each
run takes its keys from the shared sequence (runtime/random_keys.py) in its place, or from the block `with nn.drawing(key):` in which
it is, so that it draws what the same lines would draw eagerly. From then on it goes on by itself, and reset() begins it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ..awaitables import MaybeAwaitable, resolve, resolve_async
from ..errors import DeviceError, InputError, ShapeError
from ..lazy_names import LateModule
from ..runtime.traced import refuse_when_traced
from ..shapes import show
from ..tracebacks import shortened
from .arguments import TensorSpec, as_array, listed

if TYPE_CHECKING:
    from .. import graph as graphs
    from ..graph import Graph
    from ..runtime import random_keys
    from .program import Program
else:
    graphs, random_keys = LateModule("graph"), LateModule("runtime.random_keys")


NOTHING_DRAWN: Final = "seed: this model draws no random numbers without a key, so there is nothing to seed; a key that is an input decides itself"


Call: TypeAlias = "Callable[[Sequence[Any], Mapping[str, Any], Session], MaybeAwaitable[Any]]"


@shortened
class Session:
    """The states of a model from run to run, such as a cache or what it draws next; all sessions share one set of weights.
    `Model.session()` and `Program.session()` make them.

        session = model.session()
        session(x)                  # a run, which leaves its states for the next one
        branch = session.copy()     # both go on from here; read, write, seed and reset change one of them
    """

    def __init__(
        self,
        states: Sequence[TensorSpec],
        call: Call,
        program: Callable[[], Program],
    ) -> None:
        """call: a run of the model with arguments, over this session; program: one of the model's Programs."""
        self.states = tuple(states)
        """Those that a run has had so far: a function that is traced again may draw where it did not, and the reverse; its keys are
        the last state."""
        self._widest: Program | None = None
        """The Program that has these, once something needed them."""
        self._call: Final = call
        self._program: Final = program
        self._arrays: list[Any] | None = None  # on the device, once something needs them
        self._disposed = False
        self._seeded: Mapping[int, np.ndarray] = {}
        """The states that are sequences of keys, as `seed` or `write` set them."""
        self._follows: random_keys.Words | None = None
        """What the device has of the shared sequence, if it has any of it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the states."""
        return tuple(s.name for s in self.states)

    def __repr__(self) -> str:
        return f"<session: {listed(self.states)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A run, called like the model."""
        return resolve(self._call(args, kwargs, self), "await session.run_async(…)")

    async def run_async(self, *args: Any, **kwargs: Any) -> Any:
        """A run in a page, where results must be awaited."""
        return await resolve_async(self._call(args, kwargs, self))

    def reset(self) -> None:
        """Set all states to their initial values; a sequence of keys that was set, to what it was set to."""
        self._check()
        self._arrays = None

    def copy(self) -> Session:
        """A new session that starts with the present states of this one."""
        self._check()
        made = Session(self.states, self._call, self._program)
        if self._arrays is not None and self._widest is not None:
            self._widest._copy_into(made, dict(enumerate(self._arrays)))
        made._seeded, made._follows = self._seeded, self._follows
        return made

    def seed(self, seed: int) -> None:
        """Begin the random numbers of a seed: equal seeds, equal numbers, on every device, as `sg.manual_seed` gives them
        eagerly."""
        self._check()
        number, program = random_keys.checked_seed(seed, "seed"), self._program()
        if not program._keys:
            raise InputError(NOTHING_DRAWN)
        for k in program._keys:
            self._write(program, k, random_keys.as_array(random_keys.begun(number)))

    def read(self, name: str) -> np.ndarray:
        """A copy of a state's elements."""
        return resolve(self.fetch(name), "await session.read_async(name)")

    async def read_async(self, name: str) -> np.ndarray:
        """`read` for a page, where results must be awaited."""
        return await resolve_async(self.fetch(name))

    def fetch(self, name: str) -> MaybeAwaitable[np.ndarray]:
        """`read` for code that serves both."""
        refuse_when_traced(f"the state {name!r} of a session", "read it before, and pass it as an argument")
        k = self._index(name)
        program = self._with(k)
        if k in program._followed and k not in self._seeded:
            return random_keys.as_array(random_keys.shared())
        return program.device.eager.fetch(self.held(program)[k])

    def write(self, name: str, array: Any) -> None:
        """Set a state to an array of its shape and dtype, or to numbers in lists."""
        k = self._index(name)
        spec = self.states[k]
        given = as_array(array, spec, "state")
        if given.shape != spec.shape:
            raise ShapeError(f"state {name!r}: got shape {given.shape}, expected {show(spec.shape or ())}")
        self._write(self._with(k), k, given)

    def _with(self, k: int) -> Program:
        """One of the model's Programs that has a state of this number."""
        program = self._program()
        return program if k < len(program.data.states) or self._widest is None else self._widest

    def _write(self, program: Program, k: int, array: np.ndarray) -> None:
        if k in program._keys:
            self._seeded = {**self._seeded, k: np.array(array)}
        program._copy_into(self, {k: program.device.eager.upload(array)})

    def dispose(self) -> None:
        """Free its memory; the session cannot be used afterwards."""
        self._disposed = True
        self._arrays = self._widest = None

    def held(self, program: Program) -> list[Any]:
        """The arrays of the states, for a run of one of the model's Programs."""
        with program.device.eager.lock:
            self._check()
            count = len(program.data.states)
            if self._widest is None or count > len(self._widest.data.states):
                self._widest, self.states = program, program._kept()
            widest, have = self._widest, len(self._arrays or ())
            if self._arrays is None or have < len(self.states):
                self._arrays = [*(self._arrays or ()), *widest.executable.new_states()[have:]]
                self._follows = None
                begun = {k: array for k, array in self._seeded.items() if k >= have}
                if begun:
                    widest._copy_into(self, {k: widest.device.eager.upload(array) for k, array in begun.items()})
            return self._arrays if count == len(self._arrays) else self._arrays[:count]

    @contextmanager
    def _following(self, program: Program) -> Iterator[None]:
        """A context for a run of one of the model's Programs, which takes its keys from the shared sequence."""
        k, draws = next(((k, n) for k, n in program._followed.items() if k not in self._seeded), (None, 0))
        if k is None or not draws:
            yield
            return
        from ..tensors.default_keys import taken  # noqa: PLC0415 (a model of a file needs no tensors)

        follows, self._follows = self._follows, None  # if the run fails, nobody knows what the device has
        first = taken(draws)
        if follows != first:
            program._copy_into(self, {k: program.device.eager.upload(random_keys.as_array(first))})
        yield
        self._follows = random_keys.after(first, draws)

    def _check(self) -> None:
        if self._disposed:
            raise DeviceError("this session was disposed of; model.session() makes another")

    def _index(self, name: str) -> int:
        self._check()
        if name not in self.names:
            raise InputError(f"there is no state {name!r}; the states are {', '.join(map(str, self.states))}")
        return self.names.index(name)


class JoinedSession(Session):
    """The states of several sessions of a model one after the other, as another model has them: its runs change those."""

    def __init__(self, sessions: Sequence[Session], call: Call, program: Callable[[], Program]) -> None:
        super().__init__((), call, program)
        self._sessions: Final = tuple(sessions)

    def held(self, program: Program) -> list[Any]:
        return [x for one in self._sessions for x in one.held(one._program())]


def kept_states(states: Sequence[TensorSpec]) -> Sequence[TensorSpec]:
    """The states of a new session, of which there must be some."""
    if not states:
        raise InputError("this model has no states, so a session has nothing to keep: call the model itself")
    return states


def copies(states: Sequence[TensorSpec]) -> Graph:
    """The Graph of a run that copies its inputs to the states."""
    given = tuple(graphs.leaf(s.shape or (), s.dtype, f"x{k}") for k, s in enumerate(states))
    kept = (graphs.leaf(s.shape or (), s.dtype, s.name) for s in states)
    return graphs.Graph(
        given, (), (), states=tuple(graphs.GraphState(k, k.name, None, x) for k, x in zip(kept, given, strict=True))
    )
