"""Executables of the backend "wasm": Programs with their modules linked and their weights in memory.

An executable keeps the words of Plans for the last few sets of input shapes, with addresses in place of buffers; shapes that differ in
bounded sizes share them. A run fills in the addresses of its inputs, outputs and states, and passes all words to the engine at once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakSet

import numpy as np

from singe.extension import (
    DeviceError,
    DType,
    FormatError,
    Found,
    HostArray,
    InputError,
    MemoryKind,
    Place,
    Plan,
    ProgramData,
    Recent,
    align,
    check_donated,
    choose_variant,
    known,
    run_host_step,
    string,
    symbols,
)
from singe.extension import words as heads

from .calls import NAME, function_number
from .memory import WasmArray, WasmMemory

MAX_PLANS: Final = 64
"""How many sets of input shapes an executable remembers."""

Shapes: TypeAlias = Sequence[tuple[int, ...]]


if TYPE_CHECKING:
    from .shared_calls import SharedCalls


class Placed:
    """A Plan with its words as the driver takes them. where: a place whose address differs from run to run ↦ the words
    that hold its address. last: the address that they hold now. sharing: the sizes, about, at which the heads of calls say what
    threads share, and the bytes of each other thread's workspace; None: one thread makes all calls. is_new: whether no run has yet found
    sizes since these heads were set."""

    def __init__(
        self, plan: Plan, words: np.ndarray, where: Mapping[Place, Sequence[int]], starts: Sequence[int]
    ) -> None:
        """words: uint32. starts: of the slots."""
        self.sharing: tuple[Hashable, int | None] = None, None
        self.is_new = True
        self.plan: Final = plan
        self.words: Final = words
        self.where: Final = where
        self.starts: Final = starts
        self.last: Final[dict[Place, int]] = {}


class WasmExecutable:
    """A Program with its modules linked and its weights in memory; see runtime/backend.Executable."""

    def __init__(self, backend: WasmMemory, program: ProgramData) -> None:
        if program.target != "wasm":
            raise DeviceError(f"wasm: the program was compiled for {program.target!r}; compile it for 'wasm'")
        self.program: Final = program
        self.backend: Final = backend
        engine = backend.engine
        entries = [choose_variant(code, engine.features).entry for code in program.kernels]
        names = list(dict.fromkeys(entry.split(":")[0] for entry in entries)) or list(program.modules)[-1:]
        binary = program.modules.get(names[0]) if len(names) == 1 else None
        if not isinstance(binary, bytes):
            raise FormatError(
                f"wasm: the program's kernels are in {names!s:.200}, expected one module; compile it again"
            )
        self._functions: Final = [function_number(entry) for entry in entries]
        self._module: Final = engine.link(binary)
        self._check_functions()
        self._weights: Final[dict[int, int]] = {}
        # The memory that is held; the finalizer reads this when it runs.
        self._held: Final[dict[Any, tuple[int, int, MemoryKind]]] = {}
        self._finalizer = weakref.finalize(self, _release_all, backend, self._held)
        self._finalizer.atexit = False
        for start, block in program.blocks.items():
            self._weights[start] = backend.hold(block)
            self._held["weights", start] = self._weights[start], block.size, "weights"
        self._plans: Final[Recent[Placed]] = Recent(MAX_PLANS)
        self._shared: Final[Recent[SharedCalls]] = Recent(MAX_PLANS)
        self._states: Final[WeakSet[WasmArray]] = WeakSet()
        backend.executables.add(self)

    def _check_functions(self) -> None:
        """Check that the module has the functions that the Program calls, with as many arguments."""
        given = {f"k{n}": c.ports + len(c.sizes) for n, c in zip(self._functions, self.program.kernels, strict=True)}
        for name, count in {NAME: 0, **given}.items():
            found = self.backend.engine.arguments(self._module, name)
            if found != count + 2:
                takes = "is not there" if found is None else f"takes {found} arguments"
                raise FormatError(f"wasm: the module's function {name} {takes}, expected one of {count + 2}")

    def run(self, inputs: Sequence[Any], states: Sequence[Any] = ()) -> list[WasmArray | HostArray]:
        backend = self.backend
        with backend.lock:
            given = [backend.own(x, f"input {k}") for k, x in enumerate(inputs)]
            placed = self.placed([x.shape for x in given], [x.dtype for x in given])

            def make(shape: tuple[int, ...], kind: DType) -> tuple[WasmArray, int]:
                made = WasmArray(backend, shape, kind)
                return made, made.address

            check_donated(self.program, given)
            places = [(x.data, None) if isinstance(x, HostArray) else (x, x.address) for x in given]
            made = self.execute(placed, places, states, make)
            return [HostArray(x, string) if isinstance(x, np.ndarray) else x for x in made]

    def new_states(self) -> list[WasmArray]:
        """The arrays of a new session, with their initial values."""
        with self.backend.lock:
            made = [self._new_state(s.buffer, s.initial) for s in self.program.states]
            self._states.update(made)
            return made

    def _new_state(self, buffer: int, initial: int | None) -> WasmArray:
        engine, b = self.backend.engine, self.program.buffers[buffer]
        self._check_held()
        untouched = engine.untouched
        made = WasmArray(self.backend, tuple(known(d, {}) for d in b.shape), b.dtype, "states")
        if initial is None:
            end = made.address + made.bytes
            zero = end if untouched is None else min(max(untouched, made.address), end)
            if zero > made.address:
                engine.write(made.address, np.zeros(zero - made.address, np.uint8))
            if zero < end:
                engine.leave_untouched(zero, end - zero)
        else:
            start = self.weight(self.program.buffers[initial].place[1])
            engine.run(self._module, as_words([heads.COPY, 3, made.address, start, made.bytes]), 0, None)
        return made

    def execute(
        self,
        placed: Placed,
        arguments: Sequence[tuple[Any, int | None]],
        states: Sequence[Any],
        make: Callable[..., tuple[Any, int]],
    ) -> list[Any]:
        """Run over inputs, each an array and its address; `make` returns the same for an output's shape and dtype. Strings
        are passed and returned as NumPy arrays without an address."""
        if len(states) != len(self.program.states):
            raise InputError(f"the program has {len(self.program.states)} states, got {len(states)}: see new_states()")
        self.backend.reclaim()
        run = _WasmRun(self, placed, make)
        strings = placed.plan.strings
        strings.clear()
        for k, (array, address) in enumerate(arguments):
            if address is None:
                strings["input", k] = array
            else:
                run.put(("input", k), address)
        for k, state in enumerate(states):
            own = self.backend.own(state, f"state {k}")
            assert isinstance(own, WasmArray)
            run.put(("state", k), own.address)
        for k, j in self.program.donated.items():
            run.outputs[k] = arguments[j][0]
        run.make_outputs(placed.plan.program.outputs)
        engine, words, at = self.backend.engine, placed.words, 0
        self.backend.runs += 1
        try:
            while (at := engine.run(self._module, words, at, self._spaces(placed))) != words.size:
                self._stop(run, at)
                at += 3
        finally:
            self.backend.runs -= 1
        placed.is_new = False
        plan, outputs = placed.plan, zip(placed.plan.program.outputs, run.outputs, strict=True)
        return [plan.texts(i) if plan.program.buffers[i].dtype is string else made for i, made in outputs]

    def _stop(self, run: _WasmRun, at: int) -> None:
        """Run the step at which the words stopped."""
        stop = run.plan.stops.get(at)
        if stop is None:
            raise FormatError(f"wasm: the module stopped at word {at}, where nothing is left to its caller")
        run_host_step(run.plan, stop, run.read, run.write, run.found)

    def placed(self, shapes: Shapes, kinds: Sequence[DType]) -> Placed:
        """The words for inputs of these shapes and dtypes; those that do not fit are errors."""
        self._check_held()
        bounds = self.program.bounds
        if not bounds:
            return self._plans.at((tuple(shapes), tuple(kinds)), lambda: self._place(self.program.bound(shapes, kinds)))
        sizes = self.program.bound(shapes, kinds)
        key = id(self.program.at(sizes)), tuple((name, size) for name, size in sizes.items() if name not in bounds)
        found = self._plans.at(key, lambda: self._place(sizes))
        changed = found.plan.refit(sizes)
        if changed is None:
            return self._place(sizes)
        for number, places in changed.items():
            found.words[places] = as_words([number])
        if changed:
            self.share(found)
        return found

    def _place(self, sizes: Mapping[str, int]) -> Placed:
        program = self.program.at(sizes)
        plan = Plan(program, sizes, self._functions)
        slots = [0 if ("slot", k) in plan.late else count for k, count in enumerate(program.slot_bytes(sizes))]
        every = self.program.programs if self.program.bounds else ()
        self._reserve(max([sum(slots), *(p.peak(sizes) for p in every)]))
        starts = [*accumulate([self._held["scratch"][0] if "scratch" in self._held else 0, *slots])]
        words = as_words(plan.words)
        where: dict[Place, list[int]] = {}
        for at in plan.named:
            place = plan.program.buffers[plan.words[at]].place
            kind, number = place
            if kind in ("weights", "slot") and place not in plan.late:
                words[at] = self.weight(number) if kind == "weights" else starts[number]
            else:
                where.setdefault(place, []).append(at)
        placed = Placed(plan, words, where, starts)
        self.share(placed)
        return placed

    def share(self, placed: Placed) -> None:
        """Let threads share the calls that are long enough at these sizes, or at about these."""
        engine, plan = self.backend.engine, placed.plan
        key = engine.threads, id(plan.program), tuple(size.bit_length() for size in plan.sizes.values())
        if placed.sharing[0] == key or not engine.can_share(self._module):
            return
        from .shared_calls import shared_calls  # noqa: PLC0415 (short runs need none)

        placed.sharing, placed.is_new = (key, None), True
        self._set_heads(placed, self._shared.at(key, lambda: shared_calls(plan, engine.threads)))

    def share_found(self, placed: Placed, words: Sequence[int]) -> None:
        """The same for the calls that have these words, whose sizes a run has found."""
        if placed.sharing[0] is not None:
            from .shared_calls import shared_calls  # noqa: PLC0415

            self._set_heads(placed, shared_calls(placed.plan, self.backend.engine.threads, words))

    def _set_heads(self, placed: Placed, shared: SharedCalls) -> None:
        key, stride = placed.sharing
        most = max(shared.stride, stride or 0)
        is_shared = any(shared.heads.values()) and self._has_spaces((self.backend.engine.threads - 1) * most)
        placed.sharing = key, most if is_shared else stride
        for at, head in shared.heads.items():
            placed.words[at] = placed.plan.words[at] | (head if is_shared else 0)

    def _spaces(self, placed: Placed) -> tuple[int, int] | None:
        """The address of other threads' workspaces, and the bytes between two; None: they have no part in what comes next."""
        stride = placed.sharing[1]
        return None if stride is None else (self._held["threads"][0] if stride else 0, stride)

    def _has_spaces(self, count: int) -> bool:
        """Whether there is memory for so many bytes of other threads' workspaces."""
        if count <= (self._held["threads"][1] if "threads" in self._held else 0):
            return True
        try:
            address = self.backend.take(count, lambda: "workspaces of threads", "scratch")
        except DeviceError:
            return False
        if "threads" in self._held:
            self.backend.release(*self._held["threads"])
        self._held["threads"] = address, count, "scratch"
        return True

    def place_of(self, slot: int, count: int) -> int:
        """The address of a slot whose bytes are found in mid-run, with room for `count` of them."""
        address, room = self._held[slot][:2] if slot in self._held else (0, -1)
        if room < count:
            if room >= 0:
                self.backend.release(*self._held.pop(slot))
            room = align(count + count // 4)  # the next turn of a loop may want a little more
            address = self.backend.take(room, lambda: f"slot {slot} of the scratch memory", "scratch")
            self._held[slot] = address, room, "scratch"
        return address

    def _reserve(self, count: int) -> None:
        """Make the scratch memory at least `count` bytes long; if it moves, plans that point into it are dropped."""
        if count <= (self._held["scratch"][1] if "scratch" in self._held else 0):
            return
        self._plans.clear()
        if "scratch" in self._held:
            self.backend.release(*self._held.pop("scratch"))
        self._held["scratch"] = self.backend.take(count, lambda: "scratch memory", "scratch"), count, "scratch"

    def rest(self) -> None:
        """Let go of scratch memory, which the next run takes again."""
        self._plans.clear()
        for what in [what for what, (_, _, use) in self._held.items() if use == "scratch"]:
            self.backend.release(*self._held.pop(what))

    def _check_held(self) -> None:
        if not self._held:
            raise DeviceError("wasm: this program was disposed of; compile or load it again")

    def weight(self, offset: int) -> int:
        """The address of a weight."""
        start = self.program.start_of(offset)
        return self._weights[start] + offset - start

    def memory(self) -> Mapping[str, int]:
        """`scratch` counts slots, `states` the arrays of all sessions."""
        held = {what: count for what, (_, count, _) in self._held.items()}
        weights = held.pop(("weights", 0), 0)
        shared = sum(held.pop(("weights", start), 0) for start in self.program.shared)
        states = sum(x.bytes for x in self._states)
        return {"weights": weights, "shared": shared, "scratch": sum(held.values()), "states": states}

    def dispose(self) -> None:
        with self.backend.lock:
            self._finalizer()
            self.backend.reclaim()
            self._plans.clear()


class _WasmRun:
    """One run of placed words: the addresses that differ from run to run, and access to buffers for its stops."""

    def __init__(self, executable: WasmExecutable, placed: Placed, make: Callable[..., tuple[Any, int]]) -> None:
        self.plan: Final = placed.plan
        self.outputs: Final[list[Any]] = [None] * len(placed.plan.program.outputs)
        self._executable: Final = executable
        self._placed: Final = placed
        self._make: Final = make
        self._at: Final[dict[Place, int]] = {}
        if placed.plan.late:
            placed.plan.begin()
            sizes = placed.plan.program.slot_bytes(placed.plan.sizes)
            for kind, number in placed.plan.late:
                if kind == "slot":
                    self.put((kind, number), executable.place_of(number, sizes[number]))

    def put(self, place: Place, address: int) -> None:
        self._at[place] = address
        placed = self._placed
        if placed.last.get(place) != address:  # most states and slots stay where they are
            placed.last[place] = address
            where = placed.where.get(place)
            if where is not None:
                placed.words[where] = address

    def make_outputs(self, buffers: Sequence[int]) -> None:
        """Allocate the outputs in these buffers whose sizes are known and that have memory of their own."""
        plan = self.plan
        for i in buffers:
            b = plan.program.buffers[i]
            own = b.place[0] == "output" and b.dtype is not string
            if own and (not plan.late or symbols(b.shape) <= plan.sizes.keys()):
                self.outputs[b.place[1]], address = self._make(plan.shape(i), b.dtype)
                self.put(b.place, address)

    def found(self, sizes: Found) -> None:
        """Use the sizes that were sizes: update the words, slots and outputs that depend on them."""
        plan = self.plan
        words = self._placed.words
        for at in sizes.words:
            words[at] = plan.words[at] & _WORD
        for i in sizes.buffers:
            kind, number = plan.program.buffers[i].place
            if kind == "slot":
                self.put((kind, number), self._executable.place_of(number, plan.bytes(i)))
        self.make_outputs([i for i in sizes.buffers if i in plan.program.outputs])
        if sizes.words and (sizes.changed or self._placed.is_new):
            self._executable.share_found(self._placed, sizes.words)

    def _address(self, buffer: int) -> int:
        place = self.plan.program.buffers[buffer].place
        if place in self._at:
            return self._at[place]
        kind, number = place
        if kind == "weights":
            return self._executable.weight(number)
        if kind != "slot":
            name = self.plan.program.buffers[buffer].name
            raise DeviceError(f"wasm: a step reads {name!r} before there is memory for it: export the model again")
        return self._placed.starts[number]

    def read(self, buffer: int) -> np.ndarray:
        out = np.empty(self.plan.shape(buffer), self.plan.program.buffers[buffer].dtype.numpy)
        self._executable.backend.engine.read(self._address(buffer), out)
        return out

    def write(self, buffer: int, array: np.ndarray) -> None:
        self._executable.backend.engine.write(self._address(buffer), np.ascontiguousarray(array))


_WORD: Final = (1 << 32) - 1


def as_words(numbers: Sequence[int]) -> np.ndarray:
    """Numbers as words of 32 bits."""
    far = max(numbers, key=abs, default=0)
    if abs(far) > _WORD:
        raise DeviceError(f"wasm: the run needs the number {far}, which has more than 32 bits")
    return np.array(numbers, np.int64).astype(np.uint32)


def _release_all(backend: WasmMemory, held: dict[Any, tuple[int, int, MemoryKind]]) -> None:
    while held:
        backend.release(*held.popitem()[1])
