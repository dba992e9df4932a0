"""A runner of Programs for the target `wasm`, written from static/README.md alone: it knows nothing of Singe.

`Runner(path).run({name: array})` gives {name: array}. It needs NumPy for arrays and wasmtime as the engine of WebAssembly,
and refuses Programs with ops on the host or strings. Files are trusted here: the README says what else a reader checks.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import wasmtime

COPY, UNLESS, LOOP = -1, -3, -4
MOST = 2**31 - 1
ALIGN = 256
PAGE = 65536
DTYPES = {"bool": "?", "float16": "f2", "float32": "f4", "float64": "f8", "bfloat16": "u2"}
DTYPES |= {f"{kind}int{bits}": f"{kind or 'i'}{bits // 8}" for kind in ("", "u") for bits in (8, 16, 32, 64)}
WORDS = {"div": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}


def aligned(count):
    return -(-count // ALIGN) * ALIGN


def value(dim, sizes):
    """A dimension at these sizes; None if one is not known."""
    if isinstance(dim, int):
        return dim
    total = 0
    for factor, *atoms in dim:
        for atom in atoms:
            one = sizes.get(atom) if isinstance(atom, str) else [value(side, sizes) for side in atom[1:]]
            if one is None or (isinstance(one, list) and None in one):
                return None
            factor *= one if isinstance(atom, str) else WORDS[atom[0]](*one)
        total += factor
    return total


def name_of(dim):
    """The name of the size that a dimension is, if it is one by itself."""
    match dim:
        case [[1, str(name)]]:
            return name


class Runner:
    def __init__(self, path):
        data = Path(path).read_bytes()
        length = int.from_bytes(data[8:12], "little")
        self.program = program = json.loads(data[12 : 12 + length])
        block = data[aligned(12 + length) :]
        assert [data[:8], program["format"], program["target"]] == [b"SINGE\x001\n", "singe/3", "wasm"]
        assert hashlib.sha256(block).hexdigest() == program["sha256"]
        entries = [next(v for v in k["variants"] if not v["requires"])["entry"].split(":k") for k in program["kernels"]]
        self.functions = [int(number) for _, number in entries]
        at, count = program["modules"]["simd"]["at"]
        engine = wasmtime.Engine()
        self.store = wasmtime.Store(engine)
        self.memory = wasmtime.Memory(self.store, wasmtime.MemoryType(wasmtime.Limits(0, None)))
        module = wasmtime.Module(engine, block[at : at + count])
        self.module = wasmtime.Instance(self.store, module, [self.memory]).exports(self.store)
        self.end = ALIGN
        at, count = program["blocks"]["weights"]
        self.weights = self.take(count)
        self.memory.write(self.store, block[at : at + count], self.weights)
        self.states = []
        for state in program["states"]:
            own = program["buffers"][state["buffer"]]
            count = self.bytes(own, {})
            start = 0 if state["initial"] is None else program["buffers"][state["initial"]]["place"][1]
            first = bytes(count) if state["initial"] is None else block[at + start : at + start + count]
            self.states.append(self.take(count))
            self.memory.write(self.store, first, self.states[-1])

    def take(self, count):
        """Memory behind all that was taken before."""
        start, self.end = self.end, self.end + aligned(max(count, 1))
        more = -(-self.end // PAGE) - self.memory.size(self.store)
        if more > 0:
            self.memory.grow(self.store, more)
        return start

    def bytes(self, buffer, sizes):
        """The bytes of a buffer; None if one of its sizes is not known."""
        count = buffer["size"]
        for dim in buffer["shape"]:
            side = value(dim, sizes)
            if side is None:
                return None
            count *= max(side, 0)
        return count

    def run(self, inputs):
        program, kept = self.program, self.end
        sizes = {}
        pairs = [(own, inputs[own["name"]]) for own in (program["buffers"][i] for i in program["inputs"])]
        for own, given in pairs:
            named = ((name_of(dim), side) for dim, side in zip(own["shape"], given.shape, strict=True))
            sizes = {**{name: side for name, side in named if name}, **sizes}
        for own, given in pairs:
            assert given.dtype == DTYPES[own["dtype"]]
            assert [*given.shape] == [value(d, sizes) for d in own["shape"]]
        fits = (s for s in program["specialised"] if s["sizes"].items() <= sizes.items())
        try:
            return Run(self, next(fits, program), sizes, inputs).outputs()
        finally:
            self.end = kept


class Run:
    """One run: `at` is the address of each place, `room` the bytes that a slot has."""

    def __init__(self, runner, part, sizes, inputs):
        self.runner, self.part, self.sizes, self.room = runner, part, dict(sizes), {}
        program, self.buffers, self.words = runner.program, part["buffers"], list(part["words"])
        for check in part["checks"]:
            if value(check["dim"], sizes) < 0:
                raise ValueError(check["text"])
        self.at = {("state", k): address for k, address in enumerate(runner.states)}
        for k, i in enumerate(program["inputs"]):
            given = np.ascontiguousarray(inputs[self.buffers[i]["name"]])
            self.at["input", k] = runner.take(given.nbytes)
            runner.memory.write(runner.store, given.tobytes(), self.at["input", k])
        self.named, self.sized = [], []  # positions of words that are buffers; (position, dimension or buffer)
        at = 0
        while at < len(self.words):
            head, rest = self.words[at], range(at + 2, at + 2 + self.words[at + 1])
            if head >= 0:
                kernel = program["kernels"][head]
                self.words[at] = runner.functions[head]
                self.named += rest[: kernel["ports"]]
                self.sized += zip(rest[kernel["ports"] :], kernel["sizes"], strict=True)
            elif head == COPY:
                self.named += rest[:2]
                self.sized.append((rest[2], self.buffers[self.words[rest[1]]]))
            elif head == UNLESS:
                self.named.append(rest[1])
            elif head == LOOP:
                dim = part["counts"][self.words[rest[1]]]
                self.sized.append((rest[1], [[1, ["min", [[1, ["max", dim, 0]]], MOST]]]))
            at = rest.stop
        self.start = runner.take(4 * len(self.words))
        runner.memory.write(runner.store, np.array(self.words, np.int32).tobytes(), self.start)
        self.bind(self.sizes)
        self.follow()

    def bind(self, found):
        """Take memory for the buffers whose sizes are known, and set the words that depend on sizes and addresses."""
        self.sizes |= found
        most = {**self.sizes, **self.runner.program["bounds"]}
        for b in self.buffers:
            kind, number = place = tuple(b["place"])
            count = self.runner.bytes(b, self.sizes)
            if kind in ("slot", "output") and count is not None:
                count = max(count, self.runner.bytes(b, most)) if kind == "slot" else count
                if self.room.get(place, -1) < count:
                    self.room[place], self.at[place] = count, self.runner.take(count)
        for at in self.named:
            address = self.address(self.words[at])
            if address is not None:
                self.set(at, address)
        for at, of in self.sized:
            number = self.runner.bytes(of, self.sizes) if isinstance(of, dict) else value(of, self.sizes)
            if number is not None:
                self.set(at, number)

    def set(self, at, number):
        self.runner.memory.write(
            self.runner.store, int(number).to_bytes(4, "little", signed=number < 0), self.start + 4 * at
        )

    def address(self, buffer):
        kind, number = self.buffers[buffer]["place"]
        return self.runner.weights + number if kind == "weights" else self.at.get((kind, number))

    def read(self, buffer):
        own, at = self.buffers[buffer], self.address(buffer)
        data = self.runner.memory.read(self.runner.store, at, at + self.runner.bytes(own, self.sizes))
        return np.frombuffer(data, DTYPES[own["dtype"]]).reshape([value(d, self.sizes) for d in own["shape"]])

    def follow(self):
        at, end = self.start, self.start + 4 * len(self.words)
        while (at := self.runner.module["run"](self.runner.store, at, end)) != end:
            stop = self.part["stops"][self.words[(at - self.start) // 4 + 2]]
            if stop["do"] == "host":
                raise NotImplementedError(f"the op {stop['op']} runs on the host")
            number = (
                value(stop["dim"], self.sizes) if stop["dim"] is not None else int(self.read(stop["buffer"]).flat[0])
            )
            if stop["do"] == "bind":
                self.bind({stop["size"]: number})
            elif number < 0:
                raise ValueError(stop["text"])
            at += 12

    def outputs(self):
        return {self.buffers[i]["name"]: self.read(i) for i in self.runner.program["outputs"]}
